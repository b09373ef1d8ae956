#!/usr/bin/env bash
# Builds argosy from PREVIOUS, else from the last tag before this commit, else from the commit before, and prints where the binary is.
# usage: PREVIOUS=REF previous.sh
set -euo pipefail
cd "$(dirname "$0")/.."
ref=${PREVIOUS:-$(git describe --tags --match 'v[0-9]*' --abbrev=0 HEAD^ 2>/dev/null || echo HEAD^)}
commit=$(git rev-parse --verify "$ref^{commit}")
out=$PWD/bin/previous/argosy-$commit
if [ ! -x "$out" ]; then
	sources=$(mktemp -d)
	trap 'rm -rf "$sources"' EXIT
	git archive "$commit" | tar -x -C "$sources"
	mkdir -p "$(dirname "$out")"
	# What the binary says of its source is the linker's to be told: this folder has no history.
	make -s -C "$sources" build VERSION="$(git describe --tags --match 'v[0-9]*' --always --abbrev=12 "$commit")" COMMIT="$commit" TREE=clean \
		DATE="$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ "$commit")" >&2
	cp "$sources/bin/argosy" "$out.new"
	mv "$out.new" "$out"
fi
echo "previous version: $("$out" version 2>/dev/null || echo "commit $commit")" >&2
echo "$out"
