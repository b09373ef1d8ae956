package interpreter

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/webhook"
)

func TestEmptyPatchIsReportedIfAPatchIsNeeded(t *testing.T) {
	shop := func(status map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Shop",
			"metadata": map[string]any{"name": "s", "uid": "1"}}}
		if status != nil {
			u.Object["status"] = status
		}
		return u
	}
	reported := []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1",
		Status: &runtime.RawExtension{Raw: []byte(`{"n":1}`)}}, {ClusterName: "m2"}}
	for name, c := range map[string]struct {
		operation configv1alpha1.InterpreterOperation
		in        interpret.Inputs
		want      string // empty for nothing
	}{
		"a share that is not written": {"ReviseReplica", interpret.Inputs{Object: shop(nil), Replicas: 2},
			"Warning InterpreterChangedNothing Interpreter webhook conf/a.b.c returned no patch for ReviseReplica, so every cluster gets all 5 replicas instead of its share: set the replicas of the object to request.replicas in the patch"},
		"one cluster that is to have all": {"ReviseReplica", interpret.Inputs{Object: shop(nil), Replicas: 5}, ""},
		"a status that is not written": {"AggregateStatus", interpret.Inputs{Object: shop(nil), Items: reported},
			"returned no patch for AggregateStatus, so the status stays empty although 1 of 2 clusters reported one: set /status from request.aggregatedStatus in the patch"},
		"a status that is what it was": {"AggregateStatus",
			interpret.Inputs{Object: shop(map[string]any{"n": int64(1)}), Items: reported}, ""},
		"no status, as nobody has one":      {"AggregateStatus", interpret.Inputs{Object: shop(nil), Items: reported[1:]}, ""},
		"a member that has nothing its own": {"Retain", interpret.Inputs{Object: shop(nil)}, ""},
	} {
		events := record.NewFakeRecorder(5)
		i := &Interpreter{options: Options{Events: events},
			Interpreter: interpret.New(interpret.Kinds{schema.GroupKind{Group: "example.com", Kind: "Shop"}: {
				Replicas: func(context.Context, *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
					return 5, nil, nil
				},
			}})}
		said := webhook.Unchanged{Operation: c.operation, Inputs: c.in, Hook: webhook.Hook{Configuration: "conf",
			ResourceInterpreterWebhook: &configv1alpha1.ResourceInterpreterWebhook{Name: "a.b.c"}}}
		i.unchanged(t.Context(), said)
		i.unchanged(t.Context(), said) // an event is recorded once
		close(events.Events)
		var told []string
		for text := range events.Events {
			told = append(told, text)
		}
		if c.want == "" && len(told) > 0 || c.want != "" && (len(told) != 1 || !strings.Contains(told[0], c.want)) {
			t.Errorf("%s: event %q, want %q", name, told, c.want)
		}
	}
}
