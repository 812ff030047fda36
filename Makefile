# Needs Python 3.11 to 3.13, a JDK 17 or 21, make and libgomp1, and for `make test` a Chromium on PATH; everything else is
# installed into .venv and .cache by `make setup`.
.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := /bin/bash

SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PY := .venv/bin/python
# The Python of an earlier set-up, else the system's own where it is supported, else the newest beside it that is; looked
# for once, when it is needed.
ifeq ($(origin PYTHON),undefined)
PYTHON = $(eval PYTHON := $(shell for one in $(PY) python3 python3.13 python3.12 python3.11 python; do \
  "$$one" -c '$(SUPPORTED)' 2>/dev/null && command -v "$$one" && exit; done; command -v python3 || command -v python))$(PYTHON)
endif

##@ Try it
.PHONY: help
FIRST := run demo ui test setup
VERBS := init doctor advise status page undo
help:  ## what to begin with
	@awk -v first=" $(FIRST) " 'BEGIN {FS = ":.*##"} /^[a-z-]+:.*##/ && index(first, " " $$1 " ") \
	      {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@awk -v verbs=" $(VERBS) " -F '"' '/^    "[a-z]+": Command\(/ && index(verbs, " " $$2 " ") \
	      {printf "  ./tidewise %-9s %s\n", $$2, $$6}' cli/console.py
	@echo "  ./tidewise --help    all verbs; make help-all: all targets"

.PHONY: help-all
help-all:  ## all targets
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	      /^[a-z-]+:.*##/ {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Without a rule of its own a name is one that went, or a misspelt one.
.DEFAULT:
	@"$(PYTHON)" -m tools.gone_targets "$@" '$(subst ','\'',$(ARGS))'

.PHONY: python
python:
	@"$(PYTHON)" -c '$(SUPPORTED)' 2>/dev/null && exit; \
	"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 7))' 2>/dev/null && exec "$(PYTHON)" -m cli.preflight; \
	echo "setup: '$(PYTHON)' is no Python, 3.11, 3.12 or 3.13 is needed; on Debian or Ubuntu, as root:" \
	  "apt-get install -y python3 python3-venv default-jdk-headless libgomp1"; exit 1

.PHONY: setup
setup: python  ## install everything into .venv and .cache (a second run takes seconds); EXTRA="s3 postgres celery"
	@"$(PYTHON)" -m cli.setup $(EXTRA)

.PHONY: run
run: setup  ## the main job end to end on embedded defaults; ARGS="--help" lists its options
	@$(PY) -m cli.console run $(ARGS)

.PHONY: demo
demo: setup  ## a Flink cluster with a load, the controller and the page on this machine; ARGS="--mode dry-run"
	@$(PY) -m cli.console demo $(ARGS)

.PHONY: ui
ui: setup  ## Airflow and MLflow on 127.0.0.1, with the tables and runs of `make run`; ARGS="--on all" switches DAGs on
	@$(PY) -m cli.console ui $(ARGS)

##@ Measure and compare
.PHONY: bench
bench: setup  ## measure speeds; writes out/bench.json
	@$(PY) -m benchmarks $(ARGS)

.PHONY: papers
papers: setup  ## the papers' experiments in simulation; PAPER=conttune; ARGS="--live" on real Flink
	@PAPER="$(PAPER)" $(PY) -m benchmarks.papers $(ARGS)

.PHONY: replay
replay: setup  ## what every policy costs on real traces; ARGS="--trace FILE --policy NAME ..."
	@$(PY) -m benchmarks.replay $(ARGS)

.PHONY: chaos
chaos: setup  ## faults on a real Flink cluster under the controller; ARGS="--faults 60 --seed 1"
	@$(PY) -m benchmarks.chaos $(ARGS)
	@$(PY) -m tools.record_run $@ --said "passed $(ARGS)"

.PHONY: nexmark
nexmark: setup  ## SQL jobs on a real Flink cluster, beside the truth; ARGS="--queries q2 q3 --minutes 50"
	@$(PY) -m benchmarks.nexmark $(ARGS)

.PHONY: live
live: setup  ## policies and Flink's autoscaler on a real Flink cluster under the same load; ARGS="--job q3 --minutes 40"
	@$(PY) -m benchmarks.live $(ARGS)

##@ Work on it
# Three processes, each of which imports what its folders need. Those beside the live tests, which follow a cluster in
# real time, give way to them; what they say is shown after them. Pytest ends with 5 where ARGS leave a folder no test.
BESIDE := nice -n 10 $(PY) -m pytest --durations=10
.PHONY: test
test: check  ## what runs with each commit (15 minutes)
	@mkdir -p .pytest_cache; failed=0; note() { [ $$1 -eq 0 ] || [ $$1 -eq 5 ] || failed=1; }; \
	$(BESIDE) tests/spark $(ARGS) > .pytest_cache/spark.txt 2>&1 & spark=$$!; \
	$(BESIDE) tests/e2e tests/dags $(ARGS) > .pytest_cache/e2e.txt 2>&1 & e2e=$$!; \
	$(PY) -m pytest --durations=10 tests/live $(ARGS); note $$?; \
	wait $$e2e; note $$?; cat .pytest_cache/e2e.txt; \
	wait $$spark; note $$?; cat .pytest_cache/spark.txt; exit $$failed

# Two cores: the third worker has what others leave of them while they wait.
WORKERS ?= 3

.PHONY: test-benchmarks
test-benchmarks: setup  ## what guards comparisons; PostgreSQL with S3 where that is installed
	@$(MAKE) --no-print-directory setup EXTRA="postgres s3"
	@$(PY) -m pytest tests/benchmarks tests/services -n $(WORKERS) --durations=10 $(ARGS)

# Without setup: it installs everything itself, in there.
.PHONY: fresh
fresh: python  ## the README's commands on a new Debian 13 in a folder, as root; ARGS="--suite bookworm", ARGS="--help"
	@"$(PYTHON)" -m benchmarks.fresh $(ARGS)

.PHONY: fuzz
fuzz: setup  ## mutated raw lines through ingestion; ARGS="--lines 100000 --seed 1"
	@nice -n 10 $(PY) -m tests.fuzz $(ARGS)
	@$(PY) -m tools.record_run $@ --said "passed $(ARGS)"

.PHONY: test-long
test-long: setup  ## what is too long for make test (hours); PART=kills
	@$(PY) -m tools.long_parts $(PART) -- $(ARGS)

.PHONY: nightly
nightly: setup  ## the long tests of what docs/reliability.md promises, and fuzz (at most 60 minutes)
	@$(PY) -m pytest $$($(PY) -m tools.promises) -m long --durations=20
	@$(MAKE) --no-print-directory fuzz ARGS="--lines 20000"
	@$(PY) -m tools.record_run $@

# Types are checked beside the unit tests, and what mypy says is shown after them. A file is of one worker: what its tests
# share is made once.
.PHONY: check
check: setup  ## the fast part, before a commit: lint, layers, types, unit
	@TIMEFORMAT="lint and layers: %R s"; time { .venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/lint-imports; }
	@mkdir -p .mypy_cache; { TIMEFORMAT="types: %R s"; time .venv/bin/mypy; } > .mypy_cache/found.txt 2>&1 & \
	  $(PY) -m pytest tests/unit tests/tools -q -n 2 --dist loadfile --no-loadscope-reorder --durations=10 $(ARGS); units=$$?; \
	  wait $$!; types=$$?; cat .mypy_cache/found.txt; exit $$((units + types))

.PHONY: lint
lint: setup  ## fix what ruff can fix, show what remains
	@.venv/bin/ruff check --fix . ; .venv/bin/ruff format . ; .venv/bin/mypy && .venv/bin/lint-imports

.PHONY: docs
docs: setup  ## write what documents take from the code
	@$(PY) -m tools.settings_doc $(ARGS)
	@$(PY) -m tools.reliability_doc
	@$(PY) -m tools.reasons_doc
	@$(PY) -m tools.tables_doc
	@$(PY) -m tools.metrics_doc
	@$(PY) -m tools.commands_doc
	@$(PY) -m tools.helm_chart
	@$(PY) -m tools.readme_run

.PHONY: site
site: python  ## the documentation as a site in out/site; ARGS="--external"
	@"$(PYTHON)" -m cli.setup --packages docs
	@$(PY) -m tools.site $(ARGS)

.PHONY: cut-release
cut-release: python  ## a release, whole or not at all; ARGS="0.3.0 --no-image"
	@"$(PYTHON)" -m cli.setup --packages docs
	@$(PY) -m tools.cut_release $(ARGS)

LOCK := .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock"
.PHONY: lock
lock: setup  ## resolve requirements.in into requirements.txt, with the hash of every file
	@$(LOCK) -o requirements.txt requirements.in
	@for file in uv flink; do grep -h '^[a-z-]*==' requirements-$$file.txt | tr -d ' \\' \
	  | $(LOCK) --no-deps --no-annotate -o requirements-$$file.txt - || exit 1; done
	@for extra in celery docs postgres s3; do $(LOCK) --no-annotate -c requirements.txt -o requirements-$$extra.txt \
	  $$(sed -n 's/^\([A-Za-z0-9._-]*\)==.*/--no-emit-package \1/p' requirements.txt) requirements-$$extra.in || exit 1; done

.PHONY: clean
clean:  ## remove what runs made (out/); .venv and .cache stay
	@rm -rf out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
