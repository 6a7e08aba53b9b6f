
# Prints what is not as the policy wants it and exits with 1, else prints ok and exits with 0. Changes nothing.
# The directories that only these files use.
directories=@DIRECTORIES@

# Places whose document comes with the configuration profile; a file there would mix with it.
empty=@EMPTY@

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
printf '@RESULT@\n' "${found:-ok}"
[ -z "$found" ]
