package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/core/hub/roles"
)

// change is what a command needs that reads an object and changes it.
const change = "get,patch"

// adoption is what the commands need that bring objects of a member under the hub's management.
const adoption = "list resourceinterpretercustomizations.config.karmada.io; " +
	"get clusters.cluster.karmada.io,clusters/proxy.cluster.karmada.io"

// granted are the kinds of the objects of a grant.
const granted = "enclosedmanifests.release.argosy.io,clusterpropagationpolicies.policy.karmada.io," +
	"clusterroles.rbac.authorization.k8s.io,clusterrolebindings.rbac.authorization.k8s.io"

const approval = "get,approve releases.release.argosy.io .; create releaseapprovals.release.argosy.io ."

// needs has the rights that a command needs besides those that an error names: verbs on what was refused, or verbs, the
// resources and perhaps their namespace; "." is that of what was refused.
var needs = map[string]string{
	"cordon": change, "uncordon": change, "taint": change, "label": change, "annotate": change, "edit": change,
	"patch": change, "apply": "get,create,patch", "delete": "get,delete",
	"adopt": adoption, "promote": adoption, "migrate": adoption + "; list works.work.karmada.io",
	"orphans":        "get clusters/proxy.cluster.karmada.io; list works.work.karmada.io",
	"addons":         "list enclosedmanifests.release.argosy.io",
	"addons enable":  "get,create,update enclosedmanifests.release.argosy.io,clusterpropagationpolicies.policy.karmada.io",
	"addons disable": "list,delete enclosedmanifests.release.argosy.io",
	"access":         "list " + granted + ",clusters.cluster.karmada.io; get clusterresourcebindings.work.karmada.io",
	"access grant": "get,create,update enclosedmanifests.release.argosy.io,clusterpropagationpolicies.policy.karmada.io; " +
		"get,list clusterroles.rbac.authorization.k8s.io; " +
		"list clusterrolebindings.rbac.authorization.k8s.io,clusters.cluster.karmada.io",
	"access revoke": "list,delete " + granted + "; get,create,update clusterpropagationpolicies.policy.karmada.io; " +
		"get enclosedmanifests.release.argosy.io,clusterresourcebindings.work.karmada.io; list works.work.karmada.io",
	"join":            "list,create clusters.cluster.karmada.io; get,create secrets karmada-cluster",
	"restore":         "get configmaps karmada-system; list works.work.karmada.io",
	"unjoin":          "get,delete clusters.cluster.karmada.io",
	"release approve": approval, "release reject": approval,
	"release pause": change + ",pause", "release resume": change + ",resume", "release abort": change + ",abort",
	"release rollback": change + ",rollback", "release skip": change + ",skip", "release retry": change + ",retry",
}

// needsOf returns the rights that a command needs besides those that an error names.
func needsOf(root, cmd *cobra.Command) (all []roles.Missing) {
	command := strings.TrimPrefix(cmd.CommandPath(), root.CommandPath()+" ")
	said, known := needs[command]
	if !known {
		command, _, _ = strings.Cut(command, " ")
		said = needs[command]
	}
	for _, part := range strings.FieldsFunc(said, func(r rune) bool { return r == ';' }) {
		fields := append(strings.Fields(part), "", "")
		for verb := range strings.SplitSeq(fields[0], ",") {
			for object := range strings.SplitSeq(fields[1], ",") {
				resource, group, _ := strings.Cut(object, ".")
				all = append(all, roles.Missing{Verb: verb, Group: group, Resource: resource, Namespace: fields[2]})
			}
		}
	}
	return all
}
