package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/server/embed/etcd"
	"github.com/argosy-io/argosy/internal/server/keyring"
	"github.com/argosy-io/argosy/test/kit"
)

const (
	password    = "correct-horse-battery-staple-4711"
	memberToken = "eyJhbGciOiJSUzI1NiJ9.member-token-0815.c2lnbmF0dXJl"
	proxyHeader = "Basic-of-a-proxy-2342"
)

// found returns the files below dir that have any of the words, as they are or in base64.
func found(t *testing.T, dir string, words ...string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, word := range words {
			// In base64 the word begins at any of three places.
			for shift := range 3 {
				encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(" ", shift) + word))
				if bytes.Contains(data, []byte(word)) || bytes.Contains(data, []byte(encoded[4:len(encoded)-4])) {
					files = append(files, path+" has "+word)
					break
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// What the roles keep from people because Secrets are in it is kept from who reads the disk, too.
func TestSecretKindsAreEncrypted(t *testing.T) {
	n := 0
	for _, d := range roles.Decisions {
		if !d.ContainsSecrets() {
			continue
		}
		n++
		if r := (schema.GroupResource{Group: d.Group, Resource: d.Resource}); !slices.Contains(secret, r) {
			t.Errorf("%s is kept in plain, and %s", r, d.Why)
		}
	}
	if n < 4 {
		t.Errorf("%d kinds hold Secrets", n)
	}
	// Overrides can set passwords, and revisions contain overrides.
	for _, name := range []string{"overridepolicies.policy.karmada.io", "clusteroverridepolicies.policy.karmada.io",
		"releaserevisions.release.argosy.io"} {
		if !slices.Contains(secret, schema.ParseGroupResource(name)) {
			t.Errorf("%s is not encrypted, and has overrides", name)
		}
	}
}

// keepSecrets writes a Secret, a member's token, a Work that carries the Secret, and a Cluster whose proxy has a
// password.
func keepSecrets(t *testing.T, h *Hub) {
	t.Helper()
	client, err := kubernetes.NewForConfig(h.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"},
			Data: map[string][]byte{"password": []byte(password)}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: "m1"},
			Data: map[string][]byte{"token": []byte(memberToken)}},
	} {
		if _, err := client.CoreV1().Secrets(s.Namespace).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	d, err := dynamic.NewForConfig(h.Config())
	if err != nil {
		t.Fatal(err)
	}
	work := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
		"metadata": map[string]any{"namespace": "default", "name": "w"},
		"spec": map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "shop", "namespace": "default"},
			"data": map[string]any{"password": base64.StdEncoding.EncodeToString([]byte(password))}}}}},
	}}
	if _, err := d.Resource(workv1alpha1.Resource("works").WithVersion("v1alpha1")).Namespace("default").Create(
		t.Context(), work, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": map[string]any{"name": "m1"},
		"spec": map[string]any{"syncMode": "Push", "proxyURL": "http://hub:" + password + "@proxy.invalid",
			"proxyHeader": map[string]any{"Proxy-Authorization": proxyHeader}},
	}}
	if _, err := d.Resource(clusterv1alpha1.GroupVersion.WithResource("clusters")).Create(t.Context(), cluster,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// readsSecrets returns an error for what a hub cannot read of the objects that keepSecrets wrote.
func readsSecrets(ctx context.Context, h *Hub) error {
	client, err := kubernetes.NewForConfig(h.Config())
	if err != nil {
		return err
	}
	s, err := client.CoreV1().Secrets("default").Get(ctx, "shop", metav1.GetOptions{})
	if err != nil || string(s.Data["password"]) != password {
		return fmt.Errorf("the Secret is %v, %w", s, err)
	}
	d, err := dynamic.NewForConfig(h.Config())
	if err != nil {
		return err
	}
	if _, err := d.Resource(workv1alpha1.Resource("works").WithVersion("v1alpha1")).Namespace("default").Get(ctx, "w",
		metav1.GetOptions{}); err != nil {
		return err
	}
	_, err = d.Resource(clusterv1alpha1.GroupVersion.WithResource("clusters")).Get(ctx, "m1", metav1.GetOptions{})
	return err
}

func encryptionStatus(t *testing.T, h *Hub) EncryptionStatus {
	t.Helper()
	client, err := kubernetes.NewForConfig(h.Config())
	if err != nil {
		t.Fatal(err)
	}
	data, err := client.RESTClient().Get().AbsPath(EncryptionPath).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var s EncryptionStatus
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// rotateKey has the hub rotate, and returns when it has.
func rotateKey(t *testing.T, h *Hub) {
	t.Helper()
	before := encryptionStatus(t, h)
	client, err := kubernetes.NewForConfig(h.Config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.RESTClient().Post().AbsPath(EncryptionPath).DoRaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "a new key alone", func() string {
		s := encryptionStatus(t, h)
		if s.Rotating || s.Rewriting || len(s.Keys) != 1 || s.Keys[0].Name == before.Keys[0].Name || s.Stale+
			s.Unreadable > 0 {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
}

func TestSecretsAreEncryptedAtRest(t *testing.T) {
	h := useSharedHub(t)
	keepSecrets(t, h.Hub)
	if files := found(t, h.config.DataDir, password, memberToken, proxyHeader); len(files) > 0 {
		t.Errorf("in plain: %v", files)
	}
	// The search finds what is not secret.
	if files := found(t, filepath.Join(h.config.DataDir, "etcd"), "clusters.cluster.karmada.io"); len(files) < 2 {
		t.Errorf("the search finds what is kept in plain in %v, want the database and the log", files)
	}
	if err := readsSecrets(t.Context(), h.Hub); err != nil {
		t.Error(err)
	}
	if s := encryptionStatus(t, h.Hub); s.By != "hub" || len(s.Keys) != 1 || s.Stale > 0 || s.Values < 3 {
		t.Errorf("status %+v", s)
	}
}

func TestNoFileOfTheStoreHasASecretInPlain(t *testing.T) {
	kit.Long(t)
	c := testConfig(t)
	h, _ := start(t, c, Parts{})
	keepSecrets(t, h)
	check := func(when string) {
		t.Helper()
		if files := found(t, c.DataDir, password, memberToken, proxyHeader); len(files) > 0 {
			t.Errorf("%s: %v", when, files)
		}
		if err := readsSecrets(t.Context(), h); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	check("as written")
	master := MasterKeyFile(filepath.Join(c.DataDir, "pki"))
	info, err := os.Stat(master)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the master key: %v, %v", info, err)
	}

	rotateKey(t, h)
	check("after a rotation")
	h.Stop()
	check = func(when string) {
		t.Helper()
		if files := found(t, c.DataDir, password, memberToken, proxyHeader); len(files) > 0 {
			t.Errorf("%s: %v", when, files)
		}
	}
	check("stopped")
	h, _ = start(t, c, Parts{})
	if err := readsSecrets(t.Context(), h); err != nil {
		t.Errorf("after a restart: %v", err)
	}

	t.Run("only who may do anything rotates, or asks", func(t *testing.T) {
		_, config := adminClient(t, AdminKubeconfig(c.DataDir))
		admin := kubernetes.NewForConfigOrDie(config)
		if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(),
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "eve"},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "eve"}}},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		eve := rest.CopyConfig(config)
		eve.Impersonate = rest.ImpersonationConfig{UserName: "eve"}
		client := kubernetes.NewForConfigOrDie(eve)
		if _, err := client.RESTClient().Post().AbsPath(EncryptionPath).DoRaw(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("eve rotates: %v", err)
		}
		if _, err := client.RESTClient().Get().AbsPath(EncryptionPath).DoRaw(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("eve asks: %v", err)
		}
	})

	// Without the key, or with the key of another hub, the error names the missing key, and no new key is created.
	h.Stop()
	key, err := os.ReadFile(master)
	if err != nil {
		t.Fatal(err)
	}
	for what, prepare := range map[string]func() error{
		"is missing: restore the file": func() error { return os.Remove(master) },
		"encryption.key does not match the store": func() error {
			return errors.Join(os.RemoveAll(master), keyring.EnsureMaster(master)) // the one of another hub
		},
		"is damaged: it is not 32 bytes": func() error { return os.WriteFile(master, []byte("half a k"), 0o600) },
	} {
		if err := prepare(); err != nil {
			t.Fatal(err)
		}
		broken, err := Start(t.Context(), c, Parts{}, io.Discard)
		if err == nil {
			broken.Stop()
			t.Fatalf("a hub whose key %s starts", what)
		}
		if !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), master) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("want %q of %s, got %v", what, master, err)
		}
	}
	if err := os.WriteFile(master, key, 0o600); err != nil {
		t.Fatal(err)
	}
	h, _ = start(t, c, Parts{})
	if err := readsSecrets(t.Context(), h); err != nil {
		t.Errorf("with its key again: %v", err)
	}
}

// A store from before, or one that was kept in plain for a while, is rewritten, and its database forgets what was
// there.
func TestPlainSecretsAreEncryptedLater(t *testing.T) {
	kit.Long(t)
	c := testConfig(t)
	c.Encryption.Enabled = false
	h, _ := start(t, c, Parts{})
	keepSecrets(t, h)
	database := filepath.Join(c.DataDir, "etcd", "data", "member", "snap")
	kit.Eventually(t, "plain values in the database", func() string { // which is written in batches
		if len(found(t, database, password)) == 0 {
			return "none"
		}
		return ""
	})
	h.Stop()

	c.Encryption.Enabled = true
	h, _ = start(t, c, Parts{})
	kit.Eventually(t, "everything encrypted, and the database rid of what was plain", func() string {
		if s := encryptionStatus(t, h); s.Stale > 0 || s.Values < 3 || s.Rewriting || s.Failed != "" || s.By != "hub" {
			return fmt.Sprintf("%+v", s)
		}
		return strings.Join(found(t, database, password, memberToken, proxyHeader), ", ")
	})
	if err := readsSecrets(t.Context(), h); err != nil {
		t.Error(err)
	}
	h.Stop()

	// The way back, for who goes back to an older hub.
	c.Encryption.Enabled = false
	h, _ = start(t, c, Parts{})
	kit.Eventually(t, "everything in plain again", func() string {
		if s := encryptionStatus(t, h); s.Stale > 0 || s.Rewriting || s.By != "nothing" {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	if err := readsSecrets(t.Context(), h); err != nil {
		t.Error(err)
	}
}

// A version of the hub that takes more for secret than the one before encrypts what that one kept in plain.
func TestNewSecretKindsAreEncryptedAfterAnUpgrade(t *testing.T) {
	kit.Long(t)
	all := secret
	t.Cleanup(func() { secret = all })
	secret = slices.DeleteFunc(slices.Clone(all), func(r schema.GroupResource) bool { return r.Resource == "clusters" })
	c := testConfig(t)
	h, _ := start(t, c, Parts{})
	keepSecrets(t, h)
	database := filepath.Join(c.DataDir, "etcd", "data", "member", "snap")
	kit.Eventually(t, "the plain Cluster in the database", func() string {
		if s := encryptionStatus(t, h); s.Rewriting || len(found(t, database, proxyHeader)) == 0 {
			return fmt.Sprintf("none, %+v", s)
		}
		return ""
	})
	h.Stop()

	secret = all
	h, _ = start(t, c, Parts{})
	kit.Eventually(t, "everything encrypted, and the database rid of what was plain", func() string {
		if s := encryptionStatus(t, h); s.Stale > 0 || s.Rewriting || s.Failed != "" {
			return fmt.Sprintf("%+v", s)
		}
		return strings.Join(found(t, database, proxyHeader, password), ", ")
	})
	if err := readsSecrets(t.Context(), h); err != nil {
		t.Error(err)
	}
}

// A provider of the user's takes over from the hub's keys, and gives back to them.
func TestAProviderConfigurationTakesOver(t *testing.T) {
	kit.Long(t)
	c := testConfig(t)
	h, _ := start(t, c, Parts{})
	keepSecrets(t, h)
	h.Stop()
	c.Encryption.ProviderConfig = filepath.Join(t.TempDir(), "encryption.yaml")
	write(t, c.Encryption.ProviderConfig, fmt.Sprintf(`
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [%s]
  providers: [{secretbox: {keys: [{name: mine, secret: %s}]}}, {identity: {}}]
`, secretNames(), base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32))))
	h, _ = start(t, c, Parts{})
	kit.Eventually(t, "everything under the provider", func() string {
		if s := encryptionStatus(t, h); s.Stale > 0 || s.Values < 3 || s.Rewriting || s.By != "providers" {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	if err := readsSecrets(t.Context(), h); err != nil {
		t.Error(err)
	}
	client, err := h.storeClient()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if got, err := client.Get(t.Context(), "/registry/secrets/default/shop"); err != nil || len(got.Kvs) != 1 ||
		!bytes.HasPrefix(got.Kvs[0].Value, []byte("k8s:enc:secretbox:v1:mine:")) {
		t.Errorf("the Secret is kept as %v, %v", got, err)
	}
	if got, err := client.Get(t.Context(), "/registry/work.karmada.io/works/default/w"); err != nil || len(got.Kvs) != 1 ||
		!bytes.HasPrefix(got.Kvs[0].Value, []byte("k8s:enc:secretbox:v1:mine:")) {
		t.Errorf("the Work is kept as %v, %v", got, err)
	}
	// which a 409 to a POST is to clients
	if _, err := kubernetes.NewForConfigOrDie(h.Config()).RESTClient().Post().AbsPath(EncryptionPath).DoRaw(
		t.Context()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a rotation of keys that are not the hub's gives %v", err)
	}
}

// Two hubs on one store: a rotation that one begins both carry out, and neither ever meets a value that it cannot read.
func TestHubsOnOneStoreRotateTogether(t *testing.T) {
	kit.Long(t)
	store, err := etcd.Start(t.Context(), etcd.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	// API servers of one process share what is global to it, and take turns; so the second hub is its ring alone.
	a := testConfig(t)
	a.Etcd.Servers = []string{store.Endpoint}
	h, _ := start(t, a, Parts{})
	keepSecrets(t, h)
	other := &Hub{config: a, encryption: nil}
	other.config.DataDir = t.TempDir()
	if err := os.CopyFS(filepath.Join(other.config.DataDir, "pki"),
		os.DirFS(filepath.Join(a.DataDir, "pki"))); err != nil {
		t.Fatal(err)
	}
	stop, err := other.startEncryption(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, r := range secret {
		other.encryption.transform(r, nil)
	}
	stranger := &Hub{config: a}
	stranger.config.DataDir = t.TempDir()
	if _, err := stranger.startEncryption(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "copy it from another hub that uses this store") {
		t.Errorf("a hub without a copy of the pki folder gets %v", err)
	}
	if _, err := os.Stat(MasterKeyFile(filepath.Join(stranger.config.DataDir, "pki"))); err == nil {
		t.Error("and made a key of its own")
	}

	ctx, cancel := context.WithCancel(t.Context())
	reading := make(chan error, 1)
	// both read and write all the while, fewer Secrets than one page, so that a slow machine reads no more than a fast one
	go func() {
		defer close(reading)
		secrets := kubernetes.NewForConfigOrDie(h.Config()).CoreV1().Secrets("default")
		for i := 0; ctx.Err() == nil; i++ {
			s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("s%d", i%50)},
				Data: map[string][]byte{"password": fmt.Append(nil, password, i)}}
			_, err := secrets.Update(ctx, s, metav1.UpdateOptions{})
			if apierrors.IsNotFound(err) {
				_, err = secrets.Create(ctx, s, metav1.CreateOptions{})
			}
			if err != nil && ctx.Err() == nil {
				reading <- err
				return
			}
			if n, err := other.encryption.ring.Look(ctx, other.encryption.targets()); ctx.Err() == nil &&
				(err != nil || n.Unreadable > 0) {
				reading <- fmt.Errorf("the other hub finds %+v, %v", n, err)
				return
			}
		}
	}()
	was := h.encryption.ring.Keys()[0].Name
	if err := other.beginRotation(t.Context()); err != nil { // asked of the one that does not run the loops
		t.Fatal(err)
	}
	kit.Eventually(t, "one new key at both", func() string {
		for _, ring := range [][]string{keyNames(h), keyNames(other)} {
			if len(ring) != 1 || ring[0] == was {
				e := h.encryption
				e.mu.Lock()
				defer e.mu.Unlock()
				return fmt.Sprintf("%v and %v, it was %s; step %q, failure %v", keyNames(h), keyNames(other), was, e.step, e.failed)
			}
		}
		return ""
	})
	cancel()
	if err := <-reading; err != nil {
		t.Error(err)
	}
	if err := readsSecrets(t.Context(), h); err != nil {
		t.Error(err)
	}
	if n, err := other.encryption.ring.Look(t.Context(), other.encryption.targets()); err != nil || n.Stale+
		n.Unreadable > 0 || n.Total < 3 {
		t.Errorf("the other hub finds %+v, %v", n, err)
	}
}

func keyNames(h *Hub) []string {
	var all []string
	for _, k := range h.encryption.ring.Keys() {
		all = append(all, k.Name)
	}
	return all
}
