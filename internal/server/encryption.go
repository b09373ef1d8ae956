package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
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
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/server/embed/etcd"
	"github.com/argosy-io/argosy/internal/server/keyring"
)

// EncryptionConfig is how what is secret is kept in the store.
type EncryptionConfig struct {
	// Enabled encrypts it with keys of the hub's.
	Enabled bool `json:"enabled"`
	// ProviderConfig is a file with an EncryptionConfiguration of Kubernetes, which then says alone what is encrypted and
	// how: with a KMS, say. What the hub encrypted before is still read.
	ProviderConfig string `json:"providerConfig,omitempty"`
}

func (c *EncryptionConfig) bindFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&c.Enabled, "encrypt-secrets", c.Enabled,
		"encrypt Secrets, and the objects that carry them to members, at rest; if false, encrypted values are rewritten unencrypted")
	fs.StringVar(&c.ProviderConfig, "encryption-provider-config", c.ProviderConfig,
		"file with an EncryptionConfiguration of Kubernetes, such as for KMS v2, instead of the hub's own keys")
}

// checkFile says what is wrong with the provider configuration that the API server would not say.
func (c *EncryptionConfig) checkFile() error {
	if c.ProviderConfig == "" {
		return nil
	}
	data, err := os.ReadFile(c.ProviderConfig)
	if err != nil {
		return fmt.Errorf("%s cannot be read (%w): correct --encryption-provider-config", c.ProviderConfig, reason(err))
	}
	var config struct {
		Kind      string `json:"kind"`
		Resources []struct {
			Resources []string `json:"resources"`
		} `json:"resources"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("%s is not YAML (%s): correct --encryption-provider-config", c.ProviderConfig, plain(err))
	}
	if config.Kind != "EncryptionConfiguration" {
		return fmt.Errorf("%s is of kind %q, not EncryptionConfiguration: correct --encryption-provider-config",
			c.ProviderConfig, config.Kind)
	}
	for _, secret := range secret {
		covered := false
		for _, entry := range config.Resources {
			for _, name := range entry.Resources {
				covered = covered || name == secret.String() || name == "*.*" || name == "*."+secret.Group
			}
		}
		if !covered {
			return fmt.Errorf("%s has no provider for %s, so they would be stored unencrypted: add them (all resources that hold secrets are %s), or *.*", c.ProviderConfig, secret, secretNames())
		}
	}
	return nil
}

// secret are the resources that hold what is secret: Secrets, what carries them to members or into namespaces, what
// users write into both and revisions of that, and Clusters, whose proxies have passwords in URLs and headers.
var secret = []schema.GroupResource{
	{Resource: "secrets"},
	{Group: "work.karmada.io", Resource: "works"},
	{Group: "work.open-cluster-management.io", Resource: "manifestworks"},
	{Group: "release.argosy.io", Resource: "enclosedmanifests"},
	{Group: "release.argosy.io", Resource: "releaserevisions"},
	{Group: "policy.karmada.io", Resource: "overridepolicies"},
	{Group: "policy.karmada.io", Resource: "clusteroverridepolicies"},
	{Group: "cluster.karmada.io", Resource: "clusters"},
	{Group: "apps.kruise.io", Resource: "resourcedistributions"},
}

// secretKinds are the custom ones of secret.
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

// storedAt is where the API server keeps a resource: Kubernetes' own by their names, custom ones below their group.
func storedAt(r schema.GroupResource) string {
	if r.Group == "" {
		return "/registry/" + r.Resource + "/"
	}
	return "/registry/" + r.Group + "/" + r.Resource + "/"
}

// MasterKeyFile is the key, in a pki folder, that the keys in the store are sealed with.
func MasterKeyFile(pkiDir string) string { return filepath.Join(pkiDir, "encryption.key") }

// encryption is how the store of a running hub is encrypted.
type encryption struct {
	ring *keyring.Ring
	// own is that a provider configuration of the user's decides.
	own bool

	mu sync.Mutex
	// transformers by resource, as the API server asked for them.
	transformers map[schema.GroupResource]value.Transformer
	// step is what a change under way does; failed is what the last one ended with.
	step   string
	failed error
}

// startEncryption opens the keys of what is secret, before anything is read.
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

// storeClient reaches the store beside the API server; the caller closes it.
func (h *Hub) storeClient() (*clientv3.Client, error) {
	if h.etcd != nil { // its client without a connection cannot defragment
		return etcd.ConnectAll([]string{h.etcd.Endpoint}, "", "", "")
	}
	e := h.config.Etcd
	return etcd.ConnectAll(e.Servers, e.CAFile, e.CertFile, e.KeyFile)
}

// transform is how the API server is to keep a resource that it would keep by own.
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

// targets are what is encrypted.
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

func (e *encryption) say(step string, done int) {
	if done > 0 {
		step = fmt.Sprintf("%s (%d done)", step, done)
	}
	e.mu.Lock()
	e.step = step
	e.mu.Unlock()
}

// mode is the way in which the hub writes, which everything is rewritten for when it changes.
func (h *Hub) mode() string {
	switch {
	case h.encryption.own:
		return "providers"
	case !h.config.Encryption.Enabled:
		return "nothing"
	}
	return "hub"
}

// way is mode, and what it is for: a hub that finds more resources secret than the one before rewrites those, too.
func (h *Hub) way() string { return h.mode() + " " + secretNames() }

// retryEncryption is how long after each failure in a row what holds secrets is rewritten again: another hub that
// changed the keys at the same moment costs a second, a store that is away no more than a look a minute.
var retryEncryption = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 10, Cap: time.Minute}

// runEncryption rewrites, on one replica at a time, what is not kept as it would be written now, and carries out
// rotations that were begun on any.
func (h *Hub) runEncryption(ctx context.Context) error {
	e, ready, retry := h.encryption, time.Time{}, retryEncryption
	if e == nil { // a part of a hub, in a test
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
			err = e.ring.Rotate(ctx, e.targets(), e.say)
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
		case <-time.After(time.Second): // a look at memory
		case <-ctx.Done():
			return nil
		}
	}
}

// rewriteSecrets has everything kept as it would be written now, and the store forget what was there before.
func (h *Hub) rewriteSecrets(ctx context.Context) error {
	e := h.encryption
	rewritten := 0
	if err := e.ring.Migrate(ctx, e.targets(), func(done int) { rewritten = done; e.say("rewriting", done) }); err != nil {
		return err
	}
	if rewritten == 0 || h.mode() == "nothing" {
		return nil
	}
	return e.ring.Forget(ctx)
}

// EncryptionPath answers GET with an EncryptionStatus. POST begins a rotation of the key, with ?master of the master
// key too, or with ?rewrite that everything is rewritten that is not kept as it would be written now.
const EncryptionPath = "/argosy/encryption"

// EncryptionStatus is how the store is encrypted.
type EncryptionStatus struct {
	// By is "hub", "providers" for a configuration of the user's, or "nothing".
	By        string        `json:"by"`
	Keys      []keyring.Key `json:"keys"`
	Resources []string      `json:"resources"`
	// Rotating and Rewriting are changes that began and have not ended, on whichever replica.
	Rotating  bool `json:"rotating,omitempty"`
	Rewriting bool `json:"rewriting,omitempty"`
	// Values there are, of which Stale are not encrypted as they would be if they were written now: in plain, or with an
	// older key.
	Values     int `json:"values"`
	Stale      int `json:"stale"`
	Unreadable int `json:"unreadable"`
	// Behind is how many hubs on the store have not the keys as this one has them.
	Behind int `json:"behind,omitempty"`
	// OldMasterKeys are files of the pki folder with master keys of before, for backups of before.
	OldMasterKeys []string `json:"oldMasterKeys,omitempty"`
	// Step is what a change under way does; Failed is what the last one ended with.
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
		s := EncryptionStatus{Behind: behind, OldMasterKeys: keyring.OldMasterKeys(MasterKeyFile(h.config.pkiDir())),
			By: h.mode(), Keys: e.ring.Keys(), Rotating: e.ring.Rotating(), Rewriting: !e.ring.Rewritten(), Values: count.Total,
			Stale: count.Stale, Unreadable: count.Unreadable}
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
		switch query := r.URL.Query(); {
		case query.Has("rewrite"):
			err = e.ring.Again(r.Context())
		default:
			err = h.beginRotation(r.Context(), query.Has("master"))
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

// beginRotation adds a key, and a new master key to seal it if asked, which any replica may do. The one that runs the
// loops sees it, and goes on.
func (h *Hub) beginRotation(ctx context.Context, master bool) error {
	switch {
	case h.encryption.own:
		return errors.New("the keys are managed by --encryption-provider-config: add a new key there as the first, then run `argosy secrets rewrite`")
	case !h.config.Encryption.Enabled:
		return errors.New("encryption is disabled (--encrypt-secrets=false): restart the hub without that flag first")
	}
	if master {
		// The new key would be in this folder alone, and the next import brings the old one.
		if from, err := os.ReadFile(importedFile(h.config.pkiDir())); err == nil {
			return fmt.Errorf("the hub's keys are imported from %s, which would not have the new master key: rotate the key of the store alone, without --master", strings.TrimSpace(string(from)))
		}
		return h.encryption.ring.BeginMaster(ctx)
	}
	return h.encryption.ring.Begin(ctx)
}
