# On a fresh machine `make demo` and `make test` need Python 3.11 or newer and make; the rest is done here.
# Stamps inside .venv make the second run quick: an install runs again only when its input changed.

PYTHON ?= $(shell for p in python3.11 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; exit; }; done)
VENV := .venv
# -W ignore: older releases of pip lecture about how PySpark's source package is built, which nobody here can change.
PIP := $(VENV)/bin/python -W ignore -m pip --disable-pip-version-check
UV_VERSION := 0.13.7
SCHEDULES ?= 10000
MINUTES ?= 30
CASES ?= 500
LAW_CASES ?= 1000
BACKUPS ?= 30
KILLS ?= 200
LOSSES ?= 500
JARS := src/belvedere/stores/hbase/jars
# test processes at once; each may hold a Spark session, and a cluster, of its own
WORKERS ?= $(or $(BELVEDERE_TEST_WORKERS),2)
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-hbase test-sources coverage soak soak-backup soak-crowd soak-damage soak-hbase \
	soak-laws soak-power soak-warehouse bench java lint lock clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(VENV)/.spark-archive ## create .venv with everything in it, Java included

demo: $(VENV)/.project-installed ## a shop with live views, from nothing to first results
	$(VENV)/bin/belvedere demo $(ARGS)

test: setup $(if $(ARGS),$(if $(shell command -v mvn),java)) ## ruff, mypy --strict and all tests that need no server; ARGS="-k join" goes to pytest
	.ci/checks $(ARGS)

test-hbase: setup java ## the tests that start a real HBase
	$(VENV)/bin/python -m pytest tests/hbase -n $(WORKERS) --dist loadfile --durations 10 $(ARGS)

test-sources: setup ## the tests that start real databases to follow
	$(VENV)/bin/python -m pytest tests/sources -n $(WORKERS) --dist loadfile --durations 10 $(ARGS)

coverage: setup ## how much of each package the unit tests run; ARGS="tests/laws" for others that start no Spark
	.ci/coverage $(or $(ARGS),tests/unit)

soak: setup ## SCHEDULES=10000 random schedules with crashes through the simulator
	$(VENV)/bin/python -m tests.simulation.soak --schedules $(SCHEDULES) $(ARGS)

soak-laws: setup ## LAW_CASES=1000 random cases for each law, of seeds that nobody has seen
	BELVEDERE_LAW_SEED=random BELVEDERE_LAW_CASES=$(LAW_CASES) $(VENV)/bin/python -m pytest tests/laws -n 2 -k property $(ARGS)

soak-damage: setup ## CASES=500 copies of a database with one damaged file
	BELVEDERE_DAMAGES=$(CASES) $(VENV)/bin/python -m pytest tests/integration/test_damaged_files.py -n 2 $(ARGS)

soak-backup: setup ## BACKUPS=30 backups beside writers and a pipeline, each restored and every view verified
	BELVEDERE_BACKUPS=$(BACKUPS) $(VENV)/bin/python -m pytest -n 0 tests/integration/test_backups.py $(ARGS)

soak-crowd: setup ## KILLS=200 of processes that write, maintain and trim beside each other
	BELVEDERE_CROWD=$(KILLS) $(VENV)/bin/python -m pytest -n 0 tests/integration/test_crowd.py $(ARGS)

soak-power: setup ## LOSSES=500 of power under a writer that maintains views
	BELVEDERE_POWER_LOSSES=$(LOSSES) $(VENV)/bin/python -m pytest tests/unit/stores/test_power_loss.py -n 2 $(ARGS)

soak-warehouse: setup ## SCHEDULES=2000 random schedules for each algorithm over several sources; ARGS=--price prints queries per update
	$(VENV)/bin/python -m tests.warehouse.soak --schedules $(if $(filter-out file,$(origin SCHEDULES)),$(SCHEDULES),2000) $(ARGS)

soak-hbase: setup java ## MINUTES=30 of killed processes and moving regions, on a real HBase and a Spark cluster
	$(VENV)/bin/python -m tests.hbase.soak --minutes $(MINUTES) $(ARGS)

bench: setup ## run the benchmarks; results go to bench-out/
	$(VENV)/bin/belvedere bench $(ARGS)

java: $(JARS)/.built ## build the jars for HBase from java/, and run their tests (needs Maven and a JDK)

lint: setup ## ruff and mypy only
	.ci/checks --lint

lock: .tools/bin/uv ## write requirements.lock anew from pyproject.toml
	.tools/bin/uv pip compile --quiet --system-certs --upgrade --universal --python-version 3.11 --all-extras \
		--generate-hashes --no-emit-index-url --no-annotate --custom-compile-command "make lock" \
		--output-file requirements.lock pyproject.toml

clean: ## remove caches and build results; .venv, demo-shop and bench-out stay
	rm -rf build dist java/*/target .pytest_cache .mypy_cache .ruff_cache spark-warehouse metastore_db derby.log
	find src tests bench docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean ## clean, and remove .venv and the tools
	rm -rf $(VENV) .tools .hypothesis

# A virtual environment without pip (Debian without python3-venv) is removed again, else the next run would trust it.
$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer was not found: install it, or run make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); \
		echo "The virtual environment could not be made: on Debian and Ubuntu, install python3-venv"; exit 1; }

$(VENV)/.lock-installed: requirements.lock | $(VENV)/bin/python
	@echo "Installing requirements.lock into $(VENV): a minute or two, once"
	@$(PIP) install --quiet --require-hashes -r requirements.lock
	@touch $@

# The build backend comes from the lock, so nothing is fetched here.
$(VENV)/.project-installed: pyproject.toml $(VENV)/.lock-installed
	@$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# Not for one demo: it takes longer than it saves there.
$(VENV)/.spark-archive: $(VENV)/.lock-installed | $(VENV)/.project-installed
	@echo "Preparing a quicker start of Spark: half a minute, once"
	@$(VENV)/bin/python -m belvedere.spark.archive || echo "Going on without it"
	@touch $@

$(JARS)/.built: $(shell find java -name '*.java' -o -name pom.xml)
	@command -v mvn > /dev/null || { echo "Maven was not found: on Debian and Ubuntu, install maven"; exit 1; }
	@echo "Building the jars for HBase: half a minute, and a minute or two more the first time"
	@mvn -q -B -f java/pom.xml package
	@touch $@

.tools/bin/uv:
	$(PYTHON) -m venv .tools
	.tools/bin/python -m pip --disable-pip-version-check install --quiet uv==$(UV_VERSION)
