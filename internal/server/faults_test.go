package server

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// Each wrong setting is reported in one sentence that names what to change, before anything costly starts.
func TestAFaultIsOneClearSentence(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	tests := map[string]struct {
		spoil func(t *testing.T, c *Config)
		want  []string
	}{
		"a port that is in use": {
			func(_ *testing.T, c *Config) { c.Port = taken.Addr().(*net.TCPAddr).Port },
			[]string{"is in use", "--port"},
		},
		"an address of another machine": {
			func(_ *testing.T, c *Config) { c.BindAddress = "192.0.2.1" },
			[]string{"192.0.2.1 is not an address of this machine", "--bind-address"},
		},
		"an address that is none": {
			func(_ *testing.T, c *Config) { c.BindAddress = "localhost" },
			[]string{`"localhost" is not an IP address`, "--bind-address"},
		},
		"a port beyond the last": {
			func(_ *testing.T, c *Config) { c.Port = 70000 },
			[]string{"70000 is not between", "--port"},
		},
		"a data folder below a file": {
			func(t *testing.T, c *Config) {
				file := filepath.Join(t.TempDir(), "file")
				write(t, file, "")
				c.DataDir = filepath.Join(file, "data")
			},
			[]string{"cannot be created (not a directory)", "--data-dir"},
		},
		"a data folder without the right to write": {
			func(t *testing.T, c *Config) {
				if os.Geteuid() == 0 {
					t.Skip("root may write everywhere")
				}
				if err := os.Mkdir(c.DataDir, 0o500); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"cannot be written (permission denied)", "--data-dir"},
		},
		"a data folder of somebody else": {
			func(t *testing.T, c *Config) {
				if err := os.Mkdir(c.DataDir, 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(c.DataDir, "thesis.txt"), "")
			},
			[]string{`contains "thesis.txt" and was not created by argosy`, "--data-dir"},
		},
		"a data folder in use": {
			func(t *testing.T, c *Config) {
				release, err := claim(c.DataDir)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(release)
			},
			[]string{"is in use by another argosy", "--data-dir"},
		},
		"a key that is damaged": {
			func(t *testing.T, c *Config) {
				release, err := claim(c.DataDir)
				if err != nil {
					t.Fatal(err)
				}
				release()
				if err := os.Mkdir(filepath.Join(c.DataDir, "pki"), 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(c.DataDir, "pki", "ca.key"), "half a k")
			},
			[]string{"ca.key"},
		},
		"an etcd that is not there": {
			func(_ *testing.T, c *Config) { c.Etcd.Servers = []string{"http://127.0.0.1:1"} },
			[]string{"127.0.0.1:1", "connection refused", "--etcd-servers"},
		},
		"an etcd that is something else": {
			func(_ *testing.T, c *Config) { c.Etcd.Servers = []string{"http://" + taken.Addr().String()} },
			[]string{taken.Addr().String(), "--etcd-servers"},
		},
		"an etcd address that is no URL": {
			func(_ *testing.T, c *Config) { c.Etcd.Servers = []string{"10.0.0.1:2379"} },
			[]string{`"10.0.0.1:2379" is not a URL`, "--etcd-servers"},
		},
		"etcd TLS files that are not there": {
			func(_ *testing.T, c *Config) {
				c.Etcd.Servers, c.Etcd.CAFile = []string{"https://127.0.0.1:1"}, "/nowhere/ca.crt"
			},
			[]string{"/nowhere/ca.crt", "--etcd-cafile"},
		},
		"a certificate without its key": {
			func(_ *testing.T, c *Config) {
				c.Etcd.Servers, c.Etcd.CertFile = []string{"https://127.0.0.1:1"}, "c"
			},
			[]string{"--etcd-certfile and --etcd-keyfile"},
		},
		"a quota that nothing fits in": {
			func(_ *testing.T, c *Config) { c.Etcd.Quota.Quantity.Set(1 << 20) },
			[]string{"etcd.quota 1Mi is not between 32Mi and 100Gi", "--etcd-quota"},
		},
		"backups without a rest": {
			func(_ *testing.T, c *Config) { c.Backup.Interval.Duration = time.Millisecond },
			[]string{"backup.interval 1ms is too short", "--backup-interval"},
		},
		"backups of which none is kept": {
			func(_ *testing.T, c *Config) { c.Backup.Keep = 0 },
			[]string{"backup.keep 0 is less than 1", "--backup-keep"},
		},
		"a component that does not exist": {
			func(_ *testing.T, c *Config) { c.Components = []string{"*", "-scheduler"} },
			[]string{`"scheduler"`, "controllers", "--components"},
		},
		"a component that cannot be left out": {
			func(_ *testing.T, c *Config) { c.Components = []string{"*", "-apiserver"} },
			[]string{`leaves out "apiserver"`, "controller-manager"},
		},
		"a family of workload kinds that does not exist": {
			func(_ *testing.T, c *Config) { c.WorkloadKinds = []string{"*", "-knative"} },
			[]string{`"knative"`, "openkruise, argo", "--workload-kinds"},
		},
		"a scheduler plugin that does not exist": {
			func(_ *testing.T, c *Config) { c.Scheduler.Plugins = []string{"*", "-TaintTolerations"} },
			[]string{`no scheduler plugin "TaintTolerations"`, "TaintToleration, WorkloadAffinity", "--plugins"},
		},
		"a scheduler without a name": {
			func(_ *testing.T, c *Config) { c.Scheduler.Name = "" },
			[]string{"scheduler.name is empty", "--scheduler-name"},
		},
		"a descheduler that never rests": {
			func(_ *testing.T, c *Config) { c.Descheduler.Interval.Duration = time.Millisecond },
			[]string{"1ms is too short", "--descheduling-interval"},
		},
		"replicas that never wait": {
			func(_ *testing.T, c *Config) { c.Descheduler.UnschedulableThreshold.Duration = 0 },
			[]string{"0s is too short", "--unschedulable-threshold"},
		},
		"a failover of an unknown kind": {
			func(_ *testing.T, c *Config) { c.Failover.Cluster = "Always" },
			[]string{`failover.cluster "Always" is not Policy, All or Off`, "--cluster-failover"},
		},
		"a brake that never holds": {
			func(_ *testing.T, c *Config) { c.Failover.BrakeShare = 2 },
			[]string{"failover.brakeShare 2", "--failover-brake-share"},
		},
		"a failover without evictions": {
			func(_ *testing.T, c *Config) { c.Failover.EvictionsPerMinute = 0 },
			[]string{"failover.evictionsPerMinute 0", "--failover-evictions-per-minute"},
		},
		"loads that are looked at without a rest": {
			func(_ *testing.T, c *Config) { c.Autoscaling.Interval.Duration = time.Millisecond },
			[]string{"1ms is too short", "--horizontal-pod-autoscaler-sync-period"},
		},
		"a tolerance of everything": {
			func(_ *testing.T, c *Config) { c.Autoscaling.Tolerance = 1 },
			[]string{"autoscaling.tolerance 1 is not between 0 and 1", "--horizontal-pod-autoscaler-tolerance"},
		},
		"an argument that would break the hub": {
			func(_ *testing.T, c *Config) { c.KubeAPIServer.Args = []string{"etcd-servers=http://a:1"} },
			[]string{"--kube-apiserver-arg does not accept etcd-servers", "use --etcd-servers of the hub"},
		},
		"an argument whose value is none": {
			func(_ *testing.T, c *Config) { c.KubeAPIServer.Args = []string{"event-ttl=soon"} },
			[]string{"event-ttl", "soon", "--kube-apiserver-arg"},
		},
		"an issuer without TLS": {
			func(_ *testing.T, c *Config) {
				c.KubeAPIServer.OIDC = OIDCConfig{IssuerURL: "http://issuer", ClientID: "x"}
			},
			[]string{`"http://issuer" is not an https URL`, "--oidc-issuer-url"},
		},
		"an issuer for any client": {
			func(_ *testing.T, c *Config) { c.KubeAPIServer.OIDC = OIDCConfig{IssuerURL: "https://issuer"} },
			[]string{"no client ID", "--oidc-client-id"},
		},
		"claims of nobody": {
			func(_ *testing.T, c *Config) { c.KubeAPIServer.OIDC = OIDCConfig{GroupsClaim: "groups"} },
			[]string{"no issuer", "--oidc-issuer-url"},
		},
		"an issuer in two places": {
			func(_ *testing.T, c *Config) {
				c.KubeAPIServer.OIDC = OIDCConfig{IssuerURL: "https://issuer", ClientID: "x"}
				c.KubeAPIServer.AuthenticationConfig = "/x"
			},
			[]string{"--authentication-config"},
		},
		"an authentication configuration that is not there": {
			func(_ *testing.T, c *Config) { c.KubeAPIServer.AuthenticationConfig = "/nowhere/a.yaml" },
			[]string{"/nowhere/a.yaml cannot be read (no such file or directory)", "--authentication-config"},
		},
		"an authentication configuration that is none": {
			func(t *testing.T, c *Config) {
				c.KubeAPIServer.AuthenticationConfig = filepath.Join(t.TempDir(), "a.yaml")
				write(t, c.KubeAPIServer.AuthenticationConfig, "kind: Cheese")
			},
			[]string{"authentication", "Cheese"},
		},
		"an authorization configuration without RBAC": {
			func(t *testing.T, c *Config) {
				c.KubeAPIServer.AuthorizationConfig = filepath.Join(t.TempDir(), "a.yaml")
				write(t, c.KubeAPIServer.AuthorizationConfig,
					"kind: AuthorizationConfiguration\nauthorizers: [{type: Node, name: node}]")
			},
			[]string{"no authorizer of type RBAC", "{type: RBAC, name: rbac}"},
		},
		"an audit policy that is not there": {
			func(_ *testing.T, c *Config) {
				c.KubeAPIServer.Audit = AuditConfig{LogFile: "-", PolicyFile: "/nowhere/p.yaml"}
			},
			[]string{"/nowhere/p.yaml", "--audit-policy"},
		},
		"an audit policy that is none": {
			func(t *testing.T, c *Config) {
				c.KubeAPIServer.Audit = AuditConfig{LogFile: "-", PolicyFile: filepath.Join(t.TempDir(), "p.yaml")}
				write(t, c.KubeAPIServer.Audit.PolicyFile, "rules: nonsense")
			},
			[]string{"audit policy", "p.yaml"},
		},
		"a serving certificate without its key": {
			func(_ *testing.T, c *Config) { c.KubeAPIServer.TLSCertFile = "/x" },
			[]string{"--tls-cert-file and --tls-private-key-file"},
		},
		"a serving certificate that is not there": {
			func(_ *testing.T, c *Config) {
				c.KubeAPIServer.TLSCertFile, c.KubeAPIServer.TLSPrivateKeyFile = "/nowhere/tls.crt", "/nowhere/tls.key"
			},
			[]string{"/nowhere/tls.crt cannot be read", "--tls-cert-file"},
		},
		"a serving certificate with another's key": {
			func(t *testing.T, c *Config) {
				c.KubeAPIServer.TLSCertFile, _ = pair(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), "a")
				_, c.KubeAPIServer.TLSPrivateKeyFile = pair(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), "a")
			},
			[]string{"does not match the certificate", "--tls-private-key-file"},
		},
		"a serving certificate that has ended": {
			func(t *testing.T, c *Config) {
				c.KubeAPIServer.TLSCertFile, c.KubeAPIServer.TLSPrivateKeyFile = pair(t, time.Now().Add(-2*time.Hour),
					time.Now().Add(-time.Hour), "a")
			},
			[]string{"expired on", "renew it"},
		},
		"a serving certificate for nobody": {
			func(t *testing.T, c *Config) {
				c.KubeAPIServer.TLSCertFile, c.KubeAPIServer.TLSPrivateKeyFile = pair(t, time.Now().Add(-time.Hour),
					time.Now().Add(time.Hour))
			},
			[]string{"has no subject alternative name", "--tls-cert-file"},
		},
		"groups of an issuer as it names them": {
			func(_ *testing.T, c *Config) {
				c.KubeAPIServer.OIDC = OIDCConfig{IssuerURL: "https://issuer.invalid", ClientID: "argosy", GroupsClaim: "groups"}
			},
			[]string{"system:masters", "--oidc-groups-prefix"},
		},
		"a certificate by name without a key": {
			func(_ *testing.T, c *Config) { c.KubeAPIServer.TLSSNICertKeys = []string{"/x"} },
			[]string{"CERTFILE,KEYFILE", "--tls-sni-cert-key"},
		},
		"a log format that does not exist": {
			func(_ *testing.T, c *Config) { c.Log.Format = "xml" },
			[]string{`"xml" is neither text nor json`, "--log-format"},
		},
		"a kubeconfig that is none": {
			func(t *testing.T, c *Config) {
				c.KubeconfigOut = filepath.Join(t.TempDir(), "config")
				write(t, c.KubeconfigOut, "my shopping list")
			},
			[]string{"config cannot be read", "--kubeconfig-out"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := testConfig(t)
			test.spoil(t, &c)
			h, err := Start(t.Context(), c, Parts{}, io.Discard)
			if err == nil {
				h.Stop()
				t.Fatal("the hub started")
			}
			if _, err := os.Stat(filepath.Join(c.DataDir, "etcd")); err == nil {
				t.Error("the store was opened before the fault was told")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestConfigurationComesFromDefaultsThenFileThenFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "argosy.yaml")
	load := func(text string, args ...string) (Config, error) {
		write(t, file, text)
		c := DefaultConfig()
		flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
		c.BindFlags(flags)
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		return c, c.Load(file, flags)
	}
	c, err := load("port: 1111\nbindAddress: 0.0.0.0\netcd: {servers: [http://a:1, http://b:1]}\n", "--port=2222",
		"--etcd-servers=http://c:1,http://d:1")
	if err != nil {
		t.Fatal(err)
	}
	if c.Port != 2222 || c.BindAddress != "0.0.0.0" || c.Log.Format != "text" ||
		strings.Join(c.Etcd.Servers, " ") != "http://c:1 http://d:1" {
		t.Errorf("flag, file and default do not stand in that order: %+v", c)
	}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := load(text); err != nil || !strings.Contains(text, "port: 2222") || again.Port != 2222 {
		t.Errorf("what is printed cannot be loaded again: %v\n%s", err, text)
	}
	for text, want := range map[string]string{
		"prot: 1":             `unknown field "prot"`,
		"log: {colour: blue}": `unknown field "colour"`,
		"port: many":          "cannot unmarshal string into port of type int",
		"port: [":             "yaml: line 1",
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: got %v, want file and %q", text, err, want)
		}
	}
}
