package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/core/explain/simulate"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/override"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/rollout"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/why"
)

// Simulate returns what objects would do to the fleet if they were applied. hub acts with the rights of the user.
type Simulate func(ctx context.Context, hub *rest.Config, objects []*unstructured.Unstructured) (simulate.Report, error)

// clientFor returns a client that acts as the user. Its errors name missing rights.
func (a *API) clientFor(u user.Info) (client.Client, meta.RESTMapper, error) {
	mapper, err := a.kinds.mapper()
	var c client.Client
	if err == nil {
		c, err = a.connect(a.configOf(u), mapper)
	}
	if err != nil {
		return nil, nil, apierrors.NewServiceUnavailable("reach the hub's API: " + err.Error())
	}
	return naming{c}, mapper, nil
}

// read reads the object that a query names as the user.
func (a *API) read(r *http.Request, u user.Info) (*unstructured.Unstructured, *meta.RESTMapping, error) {
	c, mapper, err := a.clientFor(u)
	if err != nil {
		return nil, nil, err
	}
	v := r.URL.Query()
	m, err := mappingOf(mapper, v.Get("kind"))
	if err != nil {
		return nil, nil, err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(m.GroupVersionKind)
	return obj, m, c.Get(r.Context(), client.ObjectKey{Namespace: v.Get("namespace"), Name: v.Get("name")}, obj)
}

// mappingOf returns the resource of a kind that a query names.
func mappingOf(mapper meta.RESTMapper, kind string) (*meta.RESTMapping, error) {
	m, err := mapper.RESTMapping(schema.ParseGroupKind(kind))
	if err != nil {
		return nil, apistatus.Error(http.StatusNotFound, metav1.StatusReasonNotFound,
			fmt.Sprintf("the hub does not serve the kind %q", kind))
	}
	return m, nil
}

// refuseError responds with an error of the hub's API.
func refuseError(w http.ResponseWriter, err error) {
	var missing *Missing
	var wrong *why.Error
	switch {
	case errors.As(err, &missing):
		missing.refuse(w)
	case errors.As(err, &wrong):
		refuse(w, why.Code(wrong.Reason), wrong.Reason, wrong.Message)
	default:
		refuse(w, codeOf(err), apierrors.ReasonForError(err), err.Error())
	}
}

// readJSON reads the body of a request, which has no more than a number of bytes.
func readJSON(r *http.Request, limit int64, into any) error {
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(media), "application/json") {
		return apistatus.Error(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "send JSON")
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, limit))
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return badRequest("the request is not valid JSON, or too large")
	}
	return nil
}

// codeOf returns the status code of an error of an API; 500 if it has none, or not one of an error.
func codeOf(err error) int {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 600 {
		return int(status.Status().Code)
	}
	return http.StatusInternalServerError
}

// action is a button of a template.
type action struct {
	rollout.Action
	// About is what an approval is for.
	About string `json:"about,omitempty"`
	// Path of the patch that the page sends.
	Path string `json:"path"`
	// Missing is the right that the user lacks; nil if the user may do it.
	Missing *Missing `json:"missing,omitempty"`
}

// actions returns the actions of a template: kind, namespace and name.
func (a *API) actions(r *http.Request, u user.Info) (any, error) {
	obj, m, err := a.read(r, u)
	if err != nil {
		return nil, err
	}
	ctx, all := r.Context(), []action{}
	for _, one := range rollout.Actions(obj, time.Now()) {
		all = append(all, action{Action: one})
	}
	if c, _, err := a.clientFor(u); err == nil {
		gk := obj.GroupVersionKind().GroupKind()
		// Users who may not read the binding do not see what waits for an approval.
		if b, _, err := scope.BindingFor(ctx, c, gk, obj.GetNamespace(), obj.GetName()); err == nil && b != nil {
			if one := approval(obj, b); one != nil {
				all = append(all, *one)
			}
		}
	}
	for i := range all {
		next, one := &all[i], all[i].Action
		next.Path = pathOf(obj, m)
		patch := right{verb: "patch", group: m.Resource.Group, resource: m.Resource.Resource, subresource: one.Subresource,
			namespace: obj.GetNamespace(), name: obj.GetName()}
		if one.Subresource != "" {
			next.Path += "/" + one.Subresource
		}
		if !a.rights.allows(ctx, u, patch) {
			next.Missing = patch.missing()
		}
	}
	return all, nil
}

// approval returns the action that approves the stage, or the steps of a Kruise Rollout, at which a template waits; nil
// if it does not wait. It is valid for the version of the template that was read.
func approval(obj *unstructured.Unstructured, b workv1alpha2.Binding) *action {
	var annotation, value, about string
	switch gk := obj.GroupVersionKind().GroupKind(); {
	case gk == rollout.Kind:
		clusters := map[string]rollout.Progress{}
		for _, item := range b.BindingStatus().AggregatedStatus {
			var status map[string]any
			if item.Status != nil && json.Unmarshal(item.Status.Raw, &status) == nil {
				clusters[item.ClusterName] = rollout.ProgressOf(status)
			}
		}
		next, approved, err := rollout.Approve(obj.GetAnnotations()[wellknown.ApprovedStepsAnnotation], clusters, nil)
		if err != nil {
			return nil // it waits nowhere
		}
		annotation, value, about = wellknown.ApprovedStepsAnnotation, next, strings.Join(approved, ", ")
	case fleet.InStages(obj):
		stage, reported := fleet.ReportedStage(b.BindingStatus().Conditions, obj.GetGeneration())
		if !reported || stage.State != fleet.StageWaiting {
			return nil
		}
		annotation, about = wellknown.RolloutStageAnnotation, stage.String()
		value = fleet.Approval{Stage: int64(stage.Number), Revision: fleet.RevisionOf(obj)}.String()
	default:
		return nil
	}
	return &action{About: about, Action: rollout.Action{Name: rollout.ActionApprove,
		Command: rollout.RolloutCommand(obj, rollout.ActionApprove),
		Patch: map[string]any{"metadata": map[string]any{"resourceVersion": obj.GetResourceVersion(),
			"annotations": map[string]any{annotation: value}}}}}
}

// pathOf returns the address of an object below the console.
func pathOf(obj *unstructured.Unstructured, m *meta.RESTMapping) string {
	parts := []string{"k8s", "apis", m.Resource.Group, m.Resource.Version}
	if m.Resource.Group == "" {
		parts = []string{"k8s", "api", m.Resource.Version}
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		parts = append(parts, "namespaces", obj.GetNamespace())
	}
	return strings.Join(append(parts, m.Resource.Resource, obj.GetName()), "/")
}

// object returns an object as YAML, to be edited: kind, namespace and name. With the parameter deletePod, it is a
// CloneSet that names this pod for deletion; with the parameter fewer, also with one replica fewer.
func (a *API) object(r *http.Request, u user.Info) (any, error) {
	obj, _, err := a.read(r, u)
	if err != nil {
		return nil, err
	}
	if v := r.URL.Query(); v.Has("deletePod") {
		pod := v.Get("deletePod")
		if len(validation.IsDNS1123Subdomain(pod)) > 0 {
			return nil, badRequest("deletePod is not the name of a pod")
		}
		if obj, err = fleet.DeletingPod(obj, pod, v.Has("fewer")); err != nil {
			return nil, badRequest("%v", err)
		}
	}
	text, err := yaml.Marshal(editable(obj).Object)
	if err != nil {
		return nil, err
	}
	edited, err := exact(string(text))
	return map[string]json.RawMessage{"yaml": edited}, err
}

// editable returns an object without the fields that the hub sets. It keeps the resourceVersion, so that an update
// does not overwrite a concurrent change.
func editable(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	delete(obj.Object, "status")
	for _, field := range []string{"managedFields", "uid", "creationTimestamp", "generation", "selfLink"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	fields.PutAnnotation(obj, wellknown.ChangedByAnnotation, "")
	return obj
}

// withoutVersion is editable without the resourceVersion, to be compared.
func withoutVersion(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = editable(obj)
	obj.SetResourceVersion("")
	for _, made := range simulate.ServerAnnotations() {
		fields.PutAnnotation(obj, made, "")
	}
	return obj
}

const (
	// maxChange bounds the text of a change, maxObjects its objects: each is read and simulated for any user.
	maxChange  = 512 << 10
	maxObjects = 20
	// maxListed bounds each list of an answer. One changed policy can concern every workload.
	maxListed = 100
	// changeTimeout is below the API server's own timeout of requests.
	changeTimeout = 45 * time.Second
	// maxSimulations run at once: each reads the fleet.
	maxSimulations = 2
)

// changeRequest is YAML with one or more objects. With a resourceVersion, an object is updated; without one, it is
// created.
type changeRequest struct {
	YAML  string `json:"yaml"`
	Apply bool   `json:"apply"`
}

// changed is the result of a change of one object, or its prediction by a dry run.
type changed struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Result is created, updated or unchanged; empty after an error.
	Result string `json:"result,omitempty"`
	// Diff has the fields that differ, as "spec.replicas: 2 → 3".
	Diff    []string `json:"diff,omitempty"`
	Error   string   `json:"error,omitempty"`
	Missing *Missing `json:"missing,omitempty"`
	// Warnings are those of the API server and of admission.
	Warnings []string `json:"warnings,omitempty"`
	// Clusters have the manifests that differ in another way, because of overrides.
	Clusters []clusterDiff `json:"clusters,omitempty"`

	before, after *unstructured.Unstructured
}

// clusterDiff has the fields that a change modifies in the manifest of one cluster. For a new object, these are the
// fields that overrides modify.
type clusterDiff struct {
	Cluster string   `json:"cluster"`
	Diff    []string `json:"diff,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// outcome is the answer to a change.
type outcome struct {
	Objects []changed `json:"objects"`
	// Applied is true if all objects were written.
	Applied bool `json:"applied"`
	// WhatIf is the simulated effect on the fleet, NoWhatIf the reason why there is none.
	WhatIf   *simulate.Report `json:"whatIf,omitempty"`
	NoWhatIf string           `json:"noWhatIf,omitempty"`
	Command  string           `json:"command"`
}

// change checks objects by a dry run of the API server and simulates them, or writes them, as the user.
func (a *API) change(r *http.Request, u user.Info) (any, error) {
	var in changeRequest
	if err := readJSON(r, 2*maxChange, &in); err != nil {
		return nil, err
	}
	if len(in.YAML) > maxChange {
		return nil, badRequest("the text is larger than %d KiB", maxChange>>10)
	}
	objects, err := parse(in.YAML)
	if err != nil {
		return nil, apistatus.Error(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error())
	}
	ctx := r.Context()
	c, mapper, err := a.clientFor(u)
	if err != nil {
		return nil, err
	}
	out := outcome{Applied: in.Apply, Command: "kubectl create -f FILE"}
	next := make([]*unstructured.Unstructured, 0, len(objects))
	for _, obj := range objects {
		if obj.GetResourceVersion() != "" {
			out.Command = "kubectl replace -f FILE"
		}
		result := write(ctx, c, mapper, obj, in.Apply)
		out.Objects = append(out.Objects, result)
		if result.Error != "" {
			out.Applied = false
			if in.Apply {
				break // what follows may need it
			}
			continue
		}
		after := result.after.DeepCopy()
		interpret.DropAllocated(after) // needs the managed fields
		next = append(next, editable(after))
	}
	if !in.Apply && len(next) == len(objects) {
		out.WhatIf, out.NoWhatIf = a.whatIf(ctx, u, next)
	}
	if out.WhatIf != nil {
		for i := range out.Objects {
			out.Objects[i].Clusters = manifests(ctx, c, out.Objects[i], out.WhatIf.Workloads)
		}
		out.WhatIf.Warnings = slices.DeleteFunc(out.WhatIf.Warnings, func(text string) bool {
			return slices.ContainsFunc(out.Objects, func(o changed) bool {
				return slices.ContainsFunc(o.Warnings, func(w string) bool { return strings.HasSuffix(text, w) })
			})
		})
		trim(out.WhatIf)
	}
	return out, nil
}

// pastRevision is a stored revision of a workload, and the way back to it; nil for the one that it has.
type pastRevision struct {
	release.PastRevision
	Undo    *pastUndo `json:"undo,omitempty"`
	Command string    `json:"command,omitempty"`
}

// pastUndo is an undo whose patch the page sends.
type pastUndo struct {
	release.Undo
	Patch json.RawMessage `json:"patch"`
}

type pastAnswer struct {
	Revisions []pastRevision `json:"revisions"`
	// Path of the patch that the page sends. Missing is the right that the user lacks, Refused why there is no way back.
	Path    string   `json:"path"`
	Missing *Missing `json:"missing,omitempty"`
	Refused string   `json:"refused,omitempty"`
	// Release is the one that refuses it; empty for none.
	Release string `json:"release,omitempty"`
}

// past returns the stored revisions of a workload: kind, namespace and name.
func (a *API) past(r *http.Request, u user.Info) (any, error) {
	obj, m, err := a.read(r, u)
	if err != nil {
		return nil, err
	}
	answer := pastAnswer{Revisions: []pastRevision{}, Path: pathOf(obj, m)}
	if !fleet.KeepsHistory(obj) {
		return answer, nil
	}
	c, _, err := a.clientFor(u)
	var in release.UndoInput
	if err == nil {
		in, err = why.Undo(r.Context(), c, obj)
	}
	var past []release.PastRevision
	if err == nil {
		past, err = in.Past()
	}
	if err != nil {
		return nil, err
	}
	answer.Release, answer.Refused = in.ReleaseOwner()
	for _, p := range past {
		one := pastRevision{PastRevision: p}
		if !p.Current && answer.Refused == "" {
			undo, err := in.UndoTo(p.Revision)
			if err != nil {
				answer.Refused = err.Error() // it holds for each revision
			} else {
				patch, err := exact(undo.Patch)
				if err != nil {
					return nil, err
				}
				one.Undo, one.Command = &pastUndo{undo, patch}, fmt.Sprintf("%s --to-revision %d --yes",
					rollout.CommandFor(obj, "argosy rollout undo"), p.Revision)
			}
		}
		answer.Revisions = append(answer.Revisions, one)
	}
	patch := right{verb: "patch", group: m.Resource.Group, resource: m.Resource.Resource, namespace: obj.GetNamespace(),
		name: obj.GetName()}
	if !a.rights.allows(r.Context(), u, patch) {
		answer.Missing = patch.missing()
	}
	return answer, nil
}

// parse reads the objects of a text. Its errors name the line of the text.
func parse(text string) (all []*unstructured.Unstructured, err error) {
	documents := split(text)
	if len(documents) > maxObjects {
		return nil, fmt.Errorf("the text has %d objects: the console takes up to %d, `kubectl apply` takes more",
			len(documents), maxObjects)
	}
	for _, d := range documents {
		raw, err := yaml.YAMLToJSONStrict([]byte(d.text))
		if err != nil {
			reason, _, _ := strings.Cut(yamlPrefix.ReplaceAllString(err.Error(), ""), "\n")
			return nil, fmt.Errorf("line %d is not valid YAML: %s", d.badLine(err), reason)
		}
		obj := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw, &obj.Object); err != nil {
			return nil, fmt.Errorf("line %d begins no object: write apiVersion, kind and metadata", d.line)
		}
		lacks := ""
		switch {
		case obj.GetAPIVersion() == "":
			lacks = "apiVersion"
		case obj.GetKind() == "":
			lacks = "kind"
		case obj.IsList():
			return nil, fmt.Errorf("line %d begins a list: write its objects as documents, separated by ---", d.line)
		case obj.GetName() == "":
			lacks = "metadata.name"
		}
		if lacks != "" {
			return nil, fmt.Errorf("the object that begins at line %d has no %s", d.line, lacks)
		}
		all = append(all, obj)
	}
	if len(all) == 0 {
		return nil, errors.New("the text has no object")
	}
	return all, nil
}

// document is a YAML document of a text, and its first line, from 1.
type document struct {
	text string
	line int
}

// yamlPrefix is what a YAML error begins with. Its line may be that of the block around the error.
var yamlPrefix = regexp.MustCompile(
	`^(?:error converting YAML to JSON: )?(?:yaml: )?(?:unmarshal errors:\s*)?(?:line (\d+): )?`)

const (
	// maxSearched bounds the bytes of a document that badLine parses again, about 20 times. The time for some texts grows
	// with their square.
	maxSearched = 16 << 10
	// linesTried at the end, before the search.
	linesTried = 8
)

// badLine returns the first line after those that are valid YAML, by a search from the line of the parser's error. In a
// longer document, it is the line of the error.
func (d document) badLine(err error) int {
	lines := slices.Collect(strings.Lines(d.text))
	said, _ := strconv.Atoi(yamlPrefix.FindStringSubmatch(err.Error())[1]) // 0 without a line
	said = min(said, len(lines))
	if len(d.text) > maxSearched {
		return d.line + max(said, 1) - 1
	}
	valid := func(n int) bool {
		_, err := yaml.YAMLToJSONStrict([]byte(strings.Join(lines[:n], "")))
		return err == nil
	}
	for n := len(lines) - 1; n > max(len(lines)-linesTried, 0); n-- { // most texts end where a user writes
		if valid(n) {
			return d.line + n
		}
	}
	good, bad := 0, len(lines)
	if before := said - 2; before > 0 && valid(before) { // the parser may count one line more
		good = before
	}
	for bad-good > 1 {
		if middle := (good + bad) / 2; valid(middle) {
			good = middle
		} else {
			bad = middle
		}
	}
	return d.line + good
}

// split returns the documents of a text that have more than comments.
func split(text string) (all []document) {
	var d document
	begun := false
	end := func() {
		if begun {
			all = append(all, d)
		}
		d, begun = document{}, false
	}
	line := 0
	for one := range strings.Lines(text) {
		line++
		trimmed := strings.TrimSpace(one)
		if rest, separates := strings.CutPrefix(one, "---"); separates {
			if rest = strings.TrimSpace(rest); rest == "" || strings.HasPrefix(rest, "#") {
				end()
				continue
			}
		}
		if !begun && (trimmed == "" || strings.HasPrefix(trimmed, "#")) {
			continue
		}
		if !begun {
			d.line, begun = line, true
		}
		d.text += one
	}
	end()
	return all
}

// write creates or updates an object, or lets the API server check that without writing.
func write(ctx context.Context, c client.Client, mapper meta.RESTMapper, obj *unstructured.Unstructured,
	apply bool) (out changed) {
	gvk := obj.GroupVersionKind()
	out = changed{Group: gvk.Group, Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
	m, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		out.Error = fmt.Sprintf("the hub does not serve %s of %s", gvk.Kind, gvk.GroupVersion())
		return out
	}
	namespaced := m.Scope.Name() == meta.RESTScopeNameNamespace
	if namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	out.Namespace = obj.GetNamespace()
	seen := &apiWarnings{}
	ctx = context.WithValue(ctx, apiWarningsKey{}, seen)
	defer func() { out.Warnings = seen.texts }()
	before, after := &unstructured.Unstructured{Object: map[string]any{}}, obj.DeepCopy()
	options := []client.CreateOption{client.FieldValidation("Strict")}
	updates := []client.UpdateOption{client.FieldValidation("Strict")}
	if !apply {
		options, updates = append(options, client.DryRunAll), append(updates, client.DryRunAll)
	}
	verb := "create"
	if obj.GetResourceVersion() == "" {
		err = c.Create(ctx, after, options...)
		out.Result = "created"
	} else {
		verb, out.Result = "update", "updated"
		before.SetGroupVersionKind(gvk)
		if err = c.Get(ctx, client.ObjectKeyFromObject(obj), before); err == nil {
			err = c.Update(ctx, after, updates...)
		}
	}
	if err != nil {
		out.Result, out.Error = "", err.Error()
		switch err := missingOf(err, verb, obj.GetNamespace()); {
		case errors.As(err, &out.Missing):
			out.Error = out.Missing.Error()
		case apierrors.IsConflict(err):
			out.Error = "another user has changed this object since you opened it: reload it, and make your change again"
		case apierrors.IsAlreadyExists(err):
			out.Error = "an object of this name exists: open that object to edit it"
		}
		return out
	}
	out.before, out.after = before, after
	out.Diff = simulate.Differences(withoutVersion(before).Object, withoutVersion(after).Object, gvk.Kind != "Secret")
	out.Diff = out.Diff[:min(len(out.Diff), maxListed)]
	if verb == "update" && len(out.Diff) == 0 {
		out.Result = "unchanged"
	}
	return out
}

// manifests returns how a change looks in the clusters of its workload, where overrides make that different.
func manifests(ctx context.Context, c client.Client, one changed, workloads []simulate.Workload) (all []clusterDiff) {
	i := slices.IndexFunc(workloads, func(w simulate.Workload) bool {
		return w.Kind == one.Kind && w.Namespace == one.Namespace && w.Name == one.Name &&
			match.GroupKind(w.APIVersion, w.Kind) == one.after.GroupVersionKind().GroupKind()
	})
	if i < 0 {
		return nil
	}
	targets := workloads[i].After.Clusters
	overrides, err := scope.Overrides.Over(ctx, c, one.Namespace)
	if err != nil || len(overrides) == 0 {
		return nil // a user who may not list overrides sees no effect of them
	}
	for _, target := range targets[:min(len(targets), maxListed)] {
		d := clusterDiff{Cluster: target.Name}
		var cluster clusterv1alpha1.Cluster
		err := c.Get(ctx, client.ObjectKey{Name: target.Name}, &cluster)
		var is *unstructured.Unstructured
		if err == nil {
			is, _, err = override.Apply(withoutVersion(one.after), &cluster, overrides)
		}
		if err != nil {
			d.Error = err.Error()
			all = append(all, d)
			continue
		}
		was := withoutVersion(one.after)
		if one.Result != "created" {
			if old, _, err := override.Apply(withoutVersion(one.before), &cluster, overrides); err == nil {
				was = old
			}
		}
		d.Diff = simulate.Differences(was.Object, is.Object, one.Kind != "Secret")
		d.Diff = d.Diff[:min(len(d.Diff), maxListed)]
		if len(d.Diff) > 0 && (one.Result == "created" || !slices.Equal(d.Diff, one.Diff)) {
			all = append(all, d)
		}
	}
	return all
}

// whatIf simulates objects on the fleet that the user may read. Without a report, it returns the reason.
func (a *API) whatIf(ctx context.Context, u user.Info, objects []*unstructured.Unstructured) (*simulate.Report,
	string) {
	if a.Simulate == nil {
		return nil, "this hub does not simulate for the console: run `argosy simulate -f FILE`"
	}
	select {
	case a.simulations <- struct{}{}:
		defer func() { <-a.simulations }()
	default:
		return nil, "the hub is busy with other simulations: try again in a minute"
	}
	report, err := a.Simulate(ctx, a.configOf(u), objects)
	if err != nil {
		return nil, err.Error()
	}
	return &report, ""
}

// apiWarnings collects the warnings in the API server's responses to the requests of a context.
type apiWarnings struct{ texts []string }

type apiWarningsKey struct{}

// HandleWarningHeaderWithContext adds a warning, once. Clients of configOf call it.
func (*apiWarnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	w, _ := ctx.Value(apiWarningsKey{}).(*apiWarnings)
	if w != nil && code == 299 && text != "" && !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// trim keeps what is about the objects of the change, and no more than a page shows.
func trim(report *simulate.Report) {
	*report = report.Narrow()
	report.Workloads = report.Workloads[:min(len(report.Workloads), maxListed)]
	report.Warnings = report.Warnings[:min(len(report.Warnings), maxListed)]
}
