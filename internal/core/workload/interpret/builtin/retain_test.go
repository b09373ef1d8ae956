package builtin

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestRetain(t *testing.T) {
	checkRetain(t, []retainCase{
		{
			"a Deployment's replicas are the template's",
			`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}}`, `{spec: {replicas: 5}}`,
			`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}}`,
		},
		{
			"unless its label leaves them to the member",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 2, paused: true}}`, `{spec: {replicas: 5}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 5, paused: true}}`,
		},
		{
			"a definition is converted where the operator of the member says",
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {versions: [{name: v2}], conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {caBundle: Cg==, service: {name: s}}}}}}`,
			`{spec: {versions: [{name: v1}], conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: UkVBTA==, url: "https://h/convert"}}}}}`,
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {versions: [{name: v2}], conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {caBundle: UkVBTA==, url: "https://h/convert"}}}}}`,
		},
		{
			"a definition that is to be converted by nobody is",
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {conversion: {strategy: None}}}`,
			`{spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: UkVBTA==}}}}}`,
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {conversion: {strategy: None}}}`,
		},
		{
			"webhooks keep the certificate of the member's operator, by name, and those that it took out stay out",
			`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, webhooks: [{name: new, clientConfig: {caBundle: Cg==}}, {name: gated, clientConfig: {}}, {name: b, timeoutSeconds: 9, clientConfig: {caBundle: Cg==, service: {name: s}}}]}`,
			`{metadata: {annotations: {template: '[{"name":"b"},{"name":"gated"}]'}}, webhooks: [{name: a, clientConfig: {caBundle: QQ==}}, {name: b, timeoutSeconds: 5, clientConfig: {caBundle: UkVBTA==, url: "https://h/b"}}]}`,
			`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, webhooks: [{name: new, clientConfig: {caBundle: Cg==}}, {name: b, timeoutSeconds: 9, clientConfig: {caBundle: UkVBTA==, url: "https://h/b"}}]}`,
		},
		{
			"webhooks that nobody has certified yet are the template's",
			`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, webhooks: [{name: b, clientConfig: {caBundle: Cg==}}]}`,
			`{webhooks: [{name: b, clientConfig: {service: {name: other}}}]}`,
			`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, webhooks: [{name: b, clientConfig: {caBundle: Cg==}}]}`,
		},
		{
			"a Job keeps its generated selector and labels",
			`{apiVersion: batch/v1, kind: Job, spec: {parallelism: 2, template: {metadata: {labels: {app: x}}}}}`,
			`{spec: {parallelism: 1, selector: {matchLabels: {uid: u}}, template: {metadata: {labels: {app: x, uid: u}}}}}`,
			`{apiVersion: batch/v1, kind: Job, spec: {parallelism: 2, selector: {matchLabels: {uid: u}}, template: {metadata: {labels: {app: x, uid: u}}}}}`,
		},
		{
			"a Pod is the member's but for images, deadline and more tolerations",
			`{apiVersion: v1, kind: Pod, metadata: {labels: {new: label}}, spec: {activeDeadlineSeconds: 9, tolerations: [{key: b}], containers: [{name: app, image: v2}]}}`,
			`{spec: {nodeName: n, tolerations: [{key: a}], volumes: [{name: token}], containers: [{name: injected, image: p}, {name: app, image: v1, volumeMounts: [{name: token}]}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {labels: {new: label}}, spec: {nodeName: n, activeDeadlineSeconds: 9, tolerations: [{key: a}, {key: b}], volumes: [{name: token}], containers: [{name: injected, image: p}, {name: app, image: v2, volumeMounts: [{name: token}]}]}}`,
		},
		{
			"a Service keeps its addresses and the ports it was given",
			`{apiVersion: v1, kind: Service, spec: {type: NodePort, ports: [{port: 80}, {port: 443, nodePort: 30443}, {port: 53, protocol: UDP}]}}`,
			`{spec: {type: NodePort, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80, protocol: TCP, nodePort: 30080}, {port: 443, protocol: TCP, nodePort: 31443}, {port: 53, protocol: TCP, nodePort: 30053}]}}`,
			`{apiVersion: v1, kind: Service, spec: {type: NodePort, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80, nodePort: 30080}, {port: 443, nodePort: 30443}, {port: 53, protocol: UDP}]}}`,
		},
		{
			"a Service keeps its node port instead of the one that the hub allocated",
			`{apiVersion: v1, kind: Service, metadata: {annotations: {argosy.io/allocated-node-ports: '80/TCP=30080,443/TCP=30443'}}, spec: {type: NodePort, ports: [{port: 80, nodePort: 30080}, {port: 443, nodePort: 30443}, {port: 8080, nodePort: 30808}]}}`,
			`{spec: {type: NodePort, ports: [{port: 80, protocol: TCP, nodePort: 31080}, {port: 8080, protocol: TCP, nodePort: 31808}]}}`,
			`{apiVersion: v1, kind: Service, metadata: {annotations: {argosy.io/allocated-node-ports: '80/TCP=30080,443/TCP=30443'}}, spec: {type: NodePort, ports: [{port: 80, nodePort: 31080}, {port: 443, nodePort: 30443}, {port: 8080, nodePort: 30808}]}}`,
		},
		{
			"a Service that became internal gives its node ports back",
			`{apiVersion: v1, kind: Service, spec: {type: ClusterIP, ports: [{port: 80}]}}`,
			`{spec: {type: NodePort, clusterIP: 10.0.0.1, ports: [{port: 80, nodePort: 30080}]}}`,
			`{apiVersion: v1, kind: Service, spec: {type: ClusterIP, clusterIP: 10.0.0.1, ports: [{port: 80}]}}`,
		},
		{
			"a load balancer keeps the port of its health check",
			`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 31000}}`,
			`{spec: {clusterIP: 10.0.0.1, healthCheckNodePort: 32000}}`,
			`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, externalTrafficPolicy: Local, clusterIP: 10.0.0.1, healthCheckNodePort: 32000}}`,
		},
		{
			"a Service keeps the address families of its cluster",
			`{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}`,
			`{spec: {ipFamilies: [IPv6], ipFamilyPolicy: SingleStack, ports: [{port: 80}]}}`,
			`{apiVersion: v1, kind: Service, spec: {ipFamilies: [IPv6], ipFamilyPolicy: SingleStack, ports: [{port: 80}]}}`,
		},
		{
			"a headless Service stays headless",
			`{apiVersion: v1, kind: Service, spec: {clusterIP: None}}`, `{spec: {clusterIP: None, clusterIPs: [None]}}`,
			`{apiVersion: v1, kind: Service, spec: {clusterIP: None}}`,
		},
		{
			"a name for another host has no address",
			`{apiVersion: v1, kind: Service, spec: {type: ExternalName, externalName: x}}`,
			`{spec: {type: ClusterIP, clusterIP: 10.0.0.1}}`,
			`{apiVersion: v1, kind: Service, spec: {type: ExternalName, externalName: x}}`,
		},
		{
			"a claim keeps its volume",
			`{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {}}}`, `{spec: {volumeName: pv}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {}, volumeName: pv}}`,
		},
		{
			"a volume keeps its claim",
			`{apiVersion: v1, kind: PersistentVolume, spec: {claimRef: {name: c}}}`, `{spec: {claimRef: {name: c, uid: u}}}`,
			`{apiVersion: v1, kind: PersistentVolume, spec: {claimRef: {name: c, uid: u}}}`,
		},
		{
			"an account keeps the secrets that the member added",
			`{apiVersion: v1, kind: ServiceAccount, secrets: [{name: mine}]}`, `{secrets: [{name: token-x}, {name: mine}]}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {annotations: {argosy.io/sent-entries: "{}"}}, secrets: [{name: mine}, {name: token-x}]}`,
		},
		{
			"an account keeps the pull secrets that the member added",
			`{apiVersion: v1, kind: ServiceAccount, metadata: {annotations: {argosy.io/sent-entries: '{"imagePullSecrets":["hub"]}'}}, imagePullSecrets: [{name: hub}]}`,
			`{metadata: {annotations: {argosy.io/sent-entries: '{"imagePullSecrets":["hub"]}'}}, secrets: [{name: token}], imagePullSecrets: [{name: hub}, {name: own}]}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {annotations: {argosy.io/sent-entries: '{"imagePullSecrets":["hub"]}'}}, imagePullSecrets: [{name: hub}, {name: own}], secrets: [{name: token}]}`,
		},
		{
			"an account loses the pull secret that the hub sends no more",
			`{apiVersion: v1, kind: ServiceAccount, metadata: {annotations: {argosy.io/sent-entries: '{"imagePullSecrets":["hub"]}'}}, imagePullSecrets: [{name: hub}]}`,
			`{metadata: {annotations: {argosy.io/sent-entries: '{"imagePullSecrets":["hub","old"]}'}}, imagePullSecrets: [{name: hub}, {name: old}, {name: own}]}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {annotations: {argosy.io/sent-entries: '{"imagePullSecrets":["hub"]}'}}, imagePullSecrets: [{name: hub}, {name: own}]}`,
		},
		{
			"an account keeps only the member's pull secrets",
			`{apiVersion: v1, kind: ServiceAccount}`,
			`{metadata: {annotations: {argosy.io/sent-entries: '{"imagePullSecrets":["hub"]}'}}, imagePullSecrets: [{name: hub}, {name: own}]}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {annotations: {argosy.io/sent-entries: '{}'}}, imagePullSecrets: [{name: own}]}`,
		},
		{
			"an account keeps them with later changes",
			`{apiVersion: v1, kind: ServiceAccount}`,
			`{metadata: {annotations: {argosy.io/sent-entries: '{}'}}, imagePullSecrets: [{name: own}]}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {annotations: {argosy.io/sent-entries: '{}'}}, imagePullSecrets: [{name: own}]}`,
		},
		{
			"an account whose lists are the member's is left alone",
			`{apiVersion: v1, kind: ServiceAccount}`,
			`{imagePullSecrets: [{name: own}]}`,
			`{apiVersion: v1, kind: ServiceAccount}`,
		},
		{
			"a Service keeps the revision that a rollout selects",
			`{apiVersion: v1, kind: Service, spec: {selector: {app: x}}}`,
			`{spec: {selector: {app: y, old: z, rollouts-pod-template-hash: abc}}}`,
			`{apiVersion: v1, kind: Service, spec: {selector: {app: x, rollouts-pod-template-hash: abc}}}`,
		},
		{
			"a Service without a selector gets none",
			`{apiVersion: v1, kind: Service, spec: {ports: []}}`,
			`{spec: {selector: {rollouts-pod-template-hash: abc}}}`,
			`{apiVersion: v1, kind: Service, spec: {ports: []}}`,
		},
		{
			"an account's token is the member's",
			`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {annotations: {kubernetes.io/service-account.name: bot}}}`,
			`{metadata: {annotations: {kubernetes.io/service-account.uid: u}}, data: {token: eA==}}`,
			`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {annotations: {kubernetes.io/service-account.name: bot, kubernetes.io/service-account.uid: u}}, data: {token: eA==}}`,
		},
		{
			"another secret is the template's",
			`{apiVersion: v1, kind: Secret, type: Opaque, data: {a: eA==}}`, `{data: {a: eQ==, b: eA==}}`,
			`{apiVersion: v1, kind: Secret, type: Opaque, data: {a: eA==}}`,
		},
		{
			"an object that the member has emptied out is no trouble",
			`{apiVersion: v1, kind: Pod, spec: {containers: []}}`, `{}`,
			`{apiVersion: v1, kind: Pod, spec: {containers: []}}`,
		},
	})
}

// retainCase is what to apply, what the member has, and what is applied therefore.
type retainCase struct{ name, desired, observed, want string }

func checkRetain(t *testing.T, cases []retainCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := retained(t, read(t, c.desired), read(t, `{apiVersion: v1, kind: Observed, `+c.observed[1:]))
			if want := read(t, c.want); !reflect.DeepEqual(got.Object, want.Object) {
				t.Errorf("got\n%swant\n%s", show(got.Object), show(want.Object))
			}
		})
	}
}

// retained is what desired becomes beside observed. It checks what holds for every kind: no argument is changed, and a
// second time changes nothing more.
func retained(t *testing.T, desired, observed *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	wasDesired, wasObserved := desired.DeepCopy(), observed.DeepCopy()
	got, err := interpreter.Retain(t.Context(), desired, observed)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(desired, wasDesired) || !reflect.DeepEqual(observed, wasObserved) {
		t.Error("an argument was changed")
	}
	again, err := interpreter.Retain(t.Context(), got, observed)
	if err != nil || !reflect.DeepEqual(again.Object, got.Object) {
		t.Errorf("a second time gives\n%s%v", show(again.Object), err)
	}
	return got
}

// Kruise Rollouts drives Kubernetes' own workloads, too.
func TestRetainDuringKruiseRollout(t *testing.T) {
	checkRetain(t, []retainCase{
		{
			"a Deployment stays paused, with the strategy that it was given",
			`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 4, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}, template: {a: 1}}}`,
			`{metadata: {annotations: {rollouts.kruise.io/in-progressing: "{}"}}, spec: {replicas: 9, paused: true, strategy: {type: Recreate}, minReadySeconds: 7}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {annotations: {rollouts.kruise.io/in-progressing: "{}"}},
				spec: {replicas: 4, paused: true, strategy: {type: Recreate}, minReadySeconds: 7, template: {a: 1}}}`,
		},
		{
			"its own autoscaler has the replicas meanwhile",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 4, paused: false}}`,
			`{metadata: {annotations: {batchrelease.rollouts.kruise.io/control-info: x}}, spec: {replicas: 9, strategy: {type: Recreate}}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}, annotations: {batchrelease.rollouts.kruise.io/control-info: x}},
				spec: {replicas: 9, strategy: {type: Recreate}}}`,
		},
		{
			"afterwards the template rules again",
			`{apiVersion: apps/v1, kind: Deployment, spec: {strategy: {type: RollingUpdate}}}`,
			`{spec: {paused: true, strategy: {type: Recreate}}}`,
			`{apiVersion: apps/v1, kind: Deployment, spec: {strategy: {type: RollingUpdate}}}`,
		},
		{
			"a StatefulSet keeps its partition",
			`{apiVersion: apps/v1, kind: StatefulSet, spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}}`,
			`{metadata: {annotations: {rollouts.kruise.io/in-progressing: "{}"}}, spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 3}}}}`,
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {annotations: {rollouts.kruise.io/in-progressing: "{}"}},
				spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 3}}}}`,
		},
	})
}
