package docs

import "strings"

// deploymentIn is a Deployment web in a namespace, in the clusters eu and us. Its policy has the CloneSet web, too.
func deploymentIn(namespace string) string {
	return strings.ReplaceAll(`apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: NAMESPACE}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment, name: web}
  - {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}
  placement:
    clusterAffinity: {clusterNames: [eu, us]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NAMESPACE}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
`, "NAMESPACE", namespace)
}

// cloneSetIn is a CloneSet web in a namespace.
func cloneSetIn(namespace string) string {
	return strings.ReplaceAll(`apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web, namespace: NAMESPACE}
spec:
  replicas: 4
  selector: {matchLabels: {app: shop}}
  updateStrategy: {type: InPlaceIfPossible, maxUnavailable: 100%}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
`, "NAMESPACE", namespace)
}

// file writes a text to a file.
func file(name, text string) string { return "cat >" + name + " <<'EOF'\n" + text + "\nEOF\n" }

// workloads are what the clusters run before the first page: in the namespaces default and shop.
var workloads = file("default.yaml", deploymentIn("default")+"---\n"+cloneSetIn("default")) +
	file("shop.yaml", deploymentIn("shop")+"---\n"+cloneSetIn("shop")) + `
eventually 'kubectl apply -f default.yaml -f shop.yaml'
for n in default shop; do
	kubectl wait --for=jsonpath='{.status.readyReplicas}'=2 deployment/web -n $n --timeout=120s
	kubectl wait --for=jsonpath='{.status.readyReplicas}'=4 cloneset/web -n $n --timeout=120s
done
`

// inClusters runs the CloneSet web in a namespace of clusters, which the hub does not manage.
func inClusters(namespace, clusters string) string {
	return file("unmanaged.yaml", cloneSetIn(namespace)) + `
kubectl create namespace ` + namespace + `
for c in ` + clusters + `; do
	eventually "kubectl --kubeconfig $c.kubeconfig get namespace ` + namespace + `"
	kubectl --kubeconfig $c.kubeconfig apply -f unmanaged.yaml
	kubectl --kubeconfig $c.kubeconfig wait --for=jsonpath='{.status.readyReplicas}'=4 cloneset/web ` +
		`-n ` + namespace + ` --timeout=120s
done
`
}

// choosing chooses all clusters of the hub, and is a policy that publishes its clusters.
const choosing = `apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: global, namespace: shop}
spec: {clusterSet: global}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: every, namespace: shop}
spec: {}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: published, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: published}]
  placement: {clusterAffinity: {clusterNames: [eu]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: published, namespace: shop}
---
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {name: limits, namespace: shop}
spec:
  placementRefs: [{name: every}]
  manifestWorkTemplate:
    workload:
      manifests:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: limits, namespace: default}}`

// smallOperator has an object of each kind that template.jq treats in its own way.
const smallOperator = `apiVersion: v1
kind: Namespace
metadata: {name: kruise-system}
---
apiVersion: v1
kind: Secret
metadata: {name: kruise-webhook-certs, namespace: kruise-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kruise-manager, namespace: kruise-system}
spec:
  selector: {matchLabels: {app: kruise}}
  template:
    metadata: {labels: {app: kruise}}
    spec: {containers: [{name: manager, image: openkruise/kruise-manager:v1.8.0}]}`

// joiningCluster is what the klusterlet of a cluster creates on the hub.
const joiningCluster = `apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: ap}
spec: {hubAcceptsClient: false}
---
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: ap-x7k2p, labels: {open-cluster-management.io/cluster-name: ap}}
spec:
  signerName: kubernetes.io/kube-apiserver-client
  usages: [digital signature, key encipherment, client auth]
  request: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQlZUQ0IvQUlCQURDQm1URXFNQ2dHQTFVRUNnd2hjM2x6ZEdWdE9tOXdaVzR0WTJ4MWMzUmxjaTF0WVc1aApaMlZ0Wlc1ME9tRndNVGd3TmdZRFZRUUtEQzl6ZVhOMFpXMDZiM0JsYmkxamJIVnpkR1Z5TFcxaGJtRm5aVzFsCmJuUTZiV0Z1WVdkbFpDMWpiSFZ6ZEdWeWN6RXhNQzhHQTFVRUF3d29jM2x6ZEdWdE9tOXdaVzR0WTJ4MWMzUmwKY2kxdFlXNWhaMlZ0Wlc1ME9tRndPbUZuWlc1ME1UQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCUGdzNkw2V0JESTUxd3lkQlRpMEVkMnkvV0dSM3ZXYncrVTVGZlFKaHI3Ly9OUG5OTkN5WGxIaU9mby82MVFnCjN4RzIvNG4yMDJ4Z01wUDY4cW5SZ0J5Z0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCRkFpRUEyOEUvSzFCaVFHZDEKTTdmMXl0WXZNczRJYm51QVlHcXFtcnJhM0pDSFVBY0NJRHQ0a3E2cjBTZnUvZFpMUG1uckhyV3o5cDVDQzRKQgoyRU5KcE8rMTdWN2cKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==`

// releases are the strategies and the functions of the stories about releases. $release is the name of a release.
var releases = file("strategies.yaml", `apiVersion: release.argosy.io/v1alpha1
kind: ReleaseStrategy
metadata: {name: one-two-seven, namespace: shop}
spec:
  stages:
  - {name: one, to: {weight: 1}, after: [{name: first, approval: {count: 1}}]}
  - {name: two, to: {weight: 2}, after: [{name: second, approval: {count: 1}}]}
  - {name: seven, to: {weight: 7}, after: [{name: third, approval: {count: 1}}]}
---
apiVersion: release.argosy.io/v1alpha1
kind: ReleaseStrategy
metadata: {name: at-once, namespace: shop}
spec:
  stages: [{name: all}]`) + `
kubectl apply -f strategies.yaml
named() { # STRATEGY
	kubectl annotate cloneset web argosy.io/release-strategy=$1 -n shop --overwrite
	eventually 'kubectl get releaserevisions -n shop -o name | grep cloneset-web'
}
image=$(date +%s) # no page has released it
change() {
	image=$((image + 1))
	kubectl patch cloneset web -n shop --type json -p '[{"op": "replace", ` +
	`"path": "/spec/template/spec/containers/0/image", "value": "example.com/web:'$image'"}]'
	eventually 'argosy release plan cloneset/web -n shop'
}
started() { # the command before started it
	release=$(sed -n 's/^release \(.*\) is created$/\1/p' $output)
	test -n "$release"
}
begin() { # changes the template and releases it
	change
	argosy release start cloneset/web -n shop >started
	output=started started
}
reaches() { # PHASE and REASON
	eventually "test \"\$(kubectl get release $release -n shop -o jsonpath='{.status.phase} {.status.reason}')\" = '$1'"
}
blocked() { kubectl get releaserevisions -n shop -o json | jq -r "first(.items[] | select($1)).metadata.name"; }
waits() { reaches 'Running WaitingForApproval'; }
`

// notReleased ends the use of releases.
const notReleased = `
for r in $(kubectl get releases -n shop -o name); do argosy release abort ${r#*/} -n shop --yes || true; done
named at-once
argosy release start cloneset/web -n shop --wait --timeout 1m || true
kubectl annotate cloneset web argosy.io/release-strategy- -n shop
`

// onTerminal are the commands that ask on a terminal, which these are not run on.
var onTerminal = []string{"release approve web-x7k2p", "release approve --yes $release",
	"release reject web-x7k2p", "release reject --yes $release",
	"release rollback web-x7k2p", "release rollback --yes $release", "release pause web-x7k2p",
	"release pause --yes $release", "release resume web-x7k2p", "release resume --yes $release",
	"release abort web-x7k2p", "release abort --yes $release", "web-x7k2p", "$release",
	"cloneset-web-5d0c7f21aa10", "$revision"}

// volume is what the chart of the hub has in its cluster.
const volume = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: large}
provisioner: example.com/disk
allowVolumeExpansion: true
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-argosy-0, namespace: argosy}
spec: {storageClassName: large, accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: argosy, namespace: argosy}
spec:
  replicas: 0
  selector: {matchLabels: {app: argosy}}
  template:
    metadata: {labels: {app: argosy}}
    spec: {containers: [{name: hub, image: argosy}]}`

// operator are the manifests of an operator.
const operator = `{apiVersion: v1, kind: Namespace, metadata: {name: kruise-operator}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: kruise, namespace: kruise-operator}}`

// workflows are a Kruise Rollout and a Workflow in the cluster eu.
const workflows = `apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: till, namespace: till}
spec:
  resourceSelectors:
  - {apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout}
  - {apiVersion: argoproj.io/v1alpha1, kind: Workflow}
  placement: {clusterAffinity: {clusterNames: [eu]}}
---
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata: {name: shop, namespace: till}
spec:
  workloadRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: shop}
  strategy: {canary: {steps: [{replicas: 10%, pause: {}}, {replicas: 100%}]}}
---
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: report, namespace: till}
spec:
  entrypoint: main
  templates: [{name: main, container: {image: "example.com/report:1"}}]`

// stories are those of all pages with commands, in the order in which they run.
var stories = []story{
	{page: "docs/access.md", steps: []step{
		{command: "argosy access grant shop-developers --role view --clusters env=prod --proxy",
			before: "kubectl label cluster eu env=prod", want: "granted role view"},
		{command: "argosy access list", want: "shop-developers"},
		{command: "argosy access revoke shop-developers --role view --clusters env=prod", want: "revoked"},
		{command: "kubectl auth can-i update overridepolicies -n shop --as jane --as-group shop-developers", want: "yes"},
	}, after: "kubectl label cluster eu env-"},
	{page: "docs/member-rights.md", steps: []step{
		{command: "argosy join eu --cluster-kubeconfig eu.kubeconfig --role minimal", want: "role minimal"},
	}, after: "argosy join eu --cluster-kubeconfig eu.kubeconfig --role full"},
	{page: "docs/autoscaling.md"},
	{page: "docs/fleet-metrics.md"},
	{page: "docs/inventory.md", steps: []step{
		{command: "kubectl get clusterprofiles -n argosy-inventory", want: "argosy    True",
			before: "kubectl wait --for=condition=ControlPlaneHealthy clusterprofile/eu -n argosy-inventory --timeout=60s"},
	}},
	{page: "docs/usage.md", steps: []step{
		{command: "argosy usage -A --by label=team -o csv", want: "team,resource,requested,limits,used,quota,change,cost30d"},
	}},
	{page: "docs/search.md", names: []string{"EXPRESSION", "true"}, before: file("registry.yaml", `apiVersion: search.karmada.io/v1alpha1
kind: ResourceRegistry
metadata: {name: workloads}
spec: {targetCluster: {}, resourceSelectors: [{apiVersion: v1, kind: Pod}]}`), steps: []step{
		{command: "kubectl get resourceregistry workloads", want: "workloads",
			before: "eventually 'kubectl get resourceregistry workloads | grep -q True'"},
		{command: `kubectl --server "$HUB/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy" get pods -A -o wide`},
	}, after: "kubectl delete resourceregistry workloads"},
	{page: "docs/quota.md",
		before: file("quota.yaml", `apiVersion: policy.karmada.io/v1alpha1
kind: FederatedResourceQuota
metadata: {name: team, namespace: shop}
spec: {overall: {cpu: "40"}}`),
		steps: []step{
			{command: "kubectl apply -f quota.yaml", want: "federatedresourcequota.policy.karmada.io/team"},
			{command: "kubectl get federatedresourcequotas -n shop", want: "team"},
			{command: "argosy why deployment web -n shop", want: "web"},
		},
		after: "kubectl delete federatedresourcequota team -n shop"},
	{page: "docs/bounds.md", steps: []step{
		{command: "argosy config", want: "members:"},
		{command: "kubectl get clusters", want: "eu"},
		{command: "argosy why cluster eu", want: "eu"},
	}},
	{page: "docs/brakes.md",
		steps: []step{
			{command: "kubectl --context member annotate namespace kube-system argosy.io/hands-off=true",
				before: "argosy brake off --cluster-kubeconfig eu.kubeconfig"},
			{command: "kubectl --context member annotate cloneset web argosy.io/hands-off=true", want: "web annotated"},
		},
		after: "argosy brake off; argosy brake off --cluster eu,us -n shop"},
	{page: "docs/capacity.md", steps: []step{{command: "argosy why cluster eu", want: "eu"}}},
	{page: "docs/certificates.md", onHub: true, steps: []step{{command: "argosy certificates", want: "apiserver"}}},
	{page: "docs/configuration.md", apart: true},
	{page: "docs/console.md", steps: []step{
		{command: "argosy console", want: "/console"},
		{command: "argosy console --no-browser", want: "/console"},
	}},
	{page: "docs/doors.md", before: "kubectl create rolebinding jane --clusterrole edit --user jane -n shop",
		steps: []step{
			{command: "kubectl auth can-i --list -n shop --as jane", want: "overridepolicies.policy.karmada.io"},
			{command: "kubectl auth can-i create overridepolicies.policy.karmada.io -n shop --as jane", want: "yes"},
		}},
	{page: "docs/failover.md", steps: []step{{command: "argosy simulate --cluster-down eu", want: "eu"}}},
	{page: "docs/hubs.md", before: "cp eu.kubeconfig eu.yaml", steps: []step{
		{command: "argosy get clusters", want: "eu"},
		{command: "argosy join eu --take-over --cluster-kubeconfig eu.yaml", want: "eu"},
	}},
	{page: "docs/karmada-differences.md", before: "mkdir manifests && cp examples/shop/propagationpolicy.yaml manifests",
		steps: []step{
			{command: "cat manifests/*.yaml | argosy convert -f -", want: "kind: PropagationPolicy"},
			{command: "kubectl get --raw /apis/policy.karmada.io/v1alpha1", want: "propagationpolicies"},
		}},
	{page: "docs/kinds.md", steps: []step{{command: "argosy why deployment web -n shop", want: "Healthy"}}},
	{page: "docs/manifestworks.md"},
	{page: "docs/ocm.md", names: []string{"TOKEN", "abc", "propagationpolicy web ", "propagationpolicy published ",
		"helm template kruise openkruise/kruise --include-crds", "cat operator.yaml"},
		before: file("ap.yaml", joiningCluster) + file("operator.yaml", smallOperator) +
			file("placement.yaml", choosing) + `
kubectl get namespace shop 2>/dev/null || kubectl create namespace shop
kubectl apply -f placement.yaml`, steps: []step{
			{command: "kubectl get managedclusters", want: "eu"},
			{command: "kubectl get placements,placementdecisions -n shop",
				before: `eventually 'kubectl get placementdecision every-decision-1 -n shop -o yaml | grep "clusterName: eu"'`,
				want:   "AllDecisionsScheduled"},
			{command: "kubectl annotate propagationpolicy web -n shop argosy.io/placement-decision=web", want: "annotated"},
			{command: "kubectl get managedclusteraddons -A", want: "openkruise",
				before: "eventually 'kubectl get managedclusteraddons -n eu openkruise | grep True'"},
			{command: "kubectl get manifestworkreplicasets -n shop", want: "limits",
				before: "eventually 'kubectl get manifestworks -n eu -l work.open-cluster-management.io/placementname=every -o name | grep limits'"},
			{command: "kubectl get certificatesigningrequests -l open-cluster-management.io/cluster-name=ap", want: "ap-x7k2p",
				before: "kubectl apply -f ap.yaml"},
			{command: "kubectl get managedcluster,cluster ap", want: "cluster.cluster.karmada.io/ap",
				before: "eventually 'kubectl get cluster ap'"},
			{command: "kubectl annotate managedcluster ap argosy.io/force-removal=true", want: "annotated",
				before: "kubectl apply -f ap.yaml"},
		}, after: `eventually 'kubectl get placementdecision web-decision-1 -n shop -o yaml | grep "clusterName: eu"'
kubectl delete -k examples/ocm-addon
eventually '! kubectl --kubeconfig eu.kubeconfig get deployment kruise-manager -n kruise-system'
kubectl delete -f ap.yaml -f placement.yaml; kubectl --context member delete namespace open-cluster-management-agent`},
	{page: "docs/metrics.md", steps: []step{{command: "kubectl get --raw /metrics", want: "argosy_build_info"}}},
	{page: "docs/reference/README.md", steps: []step{{command: "argosy --help", want: "simulate"},
		{command: "kubectl explain propagationpolicy.spec", want: "placement"}}},
	{page: "docs/reference/api-fields.md", steps: []step{
		{command: "kubectl explain propagationpolicy.spec.placement", want: "clusterAffinity"}}},
	{page: "docs/reference/conditions.md", steps: []step{
		{command: "kubectl get resourcebinding web-deployment -o yaml", want: "type: Scheduled"}}},
	{page: "docs/reference/events.md"},
	{page: "docs/reference/labels-and-annotations.md",
		after: "kubectl annotate deployment web argosy.io/rollout-order-"},
	{page: "docs/security.md", onHub: true,
		steps: []step{
			{command: "argosy status", want: "eu"},
			{command: "argosy certificates renew ca sa", want: "Restart the hub", before: `
export HOME=$PWD/another && mkdir $HOME
argosy certificates create --pki-dir $HOME/.local/share/argosy/pki`},
		},
		after: "kubectl annotate cluster eu argosy.io/impersonate-system-names-"},
	{page: "docs/services.md"},
	{page: "docs/remedies.md", before: file("remedy.yaml", `apiVersion: remedy.karmada.io/v1alpha1
kind: Remedy
metadata: {name: upkeep}
spec: {clusterAffinity: {clusterNames: [eu]}, actions: [TrafficControl]}`) +
		file("mcs.yaml", `apiVersion: networking.karmada.io/v1alpha1
kind: MultiClusterService
metadata: {name: web, namespace: shop}
spec: {types: [CrossCluster]}`) + `
kubectl get namespace shop 2>/dev/null || kubectl create namespace shop
kubectl create service clusterip web --tcp=80 -n shop
kubectl apply -f mcs.yaml`,
		steps: []step{
			{command: "argosy why cluster eu", before: "eventually 'argosy why cluster eu | grep upkeep'",
				want: "TrafficControl"},
			{command: "kubectl get cluster eu -o jsonpath='{.status.remedyActions}'", want: "TrafficControl"},
		},
		after: "kubectl delete remedy upkeep; kubectl delete multiclusterservice,service web -n shop"},
	{page: "docs/simulate.md", steps: []step{{command: "argosy simulate --cluster-down eu", want: "eu"}}},
	{page: "docs/status.md", steps: []step{{command: "kubectl get deployment web", want: "2/2"},
		{command: "kubectl get resourcebinding web-deployment -o yaml", want: "aggregatedStatus"}}},
	{page: "docs/upgrade.md", onHub: true, steps: []step{{command: "argosy status", want: "eu"},
		{command: "kubectl get clusters -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints", want: "<none>"}}},

	// With NoExecute, workloads would leave the clusters, or not, depending on how long it takes.
	{page: "docs/taints.md", names: []string{"clusters eu maintenance:NoExecute", "clusters eu maintenance:NoSchedule",
		"clusters eu us maintenance:NoExecute", "clusters eu us maintenance:NoSchedule"},
		steps: []step{
			{command: "argosy simulate --taint eu=maintenance:NoExecute", want: "eu"},
			{command: "argosy cordon eu", before: "argosy taint clusters eu maintenance-"},
			{command: "argosy taint clusters eu dedicated-", before: "argosy taint clusters eu dedicated=gpu:NoSchedule"},
		},
		after: "argosy taint clusters eu us maintenance-"},

	{page: "docs/backup.md", onHub: true,
		names: []string{"/mnt/backups/argosy-20260301T120000Z-r4711.tar.gz", "mnt/backups/argosy-*.tar.gz",
			"-n shop", "-n lost"},
		before: file("web.yaml", deploymentIn("lost")) + `
kubectl apply -f web.yaml
eventually 'kubectl --context member get deployment web -n lost -o json >live.json'
jq 'del(.status) | .metadata |= {name, namespace, labels, annotations}' live.json >orphan.json
orphan() { # the cluster eu has an object of the hub without a Work
	kubectl delete propagationpolicies --all -n lost
	kubectl delete deployment web -n lost
	kubectl --context member delete deployment web -n lost --ignore-not-found
	kubectl --context member create -f orphan.json
	eventually 'argosy get orphans | grep lost'
}
known() { eventually 'argosy get orphans >orphans && ! grep lost orphans'; }`,
		steps: []step{
			{command: "argosy backup --to /mnt/backups"},
			{command: "argosy restore /mnt/backups/argosy-20260301T120000Z-r4711.tar.gz --data-dir /var/lib/argosy"},
			// A second backup within the same second may have the name of the first.
			{command: "argosy backup --to /mnt/backups", before: "rm mnt/backups/argosy-*"},
			{command: "argosy restore /mnt/backups/argosy-20260301T120000Z-r4711.tar.gz --data-dir /var/lib/argosy",
				before: "rm -r var/lib/argosy"},
			{command: "argosy get orphans", before: "orphan", want: "lost"},
			{command: "argosy adopt deployment web -n shop --cluster eu", before: "known; orphan", want: "web"},
			{command: "argosy orphans delete deployment web -n shop --yes", before: "known; orphan", want: "web"},
		},
		after: "known; kubectl delete namespace lost --wait=false"},

	{page: "docs/hardening.md", apart: true,
		before: file("etc/argosy/audit-webhook.kubeconfig", `{apiVersion: v1, kind: Config, current-context: c,
  clusters: [{name: c, cluster: {server: "https://audit.example.com"}}],
  contexts: [{name: c, context: {cluster: c}}]}`),
		steps: []step{{command: "argosy up --tls-cert-file hub.crt --tls-private-key-file hub.key", before: `
for f in crt key; do cp .local/share/argosy/pki/apiserver.$f hub.$f; done`}}},
	{page: "docs/install.md", onHub: true, names: []string{"bin/argosy install", "bin/argosy install --root machine"},
		steps: []step{
			{command: "bin/argosy up --data-dir /srv/argosy --bind-address 0.0.0.0"},
			{command: "sudo bin/argosy install --dry-run", want: "argosy.service"},
			{command: "kubectl create namespace argosy", before: `
export KUBECONFIG=us.kubeconfig # the host cluster
for f in ca.crt tls.crt tls.key; do echo content >$f; done`},
			{command: `kubectl patch pvc data-argosy-0 --namespace argosy --patch ` +
				`'{"spec": {"resources": {"requests": {"storage": "20Gi"}}}}'`, before: file("volume.yaml", volume) + `
kubectl apply -f volume.yaml
kubectl wait --for=jsonpath='{.status.phase}'=Bound pvc/data-argosy-0 -n argosy --timeout=120s`},
		},
		after: "kubectl delete namespace argosy --wait=false"},
	{page: "docs/scheduler.md", apart: true},

	{page: "docs/migration.md", names: []string{"-n shop", "-n stock", "--soak 10m", "--soak 1s"},
		before: inClusters("stock", "eu us") + file("migration.yaml", `batches: [1, 2, 7]
soak: 1s
items:
- {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, namespace: stock, name: web, clusters: [eu, us]}`),
		steps: []step{
			{command: "argosy migrate plan -f migration.yaml", want: "web"},
			{command: "argosy migrate status", want: "Own"},
			{command: "argosy migrate out -f migration.yaml -o json", before: "argosy migrate in -f migration.yaml",
				want: "stock/web"},
			{command: "argosy migrate out --all", before: "argosy migrate in -f migration.yaml", want: "web"},
		},
		after: "argosy brake off --cluster-kubeconfig us.kubeconfig -n stock"},

	{page: "docs/releases.md", names: onTerminal, before: releases + "named one-two-seven; change",
		steps: []step{
			{command: "argosy release plan cloneset/web -n shop", want: "seven"},
			{command: "argosy release watch web-x7k2p -n shop", before: "started", until: "argosy release approve"},
			{command: "argosy release approve web-x7k2p -n shop", want: "approved by you"},
			{command: "argosy release rollback web-x7k2p -n shop"},
			{command: "kubectl annotate cloneset web argosy.io/release-strategy=one-two-seven -n shop",
				before: "reaches 'RolledBack RolledBack'; kubectl annotate cloneset web argosy.io/release-strategy- -n shop"},
			{command: "argosy release plan cloneset/web -n shop"},
			{command: "argosy release watch web-x7k2p -n shop", before: "started", until: "argosy release approve"},
			{command: "kubectl label cluster eu env=test"},
			{command: "kubectl get clusters --label-columns env", want: "prod"},
			{command: "argosy release plan cloneset/web -n shop", want: "us", before: `
argosy release abort $release -n shop --yes
sed 's/namespace: default/namespace: shop/' examples/release-environments/strategy.yaml | kubectl apply -f -
named environments; change`},
			{command: "argosy release approve web-x7k2p -n shop", before: "named one-two-seven; begin; waits",
				want: "approved by you"},
			{command: `argosy release reject web-x7k2p -n shop --comment "latency has doubled"`,
				before: `eventually 'argosy release status $release -n shop | grep second'; waits`, want: "rejected by you"},
			{command: `argosy release retry web-x7k2p -n shop --reason "the registry answers again"`,
				before: "reaches 'Paused PausedByFailure'"},
			{command: `argosy release skip web-x7k2p -n shop --reason "that cluster is shut down tomorrow"`,
				before: "waits; argosy release reject $release -n shop --yes; reaches 'Paused PausedByFailure'"},
			{command: `argosy release rollback web-x7k2p -n shop --reason "errors in checkout"`,
				before: "reaches 'RolledBack RolledBack'; begin; waits"},
			{command: "argosy release watch web-x7k2p -n shop", code: 2},
			{command: `kubectl patch releaserevision cloneset-web-5d0c7f21aa10 -n shop --subresource=status --type=merge ` +
				`-p '{"status":{"blocked":null}}'`, before: "revision=$(blocked '.status.blocked != null')"},
			{command: `argosy release start cloneset/web -n shop --revision cloneset-web-5d0c7f21aa10 --reason "last good one"`,
				before: "revision=$(blocked '.status.blocked == null')"},
			{command: "argosy release pause web-x7k2p -n shop", before: `started
argosy release abort $release -n shop --yes || true # it may have ended
begin; waits`},
			{command: `argosy release start cloneset/web -n shop --commit 3f2c1a ` +
				`--change-url https://ci.example.com/42 --wait --timeout 2h`, before: "named at-once; change",
				want: "it has succeeded"},
		},
		after: "kubectl label clusters eu us env-" + notReleased},
	{page: "docs/release-guards.md", names: []string{"web-x7k2p", "$release"},
		before: releases + "named one-two-seven; change",
		steps: []step{
			{command: "kubectl get releaseguards", want: "production"},
			{command: "argosy release plan cloneset/web -n shop", want: "seven"},
			{command: `argosy release break-glass web-x7k2p -n shop --reason "checkout is down, INC-42"`,
				before: file("closed.yaml", `apiVersion: release.argosy.io/v1alpha1
kind: ReleaseGuard
metadata: {name: closed}
spec:
  selector: {namespaces: [shop]}
  windows: [{kind: Deny, from: "2020-01-01T00:00:00Z", reason: holidays}]`) + `
kubectl apply -f closed.yaml
begin
eventually 'argosy release status $release -n shop | grep Frozen'`, want: "in spite of ReleaseGuard closed"},
		},
		after: "kubectl delete releaseguards closed production" + notReleased},
	{page: "docs/release-history.md", onHub: true, names: []string{"web-x7k2p", "$release"},
		before: releases + `named at-once; change
argosy release start cloneset/web -n shop --wait --timeout 1m >started; output=started started
echo secret >etc/argosy/history-password`,
		steps: []step{
			{command: "argosy release history -n shop", want: "Succeeded"},
			{command: "argosy release history web-x7k2p -n shop", want: "Completed"},
			{command: `argosy up --history-dsn 'host=db.example.com dbname=argosy user=argosy sslmode=verify-full' ` +
				`--history-password-file /etc/argosy/history-password`, before: "export XDG_DATA_HOME=$PWD/another"},
			{command: "argosy release export > history.jsonl", before: "unset XDG_DATA_HOME", want: "exported"},
		},
		after: notReleased},

	{page: "docs/openkruise.md",
		names: []string{"undo cloneset web", "undo --yes cloneset web", "-n shop", "-n till",
			"helm template kruise openkruise/kruise", "cat kruise.yaml",
			"workflow NAME", "workflow report", "-C CLUSTER", "-C eu"},
		before: inClusters("till", "eu") + file("kruise.yaml", operator) + file("till.yaml", workflows) +
			"kubectl apply -f till.yaml\n",
		steps: []step{
			{command: "argosy adopt cloneset web -n shop --cluster eu --dry-run", want: "can be adopted"},
			{command: "argosy rollout approve cloneset web", want: "approved", before: `
kubectl patch cloneset web --type json -p '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", ` +
				`"value": "example.com/web:2"}]'
eventually 'kubectl get resourcebinding web-cloneset -o yaml | grep WaitingForApproval'`},
			// The simulated clusters have no controller of Rollouts, so somebody else writes how far one is.
			{command: "argosy rollout status rollout shop -n shop", want: "StepPaused", before: `
eventually 'kubectl --context member get rollouts.rollouts.kruise.io shop -n till'
kubectl --context member patch rollouts.rollouts.kruise.io shop -n till --subresource=status --type=merge -p '{"status": ` +
				`{"phase": "Progressing", "currentStepState": "StepPaused", "canaryStatus": ` +
				`{"currentStepIndex": 1, "currentStepState": "StepPaused", "canaryRevision": "new"}}}'
eventually 'argosy rollout status rollout shop -n till | grep StepPaused'`},
			{command: "argosy rollout approve rollout shop -n shop", want: "step 1 is approved in cluster eu"},
			{command: "argosy rollout history cloneset web", want: "example.com/web:2"},
			{command: "argosy rollout undo cloneset web --dry-run", want: "example.com/web:2 → "},
			{command: "argosy rollout undo cloneset web", want: "has the pods of revision"},
			{command: "argosy get workflow NAME -n shop -o yaml -C CLUSTER", want: "name: report"},
		},
		after: `kubectl annotate cloneset web argosy.io/rollout-order- argosy.io/rollout-stages-
argosy addons disable openkruise`},

	{page: "docs/deletion.md",
		steps: []step{
			{command: "argosy unjoin eu --dry-run", want: "Deployment.apps"},
			{command: "$ argosy unjoin eu", want: "confirm with --yes", code: 1, before: `
kubectl label cluster eu resourcetemplate.karmada.io/deletion-protected-
eventually 'argosy unjoin eu --dry-run >plan; grep -q Deployment.apps plan' # the Works are back`},
		}},
}
