# Tasks of this repository. All tools are installed through the Go module client.
SHELL := /bin/bash
GO ?= go
# Without the paths of this folder in them, compiled packages are shared with all other clones.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath)
KUBERNETES_VERSION := $(shell $(GO) list -m -f '{{.Version}}' k8s.io/kubernetes 2>/dev/null)
# What the binary says of its source (internal/version). The date is that of the commit, so that the same source makes the same binary.
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --always --abbrev=12 --dirty 2>/dev/null)
COMMIT := $(shell git rev-parse HEAD 2>/dev/null)
DATE := $(shell TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null)
TREE := $(if $(COMMIT),$(if $(filter %-dirty,$(shell git describe --always --dirty 2>/dev/null)),dirty,clean))
OURS := github.com/argosy-io/argosy/internal/version
LDFLAGS := -s -w \
	-X $(OURS).version=$(VERSION) -X $(OURS).commit=$(COMMIT) -X $(OURS).date=$(DATE) -X $(OURS).treeState=$(TREE) \
	-X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION) \
	-X k8s.io/component-base/version.gitCommit=$(COMMIT) \
	-X k8s.io/component-base/version.buildDate=$(DATE) \
	-X k8s.io/component-base/version.gitTreeState=$(TREE)
TOOL := $(GO) tool -modfile=tools/go.mod
# What a release is made for, and where it goes. Nothing of this machine is in it: the same commit makes the same bytes.
PLATFORMS := linux/amd64 linux/arm64
DIST := $(CURDIR)/dist
BINARIES := $(foreach platform,$(PLATFORMS),$(DIST)/argosy-$(subst /,-,$(platform)))

.DEFAULT_GOAL := help
.PHONY: help build ldflags console demo test test-long test-peers upgrade-test release-test fuzz check bench generate binaries image release

help: ## Show this help.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build bin/argosy. The first build downloads and compiles Kubernetes, which takes about 6 minutes on 2 cores.
	@if [ ! -x bin/argosy ]; then echo "The first build downloads and compiles etcd and Kubernetes, which takes about 6 minutes on 2 cores. Later builds take seconds."; fi
	@mkdir -p bin
	@./hack/progress.sh "building argosy" $(GO) build -v -ldflags '$(LDFLAGS)' -o bin/argosy ./cmd/argosy

ldflags:
	@echo '$(LDFLAGS)'

console: ## Bundle the pages of the web console with esbuild.
	@GO=$(GO) ./hack/console.sh internal/console/web/dist

demo: build ## Propagate an OpenKruise CloneSet through a hub to two simulated members.
	@bin/argosy demo $(ARGS)

test: build ## Run the tests that every change must pass, in at most 8 minutes.
	@GO=$(GO) ./hack/test.sh gate

test-long: build ## Run all tests, with fuzzing, the race detector and an upgrade, in about 30 minutes.
	@GO=$(GO) ./hack/test.sh long

test-peers: build ## Run programs that others wrote against the hub: those in PEERS=DIR (default ~/.cache/argosy-peers).
	ARGOSY_BINARY=$(CURDIR)/bin/argosy $(GO) test -count=1 -v -timeout 60m ./test/peers/... | grep -vE '^=== '; exit $${PIPESTATUS[0]}

upgrade-test: build ## Test the upgrade from PREVIOUS=REF (default: the last tag, otherwise hack/previous).
	@previous=$$(PREVIOUS='$(PREVIOUS)' ./hack/previous.sh) && \
	ARGOSY_BINARY=$(CURDIR)/bin/argosy ARGOSY_PREVIOUS_BINARY=$$previous $(GO) test -count=1 -v -timeout 15m -run 'ThePreviousVersion' ./test/up

release-test: ## Build a release in a temporary folder and check its files. The first build takes about 10 minutes.
	@dist=$$(mktemp -d) && trap 'rm -rf "$$dist"' EXIT && $(MAKE) -s release DIST="$$dist" && \
	cd tools && ARGOSY_DIST="$$dist" ARGOSY_VERSION='$(VERSION)' $(GO) test -count=1 -v -run '^TestARelease' ./image

fuzz: ## Run the fuzz tests. FUZZTIME=1m sets the time for each, FUZZ=NAME selects some.
	@GO=$(GO) ./hack/fuzz.sh

check: ## Check format, vet, static analysis, generated files, tools, chart and alerts, in 2 minutes with a warm cache.
	@out=$$(gofmt -l api cmd internal test tools); if [ -n "$$out" ]; then echo "not formatted, run gofmt -w:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
	cd tools && $(GO) vet ./... && $(GO) tool staticcheck ./... && $(GO) run ./house --root .. --limits house/limits.txt && $(GO) test -vet=off -count=1 -short ./...
	cd test/alerts && $(GO) test -vet=off -count=1 ./...
	@dist=$$(mktemp -d) && trap 'rm -rf "$$dist"' EXIT && GO=$(GO) ./hack/console.sh "$$dist" && \
	if ! diff -rq "$$dist" internal/console/web/dist; then echo "the console's pages are out of date: run make console, commit them"; exit 1; fi
	@sum() { find api docs/reference -name 'zz_generated.*' -o -path 'api/crds/*.yaml' -o -path 'docs/reference/*.md' | LC_ALL=C sort | \
		xargs sha256sum; }; before=$$(sum); $(MAKE) -s generate && \
	if [ "$$before" != "$$(sum)" ]; then echo "generated files were out of date: make generate has updated them, commit them"; exit 1; fi

bench: build ## Measure the figures and compare them with their targets; also writes bench.json.
	@$(GO) run ./test/bench --output bench.json $(ARGS)

generate: ## Generate deepcopy functions and CRDs from the API types, and docs/reference from the source.
	$(TOOL) controller-gen object paths=./api/...
	$(TOOL) controller-gen crd:crdVersions=v1 paths=./api/... output:crd:dir=api/crds
	cd tools && $(GO) run ./reference --root ..

binaries:
	@mkdir -p $(DIST)
	@for platform in $(PLATFORMS); do \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} ./hack/progress.sh "building argosy for $$platform" \
			$(GO) build -v -ldflags '$(LDFLAGS)' -o $(DIST)/argosy-$${platform/\//-} ./cmd/argosy || exit 1; \
	done

image: binaries ## Build the container image for amd64 and arm64 as an OCI layout in dist/image, without a container runtime.
	cd tools && $(GO) run ./image --version '$(VERSION)' --commit '$(COMMIT)' --date '$(DATE)' --output $(DIST)/image --archive $(DIST)/argosy-image.tar \
		$(foreach platform,$(PLATFORMS),--binary $(platform)=$(DIST)/argosy-$(subst /,-,$(platform)))

release: image ## Build a release in dist: binaries, SBOMs, image, Helm chart and SHA256SUMS.
	@rm -f $(DIST)/argosy-*.tgz
	@for binary in $(BINARIES); do $(TOOL) cyclonedx-gomod bin -json -noserial -notimestamp -std -version '$(VERSION)' -output $$binary.cdx.json $$binary || exit 1; done
	cd tools && $(GO) run ./chart --chart $(CURDIR)/charts/argosy --version '$(VERSION)' --date '$(DATE)' --output $(DIST)
	cd $(DIST) && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum > SHA256SUMS
