# forbear. `make` alone lists what there is.

GO       ?= go
FUZZTIME ?= 20s
SOAKTIME ?= 20m

# The race detector needs a C compiler; .ci/deps says so when there is none. SQLite is C
# that was translated to Go: instrumented it takes ten times as long and shows nothing.
# Nor do regular expressions, which share nothing with those who use them.
RACE = $(shell command -v gcc >/dev/null 2>&1 && echo '-race -gcflags=modernc.org/...=-race=false -gcflags=regexp/...=-race=false')

# What is built in another clone of the same commit is not built again in this one.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -trimpath)

# Tests wait for processes more than they compute: so two packages more than there are
# processors run at once, and within one those tests that may. No one debugs these
# binaries. make lint vets them.
AT_ONCE = -p $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 2)))
TESTED  = -ldflags=-w -shuffle=on -vet=off -timeout 20m -parallel 4 $(AT_ONCE)

# What compiles or checks spends up to a third of its time on collecting garbage that its
# end gives back. A test has the collector that its program has.
LESS_GC = 400
GO_TEST = GOGC=$(LESS_GC) $(GO) test -exec 'env -u GOGC'

# The product's modules, by folder, as go.work lists them.
MODULES = $(shell $(GO) list -m -f '{{.Dir}}')
# The modules apart from it: what they require lifts no version of the product.
APART = $(CURDIR)/tools $(CURDIR)/bench $(HEAVY)
# Below these are whole programs, Helm, nfpm and Hugo, which take minutes to compile: they
# are vetted after a change below their folders, and at night.
HEAVY = $(CURDIR)/tools/chart $(CURDIR)/tools/package $(CURDIR)/tools/site
VETTED = $(CURDIR)/tools $(CURDIR)/bench $(if $(ALL),$(HEAVY),$(shell for m in chart package site; do ! .ci/changed tools/$$m/ || echo $(CURDIR)/tools/$$m; done))
BIN   = $(CURDIR)/bin
FILES = git ls-files -co --exclude-standard -- '*.go' | grep -v /testdata/

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' Makefile

.PHONY: run
run: ## start forbear with a sample policy and a flaky upstream
	$(GO) run ./cmd/forbear serve

# Three rings. What a test costs stands in the test: internal/testkit/ringtest, internal/testkit/race,
# and //forbear:plain for a package that shows nothing more under the race detector. A single
# test of which that is true calls race.TooSlow.

.PHONY: quick
quick: ## run the tests of what differs from main and of what imports it, without servers
	@packages=$$(.ci/packages quick) || exit 1; \
	if [ -n "$$packages" ]; then FORBEAR_RING=quick $(GO) test -ldflags=-w -timeout 5m $(AT_ONCE) $$packages; \
	else echo "no package differs from main"; fi

.PHONY: test
test: deps raced slow plain ## run all tests that a change can break; install what they need where that can be done
	@.ci/deps missing || [ "$(CI)" != true ]

.PHONY: deps
deps:
	@.ci/deps install

# Each of these runs after one that failed, too, where make is told to keep going.
.PHONY: raced
raced: deps
	GORACE=atexit_sleep_ms=0 $(GO_TEST) $(RACE) $(TESTED) $$(.ci/packages raced)

.PHONY: plain
plain: deps
	$(GO_TEST) $(TESTED) $$(.ci/packages plain)

.PHONY: slow
slow: deps
	@tests=$$(.ci/packages tests) || exit 1; $(GO_TEST) $(TESTED) -run "$$tests" $$(.ci/packages slow)

.PHONY: nightly
nightly: test long heavy console-check tooling package-check site-check chart-check gates fuzz upgrade-check vuln ## run what a night has time for: long simulations, soak, packaging, fuzz

# Packaging, chart, site and release wait for the night, but for a change below their
# folders.
.PHONY: touched
touched: ## run the parts of nightly whose folders the change touches (SINCE=commit: where it began)
	@.ci/changed >/dev/null || exit 1; bad=0; run() { target=$$1; shift; ! .ci/changed "$$@" || $(MAKE) $$target || bad=1; }; \
	run tooling tools/go.mod tools/release/main.go tools/release/api.go tools/release/release_test.go go.work; \
	run tooling-parts tools/release/internal/ tools/release/testdata/; \
	run package-check tools/package/ deploy/package/ deploy/systemd/; \
	run chart-check tools/chart/ deploy/helm/ deploy/kustomize/; \
	run site-check tools/site/ site/; exit $$bad

.PHONY: long
long: deps ## run all tests at full size, without the race detector
	FORBEAR_RING=nightly $(GO) test $(TESTED) -timeout 3h work

.PHONY: heavy
heavy:
	@$(MAKE) vet fix static ALL=1

# What is given out. VERSION is by default that of the last tag and what came after.
VERSION ?= $(patsubst v%,%,$(shell git describe --tags --dirty --match 'v[0-9]*' 2>/dev/null || echo 0.0.0-dev))
PACK     = GOWORK=off GOFLAGS= $(GO) -C tools/package
# The Go of releases, whichever is installed: the newest 1.26, for its fixes of security,
# and one Go for all who build, so that they build the same bytes. The tests take the
# one that is installed.
RELEASE_GO ?= go1.26.10

.PHONY: package-tools
package-tools:
	@GOWORK=off GOFLAGS= GOBIN=$(BIN)/package $(GO) -C tools/package install tool

.PHONY: dist
dist: package-tools ## build the archives of a release into bin/dist (VERSION=v1.2.3)
	@rm -rf $(BIN)/dist
	@GOTOOLCHAIN=$(RELEASE_GO) $(PACK) run ./dist -version $(VERSION)

.PHONY: packages
packages: dist ## build the debs and rpms of a release, too
	@GOTOOLCHAIN=$(RELEASE_GO) $(PACK) run ./pack -version $(VERSION)

.PHONY: image
image: dist ## build the container image of a release, an OCI layout, into bin/dist/image
	@GOTOOLCHAIN=$(RELEASE_GO) $(PACK) run ./image -version $(VERSION)

# The key is an SSH key, which may be on a token or in an agent (KEY is its public half
# then). Who verifies needs ssh-keygen and the public half: docs/guides/install.md.
DIST = $(BIN)/dist
.PHONY: sign
sign: ## sign SHA256SUMS of bin/dist (KEY=a private SSH key)
	@[ -n "$(KEY)" ] || { echo "make sign: KEY is the file of an SSH key"; exit 1; }
	@[ -f $(DIST)/SHA256SUMS ] || { echo "make sign: bin/dist has no SHA256SUMS: run make packages first"; exit 1; }
	@rm -f $(DIST)/SHA256SUMS.sig
	@ssh-keygen -q -Y sign -f $(KEY) -n forbear-release $(DIST)/SHA256SUMS

.PHONY: package-check
package-check: deps package-tools ## hold what is given out against what it should be
	$(PACK) test -count=1 -timeout 15m ./...

# Two releases in a clone, and what they bring used from the tags alone.
.PHONY: tooling
tooling:
	GOWORK=off GOFLAGS= $(GO) -C tools test -count=1 -timeout 30m ./...

# The parts of the release's tool, without the rehearsal of a whole release.
.PHONY: tooling-parts
tooling-parts:
	GOWORK=off GOFLAGS= $(GO) -C tools test -count=1 ./release/internal/...

.PHONY: check
check: lint test ## everything that a change must pass

.PHONY: lint
lint: export GOGC = $(LESS_GC)
lint: format tidied vet fix static self alone api generated openapi ## the quick static checks

# A tool is built when it is first asked for, and again when its version changes.
$(BIN)/gofumpt: TOOL = mvdan.cc/gofumpt
$(BIN)/staticcheck: TOOL = honnef.co/go/tools/cmd/staticcheck
$(BIN)/oapi-codegen: TOOL = github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen
$(BIN)/govulncheck: TOOL = golang.org/x/vuln/cmd/govulncheck
$(BIN)/h2spec: TOOL = github.com/summerwind/h2spec/cmd/h2spec
$(BIN)/gofumpt $(BIN)/staticcheck $(BIN)/oapi-codegen $(BIN)/govulncheck $(BIN)/h2spec: tools/go.mod
	GOWORK=off GOBIN=$(BIN) $(GO) -C tools install $(TOOL)
	@touch $@

.PHONY: $(BIN)/forbear-release
$(BIN)/forbear-release:
	@GOWORK=off $(GO) -C tools build -o $@ ./release

.PHONY: format
format: $(BIN)/gofumpt
	@echo "gofumpt"
	@bad=$$($(FILES) | xargs $(BIN)/gofumpt -l); \
	if [ -n "$$bad" ]; then echo "not formatted (run: make fmt):"; echo "$$bad"; exit 1; fi

.PHONY: fmt
fmt: $(BIN)/gofumpt ## format the code
	@$(FILES) | xargs $(BIN)/gofumpt -w

# What a module requires is looked at without the workspace, where nothing is lent by
# the other modules.
.PHONY: tidied
tidied: $(BIN)/forbear-release
	@bad=0; $(BIN)/forbear-release alone $(GO) mod tidy -diff || { echo "run: make tidy"; bad=1; }; \
	for m in $(APART); do echo "go mod tidy -diff  $$m"; GOWORK=off $(GO) -C $$m mod tidy -diff || bad=1; done; exit $$bad

.PHONY: tidy
tidy: $(BIN)/forbear-release ## write what each module requires into its go.mod and go.sum
	@$(BIN)/forbear-release tidy
	@for m in $(APART); do GOWORK=off $(GO) -C $$m mod tidy; done

.PHONY: vet
vet:
	$(GO) vet work
	@for m in $(VETTED); do GOWORK=off $(GO) -C $$m vet ./... || exit 1; done

.PHONY: fix
fix:
	$(GO) fix -diff work
	@for m in $(VETTED); do echo "go fix -diff  $$m"; GOWORK=off $(GO) -C $$m fix -diff ./... || exit 1; done

.PHONY: static
static: $(BIN)/staticcheck
	$(BIN)/staticcheck work
	@for m in $(VETTED); do echo "staticcheck  $$m"; (cd $$m && GOWORK=off $(BIN)/staticcheck ./...) || exit 1; done

.PHONY: self
self: ## run forbear's linter on forbear itself
	$(GO) run ./lint/cmd/forbear-lint -q $(MODULES:%=%/...)

# Each module must also build as its users get it: without the workspace.
.PHONY: alone
alone: $(BIN)/forbear-release
	@$(BIN)/forbear-release alone $(GO) list -export -f '{{""}}' ./...

.PHONY: api
api: $(BIN)/forbear-release ## hold what the modules export to the last version (SINCE=main: say what is new since a commit)
	@$(BIN)/forbear-release api $(SINCE)

.PHONY: api-update
api-update: $(BIN)/forbear-release ## write down, in api/breaking.txt, what may break users of the last version
	@$(BIN)/forbear-release api -update

.PHONY: release
release: $(BIN)/forbear-release ## release all modules: VERSION=v0.1.0; ARGS=-n rehearses, -quick runs no tests
	@$(BIN)/forbear-release cut $(ARGS) $(VERSION)

.PHONY: generate
generate: $(BIN)/oapi-codegen $(BIN)/gofumpt ## generate the client of the API from its description
	$(BIN)/oapi-codegen -config tools/openapi/client.yaml -o client/client.gen.go $(OPENAPI)
	$(BIN)/gofumpt -w client/client.gen.go

# The generated files are those of the description.
.PHONY: generated
generated: $(BIN)/oapi-codegen $(BIN)/gofumpt
	@$(BIN)/oapi-codegen -config tools/openapi/client.yaml -o $(BIN)/client.gen $(OPENAPI)
	@$(BIN)/gofumpt <$(BIN)/client.gen | cmp -s - client/client.gen.go || { echo "client/client.gen.go is not what openapi.json describes: make generate"; exit 1; }

OPENAPI = cmd/forbear/internal/durable/openapi.json
# What npm installs is below bin, where no test looks for the product's files.
NODE    = bin/openapi/node_modules

.PHONY: openapi
openapi: $(NODE)/.package-lock.json ## hold the description of the API against spectral, redocly and TypeScript (needs npm)
	@$(NODE)/.bin/spectral lint -q -F hint -r tools/openapi/spectral.yaml $(OPENAPI)
	@REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true $(NODE)/.bin/redocly lint --config tools/openapi/redocly.yaml $(OPENAPI)
	@cp tools/openapi/example.ts tools/openapi/tsconfig.json bin/openapi && $(NODE)/.bin/openapi-typescript $(OPENAPI) -o bin/openapi/forbear.d.ts && $(NODE)/.bin/tsc -p bin/openapi

$(NODE)/.package-lock.json: tools/openapi/package-lock.json
	@mkdir -p bin/openapi && cp tools/openapi/package.json tools/openapi/package-lock.json bin/openapi
	npm --prefix bin/openapi ci --no-audit --no-fund --ignore-scripts
	@touch $@

# The scripts that the console vendors, and what its tests in a browser need.
CONSOLE_NODE = bin/console/node_modules
VENDORED     = console/static/vendor

$(CONSOLE_NODE)/.package-lock.json: bench/console/package-lock.json
	@mkdir -p bin/console && cp bench/console/package.json bench/console/package-lock.json bin/console
	npm --prefix bin/console ci --no-audit --no-fund --ignore-scripts
	@touch $@

.PHONY: console-node
console-node: $(CONSOLE_NODE)/.package-lock.json

.PHONY: console-vendor
console-vendor: console-node ## copy the scripts of the console from npm, at the versions of bench/console/package.json
	@cp $(CONSOLE_NODE)/htmx.org/dist/htmx.min.js $(VENDORED)/htmx.min.js
	@cp $(CONSOLE_NODE)/htmx.org/LICENSE $(VENDORED)/htmx.LICENSE
	@cp $(CONSOLE_NODE)/htmx-ext-sse/sse.js $(VENDORED)/sse.js
	@cp $(CONSOLE_NODE)/htmx-ext-sse/LICENSE $(VENDORED)/sse.LICENSE
	@cd $(VENDORED) && sha256sum htmx.min.js htmx.LICENSE sse.js sse.LICENSE

.PHONY: console-check
console-check: deps console-node ## walk the console in a browser, after changes below console/; SHORT=-short: at one size for each role
	GOWORK=off $(GO) -C bench/console test $(SHORT) -count=1 -vet=off -timeout 20m ./browser

.PHONY: console-shots
console-shots: deps ## write the pictures of the console into docs/guides
	GOWORK=off $(GO) -C bench/console test -count=1 -run TestShots ./browser -shots $(CURDIR)/docs/guides

# The site is made by Hugo, which has a module of its own; it is compiled once.
# Its links are relative: SITE_URL is for the page for what is not there, and for canonical
# addresses.
SITE_URL ?=
HUGO = $(BIN)/hugo --source $(CURDIR)/site --destination $(BIN)/site --cleanDestinationDir --panicOnWarning

.PHONY: site
site: $(BIN)/hugo simulator ## build the documentation as a site, into bin/site (SITE_URL=https://docs.example.com/)
	HUGO_PARAMS_URL=$(SITE_URL) $(HUGO)

$(BIN)/hugo: tools/site/go.sum
	GOWORK=off GOBIN=$(BIN) $(GO) -C tools/site install tool
	@touch $@

# The simulator of the page about storms. It leaves out what knows the network's
# errors, and with that net and crypto/tls: a third of its size.
.PHONY: simulator
simulator:
	@mkdir -p $(BIN)/sim
	@sed 's|ROOT|$(CURDIR)|g' site/sim/overlay/overlay.json >$(BIN)/sim-overlay.json
	GOOS=js GOARCH=wasm $(GO) build -trimpath -overlay $(BIN)/sim-overlay.json -ldflags='-s -w' -o $(BIN)/sim/forbear.wasm ./site/sim
	@cp "$$($(GO) env GOROOT)/lib/wasm/wasm_exec.js" $(BIN)/sim/

.PHONY: reference
reference: ## write docs/reference from the code
	$(GO) test -count=1 ./cmd/forbear -run TestReference -update

# The clients are installed below probe/zoo/.cache; one that cannot be is left out.
.PHONY: zoo
zoo: ## probe clients of nine languages, and write the tables of docs/clients.md and docs/compare.md (an hour)
	@mkdir -p $(BIN)
	$(GO) build -o $(BIN)/forbear ./cmd/forbear
	probe/zoo/install.sh
	probe/zoo/run.sh $(BIN)/forbear
	$(GO) run ./probe/zoo/table probe/zoo/.cache/reports/*.json

# What the simulator predicts, beside runs of real servers and clients in virtual time.
.PHONY: truth
truth: ## compare the simulator with real runs and write the figures of docs/simulator-truth.md (minutes)
	$(GO) test -count=1 -timeout 1h ./cmd/forbear/internal/sim/truth -run TestTruth -update

.PHONY: site-check
site-check: site ## look for broken links, pages without a place and foreign hosts in the site
	GOWORK=off $(GO) -C tools/site test -count=1 ./...

# What helm requires is compiled once, and takes a minute.
CHART = GOWORK=off GOFLAGS= $(GO) -C tools/chart

.PHONY: chart-tools
chart-tools:
	@GOBIN=$(BIN)/chart $(CHART) install tool

.PHONY: chart-check
chart-check: deps chart-tools ## hold the Helm chart against helm, kubeconform and forbear itself
	@$(CHART) vet ./...
	$(CHART) test -count=1 -timeout 15m ./...

.PHONY: chart
chart: chart-tools ## write the chart's copies and table, and the Kustomize bases
	$(CHART) test -count=1 -run Written . -args -update

.PHONY: bench
bench: ## measure against peers and print one table
	GOWORK=off $(GO) -C bench run ./table

.PHONY: bench-gateway
bench-gateway: ## compare forbear serve with nginx, HAProxy and others, fault by fault (ARGS=-quick: two minutes)
	GOWORK=off $(GO) -C bench run ./gateway $(ARGS)

.PHONY: bench-idempotency
bench-idempotency: ## compare idempotency keys with bare handlers and with Fiber
	GOWORK=off $(GO) -C bench run ./idempotency

.PHONY: bench-events
bench-events: ## compare a consumer of NATS on each store with a client that acknowledges
	GOWORK=off $(GO) -C bench test -run '^$$' -bench Events -benchtime 50000x ./events

.PHONY: bench-delivery
bench-delivery: ## compare durable delivery with a bare loop and with River
	GOWORK=off $(GO) -C bench run ./delivery

.PHONY: bench-instances
bench-instances: ## measure one, two and four instances on one PostgreSQL, a steady load, and a million messages swept
	GOWORK=off $(GO) -C bench run ./delivery -databases postgres -only instances,paced,swept $(ARGS)

.PHONY: bench-partial
bench-partial: ## compare what a partial failure becomes, with and without a breaker and with peers
	GOWORK=off $(GO) -C bench run ./partial $(ARGS)

.PHONY: bench-overload
bench-overload: ## compare what an overloaded server can still do, with failsafe-go's policies beside it, in virtual time
	GOWORK=off $(GO) -C bench/partial test -count=1 -run Overload -table

.PHONY: bench-stale
bench-stale: ## compare what becomes of POSTs over connections that their server has just closed
	GOWORK=off $(GO) -C bench run ./stale $(ARGS)

.PHONY: h2spec
h2spec: $(BIN)/h2spec ## hold the gateway's listeners against h2spec, for HTTP/2
	H2SPEC=$(BIN)/h2spec $(GO) test -count=1 -v -tags h2spec -run TestH2spec ./gateway

.PHONY: gates
gates: ## hold the benchmarks to their limits: allocations and ratios
	GOWORK=off $(GO) -C bench test -count=1 . ./stale

.PHONY: ablate
ablate: ## count what forbear lint finds in its labelled corpora without each of its parts (ONLY=module; hours for all)
	cd lint && $(GO) run ./field -ablate -only '$(ONLY)'

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (20s)
	@set -e; grep -rlE --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' $$file); do \
			echo "$$(dirname $$file) $$target"; \
			(cd $$(dirname $$file) && $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) .) </dev/null; \
		done; done

FROM := $(or $(FROM),$(shell git describe --tags --abbrev=0 --match 'v*' 2>/dev/null))

.PHONY: upgrade-check
upgrade-check: ## upgrade a fleet from FROM (the last release) to this checkout, while messages flow
ifeq ($(FROM),)
	@echo "NOT RUN: nothing was released yet: name a commit, FROM=..."
else
	@rm -rf $(BIN)/earlier && git worktree prune && git worktree add --quiet --detach $(BIN)/earlier $(FROM)
	$(GO) -C $(BIN)/earlier/cmd/forbear test -c -o $(BIN)/earlier.test ./internal/testkit/deliverycheck; \
	built=$$?; git worktree remove --force $(BIN)/earlier; exit $$built
	FORBEAR_TEST_EARLIER=$(BIN)/earlier.test $(GO) test -count=1 -v -run 'TestUpgrade$$' ./cmd/forbear/internal/testkit/deliverycheck
endif

.PHONY: soak
soak: ## run the soak tests alone
	FORBEAR_RING=nightly $(GO) test -run Soak -count=1 -v -timeout $(SOAKTIME) work

# Go's database of vulnerabilities comes as a module, by the proxy like all else.
.PHONY: vuln
vuln: $(BIN)/govulncheck ## look for known vulnerabilities in all modules, as a release builds them
	@cd / && GOFLAGS= $(GO) mod download golang.org/x/vulndb@latest && \
		osv=$$(GOFLAGS= $(GO) list -m -f '{{.Dir}}' golang.org/x/vulndb@latest)/data/osv && rm -rf $(BIN)/vulndb && \
		GOFLAGS= $(GO) run golang.org/x/vulndb/cmd/indexdb@latest -vulns "$$osv" -out $(BIN)/vulndb
	@GOTOOLCHAIN=$(RELEASE_GO) $(BIN)/govulncheck -tags grpcnotrace -db file://$(BIN)/vulndb work
