package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestInterpretIsThereByEveryNameOfTheCommand(t *testing.T) {
	for name, want := range map[string]string{
		"argosy": "argosy interpret", "/usr/local/bin/karmadactl": "karmadactl interpret",
		"kubectl-karmada": "kubectl karmada interpret",
	} {
		var out, errOut bytes.Buffer
		if code := Main(context.Background(), []string{name, "interpret", "--show-doc"}, &out, &errOut); code != 0 ||
			!strings.Contains(out.String(), "InterpretHealth(observedObj)") {
			t.Errorf("%s: exit code %d, %s%s", name, code, out.String(), errOut.String())
		}
		out.Reset()
		if code := Main(context.Background(), []string{name, "interpret", "--help"}, &out, &errOut); code != 0 ||
			!strings.Contains(out.String(), want+" [command]") {
			t.Errorf("%s: exit code %d, its help has no %q:\n%s", name, code, want, out.String())
		}
		errOut.Reset()
		if code := Main(context.Background(), []string{name, "interpret", "--check", "-f", "none.yaml"}, &out,
			&errOut); code != 1 || !strings.Contains(errOut.String(), "none.yaml: no such file") {
			t.Errorf("%s: exit code %d of a file that is not there: %s", name, code, errOut.String())
		}
	}
}
