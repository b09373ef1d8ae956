package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/why"
)

const (
	releasePath  = apiPrefix + "release"
	evidencePath = apiPrefix + "evidence"
)

var listReleases = right{verb: "list", group: releasev1alpha1.GroupVersion.Group, resource: "releases"}

func listReleasesIn(namespace string) right {
	want := listReleases
	want.namespace = namespace
	return want
}

// releases returns the releases that a user may list. The page sorts them by urgency.
func (a *API) releases(ctx context.Context, u user.Info, s *fleetState) view {
	v, lists := view{}, a.lists(ctx, u)
	for _, r := range s.releases {
		if lists(listReleasesIn(r.facts.Namespace)) {
			v.rows = append(v.rows, r.row)
		}
	}
	if len(v.rows) == 0 && !a.rights.allows(ctx, u, listReleases) {
		v.missing = append(v.missing, listReleases.missing())
	}
	return v
}

// releaseAction is an action that a release accepts in its present state.
type releaseAction struct {
	Verb string `json:"verb"`
	// Gate of a verdict, and the stage that is under way.
	Gate  string `json:"gate,omitempty"`
	Stage string `json:"stage,omitempty"`
	// Writes are the requests that the page sends as the user, in this order. TextAt is the field of the last one for the
	// text of the user, which Needed requires.
	Writes []apiWrite `json:"writes"`
	TextAt []string   `json:"textAt"`
	Needed bool       `json:"needed,omitempty"`
	// Missing is a right that the user lacks. Refused is the reason why the verdict of the user does not count. Admission
	// decides both again.
	Missing *Missing `json:"missing,omitempty"`
	Refused string   `json:"refused,omitempty"`
}

// apiWrite is a request to the API of the hub.
type apiWrite struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Type   string `json:"type"`
	Body   any    `json:"body"`
}

type releaseAnswer struct {
	overview.ReleaseDetail
	Actions []releaseAction `json:"actions"`
	// Unread is why other actions are not known.
	Unread []string `json:"unread,omitempty"`
}

// release describes a release to a user who may get it: namespace and name.
func (a *API) release(r *http.Request, u user.Info) (any, error) {
	c, mapper, err := a.clientFor(u)
	if err != nil {
		return nil, err
	}
	key := types.NamespacedName{Namespace: r.URL.Query().Get("namespace"), Name: r.URL.Query().Get("name")}
	return a.describeRelease(r.Context(), c, mapper, u, key)
}

// describeRelease returns a release and what the user can do to it. reader has the rights of the user.
func (a *API) describeRelease(ctx context.Context, reader client.Reader, mapper meta.RESTMapper, u user.Info,
	key types.NamespacedName) (*releaseAnswer, error) {
	r := &releasev1alpha1.Release{}
	if err := reader.Get(ctx, key, r); err != nil {
		return nil, err
	}
	answer := &releaseAnswer{ReleaseDetail: overview.DetailOfRelease(r), Actions: a.verdicts(ctx, u, r)}
	of := &why.ReleaseReader{Client: reader, Mapper: mapper, Namespace: r.Namespace, Now: time.Now}
	for _, verb := range release.RequestVerbs {
		in, err := of.RequestInput(ctx, r, verb)
		if apierrors.IsForbidden(err) {
			continue // a user who may not list releases cannot know whether this one can be rolled back
		}
		if err != nil {
			if text := err.Error(); !slices.Contains(answer.Unread, text) {
				answer.Unread = append(answer.Unread, text)
			}
			continue
		}
		request, err := release.RequestFor(in, verb)
		if err != nil || request.Already != "" {
			continue
		}
		action := releaseAction{Verb: verb, Needed: release.NeedsReason(verb),
			TextAt: []string{"metadata", "annotations", releasev1alpha1.ReleaseReasonAnnotation}}
		if stage := release.StageUnderWay(r); stage != nil && action.Needed {
			action.Stage = stage.Name
		}
		action.Missing = a.missingOn(ctx, u, "patch", r)
		for i, patch := range request.Patches("") {
			metadata, _ := patch["metadata"].(map[string]any)
			if metadata == nil {
				metadata = map[string]any{}
				patch["metadata"] = metadata
			}
			metadata["uid"] = r.UID // another release of this name is not meant
			action.Writes = append(action.Writes, apiWrite{Method: http.MethodPatch, Type: string(types.MergePatchType),
				Path: releasesOf(r.Namespace, "releases") + "/" + r.Name, Body: patch})
			if action.Missing == nil {
				action.Missing = a.missingOn(ctx, u, request.Writes[i].Verb(), r)
			}
		}
		answer.Actions = append(answer.Actions, action)
	}
	return answer, nil
}

// evidence returns what a user decides about at a gate of a release: namespace, name and gate.
func (a *API) evidence(r *http.Request, u user.Info) (any, error) {
	c, mapper, err := a.clientFor(u)
	v, rel := r.URL.Query(), &releasev1alpha1.Release{}
	if err == nil {
		err = c.Get(r.Context(), types.NamespacedName{Namespace: v.Get("namespace"), Name: v.Get("name")}, rel)
	}
	if err != nil {
		return nil, err
	}
	waiting := release.WaitingGates(rel)
	i := slices.IndexFunc(waiting, func(g releasev1alpha1.ReleaseGateStatus) bool { return g.Name == v.Get("gate") })
	if i < 0 {
		return nil, apistatus.Error(http.StatusConflict, metav1.StatusReasonConflict,
			fmt.Sprintf("release %s does not wait at gate %q any more", rel.Name, v.Get("gate")))
	}
	reader := &why.ReleaseReader{Client: c, Mapper: mapper, Namespace: rel.Namespace, Now: time.Now}
	return reader.Evidence(r.Context(), rel, waiting[i])
}

// verdicts returns what a user can say at the gates at which a release waits.
func (a *API) verdicts(ctx context.Context, u user.Info, r *releasev1alpha1.Release) []releaseAction {
	actions := []releaseAction{}
	create := right{verb: "create", group: listReleases.group, resource: "releaseapprovals", namespace: r.Namespace}
	for _, gate := range release.WaitingGates(r) {
		for verb, verdict := range map[string]releasev1alpha1.ApprovalVerdict{
			releasev1alpha1.VerbApprove: releasev1alpha1.VerdictApprove, "reject": releasev1alpha1.VerdictReject} {
			approval := release.ApprovalFor(r, gate, verdict, "")
			approval.APIVersion, approval.Kind = releasev1alpha1.GroupVersion.String(), "ReleaseApproval"
			action := releaseAction{Verb: verb, Gate: gate.Name, Stage: approval.Spec.Stage,
				TextAt:  []string{"spec", "comment"},
				Missing: a.missingOn(ctx, u, releasev1alpha1.VerbApprove, r),
				Writes: []apiWrite{{Method: http.MethodPost, Type: "application/json",
					Path: releasesOf(r.Namespace, create.resource), Body: approval}},
				Refused: release.MayApprove(r, release.RuleOf(r, gate),
					releasev1alpha1.ReleaseUser{User: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()})}
			if action.Missing == nil && !a.rights.allows(ctx, u, create) {
				action.Missing = create.missing()
			}
			actions = append(actions, action)
		}
	}
	slices.SortFunc(actions, func(a, b releaseAction) int {
		return cmp.Or(cmp.Compare(a.Gate, b.Gate), cmp.Compare(a.Verb, b.Verb))
	})
	return actions
}

// releasesOf returns the path of a resource of releases in a namespace.
func releasesOf(namespace, resource string) string {
	return "apis/" + releasev1alpha1.GroupVersion.String() + "/namespaces/" + namespace + "/" + resource
}

// missingOn returns the right that a user lacks for a verb on a release; nil if the user has it.
func (a *API) missingOn(ctx context.Context, u user.Info, verb string, r *releasev1alpha1.Release) *Missing {
	want := right{verb: verb, group: listReleases.group, resource: listReleases.resource, namespace: r.Namespace}
	key, err := json.Marshal([]string{verb, want.group, want.resource, r.Namespace, r.Name})
	if err == nil && a.rights.decide(ctx, u, string(key), authorizer.AttributesRecord{User: u, Verb: verb,
		APIGroup: want.group, APIVersion: releasev1alpha1.GroupVersion.Version, Resource: want.resource,
		Namespace: r.Namespace, Name: r.Name, ResourceRequest: true}) {
		return nil
	}
	return want.missing()
}
