package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/source/adopt"
	"github.com/argosy-io/argosy/internal/core/source/migrate"
	"github.com/argosy-io/argosy/internal/scope"
)

const (
	// migrateTimeout bounds the wait for the hub or a member after each step of a migration.
	migrateTimeout = 2 * time.Minute
	// compareTimeout is how long the Work of a cluster may differ from its object, until the hub has rendered it.
	compareTimeout = 30 * time.Second
	migratePeriod  = 200 * time.Millisecond
)

// await waits until done returns an empty string, or returns what was still missing. An error ends the wait.
func await(ctx context.Context, most time.Duration, done func(context.Context) (missing string, err error)) error {
	missing := ""
	err := wait.PollUntilContextTimeout(ctx, migratePeriod, most, true, func(ctx context.Context) (ok bool, err error) {
		now, err := done(ctx)
		if err != nil {
			return false, err
		}
		missing = now
		return missing == "", nil
	})
	if errors.Is(err, context.DeadlineExceeded) && missing != "" {
		return fmt.Errorf("after %s, %s", most, missing)
	}
	return err
}

// BringIn brings workloads under the hub's management, batch by batch: to Shadow only, or then to Own. last is the last
// batch; 0 for all. It returns the workloads that it looked at, also with an error.
func (m *Migration) BringIn(ctx context.Context, list []Workload, shadow bool, last int) ([]*Item, error) {
	var items []*Item
	skipped := 0
	for batch := 1; len(list) > 0 && (last == 0 || batch <= last); batch++ {
		var taken []*Item
		n := 0
		for ; n < len(list) && list[n].Batch <= batch; n++ {
			item, err := m.bringIn(ctx, list[n], shadow)
			if item != nil {
				items = append(items, item)
			}
			if err != nil {
				return items, fmt.Errorf("%s: %w", list[n], err)
			}
			if len(item.Conflicts) > 0 {
				skipped++
			} else {
				taken = append(taken, item)
			}
		}
		list = list[n:]
		if shadow {
			continue
		}
		if err := m.confirmAll(ctx, taken); err != nil {
			return items, err
		}
	}
	if len(list) > 0 {
		m.Progress("Batch %d is done, %d workloads remain in later batches.\n", last, len(list))
	}
	if skipped > 0 {
		return items, fmt.Errorf("%d workloads were skipped because of conflicts", skipped)
	}
	return items, nil
}

// bringIn brings one workload to Shadow, and then lets the hub write one cluster after the other.
func (m *Migration) bringIn(ctx context.Context, w Workload, shadow bool) (*Item, error) {
	item, err := m.Plan(ctx, w)
	if err != nil {
		return nil, err
	}
	if len(item.Conflicts) > 0 {
		for _, c := range item.Conflicts {
			m.Progress("%s: conflict: %s\n", item.Object, c)
		}
		m.Progress("%s: skipped, nothing was written\n", item.Object)
		return item, nil
	}
	if disturbs := item.Disturbs(); len(disturbs) > 0 && !m.Force {
		item.Stopped = "pods would not stay unchanged"
		return item, fmt.Errorf("it is not migrated, because its pods would not stay unchanged:\n  %s\nNothing of it was written. "+
			"Fix it and run the command again, or use --force", strings.Join(disturbs, "\n  "))
	}
	if item.joined.Template != nil {
		if err := m.shadow(ctx, item); err != nil {
			return item, err
		}
	}
	for i := range item.Clusters {
		c := &item.Clusters[i]
		if !slices.Contains(item.workload.Clusters, c.Name) {
			continue
		}
		if shadow || c.State == migrate.Own {
			m.Progress("%s: cluster %s is in %s\n", item.Object, c.Name, c.State)
			continue
		}
		if err := m.takeOver(ctx, item, c); err != nil {
			item.Stopped = err.Error()
			return item, fmt.Errorf("cluster %q: %w", c.Name, err)
		}
	}
	return item, nil
}

// shadow writes the objects of a workload to the hub, so that its clusters that the hub does not write are suspended,
// and waits for their Works.
func (m *Migration) shadow(ctx context.Context, item *Item) error {
	if err := CreateNamespace(ctx, m.Client, item.workload.Namespace); err != nil {
		return err
	}
	joins := slices.ContainsFunc(item.Clusters, func(c Cluster) bool { return c.State == Found })
	running := item.hub.record != nil && len(item.hub.record.Names(migrate.Verifying, migrate.Own)) > 0
	if running && (joins || item.record.Changing) {
		if err := m.writeOverrides(ctx, item); err != nil {
			return err
		}
		if item.joined.Divides && !item.record.Changing {
			item.record.Replicas = new(item.replicas())
			if err := m.readShares(ctx, item); err != nil {
				return err
			}
		}
		if err := m.changeClusters(ctx, item.workload, item.record, nil); err != nil {
			return err
		}
	} else {
		item.record.Changing, item.record.Replicas = false, nil
		if err := m.writePolicy(ctx, item); err != nil {
			return err
		}
		if err := m.writeOverrides(ctx, item); err != nil {
			return err
		}
		if err := m.writeTemplate(ctx, item); err != nil {
			return err
		}
	}
	for i := range item.Clusters {
		if item.Clusters[i].State == Found {
			item.Clusters[i].State = migrate.Shadow
		}
	}
	return m.awaitShadows(ctx, item.workload, item.record)
}

// readShares sets the replicas of clusters to those that the hub gives them now.
func (m *Migration) readShares(ctx context.Context, item *Item) error {
	w := item.workload
	b, _, err := scope.BindingFor(ctx, m.Client, w.GVK.GroupKind(), w.Namespace, w.Name)
	if err != nil {
		return fmt.Errorf("read the binding of %s: %w", w, err)
	}
	if b == nil {
		return fmt.Errorf("the hub has not placed %s in clusters: see `argosy why`", w)
	}
	for _, target := range b.BindingSpec().Clusters {
		if c, ok := item.record.Clusters[target.Name]; ok && c.Replicas > 0 {
			c.Replicas = int64(target.Replicas)
			item.record.Set(target.Name, c)
		}
	}
	return nil
}

// writeOverrides creates, changes or deletes the override policy of a workload.
func (m *Migration) writeOverrides(ctx context.Context, item *Item) error {
	before, err := m.overridesOf(ctx, item.workload)
	if err != nil {
		return err
	}
	made := item.newOverrides(before)
	if before == nil && len(made.OverrideSpec().OverrideRules) > 0 {
		if err := m.Client.Create(ctx, made); err != nil {
			return fmt.Errorf("create override policy %s on the hub: %w", made.GetName(), err)
		}
	}
	return m.setRules(ctx, before, made.OverrideSpec().OverrideRules)
}

// setRules changes or deletes an override policy, nil for none.
func (m *Migration) setRules(ctx context.Context, p policyv1alpha1.Override,
	rules []policyv1alpha1.RuleWithCluster) (err error) {
	switch {
	case p == nil, len(rules) > 0 && equality.Semantic.DeepEqual(p.OverrideSpec().OverrideRules, rules):
		return nil
	case len(rules) == 0:
		err = client.IgnoreNotFound(m.Client.Delete(ctx, p))
	default:
		p.OverrideSpec().OverrideRules = rules
		err = m.Client.Update(ctx, p)
	}
	if err != nil {
		return fmt.Errorf("write override policy %s on the hub: %w", p.GetName(), err)
	}
	return nil
}

// writePolicy creates the policy of a workload, or changes its clusters, while the hub applies nothing of it.
func (m *Migration) writePolicy(ctx context.Context, item *Item) error {
	if item.hub.policy == nil {
		p := migrate.NewPolicy(item.joined.Template, item.record)
		if err := m.Client.Create(ctx, p); err != nil {
			return fmt.Errorf("create policy %s on the hub: %w", p.GetName(), err)
		}
		item.hub.policy = p
		m.note(item.workload, p)
		return nil
	}
	return m.store(ctx, item.workload, item.record, reflect.DeepEqual(item.hub.record, item.record))
}

// store writes a record into its policy. Unless keepsPlacement is set, the clusters of the policy follow it.
func (m *Migration) store(ctx context.Context, w Workload, r *migrate.Record, keepsPlacement bool) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		h, err := m.readHub(ctx, &w)
		if err != nil {
			return err
		}
		if h.policy == nil {
			return errors.New("its policy was deleted on the hub")
		}
		if migrate.TextOf(h.policy) != m.seen[w.String()] {
			return errors.New("another command changed its migration in the meantime: run this one again")
		}
		before := h.policy.DeepCopyObject()
		h.policy.PropagationSpec().PreserveResourcesOnDeletion = new(true)
		if !keepsPlacement {
			if err := migrate.Place(h.policy, r); err != nil {
				return err
			}
		}
		migrate.Store(h.policy, r)
		if equality.Semantic.DeepEqual(before, h.policy) {
			return nil
		}
		if err := m.Client.Update(ctx, h.policy); err != nil {
			return err
		}
		m.note(w, h.policy)
		return nil
	})
	if err != nil {
		return fmt.Errorf("write the policy of %s on the hub: %w", w, err)
	}
	return nil
}

// writeTemplate creates the template, or makes it what the clusters run now.
func (m *Migration) writeTemplate(ctx context.Context, item *Item) error {
	in, err := m.Hub.Resource(item.workload.GVK, item.workload.Namespace)
	if err != nil {
		return err
	}
	if item.hub.template == nil {
		_, err = in.Create(ctx, item.newTemplate(), metav1.CreateOptions{})
	} else {
		_, err = item.update(ctx, in, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write template %s on the hub: %w", item.workload, err)
	}
	return nil
}

// update makes the template on the hub what the clusters run now, and returns it. It tries again if the hub has written
// the status of the template in the meantime.
func (i *Item) update(ctx context.Context, in dynamic.ResourceInterface,
	o metav1.UpdateOptions) (stored *unstructured.Unstructured, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		made := i.newTemplate()
		if equality.Semantic.DeepEqual(made.Object, i.hub.template.Object) {
			stored = made
			return nil
		}
		var err error
		stored, err = in.Update(ctx, made, o)
		if !apierrors.IsConflict(err) {
			return err
		}
		is, failed := in.Get(ctx, made.GetName(), metav1.GetOptions{})
		if failed != nil {
			return failed
		}
		if !i.refresh(is) {
			return errors.New("it was changed in the meantime: run the command again")
		}
		return err
	})
	return stored, err
}

// changeClusters lets clusters join or leave a workload that the hub writes in others. Replicas of the template change
// with its clusters, in two objects, so nothing is applied anywhere until both have changed.
func (m *Migration) changeClusters(ctx context.Context, w Workload, r *migrate.Record, left func() error) error {
	// 1. Suspend all clusters and change the placement, in one write.
	r.Changing = true
	if err := m.store(ctx, w, r, false); err != nil {
		return err
	}
	if left != nil {
		if err := left(); err != nil {
			return err
		}
	}
	// 2. Change the replicas of the template.
	if r.Replicas != nil {
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, *r.Replicas))
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(w.GVK)
		u.SetNamespace(w.Namespace)
		u.SetName(w.Name)
		if err := m.Client.Patch(ctx, u, patch); err != nil {
			return fmt.Errorf("change the replicas of template %s on the hub: %w", w, err)
		}
	}
	// 3. When each cluster has its share again, go on.
	if err := m.awaitShares(ctx, w, r); err != nil {
		return fmt.Errorf("nothing is applied until its clusters have their replicas; run the command again: %w", err)
	}
	r.Changing, r.Replicas = false, nil
	return m.store(ctx, w, r, true)
}

// awaitShares waits until the Work of each cluster has its replicas.
func (m *Migration) awaitShares(ctx context.Context, w Workload, r *migrate.Record) error {
	return await(ctx, migrateTimeout, func(ctx context.Context) (string, error) {
		b, _, err := scope.BindingFor(ctx, m.Client, w.GVK.GroupKind(), w.Namespace, w.Name)
		if err != nil {
			return "", err
		}
		if b == nil {
			return "the hub has not placed it in clusters", nil
		}
		var placed []string
		for _, target := range b.BindingSpec().Clusters {
			placed = append(placed, target.Name)
		}
		slices.Sort(placed)
		clusters := r.Names(migrate.Shadow, migrate.Verifying, migrate.Own)
		if !slices.Equal(placed, clusters) {
			return fmt.Sprintf("it is placed in %s, not in %s", strings.Join(placed, ", "), strings.Join(clusters, ", ")), nil
		}
		for _, cluster := range clusters {
			work, err := m.work(ctx, cluster, w)
			if err != nil {
				return "", err
			}
			if work == nil {
				return fmt.Sprintf("the hub has prepared nothing for cluster %q", cluster), nil
			}
			manifest, err := execute.Manifest(work)
			if err != nil {
				return "", err
			}
			want, has := r.Clusters[cluster].Replicas, fields.Number(manifest.Object, "spec", "replicas")
			if want > 0 && has != want {
				return fmt.Sprintf("the hub would send %d replicas to cluster %q, not %d", has, cluster, want), nil
			}
		}
		return "", nil
	})
}

// awaitShadows waits until the Works of all clusters in Shadow are suspended.
func (m *Migration) awaitShadows(ctx context.Context, w Workload, r *migrate.Record) error {
	return await(ctx, migrateTimeout, func(ctx context.Context) (string, error) {
		for _, cluster := range r.Names(migrate.Shadow) {
			work, err := m.work(ctx, cluster, w)
			if err != nil {
				return "", err
			}
			if work == nil || !execute.Suspended(work) {
				return fmt.Sprintf("the hub has not prepared cluster %q, or not suspended it: see `argosy why`", cluster), nil
			}
		}
		return "", nil
	})
}

// takeOver lets the hub write a cluster, and compares what runs there before and after.
func (m *Migration) takeOver(ctx context.Context, item *Item, c *Cluster) error {
	w := item.workload
	// 1. Compare what the hub would apply, and note what runs.
	if c.State == migrate.Shadow {
		before, err := m.checkShadow(ctx, w, c)
		if err != nil {
			return err
		}
		if err := m.setState(ctx, item, c, migrate.Cluster{State: migrate.Verifying, Before: before}); err != nil {
			return err
		}
	}
	// 2. The hub applies.
	err := await(ctx, migrateTimeout, func(ctx context.Context) (string, error) { return m.unapplied(ctx, w, c.Name) })
	if ctx.Err() != nil {
		return err // the next run continues
	}
	if err != nil {
		return m.backToShadow(ctx, item, c, fmt.Sprintf("the hub did not apply it: %v", err))
	}
	// 3. Compare.
	pods, err := m.verify(ctx, item, c)
	if err != nil || m.Soak > 0 {
		return err
	}
	return m.confirm(ctx, item, c, pods)
}

// checkShadow returns what runs in a cluster, or an error if the Work would change fields of the object.
func (m *Migration) checkShadow(ctx context.Context, w Workload, c *Cluster) (*migrate.Snapshot, error) {
	var live *unstructured.Unstructured
	err := await(ctx, compareTimeout, func(ctx context.Context) (string, error) {
		work, err := m.work(ctx, c.Name, w)
		if err != nil {
			return "", err
		}
		if live, err = m.live(ctx, c.Name, w); err != nil {
			return "", err
		}
		if work == nil || live == nil {
			return "it is gone from the cluster, or from the hub", nil
		}
		if reason := execute.HandsOff(work, live); reason != "" {
			return "", fmt.Errorf("%s. Remove it, and run the command again", reason)
		}
		if c.Report, c.Asked, err = m.compare(ctx, c.Name, work, live, c.Autoscaler != ""); err != nil {
			return "", err
		}
		if m.Force {
			return "", nil
		}
		return differing(c.Report), nil
	})
	if err != nil {
		return nil, fmt.Errorf("it stays in Shadow: %w", err)
	}
	before, err := m.snapshot(ctx, c.Name, w, live)
	return &before, err
}

// differing describes the differences of a report; empty for none.
func differing(r adopt.Report) string {
	if len(r.Differences) == 0 {
		return ""
	}
	var lines []string
	for _, d := range r.Differences {
		lines = append(lines, fmt.Sprintf("%s: %s → %s", d.Path, Shown(d.Have), Shown(d.Want)))
	}
	return "the hub would still change fields:\n  " + strings.Join(lines, "\n  ")
}

// unapplied returns why the Work of a cluster is not applied; empty if it is, and the cluster's controller has seen it.
func (m *Migration) unapplied(ctx context.Context, w Workload, cluster string) (string, error) {
	work, err := m.work(ctx, cluster, w)
	if err != nil {
		return "", err
	}
	live, err := m.live(ctx, cluster, w)
	switch {
	case err != nil:
		return "", err
	case live == nil:
		return "it is gone from the cluster", nil
	case work == nil:
		return "the hub has prepared nothing for the cluster", nil
	case execute.Suspended(work):
		return "the hub still has the cluster suspended", nil
	case !execute.Applied(work):
		if reason := cmp.Or(execute.HandsOff(work, live), handsOff(work)); reason != "" {
			return "", fmt.Errorf("%s. Remove it, and run the command again", reason)
		}
		if f := execute.FailureOf(work); f != nil {
			return f.Message, nil
		}
		return "the hub has not applied it", nil
	case !execute.Owns(work, live):
		return "it does not have the labels of the hub", nil
	}
	observed, reports := fields.Whole(fields.Value(live.Object, "status", "observedGeneration"))
	if reports && observed < live.GetGeneration() {
		return "its controller in the cluster has not processed the change", nil
	}
	return "", nil
}

// handsOff returns why a brake keeps the hub from the object of a Work, as the Work reports it of its generation; empty
// for none.
func handsOff(work *workv1alpha1.Work) string {
	c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkHandsOff)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != work.Generation {
		return ""
	}
	return c.Message
}

// verify compares what a cluster runs with what it ran before the hub wrote it. If it differs, the cluster goes back to
// Shadow. It returns the number of pods.
func (m *Migration) verify(ctx context.Context, item *Item, c *Cluster) (pods int, err error) {
	before := item.record.Clusters[c.Name].Before
	if before == nil {
		return 0, errors.New("it is not known what ran there before: go back with `argosy migrate out --shadow`, and in again")
	}
	live, err := m.live(ctx, c.Name, item.workload)
	if err != nil {
		return 0, err
	}
	if live == nil {
		return 0, m.backToShadow(ctx, item, c, "the object is gone from the cluster")
	}
	now, err := m.snapshot(ctx, c.Name, item.workload, live)
	if err != nil {
		return 0, err
	}
	if changes := before.Changes(now); len(changes) > 0 && !m.Force {
		return 0, m.backToShadow(ctx, item, c, strings.Join(changes, "; "))
	}
	return len(now.Pods), nil
}

// backToShadow stops the hub in a cluster, and returns the reason as an error.
func (m *Migration) backToShadow(ctx context.Context, item *Item, c *Cluster, reason string) error {
	if err := m.setState(ctx, item, c, migrate.Cluster{State: migrate.Shadow, Reason: reason}); err != nil {
		return errors.Join(errors.New(reason), err)
	}
	if err := m.awaitShadows(ctx, item.workload, item.record); err != nil {
		return errors.Join(errors.New(reason), err)
	}
	return fmt.Errorf("it is back in Shadow: %s", reason)
}

// setState changes the state of a cluster in the record of its workload.
func (m *Migration) setState(ctx context.Context, item *Item, c *Cluster, to migrate.Cluster) error {
	to.Since, to.Replicas = stamp(), item.record.Clusters[c.Name].Replicas
	item.record.Set(c.Name, to)
	if err := m.store(ctx, item.workload, item.record, true); err != nil {
		return err
	}
	c.State = to.State
	return nil
}

// confirm records that the pods of a cluster stayed unchanged.
func (m *Migration) confirm(ctx context.Context, item *Item, c *Cluster, pods int) error {
	if err := m.setState(ctx, item, c, migrate.Cluster{State: migrate.Own, Verified: &pods}); err != nil {
		return err
	}
	m.Progress("%s: cluster %s is in Own, %d pods unchanged\n", item.Object, c.Name, pods)
	return nil
}

// confirmAll watches the pods of a batch for a while, and verifies its workloads.
func (m *Migration) confirmAll(ctx context.Context, items []*Item) error {
	var waiting []*Item
	for _, item := range items {
		if slices.ContainsFunc(item.Clusters, func(c Cluster) bool { return c.State == migrate.Verifying }) {
			waiting = append(waiting, item)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	m.Progress("Batch %d: watching its pods for %s\n", waiting[0].Batch, m.Soak)
	timer := time.NewTimer(m.Soak)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	var all error
	for _, item := range waiting {
		for i := range item.Clusters {
			c := &item.Clusters[i]
			if c.State != migrate.Verifying {
				continue
			}
			pods, err := m.verify(ctx, item, c)
			if err == nil {
				err = m.confirm(ctx, item, c, pods)
			}
			if err != nil {
				item.Stopped = err.Error()
				all = errors.Join(all, fmt.Errorf("%s: cluster %q: %w", item.Object, c.Name, err))
			}
		}
	}
	return all
}

// TakeOut ends the management of workloads, in the reverse order: in the clusters that each names, or in all if it
// names none. A workload whose template or policy was deleted on the hub leaves by its Works. With shadow, the hub only
// stops writing. It returns what became of each workload, also with an error.
func (m *Migration) TakeOut(ctx context.Context, list []Workload, shadow bool) ([]Left, error) {
	all := []Left{}
	for _, w := range slices.Backward(list) {
		clusters, err := m.takeOut(ctx, w, shadow)
		left := Left{Object: w.String(), Clusters: clusters}
		if err != nil {
			left.Stopped = err.Error()
			return append(all, left), fmt.Errorf("%s: %w", w, err)
		}
		if len(clusters) > 0 {
			if left.State = LeftHub; shadow {
				left.State = migrate.Shadow
			}
		}
		all = append(all, left)
	}
	return all, nil
}

// Left is what became of a workload that was to be taken out.
type Left struct {
	Object string `json:"object"`
	// State of the clusters: Left or Shadow. It is empty if the workload was not migrated there, or if the migration
	// stopped.
	State migrate.State `json:"state,omitempty"`
	// Clusters that the workload was to leave, or where the hub was to stop writing.
	Clusters []string `json:"clusters,omitempty"`
	// Stopped is why the migration stopped at this workload.
	Stopped string `json:"stopped,omitempty"`
}

// LeftHub is the state of a cluster in which the hub does not manage a workload any more.
const LeftHub migrate.State = "Left"

// takeOut ends the management of a workload, and returns the clusters that it is to leave.
func (m *Migration) takeOut(ctx context.Context, w Workload, shadow bool) ([]string, error) {
	h, err := m.readHub(ctx, &w)
	if err != nil {
		return nil, err
	}
	if h.record == nil {
		if h.template != nil {
			return nil, errors.New("it was not migrated, or its policy was deleted on the hub: create a policy with " +
				"preserveResourcesOnDeletion: true that selects the template, and then delete the template: the objects in the " +
				"clusters stay")
		}
		return m.takeOutWorks(ctx, w, shadow)
	}
	m.note(w, h.policy)
	r := *h.record
	var leaving []string
	for _, cluster := range w.Clusters {
		if r.Clusters[cluster].State != "" {
			leaving = append(leaving, cluster)
		}
	}
	if len(w.Clusters) == 0 {
		leaving = r.Names()
	}
	switch {
	case len(leaving) == 0:
		m.Progress("%s: it is not migrated in %s\n", w, strings.Join(w.Clusters, ", "))
		return nil, nil
	case shadow:
		return leaving, m.stopWriting(ctx, w, &r, leaving)
	}
	leaving = slices.Compact(slices.Sorted(slices.Values(append(leaving, r.Names(migrate.Leaving)...))))
	if err := m.checkHubs(ctx, w, leaving); err != nil {
		return leaving, err
	}
	before, err := m.snapshots(ctx, w, leaving)
	if err != nil {
		return leaving, err
	}
	switch {
	case len(leaving) == len(r.Clusters):
		err = m.leaveAll(ctx, w, &r)
	case h.template == nil:
		err = errors.New("its template was deleted on the hub: take it out of all clusters at once")
	default:
		err = m.leaveSome(ctx, w, &r, leaving)
	}
	if err != nil {
		return leaving, err
	}
	return leaving, m.verifyLeft(ctx, w, before)
}

// stopWriting puts clusters back into Shadow.
func (m *Migration) stopWriting(ctx context.Context, w Workload, r *migrate.Record, clusters []string) error {
	for _, cluster := range clusters {
		if c := r.Clusters[cluster]; IsManaged(c.State) {
			r.Set(cluster, migrate.Cluster{State: migrate.Shadow, Since: stamp(), Replicas: c.Replicas})
		}
	}
	if err := m.store(ctx, w, r, true); err != nil {
		return err
	}
	if err := m.awaitShadows(ctx, w, r); err != nil {
		return err
	}
	for _, cluster := range clusters {
		m.Progress("%s: cluster %s is in %s\n", w, cluster, r.Clusters[cluster].State)
	}
	return nil
}

// snapshots returns what clusters run; nothing of those that have no object.
func (m *Migration) snapshots(ctx context.Context, w Workload, clusters []string) (map[string]migrate.Snapshot, error) {
	all := map[string]migrate.Snapshot{}
	for _, cluster := range clusters {
		live, err := m.live(ctx, cluster, w)
		if err != nil {
			return nil, err
		}
		if live == nil {
			continue
		}
		if all[cluster], err = m.snapshot(ctx, cluster, w, live); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// setLeaving marks clusters in the record.
func setLeaving(r *migrate.Record, clusters []string) {
	for _, cluster := range clusters {
		if c := r.Clusters[cluster]; c.State != migrate.Leaving {
			r.Set(cluster, migrate.Cluster{State: migrate.Leaving, Since: stamp(), Replicas: c.Replicas})
		}
	}
}

// leaveAll deletes the workload from the hub. The policy, which has the record, is the last to go.
func (m *Migration) leaveAll(ctx context.Context, w Workload, r *migrate.Record) error {
	clusters := r.Names()
	setLeaving(r, clusters)
	r.Changing = true
	if err := m.store(ctx, w, r, true); err != nil {
		return err
	}
	template, _, err := m.template(ctx, w)
	if err != nil {
		return err
	}
	if template == nil {
		err = m.leaveWorks(ctx, w, clusters)
	} else {
		err = m.leaveTemplate(ctx, w, clusters)
	}
	if err != nil {
		return err
	}
	overrides, err := m.overridesOf(ctx, w)
	if err != nil {
		return err
	}
	if err := m.setRules(ctx, overrides, nil); err != nil {
		return err
	}
	h, err := m.readHub(ctx, &w)
	if err != nil || h.policy == nil {
		return err
	}
	if err := m.Client.Delete(ctx, h.policy); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete policy %s on the hub: %w", h.policy.GetName(), err)
	}
	return nil
}

// leaveTemplate deletes the template of a workload, and waits until its clusters are released.
func (m *Migration) leaveTemplate(ctx context.Context, w Workload, clusters []string) error {
	in, err := m.Hub.AnyVersion(w.GVK, w.Namespace)
	if err != nil {
		return err
	}
	if err := m.awaitPreserved(ctx, w, clusters); err != nil {
		return err
	}
	if err := in.Delete(ctx, w.Name, metav1.DeleteOptions{}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete template %s on the hub: %w", w, err)
	}
	return m.awaitReleased(ctx, w, clusters)
}

// awaitPreserved waits until the Works of clusters are suspended and preserve their objects, before they are deleted.
func (m *Migration) awaitPreserved(ctx context.Context, w Workload, clusters []string) error {
	return await(ctx, migrateTimeout, func(ctx context.Context) (string, error) {
		for _, cluster := range clusters {
			work, err := m.work(ctx, cluster, w)
			if err != nil {
				return "", err
			}
			if work != nil && (!execute.Preserved(work) || !execute.Suspended(work)) {
				return fmt.Sprintf("the hub would still delete the object in cluster %q", cluster), nil
			}
		}
		return "", nil
	})
}

// leaveSome takes clusters out of a workload that stays in others.
func (m *Migration) leaveSome(ctx context.Context, w Workload, r *migrate.Record, clusters []string) error {
	if !r.Changing {
		if err := m.readShares(ctx, &Item{workload: w, record: r}); err != nil {
			return err
		}
	}
	var sum int64
	for name, c := range r.Clusters {
		if !slices.Contains(clusters, name) {
			sum += c.Replicas
		}
	}
	if r.Replicas = nil; sum > 0 {
		r.Replicas = &sum
	}
	setLeaving(r, clusters)
	r.Changing = true
	if err := m.store(ctx, w, r, true); err != nil {
		return err
	}
	if err := m.awaitPreserved(ctx, w, clusters); err != nil {
		return err
	}
	err := m.changeClusters(ctx, w, r, func() error { return m.awaitReleased(ctx, w, clusters) })
	if err != nil {
		return err
	}
	for _, cluster := range clusters {
		r.Remove(cluster)
	}
	if err := m.dropRules(ctx, w, r.Names()); err != nil {
		return err
	}
	return m.store(ctx, w, r, true)
}

// dropRules removes the rules of clusters that left from the override policy.
func (m *Migration) dropRules(ctx context.Context, w Workload, keep []string) error {
	p, err := m.overridesOf(ctx, w)
	if err != nil || p == nil {
		return err
	}
	return m.setRules(ctx, p, migrate.KeepRules(p.OverrideSpec().OverrideRules, nil, keep))
}

// awaitReleased waits until clusters have no Work, and their objects nothing of the hub.
func (m *Migration) awaitReleased(ctx context.Context, w Workload, clusters []string) error {
	return await(ctx, migrateTimeout, func(ctx context.Context) (string, error) {
		for _, cluster := range clusters {
			work, err := m.remainingWork(ctx, cluster, w)
			if err != nil {
				return "", err
			}
			live, err := m.live(ctx, cluster, w)
			if err != nil {
				return "", err
			}
			if work != nil {
				if reason := execute.HandsOff(work, live); reason != "" {
					return "", fmt.Errorf("cluster %q: %s. Remove it, and run the command again: the object stays as it is", cluster,
						reason)
				}
				if reason := handsOff(work); reason != "" {
					return fmt.Sprintf("cluster %q: %s", cluster, reason), nil
				}
				return fmt.Sprintf("the hub still manages the object in cluster %q: see `argosy why cluster %[1]s`, and run the "+
					"command again", cluster), nil
			}
			if live != nil && migrate.Marked(live) { // this hub would have released it before its Work went
				return "", fmt.Errorf("cluster %q: %w", cluster, notReleased(live))
			}
		}
		return "", nil
	})
}

// notReleased returns why an object without a Work still has marks of a hub. The user may not know the identity of this
// hub; see checkHubs.
func notReleased(live *unstructured.Unstructured) error {
	by := cmp.Or(live.GetAnnotations()[wellknown.HubAnnotation], "unknown")
	return fmt.Errorf("this hub no longer manages the object, but left the labels and annotations of the hub that wrote it "+
		"last (%s): end its management in that hub; if no hub manages it, remove them with `kubectl label` and "+
		"`kubectl annotate`", by)
}

// verifyLeft compares what clusters run with what they ran before they left.
func (m *Migration) verifyLeft(ctx context.Context, w Workload, before map[string]migrate.Snapshot) error {
	var all error
	now, err := m.snapshots(ctx, w, slices.Sorted(maps.Keys(before)))
	if err != nil {
		return err
	}
	for _, cluster := range slices.Sorted(maps.Keys(before)) {
		is, ok := now[cluster]
		changes := []string{"the object is gone"}
		if ok {
			changes = before[cluster].Changes(is)
		}
		if len(changes) > 0 {
			all = errors.Join(all, fmt.Errorf("cluster %q was released, but differs: %s", cluster, strings.Join(changes, "; ")))
			continue
		}
		m.Progress("%s: cluster %s is released, %d pods unchanged\n", w, cluster, len(is.Pods))
	}
	return all
}
