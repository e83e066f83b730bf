#!/usr/bin/env bash
# Runs every TestSoak… of every module, one after the other. A soak test reads from SOAKTIME how long it is to run, and runs only
# briefly, among the other tests, where SOAKTIME is not set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export SOAKTIME=${SOAKTIME:-10m}
listed=$(scripts/each-module.sh go test -list '^TestSoak' ./...)
if ! grep -q '^TestSoak' <<<"$listed"; then
  echo "soak: there is no TestSoak… in any package" >&2
  exit 1
fi
scripts/each-module.sh go test -v -count 1 -p 1 -timeout 0 -run '^TestSoak' ./...
