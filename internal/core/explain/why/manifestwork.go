package why

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/source/ocm"
)

// ManifestWorkFacts are the facts about a ManifestWork. They are read-only.
type ManifestWorkFacts struct {
	ManifestWork *ocmv1.ManifestWork
	Clusters     []*clusterv1alpha1.Cluster
	// Works are the Works of its cluster.
	Works []workv1alpha1.Work
}

// ManifestWorkAnswer is the explanation of a ManifestWork.
type ManifestWorkAnswer struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Summary   string `json:"summary"`
	// Findings are sorted by severity.
	Findings []Finding `json:"findings,omitempty"`
	// Objects are in the order of the spec.
	Objects []ManifestThere `json:"objects,omitempty"`
}

// ManifestThere is an object of a ManifestWork, with its state in the cluster.
type ManifestThere struct {
	Object string `json:"object"`
	// Work is the one of the object; empty for none.
	Work string `json:"work,omitempty"`
	// Applied and Available are the statuses of the conditions: True, False or Unknown; empty if unset.
	Applied   metav1.ConditionStatus `json:"applied,omitempty"`
	Available metav1.ConditionStatus `json:"available,omitempty"`
	Health    string                 `json:"health,omitempty"`
	// Why it is not applied, in the member's words.
	Why string `json:"why,omitempty"`
}

// ExplainManifestWork answers. The same facts give the same answer, in whatever order they come.
func ExplainManifestWork(f ManifestWorkFacts) ManifestWorkAnswer {
	mw := f.ManifestWork
	a := ManifestWorkAnswer{Kind: "ManifestWork", Namespace: mw.Namespace, Name: mw.Name}
	find := func(s Severity, what, next string) {
		a.Findings = append(a.Findings, newFinding(s, "", what, next))
	}
	var cluster *clusterv1alpha1.Cluster
	var joined []string
	for _, c := range f.Clusters {
		if joined = append(joined, c.Name); c.Name == mw.Namespace {
			cluster = c
		}
	}
	slices.Sort(joined)
	if cluster == nil {
		move := "move it to the namespace of a cluster"
		if meant := text.MeantObject(mw.Namespace, joined); meant != "" {
			move = fmt.Sprintf("if the namespace is misspelt, move it to %s", meant)
		}
		find(Problem, fmt.Sprintf("no cluster %q has joined, which the namespace names", mw.Namespace),
			fmt.Sprintf("the fleet has %s: %s, or `argosy join %s --cluster-kubeconfig FILE`",
				cmp.Or(strings.Join(joined, ", "), "no clusters"), move, mw.Namespace))
	} else if !membership.IsReady(cluster) {
		find(Attention, fmt.Sprintf("the cluster %s is not ready", cluster.Name), "`argosy why cluster "+cluster.Name+"`")
	}
	if leaves := meta.FindStatusCondition(mw.Status.Conditions, ocmv1.Deleting); mw.DeletionTimestamp != nil &&
		leaves != nil {
		find(Waiting, "it is being deleted: "+leaves.Message, "")
	}

	fleet := schedule.NewSnapshot(f.Clusters)
	works := map[string]*workv1alpha1.Work{}
	for i := range f.Works {
		if f.Works[i].Annotations[wellknown.ManifestWorkAnnotation] == mw.Name {
			works[f.Works[i].Name] = &f.Works[i]
		}
	}
	there, unanswered := 0, 0
	for _, item := range ocm.Items(mw, cluster) {
		row := ManifestThere{Object: strings.TrimSpace(item.Meta.Kind + " " +
			text.Path(item.Meta.Namespace, item.Meta.Name))}
		if w := works[item.WorkName(mw.Name, works)]; w != nil {
			row.Work = w.Name
			for _, s := range w.Status.ManifestStatuses {
				if row.Health = string(s.Health); membership.OutageOf(cluster) != nil &&
					!aggregate.Final(schema.GroupKind{Group: item.Meta.Group, Kind: item.Meta.Kind}, s.Status) {
					// it is the last status of a cluster that has not responded since
					row.Health = string(workv1alpha1.ResourceUnknown)
				}
			}
		}
		var fed, failure *metav1.Condition
		for _, m := range mw.Status.ResourceStatus.Manifests {
			if m.ResourceMeta == item.Meta {
				if c := meta.FindStatusCondition(m.Conditions, ocmv1.Applied); c != nil && c.ObservedGeneration == mw.Generation {
					row.Applied = c.Status
					if c.Status != metav1.ConditionTrue {
						row.Why = c.Message
						// The cause alone, if it is this one and not that of an earlier manifest.
						its := execute.FailureOf(works[item.WorkName(mw.Name, works)])
						if its != nil && c.Message == ocm.NotApplied(item, its) {
							row.Why, failure = its.Message, its
						}
					}
				}
				if c := meta.FindStatusCondition(m.Conditions, ocmv1.Available); c != nil {
					row.Available = c.Status
				}
				fed = meta.FindStatusCondition(m.Conditions, ocmv1.StatusFeedbackSynced)
			}
		}
		switch row.Applied {
		case metav1.ConditionTrue:
			there++
		case "":
			unanswered++
		default:
			find(Problem, row.Object+" is not applied: "+row.Why,
				remedyOfManifest(mw.Name, item, cluster, fleet, failure))
		}
		if row.Health == string(workv1alpha1.ResourceUnhealthy) {
			find(Problem, row.Object+" is not healthy there",
				fmt.Sprintf("`kubectl get works -n karmada-es-%s %s -o yaml` shows its status", mw.Namespace, row.Work))
		}
		if fed != nil && fed.Status == metav1.ConditionFalse {
			find(Attention, row.Object+": "+fed.Message, "correct its feedbackRules")
		}
		a.Objects = append(a.Objects, row)
	}
	if unanswered > 0 && cluster != nil {
		find(Waiting, text.Count(unanswered, "object")+" on the way: the cluster has not answered yet", "")
	}
	sortFindings(a.Findings)
	a.Summary = strings.Join(append(tally(a.Findings),
		fmt.Sprintf("%d of %s applied in cluster %s", there, text.Count(len(a.Objects), "object"), mw.Namespace)), ", ")
	return a
}

// remedyOfManifest returns what to do about an object of a ManifestWork that is not applied. failure is nil if its Work
// does not have the reason, as for an invalid manifest.
func remedyOfManifest(name string, item ocm.Item, c *clusterv1alpha1.Cluster, fleet schedule.Snapshot,
	failure *metav1.Condition) string {
	const retries = "; the hub retries by itself"
	gk := schema.GroupKind{Group: item.Meta.Group, Kind: item.Meta.Kind}
	switch {
	case c == nil:
		return "" // there is a finding about the cluster
	case item.Err != nil:
		return fmt.Sprintf("correct spec.workload.manifests[%d]", item.Meta.Ordinal)
	case failure == nil:
		return "fix what the message names" + retries
	}
	switch failure.Reason {
	case workv1alpha1.ReasonRejected, workv1alpha1.ReasonKindNotServed:
		if len(fleet.Versions(c.Name, gk)) == 0 {
			return fmt.Sprintf("install the CustomResourceDefinition or API of %s in cluster %s", gk, c.Name) + retries
		}
		return fmt.Sprintf("change what the member refuses in spec.workload.manifests[%d]", item.Meta.Ordinal)
	case workv1alpha1.ReasonNamespaceMissing:
		return createNamespace(item.Meta.Namespace, c.Name) +
			fmt.Sprintf(", or add the namespace to the manifests: `kubectl edit manifestworks %s -n %s`", name, c.Name) +
			afterDeletion + retries
	case workv1alpha1.ReasonObjectUnmanaged, workv1alpha1.ReasonObjectOfAnother:
		return "remove the object from this ManifestWork, or from the owner that the message names"
	case workv1alpha1.ReasonRestored:
		return "`argosy restore status` shows what waits after a restore, and how to accept it"
	}
	_, next := (&explanation{fleet: fleet}).explainFailure(c, failure, "")
	return next
}

// ManifestWorkFault returns the condition that explains why a ManifestWork is not applied. It is nil if it is applied,
// if the cluster has not answered yet, and while it is being deleted.
func ManifestWorkFault(mw *ocmv1.ManifestWork) *metav1.Condition {
	applied := meta.FindStatusCondition(mw.Status.Conditions, ocmv1.Applied)
	if applied == nil || applied.Status == metav1.ConditionTrue || mw.DeletionTimestamp != nil {
		return nil
	}
	return applied
}

// Write prints the answer: problems first, then each object.
func (a ManifestWorkAnswer) Write(out io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s/%s: %s\n", a.Kind, a.Namespace, a.Name, a.Summary)
	writeFindings(&b, a.Findings)
	table(&b, "\nObjects\n", a.Objects, []string{"OBJECT", "APPLIED", "AVAILABLE", "HEALTH", "WORK", "WHY"},
		func(o ManifestThere) []string {
			return []string{o.Object, string(o.Applied), string(o.Available), o.Health, o.Work, short(o.Why)}
		})
	return writePrintable(out, b.Bytes())
}
