package migrate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// recentWrites is how long a write of an object counts: who wrote it since is expected to write it again.
const recentWrites = 7 * 24 * time.Hour

// Writer is a field manager that wrote an object recently.
type Writer struct {
	Manager   string      `json:"manager"`
	LastWrite metav1.Time `json:"lastWrite"`
}

// harmless are field managers that do not decide what an object says: controllers that carry it out, and the name that
// API servers give to all who wrote it before they recorded managers.
var harmless = []string{"kubelet", "kube-controller-manager", "cloud-controller-manager", "kruise-manager",
	"keda", "keda-operator", "before-first-apply"}

// Writers returns the field managers that wrote an object in the 7 days before now, with the last write of each, sorted
// by name. The hub, harmless managers, and writes of the status are left out.
func Writers(live *unstructured.Unstructured, now time.Time) []Writer {
	var all []Writer
	for _, e := range live.GetManagedFields() {
		if e.Time == nil || e.Time.Time.Before(now.Add(-recentWrites)) || e.Subresource == "status" ||
			isHub(e.Manager) || slices.Contains(harmless, e.Manager) {
			continue
		}
		name := cmp.Or(e.Manager, "unknown") // clients may send no name
		i := slices.IndexFunc(all, func(w Writer) bool { return w.Manager == name })
		switch {
		case i < 0:
			all = append(all, Writer{Manager: name, LastWrite: *e.Time})
		case all[i].LastWrite.Before(e.Time):
			all[i].LastWrite = *e.Time
		}
	}
	slices.SortFunc(all, func(a, b Writer) int { return strings.Compare(a.Manager, b.Manager) })
	return all
}

// isHub reports whether a field manager is the hub, its console or its commands.
func isHub(manager string) bool { return manager == "argosy" || strings.HasPrefix(manager, "argosy-") }

// ByHand reports whether a field manager is kubectl. People and scripts write with it; nothing writes again on its own.
func ByHand(manager string) bool {
	return manager == "kubectl" || strings.HasPrefix(manager, "kubectl-")
}
