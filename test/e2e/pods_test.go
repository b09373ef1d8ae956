package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/why"
	"github.com/argosy-io/argosy/test/kit"
)

// crash has the pods of a Deployment of a member be as a kubelet shows them whose container ends again and again.
func crash(t *testing.T, member, ns, app string) {
	t.Helper()
	m := fleet.Members[member]
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status": {"conditions": [
		{"type": "PodScheduled", "status": "True"}, {"type": "Initialized", "status": "True"},
		{"type": "ContainersReady", "status": "False", "reason": "ContainersNotReady", "message": "containers with unready status: [c]"},
		{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "containers with unready status: [c]"}],
		"containerStatuses": [{"name": "c", "image": "example.com/web:1", "imageID": "sim://example.com/web:1", "ready": false, "started": false, "restartCount": 7,
		"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container=c pod=x_y(z)"}},
		"lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:09Z"}}}]}}`))
	kit.Eventually(t, "the pods of "+app+" crash", func() string {
		var all corev1.PodList
		if err := m.List(t.Context(), &all, client.InNamespace(ns), client.MatchingLabels{"app": app}); err != nil {
			return err.Error()
		}
		for i := range all.Items {
			if all.Items[i].Status.Phase != corev1.PodRunning {
				return all.Items[i].Name + " does not run yet"
			}
			if err := m.Status().Patch(t.Context(), &all.Items[i], patch); err != nil {
				return err.Error()
			}
		}
		if len(all.Items) == 0 {
			return "there are none"
		}
		return ""
	})
}

// Three workloads do not run, each in another cluster and for another reason; the reasons of their pods are shown.
func TestWhyAndStatusSayWhyPodsDoNotRun(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, propagation(ns, "p",
		"{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: batch/v1, kind: CronJob}, {apiVersion: v1, kind: ConfigMap}], placement: "+placedOn("m1", "m2")+"}"))
	fleet.Hub.Apply(t, override(ns, "o", `{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], overrideRules: [
		{targetCluster: {clusterNames: [m2]}, overriders: {imageOverrider: [{component: Tag, operator: replace, value: "bad"}]}}]}`))
	fleet.Hub.Apply(t, deployment(ns, "web", 2, "example.com/web:1"))
	fleet.Hub.Apply(t, configMap(ns, "web", "1"))
	fleet.Hub.Apply(t, strings.Replace(deployment(ns, "big", 3, "example.com/web:1"), "      containers:",
		"      nodeSelector: {no: such}\n      containers:", 1))
	fleet.Hub.Apply(t, deployment(ns, "leak", 1, "example.com/web:1"))
	// A member has one of its own.
	kit.Eventually(t, "the namespace is in m1", func() string {
		if fleet.Members["m1"].Find(t, "v1", "Namespace", "", ns) == nil {
			return "it is not"
		}
		return ""
	})
	fleet.Members["m1"].Apply(t, deployment(ns, "theirs", 1, "example.com/theirs:bad"))
	crash(t, "m1", ns, "leak")

	pulling := `2 of 2 pods: ImagePullBackOff: Back-off pulling image "example.com/web:bad" (container c)`
	waiting := `3 of 3 pods: Unschedulable: 0/`
	crashing := `1 of 1 pod: CrashLoopBackOff: 7 restarts, last terminated: OOMKilled, exit code 137 (container c)`
	for _, tt := range []struct {
		name string
		want []string
	}{
		{"web", []string{"✗ m2: " + pulling,
			"→ check the name and tag of the image, whether cluster m2 can reach its registry", "healthy in 1 of 2 clusters"}},
		{"big", []string{"✗ m1: " + waiting, "✗ m2: " + waiting, "didn't match Pod's node affinity/selector",
			"→ label nodes of cluster m1"}},
		{"leak", []string{"✗ m1: " + crashing,
			"→ raise the memory limit of container c, or find out what uses the memory: `argosy logs leak-"}},
	} {
		kit.Eventually(t, "why says what keeps "+tt.name, func() string {
			out, complaint := explain(t, "deployment", tt.name, "-n", ns)
			for _, w := range tt.want {
				if !strings.Contains(out, w) {
					return fmt.Sprintf("it does not say %q:\n%s%s", w, out, complaint)
				}
			}
			return ""
		})
	}
	if out, complaint := explain(t, "deployment", "web", "-n", ns, "--cluster", "m2"); !strings.Contains(out, "  pods: "+
		pulling+", such as pod web-") {
		t.Errorf("of m2 alone it says\n%s%s", out, complaint)
	}
	if out, _ := explain(t, "configmap", "web", "-n", ns); strings.Contains(out, "pods:") {
		t.Errorf("a ConfigMap of that name has pods:\n%s", out)
	}

	kit.Eventually(t, "status says it of all", func() string {
		out, err := fleet.Argosy(t.Context(), "status")
		if strings.Contains(out, "All checks passed") || !strings.Contains(out, "NEEDS ATTENTION") {
			return fmt.Sprint(err, "\n", out)
		}
		return ""
	})
	type row struct{ cluster, workload, wantText string }
	rows := func() (all []row) {
		out, _ := fleet.Argosy(t.Context(), "status", "-o", "json") // other tests may have a cluster that is not well
		var answer struct{ Attention []overview.Item }
		if err := json.NewDecoder(strings.NewReader(out)).Decode(&answer); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, i := range answer.Attention {
			if i.Object.Namespace == ns {
				all = append(all, row{i.Cluster, i.Object.Kind + " " + i.Object.Name, i.What})
			}
		}
		return all
	}
	kit.Eventually(t, "status says it of these workloads and of no other", func() string {
		got := rows()
		if len(got) != 4 || got[0].cluster != "m1" || got[1].cluster != "m2" ||
			!strings.HasPrefix(got[0].wantText, waiting) ||
			got[2] != (row{"m1", "Deployment leak", crashing}) || got[3] != (row{"m2", "Deployment web", pulling}) {
			return fmt.Sprintf("%+v", got)
		}
		return ""
	})

	// The image is there, and all pods are shown as healthy.
	fleet.Hub.Remove(t, "policy.karmada.io/v1alpha1", "OverridePolicy", ns, "o")
	kit.Eventually(t, "its trouble is over", func() string {
		out, complaint := explain(t, "deployment", "web", "-n", ns)
		if strings.Contains(out, "pods:") || !strings.Contains(out, "healthy in 2 of 2 clusters") {
			return out + complaint
		}
		return ""
	})
}

func TestPodsNeedRightToReadNamespace(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns, bank := fleet.Namespace(t), fleet.Namespace(t)
	page := accessPage(t, "shop", ns, "see-the-fleet", "see-"+ns)
	given(t, fleet.Hub, page, "RoleBinding developers", "ClusterRoleBinding see-the-fleet")
	dev, outsider := newPerson(t, "dev-"+ns, ns+"-developers"), newPerson(t, "nobody-"+ns, "none-"+ns)
	for _, in := range []string{ns, bank} {
		fleet.Hub.Apply(t, propagation(in, "p", "{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: "+
			placedOn("m1")+"}"))
		fleet.Hub.Apply(t, deployment(in, "web", 1, "example.com/web:bad"))
	}
	messages := func(p person, in string) (string, error) {
		c, err := kubernetes.NewForConfig(p.config)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := c.RESTClient().Get().AbsPath("/apis/work.karmada.io/v1alpha2/namespaces/" + in +
			"/resourcebindings/web-deployment/pods").DoRaw(t.Context())
		return string(raw), err
	}
	kit.Eventually(t, "the developer sees their own", func() string {
		if out, err := messages(dev, ns); err != nil || !strings.Contains(out, "ImagePullBackOff") {
			return fmt.Sprint(out, err)
		}
		out, err := dev.argosy("why", "deployment", "web", "-n", ns)
		if err != nil || !strings.Contains(out, "✗ m1: 1 of 1 pod: ImagePullBackOff") {
			return fmt.Sprint(out, err)
		}
		return ""
	})
	for who, p := range map[string]person{"a developer of another namespace": dev, "somebody": outsider} {
		out, err := messages(p, bank)
		if !apierrors.IsForbidden(err) || strings.Contains(out, "ImagePull") {
			t.Errorf("%s is reported: %s, %v", who, out, err)
		}
		p.shut("the pods of all namespaces", everywhere(t, p))
	}
	if out, err := dev.argosy("why", "deployment", "web", "-n", bank); err == nil || strings.Contains(out, "ImagePull") {
		t.Errorf("why says to who may not read it: %s, %v", out, err)
	}

	// A user who may read the binding and not the pods learns where to ask.
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: less, namespace: %[1]s}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [get, list]}
- {apiGroups: [work.karmada.io], resources: [resourcebindings], verbs: [get, list]}
- {apiGroups: [policy.karmada.io], resources: [propagationpolicies, overridepolicies], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: less, namespace: %[1]s}
subjects: [{kind: Group, name: %[2]s-developers, apiGroup: rbac.authorization.k8s.io}]
roleRef: {kind: Role, name: less, apiGroup: rbac.authorization.k8s.io}`, bank, ns))
	kit.Eventually(t, "why says that there is more to know", func() string {
		out, err := dev.argosy("why", "deployment", "web", "-n", bank)
		if err != nil || strings.Contains(out, "ImagePull") ||
			!strings.Contains(out, "you need permission to get resourcebindings/pods in namespace "+bank) {
			return fmt.Sprint(out, err)
		}
		return ""
	})
}

// everywhere asks for the pods of all namespaces.
func everywhere(t *testing.T, p person) error {
	t.Helper()
	c, err := kubernetes.NewForConfig(p.config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.RESTClient().Get().AbsPath(why.PodsPath).DoRaw(t.Context())
	return err
}
