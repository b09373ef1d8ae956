package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// An object that no interpreter can read is still applied and reported; an event and a condition report the error
// until it is fixed.
func TestUnreadableHealthIsReported(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		w := newWorld(t, Options{Interpreter: interpret.New(
			interpret.Kinds{membertest.ConfigMap.GroupKind(): &interpret.Hooks{
				Health: func(context.Context, *unstructured.Unstructured) (interpret.Health, error) {
					if broken.Load() {
						return interpret.Unknown, errors.New("line 3: nil")
					}
					return interpret.Healthy, nil
				},
				Reflect: func(context.Context, *unstructured.Unstructured) (map[string]any, error) {
					return map[string]any{"read": true}, nil
				},
			}})})
		u := manifest(membertest.ConfigMap, "shop", "1")
		work := w.work(u)
		w.applied(work)
		w.Eventually("an event and a condition report it", func() string {
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
				return err.Error()
			}
			c := meta.FindStatusCondition(work.Status.Conditions, "InterpretHealth")
			if c == nil || c.Status != metav1.ConditionFalse ||
				!strings.Contains(c.Message, "interpret health of ConfigMap shop/c: line 3: nil") {
				return fmt.Sprintf("the condition is %+v", c)
			}
			if s := work.Status.ManifestStatuses; len(s) != 1 || s[0].Status == nil || s[0].Health != "Unknown" {
				return fmt.Sprintf("reported is %+v", s)
			}
			messages := strings.Join(w.Events(), "\n")
			if !strings.Contains(messages, "Work") ||
				!strings.Contains(messages, `cluster "m1": interpret health of ConfigMap shop/c: line 3: nil`) {
				return "told is " + messages
			}
			return ""
		})
		broken.Store(false)
		w.set(work, manifest(membertest.ConfigMap, "shop", "2"))
		w.Eventually("it is mended", func() string {
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
				return err.Error()
			}
			if c := meta.FindStatusCondition(work.Status.Conditions, "InterpretHealth"); c != nil {
				return fmt.Sprintf("the condition is %+v", c)
			}
			return ""
		})
	})
}

// A Retain that fails stops the change; an event and a condition report the error, as for every other operation.
func TestRetainFailureIsAnEventOfTheTemplate(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		var broken atomic.Bool
		w := newWorld(t, Options{Interpreter: interpret.New(
			interpret.Kinds{membertest.ConfigMap.GroupKind(): &interpret.Hooks{
				Retain: func(_ context.Context, desired, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
					if broken.Load() {
						return nil, errors.New("line 2: nil")
					}
					return desired, nil
				},
			}})})
		work := w.work(manifest(membertest.ConfigMap, "shop", "1"))
		w.applied(work)
		broken.Store(true)
		w.set(work, manifest(membertest.ConfigMap, "shop", "2"))
		w.Eventually("an event and a condition report it", func() string {
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
				return err.Error()
			}
			c := meta.FindStatusCondition(work.Status.Conditions, "Retain")
			if c == nil || c.Status != metav1.ConditionFalse || c.Reason != interpret.ReasonFault ||
				!strings.Contains(c.Message, "retain member values of ConfigMap shop/c: line 2: nil") {
				return fmt.Sprintf("the condition is %+v", c)
			}
			if meta.IsStatusConditionTrue(work.Status.Conditions, "Applied") {
				return "it counts as applied"
			}
			messages := strings.Join(w.Events(), "\n")
			if !strings.Contains(messages, "RetainFailed") ||
				!strings.Contains(messages, `cluster "m1": retain member values of ConfigMap shop/c: line 2: nil`) {
				return "told is " + messages
			}
			return ""
		})
		broken.Store(false)
		w.set(work, manifest(membertest.ConfigMap, "shop", "3"))
		w.Eventually("it is mended", func() string {
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
				return err.Error()
			}
			if c := meta.FindStatusCondition(work.Status.Conditions, "Retain"); c != nil {
				return fmt.Sprintf("the condition is %+v", c)
			}
			return ""
		})
	})
}

func TestTooLargeStatusIsReportedWithoutIt(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, Options{Interpreter: interpret.New(
			interpret.Kinds{membertest.ConfigMap.GroupKind(): &interpret.Hooks{
				Reflect: func(context.Context, *unstructured.Unstructured) (map[string]any, error) {
					return map[string]any{"log": strings.Repeat("x", 300<<10)}, nil
				},
			}})})
		work := w.work(manifest(membertest.ConfigMap, "shop", "1"))
		w.applied(work)
		w.Eventually("an event and a condition report it", func() string {
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
				return err.Error()
			}
			c := meta.FindStatusCondition(work.Status.Conditions, "InterpretStatus")
			if c == nil || c.Status != metav1.ConditionFalse ||
				!strings.Contains(c.Message, "its status has 307210 bytes as JSON, but the hub stores at most 262144") {
				return fmt.Sprintf("the condition is %+v", c)
			}
			if messages := strings.Join(w.Events(), "\n"); !strings.Contains(messages, "ReflectStatusFailed") {
				return "told is " + messages
			}
			return ""
		})
	})
}
