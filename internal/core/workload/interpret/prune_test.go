package interpret

import "testing"

func TestPrune(t *testing.T) {
	for _, c := range []struct{ name, object, want string }{
		{
			"what every server sets, and the status, are gone",
			`{apiVersion: example.io/v1, kind: Widget, metadata: {name: w, labels: {a: b}, annotations: {c: d}, creationTimestamp: "2026-01-01T00:00:00Z",
				deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 0, generation: 4, managedFields: [{}], resourceVersion: "7",
				selfLink: /x, uid: u, ownerReferences: [{name: o}], finalizers: [f]}, spec: {x: 1}, status: {y: 2}}`,
			`{apiVersion: example.io/v1, kind: Widget, metadata: {name: w, labels: {a: b}, annotations: {c: d}}, spec: {x: 1}}`,
		},
		{
			"a Deployment's revisions are each cluster's own",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, annotations: {deployment.kubernetes.io/revision: "3", deployment.kubernetes.io/revision-history: "1,2", keep: me}}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, annotations: {keep: me}}}`,
		},
		{
			"no empty annotations stay behind",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, annotations: {deployment.kubernetes.io/revision: "3"}}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}`,
		},
		{
			"a Job loses its generated selector and its time to live",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {ttlSecondsAfterFinished: 5,
				selector: {matchLabels: {batch.kubernetes.io/controller-uid: u}},
				template: {metadata: {labels: {app: x, controller-uid: u, job-name: j, batch.kubernetes.io/controller-uid: u, batch.kubernetes.io/job-name: j}}}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {metadata: {labels: {app: x}}}}}`,
		},
		{
			"a Job keeps the selector that its user manages",
			`{apiVersion: batch/v1, kind: Job, spec: {manualSelector: true, selector: {matchLabels: {job-name: mine}}, template: {metadata: {labels: {job-name: mine}}}}}`,
			`{apiVersion: batch/v1, kind: Job, spec: {manualSelector: true, selector: {matchLabels: {job-name: mine}}, template: {metadata: {labels: {job-name: mine}}}}}`,
		},
		{
			"a BroadcastJob is not deleted by members, which would run it again and again",
			`{apiVersion: apps.kruise.io/v1beta1, kind: BroadcastJob, spec: {completionPolicy: {type: Always, ttlSecondsAfterFinished: 9}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: BroadcastJob, spec: {completionPolicy: {type: Always}}}`,
		},
		{
			"nor is a Workflow",
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {entrypoint: main, ttlStrategy: {secondsAfterCompletion: 9}}}`,
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {entrypoint: main}}`,
		},
		{
			"a ServiceAccount keeps its own secrets and loses the hub's tokens",
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: bot}, secrets: [{name: bot-token-x7k2p}, {name: registry}]}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: bot}, secrets: [{name: registry}]}`,
		},
		{
			"a Service gets its addresses where it runs",
			`{apiVersion: v1, kind: Service, spec: {type: ClusterIP, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80}]}}`,
			`{apiVersion: v1, kind: Service, spec: {type: ClusterIP, ports: [{port: 80}]}}`,
		},
		{
			"a headless Service stays headless",
			`{apiVersion: v1, kind: Service, spec: {clusterIP: None, clusterIPs: [None]}}`,
			`{apiVersion: v1, kind: Service, spec: {clusterIP: None, clusterIPs: [None]}}`,
		},
		{
			"the hub's token is no secret for a member",
			`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {annotations: {kubernetes.io/service-account.name: bot, kubernetes.io/service-account.uid: u}}, data: {token: eA==}}`,
			`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {annotations: {kubernetes.io/service-account.name: bot}}}`,
		},
		{
			"an operator signs for itself in each member",
			`{apiVersion: v1, kind: Secret, metadata: {name: kruise-webhook-certs}, data: {ca-key.pem: eA==}, stringData: {cert.pem: x}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: kruise-webhook-certs}}`,
		},
		{
			"another secret keeps its data",
			`{apiVersion: v1, kind: Secret, type: Opaque, data: {token: eA==}}`,
			`{apiVersion: v1, kind: Secret, type: Opaque, data: {token: eA==}}`,
		},
		{
			"a claim is bound where it is",
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {annotations: {volume.kubernetes.io/selected-node: n, keep: me}}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {annotations: {keep: me}}}`,
		},
		{
			"an aggregated ClusterRole gets its rules where it is",
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {clusterRoleSelectors: []}, rules: [{verbs: [get]}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {clusterRoleSelectors: []}}`,
		},
		{
			"another ClusterRole keeps its rules",
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, rules: [{verbs: [get]}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, rules: [{verbs: [get]}]}`,
		},
		{
			"an object with nothing in it passes",
			`{apiVersion: batch/v1, kind: Job}`,
			`{apiVersion: batch/v1, kind: Job}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			obj := read(t, c.object)
			Prune(obj)
			expectObject(t, obj, c.want)
			Prune(obj)
			expectObject(t, obj, c.want)
		})
	}
}
