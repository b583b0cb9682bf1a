# `make help` lists the commands. Each does its own set-up: the virtual environment, the packages, the front end.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
VENV ?= .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Some machines set it; then each of the product's processes would compile two thousand modules at every start.
unexport PYTHONDONTWRITEBYTECODE
FRONTEND := $(BIN)/python scripts/frontend.py
# Test processes; browser tests always run in one of their own.
JOBS ?= 2
# Whole installations beside each other in the fault matrix.
STACKS ?= 4
ARGS ?=

.PHONY: help
help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

.PHONY: demo
demo: $(VENV)/.demo frontend ## the whole product on a simulated cluster, in one terminal (ARGS="--port 8000 --time-scale 10 --fresh")
	@exec $(BIN)/python manage.py demo $(ARGS)

.PHONY: test
test: $(VENV)/.dev frontend ## all tests, on a real PostgreSQL, Valkey, worker and (where there is a Chromium) browser
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)
	$(FRONTEND) run test
	$(BIN)/python -m pytest tests/e2e

.PHONY: test-quick
test-quick: $(VENV)/.dev ## the tests beside what differs from main, and the house rules (a minute or two; ARGS="--base HEAD~3")
	@$(BIN)/python -m scripts.quick_tests $(ARGS) | xargs $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal

.PHONY: fuzz
fuzz: $(VENV)/.dev ## properties with time to spare: 2,000 examples each, two leaders, hostile requests (about an hour)
	$(BIN)/python -m pytest -n $(JOBS) -m hypothesis tests --ignore tests/kueueweb/test_fuzz.py --hypothesis-profile=long $(ARGS)
	$(BIN)/python -m pytest -n $(JOBS) tests/acceptance/test_new_leader.py tests/acceptance/test_crash.py --hypothesis-profile=long $(ARGS)
	$(BIN)/python -m pytest tests/kueueweb/test_fuzz.py --hypothesis-profile=long $(ARGS)

.PHONY: fuzz-api
fuzz-api: $(VENV)/.dev ## schemathesis over every operation as admin, tenant and nobody (half an hour; ARGS="--roles tenant")
	$(BIN)/python -m tests.acceptance.fuzz_api $(ARGS)

.PHONY: test-crash
test-crash: $(VENV)/.dev ## kill -9 of every process at random, under load (30 minutes; ARGS="--minutes 5 --seed 1")
	$(BIN)/python -m tests.acceptance.crash $(ARGS)

.PHONY: test-faults
test-faults: $(VENV)/.dev ## the fault matrix: every process and server killed, stopped, restarted; full disk, refusing API server (an hour; STACKS=1 ARGS="-k idle")
	$(BIN)/python -m pytest -n $(STACKS) tests/faults $(ARGS)

.PHONY: test-upgrade
test-upgrade: $(VENV)/.dev ## upgrade the last release to this commit under load, and compare rows (FROM=main~20; ARGS="--finished 1000000")
	@from="$${FROM:-$$(scripts/last_release)}"; $(BIN)/python -m tests.acceptance.upgrade --from "$$from" $(ARGS)

.PHONY: test-kubernetes
test-kubernetes: $(VENV)/.dev ## tests against a real Kubernetes, built from its source the first time (needs Go; minutes)
	$(BIN)/python scripts/kubernetes.py .run/kubernetes
	$(BIN)/python -m pytest tests/kubernetes $(ARGS)

.PHONY: test-clients
test-clients: $(VENV)/.dev ## kueuectl, k9s, Argo CD's engine and OpenTofu with Terraform's provider against the web process (needs Go; ten minutes the first time)
	$(BIN)/python scripts/kubernetes.py .run/kubernetes --clients
	$(BIN)/python -m pytest tests/kubernetes_clients $(ARGS)

.PHONY: test-go-client
test-go-client: $(VENV)/.dev ## the Go client: its tests, and a day's work with it against the web process (needs Go)
	$(BIN)/python -m pytest tests/client/test_go_client.py $(ARGS)

.PHONY: test-helm
test-helm: $(VENV)/.dev ## the Helm chart with Helm itself, installed on a real Kubernetes (needs Go; minutes)
	$(BIN)/python scripts/kubernetes.py .run/kubernetes
	$(BIN)/python -m scripts.helm .run/helm
	$(BIN)/python -m pytest tests/helm $(ARGS)

.PHONY: test-operators
test-operators: $(VENV)/.dev ## kinds of jobs with the operators of their releases, on a real Kubernetes (needs Go; minutes)
	$(BIN)/python scripts/kubernetes.py .run/kubernetes --operators
	$(BIN)/python -m pytest tests/operators $(ARGS)

.PHONY: test-kueue-suite
test-kueue-suite: $(VENV)/.dev ## Kueue's own end-to-end specs in its place (KUEUE=DIR, a checkout of Kueue; root, Go; CONTROL=1: with the real Kueue)
	$(BIN)/python scripts/kubernetes.py .run/kubernetes $(if $(findstring extended,$(ARGS)),--operators)
	$(BIN)/python -m tests.kueue_suite $(KUEUE) $(if $(CONTROL),--control) $(ARGS)

.PHONY: test-shadow
test-shadow: $(VENV)/.dev ## mode shadow beside a busy real Kueue for ten minutes (KUEUE=DIR, a checkout of Kueue; root, Go)
	$(BIN)/python scripts/kubernetes.py .run/kubernetes
	$(BIN)/python -m tests.beside_kueue $(KUEUE) $(ARGS)

.PHONY: measure-jobs
measure-jobs: $(VENV)/.dev ## what a Job costs Kueue and kueueweb on a real control plane, as a table (KUEUE=DIR, a checkout of Kueue; root, Go)
	$(BIN)/python scripts/kubernetes.py .run/kubernetes
	$(BIN)/python -m tests.beside_kueue.costs $(KUEUE) $(ARGS)

.PHONY: test-containers
test-containers: $(VENV)/.dev ## build the image and run the compose file's services as containers (root, podman or Docker; ten minutes)
	$(BIN)/python scripts/containers.py .run/containers
	$(BIN)/python -m pytest tests/containers $(ARGS)

.PHONY: test-monitoring
test-monitoring: ## evaluate the alerts of deploy/monitoring with Prometheus' promtool
	@scripts/promtool

.PHONY: lint
lint: $(VENV)/.dev ## style, types, import rules, drift of migrations and schema
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py spectacular --validate --fail-on-warn --format openapi-json --file /dev/stdout | diff -u docs/openapi.json - \
		|| { echo "The REST schema has changed: run make schema and commit what it writes."; exit 1; }
	$(FRONTEND) run lint typecheck

.PHONY: benchmarks
benchmarks: $(VENV)/.dev ## the benchmarks of tests/benchmarks, as ratios
	@for file in tests/benchmarks/benchmark_*.py; do echo; echo "== $$file"; $(BIN)/python $$file $(ARGS); done
	$(BIN)/python -m pytest tests/benchmarks -s

.PHONY: format
format: $(VENV)/.dev ## bring the Python code into the style that lint checks
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: schema
schema: $(VENV)/.dev ## write the REST schema again, and what the front end and the Go client make from it
	$(BIN)/python manage.py spectacular --validate --fail-on-warn --format openapi-json --file docs/openapi.json
	$(BIN)/python -m scripts.go_client docs/openapi.json client/go
	$(FRONTEND) run schema

.PHONY: examples
examples: $(VENV)/.dev ## make the calls of the schema's examples, and write what was sent and answered
	KUEUEWEB_WRITE_EXAMPLES=1 $(BIN)/python -m pytest tests/kueueweb/api/test_examples.py

.PHONY: frontend
frontend: $(VENV)/.demo ## build the front end, if its sources have changed
	@$(FRONTEND) build

.PHONY: screenshots
screenshots: $(VENV)/.demo ## take the README's pictures of the demo that runs on port 8000
	KUEUEWEB_USER=admin KUEUEWEB_PASSWORD=admin WIDTHS=1440 SETTLE_MS=20000 \
		$(FRONTEND) node dev/screenshots.ts http://127.0.0.1:8000 ../docs/images

.PHONY: pictures
pictures: frontend ## pictures of every page in frontend/pictures/: light, dark, narrow, wide, Chinese, empty, failing (needs Chromium)
	@$(FRONTEND) node dev/pictures.ts

.PHONY: docs
docs: $(VENV)/.dev ## the documentation as static pages with a search, in .run/site/index.html
	@rm -rf .run/site
	@$(BIN)/python scripts/site.py .run/site

.PHONY: lock
lock: $(VENV)/.dev ## choose the newest packages that pyproject.toml allows, and lock them with their hashes
	@scripts/lock

.PHONY: audit
audit: $(VENV)/.dev ## compare the locks with known vulnerabilities, and write a bill of materials (needs the network)
	@scripts/audit

.PHONY: images
images: ## build and push the image for amd64 and arm64 (IMAGE=registry/kueueweb:1.0; Docker with buildx, and QEMU for the other one)
	@test -n "$(IMAGE)" || { echo "IMAGE: Required value: the name and tag to push, such as registry.example.org/kueueweb:1.0"; exit 2; }
	docker buildx build --platform linux/amd64,linux/arm64 --tag $(IMAGE) --push .

.PHONY: pin-images
pin-images: $(BIN)/python ## write the digests of the images we start from; IMAGE=name:tag: that of our own, once it is pushed
	@$(BIN)/python scripts/pin_images.py $(IMAGE)

.PHONY: clean
clean: ## remove what the other commands made, the virtual environment included
	rm -rf $(VENV) .run frontend/dist frontend/node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "kueueweb needs Python 3.11 or newer; '$(PYTHON)' is not (Debian: apt install python3). PYTHON=... names another."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "Python's venv module is missing (Debian: apt install python3-venv)."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Installed again when the lock is newer than what was installed from it.
$(VENV)/.demo: requirements/demo.lock | $(BIN)/python
	@scripts/install $(VENV) requirements/demo.lock
	@touch $@

$(VENV)/.dev: requirements/dev.lock $(VENV)/.demo
	@scripts/install $(VENV) requirements/dev.lock
	@touch $@
