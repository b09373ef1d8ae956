#!/usr/bin/env bash
# Builds argosy from an earlier commit and prints the path of the binary. The commit is PREVIOUS, otherwise the last tag before
# this commit, otherwise that in hack/previous, which passed the long suite. Exits with code 3 if the history here lacks it.
# usage: PREVIOUS=REF previous.sh
set -euo pipefail
cd "$(dirname "$0")/.."
none() {
	echo "no previous version: $1" >&2
	exit 3
}
if [ -n "${PREVIOUS:-}" ]; then
	commit=$(git rev-parse --verify "$PREVIOUS^{commit}")
elif ! git rev-parse --verify --quiet HEAD >/dev/null 2>&1; then
	none "this folder is no git checkout"
elif tag=$(git describe --tags --match 'v[0-9]*' --abbrev=0 HEAD^ 2>/dev/null); then
	commit=$(git rev-parse --verify "$tag^{commit}")
else
	commit=$(cat hack/previous)
	git rev-parse --verify --quiet "$commit^{commit}" >/dev/null ||
		none "this clone lacks commit $commit; run git fetch --unshallow --tags"
fi
out=$PWD/bin/previous/argosy-$commit
if [ ! -x "$out" ]; then
	sources=$(mktemp -d)
	trap 'rm -rf "$sources"' EXIT
	git archive "$commit" | tar -x -C "$sources"
	rm -rf bin/previous
	mkdir -p bin/previous
	# The sources have no history, so the version is passed in.
	make -s -C "$sources" build VERSION="$(git describe --tags --match 'v[0-9]*' --always --abbrev=12 "$commit")" COMMIT="$commit" TREE=clean \
		DATE="$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ "$commit")" >&2
	cp "$sources/bin/argosy" "$out.new"
	mv "$out.new" "$out"
fi
echo "previous version: $("$out" version 2>/dev/null || echo "commit $commit")" >&2
echo "$out"
