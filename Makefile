# Every target sets up what it needs: a virtual environment in .venv, a Chromium, and bubblewrap for the tests.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# One for each core. More are a little quicker where most tests wait for another process.
WORKERS ?= logical
STAMP := $(VENV)/.installed

.PHONY: demo test check bench clean

# The main job on real input: the quickstart taskset, a real MCP client in another process,
# a real Chromium; progress, a table, and a report that opens from disk.
demo: $(STAMP) browser
	$(BIN)/hud-mcp eval taskset_data/quickstart.jsonl --agent oracle \
	  --store demo-report/store.sqlite3 --report demo-report/report.html

test: $(STAMP) browser sandbox database
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

check: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[check]'
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(STAMP) browser
	$(BIN)/python benchmarks/stdio.py
	$(BIN)/python benchmarks/browser.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/restart.py
	$(BIN)/python benchmarks/stepping.py
	$(BIN)/python benchmarks/contexts.py
	$(BIN)/python benchmarks/tunnel.py
	@if [ -x .venv-hud/bin/python ]; then \
	  $(BIN)/python benchmarks/channel.py --hud-python .venv-hud/bin/python; \
	else \
	  echo "benchmarks/channel.py needs HUD's SDK, which make test leaves in .venv-hud"; \
	fi

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $(STAMP)

.PHONY: browser
browser: $(STAMP)
	sh scripts/install-chromium.sh $(BIN)/python

.PHONY: database
database:
	sh scripts/install-postgresql.sh

.PHONY: sandbox
sandbox:
	sh scripts/install-bubblewrap.sh

clean:
	rm -rf $(VENV) demo-report build dist .pytest_cache .ruff_cache
