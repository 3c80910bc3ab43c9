# `make help` lists the targets. Each works in a fresh clone: `setup` comes first, but for `try`, and is quick when there is nothing to do.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

export PATH := $(CURDIR)/.cache/venv/bin:$(PATH)
export ANSIBLE_COLLECTIONS_PATH := $(CURDIR)/.cache/collections
export TESTBED_ID ?= 0

PLAY = hack/play.sh
ARGS ?=

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  Variables: ARGS (more arguments: make site ARGS='--check --diff'), TESTBED_ID (another testbed: 0 to 9)."

.PHONY: setup
setup: ## Python packages of the lock file into .cache/venv; says what it installs
	@hack/setup.sh

.PHONY: try
try: ## Plan and report of a recorded rack, in the browser: no root, no hosts, half a minute
	@hack/try.sh $(ARGS)

##@ The main job, on the testbed's hosts

.PHONY: demo
demo: setup ## Two bare hosts to a proved cluster: testbed, site, verify
	@hack/demo.sh $(ARGS)

.PHONY: testbed
testbed: setup ## Hosts and mirror only, no cluster
	@testbed/testbed up

.PHONY: plan
plan: setup ## What site would do, as a table; changes nothing
	@$(PLAY) plan $(ARGS)

.PHONY: site
site: setup ## Plan, Kubernetes, fabric and proof on the testbed's hosts
	@$(PLAY) site $(ARGS)

.PHONY: verify
verify: setup ## The proof alone, from inside pods
	@$(PLAY) verify $(ARGS)

##@ Tests

.PHONY: test
test: setup ## Everything but the long suites; ends with `N passed, N failed, N skipped`
	@hack/run_tests.py all

.PHONY: test-all
test-all: setup ## The same with every case of tests that start ansible-playbook, jobs, Soft-RoCE, Python 3.12 and 3.13; before a release
	@hack/run_tests.py all release

.PHONY: test-fast
test-fast: setup ## lint, sanity and unit
	@hack/run_tests.py fast

.PHONY: lint
lint: setup ## ruff, mypy, ansible-lint (production), yamllint, shellcheck, gofmt and go vet, generated pages, licences, docs-site
	@hack/run_tests.py lint

.PHONY: sanity
sanity: setup ## ansible-test sanity
	@hack/run_tests.py sanity

.PHONY: unit
unit: setup ## Unit tests; those of plugins on Python 3.11, 3.12 and 3.13, where they are here
	@hack/run_tests.py unit unit-3.12 unit-3.13

.PHONY: package
package: setup ## Build the collection, check it as Galaxy would, and use its tarball with each ansible-core and Python
	@hack/run_tests.py package

.PHONY: integration
integration: setup ## API modules against a real API server
	@hack/run_tests.py integration

.PHONY: molecule
molecule: setup ## check, converge, idempotence and verify on fresh hosts
	@hack/run_tests.py molecule-default molecule-roles soft-roce

.PHONY: e2e
e2e: setup ## The long suites: faults, day 2, three control planes, RDMA; hours
	@hack/run_tests.py long --jobs 3

.PHONY: rdma
rdma: setup ## Bare hosts to RDMA between pods, jobs over RoCE, and faults, on two virtual machines with Soft-RoCE
	@hack/run_tests.py e2e-rdma

.PHONY: bench
bench: setup ## How long things take, each against a baseline in the same run: ARGS="planning labels"
	@PYTHONPATH=.cache/collections python -m ansible_collections.ipu.fabric.tests.bench $(ARGS)

##@ Upkeep

.PHONY: format
format: setup ## Format the Python and Go code
	@ruff check --fix-only --quiet . && ruff format . && gofmt -w testbed

.PHONY: lock
lock: setup ## Rewrite the lock files from requirements.in
	@hack/lock.sh

.PHONY: docs
docs: setup ## Pages that are written from the code: README of each role, variables, troubleshooting, releases, schema of the plan; the recorded sites
	@hack/role_docs.py && hack/troubleshooting.py && hack/release_docs.py && hack/plan_schema.py && hack/recorded_sites.py

.PHONY: docs-site
docs-site: setup ## The documentation as a site in .cache/docs-site/html, its links checked; each page as Markdown too, listed in llms.txt
	@hack/docs_site.sh

.PHONY: pictures
pictures: setup ## Pictures of plan and report for the README, with Chromium
	@hack/packages.sh chromium && PYTHONPATH=.cache/collections python -m ansible_collections.ipu.fabric.tests.browser.pictures

.PHONY: changelog
changelog: setup ## Fragments and new modules into CHANGELOG.rst
	@antsibull-changelog lint && antsibull-changelog release --update-existing --reload-plugins --refresh-plugins allow-removal

.PHONY: clean
clean: ## Remove every testbed, and artifacts and .cache of this checkout; what is shared between clones stays
	@hack/clean.sh
