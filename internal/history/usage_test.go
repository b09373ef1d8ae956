package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/internal/core/explain/usage"
)

func TestUsageAtATime(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		start := minute(0).Time
		at := func(hours int) time.Time { return start.Add(time.Duration(hours) * time.Hour) }
		eu, us := usage.Sample{Namespace: "shop", Cluster: "eu", CPU: 1000, Memory: 1 << 40},
			usage.Sample{Namespace: "bank", Cluster: "us", Memory: 1}
		more := eu
		more.CPU = 2000
		var many []usage.Sample
		for i := range usageChunk { // they are written in more than one statement
			many = append(many, usage.Sample{Namespace: fmt.Sprintf("n%04d", i), Cluster: "asia", CPU: 1})
		}
		for hours, samples := range map[int][]usage.Sample{0: append(many, eu, us), 24: {more}, 48: nil} {
			for range 2 { // a sample is written once
				if err := s.RecordUsage(t.Context(), samples, at(hours)); err != nil {
					t.Fatal(err)
				}
			}
		}
		// A sample that is not complete does not count.
		begun := row{usageTable, []any{"shop", "eu", timeText(new(metav1.NewTime(at(30)))), 1, 1}}
		if err := s.upsert(t.Context(), []row{begun}); err != nil {
			t.Fatal(err)
		}
		check := func(s *Store) {
			t.Helper()
			for name, c := range map[string]struct {
				hours int
				f     Filter
				want  []usage.Sample
			}{
				"before the first":  {-1, Filter{Cluster: "eu"}, nil},
				"at the first":      {0, Filter{Cluster: "eu"}, []usage.Sample{eu}},
				"until the next":    {23, Filter{Cluster: "eu"}, []usage.Sample{eu}},
				"the next":          {24, Filter{}, []usage.Sample{more}},
				"not complete":      {31, Filter{}, []usage.Sample{more}},
				"of a namespace":    {4, Filter{Namespaces: []string{"bank"}}, []usage.Sample{us}},
				"of no namespace":   {4, Filter{Namespaces: []string{}}, []usage.Sample{}},
				"nothing requested": {49, Filter{}, []usage.Sample{}},
				"too late":          {75, Filter{}, nil},
			} {
				got, err := s.UsageAt(t.Context(), c.f, at(c.hours))
				if err != nil || !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
					t.Errorf("%s: it is %v, want %v: %v", name, got, c.want, err)
				}
			}
		}
		check(s)
		var archive bytes.Buffer
		if _, err := s.Export(t.Context(), &archive); err != nil {
			t.Fatal(err)
		}
		imported := openSQLite(t, t.TempDir())
		if _, err := imported.Import(t.Context(), &archive); err != nil {
			t.Fatal(err)
		}
		check(imported)
		if err := s.Delete(t.Context(), DefaultRetention, at(1).Add(usageKept)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.UsageAt(t.Context(), Filter{}, at(2)); got != nil || err != nil {
			t.Errorf("rows are not deleted by their age: %v, %v", got, err)
		}
		if got, err := s.UsageAt(t.Context(), Filter{}, at(25)); len(got) != 1 || err != nil {
			t.Errorf("newer rows are deleted: %v, %v", got, err)
		}
	})
}

func TestUsageIsAnsweredForNamespacesOfTheUser(t *testing.T) {
	store := openSQLite(t, t.TempDir())
	now := minute(0).Time
	samples := []usage.Sample{{Namespace: "shop", Cluster: "eu", CPU: 1}, {Namespace: "bank", Cluster: "us", CPU: 2}}
	if err := store.RecordUsage(t.Context(), samples, now); err != nil {
		t.Fatal(err)
	}
	source := NewSource(func(context.Context) (*Store, error) { return store, nil })
	handler := Handler(source, func(_ *http.Request, namespace string) error {
		if namespace != "shop" {
			return apierrors.NewForbidden(Resource, "", errors.New("denied"))
		}
		return nil
	}, func() time.Time { return now })
	for query, want := range map[string]string{
		"?namespace=shop": `[{"namespace":"shop","cluster":"eu","cpu":1,"memory":0}]`,
		"?namespace=shop&at=" + now.Add(-time.Hour).UTC().Format(time.RFC3339): "null",
		"":                               `"code":403`,
		"?namespace=bank":                `"code":403`,
		"?namespace=shop&namespace=bank": `"code":403`,
	} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, UsagePath+query, nil))
		if got := strings.TrimSpace(answer.Body.String()); got != want && !strings.Contains(got, want) {
			t.Errorf("%s: the answer is %s, want %s", query, got, want)
		}
	}
}
