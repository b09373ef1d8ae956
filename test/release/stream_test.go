package release

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit"
)

// event is a change of an object in a namespace of a story.
type event struct {
	// cluster is "hub" or the name of a member. For a Work, it is the member that the Work is for.
	cluster string
	obj     client.Object
	deleted bool
	at      time.Time
}

// observer passes the events of all API servers to the stories, by namespace.
type observer struct {
	mu      sync.Mutex
	stories map[string]*story
}

// cloneSetKind is watched in members, because the partition is there.
var cloneSetKind = schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}

// observe watches the hub and all members until ctx ends.
func observe(ctx context.Context, f *kit.Fleet) (*observer, error) {
	o := &observer{stories: map[string]*story{}}
	hub := []client.ObjectList{&releasev1alpha1.ReleaseList{}, &workv1alpha2.ResourceBindingList{},
		&workv1alpha1.WorkList{}}
	if err := o.watch(ctx, f.Hub, hub...); err != nil {
		return nil, err
	}
	for _, m := range f.Members {
		cloneSets := &unstructured.UnstructuredList{}
		cloneSets.SetGroupVersionKind(cloneSetKind.GroupVersion().WithKind("CloneSetList"))
		if err := o.watch(ctx, m, &corev1.PodList{}, &corev1.ConfigMapList{}, cloneSets); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// watch follows lists of objects of a cluster until ctx ends.
func (o *observer) watch(ctx context.Context, c kit.Cluster, lists ...client.ObjectList) error {
	w, err := client.NewWithWatch(c.Config, client.Options{Scheme: kit.Scheme()})
	if err != nil {
		return fmt.Errorf("watch %s: %w", c.Name, err)
	}
	for _, list := range lists {
		go o.follow(ctx, w, c.Name, list)
	}
	return nil
}

// follow passes on the changes of a list. It continues after the API server was away, where it stopped if possible.
func (o *observer) follow(ctx context.Context, c client.WithWatch, cluster string, list client.ObjectList) {
	known := map[client.ObjectKey]client.Object{}
	version := ""
	for ctx.Err() == nil {
		if version == "" {
			if version = o.relist(ctx, c, cluster, list, known); version == "" {
				pause(ctx)
				continue
			}
		}
		w, err := c.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version,
			AllowWatchBookmarks: true}})
		if err != nil {
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				version = ""
			}
			pause(ctx)
			continue
		}
		for e := range w.ResultChan() {
			obj, ok := e.Object.(client.Object)
			if e.Type == watch.Error || !ok {
				version = ""
				break
			}
			version = obj.GetResourceVersion()
			if e.Type == watch.Bookmark {
				continue
			}
			key := client.ObjectKeyFromObject(obj)
			if known[key] = obj; e.Type == watch.Deleted {
				delete(known, key)
			}
			o.feed(event{cluster, obj, e.Type == watch.Deleted, time.Now()})
		}
		w.Stop()
	}
}

// relist passes on what has changed since the watch ended, and returns the version of the list; empty if it failed.
func (o *observer) relist(ctx context.Context, c client.WithWatch, cluster string, list client.ObjectList,
	known map[client.ObjectKey]client.Object) (version string) {
	list = list.DeepCopyObject().(client.ObjectList) // its items are kept
	if c.List(ctx, list) != nil {
		return ""
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		panic(err)
	}
	gone := map[client.ObjectKey]bool{}
	for key := range known {
		gone[key] = true
	}
	for _, item := range items {
		obj := item.(client.Object)
		key := client.ObjectKeyFromObject(obj)
		delete(gone, key)
		if was := known[key]; was == nil || was.GetResourceVersion() != obj.GetResourceVersion() {
			known[key] = obj
			o.feed(event{cluster, obj, false, time.Now()})
		}
	}
	for key := range gone {
		o.feed(event{cluster, known[key], true, time.Now()})
		delete(known, key)
	}
	return list.GetResourceVersion()
}

// pause waits a moment before the next attempt to reach an API server.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(50 * time.Millisecond):
	}
}

// feed passes an event to its story.
func (o *observer) feed(e event) {
	namespace := e.obj.GetNamespace()
	if w, ok := e.obj.(*workv1alpha1.Work); ok {
		cluster, err := names.ClusterOf(w.Namespace)
		if err != nil {
			return
		}
		e.cluster, namespace = cluster, w.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotation]
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.stories[namespace]; s != nil {
		s.take(e)
	}
}

// pod is what a story knows of a pod.
type pod struct {
	uid, app, image string
	// config is the ConfigMap that the pod mounts; empty for none.
	config string
	ready  bool
	// images are all that the pod had.
	images []string
	// runs is the node of the pod, its containers and their restarts.
	runs string
}

// podOf reads a pod; nil for one that is ending.
func podOf(p *corev1.Pod) *pod {
	if p.DeletionTimestamp != nil || len(p.Spec.Containers) == 0 {
		return nil
	}
	runs := string(p.UID) + " " + p.Spec.NodeName
	for _, c := range p.Status.ContainerStatuses {
		runs += fmt.Sprint(" ", c.Name, " ", c.ContainerID, " ", c.RestartCount)
	}
	config := ""
	for _, v := range p.Spec.Volumes {
		if v.ConfigMap != nil {
			config = v.ConfigMap.Name
		}
	}
	return &pod{uid: string(p.UID), app: p.Labels["app"], image: p.Spec.Containers[0].Image, config: config, runs: runs,
		ready: slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})}
}
