#!/usr/bin/env bash
# Checks every module with golangci-lint as .golangci.yml says: formatting, line length, comments, error
# wrapping, exhaustive switches, unused code. All modules are checked; it fails if one failed.
# `scripts/lint.sh --fix` mends what a machine can mend, formatting included.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p .cache/tools
go build -modfile=tools/go.mod -o .cache/tools/golangci-lint \
  github.com/golangci/golangci-lint/v2/cmd/golangci-lint

exec scripts/each-module.sh "$PWD/.cache/tools/golangci-lint" run --config "$PWD/.golangci.yml" "$@" ./...
