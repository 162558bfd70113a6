# Every target sets up what it needs, of Python in .venv and of the machine; or it names what is
# missing, and the one command that installs it.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# Two for each core: most tests wait for another process.
WORKERS ?= $(shell expr 2 '*' $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2))
TESTS ?=
STRESS ?=
SPLIT ?=
STEP ?= all
STAMP := $(VENV)/.installed
# With what the tests need beside it; a part of that is compiled.
TESTED := $(VENV)/.installed-test

# The suite starts some hundred servers. Each would compile every module anew where bytecode is not kept.
PYTEST = PYTHONDONTWRITEBYTECODE= HUD_MCP_TEST_ALL=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

.PHONY: demo test long lanes sample sets check peers prove scale bench stress docs fresh image release clean

# The main job on real input: the quickstart taskset, a real MCP client in another process,
# a real Chromium; progress, a table, and a report that opens from disk.
demo: $(STAMP)
	@$(BIN)/python scripts/install.py demo
	$(BIN)/hud-mcp eval taskset_data/quickstart.jsonl --agent oracle \
	  --store demo-report/store.sqlite3 --report demo-report/report.html

# One representative of each thing, or what TESTS names. A test that is skipped for want of
# something that was to be installed here fails; `$(BIN)/python -m pytest` runs what can be run
# without it. What takes long is in the lanes `long`, `peers`, `prove`, `scale`
# and `stress`.
test: $(TESTED)
	@$(BIN)/python scripts/install.py test
	$(PYTEST) --no-loadscope-reorder $(TESTS)

# Whole conversations whose servers are killed, restarted or waited for, what `make test` runs a
# representative of, and each page of the docs.
long: $(TESTED)
	@$(BIN)/python scripts/install.py test
	$(PYTEST) -m long $(TESTS)

# With other people's software, in environments of their own that pip fills from the network: HUD's
# SDK and the first SDK of MCP, and the surface under the oldest and the newest mcp that is admitted.
peers: $(TESTED)
	@$(BIN)/python scripts/install.py test
	$(PYTEST) -o timeout=0 -m peers $(TESTS)

# The tests of all lanes in one run, but for those that install this package anew, the one that draws
# from each generator of reasoning-gym, and every row of our own sets; `make peers` and `make prove`
# have them.
lanes: $(TESTED)
	@$(BIN)/python scripts/install.py test
	$(PYTEST) -m "long or peers or prove or scale or stress" --ignore tests/interaction/test_admitted_sdks.py \
	  --ignore tests/environments/test_own_sets.py \
	  --deselect tests/environments/test_reasoning_gym.py::test_every_generator_is_as_the_tables_say $(TESTS)

# One of each thing that the lanes prove.
sample: $(TESTED)
	@$(BIN)/python scripts/install.py test
	$(PYTEST) -m sample $(TESTS)

# A job of every set that comes with the package, by a real client; the oracle must get its reward.
# SPLIT=easy takes the easy rows alone.
sets: $(TESTED)
	@$(BIN)/python scripts/install.py test
	$(BIN)/hud-mcp eval all --agent oracle $(if $(SPLIT),--split $(SPLIT)) \
	  --store prove-report/sets.sqlite3

# Both, on a machine that has nothing: a new minimal Debian. STEP is all, demo, test or shell.
fresh:
	bash scripts/fresh.sh $(STEP)

# The image, built without a registry, and what its page says, run in it. STEP is all, build or test.
image: $(TESTED)
	@$(BIN)/python scripts/install.py test
	bash scripts/image.sh $(STEP)

check: $(TESTED)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[check]'
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/pyright --pythonpath $(BIN)/python

# The site of the pages, into site/: every link and anchor leads somewhere, and no page loads
# anything from elsewhere.
docs: $(TESTED)
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	@$(BIN)/python scripts/install.py demo
	@$(BIN)/python scripts/build_site.py

# Every shipped task is proven, or said to be unproven; each row is played in each way; and how often
# the intervals of the statistics hold the truth, over the whole grid.
prove: $(TESTED)
	@$(BIN)/python scripts/install.py test
	$(BIN)/hud-mcp check taskset_data/*.jsonl --store prove-report/store.sqlite3
	$(PYTEST) -q -o timeout=0 -m prove $(TESTS)
	HUD_MCP_PROVE=1 $(BIN)/python -m pytest -q -n $(WORKERS) -o timeout=0 -m '' \
	  tests/analysis/test_interval_coverage.py

# What is published: built and checked, and uploaded by its owner alone.
release: $(TESTED)
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[release]'
	@$(BIN)/python scripts/release.py

bench: $(TESTED)
	@$(BIN)/python scripts/install.py demo
	$(BIN)/python benchmarks/stdio.py
	$(BIN)/python benchmarks/browser.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/restart.py
	$(BIN)/python benchmarks/stepping.py
	$(BIN)/python benchmarks/contexts.py
	$(BIN)/python benchmarks/tasksets.py
	$(BIN)/python benchmarks/job_figures.py
	$(BIN)/python benchmarks/groups.py
	$(BIN)/python benchmarks/job_page.py
	$(BIN)/python benchmarks/long_store.py
	$(BIN)/python benchmarks/tunnel.py
	$(BIN)/python benchmarks/replicas.py
	@if [ ! -e .venv-reading/installed ] && command -v npm >/dev/null; then \
	  mkdir -p .venv-reading && \
	  npm install --silent --no-audit --no-fund --prefix .venv-reading @playwright/mcp@0.0.83 gpt-tokenizer@4.0.0 && \
	  touch .venv-reading/installed; \
	fi
	@if [ -e .venv-reading/installed ]; then \
	  $(BIN)/python benchmarks/reading.py --modules .venv-reading/node_modules; \
	else \
	  echo "benchmarks/reading.py needs npm, which installs @playwright/mcp"; \
	fi
	@if [ ! -x .venv-browsergym/bin/browsergym-ready ]; then \
	  $(PYTHON) -m venv .venv-browsergym && \
	  .venv-browsergym/bin/pip install --quiet --disable-pip-version-check browsergym-miniwob==0.14.3 && \
	  ln -s python .venv-browsergym/bin/browsergym-ready; \
	fi
	$(BIN)/python benchmarks/miniwob.py --browsergym-python .venv-browsergym/bin/python
	@if [ -x .venv-hud/bin/python ]; then \
	  $(BIN)/python benchmarks/channel.py --hud-python .venv-hud/bin/python; \
	  $(BIN)/python benchmarks/scale.py --hud-python .venv-hud/bin/python; \
	else \
	  echo "benchmarks/channel.py needs HUD's SDK, which make peers leaves in .venv-hud"; \
	  $(BIN)/python benchmarks/scale.py; \
	fi
	@if [ -x .venv-openenv/bin/python ]; then \
	  $(BIN)/python benchmarks/openenv_face.py --openenv-python .venv-openenv/bin/python; \
	else \
	  echo "benchmarks/openenv_face.py needs OpenEnv, which make peers leaves in .venv-openenv"; \
	fi

# Very many runs, and workers on more than one process: what is read and sent for a page is bounded.
scale: $(TESTED)
	@$(BIN)/python scripts/install.py test
	$(PYTEST) -o timeout=0 -m scale $(TESTS)

# Kills, full disks and load at full size. Then actions on what scripts move, beside plain Playwright,
# with the processors taken. STRESS=--full runs five seeds of each page, not two.
stress: $(TESTED)
	@$(BIN)/python scripts/install.py test
	$(PYTEST) -m stress $(TESTS)
	$(BIN)/python benchmarks/stress.py $(STRESS)

$(STAMP): pyproject.toml
	@sh scripts/make-venv.sh $(VENV) $(PYTHON)
	@touch $(STAMP)

$(TESTED): pyproject.toml client/pyproject.toml
	@sh scripts/make-venv.sh $(VENV) $(PYTHON) test
	@touch $(STAMP) $(TESTED)

clean:
	rm -rf $(VENV) .venv-browsergym demo-report prove-report build dist site .pytest_cache .ruff_cache
