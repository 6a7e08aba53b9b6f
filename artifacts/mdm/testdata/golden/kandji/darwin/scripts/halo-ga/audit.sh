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

# Prints what is not as the policy wants it and exits with 1, else prints ok and exits with 0. Changes nothing.
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

found=
problem() { found=${found:+$found; }$1; }

while read -r sum mode place; do
  [ -n "$place" ] || continue
  file=$root$place
  if ! present "$file"; then
    problem "missing: $place"
  elif [ -L "$file" ] || [ ! -f "$file" ]; then
    problem "not a regular file: $place"
  elif ! digest "$file" || [ "$sum_" != "$sum" ]; then
    problem "changed: $place"
  elif [ -z "$(find "$file" -prune -user 0 -group 0 -perm "$mode")" ]; then
    problem "wrong owner or mode: $place"
  fi
done <<HALO-LIST
$files
HALO-LIST
while read -r place; do
  [ -n "$place" ] || continue
  if present "$root$place" && [ -z "$(find "$root$place" -prune -type d -user 0 ! -perm -020 ! -perm -002)" ]; then
    problem "directory that others can write: $place"
  fi
done <<HALO-LIST
$directories
HALO-LIST
while read -r place; do
  [ -n "$place" ] || continue
  if present "$root$place"; then
    problem "file beside the profile: $place"
  fi
done <<HALO-LIST
$empty
HALO-LIST
if [ -f "$record" ]; then
  while read -r _ place; do
    if ! listed "$place" && present "$root$place"; then
      problem "left from an older release: $place"
    fi
  done <"$record"
fi
printf 'halo: %s\n' "${found:-ok}"
[ -z "$found" ]
