package kruise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotations, labels and values of a SidecarSet.
const (
	// SystemNamespace holds the revisions of SidecarSets.
	SystemNamespace = "kruise-system"

	// On the SidecarSet these are hashes. On a pod, the first has the hashes of the SidecarSets that it was injected by,
	// by their names, without what else the real one has there.
	sidecarHashAnnotation        = "kruise.io/sidecarset-hash"
	sidecarHashNoImageAnnotation = "kruise.io/sidecarset-hash-without-image"
	injectedListAnnotation       = "kruise.io/sidecarset-injected-list"
	injectedEnv                  = "IS_INJECTED"
	afterApp                     = "AfterAppContainer"
)

// SidecarSetSpec says what is injected into which pods.
type SidecarSetSpec struct {
	Selector          *metav1.LabelSelector `json:"selector,omitempty"`
	Namespace         string                `json:"namespace,omitempty"` // v1alpha1
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	Injected          `json:",inline"`
}

// Injected is what goes into pods.
type Injected struct {
	InitContainers []Sidecar       `json:"initContainers,omitempty"`
	Containers     []Sidecar       `json:"containers,omitempty"`
	Volumes        []corev1.Volume `json:"volumes,omitempty"`
}

// Sidecar is a container with how it gets into a pod.
type Sidecar struct {
	corev1.Container `json:",inline"`
	PodInjectPolicy  string `json:"podInjectPolicy,omitempty"`
}

// SidecarSetStatus is all of a SidecarSet's status.
type SidecarSetStatus struct {
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	MatchedPods        int32  `json:"matchedPods"`
	UpdatedPods        int32  `json:"updatedPods"`
	ReadyPods          int32  `json:"readyPods"`
	UpdatedReadyPods   int32  `json:"updatedReadyPods"`
	LatestRevision     string `json:"latestRevision,omitempty"`
}

// sidecarRevision names what the set injects.
func sidecarRevision(s *SidecarSet) string {
	full, _ := s.Spec.hashes()
	return s.Name + "-" + full
}

// hashes tell revisions apart, with and without the images of containers.
func (i *Injected) hashes() (full, withoutImage string) {
	bare := *i
	bare.Containers = slices.Clone(i.Containers)
	for n := range bare.Containers {
		bare.Containers[n].Image = ""
	}
	return hashOf(i), hashOf(bare)
}

func hashOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // types of ours
	}
	h := fnv.New64a()
	h.Write(data)
	return rand.SafeEncodeString(fmt.Sprint(h.Sum64()))
}

// selects reports whether pods with these labels, in a namespace with those, are the set's to inject.
func (s *SidecarSetSpec) selects(podLabels map[string]string, namespace string,
	namespaceLabels map[string]string) bool {
	return namespace != metav1.NamespaceSystem && namespace != metav1.NamespacePublic &&
		(s.Namespace == "" || s.Namespace == namespace) &&
		(s.NamespaceSelector == nil || matches(s.NamespaceSelector, namespaceLabels)) &&
		s.Selector != nil && matches(s.Selector, podLabels)
}

func matches(selector *metav1.LabelSelector, with map[string]string) bool {
	l, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && l.Matches(labels.Set(with))
}

// inject puts the sidecars of sets into a pod that is about to be created. The result lacks defaults.
func inject(pod *corev1.Pod, sets []*SidecarSet) error {
	slices.SortFunc(sets, func(a, b *SidecarSet) int { return strings.Compare(a.Name, b.Name) })
	hashes := map[string]string{}
	var names []string
	var before, after []corev1.Container
	for _, set := range sets {
		for _, c := range set.Spec.Containers {
			if c.PodInjectPolicy == afterApp {
				after = append(after, c.into())
			} else {
				before = append(before, c.into())
			}
		}
		for _, c := range set.Spec.InitContainers {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c.into())
		}
		for _, v := range set.Spec.Volumes {
			if !slices.ContainsFunc(pod.Spec.Volumes, func(have corev1.Volume) bool { return have.Name == v.Name }) {
				pod.Spec.Volumes = append(pod.Spec.Volumes, v)
			}
		}
		hashes[set.Name], _ = set.Spec.hashes()
		names = append(names, set.Name)
	}
	pod.Spec.Containers = slices.Concat(before, pod.Spec.Containers, after)
	data, err := json.Marshal(hashes)
	if err != nil {
		return err
	}
	pod.Annotations = labels.Merge(pod.Annotations, map[string]string{injectedListAnnotation: strings.Join(names, ","),
		sidecarHashAnnotation: string(data)})
	return nil
}

// into returns the container as it stands in a pod.
func (c *Sidecar) into() corev1.Container {
	out := *c.Container.DeepCopy()
	out.Env = append(out.Env, corev1.EnvVar{Name: injectedEnv, Value: "true"})
	return out
}

// injectors returns the SidecarSets that a pod was injected by.
func injectors(pod *corev1.Pod) []string {
	list := pod.Annotations[injectedListAnnotation]
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// sidecarSetStatus returns what to report of a set. pods are those that the set was injected into; they stay as they
// are until they are recreated.
func sidecarSetStatus(set *SidecarSet, pods []*corev1.Pod) SidecarSetStatus {
	hash, _ := set.Spec.hashes()
	status := SidecarSetStatus{ObservedGeneration: set.Generation, LatestRevision: sidecarRevision(set)}
	for _, p := range pods {
		if !active(p) {
			continue
		}
		var hashes map[string]string
		_ = json.Unmarshal([]byte(p.Annotations[sidecarHashAnnotation]), &hashes) // otherwise the pod is not updated
		var isReady, updated int32
		if ready(p) {
			isReady = 1
		}
		if hashes[set.Name] == hash {
			updated = 1
		}
		status.MatchedPods++
		status.ReadyPods += isReady
		status.UpdatedPods += updated
		status.UpdatedReadyPods += isReady * updated
	}
	return status
}

// syncSidecarSet reports which pods have a set's sidecars. The injection is the Injector's.
func (r *reconciler) syncSidecarSet(ctx context.Context, u *unstructured.Unstructured) (time.Duration, error) {
	set, err := read[SidecarSet](u)
	if err != nil {
		return 0, err
	}
	pods, err := r.selectPods(ctx, "", set.Spec.Selector)
	if err != nil {
		return 0, err
	}
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !slices.Contains(injectors(p), set.Name) })
	status := sidecarSetStatus(set, pods)
	return 0, r.report(ctx, u, &status)
}

// Injector puts the sidecars of a member's SidecarSets into new pods. Until Serve was called it holds pods back.
type Injector struct {
	ready  chan struct{}
	client client.Reader
	gvk    schema.GroupVersionKind
}

// NewInjector makes an injector that waits for Serve.
func NewInjector() *Injector { return &Injector{ready: make(chan struct{})} }

// Serve has the injector read from the caches of the manager, which must have been filled; it is called once.
func (i *Injector) Serve(mgr ctrl.Manager, versions Versions) {
	if gvk, ok := versions.stored(SidecarSetKind); ok {
		i.client, i.gvk = mgr.GetCache(), gvk
	}
	close(i.ready)
}

// injectorTimeout is how long a pod may wait for the injector when a member starts.
const injectorTimeout = 10 * time.Second

// sets returns the SidecarSets of the member, not to be changed.
func (i *Injector) sets(ctx context.Context) ([]unstructured.Unstructured, error) {
	select {
	case <-i.ready:
	case <-time.After(injectorTimeout):
		return nil, errors.New("the SidecarSets of this member are not known yet: try again")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if i.client == nil {
		return nil, nil
	}
	sets := listOf(i.gvk)
	err := i.client.List(ctx, sets, client.UnsafeDisableDeepCopy)
	return sets.Items, err
}

// Injects reports whether pods have to be looked at: there are SidecarSets.
func (i *Injector) Injects(ctx context.Context) (bool, error) {
	sets, err := i.sets(ctx)
	return len(sets) > 0, err
}

// Inject adds the sidecars of the member's SidecarSets to a new pod, and reports whether it changed the pod. Such a pod
// needs its defaults again.
func (i *Injector) Inject(ctx context.Context, pod *corev1.Pod) (bool, error) {
	all, err := i.sets(ctx)
	if err != nil || len(all) == 0 {
		return false, err
	}
	var namespace corev1.Namespace
	if err := i.client.Get(ctx, client.ObjectKey{Name: pod.Namespace}, &namespace); client.IgnoreNotFound(err) != nil {
		return false, err
	}
	var sets []*SidecarSet
	for n := range all {
		set, err := read[SidecarSet](&all[n])
		if err != nil {
			return false, fmt.Errorf("read SidecarSet %s: %w", all[n].GetName(), err)
		}
		if set.DeletionTimestamp == nil && set.Spec.selects(pod.Labels, pod.Namespace, namespace.Labels) {
			sets = append(sets, set)
		}
	}
	if len(sets) == 0 {
		return false, nil
	}
	return true, inject(pod, sets)
}
