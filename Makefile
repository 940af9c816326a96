# Everything happens in .venv/ inside this folder. `make` alone lists the targets.

SHELL := /bin/sh
BIN := .venv/bin
PIN := $(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-strip-extras --no-emit-index-url \
	--no-emit-find-links --custom-compile-command "make requirements"

.DEFAULT_GOAL := help
.PHONY: help setup demo docs test test-long coverage check format pages pictures bench wheel requirements clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

setup: ## set everything up: .venv/ with the CLI in it, and Delta's jars
	@sh scripts/setup.sh

demo: setup ## sync the example into an embedded warehouse, and repair an out-of-band change
	@sh scripts/demo.sh

docs: setup ## build the documentation as a site with search into dist/site/: open index.html, no server, no network
	@sh scripts/docs.sh
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "docs: open dist/site/index.html"

test: setup ## pass the tests, with real Spark and Delta, and Chromium where there is one
	@sh scripts/browser.sh
	@sh scripts/connect.sh
	@sh scripts/docs.sh
	@$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4

test-long: setup ## pass the long proofs too: kills, two processes, a real S3 server, every example. Before a release
	@sh scripts/browser.sh
	@sh scripts/connect.sh
	@sh scripts/docs.sh
	@DELTA_ENGINE_TESTS=long $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4

coverage: setup ## pass the tests, and say which lines and branches they miss: takes half as long again
	@sh scripts/browser.sh
	@sh scripts/connect.sh
	@sh scripts/docs.sh
	@$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --cov --cov-report=term

check: setup ## lint, types and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: setup ## format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

pages: setup ## write the pages that follow from the code: commands, capabilities, rules
	@$(BIN)/python scripts/generated_pages.py

pictures: setup ## make the pictures of the documentation from runs of the commands
	@sh scripts/browser.sh
	@$(BIN)/python -m scripts.pictures

bench: setup ## measure the engine: planning, reading, applying, starting; beside bare work, and its targets
	@$(BIN)/python -m benchmarks

wheel: setup ## build the wheel into dist/, in place of earlier ones
	@rm -f dist/delta_engine_uc-*.whl
	@$(BIN)/python -m build --wheel --no-isolation

requirements: setup ## pin requirements/ anew
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.8
	@$(PIN) --upgrade requirements/dev.in --output-file requirements/dev.txt
	@$(PIN) --constraint requirements/dev.txt requirements/build.in --output-file requirements/build.txt
	@$(PIN) --constraint requirements/dev.txt requirements/connect.in --output-file requirements/connect.txt
	@$(PIN) --constraint requirements/dev.txt requirements/docs.in --output-file requirements/docs.txt

clean: ## remove .venv/, the embedded warehouse and what tools leave behind
	@rm -rf .venv .delta-engine dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache \
		.coverage
