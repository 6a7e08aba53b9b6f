
# Detection of a Win32 app: output and exit status 0 say that it is installed, silence that it is not.
try {
    if (@(Get-Problem).Count -eq 0) {
        Write-Line 'halo: ok'
        exit 0
    }
} catch {
    exit 1
}
exit 1
