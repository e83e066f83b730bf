#!/usr/bin/env bash
# Builds the second Bitcoin node that the tests run (btcd, pure Go) at a pinned version into .cache/btcd. The Go checksum database
# vouches for its source. Safe to call at any time and from several processes at once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=v0.26.2

mkdir -p .cache/btcd
exec 9>.cache/btcd.lock
flock 9 # until this script ends; the system lets go of it if the script is killed
[ -x ".cache/btcd/btcd-$version" ] && exit
echo "btcd: building $version into .cache/btcd" >&2
GOFLAGS='' GOBIN=$PWD/.cache/btcd go install "github.com/btcsuite/btcd@$version" 9>&-
mv .cache/btcd/btcd ".cache/btcd/btcd-$version"
