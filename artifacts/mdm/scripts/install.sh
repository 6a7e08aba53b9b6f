
# Writes the managed files, each whole or not at all, and removes what an older release left. A file that halo did not write is kept beside its place as
# NAME.before-halo, which no harness reads. Run as root.
fail() {
  printf 'halo: %s\n' "$1"
  exit 1
}

[ "$(id -u)" = 0 ] || fail 'this script must run as root'

# The directories that only these files use.
directories=@DIRECTORIES@

# Places whose document comes with the configuration profile; a file there would mix with it.
empty=@EMPTY@

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

@CONTENT@
while read -r _ place; do
  case $place in
    /*) ;;
    *) continue ;;
  esac
  listed "$place" || discard "$place"
done <"$record"
lines | remember
echo 'halo: files in place'
