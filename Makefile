# Every target works from a fresh clone with nothing but Python >= 3.11, git and make.
# Environments are made once and used again until pyproject.toml or constraints.txt change.

SHELL := /bin/sh
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

VENV := .venv
DEMO := .venv-demo
BASE := .venv-base
FLOOR := .venv-floor
NEWEST := .venv-newest
SDIST := .venv-sdist
BUILD := .venv-build
# A stamp carries the checksum of what was asked for, so a new clone's file times do not matter.
SUM := $(shell cat pyproject.toml constraints.txt | cksum | tr ' ' '-')
TEST_STAMP := $(VENV)/.wellsep-test-$(SUM)
DOCS_STAMP := $(VENV)/.wellsep-docs-$(SUM)
DEMO_STAMP := $(DEMO)/.wellsep-demo-$(SUM)
BASE_STAMP := $(BASE)/.wellsep-base-$(SUM)
FLOOR_STAMP := $(FLOOR)/.wellsep-floor-$(SUM)

# Tests start many processes, which must not compile the packages anew: the first import compiles
# what is used and keeps it, which is far less than what pip would compile on installation.
unexport PYTHONDONTWRITEBYTECODE
PIP = -m pip install --quiet --disable-pip-version-check --no-compile
PIP_INSTALL = $(PIP) -c constraints.txt
BIN := $(VENV)/bin
# Worker processes already fill the cores; more threads in each would only get in their way.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1
WORKERS ?= logical
PYTEST_OPTIONS := -q -n $(WORKERS) --dist worksteal
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest $(PYTEST_OPTIONS)
# One process: most of their time is the import of the package.
DOCTESTS := -q -n 0 --doctest-modules src/wellsep

.PHONY: help demo test lint types fast-suite doctests test-base test-slow test-faults test-experiments
.PHONY: test-sklearn test-floor test-newest test-sdist coverage dist check-tag
.PHONY: bench bench-gpu bench-page docs docs-check pictures clean

help:
	@echo "make demo       the main job on embedded data, in its own light environment"
	@echo "make test       ruff, oxlint, mypy, the fast test suite and the examples in docstrings"
	@echo "make test-base  the fast test suite without any optional package, in its own environment"
	@echo "make test-floor the fast test suite with the oldest versions that pyproject.toml promises"
	@echo "make test-newest  the fast test suite with the newest versions of every package"
	@echo "make test-sdist build the source distribution and test what is in it"
	@echo "make coverage   the fast test suite, with the lines and branches that it does not run"
	@echo "make dist       the wheel and the source distribution, in dist/"
	@echo "make test-slow  the tests that take longer, with more random examples"
	@echo "make test-faults  malformed input, killed processes and full disks, in ten minutes"
	@echo "make test-sklearn  scikit-learn's own tests of its metrics and of KMeans, on ours"
	@echo "make test-experiments  the tests of experiments/; some read the folder in WELLSEP_DATA"
	@echo "make bench      every benchmark, as ratios; JSON lines in benchmarks/results/"
	@echo "make bench-gpu  the benchmarks that need a CUDA device"
	@echo "make bench-page the table in README.md and docs/benchmarks.md, from the last results"
	@echo "make docs       the documentation with its examples executed, in docs/_build/html/"
	@echo "make docs-check spelling, and the links to other sites; needs a network"
	@echo "make pictures   the pictures in docs/_static/; those of the page need Chromium"

demo: $(DEMO_STAMP)
	$(DEMO)/bin/wellsep demo
	@echo "From the pixels alone, wellsep explore (all it says is in wellsep-demo/explored.txt):"
	@$(DEMO)/bin/wellsep explore wellsep-demo/pixels.npy --report wellsep-demo/explored.html > wellsep-demo/explored.txt
	@sed -n 2p wellsep-demo/explored.txt

# Types and doctests are one process each: at once on two cores.
test: lint
	$(MAKE) -j2 types doctests
	$(MAKE) fast-suite

lint: $(TEST_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/oxlint --quiet

types: $(TEST_STAMP)
	$(BIN)/mypy

fast-suite: $(TEST_STAMP)
	$(PYTEST)

doctests: $(TEST_STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest $(DOCTESTS)

test-base: $(BASE_STAMP)
	$(ONE_THREAD) $(BASE)/bin/python -m pytest $(PYTEST_OPTIONS)
	$(ONE_THREAD) $(BASE)/bin/python -m pytest $(DOCTESTS)

test-floor: $(FLOOR_STAMP)
	$(ONE_THREAD) $(FLOOR)/bin/python -m pytest $(PYTEST_OPTIONS)

# Made anew each time: the newest versions change by themselves.
test-newest:
	rm -rf $(NEWEST)
	$(MAKE) $(NEWEST)/bin/python
	$(NEWEST)/bin/python $(PIP) $(NEWEST_OPTIONS) -e '.[dev]'
	$(ONE_THREAD) $(NEWEST)/bin/python -m pytest $(PYTEST_OPTIONS)

# Made anew with tools whose files are known by their hashes; nothing else is installed for it.
dist:
	rm -rf dist $(BUILD)
	$(PYTHON) -m venv $(BUILD)
	$(BUILD)/bin/python $(PIP) --only-binary :all: --require-hashes -r requirements-build.txt
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BUILD)/bin/python -m build --no-isolation --outdir dist .

# A tag must name the version that the build reads.
check-tag:
	test "$(TAG)" = "v$$(sed -n 's/^__version__ = "\(.*\)"/\1/p' src/wellsep/__init__.py)"

test-sdist: dist
	rm -rf $(SDIST) dist/unpacked
	$(MAKE) $(SDIST)/bin/python
	mkdir dist/unpacked && tar -xzf dist/*.tar.gz -C dist/unpacked --strip-components=1
	$(SDIST)/bin/python $(PIP_INSTALL) -e 'dist/unpacked[dev]'
	cd dist/unpacked && $(ONE_THREAD) ../../$(SDIST)/bin/python -m pytest $(PYTEST_OPTIONS)

coverage: $(TEST_STAMP)
	$(BIN)/python $(PIP_INSTALL) pytest-cov
	$(PYTEST) --cov=wellsep --cov-branch --cov-report=term:skip-covered

test-slow: $(TEST_STAMP)
	HYPOTHESIS_PROFILE=thorough $(PYTEST) -m "slow and not gpu"

test-faults: $(TEST_STAMP)
	$(PYTEST) -m faults tests/faults

# One process: the last line is the count of tests that hold, are bridged or are left out.
test-sklearn: $(TEST_STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest -q -m sklearn tests/sklearn_own

test-experiments: $(TEST_STAMP)
	$(PYTEST) -m "not gpu" experiments/tests

bench: $(TEST_STAMP)
	@for file in benchmarks/bench_*.py; do \
		case $$file in *_gpu.py) continue;; esac; \
		echo "== $$file"; $(BIN)/python -m benchmarks.$$(basename $$file .py) || failed="$$failed $$file"; \
	done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

bench-gpu: $(TEST_STAMP)
	@for file in benchmarks/bench_*_gpu.py; do \
		test -e $$file || continue; \
		echo "== $$file"; $(BIN)/python -m benchmarks.$$(basename $$file .py) || failed="$$failed $$file"; \
	done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

bench-page: $(TEST_STAMP)
	$(BIN)/python -m benchmarks.tabulate

# A warning is an error; WELLSEP_SMALL_EXAMPLES=1 runs the long examples on less data.
docs: $(DOCS_STAMP)
	$(ONE_THREAD) $(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

docs-check: docs
	$(BIN)/codespell
	$(BIN)/python -m sphinx -q -b linkcheck -D plot_gallery=0 docs docs/_build/linkcheck

pictures: $(TEST_STAMP)
	$(ONE_THREAD) $(BIN)/python docs/readme_picture.py
	$(ONE_THREAD) $(BIN)/python docs/shapes.py
	$(ONE_THREAD) $(BIN)/python docs/tutorial_pictures.py
	$(ONE_THREAD) $(BIN)/python docs/pictures.py

clean:
	rm -rf $(DEMO) $(BASE) $(FLOOR) $(NEWEST) $(SDIST) $(BUILD) docs/_build docs/reference/generated build dist .pytest_cache .mypy_cache .ruff_cache

$(VENV)/bin/python $(DEMO)/bin/python $(BASE)/bin/python $(FLOOR)/bin/python $(NEWEST)/bin/python $(SDIST)/bin/python:
	@test -n "$(PYTHON)" || { echo "wellsep needs Python 3.11 or newer; name one with make PYTHON=..."; exit 2; }
	$(PYTHON) -m venv $(patsubst %/bin/python,%,$@)
	$@ $(PIP_INSTALL) pip

$(TEST_STAMP): | $(VENV)/bin/python
	$(BIN)/python $(PIP_INSTALL) -e '.[all,dev]'
	@rm -f $(VENV)/.wellsep-test-*
	@touch $@

$(DOCS_STAMP): $(TEST_STAMP)
	$(BIN)/python $(PIP_INSTALL) -e '.[docs]'
	@rm -f $(VENV)/.wellsep-docs-*
	@touch $@

$(DEMO_STAMP): | $(DEMO)/bin/python
	$(DEMO)/bin/python $(PIP_INSTALL) -e .
	@rm -f $(DEMO)/.wellsep-demo-*
	@touch $@

$(BASE_STAMP): | $(BASE)/bin/python
	$(BASE)/bin/python $(PIP_INSTALL) -e '.[dev]'
	@rm -f $(BASE)/.wellsep-base-*
	@touch $@

$(FLOOR_STAMP): | $(FLOOR)/bin/python
	$(FLOOR)/bin/python .ci/floors.py dev > $(FLOOR)/floors.txt
	$(FLOOR)/bin/python $(PIP) -c $(FLOOR)/floors.txt -e '.[dev]'
	@rm -f $(FLOOR)/.wellsep-floor-*
	@touch $@
