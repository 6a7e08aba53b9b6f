#!/usr/bin/env bash
# The work of action.yml. Inputs come as variables INPUT_*, never as text of a script; halo, git and jq are on PATH, and gh for the comment.
# The exit status is that of halo: 0 yes, 1 no, 2 no answer.
set -euo pipefail

tmp=$(mktemp -d "${RUNNER_TEMP:-/tmp}/halo.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
cd "$GITHUB_WORKSPACE"
status=0

# escaped makes a text the message of a workflow command.
escaped() {
  local s=$1
  s=${s//'%'/%25} s=${s//$'\r'/%0D} s=${s//$'\n'/%0A}
  printf '%s' "$s"
}

notice() { printf '::%s title=halo::%s\n' "$1" "$(escaped "$2")"; }

# stop ends the step without an answer.
stop() {
  notice error "$1"
  exit 2
}

# worst keeps the worst exit status.
worst() { ((status >= $1)) || status=$1; }

# output sets an output; a random delimiter keeps a value from ending itself.
output() {
  local end
  end=halo_$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  printf '%s<<%s\n%s\n%s\n' "$1" "$end" "$2" "$end" >>"$GITHUB_OUTPUT"
}

# capped prints the first lines of a file that fit a number of bytes.
capped() {
  LC_ALL=C awk -v left="$2" '{ left -= length($0) + 1; if (left < 0) { print "\n_The rest is too long to show here; run halo for all of it._"; exit } print }' "$1"
}

# GitHub takes at most 1 MiB for the summary of a step.
summary() { capped "$1" 900000 >>"$GITHUB_STEP_SUMMARY"; }

one_of() {
  local what=$1 value=$2
  shift 2
  local v
  for v in "$@"; do [[ $value != "$v" ]] || return 0; done
  stop "$what: \"$value\" is not one of $*"
}

read -ra units <<<"${INPUT_UNIT//[,$'\n']/ }"
read -ra fail_on <<<"${INPUT_FAIL_ON//[,$'\n']/ }"
fails_on() {
  local f
  for f in ${fail_on[@]+"${fail_on[@]}"}; do [[ $f != "$1" ]] || return 0; done
  return 1
}

one_of command "$INPUT_COMMAND" check lint validate test diff egress-test build
for f in ${fail_on[@]+"${fail_on[@]}"}; do one_of fail-on "$f" error warning looser; done
one_of comment "$INPUT_COMMENT" true false
dir=$INPUT_POLICY_DIR
[[ -d $dir ]] || stop "policy-dir: there is no directory \"$dir\" in the workspace"

# findings runs lint or validate: annotations, counts, SARIF, a table.
findings() {
  local command=$1 got=0
  local fail=()
  if [[ $command == lint ]] && fails_on warning; then fail=(--fail-on=warning); fi
  halo "$command" "--policy-dir=$dir" ${fail[@]+"${fail[@]}"} --output json >"$tmp/findings.json" || got=$?
  worst "$got"
  if ! jq -e .summary "$tmp/findings.json" >/dev/null 2>&1; then
    stop "halo $command gave no answer; the log has the reason"
  fi
  halo "$command" "--policy-dir=$dir" --output github || true
  if [[ -n $INPUT_SARIF_FILE ]]; then
    mkdir -p -- "$(dirname -- "$INPUT_SARIF_FILE")"
    halo "$command" "--policy-dir=$dir" --output sarif >"$INPUT_SARIF_FILE" || true
  fi
  output errors "$(jq -r .summary.errors "$tmp/findings.json")"
  output warnings "$(jq -r .summary.warnings "$tmp/findings.json")"
  if [[ $command == validate ]] && fails_on warning && (($(jq .summary.warnings "$tmp/findings.json") > 0)); then worst 1; fi
  # A code span with a fence longer than any run of backticks is the one place where Markdown means nothing.
  jq -r '
    def code: gsub("[\\x00-\\x1f]"; " ") | (([match("`+"; "g").length] | max // 0) + 1) as $n | ("`" * $n) as $f
      | (if $n > 1 then $f + " " + . + " " + $f else $f + . + $f end) | gsub("\\|"; "\\|");
    "### Policy: \(.summary.errors) errors, \(.summary.warnings) warnings in \(.summary.files) files\n",
    (if (.diagnostics | length) > 0 then "| | where | what |\n| --- | --- | --- |" else empty end),
    ((.diagnostics | sort_by({error: 0, warning: 1, info: 2}[.severity]))[:200][]
      | "| \(.severity) | \((.file + ":" + (.line | tostring)) | code) | \((.code + " " + .message) | code) |"),
    (if (.diagnostics | length) > 200 then "\n\((.diagnostics | length) - 200) more" else empty end), ""
  ' "$tmp/findings.json" >"$tmp/findings.md"
  summary "$tmp/findings.md"
}

# tests runs the policy tests; a repo without any passes a check, and not a test.
tests() {
  local got=0
  halo test "--policy-dir=$dir" >"$tmp/tests.txt" 2>"$tmp/tests.err" || got=$?
  if ((got == 2)) && [[ $1 == check ]] && grep -q 'there is no policy test' "$tmp/tests.err"; then return; fi
  cat "$tmp/tests.txt"
  cat "$tmp/tests.err" >&2
  worst "$got"
  if ((got == 1)); then notice error "policy tests failed: $(tail -n 1 "$tmp/tests.txt")"; fi
  { printf '### Policy tests\n\n'; sed 's/^/    /' "$tmp/tests.txt"; printf '\n'; } >"$tmp/tests.md"
  summary "$tmp/tests.md"
}

event() { jq -r "$1 // empty" "$GITHUB_EVENT_PATH"; }

# base prints the revision to compare with. A pull request is checked out as a merge, whose first parent is the branch it goes into.
base() {
  if [[ -n $INPUT_AGAINST ]]; then
    printf '%s' "$INPUT_AGAINST"
  elif [[ -n $(event .pull_request.number) ]]; then
    if git -C "$dir" rev-parse --verify --quiet HEAD^2 >/dev/null; then printf 'HEAD^1'; else event .pull_request.base.sha; fi
  else
    # The first push of a branch has no commit before it.
    event .before | grep -v '^0*$' || true
  fi
}

# difference compares the policy with what was there before.
difference() {
  local must=$1 from got=0 why=''
  from=$(base)
  if [[ -z $from ]]; then
    why='there is no revision to compare with; name one with against'
  elif [[ $from == -* ]] || ! git -C "$dir" rev-parse --verify --quiet "$from^{commit}" >/dev/null; then
    why="revision $from is not in the clone; check out with fetch-depth: 2 or more"
  elif ! git -C "$dir" cat-file -e "$from:./halos.yaml" 2>/dev/null; then
    why="revision $from has no policy in $dir"
  fi
  if [[ -n $why ]]; then
    [[ $must == check ]] || stop "$why"
    notice warning "nothing was compared: $why"
    printf 'Nothing was compared: %s.\n\n' "$why" >>"$GITHUB_STEP_SUMMARY"
    return
  fi
  halo diff "$from" "$dir" "--policy-dir=$dir" --output json >"$tmp/diff.json" || got=$?
  halo diff "$from" "$dir" "--policy-dir=$dir" --output markdown >"$tmp/diff.md" || true
  # Errors of the old policy are what this change may be about to mend.
  local sides
  sides=$(jq -r '[.failed[].side] | join(" ")' "$tmp/diff.json" 2>/dev/null) || sides=none
  if [[ $sides == old && $must == check ]]; then
    notice warning "the policy of $from has errors, so not all of it can be compared"
  else
    worst "$got"
  fi
  if ! jq -e .verdict "$tmp/diff.json" >/dev/null 2>&1; then
    notice warning 'halo diff gave no answer; the log has the reason'
    return
  fi
  local verdict
  verdict=$(jq -r .verdict "$tmp/diff.json")
  output looser "$([[ $verdict == LOOSER ]] && echo true || echo false)"
  output summary "$(jq -r .summary "$tmp/diff.json")"
  summary "$tmp/diff.md"
  # At most ten annotations of a kind are shown for a step; those of lint come first.
  jq -r --arg dir "$dir" '
    def data: gsub("%"; "%25") | gsub("\r"; "%0D") | gsub("\n"; "%0A");
    def property: data | gsub(":"; "%3A") | gsub(","; "%2C");
    [.groups[] | .targets as $t | .looser[] | {witness, targets: $t, at: first(.places[] | select(.side == "new"))}]
    | group_by(.witness)[:9][]
    | . as $all | .[0]
    | (if $dir == "." then "" else ($dir | sub("/+$"; "")) + "/" end) as $prefix
    | "::warning file=\($prefix + .at.file | property),line=\(.at.line),col=\(.at.column),title=looser::\(.witness + " for " + ([$all[].targets[]] | unique | join(", ")) | data)"
  ' "$tmp/diff.json"
  if [[ $verdict == LOOSER ]] && fails_on looser; then
    notice error "the policy got looser: $(jq -r .summary "$tmp/diff.json")"
    worst 1
  fi
  comment "$verdict"
}

# comment keeps one comment of the pull request current. The summary has the same text, so that a comment that cannot be written loses nothing.
comment() {
  local number marker id
  number=$(event .pull_request.number)
  [[ $INPUT_COMMENT == true && -n $number ]] || return 0
  if [[ $(event .pull_request.head.repo.full_name) != "$GITHUB_REPOSITORY" ]]; then
    echo 'The pull request comes from a fork, whose token may not comment; the difference is in the step summary.'
    return
  fi
  if ! command -v gh >/dev/null; then
    notice warning 'gh is not installed, so there is no comment; the difference is in the step summary'
    return
  fi
  marker="<!-- halo diff $(printf '%s' "$dir" | od -An -v -tx1 | tr -d ' \n') -->"
  { printf '%s\n' "$marker"; capped "$tmp/diff.md" 60000; } >"$tmp/comment.md"
  if ! id=$(gh api --paginate "repos/$GITHUB_REPOSITORY/issues/$number/comments" \
    --jq ".[] | select(.user.type == \"Bot\" and (.body | startswith(\"$marker\"))) | .id"); then
    notice warning 'the comments of the pull request cannot be read; the difference is in the step summary'
    return
  fi
  id=${id%%$'\n'*}
  if [[ -z $id && $1 == SAME ]]; then return; fi
  local where=(--method POST "repos/$GITHUB_REPOSITORY/issues/$number/comments")
  if [[ -n $id ]]; then where=(--method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id"); fi
  gh api "${where[@]}" --field "body=@$tmp/comment.md" --silent ||
    notice warning 'the comment cannot be written; give the job the permission pull-requests: write'
}

egress_test() {
  [[ -n $INPUT_EXPECT ]] || stop 'egress-test needs expect: one line HOST, ALLOW HOST or DENY HOST for each host'
  local got=0 args=() u
  [[ -z $INPUT_RING ]] || args+=("--ring=$INPUT_RING")
  for u in ${units[@]+"${units[@]}"}; do args+=("--unit=$u"); done
  printf '%s\n' "$INPUT_EXPECT" | halo egress test --file - "--policy-dir=$dir" ${args[@]+"${args[@]}"} >"$tmp/egress.txt" || got=$?
  cat "$tmp/egress.txt"
  worst "$got"
  if ((got == 1)); then notice error 'a host is decided otherwise than expected'; fi
  { printf '### Egress\n\n'; sed 's/^/    /' "$tmp/egress.txt"; printf '\n'; } >"$tmp/egress.md"
  summary "$tmp/egress.md"
}

build() {
  local got=0 out=${RUNNER_TEMP:-/tmp}/halo-release version=$INPUT_VERSION args=()
  if [[ -z $version && ${GITHUB_REF_TYPE:-} == tag ]]; then version=${GITHUB_REF_NAME#v}; fi
  [[ -z $version ]] || args+=("--version=$version")
  [[ -z $INPUT_RING ]] || args+=("--ring=$INPUT_RING")
  halo build "--policy-dir=$dir" "--out=$out/release" "--sequence=${INPUT_SEQUENCE:-${GITHUB_RUN_NUMBER:-0}}" ${args[@]+"${args[@]}"} --output json >"$tmp/build.json" || got=$?
  worst "$got"
  if ((got != 0)); then
    notice error 'the policy does not build; the log has the findings'
    halo validate "--policy-dir=$dir" --output github || true
    return
  fi
  halo release pack "$out/release" "--out=$out/release.tar"
  output digest "$(jq -r .digest "$tmp/build.json")"
  output release "$out/release"
  output bundle "$out/release.tar"
  output errors "$(jq -r .summary.errors "$tmp/build.json")"
  output warnings "$(jq -r .summary.warnings "$tmp/build.json")"
  # shellcheck disable=SC2016 # the backticks are Markdown
  jq -r '"### Release\n\n`\(.digest)`\n\n\(.targets) targets, \(.files) files, \(.summary.warnings) warnings\n"' "$tmp/build.json" >"$tmp/build.md"
  summary "$tmp/build.md"
}

case $INPUT_COMMAND in
  check)
    findings lint
    tests check
    difference check
    ;;
  lint | validate) findings "$INPUT_COMMAND" ;;
  test) tests test ;;
  diff) difference diff ;;
  egress-test) egress_test ;;
  build) build ;;
esac
exit "$status"
