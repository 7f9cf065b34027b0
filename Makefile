# Needs make and Python 3.11 or newer with pip and venv; everything else goes into .venv.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The first Python that is new enough; override with `make PYTHON=/path/to/python`.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= 2
TESTS ?= tests
RUNS := runs

# Reference files, where a checkout has them next to it; tests that need them skip, counted, where it has not.
ifeq ($(origin AIRWORTHY_DATA),undefined)
ifneq ($(wildcard ../shared/data/.),)
export AIRWORTHY_DATA := $(abspath $(CURDIR)/../shared/data)
endif
endif
# Compiled kernels stay inside the clone.
export WARP_CACHE_PATH ?= $(CURDIR)/.warp-cache

PYTEST = $(BIN)/python -m pytest $(TESTS)

.PHONY: help demo test test-slow test-gpu flakes mutants bench bench-rays house pictures validate lint format lock sbom audit docs kernels install clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

install: $(STAMP) ## the virtual environment .venv with everything the other targets need

$(STAMP): pyproject.toml constraints.txt requirements.lock
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed: install it, or say make PYTHON=/path/to/python."; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@# torch first and by itself: asked for together with others, pip may look at builds of many gigabytes before it settles.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch --constraint constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP) ## from a place to a policy with evidence, in ten minutes; the page is runs/demo/report.html
	$(BIN)/airworthy demo --out $(RUNS)/demo

# Compiled once before the tests: their worker processes would otherwise all compile the same kernels.
kernels: $(STAMP) ## compile the kernels that flying needs
	@$(BIN)/python -m airworthy.simulation.warmup

# With LONG=1, as .ci/run has it, also those that take a second and more (tests/long_tests.txt).
QUICK := not slow and not gpu$(if $(LONG),, and not long)

test: $(STAMP) kernels ## the tests of every change (no GPU needed)
	$(PYTEST) -m "$(QUICK)" -n $(WORKERS) --dist worksteal

test-slow: $(STAMP) kernels ## all that `make test` leaves out
	$(PYTEST) -m "(slow or long) and not gpu" -n $(WORKERS) --dist worksteal

test-gpu: $(STAMP) ## the tests that need an NVIDIA GPU
	$(PYTEST) -m gpu

ROUNDS ?= 3
flakes: $(STAMP) kernels ## the tests in random order, ROUNDS times; each round prints its seed, `-p randomly_seed=N` repeats it
	@for round in $$(seq $(ROUNDS)); do echo "== round $$round of $(ROUNDS)"; \
		$(PYTEST) -m "not slow and not gpu" -n $(WORKERS) --dist worksteal -p randomly -p "no:cacheprovider" -q || exit 1; done

COUNT ?= 20
mutants: $(STAMP) kernels ## plant COUNT small bugs per room (ROOMS="control tasks", default all) and count those that tests notice
	$(BIN)/python tools/mutants.py $(ROOMS) --count $(COUNT) --workers $(WORKERS)

bench: $(STAMP) ## speed of the physics, against others where they are installed
	$(BIN)/python benchmarks/physics.py

bench-rays: $(STAMP) ## speed of the ray caster beside Embree and Warp
	$(BIN)/python benchmarks/rays.py

house: $(STAMP) ## figures of the house: files, imports, comments, what a flight loads, what a change touches
	$(BIN)/python tools/house.py

pictures: $(STAMP) ## render the pictures of README and docs anew (some minutes)
	$(BIN)/python tools/pictures.py

validate: $(STAMP) ## prediction error on real flights
	$(BIN)/airworthy validate

lint: $(STAMP) ## style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP) ## put style and format right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Tools that keep the project and are no part of it live in an environment of their own.
TOOLS := .tools-venv
$(TOOLS)/.installed:
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0 pip-audit==2.10.1 uv==0.13.9
	@touch $@

# torch is left out: its builds for CPUs and GPUs have one version and different files; constraints.txt pins its version.
lock: $(TOOLS)/.installed ## write requirements.lock (exact versions with hashes, for all systems and Pythons) from constraints.txt
	printf "torch ; python_version < '3'\n" > $(TOOLS)/override.txt
	printf "hatchling\neditables\n" > $(TOOLS)/build.txt
	$(TOOLS)/bin/uv pip compile pyproject.toml $(TOOLS)/build.txt --extra dev --universal --python-version 3.11 --generate-hashes \
		--override $(TOOLS)/override.txt --constraint constraints.txt --no-header --no-annotate --output-file requirements.lock

sbom: $(STAMP) $(TOOLS)/.installed ## write runs/sbom.json, a CycloneDX list of everything installed
	@mkdir -p $(RUNS)
	$(TOOLS)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file $(RUNS)/sbom.json $(BIN)/python

# Strict: a package that the service does not know fails, where it would otherwise be left out without a word.
audit: $(TOOLS)/.installed ## look the locked versions up among published vulnerabilities (needs the network)
	$(TOOLS)/bin/pip-audit --strict --requirement requirements.lock --disable-pip

DOCS := .docs-venv
$(DOCS)/.installed: constraints.txt constraints-docs.txt
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	@# What the extra `docs` names, without the package itself: the API is read from the source, nothing is imported.
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --constraint constraints-docs.txt mkdocs-material "mkdocstrings[python]"
	@touch $@

docs: $(DOCS)/.installed ## the site of the documentation in site/ (open site/index.html); a link that leads nowhere fails it
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict

clean: ## remove caches and build outputs; results in runs/ and .venv stay
	rm -rf .warp-cache .pytest_cache .ruff_cache .mypy_cache .hypothesis build dist site
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
