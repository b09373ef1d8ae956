package script

import (
	"context"
	"testing"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

const getReplicas = `
local kube = require("kube")
function GetReplicas(obj)
  local requirement = kube.accuratePodRequirements(obj.spec.template)
  return obj.spec.replicas or 1, requirement
end`

func BenchmarkGetReplicasOfACloneSet(b *testing.B) {
	web, ctx := cloneSet(b), context.Background()
	p, err := Compile("ours", replicasOp, getReplicas, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("compiled once", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Evaluate(ctx, inputs{Object: web}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("compiled each time", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c, err := compile(getReplicas)
			if err != nil {
				b.Fatal(err)
			}
			each := *p
			each.compiled = c
			if _, err := each.Evaluate(ctx, inputs{Object: web}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("the conversion alone, in Go", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			t, err := interpret.PodTemplate(web, []string{"spec", "template"})
			if err != nil {
				b.Fatal(err)
			}
			interpret.PodRequirements(t, "shop")
		}
	})
}
