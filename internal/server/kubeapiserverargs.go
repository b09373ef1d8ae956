package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/argosy-io/argosy/internal/core/interpret/lint"
	"github.com/argosy-io/argosy/internal/server/embed/apiserver"
)

// deniedArgs are arguments of kube-apiserver that would break the hub, with the reason and what to use instead. An entry that ends
// in * is about all that begin so.
var deniedArgs = map[string]string{
	"etcd-*":                "the hub manages the store: use --etcd-servers, --etcd-cafile, --etcd-certfile and --etcd-keyfile of the hub, or none of them for its own etcd",
	"storage-backend":       "the hub manages the store: etcd is the only backend that it supports",
	"emulated-version*":     "the hub's definitions and controllers support one version of Kubernetes",
	"min-compatibility-*":   "the hub's definitions and controllers support one version of Kubernetes",
	"emulation-*":           "the hub's definitions and controllers support one version of Kubernetes",
	"bind-address":          "the hub's kubeconfig and certificate contain its address: use --bind-address of the hub",
	"advertise-address":     "the hub's kubeconfig and certificate contain its address: use --bind-address of the hub",
	"secure-port":           "the hub's kubeconfig contains its port: use --port of the hub",
	"permit-port-sharing":   "the hub binds its port itself: use --port of the hub",
	"permit-address-*":      "the hub binds its port itself: use --port of the hub",
	"endpoint-reconciler-*": "no pods run on the hub that would look up its address",
	"tls-cert-file":         "the hub's own kubeconfig must stay valid: use --tls-cert-file of the hub",
	"tls-private-key-file":  "the hub's own kubeconfig must stay valid: use --tls-private-key-file of the hub",
	"tls-sni-cert-key":      "the hub's own kubeconfig must stay valid: use --tls-sni-cert-key of the hub",
	"cert-dir":              "the hub creates its certificates itself: use --tls-cert-file of the hub for one of your own",
	"client-ca-file":        "administrators, agents and members' accounts have certificates signed by the hub's CA: use --client-ca-file of the hub, which adds others",
	"requestheader-*":       "the hub's own aggregation layer depends on it: use --authentication-config of the hub for external identities",
	"proxy-client-*":        "the hub renews this certificate itself",
	"peer-*":                "replicas of a hub share an etcd, and do not communicate with each other",

	"service-account-key-file":         "tokens of the hub and of its members' agents are signed with the hub's own key: use `argosy certificates`, which shows and renews it",
	"service-account-signing-key-file": "tokens of the hub and of its members' agents are signed with the hub's own key: use `argosy certificates`, which shows and renews it",
	"service-account-signing-endpoint": "tokens of the hub and of its members' agents are signed with the hub's own key: use `argosy certificates`, which shows and renews it",
	"service-account-issuer":           "existing tokens contain the issuer, and would be rejected with another",
	"service-account-lookup":           "tokens of deleted service accounts must not stay valid",

	"authentication-config":   "use --authentication-config of the hub",
	"oidc-*":                  "use the hub's flag of the same name",
	"authorization-config":    "the hub's roles need RBAC: use --authorization-config of the hub, which checks that",
	"authorization-mode":      "the hub's roles need RBAC: use --authorization-config of the hub for further authorizers",
	"authorization-policy-*":  "use --authorization-config of the hub",
	"authorization-webhook-*": "use --authorization-config of the hub, with an authorizer of type Webhook",
	"audit-log-path":          "use --audit-log of the hub",
	"audit-policy-file":       "use --audit-policy of the hub",
	"admission-control":       "use enable-admission-plugins and disable-admission-plugins",

	"encryption-provider-config*": "the hub encrypts at rest itself: use --encryption-provider-config of the hub for providers of your own, such as KMS v2",

	"enable-priority-and-fairness": "use the hub's flag of the same name, which also creates its flow schemas",

	"v":         "the hub manages the log: use --log-level",
	"vmodule":   "the hub manages the log: use --log-level",
	"log-*":     "the hub manages the log: use --log-file, --log-format and --log-level",
	"logging-*": "the hub manages the log: use --log-file, --log-format and --log-level",
	"help":      "`argosy up --help` shows the hub's flags",
	"version":   "`kubectl version` shows it",
}

// requiredAdmission are plugins of Kubernetes without which the hub is open or loses what it holds.
var requiredAdmission = map[string]string{
	"NamespaceLifecycle":            "objects could be created in a namespace that is being terminated",
	"CertificateApproval":           "any user could approve certificates",
	"CertificateSigning":            "any user could sign certificates",
	"CertificateSubjectRestriction": "certificates for system:masters could be requested",
}

// checkArg says why an argument of kube-apiserver cannot be given; ours are the names of the hub's own admission plugins.
func checkArg(arg string, ours []string) error {
	name, value, found := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if name == "" || !found {
		return fmt.Errorf("%q is not NAME=VALUE: correct --kube-apiserver-arg", arg)
	}
	known := apiserver.FlagNames()
	if why, denied := denied(name); denied && slices.Contains(known, name) {
		return fmt.Errorf("--kube-apiserver-arg cannot set %s: %s", name, why)
	}
	if !slices.Contains(known, name) {
		hint := ""
		if meant := lint.Meant(name, known); meant != "" {
			hint = fmt.Sprintf("; did you mean %s?", meant)
		}
		return fmt.Errorf("kube-apiserver has no argument %q%s: correct --kube-apiserver-arg", name, hint)
	}
	listed := strings.Split(value, ",")
	switch name {
	case "disable-admission-plugins":
		for _, plugin := range listed {
			if slices.Contains(ours, plugin) {
				return fmt.Errorf("admission plugin %s is the hub's own, without which nothing is claimed, validated or protected: remove it from disable-admission-plugins of --kube-apiserver-arg", plugin)
			}
			if why, required := requiredAdmission[plugin]; required {
				return fmt.Errorf("admission plugin %s cannot be disabled: without it %s", plugin, why)
			}
		}
	case "enable-admission-plugins":
		for _, plugin := range listed {
			if why, off := disabledAdmission[plugin]; off {
				return fmt.Errorf("admission plugin %s cannot be enabled on a hub: %s", plugin, why)
			}
		}
	case "runtime-config":
		for _, setting := range listed {
			api, on, _ := strings.Cut(setting, "=")
			if on == "false" && (api == "api/all" || api == "api/ga" || api == "api/legacy" || strings.HasSuffix(api, "/v1") || api == "v1") {
				return fmt.Errorf("runtime-config %s disables an API that the hub depends on: only alpha and beta versions can be disabled with --kube-apiserver-arg", setting)
			}
		}
	}
	return nil
}

// denied finds the reason against an argument.
func denied(name string) (why string, found bool) {
	if why, found = deniedArgs[name]; found {
		return why, true
	}
	for pattern, why := range deniedArgs {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(name, prefix) {
			return why, true
		}
	}
	return "", false
}
