# Everything happens in a virtual environment of its own; nothing is installed outside of it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test quick coverage mutants check docs docs-site docs-links notebooks bench dist clean

demo: $(VENV)/demo
	rm -rf runs/demo
	$(BIN)/unveil demo --out runs/demo

test: $(VENV)/dev
	$(BIN)/python -m pytest -n 2 --dist worksteal

# The inner loop, under a minute: packages whose tests start no process and train no network. `make test` runs these too.
QUICK := losses clustering counting data encoders review
quick: $(VENV)/dev
	$(BIN)/python -m pytest -n 2 --dist worksteal $(QUICK:%=tests/%) tests/test_metrics.py tests/test_layers.py

# Which lines and branches the tests run, in results/coverage.json; about twice as long as the tests.
coverage: $(VENV)/dev
	$(BIN)/python -m pip install --quiet 'coverage>=7.10'
	rm -rf build/coverage
	mkdir -p build/coverage
	-$(BIN)/python -m coverage run -m pytest
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage json -o build/coverage.json
	$(BIN)/python -m benchmarks.reliability coverage build/coverage.json

# Which small changes of losses, scores, queue and review log the tests notice, in results/mutation.json.
mutants: $(VENV)/dev
	$(BIN)/python -m pip install --quiet 'mutmut>=3.8'
	$(BIN)/mutmut run
	$(BIN)/python -m benchmarks.reliability mutants mutants

check: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/render.py --check

docs: $(VENV)/demo
	$(BIN)/python docs/render.py

# The documentation site, in build/site; a link that leads nowhere is an error.
docs-site: $(VENV)/dev
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/site

# Links to other sites; needs a network.
docs-links: $(VENV)/dev
	$(BIN)/python -m sphinx -q -b linkcheck docs build/links

# Run the notebooks and keep what they give.
notebooks: $(VENV)/dev
	$(BIN)/python docs/run_notebooks.py

bench: $(VENV)/dev
	$(BIN)/python -m benchmarks step --out results/bench-step.json
	$(BIN)/python -m benchmarks limits --out results/bench-limits.json
	$(BIN)/python -m benchmarks growth --out results/bench-growth.json
	$(BIN)/python docs/render.py

dist: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet build twine
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	touch $@

$(VENV)/dev: $(VENV)/demo
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .[dev,docs,images,text,multilingual,cells,paper,review]
	touch $@

clean:
	rm -rf $(VENV)
