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

.PHONY: help demo test test-slow test-gpu bench bench-rays validate lint format kernels install clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

install: $(STAMP) ## the virtual environment .venv with everything the other targets need

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed: install it, or say make PYTHON=/path/to/python."; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@# torch first and by itself: asked for together with others, pip may look at builds of many gigabytes before it settles.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch --constraint constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --constraint constraints.txt
	@touch $@

demo: $(STAMP) ## from a place to a policy with evidence, in ten minutes; the page is runs/demo/report.html
	$(BIN)/airworthy demo --out $(RUNS)/demo

# Compiled once before the tests: their worker processes would otherwise all compile the same kernels.
kernels: $(STAMP) ## compile the kernels that flying needs
	@$(BIN)/python -m airworthy.simulation.warmup

test: $(STAMP) kernels ## the tests of every change (no GPU needed)
	$(PYTEST) -m "not slow and not gpu" -n $(WORKERS) --dist worksteal

test-slow: $(STAMP) kernels ## the long tests
	$(PYTEST) -m "slow and not gpu" -n $(WORKERS) --dist worksteal

test-gpu: $(STAMP) ## the tests that need an NVIDIA GPU
	$(PYTEST) -m gpu

bench: $(STAMP) ## speed of the physics, against others where they are installed
	$(BIN)/python benchmarks/physics.py

bench-rays: $(STAMP) ## speed of the ray caster beside Embree and Warp
	$(BIN)/python benchmarks/rays.py

validate: $(STAMP) ## prediction error on real flights
	$(BIN)/airworthy validate

lint: $(STAMP) ## style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP) ## put style and format right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove caches and build outputs; results in runs/ and .venv stay
	rm -rf .warp-cache .pytest_cache .ruff_cache .mypy_cache .hypothesis build dist
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
