package server

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/argosy-io/argosy/internal/capacity/estimator"
)

// configured returns what a file, empty for none, and flags come to.
func configured(t *testing.T, file string, args ...string) (Config, error) {
	t.Helper()
	c := DefaultConfig()
	fs := pflag.NewFlagSet("up", pflag.ContinueOnError)
	c.BindFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	name := ""
	if file != "" {
		name = filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Load(name, fs); err != nil {
		t.Fatal(err)
	}
	return c, c.Validate()
}

func TestEstimatorsUseTheFlagsOfKarmadasScheduler(t *testing.T) {
	plain := estimator.Options{Timeout: 3 * time.Second, ServicePrefix: "karmada-scheduler-estimator",
		ServiceNamespace: "karmada-system", Port: 10352}
	every := estimator.Options{Timeout: time.Second, ServicePrefix: "estimator", ServiceNamespace: "fleet", Port: 1,
		Addresses: []string{"berlin=10.0.0.1:2", "*={cluster}.example.com:3"}, SkipPull: true,
		CAFile: "/ca", CertFile: "/cert", KeyFile: "/key", InsecureSkipVerify: true}
	for name, c := range map[string]struct {
		file string
		args []string
		want *estimator.Options
	}{
		"off by default": {"", nil, nil},
		"on":             {"", []string{"--enable-scheduler-estimator"}, &plain},
		"all": {"", []string{"--enable-scheduler-estimator", "--scheduler-estimator-timeout=1s",
			"--scheduler-estimator-service-prefix=estimator",
			"--scheduler-estimator-service-namespace=fleet", "--scheduler-estimator-port=1",
			"--scheduler-estimator-address=berlin=10.0.0.1:2",
			"--scheduler-estimator-address=*={cluster}.example.com:3", "--disable-scheduler-estimator-in-pull-mode",
			"--scheduler-estimator-ca-file=/ca",
			"--scheduler-estimator-cert-file=/cert", "--scheduler-estimator-key-file=/key", "--insecure-skip-estimator-verify"},
			&every},
		"all in a file": {`members: {estimator: {enabled: true, timeout: 1s, servicePrefix: estimator, serviceNamespace: fleet, port: 1, skipPull: true,
			addresses: ["berlin=10.0.0.1:2", "*={cluster}.example.com:3"], caFile: /ca, certFile: /cert, keyFile: /key, insecureSkipVerify: true}}`, nil, &every},
		"a flag over a file": {`members: {estimator: {enabled: true, timeout: 9s}}`,
			[]string{"--scheduler-estimator-timeout=3s"}, &plain},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := configured(t, c.file, c.args...)
			if err != nil || !reflect.DeepEqual(got.Members.Estimator.options(), c.want) {
				t.Errorf("the options are %+v, %v; want %+v", got.Members.Estimator.options(), err, c.want)
			}
		})
	}
	for want, args := range map[string][]string{
		"give --enable-scheduler-estimator":  {"--scheduler-estimator-address=a=b:1"},
		`"a" is not CLUSTER=HOST:PORT`:       {"--enable-scheduler-estimator", "--scheduler-estimator-address=a"},
		"--scheduler-estimator-timeout 0s":   {"--enable-scheduler-estimator", "--scheduler-estimator-timeout=0s"},
		"belong together: give both or none": {"--enable-scheduler-estimator", "--scheduler-estimator-key-file=a"},
	} {
		if _, err := configured(t, "", args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: the error is %v, want %q", args, err, want)
		}
	}
}
