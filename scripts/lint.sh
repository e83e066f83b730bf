#!/usr/bin/env bash
# Checks formatting, go vet and staticcheck in every module. All checks run; it fails if one failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tool=(go tool "-modfile=$PWD/tools/go.mod")
status=0

echo "== gofumpt -l"
unformatted=$(find . -name '.?*' -prune -o -name node_modules -prune -o -name '*.go' -print0 | xargs -0 -r "${tool[@]}" gofumpt -l)
if [ -n "$unformatted" ]; then
  echo "$unformatted"
  echo "not formatted: run go tool -modfile=tools/go.mod gofumpt -w on the files above" >&2
  status=1
fi
scripts/each-module.sh go vet ./... || status=1
scripts/each-module.sh "${tool[@]}" staticcheck ./... || status=1
exit $status
