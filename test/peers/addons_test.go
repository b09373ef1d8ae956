package peers

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

const addonGroup = "addon.open-cluster-management.io/"

// addonDefinitions writes the definitions that the add-on manager of Open Cluster Management needs, and returns the
// files. There is no conversion there: the versions that it reads are those in storage.
func addonDefinitions(t *testing.T) (files []string) {
	t.Helper()
	crds := filepath.Join("..", "..", "api", "crds")
	for _, name := range []string{"cluster.open-cluster-management.io_managedclusters",
		"cluster.open-cluster-management.io_placements", "cluster.open-cluster-management.io_placementdecisions",
		"work.open-cluster-management.io_manifestworks", "addon.open-cluster-management.io_addontemplates"} {
		files = append(files, filepath.Join(crds, name+".yaml"))
	}
	for _, name := range []string{"clustermanagementaddons", "managedclusteraddons", "addondeploymentconfigs"} {
		data, err := os.ReadFile(filepath.Join(crds, "addon.open-cluster-management.io_"+name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		u := kit.Object(t, string(data))
		versions := kit.Field(u, "spec", "versions").([]any)
		for _, v := range versions {
			v := v.(map[string]any)
			v["storage"] = v["name"] == "v1beta1"
		}
		unstructured.RemoveNestedField(u.Object, "spec", "conversion")
		if data, err = json.Marshal(u.Object); err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Join(t.TempDir(), name+".json"))
		if err := os.WriteFile(files[len(files)-1], data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// list returns the objects of a kind.
func (c chooser) list(t *testing.T, apiVersion, kind string, options ...client.ListOption) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	if err := c.List(t.Context(), list, options...); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// parts returns the objects in a list in an object.
func parts(u *unstructured.Unstructured, path ...string) (all []map[string]any) {
	list, _ := kit.Field(u, path...).([]any)
	for _, of := range list {
		all = append(all, of.(map[string]any))
	}
	return all
}

// text returns a value as JSON, without what is empty.
func text(v any) string {
	data, _ := json.Marshal(withoutEmpty(v)) // it was JSON before
	return string(data)
}

func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		is := map[string]any{}
		for key, value := range v {
			if value = withoutEmpty(value); value != nil {
				is[key] = value
			}
		}
		if len(is) > 0 {
			return is
		}
		return nil
	case []any:
		is := []any{}
		for _, value := range v {
			is = append(is, withoutEmpty(value))
		}
		if len(is) > 0 {
			return is
		}
		return nil
	}
	return v
}

// config returns "RESOURCE NAMESPACE/NAME STATE" of a configuration of a status.
func config(of map[string]any) string {
	name := func(field string) string {
		is, _ := of[field].(map[string]any)
		return fmt.Sprint(is["namespace"], "/", is["name"])
	}
	state := "waits"
	if text(of["desiredConfig"]) == text(of["lastAppliedConfig"]) {
		state = "applied"
	}
	return fmt.Sprint(of["resource"], " ", name("desiredConfig"), " ", state)
}

// installed is what a controller has done for an add-on, a line for each fact. short is "CLUSTER:IMAGE …, REASON" with
// the tags of the images and the reason of the first rollout.
func (c chooser) installed(t *testing.T, addon string) (short string, facts []string) {
	t.Helper()
	fact := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	cma := c.Find(t, addonGroup+"v1beta1", "ClusterManagementAddOn", "", addon)
	for _, of := range parts(cma, "status", "defaultConfigReferences") {
		_, hashed := of["desiredConfig"].(map[string]any)["specHash"]
		fact("default %s, exists: %v", config(of), hashed)
	}
	reason := ""
	for i, p := range parts(cma, "status", "installProgressions") {
		u := &unstructured.Unstructured{Object: p}
		// With one more configuration, Open Cluster Management forgets for all of them what was applied.
		forgets := c.name == ours && slices.ContainsFunc(parts(u, "configReferences"), func(of map[string]any) bool {
			return of["lastAppliedConfig"] == nil
		})
		for _, of := range parts(u, "configReferences") {
			if forgets {
				delete(of, "lastAppliedConfig")
				delete(of, "lastKnownGoodConfig")
			}
			fact("placement %v: %s, good: %v", p["name"], config(of), of["lastKnownGoodConfig"] != nil)
		}
		for _, of := range parts(u, "conditions") {
			message, _, _ := strings.Cut(fmt.Sprint(of["message"]), " timeout.") // the hub adds what is awaited
			fact("placement %v: %v %v %v", p["name"], of["type"], of["reason"], message)
			if i == 0 {
				reason = fmt.Sprint(of["reason"])
			}
		}
	}
	images := []string{}
	for _, a := range c.list(t, addonGroup+"v1beta1", "ManagedClusterAddOn") {
		if a.GetName() != addon {
			continue
		}
		in := a.GetNamespace()
		reasons := map[string]any{}
		for _, of := range parts(&a, "status", "conditions") {
			reasons[of["type"].(string)] = of["reason"]
		}
		if reasons["ManifestApplied"] == nil {
			delete(reasons, "Available") // difference: the hub sets it from the start, with the status Unknown
		}
		for _, kind := range []string{"Configured", "Progressing", "ManifestApplied", "RegistrationApplied", "Available"} {
			fact("%s %s: %v", in, kind, reasons[kind])
		}
		for _, of := range parts(&a, "status", "configReferences") {
			fact("%s %s", in, config(of))
		}
		for _, of := range parts(&a, "status", "registrations") {
			subject, _ := kit.Field(&unstructured.Unstructured{Object: of}, "kubeClient", "subject").(map[string]any)
			if groups, ok := subject["groups"].([]any); ok && c.name == ours { // every user is in that group
				subject["groups"] = slices.DeleteFunc(groups, func(v any) bool { return v == "system:authenticated" })
			}
			fact("%s registration %s", in, text(of))
		}
		fact("%s namespace %v, health %v", in, kit.Field(&a, "status", "namespace"),
			kit.Field(&a, "status", "healthCheck", "mode"))
		image := "none"
		if mw := c.Find(t, workGroup, "ManifestWork", in, "addon-"+addon+"-deploy-0"); mw != nil {
			for _, of := range parts(mw, "spec", "workload", "manifests") {
				moved := kit.Field(&a, "status", "namespace") != "sys"
				fact("%s manifest %s", in, c.manifest(of, &image, moved))
			}
			for _, of := range parts(mw, "spec", "manifestConfigs") {
				delete(of, "feedbackScrapeType") // the hub writes the default
				rules, _ := of["feedbackRules"].([]any)
				slices.SortFunc(rules, func(a, b any) int { return strings.Compare(text(a), text(b)) })
				fact("%s feedback %s", in, text(of))
			}
			fact("%s deletes %v", in, kit.Field(mw, "spec", "deleteOption"))
		}
		images = append(images, in+":"+image)
		for _, of := range c.list(t, "rbac.authorization.k8s.io/v1", "RoleBinding", client.InNamespace(in),
			client.HasLabels{"open-cluster-management.io/addon-template-name"},
			client.MatchingLabels{"open-cluster-management.io/addon-name": addon}) {
			subjects := []string{}
			for _, s := range parts(&of, "subjects") {
				// The hub binds only the agent of this cluster.
				if s["name"] != "system:open-cluster-management:addon:"+addon {
					subjects = append(subjects, fmt.Sprint(s["kind"], " ", s["name"]))
				}
			}
			fact("%s binds %s to %s", in, text(of.Object["roleRef"]), subjects)
		}
	}
	slices.Sort(images)
	slices.Sort(facts)
	return strings.Join(images, " ") + ", " + reason, facts
}

// manifest returns the text of a manifest, and sets the tag of the image of a Deployment. What differs is left out.
func (c chooser) manifest(of map[string]any, tag *string, moved bool) string {
	u := &unstructured.Unstructured{Object: of}
	delete(of, "status") // Open Cluster Management adds zeros
	without := func(in map[string]any, field, name string) {
		list, _ := in[field].([]any)
		in[field] = slices.DeleteFunc(list, func(v any) bool {
			return v.(map[string]any)["name"] == name || v.(map[string]any)["key"] == name
		})
	}
	pod, _ := kit.Field(u, "spec", "template", "spec").(map[string]any)
	for _, container := range parts(u, "spec", "template", "spec", "containers") {
		if u.GetKind() == "Deployment" {
			image := fmt.Sprint(container["image"])
			*tag = image[strings.LastIndex(image, ":")+1:]
		}
		if c.name == ours && !moved {
			without(container, "env", "INSTALL_NAMESPACE") // there only an AddOnDeploymentConfig sets it
		}
		if c.name == ours && !strings.Contains(text(container), "HTTP_PROXY") { // there a CA needs a proxy
			without(container, "env", "CA_BUNDLE_FILE_PATH")
			without(container, "volumeMounts", "proxy-ca-bundle")
			without(pod, "volumes", "proxy-ca-bundle")
		}
		env, _ := container["env"].([]any)
		slices.SortFunc(env, func(a, b any) int { return strings.Compare(text(a), text(b)) })
	}
	if c.name == ours && pod["nodeSelector"] != nil {
		without(pod, "tolerations", "of-the-template") // there a node selector removes them
	}
	return text(of)
}

// ours is the name of the hub among choosers.
const ours = "the hub"

// Open Cluster Management's own manager installs the same for the same objects (go build -o
// ~/.cache/argosy-peers/ocm-addon ./cmd/addon of its source). The Placements have the annotation for another scheduler
// and the clusters no klusterlets: the test writes what both would.
func TestAddonsInstallAsOpenClusterManagement(t *testing.T) {
	program := kit.Peers(t, "ocm-addon")[0]
	m, c := bareMember(t, "ocm-addons", addonDefinitions(t)...)
	both := []chooser{{fleet.Hub, ours}, {c, "Open Cluster Management"}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	m.Run(t, []string{"POD_NAMESPACE=open-cluster-management-hub"}, program, "manager",
		"--kubeconfig="+m.Kubeconfig,
		"--disable-leader-election", "--listen="+address, "--namespace=default")

	const ns = "addons-of-peers"
	apply := func(stream string) {
		t.Helper()
		for _, to := range both {
			to.Apply(t, stream)
		}
	}
	apply("{apiVersion: v1, kind: Namespace, metadata: {name: " + ns + "}}")
	both[1].Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: open-cluster-management-hub}}")
	for _, name := range []string{"a1", "a2"} { // with klusterlets, which are the test
		both[1].Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
		apply("{apiVersion: " + clusterGroup + ", kind: ManagedCluster, metadata: {name: " + name +
			"}, spec: {hubAcceptsClient: true, leaseDurationSeconds: 3600}}")
		for _, to := range both {
			kit.Eventually(t, name+" has a namespace in "+to.name, func() string {
				if to.Find(t, "v1", "Namespace", "", name) == nil {
					return "it has none"
				}
				return ""
			})
		}
	}
	choose := func(clusters ...any) {
		t.Helper()
		decisions := []any{}
		for _, name := range clusters {
			decisions = append(decisions, map[string]any{"clusterName": name, "reason": ""})
		}
		apply(`{apiVersion: ` + placementGroup + `, kind: Placement, metadata: {name: p, namespace: ` + ns + `, annotations: {
			cluster.open-cluster-management.io/experimental-scheduling-disable: "true"}}, spec: {}}
---
{apiVersion: ` + placementGroup + `, kind: PlacementDecision, metadata: {name: p-decision-1, namespace: ` + ns + `,
 labels: {
			cluster.open-cluster-management.io/placement: p, cluster.open-cluster-management.io/decision-group-index: "0",
			cluster.open-cluster-management.io/decision-group-name: ""}}}`)
		for _, to := range both {
			to.setStatus(t, func() *unstructured.Unstructured {
				return to.Find(t, placementGroup, "PlacementDecision", ns, "p-decision-1")
			}, map[string]any{"decisions": decisions})
			to.setStatus(t, func() *unstructured.Unstructured { return to.Find(t, placementGroup, "Placement", ns, "p") },
				map[string]any{"numberOfSelectedClusters": int64(len(decisions)), "conditions": []any{},
					"decisionGroups": []any{map[string]any{"decisionGroupIndex": int64(0), "decisionGroupName": ""}}})
		}
	}
	// report writes what a klusterlet reports: "applied", or the number of ready pods.
	report := func(addon, state string, clusters ...string) {
		t.Helper()
		for _, to := range both {
			for _, cluster := range clusters {
				find := func() *unstructured.Unstructured {
					return to.Find(t, workGroup, "ManifestWork", cluster, "addon-"+addon+"-deploy-0")
				}
				conditions, manifests := []any{}, []any{}
				add := func(kind string) {
					conditions = append(conditions, map[string]any{"type": kind, "status": "True", "reason": "Reported", "message": "",
						"observedGeneration": find().GetGeneration(), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)})
				}
				if add("Applied"); state != "applied" {
					add("Available")
					for i, of := range parts(find(), "spec", "manifestConfigs") {
						id := of["resourceIdentifier"].(map[string]any)
						value := func(name string, n int) any {
							return map[string]any{"name": name, "fieldValue": map[string]any{"type": "Integer", "integer": int64(n)}}
						}
						ready, wanted := "ReadyReplicas", "Replicas"
						if id["resource"] == "daemonsets" {
							ready, wanted = "NumberReady", "DesiredNumberScheduled"
						}
						n := 0
						_, _ = fmt.Sscan(state, &n)
						manifests = append(manifests, map[string]any{"conditions": []any{}, "resourceMeta": map[string]any{
							"ordinal": int64(i), "group": id["group"], "resource": id["resource"], "name": id["name"],
							"namespace": id["namespace"]}, "statusFeedback": map[string]any{"values": []any{value(ready, n),
							value(wanted, 2)}}})
					}
				}
				to.setStatus(t, find, map[string]any{"conditions": conditions, "resourceStatus": map[string]any{
					"manifests": manifests}})
			}
		}
	}
	step := func(what, addon, want string) {
		t.Helper()
		kit.Eventually(t, addon+": "+what, func() string {
			ours, our := both[0].installed(t, addon)
			theirs, their := both[1].installed(t, addon)
			wrong := ""
			if ours != want || theirs != want {
				wrong = fmt.Sprintf("want %q, here %q, there %q\n", want, ours, theirs)
			}
			for _, f := range our {
				if !slices.Contains(their, f) {
					wrong += "only here:  " + f + "\n"
				}
			}
			for _, f := range their {
				if !slices.Contains(our, f) {
					wrong += "only there: " + f + "\n"
				}
			}
			return wrong
		})
	}
	template := func(name, addon, tag, registration string) string {
		return `
{apiVersion: ` + addonGroup + `v1alpha1, kind: AddOnTemplate, metadata: {name: ` + name + `},
	spec: {addonName: ` + addon +
			registration + `, agentSpec: {workload: {manifests: [
 {apiVersion: v1, kind: Namespace, metadata: {name: sys}},
 {apiVersion: v1, kind: ServiceAccount, metadata: {name: agent, namespace: sys, annotations: {
  addon.open-cluster-management.io/deletion-orphan: ""}}},
 {apiVersion: v1, kind: ConfigMap, metadata: {name: "of-{{CLUSTER_NAME}}", namespace: sys}, data: {
  level: "{{LEVEL}}", none: "a{{NONE}}b", kubeconfig: "{{HUB_KUBECONFIG}}"}},
 {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: agent}, roleRef: {
  apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{kind: ServiceAccount, name: agent,
  namespace: sys}]},
 {apiVersion: apps/v1, kind: Deployment, metadata: {name: agent, namespace: sys},
  spec: {selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {serviceAccountName: agent, tolerations: [{key: of-the-template}],
   containers: [
   {name: agent, image: "quay.io/peers/agent:` + tag + `", args: ["--cluster={{CLUSTER_NAME}}"], env: [{name: OWN,
    value: x}]},
   {name: helper, image: "example.com/helper:` + tag + `", resources: {requests: {cpu: 1m}}}]}}}},
 {apiVersion: apps/v1, kind: DaemonSet, metadata: {name: node, namespace: sys}, spec: {selector: {matchLabels: {a: c}},
  template: {metadata: {labels: {a: c}}, spec: {containers: [{name: node,
   image: "quay.io/peers/node:` + tag + `"}]}}}}]}}}}`
	}
	addon := func(name, defaults, strategy, configs string) string {
		install := "{type: Manual}"
		if strategy != "" {
			install = "{type: Placements, placements: [{name: p, namespace: " + ns + ", rolloutStrategy: " + strategy +
				", configs: [" +
				configs + "]}]}"
		}
		return `{apiVersion: ` + addonGroup + `v1beta1, kind: ClusterManagementAddOn, metadata: {name: ` + name + `}, spec: {
 defaultConfigs: [` + defaults + `], installStrategy: ` + install + `}}`
	}
	of := func(kind, name string) string {
		text := "{group: addon.open-cluster-management.io, resource: " + kind + ", name: " + name
		if kind == "addondeploymentconfigs" {
			text += ", namespace: " + ns
		}
		return text + "}"
	}
	settings := func(name, spec string) string {
		return `{apiVersion: ` + addonGroup + `v1beta1, kind: AddOnDeploymentConfig, metadata: {name: ` + name +
			`, namespace: ` + ns +
			`}, spec: ` + spec + `}`
	}

	const web = "peer-web"
	configure := func(configs string) {
		t.Helper()
		for _, to := range both {
			to.Change(t, addonGroup+"v1beta1", "ManagedClusterAddOn", "a1", web, func(u *unstructured.Unstructured) {
				u.Object["spec"] = kit.Object(t, "{configs: ["+configs+"]}").Object
			})
		}
	}
	const all, oneByOne = "{type: All}", "{type: Progressive, progressive: {maxConcurrency: 1}}"
	web1 := of("addontemplates", "web-1")
	choose("a1", "a2")
	apply(template("web-1", web, "1", ""))
	apply(addon(web, web1, "", ""))
	step("Manual installs nothing", web, ", ")
	apply(addon(web, web1, all, ""))
	step("Placements install", web, "a1:1 a2:1, Progressing")
	report(web, "applied", "a1")
	step("a1 is applied", web, "a1:1 a2:1, Progressing")
	report(web, "0", "a1")
	step("a1 has no ready pod", web, "a1:1 a2:1, Progressing")
	report(web, "1", "a1")
	step("a1 has one ready pod of two", web, "a1:1 a2:1, Progressing")
	report(web, "2", "a1", "a2")
	step("all pods are ready", web, "a1:1 a2:1, Completed")
	apply(template("web-1", web, "2", ""))
	step("the template changes", web, "a1:2 a2:2, Progressing")
	report(web, "2", "a1", "a2")
	step("the change is ready", web, "a1:2 a2:2, Completed")
	apply(template("web-3", web, "3", ""))
	apply(addon(web, of("addontemplates", "web-3"), oneByOne, ""))
	step("one cluster after the other: the first", web, "a1:3 a2:2, Progressing")
	report(web, "2", "a1")
	step("one cluster after the other: the second", web, "a1:3 a2:3, Progressing")
	report(web, "2", "a2")
	step("one cluster after the other: done", web, "a1:3 a2:3, Completed")
	apply(template("web-4", web, "4", ""))
	apply(addon(web, of("addontemplates", "web-3"), all, of("addontemplates", "web-4")))
	step("a Placement has its own configuration", web, "a1:4 a2:4, Progressing")
	report(web, "2", "a1", "a2")
	step("that is ready", web, "a1:4 a2:4, Completed")
	apply(settings("s1", `{customizedVariables: [{name: LEVEL, value: "7"}], agentInstallNamespace: elsewhere,
 nodePlacement: {nodeSelector: {a: b}, tolerations: [{key: t, operator: Exists}]}, registries: [
  {source: quay.io/peers, mirror: mirror.example.com/x}, {source: quay.io/peers/node, mirror: mirror.example.com/y}],
 proxyConfig: {httpProxy: "http://p", httpsProxy: "https://p", noProxy: .local, caBundle: Y2E=}, resourceRequirements: [
  {containerID: "*:*:*", resources: {limits: {memory: 1Gi}}},
  {containerID: "deployments:agent:helper", resources: {requests: {cpu: 100m}, limits: {cpu: "1"}}}]}`))
	apply(addon(web, of("addontemplates", "web-4")+", "+of("addondeploymentconfigs", "s1"), all, ""))
	step("an AddOnDeploymentConfig", web, "a1:4 a2:4, Progressing")
	report(web, "2", "a1", "a2")
	step("that is ready", web, "a1:4 a2:4, Completed")
	apply(settings("s2", `{customizedVariables: [{name: LEVEL, value: "8"}], nodePlacement: {nodeSelector: {a: c}},
 registries: [{mirror: all.example.com}], proxyConfig: {caBundle: Y2E=}}`))
	configure(of("addondeploymentconfigs", "s2"))
	step("a cluster has its own configuration", web, "a1:4 a2:4, Progressing")
	report(web, "2", "a1", "a2")
	step("that is ready", web, "a1:4 a2:4, Completed")
	choose("a1")
	step("a cluster leaves", web, "a1:4, Completed")

	const hub = "peer-client"
	registration := `, registration: [{type: KubeClient, kubeClient: {hubPermissions: [{type: CurrentCluster,
 currentCluster: {
 clusterRoleName: peer-reader}}]}}, {type: CustomSigner, customSigner: {signerName: example.com/peers,
  signingCA: {name: ca,
 namespace: ` + ns + `}, subject: {user: u, organizationUnit: [o]}}}]`
	apply(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: peer-reader}, rules: [
 {apiGroups: [""], resources: [configmaps], verbs: [get]}]}`)
	apply(template("client", hub, "1", registration))
	apply(addon(hub, of("addontemplates", "client"), all, ""))
	step("an agent with credentials", hub, "a1:1, Progressing")
	report(hub, "2", "a1")
	step("an agent with credentials is ready", hub, "a1:1, Completed")

	apply(addon(web, of("addontemplates", "web-4"), all, ""))
	configure(of("addondeploymentconfigs", "s3"))
	step("an AddOnDeploymentConfig is missing", web, "a1:4, Progressing")
	apply(settings("s3", `{agentInstallNamespace: ""}`))
	step("it is there", web, "a1:4, Progressing")
	report(web, "2", "a1")
	step("it is ready", web, "a1:4, Completed")
	choose()
	step("no cluster is chosen", web, ", Progressing")

	const hand = "peer-hand"
	apply(strings.Replace(template("hand", hand, "1", ""), "agentSpec: {", `agentSpec: {manifestConfigs: [
 {resourceIdentifier: {group: apps, resource: deployments, name: agent, namespace: sys}, feedbackRules: [
  {type: JSONPaths, jsonPaths: [{name: a, path: .spec.replicas}]}], updateStrategy: {type: ServerSideApply}}], `, 1))
	apply(addon(hand, of("addontemplates", "hand"), "", ""))
	apply(`{apiVersion: ` + addonGroup + `v1beta1, kind: ManagedClusterAddOn, metadata: {name: peer-hand, namespace: a2},
 spec: {}}`)
	step("a ManagedClusterAddOn that the user makes", hand, "a2:1, ")
	report(hand, "2", "a2")
	step("it is ready", hand, "a2:1, ")
}

// An agent of an AddOnTemplate registers with the hub through the klusterlet, and has the rights of its template.
func TestAddonOfATemplateRegistersWithAKlusterlet(t *testing.T) {
	k := newKlusterlet(t, "addon-klusterlet")
	name := k.Member.Name
	registration := k.register(t)
	k.accept(t)
	k.expect(t, "ManagedClusterConditionAvailable", "True ManagedClusterAvailable")
	work := k.apply(t)
	ns := fleet.Namespace(t)

	// 1. A Placement installs it in the cluster.
	const addon = "peer-agent"
	fleet.Hub.Apply(t, `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: peer-agent}, rules: [
 {apiGroups: [""], resources: [configmaps], verbs: [get, list, create]}]}
---
{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSetBinding, metadata: {name: global,
 namespace: `+ns+`},
 spec: {clusterSet: global}}
---
{apiVersion: `+placementGroup+`, kind: Placement, metadata: {name: p, namespace: `+ns+`}, spec: {predicates: [
 {requiredClusterSelector: {celSelector: {celExpressions: ["managedCluster.metadata.name == '`+name+`'"]}}}]}}
---
{apiVersion: `+addonGroup+`v1alpha1, kind: AddOnTemplate, metadata: {name: peer-agent}, spec: {addonName: peer-agent,
 registration: [
 {type: KubeClient, kubeClient: {hubPermissions: [{type: CurrentCluster,
  currentCluster: {clusterRoleName: peer-agent}}]}}],
 agentSpec: {workload: {manifests: [
  {apiVersion: v1, kind: Namespace, metadata: {name: agents}},
  {apiVersion: v1, kind: ServiceAccount, metadata: {name: agent, namespace: agents}},
  {apiVersion: apps/v1, kind: Deployment, metadata: {name: agent, namespace: agents},
   spec: {selector: {matchLabels: {a: b}},
   template: {metadata: {labels: {a: b}}, spec: {serviceAccountName: agent, containers: [{name: agent,
    image: nginx}]}}}}]}}}}
---
{apiVersion: `+addonGroup+`v1beta1, kind: ClusterManagementAddOn, metadata: {name: peer-agent}, spec: {defaultConfigs: [
 {group: addon.open-cluster-management.io, resource: addontemplates, name: peer-agent}],
  installStrategy: {type: Placements,
 placements: [{name: p, namespace: `+ns+`}]}}}`)
	kit.Eventually(t, "the Deployment is in the member", func() string {
		u := k.Find(t, "apps/v1", "Deployment", "agents", "agent")
		got := text(kit.Field(u, "spec", "template", "spec"))
		for _, want := range []string{`{"name":"CLUSTER_NAME","value":"` + name + `"}`,
			`"secretName":"peer-agent-hub-kubeconfig"`,
			`{"name":"HUB_KUBECONFIG","value":"/managed/hub-kubeconfig/kubeconfig"}`,
			`{"mountPath":"/managed/hub-kubeconfig","name":"hub-kubeconfig"}`} {
			if !strings.Contains(got, want) {
				return want + " is not in " + got + "\n" + k.addon(t, addon)
			}
		}
		return ""
	})

	// 2. The klusterlet requests a certificate, and the hub approves and signs it. It is in a Secret in the member.
	dir := t.TempDir()
	kit.Eventually(t, "the Secret is in the member", func() string {
		secret := &corev1.Secret{}
		if err := k.Get(t.Context(), client.ObjectKey{Namespace: "agents", Name: addon + "-hub-kubeconfig"},
			secret); err != nil {
			return err.Error() + "\n" + k.addon(t, addon)
		}
		for _, key := range []string{"kubeconfig", "tls.key", "tls.crt"} {
			if len(secret.Data[key]) == 0 {
				return "it has no " + key
			}
			if err := os.WriteFile(filepath.Join(dir, key), secret.Data[key], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return ""
	})
	requests := &certificatesv1.CertificateSigningRequestList{}
	if err := fleet.Hub.List(t.Context(), requests, client.MatchingLabels{
		"open-cluster-management.io/addon-name": addon}); err != nil || len(requests.Items) != 1 ||
		len(requests.Items[0].Status.Conditions) != 1 || len(requests.Items[0].Status.Certificate) == 0 {
		t.Errorf("the requests are %+v, %v", requests.Items, err)
	}

	// 3. The agent may do what its ClusterRole says in the namespace of its cluster, and nothing elsewhere.
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "of-the-agent"}}
	if _, err := clients.CoreV1().ConfigMaps(name).Create(t.Context(), settings, metav1.CreateOptions{}); err != nil {
		t.Errorf("create a ConfigMap in the namespace of the cluster: %v", err)
	}
	reads := func() error {
		_, err := clients.CoreV1().ConfigMaps(name).Get(t.Context(), settings.Name, metav1.GetOptions{})
		return err
	}
	if err := reads(); err != nil {
		t.Errorf("read it: %v", err)
	}
	forbidden := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	forbidden("delete it", clients.CoreV1().ConfigMaps(name).Delete(t.Context(), settings.Name, metav1.DeleteOptions{}))
	_, err = clients.CoreV1().ConfigMaps(ns).Create(t.Context(), settings, metav1.CreateOptions{})
	forbidden("create a ConfigMap in another namespace", err)
	_, err = clients.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	forbidden("list ConfigMaps in all namespaces", err)
	_, err = clients.CoreV1().Secrets(name).List(t.Context(), metav1.ListOptions{})
	forbidden("list Secrets", err)

	// 4. With a ready pod, which the member simulates, the add-on is available.
	kit.Eventually(t, "the add-on is available", func() string {
		got := k.addon(t, addon)
		for _, want := range []string{"Available True ProbeAvailable", "Progressing False Completed"} {
			if !strings.Contains(got, want) {
				return got
			}
		}
		mc := fleet.Hub.Find(t, clusterGroup, "ManagedCluster", "", name)
		if got := mc.GetLabels()["feature.open-cluster-management.io/addon-"+addon]; got != "available" {
			return "the label is " + got
		}
		return ""
	})

	// 5. Without the permission in its template, it has no rights.
	template := func(permissions string) {
		fleet.Hub.Change(t, addonGroup+"v1alpha1", "AddOnTemplate", "", addon, func(u *unstructured.Unstructured) {
			u.Object["spec"].(map[string]any)["registration"] = kit.Object(t, "{all: [{type: KubeClient, kubeClient: {"+
				"hubPermissions: ["+permissions+"]}}]}").Object["all"]
		})
	}
	template("")
	kit.Eventually(t, "the agent loses its rights", func() string {
		if err := reads(); !apierrors.IsForbidden(err) {
			return fmt.Sprint("it reads a ConfigMap: ", err)
		}
		return ""
	})
	template("{type: CurrentCluster, currentCluster: {clusterRoleName: peer-agent}}")
	kit.Eventually(t, "the agent has its rights again", func() string {
		if err := reads(); err != nil {
			return err.Error()
		}
		return ""
	})

	// 6. Deleted, it leaves nothing.
	fleet.Hub.Remove(t, addonGroup+"v1beta1", "ClusterManagementAddOn", "", addon)
	kit.Eventually(t, "the add-on is gone", func() string {
		bindings := &rbacv1.RoleBindingList{}
		if err := fleet.Hub.List(t.Context(), bindings, client.InNamespace(name), client.MatchingLabels{
			"open-cluster-management.io/addon-name": addon}); err != nil {
			return err.Error()
		}
		if len(bindings.Items) > 0 || k.Find(t, "apps/v1", "Deployment", "agents", "agent") != nil ||
			fleet.Hub.Find(t, addonGroup+"v1beta1", "ManagedClusterAddOn", name, addon) != nil {
			return fmt.Sprint("RoleBindings ", bindings.Items, ", ", k.addon(t, addon))
		}
		return ""
	})
	kit.Eventually(t, "the agent has no rights", func() string {
		if err := reads(); !apierrors.IsForbidden(err) {
			return fmt.Sprint("it reads a ConfigMap: ", err)
		}
		return ""
	})
	if registration.Ended() || work.Ended() {
		t.Errorf("an agent ended:\n%s\n%s", registration.Output(), work.Output())
	}
	fleet.Hub.Remove(t, clusterGroup, "ManagedCluster", "", name)
	kit.Eventually(t, "the cluster has left", func() string {
		if u := fleet.Hub.Find(t, clusterGroup, "ManagedCluster", "", name); u != nil {
			return fmt.Sprint(u.GetFinalizers(), kit.Field(u, "status", "conditions"))
		}
		return ""
	})
}

// The example of the public add-on framework runs beside the hub, as it runs beside a hub of Open Cluster Management.
func TestAddonOfTheFrameworkRegisters(t *testing.T) {
	program := kit.Peers(t, "addon-helloworld")[0]
	k := newKlusterlet(t, "addon-framework")
	name := k.Member.Name
	registration := k.register(t)
	k.accept(t)
	k.expect(t, "ManagedClusterConditionAvailable", "True ManagedClusterAvailable")
	work := k.apply(t)
	ns := fleet.Namespace(t)
	k.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: hello}}")
	manager := k.Member.Run(t, nil, program, "controller", "--kubeconfig="+fleet.Lab.Hub.Kubeconfig())

	const addon = "helloworld"
	fleet.Hub.Apply(t, `
{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSetBinding, metadata: {name: global,
 namespace: `+ns+`}, spec: {clusterSet: global}}
---
{apiVersion: `+placementGroup+`, kind: Placement, metadata: {name: p, namespace: `+ns+`}, spec: {predicates: [
 {requiredClusterSelector: {celSelector: {celExpressions: ["managedCluster.metadata.name == '`+name+`'"]}}}]}}
---
{apiVersion: `+addonGroup+`v1alpha1, kind: AddOnDeploymentConfig, metadata: {name: s, namespace: `+ns+`},
 spec: {agentInstallNamespace: hello, registries: [
  {source: quay.io/open-cluster-management, mirror: mirror.example.com/one}]}}
---
{apiVersion: `+addonGroup+`v1alpha1, kind: ClusterManagementAddOn, metadata: {name: helloworld},
 spec: {supportedConfigs: [{group: addon.open-cluster-management.io, resource: addondeploymentconfigs}], installStrategy: {type: Placements,
 placements: [{name: p, namespace: `+ns+`, configs: [{group: addon.open-cluster-management.io,
  resource: addondeploymentconfigs, name: s, namespace: `+ns+`}]}]}}}`)
	installed := func(image string) {
		t.Helper()
		kit.Eventually(t, "the add-on is available with "+image, func() string {
			got := k.addon(t, addon)
			for _, want := range []string{"Available True ProbeAvailable", "Configured True", "Progressing False Completed",
				"RegistrationApplied True", "ManifestApplied True"} {
				if !strings.Contains(got, want) {
					return got + manager.Output()
				}
			}
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion("apps/v1")
			list.SetKind("DeploymentList")
			if err := k.List(t.Context(), list, client.InNamespace("hello")); err != nil || len(list.Items) != 1 {
				return fmt.Sprintf("%d Deployments, %v", len(list.Items), err)
			}
			if got := text(list.Items[0].Object); !strings.Contains(got, image) {
				return got
			}
			return ""
		})
	}
	installed("mirror.example.com/one/")
	kit.Eventually(t, "the klusterlet has the credentials of the agent", func() string {
		secret := &corev1.Secret{}
		if err := k.Get(t.Context(), client.ObjectKey{Namespace: "hello", Name: addon + "-hub-kubeconfig"},
			secret); err != nil {
			return err.Error()
		}
		if len(secret.Data["tls.crt"]) == 0 {
			return "no certificate"
		}
		return ""
	})
	// The manager writes the hash of a changed configuration, and the hub passes it on.
	fleet.Hub.Change(t, addonGroup+"v1alpha1", "AddOnDeploymentConfig", ns, "s", func(u *unstructured.Unstructured) {
		u.Object["spec"].(map[string]any)["registries"] = []any{map[string]any{
			"source": "quay.io/open-cluster-management", "mirror": "mirror.example.com/two"}}
	})
	installed("mirror.example.com/two/")
	fleet.Hub.Remove(t, addonGroup+"v1beta1", "ClusterManagementAddOn", "", addon)
	kit.Eventually(t, "the add-on is gone", func() string {
		if fleet.Hub.Find(t, addonGroup+"v1beta1", "ManagedClusterAddOn", name, addon) != nil {
			return k.addon(t, addon)
		}
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("apps/v1")
		list.SetKind("DeploymentList")
		if err := k.List(t.Context(), list, client.InNamespace("hello")); err != nil || len(list.Items) != 0 {
			return fmt.Sprintf("%d Deployments, %v", len(list.Items), err)
		}
		return ""
	})
	if registration.Ended() || work.Ended() || manager.Ended() {
		t.Errorf("a program ended:\n%s\n%s\n%s", registration.Output(), work.Output(), manager.Output())
	}
	fleet.Hub.Remove(t, clusterGroup, "ManagedCluster", "", name)
	kit.Eventually(t, "the cluster has left", func() string {
		if u := fleet.Hub.Find(t, clusterGroup, "ManagedCluster", "", name); u != nil {
			return fmt.Sprint(u.GetFinalizers(), kit.Field(u, "status", "conditions"))
		}
		return ""
	})
}

// addon returns the conditions of an add-on in the cluster, "TYPE STATUS REASON: MESSAGE" in each line.
func (k *klusterlet) addon(t *testing.T, name string) string {
	t.Helper()
	u := fleet.Hub.Find(t, addonGroup+"v1beta1", "ManagedClusterAddOn", k.Member.Name, name)
	if u == nil {
		return "no ManagedClusterAddOn"
	}
	lines := ""
	for _, of := range parts(u, "status", "conditions") {
		lines += fmt.Sprintln(of["type"], of["status"], fmt.Sprint(of["reason"], ":"), of["message"])
	}
	return lines
}
