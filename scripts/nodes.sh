#!/usr/bin/env bash
# Fetches what the tests run and what compiles their fixtures, at the versions pinned by the lock files, into .cache/.
# Safe to call at any time and from several processes at once: a set that is there already costs one comparison of files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p .cache
exec 9>.cache/nodes.lock
flock 9 # until this script ends; the system lets go of it if the script is killed

source scripts/npm.sh

case $(uname -sm) in
  "Linux x86_64") anvil=(node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil) ;;
  *) anvil=() ;; # none is pinned; the tests say how to bring one
esac
npm_set internal/testenv/npm npm "${anvil[@]}"
npm_set internal/testenv/browser browser
npm_set internal/testenv/tron tron
npm_set internal/testenv/bitcoinjs bitcoinjs
npm_set internal/testenv/openapi openapi
npm_set internal/testenv/solana solana node_modules/litesvm/dist/internal.js
scripts/bitcoind.sh >&2
scripts/btcd.sh
