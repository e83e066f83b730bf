#!/usr/bin/env bash
# Makes the golden vectors of chain/tron again with the pinned tronweb, into the file given, by default the one that is committed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/nodes.sh
out=${1:-chain/tron/testdata/vectors.json}
made=$(mktemp)
trap 'rm -f "$made"' EXIT
NODE_PATH=.cache/tron/node_modules node internal/testing/testenv/tron/vectors.js >"$made"
cat "$made" >"$out"
