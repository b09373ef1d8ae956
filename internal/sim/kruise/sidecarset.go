package kruise

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
)

// Annotations, labels and values of a SidecarSet.
const (
	// SystemNamespace holds the revisions of SidecarSets.
	SystemNamespace = "kruise-system"

	// On the SidecarSet these are hashes, on a pod a map from the SidecarSets that it was injected by to their state.
	sidecarHashAnnotation         = "kruise.io/sidecarset-hash"
	sidecarHashNoImageAnnotation  = "kruise.io/sidecarset-hash-without-image"
	injectedListAnnotation        = "kruise.io/sidecarset-injected-list"
	sidecarRevisionLabel          = "kruise.io/sidecarset-name"
	customVersionLabel            = "apps.kruise.io/sidecarset-custom-version"
	injectedEnv                   = "IS_INJECTED"
	notUpdate                     = "NotUpdate"
	partial                       = "Partial"
	afterApp                      = "AfterAppContainer"
	shareVolumes                  = "enabled"
	overwrite                     = "Overwrite"
	serviceAccountTokenMountPoint = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// SidecarSet is the part of a SidecarSet that the simulation acts on, in either version.
type SidecarSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              SidecarSetSpec   `json:"spec"`
	Status            SidecarSetStatus `json:"status"`
}

// SidecarSetSpec says what is injected into which pods, and how the pods follow its changes.
type SidecarSetSpec struct {
	Selector          *metav1.LabelSelector `json:"selector,omitempty"`
	Namespace         string                `json:"namespace,omitempty"` // v1alpha1
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	Injected          `json:",inline"`
	UpdateStrategy    struct {
		Type           string                `json:"type,omitempty"`
		Paused         bool                  `json:"paused,omitempty"`
		Selector       *metav1.LabelSelector `json:"selector,omitempty"`
		Partition      *intstr.IntOrString   `json:"partition,omitempty"`
		MaxUnavailable *intstr.IntOrString   `json:"maxUnavailable,omitempty"`
	} `json:"updateStrategy"`
	InjectionStrategy struct {
		Paused   bool `json:"paused,omitempty"`
		Revision *struct {
			CustomVersion string `json:"customVersion,omitempty"`
			RevisionName  string `json:"revisionName,omitempty"`
			Policy        string `json:"policy,omitempty"`
		} `json:"revision,omitempty"`
	} `json:"injectionStrategy"`
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	CustomVersion        string `json:"customVersion,omitempty"` // v1beta1
}

// Injected is what goes into pods. A revision stores it.
type Injected struct {
	InitContainers   []Sidecar                     `json:"initContainers,omitempty"`
	Containers       []Sidecar                     `json:"containers,omitempty"`
	Volumes          []corev1.Volume               `json:"volumes,omitempty"`
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	PatchPodMetadata []struct {
		Annotations map[string]string `json:"annotations,omitempty"`
		PatchPolicy string            `json:"patchPolicy,omitempty"`
	} `json:"patchPodMetadata,omitempty"`
}

// Sidecar is a container with how it gets into a pod.
type Sidecar struct {
	corev1.Container  `json:",inline"`
	PodInjectPolicy   string `json:"podInjectPolicy,omitempty"`
	ShareVolumePolicy struct {
		Type string `json:"type,omitempty"`
	} `json:"shareVolumePolicy"`
	TransferEnv []struct {
		SourceContainerName string   `json:"sourceContainerName,omitempty"`
		EnvName             string   `json:"envName,omitempty"`
		EnvNames            []string `json:"envNames,omitempty"`
	} `json:"transferEnv,omitempty"`
}

// SidecarSetStatus is all of a SidecarSet's status.
type SidecarSetStatus struct {
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	MatchedPods        int32  `json:"matchedPods"`
	UpdatedPods        int32  `json:"updatedPods"`
	ReadyPods          int32  `json:"readyPods"`
	UpdatedReadyPods   int32  `json:"updatedReadyPods"`
	LatestRevision     string `json:"latestRevision,omitempty"`
	CollisionCount     *int32 `json:"collisionCount,omitempty"`
}

// injectedBy is what a pod's annotation says of one SidecarSet.
type injectedBy struct {
	UpdateTimestamp    string   `json:"updateTimestamp"`
	SidecarSetHash     string   `json:"hash"`
	SidecarSetName     string   `json:"sidecarSetName"`
	SidecarList        []string `json:"sidecarList"`
	ControllerRevision string   `json:"controllerRevision"`
}

func (s *SidecarSet) customVersion() string {
	return cmp.Or(s.Spec.CustomVersion, s.Labels[customVersionLabel])
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
func (s *SidecarSet) selects(podLabels map[string]string, namespace string, namespaceLabels map[string]string) bool {
	if namespace == "kube-system" || namespace == "kube-public" {
		return false
	}
	if s.Spec.Namespace != "" && s.Spec.Namespace != namespace {
		return false
	}
	if s.Spec.NamespaceSelector != nil && !matches(s.Spec.NamespaceSelector, namespaceLabels) {
		return false
	}
	return s.Spec.Selector != nil && matches(s.Spec.Selector, podLabels)
}

func matches(selector *metav1.LabelSelector, with map[string]string) bool {
	l, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && l.Matches(labels.Set(with))
}

// namedRevision returns which revision the set injects instead of its own spec, for pods that its update would not
// reach yet: with the policy Partial, those that the update's selector leaves out.
func (s *SidecarSet) namedRevision(podLabels map[string]string) (customVersion, revisionName string, named bool) {
	r := s.Spec.InjectionStrategy.Revision
	if r == nil || r.CustomVersion == "" && r.RevisionName == "" {
		return "", "", false
	}
	if u := s.Spec.UpdateStrategy.Selector; r.Policy == partial && u != nil && matches(u, podLabels) {
		return "", "", false
	}
	return r.CustomVersion, r.RevisionName, true
}

// injection is one SidecarSet, in one of its revisions, to put into a pod.
type injection struct {
	name     string
	what     *Injected
	revision string
}

// inject puts sidecars into a pod that is about to be created. The result lacks defaults.
func inject(pod *corev1.Pod, injections []injection, now time.Time) error {
	if len(injections) == 0 {
		return nil
	}
	slices.SortFunc(injections, func(a, b injection) int { return strings.Compare(a.name, b.name) })
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	full, bare := map[string]injectedBy{}, map[string]injectedBy{}
	var names []string
	apps := slices.Clone(pod.Spec.Containers)
	var before, after []corev1.Container
	for _, in := range injections {
		hash, withoutImage := in.what.hashes()
		state := injectedBy{UpdateTimestamp: now.UTC().Format(time.RFC3339), SidecarSetName: in.name,
			ControllerRevision: in.revision}
		for _, c := range in.what.Containers {
			state.SidecarList = append(state.SidecarList, c.Name)
			container := c.into(apps)
			if c.PodInjectPolicy == afterApp {
				after = append(after, container)
			} else {
				before = append(before, container)
			}
		}
		for _, c := range in.what.InitContainers {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c.into(apps))
		}
		for _, v := range in.what.Volumes {
			if !slices.ContainsFunc(pod.Spec.Volumes, func(have corev1.Volume) bool { return have.Name == v.Name }) {
				pod.Spec.Volumes = append(pod.Spec.Volumes, v)
			}
		}
		for _, secret := range in.what.ImagePullSecrets {
			if !slices.Contains(pod.Spec.ImagePullSecrets, secret) {
				pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, secret)
			}
		}
		for _, patch := range in.what.PatchPodMetadata {
			for k, v := range patch.Annotations {
				if _, there := pod.Annotations[k]; !there || patch.PatchPolicy == overwrite {
					pod.Annotations[k] = v
				}
			}
		}
		state.SidecarSetHash = hash
		full[in.name] = state
		state.SidecarSetHash = withoutImage
		bare[in.name] = state
		names = append(names, in.name)
	}
	pod.Spec.Containers = append(append(before, apps...), after...)
	pod.Annotations[injectedListAnnotation] = strings.Join(names, ",")
	return setInjected(pod, full, bare)
}

func setInjected(pod *corev1.Pod, full, bare map[string]injectedBy) error {
	for annotation, state := range map[string]map[string]injectedBy{sidecarHashAnnotation: full,
		sidecarHashNoImageAnnotation: bare} {
		data, err := json.Marshal(state)
		if err != nil {
			return err
		}
		pod.Annotations[annotation] = string(data)
	}
	return nil
}

// into returns the container as it stands in a pod of these application containers.
func (c *Sidecar) into(apps []corev1.Container) corev1.Container {
	out := *c.Container.DeepCopy()
	out.Env = append(out.Env, corev1.EnvVar{Name: injectedEnv, Value: "true"})
	for _, t := range c.TransferEnv {
		for _, app := range apps {
			for _, e := range app.Env {
				if t.SourceContainerName == app.Name && (e.Name == t.EnvName || slices.Contains(t.EnvNames, e.Name)) &&
					!slices.ContainsFunc(out.Env, func(have corev1.EnvVar) bool { return have.Name == e.Name }) {
					out.Env = append(out.Env, e)
				}
			}
		}
	}
	if c.ShareVolumePolicy.Type == shareVolumes {
		for _, app := range apps {
			for _, m := range app.VolumeMounts {
				if m.MountPath != serviceAccountTokenMountPoint &&
					!slices.ContainsFunc(out.VolumeMounts, func(have corev1.VolumeMount) bool {
						return have.MountPath == m.MountPath
					}) {
					out.VolumeMounts = append(out.VolumeMounts, m)
				}
			}
		}
	}
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

func injectedState(pod *corev1.Pod, annotation string) map[string]injectedBy {
	state := map[string]injectedBy{}
	if json.Unmarshal([]byte(pod.Annotations[annotation]), &state) != nil {
		return map[string]injectedBy{}
	}
	return state
}

// decideSidecarSet returns which pods get the set's newest images next, and what to report. pods are those that the set
// was injected into; a pod whose sidecars differ in more than images stays as it is until it is recreated.
func decideSidecarSet(set *SidecarSet, pods []*corev1.Pod,
	revision string) (update []*corev1.Pod, status SidecarSetStatus, err error) {
	hash, withoutImage := set.Spec.hashes()
	status = SidecarSetStatus{ObservedGeneration: set.Generation, LatestRevision: revision,
		CollisionCount: set.Status.CollisionCount}
	var old []*corev1.Pod
	var down int32
	for _, p := range pods {
		if !active(p) || set.Spec.Selector == nil || !matches(set.Spec.Selector, p.Labels) {
			continue
		}
		status.MatchedPods++
		isReady := ready(p)
		if isReady {
			status.ReadyPods++
		}
		if injectedState(p, sidecarHashAnnotation)[set.Name].SidecarSetHash != hash {
			old = append(old, p)
			continue
		}
		status.UpdatedPods++
		if isReady && runsImages(p, set.Spec.Containers) {
			status.UpdatedReadyPods++
		} else {
			down++
		}
	}
	strategy := &set.Spec.UpdateStrategy
	if strategy.Type == notUpdate || strategy.Paused {
		return nil, status, nil
	}
	keep, err := keepOld(strategy.Partition, status.MatchedPods)
	if err != nil {
		return nil, status, err
	}
	most := int32(1)
	if strategy.MaxUnavailable != nil {
		if most, err = share(strategy.MaxUnavailable, status.MatchedPods, math.Ceil); err != nil {
			return nil, status, fmt.Errorf("maxUnavailable: %w", err)
		}
	}
	old = slices.DeleteFunc(old, func(p *corev1.Pod) bool {
		return strategy.Selector != nil && !matches(strategy.Selector, p.Labels)
	})
	n := int32(len(old)) - keep
	// What is not ready goes first.
	slices.SortStableFunc(old, func(a, b *corev1.Pod) int {
		rank := func(p *corev1.Pod) int {
			if ready(p) {
				return 1
			}
			return 0
		}
		return rank(a) - rank(b)
	})
	for _, p := range old {
		if n <= 0 {
			break
		}
		if injectedState(p, sidecarHashNoImageAnnotation)[set.Name].SidecarSetHash != withoutImage {
			continue
		}
		if down >= most {
			break
		}
		down++
		n--
		update = append(update, p)
	}
	return update, status, nil
}

// runsImages reports whether the pod's sidecars run what its spec asks for.
func runsImages(p *corev1.Pod, sidecars []Sidecar) bool {
	wanted := map[string]string{}
	for _, c := range p.Spec.Containers {
		wanted[c.Name] = c.Image
	}
	for _, c := range sidecars {
		if !slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == c.Name && tagged(s.Image) == tagged(wanted[c.Name])
		}) {
			return false
		}
	}
	return true
}

// withSidecarImages returns the pod with the set's newest images.
func withSidecarImages(p *corev1.Pod, set *SidecarSet, revision string, now time.Time) (*corev1.Pod, error) {
	out := p.DeepCopy()
	images := map[string]string{}
	for _, c := range set.Spec.Containers {
		images[c.Name] = c.Image
	}
	for i := range out.Spec.Containers {
		if image := images[out.Spec.Containers[i].Name]; image != "" {
			out.Spec.Containers[i].Image = image
		}
	}
	full, bare := injectedState(p, sidecarHashAnnotation), injectedState(p, sidecarHashNoImageAnnotation)
	hash, _ := set.Spec.hashes()
	state := full[set.Name]
	state.SidecarSetHash, state.ControllerRevision, state.UpdateTimestamp = hash, revision, now.UTC().Format(time.RFC3339)
	full = maps.Clone(full)
	full[set.Name] = state
	return out, setInjected(out, full, bare)
}
