package server

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/kms/pkg/service"

	"github.com/argosy-io/argosy/test/kit"
)

// keyService is a key management service as a plugin of KMS v2 brings it to an API server: its key never leaves it.
type keyService struct{ aead cipher.AEAD }

func newKeyService(t *testing.T) *keyService {
	t.Helper()
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	return &keyService{aead: aead}
}

func (s *keyService) Encrypt(_ context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	return &service.EncryptResponse{Ciphertext: s.aead.Seal(nil, nil, data, nil), KeyID: "key-1"}, nil
}

func (s *keyService) Decrypt(_ context.Context, _ string, req *service.DecryptRequest) ([]byte, error) {
	if req.KeyID != "key-1" {
		return nil, errors.New("no such key")
	}
	return s.aead.Open(nil, nil, req.Ciphertext, nil)
}

func (s *keyService) Status(context.Context) (*service.StatusResponse, error) {
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: "key-1"}, nil
}

// serve has the service answer on socket until stop is called.
func (s *keyService) serve(t *testing.T, socket string) (stop func()) {
	t.Helper()
	server := service.NewGRPCService(socket, 5*time.Second, s)
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	return func() {
		server.Close()
		if err := <-ended; err != nil {
			t.Errorf("the key service ended with %v", err)
		}
	}
}

// A key management service has the key: the store contains nothing that decrypts it. A hub whose service is unavailable
// reports that until the service is back.
func TestAKeyManagementServiceHasTheKey(t *testing.T) {
	kit.Long(t)
	dir, err := os.MkdirTemp("", "kms") // short, since a path of a socket is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "kms.sock")
	keys := newKeyService(t)
	stop := keys.serve(t, socket)
	c := testConfig(t)
	c.Encryption.ProviderConfig = filepath.Join(dir, "encryption.yaml")
	write(t, c.Encryption.ProviderConfig, fmt.Sprintf(`
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [%s]
  providers: [{kms: {apiVersion: v2, name: vault, endpoint: "unix://%s", timeout: 3s}}, {identity: {}}]
`, secretNames(), socket))
	h, _ := start(t, c, Parts{})
	keepSecrets(t, h)
	client, err := h.storeClient()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, key := range []string{"/registry/secrets/default/shop", "/registry/work.karmada.io/works/default/w",
		"/registry/cluster.karmada.io/clusters/m1"} {
		if got, err := client.Get(t.Context(), key); err != nil || len(got.Kvs) != 1 ||
			!bytes.HasPrefix(got.Kvs[0].Value, []byte("k8s:enc:kms:v2:vault:")) {
			t.Errorf("%s is kept as %v, %v", key, got, err)
		}
	}

	ready := func() (string, error) {
		body, err := kubernetes.NewForConfigOrDie(h.Config()).RESTClient().Get().AbsPath("/readyz").Param("verbose",
			"").DoRaw(t.Context())
		return string(body), err
	}
	stop()
	kit.Eventually(t, "a hub that says that its key service is away", func() string {
		if body, err := ready(); err == nil || !strings.Contains(body, "[-]kms-providers") {
			return fmt.Sprintf("%s, %v", body, err)
		}
		return ""
	})
	c.Port = h.config.Port
	h.Stop()
	// A start waits for the key service until its context ends.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		again, err := Start(ctx, c, Parts{}, io.Discard)
		if err == nil {
			again.Stop()
		}
		ended <- err
	}()
	kit.Eventually(t, "the starting hub reports its key service", func() string {
		_, config := adminClient(t, AdminKubeconfig(c.DataDir))
		body, err := kubernetes.NewForConfigOrDie(config).RESTClient().Get().AbsPath("/readyz").Param("verbose",
			"").DoRaw(t.Context())
		if err == nil || !strings.Contains(string(body), "[-]kms-providers") {
			return fmt.Sprintf("%s, %v", body, err)
		}
		return ""
	})
	cancel()
	if err = <-ended; err == nil {
		t.Fatal("a hub started that cannot read its Secrets")
	}
	if want := "the key management service configured in " + c.Encryption.ProviderConfig +
		" is not responding"; !strings.Contains(err.Error(), want) {
		t.Errorf("%q does not say %q", err, want)
	}

	stop = keys.serve(t, socket)
	defer stop()
	h, _ = start(t, c, Parts{})
	if err := readsSecrets(t.Context(), h); err != nil {
		t.Error(err)
	}
	if body, err := ready(); err != nil {
		t.Errorf("%s, %v", body, err)
	}
	h.Stop()
	if files := found(t, c.DataDir, password, memberToken); len(files) > 0 {
		t.Errorf("in plain: %v", files)
	}
}
