#!/bin/sh
# halo policy @TARGET@
# @RELEASE@
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
files=@FILES@

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
