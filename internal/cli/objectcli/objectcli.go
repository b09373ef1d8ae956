// Package objectcli has the verbs of kubectl that write objects on the hub.
package objectcli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/annotate"
	"k8s.io/kubectl/pkg/cmd/create"
	kubectldelete "k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/edit"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/patch"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
)

func NewCreate(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := create.NewCmdCreate(cmdutil.NewFactory(hub), streams)
	cmd.Example = `  argosy create -f web.yaml
  argosy create namespace shop
  argosy create configmap settings -n shop --from-literal=color=blue`
	return hubcli.FromKubectl(cmd, hub)
}

func NewDelete(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := kubectldelete.NewCmdDelete(cmdutil.NewFactory(hub), streams)
	cmd.Long = `Deletes objects of the hub by file, name or label. If a policy propagates an object, the hub also deletes it in the
clusters, unless spec.preserveResourcesOnDeletion of the policy is true.

Deleting a policy deletes nothing in clusters. "argosy unjoin NAME --dry-run" lists what is deleted with a cluster.
--cascade=foreground waits until the objects that the object owns are deleted, and --cascade=orphan keeps them.`
	cmd.Example = `  argosy delete -f web.yaml
  argosy delete deployment web -n shop
  argosy delete deployments,services -n shop -l app=web`
	return hubcli.FromKubectl(cmd, hub)
}

func NewEdit(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := edit.NewCmdEdit(cmdutil.NewFactory(hub), streams)
	cmd.Example = `  argosy edit propagationpolicy web -n shop
  argosy edit deployment/web -n shop -o json`
	return hubcli.FromKubectl(cmd, hub)
}

func NewPatch(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := patch.NewCmdPatch(cmdutil.NewFactory(hub), streams)
	cmd.Example = `  argosy patch deployment web -n shop -p '{"spec":{"replicas":3}}'
  argosy patch cloneset web -n shop --type=merge -p '{"spec":{"replicas":3}}'`
	return hubcli.FromKubectl(cmd, hub)
}

func NewLabel(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := label.NewCmdLabel(cmdutil.NewFactory(hub), streams)
	cmd.Example = `  argosy label cluster eu tier=production
  argosy label deployment web -n shop tier-`
	return hubcli.FromKubectl(cmd, hub)
}

func NewAnnotate(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := annotate.NewCmdAnnotate(hub.CalledBy, cmdutil.NewFactory(hub), streams)
	cmd.Example = `  argosy annotate cloneset web -n shop owner=payments
  argosy annotate cloneset web -n shop owner-`
	return hubcli.FromKubectl(cmd, hub)
}
