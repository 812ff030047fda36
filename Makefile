# Needs Python 3.11 to 3.13, a JDK 17 or 21, make and libgomp1, and for `make test` a Chromium on PATH; everything else is
# installed into .venv and .cache by `make setup`.
.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := /bin/bash

SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
# The system's own Python where it is supported, else the newest beside it that is; looked for once, when it is needed.
ifeq ($(origin PYTHON),undefined)
PYTHON = $(eval PYTHON := $(shell for one in python3 python3.13 python3.12 python3.11 python; do \
  "$$one" -c '$(SUPPORTED)' 2>/dev/null && command -v "$$one" && exit; done; command -v python3 || command -v python))$(PYTHON)
endif
PY := .venv/bin/python

##@ Try it
.PHONY: help
FIRST := run demo ui advise init doctor page status log why plan hold undo
help:  ## the targets to begin with; make help-all lists all of them
	@awk -v first=" $(FIRST) " 'BEGIN {FS = ":.*##"} /^[a-z-]+:.*##/ && index(first, " " $$1 " ") \
	      {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  make help-all   all targets"

.PHONY: help-all
help-all:  ## all targets
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	      /^[a-z-]+:.*##/ {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Without a rule of its own a name is a misspelt one.
.DEFAULT:
	@"$(PYTHON)" -c 'import difflib, re, sys; names = re.findall(r"^([a-z-]+):", open(sys.argv[2]).read(), re.M); \
	near = difflib.get_close_matches(sys.argv[1], names, cutoff=0.5); \
	sys.exit(f"make: there is no target {sys.argv[1]!r}; " \
	+ ("did you mean " + ", ".join(near) + "?" if near else "make help-all lists them"))' "$@" $(firstword $(MAKEFILE_LIST))

.PHONY: python
python:
	@"$(PYTHON)" -c '$(SUPPORTED)' 2>/dev/null && exit; \
	"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 7))' 2>/dev/null && exec "$(PYTHON)" -m cli.preflight; \
	echo "setup: '$(PYTHON)' is no Python, 3.11, 3.12 or 3.13 is needed; on Debian or Ubuntu, as root:" \
	  "apt-get install -y python3 python3-venv default-jdk-headless libgomp1"; exit 1

# Where nothing changed since the last set-up, and no other Python is asked for, nothing is looked for or checked again.
NOTHING_CHANGED = $(if $(filter file,$(origin PYTHON)),[ -x $(PY) ] && $(PY) -m cli.setup_stamp $(EXTRA),false)
.PHONY: setup whole-setup
setup:  ## install everything into .venv and .cache (a second run takes no time); EXTRA="s3 postgres celery"
	@$(NOTHING_CHANGED) || $(MAKE) --no-print-directory whole-setup

whole-setup: python
	@"$(PYTHON)" -m cli.setup $(EXTRA)

.PHONY: run
run: setup  ## the main job end to end on embedded defaults; ARGS="--help" lists its options
	@$(PY) -m cli.console run $(ARGS)

.PHONY: demo
demo: setup  ## a Flink cluster with a load, the controller and the page on this machine; ARGS="--mode dry-run"
	@$(PY) -m lab.commands.demo $(ARGS)

.PHONY: ui
ui: setup  ## Airflow and MLflow on 127.0.0.1, with the tables and runs of `make run`; ARGS="--on all" switches DAGs on
	@$(PY) -m cli.console ui $(ARGS)

.PHONY: backtest
backtest: setup  ## after `make run`: what each policy would have cost on the jobs' own last week
	@$(PY) -m lab.commands.backtest $(ARGS)

.PHONY: advise
advise: setup  ## what the last days would have cost under Tidewise and others: one page; ARGS="--raw DIR"
	@$(PY) -m lab.commands.advise $(ARGS)

##@ Connect a cluster
.PHONY: init
init: setup  ## write a tidewise.toml for a cluster of yours, or add it to yours; ARGS="--rest-url http://jobmanager:8081"
	@$(PY) -m cli.console init $(ARGS)

.PHONY: doctor
doctor: $(if $(wildcard $(PY)),,python)  ## whether it will work here: machine, settings, clusters, lake, MLflow, Airflow; ARGS="--json"
	@if [ -x $(PY) ]; then $(PY) -m cli.console doctor $(ARGS); else echo "doctor: nothing is installed: run make setup"; exit 1; fi

.PHONY: manifests
manifests: setup  ## rights, network policy, monitoring and Argo CD for clusters under Kubernetes; ARGS="--out DIR"
	@$(PY) -m cli.console manifests $(ARGS)

.PHONY: install
install: setup  ## pools and connection in an Airflow of your own; ARGS="--airflow /path/to/airflow --dry-run"
	@$(PY) -m cli.console install $(ARGS)

.PHONY: import backfill
import: setup  ## raw files of past hours from Prometheus: ARGS="--from 2026-10-01 --to 2026-11-01"
	@$(PY) -m cli.console import $(ARGS)

# Its name of before: a backfill is what Airflow calls runs of past hours.
backfill: import

.PHONY: control
control: setup  ## the controller until Ctrl-C: polls, evaluates, and rescales where the mode allows it; ARGS="--once"
	@$(PY) -m controller $(ARGS)

.PHONY: airflow
airflow: setup  ## Airflow's command line on the same Airflow: make airflow ARGS="backfill create ..."
	@$(PY) -m cli.console airflow $(ARGS)

.PHONY: maintain
maintain: setup  ## show old rows, small and unneeded files of the tables; ARGS=--apply removes and merges them
	@$(PY) -m cli.console maintain $(ARGS)

.PHONY: backup
backup: setup  ## copy what cannot be made again (records, what persons set, models); ARGS="--to s3://bucket/backups"
	@$(PY) -m cli.console backup $(ARGS)

.PHONY: restore
restore: setup  ## put a backup back, everything on hold then; ARGS="--from s3://bucket/backups --dry-run"
	@$(PY) -m cli.console restore $(ARGS)

##@ On call: what is going on
# Without setup: these must work at once.
.PHONY: status
status:  ## the fleet on one screen, and what needs you (exit code 1 then); ARGS="--at 03:00", ARGS=--json
	@$(PY) -m cli.console status $(ARGS)

.PHONY: page
page:  ## the fleet and its jobs on a page of this machine, to look at: http://127.0.0.1:8090/; ARGS="--port 8091"
	@$(PY) -m cli.console page $(ARGS)

.PHONY: log
log:  ## what was decided, sent, answered, and done by persons, on all jobs; ARGS="cluster/job --hours 24" on one
	@$(PY) -m cli.console log $(ARGS)

.PHONY: why
why:  ## why a job was rescaled: measured, capacities, plan, request, answer; ARGS="cluster/job --at 03:00"
	@$(PY) -m cli.console why $(ARGS)

.PHONY: plan
plan:  ## the steps of the next hours; ARGS="--hours 6", ARGS="cluster/job"
	@$(PY) -m cli.console plan $(ARGS)

.PHONY: quarantine
quarantine:  ## input that was not used: file, line, rule, text; ARGS="--hours 24"
	@$(PY) -m cli.console quarantine $(ARGS)

##@ On call: intervene, at once
.PHONY: undo
undo:  ## back to what ran before our last rescale, on hold for two hours; ARGS="cluster/job --yes --reason ..."
	@$(PY) -m cli.console undo $(ARGS)

.PHONY: hold
hold:  ## stop at once; ARGS="--all", ARGS="cluster", ARGS="cluster/job --hours 2 --reason ...", ARGS="--list"
	@$(PY) -m cli.console hold $(ARGS)

.PHONY: release
release:  ## let what is on hold go on again; ARGS="cluster/job", ARGS="--all"
	@$(PY) -m cli.console release $(ARGS)

.PHONY: approve
approve:  ## say yes to a step that waits for it; ARGS="cluster/job step_id", with --deny no; ARGS="--list"
	@$(PY) -m cli.console approve $(ARGS)

.PHONY: models
models:  ## models in use, and what to do about them; ARGS=list, ARGS="diff 12", ARGS="reject 12 --job cluster/job --yes"
	@$(PY) -m cli.console models $(ARGS)

.PHONY: lift
lift:  ## let a parallelism be tried again under which a job failed; ARGS="cluster/job", ARGS="--list"
	@$(PY) -m cli.console lift $(ARGS)

##@ Measure and compare
.PHONY: record
record: setup  ## run a real Flink cluster for about 15 minutes and keep every REST reply
	@$(PY) -m tools.record $(ARGS)

.PHONY: bench
bench: setup  ## measure ingest, training, forecast and an hourly pass; writes out/bench.json
	@$(PY) -m benchmarks $(ARGS)

.PHONY: papers
papers: setup  ## the papers' experiments in simulation; writes benchmarks/papers/results; PAPER=conttune; ARGS="--live" on real Flink
	@PAPER="$(PAPER)" $(PY) -m benchmarks.papers $(ARGS)

.PHONY: replay
replay: setup  ## every policy on real traces from a cold start, what each costs; ARGS="--trace FILE --policy NAME ..."
	@$(PY) -m benchmarks.replay $(ARGS)

.PHONY: chaos
chaos: setup  ## a real Flink cluster under the controller while faults go on; ARGS="--faults 60 --seed 1"
	@$(PY) -m benchmarks.chaos $(ARGS)
	@$(PY) -m tools.record_run $@ --said "passed $(ARGS)"

.PHONY: nexmark
nexmark: setup  ## SQL jobs on a real Flink cluster, what is read and wanted beside the truth; ARGS="--queries q2 q3 --minutes 50"
	@$(PY) -m benchmarks.nexmark $(ARGS)

.PHONY: live
live: setup  ## policies one after the other on a real Flink cluster and the same load, Flink's autoscaler too; ARGS="--job q3 --minutes 40"
	@$(PY) -m benchmarks.live $(ARGS)

##@ Work on it
# Two cores: the third worker has what the live tests leave of them while they wait for a cluster.
WORKERS ?= 3
.PHONY: test
test: check  ## what runs with each commit: the fast part, then Spark, DAGs, live Flink, end to end (15 minutes)
	@$(PY) -m pytest tests/live tests/e2e tests/dags tests/spark -n $(WORKERS) --dist loadfile \
	  --no-loadscope-reorder --durations=20 $(ARGS)

.PHONY: test-benchmarks
test-benchmarks: setup  ## what guards comparisons: papers, rivals, the replay, harnesses; PostgreSQL with S3 where that is installed
	@$(MAKE) --no-print-directory setup EXTRA="postgres s3"
	@$(PY) -m pytest tests/benchmarks tests/services -n $(WORKERS) --durations=10 $(ARGS)

# Without setup: it installs everything itself, in there.
.PHONY: fresh
fresh: python  ## the README's commands on a new Debian 13 in a folder, as root; ARGS="--suite bookworm", ARGS="--help"
	@"$(PYTHON)" -m benchmarks.fresh $(ARGS)

.PHONY: fuzz
fuzz: setup  ## mutated raw lines through ingestion, what became of them; ARGS="--lines 100000 --seed 1"
	@nice -n 10 $(PY) -m tests.fuzz $(ARGS)
	@$(PY) -m tools.record_run $@ --said "passed $(ARGS)"

# Tests marked `long`, by hand: further stages and policies on real parts, and at random or at length what `make test`
# checks once. Each part is to end within an hour on two cores. tests/unit/test_long_tests.py holds the lists.
LONG := -m long --durations=20
# A part that has passed writes its commit and the day into docs/runs_by_hand.toml.
RECORD := $(PY) -m tools.record_run
.PHONY: test-long
test-long: test-long-rules test-long-kills test-long-spark test-long-plans test-long-parts test-long-clusters test-long-waits test-long-prometheus test-long-live test-long-buckets test-long-comparisons test-long-docs test-long-executors test-long-cluster  ## all of the parts below, one after the other (hours)

.PHONY: nightly
nightly: setup  ## the long tests of what docs/reliability.md promises, and mutated raw lines (at most 60 minutes)
	@$(PY) -m pytest $$($(PY) -m tools.promises) $(LONG)
	@$(MAKE) --no-print-directory fuzz ARGS="--lines 20000"
	@$(RECORD) $@

.PHONY: test-long-rules
test-long-rules: setup  ## 100,000 transitions of the controller, 100,000 broken replies (at most 60 minutes)
	@TIDEWISE_STATEFUL_EXAMPLES=2000 $(PY) -m pytest tests/unit/test_controller_stateful.py tests/unit/test_operator_stateful.py -n 2 --timeout 3600 $(ARGS)
	@TIDEWISE_TIMES_EXAMPLES=40 $(PY) -m pytest tests/unit/test_log_codec.py tests/unit/test_settings_properties.py tests/unit/test_raw_lines.py -n 2 --timeout 3600 $(ARGS)
	@$(PY) -m pytest tests/unit/test_live_fuzz.py tests/unit/test_pipeline_is_replay.py tests/unit/test_forecast_skill.py tests/unit/test_forecast_engine.py tests/unit/test_hidden_demand.py tests/unit/test_objectives.py tests/unit/test_plan_costs.py -n 2 $(LONG) $(ARGS)
	@$(RECORD) $@

.PHONY: test-long-kills
test-long-kills: setup  ## stages killed at every write, and at random moments (at most 60 minutes)
	@$(PY) -m pytest tests/spark/test_train.py tests/spark/test_release_before.py tests/spark/test_stages_survive_kills.py tests/long/test_kill_stages.py -n 2 --dist loadfile $(LONG) $(ARGS)
	@$(RECORD) $@

.PHONY: test-long-spark
test-long-spark: setup  ## stages one after the other, under unlike settings, with many broken lines (at most 60 minutes)
	@$(PY) -m pytest tests/spark/test_stages_start.py tests/spark/test_day_windows.py tests/spark/test_whole_pipeline.py tests/spark/test_advise.py tests/spark/test_ingest_tables.py tests/spark/test_model_database.py tests/spark/test_kafka_broker.py tests/spark/test_lost_input.py tests/spark/test_lost_tables.py tests/spark/test_live_windows.py tests/spark/test_forecast_stage.py tests/spark/test_lines_are_parsed_once.py tests/spark/test_shared_days.py tests/spark/test_backfill.py tests/fuzz/test_fuzz.py $(LONG) $(ARGS)
	@$(RECORD) $@

.PHONY: test-long-plans
test-long-plans: setup  ## plans of every policy, within a budget, with profiles; what is learnt; the backtest (at most 60 minutes)
	@$(PY) -m pytest tests/spark/test_plan_budget.py tests/spark/test_plan_policies.py tests/spark/test_profiling.py tests/spark/test_learn.py tests/spark/test_backtest.py tests/spark/test_events.py tests/spark/test_plan_costs.py tests/spark/test_launch.py $(LONG) $(ARGS)
	@$(RECORD) $@

.PHONY: test-long-parts
test-long-parts: setup  ## real Flink, Prometheus, Kafka, Airflow, and Flink's own autoscaler (at most 60 minutes)
	@$(PY) -m pytest tests/live/test_live_control.py tests/live/test_flink_cluster.py tests/live/test_nexmark_short.py tests/live/test_chaos_short.py tests/live/test_prometheus_source.py $(LONG) $(ARGS)
	@$(PY) -m pytest tests/dags/test_dag_client.py tests/dags/test_page_browser.py tests/e2e/test_import.py tests/e2e/test_local_cluster.py tests/e2e/test_run_ui.py tests/long/test_advise_on_prometheus.py tests/long/test_autoscaler_jar.py tests/long/test_kafka_job.py tests/long/test_mlflow_doctor.py tests/long/test_own_airflow.py tests/long/test_papers_live.py tests/long/test_profiling_on_flink.py $(LONG) $(ARGS)
	@$(RECORD) $@

.PHONY: test-long-clusters
test-long-clusters: setup  ## every version and kind of Flink cluster, and the Kubernetes operator (at most 60 minutes)
	@$(PY) -m pytest tests/long/test_flink_versions.py tests/long/test_kubernetes_operator.py $(LONG) $(ARGS)
	@$(RECORD) $@

.PHONY: test-long-waits
test-long-waits: setup  ## the controller with checkpoints every ten minutes, in progress, off, on each version of Flink (at most 60 minutes)
	@$(PY) -m pytest tests/long/test_flink_waits.py -s $(LONG) $(ARGS)
	@$(RECORD) $@

.PHONY: test-long-prometheus
test-long-prometheus: setup  ## one cluster over REST and Prometheus; PROMETHEUS_MINUTES=120 as in docs/sources.md (at most 60 minutes)
	@PROMETHEUS_MINUTES="$${PROMETHEUS_MINUTES:-40}" $(PY) -m pytest tests/long/test_prometheus_two_hours.py $(LONG) $(ARGS)
	@$(RECORD) $@

.PHONY: test-long-live
test-long-live: setup  ## two policies of `make live` and one rise of the load (at most 30 minutes)
	@$(PY) -m pytest tests/long/test_live_short.py $(LONG) $(ARGS)
	@$(RECORD) $@

.PHONY: test-long-buckets
test-long-buckets: setup  ## every path on S3, and many programs that commit to one table there (at most 60 minutes)
	@$(MAKE) --no-print-directory setup EXTRA=s3
	@$(PY) -m pytest tests/long/test_backup_on_s3.py tests/long/test_commits_on_s3.py tests/long/test_lost_answers_on_s3.py tests/long/test_paths_on_s3.py tests/long/test_requests_on_s3.py tests/long/test_run_on_s3.py tests/long/test_spark_requests_on_s3.py -s $(LONG) $(ARGS)
	@$(RECORD) $@

.PHONY: test-long-executors
test-long-executors: setup  ## a standalone Spark cluster with two executors against one process (at most 20 minutes)
	@$(PY) -m pytest tests/long/test_standalone_spark.py tests/long/test_submit_fetching.py $(LONG) $(ARGS)
	@$(RECORD) $@

.PHONY: cluster test-long-cluster
cluster: test-long-cluster  ## the same as test-long-cluster

# Needs redis-server and postgresql of the system besides.
test-long-cluster: setup  ## Airflow on Celery, PostgreSQL, S3, MLflow, two executors; a worker, an executor, the controller killed (at most 60 minutes)
	@$(MAKE) --no-print-directory setup EXTRA="celery postgres s3"
	@$(PY) -m pytest tests/long/test_cluster.py -s $(LONG) $(ARGS)
	@$(RECORD) $@

.PHONY: test-long-comparisons
test-long-comparisons: setup  ## papers and the replay at length (at most 20 minutes)
	@$(PY) -m pytest tests/benchmarks/papers/test_phoebe_experiments.py tests/benchmarks/papers/test_papers_command.py tests/benchmarks/replay/test_replay_ablations.py -n 2 $(LONG) $(ARGS)
	@$(RECORD) $@

.PHONY: test-long-docs
test-long-docs: python  ## the site, pages from the code, a release rehearsed in a clone (at most 15 minutes)
	@"$(PYTHON)" -m cli.setup docs
	@$(PY) -m pytest tests/long/test_site.py tests/long/test_release.py $(LONG) $(ARGS)
	@$(RECORD) $@

# Types are checked beside the unit tests, and what mypy says is shown after them.
.PHONY: check
check: setup  ## the fast part, before a commit: lint, layers, types, unit
	@TIMEFORMAT="lint and layers: %R s"; time { .venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/lint-imports; }
	@mkdir -p .mypy_cache; { TIMEFORMAT="types: %R s"; time .venv/bin/mypy; } > .mypy_cache/found.txt 2>&1 & \
	  $(PY) -m pytest tests/unit tests/tools -q -n 2 --durations=10 $(ARGS); units=$$?; \
	  wait $$!; types=$$?; cat .mypy_cache/found.txt; exit $$((units + types))

.PHONY: mutate-rules
mutate-rules: setup  ## each rule of the controller removed and inverted: which ones no unit test misses
	@nice -n 10 $(PY) -m tools.mutate_rules $(ARGS)

.PHONY: mutate
mutate: setup  ## mutation score of the pure modules; ARGS="--module reconcile --sample 0" for one in full
	@nice -n 10 $(PY) -m tools.mutate $(ARGS)

.PHONY: lint
lint: setup  ## fix what ruff can fix, then show what remains for ruff, mypy and import-linter
	@.venv/bin/ruff check --fix . ; .venv/bin/ruff format . ; .venv/bin/mypy && .venv/bin/lint-imports

.PHONY: structure
structure: setup  ## sizes of all parts, and what each entry point loads; ARGS="--base REV" sets another revision beside them
	@$(PY) -m tools.structure $(ARGS)

.PHONY: docs
docs: setup  ## write what documents take from the code: settings, tables, reasons, metrics, commands, reliability
	@$(PY) -m tools.settings_doc $(ARGS)
	@$(PY) -m tools.reliability_doc
	@$(PY) -m tools.reasons_doc
	@$(PY) -m tools.tables_doc
	@$(PY) -m tools.metrics_doc
	@$(PY) -m tools.commands_doc
	@$(PY) -m tools.helm_chart
	@$(PY) -m tools.readme_run

.PHONY: site
site: python  ## the documentation as a site in out/site, strict and without a network; ARGS="--external"
	@"$(PYTHON)" -m cli.setup docs
	@$(PY) -m tools.site $(ARGS)

.PHONY: cut-release
cut-release: python  ## version, changelog, tag, site, list of parts and image of a release, or nothing; ARGS="0.3.0 --no-image"
	@"$(PYTHON)" -m cli.setup docs
	@$(PY) -m tools.cut_release $(ARGS)

LOCK := .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock"
.PHONY: lock
lock: setup  ## resolve requirements.in into requirements.txt, with the hash of every file
	@$(LOCK) -o requirements.txt requirements.in
	@for file in uv flink; do grep -h '^[a-z-]*==' requirements-$$file.txt | tr -d ' \\' \
	  | $(LOCK) --no-deps --no-annotate -o requirements-$$file.txt - || exit 1; done
	@for extra in celery docs postgres s3; do $(LOCK) --no-annotate -c requirements.txt -o requirements-$$extra.txt \
	  $$(sed -n 's/^\([A-Za-z0-9._-]*\)==.*/--no-emit-package \1/p' requirements.txt) requirements-$$extra.in || exit 1; done

.PHONY: compare
compare: setup  ## whether two runs wrote the same plans and rows: ARGS="OUT OTHER"
	@$(PY) -m tools.compare_runs $(ARGS)

.PHONY: check-deps
check-deps: setup  ## licences, a list of all parts (CycloneDX) and known advisories of what is installed, below out/deps
	@$(PY) -m tools.check_deps $(ARGS)

.PHONY: clean
clean:  ## remove what runs made (out/); .venv and .cache stay
	@rm -rf out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
