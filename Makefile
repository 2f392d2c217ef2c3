# Every target sets up what it needs in .venv. `make demo` and `make test` are all a newcomer has to know.
PYTHON ?= python3
BIN := .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: demo test tests test-narrow test-versions check lint doctest docs bench bench-objects accuracy-objects promises format clean

demo: .venv/.demo
	$(BIN)/mercer demo

# Bytecode is kept even if the environment says otherwise: without it every run rewrites the asserts of all tests anew,
# and every process that a test starts compiles the package.
tests doctest: export PYTHONDONTWRITEBYTECODE =

test: .venv/.dev
	$(MAKE) --no-print-directory --jobs 3 lint doctest tests

# Workers take whole files and share what is left at the end: each prepares half of the data and compiled loops.
tests: .venv/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

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
	$(BIN)/python -m pytest -n 2 --dist worksteal -q $(NUMERICAL:%=tests/test_%.py)

check: lint doctest

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python docs/_site/docstrings.py

doctest: .venv/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q --doctest-modules --doctest-glob='*.md' src README.md docs

# The documentation site in out/docs: open out/docs/index.html. It needs no network, neither to be built nor to be read.
docs: .venv/.docs
	$(BIN)/python docs/_site/build.py out

bench: .venv/.bench
	$(BIN)/python benchmarks/gram.py
	$(BIN)/python benchmarks/ridge.py
	$(BIN)/python benchmarks/nystrom.py
	$(BIN)/python benchmarks/tuning.py
	$(BIN)/python benchmarks/svm.py
	$(BIN)/python -W ignore benchmarks/smoothing.py
	$(BIN)/python benchmarks/glm.py
	$(BIN)/python benchmarks/perceptron.py
	$(BIN)/python benchmarks/kernel_pca.py
	$(MAKE) --no-print-directory bench-objects

# Speed on strings, graphs, series and fingerprints, and accuracy on real data: the folder DATA holds it.
DATA ?= ../shared/data

bench-objects: .venv/.bench
	$(BIN)/python benchmarks/strings.py
	$(BIN)/python -W ignore benchmarks/graphs.py
	$(BIN)/python benchmarks/series.py
	$(BIN)/python benchmarks/fingerprints.py

accuracy-objects: .venv/.bench
	$(BIN)/python benchmarks/string_accuracy.py --data $(DATA)
	$(BIN)/python benchmarks/graph_accuracy.py --data $(DATA) MUTAG PTC_MR ENZYMES PROTEINS NCI1
	$(BIN)/python benchmarks/series_accuracy.py --data $(DATA)
	$(BIN)/python benchmarks/image_accuracy.py --data $(DATA)
	$(BIN)/python benchmarks/molecule_accuracy.py --data $(DATA)

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
