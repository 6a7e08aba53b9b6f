# halo policy ga
# acme, release 1.2.0, sequence 7, sha256:15d02a37297194de435068bb19817609871b5bddde7e241a16db454d6c69fa3b
# Run as SYSTEM in the 64-bit Windows PowerShell. One line of output, nothing on the error stream.
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

# What halo put on this device, one place a line.
$Record = [IO.Path]::Combine([Environment]::GetFolderPath('CommonApplicationData'), 'halo', 'mdm.list')

# The managed files.
$Files = @(
    @{ Path = 'C:\Program Files\ClaudeCode\managed-mcp.json'; Sha256 = 'ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356'; Content = 'e30K' },
    @{ Path = 'C:\ProgramData\OpenAI\Codex\requirements.toml'; Sha256 = '5f545a2400c375b3e6459d5a68906a63362b523c246732b99d2c00c15aa28651'; Content = 'eSA9IDEK' }
)

# The directories that only these files use, parents first.
$Directories = @(
    'C:\Program Files\ClaudeCode',
    'C:\ProgramData\OpenAI',
    'C:\ProgramData\OpenAI\Codex'
)

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
