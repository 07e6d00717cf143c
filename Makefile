# Everything runs in .venv, which the first target that needs it makes.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := -m pip install --quiet --disable-pip-version-check

# Small matrices: more BLAS threads only get into each other's way.
export OMP_NUM_THREADS := 1
# Tests check shapes by byte code of their own, which takes long to make and is kept.
export PYTHONDONTWRITEBYTECODE :=

# What `make demo` transfers, and where to; the built-in study if left out.
STUDY :=
OUTPUT := demo

.PHONY: help setup ci-browser demo test test-all test-kernels test-lowest test-readme test-wheel coverage lint format \
	check bench bench-peers docs pins clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' Makefile

setup: $(READY) ## .venv with everything pinned

$(READY): requirements/dev.txt pyproject.toml
	python3 -m venv $(VENV)
	$(BIN)/python $(PIP) -r requirements/dev.txt
	$(BIN)/python $(PIP) --no-deps --no-build-isolation -e .
	touch $@

# The pages of reports are tested in a real browser; without one these tests are skipped.
ci-browser: ## installs Chromium by apt-get, if it is not there
	command -v chromium >/dev/null || { apt-get update --quiet && \
	apt-get install --quiet --yes --no-install-recommends chromium; }

demo: $(READY) ## which policy for a mass on a spring of uncertain stiffness and gain?
	$(BIN)/lqgap transfer $(STUDY) --output $(OUTPUT) --verbose

test: $(READY) ## the tests that every change must pass
	$(BIN)/pytest -m "not slow" --ignore=tests/test_layout.py

test-all: $(READY) ## also the slow ones
	$(BIN)/pytest

test-readme: $(READY) ## every example and every command of the README
	$(BIN)/pytest tests/test_readme.py -n 0

# A clean environment, another folder: what users install is what is tested.
test-wheel: $(READY) ## builds the wheel, installs it elsewhere and runs it there
	rm -rf dist && $(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	folder=$$(mktemp -d) && wheel=$$(echo $$PWD/dist/lqgap-*.whl) && core=$$PWD/requirements/core.txt && \
	study=$$PWD/tests/support/small.toml && python3 -m venv $$folder/.venv && cd $$folder && \
	.venv/bin/python $(PIP) -r $$core && .venv/bin/python $(PIP) --no-deps $$wheel && \
	.venv/bin/lqgap --version && .venv/bin/lqgap transfer $$study --output results --verbose && \
	test -s results/report.html && rm -r $$folder

# The lowest versions that pyproject.toml admits; what only developers use is as pinned.
test-lowest: ## the numerical core with the lowest versions of all dependencies
	python3 -m venv $(VENV)-lowest && $(VENV)-lowest/bin/python $(PIP) uv
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python --resolution lowest-direct ".[all]"
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python hypothesis plotly pytest \
	pytest-timeout
	$(VENV)-lowest/bin/python -m pytest --override-ini addopts="--import-mode=importlib -p no:cacheprovider -q" \
	--override-ini filterwarnings=default -m "not slow" tests/systems tests/interop tests/cli \
	tests/simulators/audit tests/policies tests/training/test_engine.py tests/adaptive/test_run.py

coverage: $(READY) ## lines that `make test` runs
	$(BIN)/pytest -m "not slow" --cov=lqgap --cov-report=term

# Every processor rounds in its own way: OpenBLAS (under NumPy, SciPy and JAX's LAPACK) and XLA each choose kernels for
# it. What depends on rounding most, on an old, a common and a new processor (Zen has Haswell's kernels in these wheels).
KERNELS := Prescott-SSE4_2 Haswell-AVX2 $(if $(shell grep -s -m 1 avx512vl /proc/cpuinfo),SkylakeX-AVX512)
NUMERICAL := tests/linalg tests/systems/test_continuous.py tests/evaluation/test_exact.py

test-kernels: $(KERNELS:%=test-on-%) ## the numerical core, rounded as other processors round

test-on-%: $(READY)
	OPENBLAS_CORETYPE=$(word 1,$(subst -, ,$*)) XLA_FLAGS=--xla_cpu_max_isa=$(word 2,$(subst -, ,$*)) \
	$(BIN)/pytest -m "not slow" -k "not refused and not dearer" $(NUMERICAL)

lint: $(READY) ## format, style, types, layers, layout
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/pytest tests/test_layout.py -n 0

format: $(READY) ## lets ruff repair what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: lint test ## what every change must pass

bench: $(READY) ## measures, prints and writes docs/benchmarks.md
	$(BIN)/python -m benchmarks

# Peers bring much that nobody else needs: an environment of their own. Torch first: its pin depends on the index.
bench-peers: ## measures other libraries beside ours, into docs/benchmarks.md
	python3 -m venv $(VENV)-peers
	$(VENV)-peers/bin/python $(PIP) torch==2.13.0
	$(VENV)-peers/bin/python $(PIP) -r requirements/peers.txt
	$(VENV)-peers/bin/python $(PIP) --no-deps --no-build-isolation -e .
	$(VENV)-peers/bin/python -W ignore -m benchmarks.peers

docs: $(READY) ## the pages, in docs/_build/html; runs all their cells
	$(BIN)/python $(PIP) -r requirements/docs.txt
	$(BIN)/sphinx-build --quiet --fail-on-warning --jobs 2 -b html docs docs/_build/html
	$(BIN)/python docs/look.py docs/_build/html

# The compiler of pins lives in an environment of its own: its dependencies are not ours.
PINS := $(VENV)-pins/bin/pip-compile --quiet --strip-extras --no-annotate --no-header \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links

pins: ## compiles requirements/*.txt anew
	python3 -m venv $(VENV)-pins
	$(VENV)-pins/bin/python $(PIP) pip-tools
	$(PINS) -o requirements/core.txt pyproject.toml
	$(PINS) -o requirements/dev.txt requirements/dev.in
	$(PINS) -o requirements/docs.txt requirements/docs.in
	$(PINS) --extra peers --unsafe-package torch -o requirements/peers.txt pyproject.toml requirements/peers.in

clean: ## removes all that is made here
	rm -rf $(VENV) $(VENV)-pins $(VENV)-lowest $(VENV)-peers dist demo docs/_build .ruff_cache .hypothesis .jax_cache \
	.pytest_cache .import_linter_cache
