package guides

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// s001 is a short article with interpreters by JSONPath.
var s001 = []row{
	{id: "52", block: "S001-CloneSet-RIC", chain: "CloneSet", want: "keys renamed; paths read, write and reflect",
		see: func(s *story) string {
			s.apply(s.doc("S001", 53), renamed, "spec.customizations.scale: stored as replicaRevision")
			for _, c := range []struct{ op, path string }{{"replicaResource", ".spec.replicas"},
				{"replicaRevision", ".spec.replicas"}, {"statusReflection", ".status"}} {
				u := s.find(fleet.Hub, "config.karmada.io/v1alpha1", "ResourceInterpreterCustomization",
					"openkruise-cloneset-interpreter")
				if got := kit.Field(u, "spec", "customizations", c.op, "jsonPath"); got != c.path {
					s.fail("%s is by %v", c.op, got)
				}
			}
			s.waitUntil("the customization answers", func() string {
				out, _ := s.argosy("argosy", "interpret", "explain", "CloneSet")
				if !strings.Contains(out, "openkruise-cloneset-interpreter") {
					return "it says " + out
				}
				return ""
			})
			u := s.doc("S001", 133) // the sample of another block, as a CloneSet
			u = s.object(s.manifest(u))
			u.SetName("by-path")
			s.relabel(u, "by-path")
			s.edit(u, int64(4), "spec", "replicas")
			s.apply(u)
			s.propagate(u, "member1", "member2")
			s.shared(u, both)
			s.ready("by-path", both)
			s.shows(u, map[string]any{"status.replicas": 4, "status.readyReplicas": 4})
			return "stored renamed; 2+2 ready, status of both"
		}},
	{id: "53", block: "S001-CloneSet-RIC.retention", want: "accepted with a warning; a change of the template wins",
		see: func(s *story) string {
			output := s.finds(s.text("S001", 53), ".spec.updateStrategy keeps the value of the member",
				".spec.scaleStrategy keeps the value of the member")
			return output + "; " + shownBy("internal/core/workload/interpret/jsonpath",
				"TestRetainedFieldFollowsTemplateChange")(s)
		}},
	{id: "54", block: "S001-CloneSet-PP", want: "divided by equal weights; a warning of the broad selector",
		see: func(s *story) string {
			s.apply(s.doc("S001", 77), "selects every CloneSet, because it has neither name nor labelSelector")
			u := s.object(s.manifest(s.doc("S001", 133)))
			s.edit(u, int64(4), "spec", "replicas")
			s.apply(u)
			s.shared(u, both)
			s.ready("example", both)
			return "4 replicas are 2 and 2"
		}},
	{id: "55", block: "S001-ASTS-RIC", chain: "StatefulSet", want: "as 52, 53", see: func(s *story) string {
		s.apply(s.doc("S001", 99), renamed, "spec.customizations.scale: stored as replicaRevision",
			".spec.updateStrategy keeps the value of the member")
		u := s.doc("S000", 536)
		s.change(u, func(o map[string]any) { set(o, int64(2), "spec", "replicas") })
		s.ready("sample-advancedstatefulset", both)
		s.shows(u, map[string]any{"status.replicas": 4, "status.readyReplicas": 4})
		return "scaled to 2 in each by the paths"
	}},
	{id: "56", block: "S001-claim-others", want: "a UnitedDeployment is interpreted as complex as it is",
		see: shownBy("internal/core/workload/interpret/builtin", "TestUnitedDeploymentReplicas", "TestUnitedDeploymentHealth",
			"TestUnitedDeploymentAggregate", "TestUnitedDeploymentRetain")},
	{id: "57", block: "S001-ManifestWork", chain: "ManifestWork",
		want: "the CloneSet is in the cluster that the namespace names", see: func(s *story) string {
			s.clusterNamespace("member1")
			s.apply(s.manifestWork(133))
			s.waitUntil("member1 alone has it, and runs it", func() string {
				for name, m := range fleet.Members {
					u := m.Find(s.t, "apps.kruise.io/v1alpha1", "CloneSet", "default", "example-cloneset")
					if (u != nil) != (name == "member1") || u != nil && fmt.Sprint(kit.Field(u, "status", "readyReplicas")) != "3" {
						return fmt.Sprintf("in %s it is %v", name, kit.Field(u, "status"))
					}
				}
				return ""
			})
			s.feeds("member1", "example-cloneset", "")
			return "3 ready in member1, applied and available"
		}},
	{id: "58", block: "S001-ManifestWork-feedback", chain: "ManifestWork",
		want: "refused without an object in it; with one, its counters come back", see: func(s *story) string {
			output := s.refused(s.manifestWork(170), "spec.workload.manifests[0].metadata.name: Required value")
			configs := s.list(s.manifestWork(170), "spec", "manifestConfigs")
			fleet.Hub.Change(s.t, "work.open-cluster-management.io/v1", "ManifestWork", "member1", "example-cloneset",
				func(u *unstructured.Unstructured) {
					// the comment in its place says: the spec of the CloneSet
					set(u.Object, []any{configs[0]}, "spec", "manifestConfigs")
				})
			s.feeds("member1", "example-cloneset",
				"ReadyReplicas=3 Replicas=3 AvailableReplicas=3 UpdatedReplicas=3 UpdatedReadyReplicas=3")
			return output + "; with the spec, the counters of the CloneSet"
		}},
	{id: "59", block: "S001-claim-version-standardize", want: "each member gets a version that it serves",
		see: shownBy("test/e2e", "TestEachMemberGetsAServedVersion")},
	{id: "60", block: "S001-claim-ApplicationSet", want: "words about OCM alone",
		see: documented("docs/guide.md", "Argosy has no Placement", "a policy sends one object to many")},
}

// s002 is an article about Karmada.
var s002 = []row{
	{id: "61", block: "S002-diagram-arch", want: "our own drawing", see: documented("ARCHITECTURE.md", "hub", "member")},
	{id: "62", block: "S002-apiserver-Deployment", want: "a valid template, of no use to us", see: func(s *story) string {
		u := s.doc("S002", 72)
		u.SetNamespace(s.ns)
		s.apply(u)
		return "accepted as a Deployment"
	}},
	{id: "63", block: "S002-cm-Deployment", want: "refused by the API server", see: noLabels("S002", 119)},
	{id: "64", block: "S002-scheduler-Deployment", want: "refused by the API server", see: noLabels("S002", 149)},
	{id: "65", block: "S002-diagram-flow", want: "told right: overrides are applied when the Work is written",
		see: documented("ARCHITECTURE.md", "override")},
	{id: "66", block: "S002-Cluster", long: true, want: "zone→zones, a warning of the taint", see: func(s *story) string {
		u := s.object(s.text("S002", 248))
		u.SetName("registered-by-yaml")
		s.apply(u, "spec.zone: stored as zones",
			"the hub adds and removes cluster.karmada.io/not-ready according to the cluster's condition")
		if d := differs(u, map[string]any{"spec.zones": []any{"us-west-2a"}, "spec.region": "us-west-2",
			"spec.provider": "AWS"}); d != "" {
			s.fail("%s", d)
		}
		s.waitUntil("its condition says what is missing", func() string {
			text := fmt.Sprint(kit.Field(s.reread(u), "status", "conditions"))
			if !strings.Contains(text, "member-cluster-1-secret") {
				return text
			}
			return ""
		})
		return "stored with zones; its condition names the secret that is missing"
	}},
	{id: "67", block: "S002-Cluster-Secret", long: true, want: "a kubeconfig in the secret will do",
		see: func(s *story) string {
			kubeconfig, err := os.ReadFile(s.kubeconfig("member3"))
			if err != nil {
				s.fail("%v", err)
			}
			secret := s.object(strings.Replace(s.text("S002", 268), "<base64-encoded-kubeconfig>",
				base64.StdEncoding.EncodeToString(kubeconfig), 1))
			secret.SetNamespace(s.ns)
			s.apply(secret)
			u := s.object(s.text("S002", 248))
			u.SetName("by-kubeconfig")
			s.edit(u, s.ns, "spec", "secretRef", "namespace")
			s.edit(u, s.endpoint("member3"), "spec", "apiEndpoint")
			s.apply(u)
			s.waitUntil("it is ready, or told that it is member3", func() string {
				text := fmt.Sprint(kit.Field(s.reread(u), "status", "conditions"))
				if !strings.Contains(text, "type:Ready") || strings.Contains(text, "missing key") ||
					!strings.Contains(text, "status:True") {
					return text
				}
				return ""
			})
			return "the hub reaches the cluster by it"
		}},
	{id: "68", block: "S002-agent-Deployment", want: "refused by the API server", see: noLabels("S002", 279)},
	{id: "69", block: "S002-PP-nginx", chain: "Deployment", want: "region with an implicit cluster constraint; working",
		see: func(s *story) string {
			p := s.apply(s.doc("S002", 309), "which a region constraint requires")
			u := s.nginx("nginx", 6)
			s.shows(u, map[string]any{"status.replicas": 6, "status.readyReplicas": 6})
			s.drop(u, p)
			return "stored with both, 6 ready"
		}},
	{id: "69x", block: "S002-PP-nginx weights", chain: "Deployment", want: "2:1 over both clusters beside the constraint",
		see: func(s *story) string {
			p := s.apply(s.doc("S002", 309))
			u := s.nginx("nginx", 6)
			s.waitUntil("it is scheduled", func() string {
				if b := s.binding(u); b == nil || len(b.Spec.Clusters) == 0 {
					return "not yet"
				}
				return ""
			})
			if b := s.binding(u); len(b.Spec.Clusters) != 2 || b.Spec.Clusters[0].Replicas+b.Spec.Clusters[1].Replicas != 6 ||
				max(b.Spec.Clusters[0].Replicas, b.Spec.Clusters[1].Replicas) != 4 {
				s.fail("it is in %v", b.Spec.Clusters)
			}
			s.drop(u, p)
			return "4 and 2"
		}},
	{id: "69y", block: "S002-PP-nginx Service, ConfigMap", chain: "Deployment", want: "in both clusters",
		see: func(s *story) string {
			p := s.apply(s.doc("S002", 309))
			u := s.apply(s.nginxService("nginx-svc"))
			c := s.apply(s.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: nginx-conf, labels: {app: nginx}}}`))
			s.expectObject(u, "member1", "member2")
			s.expectObject(c, "member1", "member2")
			s.drop(u, c, p)
			return "in both"
		}},
	{id: "70", block: "S002-CPP-namespace", want: "the namespace is in the clusters", see: func(s *story) string {
		s.apply(s.doc("S002", 365))
		u := s.apply(s.object(`{apiVersion: v1, kind: Namespace, metadata: {name: nginx-system}}`))
		s.expectObject(u, "member1", "member2", "member3")
		return "in all three"
	}},
	{id: "71", block: "S002-PP-dynamic", chain: "Deployment", want: "Weighted by AvailableReplicas, with warnings",
		see: func(s *story) string {
			p := s.apply(s.doc("S002", 381),
				"spec.placement.replicaScheduling.dynamicWeight: stored as weightPreference.dynamicWeight",
				"stored as Weighted with weightPreference.dynamicWeight AvailableReplicas")
			u := s.nginx("nginx", 6)
			s.waitUntil("six are ready in two clusters", func() string {
				b := s.binding(u)
				if b == nil || len(b.Spec.Clusters) != 2 || b.Spec.Clusters[0].Replicas+b.Spec.Clusters[1].Replicas != 6 {
					return fmt.Sprint(b)
				}
				return differs(s.reread(u), map[string]any{"status.readyReplicas": 6})
			})
			s.drop(u, p)
			return "6 ready in the two clusters of these labels"
		}},
	{id: "72", block: "S002-OverridePolicy replicasOverrider", chain: "Deployment",
		want: "3 replicas in one cluster; refused where replicas are divided", see: func(s *story) string {
			divided := s.apply(s.doc("S002", 309))
			s.waitUntil("it is refused, once admission knows of the policy", func() string {
				err := fleet.Hub.Create(s.t.Context(), s.doc("S002", 416), client.DryRunAll)
				if err == nil || !strings.Contains(err.Error(),
					"replicasOverrider: the replicas of this Deployment are divided by propagation policy") {
					return fmt.Sprint(err)
				}
				return ""
			})
			s.drop(divided)
			s.apply(s.doc("S002", 612))
			s.waitUntil("the policy that divides is forgotten", func() string {
				if err := fleet.Hub.Create(s.t.Context(), s.doc("S002", 416), client.DryRunAll); err != nil {
					return err.Error()
				}
				return ""
			})
			s.apply(s.doc("S002", 416), "stored as plaintext, replacing /spec/replicas")
			u := s.nginx("nginx", 1)
			s.expectObject(u, "member1", "member2", "member3")
			s.waitUntil("the overrides are applied", func() string {
				return differs(s.find(fleet.Members["member1"], "apps/v1", "Deployment", "nginx"),
					map[string]any{"spec.replicas": 3})
			})
			return "refused beside a policy that divides; 3 in member1"
		}},
	{id: "73", block: "S002-OverridePolicy resourcesOverrider", chain: "Deployment",
		want: "resources of the container in one cluster", see: func(s *story) string {
			c := s.container("member1")
			if d := lacks("resources", map[string]any{"limits": map[string]any{"cpu": "2", "memory": "2Gi"},
				"requests": map[string]any{"cpu": "500m", "memory": "512Mi"}}, c["resources"]); d != "" {
				s.fail("%s", d)
			}
			if other := s.container("member2")["resources"]; other != nil && fmt.Sprint(other) != "map[]" {
				s.fail("member2 has %v", other)
			}
			return "in member1 alone"
		}},
	{id: "74", block: "S002-OverridePolicy addIfAbsent", chain: "Deployment", want: "a label and an annotation, if absent",
		see: func(s *story) string {
			in := s.find(fleet.Members["member2"], "apps/v1", "Deployment", "nginx")
			if in.GetLabels()["cluster"] == "" || in.GetAnnotations()["monitoring.example.com/enabled"] != "true" {
				s.fail("member2 has %v, %v", in.GetLabels(), in.GetAnnotations())
			}
			return "in member2"
		}},
	{id: "75", block: "S002-OverridePolicy image, args", chain: "Deployment",
		want: "registry, tag and arguments of one cluster; a CloneSet's too", see: func(s *story) string {
			c := s.container("member1")
			if c["image"] != "registry-1.example.com/nginx:v1.0.0-cluster1" ||
				!strings.Contains(fmt.Sprint(c["args"]), "--config=/etc/nginx/cluster1.conf") {
				s.fail("member1 has %v", c)
			}
			if image := s.container("member2")["image"]; image != "registry-2.example.com/nginx:1.21" {
				s.fail("member2 has %v", image)
			}
			s.drop(s.doc("S002", 416), s.nginxDoc("nginx", 1), s.doc("S002", 612))
			return "as said; " + shownBy("internal/core/override", "TestImagesOfAllKindsWithContainersChange",
				"TestOverridersWithoutEffectAreReported")(s)
		}},
	{id: "76", block: "S002-override command, args of Kruise", want: "every kind with a pod template",
		see: shownBy("internal/core/workload/interpret", "TestPodTemplatesAndContainersOfAllKinds")},
	{id: "77", block: "S002-OverridePolicy-jsonpatch", chain: "Deployment", want: "environment and affinity added",
		see: func(s *story) string {
			o := s.apply(s.doc("S002", 487))
			p := s.apply(s.doc("S002", 612))
			u := s.nginx("nginx", 1)
			s.expectObject(u, "member1", "member2", "member3")
			s.waitUntil("the patch is applied", func() string {
				c := s.container("member1")
				if !strings.Contains(fmt.Sprint(c["env"]), "ENVIRONMENT") ||
					kit.Field(s.find(fleet.Members["member1"], "apps/v1", "Deployment", "nginx"), "spec", "template", "spec",
						"affinity", "podAntiAffinity") == nil {
					return fmt.Sprint(c)
				}
				return ""
			})
			s.drop(o, u, p)
			return "both in member1"
		}},
	{id: "77x", block: "S002-OverridePolicy-jsonpatch list", want: "a warning: the list is replaced",
		see: func(s *story) string {
			s.apply(s.doc("S002", 487), "to keep its entries, add each of yours at /spec/template/spec/containers/0/env/-")
			return "warned"
		}},
	{id: "78", block: "S002-ResourceBinding", want: "accepted", see: func(s *story) string {
		u := s.doc("S002", 527)
		u.SetName("by-hand")
		s.edit(u, s.ns, "spec", "resource", "namespace")
		s.edit(u, "nobody", "spec", "resource", "name")
		s.apply(u)
		return "accepted"
	}},
	{id: "78x", block: "S002-ResourceBinding by hand", want: "a warning: generated", see: func(s *story) string {
		u := s.doc("S002", 527)
		u.SetName("by-hand-too")
		s.edit(u, s.ns, "spec", "resource", "namespace")
		s.edit(u, "nobody", "spec", "resource", "name")
		s.apply(u, "a binding created by hand is not scheduled")
		return "warned"
	}},
	{id: "79", block: "S002-Work", want: "accepted; its object comes and goes with it", see: func(s *story) string {
		u := s.doc("S002", 564)
		u.SetNamespace("karmada-es-member1")
		s.edit(u, s.ns, "spec", "workload", "manifests", "0", "metadata", "namespace")
		s.apply(u)
		in := s.expectObject(s.nginxDoc("nginx", 2), "member1")
		if err := fleet.Hub.Delete(s.t.Context(), u); err != nil {
			s.fail("delete the Work: %v", err)
		}
		s.waitUntil("the object goes with its Work", func() string {
			if s.find(fleet.Members["member1"], in.GetAPIVersion(), in.GetKind(), in.GetName()) != nil {
				return "it is in member1"
			}
			return ""
		})
		return "made in member1, and deleted there with the Work"
	}},
	{id: "80", block: "S002-PP-duplicated", chain: "Deployment", want: "all replicas in each", see: func(s *story) string {
		p := s.apply(s.doc("S002", 612))
		u := s.nginx("nginx", 2)
		s.ready("nginx", "member1:2 member2:2 member3:2")
		s.drop(u, p)
		return "2 ready in each of three"
	}},
	{id: "81", block: "S002-PP-divided", chain: "Deployment", want: "6, 7, 8 replicas by 3:2:1",
		see: func(s *story) string {
			p := s.apply(s.doc("S002", 632))
			u := s.nginx("nginx", 6)
			s.shared(u, "member1:3 member2:2 member3:1")
			s.drop(u)
			// Seven and eight are new ones: what runs does not move when it is scaled.
			u = s.nginx("nginx", 7)
			s.shared(u, "member1:4 member2:2 member3:1")
			s.drop(u)
			u = s.nginx("nginx", 8)
			s.shared(u, "member1:4 member2:3 member3:1")
			s.drop(u, p)
			return "3/2/1, 4/2/1, 4/3/1"
		}},
	{id: "82", block: "S002-PP-region-spread", chain: "Deployment", want: "accepted, with an implicit cluster constraint",
		see: func(s *story) string {
			s.drop(s.apply(s.doc("S002", 671), "which a region constraint requires"))
			return "stored with both"
		}},
	{id: "82x", block: "S002-PP-region-spread scheduled", chain: "Deployment", want: "2 to 3 regions", see: spread(671)},
	{id: "83", block: "S002-PP-custom-spread", chain: "Deployment", want: "2 to 3 zones by a label of the cluster",
		see: spread(695)},
	{id: "84", block: "S002-PP-failover placement", chain: "Deployment", want: "weight 0 stands by",
		see: func(s *story) string {
			s.apply(s.doc("S002", 715), "stored as clusterAffinities active and standby")
			u := s.nginx("nginx", 2)
			s.ready("nginx", "member1:2")
			s.expectObject(u, "member1")
			s.drop(u)
			return "all in member1"
		}},
	{id: "85", block: "S002-PP-failover", chain: "Deployment", want: "purgeMode, application, cluster, propagateDeps",
		see: func(s *story) string {
			u := s.reread(s.doc("S002", 715))
			if d := differs(u, map[string]any{"spec.propagateDeps": true, "spec.failover.application.purgeMode": "Gracefully",
				"spec.failover.cluster.purgeMode":                                "Gracefully",
				"spec.failover.application.decisionConditions.tolerationSeconds": 300,
				"spec.failover.applicationMigrationPolicy":                       nil}); d != "" {
				s.fail("%s", d)
			}
			s.drop(u)
			return "stored so"
		}},
	{id: "86", block: "S002-ReplicaSchedulingPolicy", want: "a kind that rebalances", see: func(s *story) string {
		u := s.apply(s.doc("S002", 749))
		s.waitUntil("no cluster is over 80 %, and it says so", func() string { return s.balanced(u.GetName()) })
		s.shows(u, map[string]any{"spec.reschedulePolicy.interval": "60s",
			"spec.reschedulePolicy.threshold.cpuUtilization": 80})
		return "no cluster is over 80 %; " +
			shownBy("test/deschedule", "TestClusterOverThresholdGivesReplicas")(s)
	}},
	{id: "87", block: "S002-ServiceExport", chain: "Services", want: "exported where the policy places it",
		see: func(s *story) string {
			s.exported()
			s.reaches("member3", "derived-nginx-svc", "nginx", "member1", "member2")
			return "member3 reaches the pods of member1 and member2"
		}},
	{id: "88", block: "S002-ServiceImport", chain: "Services", want: "says who exports, by itself",
		see: func(s *story) string {
			s.text("S002", 776)
			s.shows(s.ref("multicluster.x-k8s.io/v1alpha1", "ServiceImport", "nginx-svc"),
				map[string]any{"spec.type": "ClusterSetIP",
					"status.clusters": []any{map[string]any{"cluster": "member1"}, map[string]any{"cluster": "member2"}}})
			return "member1 and member2"
		}},
	{id: "89", block: "S002-PP-serviceexport", chain: "Services", want: "the export is in both clusters",
		see: func(s *story) string {
			s.text("S002", 793)
			s.expectObject(s.ref("multicluster.x-k8s.io/v1alpha1", "ServiceExport", "nginx-svc"), "member1", "member2")
			return "member1 and member2, which did not know the kind"
		}},
	{id: "90", block: "S002-MCS", want: "targetPort dropped with a warning; each reaches the other's pods",
		see: func(s *story) string {
			s.propagate(s.nginx("nginx", 2), "member1", "member2")
			s.apply(s.nginxService("nginx-mcs"))
			u := s.apply(s.doc("S002", 813),
				"spec.ports[0].targetPort: stored as nothing, because the target port comes from the Service nginx-mcs in the same namespace")
			if port := s.list(s.reread(u), "spec", "ports")[0]; port["targetPort"] != nil {
				s.fail("it is stored with %v", port)
			}
			s.reaches("member1", "nginx-mcs", "nginx", "member2")
			s.reaches("member2", "nginx-mcs", "nginx", "member1")
			s.expectObject(s.ref("v1", "Service", "nginx-mcs"), "member1", "member2")
			s.agrees(u, "ServiceApplied", "EndpointSliceDispatched")
			return "warned; each reaches the other's pods"
		}},
	{id: "91", block: "S002-MCI", want: "template.spec lifted with a warning", see: func(s *story) string {
		u := s.apply(s.doc("S002", 837), "spec.template.spec.rules: stored as spec.rules")
		rules := s.list(s.reread(u), "spec", "rules")
		if len(rules) != 1 || rules[0]["host"] != "nginx.example.com" || kit.Field(s.reread(u), "spec", "template") != nil {
			s.fail("it is stored as %v", s.reread(u).Object["spec"])
		}
		return "stored as an Ingress"
	}},
	{id: "92", block: "S002-Deployment-aggregated", chain: "Deployment", want: "the status is folded",
		see: func(s *story) string {
			s.text("S002", 864)
			s.apply(s.doc("S002", 632))
			u := s.nginx("nginx", 6)
			s.shows(u, map[string]any{"status.replicas": 6, "status.readyReplicas": 6, "status.availableReplicas": 6})
			return "6 replicas ready"
		}},
	{id: "93", block: "S002-RB-status", chain: "Deployment", want: "the binding has each cluster's status",
		see: func(s *story) string {
			s.text("S002", 881)
			b := s.binding(s.nginxDoc("nginx", 6))
			if len(b.Status.AggregatedStatus) != 3 || !b.Status.AggregatedStatus[0].Applied ||
				!strings.Contains(string(b.Status.AggregatedStatus[0].Status.Raw), "readyReplicas") {
				s.fail("%v", b.Status.AggregatedStatus)
			}
			return "applied and readyReplicas of each"
		}},
	{id: "92x", block: "S002-Deployment-aggregated conditions", chain: "Deployment", want: "conditions are folded",
		see: func(s *story) string {
			u := s.nginxDoc("nginx", 6)
			s.waitUntil("the conditions that kubectl waits for are there", func() string {
				got := fmt.Sprint(kit.Field(s.reread(u), "status", "conditions"))
				for _, want := range []string{"reason:MinimumReplicasAvailable status:True type:Available",
					"reason:NewReplicaSetAvailable status:True type:Progressing"} {
					if !strings.Contains(got, want) {
						return "they are " + got
					}
				}
				return ""
			})
			return "Available and Progressing are True"
		}},
	{id: "94", block: "S002-Deployment-RIC", chain: "Deployment",
		want: "ReplicasCount is used, with a warning; lint of Retain", see: func(s *story) string {
			s.drop(s.nginxDoc("nginx", 6))
			s.apply(s.doc("S002", 912), "ReplicasCount is used")
			s.waitUntil("the customization answers", func() string {
				out, _ := s.argosy("argosy", "interpret", "explain", "Deployment")
				if !strings.Contains(out, "deployment-interpreter") {
					return "it says " + out
				}
				return ""
			})
			u := s.nginx("nginx", 6)
			s.shared(u, "member1:3 member2:2 member3:1")
			s.shows(u, map[string]any{"status.replicas": 6, "status.readyReplicas": 6})
			return "divided and folded by it; " +
				s.finds(s.text("S002", 912), "the member's spec.replicas always wins: the hub cannot change it any more")
		}},
	{id: "94x", block: "S002-Deployment-RIC.Retain", chain: "Deployment", want: "scaling works all the same",
		see: func(s *story) string {
			s.apply(s.doc("S002", 912))
			u := s.nginxDoc("nginx", 6)
			s.change(u, func(o map[string]any) { set(o, int64(12), "spec", "replicas") })
			s.shared(u, "member1:6 member2:4 member3:2")
			s.waitUntil("the members are scaled", func() string {
				for member, replicas := range map[string]int{"member1": 6, "member2": 4, "member3": 2} {
					if d := differs(s.find(fleet.Members[member], "apps/v1", "Deployment", "nginx"),
						map[string]any{"spec.replicas": replicas}); d != "" {
						return member + ": " + d
					}
				}
				return ""
			})
			return "6, 4 and 2 in the members"
		}},
	{id: "95", block: "S002-ConfigMap-ha", want: "accepted", see: accepted("S002", 989)},
	{id: "96", block: "S002-cmd-get rb, work, pp, cpp, deploy", want: "short names are known", see: func(s *story) string {
		s.prints("", "karmadactl", "get", "rb,work", "-A")
		s.prints("", "karmadactl", "get", "pp,cpp", "-A")
		return s.prints("", "karmadactl", "get", "deploy", "-n", s.ns)
	}},
	{id: "97", block: "S002-cmd-karmadactl-get-clusters", want: "listed",
		see: func(s *story) string { return s.prints("member1", "karmadactl", "get", "clusters") }},
	{id: "97x", block: "S002-cmd-describe", want: "karmadactl describe",
		see: func(s *story) string { // of clusters by name: other rows join some that do not answer
			s.prints("Name: member1", "karmadactl", "describe", "cluster", "member1")
			return s.prints("# Cluster member2", "karmadactl", "describe", "namespace", "default", "-s", "members", "-C",
				"member1,member2")
		}},
	{id: "98", block: "S002-cmd-logs-all-clusters", want: "logs --all-clusters", see: func(s *story) string {
		s.podIn("member1", "seen")
		// Another story may have a cluster that does not respond, which is an error.
		out, _ := s.argosy("karmadactl", "logs", "-l", "app=seen", "--all-clusters", "-n", s.ns)
		want := fmt.Sprintf("[member1] [pod/seen/app] simulated container app of pod %s/seen started on node ", s.ns)
		if !strings.Contains(out, want) {
			s.fail("logs: %q, want %q", cut(out, 500), want)
		}
		return "each cluster is asked; " + shownBy("test/e2e", "TestLogsAndCommandsGoThroughTheHub")(s)
	}},
	{id: "99", block: "S002-cmd-exec", want: "exec --cluster", see: func(s *story) string {
		s.podIn("member1", "entered")
		out, err := s.argosy("karmadactl", "exec", "-it", "entered", "--cluster=member1", "-n", s.ns, "--", "sh", "-c",
			"hostname")
		if err != nil || !strings.Contains(out, "entered\n") {
			s.fail("exec: %v, %q", err, cut(out, 500))
		}
		return "--cluster alone means the member; " + shownBy("test/e2e", "TestLogsAndCommandsGoThroughTheHub")(s)
	}},
	{id: "100", block: "S002-cmd-join", want: "with these flags", see: func(s *story) string {
		return s.prints("member3", "karmadactl", "join", "member3", "--cluster-kubeconfig="+s.kubeconfig("member3"),
			"--karmada-context="+s.context(), "--dry-run")
	}},
	{id: "101", block: "S002-cmd-unjoin", want: "the cluster leaves",
		see: shownBy("test/e2e", "TestJoinAndUnjoinManageExpectedObjects")},
	{id: "102", block: "S002-summary", want: "words",
		see: documented("README.md", "existing manifests and tools keep working")},
}

// s003 is a talk, and S004 an article, both of one company's practice.
var s003 = []row{
	{id: "103", block: "S003-CloneSet-replica", chain: "CloneSet", want: "accepted; lint of the folded scalar",
		see: func(s *story) string {
			text := s.fragment("apps.kruise.io/v1alpha1", "CloneSet", 229)
			s.apply(s.object(text))
			return "accepted; " + s.finds(text, "code after a comment becomes part of it", "replica is global")
		}},
	{id: "104", block: "S003-CloneSet-aggregate", chain: "CloneSet",
		want: "refused with the position; completed, it works", see: func(s *story) string {
			text := s.fragment("apps.kruise.io/v1alpha1", "CloneSet", 248)
			output := s.refused(s.object(text), "'end' expected near <eof>")
			completed := strings.TrimRight(text, "\n ") +
				"\n          end\n          desiredObj.status = {replicas = replicas, readyReplicas = readyReplicas}\n          return desiredObj\n        end\n"
			s.apply(s.object(completed))
			u := s.doc("S000", 489)
			s.shows(u, map[string]any{"status.replicas": 4, "status.readyReplicas": 4})
			return output + "; completed: 4 ready"
		}},
	{id: "105", block: "S003-Workflow-retain", chain: "Workflow",
		want: "accepted, with lint; resumable by what is built in", see: func(s *story) string {
			text := s.fragment("argoproj.io/v1alpha1", "Workflow", 284)
			s.apply(s.object(text))
			return s.finds(text, "the member's spec.suspend always wins: the hub cannot change it any more") + "; " +
				shownBy("test/e2e", "TestAWorkflowRunsOnceInOneMemberAndIsResumedFromTheHub")(s)
		}},
	{id: "106", block: "S003-Workflow-health", chain: "Workflow", want: "accepted, with lint", see: func(s *story) string {
		text := s.fragment("argoproj.io/v1alpha1", "Workflow", 300)
		s.apply(s.object(text))
		return s.finds(text, "Workflow has no field status.failed", "just created")
	}},
	{id: "107", block: "S003-claim-ops", want: "the operations by both names", see: func(s *story) string {
		return s.prints("InterpretStatus", "argosy", "interpret", "explain", "CloneSet")
	}},
	{id: "108", block: "S003-claim-setup", want: "an addon", see: hasCommand("", "addons", "list")},
	{id: "109", block: "S003-claim-override-publish",
		want: "release by cluster, by overrides and by the fleet's partition",
		see: shownBy("test/e2e", "TestEveryOverriderChangesTheManifestOfItsClusterAlone",
			"TestACanaryOfTenPercentOverThreeMembersIsOnePod")},
	{id: "110", block: "S003-claim-migration", want: "adopted by Overwrite alone",
		see: shownBy("test/e2e", "TestForeignObjectStaysUnlessOverwriteIsSet")},
	{id: "110x", block: "S003-claim-migration dry-run", want: "adoption only if no pod restarts",
		see: func(s *story) string {
			return hasCommand("--dry-run", "adopt")(s) + "; " + shownBy("test/e2e", "TestAWorkloadIsAdoptedWithoutARestart")(s)
		}},
	{id: "111", block: "S003-claim-1:2:7", want: "stages of the fleet",
		see: shownBy("internal/core/workload/fleet", "TestRolloutPausesBetweenStages")},
	{id: "112", block: "S003-claim-rollback-annotation", want: "an annotation that pauses management",
		see: func(s *story) string {
			u := s.apply(s.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: paused, annotations: {argosy.io/pause-management: "true"}}}`))
			s.propagate(u, "member1")
			other := s.apply(s.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: managed}}"))
			s.propagate(other, "member1")
			s.expectObject(other, "member1")
			if s.find(fleet.Members["member1"], "v1", "ConfigMap", "paused") != nil {
				s.fail("it is written to member1")
			}
			return "nothing is written, though what came later is"
		}},
	{id: "113", block: "S003-claim-FedHPA, CronHPA", want: "autoscaling over the fleet",
		see: shownBy("test/e2e", "TestReplicasFollowTheLoadOfTheFleet")},
	{id: "114", block: "S003-claim-simulation", want: "a dry-run of scheduling", see: hasCommand("--scale", "simulate")},
	{id: "115", block: "S004-hooks", want: "all eight operations",
		see: documented("docs/guide.md", "InterpretReplica", "InterpretComponent", "ReviseReplica", "Retain",
			"AggregateStatus", "InterpretStatus", "InterpretHealth", "InterpretDependency")},
	{id: "116", block: "S004-FedHPA", want: "minimum and maximum split over members",
		see: shownBy("test/e2e", "TestBoundsAreSplitBetweenTheMembersAutoscalers")},
	{id: "117", block: "S004-CronHPA", want: "a kind for schedules",
		see: shownBy("internal/controller/autoscale", "TestRuleScalesOnceAtItsTime")},
	{id: "118", block: "S004-targeted-scaling", want: "pods to delete go to their cluster",
		see: shownBy("test/e2e", "TestAPodToDeleteIsDeletedInItsOwnMember")},
	{id: "119", block: "S004-claim-rollback", want: "as 112; an undo of the fleet",
		see: shownBy("internal/core/workload/fleet", "TestRollbackFindsTheRemainingOldPods")},
	{id: "120", block: "S004-claim-simulator", want: "an accurate estimator",
		see: shownBy("test/e2e", "TestReplicaNeedsRoomOnOneNode")},
	{id: "121", block: "S004-claim-OpenKruise-release", want: "stages in the API",
		see: shownBy("internal/core/workload/fleet", "TestRolloutPausesBetweenStages",
			"TestAnOrderedRolloutFillsOneClusterAfterTheOther")},
}

// spread has nginx go by a policy of S002 with constraints, and says in how many clusters it is; each has a region and
// a zone of its own.
func spread(line int) func(*story) string {
	return func(s *story) string {
		p := s.apply(s.doc("S002", line))
		u := s.nginx("nginx", 4)
		s.waitUntil("it is scheduled, or told why not", func() string {
			if b := s.binding(u); b == nil || len(b.Status.Conditions) == 0 {
				return "there is no answer"
			}
			return ""
		})
		b := s.binding(u)
		if len(b.Spec.Clusters) < 2 {
			s.fail("it is in %v: %v", b.Spec.Clusters, b.Status.Conditions)
		}
		s.drop(u, p)
		return fmt.Sprintf("in %d clusters", len(b.Spec.Clusters))
	}
}

func noLabels(article string, line int) func(*story) string {
	return func(s *story) string {
		u := s.doc(article, line)
		u.SetNamespace(s.ns)
		return s.refused(u, "`selector` does not match template `labels`")
	}
}

func accepted(article string, line int) func(*story) string {
	return func(s *story) string {
		s.apply(s.doc(article, line))
		return "accepted"
	}
}

// manifest is the object inside a ManifestWork, as YAML.
func (s *story) manifest(u *unstructured.Unstructured) string {
	inner := &unstructured.Unstructured{Object: s.list(u, "spec", "workload", "manifests")[0]}
	text, err := inner.MarshalJSON()
	if err != nil {
		s.fail("%v", err)
	}
	return string(text)
}

func (s *story) relabel(u *unstructured.Unstructured, app string) {
	s.edit(u, app, "spec", "selector", "matchLabels", "app")
	s.edit(u, app, "spec", "template", "metadata", "labels", "app")
}

// fragment is a customization with operations of the talk.
func (s *story) fragment(apiVersion, kind string, line int) string {
	text := "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata:\n  name: " +
		strings.ToLower(kind) + "-of-a-talk\nspec:\n  target:\n    apiVersion: " + apiVersion + "\n    kind: " + kind +
		"\n  customizations:\n"
	for line := range strings.Lines(s.text("S003", line)) {
		text += "    " + line
	}
	return text
}

// nginxDoc is the Deployment that the article's policies are about and never shows.
func (s *story) nginxDoc(name string, replicas int) *unstructured.Unstructured {
	return s.object(fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, labels: {app: %[1]s}}, spec: {replicas: %d, selector: {matchLabels: {app: %[1]s}},
		template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: nginx, image: "nginx:1.21"}]}}}}`, name, replicas))
}

func (s *story) nginx(name string, replicas int) *unstructured.Unstructured {
	return s.apply(s.nginxDoc(name, replicas))
}

// container is the first one of nginx in a member.
func (s *story) container(member string) map[string]any {
	return s.list(s.find(fleet.Members[member], "apps/v1", "Deployment", "nginx"), "spec", "template", "spec",
		"containers")[0]
}

// drop deletes objects of the hub, one after the other, and waits until they are gone there and in the members.
func (s *story) drop(all ...*unstructured.Unstructured) {
	for _, u := range all {
		if err := fleet.Hub.Delete(s.t.Context(), s.reread(u)); err != nil {
			s.fail("delete %s: %v", u.GetName(), err)
		}
		s.waitUntil(u.GetName()+" is gone", func() string {
			for _, c := range append([]kit.Cluster{fleet.Hub}, fleet.Members["member1"], fleet.Members["member2"],
				fleet.Members["member3"]) {
				if strings.HasSuffix(u.GetKind(), "Policy") && c.Name != "hub" {
					continue
				}
				if s.find(c, u.GetAPIVersion(), u.GetKind(), u.GetName()) != nil {
					return "it is in " + c.Name
				}
			}
			return ""
		})
	}
}

// endpoint of a member's API server, and context of the hub's kubeconfig.
func (s *story) endpoint(member string) string { return fleet.Members[member].Config.Host }

func (s *story) context() string {
	out, err := os.ReadFile(fleet.Lab.Hub.Kubeconfig())
	if err != nil {
		s.fail("%v", err)
	}
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "current-context:"); ok {
			return strings.TrimSpace(name)
		}
	}
	s.fail("the kubeconfig has no context")
	return ""
}

// podIn makes a pod in a member, which is gone when the row ends.
func (s *story) podIn(member, name string) {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.Labels = s.ns, name, map[string]string{"app": name}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "example.com/app:1"}}
	s.waitUntil("the pod is in "+member, func() string {
		if err := fleet.Members[member].Create(s.t.Context(), p); err != nil {
			return err.Error() // its namespace is on its way
		}
		return ""
	})
	s.last(func() {
		if err := fleet.Members[member].Delete(context.WithoutCancel(s.t.Context()), p); err != nil {
			s.t.Errorf("delete the pod in %s: %v", member, err)
		}
	})
	s.waitUntil("the pod is on a node", func() string {
		if err := fleet.Members[member].Get(s.t.Context(), client.ObjectKeyFromObject(p), p); err != nil ||
			p.Status.Phase != corev1.PodRunning {
			return fmt.Sprint(err, p.Status.Phase)
		}
		return ""
	})
}

// balanced returns what a ReplicaSchedulingPolicy says instead of that no cluster is over its threshold.
func (s *story) balanced(policy string) string {
	u := s.find(fleet.Hub, "config.karmada.io/v1alpha1", "ReplicaSchedulingPolicy", policy)
	conditions, _ := kit.Field(u, "status", "conditions").([]any)
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == "Balanced" && c["status"] == "True" && c["reason"] == "BelowThreshold" {
			return ""
		}
	}
	return fmt.Sprint(conditions)
}

// ref names an object of the guide.
func (s *story) ref(apiVersion, kind, name string) *unstructured.Unstructured {
	return s.object(fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s}}", apiVersion, kind, name))
}
