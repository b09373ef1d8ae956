package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	words "github.com/argosy-io/argosy/internal/core/object/text"
)

// acceptedArgs are the arguments of kube-apiserver that users may set. The hub manages all others, for example its
// store, address, keys and authorizers: another value would break the hub or open it. An argument of a new Kubernetes
// version is refused until it is added here.
var acceptedArgs = []string{
	"admission-control-config-file",
	"anonymous-auth",
	"audit-log-compress",
	"audit-log-format",
	"audit-log-maxage",
	"audit-log-maxbackup",
	"audit-log-maxsize",
	"audit-log-mode",
	"audit-log-truncate-enabled",
	"audit-log-truncate-max-batch-size",
	"audit-log-truncate-max-event-size",
	"audit-webhook-batch-max-size",
	"audit-webhook-batch-max-wait",
	"audit-webhook-config-file",
	"audit-webhook-mode",
	"audit-webhook-truncate-enabled",
	"audit-webhook-truncate-max-batch-size",
	"audit-webhook-truncate-max-event-size",
	"authentication-token-webhook-cache-ttl",
	"authentication-token-webhook-config-file",
	"authentication-token-webhook-version",
	"delete-collection-workers",
	"disable-admission-plugins",
	"enable-admission-plugins",
	"event-ttl",
	"feature-gates",
	"goaway-chance",
	"http2-max-streams-per-connection",
	"max-mutating-requests-inflight",
	"max-requests-inflight",
	"min-request-timeout",
	"profiling",
	"request-timeout",
	"runtime-config",
	"service-account-max-token-expiration",
	"shutdown-delay-duration",
	"strict-transport-security-directives",
	"tls-cipher-suites",
	"tls-min-version",
	"tracing-config-file",
	"watch-cache-sizes",
}

// requiredAdmission are plugins of Kubernetes that the hub needs for security or to keep its objects, with the reason.
var requiredAdmission = map[string]string{
	"NamespaceLifecycle":            "objects could be created in a namespace that is being terminated",
	"CertificateApproval":           "any user could approve certificates",
	"CertificateSigning":            "any user could sign certificates",
	"CertificateSubjectRestriction": "certificates for system:masters could be requested",
}

// checkArg returns an error if users may not set an argument of kube-apiserver. ours are the names of the hub's own
// admission plugins.
func checkArg(arg string, ours []string) error {
	name, value, found := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if name == "" || !found {
		return fmt.Errorf("%q is not NAME=VALUE: correct --kube-apiserver-arg", arg)
	}
	if !slices.Contains(acceptedArgs, name) {
		return unacceptedArg(name)
	}
	listed := strings.Split(value, ",")
	switch name {
	case "disable-admission-plugins":
		for _, plugin := range listed {
			if slices.Contains(ours, plugin) {
				return fmt.Errorf("admission plugin %s is the hub's own and cannot be disabled: remove it from disable-admission-plugins of --kube-apiserver-arg", plugin)
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
			if on == "false" && (api == "api/all" || api == "api/ga" || api == "api/legacy" || strings.HasSuffix(api, "/v1") ||
				api == "v1") {
				return fmt.Errorf("runtime-config %s disables an API that the hub depends on: only alpha and beta versions can be disabled with --kube-apiserver-arg", setting)
			}
		}
	}
	return nil
}

// unacceptedArg returns the error for an argument that users may not set. It names the hub's own flag, or the argument
// that the user probably meant.
func unacceptedArg(name string) error {
	const text = "--kube-apiserver-arg does not accept %s: %s"
	hub := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&Config{}).BindFlags(hub)
	if hub.Lookup(name) != nil {
		return fmt.Errorf(text, name, fmt.Sprintf("use --%s of the hub", name))
	}
	if meant := words.Meant(name, acceptedArgs); meant != "" {
		return fmt.Errorf(text, name, fmt.Sprintf("did you mean %s?", meant))
	}
	return fmt.Errorf(text, name, fmt.Sprintf(
		"it accepts %s; the hub manages all others, see `argosy up --help` for its own flags",
		strings.Join(acceptedArgs, ", ")))
}
