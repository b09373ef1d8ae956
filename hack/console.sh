#!/bin/bash
# Bundles the console's pages into the folder $1 with esbuild, a Go tool. The same sources give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
web=internal/console/web out=$1
mkdir -p "$out/assets"
"${GO:-go}" tool -modfile=tools/go.mod esbuild "$web/src/main.tsx" --bundle --minify --charset=utf8 --log-level=warning \
	--target=es2022 --format=esm --jsx=transform --jsx-factory=h --jsx-fragment=Fragment \
	--tsconfig="$web/src/tsconfig.json" --legal-comments=none --outfile="$out/assets/console.js"
"${GO:-go}" tool -modfile=tools/go.mod esbuild "$web/src/console.css" --minify --charset=utf8 --log-level=warning \
	--target=es2022,chrome120,firefox121,safari17 --outfile="$out/assets/console.css"
cp "$web/index.html" "$out/index.html"
cp "$web/src/icon.svg" "$out/assets/icon.svg"
{ echo "preact 11.2.0 (https://preactjs.com)"; echo; cat "$web/vendor/preact/LICENSE"; } >"$out/assets/licences.txt"
