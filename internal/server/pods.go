package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// podCommands are the commands that do in member clusters what a request for a subresource of a Pod asks for.
var podCommands = map[string]string{
	"log":         "argosy logs %[1]s -n %[2]s --all-clusters",
	"exec":        "argosy exec %[1]s -n %[2]s -C CLUSTER -- COMMAND",
	"attach":      "argosy attach %[1]s -n %[2]s -C CLUSTER",
	"portforward": "kubectl port-forward pod/%[1]s -n %[2]s with a kubeconfig of the cluster",
}

// unregistering refuses what "karmadactl unregister" does first: it deletes all Works of a cluster, and waits until
// none is left. The hub creates them again, so the command would delete what runs in the cluster, and then fail. The
// command shows a warning, but not the text of an error.
func unregistering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		karmadactl := strings.HasPrefix(r.UserAgent(), "karmadactl") || strings.HasPrefix(r.UserAgent(), "kubectl-karmada")
		if !ok || !karmadactl || info.Verb != "delete" || info.APIGroup != workv1alpha1.GroupVersion.Group {
			next.ServeHTTP(w, r)
			return
		}
		cluster, err := names.ClusterOf(info.Namespace)
		if err != nil || info.Resource != "works" {
			next.ServeHTTP(w, r)
			return
		}
		text := fmt.Sprintf("karmadactl does not delete Works on this hub: to remove cluster %[1]q, use argosy unregister %[1]s", cluster)
		warning.AddWarning(r.Context(), "", text)
		apistatus.Write(w, apierrors.NewForbidden(workv1alpha1.Resource("works"), info.Name, errors.New(text)))
	})
}

// podRequests answers requests that need a kubelet. The hub runs no pods: its API server would answer a request for a
// log with an empty one. A list by labels from kubectl, which also "kubectl logs" and "kubectl exec" of a workload
// send, gets a warning, because kubectl waits for pods that do not appear here.
func podRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || info.APIGroup != "" || info.Resource != "pods" || info.Namespace == "" {
			next.ServeHTTP(w, r)
			return
		}
		if command, is := podCommands[info.Subresource]; is {
			apistatus.Write(w, apierrors.NewBadRequest(fmt.Sprintf(
				"the hub runs no pods: for Pod %[1]s in member clusters, use "+command, info.Name, info.Namespace)))
			return
		}
		selects := info.Verb == "list" && r.URL.Query().Get("labelSelector") != ""
		if selects && strings.HasPrefix(r.UserAgent(), "kubectl") {
			warning.AddWarning(r.Context(), "", fmt.Sprintf("pods of workloads run in member clusters: "+
				"use argosy get pods -s members, argosy logs or argosy exec, each with -n %s", info.Namespace))
		}
		next.ServeHTTP(w, r)
	})
}
