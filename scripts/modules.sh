#!/usr/bin/env bash
# Prints the directories of this project's Go modules, the root first. The module of the tools has no code and is left out.
# By find and not by git, so that a copy without its history works too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
find . -name '.?*' -prune -o -name node_modules -prune -o -name testdata -prune -o -path ./tools -prune -o -name go.mod -print |
  sed 's|/go\.mod$||' | LC_ALL=C sort
