package guides

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	renamed     = "spec.customizations.replicas: stored as replicaResource"
	revise      = "spec.customizations.reviseReplica: stored as replicaRevision"
	both        = "member1:2 member2:2"
	bothHealthy = "member1:Healthy member2:Healthy"
)

// s000 is a long article of best practices for OpenKruise under Karmada.
var s000 = []row{
	{id: "1", block: "S000-cmd-install", want: "a hub by one command, with a kubeconfig that is usable at once",
		see: func(s *story) string { return s.prints("default", "argosy", "get", "namespaces") }},
	{id: "2", block: "S000-cmd-get-pods", want: "a command that checks the control plane",
		see: func(s *story) string {
			// Another row may have a member join again, or a workload that is unhealthy on purpose: that fails no check.
			s.waitUntil("no check fails", func() string {
				out, err := s.argosy("karmadactl", "status")
				if err != nil || !strings.Contains(out, "All checks passed.") && !strings.Contains(out, "No check ") {
					return fmt.Sprint(out, err)
				}
				return ""
			})
			return "argosy status finds hub and clusters well"
		}},
	{id: "3", block: "S000-cmd-logs", want: "the way to the logs",
		see: documented("docs/guide.md", "The hub logs to `argosy.log`")},
	{id: "4", block: "S000-cmd-join", want: "a member that has joined joins again with a notice",
		see: func(s *story) string {
			return s.prints("member3", "kubectl-karmada", "join", "member3", "--cluster-kubeconfig="+s.kubeconfig("member3"))
		}},
	{id: "5", block: "S000-cmd-get-clusters", want: "clusters are listed",
		see: func(s *story) string {
			return s.prints("member1", "argosy", "get", "clusters", "--kubeconfig="+fleet.Lab.Hub.Kubeconfig())
		}},
	{id: "6", block: "S000-claim-CPP-operator", want: "an addon that installs OpenKruise in each member",
		see: func(s *story) string {
			return hasCommand("--clusters", "addons", "enable")(s) + "; " +
				shownBy("test/e2e", "TestAnOperatorIsInstalledInMembersAndTheHubActsOnNoneOfIt")(s)
		}},
	{id: "7", block: "S000-claim-JSONPath", want: "a mode without code",
		see: documented("docs/guide.md", "jsonPath: .spec.replicas")},

	// The sample runs before anybody changes what its kind means.
	{id: "23", block: "S000-CloneSet-sample", chain: "CloneSet", want: "accepted unchanged", see: func(s *story) string {
		u := s.apply(s.doc("S000", 489))
		s.expectStored(u, s.doc("S000", 489))
		return "stored as written"
	}},
	{id: "24", block: "S000-CloneSet-PP", chain: "CloneSet", want: "duplicated, 2 in each, whatever the version",
		see: func(s *story) string {
			s.apply(s.doc("S000", 512))
			u := s.doc("S000", 489)
			s.ready("sample", both)
			s.shows(u, map[string]any{"status.replicas": 4, "status.readyReplicas": 4})
			s.health(u, bothHealthy)
			return "2 ready in each, 4 in the template's status"
		}},
	{id: "24x", block: "S000-CloneSet-PP event", chain: "CloneSet", want: "an event says Duplicated: 2×2",
		see: func(s *story) string {
			b := s.binding(s.doc("S000", 489))
			return s.waitForEvent(b.Name, "Duplicated: 2×2, each of the 2 clusters runs all 2 replicas, 4 in all")
		}},
	{id: "39", block: "S000-cmd-member-get-pods, logs", chain: "CloneSet", want: "pods of a member are listed",
		see: func(s *story) string {
			return s.prints("Running", "karmadactl", "get", "pods", "-n", s.ns, "--kubeconfig="+s.kubeconfig("member1"))
		}},
	{id: "34", block: "S000-cmd-get-cloneset", chain: "CloneSet", want: "the aggregated template is listed",
		see: func(s *story) string {
			return s.prints("sample-cloneset", "kubectl-karmada", "get", "cloneset", "-A")
		}},
	{id: "34x", block: "S000-cmd-get-cloneset by member", chain: "CloneSet", want: "--operation-scope=members",
		see: func(s *story) string {
			s.prints("sample-cloneset member1", "karmadactl", "get", "cloneset", "-n", s.ns, "--operation-scope=members", "-C",
				"member1,member2")
			return s.prints("sample-cloneset member2", "kubectl-karmada", "get", "cloneset", "-A", "--operation-scope=members",
				"-C", "member1,member2")
		}},
	{id: "8", block: "S000-CloneSet-RIC", chain: "CloneSet",
		want: "stored as replicaResource, replicaRevision, with warnings; working", see: func(s *story) string {
			s.apply(s.doc("S000", 185), renamed, revise)
			s.waitUntil("the customization answers", func() string {
				out, _ := s.argosy("argosy", "interpret", "explain", "CloneSet")
				if !strings.Contains(out, "openkruise-cloneset-interpreter") {
					return "it says " + out
				}
				return ""
			})
			divided := s.doc("S000", 512)
			divided.SetName("divided")
			s.edit(divided, "another", "spec", "resourceSelectors", "0", "name")
			s.edit(divided, map[string]any{"replicaSchedulingType": "Divided"}, "spec", "placement", "replicaScheduling")
			s.apply(divided)
			u := s.doc("S000", 489)
			u.SetName("another")
			for _, path := range [][]string{{"spec", "selector", "matchLabels", "app"},
				{"spec", "template", "metadata", "labels", "app"}} {
				s.edit(u, "another", path...)
			}
			s.apply(u)
			s.shared(u, "member1:1 member2:1")
			s.ready("another", "member1:1 member2:1")
			// 9 and 10: a bare status counts, and what it does not say is said by what is built in.
			s.shows(u, map[string]any{"status.replicas": 2, "status.readyReplicas": 2, "status.updatedReadyReplicas": 2,
				"status.updatedAvailableReplicas": 2, "status.observedGeneration": s.reread(u).GetGeneration()})
			// 13: and so are the operations that it does not have.
			out, _ := s.argosy("argosy", "interpret", "explain", "CloneSet")
			for _, line := range strings.Split(out, "\n") {
				if strings.Contains(line, "InterpretDependency") && strings.Contains(line, "openkruise-cloneset-interpreter") ||
					strings.Contains(line, "AggregateStatus") && !strings.Contains(line, "openkruise-cloneset-interpreter") {
					s.fail("explain says %s", line)
				}
			}
			// 14: the version does not matter.
			out, _ = s.argosy("argosy", "interpret", "explain", "apps.kruise.io/v1beta1/CloneSet")
			if !strings.Contains(out, "openkruise-cloneset-interpreter") {
				s.fail("of v1beta1, explain says %s", out)
			}
			// 12: the rule that a workload with nothing ready is unhealthy applies as the user wrote it.
			s.health(u, bothHealthy)
			s.change(u, func(o map[string]any) { set(o, int64(0), "spec", "replicas") })
			s.waitUntil("it is scaled to nothing", func() string {
				return differs(s.reread(u), map[string]any{"status.replicas": 0})
			})
			s.waitUntil("and called unhealthy", func() string {
				for _, item := range s.binding(u).Status.AggregatedStatus {
					if item.Health != "Unhealthy" {
						return fmt.Sprint(s.binding(u).Status.AggregatedStatus)
					}
				}
				return ""
			})
			return "both stored renamed and warned of; divided 1+1 and folded; at 0 the author's health says Unhealthy"
		}},
	{id: "9", block: "S000-CloneSet-RIC.aggregate", want: "a bare status is taken as the status, and warned of",
		see: func(s *story) string {
			return s.finds(s.text("S000", 185), "a status without its object") + "; folded in row 8"
		}},
	{id: "10", block: "S000-CloneSet-RIC aggregate fields", want: "missing fields by what is built in; nil items",
		see: func(s *story) string {
			return s.finds(s.text("S000", 185), "the items are nil", "updatedAvailableReplicas") + "; filled in row 8"
		}},
	{id: "11", block: "S000-CloneSet-RIC.Retain", want: "accepted; lint names the field that there is not",
		see: func(s *story) string { return s.finds(s.text("S000", 185), "CloneSet has no field spec.suspend") }},
	{id: "12", block: "S000-CloneSet-RIC.health", want: "the user's verdict counts (row 8); lint",
		see: func(s *story) string {
			return s.finds(s.text("S000", 185), "status.observedGeneration", "scaled to 0 replicas is unhealthy")
		}},
	{id: "13", block: "S000-CloneSet-RIC unset operations", want: "fall back to what is built in (row 8)",
		see: shownBy("internal/core/workload/interpret/tiers", "TestExplainNamesFirstTierPerOperation")},
	{id: "14", block: "S000-CloneSet-RIC target v1alpha1",
		want: "matched by group and kind, the object in the script's version (row 8)",
		see:  shownBy("internal/core/workload/interpret/tiers", "TestConvertOpenKruiseObjects")},

	{id: "25", block: "S000-ASTS-sample", chain: "StatefulSet", want: "accepted unchanged", see: func(s *story) string {
		s.expectStored(s.apply(s.doc("S000", 536)), s.doc("S000", 536))
		return "stored as written"
	}},
	{id: "25y", block: "S000-ASTS-sample ordinals", want: "unique ordinals, optionally",
		see: shownBy("internal/core/dispatch", "TestOrdinalsOfAStatefulSetAreUniqueAcrossClusters")},
	{id: "26", block: "S000-ASTS-PP", chain: "StatefulSet", want: "duplicated, 2 in each", see: func(s *story) string {
		s.apply(s.doc("S000", 568))
		s.ready("sample-advancedstatefulset", both)
		s.shows(s.doc("S000", 536), map[string]any{"status.replicas": 4, "status.readyReplicas": 4})
		return "2 ready in each, 4 in the template's status"
	}},
	{id: "25x", block: "S000-ASTS-sample Service", chain: "StatefulSet", want: "a warning: the Service is missing",
		see: func(s *story) string {
			u := s.doc("S000", 536)
			u.SetName(u.GetName() + "-alone")
			s.apply(u, `there is no Service "sample-service"`)
			return "warned of when it is written, and stored"
		}},
	{id: "15", block: "S000-ASTS-RIC", chain: "StatefulSet",
		want: "as 8; requirement and missing fields by what is built in", see: func(s *story) string {
			s.apply(s.doc("S000", 276), renamed, revise)
			u := s.doc("S000", 536)
			s.change(u, func(o map[string]any) { set(o, int64(3), "spec", "replicas") })
			s.ready("sample-advancedstatefulset", "member1:3 member2:3")
			s.shows(u, map[string]any{"status.replicas": 6, "status.readyReplicas": 6, "status.availableReplicas": 6,
				"status.updatedReplicas": 6})
			return "6 ready, availableReplicas filled; " +
				s.finds(s.text("S000", 276), "does not return the requirements of a replica", "none of its 3 replicas is healthy")
		}},
	{id: "35", block: "S000-cmd-get-statefulset", chain: "StatefulSet",
		want: "OpenKruise's are not passed over in silence", see: func(s *story) string {
			s.prints("sample-advancedstatefulset", "karmadactl", "get", "statefulsets.apps.kruise.io", "-A")
			return s.prints("get statefulsets.apps.kruise.io", "karmadactl", "get", "statefulset", "-A")
		}},

	{id: "16", block: "S000-SidecarSet-RIC deps", chain: "SidecarSet",
		want: "refused with the position; the rest if the author asks for it", see: func(s *story) string {
			output := s.refused(s.doc("S000", 343), "dependencyInterpretation: line 15: 'end' expected near <eof>")
			lenient := s.doc("S000", 343)
			lenient.SetAnnotations(map[string]string{"argosy.io/lenient": "true"})
			s.apply(lenient, "'end' expected near <eof>; the operation fails until this is fixed")
			return output + "; lenient: stored with a warning"
		}},
	{id: "27", block: "S000-SidecarSet-sample", chain: "SidecarSet", want: "accepted, for all namespaces, with a warning",
		see: func(s *story) string {
			u := s.apply(s.doc("S000", 594), "metadata.namespace: removed, because a SidecarSet is cluster-scoped")
			if u.GetNamespace() != "" {
				s.fail("it is in the namespace %s", u.GetNamespace())
			}
			return "stored without a namespace, which is told"
		}},
	{id: "28", block: "S000-SidecarSet-PP", chain: "SidecarSet", want: "honoured with a warning, or 403",
		see: func(s *story) string {
			s.apply(s.doc("S000", 612), "SidecarSet is cluster-scoped; it is treated as if selected by a ClusterPropagationPolicy, which you may create")
			s.expectObject(s.doc("S000", 594), "member1", "member2")
			_, err := s.createAs("developer", s.doc("S000", 612))
			if err == nil || !strings.Contains(err.Error(), "forbidden") {
				s.fail("a developer gets %v", err)
			}
			return "in both members, with a warning; 403 for who may not: test/e2e TestNamespacedPolicyNeedsRightsForClusterScopedKinds"
		}},
	{id: "17", block: "S000-SidecarSet-RIC reflect, aggregate", chain: "SidecarSet",
		want: "accepted; missing fields filled", see: func(s *story) string {
			lenient := s.doc("S000", 343)
			lenient.SetAnnotations(map[string]string{"argosy.io/lenient": "true"})
			s.apply(lenient)
			pods := s.doc("S000", 489)
			s.apply(pods)
			s.apply(s.doc("S000", 512))
			s.ready("sample", both)
			u := s.doc("S000", 594)
			s.change(u, func(o map[string]any) { set(o, s.ns, "spec", "namespace") }) // other rows have pods of that label, too
			s.shows(u, map[string]any{"status.matchedPods": 4, "status.updatedPods": 4, "status.readyPods": 4})
			if got := s.reread(u); got.Object["spec"] == nil {
				s.fail("the script's object has no spec, and so has the template")
			}
			return "4 pods matched over both; " + s.finds(s.text("S000", 343), "updatedReadyPods", "without its spec")
		}},
	{id: "18", block: "S000-SidecarSet-RIC.replica", want: "0 replicas: sent whole (row 28)",
		see: shownBy("internal/core/workload/interpret/builtin", "TestKindsWithoutReplicasAreNoWorkloads")},
	{id: "19", block: "S000-SidecarSet-RIC.health", want: "accepted; lint",
		see: func(s *story) string {
			return s.finds(s.text("S000", 343), "a canary that its partition pauses is unhealthy",
				"status.observedGeneration")
		}},
	{id: "20", block: "S000-SidecarSet-RIC deps namespace", want: "dependencies where the pods are",
		see: shownBy("internal/core/workload/interpret/builtin", "TestSidecarSetDependencies")},
	{id: "36", block: "S000-cmd-get-sidecarset", chain: "SidecarSet", want: "listed",
		see: func(s *story) string { return s.prints("sample-sidecarset", "karmadactl", "get", "sidecarset", "-A") }},

	{id: "21", block: "S000-note-UD", want: "subsets over clusters",
		see: shownBy("test/e2e", "TestSubsetsOfAUnitedDeploymentGoToTheirClusters")},
	{id: "29", block: "S000-UD-sample", chain: "UnitedDeployment",
		want: "pools→subsets, pod→cloneSetTemplate, with warnings", see: func(s *story) string {
			u := s.apply(s.doc("S000", 636), "spec.topology.pools: stored as subsets", "spec.template.cloneSetTemplate")
			if d := differs(u, map[string]any{"spec.topology.pools": nil, "spec.template.spec": nil,
				"spec.template.cloneSetTemplate.spec.template.metadata.labels.app": "sample-uniteddeployment"}); d != "" {
				s.fail("%s", d)
			}
			return "stored as subsets of CloneSets"
		}},
	{id: "31", block: "S000-UD-PP", chain: "UnitedDeployment", want: "duplicated: 4 pods in each",
		see: func(s *story) string {
			s.apply(s.doc("S000", 675))
			s.ready("sample-uniteddeployment", "member1:4 member2:4")
			return "4 ready in each"
		}},
	{id: "22", block: "S000-UD-RIC", chain: "UnitedDeployment", want: "a bare status counts; the rest is built in",
		see: func(s *story) string {
			s.apply(s.doc("S000", 445))
			u := s.doc("S000", 636)
			s.change(u, func(o map[string]any) { s.replicasOf(o, 6, 3, 3) })
			s.ready("sample-uniteddeployment", "member1:6 member2:6")
			s.shows(u, map[string]any{"status.replicas": 12, "status.readyReplicas": 12, "status.updatedReplicas": 12})
			return "12 ready of both, updatedReplicas filled"
		}},
	{id: "30", block: "S000-UD-sample division", chain: "UnitedDeployment", want: "divided 2/2, the subsets 1+1 in each",
		see: func(s *story) string {
			u, p := s.doc("S000", 636), s.doc("S000", 675)
			s.change(u, func(o map[string]any) { s.replicasOf(o, 4, 2, 2) })
			s.change(p, func(o map[string]any) {
				set(o, map[string]any{"replicaSchedulingType": "Divided"}, "spec", "placement", "replicaScheduling")
			})
			s.ready("sample-uniteddeployment", both)
			for _, m := range []string{"member1", "member2"} {
				got := s.find(fleet.Members[m], u.GetAPIVersion(), u.GetKind(), u.GetName())
				for _, subset := range s.list(got, "spec", "topology", "subsets") {
					if fmt.Sprint(subset["replicas"]) != "1" {
						s.fail("in %s a subset is %v", m, subset)
					}
				}
			}
			return "1+1 in each member"
		}},
	{id: "37", block: "S000-cmd-get-ud", chain: "UnitedDeployment", want: "listed",
		see: func(s *story) string {
			return s.prints("sample-uniteddeployment", "karmadactl", "get", "uniteddeployment", "-A")
		}},

	{id: "32", block: "S000-cmd-apply-1..8", want: "the kinds are served out of the box", see: func(s *story) string {
		for kind, version := range map[string]string{"CloneSet": "v1alpha1", "StatefulSet": "v1beta1",
			"SidecarSet": "v1alpha1", "UnitedDeployment": "v1alpha1"} {
			served("apps.kruise.io/"+version, kind)(s)
		}
		return "all four are"
	}},
	{id: "33", block: "S000-cmd-karmadactl-get-clusters", want: "listed",
		see: func(s *story) string { return s.prints("member2", "karmadactl", "get", "clusters") }},
	{id: "38", block: "S000-cmd-member-get-all", want: "get all shows workloads of OpenKruise",
		see: func(s *story) string {
			u := s.doc("S000", 489)
			s.apply(u)
			return s.prints("clone", "karmadactl", "get", "all", "-n", s.ns)
		}},
	{id: "40", block: "S000-cmd-pp-status", want: "the policy says what it matched",
		see: func(s *story) string {
			// A policy has no status: to keep count of its templates there would be a write for each of them.
			p := s.apply(s.doc("S000", 512))
			s.apply(s.doc("S000", 489))
			s.waitUntil("the sample is claimed", func() string {
				if s.binding(s.doc("S000", 489)) == nil {
					return "it has no binding"
				}
				return ""
			})
			return s.prints("claims 1 template", "argosy", "why", "propagationpolicy", p.GetName(), "-n", s.ns)
		}},
	{id: "41", block: "S000-table-support", want: "what is supported is told right",
		see: documented("docs/guide.md", "no customization is needed")},
	{id: "42", block: "S000-claim-monitoring", want: "metrics by class of health", see: func(s *story) string {
		s.propagate(s.apply(s.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: counted}}`)), "member1")
		s.waitUntil("templates are counted by cluster and health", func() string {
			out, err := s.argosy("argosy", "get", "--raw", "/metrics")
			if err != nil {
				return err.Error()
			}
			if !strings.Contains(out, `argosy_cluster_templates{health="Healthy",member_cluster="member1"}`) {
				return "no metric has that"
			}
			return ""
		})
		return "templates by cluster and health"
	}},
	{id: "43", block: "S000-claim-logs", want: "faults of scripts are found",
		see: documented("docs/status.md", "a script that fails")},
	{id: "44", block: "S000-claim-partition", want: "a partition means the fleet",
		see: shownBy("test/e2e", "TestACanaryOfTenPercentOverThreeMembersIsOnePod")},
	{id: "45", block: "S000-CloneSet-recommended", chain: "CloneSet",
		want: "selector derived, RollingUpdate→ReCreate, null dropped; working", see: func(s *story) string {
			u := s.apply(s.doc("S000", 841), "spec.selector: not set; stored as the labels of the template",
				"spec.updateStrategy.type: stored as ReCreate")
			if d := differs(u, map[string]any{"spec.updateStrategy": map[string]any{"type": "ReCreate",
				"partition": int64(0), "maxUnavailable": "20%", "maxSurge": int64(0)},
				"spec.selector.matchLabels.app": "my-app"}); d != "" {
				s.fail("%s", d)
			}
			s.propagate(u, "member1")
			s.ready("my-app", "member1:3")
			return "3 ready in member1"
		}},
	{id: "46", block: "S000-claim-PVC-PP", want: "a warning when a policy selects claims of a StatefulSet",
		see: func(s *story) string {
			p := s.doc("S000", 568)
			s.edit(p, map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim",
				"name": "data-sample-advancedstatefulset-0"}, "spec", "resourceSelectors", "0")
			s.apply(p, "the StatefulSet creates its claims")
			return "warned"
		}},
	{id: "47", block: "S000-ASTS-recommended", chain: "StatefulSet", want: "selector derived; working",
		see: func(s *story) string {
			u := s.apply(s.doc("S000", 877), "spec.selector: not set; stored as the labels of the template")
			s.propagate(u, "member1")
			s.ready("my-app", "member1:3")
			return "3 ready in member1"
		}},
	{id: "48", block: "S000-claim-injection", want: "IfNotPresent is refused, with a hint", see: func(s *story) string {
		u := s.doc("S000", 916)
		u.SetName("injection-" + s.ns)
		s.edit(u, "IfNotPresent", "spec", "injectionStrategy", "policy")
		return s.refused(u, `Unsupported value: "IfNotPresent"`)
	}},
	{id: "49", block: "S000-SidecarSet-recommended",
		want: "revision→{customVersion}, policy in it, the object named v1; working", see: func(s *story) string {
			u := s.apply(s.doc("S000", 916), "spec.injectionStrategy.revision: stored as revision.customVersion",
				"because injectionStrategy.revision refers to this version")
			if d := differs(u, map[string]any{"spec.injectionStrategy.revision": map[string]any{"customVersion": "v1",
				"policy": "Always"}}); d != "" {
				s.fail("%s", d)
			}
			s.propagate(u, "member1")
			s.expectObject(u, "member1")
			return "member1 takes it"
		}},
	{id: "50", block: "S000-claim-UD-pools", want: "the advice is sound",
		see: documented("docs/guide.md", "Subsets are for zones inside a cluster")},
	{id: "51", block: "S000-UD-recommended", chain: "UnitedDeployment", want: "as 29; divided, the subsets rescale",
		see: func(s *story) string {
			u := s.apply(s.doc("S000", 948), "spec.topology.pools: stored as subsets", "spec.template.cloneSetTemplate")
			s.propagate(u, "member1", "member2")
			s.ready("my-app", both)
			return "2 in each member"
		}},
	{id: "51b", block: "S000-TOC", want: "troubleshooting is there",
		see: documented("docs/status.md", "## Troubleshooting")},
	{id: "51c", block: "S000-claim-override-selectors", want: "a namespaced override of a SidecarSet works with a warning",
		see: func(s *story) string {
			u := s.doc("S000", 594)
			u.SetName("selectors-" + s.ns)
			s.apply(s.object(fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: o}, spec: {
			resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, name: %s}],
			overrideRules: [{overriders: {plaintext: [{path: /spec/selector/matchLabels/app, operator: replace, value: elsewhere}]}}]}}`, u.GetName())),
				"SidecarSet is cluster-scoped")
			s.apply(u)
			s.propagate(u, "member1")
			s.waitUntil("the override is applied", func() string {
				return differs(s.expectObject(u, "member1"), map[string]any{"spec.selector.matchLabels.app": "elsewhere"})
			})
			return "overridden, with a warning"
		}},
	{id: "51d", block: "S000-claim-RBAC", want: "who may do what", see: documented("docs/guide.md", "cluster-admin")},
}

// kubeconfig of a member.
func (s *story) kubeconfig(member string) string {
	for _, m := range fleet.Lab.Fleet.Members() {
		if m.Name == member {
			return m.Kubeconfig
		}
	}
	s.fail("there is no %s", member)
	return ""
}

// expectStored fails if a written value was stored differently.
func (s *story) expectStored(stored, written *unstructured.Unstructured) {
	if d := lacks("spec", written.Object["spec"], stored.Object["spec"]); d != "" {
		s.fail("%s", d)
	}
}

// lacks returns what of want is not in got.
func lacks(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for k, v := range w {
			if d := lacks(path+"."+k, v, g[k]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		g, _ := got.([]any)
		if len(g) != len(w) {
			return fmt.Sprintf("%s is %v, want %v", path, got, want)
		}
		for i := range w {
			if d := lacks(fmt.Sprintf("%s[%d]", path, i), w[i], g[i]); d != "" {
				return d
			}
		}
		return ""
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		return fmt.Sprintf("%s is %v, want %v", path, got, want)
	}
	return ""
}
