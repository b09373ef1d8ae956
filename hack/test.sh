#!/usr/bin/env bash
# Runs the tests in parts and prints a table of them. A failed test runs again, alone, up to twice; a test that passes only then is
# listed under FLAKY. usage: test.sh gate|long
# PARTS limits the run to some parts, such as PARTS="race fuzz".
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
suite=${1:?usage: test.sh gate|long} go=${GO:-go}
export ARGOSY_BINARY=${ARGOSY_BINARY:-$PWD/bin/argosy}
# The suites start some hundred API servers. Fewer garbage collections save a fifth of their CPU time for about 40 MiB each.
export GOGC=${GOGC:-300}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
sum=$out/gotestsum
(cd tools && "$go" build -o "$sum" gotest.tools/gotestsum) || exit 1

# Packages with goroutines run with the race detector; the core has none (internal/core/purity_test.go), and real API servers are too slow with it.
goroutines='/internal/(commit|controller|member|template|capacity|interpreter)(/|$)'
all=$("$go" list ./...) || exit 1
raced=$(grep -E "$goroutines" <<<"$all") plain=$(grep -vE "$goroutines" <<<"$all")
# The stories of all controllers together take five times as long with the race detector, so the gate runs them without it.
stories=$(grep -E '/internal/controller$' <<<"$all")
# The packages that run longest start first: one that starts last runs alone.
longest='/(test/(faults|peers|e2e|failover|up|guides|release|pull|console|console/pages)|internal/server)$'
plain=$(grep -E '/test/faults$' <<<"$plain"; grep -E "$longest" <<<"$plain" | grep -v '/test/faults$'; grep -vE "$longest" <<<"$plain")

status=0 rows=()
# part NAME FOLDER PACKAGES FLAGS... runs the tests of PACKAGES and adds a row to the table.
part() {
	local name=$1 dir=$2 packages=$3 begin=$SECONDS log=$out/$1
	shift 3
	[[ " ${PARTS:-$name} " == *" $name "* ]] || return 0
	echo "--- $name"
	(cd "$dir" && "$sum" --format standard-quiet --hide-summary skipped --rerun-fails=2 --rerun-fails-abort-on-data-race \
		--rerun-fails-report "$log.again" --jsonfile-timing-events "$log.json" --packages "$packages" -- -vet=off -count=1 "$@") || status=1
	awk -F'[ :,]+' '$2 > $4' "$log.again" 2>/dev/null >>"$out/again"
	# The last word on a test counts. Tests inside tests are counted with them.
	rows+=("$(awk -v name="$name" -v seconds=$((SECONDS - begin)) -F'"' '
		/"Test":"/ { for (i = 1; i < NF; i++) { if ($i == "Action") action = $(i + 2); if ($i == "Package") package = $(i + 2); if ($i == "Test") test = $(i + 2) }
			if (test !~ /\// && (action == "pass" || action == "fail" || action == "skip")) last[package " " test] = action }
		END { for (t in last) n[last[t]]++; printf "%s\t%d\t%d\t%d\t%d\n", name, seconds, n["pass"], n["fail"], n["skip"] }' "$log.json" 2>/dev/null)")
}

# fuzz runs each fuzz target for FUZZTIME.
fuzz() {
	[[ " ${PARTS:-fuzz} " == *" fuzz "* ]] || return 0
	local begin=$SECONDS passed=1
	echo "--- fuzz"
	GO=$go FUZZTIME=${FUZZTIME:-3s} ./hack/fuzz.sh || status=1 passed=0
	rows+=("$(printf 'fuzz\t%d\t%d\t%d\t0' $((SECONDS - begin)) $passed $((1 - passed)))")
}

# previous builds the binary that the upgrade test in test/up starts from, where the history has an earlier version.
previous() {
	[[ " ${PARTS:-plain} " == *" plain "* && -z ${ARGOSY_PREVIOUS_BINARY:-} ]] || return 0
	local begin=$SECONDS code=0 binary
	echo "--- previous"
	binary=$(./hack/previous.sh) || code=$?
	case $code in
	0) export ARGOSY_PREVIOUS_BINARY=$binary ;;
	3) echo "SKIPPED: the upgrade test" ;;
	*) status=1 ;;
	esac
	rows+=("$(printf 'previous\t%d\t%d\t%d\t%d' $((SECONDS - begin)) $((code == 0)) $((code != 0 && code != 3)) $((code == 3)))")
}

case $suite in
gate)
	part race . "$(grep -vxF "$stories" <<<"$raced")" -short -race -timeout 10m
	part plain . "$stories"$'\n'"$plain" -short -timeout 10m
	;;
long)
	part race . "$raced" -race -timeout 20m
	# These compare decisions of a hub and of its simulation, which the race detector slows down too much.
	part histories . "$("$go" list ./internal/controller)" -timeout 20m -run '^TestASimulationFinds'
	# What computes longest runs in plain alone.
	part core-race . "$(grep -E '/(api|internal/core|internal/scope)(/|$)' <<<"$plain")" -short -race -timeout 20m -skip 'InRandom|ShareBudget|AMemberOfAGroup|AJobKeeps|AnnotationsReach'
	previous
	# Each package starts API servers of its own. With more packages than cores, these starve, and deadlines pass.
	part plain . "$plain" -timeout 30m
	fuzz
	;;
*) echo "usage: test.sh gate|long" >&2; exit 2 ;;
esac

echo
{ printf 'part\tseconds\tpassed\tfailed\tskipped\n'; printf '%s\n' "${rows[@]}"; } | awk -F'\t' '{ printf "%-12s%9s%9s%9s%9s\n", $1, $2, $3, $4, $5 }
	NR > 1 { s += $2; p += $3; f += $4; k += $5 } END { printf "%-12s%9d%9d%9d%9d\n", "all", s, p, f, k }'
if [ -s "$out/again" ]; then
	echo "FLAKY (failed, then passed when run again; see above):"
	cat "$out/again"
else
	echo "FLAKY: none"
fi
exit $status
