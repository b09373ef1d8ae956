// Package kruise simulates OpenKruise in a member cluster: it makes the pods of CloneSets, Advanced StatefulSets and
// BroadcastJobs and the workloads of UnitedDeployments, injects the containers of SidecarSets, updates or
// recreates pods, and reports status fields as the real manager does, in whichever version the member stores.
//
// The decisions are pure functions of what was observed, a file per kind; controller.go carries them out. What the
// webhooks of the real manager write and inject is in admission.go and in Injector, for a plugin of the API server.
//
// Not simulated: what the webhooks refuse; adoption of orphans, lifecycle hooks and the states between them, priority
// and scatter strategies, in-place changes other than images, template labels and annotations, grace periods, image
// pre-download, scaleStrategy.maxUnavailable, progressDeadlineSeconds, reuse, resizing and retention of claims, which
// stay (those of a CloneSet until it goes), revisionHistoryLimit, ordinals.start (its feature gate is off by default).
// Of SidecarSets: updates of existing pods, revisions, a paused injection; canary annotations; patchPodMetadata,
// transferEnv, shareVolumePolicy, imagePullSecrets, resourcesPolicy. Of UnitedDeployments: partitions, minReplicas,
// maxReplicas and patches of subsets, adaptive scheduling, conditions and reserved pods, which stay none. Which of
// equal subsets gets the odd pod may differ from the real manager. Of BroadcastJobs: everything but the template,
// which runs on all nodes at once, as with the failure policy FailFast. And every other kind of OpenKruise.
//
// Statuses are written as the real manager writes them. Conditions of failures are those of one sync, dated with it,
// and are written only when a counter, a revision or the generation changes: a failure that is over stays True until
// then, and a new failure that changes nothing else is not shown. A UnitedDeployment whose subsets cannot be written
// gets no status until they can.
//
// Where it is more lenient than the real manager, and how a test gets the same effect:
//   - Its webhooks run in the API server and are always available. A webhook configuration in the member whose URL does
//     not answer, or a ValidatingAdmissionPolicy, refuses writes as an unavailable webhook does.
//   - Conflicts are rare, because nothing else writes pods at the same time. The annotation sim.argosy.io/conflicts on
//     a CloneSet or StatefulSet makes the first write of each in-place update meet one.
//   - Pods are deleted at once: a grace period would slow down all tests. A finalizer on a pod delays its deletion.
//   - Images are available, except those with :bad in their name, and nothing takes time to start.
//
// docs/openkruise.md has the same list for users.
package kruise
