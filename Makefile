# Everything happens in .venv/ inside this folder. `make` alone lists the targets.

SHELL := /bin/sh
BIN := .venv/bin
READY := .venv/ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format bench wheel requirements clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

setup: $(READY) ## set everything up: .venv/ with the CLI in it, and Delta's jars

$(READY): requirements/dev.txt pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh

demo: $(READY) ## sync the example into an embedded warehouse, and repair an out-of-band change
	@sh scripts/demo.sh

test: $(READY) ## pass the tests, with real Spark and Delta
	@$(BIN)/python -m pytest --cov --cov-report=term

check: $(READY) ## lint, types and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(READY) ## format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY) ## time the engine against the bare SQL statements
	@$(BIN)/python benchmarks/sync_against_bare_sql.py

wheel: $(READY) ## build the wheel into dist/
	@$(BIN)/python -m build --wheel --no-isolation

requirements: $(READY) ## pin requirements/dev.txt anew
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-header \
		--no-emit-index-url --no-emit-find-links --upgrade requirements/dev.in -o requirements/dev.txt

clean: ## remove .venv/, the embedded warehouse and what tools leave behind
	@rm -rf .venv .delta-engine dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache \
		.coverage
