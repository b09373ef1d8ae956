package membercli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/apiresources"
	"k8s.io/kubectl/pkg/cmd/explain"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
)

// NewAPIResources, NewAPIVersions and NewExplain are kubectl's, for what the hub or a member serves.
func NewAPIResources(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	in := &place{HubFlags: hub}
	cmd := apiresources.NewCmdAPIResources(in, streams)
	cmd.Example = `  argosy api-resources
  argosy api-resources -o wide --api-group=apps.kruise.io
  argosy api-resources -C eu`
	return inPlace(cmd, hub, in, (*ScopeFlags).hubOrMember)
}

func NewAPIVersions(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	in := &place{HubFlags: hub}
	cmd := apiresources.NewCmdAPIVersions(in, streams)
	cmd.Example = `  argosy api-versions
  argosy api-versions -C eu`
	return inPlace(cmd, hub, in, (*ScopeFlags).hubOrMember)
}

func NewExplain(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	in := &place{HubFlags: hub}
	out := &hubcli.Painter{Out: streams.Out} // kubectl prints texts of members as they are
	streams.Out = out
	cmd := explain.NewCmdExplain(hub.CalledBy, cmdutil.NewFactory(in), streams)
	cmd.Example = `  argosy explain propagationpolicy.spec.placement
  argosy explain cloneset --recursive
  argosy explain cloneset.spec.updateStrategy -C eu`
	return inPlace(cmd, hub, in, (*ScopeFlags).hubOrMember)
}
