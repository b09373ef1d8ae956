package member

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestStoreKeepsWhatTheLastListSays(t *testing.T) {
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	list := func(names ...types.NamespacedName) (all []*trimmed[string]) {
		for _, name := range names {
			all = append(all, &trimmed[string]{ObjectMeta: metav1.ObjectMeta{Name: name.Name}, kept: "listed"})
		}
		return all
	}
	for name, c := range map[string]struct {
		steps  []func(*values[string])
		names  string
		listed bool
	}{
		"nothing has happened": {},
		"an object before the first list": {steps: []func(*values[string]){
			func(s *values[string]) { s.set(a, "x") }, func(s *values[string]) { s.drop(b) }}},
		"a list after it": {[]func(*values[string]){
			func(s *values[string]) { s.set(a, "x") }, func(s *values[string]) { s.replace(list(b)) }}, "b", true},
		"an object after a list": {[]func(*values[string]){
			func(s *values[string]) { s.replace(list(b)) }, func(s *values[string]) { s.set(a, "x") }}, "a b", true},
		"a missing right": {[]func(*values[string]){(*values[string]).lacksRight}, "", true},
		"a right that is given later": {[]func(*values[string]){(*values[string]).lacksRight,
			func(s *values[string]) { s.replace(list(a)) }}, "a", true},
		"a right that is taken away": {[]func(*values[string]){
			func(s *values[string]) { s.replace(list(a)) }, (*values[string]).lacksRight}, "a", true},
		"a list without objects": {[]func(*values[string]){
			func(s *values[string]) { s.replace(nil) }, func(s *values[string]) { s.replace(nil) }}, "", true},
	} {
		s := newValues(func([]change[string]) {})
		for _, step := range c.steps {
			step(s)
		}
		names := ""
		listed := s.visit(func(types.NamespacedName, string) {})
		for _, object := range slices.SortedFunc(maps.Keys(s.all), func(a, b types.NamespacedName) int {
			return strings.Compare(a.Name, b.Name)
		}) {
			names += " " + object.Name
		}
		if names != "" {
			names = names[1:]
		}
		if names != c.names || listed != c.listed {
			t.Errorf("%s: %q, listed: %t", name, names, listed)
		}
	}
}

// A list that succeeds while another request is refused must not be lost.
func TestMissingRightNeverReplacesAList(t *testing.T) {
	for range 200 {
		s := newValues(func([]change[string]) {})
		var both sync.WaitGroup
		both.Go(s.lacksRight)
		both.Go(func() { s.replace([]*trimmed[string]{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, kept: "x"}}) })
		both.Wait()
		if _, listed := s.get(types.NamespacedName{}); !listed || len(s.all) != 1 {
			t.Fatalf("the list is lost: %v", s.all)
		}
	}
}
