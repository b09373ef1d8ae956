#!/usr/bin/env bash
# Runs a command and shows on a terminal that it is still at work; elsewhere a line each half minute.
# usage: progress.sh "what it does" command...
set -u
what=$1; shift
"$@" & job=$!
start=$SECONDS; said=0
while kill -0 "$job" 2>/dev/null; do
	sleep 0.5
	spent=$((SECONDS - start))
	if [ -t 2 ]; then
		[ "$spent" -ge 2 ] && printf '\r%s … %d s ' "$what" "$spent" >&2 && said=1
	elif [ $((spent / 30)) -gt "$said" ]; then
		said=$((spent / 30)); echo "$what … $spent s" >&2
	fi
done
[ -t 2 ] && [ "$said" = 1 ] && echo >&2
wait "$job"
