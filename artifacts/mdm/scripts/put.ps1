
# Writes the managed files, each whole or not at all, and removes what an older release left. A file that halo did not write is kept beside its place as
# NAME.before-halo, which no harness reads.
function Set-Protected([string]$Path, [bool]$Directory) {
    if ($Directory) { $acl = New-Object Security.AccessControl.DirectorySecurity } else { $acl = New-Object Security.AccessControl.FileSecurity }
    $acl.SetAccessRuleProtection($true, $false)
    $acl.SetOwner((New-Object Security.Principal.SecurityIdentifier 'S-1-5-18'))
    foreach ($pair in @(@('S-1-5-18', 'FullControl'), @('S-1-5-32-544', 'FullControl'), @('S-1-5-32-545', 'ReadAndExecute'))) {
        $sid = New-Object Security.Principal.SecurityIdentifier $pair[0]
        if ($Directory) {
            $acl.AddAccessRule((New-Object Security.AccessControl.FileSystemAccessRule($sid, $pair[1], 'ContainerInherit, ObjectInherit', 'None', 'Allow')))
        } else {
            $acl.AddAccessRule((New-Object Security.AccessControl.FileSystemAccessRule($sid, $pair[1], 'Allow')))
        }
    }
    Set-Acl -LiteralPath $Path -AclObject $acl
}

function Write-Whole([string]$Path, [byte[]]$Bytes) {
    $temporary = [IO.Path]::Combine([IO.Path]::GetDirectoryName($Path), '.halo-' + [Guid]::NewGuid().ToString('N'))
    try {
        [IO.File]::WriteAllBytes($temporary, $Bytes)
        if ([IO.File]::Exists($Path)) { [IO.File]::Replace($temporary, $Path, [NullString]::Value) } else { [IO.File]::Move($temporary, $Path) }
    } finally {
        if ([IO.File]::Exists($temporary)) { [IO.File]::Delete($temporary) }
    }
}

function Save-Record([string[]]$Places) {
    Write-Whole $Record ((New-Object Text.UTF8Encoding $false).GetBytes(($Places -join "`n") + "`n"))
}

try {
    foreach ($d in $Directories) {
        if ([IO.Directory]::Exists($d) -and (Test-Link $d)) { throw "$d is a link; remove it" }
        [void][IO.Directory]::CreateDirectory($d)
        Set-Protected $d $true
    }
    $old = @(Get-Recorded)
    $listed = @($Files | ForEach-Object { $_.Path })
    foreach ($f in $Files) {
        if ([IO.Directory]::Exists($f.Path)) { throw "$($f.Path) is a directory; move it away" }
        if (-not [IO.File]::Exists($f.Path)) { continue }
        if (-not (Test-Link $f.Path)) {
            if ($old -contains $f.Path -or (Get-Digest $f.Path) -eq $f.Sha256) { continue }
        }
        $kept = $f.Path + '.before-halo'
        if ([IO.File]::Exists($kept)) { [IO.File]::Delete($kept) }
        [IO.File]::Move($f.Path, $kept)
    }
    # From here on everything that may be there is recorded, so that a run that is cut short can be repeated.
    $folder = [IO.Path]::GetDirectoryName($Record)
    if ([IO.Directory]::Exists($folder) -and (Test-Link $folder)) { throw "$folder is a link; remove it" }
    [void][IO.Directory]::CreateDirectory($folder)
    Set-Protected $folder $true
    Save-Record @($old + $listed | Select-Object -Unique)
    foreach ($f in $Files) {
        Write-Whole $f.Path ([Convert]::FromBase64String($f.Content))
        Set-Protected $f.Path $false
        if ((Get-Digest $f.Path) -ne $f.Sha256) { throw "$($f.Path) could not be written whole" }
    }
    foreach ($p in $old) {
        if ($listed -notcontains $p -and [IO.File]::Exists($p)) { [IO.File]::Delete($p) }
    }
    Save-Record $listed
} catch {
    Write-Line ('halo: ' + $_.Exception.Message)
    exit 1
}
Write-Line "halo: $($Files.Count) files in place"
exit 0
