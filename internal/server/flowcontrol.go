package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	searchv1alpha1 "github.com/argosy-io/argosy/api/search/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/console"
	"github.com/argosy-io/argosy/internal/member/fleetmetrics"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/internal/member/tunnel"
	"github.com/argosy-io/argosy/internal/search"
)

// Kubernetes' own flow schemas separate users, service accounts and leader election. These two separate the requests
// that only a hub has: requests to members, which may wait for a member, and requests of the agents of clusters in Pull
// mode.
const (
	membersLevel = "argosy-members"
	agentsLevel  = "argosy-agents"
	// agentsGroup are the agents, as Karmada names them.
	agentsGroup = "system:karmada:agents"
)

func priorityLevels() []flowcontrolv1.PriorityLevelConfiguration {
	level := func(name string, shares int32) flowcontrolv1.PriorityLevelConfiguration {
		return flowcontrolv1.PriorityLevelConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{wellknown.SpecGenerationAnnotation: "1"}},
			Spec: flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited,
				Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
					NominalConcurrencyShares: ptr.To(shares), LendablePercent: ptr.To[int32](50),
					LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue,
						Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 64, HandSize: 6, QueueLengthLimit: 50}},
				}},
		}
	}
	return []flowcontrolv1.PriorityLevelConfiguration{level(membersLevel, 30), level(agentsLevel, 40)}
}

func flowSchemas() []flowcontrolv1.FlowSchema {
	schema := func(name string, precedence int32, group string, resources []flowcontrolv1.ResourcePolicyRule,
		paths ...flowcontrolv1.NonResourcePolicyRule) flowcontrolv1.FlowSchema {
		for i := range resources {
			resources[i].Verbs, resources[i].ClusterScope = []string{"*"}, true
		}
		return flowcontrolv1.FlowSchema{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{wellknown.SpecGenerationAnnotation: "1"}},
			Spec: flowcontrolv1.FlowSchemaSpec{
				PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: name},
				MatchingPrecedence:         precedence,
				DistinguisherMethod: &flowcontrolv1.FlowDistinguisherMethod{
					Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
				Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
					Subjects: []flowcontrolv1.Subject{{Kind: rbacv1.GroupKind,
						Group: &flowcontrolv1.GroupSubject{Name: group}}},
					ResourceRules:    resources,
					NonResourceRules: paths,
				}},
			},
		}
	}
	return []flowcontrolv1.FlowSchema{
		schema(membersLevel, 600, user.AllAuthenticated, []flowcontrolv1.ResourcePolicyRule{
			{APIGroups: []string{clusterv1alpha1.GroupVersion.Group, searchv1alpha1.GroupVersion.Group},
				Resources: []string{"clusters/proxy", "proxying/proxy", "search/api", "search/apis"}},
			{APIGroups: fleetmetrics.Groups(), Resources: []string{"*"}, Namespaces: []string{"*"}}}),
		schema(agentsLevel, 700, agentsGroup, []flowcontrolv1.ResourcePolicyRule{{
			APIGroups: []string{"*"}, Resources: []string{"*"}, Namespaces: []string{"*"}}},
			flowcontrolv1.NonResourcePolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}),
	}
}

// untouched reports whether the hub was the last to write the object, and marks that the hub writes it again.
func untouched(o metav1.Object) bool {
	if o.GetAnnotations()[wellknown.SpecGenerationAnnotation] != strconv.FormatInt(o.GetGeneration(), 10) {
		return false
	}
	o.GetAnnotations()[wellknown.SpecGenerationAnnotation] = strconv.FormatInt(o.GetGeneration()+1, 10)
	return true
}

// startFlowControl creates the hub's priority levels and flow schemas, and updates those that no user has changed.
func (h *Hub) startFlowControl(ctx context.Context) (func(), error) {
	if !h.config.KubeAPIServer.PriorityAndFairness {
		return nil, nil
	}
	client, err := kubernetes.NewForConfig(h.Config())
	if err != nil {
		return nil, fmt.Errorf("create a client for flow control: %w", err)
	}
	levels, schemas := client.FlowcontrolV1().PriorityLevelConfigurations(), client.FlowcontrolV1().FlowSchemas()
	for _, want := range priorityLevels() {
		have, err := levels.Get(ctx, want.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			_, err = levels.Create(ctx, &want, metav1.CreateOptions{})
		case err == nil && !equality.Semantic.DeepDerivative(want.Spec, have.Spec) && untouched(have):
			have.Spec = want.Spec
			_, err = levels.Update(ctx, have, metav1.UpdateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return nil, fmt.Errorf("create priority level %s: %w", want.Name, err)
		}
	}
	for _, want := range flowSchemas() {
		have, err := schemas.Get(ctx, want.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			_, err = schemas.Create(ctx, &want, metav1.CreateOptions{})
		case err == nil && !equality.Semantic.DeepDerivative(want.Spec, have.Spec) && untouched(have):
			have.Spec = want.Spec
			_, err = schemas.Update(ctx, have, metav1.UpdateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return nil, fmt.Errorf("create flow schema %s: %w", want.Name, err)
		}
	}
	return nil, nil
}

// longRunning treats a request to a member, or to the global proxy, like the same request to the hub. Kubernetes treats
// every proxied request as a stream: it would bypass the queues and never time out, and one user could have any number
// of them. Of the requests to clusters/tunnel, only the one that opens a tunnel is long.
func longRunning(next request.LongRunningRequestCheck) request.LongRunningRequestCheck {
	infos := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	return func(r *http.Request, info *request.RequestInfo) bool {
		if console.LongRunning(r) || tunnel.Opens(r, info) {
			return true
		}
		if inner, _, _ := search.Inner(r, info); inner != nil {
			if r.Header.Get("Upgrade") != "" {
				return true
			}
			innerInfo, err := infos.NewRequestInfo(inner)
			return err == nil && next(inner, innerInfo)
		}
		if !info.IsResourceRequest || info.APIGroup != clusterv1alpha1.GroupVersion.Group || info.Resource != "clusters" ||
			info.Subresource != "proxy" {
			return next(r, info)
		}
		if r.Header.Get("Upgrade") != "" {
			return true
		}
		query := r.URL.Query()
		path := strings.TrimPrefix(r.URL.Path, proxy.Path(info.Name))
		if strings.Trim(path, "/") == "" && query.Has("path") { // ClusterProxyOptions
			path = "/" + strings.TrimPrefix(query.Get("path"), "/")
		}
		inner := &http.Request{Method: r.Method, URL: &url.URL{Path: path, RawQuery: r.URL.RawQuery}, Header: r.Header}
		innerInfo, err := infos.NewRequestInfo(inner)
		return err == nil && next(inner, innerInfo)
	}
}
