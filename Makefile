# What is done to this project, by name. `make` alone lists it.

# How long each fuzz target and each soak test runs.
FUZZTIME ?= 10s
SOAKTIME ?= 10m

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help test short lint fuzz soak simulate mutants vuln stores citus setup nodes contracts vectors bench compare screenshots api counts docs docs-check release

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

test: setup nodes ## run every test of every module with the race detector, real nodes included
	scripts/test.sh

short: ## run the tests that need no node
	scripts/each-module.sh go test -short ./...

stores: ## run the stores' long tests on PgBouncer, PostgreSQL 18 and MariaDB
	scripts/setup.sh stores
	scripts/nodes.sh stores
	scripts/stores.sh

citus: setup ## run the PostgreSQL store's suite on a cluster of three nodes (PAYMENTS_CITUS_SRC: Citus' source)
	scripts/stores.sh citus

lint: ## check every module with golangci-lint, formatting included
	scripts/lint.sh

fuzz: ## run every fuzz target for FUZZTIME
	FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

soak: setup nodes ## run every TestSoak… for SOAKTIME
	SOAKTIME=$(SOAKTIME) scripts/soak.sh

simulate: ## play SEEDS seeds of the simulation from SEED on, with STEPS operations each
	SEED="$(or $(SEED),1)" SEEDS="$(or $(SEEDS),100)" STEPS="$(or $(STEPS),300)" \
		go test -count=1 -timeout 0 -v -run '^TestSimulate$$' ./internal/testing/simulation

mutants: ## plant each mutant of the money rules and see a test fail
	go run ./internal/testing/mutants

vuln: ## look for known vulnerabilities (needs the Go vulnerability database)
	scripts/vuln.sh

release: ## write what a release comes with into dist/: its bill of materials (CycloneDX)
	mkdir -p dist
	go run ./internal/testing/sbom >dist/sbom.cdx.json

setup: ## install the servers and the browser that the tests run, where they are missing
	scripts/setup.sh

nodes: ## fetch what the tests run into .cache
	scripts/nodes.sh

contracts: ## compile the fixture contracts again
	scripts/contracts.sh

vectors: nodes ## make the golden vectors of chain/tron again
	scripts/vectors.sh

bench: setup nodes ## run every benchmark
	scripts/each-module.sh go test -run '^$$' -bench . -benchmem -p 1 -timeout 60m ./...

compare: setup nodes ## run the benchmarks of the commit BASE and of this tree in turns (BENCH=regexp PACKAGES=…)
	@test -n "$(BASE)" || { echo "usage: make compare BASE=commit [BENCH=regexp] [PACKAGES='store/sqlite …']" >&2; exit 2; }
	scripts/compare.sh "$(BASE)" "$(or $(BENCH),.)" $(PACKAGES)

screenshots: setup nodes ## write a picture of every state of the checkout page into screenshots/
	mkdir -p screenshots
	PAYMENTS_SCREENSHOTS=$(CURDIR)/screenshots go test -count=1 -run TestEveryStateInABrowser ./httpapi/checkout

api: ## list the public surface in docs/api.txt
	go run ./internal/counts -api >docs/api.txt.new
	mv docs/api.txt.new docs/api.txt

counts: ## print the size of the public surface, the shape of the code and forbidden words
	scripts/counts.sh

docs: ## make a site of the documents in site/
	scripts/docs.sh

docs-check: ## run every command and program of README.md, docs and examples, from an empty home directory
	go run ./internal/testing/docscheck
