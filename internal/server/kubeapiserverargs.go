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
	"etcd-*":                "the store is the hub's: use --etcd-servers, --etcd-cafile, --etcd-certfile and --etcd-keyfile of the hub, or none for its own",
	"storage-backend":       "the store is the hub's: its etcd is the only one that it can keep anything in",
	"emulated-version*":     "the hub's definitions and loops are made for one version of Kubernetes",
	"min-compatibility-*":   "the hub's definitions and loops are made for one version of Kubernetes",
	"emulation-*":           "the hub's definitions and loops are made for one version of Kubernetes",
	"bind-address":          "the hub's kubeconfig and certificate say where it serves: use --bind-address of the hub",
	"advertise-address":     "the hub's kubeconfig and certificate say where it serves: use --bind-address of the hub",
	"secure-port":           "the hub's kubeconfig says where it serves: use --port of the hub",
	"permit-port-sharing":   "the hub binds its port itself: use --port of the hub",
	"permit-address-*":      "the hub binds its port itself: use --port of the hub",
	"endpoint-reconciler-*": "nothing on the hub runs pods that would look for its address",
	"tls-cert-file":         "the hub's own kubeconfig must go on to fit: use --tls-cert-file of the hub",
	"tls-private-key-file":  "the hub's own kubeconfig must go on to fit: use --tls-private-key-file of the hub",
	"tls-sni-cert-key":      "the hub's own kubeconfig must go on to fit: use --tls-sni-cert-key of the hub",
	"cert-dir":              "the hub makes its certificates itself: use --tls-cert-file of the hub for one of your own",
	"client-ca-file":        "administrators, agents and members' accounts have certificates of the hub's authority: use --client-ca-file of the hub, which adds others",
	"requestheader-*":       "who may speak for others is what the hub's own aggregation is built on: use --authentication-config of the hub for identities from elsewhere",
	"proxy-client-*":        "the hub renews this certificate itself",
	"peer-*":                "replicas of a hub share an etcd, and do not speak to each other",

	"service-account-key-file":         "tokens of the hub and of its members' agents are signed with its own key, which `argosy certificates` shows and renews",
	"service-account-signing-key-file": "tokens of the hub and of its members' agents are signed with its own key, which `argosy certificates` shows and renews",
	"service-account-signing-endpoint": "tokens of the hub and of its members' agents are signed with its own key, which `argosy certificates` shows and renews",
	"service-account-issuer":           "tokens that the hub has issued name their issuer, and would be refused under another",
	"service-account-lookup":           "tokens of deleted accounts must not go on to count",

	"authentication-config":   "use --authentication-config of the hub",
	"oidc-*":                  "use the flag of this name of the hub",
	"authorization-config":    "the hub's roles need RBAC: use --authorization-config of the hub, which checks that",
	"authorization-mode":      "the hub's roles need RBAC: use --authorization-config of the hub for further authorizers",
	"authorization-policy-*":  "use --authorization-config of the hub",
	"authorization-webhook-*": "use --authorization-config of the hub, with an authorizer of type Webhook",
	"audit-log-path":          "use --audit-log of the hub",
	"audit-policy-file":       "use --audit-policy of the hub",
	"admission-control":       "use enable-admission-plugins and disable-admission-plugins",

	"encryption-provider-config*": "the hub encrypts at rest itself: use --encryption-provider-config of the hub for providers of your own, such as KMS v2",

	"enable-priority-and-fairness": "use the flag of this name of the hub, which makes its flow schemas too",

	"v":         "the log is the hub's: use --log-level",
	"vmodule":   "the log is the hub's: use --log-level",
	"log-*":     "the log is the hub's: use --log-file, --log-format and --log-level",
	"logging-*": "the log is the hub's: use --log-file, --log-format and --log-level",
	"help":      "`argosy up --help` shows the hub's flags",
	"version":   "`kubectl version` shows it",
}

// requiredAdmission are plugins of Kubernetes without which the hub is open or loses what it holds.
var requiredAdmission = map[string]string{
	"NamespaceLifecycle":            "nothing may be made in a namespace that is going",
	"CertificateApproval":           "who may approve certificates would be anybody",
	"CertificateSigning":            "who may sign certificates would be anybody",
	"CertificateSubjectRestriction": "certificates of system:masters could be asked for",
}

// checkArg says why an argument of kube-apiserver cannot be given; ours are the names of the hub's own admission plugins.
func checkArg(arg string, ours []string) error {
	name, value, found := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if name == "" || !found {
		return fmt.Errorf("%q is not NAME=VALUE: correct --kube-apiserver-arg", arg)
	}
	known := apiserver.FlagNames()
	if why, denied := denied(name); denied && slices.Contains(known, name) {
		return fmt.Errorf("the hub does not let --kube-apiserver-arg set %s: %s", name, why)
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
				return fmt.Errorf("admission plugin %s is the hub's own, without which nothing is claimed, checked or protected: take it off disable-admission-plugins of --kube-apiserver-arg", plugin)
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
				return fmt.Errorf("runtime-config %s turns off what the hub itself is built on: only alpha and beta versions can be turned off with --kube-apiserver-arg", setting)
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
