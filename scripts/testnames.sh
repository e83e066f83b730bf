#!/usr/bin/env bash
# testnames.sh [-p] [DIR] prints the names of all tests, fuzz targets, benchmarks and examples of a checkout,
# by default this one, sorted and each once. With -p it prints the package's directory before each name.
set -euo pipefail

packages=
if [ "${1:-}" = -p ]; then
  packages=yes
  shift
fi
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

find . -name '.?*' -prune -o -name node_modules -prune -o -name testdata -prune \
  -o -name '*_test.go' -type f -print0 |
  xargs -0 -r awk -v packages="$packages" '
    /^func (Test|Fuzz|Benchmark|Example)[A-Za-z0-9_]*\(/ {
      name = $2
      sub(/\(.*/, "", name)
      if (name == "TestMain" || name ~ /^(Test|Fuzz|Benchmark|Example)[a-z]/) next
      directory = FILENAME
      sub(/\/[^\/]*$/, "", directory)
      sub(/^\.\//, "", directory)
      print (packages ? directory "\t" : "") name
    }' | LC_ALL=C sort -u
