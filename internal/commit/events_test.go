package commit

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

func TestAnEventRepeatsWhatMembersAndWebhooksSayInBrief(t *testing.T) {
	fake := record.NewFakeRecorder(10)
	e := Events{EventRecorder: fake}
	long := strings.Repeat("é", 1<<20)
	e.Event(&corev1.Pod{}, corev1.EventTypeWarning, "R", long)
	e.Eventf(&corev1.Pod{}, corev1.EventTypeWarning, "R", "cluster %q: %s", "m1", long)
	e.Succeeded("R", long, &corev1.Pod{})
	e.Event(&corev1.Pod{}, corev1.EventTypeWarning, "R", "short")
	for range 3 {
		if told := <-fake.Events; len(told) > eventLimit+100 || !strings.HasSuffix(told, "é…") {
			t.Errorf("an event has %d bytes: %.60s", len(told), told)
		}
	}
	if told := <-fake.Events; told != "Warning R short" {
		t.Errorf("a short one is told as %s", told)
	}
}
