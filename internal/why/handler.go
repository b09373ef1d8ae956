package why

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/apistatus"
)

// Path is where Handler answers, as JSON: GET /argosy/why?kind=deployment&name=web&namespace=shop&cluster=m1. An error
// is a metav1.Status.
//
// It reads with the hub's own rights, so a user who may get this nonResourceURL can read about every object. By
// default, only administrators may.
const Path = "/argosy/why"

// Connector returns a client and a mapper of the hub. It is called for each query, because the served kinds change.
type Connector func() (client.Reader, meta.RESTMapper, error)

// Handler answers queries. room has the capacity as the scheduler knows it, scheduler its settings, and troubled the
// pods with problems; each may be nil.
func Handler(connect Connector, room Room, scheduler Scheduler, troubled Troubled) http.Handler {
	return answering(connect, func(ctx context.Context, v url.Values, r client.Reader, mapper meta.RESTMapper) (any,
		error) {
		return Explain(ctx, r, mapper, Query{Kind: v.Get("kind"), Namespace: v.Get("namespace"), Name: v.Get("name"),
			Cluster: v.Get("cluster"),
			Room:    room, Scheduler: scheduler, Pods: PodsHere(troubled),
			Troubled: AllPodsHere(troubled)})
	})
}

// codes are the HTTP codes of the reasons of an *Error.
var codes = map[metav1.StatusReason]int{
	metav1.StatusReasonNotFound:           http.StatusNotFound,
	metav1.StatusReasonBadRequest:         http.StatusBadRequest,
	metav1.StatusReasonConflict:           http.StatusConflict,
	metav1.StatusReasonServiceUnavailable: http.StatusServiceUnavailable,
}

// Code returns the HTTP code of the reason of an *Error.
func Code(reason metav1.StatusReason) int { return codes[reason] }

// answering gives what answer returns as JSON, and its error as a metav1.Status.
func answering(connect Connector, answer func(ctx context.Context, v url.Values, r client.Reader,
	mapper meta.RESTMapper) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			apistatus.Refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "ask with GET")
			return
		}
		reader, mapper, err := connect()
		if err != nil {
			apistatus.Refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
				fmt.Sprintf("reach the hub's API: %v", err))
			return
		}
		says, err := answer(req.Context(), req.URL.Query(), reader, mapper)
		var wrong *Error
		switch {
		case errors.As(err, &wrong):
			apistatus.Refuse(w, codes[wrong.Reason], wrong.Reason, wrong.Message)
		case err != nil:
			reason := apierrors.ReasonForError(err)
			if reason == metav1.StatusReasonUnknown {
				reason = metav1.StatusReasonInternalError
			}
			apistatus.Refuse(w, http.StatusInternalServerError, reason, err.Error())
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(says) // who asked is gone if it fails
		}
	})
}
