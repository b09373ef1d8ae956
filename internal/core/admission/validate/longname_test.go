package validate

import (
	"strings"
	"testing"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
)

func TestServiceImportsHaveNamesOfServices(t *testing.T) {
	for name, valid := range map[string]bool{"web": true, strings.Repeat("x", 63): true, strings.Repeat("x", 64): false,
		"a.b": false} {
		i := &multiclusterv1alpha1.ServiceImport{}
		i.Name = name
		if errs := ServiceImport(i); (len(errs) == 0) != valid {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
