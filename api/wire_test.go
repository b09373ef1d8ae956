// Package api_test compares what the types of api write with the field lists of the Karmada API.
package api_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	searchv1alpha1 "github.com/argosy-io/argosy/api/search/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// The shapes name each object's keys; a key that opens a brace is an object or a list of objects. What stands behind !
// is accepted beside Karmada's fields: an addition of Argosy, or a spelling that admission rewrites.
const (
	affinityShape = `labelSelector fieldSelector{matchExpressions} clusterNames exclude`
	selectorShape = `apiVersion kind namespace name labelSelector`
	stateShape    = `statePreservation{rules{aliasLabelName jsonPath}}`

	placementShape = `clusterAffinity{` + affinityShape + `}
		clusterAffinities{affinityName ` + affinityShape + ` overflowAffinities{affinityName ` + affinityShape + `}}
		clusterTolerations
		spreadConstraints{spreadByField spreadByLabel maxGroups minGroups}
		replicaScheduling{replicaSchedulingType replicaDivisionPreference !dynamicWeight
			weightPreference{staticWeightList{targetCluster{` + affinityShape + `} weight} dynamicWeight}}
		workloadAffinity{affinity{groupByLabelKey} antiAffinity{groupByLabelKey}}`

	failoverShape = `application{decisionConditions{tolerationSeconds} purgeMode gracePeriodSeconds ` + stateShape + ` !purgePolicy}
		cluster{purgeMode ` + stateShape + `}
		!applicationMigrationPolicy{decisionConditions{tolerationSeconds} purgeMode purgePolicy gracePeriodSeconds ` + stateShape + `}`

	suspensionShape = `dispatching dispatchingOnClusters{clusterNames}`

	propagationShape = `resourceSelectors{` + selectorShape + `} association propagateDeps
		placement{` + placementShape + `}
		priority preemption dependentOverrides schedulerName failover{` + failoverShape + `} conflictResolution
		activationPreference suspension{` + suspensionShape + `} preserveResourcesOnDeletion
		schedulePriority{priorityClassSource priorityClassName}`

	overridersShape = `imageOverrider{predicate{path} component operator value}
		commandOverrider{containerName operator value} argsOverrider{containerName operator value}
		labelsOverrider{operator value} annotationsOverrider{operator value}
		fieldOverrider{fieldPath json{subPath operator value} yaml{subPath operator value}}
		plaintext{path operator value}
		!resourcesOverrider{containerName value} !replicasOverrider{value operator}`

	overrideShape = `resourceSelectors{` + selectorShape + `}
		overrideRules{targetCluster{` + affinityShape + `} overriders{` + overridersShape + `}}
		targetCluster{` + affinityShape + `} overriders{` + overridersShape + `}`

	clusterSpecShape = `id syncMode apiEndpoint secretRef{namespace name} impersonatorSecretRef{namespace name} insecureSkipTLSVerification
		proxyURL proxyHeader provider region zone zones taints resourceModels{grade ranges{name min max}}`
	clusterStatusShape = `kubernetesVersion apiEnablements{groupVersion resources{name kind}} conditions nodeSummary{totalNum readyNum}
		resourceSummary{allocatable allocating allocated allocatableModelings{grade count}} remedyActions !brakes`

	claimShape   = `nodeClaim{hardNodeAffinity nodeSelector tolerations} resourceRequest priorityClassName`
	targetShape  = `name replicas components{name replicas}`
	bindingShape = `resource{apiVersion kind namespace name uid resourceVersion} propagateDeps
		replicaRequirements{` + claimShape + ` namespace} replicas
		components{name replicas replicaRequirements{` + claimShape + `}}
		clusters{` + targetShape + `} placement{` + placementShape + `}
		gracefulEvictionTasks{fromCluster purgeMode replicas reason message producer gracePeriodSeconds suppressDeletion
			preservedLabelState creationTimestamp clustersBeforeFailover}
		requiredBy{namespace name clusters{` + targetShape + `}} schedulerName failover{` + failoverShape + `} conflictResolution
		rescheduleTriggeredAt suspension{` + suspensionShape + ` scheduling} preserveResourcesOnDeletion
		schedulePriority{priority} workloadAffinityGroups{affinityGroup antiAffinityGroup}`
	bindingStatusShape = `schedulerObservedGeneration schedulerObservingAffinityName lastScheduledTime conditions
		aggregatedStatus{clusterName status applied appliedMessage health unhealthySince}` // the last is not in Karmada

	legacyBindingShape       = `resource{apiVersion kind namespace name resourceVersion resourcePerReplicas replicas} clusters{name replicas}`
	legacyBindingStatusShape = `conditions aggregatedStatus{clusterName status applied appliedMessage}`

	workShape       = `workload{manifests} suspendDispatching preserveResourcesOnDeletion`
	workStatusShape = `conditions manifestStatuses{identifier{ordinal group version kind resource namespace name} status health}`

	workloadShape = `apiVersion kind name namespace`

	pathShape          = `luaScript !jsonPath`
	customizationShape = `target{apiVersion kind} customizations{
		retention{` + pathShape + ` !jsonPaths} replicaResource{` + pathShape + `} componentResource{` + pathShape + `}
		replicaRevision{` + pathShape + `} statusReflection{` + pathShape + `}
		statusAggregation{` + pathShape + ` !jsonPaths{sum max last}}
		healthInterpretation{` + pathShape + ` !expected} dependencyInterpretation{` + pathShape + `}
		!replicas{luaScript jsonPath} !replica{luaScript jsonPath} !interpretReplica{luaScript jsonPath}
		!interpretComponent{luaScript jsonPath} !reviseReplica{luaScript jsonPath} !scale{luaScript jsonPath}
		!retain{luaScript jsonPath jsonPaths} !status{luaScript jsonPath} !interpretStatus{luaScript jsonPath}
		!aggregateStatus{luaScript jsonPath jsonPaths{sum max last}} !health{luaScript jsonPath expected}
		!interpretHealth{luaScript jsonPath expected} !interpretDependency{luaScript jsonPath}}`

	webhookShape = `name clientConfig{url service{namespace name path port} caBundle}
		rules{operations apiGroups apiVersions kinds} timeoutSeconds interpreterContextVersions`

	ingressShape = `ingressClassName defaultBackend tls rules{host http{paths{path pathType backend}}}`

	// All of it is an addition: guides write the kind, and Karmada has none of the name.
	reschedulingShape = `resourceSelectors{` + selectorShape +
		`} reschedulePolicy{enabled interval threshold{cpuUtilization memoryUtilization} maxMoved}`
)

func TestKindsWriteTheFieldsOfTheKarmadaAPI(t *testing.T) {
	for _, c := range []struct {
		obj   runtime.Object
		shape string
	}{
		{&policyv1alpha1.PropagationPolicy{}, `spec{` + propagationShape + `}`},
		{&policyv1alpha1.ClusterPropagationPolicy{}, `spec{` + propagationShape + `}`},
		{&policyv1alpha1.OverridePolicy{}, `spec{` + overrideShape + `}`},
		{&policyv1alpha1.ClusterOverridePolicy{}, `spec{` + overrideShape + `}`},
		{&policyv1alpha1.ClusterTaintPolicy{}, `spec{targetClusters{` + affinityShape + `}
			addOnConditions{conditionType operator statusValues} removeOnConditions{conditionType operator statusValues} taints{key effect value}}`},
		{&policyv1alpha1.FederatedResourceQuota{}, `spec{overall staticAssignments{clusterName hard}}
			status{overall overallUsed aggregatedStatus{clusterName hard used}}`},
		{&clusterv1alpha1.Cluster{}, `spec{` + clusterSpecShape + `} status{` + clusterStatusShape + `}`},
		{&workv1alpha2.ResourceBinding{}, `spec{` + bindingShape + `} status{` + bindingStatusShape + `}`},
		{&workv1alpha2.ClusterResourceBinding{}, `spec{` + bindingShape + `} status{` + bindingStatusShape + `}`},
		{&workv1alpha1.ResourceBinding{}, `spec{` + legacyBindingShape + `} status{` + legacyBindingStatusShape + `}`},
		{&workv1alpha1.ClusterResourceBinding{}, `spec{` + legacyBindingShape + `} status{` + legacyBindingStatusShape + `}`},
		{&workv1alpha1.Work{}, `spec{` + workShape + `} status{` + workStatusShape + `}`},
		{&ocmv1.ManifestWork{}, `spec{workload{manifests} deleteOption{propagationPolicy selectivelyOrphans{orphaningRules{group resource namespace name}}
			ttlSecondsAfterFinished} manifestConfigs{resourceIdentifier{group resource name namespace}
				feedbackRules{type jsonPaths{name version path}} feedbackScrapeType
				updateStrategy{type serverSideApply{force fieldManager ignoreFields{condition jsonPaths jsonPointers jqPathExpressions}}}
				conditionRules{condition type celExpressions message messageExpression}}
			executor{subject{type serviceAccount{namespace name}}}}
			status{conditions resourceStatus{manifests{resourceMeta{ordinal group version kind resource name namespace}
				statusFeedback{values{name fieldValue{type integer string boolean jsonRaw}}} conditions}}}`},
		{&clusterv1.ManagedCluster{}, `spec{managedClusterClientConfigs{url caBundle} hubAcceptsClient leaseDurationSeconds
			taints{key value effect timeAdded}} status{conditions capacity allocatable version{kubernetes}
			clusterClaims{name value} managedNamespaces{name clusterSet conditions}}`},
		{&setv1beta2.ManagedClusterSet{}, `spec{clusterSelector{selectorType labelSelector} managedNamespaces{name}}
			status{conditions}`},
		{&setv1beta2.ManagedClusterSetBinding{}, `spec{clusterSet} status{conditions}`},
		{&appsv1alpha1.WorkloadRebalancer{}, `spec{workloads{` + workloadShape + `} ttlSecondsAfterFinished}
			status{observedWorkloads{workload{` + workloadShape + `} result reason} observedGeneration finishTime
			result}`}, // the last is not in Karmada
		{&searchv1alpha1.ResourceRegistry{}, `spec{targetCluster{` + affinityShape + `} resourceSelectors{apiVersion kind namespace}
			backendStore{openSearch{addresses secretRef{namespace name}}}} status{conditions}`},
		{&autoscalingv1alpha1.FederatedHPA{}, `spec{scaleTargetRef{apiVersion kind name} minReplicas maxReplicas metrics behavior}
			status{observedGeneration lastScaleTime currentReplicas desiredReplicas currentMetrics conditions}`},
		{&autoscalingv1alpha1.CronFederatedHPA{}, `spec{scaleTargetRef{apiVersion kind name} rules{name schedule targetReplicas targetMinReplicas
			targetMaxReplicas suspend timeZone successfulHistoryLimit failedHistoryLimit}}
			status{executionHistories{ruleName nextExecutionTime
				successfulExecutions{scheduleTime executionTime appliedReplicas appliedMaxReplicas appliedMinReplicas}
				failedExecutions{scheduleTime executionTime message}}}`},
		{&configv1alpha1.ResourceInterpreterCustomization{}, `spec{` + customizationShape + `}`},
		{&configv1alpha1.ResourceInterpreterWebhookConfiguration{}, `webhooks{` + webhookShape + `}`},
		{&configv1alpha1.ReplicaSchedulingPolicy{}, `spec{` + reschedulingShape + `} status{observedGeneration conditions}`},
		{&multiclusterv1alpha1.ServiceExport{}, `spec{exportedLabels exportedAnnotations} status{conditions}`},
		{&multiclusterv1alpha1.ServiceImport{},
			`spec{ports{name protocol appProtocol port} ips ipFamilies type sessionAffinity sessionAffinityConfig
				internalTrafficPolicy trafficDistribution} status{clusters{cluster} conditions}`},
		{&networkingv1alpha1.MultiClusterService{}, `spec{types ports{name port !targetPort} range{clusterNames} serviceProvisionClusters
			serviceConsumptionClusters providerClusters{name} consumerClusters{name}} status{loadBalancer{ingress} conditions}`},
		{&networkingv1alpha1.MultiClusterIngress{}, `spec{` + ingressShape + ` !template{spec{` + ingressShape + `}}}
			status{loadBalancer{ingress} trafficBlockClusters serviceLocations{name clusters} !conditions}`},
		{&remedyv1alpha1.Remedy{}, `spec{clusterAffinity{clusterNames}
			decisionMatches{clusterConditionMatch{conditionType operator conditionStatus}} actions}`},
	} {
		t.Run(reflect.TypeOf(c.obj).String(), func(t *testing.T) {
			want := parseShape(t, c.shape)
			fill(reflect.ValueOf(c.obj).Elem(), nil)
			data, err := json.Marshal(c.obj)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			for _, always := range []string{"apiVersion", "kind", "metadata"} {
				if _, ok := got[always]; !ok {
					t.Errorf("no %s", always)
				}
				delete(got, always)
			}
			compare(t, "", got, want)

			back := reflect.New(reflect.TypeOf(c.obj).Elem()).Interface()
			if err := json.Unmarshal(data, back); err != nil {
				t.Fatal(err)
			}
			again, err := json.Marshal(back)
			if err != nil {
				t.Fatal(err)
			}
			if string(again) != string(data) {
				t.Errorf("does not survive a round trip:\n%s\n%s", data, again)
			}
		})
	}
}

// shape is an object's keys; nil is a value whose inside is not ours.
type shape map[string]shape

func compare(t *testing.T, path string, got any, want shape) {
	if want == nil {
		return
	}
	if list, ok := got.([]any); ok && len(list) > 0 {
		got = list[0]
	}
	obj, ok := got.(map[string]any)
	if !ok {
		t.Errorf("%s is %T, want an object with %d keys", path, got, len(want))
		return
	}
	for key := range want {
		if _, ok := obj[key]; !ok {
			t.Errorf("%s.%s is never written", path, key)
		}
	}
	for key, value := range obj {
		inside, ok := want[key]
		if !ok {
			t.Errorf("%s.%s is not in the API", path, key)
			continue
		}
		compare(t, path+"."+key, value, inside)
	}
}

func parseShape(t *testing.T, text string) shape {
	t.Helper()
	words := strings.Fields(strings.NewReplacer("{", " { ", "}", " } ", "!", "").Replace(text))
	root := shape{}
	stack := []shape{root}
	var last string
	for _, w := range words {
		top := stack[len(stack)-1]
		switch w {
		case "{":
			inside := shape{}
			top[last] = inside
			stack = append(stack, inside)
		case "}":
			stack = stack[:len(stack)-1]
		default:
			if _, twice := top[w]; twice {
				t.Fatalf("%s twice", w)
			}
			top[w], last = nil, w
		}
	}
	if len(stack) != 1 {
		t.Fatal("braces do not match")
	}
	return root
}

// fill sets every field, so that omitempty hides none. above are the types that v is inside of; a recursive type ends
// there.
func fill(v reflect.Value, above []reflect.Type) {
	if slices.Contains(above, v.Type()) {
		return
	}
	above = append(slices.Clip(above), v.Type())
	switch x := v.Addr().Interface().(type) {
	case *metav1.Time:
		*x = metav1.Unix(1, 0)
		return
	case *resource.Quantity:
		*x = resource.MustParse("1")
		return
	case *runtime.RawExtension:
		x.Raw = []byte(`{"kind":"ConfigMap"}`)
		return
	case *apiextensionsv1.JSON:
		x.Raw = []byte(`{"a":1}`)
		return
	case *metav1.ObjectMeta:
		x.Name = "name"
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), above)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), above)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), above)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, above)
		fill(value, above)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8:
		v.SetUint(1)
	default:
		panic("no example of " + v.Type().String())
	}
}
