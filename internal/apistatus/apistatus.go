// Package apistatus answers HTTP requests with errors in the form of the API server's: a metav1.Status.
package apistatus

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Write answers with the status of err. An error without a status is an internal error.
func Write(w http.ResponseWriter, err error) {
	status := apierrors.NewInternalError(err).Status()
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	if after, ok := apierrors.SuggestsClientDelay(&apierrors.StatusError{ErrStatus: status}); ok {
		w.Header().Set("Retry-After", strconv.Itoa(after))
	}
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // fails only if the client is gone
}

// Refuse answers with an HTTP code, a reason and a message.
func Refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	Write(w, Error(code, reason, message))
}

// Error returns an error with an HTTP code, a reason and a message.
func Error(code int, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code),
		Reason: reason, Message: message}}
}
