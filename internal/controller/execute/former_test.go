package execute

import (
	"testing"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/controller/controllertest"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/member/membertest"
)

func TestSupersededWorkLeavesItsObjectAlone(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		m := manifest(membertest.ConfigMap, "shop", "new")
		present := w.work(m)
		w.applied(present)
		former := w.work(manifest(membertest.ConfigMap, "shop", "old"), func(work *workv1alpha1.Work) {
			work.Name = names.FormerWork("ConfigMap", "c", "shop")
		})
		w.Quiet()
		w.expectContent(m, "new")
		if err := commit.Delete(t.Context(), w.Client, former); err != nil {
			t.Fatal(err)
		}
		w.gone(former)
		w.Quiet()
		w.expectContent(m, "new")
	})
}

func TestWorkWithFormerNameIsDeleted(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		m := manifest(membertest.ConfigMap, "shop", "old")
		former := w.work(m, func(work *workv1alpha1.Work) { work.Name = names.FormerWork("ConfigMap", "c", "shop") })
		w.expectContent(m, "old")
		if err := commit.Delete(t.Context(), w.Client, former); err != nil {
			t.Fatal(err)
		}
		w.gone(former)
		w.expectContent(m, "")
	})
}
