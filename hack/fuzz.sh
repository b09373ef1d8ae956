#!/usr/bin/env bash
# Fuzzes every target of the repository, one after the other, each for FUZZTIME (seconds, or as 90s, 5m, 1h; default 1m).
# FUZZ is a regular expression of the targets' names; default all. An input that fails is written to the target's testdata/fuzz
# and runs with the tests from then on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go=${GO:-go} each=${FUZZTIME:-1m} wanted=${FUZZ:-.}
case $each in
	*[!0-9smh]* | "" | [smh]*) echo "FUZZTIME=$each is no time such as 90s, 5m or 1h" >&2; exit 2 ;;
	*h) seconds=$((${each%h} * 3600)) ;;
	*m) seconds=$((${each%m} * 60)) ;;
	*) seconds=${each%s} ;;
esac
bin=$(mktemp -d) cache=$("$go" env GOCACHE)/fuzz
# What long runs found would take all of a short one's time.
[ "$seconds" -ge 30 ] || cache=$bin/found
trap 'rm -rf "$bin"' EXIT
trap 'exit 130' INT TERM
bounded=
if command -v timeout >/dev/null; then bounded="timeout -k 10 $((seconds + 120))"; fi
ran=0 failed=()
while read -r dir; do
	targets=$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*\*testing\.F\).*/\1/p' "$dir"/*_test.go | grep -E -- "$wanted" || true)
	[ -n "$targets" ] || continue
	package=$("$go" list "./$dir")
	./hack/progress.sh "building $dir to be fuzzed" "$go" test -c -fuzz=. -o "$bin/test" "./$dir"
	for target in $targets; do
		ran=$((ran + 1)) status=0
		# What takes more than 8 GiB, or two minutes beyond its time, has no bound that holds.
		(cd "$dir" && { ulimit -v $((8 << 20)) 2>/dev/null || true; } && exec $bounded "$bin/test" -test.run='^$' -test.fuzz="^$target\$" -test.fuzztime="${seconds}s" -test.fuzzcachedir="$cache/$package" -test.paniconexit0) >"$bin/log" 2>&1 || status=$?
		tried=$(grep -oE 'execs: [0-9]+' "$bin/log" | tail -1 || true)
		# Up to Go 1.26 a target may end with this and nothing found, when its time ends in the middle of a try: golang.org/issue/75804.
		if [ "$status" = 1 ] && grep -q '^ *context deadline exceeded$' "$bin/log" && ! grep -qE 'Failing input|panic|fuzzing process' "$bin/log"; then status=0; fi
		if [ "$status" = 0 ]; then
			echo "ok	$dir	$target	${tried:-execs: seeds alone}"
		else
			failed+=("$dir $target")
			cat "$bin/log"
			[ "$status" != 124 ] || echo "$target was still running two minutes after its time: one of its tries takes without end"
		fi
	done
done < <(grep -rlE '^func Fuzz' --include='*_test.go' api cmd internal test | xargs -r -n1 dirname | sort -u)
if [ "$ran" = 0 ]; then echo "no target is called $wanted" >&2; exit 2; fi
if [ "${#failed[@]}" -gt 0 ]; then
	printf 'FAILED: %s\n' "${failed[@]}"
	exit 1
fi
