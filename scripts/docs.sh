#!/usr/bin/env bash
# Makes a site of the documents in site/. A link to a page or file that is not there ends it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p .cache
exec 9>.cache/docs.lock
flock 9

source scripts/npm.sh
npm_set docs/site site node_modules/vitepress/bin/vitepress.js

# The generator finds its packages from where the pages are.
pages=$(cd .cache && pwd -P)/site/pages
rm -rf "$pages"
git ls-files -z -- '*.md' docs/images ':!internal' ':!docs/site' ':!**/testdata' |
  while IFS= read -r -d '' file; do
    install -D -m 644 "$file" "$pages/$file"
  done
cp -r docs/site/.vitepress "$pages/"

PAYMENTS_ROOT=$PWD PAYMENTS_PAGES=$pages node .cache/site/node_modules/vitepress/bin/vitepress.js build "$pages"
echo "docs: the site is in site/, its first page site/index.html"
