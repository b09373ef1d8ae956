package simulate

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkRun loses one of 100 clusters that hold 10,000 workloads, of which each is in ten or in all.
func BenchmarkRun(b *testing.B) {
	for _, n := range []struct{ workloads, clusters int }{{1000, 10}, {1000, 100}, {10000, 100}} {
		var text strings.Builder
		for i := range n.clusters {
			text.WriteString(cluster(fmt.Sprintf("m%03d", i), 20000, ""))
		}
		text.WriteString(policy("shop", "", byRoom))
		text.WriteString(policy("packed",
			"[{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {app: d1}}}]", packed))
		all := objects(b, text.String())
		one := objects(b, deployment("d", 150))[0]
		for i := range n.workloads {
			u := one.DeepCopy()
			u.SetName(fmt.Sprintf("d%05d", i))
			all = append(all, Object{u, "made up"})
		}
		b.Run(fmt.Sprintf("workloads=%d/clusters=%d", n.workloads, n.clusters), func(b *testing.B) {
			for b.Loop() {
				f, err := Load(all, "default")
				if err != nil {
					b.Fatal(err)
				}
				r := run(b, f, Change{Removed: []string{"m000"}})
				if r.Summary.Changed != n.workloads || r.Summary.Unplaced != 0 {
					b.Fatalf("%+v", r.Summary)
				}
			}
		})
	}
}

// BenchmarkRunOnNodes is BenchmarkRun of the largest fleet, with nodes: each cluster has that many, of 64 CPUs.
func BenchmarkRunOnNodes(b *testing.B) {
	for _, nodes := range []int{20, 100} {
		var text strings.Builder
		text.WriteString("apiVersion: simulate.argosy.io/v1alpha1\nkind: Fleet\nclusters:\n")
		for i := range 100 {
			fmt.Fprintf(&text, "- {name: m%03d, nodes: [{name: node, count: %d, allocatable: {cpu: %[3]d, memory: 8Ti, pods: %[3]d}}]}\n", i, nodes, 6000/nodes)
		}
		text.WriteString("---\n" + policy("shop", "", byRoom))
		all := objects(b, text.String())
		one := objects(b, deployment("d", 30))[0]
		for i := range 10000 {
			u := one.DeepCopy()
			u.SetName(fmt.Sprintf("d%05d", i))
			all = append(all, Object{u, "made up"})
		}
		b.Run(fmt.Sprintf("workloads=10000/clusters=100/nodes=%d", nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f, err := Load(all, "default")
				if err != nil {
					b.Fatal(err)
				}
				r := run(b, f, Change{Removed: []string{"m000"}})
				if r.Summary.Changed == 0 || r.Summary.Unplaced != 0 {
					b.Fatalf("%+v", r.Summary)
				}
			}
		})
	}
}

// BenchmarkRunWithoutRoom asks for each of 10,000 workloads what would make it fit.
func BenchmarkRunWithoutRoom(b *testing.B) {
	var text strings.Builder
	for i := range 100 {
		text.WriteString(cluster(fmt.Sprintf("m%03d", i), 1, ", taints: [{key: k, effect: NoSchedule}]"))
	}
	text.WriteString(policy("shop", "",
		strings.Replace(byRoom, "{", "{clusterAffinity: {labelSelector: {matchLabels: {none: such}}}, ", 1)))
	all := objects(b, text.String())
	one := objects(b, deployment("d", 150))[0]
	for i := range 10000 {
		u := one.DeepCopy()
		u.SetName(fmt.Sprintf("d%05d", i))
		all = append(all, Object{u, "made up"})
	}
	f, err := Load(all, "default")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r := run(b, f, Change{}); r.Summary.Unplaced != 10000 {
			b.Fatalf("%+v", r.Summary)
		}
	}
}
