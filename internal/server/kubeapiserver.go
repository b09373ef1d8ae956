package server

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/server/embed/apiserver"
	"github.com/argosy-io/argosy/internal/server/pki"
)

// KubeAPIServerConfig configures the API server of the hub, with the names of kube-apiserver's flags.
type KubeAPIServerConfig struct {
	// Args are further arguments of kube-apiserver, NAME=VALUE each, checked by checkArg. They come last, so they
	// override the hub's.
	Args []string `json:"args,omitempty"`
	// Audit configures the audit log.
	Audit AuditConfig `json:"audit"`
	// OIDC configures the OpenID Connect issuer whose tokens the hub accepts.
	OIDC OIDCConfig `json:"oidc"`
	// AuthenticationConfig and AuthorizationConfig are files with the kinds of these names of apiserver.config.k8s.io.
	AuthenticationConfig string `json:"authenticationConfig,omitempty"`
	AuthorizationConfig  string `json:"authorizationConfig,omitempty"`
	// ClientCAFile is a CA bundle. Client certificates of these CAs are accepted in addition to the hub's own.
	ClientCAFile string `json:"clientCAFile,omitempty"`
	// TLSCertFile and TLSPrivateKeyFile are served to users instead of the hub's own certificate.
	TLSCertFile       string `json:"tlsCertFile,omitempty"`
	TLSPrivateKeyFile string `json:"tlsPrivateKeyFile,omitempty"`
	// TLSSNICertKeys are further pairs by name, CERTFILE,KEYFILE[:NAME,…] each.
	TLSSNICertKeys []string `json:"tlsSNICertKeys,omitempty"`
	// PriorityAndFairness queues requests per user, so that many requests of one user do not delay others.
	PriorityAndFairness bool `json:"priorityAndFairness"`
}

// AuditConfig configures the audit log.
type AuditConfig struct {
	// LogFile is the file of the audit log, with one JSON object per line; "-" is standard output. Empty: no log.
	LogFile string `json:"logFile,omitempty"`
	// PolicyFile selects the requests that are logged, and their level. Empty: the hub's default policy.
	PolicyFile string `json:"policyFile,omitempty"`
}

// OIDCConfig is one issuer of OpenID Connect, in the words of kube-apiserver.
type OIDCConfig struct {
	IssuerURL      string   `json:"issuerURL,omitempty"`
	ClientID       string   `json:"clientID,omitempty"`
	UsernameClaim  string   `json:"usernameClaim,omitempty"`
	UsernamePrefix string   `json:"usernamePrefix,omitempty"`
	GroupsClaim    string   `json:"groupsClaim,omitempty"`
	GroupsPrefix   string   `json:"groupsPrefix,omitempty"`
	RequiredClaims []string `json:"requiredClaims,omitempty"`
	SigningAlgs    []string `json:"signingAlgs,omitempty"`
	CAFile         string   `json:"caFile,omitempty"`
}

func (c *KubeAPIServerConfig) bindFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&c.Args, "kube-apiserver-arg", c.Args,
		"NAME=VALUE, an additional argument for kube-apiserver; repeatable. Only arguments that are safe for the hub are accepted")
	fs.BoolVar(&c.PriorityAndFairness, "enable-priority-and-fairness", c.PriorityAndFairness,
		"enable API priority and fairness: requests queue per user, so that one busy user does not slow down the others")
	fs.StringVar(&c.Audit.LogFile, "audit-log", c.Audit.LogFile,
		"audit log file, one JSON line per request; - is standard output")
	fs.StringVar(&c.Audit.PolicyFile, "audit-policy", c.Audit.PolicyFile,
		"file with the audit policy (default: writes, Secrets and requests into members, never a body with data)")
	o := &c.OIDC
	fs.StringVar(&o.IssuerURL, "oidc-issuer-url", o.IssuerURL,
		"URL of the OpenID Connect issuer whose tokens are accepted; https only")
	fs.StringVar(&o.ClientID, "oidc-client-id", o.ClientID, "client ID that tokens must be issued for")
	fs.StringVar(&o.UsernameClaim, "oidc-username-claim", o.UsernameClaim, "claim that names the user (default sub)")
	fs.StringVar(&o.UsernamePrefix, "oidc-username-prefix", o.UsernamePrefix,
		"prefix for user names; - disables it (default the issuer's URL and #, and no prefix for the claim email)")
	fs.StringVar(&o.GroupsClaim, "oidc-groups-claim", o.GroupsClaim, "claim that contains the user's groups")
	fs.StringVar(&o.GroupsPrefix, "oidc-groups-prefix", o.GroupsPrefix,
		"prefix for group names; - disables it, which lets the issuer name the hub's administrators")
	fs.StringArrayVar(&o.RequiredClaims, "oidc-required-claim", o.RequiredClaims,
		"KEY=VALUE, a claim that a token must have; repeatable")
	fs.StringSliceVar(&o.SigningAlgs, "oidc-signing-algs", o.SigningAlgs,
		"accepted signing algorithms of tokens (default RS256)")
	fs.StringVar(&o.CAFile, "oidc-ca-file", o.CAFile, "CA of the issuer's certificate (default the system's)")
	fs.StringVar(&c.AuthenticationConfig, "authentication-config", c.AuthenticationConfig,
		"file with an AuthenticationConfiguration, for several issuers; instead of the --oidc flags")
	fs.StringVar(&c.AuthorizationConfig, "authorization-config", c.AuthorizationConfig,
		"file with an AuthorizationConfiguration; its authorizers must include RBAC, which the hub's roles depend on")
	fs.StringVar(&c.ClientCAFile, "client-ca-file", c.ClientCAFile,
		"CA bundle for client certificates to accept in addition to the hub's own")
	fs.StringVar(&c.TLSCertFile, "tls-cert-file", c.TLSCertFile,
		"serving certificate, including any intermediate certificates, instead of the hub's own")
	fs.StringVar(&c.TLSPrivateKeyFile, "tls-private-key-file", c.TLSPrivateKeyFile, "private key for that certificate")
	fs.StringArrayVar(&c.TLSSNICertKeys, "tls-sni-cert-key", c.TLSSNICertKeys,
		"CERTFILE,KEYFILE[:NAME,...] of a serving certificate for these names; repeatable")
}

// paths returns the settings that name files, to be made absolute.
func (c *KubeAPIServerConfig) paths() []*string {
	paths := []*string{&c.Audit.PolicyFile, &c.OIDC.CAFile, &c.AuthenticationConfig, &c.AuthorizationConfig,
		&c.ClientCAFile, &c.TLSCertFile, &c.TLSPrivateKeyFile}
	if c.Audit.LogFile != "-" {
		paths = append(paths, &c.Audit.LogFile)
	}
	return paths
}

// validate returns the first error that can be found without reading files.
func (c *KubeAPIServerConfig) validate(admission []string) error {
	for _, arg := range c.Args {
		if err := checkArg(arg, admission); err != nil {
			return err
		}
	}
	if err := apiserver.CheckFlags(c.argFlags()); err != nil {
		return fmt.Errorf("%w: correct --kube-apiserver-arg", err)
	}
	o := c.OIDC
	set := o.ClientID + o.UsernameClaim + o.UsernamePrefix + o.GroupsClaim + o.GroupsPrefix + o.CAFile +
		strings.Join(o.RequiredClaims, "") + strings.Join(o.SigningAlgs, "")
	issuer, err := url.Parse(o.IssuerURL)
	switch {
	case o.IssuerURL == "" && set != "":
		return errors.New("kubeAPIServer.oidc has no issuer: give --oidc-issuer-url")
	case o.IssuerURL != "" && (err != nil || issuer.Scheme != "https" || issuer.Host == ""):
		return fmt.Errorf("kubeAPIServer.oidc.issuerURL %q is not an https URL, so anyone on the network path could issue tokens: correct --oidc-issuer-url", o.IssuerURL)
	case o.IssuerURL != "" && o.ClientID == "":
		return errors.New("kubeAPIServer.oidc has no client ID, so tokens issued for other services would be accepted: give --oidc-client-id")
	case o.GroupsClaim != "" && o.GroupsPrefix == "":
		return errors.New("kubeAPIServer.oidc.groupsPrefix is empty, so members of a group system:masters of the issuer would be the hub's administrators: give --oidc-groups-prefix, such as oidc:, or - to use group names unchanged")
	case o.IssuerURL != "" && c.AuthenticationConfig != "":
		return errors.New("kubeAPIServer has both oidc and authenticationConfig: move the issuer into the file of --authentication-config, or remove that flag")
	case (c.TLSCertFile == "") != (c.TLSPrivateKeyFile == ""):
		return errors.New("kubeAPIServer.tlsCertFile and tlsPrivateKeyFile belong together: give both --tls-cert-file and --tls-private-key-file, or none")
	}
	for _, pair := range c.TLSSNICertKeys {
		if certFile, keyFile := sniFiles(pair); certFile == "" || keyFile == "" {
			return fmt.Errorf("%q is not CERTFILE,KEYFILE[:NAME,...]: correct --tls-sni-cert-key", pair)
		}
	}
	return nil
}

// sniFiles returns the files of a CERTFILE,KEYFILE[:NAME,…].
func sniFiles(pair string) (certFile, keyFile string) {
	files, _, _ := strings.Cut(pair, ":")
	certFile, keyFile, _ = strings.Cut(files, ",")
	return certFile, keyFile
}

// checkFiles returns the first error in the files, before anything costly starts.
func (c *KubeAPIServerConfig) checkFiles(now time.Time) error {
	for flag, file := range map[string]string{"--audit-policy": c.Audit.PolicyFile, "--oidc-ca-file": c.OIDC.CAFile,
		"--authentication-config": c.AuthenticationConfig,
		"--authorization-config":  c.AuthorizationConfig, "--client-ca-file": c.ClientCAFile} {
		if file == "" {
			continue
		}
		if _, err := os.ReadFile(file); err != nil {
			return fmt.Errorf("%s cannot be read (%w): correct %s", file, reason(err), flag)
		}
	}
	for flag, file := range map[string]string{"--oidc-ca-file": c.OIDC.CAFile, "--client-ca-file": c.ClientCAFile} {
		if file == "" {
			continue
		}
		if _, err := cert.CertsFromFile(file); err != nil {
			return fmt.Errorf("%s contains no certificate (%w): correct %s", file, err, flag)
		}
	}
	if c.TLSCertFile != "" {
		if err := checkPair("--tls-cert-file", c.TLSCertFile, "--tls-private-key-file", c.TLSPrivateKeyFile,
			now); err != nil {
			return err
		}
	}
	for _, pair := range c.TLSSNICertKeys {
		certFile, keyFile := sniFiles(pair)
		if err := checkPair("--tls-sni-cert-key", certFile, "--tls-sni-cert-key", keyFile, now); err != nil {
			return err
		}
	}
	if file := c.Audit.PolicyFile; file != "" {
		if err := apiserver.CheckAuditPolicy(file); err != nil {
			return fmt.Errorf("%s is not an audit policy (%s): correct --audit-policy", file, plain(err))
		}
	}
	if file := c.AuthenticationConfig; file != "" {
		if err := apiserver.CheckAuthenticationConfig(file); err != nil {
			return fmt.Errorf("%s is not an AuthenticationConfiguration (%s): correct --authentication-config", file, plain(err))
		}
	}
	if c.AuthorizationConfig != "" {
		return checkAuthorizers(c.AuthorizationConfig)
	}
	return nil
}

// checkPair returns why a certificate and its key cannot be served at the time now.
func checkPair(certFlag, certFile, keyFlag, keyFile string, now time.Time) error {
	for _, f := range []struct{ flag, file string }{{certFlag, certFile}, {keyFlag, keyFile}} {
		if _, err := os.ReadFile(f.file); err != nil {
			return fmt.Errorf("%s cannot be read (%w): correct %s", f.file, reason(err), f.flag)
		}
	}
	certs, err := cert.CertsFromFile(certFile)
	if err != nil {
		return fmt.Errorf("%s contains no certificate (%w): correct %s", certFile, err, certFlag)
	}
	if _, err := tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		return fmt.Errorf("the key in %s does not match the certificate in %s (%w): correct %s or %s", keyFile, certFile, err,
			keyFlag, certFlag)
	}
	leaf := certs[0]
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate in %s expired on %s: renew it, and give it with %s", certFile,
			leaf.NotAfter.Format(time.RFC3339), certFlag)
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate in %s is not valid before %s: correct the clock of this machine, or %s", certFile,
			leaf.NotBefore.Format(time.RFC3339), certFlag)
	case len(leaf.ExtKeyUsage) > 0 && !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth) &&
		!slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny):
		return fmt.Errorf("the certificate in %s is not a serving certificate (extended key usage lacks serverAuth): give another with %s", certFile, certFlag)
	case len(leaf.DNSNames)+len(leaf.IPAddresses) == 0:
		return fmt.Errorf("the certificate in %s has no subject alternative name, so no client would accept it: give another with %s", certFile, certFlag)
	}
	return nil
}

// checkAuthorizers requires RBAC among the authorizers: the permissions of agents, of service accounts and of the hub's
// own roles depend on it.
func checkAuthorizers(file string) error {
	var config struct {
		Authorizers []struct {
			Type string `json:"type"`
		} `json:"authorizers"`
	}
	if err := readKind(file, "AuthorizationConfiguration", "--authorization-config", &config); err != nil {
		return err
	}
	for _, a := range config.Authorizers {
		if a.Type == "RBAC" {
			return nil
		}
	}
	return fmt.Errorf("%s has no authorizer of type RBAC, which grants the permissions of member agents, service accounts and the hub's roles: add {type: RBAC, name: rbac}", file)
}

// readKind reads a configuration of Kubernetes that a flag names.
func readKind(file, kind, flag string, into any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s cannot be read (%w): correct %s", file, reason(err), flag)
	}
	var typed struct {
		Kind string `json:"kind"`
	}
	if err := cmp.Or(yaml.Unmarshal(data, &typed), yaml.Unmarshal(data, into)); err != nil {
		return fmt.Errorf("%s is not YAML (%s): correct %s", file, plain(err), flag)
	}
	if typed.Kind != kind {
		return fmt.Errorf("%s is of kind %q, not %s: correct %s", file, typed.Kind, kind, flag)
	}
	return nil
}

//go:embed audit-policy.yaml
var defaultAuditPolicy []byte

// The audit log is rotated like other logs. With the defaults of kube-apiserver it would grow without limit.
const (
	auditMegabytes = 100
	auditBackups   = 10
	auditDays      = 30
)

// flags returns the arguments of the API server for c. dir is the folder for generated files; own is the hub's
// certificate with its names.
func (c *KubeAPIServerConfig) flags(dir string, own pki.Files, hosts []string) ([]string, error) {
	var flags []string
	set := func(name string, values ...string) {
		for _, value := range values {
			if value != "" {
				flags = append(flags, "--"+name+"="+value)
			}
		}
	}
	if log := c.Audit.LogFile; log != "" {
		set("audit-log-path", log)
		if log != "-" {
			set("audit-log-maxsize", fmt.Sprint(auditMegabytes))
			set("audit-log-maxbackup", fmt.Sprint(auditBackups))
			set("audit-log-maxage", fmt.Sprint(auditDays))
		}
	}
	policy := c.Audit.PolicyFile
	if policy == "" {
		policy = filepath.Join(dir, "audit-policy.yaml")
		if err := pki.WriteFile(policy, defaultAuditPolicy, 0o600); err != nil {
			return nil, fmt.Errorf("write the default audit policy: %w", err)
		}
	}
	set("audit-policy-file", policy)
	o := c.OIDC
	set("oidc-issuer-url", o.IssuerURL)
	set("oidc-client-id", o.ClientID)
	set("oidc-username-claim", o.UsernameClaim)
	set("oidc-username-prefix", o.UsernamePrefix)
	set("oidc-groups-claim", o.GroupsClaim)
	if o.GroupsPrefix != "-" {
		set("oidc-groups-prefix", o.GroupsPrefix)
	}
	set("oidc-required-claim", o.RequiredClaims...)
	set("oidc-signing-algs", strings.Join(o.SigningAlgs, ","))
	set("oidc-ca-file", o.CAFile)
	set("authentication-config", c.AuthenticationConfig)
	set("tls-sni-cert-key", c.TLSSNICertKeys...)
	if c.TLSCertFile != "" {
		names, err := c.ownNames(hosts)
		if err != nil {
			return nil, err
		}
		set("tls-sni-cert-key", own.Serving+","+own.ServingKey+":"+strings.Join(names, ","))
	}
	return append(flags, c.argFlags()...), nil
}

// inClusterNames are the names by which pods reach an API server. Pods trust the hub's authority.
var inClusterNames = []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc",
	"kubernetes.default.svc.cluster.local", serviceIP}

// inClusterServerName is a name that the hub's own certificate always has.
const inClusterServerName = "kubernetes.default.svc"

// ownNames returns the host names for which the hub's own certificate is served beside the user's: the names that the
// user's certificate lacks, and those that pods use. The kubeconfigs that the hub writes use one of these.
func (c *KubeAPIServerConfig) ownNames(hosts []string) ([]string, error) {
	certs, err := cert.CertsFromFile(c.TLSCertFile)
	if err != nil {
		return nil, fmt.Errorf("%s contains no certificate (%w): correct --tls-cert-file", c.TLSCertFile, err)
	}
	var names []string
	for _, host := range hosts {
		if slices.Contains(inClusterNames, host) || certs[0].VerifyHostname(host) != nil {
			names = append(names, host)
		}
	}
	return names, nil
}

// tlsServerName returns the name by which clients of the hub's kubeconfigs ask for its own certificate; empty where
// that is the only one.
func (c *KubeAPIServerConfig) tlsServerName() string {
	if c.TLSCertFile == "" {
		return ""
	}
	return inClusterServerName
}

func (c *KubeAPIServerConfig) argFlags() []string {
	flags := make([]string, len(c.Args))
	for i, arg := range c.Args {
		flags[i] = "--" + strings.TrimLeft(arg, "-")
	}
	return flags
}

// servingFiles returns the certificate and key that are served where no name decides.
func (c *KubeAPIServerConfig) servingFiles(own pki.Files) (certFile, keyFile string) {
	return cmp.Or(c.TLSCertFile, own.Serving), cmp.Or(c.TLSPrivateKeyFile, own.ServingKey)
}
