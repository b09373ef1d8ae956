package definition

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func read(spec string) ([]Kind, error) {
	return Read(fstest.MapFS{"shops.yaml": {Data: []byte(
		"group: g\nkind: Shop\nplural: shops\nversions: [{name: v1, spec: " + spec + "}]\n")}})
}

func TestNotation(t *testing.T) {
	for spec, want := range map[string]string{
		`{r: int32 - How many.}`:               `{"type":"object","properties":{"r":{"description":"How many.","type":"integer","format":"int32"}}}`,
		`{r!: "[string]", l: [string]}`:        "", // no type, said below
		`{l!: [string]}`:                       `{"type":"object","required":["l"],"properties":{"l":{"type":"array","items":{"type":"string"}}}}`,
		`{m: {"*": bool}}`:                     `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"boolean"}}}}`,
		`{e: "enum(A, B)"}`:                    `{"type":"object","properties":{"e":{"type":"string","enum":["A","B"]}}}`,
		`{"...": any, p: intstr}`:              `{"type":"object","properties":{"p":{"x-kubernetes-int-or-string":true}},"x-kubernetes-preserve-unknown-fields":true}`,
		`{old~: string, new: string}`:          `{"type":"object","properties":{"new":{"type":"string"}}}`,
		`{c^: string}`:                         `{"type":"object","properties":{"c":{"type":"string"}}}`,
		`{s: {matchLabels: {"*": string}}}`:    `{"type":"object","properties":{"s":{"type":"object","properties":{"matchLabels":{"type":"object","additionalProperties":{"type":"string"}}}}}}`,
		`{s: atomic}`:                          `{"type":"object","properties":{"s":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-map-type":"atomic"}}}`,
		`{t: any - The pod. It says "a - b".}`: `{"type":"object","properties":{"t":{"description":"The pod. It says \"a - b\".","type":"object","x-kubernetes-preserve-unknown-fields":true}}}`,
	} {
		kinds, err := read(spec)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), `read shops.yaml: v1: spec.r: "[string]" is no type`) {
				t.Errorf("%s: %v", spec, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		got, err := json.Marshal(kinds[0].Schema("v1").Properties["spec"])
		if err != nil || string(got) != want {
			t.Errorf("%s:\n got %s %v\nwant %s", spec, got, err, want)
		}
	}
}

// What a hub rewrites it must let in; a member has never heard of it.
func TestMembersRefuseAlternativeSpellings(t *testing.T) {
	kinds, err := read(`{old~: string, new: string}`)
	if err != nil {
		t.Fatal(err)
	}
	knows := func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		_, ok := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["old"]
		return ok
	}
	if !knows(kinds[0].Hub()) || knows(kinds[0].Member("v1")) {
		t.Errorf("hub %v, member %v", knows(kinds[0].Hub()), knows(kinds[0].Member("v1")))
	}
}

func TestErrorNamesTheInvalidFile(t *testing.T) {
	for spec, want := range map[string]string{
		`{a: {b: [string, bool]}}`: "spec.a.b: a list names one type, not 2",
		`{a: 5}`:                   "spec.a: 5 is no type",
		`{a: strng}`:               `spec.a: "strng" is no type`,
	} {
		if _, err := read(spec); err == nil || !strings.Contains(err.Error(), "read shops.yaml: v1: "+want) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
}

// The spec of an enclosed kind is written once. Its enums have the values of both versions.
func TestASpecWithinAnotherIsTheOtherKinds(t *testing.T) {
	inner := `{group: apps.example.io, kind: Shop, plural: shops, versions: [
		{name: v2, spec: {name!: string, size: int32, old~: string, door: {type: "enum(A, B)", lock!: bool}}},
		{name: v1, spec: {name!: string, colour: string, door: {type: "enum(B, C)"}}}]}`
	outer := func(field string) (*apiextensionsv1.JSONSchemaProps, error) {
		kinds, err := Read(fstest.MapFS{
			"shops.yaml":   {Data: []byte(inner)},
			"streets.yaml": {Data: []byte(`{group: apps.example.io, kind: Street, plural: streets, versions: [{name: v1, spec: {shop: "` + field + `"}}]}`)},
		})
		if err != nil {
			return nil, err
		}
		s := kinds[1].Hub().Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["shop"]
		return &s, nil
	}
	for field, want := range map[string]string{
		"spec of Shop v2 - What is sold.": `{"description":"What is sold.","type":"object","required":["name"],"properties":{"door":{"type":"object","required":["lock"],"properties":{"lock":{"type":"boolean"},"type":{"type":"string","enum":["A","B"]}}},"name":{"type":"string"},"size":{"type":"integer","format":"int32"}}}`,
		"spec of Shop v1 or v2":           `{"type":"object","required":["name"],"properties":{"colour":{"type":"string"},"door":{"type":"object","properties":{"lock":{"type":"boolean"},"type":{"type":"string","enum":["B","C","A"]}}},"name":{"type":"string"},"size":{"type":"integer","format":"int32"}}}`,
	} {
		s, err := outer(field)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(s); err != nil || string(got) != want {
			t.Errorf("%s:\n got %s %v\nwant %s", field, got, err, want)
		}
	}
	for field, want := range map[string]string{
		"spec of Shop v3":   `read streets.yaml: v1: spec.shop: no Shop of version "v3" is defined beside it`,
		"spec of Street v1": `read streets.yaml: v1: spec.shop.shop: no Street of version "v1" is defined beside it`,
	} {
		if _, err := outer(field); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", field, err, want)
		}
	}
}

func TestTheHubAloneShowsWorkloadsAmongAll(t *testing.T) {
	kinds, err := Read(fstest.MapFS{"a.yaml": {Data: []byte(
		"{group: g.io, kind: A, plural: as, all: true, versions: [{name: v1}]}")}})
	if err != nil {
		t.Fatal(err)
	}
	if got := kinds[0].Hub().Spec.Names.Categories; len(got) != 1 || got[0] != "all" {
		t.Errorf("on the hub its categories are %v", got)
	}
	if got := kinds[0].Member("v1").Spec.Names.Categories; got != nil {
		t.Errorf("in members, where the project defines it, they are %v", got)
	}
}
