#!/bin/sh
# halo policy ga
# acme, release 1.2.0, sequence 7, sha256:c06bd799e3b3905a15b8f4b09959765de797b4506925f87fb827d427cb074971
set -eu
umask 022
PATH=/usr/bin:/bin:/usr/sbin:/sbin
LC_ALL=C
export PATH LC_ALL
# Empty on a device. An image or a test that works below another root sets it.
root=${HALO_ROOT:-}
# What halo put on this device: digest and place, as sha256sum -c reads it.
record=$root/var/lib/halo/mdm.list

# The managed files: digest, mode, place.
files='ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356 0644 /Library/Application Support/ClaudeCode/managed-mcp.json
1bc01ef3687ccfe07da22018dfe7851781c442c8b4ec7bd718d0c1f145529ad1 0644 /Library/Application Support/GeminiCli/policies/10-halo.toml
'

newline='
'
known=
if [ -f "$record" ]; then
  known=$(cut -c 67- <"$record")
fi
known=$newline$known$newline
places=$newline$(printf '%s' "$files" | cut -c 71-)$newline

# digest sets sum_ to the digest of a file.
if command -v sha256sum >/dev/null 2>&1; then
  digest() { sum_=$(sha256sum <"$1") && sum_=${sum_%% *}; }
else
  digest() { sum_=$(shasum -a 256 <"$1") && sum_=${sum_%% *}; }
fi

present() { [ -e "$1" ] || [ -L "$1" ]; }

# recorded reports whether halo put a place on this device, listed whether this release has it.
recorded() {
  case $known in
    *"$newline$1$newline"*) return 0 ;;
    *) return 1 ;;
  esac
}

listed() {
  case $places in
    *"$newline$1$newline"*) return 0 ;;
    *) return 1 ;;
  esac
}

# discard removes the file at a place and the directories above it that are empty then, up to those of the system.
discard() {
  if present "$root$1" && { [ -L "$root$1" ] || [ ! -d "$root$1" ]; }; then
    rm -f "$root$1"
  fi
  dir=${1%/*}
  while :; do
    case $dir in
      '' | /etc | /Library | '/Library/Application Support' | /opt | /usr | /var) return 0 ;;
    esac
    rmdir "$root$dir" 2>/dev/null || return 0
    dir=${dir%/*}
  done
}

# Writes the managed files, each whole or not at all, and removes what an older release left. A file that halo did not write is kept beside its place as
# NAME.before-halo, which no harness reads. Run as root.
fail() {
  printf 'halo: %s\n' "$1"
  exit 1
}

[ "$(id -u)" = 0 ] || fail 'this script must run as root'

# The directories that only these files use.
directories='/Library/Application Support/ClaudeCode
/Library/Application Support/GeminiCli
/Library/Application Support/GeminiCli/policies
'

# Places whose document comes with the configuration profile; a file there would mix with it.
empty='/Library/Application Support/ClaudeCode/managed-settings.json
/etc/codex/config.toml
/etc/codex/requirements.toml
/Library/Application Support/GitHubCopilot/managed-settings.json
/Library/Application Support/opencode/opencode.json
'

temporary=
trap '[ -z "$temporary" ] || rm -f "$temporary"' EXIT

# aside moves what stands at a place out of the way, unless halo put it there or would put the same there.
aside() {
  file=$root$1
  present "$file" || return 0
  if [ -f "$file" ] && [ ! -L "$file" ]; then
    if recorded "$1"; then
      return 0
    fi
    digest "$file"
    [ "$sum_" != "$2" ] || return 0
  elif [ -d "$file" ] && [ ! -L "$file" ]; then
    fail "$1 is a directory; move it away"
  fi
  [ ! -d "$file.before-halo" ] || fail "$1.before-halo is a directory; move it away"
  mv -f "$file" "$file.before-halo"
  printf 'halo: kept %s.before-halo\n' "$1"
}

# remember writes the lines of its input to the record.
remember() {
  temporary=$(mktemp "$record.XXXXXX")
  cat >"$temporary"
  chmod 644 "$temporary"
  mv -f "$temporary" "$record"
  temporary=
}

# put writes one file; its content comes in base64.
put() {
  file=$root$3
  temporary=$(mktemp "${file%/*}/.halo.XXXXXX")
  base64 --decode >"$temporary"
  digest "$temporary"
  [ "$sum_" = "$1" ] || fail "$3 could not be written whole"
  chown 0:0 "$temporary"
  chmod "$2" "$temporary"
  mv -f "$temporary" "$file"
  temporary=
}

# lines prints what the record says of this release.
lines() {
  while read -r sum _ place; do
    [ -z "$place" ] || printf '%s  %s\n' "$sum" "$place"
  done <<HALO-LIST
$files
HALO-LIST
}

while read -r place; do
  [ -n "$place" ] || continue
  [ ! -L "$root$place" ] || fail "$place is a symbolic link; remove it"
  mkdir -p "$root$place"
  chown 0:0 "$root$place"
  chmod 755 "$root$place"
done <<HALO-LIST
$directories
HALO-LIST
while read -r sum _ place; do
  [ -n "$place" ] || continue
  aside "$place" "$sum"
done <<HALO-LIST
$files
HALO-LIST
while read -r place; do
  [ -n "$place" ] || continue
  aside "$place" none
done <<HALO-LIST
$empty
HALO-LIST

# From here on everything that may be there is recorded, so that a run that is cut short can be repeated.
mkdir -p "${record%/*}"
{
  [ ! -f "$record" ] || cat "$record"
  lines
} | remember

put ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356 0644 '/Library/Application Support/ClaudeCode/managed-mcp.json' <<'HALO-END'
e30K
HALO-END
put 1bc01ef3687ccfe07da22018dfe7851781c442c8b4ec7bd718d0c1f145529ad1 0644 '/Library/Application Support/GeminiCli/policies/10-halo.toml' <<'HALO-END'
eiA9IDEK
HALO-END

while read -r _ place; do
  case $place in
    /*) ;;
    *) continue ;;
  esac
  listed "$place" || discard "$place"
done <"$record"
lines | remember
echo 'halo: files in place'
