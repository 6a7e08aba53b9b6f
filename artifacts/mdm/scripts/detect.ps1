
# Detection of a remediation: exit status 1 asks for the remediation.
try {
    $problems = @(Get-Problem)
} catch {
    $problems = @("could not be checked: $($_.Exception.Message)")
}
if ($problems.Count -gt 0) {
    Write-Line ('halo: ' + ($problems -join '; '))
    exit 1
}
Write-Line 'halo: ok'
exit 0
