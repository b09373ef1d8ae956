// Package kruise simulates OpenKruise in a member cluster: it makes the pods of CloneSets, Advanced StatefulSets and
// BroadcastJobs and the workloads of UnitedDeployments, injects the containers of SidecarSets, updates pods in place or
// anew, and reports every status field as the real manager does, in whichever version the member stores.
//
// The decisions are pure functions of what was observed, a file per kind; the controllers carry them out. What the webhooks
// of the real manager write, inject and refuse is in the files of admission and in Injector, for a plugin of the API server.
//
// Not simulated: adoption of orphans, lifecycle hooks and the states between them, priority and scatter strategies,
// in-place changes other than images, template labels and annotations, grace periods, image pre-download, resizing of
// claims, ordinals.start (its feature gate is off by default).
// Of SidecarSets: hot upgrades, which are done as cold ones; canary annotations; the JSON patches of patchPodMetadata;
// resourcesPolicy; the sums of sharedVolumeDevice; injected containers have no service account token mounted.
// Of UnitedDeployments: adaptive scheduling and reserved pods, which stay none. Which of equal subsets gets the odd pod may
// differ from the real manager, and a Deployment of a subset ignores its partition.
// Of BroadcastJobs: restartLimit counts restarts of containers, which fake nodes do not make.
// And every other kind of OpenKruise.
//
// Where it is kinder than the real manager, so that no test of it says how the hub does there: its webhooks are always up; pods are
// deleted at once and images are there; its cache is awaited after each write, so that conflicts are rare; of a UnitedDeployment, a failure
// that is over is gone from the status. docs/openkruise.md has the same list for users.
package kruise
