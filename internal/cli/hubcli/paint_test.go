package hubcli

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

var escape = regexp.MustCompile("\x1b\\[[0-9]*m")

// marked shows colors as people can read them.
func marked(s string) string {
	return strings.NewReplacer(string(red), "<red>", string(green), "<green>", string(yellow), "<yellow>", plain,
		"</>").Replace(s)
}

func TestColorsShowHealth(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{
			"a table of clusters: what is ready, what is not, and a cordon",
			"NAME   VERSION   MODE   READY     AGE   TAINTS\neu     v1.36.3   Push   True      3d    <none>\nus     v1.36.3   Push   False     3d    <none>\nap     v1.36.3   Push   Unknown   3d    cluster.karmada.io/unschedulable:NoSchedule\n",
			"NAME   VERSION   MODE   READY     AGE   TAINTS\neu     v1.36.3   Push   <green>True</>      3d    <none>\nus     v1.36.3   Push   <red>False</>     3d    <none>\nap     v1.36.3   Push   <yellow>Unknown</>   3d    <yellow>cluster.karmada.io/unschedulable:NoSchedule</>\n",
		},
		{
			"pods, where a column is empty and a word of another column means nothing",
			"NAME    CLUSTER   READY   STATUS             RESTARTS     AGE\nFalse   eu        1/1     Running            0            1m\nweb-2   us        0/1     CrashLoopBackOff   4 (2s ago)   1m\nweb-3   us                Pending            0            1m\n",
			"NAME    CLUSTER   READY   STATUS             RESTARTS     AGE\nFalse   eu        <green>1/1</>     <green>Running</>            0            1m\nweb-2   us        <yellow>0/1</>     <red>CrashLoopBackOff</>   4 (2s ago)   1m\nweb-3   us                <yellow>Pending</>            0            1m\n",
		},
		{
			"the answer of why",
			"Deployment.apps shop/web: 1 problem\n\n✗ eu: the member refused it: no\n  → fix it\n\nClusters\n  CLUSTER  STATE    WHY\n  eu       Failed   refused\n  us       Healthy  -\n",
			"Deployment.apps shop/web: 1 problem\n\n<red>✗ eu: the member refused it: no</>\n  → fix it\n\nClusters\n  CLUSTER  STATE    WHY\n  eu       <red>Failed</>   refused\n  us       <green>Healthy</>  -\n",
		},
		{
			"the checks of status",
			"HUB https://127.0.0.1:6443\nok      etcd    reads and writes\nFAIL   store   full\n\nFAILED CHECKS\nstore: full\n",
			"HUB https://127.0.0.1:6443\n<green>ok</>      etcd    reads and writes\n<red>FAIL</>   store   full\n\n<red>FAILED CHECKS</>\nstore: full\n",
		},
		{"a last line without an end", "All checks passed.", "<green>All checks passed.</>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			p := &Painter{Out: &out, On: true}
			for _, piece := range strings.SplitAfter(c.text, "e") { // as it comes, lines in pieces
				if _, err := p.Write([]byte(piece)); err != nil {
					t.Fatal(err)
				}
			}
			p.Flush()
			if got := marked(out.String()); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if got := escape.ReplaceAllString(out.String(), ""); got != c.text {
				t.Errorf("without colors the text is another:\n%q\nwant\n%q", got, c.text)
			}
		})
	}
}
