#!/usr/bin/env bash
# testnames-gone.sh BASE fails if a test, fuzz target, benchmark or example of the commit BASE is gone, and
# prints the names. Renames are listed in docs/proof/renamed-tests.txt; their new names have to be there. A name
# that fewer packages have than before is noted, and is no failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if (($# != 1)); then
  echo "usage: scripts/testnames-gone.sh BASE" >&2
  exit 2
fi
base=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "testnames: no commit $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree"
git archive "$base" | tar -x -C "$work/tree"
scripts/testnames.sh -p "$work/tree" >"$work/before"
scripts/testnames.sh -p >"$work/now"

# A chain of renames is followed to its end.
awk -v renames=docs/proof/renamed-tests.txt '
  BEGIN {
    while ((getline line < renames) > 0) {
      if (line ~ /^#/ || split(line, part, /[ \t]+/) < 2) continue
      to[part[1]] = part[2]
    }
  }
  FNR == 1 { file++ }
  file == 1 { if (!before[$2]++) names[++n] = $2 }
  file == 2 { now[$2]++ }
  END {
    for (i = 1; i <= n; i++) {
      name = names[i]; new = name
      for (hops = 0; !(new in now) && new in to && hops < 20; hops++) new = to[new]
      if (!(new in now)) {
        printf "gone: %s%s\n", name, (new == name ? "" : " (renamed to " new ", which is gone too)")
        gone++
      } else if (new == name && now[name] < before[name])
        printf "note: %s was in %d packages and is in %d\n", name, before[name], now[name]
    }
    printf "%d names before, %d gone\n", n, gone
    exit gone > 0
  }' "$work/before" "$work/now"
