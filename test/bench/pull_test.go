package main

import "testing"

func TestWritesOfPropagationAreCounted(t *testing.T) {
	for line, want := range map[string]bool{
		`apiserver_request_total{code="201",component="apiserver",dry_run="",group="work.karmada.io",resource="works",scope="resource",subresource="",verb="POST",version="v1alpha1"} 7`:        true,
		`apiserver_request_total{code="200",component="apiserver",dry_run="",group="work.karmada.io",resource="works",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 7`: true,
		`apiserver_request_total{code="409",component="apiserver",dry_run="",group="work.karmada.io",resource="works",scope="resource",subresource="status",verb="PUT",version="v1alpha1"} 7`:   false,
		`apiserver_request_total{code="200",component="apiserver",dry_run="",group="work.karmada.io",resource="works",scope="namespace",subresource="",verb="LIST",version="v1alpha1"} 7`:       false,
		`apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 7`:          false,
	} {
		if got := isPropagationWrite(line); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}
