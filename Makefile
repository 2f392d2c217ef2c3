# Every target sets up what it needs in .venv. `make demo` and `make test` are all a newcomer has to know.
PYTHON ?= python3
BIN := .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: demo test tests-early tests-late test-thorough test-narrow test-versions check lint doctest docs bench promises format clean

demo: .venv/.demo
	$(BIN)/mercer demo

# Bytecode is kept even if the environment says otherwise: without it every run rewrites the asserts of all tests anew,
# and every process that a test starts compiles the package.
tests-early tests-late test-thorough doctest: export PYTHONDONTWRITEBYTECODE =

# Two at a time, for two cores. The examples come first, because they compile most loops, and both halves use these.
test: .venv/.dev
	$(MAKE) --no-print-directory --jobs 2 tests-early doctest tests-late

# Each process collects and compiles only what it needs; the first half takes as long as the second and the examples.
EARLY = $(wildcard tests/test_[a-k]*.py tests/test_la*.py)
PYTEST = $(BIN)/python -m pytest -q

tests-early: .venv/.dev
	$(PYTEST) -m "not thorough" $(EARLY)

tests-late: .venv/.dev
	$(PYTEST) -m "not thorough" $(filter-out $(EARLY),$(wildcard tests/test_*.py))

# Tests that take about half a second or more each: many cases, random samples, whole commands, processes that are killed.
test-thorough: .venv/.dev
	$(PYTEST) -m thorough -n 2 --dist worksteal

# Other Pythons and other releases of the dependencies, each from a built wheel, where they can be had.
test-versions:
	$(PYTHON) tests/versions.py

# The numerical part as a machine with 128-bit vectors and an old BLAS computes it: loops compiled for the plainest
# processor of this architecture, NumPy without the instructions that it chooses by, and OpenBLAS's oldest kernels.
NUMERICAL = loops local_loops gram solvers solver_edges smo smooth tuning bandwidth sums nystrom identities laws
OLDEST_BLAS = $(if $(filter arm64 aarch64,$(shell uname -m)),ARMV8,Prescott)
DISPATCHED = import numpy; print(*numpy.show_config("dicts").get("SIMD Extensions", {}).get("found", []))

test-narrow: .venv/.dev
	NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES= NUMBA_CACHE_DIR=$(CURDIR)/.venv/narrow OPENBLAS_CORETYPE=$(OLDEST_BLAS) \
	NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python -c '$(DISPATCHED)')" \
	$(PYTEST) -n 2 --dist worksteal $(NUMERICAL:%=tests/test_%.py)

check: lint doctest

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python docs/_site/docstrings.py

doctest: .venv/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PYTEST) --doctest-modules --doctest-glob='*.md' src README.md docs

# The documentation site in out/docs: open out/docs/index.html. It needs no network, neither to be built nor to be read.
docs: .venv/.docs
	$(BIN)/python docs/_site/build.py out

# All benchmarks, one after the other; those that have a result are left out, so that an interrupted run goes on.
# Then the README's table of times, its words about machines and its picture are made from the results.
# Jobs with data sets need their folder: make bench DATA=DIR. More choices: .venv/bin/python benchmarks/run.py --help
DATA ?= ../shared/data

bench: .venv/.bench
	$(BIN)/python benchmarks/run.py $(if $(wildcard $(DATA)),--data $(DATA))
	$(BIN)/python docs/images/speed.py

# Coverage of intervals and calibration of probabilities, by data set.
promises: .venv/.bench
	$(BIN)/python benchmarks/promises.py --data $(DATA)

format: .venv/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.demo: .venv/bin/python pyproject.toml constraints.txt
	$(INSTALL) ".[cli,plot]"
	touch $@

.venv/.dev: .venv/bin/python pyproject.toml constraints.txt
	$(INSTALL) ".[dev]"
	touch $@

.venv/.bench: .venv/bin/python pyproject.toml constraints.txt
	$(INSTALL) ".[bench,plot,molecules]"
	touch $@

# pip installs dependency groups since 25.1, which is newer than the pip of a new environment.
.venv/.docs: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"
	$(INSTALL) ".[cli,plot,molecules]" --group docs
	touch $@

clean:
	rm -rf .venv out
