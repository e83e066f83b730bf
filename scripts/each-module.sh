#!/usr/bin/env bash
# each-module.sh COMMAND… runs the command in every module and prints what it runs. All modules are tried; it fails if one failed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
failed=()
modules=$("$root/scripts/modules.sh")
for module in $modules; do
  echo "== $module: $*"
  (cd "$root/$module" && "$@") || failed+=("$module")
done
if ((${#failed[@]} > 0)); then
  echo "FAILED in: ${failed[*]}" >&2
  exit 1
fi
