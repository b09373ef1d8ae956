package operatecli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// To accept everything is to accept what was seen: a cluster that has not answered since the restore may have anything.
func TestARestoreIsNotOverWhileAClusterHasNotAnswered(t *testing.T) {
	timeout := seenTimeout
	seenTimeout = time.Millisecond
	t.Cleanup(func() { seenTimeout = timeout })
	works := membertest.Kind{GroupVersionKind: workv1alpha1.GroupVersion.WithKind("Work"), Plural: "works",
		Namespaced: true}
	restored := func(unseen string) *clitest.Seeing {
		s := clitest.See(t, map[string]*membertest.Server{"eu": membertest.New(t)})
		s.Api.Serve(works)
		mark := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: names.System, Name: execute.RestoreMark},
			Data:       map[string]string{"file": "b", "restored": "now", "taken": "then"}}
		if unseen != "" {
			mark.Annotations = map[string]string{wellknown.RestoreUnseenAnnotation: unseen}
		}
		s.Api.Put(mark)
		return s
	}
	stands := func(s *clitest.Seeing) bool {
		return s.Api.Object(membertest.ConfigMap, names.System, execute.RestoreMark) != nil
	}
	accept := func(s *clitest.Seeing, args ...string) (string, error) {
		out, said, err := s.Run(func(hub *hubcli.HubFlags, _ genericiooptions.IOStreams) *cobra.Command {
			return newRestoreAccept(hub)
		}, "", args...)
		return out + said, err
	}

	s := restored(`{"eu":3}`)
	out, _, err := s.Run(func(hub *hubcli.HubFlags,
		_ genericiooptions.IOStreams) *cobra.Command {
		return newRestoreStatus(hub)
	},
		"")
	if err != nil || !strings.Contains(out, "Not checked yet: 3 in eu (not Ready).") {
		t.Errorf("status says %s (%v)", out, err)
	}
	if strings.Contains(out, "accept --all") {
		t.Errorf("status names what is refused: %s", out)
	}
	if out, err := accept(s, "--all"); err == nil || !strings.Contains(err.Error(), "3 in eu (not Ready)") ||
		!strings.Contains(err.Error(), "--force") || !stands(s) {
		t.Errorf("%s (%v), want it refused and the restore to stand: %t", out, err, stands(s))
	}
	if out, err := accept(s, "--force", "configmap", "c"); err == nil || !strings.Contains(err.Error(), "--all") {
		t.Errorf("%s (%v), want --force to go with --all alone", out, err)
	}
	if out, err := accept(s, "--all", "--force"); err != nil || stands(s) {
		t.Errorf("%s (%v), want the restore over: %t", out, err, !stands(s))
	}

	s = restored("{}")
	if out, err := accept(s, "--all"); err != nil || !strings.Contains(out, "The restore is complete") || stands(s) {
		t.Errorf("%s (%v), want the restore over: %t", out, err, !stands(s))
	}
	if out, err := accept(s, "--all"); err != nil {
		t.Errorf("%s (%v), want no error where nothing was restored", out, err)
	}

	s = restored("three")
	if out, err := accept(s, "--all"); err == nil || !strings.Contains(err.Error(), wellknown.RestoreUnseenAnnotation) ||
		!stands(s) {
		t.Errorf("%s (%v), want what cannot be read refused", out, err)
	}
	if state := (&restoreState{Backup: map[string]string{}}); state.pendingWorks() == "" {
		t.Error("before the hub has counted, everything counts as seen")
	}
}

func TestRestoreStatusShowsTheCauseWithoutTheAdvice(t *testing.T) {
	held := func(conditions ...metav1.Condition) *heldWork {
		return &heldWork{Message: "held after a restore of the hub: ConfigMap c in cluster eu: it differs. To apply the hub's state: accept",
			work: &workv1alpha1.Work{Status: workv1alpha1.WorkStatus{Conditions: conditions}}}
	}
	failure := metav1.Condition{Type: workv1alpha1.WorkFailure, Status: metav1.ConditionTrue,
		Reason: workv1alpha1.ReasonRestored, Message: "it differs"}
	if got := held(failure).why(); got != "it differs" {
		t.Errorf("the cause is %q", got)
	}
	if h := held(); h.why() != h.Message {
		t.Errorf("of a hub of an earlier version the cause is %q", h.why())
	}
}

// Two StatefulSets of one name have two Works, of which the second has a name apart.
func TestRestoreAcceptsTheSecondWorkOfOneName(t *testing.T) {
	s := clitest.See(t, map[string]*membertest.Server{"eu": membertest.New(t)})
	works := membertest.Kind{GroupVersionKind: workv1alpha1.GroupVersion.WithKind("Work"), Plural: "works",
		Namespaced: true}
	s.Api.Serve(works)
	apart := names.WorkApart(schema.GroupKind{Group: "apps.kruise.io", Kind: "StatefulSet"}, "db", "shop")
	first := names.Work("StatefulSet", "db", "shop")
	for name, apiVersion := range map[string]string{first: "apps/v1", apart: "apps.kruise.io/v1beta1"} {
		w := &workv1alpha1.Work{TypeMeta: metav1.TypeMeta{APIVersion: workv1alpha1.GroupVersion.String(), Kind: "Work"},
			ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace("eu"), Name: name}}
		w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"apiVersion":%q,"kind":"StatefulSet","metadata":{"namespace":"shop","name":"db"}}`, apiVersion)}}}
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkHeldAfterRestore, Status: metav1.ConditionTrue,
			Reason: "Held", LastTransitionTime: metav1.Now()}}
		s.Api.Put(w)
	}
	accepted := func(name string) bool {
		work := s.Api.Object(works, names.ExecutionSpace("eu"), name)
		return work.GetAnnotations()[wellknown.AcceptRestoredAnnotation] != ""
	}
	out, errOut, err := s.Run(func(hub *hubcli.HubFlags, _ genericiooptions.IOStreams) *cobra.Command {
		return newRestoreAccept(hub)
	}, "", "statefulsets.apps.kruise.io", "db")
	if err != nil || !accepted(apart) || accepted(first) {
		t.Errorf("%s%s (%v); accepted are the one that is named: %t, the other: %t", out, errOut, err, accepted(apart),
			accepted(first))
	}
}
