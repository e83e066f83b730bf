#!/usr/bin/env bash
# compare.sh BASE [REGEXP [PACKAGE…]] runs the benchmarks of the commit BASE (A) and of the working tree (B)
# in turns, A B A B…, and prints for each metric the medians of A and B and their ratio B/A. Two more ratios
# help to recognise noise: "paired" is the median of the rounds' own ratios, "best" the ratio of the best
# rounds. A median that is worse by more than 5 % is marked "slower"; the exit status does not depend on it.
# REGEXP is that of go test -bench; a PACKAGE is a directory such as store/sqlite. On a busy machine use more
# RUNS. RUNS is the number of rounds (5), which scripts/compare.times lowers for benchmarks that take long,
# as it sets -benchtime. Moved packages are listed in scripts/compare.map, renamed benchmarks in
# docs/proof/renamed-tests.txt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if (($# < 1)); then
  echo "usage: scripts/compare.sh BASE [REGEXP [PACKAGE…]]" >&2
  exit 2
fi
base=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "compare: no commit $1" >&2; exit 2; }
regexp=${2:-.}
shift $(($# < 2 ? $# : 2))
packages=("${@%/}")
runs=${RUNS:-5}

new=$PWD
work=$(mktemp -d)
cleanup() {
  git -C "$new" worktree remove --force "$work/tree" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

git worktree add --quiet --detach "$work/tree" "$base"
# Both sides share the nodes that were fetched.
mkdir -p .cache
ln -s "$(readlink -f .cache)" "$work/tree/.cache"

# lookup FILE COLUMN WORD… prints a column of the first line that begins with the words.
lookup() {
  local file=$1 column=$2
  shift 2
  [ -e "$file" ] || return 0
  awk -v column="$column" -v words="$*" '
    !/^#/ {
      n = split(words, want, " ")
      for (i = 1; i <= n && $i == want[i]; i++);
      if (i > n) { print $column; exit }
    }' "$file"
}

# old FILE NAME prints what NAME was called before, by a file of lines "old new", and NAME where no line has
# it.
old() {
  local found=
  if [ -e "$1" ]; then
    found=$(awk -v name="$2" '!/^#/ && $2 == name { print $1; exit }' "$1")
  fi
  echo "${found:-$2}"
}

if ((${#packages[@]} == 0)); then
  mapfile -t packages < <(git grep --untracked -lE '^func Benchmark' -- '*_test.go' |
    xargs -n1 dirname | LC_ALL=C sort -u)
fi

# Both sides of every package are built before anything is measured.
build() {
  local tree=$1 package=$2 out=$3
  [ -d "$tree/$package" ] || return 1
  (cd "$tree/$package" && go test -c -o "$out" . >&2) && [ -e "$out" ]
}
units=() # package, benchmark
for i in "${!packages[@]}"; do
  package=${packages[$i]#./}
  packages[i]=$package
  echo "compare: building $package" >&2
  build "$new" "$package" "$work/$i.B" ||
    { echo "compare: $package does not build here, left out" >&2; continue; }
  build "$work/tree" "$(old scripts/compare.map "$package")" "$work/$i.A" ||
    { echo "compare: $package is not in $base or does not build there, left out" >&2; continue; }
  while read -r name; do
    [[ $name =~ ${regexp%%/*} ]] && units+=("$i $name")
  done < <(cd "$package" && "$work/$i.B" -test.list '^Benchmark' | grep '^Benchmark')
done

# measure SIDE TREE PACKAGE BINARY NAME SHOWN TIME ROUND runs one benchmark and appends its metrics to the
# results.
measure() {
  local side=$1 tree=$2 package=$3 binary=$4 name=$5 shown=$6 time=$7 round=$8 sub=
  [[ $regexp != */* ]] || sub=/${regexp#*/}
  (cd "$tree/$package" &&
    "$binary" -test.run '^$' -test.bench "^$name\$$sub" -test.benchtime "$time" -test.benchmem -test.timeout 30m
  ) >"$work/out" 2>&1 || { cat "$work/out" >&2; echo "compare: $name failed on side $side" >&2; }

  # The memory of a benchmark that times itself depends on how much it got done, so it says nothing.
  awk -v side="$side" -v round="$round" -v package="$label" -v old="$name" -v new="$shown" '
    /^Benchmark/ && NF >= 4 {
      sub(/-[0-9]+$/, "", $1)
      if (index($1, old) == 1) $1 = new substr($1, length(old) + 1)
      timed = / ns\/op/
      for (i = 3; i < NF; i += 2)
        if (timed || ($(i + 1) != "B/op" && $(i + 1) != "allocs/op"))
          printf "%s\t%s\t%s\t%s\t%s\t%s\n", package, $1, $(i + 1), side, round, $i
    }' "$work/out" >>"$work/results"
}

: >"$work/results"
for unit in "${units[@]}"; do
  read -r i name <<<"$unit"
  label=${packages[$i]}
  time=$(lookup scripts/compare.times 3 "$label" "$name")
  rounds=$(lookup scripts/compare.times 4 "$label" "$name")
  rounds=$((${rounds:-5} * runs / 5))
  ((rounds > 0)) || rounds=1
  echo "compare: $label $name, $rounds rounds" >&2
  for ((round = 1; round <= rounds; round++)); do
    measure A "$work/tree" "$(old scripts/compare.map "$label")" "$work/$i.A" \
      "$(old docs/proof/renamed-tests.txt "$name")" "$name" "${time:-300ms}" $round
    measure B "$new" "$label" "$work/$i.B" "$name" "$name" "${time:-300ms}" $round
  done
done

# More is better of rates and of shares of a baseline's rate.
awk -F '\t' -v OFS='\t' '
  function median(list,   all, n, i, j, t) {
    n = split(list, all, " ")
    for (i = 2; i <= n; i++) {
      t = all[i] + 0
      for (j = i - 1; j >= 1 && all[j] + 0 > t; j--) all[j + 1] = all[j]
      all[j + 1] = t
    }
    return n % 2 ? all[(n + 1) / 2] + 0 : (all[n / 2] + all[n / 2 + 1]) / 2
  }
  function best(list, more,   all, n, i, found) {
    n = split(list, all, " ")
    found = all[1] + 0
    for (i = 2; i <= n; i++)
      if (more ? all[i] + 0 > found : all[i] + 0 < found) found = all[i] + 0
    return found
  }
  function ratio(a, b) { return a == 0 ? (b == 0 ? 1 : 999) : b / a }
  {
    key = $1 OFS $2 OFS $3
    if (!(key in seen)) { seen[key] = 1; order[++keys] = key }
    values[key, $4] = values[key, $4] " " $6
    at[key, $4, $5] = $6
    if ($5 > rounds[key]) rounds[key] = $5
  }
  END {
    print "package", "benchmark", "metric", "A", "B", "B/A", "paired", "best", ""
    for (k = 1; k <= keys; k++) {
      key = order[k]
      split(key, part, OFS)
      if (values[key, "A"] == "" || values[key, "B"] == "") {
        print key, values[key, "A"] == "" ? "-" : median(values[key, "A"]), \
          values[key, "B"] == "" ? "-" : median(values[key, "B"]), "-", "-", "-", "one side only"
        continue
      }
      a = median(values[key, "A"]); b = median(values[key, "B"])
      pairs = ""
      for (r = 1; r <= rounds[key]; r++)
        if ((key, "A", r) in at && (key, "B", r) in at)
          pairs = pairs " " ratio(at[key, "A", r], at[key, "B", r])
      more = part[3] ~ /\/s$|\/s@|^of_|^ratio$/
      worse = more ? ratio(b, a) : ratio(a, b)
      printf "%s\t%.6g\t%.6g\t%.3f\t%.3f\t%.3f\t%s\n", key, a, b, \
        ratio(a, b), (pairs == "" ? 0 : median(pairs)), \
        ratio(best(values[key, "A"], more), best(values[key, "B"], more)), \
        (worse > 1.05 ? "slower" : "")
    }
  }' "$work/results" >"$work/table"

if command -v column >/dev/null; then
  column -t -s "$(printf '\t')" "$work/table"
else
  cat "$work/table"
fi
