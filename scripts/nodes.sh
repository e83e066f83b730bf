#!/usr/bin/env bash
# Fetches what the tests run and what compiles their fixtures, at the versions pinned by the lock files, into .cache/.
# Safe to call at any time and from several processes at once: a set that is there already costs one comparison of files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p .cache
exec 9>.cache/nodes.lock
flock 9 # until this script ends; the system lets go of it if the script is killed

# npm_set SOURCE TARGET [FILE...] installs the packages that SOURCE pins into .cache/TARGET and makes sure of FILEs in it, because
# npm reports success where an optional package could not be had. No package's own script is run.
npm_set() {
  local source=$1 target=.cache/$2 file
  shift 2
  if cmp -s "$source/package-lock.json" "$target/installed-lock.json"; then
    return
  fi
  command -v npm >/dev/null || { echo "nodes: npm is not installed, and $source needs it (Node 20 has it)" >&2; exit 1; }
  echo "nodes: installing $source into $target" >&2
  rm -rf "$target"
  mkdir -p "$target"
  cp "$source/package.json" "$source/package-lock.json" "$source/.npmrc" "$target/"
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --prefix "$(cd "$target" && pwd -P)" >&2 9>&-
  for file; do
    [ -e "$target/$file" ] || { echo "nodes: npm left out $target/$file" >&2; exit 1; }
  done
  # Last, so that an interrupted installation is never taken for a whole one.
  cp "$source/package-lock.json" "$target/installed-lock.json"
}

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
