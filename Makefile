# Everything runs in .venv, which the first target that needs it makes.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Small matrices: more BLAS threads only get into each other's way.
export OMP_NUM_THREADS := 1

.PHONY: setup browser demo test test-all test-kernels lint format check bench docs pins clean

setup: $(READY)

$(READY): requirements/dev.txt pyproject.toml
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# The pages of reports are tested in a real browser; without one these tests are skipped.
browser:
	command -v chromium >/dev/null || { apt-get update --quiet && \
	apt-get install --quiet --yes --no-install-recommends chromium; }

demo: $(READY)
	$(BIN)/lqgap transfer --output demo --verbose

test: $(READY)
	$(BIN)/pytest -m "not slow"

test-all: $(READY)
	$(BIN)/pytest

# Every processor rounds in its own way: OpenBLAS (under NumPy, SciPy and JAX's LAPACK) and XLA each choose kernels for
# it. What depends on rounding most, on an old, a common and a new processor; in these wheels Zen has Haswell's kernels.
KERNELS := Prescott-SSE4_2 Haswell-AVX2 $(if $(shell grep -s -m 1 avx512vl /proc/cpuinfo),SkylakeX-AVX512)
NUMERICAL := tests/linalg tests/systems/test_continuous.py tests/evaluation/test_exact.py

test-kernels: $(KERNELS:%=test-on-%)

test-on-%: $(READY)
	OPENBLAS_CORETYPE=$(word 1,$(subst -, ,$*)) XLA_FLAGS=--xla_cpu_max_isa=$(word 2,$(subst -, ,$*)) \
	$(BIN)/pytest -m "not slow" -k "not refused and not dearer" $(NUMERICAL)

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/pytest tests/test_layout.py -n 0

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: lint test

bench: $(READY)
	$(BIN)/python -m benchmarks

docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/docs.txt
	$(BIN)/sphinx-build --quiet --fail-on-warning -b html docs docs/_build/html

# The compiler of pins lives in an environment of its own: its dependencies are not ours.
PINS := $(VENV)-pins/bin/pip-compile --quiet --strip-extras --no-annotate --no-header \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links

pins:
	python3 -m venv $(VENV)-pins
	$(VENV)-pins/bin/python -m pip install --quiet --disable-pip-version-check pip-tools
	$(PINS) -o requirements/core.txt pyproject.toml
	$(PINS) -o requirements/dev.txt requirements/dev.in
	$(PINS) -o requirements/docs.txt requirements/docs.in

clean:
	rm -rf $(VENV) $(VENV)-pins dist docs/_build .ruff_cache .hypothesis .jax_cache
