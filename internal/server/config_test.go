package server

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/argosy-io/argosy/internal/core/adjust/failover"
)

func TestNameListReportsOmittedAndTakenNames(t *testing.T) {
	for _, c := range []struct {
		list             []string
		openkruise, argo bool
	}{
		{[]string{"*"}, true, true},
		{[]string{"*", "-argo"}, true, false},
		{[]string{"-argo"}, true, false},
		{[]string{"-argo", "-openkruise"}, false, false},
		{[]string{"argo"}, false, true},
		{[]string{"openkruise", "-argo"}, true, false},
		{[]string{"-*"}, false, false},
		{[]string{"-*", "argo"}, false, true},
		{nil, false, false},
	} {
		config := &Config{WorkloadKinds: c.list}
		if openkruise, argo := config.defines("openkruise"), config.defines("argo"); openkruise != c.openkruise ||
			argo != c.argo {
			t.Errorf("%q: openkruise %v and argo %v, want %v and %v", c.list, openkruise, argo, c.openkruise, c.argo)
		}
	}
}

func TestMemberRequestLimitsAllowSeveralUsers(t *testing.T) {
	c := DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Fatalf("the defaults: %v", err)
	}
	for _, few := range []int{-1, 0, 99} {
		c.Members.ProxyRequests = few
		if err := c.Validate(); err == nil ||
			!strings.Contains(err.Error(), "give 100 or more with --member-proxy-requests") {
			t.Errorf("%d: %v", few, err)
		}
	}
}

func TestServingCertificateHasAddedNames(t *testing.T) {
	c := DefaultConfig()
	c.TLSSANs = []string{"argosy.example.com", "192.0.2.7", "localhost"}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	names := c.hosts()
	for _, want := range []string{"argosy.example.com", "192.0.2.7", "localhost", inClusterServerName} {
		if n := len(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name != want })); n != 1 {
			t.Errorf("%s is there %d times in %v", want, n, names)
		}
	}
	c.TLSSANs = []string{"https://argosy.example.com"}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--tls-san") {
		t.Errorf("a URL for a name: %v", err)
	}
}

func TestChangedSettingsRoundTripThroughAFile(t *testing.T) {
	c := DefaultConfig()
	text, err := c.Changes()
	if err != nil || strings.Count(text, "\n") != 3 {
		t.Errorf("the defaults are %q (%v), want only where the hub is", text, err)
	}
	c.DataDir, c.Port, c.Log.File, c.Encryption.Enabled, c.ForbidOverwrite = "/var/lib/argosy", 443, "-", false, true
	c.Etcd.Servers, c.WorkloadKinds, c.TLSSANs = []string{"https://10.0.0.1:2379"}, []string{"*", "-argo"}, []string{"hub"}
	c.Backup.Interval.Duration, c.Members.Estimator.Enabled, c.Autoscaling.Tolerance = 0, true, 0.2
	c.Members.FailureThreshold.Duration = time.Minute
	if text, err = c.Changes(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	back := DefaultConfig()
	if err := back.Load(file, pflag.NewFlagSet("", pflag.ContinueOnError)); err != nil {
		t.Fatal(err)
	}
	want, _ := c.YAML()
	if got, err := back.YAML(); err != nil || got != want {
		t.Errorf("%s\nreads back as (%v)\n%s", text, err, got)
	}
}

func TestFoldersOutsideOfTheDataFolderAreTheHubsAloneOrNot(t *testing.T) {
	c := DefaultConfig()
	c.DataDir, c.PKIDir, c.Backup.Dir = "/var/lib/argosy", "/var/lib/argosy/pki", "/mnt/backups"
	c.Log.File, c.KubeAPIServer.Audit.LogFile, c.KubeconfigOut = "-", "/var/log/argosy/audit.log",
		"/var/lib/argosy-2/kubeconfig"
	own, others := c.Folders()
	if !reflect.DeepEqual(own, []string{"/mnt/backups"}) ||
		!reflect.DeepEqual(others, []string{"/var/log/argosy", "/var/lib/argosy-2"}) {
		t.Errorf("own %v, others %v", own, others)
	}
}

func TestPurgeNeedsAStoppedHub(t *testing.T) {
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	running := filepath.Join(t.TempDir(), "data")
	release, err := claim(running)
	if err != nil {
		t.Fatal(err)
	}
	for dir, message := range map[string]string{foreign: "was not created by argosy", running: "is in use"} {
		if err := Purge(dir); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v, want it to say %q", dir, err, message)
		}
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	release()
	for range 2 {
		if err := Purge(running); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(running); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
}

func TestFailoverSettingsDecideEvictions(t *testing.T) {
	c := DefaultConfig()
	if o := c.Failover.options(c.Members, c.Taints).Options; o != failover.Defaults {
		t.Errorf("by default, the settings are %+v, want %+v", o, failover.Defaults)
	}
	for value, want := range map[string][2]bool{FailoverByPolicy: {}, FailoverOfAll: {true, false},
		FailoverOff: {false, true}} {
		c.Failover.Cluster = value
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", value, err)
		}
		if o := c.Failover.options(c.Members, c.Taints); o.AllBindings != want[0] || o.Off != want[1] {
			t.Errorf("%s: all bindings %v and off %v, want %v", value, o.AllBindings, o.Off, want)
		}
	}
}
