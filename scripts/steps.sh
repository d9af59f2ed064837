# Sourced by ./hil, and by bootstrap.sh and install-packages.sh, which set $log: messages, and steps
# whose output goes to the log.

# Whether an environment has its Python, and all that was installed into it.
whole() (
  [ -x "$1/bin/python" ] && [ -x "$1/bin/hil" ] && [ -f "$1/.hil-names" ] || exit 1
  [ -s "$1/.hil-names" ] || exit 0
  # shellcheck disable=SC2046
  cd "$1"/lib/python3*/site-packages 2>/dev/null && ls -d -- $(cat "$1/.hil-names") >/dev/null 2>&1
)
say() { printf 'hil: %s\n' "$*"; }
die() {
  printf 'hil: error: %s\n' "$1"
  shift
  for line in "$@"; do printf 'hil:        %s\n' "$line"; done
  exit 3
}
# Runs a step with its output in the log; on failure shows the end of it.
step() {
  title=$1
  shift
  say "$title ..."
  printf '\n== %s: %s\n' "$title" "$*" >>"$log"
  # A line every 5 s, so that nobody takes a download for a hang; it ends with this script. sleep has
  # no output, which whoever reads ours would otherwise wait for.
  (seconds=0
    while sleep 5 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
      seconds=$((seconds + 5))
      say "$title: $seconds s"
    done) &
  ticker=$!
  status=0
  "$@" >>"$log" 2>&1 || status=$?
  kill "$ticker" 2>/dev/null || :
  wait "$ticker" 2>/dev/null || :
  [ "$status" -eq 0 ] || {
    tail -n 15 "$log"
    die "$title failed" "the whole output is in $log"
  }
}
