#!/usr/bin/env bash
# counts.sh [-v] [DIR] measures a checkout, by default this one: the size of its public surface, the shape of
# its code and the words it uses. Each row is name, figure and goal, separated by tabs; -v lists what was
# counted. The rules are always those of this checkout, so that two commits are measured alike.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

options=() dir=$here
for argument; do
  case $argument in
    -*) options+=("$argument") ;;
    *) dir=$(cd "$argument" && pwd) ;;
  esac
done

cd "$here"
go run ./internal/counts "${options[@]}" "$dir"
