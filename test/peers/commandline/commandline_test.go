// Package commandline runs the same command lines by Karmada's karmadactl, unmodified, and by ours, against hubs in
// memory. It is skipped if that program is missing.
package commandline

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/cli/joincli"
	"github.com/argosy-io/argosy/internal/cli/membercli"
	"github.com/argosy-io/argosy/internal/cli/objectcli"
	"github.com/argosy-io/argosy/test/kit"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

var (
	cloneSet = membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1",
		Kind: "CloneSet"}, Plural: "clonesets", Namespaced: true}
	policy = membertest.Kind{GroupVersionKind: policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"),
		Plural: "propagationpolicies", Namespaced: true}
)

// serving returns the kinds of a group that a server serves in addition.
func serving(gv schema.GroupVersion, namespaced bool, kinds map[string]string) (all []membertest.Kind) {
	for kind, plural := range kinds {
		all = append(all, membertest.Kind{GroupVersionKind: gv.WithKind(kind), Plural: plural, Namespaced: namespaced})
	}
	return all
}

// hub is one with the clusters eu and us. A CloneSet web is on the hub and in both, and legacy is in eu alone.
type hub struct {
	*clitest.Seeing
	eu *membertest.Server
}

func newHub(t *testing.T) *hub {
	h := &hub{eu: membertest.New(t, cloneSet)}
	us := membertest.New(t, cloneSet)
	h.Seeing = clitest.See(t, map[string]*membertest.Server{"eu": h.eu, "us": us})
	h.ServeBindings()
	h.Api.Serve(cloneSet)
	for _, k := range slices.Concat(serving(configv1alpha1.GroupVersion, false,
		map[string]string{"ResourceInterpreterCustomization": "resourceinterpretercustomizations"}),
		serving(policyv1alpha1.GroupVersion, true, map[string]string{"OverridePolicy": "overridepolicies"}),
		serving(policyv1alpha1.GroupVersion, false, map[string]string{"ClusterOverridePolicy": "clusteroverridepolicies"})) {
		h.Api.Serve(k)
	}
	for _, at := range []struct {
		server *membertest.Server
		text   string
	}{
		{h.Api, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"},
		{h.eu, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"},
		{h.Api, object("web")}, {h.eu, object("web")}, {us, object("web")}, {h.eu, object("legacy")},
		{h.eu, "{apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: shop}, spec: {containers: [{name: c, image: x}]}}"},
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(at.text), &u.Object); err != nil {
			t.Fatal(err)
		}
		at.server.Put(u)
	}
	for _, server := range []*membertest.Server{h.Api, h.eu, us} {
		server.Behave(func(w http.ResponseWriter, r *http.Request) bool { return printTables(server, w, r) })
	}
	return h
}

// object returns a CloneSet in namespace shop.
func object(name string) string {
	return fmt.Sprintf("{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: %s, namespace: shop, labels: {app: web}}, "+
		"spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: "+
		"[{name: c, image: x}]}}}}", name)
}

// printTables answers requests for tables with the objects of the kind, as API servers do.
func printTables(s *membertest.Server, w http.ResponseWriter, r *http.Request) bool {
	if !strings.Contains(r.Header.Get("Accept"), "as=Table") {
		return false
	}
	_, rest, _ := strings.Cut(r.URL.Path, "/namespaces/shop/")
	plural, name, one := strings.Cut(rest, "/")
	rows := []map[string]any{}
	for _, n := range []string{"legacy", "web", "web-1"} {
		for _, k := range []membertest.Kind{cloneSet, membertest.Pod} {
			if u := s.Object(k, "shop", n); k.Plural == plural && u != nil && (!one || n == name) {
				rows = append(rows, map[string]any{"cells": []any{n, "1d"}, "object": u.Object})
			}
		}
	}
	if one && len(rows) == 0 {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "Table",
		"metadata": map[string]any{}, "rows": rows, "columnDefinitions": []map[string]any{{"name": "Name", "type": "string"},
			{"name": "Age", "type": "string"}}}) // fails only if the client is gone
	return true
}

// verbs are those that are compared.
var verbs = map[string]func(*hubcli.HubFlags, genericiooptions.IOStreams) *cobra.Command{
	"get": membercli.NewGet, "describe": membercli.NewDescribe, "api-versions": membercli.NewAPIVersions,
	"api-resources": membercli.NewAPIResources, "apply": objectcli.NewApply, "create": objectcli.NewCreate,
	"delete": objectcli.NewDelete, "label": objectcli.NewLabel, "annotate": objectcli.NewAnnotate,
	"patch": objectcli.NewPatch,
	"promote": func(h *hubcli.HubFlags, _ genericiooptions.IOStreams) *cobra.Command {
		return joincli.NewPromote(h)
	},
}

// print runs a command line of ours, which must succeed if ok is true.
func (h *hub) print(line string, ok bool) string {
	h.T.Helper()
	args := strings.Fields(line)
	out, errOut, err := h.Run(func(flags *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
		flags.CalledBy = "karmadactl"
		return verbs[args[0]](flags, streams)
	}, "", args[1:]...)
	if (err == nil) != ok {
		h.T.Errorf("%s: %v", line, err)
	}
	return out + errOut
}

// printTheirs runs a command line of Karmada's.
func (h *hub) printTheirs(program, line string, ok bool) string {
	h.T.Helper()
	ctx, cancel := context.WithTimeout(h.T.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, strings.Fields(line)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+h.File)
	out, err := cmd.CombinedOutput()
	if (err == nil) != ok {
		h.T.Errorf("karmadactl %s: %v\n%s", line, err, out)
	}
	return string(out)
}

// sorted returns an output with its lines in one order: karmadactl asks clusters at the same time, and prints as they
// answer.
func sorted(out string) string {
	return strings.Join(slices.Sorted(strings.Lines(out)), "")
}

func TestTheSameIsPrinted(t *testing.T) {
	theirs := kit.Peers(t, "karmadactl")[0]
	h := newHub(t)
	for _, line := range []string{
		"get clonesets",
		"get clonesets -s karmada -o wide",
		"get clonesets -s members",
		"get clonesets -s members -C us",
		"get clonesets -s all --show-labels",
		"get clonesets -s all -l app=web --no-headers",
		"get clonesets -A",
		"get cloneset web",
		"get cloneset/web -o jsonpath={.spec.replicas}",
		"get clonesets -s members -o name",
		"get pods -s members -C eu",
		"get pods -s members -C eu --no-headers",
		"get clonesets web -s members --ignore-not-found",
		"describe cloneset web",
		"describe cloneset web -s members -C eu",
		"api-versions",
		"api-versions -s members --cluster eu",
		"api-resources",
		"api-resources -s members --cluster eu --api-group=apps.kruise.io",
		"create configmap x --from-literal=a=b --dry-run=client -o yaml",
		"create quota q --hard=pods=2 --dry-run=client -o json",
		"label cloneset web --list",
		"annotate cloneset web a=b --dry-run=client",
		"delete cloneset web --dry-run=client",
	} {
		want, got := sorted(h.printTheirs(theirs, line, true)), sorted(h.print(line, true))
		if got != want || got == "" {
			t.Errorf("karmadactl %s prints\n%s\nwant\n%s", line, got, want)
		}
	}
	// Both refuse these.
	for _, line := range []string{"get clonesets -s other", "get cloneset absent", "get clonesets -s members -C jp",
		"api-versions -s members", "promote cloneset web", "promote cloneset absent -C eu", "label cloneset web",
		"delete cloneset"} {
		h.printTheirs(theirs, line, false)
		h.print(line, false)
	}
}

func TestTheSameIsWritten(t *testing.T) {
	theirs := kit.Peers(t, "karmadactl")[0]
	file := clitest.WriteFile(t, t.TempDir(), "two.yaml", object("api")+"\n---\n"+
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: db}, spec: {}}\n")
	deployment := membertest.Kind{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		Plural: "deployments", Namespaced: true}
	const quick = " --validate=false"
	for _, line := range []string{
		"apply -f " + file + quick + " --openapi-patch=false",
		"apply -f " + file + quick + " --openapi-patch=false -C eu,us",
		"apply -f " + file + quick + " --openapi-patch=false --all-clusters",
		"create -f " + file + quick,
		"label cloneset web tier=front",
		"label cloneset web app-",
		"annotate cloneset web note=hi",
		"patch cloneset web --type=merge -p {\"spec\":{\"replicas\":3}}",
		"delete cloneset web --wait=false",
		"promote cloneset legacy -C eu --auto-create-policy=false --dry-run",
	} {
		a, b := newHub(t), newHub(t)
		a.printTheirs(theirs, line, true)
		b.print(line, true)
		want, got := slices.Sorted(slices.Values(a.Api.Writes())), slices.Sorted(slices.Values(b.Api.Writes()))
		if !slices.Equal(got, want) || len(got) == 0 && !strings.Contains(line, "dry-run") {
			t.Errorf("karmadactl %s writes %q, want %q", line, got, want)
		}
		for _, write := range got {
			_, object, _ := strings.Cut(write, " shop/")
			for _, k := range []membertest.Kind{cloneSet, deployment, policy} {
				if is, should := content(b, k, object), content(a, k, object); is != should {
					t.Errorf("karmadactl %s leaves the %s\n%s\nwant\n%s", line, k.Kind, is, should)
				}
			}
		}
	}
}

// content returns what users write of an object.
func content(h *hub, k membertest.Kind, name string) string {
	u := h.Api.Object(k, "shop", name)
	if u == nil {
		return ""
	}
	// The order of fields in this annotation differs.
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations",
		"kubectl.kubernetes.io/last-applied-configuration")
	raw, err := json.Marshal(map[string]any{"spec": u.Object["spec"], "labels": u.GetLabels(),
		"annotations": u.GetAnnotations()})
	if err != nil {
		h.T.Fatal(err)
	}
	return string(raw)
}

// The manifests of a promotion have the same names, kinds and selections. Ours takes over by the policy, and Karmada's
// by an annotation of the template.
func TestTheSameIsPromoted(t *testing.T) {
	theirs := kit.Peers(t, "karmadactl")[0]
	h := newHub(t)
	for _, line := range []string{"promote cloneset legacy -C eu -o json",
		"promote cloneset legacy -C eu -o json --policy-name mine",
		"promote cloneset legacy -C eu -o json --auto-create-policy=false"} {
		want, got := manifests(t, h.printTheirs(theirs, line, true)), manifests(t, h.print(line, true))
		if !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("karmadactl %s prints\n%s\nwant\n%s", line, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if len(h.Api.Writes()) > 0 {
		t.Errorf("it writes %q", h.Api.Writes())
	}
}

// manifests returns the objects in a stream of JSON, without how they take over, and without the namespace of
// selectors, which admission adds.
func manifests(t *testing.T, stream string) (all []string) {
	t.Helper()
	for in := json.NewDecoder(strings.NewReader(stream)); in.More(); {
		u := &unstructured.Unstructured{}
		if err := in.Decode(&u.Object); err != nil {
			t.Fatalf("%v in %s", err, stream)
		}
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
		unstructured.RemoveNestedField(u.Object, "spec", "conflictResolution")
		if selectors, ok, _ := unstructured.NestedSlice(u.Object, "spec", "resourceSelectors"); ok {
			unstructured.RemoveNestedField(selectors[0].(map[string]any), "namespace")
			if err := unstructured.SetNestedSlice(u.Object, selectors, "spec", "resourceSelectors"); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := json.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(raw))
	}
	slices.Sort(all)
	return all
}
