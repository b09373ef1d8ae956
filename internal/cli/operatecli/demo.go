package operatecli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/examples"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/sim"
)

var (
	cloneSets = schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1alpha1", Resource: "clonesets"}
	bindings  = workv1alpha2.GroupVersion.WithResource("resourcebindings")
	pods      = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

func NewDemo() *cobra.Command {
	d := &demo{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Propagate an OpenKruise CloneSet through a hub to simulated members",
		Long: `Starts a hub and simulated members on this machine, applies examples/shop, and shows each step of a
CloneSet: claimed, scheduled, applied in each member, ready, and its status aggregated on the hub.
Everything is in a temporary folder, which is deleted when the command ends.`,
		Args: hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, flush := hubcli.ColoredOutput(cmd)
			defer flush()
			d.out, d.steps = out, hubcli.NewSteps(cmd.OutOrStdout(), out.On)
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().IntVar(&d.members, "members", 2, "number of simulated members")
	cmd.Flags().BoolVar(&d.exit, "exit", false,
		"exit when all steps are done; the exit code is 0 only if everything became ready")
	return cmd
}

type demo struct {
	members int
	exit    bool

	out   io.Writer
	steps *hubcli.Steps
	lab   *lab.Lab
	hub   dynamic.Interface
}

// demoTimeout is the timeout of each step of the demo.
const demoTimeout = 2 * time.Minute

func (d *demo) run(ctx context.Context) (err error) {
	if d.members < 1 || d.members > 10 {
		return fmt.Errorf("--members is %d and must be 1 to 10: each simulated member uses about 300 MiB", d.members)
	}
	dir, err := os.MkdirTemp("", "argosy-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(d.out, "One fleet: a hub and %d simulated members, in %s\n\n", d.members, dir)
	defer func() {
		if err != nil {
			d.steps.Fail()
		}
		if d.lab == nil {
			return
		}
		d.steps.Begin("Stopping everything")
		if stopErr := d.lab.Stop(); err == nil {
			err = stopErr
		}
		d.steps.Done("")
	}()
	if err := d.start(ctx, dir); err != nil {
		return err
	}
	if err := d.walk(ctx); err != nil {
		return fmt.Errorf("%w\nthe hub's output is in %s", err, d.lab.Hub.Log())
	}
	if err := d.table(ctx); err != nil {
		return err
	}
	if d.exit {
		return nil
	}
	d.further(ctx)
	<-ctx.Done()
	fmt.Fprintln(d.out)
	return nil
}

func (d *demo) start(ctx context.Context, dir string) error {
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	o := lab.Options{Binary: binary, Dir: dir}
	for i := range d.members {
		o.Members = append(o.Members, sim.Member{Name: fmt.Sprintf("member%d", i+1), Nodes: 3,
			Region: []string{"eu-west", "us-east"}[i%2]})
	}
	d.steps.Begin("Starting the hub and the members, joining them")
	startCtx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	if d.lab, err = lab.Start(startCtx, o); err != nil {
		return err
	}
	config, err := d.lab.Hub.Config()
	if err != nil {
		return err
	}
	d.hub, err = dynamic.NewForConfig(config)
	d.steps.Done("%s Ready", text.Count(d.members, "cluster"))
	return err
}

// walk applies the examples and follows the CloneSet until its status is back.
func (d *demo) walk(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	d.steps.Begin("Applying examples/shop to the hub")
	applied, err := d.apply(ctx)
	if err != nil {
		return err
	}
	d.steps.Done("%s", strings.Join(applied, ", "))
	bindingName := names.Binding("CloneSet", "shop")
	for _, s := range []struct {
		name string
		done func() (string, bool, error)
	}{
		{"The policy claims the CloneSet", func() (string, bool, error) {
			t, err := d.template(ctx)
			if err != nil {
				return "", false, err
			}
			policy := t.GetAnnotations()[policyv1alpha1.PropagationPolicyNameAnnotation]
			return "by PropagationPolicy " + policy, policy != "", nil
		}},
		{"The scheduler divides its replicas", func() (string, bool, error) {
			b, err := d.binding(ctx, bindingName)
			if b == nil || err != nil {
				return "", false, err
			}
			var shares []string
			for _, c := range b.Spec.Clusters {
				shares = append(shares, fmt.Sprintf("%s %d", c.Name, c.Replicas))
			}
			return strings.Join(shares, ", "), meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.Scheduled), nil
		}},
		{"Each member gets its own manifest", func() (string, bool, error) {
			b, err := d.binding(ctx, bindingName)
			if b == nil || err != nil {
				return "", false, err
			}
			n := 0
			for _, item := range b.Status.AggregatedStatus {
				if item.Applied {
					n++
				}
			}
			return fmt.Sprintf("%d of %d applied", n, d.members),
				meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.FullyApplied), nil
		}},
		{"Pods become ready, status is aggregated", func() (string, bool, error) {
			t, err := d.template(ctx)
			if err != nil {
				return "", false, err
			}
			ready, wanted := whole(t, "status", "readyReplicas"), whole(t, "spec", "replicas")
			return fmt.Sprintf("%d of %d ready", ready, wanted),
				ready == wanted && whole(t, "status", "updatedReadyReplicas") == wanted &&
					whole(t, "status", "observedGeneration") == t.GetGeneration(), nil
		}},
	} {
		d.steps.Begin(s.name)
		if err := d.waitFor(ctx, s.name, s.done); err != nil {
			return err
		}
		d.steps.Done("")
	}
	return nil
}

// waitFor looks again until the step is done, and shows how far it is.
func (d *demo) waitFor(ctx context.Context, what string, done func() (string, bool, error)) error {
	for {
		detail, ok, err := done()
		if ctx.Err() != nil {
			return fmt.Errorf("%s: not done in %s: %s", what, demoTimeout, detail)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		d.steps.Progress("%s", detail)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// apply creates the examples, the policies first; their clusters are the demo's members.
func (d *demo) apply(ctx context.Context) ([]string, error) {
	var applied []string
	for _, name := range []string{"propagationpolicy.yaml", "overridepolicy.yaml", "cloneset.yaml"} {
		raw, err := fs.ReadFile(examples.Files, "shop/"+name)
		if err != nil {
			return nil, err
		}
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &obj.Object); err != nil {
			return nil, fmt.Errorf("read example %s: %w", name, err)
		}
		if name == "propagationpolicy.yaml" && d.members != 2 {
			if err := d.allMembers(obj); err != nil {
				return nil, err
			}
		}
		// As kubectl does, so that a later `kubectl apply` knows what was applied.
		if err := util.CreateApplyAnnotation(obj, unstructured.UnstructuredJSONScheme); err != nil {
			return nil, fmt.Errorf("apply example %s: %w", name, err)
		}
		gvr, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
		if _, err := d.hub.Resource(gvr).Namespace(obj.GetNamespace()).Create(ctx, obj,
			metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			return nil, fmt.Errorf("apply example %s: %w", name, err)
		}
		applied = append(applied, obj.GetKind())
	}
	return applied, nil
}

// allMembers places the policy's templates in as many members as the demo has.
func (d *demo) allMembers(policy *unstructured.Unstructured) error {
	var members []string
	for i := range d.members {
		members = append(members, fmt.Sprintf("member%d", i+1))
	}
	if d.members == 1 {
		unstructured.RemoveNestedField(policy.Object, "spec", "placement", "replicaScheduling", "weightPreference")
	} else if err := unstructured.SetNestedField(policy.Object, map[string]any{}, "spec", "placement", "replicaScheduling",
		"weightPreference"); err != nil {
		return err
	}
	return unstructured.SetNestedStringSlice(policy.Object, members, "spec", "placement", "clusterAffinity",
		"clusterNames")
}

func (d *demo) template(ctx context.Context) (*unstructured.Unstructured, error) {
	return d.hub.Resource(cloneSets).Namespace("default").Get(ctx, "shop", metav1.GetOptions{})
}

// binding returns the CloneSet's binding; nil until it is there.
func (d *demo) binding(ctx context.Context, name string) (*workv1alpha2.ResourceBinding, error) {
	u, err := d.hub.Resource(bindings).Namespace("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	b := &workv1alpha2.ResourceBinding{}
	return b, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, b)
}

// table prints the state of the members, then the state on the hub, and fails if anything is not ready.
func (d *demo) table(ctx context.Context) error {
	b, err := d.binding(ctx, names.Binding("CloneSet", "shop"))
	if err != nil {
		return err
	}
	health := map[string]string{}
	for _, item := range b.Status.AggregatedStatus {
		health[item.ClusterName] = string(item.Health)
	}
	fmt.Fprintln(d.out)
	w := tabwriter.NewWriter(d.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "CLUSTER\tDESIRED\tUPDATED\tREADY\tIMAGE\tHEALTH")
	var sum int64
	var wrong []error
	for _, m := range d.lab.Fleet.Members() {
		object, ready, err := memberShare(ctx, m)
		if err != nil {
			return fmt.Errorf("read the CloneSet and pods of %s: %w", m.Name, err)
		}
		desired, updated := whole(object, "spec", "replicas"), whole(object, "status", "updatedReplicas")
		sum += desired
		image := firstImage(object, "spec", "template", "spec")
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\n", m.Name, desired, updated, ready, image, health[m.Name])
		if ready != desired || updated != desired || health[m.Name] != string(workv1alpha1.ResourceHealthy) {
			wrong = append(wrong, fmt.Errorf("%s has %d of %d pods ready with image %s and is %s", m.Name, ready, desired, image,
				health[m.Name]))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	t, err := d.template(ctx)
	if err != nil {
		return err
	}
	wanted := whole(t, "spec", "replicas")
	fmt.Fprintf(d.out, "\nCloneSet default/shop on the hub: %d desired, %d updated, %d ready, %d available; generation %d observed %d\n",
		wanted, whole(t, "status", "updatedReplicas"), whole(t, "status", "readyReplicas"),
		whole(t, "status", "availableReplicas"),
		t.GetGeneration(), whole(t, "status", "observedGeneration"))
	if sum != wanted || whole(t, "status", "readyReplicas") != wanted {
		wrong = append(wrong, fmt.Errorf("the hub specifies %d replicas and reports %d ready, the members have %d", wanted,
			whole(t, "status", "readyReplicas"), sum))
	}
	return errors.Join(wrong...)
}

// memberShare returns the CloneSet in a member, and how many of its pods are ready with its image.
func memberShare(ctx context.Context, m *sim.Running) (*unstructured.Unstructured, int64, error) {
	config, err := m.RESTConfig()
	if err != nil {
		return nil, 0, err
	}
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, 0, err
	}
	object, err := c.Resource(cloneSets).Namespace("default").Get(ctx, "shop", metav1.GetOptions{})
	if err != nil {
		return nil, 0, err
	}
	list, err := c.Resource(pods).Namespace("default").List(ctx, metav1.ListOptions{LabelSelector: "app=shop"})
	if err != nil {
		return nil, 0, err
	}
	var ready int64
	for i := range list.Items {
		p := &list.Items[i]
		for _, c := range fields.Objects(p.Object, "status", "conditions") {
			if c["type"] == "Ready" && c["status"] == "True" &&
				firstImage(p, "spec") == firstImage(object, "spec", "template", "spec") {
				ready++
			}
		}
	}
	return object, ready, nil
}

// further prints commands to try.
func (d *demo) further(ctx context.Context) {
	if config, err := d.lab.Hub.Config(); err == nil {
		if link, err := consoleLink(ctx, config); err == nil {
			fmt.Fprintf(d.out, "\nConsole (logs in once, within 10 minutes):\n  %s\n", link)
		}
	}
	fmt.Fprintf(d.out, `
Everything keeps running until you press Ctrl-C. To explore it, run in another terminal:
  export KUBECONFIG=%s
  kubectl get clusters,clonesets,resourcebindings
  kubectl get works -A
  kubectl scale clone shop --replicas 12
  kubectl patch overridepolicy shop --type json -p '[{"op":"remove","path":"/spec/overrideRules/1"}]'
and in a member:
`, d.lab.Hub.Kubeconfig())
	for _, m := range d.lab.Fleet.Members() {
		fmt.Fprintf(d.out, "  kubectl --kubeconfig %s get clonesets,pods -o wide\n", m.Kubeconfig)
	}
}

// whole returns a whole number in an object; 0 if there is none.
func whole(u *unstructured.Unstructured, path ...string) int64 {
	return fields.Number(u.Object, path...)
}

// firstImage returns the image of the first container of the pod spec at path; empty if there is none.
func firstImage(u *unstructured.Unstructured, path ...string) string {
	for _, c := range fields.Objects(u.Object, append(path, "containers")...) {
		return fields.Text(c, "image")
	}
	return ""
}
