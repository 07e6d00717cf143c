# Everything runs in .venv, which the first target that needs it makes.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Small matrices: more BLAS threads only get into each other's way.
export OMP_NUM_THREADS := 1
# Tests check shapes by byte code of their own, which takes long to make and is kept.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup browser demo test test-all lint format check bench docs pins clean

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
	$(BIN)/pytest -m "not slow" --ignore=tests/test_layout.py

test-all: $(READY)
	$(BIN)/pytest

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
