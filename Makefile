# `make demo` and `make test` work on a fresh machine with Python 3.11 to 3.13, make and g++ (phase 3 executes C++).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One BLAS thread on purpose: several threads on two shared cores collapse.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
DEMO_PORT := build/demo/digits_cnn.port

.PHONY: demo test test-corpus test-extras bench nightly docs format clean help

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(STAMP)  ## port the bundled digits model through every phase that exists
	$(BIN)/python -m phases.baseline examples/digits/digits_cnn.onnx --data examples/digits/digits.npz --out $(DEMO_PORT)
	$(BIN)/python -m phases.presim $(DEMO_PORT)
	$(BIN)/python -m phases.bringup $(DEMO_PORT) --backend host --level host
	$(BIN)/python -m phases.optimize $(DEMO_PORT)
	$(BIN)/python -m phases check $(DEMO_PORT)
	$(BIN)/python -m phases draw $(DEMO_PORT) --out build/demo/digits_cnn.design.svg
	@echo "reports: $(DEMO_PORT)/reports/report.html (also baseline.md, presim.md, bringup.md, optimize.md, junit.xml)"
	@echo "picture: build/demo/digits_cnn.design.svg"

test: $(STAMP)  ## everything that CI runs, timed by part
	$(BIN)/python -m tests.tiers test

test-corpus: $(STAMP)  ## phase 1 over the whole model corpus (minutes)
	$(BIN)/python -m tests.tiers corpus

test-extras: $(STAMP)  ## host arithmetic against the ap_fixed headers that hls4ml ships (needs a package index)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target build/extras hls4ml
	PYTHONPATH=build/extras $(BIN)/python -m pytest -q tests/bringup/aie_api_host/test_ap_fixed.py

bench: $(STAMP)  ## speed: oracle against onnxruntime and onnx.reference, simulator, placement, design search
	$(BIN)/python -m tests.bench.oracle
	$(BIN)/python -m tests.bench.presim
	$(BIN)/python -m tests.bench.placement
	$(BIN)/python -m tests.bench.design_search

nightly: $(STAMP)  ## all tests, hypothesis with more examples, 100 kills
	$(BIN)/python -m tests.tiers nightly

docs: $(STAMP)  ## write the generated documents again
	$(BIN)/python -m phases.docs --write

format: $(STAMP)  ## format and fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove what the targets made
	rm -rf build $(VENV)
