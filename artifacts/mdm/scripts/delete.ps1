
# Removes what halo put on this device and nothing else. What was kept as NAME.before-halo stays.
try {
    $places = @(Get-Recorded)
    foreach ($f in $Files) {
        # Without a record only files with the content of this release are known to be halo's.
        if ($places -notcontains $f.Path -and [IO.File]::Exists($f.Path) -and (Get-Digest $f.Path) -eq $f.Sha256) { $places += $f.Path }
    }
    foreach ($p in $places) {
        if ([IO.File]::Exists($p)) { [IO.File]::Delete($p) }
        $dir = [IO.Path]::GetDirectoryName($p)
        while ($dir -and $Shared -notcontains $dir -and [IO.Directory]::Exists($dir) -and @([IO.Directory]::GetFileSystemEntries($dir)).Count -eq 0) {
            [IO.Directory]::Delete($dir)
            $dir = [IO.Path]::GetDirectoryName($dir)
        }
    }
    if ([IO.File]::Exists($Record)) { [IO.File]::Delete($Record) }
} catch {
    Write-Line ('halo: ' + $_.Exception.Message)
    exit 1
}
Write-Line 'halo: removed'
exit 0
