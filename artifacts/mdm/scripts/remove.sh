
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
