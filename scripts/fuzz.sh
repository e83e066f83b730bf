#!/usr/bin/env bash
# Runs every fuzz target of every module for FUZZTIME (10s by default) and prints how many inputs each has tried.
# Inputs that find something new are not made smaller, which for large ones takes longer than all the rest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
targets=0 failed=()

modules=$(scripts/modules.sh)
for module in $modules; do
  # For each package `go test -list` prints the names and then a line "ok package time".
  listed=$(cd "$module" && go test -list '^Fuzz' ./... | awk '/^Fuzz/ {names[++n] = $1} /^ok/ {for (i = 1; i <= n; i++) print $2, names[i]; n = 0}')
  while read -r package name; do
    [ -n "$package" ] || continue
    targets=$((targets + 1))
    if (cd "$module" && go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-10s}" -fuzzminimizetime 1x "$package") >"$log" 2>&1; then
      printf '%12s executions  %s %s\n' "$(grep -oE 'execs: [0-9]+' "$log" | tail -n 1 | cut -d' ' -f2)" "$package" "$name"
    else
      cat "$log"
      failed+=("$package $name")
    fi
  done <<<"$listed"
done

echo "$targets fuzz targets"
if ((${#failed[@]} > 0)); then
  printf 'FAILED: %s\n' "${failed[@]}" >&2
  exit 1
fi
