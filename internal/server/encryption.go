package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"

	"github.com/argosy-io/argosy/internal/server/embed/etcd"
	"github.com/argosy-io/argosy/internal/server/keyring"
)

// EncryptionConfig configures encryption at rest.
type EncryptionConfig struct {
	// Enabled encrypts it with keys of the hub's.
	Enabled bool `json:"enabled"`
	// ProviderConfig is a file with an EncryptionConfiguration of Kubernetes, for example for a KMS. It replaces the hub's
	// own encryption. What the hub encrypted before can still be read.
	ProviderConfig string `json:"providerConfig,omitempty"`
}

func (c *EncryptionConfig) bindFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&c.Enabled, "encrypt-secrets", c.Enabled,
		"encrypt Secrets, and the objects that carry them to members, at rest; if false, encrypted values are rewritten unencrypted")
	fs.StringVar(&c.ProviderConfig, "encryption-provider-config", c.ProviderConfig,
		"file with an EncryptionConfiguration of Kubernetes, such as for KMS v2, instead of the hub's own keys")
}

// checkFile returns errors in the provider configuration that the API server does not report.
func (c *EncryptionConfig) checkFile() error {
	if c.ProviderConfig == "" {
		return nil
	}
	var config struct {
		Resources []struct {
			Resources []string `json:"resources"`
		} `json:"resources"`
	}
	if err := readKind(c.ProviderConfig, "EncryptionConfiguration", "--encryption-provider-config", &config); err != nil {
		return err
	}
	var covered []string
	for _, entry := range config.Resources {
		covered = append(covered, entry.Resources...)
	}
	for _, secret := range secret {
		if !slices.ContainsFunc(covered, func(name string) bool {
			return name == secret.String() || name == "*.*" || name == "*."+secret.Group
		}) {
			return fmt.Errorf("%s has no provider for %s, so they would be stored unencrypted: add them (all resources that hold secrets are %s), or *.*", c.ProviderConfig, secret, secretNames())
		}
	}
	return nil
}

// secret are the resources that are encrypted: Secrets, objects that carry Secrets to members or into namespaces,
// objects into which users may write secrets and their revisions, and Clusters, because proxy URLs and headers may
// contain passwords.
var secret = []schema.GroupResource{
	{Resource: "secrets"},
	{Group: "work.karmada.io", Resource: "works"},
	{Group: "work.open-cluster-management.io", Resource: "manifestworks"},
	{Group: "work.open-cluster-management.io", Resource: "manifestworkreplicasets"},
	{Group: "addon.open-cluster-management.io", Resource: "addontemplates"},
	{Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs"},
	{Group: "release.argosy.io", Resource: "enclosedmanifests"},
	{Group: "release.argosy.io", Resource: "releaserevisions"},
	{Group: "policy.karmada.io", Resource: "overridepolicies"},
	{Group: "policy.karmada.io", Resource: "clusteroverridepolicies"},
	{Group: "cluster.karmada.io", Resource: "clusters"},
	{Group: "apps.kruise.io", Resource: "resourcedistributions"},
}

// secretKinds returns the custom ones of secret.
func secretKinds() []schema.GroupResource {
	return slices.DeleteFunc(slices.Clone(secret), func(r schema.GroupResource) bool { return r.Group == "" })
}

func secretNames() string {
	names := make([]string, len(secret))
	for i, r := range secret {
		names[i] = r.String()
	}
	return strings.Join(names, ", ")
}

// storedAt returns the etcd prefix of a resource. Kubernetes' own resources are stored by name, custom resources below
// their group.
func storedAt(r schema.GroupResource) string {
	if r.Group == "" {
		return "/registry/" + r.Resource + "/"
	}
	return "/registry/" + r.Group + "/" + r.Resource + "/"
}

// MasterKeyFile returns the key, in a pki folder, that the keys in the store are sealed with.
func MasterKeyFile(pkiDir string) string { return filepath.Join(pkiDir, "encryption.key") }

// encryption is the encryption of the store of a running hub.
type encryption struct {
	ring *keyring.Ring
	// own is true if the user configured encryption providers.
	own bool

	mu sync.Mutex
	// transformers are the transformers that the API server got, by resource.
	transformers map[schema.GroupResource]value.Transformer
	// step is the step of a rotation that is in progress; failed is the error of the last one.
	step   string
	failed error
}

// startEncryption loads the keys before the API server reads anything.
func (h *Hub) startEncryption(ctx context.Context) (func(), error) {
	client, err := h.storeClient()
	if err != nil {
		return nil, err
	}
	prefixes := make([]string, len(secret))
	for i, r := range secret {
		prefixes[i] = storedAt(r)
	}
	ring, err := keyring.Open(ctx, keyring.Options{Client: client, MasterFile: MasterKeyFile(h.config.pkiDir()),
		Prefixes: prefixes, Plain: !h.config.Encryption.Enabled})
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	h.encryption = &encryption{ring: ring, own: h.config.Encryption.ProviderConfig != "",
		transformers: map[schema.GroupResource]value.Transformer{}}
	following, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	if h.elects() {
		ended.Go(func() { ring.Follow(following) })
	}
	return func() {
		stop()
		ended.Wait()
		_ = client.Close()
	}, nil
}

// storeClient connects to etcd directly; the caller closes the client.
func (h *Hub) storeClient() (*clientv3.Client, error) {
	if h.etcd != nil { // the client without a connection cannot defragment
		return etcd.ConnectAll([]string{h.etcd.Endpoint}, "", "", "")
	}
	e := h.config.Etcd
	return etcd.ConnectAll(e.Servers, e.CAFile, e.CertFile, e.KeyFile)
}

// transform returns the transformer of a resource, which replaces the API server's own.
func (e *encryption) transform(r schema.GroupResource, own value.Transformer) value.Transformer {
	if !slices.Contains(secret, r) {
		return own
	}
	t := value.Transformer(e.ring)
	if e.own {
		t = e.ring.Before(own)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.transformers[r] = t
	return t
}

// targets returns the encrypted parts of the store.
func (e *encryption) targets() []keyring.Target {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []keyring.Target
	for _, r := range secret {
		if t := e.transformers[r]; t != nil {
			all = append(all, keyring.Target{Prefix: storedAt(r), Transformer: t})
		}
	}
	return all
}

func (e *encryption) setStep(step string, done int) {
	if done > 0 {
		step = fmt.Sprintf("%s (%d done)", step, done)
	}
	e.mu.Lock()
	e.step = step
	e.mu.Unlock()
}

// mode returns the way in which the hub writes, which everything is rewritten for when it changes.
func (h *Hub) mode() string {
	switch {
	case h.encryption.own:
		return "providers"
	case !h.config.Encryption.Enabled:
		return "nothing"
	}
	return "hub"
}

// way returns the mode and the encrypted resources. If a new version encrypts more resources, the value differs, and
// all are rewritten.
func (h *Hub) way() string { return h.mode() + " " + secretNames() }

// retryEncryption is the backoff after failed rewrites. If another hub changed the keys at the same moment, the retry
// comes after a second; if the store is unavailable, at most once a minute.
var retryEncryption = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 10, Cap: time.Minute}

// runEncryption rewrites values that are not encrypted with the current settings, and completes rotations that any
// replica began. It runs on the leader.
func (h *Hub) runEncryption(ctx context.Context) error {
	e, ready, retry := h.encryption, time.Time{}, retryEncryption
	if e == nil { // in a test of a part of the hub
		<-ctx.Done()
		return nil
	}
	for {
		var what string
		var err error
		begin := time.Now()
		switch {
		case begin.Before(ready):
		case e.ring.Rotating():
			what = "rotate the encryption key"
			err = e.ring.Rotate(ctx, e.targets(), e.setStep)
		default:
			if err = e.ring.Write(ctx, h.way()); err == nil && !e.ring.Rewritten() {
				what = "rewrite encrypted values"
				err = h.rewriteSecrets(ctx)
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			after := retry.Step()
			ready = time.Now().Add(after)
			klog.ErrorS(err, "change the encryption at rest", "retry", after)
		case what != "":
			retry = retryEncryption
			klog.InfoS(what, "after", time.Since(begin).Round(time.Millisecond))
		}
		if what != "" || err != nil {
			e.mu.Lock()
			e.step, e.failed = "", err
			e.mu.Unlock()
		}
		select {
		case <-time.After(time.Second): // a check reads only memory
		case <-ctx.Done():
			return nil
		}
	}
}

// rewriteSecrets rewrites all values with the current settings, and compacts the old revisions.
func (h *Hub) rewriteSecrets(ctx context.Context) error {
	e := h.encryption
	rewritten := 0
	if err := e.ring.Migrate(ctx, e.targets(), func(done int) {
		rewritten = done
		e.setStep("rewriting",
			done)
	}); err != nil {
		return err
	}
	if rewritten == 0 || h.mode() == "nothing" {
		return nil
	}
	return e.ring.Forget(ctx)
}

// EncryptionPath is the URL path of the encryption. GET returns an EncryptionStatus. POST begins a rotation of the key.
// With ?rewrite it rewrites all values that are not encrypted with the current settings.
const EncryptionPath = "/argosy/encryption"

// EncryptionStatus is the state of the encryption of the store.
type EncryptionStatus struct {
	// By is "hub", "providers" for a configuration of the user's, or "nothing".
	By        string        `json:"by"`
	Keys      []keyring.Key `json:"keys"`
	Resources []string      `json:"resources"`
	// Rotating and Rewriting: a change is in progress, on any replica.
	Rotating  bool `json:"rotating,omitempty"`
	Rewriting bool `json:"rewriting,omitempty"`
	// Values is the number of values. Stale of them are not encrypted with the current settings: in plain text, or with an
	// older key.
	Values     int `json:"values"`
	Stale      int `json:"stale"`
	Unreadable int `json:"unreadable"`
	// Behind is the number of hubs on the store that have not loaded the current keys.
	Behind int `json:"behind,omitempty"`
	// Step is the step of a rotation that is in progress; Failed is the error of the last one.
	Step   string `json:"step,omitempty"`
	Failed string `json:"failed,omitempty"`
}

func (h *Hub) serveEncryption(w http.ResponseWriter, r *http.Request) {
	e := h.encryption
	switch r.Method {
	case http.MethodGet:
		count, err := e.ring.Look(r.Context(), e.targets())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		behind, err := e.ring.Behind(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		s := EncryptionStatus{Behind: behind, By: h.mode(), Keys: e.ring.Keys(), Rotating: e.ring.Rotating(),
			Rewriting: !e.ring.Rewritten(), Values: count.Total, Stale: count.Stale, Unreadable: count.Unreadable}
		for _, r := range secret {
			s.Resources = append(s.Resources, r.String())
		}
		e.mu.Lock()
		s.Step = e.step
		if e.failed != nil {
			s.Failed = e.failed.Error()
		}
		e.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s)
	case http.MethodPost:
		var err error
		if r.URL.Query().Has("rewrite") {
			err = e.ring.RewriteAll(r.Context())
		} else {
			err = h.beginRotation(r.Context())
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	default:
		http.Error(w, "GET returns the encryption status of the store, POST starts a key rotation",
			http.StatusMethodNotAllowed)
	}
}

// beginRotation adds a key. Any replica may do it. The leader then completes the rotation.
func (h *Hub) beginRotation(ctx context.Context) error {
	switch {
	case h.encryption.own:
		return errors.New("the keys are managed by --encryption-provider-config: add a new key there as the first, then run `argosy secrets rewrite`")
	case !h.config.Encryption.Enabled:
		return errors.New("encryption is disabled (--encrypt-secrets=false): restart the hub without that flag first")
	}
	return h.encryption.ring.Begin(ctx)
}
