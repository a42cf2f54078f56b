# The targets of the lab; `make` alone lists them.
SHELL := /bin/sh
# The first Python that is new enough; where none is, tools/bootstrap.py says so.
NEW_ENOUGH = import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(or $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$p && break; done),python3)
BOOTSTRAP = $(PYTHON) tools/bootstrap.py
VENV_PYTHON = .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help run setup test check bench translations clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

run: ## set up what is missing, then open the lab on http://127.0.0.1:8501
	@$(BOOTSTRAP) run
	@exec $(VENV_PYTHON) tools/start.py

setup: ## make the environment alone
	@$(BOOTSTRAP) run

test: ## set up what is missing, then format, lint, types and every test layer
	@$(BOOTSTRAP) test
	@exec $(VENV_PYTHON) tools/check.py

check: ## format, lint and types alone
	@$(BOOTSTRAP) test
	@exec $(VENV_PYTHON) tools/check.py --static

bench: ## print the benchmark figures (PEERS=1 measures other tools beside)
	@$(BOOTSTRAP) test
	@$(VENV_PYTHON) -m bench $(if $(PEERS),--peers)
	@exec $(VENV_PYTHON) -m bench.engine_overhead

translations: ## collect the strings of the pages into locale/
	@$(BOOTSTRAP) test
	@exec $(VENV_PYTHON) tools/translations.py update

clean: ## remove the environment and caches; history, configs and models stay
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis
