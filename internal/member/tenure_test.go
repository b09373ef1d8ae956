package member_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func TestOnlyOwningHubWritesToMember(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t, membertest.Lease)
		s.NeedNamespaces()
		s.Put(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: "default"}})
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC))
		hubs := map[string]*member.Member{}
		taken := make(chan string, 10)
		for _, hub := range []string{"a", "b"} {
			members, m, _ := joined(t, s, member.Options{Clock: clock,
				Self: tenure.Self{Hub: hub, Address: "https://" + hub, Run: hub + "1"}})
			members.OnTaken(func(string) { taken <- hub })
			hubs[hub] = m
		}
		a, b := hubs["a"], hubs["b"]
		ctx := t.Context()

		// 1. The first that writes stamps the member, and makes the namespace of the stamp.
		if _, err := a.Create(ctx, configMap("c", map[string]string{"by": "a"}, ours)); err != nil {
			t.Fatal(err)
		}
		before := len(s.Writes())

		// 2. The other is refused whatever it would write, and reads.
		got, err := b.Get(ctx, configMap("c", nil, nil).GroupVersionKind(), "default", "c")
		if err != nil || got == nil {
			t.Fatalf("the other hub reads %v, %v", got, err)
		}
		_, create := b.Create(ctx, configMap("d", nil, ours))
		_, apply := b.Apply(ctx, configMap("c", map[string]string{"by": "b"}, ours), got)
		for story, err := range map[string]error{"create": create, "apply": apply, "delete": b.Delete(ctx, got),
			"release":       b.Release(ctx, got),
			"by the client": b.Client().Resource(configMaps).Namespace("default").Delete(ctx, "c", metav1.DeleteOptions{})} {
			if !errors.Is(err, member.ErrNotOwner) || !strings.Contains(err.Error(), "https://a") {
				t.Errorf("%s: %v, want that the hub at https://a holds it", story, err)
			}
		}
		if hub := <-taken; hub != "b" || len(taken) > 0 {
			t.Errorf("%s was told that it lost the member, and %d more", hub, len(taken))
		}
		if got := s.Writes()[before:]; len(got) > 0 {
			t.Errorf("the other hub wrote %v", got)
		}

		// 3. The stamp costs a write per period, and none besides.
		for range 3 {
			clock.SetTime(clock.Now().Add(tenure.RenewPeriod / 3))
			if _, err := a.EnsureOwnership(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Writes()[before:]; !slices.Equal(got, []string{"update leases karmada-cluster/argosy-hub"}) {
			t.Errorf("after a period the member was written to: %v, want one renewal", got)
		}

		// 4. A user's join has the other hub hold it: the first stops within a second.
		lease := s.Object(membertest.Lease, "karmada-cluster", "argosy-hub")
		lease.Object["spec"].(map[string]any)["holderIdentity"] = "b"
		lease.SetAnnotations(nil)
		s.Put(lease)
		clock.SetTime(clock.Now().Add(time.Second))
		if err := a.Delete(ctx, got); !errors.Is(err, member.ErrNotOwner) {
			t.Errorf("the loser deletes: %v", err)
		}
		if _, err := b.Apply(ctx, configMap("c", map[string]string{"by": "b"}, ours), got); err != nil {
			t.Errorf("the winner cannot write: %v", err)
		}

		// 5. The loser leaves the stamp alone when it goes, the winner takes it along.
		if err := a.Leave(ctx); err != nil {
			t.Fatal(err)
		}
		if s.Object(membertest.Lease, "karmada-cluster", "argosy-hub") == nil {
			t.Error("the loser took the winner's stamp off")
		}
		if err := b.Leave(ctx); err != nil {
			t.Fatal(err)
		}
		if s.Object(membertest.Lease, "karmada-cluster", "argosy-hub") != nil {
			t.Error("the stamp stays after its hub has gone")
		}
	})
}

// A member that always reports a conflict costs a few requests, and is reported.
func TestStampConflictsEndAfterLimit(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t, membertest.Lease)
		asked := 0
		s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/leases") || r.Method == http.MethodGet {
				return false
			}
			asked++
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`))
			return true
		})
		_, m, _ := joined(t, s, member.Options{Self: tenure.Self{Hub: "a", Address: "https://a", Run: "a1"}})
		if _, err := m.Create(t.Context(), configMap("c", nil, ours)); err == nil ||
			!strings.Contains(err.Error(), "find out what writes it") {
			t.Errorf("it ended with %v", err)
		}
		if asked == 0 || asked > 20 {
			t.Errorf("the lease was written %d times", asked)
		}
	})
}

func TestAMemberWithoutLeasesIsWrittenToAsBeforeThereWereStamps(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		_, m, _ := joined(t, s, member.Options{Self: tenure.Self{Hub: "a", Run: "a1"}})
		if _, err := m.Create(t.Context(), configMap("c", nil, ours)); err != nil {
			t.Error(err)
		}
	})
}
