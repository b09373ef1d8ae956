# What may be asked of this repository. Everything installs itself through the Go module client.
SHELL := /bin/bash
GO ?= go
KUBERNETES_VERSION := $(shell $(GO) list -m -f '{{.Version}}' k8s.io/kubernetes 2>/dev/null)
COMMIT := $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w \
	-X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION) \
	-X k8s.io/component-base/version.gitCommit=$(COMMIT) \
	-X k8s.io/component-base/version.gitTreeState=clean
TOOL := $(GO) tool -modfile=tools/go.mod
# The core is pure, so its tests are quick and run with the race detector; so do the controllers'.
CORE := ./api/... ./internal/core/... ./internal/scope/... ./internal/commit/...
CONTROLLERS := ./internal/controller/... ./internal/member/... ./internal/template/... ./internal/capacity/... ./internal/interpreter/...

.DEFAULT_GOAL := help
.PHONY: help build demo test fuzz check bench generate

help: ## Show what may be asked.
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build bin/argosy. The first build compiles Kubernetes and takes some minutes.
	@if [ ! -x bin/argosy ]; then echo "building argosy: the first build compiles etcd and Kubernetes, which takes 3 to 5 minutes; then seconds"; fi
	@mkdir -p bin
	@./hack/progress.sh "building argosy" $(GO) build -ldflags '$(LDFLAGS)' -o bin/argosy ./cmd/argosy

demo: build ## A hub, two simulated members, and an OpenKruise CloneSet on its way through them.
	@bin/argosy demo $(ARGS)

test: build ## All tests, the ones on real API servers included.
	@echo "core, and with the race detector core and controllers (-short: a tenth of the random cases, which ran in full before)"
	$(GO) test $(CORE)
	$(GO) test -race -short $(CORE) $(CONTROLLERS)
	@echo "each fuzz target for three seconds; make fuzz does it longer"
	@GO=$(GO) FUZZTIME=3s FUZZ= ./hack/fuzz.sh
	@echo "everything else, on real API servers"
	ARGOSY_BINARY=$(CURDIR)/bin/argosy $(GO) test -timeout 30m -p 2 $$($(GO) list ./... | grep -vE '/(api|internal/core|internal/scope|internal/commit|internal/controller|internal/member|internal/template|internal/capacity|internal/interpreter)(/|$$)')

fuzz: ## What users may write, at random: FUZZTIME=1m for each target, FUZZ=NAME for some.
	@GO=$(GO) ./hack/fuzz.sh

check: ## Format, vet, lint with the import rules, core tests: under a minute when warm.
	@out=$$(gofmt -l api cmd internal test); if [ -n "$$out" ]; then echo "not formatted, run gofmt -w:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
	$(GO) test $(CORE)

bench: build ## The figures of ARCHITECTURE.md section 6, beside their targets; also as bench.json.
	@bin/argosy bench --output bench.json $(ARGS)

generate: ## Make deepcopy functions and CRDs again from the API types.
	$(TOOL) controller-gen object paths=./api/...
	$(TOOL) controller-gen crd:crdVersions=v1 paths=./api/... output:crd:dir=api/crds
