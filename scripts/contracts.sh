#!/usr/bin/env bash
# Recompiles the fixture contracts into the directory given, by default the one that is committed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/nodes.sh
NODE_PATH=.cache/npm/node_modules node internal/testing/testenv/contracts/compile.js "${1:-internal/testing/testenv/contracts}"
