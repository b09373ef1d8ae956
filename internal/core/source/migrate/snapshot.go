package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Snapshot is what a workload runs in one cluster.
type Snapshot struct {
	// Spec is a hash of the spec of the object; without replicas if an autoscaler of the member sets them.
	Spec string `json:"spec"`
	// Revision identifies the revisions of the workload, which change with new pods.
	Revision string `json:"revision,omitempty"`
	Ready    int64  `json:"ready,omitempty"`
	// Scaled reports that an autoscaler of the member sets the replicas.
	Scaled bool `json:"scaled,omitempty"`
	// Pods are a hash of node, containers and restarts of each pod, by UID.
	Pods map[string]string `json:"pods,omitempty"`
}

// Take returns the snapshot of an object and its pods.
func Take(live *unstructured.Unstructured, pods []unstructured.Unstructured, scaled bool) Snapshot {
	content := map[string]any{}
	for key, value := range live.Object {
		if key != "metadata" && key != "status" {
			content[key] = value
		}
	}
	if spec, ok := content["spec"].(map[string]any); ok && scaled {
		spec = maps.Clone(spec)
		delete(spec, "replicas")
		content["spec"] = spec
	}
	status := fields.Object(live.Object, "status")
	s := Snapshot{Spec: hash(text.JSON(content)), Scaled: scaled, Pods: map[string]string{},
		Ready: max(fields.Number(status, "readyReplicas"), fields.Number(status, "numberReady"))}
	revisions := []string{live.GetAnnotations()["deployment.kubernetes.io/revision"]}
	for _, key := range []string{"updateRevision", "currentRevision"} {
		revisions = append(revisions, fields.Text(status, key))
	}
	if n, ok := fields.Whole(status["collisionCount"]); ok {
		revisions = append(revisions, fmt.Sprint(n))
	}
	s.Revision = strings.Join(slices.DeleteFunc(revisions, func(r string) bool { return r == "" }), " ")
	for i := range pods {
		pod := pods[i].Object
		parts := []string{fields.Text(pod, "spec", "nodeName")}
		for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
			for _, c := range fields.Objects(pod, "status", list) {
				parts = append(parts, fields.Text(c, "containerID"), fmt.Sprint(fields.Number(c, "restartCount")))
			}
		}
		if pods[i].GetDeletionTimestamp() != nil {
			parts = append(parts, "deleted")
		}
		s.Pods[string(pods[i].GetUID())] = hash(strings.Join(parts, " "))
	}
	return s
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}

// Changes returns what is different now, for people; nothing if the workload runs as before. With an autoscaler, pods
// may come and go.
func (s Snapshot) Changes(now Snapshot) []string {
	var changes []string
	if s.Spec != now.Spec {
		changes = append(changes, "its spec changed")
	}
	if s.Revision != now.Revision {
		changes = append(changes, fmt.Sprintf("its revision changed from %s to %s", s.Revision, now.Revision))
	}
	var changed, gone, added []string
	for uid, pod := range s.Pods {
		is, ok := now.Pods[uid]
		switch {
		case !ok:
			gone = append(gone, uid)
		case is != pod:
			changed = append(changed, uid)
		}
	}
	for uid := range now.Pods {
		if _, ok := s.Pods[uid]; !ok {
			added = append(added, uid)
		}
	}
	note := func(what string, uids []string) {
		if len(uids) > 0 {
			slices.Sort(uids)
			changes = append(changes, fmt.Sprintf("%d pods %s (UID %s)", len(uids), what, text.Names(uids, 3)))
		}
	}
	note("restarted, moved or are being deleted", changed)
	if !s.Scaled && !now.Scaled {
		note("are gone", gone)
		note("are new", added)
		if now.Ready < s.Ready {
			changes = append(changes, fmt.Sprintf("%d replicas are ready, %d were before", now.Ready, s.Ready))
		}
	}
	return changes
}
