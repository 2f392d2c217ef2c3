# Every target sets up what it needs in .venv. `make demo` and `make test` are all a newcomer has to know.
PYTHON ?= python3
BIN := .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: demo test test-versions check bench format clean

demo: .venv/.demo
	$(BIN)/mercer demo

test: check
	$(BIN)/python -m pytest -n 2 -q

# Other Pythons and other releases of the dependencies, each from a built wheel, where they can be had.
test-versions:
	$(PYTHON) tests/versions.py

check: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q --doctest-modules --doctest-glob='*.md' src README.md docs

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
	$(INSTALL) ".[bench,plot]"
	touch $@

clean:
	rm -rf .venv out
