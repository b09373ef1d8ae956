package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/controller"
	"github.com/argosy-io/argosy/internal/server/pki"
)

// runFile has the last run of the controllers on this data folder, for earlier versions. runsFile has the last runs,
// one per line, the newest last. They are not in the store: a restored store has no such files, so its hub cannot
// mistake a run that continues for one that has ended.
const (
	runFile  = "run"
	runsFile = "runs"
)

// keptRuns is how many runs are kept. A run that is killed while it starts stamps only some members, and the others
// have the stamp of a run before it.
const keptRuns = 64

// runRecord is the same for replicas, in the shared store: the leader knows that no other replica writes it.
const (
	runRecord    = "argosy-run"
	runRecordKey = "run"
	runsKey      = "runs"
)

// turn names this run of the controllers, and the runs before it, which have ended.
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

// addRun returns the runs that a record and the last run, which an earlier version may have written alone, name, and
// the record with another run.
func addRun(record, last, run string) (ended []string, added string) {
	ended = strings.Fields(record)
	if last = strings.TrimSpace(last); last != "" && !slices.Contains(ended, last) {
		ended = append(ended, last)
	}
	ended = ended[max(0, len(ended)-keptRuns+1):]
	return ended, strings.Join(append(slices.Clone(ended), run), "\n") + "\n"
}

// noteRun must be called with the lock on the data folder, so that the runs in the files have ended.
func (h *Hub) noteRun(run string) (ended []string, err error) {
	read := func(name string) string {
		raw, failed := os.ReadFile(filepath.Join(h.config.DataDir, name))
		if failed != nil && !errors.Is(failed, os.ErrNotExist) {
			err = errors.Join(err, failed)
		}
		return string(raw)
	}
	ended, is := addRun(read(runsFile), read(runFile), run)
	if err != nil {
		return nil, err
	}
	if err := pki.WriteFile(filepath.Join(h.config.DataDir, runsFile), []byte(is), 0o600); err != nil {
		return nil, err
	}
	return ended, pki.WriteFile(filepath.Join(h.config.DataDir, runFile), []byte(run+"\n"), 0o600)
}

func (h *Hub) recordRun(ctx context.Context, run string) (ended []string, err error) {
	client, err := kubernetes.NewForConfig(h.Config())
	if err != nil {
		return nil, err
	}
	records := client.CoreV1().ConfigMaps(systemNamespace)
	record, err := records.Get(ctx, runRecord, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = records.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: runRecord, Labels: map[string]string{workv1alpha2.SystemLabel: "true"}},
			Data:       map[string]string{runRecordKey: run, runsKey: run}}, metav1.CreateOptions{})
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	ended, is := addRun(record.Data[runsKey], record.Data[runRecordKey], run)
	record.Data = map[string]string{runRecordKey: run, runsKey: is}
	_, err = records.Update(ctx, record, metav1.UpdateOptions{})
	return ended, err
}
