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
files() {
  cat <<'HALO-END'
@FILES@HALO-END
}

# The directories that only these files use.
directories() {
  cat <<'HALO-END'
@DIRECTORIES@HALO-END
}

# Places whose document comes with the configuration profile; a file there would mix with it.
empty() {
  cat <<'HALO-END'
@EMPTY@HALO-END
}

digest() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum <"$1"
  else
    shasum -a 256 <"$1"
  fi | cut -c 1-64
}

present() { [ -e "$1" ] || [ -L "$1" ]; }

recorded() { [ -f "$record" ] && cut -c 67- <"$record" | grep -Fqx -e "$1"; }

listed() { files | cut -c 71- | grep -Fqx -e "$1"; }

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
