# make recommend  settings for a described cluster, found on the twin: needs no cluster and no root
# make lab     a real Ceph cluster on this machine, with the plugin loaded (root on Debian or Ubuntu)
# make tune    the main job on that lab: SLO in, tuned profile written back
# make validate-twin   the twin against a lab: measures for two hours; with WINDOWS=file it only predicts
# make test    every test: unit, contract, real clusters
# make laws    the property tests with new, and many more, random examples: takes ten minutes
# make coverage  the same, and which lines they run, in build/coverage: takes longer
# make check   style, types, rules between the parts
# make docs    the documentation as HTML, in build/docs

SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# the plugin's package is found below mgr_module/, as ceph-mgr finds it
export PYTHONPATH := $(CURDIR)/mgr_module
export PYTHONDONTWRITEBYTECODE := 1

.PHONY: help setup recommend lab tune validate-twin test laws coverage test-unit check format reference docs clean
help:
	@sed -n 's/^# make /make /p' Makefile

setup: $(VENV)/.ready

$(VENV)/.ready: $(VENV)/.runs
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev,docs]'
	@touch $@

# what the program itself needs; a bare Debian has no ensurepip: as root it is installed, otherwise the message says
# what is missing
$(VENV)/.runs: setup.py pyproject.toml
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q && apt-get install -y -q python3-venv; } || { \
	  echo "error: $(PYTHON): found no venv module, expected python3-venv to be installed" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $@

# `ceph-tuner` is then on the PATH of root's shell, as an installed program would be
define LINK
@if [ "$$(id -u)" = 0 ] && [ ! -e /usr/local/bin/ceph-tuner ]; then ln -s "$(CURDIR)/$(BIN)/ceph-tuner" /usr/local/bin/ceph-tuner; \
 else echo "ceph-tuner is $(CURDIR)/$(BIN)/ceph-tuner"; fi
endef

# CLUSTER=975-osds and CLUSTER=erasure-coded are the other examples
CLUSTER ?= nvme-node

recommend: $(VENV)/.runs
	$(BIN)/ceph-tuner recommend examples/cluster-$(CLUSTER).yaml --slo examples/slo-$(CLUSTER).yaml

lab: setup
	$(BIN)/ceph-tuner lab up
	$(BIN)/ceph-tuner mgr install --cluster lab
	$(LINK)

tune: lab
	$(BIN)/ceph-tuner tune --cluster lab --slo examples/slo-recovery.yaml --trials 8 --profiles

# what is measured is kept after every window: run it again to go on where it stopped
WINDOWS ?=
MEASURED := $(or $(WINDOWS),build/twin-windows.json)

validate-twin: setup
ifeq ($(WINDOWS),)
	$(BIN)/ceph-tuner lab up
	mkdir -p build
	$(BIN)/python benchmarks/twin_windows.py --cluster lab --output $(MEASURED)
endif
	$(BIN)/python benchmarks/twin_on_lab.py --windows $(MEASURED) \
	  --output docs/results/twin.json --plot docs/results/twin.png

# three processes also on two cores: what tests a cluster mostly waits
test: setup
	$(BIN)/pytest -n 3 --dist loadgroup

laws: setup
	CEPH_TUNER_EXAMPLES=1000 $(BIN)/pytest -n 2 -m 'hypothesis and not cluster' --hypothesis-profile=new

coverage: setup
	$(BIN)/pytest -n 3 --dist loadgroup --cov --cov-report=html:build/coverage
	@echo "build/coverage/index.html"

test-unit: setup
	$(BIN)/pytest -n 2 -m 'not cluster'

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reference: setup
	$(BIN)/python docs/write_commands.py
	$(BIN)/python docs/write_options.py

docs: setup
	$(BIN)/sphinx-build -q -W --keep-going docs build/docs
	@echo "build/docs/index.html"

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
