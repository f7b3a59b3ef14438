# make recommend  settings for a described cluster, found on the twin: needs no cluster and no root
# make lab     a real Ceph cluster on this machine, with the plugin loaded (root on Debian or Ubuntu)
# make tune    the main job on that lab: SLO in, tuned profile written back
# make validate-twin   the twin against a lab: two hours; with WINDOWS=file it only predicts; with DRIVE=hdd unfitted, and
#                      ahead: POOL=ec:2+1 has the loads on such a pool, SLOWER=6 the drives so many times slower
# make repeatability  how far windows of the same settings differ on each drive: hours, on a machine that does nothing else
# make test    every test: unit, contract, real clusters
# make quiet   the automatic mode finds settings beside scrub: on a machine that does nothing else
# make long    what takes minutes on labs: every kind of cluster, whole drains: an hour
# make bare    `make recommend` and `make test` from a fresh clone on a Debian that nobody has used
# make laws    the property tests with new, and many more, random examples: takes ten minutes
# make fuzz    hostile input for MINUTES=10, by SEED: files, the store, answers, command lines; appends to OUTPUT
# make coverage  the same, and which lines they run, in build/coverage: takes longer
# make check   style, types, rules between the parts, the CI's workflow, the SBOM, advisories about what is pinned
# make hooks   git runs the checks of a commit's files before each commit
# make distributions  the wheel and the source distribution, in build/distributions
# make packages  these, and packages for this Debian and for RPM, with checksums, in build/packages: as root, some minutes
# make release VERSION=1.2.3 KEY=~/.ssh/id_ed25519  names and tags the version, builds all, signs it: in build/release/1.2.3
# make verify-release RELEASE=build/release/1.2.3  the signature and each file; REBUILD=1 builds all of it again and compares
# make upstream CEPH=/path/to/a/checkout/of/ceph  what a pull request to Ceph consists of, in build/upstream, under Ceph's own checks
# make sbom    what the program consists of, as CycloneDX, in build/sbom.json
# make audit   asks the package index for advisories and withdrawn releases among the pins
# make lowest  the unit tests with the lowest versions that setup.py allows: needs Python 3.11
# make lock    pins and hashes in requirements/ anew; UPGRADE=1 takes the newest versions
# make test-unit PYTHON=python3.9 VENV=.venv-python39   the unit tests on the oldest Python
# make docs    the documentation as HTML, in build/docs/docs

SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# the plugin's package is found below mgr_module/, as ceph-mgr finds it
export PYTHONPATH := $(CURDIR)/mgr_module
# what is compiled is kept, whatever the caller's environment says: each program that a test starts would do it again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help compiled distributions packages release verify-release upstream setup recommend lab tune validate-twin repeatability test quiet long bare laws fuzz coverage test-unit lowest check hooks sbom audit lock format reference pictures docs clean
help:
	@sed -n 's/^# make /make /p; s/^#  \( *[a-z]\)/  \1/p' Makefile

# packages have the hashes of requirements/, the build backend too; the project itself is built with what is there. A lock
# is whole, so pip resolves nothing: it would take a newer coverage[toml] than the pinned coverage, and refuse it
PIP := pip install --quiet --disable-pip-version-check --no-compile
LOCKED := $(PIP) --no-deps --require-hashes -r
PROJECT := $(PIP) --no-deps --no-build-isolation -e .

setup: $(VENV)/.ready

$(VENV)/.ready: $(VENV)/.runs requirements/development.txt
	$(BIN)/$(LOCKED) requirements/development.txt
	@$(BIN)/pip --disable-pip-version-check check
	@touch $@

# what the program itself needs; a bare Debian has no ensurepip: as root it is installed, otherwise the message says
# what is missing
$(VENV)/.runs: setup.py tuner/ceph_tuner/__init__.py pyproject.toml requirements/program.txt
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  PYTHONPATH=$(CURDIR)/tuner $(PYTHON) -m ceph_lab.host_packages python3-venv
	@# metadata of an earlier way to install would be found before that of this one
	@rm -rf ceph_tuner.egg-info
	$(PYTHON) -m venv $(VENV)
	$(BIN)/$(LOCKED) requirements/program.txt
	$(BIN)/$(PROJECT)
	@touch $@

# `ceph-tuner` is then on the PATH of root's shell, as an installed program would be
define LINK
@if [ "$$(id -u)" = 0 ] && [ ! -e /usr/local/bin/ceph-tuner ]; then ln -s "$(CURDIR)/$(BIN)/ceph-tuner" /usr/local/bin/ceph-tuner; \
 else echo "ceph-tuner is $(CURDIR)/$(BIN)/ceph-tuner"; fi
endef

# CLUSTER=975-osds, erasure-coded, nvme-60, hybrid-rgw and hybrid-rbd are the other examples
CLUSTER ?= nvme-node

recommend: $(VENV)/.runs
	$(BIN)/ceph-tuner recommend examples/cluster-$(CLUSTER).yaml --slo examples/slo-$(CLUSTER).yaml

# DRIVE=hdd is another drive under the OSDs
DRIVE ?=

lab: setup
	$(BIN)/ceph-tuner lab up $(if $(DRIVE),--drive $(DRIVE))
	$(BIN)/ceph-tuner mgr install --cluster lab
	$(LINK)

tune: lab
	$(BIN)/ceph-tuner tune --cluster lab --slo examples/slo-recovery.yaml --trials 8 --window 10 --profiles

# what is measured is kept after every window: run it again to go on where it stopped
WINDOWS ?=
POOL ?=
SLOWER ?=
# a lab's name has letters, digits and hyphens alone
AHEAD = ahead-$(DRIVE)$(if $(SLOWER),-slower-$(subst .,-,$(SLOWER)))$(if $(POOL),-$(subst +,-,$(subst :,-,$(POOL))))
MEASURED := $(or $(WINDOWS),build/twin-windows.json)

validate-twin: setup
ifneq ($(DRIVE),)
	mkdir -p build
	$(BIN)/ceph-tuner lab up --name $(AHEAD) --drive $(DRIVE) --device-size 6GiB $(if $(SLOWER),--slower $(SLOWER))
	$(BIN)/python benchmarks/twin_ahead.py --cluster $(AHEAD) --ahead build/twin-$(AHEAD).json \
	  $(if $(POOL),--load-option pool=$(POOL)) --output build/twin-ahead.jsonl; code=$$?; \
	  $(BIN)/ceph-tuner lab down --name $(AHEAD); exit $$code
else
ifeq ($(WINDOWS),)
	$(BIN)/ceph-tuner lab up
	mkdir -p build
	$(BIN)/python benchmarks/twin_windows.py --cluster lab --output $(MEASURED)
endif
	$(BIN)/python benchmarks/twin_on_lab.py --windows $(MEASURED) \
	  --output benchmarks/results/twin.json --plot benchmarks/results/twin.png
endif

DRIVES ?= nvme sata-ssd hdd hybrid throttle

# flash is slower still than the lab's own, so that two processors do not decide
repeatability: setup
	for drive in $(DRIVES); do \
	  case $$drive in nvme|sata-ssd) slower=6 seconds=30 ;; hdd|hybrid) slower=1 seconds=25 ;; *) slower=1 seconds=20 ;; esac; \
	  $(BIN)/ceph-tuner lab up --name repeat-$$drive --drive $$drive --slower $$slower && \
	  $(BIN)/python benchmarks/repeatability.py --cluster repeat-$$drive --seconds $$seconds; code=$$?; \
	  $(BIN)/ceph-tuner lab down --name repeat-$$drive; [ $$code = 0 ] || exit $$code; done

# the twin's machine code, and what pytest makes of the tests, once before many processes want it
compiled: setup
	$(BIN)/pytest -q --collect-only > /dev/null
	$(BIN)/python tests/twin/compile_kernel.py

# TESTS=tests/lab runs a part of them
TESTS ?=

# AGAIN=1, as CI has it: a few that fail run again with nothing beside them, since a busy machine may let a cluster be
# late. The code 1 says that all were run
AGAIN ?=

# six processes also on two cores: what tests a cluster mostly waits
test: setup
	$(BIN)/pytest -n 6 --dist loadgroup --no-loadscope-reorder -m 'not quiet and not long' $(TESTS) || \
	  { [ $$? = 1 ] && [ -n "$(AGAIN)" ] && $(BIN)/python tests/failed_again.py; }

# what would judge the other tests' load in their company
quiet: setup
	$(BIN)/pytest -m quiet

long: setup
	$(BIN)/pytest -m long --durations=0

# SUITE=trixie is one of the two alone
SUITE ?=

# on a machine that is fresh each time, of each of Debian's releases
bare: setup
	$(BIN)/pytest tests/bare_machine.py --durations=0 -k '$(SUITE)'

laws: setup
	CEPH_TUNER_EXAMPLES=1000 $(BIN)/pytest -n 2 -m 'hypothesis and not cluster' --hypothesis-profile=new

MINUTES ?= 10
SEED ?=

fuzz: setup
	$(BIN)/python tests/fuzz/campaign.py --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(OUTPUT),--output $(OUTPUT))

coverage: setup
	$(BIN)/pytest -n 6 --dist loadgroup --no-loadscope-reorder -m 'not quiet and not long' --cov --cov-report=html:build/coverage
	@echo "build/coverage/index.html"

test-unit: setup
	$(BIN)/pytest -n 3 -m 'not cluster and not slow and not long'

# as on the older of the two Debians: the lowest versions have no files for newer Pythons
LOWEST := $(VENV)-lowest

$(LOWEST)/.ready: setup.py tuner/ceph_tuner/__init__.py pyproject.toml requirements/lowest.txt
	python3.11 -m venv --clear $(LOWEST)
	$(LOWEST)/bin/$(LOCKED) requirements/lowest.txt
	$(LOWEST)/bin/$(PROJECT)
	@touch $@

lowest: $(LOWEST)/.ready
	$(LOWEST)/bin/pytest -n 2 --ignore tests/requirements -m 'not cluster and not slow and not long' $(TESTS)

# tests of real clusters are run rarely: what no longer fits the code is told without
CLUSTER_TESTS := $(sort $(shell find tests -name '*_on_cluster.py' -o -name test_lab.py))

check: setup sbom audit
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --follow-imports=silent $(CLUSTER_TESTS)
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/pre-commit validate-config .pre-commit-config.yaml

# .pre-commit-config.yaml names the tools of .venv
hooks: setup
	$(BIN)/pre-commit install

distributions: setup
	$(BIN)/python packages/python_distributions.py build/distributions

# Debian's own tools build, and rpmbuild of Debian
PACKAGERS := debhelper openssh-client python3-venv rpm

packages: $(VENV)/.runs
	PYTHONPATH=tuner $(PYTHON) -m ceph_lab.host_packages $(PACKAGERS)
	rm -rf build/packages
	$(BIN)/python packages/release.py build build/packages

KEY ?= $(HOME)/.ssh/id_ed25519
RELEASE ?= build/release/$(VERSION)
SIGNERS ?= packages/release-signers
REBUILD ?=

# the SBOM is of what is installed, so of the version that was named just before
release: setup
	PYTHONPATH=tuner $(PYTHON) -m ceph_lab.host_packages $(PACKAGERS)
	$(BIN)/python packages/release.py prepare "$(VERSION)"
	$(MAKE) sbom
	rm -rf "$(RELEASE)"
	$(BIN)/python packages/release.py build "$(RELEASE)" --sbom build/sbom.json
	$(BIN)/python packages/release.py sign "$(RELEASE)" --key "$(KEY)"

verify-release: $(VENV)/.runs
	$(BIN)/python packages/release.py verify "$(RELEASE)" --signers "$(SIGNERS)" $(if $(REBUILD),--rebuild)

CEPH ?=

# the checks run in a copy of what they need of Ceph; that of types is of the module alone
upstream: setup
	@[ -f "$(CEPH)/src/pybind/mgr/tox.ini" ] || { echo "CEPH=$(CEPH): expected a checkout of Ceph" >&2; exit 2; }
	$(BIN)/python upstream/lay_out_upstream.py "$(CEPH)" build/upstream
	$(BIN)/python upstream/run_checks.py "$(CEPH)" build/upstream

sbom: setup
	$(BIN)/python requirements/write_sbom.py build/sbom.json

audit: setup
	$(BIN)/python requirements/audit_pins.py

# pins stay where they still fit, unless UPGRADE is set. For all Pythons that setup.py names but for the lowest ones;
# the first is the widest: the program gets what the tools can live with
UPGRADE ?=
COMPILE := $(BIN)/uv pip compile --quiet --generate-hashes --no-build-isolation --no-python-downloads \
  --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)
UNIVERSAL := $(COMPILE) --universal --python-version 3.9 setup.py requirements/build.in

# checks of international addresses, an extra of what validates the SBOM: no schema here has one, and whatever imports
# jsonschema would import them, for a second
LEFT_OUT := --no-emit-package rfc3987-syntax --no-emit-package lark

lock: setup
	$(UNIVERSAL) --extra dev --extra docs --extra test $(LEFT_OUT) --output-file requirements/development.txt
	$(UNIVERSAL) --constraints requirements/development.txt --output-file requirements/program.txt
	mkdir -p build
	$(COMPILE) --python-version 3.11 --resolution lowest-direct setup.py --extra dask --extra keyring \
	  --output-file build/lowest.txt
	$(COMPILE) --python-version 3.11 setup.py requirements/build.in --extra test --constraints build/lowest.txt \
	  --output-file requirements/lowest.txt

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reference: setup
	$(BIN)/python docs/write_commands.py
	$(BIN)/python docs/write_options.py

# of README and documentation, drawn from what the program prints and writes
pictures: setup
	$(BIN)/python docs/write_pictures.py

docs: setup
	$(BIN)/sphinx-build -q -W --keep-going -c docs . build/docs
	@echo "build/docs/docs/index.html"

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
