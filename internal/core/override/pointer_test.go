package override

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// TestEditMatchesPatchLibrary runs random patches through the library that Karmada uses and through edit.
func TestEditMatchesPatchLibrary(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	pick := func(from ...string) string { return from[r.Intn(len(from))] }
	paths := func() string {
		return pick("/a", "/a/b", "/a/b/c", "/l", "/l/0", "/l/1", "/l/2", "/l/5", "/l/-", "/l/-1", "/l/0/x", "/n", "/n/x",
			"/a~1b", "/a~0b", "/m/new", "/s/x", "/l/x")
	}
	values := func() string { return pick(`1`, `"s"`, `null`, `{"x":1}`, `[1,2]`, `true`) }

	agreed := 0
	rounds := 20000
	if testing.Short() {
		rounds /= 10
	}
	for n := range rounds {
		const doc = `{"a":{"b":{"c":1}},"l":[{"x":1},2,[3]],"n":null,"a/b":1,"a~b":2,"m":{},"s":"text"}`
		op := policyv1alpha1.OverriderOperator(pick("add", "remove", "replace"))
		path, value := paths(), values()

		patch, err := jsonpatch.DecodePatch([]byte(fmt.Sprintf(`[{"op":%q,"path":%q,"value":%s}]`, op, path, value)))
		if err != nil {
			t.Fatal(err)
		}
		wantRaw, wantErr := patch.Apply([]byte(doc))

		var before, v any
		_ = json.Unmarshal([]byte(doc), &before)
		_ = json.Unmarshal([]byte(value), &v)
		p, err := parsePointer(path)
		if err != nil {
			t.Fatal(err)
		}
		got, gotErr := edit(before, p, op, v)

		if (gotErr == nil) != (wantErr == nil) {
			t.Fatalf("%d: %s %s %s: %v, the library returns %v", n, op, path, value, gotErr, wantErr)
		}
		if gotErr != nil {
			continue
		}
		var want any
		_ = json.Unmarshal(wantRaw, &want)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%d: %s %s %s:\n got %v\nwant %v", n, op, path, value, got, want)
		}
		agreed++
	}
	if agreed < rounds/4 {
		t.Fatalf("only %d patches went through: the test does not test", agreed)
	}
}

func TestParseImage(t *testing.T) {
	for name, want := range map[string]image{
		"nginx":                                {repository: "nginx"},
		"nginx:1":                              {repository: "nginx", tag: "1"},
		"library/nginx:1":                      {repository: "library/nginx", tag: "1"},
		"localhost/nginx":                      {registry: "localhost", repository: "nginx"},
		"localhost:5000/a/b:1":                 {registry: "localhost:5000", repository: "a/b", tag: "1"},
		"docker.io/library/nginx@sha256:a":     {registry: "docker.io", repository: "library/nginx", digest: "sha256:a"},
		"quay.io/a/b/c:1@sha256:a":             {registry: "quay.io", repository: "a/b/c", tag: "1", digest: "sha256:a"},
		"registry.example.com:5000/team/image": {registry: "registry.example.com:5000", repository: "team/image"},
	} {
		if got := parseImage(name); got != want {
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
		if got := parseImage(name).String(); got != name {
			t.Errorf("%s was written as %s", name, got)
		}
	}
}
