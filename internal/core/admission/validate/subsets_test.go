package validate

import (
	"strings"
	"testing"
)

func TestUnsupportedSubsetsAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ subsets, want string }{
		"as it should be":     {`{name: a, replicas: 3, clusterAffinity: {clusterNames: [eu]}}, {name: b, clusterAffinity: {labelSelector: {matchLabels: {env: prod}}}}`, ""},
		"none names clusters": {`{name: a, replicas: 3}, {name: b, replicas: 5}`, ""},
		"all clusters are excluded": {`{name: a, clusterAffinity: {clusterNames: [eu], exclude: [eu, us]}}`,
			"spec.topology.subsets[0].clusterAffinity.exclude: Invalid value"},
		"no selector":                {`{name: a, clusterAffinity: {labelSelector: {matchExpressions: [{key: a, operator: Near}]}}}`, "spec.topology.subsets[0].clusterAffinity.labelSelector"},
		"a field that clusters lack": {`{name: a, clusterAffinity: {fieldSelector: {matchExpressions: [{key: colour, operator: In, values: [red]}]}}}`, `unsupported key "colour"`},
		"no affinity at all":         {`{name: a, clusterAffinity: [eu]}`, ""}, // the definition says so
		"names that are none": {`{name: a, clusterAffinity: {clusterNames: eu}}`,
			"spec.topology.subsets[0].clusterAffinity: Invalid value"},
		"sums that cannot be": {`{name: a, replicas: 3, clusterAffinity: {clusterNames: [eu]}}, {name: b, replicas: 2}`,
			"add up to 5, and spec.replicas is 4"},
		"two of one name": {`{name: a, clusterAffinity: {clusterNames: [eu]}}, {name: a}`,
			`two subsets have the name "a"`},
		"the others are all limited": {`{name: a, clusterAffinity: {clusterNames: [eu]}}, {name: b, maxReplicas: 2}`,
			"must not have maxReplicas"},
		"one of the others is not":      {`{name: a, clusterAffinity: {clusterNames: [eu]}}, {name: b, maxReplicas: 2}, {name: c}`, ""},
		"it is limited, and in its own": {`{name: a, maxReplicas: 2, clusterAffinity: {clusterNames: [eu]}}, {name: b}`, ""},
	} {
		u := workload(t, `{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {name: w}, spec: {replicas: 4, topology: {subsets: [`+c.subsets+`]}}}`)
		errs := Template(u)
		switch {
		case c.want == "" && len(errs) > 0, c.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want)):
			t.Errorf("%s: refused with %v, want %q", name, errs, c.want)
		}
	}
}
