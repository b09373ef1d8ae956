#!/usr/bin/env bash
# Runs a build and shows what it does: on a terminal one line that changes, elsewhere a line each minute. What the build
# prints follows when it has ended, but no names of modules and packages, which `go build -v` prints as it goes.
# usage: progress.sh "what it does" command...
set -u
what=$1; shift
every=${PROGRESS_SECONDS:-60}
log=$(mktemp) || exit
trap 'rm -f "$log"' EXIT
"$@" >"$log" 2>&1 & job=$!
trap 'kill "$job" 2>/dev/null; wait "$job"; exit 130' INT TERM

# doing prints what the build does now, by the last line that it printed.
doing() {
	local last
	last=$(tail -n 1 "$log")
	case $last in
	"go: downloading "*) echo "module $(grep -c '^go: downloading ' "$log"), downloading $(cut -d' ' -f3 <<<"$last")" ;;
	*[\ :#]* | '') echo "working" ;;
	*) echo "package $(grep -cvE '[ :#]' "$log"), compiling $last" ;;
	esac
}

terminal=false shown=false said=0 start=$SECONDS
[ -t 2 ] && terminal=true
while kill -0 "$job" 2>/dev/null; do
	sleep 0.2
	spent=$((SECONDS - start))
	if $terminal && [ "$spent" -ge 1 ]; then
		columns=$(stty size <&2 2>/dev/null | cut -d' ' -f2)
		line="$what … $spent s: $(doing)"
		[ "${columns:-0}" -gt 0 ] || columns=80
		printf '\r\033[2K%s' "${line:0:columns-1}" >&2
		shown=true
	elif ! $terminal && [ $((spent / every)) -gt "$said" ]; then
		said=$((spent / every))
		echo "$what … $spent s: $(doing)" >&2
	fi
done
wait "$job" && code=0 || code=$?
$shown && printf '\r\033[2K' >&2
grep -vE '^go: downloading |^[^ :#]+$' "$log" >&2
if [ "$code" = 0 ] && { $shown || [ "$said" -gt 0 ]; }; then echo "$what took $((SECONDS - start)) s" >&2; fi
exit "$code"
