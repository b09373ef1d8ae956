package up

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/core/hub/upkeep"
	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/server/embed/etcd"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

// recordKey and recordFile have the record of who wrote a store and a data folder.
const (
	recordKey  = "/argosy/version"
	recordFile = "version.json"
)

// estate is a hub with two members and what a team has in them.
type estate struct {
	*kit.Fleet
	t *testing.T
}

// newEstate is one that was made by a binary.
func newEstate(t *testing.T, binary string) *estate {
	t.Helper()
	t.Setenv("ARGOSY_BINARY", binary)
	dir := t.TempDir()
	f, err := kit.StartWith(lab.Options{Dir: dir, Members: []sim.Member{{Name: "eu", Nodes: 2}, {Name: "us", Nodes: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	e := &estate{Fleet: f, t: t}
	t.Cleanup(func() {
		if t.Failed() {
			gotText, _ := os.ReadFile(f.Lab.Hub.Log())
			t.Logf("the hub said:\n%s", gotText)
		}
		if err := f.Lab.Stop(); err != nil {
			t.Error(err)
		}
	})
	e.Hub.Apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: everywhere, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Secret}]
  placement: {clusterAffinity: {clusterNames: [eu, us]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: divided, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    clusterAffinity: {clusterNames: [eu, us]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: us, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  overrideRules:
  - targetCluster: {clusterNames: [us]}
    overriders: {plaintext: [{path: /data/where, operator: replace, value: us}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {where: anywhere, color: green}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: shop}
stringData: {password: open sesame}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}`)
	e.served("green")
	return e
}

// served waits until hub and members have everything, with this color of the settings.
func (e *estate) served(color string) {
	e.t.Helper()
	kit.Eventually(e.t, "everything is in the members, and the hub says so", func() string {
		ctx := e.t.Context()
		for _, name := range []string{"eu", "us"} {
			if ready := kit.Field(e.Hub.Find(e.t, "cluster.karmada.io/v1alpha1", "Cluster", "", name), "status",
				"conditions"); !strings.Contains(fmt.Sprint(ready), "ClusterReady") {
				return fmt.Sprintf("%s is not ready: %v", name, ready)
			}
			where := map[string]string{"eu": "anywhere", "us": "us"}[name]
			settings := object("v1", "ConfigMap")
			if err := e.Members[name].Get(ctx, client.ObjectKey{Namespace: "shop", Name: "settings"}, settings); err != nil {
				return fmt.Sprintf("%s: %v", name, err)
			}
			if data := kit.Field(settings, "data"); !equal(data, map[string]any{"where": where, "color": color}) {
				return fmt.Sprintf("%s has the settings %v", name, data)
			}
			if err := e.Members[name].Get(ctx, client.ObjectKey{Namespace: "shop", Name: "password"},
				object("v1", "Secret")); err != nil {
				return fmt.Sprintf("%s: %v", name, err)
			}
		}
		web := e.Hub.Find(e.t, "apps/v1", "Deployment", "shop", "web")
		if ready := fmt.Sprint(kit.Field(web, "status", "readyReplicas")); ready != "3" {
			return fmt.Sprintf("%s of 3 replicas are ready: %v", ready, kit.Field(web, "status"))
		}
		secret := e.Hub.Find(e.t, "v1", "Secret", "shop", "password")
		if data := kit.Field(secret, "data"); !equal(data, map[string]any{"password": "b3BlbiBzZXNhbWU="}) {
			return fmt.Sprintf("the Secret has %v", data)
		}
		return ""
	})
}

func equal(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func object(apiVersion, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	return u
}

// marks tell objects that were deleted and made again, or written, from those that were left alone: UID, generation,
// and the times and managers of what set their fields, statuses apart, which members' own controllers write.
func (e *estate) marks() map[string]string {
	e.t.Helper()
	marks := map[string]string{}
	look := func(c kit.Cluster, apiVersion, kind string, in ...client.ListOption) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(apiVersion)
		list.SetKind(kind)
		if err := c.List(e.t.Context(), list, in...); err != nil {
			e.t.Fatal(err)
		}
		for _, u := range list.Items {
			written := []string{string(u.GetUID()), strconv.FormatInt(u.GetGeneration(), 10)}
			for _, f := range u.GetManagedFields() {
				if f.Subresource == "" && f.Manager != "kube-controller-manager" {
					written = append(written, fmt.Sprintf("%s of %s at %v", f.Operation, f.Manager, f.Time))
				}
			}
			if kind == "ConfigMap" || kind == "Secret" {
				written = append(written, u.GetResourceVersion())
			}
			marks[strings.Join([]string{c.Name, kind, u.GetNamespace(), u.GetName()}, "/")] = strings.Join(written, ", ")
		}
	}
	shop := client.InNamespace("shop")
	for _, c := range []kit.Cluster{e.Hub, e.Members["eu"], e.Members["us"]} {
		look(c, "v1", "Namespace", client.MatchingFields{"metadata.name": "shop"})
		for apiVersion, kinds := range map[string][]string{"v1": {"ConfigMap", "Secret"}, "apps/v1": {"Deployment"}} {
			for _, kind := range kinds {
				look(c, apiVersion, kind, shop)
			}
		}
	}
	look(e.Hub, "work.karmada.io/v1alpha2", "ResourceBinding", shop)
	look(e.Hub, "work.karmada.io/v1alpha1", "Work")
	look(e.Hub, "cluster.karmada.io/v1alpha1", "Cluster")
	if len(marks) < 20 {
		e.t.Fatalf("there is too little to look at: %v", marks)
	}
	return marks
}

// changed returns what of the marks is not as it was; empty if nothing is.
func (e *estate) changed(was map[string]string) string {
	e.t.Helper()
	now := e.marks()
	for object, mark := range was {
		if now[object] != mark {
			return fmt.Sprintf("%s was %s, and is %q", object, mark, now[object])
		}
	}
	for object := range now {
		if _, known := was[object]; !known {
			return object + " is new"
		}
	}
	return ""
}

func (e *estate) stop() {
	e.t.Helper()
	if err := e.Lab.Hub.Stop(); err != nil {
		e.t.Fatal(err)
	}
}

// start has a binary run the hub.
func (e *estate) start(binary string) {
	e.t.Helper()
	e.Lab.Hub.Binary = binary
	start(e.t, e.Lab.Hub)
	e.Hub = connect(e.t, "hub", e.Lab.Hub)
}

// data is the hub's data folder.
func (e *estate) data() string { return filepath.Join(e.Lab.Hub.Dir, "data") }

// store does something in the store of a hub that is stopped.
func (e *estate) store(do func(*etcd.Client) error) {
	e.t.Helper()
	s, err := etcd.Start(e.t.Context(), etcd.Options{Dir: filepath.Join(e.data(), "etcd")})
	if err != nil {
		e.t.Fatal(err)
	}
	defer s.Stop()
	c := s.Client()
	defer c.Close()
	if err := do(c); err != nil {
		e.t.Fatal(err)
	}
}

// recorded is what store and folder say of who wrote them, and the revision of that.
func (e *estate) recorded() (inStore, inFolder string, revision int64) {
	e.t.Helper()
	e.store(func(c *etcd.Client) error {
		got, err := c.Get(e.t.Context(), recordKey)
		if err == nil && len(got.Kvs) == 1 {
			inStore, revision = string(got.Kvs[0].Value), got.Kvs[0].ModRevision
		}
		return err
	})
	raw, err := os.ReadFile(filepath.Join(e.data(), recordFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		e.t.Fatal(err)
	}
	return inStore, string(raw), revision
}

// put has the store and the folder name somebody else as who wrote them.
func (e *estate) put(inStore, inFolder string) {
	e.t.Helper()
	e.store(func(c *etcd.Client) error {
		var err error
		if inStore == "" {
			_, err = c.Delete(e.t.Context(), recordKey)
		} else {
			_, err = c.Put(e.t.Context(), recordKey, inStore)
		}
		return err
	})
	file := filepath.Join(e.data(), recordFile)
	err := os.WriteFile(file, []byte(inFolder), 0o600)
	if inFolder == "" {
		err = os.Remove(file)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		e.t.Fatal(err)
	}
}

// refused runs argosy, which must end with one sentence that has these words.
func refused(t *testing.T, binary string, words []string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	var gotText bytes.Buffer
	cmd.Stderr = &gotText
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%v ends with %v, want exit code 1; it says %s", args, err, gotText.String())
	}
	for _, word := range words {
		if !strings.Contains(gotText.String(), word) {
			t.Errorf("%v says %q, without %q", args, gotText.String(), word)
		}
	}
	if strings.Count(gotText.String(), "\n") != 1 {
		t.Errorf("%v does not say one sentence: %q", args, gotText.String())
	}
}

// goesOn is what an upgrade must leave: all is served, nothing was deleted or written anew, changes arrive.
func (e *estate) goesOn(was map[string]string, color, next string) {
	e.t.Helper()
	e.served(color)
	kit.Stays(e.t, "nothing is done to what is there", 3*time.Second, func() string { return e.changed(was) })
	e.Hub.Change(e.t, "v1", "ConfigMap", "shop", "settings", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, next, "data", "color") // data is a map
	})
	e.served(next)
}

func TestStoreWithWorksAndNoRecordIsRefused(t *testing.T) {
	kit.Long(t)
	this := binary(t)
	e := newEstate(t, this)
	e.stop()
	inStore, inFolder, revision := e.recorded()
	for where, raw := range map[string]string{"store": inStore, "folder": inFolder} {
		var w upkeep.Writer
		if err := json.Unmarshal([]byte(raw), &w); err != nil || w.Format != upkeep.Format ||
			!strings.HasPrefix(w.Kubernetes, "v1.") || w.Version == "" {
			t.Errorf("the %s says %q (%v)", where, raw, err)
		}
	}

	// The next start finds its own record, and writes none.
	e.start(this)
	e.served("green")
	e.stop()
	if _, _, again := e.recorded(); again != revision {
		t.Errorf("the record was written again, at revision %d after %d", again, revision)
	}

	// Without a record, the Works may be of format 1.
	e.put("", "")
	refused(t, this, []string{"the store: it was written by argosy before store format 2", "start it on an empty store"},
		"up", "--data-dir", e.data(), "--port", strconv.Itoa(e.Lab.Hub.Port))
	e.put(inStore, inFolder)
	e.start(this) // what was applied is removed from it
}

func TestHubDoesNotStartOnALaterFormat(t *testing.T) {
	kit.Long(t)
	this := binary(t)
	e := newEstate(t, this)
	data, port := e.data(), strconv.Itoa(e.Lab.Hub.Port)
	was := e.marks()
	e.stop()
	mineInStore, mineInFolder, _ := e.recorded()
	for story, later := range map[string]upkeep.Writer{
		"a later format": {Format: upkeep.Format + 1, Version: "v9.1.0", Kubernetes: "v1.36.0"},
		"a release of Kubernetes that is too far to leave": {Format: upkeep.Format, Version: "v9.1.0", Kubernetes: "v1.99.0"},
	} {
		raw, err := json.Marshal(later)
		if err != nil {
			t.Fatal(err)
		}
		for where, put := range map[string]func(){
			"store":  func() { e.put(string(raw), mineInFolder) },
			"folder": func() { e.put(mineInStore, string(raw)) },
		} {
			t.Run(story+" in the "+where, func(t *testing.T) {
				put()
				refused(t, this, []string{where, "argosy v9.1.0 (store format", "is too old to read it",
					"use argosy v9.1.0 or later", "restore a backup from before"}, "up", "--data-dir", data, "--port", port)
				inStore, inFolder, _ := e.recorded()
				if (where == "store") != (inStore == string(raw)) || (where == "folder") != (inFolder == string(raw)) {
					t.Errorf("the refused start wrote: %s, %s", inStore, inFolder)
				}
			})
		}
	}

	// A backup of it is as little use to this version.
	later := `{"format":99,"version":"v9.9.9"}`
	e.put(later, mineInFolder)
	vault := t.TempDir()
	if err := os.Chmod(vault, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(vault, "later.tar.gz")
	if out, err := exec.CommandContext(t.Context(), this, "backup", "--data-dir", data, "--to",
		file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	fresh := filepath.Join(vault, "fresh")
	refused(t, this, []string{"later.tar.gz", "argosy v9.9.9 (store format 99)", "use argosy v9.9.9 or later"}, "restore",
		file, "--data-dir", fresh)
	if left, err := os.ReadDir(fresh); err != nil ||
		slices.ContainsFunc(left, func(f os.DirEntry) bool { return f.Name() != ".argosy-hub" }) {
		t.Errorf("the refused restore left %v (%v)", left, err)
	}
	e.put(mineInStore, later)
	refused(t, this, []string{"data folder", "use argosy v9.9.9 or later"}, "backup", "--data-dir", data, "--to",
		filepath.Join(vault, "another.tar.gz"))

	// Nothing of all that did any harm.
	e.put(mineInStore, mineInFolder)
	e.start(this)
	e.goesOn(was, "green", "blue")
}

func TestReplicasEndAfterALaterFormat(t *testing.T) {
	kit.Long(t)
	servers := store(t)
	a := newHub(t)
	start(t, a, "--etcd-servers", servers)
	c, err := etcd.Connect(t.Context(), []string{servers}, "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Put(t.Context(), recordKey, `{"format":99,"version":"v9.9.9"}`); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "the hub says that another was upgraded", func() string {
		gotText, err := os.ReadFile(a.Log())
		if gotText := string(gotText); err != nil || !strings.Contains(gotText, "another hub on this store was upgraded") ||
			!strings.Contains(gotText, "use argosy v9.9.9 or later") {
			return gotText
		}
		return ""
	})
	if err := a.Stop(); err == nil {
		t.Error("the hub ended as though it was told to")
	}
	b := newHub(t)
	err = b.Start(t.Context(), "--etcd-servers", servers)
	if err == nil || !strings.Contains(err.Error(), "the store: it was written by argosy v9.9.9") {
		t.Errorf("a hub on what a later one wrote: %v", err)
	}
}

// A hub of the version that ARGOSY_PREVIOUS_BINARY names makes the folder: hack/previous.sh builds it, for make
// upgrade-test and make test-long.
func TestDataOfThePreviousVersionIsServed(t *testing.T) {
	kit.Long(t)
	previous := os.Getenv("ARGOSY_PREVIOUS_BINARY")
	if previous == "" {
		t.Skip("ARGOSY_PREVIOUS_BINARY names no binary of a previous version: run make upgrade-test")
	}
	this := binary(t)
	e := newEstate(t, previous)
	was := e.marks()
	e.stop()
	before := upkeep.Writer{}
	raw, _, _ := e.recorded()
	if err := json.Unmarshal([]byte(raw), &before); err != nil {
		t.Fatal(err)
	}
	e.start(this)
	e.goesOn(was, "green", "blue")
	t.Logf("upgraded from %s", before)
	was = e.marks()
	e.stop()
	if before.Format < upkeep.Format {
		refused(t, previous, []string{"too old"}, "up", "--data-dir", e.data(), "--port", strconv.Itoa(e.Lab.Hub.Port))
		e.start(this) // what was applied is removed from it
		return
	}
	e.start(previous)
	e.goesOn(was, "blue", "red")
}
