package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// keysToImport returns a folder of keys as `argosy certificates create` makes one.
func keysToImport(t *testing.T) string {
	t.Helper()
	c := DefaultConfig()
	c.PKIDir = filepath.Join(t.TempDir(), "pki")
	dir, err := CreateKeys(c, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func readKey(t *testing.T, pkiDir string) string {
	t.Helper()
	key, err := os.ReadFile(MasterKeyFile(pkiDir))
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}

func TestAnImportNeverLosesAMasterKey(t *testing.T) {
	const other = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
	for story, tc := range map[string]struct {
		external bool
		// have and source change the two keys, which are the same; empty removes one.
		have, source func(key string) string
		refused      string
		after        func(key string) string
	}{
		"the source lacks it, and the hub has a store of its own": {source: func(string) string { return "" },
			after: func(key string) string { return key }},
		"the source lacks it, and hubs share an etcd": {external: true, source: func(string) string {
			return ""
		}, refused: "lacks encryption.key", after: func(key string) string { return key }},
		"neither has one, and hubs share an etcd": {external: true, have: func(string) string {
			return ""
		}, source: func(string) string { return "" }, refused: "lacks encryption.key", after: func(string) string {
			return ""
		}},
		"a rotation added a key here that the source lacks": {have: func(key string) string {
			return other + key
		}, refused: "lacks, and what it encrypted", after: func(key string) string { return other + key }},
		"the source has another key": {source: func(string) string { return other },
			refused: "lacks, and what it encrypted", after: func(key string) string { return key }},
		"the source has a further key": {source: func(key string) string {
			return other + key
		}, after: func(key string) string { return other + key }},
		"there is none here, as in a new pod, and the source brings one": {external: true, have: func(string) string {
			return ""
		}, after: func(key string) string { return key }},
	} {
		t.Run(story, func(t *testing.T) {
			from := keysToImport(t)
			key := readKey(t, from)
			c := testConfig(t)
			if tc.external {
				c.Etcd.Servers = []string{"https://etcd.example.com:2379"}
			}
			if _, err := ImportKeys(c, from); err != nil {
				t.Fatal(err)
			}
			put := func(dir string, text func(string) string) {
				t.Helper()
				if text == nil {
					return
				}
				err := os.Remove(MasterKeyFile(dir))
				if text := text(key); err == nil && text != "" {
					err = os.WriteFile(MasterKeyFile(dir), []byte(text), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			put(c.pkiDir(), tc.have)
			put(from, tc.source)
			_, err := ImportKeys(c, from)
			if tc.refused == "" && err != nil || tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)) {
				t.Errorf("the import says %v, want %q", err, tc.refused)
			}
			after, _ := os.ReadFile(MasterKeyFile(c.pkiDir()))
			if string(after) != tc.after(key) {
				t.Errorf("the master key is %q, want %q", after, tc.after(key))
			}
		})
	}
}

func TestImportForgetsAuthoritiesMissingAtTheSource(t *testing.T) {
	from, c := keysToImport(t), testConfig(t)
	old := filepath.Join(from, "ca-old.crt")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ImportKeys(c, from); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(old); err != nil {
		t.Fatal(err)
	}
	if changed, err := ImportKeys(c, from); err != nil || !slices.Equal(changed, []string{"ca-old.crt"}) {
		t.Errorf("%v changed (%v)", changed, err)
	}
}
