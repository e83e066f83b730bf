# Sourced by the scripts that install npm packages, from the project's root and with file descriptor 9 locked.

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
