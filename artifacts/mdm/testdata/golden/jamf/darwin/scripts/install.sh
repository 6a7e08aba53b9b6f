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
files() {
  cat <<'HALO-END'
ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356 0644 /Library/Application Support/ClaudeCode/managed-mcp.json
1bc01ef3687ccfe07da22018dfe7851781c442c8b4ec7bd718d0c1f145529ad1 0644 /Library/Application Support/GeminiCli/policies/10-halo.toml
HALO-END
}

# The directories that only these files use.
directories() {
  cat <<'HALO-END'
/Library/Application Support/ClaudeCode
/Library/Application Support/GeminiCli
/Library/Application Support/GeminiCli/policies
HALO-END
}

# Places whose document comes with the configuration profile; a file there would mix with it.
empty() {
  cat <<'HALO-END'
/Library/Application Support/ClaudeCode/managed-settings.json
/etc/codex/config.toml
/etc/codex/requirements.toml
/Library/Application Support/GitHubCopilot/managed-settings.json
/Library/Application Support/opencode/opencode.json
HALO-END
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

# Writes the managed files, each whole or not at all, and removes what an older release left. A file that halo did not write is kept beside its place as
# NAME.before-halo, which no harness reads. Run as root.
fail() {
  printf 'halo: %s\n' "$1"
  exit 1
}

[ "$(id -u)" = 0 ] || fail 'this script must run as root'

temporary=
trap '[ -z "$temporary" ] || rm -f "$temporary"' EXIT

# aside moves what stands at a place out of the way, unless halo put it there or would put the same there.
aside() {
  file=$root$1
  present "$file" || return 0
  if [ -f "$file" ] && [ ! -L "$file" ]; then
    if recorded "$1" || [ "$(digest "$file")" = "$2" ]; then
      return 0
    fi
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
  [ "$(digest "$temporary")" = "$1" ] || fail "$3 could not be written whole"
  chown 0:0 "$temporary"
  chmod "$2" "$temporary"
  mv -f "$temporary" "$file"
  temporary=
}

lines() { files | while read -r sum _ place; do printf '%s  %s\n' "$sum" "$place"; done; }

while read -r place; do
  [ -n "$place" ] || continue
  [ ! -L "$root$place" ] || fail "$place is a symbolic link; remove it"
  mkdir -p "$root$place"
  chown 0:0 "$root$place"
  chmod 755 "$root$place"
done <<HALO-LIST
$(directories)
HALO-LIST
while read -r sum _ place; do
  [ -n "$place" ] || continue
  aside "$place" "$sum"
done <<HALO-LIST
$(files)
HALO-LIST
while read -r place; do
  [ -n "$place" ] || continue
  aside "$place" none
done <<HALO-LIST
$(empty)
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
sync
printf 'halo: %s files in place\n' "$(files | grep -c . || :)"
