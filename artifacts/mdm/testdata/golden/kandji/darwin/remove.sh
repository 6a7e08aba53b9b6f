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

# Removes what halo put on this device and nothing else. What install kept as NAME.before-halo stays. Run as root.
[ "$(id -u)" = 0 ] || {
  echo 'halo: this script must run as root'
  exit 1
}

# Without a record only files with the content of this release are known to be halo's.
while read -r sum _ place; do
  [ -n "$place" ] || continue
  file=$root$place
  if [ -f "$file" ] && [ ! -L "$file" ] && ! recorded "$place" && digest "$file" && [ "$sum_" = "$sum" ]; then
    discard "$place"
  fi
done <<HALO-LIST
$files
HALO-LIST
if [ -f "$record" ]; then
  while read -r _ place; do
    case $place in
      /*) discard "$place" ;;
    esac
  done <"$record"
  rm -f "$record"
  rmdir "${record%/*}" 2>/dev/null || :
fi
echo 'halo: removed'
