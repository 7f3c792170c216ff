# The two commands are `make demo` and `make test`; each does its own set-up, into .venv.
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all lint check-style check-format check-types check-house bench docs docs-build dist clean

PYTHON := .venv/bin/python
# MUJOCO_GL unset: the engine itself must find the back end that works.
PYTEST := env -u MUJOCO_GL $(PYTHON) -m pytest -n 2
MYPY := $(PYTHON) -m mypy interverse tools

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

setup: ## Make .venv with all that the commands need
	@bash tools/setup.sh

demo: setup ## See it work: ends with the path of what it made
	.venv/bin/interverse demo

test: check-style check-format check-house ## Lint, house rules, fast tests with the type check beside them
	@log=$$(mktemp); $(MYPY) >$$log 2>&1 & types=$$!; \
	$(PYTEST); tested=$$?; \
	wait $$types; typed=$$?; cat $$log; rm $$log; exit $$((tested | typed))

test-all: lint ## Every test: slow ones, and GPU where there is one
	@bash tools/setup.sh dev,all
	$(PYTEST) -m ''

lint: check-style check-format check-types check-house ## The four checks below

check-style: setup ## Ruff's rules
	$(PYTHON) -m ruff check .

check-format: setup ## Ruff's format
	$(PYTHON) -m ruff format --check .

check-types: setup ## Mypy, strict, on the whole package
	$(MYPY)

check-house: setup ## The house rules that no other tool knows
	$(PYTHON) tools/house_check.py

bench: setup ## Measure speed: ratios within one run
	.venv/bin/interverse bench

docs: setup ## Serve the documentation site at http://127.0.0.1:8000
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs serve

docs-build: setup ## Build the documentation site into build/site
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --quiet

dist: setup ## Build the source distribution and the wheel into dist/, and check both
	rm -rf dist
	.venv/bin/python -m pip install -q -c constraints.txt build twine
	.venv/bin/python -m build
	.venv/bin/python -m twine check --strict dist/*

clean: ## Remove .venv, caches and builds
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
