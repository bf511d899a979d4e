# make demo runs the demonstration, make test all checks; both create .venv if needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PYTHON312 ?= python3.12
PYTHON313 ?= python3.13
# of make soak: how many erasures, which ones, and from which part (of 2,500) on
ERASURES ?= 50000
SEED     ?= 0
FROM     ?= 0
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

# another PYTHON makes another environment
MADE   := $(VENV)/.made-by-$(shell $(PYTHON) -c 'import platform; print(platform.python_version())')

# what the tests need; dev-without-torch leaves out torch, and then the tests that need it are skipped by name
DEV    ?= dev

export HF_HUB_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false
# every process would compile every module anew
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test lint types layers docs tests postgres adapters soak wheel release pythons requirements licences advisories lowest fix clean
help: ## List the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 12

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than Python 3.11; give another one: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) --upgrade pip
	@touch $@

$(VENV)/.demo: $(MADE) pyproject.toml constraints.txt requirements-demo.txt
	@echo "installing meve into $(VENV)"
	$(PIP) --require-hashes --only-binary :all: --requirement requirements-demo.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	@echo "installing test dependencies ($(DEV)): a few minutes the first time"
	$(PIP) --editable '.[$(DEV)]'
	@touch $@

demo: $(VENV)/.demo ## Index the Python language reference and answer questions from it
	@$(BIN)/meve demo

test: lint types layers docs wheel ## All checks; the tests run against the built wheel

lint: $(VENV)/.dev ## Style (ruff)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## Types (mypy, strict)
	$(BIN)/mypy
	$(BIN)/mypy tests/typing/api.py

layers: $(VENV)/.dev ## Imports go downward only (import-linter)
	$(BIN)/lint-imports

$(VENV)/.docs: $(VENV)/.demo
	$(PIP) --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs ## Build the documentation site in build/site; broken links, and pages that are missing, fail
	$(BIN)/python -m recipes.site.build

tests: $(VENV)/.dev ## Tests on the source tree, and the examples of README, docs and docstrings
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

ON_POSTGRES = tests/memory $(foreach name,classic extraction graph_store* memory_* chat_*,$(wildcard tests/*_integration/test_$(name).py)) tests/llama_index_integration/chat_store_contract
WITH_KEYS_ELSEWHERE = $(foreach name,keys key_recovery rolled_back faults forks copy,tests/memory/test_$(name).py)
postgres: $(VENV)/.dev ## The tests of memories, and of the wrappers over them, on PostgreSQL; those about SQLite's file are skipped
	$(BIN)/python -m pytest $(ON_POSTGRES) --memory postgresql --numprocesses auto --maxprocesses 4 --dist worksteal
	$(BIN)/python -m pytest $(WITH_KEYS_ELSEWHERE) --memory postgresql-keys --numprocesses auto --maxprocesses 4 --dist worksteal

adapters: $(VENV)/.dev ## meve serve and langchain-mcp-adapters, which needs an environment of its own (make test runs this, too)
	$(PYTHON) -m venv --clear .venv-adapters
	.venv-adapters/bin/python -m pip --disable-pip-version-check install --quiet --requirement tests/serve/langchain_mcp.txt
	MEVE_LANGCHAIN_MCP=$(CURDIR)/.venv-adapters/bin/python $(BIN)/python -m pytest -v tests/serve/test_langchain_mcp.py

soak: $(VENV)/.dev ## Erase 50,000 records, kill writers a thousand times, fork 200 times, try random data (some hours)
	MEVE_ERASURES=$(ERASURES) MEVE_SEED=$(SEED) MEVE_FROM=$(FROM) $(BIN)/python -m pytest -v tests/memory/test_erasure_soak.py
	MEVE_KILLS=1000 $(BIN)/python -m pytest tests/memory/test_faults.py -k killed
	MEVE_FORKS=200 $(BIN)/python -m pytest tests/memory/test_forks.py
	MEVE_FUZZ=5000 $(BIN)/python -m pytest tests/fuzz

wheel: $(VENV)/.dev ## Test the built wheel outside the source tree: alone, with each extra, under all tests
	$(BIN)/python tests/wheel/try_wheel.py --constraint constraints.txt

release: test pythons lowest advisories postgres soak ## All checks, and those that CI doesn't run: do it before a release (some hours)

pythons: DEV := dev-without-torch
pythons: ## Run the tests on the other Pythons, each in an environment of its own, before a release (with torch: DEV=dev)
	@test $(DEV) = dev || echo "pythons: WITHOUT torch, whose default build brings gigabytes of CUDA; the tests that need it are skipped, and named at the end"
	$(PYTHONS) $(MAKE) tests DEV=$(DEV) VENV=.venv-3.12 PYTHON=$(PYTHON312)
	$(PYTHONS) $(MAKE) tests DEV=$(DEV) VENV=.venv-3.13 PYTHON=$(PYTHON313)
pythons: PYTHONS = $(if $(filter dev,$(DEV)),,MEVE_WITHOUT_TORCH=1)

requirements: ## Write requirements-demo.txt anew: the versions of constraints.txt, with the hashes of their files
	$(PYTHON) -m venv --clear .venv-uv
	.venv-uv/bin/python -m pip --disable-pip-version-check install --quiet uv
	printf 'hatchling\neditables\n' | .venv-uv/bin/uv pip compile pyproject.toml - --constraint constraints.txt --upgrade --universal \
		--python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --quiet --output-file requirements-demo.txt

licences: $(VENV)/.dev ## Write docs/licences.md anew from the installed packages
	$(BIN)/python -m tests.licences

advisories: $(MADE) ## Look for known vulnerabilities in what the demo installs (pip-audit; needs a network)
	$(PIP) pip-audit
	$(BIN)/pip-audit --strict --require-hashes --disable-pip --requirement requirements-demo.txt

lowest: ## Run the tests with the lowest versions that pyproject.toml allows, without torch
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python -m pip --disable-pip-version-check install --quiet uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct --editable '.[dev-without-torch]'
	MEVE_WITHOUT_TORCH=1 .venv-lowest/bin/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

fix: $(VENV)/.dev ## Format, and apply automatic fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove generated files
	rm -rf $(VENV) .venv-3.12 .venv-3.13 .venv-uv .venv-lowest .venv-adapters build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
