package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/controller"
)

// runFile names the last run of the loops on this data folder. It is not in the store: a restored store has no such
// file, so its hub cannot mistake the state of members for that of a run that has ended.
const runFile = "run"

// runRecord is the same for replicas, in the shared store: the leader knows that no other replica writes it.
const (
	runRecord    = "argosy-run"
	runRecordKey = "run"
)

// turn names this run of the loops, and the one before it that surely ended.
func (h *Hub) turn(ctx context.Context) (controller.Turn, error) {
	t := controller.Turn{Address: h.url, Run: string(uuid.NewUUID())}
	var err error
	if h.elects() {
		t.Ended, err = h.recordRun(ctx, t.Run)
	} else {
		t.Ended, err = h.noteRun(t.Run)
	}
	if err != nil {
		return t, fmt.Errorf("record this run of the controllers: %w", err)
	}
	return t, nil
}

// noteRun must be called with the lock on the data folder, so that the run in the file has ended.
func (h *Hub) noteRun(run string) (last string, err error) {
	path := filepath.Join(h.config.DataDir, runFile)
	was, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return strings.TrimSpace(string(was)), os.WriteFile(path, []byte(run+"\n"), 0o600)
}

func (h *Hub) recordRun(ctx context.Context, run string) (last string, err error) {
	client, err := kubernetes.NewForConfig(h.Config())
	if err != nil {
		return "", err
	}
	records := client.CoreV1().ConfigMaps(systemNamespace)
	record, err := records.Get(ctx, runRecord, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = records.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: runRecord, Labels: map[string]string{workv1alpha2.SystemLabel: "true"}},
			Data:       map[string]string{runRecordKey: run}}, metav1.CreateOptions{})
		return "", err
	}
	if err != nil {
		return "", err
	}
	last = record.Data[runRecordKey]
	record.Data = map[string]string{runRecordKey: run}
	_, err = records.Update(ctx, record, metav1.UpdateOptions{})
	return last, err
}
