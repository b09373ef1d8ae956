package why

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/core/hub/roles"
)

// permitted is a reader whose lists are empty where the user may not list, or the hub does not serve the kind. It
// records the rights that are missing, also those to get an object.
type permitted struct {
	client.Reader
	missing []roles.Missing
	// strict makes it an error that the hub does not serve a kind.
	strict bool
}

func (p *permitted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	in := client.ListOptions{}
	in.ApplyOptions(opts)
	err := p.Reader.List(ctx, list, opts...)
	if p.lacks(err, "list", in.Namespace) || !p.strict && (apierrors.IsNotFound(err) || meta.IsNoMatchError(err)) {
		return nil
	}
	return err
}

func (p *permitted) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := p.Reader.Get(ctx, key, obj, opts...)
	p.lacks(err, "get", key.Namespace)
	return err
}

// lacks reports whether an error is a missing right, and records it.
func (p *permitted) lacks(err error, verb, namespace string) bool {
	m := MissingOf(err, verb, namespace)
	if m != nil && !slices.Contains(p.missing, *m) {
		p.missing = append(p.missing, *m)
	}
	return m != nil
}

// MissingOf returns the right that the user lacks according to an error of the hub's API; nil for other errors.
func MissingOf(err error, verb, namespace string) *roles.Missing {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	d := status.Status().Details
	if d.Kind == "" || len(d.Causes) > 0 {
		return nil // a path, not a resource; or what clusters deny
	}
	m := roles.Lack(verb, d.Group, d.Kind, namespace)
	return &m
}

// NameRight returns an error of the hub's API with the right that the user lacks and the role that has it; other errors
// as they are.
func NameRight(err error, verb, namespace string) error {
	if lacks := MissingOf(err, verb, namespace); lacks != nil {
		return fmt.Errorf("%s: %w", roles.Sentence([]roles.Missing{*lacks}), err)
	}
	return err
}
