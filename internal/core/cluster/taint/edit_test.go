package taint

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEditOfTaints(t *testing.T) {
	type list = []string
	for name, tc := range map[string]struct {
		taints    list
		args      list
		overwrite bool
		want      list
		verb      string
		err       string
	}{
		"set": {nil, list{"dedicated=gpu:NoSchedule", "drain:NoExecute"}, false,
			list{"dedicated=gpu:NoSchedule", "drain:NoExecute"}, "tainted", ""},
		"set again": {list{"drain:NoExecute"}, list{"drain:NoExecute"}, false, list{"drain:NoExecute"},
			"tainted", ""},
		"another value": {list{"dedicated=gpu:NoSchedule"}, list{"dedicated=ai:NoSchedule"}, false, nil, "",
			"dedicated=gpu:NoSchedule, and --overwrite is not set"},
		"another value, overwritten": {list{"dedicated=gpu:NoSchedule", "b:NoSchedule"}, list{"dedicated=ai:NoSchedule"},
			true, list{"dedicated=ai:NoSchedule", "b:NoSchedule"}, "tainted", ""},
		"another effect": {list{"a:NoSchedule"}, list{"a:NoExecute"}, false,
			list{"a:NoSchedule", "a:NoExecute"}, "tainted", ""},
		"remove by effect": {list{"a:NoSchedule", "a:NoExecute"}, list{"a:NoExecute-"}, false,
			list{"a:NoSchedule"}, "untainted", ""},
		"remove by key": {list{"a:NoSchedule", "a:NoExecute", "b:NoSchedule"}, list{"a-"}, false,
			list{"b:NoSchedule"}, "untainted", ""},
		"remove with a value":      {list{"a=x:NoSchedule"}, list{"a=x:NoSchedule-"}, false, list{}, "untainted", ""},
		"remove what is not there": {list{"b:NoSchedule"}, list{"a-"}, false, nil, "", `taint "a" not found`},
		"set and remove": {list{"a:NoSchedule"}, list{"a-", "b:NoSchedule"}, false, list{"b:NoSchedule"},
			"modified", ""},
		"set and remove the same": {nil, list{"a:NoSchedule", "a-"}, false, nil, "", "both set and removed"},
		"the same twice":          {nil, list{"a:NoSchedule", "a=x:NoSchedule"}, false, nil, "", "given twice"},
		"no effect":               {nil, list{"a=x"}, false, nil, "", `the effect "" is neither`},
		"an effect of nodes":      {nil, list{"a:PreferNoSchedule"}, false, nil, "", "neither NoSchedule nor NoExecute"},
		"no key":                  {nil, list{"=x:NoSchedule"}, false, nil, "", "the key"},
		"a bad value":             {nil, list{"a=x y:NoSchedule"}, false, nil, "", "the value"},
		"nothing":                 {nil, nil, false, nil, "", "at least one taint"},
		"a taint that the hub manages": {nil, list{"cluster.karmada.io/not-ready:NoExecute"}, false, nil, "",
			"by the cluster's condition Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := ParseEdit(tc.args)
			var got []corev1.Taint
			if err == nil {
				got, err = e.Apply(parse(tc.taints...), tc.overwrite)
			}
			switch {
			case tc.err != "":
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want the error %q", err, tc.err)
				}
			case err != nil:
				t.Fatal(err)
			case !slices.Equal(texts(got), tc.want) || e.Verb() != tc.verb:
				t.Errorf("%s: %v, want %s: %v", e.Verb(), texts(got), tc.verb, tc.want)
			}
		})
	}
}

func TestTaintSetAgainKeepsItsTime(t *testing.T) {
	has := parse("drain:NoExecute")
	has[0].TimeAdded = &metav1.Time{Time: start}
	got, err := Edit{Put: parse("drain:NoExecute")}.Apply(has, true)
	if err != nil || got[0].TimeAdded == nil {
		t.Errorf("got %v, %v: the toleration starts again", got, err)
	}
}
