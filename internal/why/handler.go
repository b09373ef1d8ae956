package why

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Path is where Handler answers, as JSON: GET /argosy/why?kind=deployment&name=web&namespace=shop&cluster=m1. An error is a metav1.Status.
//
// It reads with the hub's own rights, so that whoever may get this nonResourceURL may learn of every object: by
// default that is administrators.
const Path = "/argosy/why"

// Handler answers queries. connect gives what to ask with, for each query anew, since the kinds that the hub serves change.
// room is what the scheduler knows; nil for nothing.
func Handler(connect func() (client.Reader, meta.RESTMapper, error), room Room) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "ask with GET")
			return
		}
		v := req.URL.Query()
		q := Query{Kind: v.Get("kind"), Namespace: v.Get("namespace"), Name: v.Get("name"), Cluster: v.Get("cluster"), Room: room}
		reader, mapper, err := connect()
		if err != nil {
			refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, fmt.Sprintf("reach the hub's API: %v", err))
			return
		}
		answer, err := Ask(req.Context(), reader, mapper, q)
		var wrong *Error
		switch {
		case errors.As(err, &wrong):
			codes := map[metav1.StatusReason]int{metav1.StatusReasonNotFound: http.StatusNotFound,
				metav1.StatusReasonBadRequest: http.StatusBadRequest, metav1.StatusReasonConflict: http.StatusConflict}
			refuse(w, codes[wrong.Reason], wrong.Reason, wrong.Message)
		case err != nil:
			reason := apierrors.ReasonForError(err)
			if reason == metav1.StatusReasonUnknown {
				reason = metav1.StatusReasonInternalError
			}
			refuse(w, http.StatusInternalServerError, reason, err.Error())
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer) // who asked is gone if it fails
		}
	})
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}
