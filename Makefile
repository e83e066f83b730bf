# What is done to this project, by name. `make` alone lists it.

# How long each fuzz target and each soak test runs.
FUZZTIME ?= 10s
SOAKTIME ?= 10m

.DEFAULT_GOAL := help
.PHONY: help test short lint fuzz soak mutants vuln nodes contracts vectors bench screenshots

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

test: nodes ## run every test of every module with the race detector, real nodes included
	scripts/each-module.sh go test -race -p 2 -timeout 20m ./...

short: ## run the tests that need no node
	scripts/each-module.sh go test -short ./...

lint: ## check formatting, go vet and staticcheck in every module
	scripts/lint.sh

fuzz: ## run every fuzz target for FUZZTIME
	FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

soak: nodes ## run every TestSoak… for SOAKTIME
	SOAKTIME=$(SOAKTIME) scripts/soak.sh

mutants: ## plant each mutant of the money rules and see a test fail
	go run ./internal/mutants

vuln: ## look for known vulnerabilities (needs the Go vulnerability database)
	scripts/each-module.sh go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./...

nodes: ## fetch what the tests run into .cache
	scripts/nodes.sh

contracts: ## compile the fixture contracts again
	scripts/contracts.sh

vectors: nodes ## make the golden vectors of chain/tron again
	scripts/vectors.sh

bench: nodes ## run every benchmark
	scripts/each-module.sh go test -run '^$$' -bench . -benchmem -p 1 -timeout 60m ./...

screenshots: nodes ## write a picture of every state of the checkout page into screenshots/
	mkdir -p screenshots
	PAYMENTS_SCREENSHOTS=$(CURDIR)/screenshots go test -count=1 -run TestEveryStateInABrowser ./httpapi/checkout
