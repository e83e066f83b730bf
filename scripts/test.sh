#!/usr/bin/env bash
# Runs every test of every module with the race detector. Where the race detector's own runtime crashed
# ("ThreadSanitizer: CHECK failed", or a stack of its own that the Go runtime cannot unwind) and nothing else failed,
# the packages in which it did are run again, and it says so: that is a known fault of the detector with
# testing/synctest (https://github.com/golang/go/issues/78156); it prints "DATA RACE" for what it finds. It crashes the
# sooner the longer a process runs, so they are run again in slices, by the names of the tests: each at most three
# times, and then without the detector.
#
# What plays a short form with the detector (internal/testing/raced) is run a second time, without it and whole.
#
# SQLite in Go and the arithmetic of secp256k1 are not instrumented: they are not ours, and take ten times as long
# with it. What they are called with is, and so are the locks between.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
run=(
  go test -race -p 2 -timeout 20m
  "-gcflags=modernc.org/...=-race=false"
  "-gcflags=github.com/decred/dcrd/dcrec/...=-race=false"
)
log=$(mktemp)
files=

# Nodes and databases wait for the disk at each block and commit, which is most of the time of some packages. No test
# takes the power away, so where there is room the temporary files live in memory, with what the go command builds.
memory=/dev/shm
if [ "$(df --output=avail -k "$memory" 2>/dev/null | tail -1)" -ge 10000000 ] 2>/dev/null &&
  files=$(mktemp -d "$memory/payments.XXXXXX" 2>/dev/null); then
  chmod 755 "$files" # PostgreSQL runs as another user, also for root
  # Programs are run from there.
  if cp "$(type -P true)" "$files/true" && "$files/true" 2>/dev/null; then
    unset GOTMPDIR # it comes before TMPDIR
    export TMPDIR=$files
    echo "== temporary files are in memory: $memory"
  fi
fi
trap 'rm -rf "$log" ${files:+"$files"}' EXIT

crash='ThreadSanitizer: CHECK failed|^runtime: g [0-9]+( gp=0x[0-9a-f]+)?: (unexpected return|unknown) pc'

# crashed prints the packages that failed, if all of them did by a crash of the race detector alone.
crashed() {
  grep -qE "$crash" "$log" || return 1
  ! grep -qE '^ *--- FAIL|^panic:|DATA RACE|\[(build|setup) failed\]|^# ' "$log" || return 1
  local packages
  packages=$(awk '$1 == "FAIL" && NF > 1 {print $2}' "$log")
  [ "$(wc -w <<<"$packages")" -le "$(grep -cE "$crash" "$log")" ] || return 1
  echo "$packages"
}

# The last slice has all names that the others have not.
slices=('^(Test[A-C]|Example|Fuzz)' '^Test[D-O]' '^Test[P-R]' '^Test[^A-R]')

# rerun runs packages of a module again, in slices.
rerun() {
  local module=$1 packages=$2 slice
  for slice in "${slices[@]}"; do
    for attempt in 1 2 3; do
      echo "== $module: the race detector crashed; again ($attempt of 3), $slice: $packages"
      # Package paths have no spaces.
      # shellcheck disable=SC2086
      (cd "$module" && "${run[@]}" -count=1 -run "$slice" $packages) 2>&1 | tee "$log" && continue 2
      crashed >/dev/null || return 1
    done

    echo "== $module: the race detector crashed each time; without it, $slice: $packages"
    # shellcheck disable=SC2086
    (cd "$module" && go test -timeout 20m -count=1 -run "$slice" $packages) 2>&1 | tee "$log" || return 1
  done
}

# whole runs again, without the detector, the packages of a module that play a short form with it.
whole() {
  local packages
  packages=$(go list -f '{{.ImportPath}}|{{.TestImports}}{{.XTestImports}}' ./... |
    awk -F'|' '$2 ~ /\/internal\/testing\/raced[] ]/ {print $1}') || return 1
  [ -n "$packages" ] || return 0
  echo "== what played a short form, whole and without the race detector: $packages"
  # shellcheck disable=SC2086
  go test -p 2 -timeout 20m $packages
}

failed=()
for module in $(scripts/modules.sh); do
  echo "== $module: ${run[*]} ./..."
  if ! (cd "$module" && "${run[@]}" ./...) 2>&1 | tee "$log"; then
    { again=$(crashed) && rerun "$module" "$again"; } || failed+=("$module")
  fi

  (cd "$module" && whole) || failed+=("$module, without the race detector")
done

if ((${#failed[@]} > 0)); then
  echo "FAILED in: ${failed[*]}" >&2
  exit 1
fi
