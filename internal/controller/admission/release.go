package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/release"
)

var releases = releasev1alpha1.GroupVersion.WithResource("releases")

// mutateRelease sets spec.createdBy: the user who creates the release, and later the user who created it. It also sets
// who used a verb on the release. The hub's own controllers may name another user. A new release gets the finalizer
// that keeps it until it is recorded.
func (o *objects) mutateRelease(_ context.Context, r request) error {
	if r.old == nil && !slices.Contains(r.obj.GetFinalizers(), releasev1alpha1.RecordedFinalizer) {
		r.obj.SetFinalizers(append(r.obj.GetFinalizers(), releasev1alpha1.RecordedFinalizer))
	}
	if r.fromHub() {
		return nil
	}
	if err := r.stampVerbs(); err != nil {
		return err
	}
	r.keepSpec("trigger")
	return r.stampUser("createdBy")
}

// stampVerbs sets release.VerbsAnnotation.
func (r request) stampVerbs() error {
	rel, old, err := decoded[releasev1alpha1.Release](r)
	if err != nil {
		return err
	}
	fields.PutAnnotation(r.obj, release.VerbsAnnotation, release.StampVerbs(old, rel, r.user().User))
	return nil
}

// stampUser sets a field of the spec to the user of a creation, and keeps it in an update.
func (r request) stampUser(name string) error {
	spec, ok := r.obj.Object["spec"].(map[string]any)
	if !ok {
		return nil // the schema refuses it
	}
	if r.old == nil {
		by, err := generic(r.user())
		if err != nil {
			return err
		}
		spec[name] = by
		return nil
	}
	r.keepSpec(name)
	return nil
}

// keepSpec keeps a field of the spec as it is stored; it removes the field if it is not stored.
func (r request) keepSpec(name string) {
	spec, ok := r.obj.Object["spec"].(map[string]any)
	if !ok {
		return // the schema refuses it
	}
	delete(spec, name)
	if r.old == nil {
		return
	}
	if was, ok, _ := unstructured.NestedFieldCopy(r.old.Object, "spec", name); ok {
		spec[name] = was
	}
}

func (r request) user() releasev1alpha1.ReleaseUser {
	info := r.GetUserInfo()
	return releasev1alpha1.ReleaseUser{User: info.GetName(), UID: info.GetUID(), Groups: info.GetGroups()}
}

// validateRelease validates the changes of a Release, and checks the rights that they need.
func (o *objects) validateRelease(ctx context.Context, r request) error {
	rel, old, err := decoded[releasev1alpha1.Release](r)
	if err != nil {
		return err
	}
	if !r.fromHub() {
		for _, right := range release.RightsFor(old, rel) {
			if err := o.mayOnRelease(ctx, r, right.Verb, r.name(), right.For); err != nil {
				return err
			}
		}
		if old == nil || !equality.Semantic.DeepEqual(rel.Spec.Targets, old.Spec.Targets) {
			if err := o.mayUpdateTargets(ctx, r, rel); err != nil {
				return err
			}
		}
		if err := r.refuse(release.CheckAnnotations(old, rel)); err != nil {
			return err
		}
		if err := r.refuse(o.checkState(ctx, rel, old)); err != nil {
			return err
		}
	}
	if old != nil {
		if err := r.refuse(validate.ReleaseUpdate(rel, old)); err != nil {
			return err
		}
		// A release that an earlier version stored can still be paused.
		if equality.Semantic.DeepEqual(rel.Spec.Targets, old.Spec.Targets) &&
			equality.Semantic.DeepEqual(rel.Spec.Strategy, old.Spec.Strategy) {
			return nil
		}
	}
	return r.refuse(validate.Release(rel, o.scoped()))
}

// checkState refuses a state that the release cannot have, such as that of a rollback after another release. To take a
// request back is not refused, so that a file with state: Run can be applied again: it gets a warning. The hub checks
// targets of a rollback, which are not read here; see releasev1alpha1.ReasonNotRolledBack.
func (o *objects) checkState(ctx context.Context, rel, old *releasev1alpha1.Release) field.ErrorList {
	state := rel.Spec.State
	if old == nil || state == "" || state == old.Spec.State {
		return nil
	}
	in := release.Input{Release: old}
	if state == releasev1alpha1.StateRollback && release.NeedsTargets(old, releasev1alpha1.VerbRollback) {
		in.Others = o.releasesIn(ctx, old.Namespace)
	}
	err := release.CheckState(in, state)
	switch {
	case err == nil:
		return nil
	case state == releasev1alpha1.StateRun:
		warn(ctx, []string{"spec.state: " + err.Error()}, nil)
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "state"), err.Error())}
}

// releasesIn returns the releases of a namespace; none if they cannot be read, so that this prevents no rollback.
func (o *objects) releasesIn(ctx context.Context, namespace string) []releasev1alpha1.Release {
	var all releasev1alpha1.ReleaseList
	if list(ctx, o.client.Resource(releases).Namespace(namespace), metav1.ListOptions{}, &all) != nil {
		return nil
	}
	return slices.DeleteFunc(all.Items, func(r releasev1alpha1.Release) bool { return r.DeletionTimestamp != nil })
}

// sameRelease reports whether an update changes nothing that the hub acts on.
func sameRelease(r request) bool {
	if r.GetResource().GroupResource() != releases.GroupResource() {
		return true
	}
	verbs := func(obj *unstructured.Unstructured) map[string]string {
		kept := map[string]string{}
		for _, key := range []string{releasev1alpha1.SkipStageAnnotation, releasev1alpha1.RetryAnnotation,
			releasev1alpha1.BreakGlassAnnotation, release.VerbsAnnotation} {
			if value, ok := obj.GetAnnotations()[key]; ok {
				kept[key] = value
			}
		}
		return kept
	}
	return maps.Equal(verbs(r.old), verbs(r.obj))
}

// mayOnRelease refuses a write to a user without a verb on a release.
func (o *objects) mayOnRelease(ctx context.Context, r request, verb, name, what string) error {
	return o.require(ctx, r, right{verb: verb, resource: releases, namespace: r.GetNamespace(), name: name},
		"%s: you need permission to %s %s %q in the namespace %q", what, verb, releases.GroupResource(), name,
		r.GetNamespace())
}

// mayUpdateTargets rejects a release of a user who may not update its workloads: it replaces their pods.
func (o *objects) mayUpdateTargets(ctx context.Context, r request, rel *releasev1alpha1.Release) error {
	for i, t := range rel.Spec.Targets {
		allowed, resource, err := o.mayUpdate(ctx, r, t.Ref)
		if !allowed {
			return admission.NewForbidden(r, errors.Join(fmt.Errorf(
				"spec.targets[%d]: a release replaces the pods of its targets: you need permission to update %s %q in the namespace %q",
				i, resource, t.Ref.Name, r.GetNamespace()), err))
		}
	}
	return nil
}

// mayUpdate reports whether the user of a request may update a workload in its namespace.
func (o *objects) mayUpdate(ctx context.Context, r request,
	ref releasev1alpha1.ReleaseObjectReference) (allowed bool, resource schema.GroupResource, err error) {
	full := o.resourceOf(ref)
	allowed, err = o.authorized(ctx, r, right{verb: "update", resource: full, namespace: r.GetNamespace(), name: ref.Name})
	return allowed, full.GroupResource(), err
}

func (o *objects) resourceOf(ref releasev1alpha1.ReleaseObjectReference) schema.GroupVersionResource {
	if mapping, err := o.mapper.RESTMapping(match.GroupKind(ref.APIVersion, ref.Kind)); err == nil {
		return mapping.Resource
	}
	guessed, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	return guessed
}

// countsAsAuthor returns why the user of a request counts as the author of a release that the hub has started; empty if
// they do not. Who changed the workload is not known, so this is every user who may.
func (o *objects) countsAsAuthor(ctx context.Context, r request, rel *releasev1alpha1.Release,
	rule *releasev1alpha1.ReleaseApprovalRule) string {
	if rel.Spec.Trigger == nil || rule == nil || !rule.NotAuthor {
		return ""
	}
	for _, t := range rel.Spec.Targets {
		for _, verb := range changing {
			resource := o.resourceOf(t.Ref)
			if allowed, _ := o.authorized(ctx, r, right{verb: verb, resource: resource, namespace: r.GetNamespace(),
				name: t.Ref.Name}); allowed {
				return fmt.Sprintf("the hub started the release, and at this gate every user who may %s %s %q counts as its "+
					"author: another user must approve it", verb, resource.GroupResource(), t.Ref.Name)
			}
		}
	}
	return ""
}

// changing are the verbs that change a workload.
var changing = []string{"update", "patch"}

// onePerson is release.OnePerson for the user of a request, with the rights that users have now.
func (o *objects) onePerson(ctx context.Context, r request, rel *releasev1alpha1.Release,
	rule *releasev1alpha1.ReleaseApprovalRule, a *releasev1alpha1.ReleaseApproval) (why string, err error) {
	read := func(resource schema.GroupVersionResource, namespace, fields string, into any) {
		if err != nil {
			return
		}
		if failed := list(ctx, o.client.Resource(resource).Namespace(namespace), metav1.ListOptions{FieldSelector: fields},
			into); failed != nil {
			err = fmt.Errorf("list %s in namespace %q: %w", resource.Resource, namespace, failed)
		}
	}
	has := func(u releasev1alpha1.ReleaseUser, of right) bool {
		allowed, failed := o.authorizedUser(ctx, &user.DefaultInfo{Name: u.User, UID: u.UID, Groups: u.Groups}, of)
		if failed != nil && err == nil {
			err = fmt.Errorf("ask for the rights of %s: %w", u.User, failed)
		}
		return allowed
	}
	var approvals releasev1alpha1.ReleaseApprovalList
	read(releasev1alpha1.GroupVersion.WithResource("releaseapprovals"), rel.Namespace, "", &approvals)
	why = release.OnePerson(rel, rule, a, r.user(), approvals.Items, release.Rights{
		Has: func(u releasev1alpha1.ReleaseUser, of release.ActRight) bool {
			return has(u, right{verb: of.Verb, resource: schema.GroupVersionResource{Group: of.Group, Version: "*",
				Resource: of.Resource}, subresource: of.Subresource, namespace: of.Namespace, name: of.Name})
		},
		Tokens: func(namespace, name string) (names []string) {
			var secrets corev1.SecretList
			read(corev1.SchemeGroupVersion.WithResource("secrets"), namespace,
				"type="+string(corev1.SecretTypeServiceAccountToken), &secrets)
			for _, s := range secrets.Items {
				if s.Annotations[corev1.ServiceAccountNameKey] == name {
					names = append(names, s.Name)
				}
			}
			return names
		},
		Updaters: func() (users []releasev1alpha1.ReleaseUser) {
			var accounts corev1.ServiceAccountList
			read(corev1.SchemeGroupVersion.WithResource("serviceaccounts"), "", "", &accounts)
			for _, account := range accounts.Items {
				u := releasev1alpha1.ReleaseUser{User: serviceaccount.MakeUsername(account.Namespace, account.Name),
					Groups: append(serviceaccount.MakeGroupNames(account.Namespace), user.AllAuthenticated)}
				if slices.ContainsFunc(rel.Spec.Targets, func(t releasev1alpha1.ReleaseTarget) bool {
					return slices.ContainsFunc(changing, func(verb string) bool {
						return has(u, right{verb: verb, resource: o.resourceOf(t.Ref), namespace: rel.Namespace, name: t.Ref.Name})
					})
				}) {
					users = append(users, u)
				}
			}
			return users
		}})
	return why, err
}

// mutateReleaseApproval sets spec.by to the user who creates the approval, and has the approval deleted with its
// release.
func (o *objects) mutateReleaseApproval(_ context.Context, r request) error {
	name, _, _ := unstructured.NestedString(r.obj.Object, "spec", "release")
	uid, _, _ := unstructured.NestedString(r.obj.Object, "spec", "releaseUID")
	if r.old == nil && name != "" && uid != "" {
		r.obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: releasev1alpha1.GroupVersion.String(),
			Kind: releasev1alpha1.ReleaseKind.Kind, Name: name, UID: types.UID(uid)}})
	}
	return r.stampUser("by")
}

// validateReleaseApproval checks that the user of a new ReleaseApproval may approve the release, and that the release
// waits for this approval now. The schema rejects changes.
func (o *objects) validateReleaseApproval(ctx context.Context, r request, a, _ *releasev1alpha1.ReleaseApproval) error {
	if r.old != nil {
		return nil
	}
	a.Namespace = r.GetNamespace()
	if err := o.mayOnRelease(ctx, r, releasev1alpha1.VerbApprove, a.Spec.Release, "a ReleaseApproval"); err != nil {
		return err
	}
	path := field.NewPath("spec", "release")
	rel, err := get[releasev1alpha1.Release](ctx, o.client.Resource(releases).Namespace(a.Namespace), a.Spec.Release)
	switch {
	case err != nil:
		return fmt.Errorf("get release %s/%s: %w", a.Namespace, a.Spec.Release, err)
	case rel == nil:
		return r.refuse(field.ErrorList{field.NotFound(path, a.Spec.Release)})
	}
	gate, problem := release.CheckApproval(rel, a)
	if problem != nil {
		return r.refuse(field.ErrorList{problem})
	}
	why := release.MayApprove(rel, gate.Approval, r.user())
	if why == "" && a.Spec.Verdict != releasev1alpha1.VerdictReject {
		if why = o.countsAsAuthor(ctx, r, rel, gate.Approval); why == "" {
			why, err = o.onePerson(ctx, r, rel, gate.Approval, a)
		}
		if err != nil {
			return err
		}
	}
	if why != "" {
		return admission.NewForbidden(r, errors.New(why))
	}
	return nil
}

// validateReleaseRevision refuses revisions that the hub has not made: a release sends their pods to members as if the
// workload had them.
func (o *objects) validateReleaseRevision(_ context.Context, r request) error {
	if r.fromHub() {
		return nil
	}
	return admission.NewForbidden(r, errors.New("only the hub writes ReleaseRevisions, when it accepts a release"))
}
