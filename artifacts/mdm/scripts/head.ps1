# halo policy @TARGET@
# @RELEASE@
# Run as SYSTEM in the 64-bit Windows PowerShell. One line of output, nothing on the error stream.
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

# What halo put on this device, one place a line.
$Record = [IO.Path]::Combine([Environment]::GetFolderPath('CommonApplicationData'), 'halo', 'mdm.list')

# The managed files.
$Files = @(
@FILES@)

# The directories that only these files use, parents first.
$Directories = @(
@DIRECTORIES@)

# The directories of the system, which stay.
$Shared = @('C:\', 'C:\Program Files', 'C:\ProgramData')

function Get-Digest([string]$Path) {
    $sha = [Security.Cryptography.SHA256]::Create()
    try {
        $stream = [IO.File]::Open($Path, 'Open', 'Read', 'ReadWrite')
        try { return ([BitConverter]::ToString($sha.ComputeHash($stream)) -replace '-', '').ToLowerInvariant() } finally { $stream.Dispose() }
    } finally { $sha.Dispose() }
}

function Test-Link([string]$Path) {
    return [bool]([IO.File]::GetAttributes($Path) -band [IO.FileAttributes]::ReparsePoint)
}

function Get-Recorded {
    if ([IO.File]::Exists($Record)) { return @([IO.File]::ReadAllLines($Record) | Where-Object { $_ -match '^[A-Za-z]:\\' }) }
    return @()
}

# Only SYSTEM, the administrators and the installer of Windows may change what is managed.
function Test-Protected([string]$Path) {
    $trusted = @('S-1-5-18', 'S-1-5-32-544', 'S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464')
    $change = [Security.AccessControl.FileSystemRights]'Write, Delete, DeleteSubdirectoriesAndFiles, ChangePermissions, TakeOwnership'
    $acl = Get-Acl -LiteralPath $Path
    if ($trusted -notcontains $acl.GetOwner([Security.Principal.SecurityIdentifier]).Value) { return $false }
    foreach ($rule in $acl.GetAccessRules($true, $true, [Security.Principal.SecurityIdentifier])) {
        if ($rule.AccessControlType -eq 'Allow' -and ($rule.FileSystemRights -band $change) -and $trusted -notcontains $rule.IdentityReference.Value -and $rule.PropagationFlags -ne 'InheritOnly') { return $false }
    }
    return $true
}

# Get-Problem lists what is not as the policy wants it.
function Get-Problem {
    foreach ($f in $Files) {
        if (-not [IO.File]::Exists($f.Path)) { "missing: $($f.Path)"; continue }
        if (Test-Link $f.Path) { "a link: $($f.Path)"; continue }
        if ((Get-Digest $f.Path) -ne $f.Sha256) { "changed: $($f.Path)"; continue }
        if (-not (Test-Protected $f.Path)) { "others can change: $($f.Path)" }
    }
    foreach ($d in $Directories) {
        if ([IO.Directory]::Exists($d) -and -not (Test-Protected $d)) { "others can change: $d" }
    }
    $listed = @($Files | ForEach-Object { $_.Path })
    foreach ($p in Get-Recorded) {
        if ($listed -notcontains $p -and [IO.File]::Exists($p)) { "left from an older release: $p" }
    }
}

# Write-Line prints one line that the console of the service shows whole.
function Write-Line([string]$Text) {
    Write-Output $Text.Substring(0, [Math]::Min($Text.Length, 2000))
}
