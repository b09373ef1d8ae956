// Package protect decides which objects of the hub itself may be deleted, and what to do before. Admission reads the
// objects and passes them as arguments.
package protect

import (
	"fmt"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// Confirmed reports whether the annotations of an object confirm its deletion.
func Confirmed(name string, annotations map[string]string) bool {
	return annotations[wellknown.ConfirmDeletionAnnotation] == name
}

// Definition returns why the definition of a kind may not be deleted; nil if it may. own is true if the kind is one of
// the hub's, used if templates are of the kind.
func Definition(name string, own bool, used string) error {
	switch {
	case own:
		return fmt.Errorf("%s is a definition of the hub itself: deleting it also deletes all objects of the kind; %s", name,
			confirm("customresourcedefinition", name))
	case used != "":
		return fmt.Errorf("%s defines the kind of propagated templates such as %s: deleting it also deletes all of them, and their objects in member clusters; %s",
			name, used, confirm("customresourcedefinition", name))
	}
	return nil
}

// Namespace returns why a namespace of the hub may not be deleted; nil if it may. stays is true if the cluster of an
// execution space is a member and is not being removed.
func Namespace(name string, stays bool) error {
	cluster, err := names.ClusterOf(name)
	switch {
	case err == nil && stays:
		return fmt.Errorf("%s contains the Works of cluster %q, which is in the fleet; "+
			"unjoin the cluster instead: `argosy unjoin %s`; %s", name, cluster, cluster, confirm("namespace", name))
	case name == names.System:
		return fmt.Errorf("%s contains the hub's own objects; %s", name, confirm("namespace", name))
	case name == names.Clusters:
		return fmt.Errorf("%s contains the credentials of the member clusters; %s", name, confirm("namespace", name))
	}
	return nil
}

// ManifestWorks returns why the namespace of a cluster with a klusterlet may not be deleted.
func ManifestWorks(cluster string) error {
	return fmt.Errorf("%s contains the ManifestWorks of cluster %[1]q, whose klusterlet would delete their objects; "+
		"remove the cluster instead: `kubectl delete managedcluster %[1]s`; %s", cluster, confirm("namespace", cluster))
}

func confirm(kind, name string) string {
	return fmt.Sprintf("to delete it anyway, confirm first: `kubectl annotate %s %s %s=%s`", kind, name,
		wellknown.ConfirmDeletionAnnotation,
		name)
}
