"""What each entry point of the product loads: modules of the project, found by importing it and by reading imports."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from cli.console import VERBS
from include.import_closure import close_over_imports
from include.settings import PROJECT
from include.stage_catalogue import BUILT_IN

PRODUCT = ("dags", "spark_jobs", "models", "include", "controller", "page", "fleet", "cli")
"""The folders of the product."""
STARTED_BY_OTHERS = {
    "Airflow's settings": "cli.airflow_config.airflow_local_settings",
    "Airflow's plugin": "page.airflow_plugin.tidewise_page",
    "MLflow's model": "spark_jobs.train.pyfunc",
    "spark-submit of a service": "spark_jobs.fetch_and_launch",
    "spark-submit of doctor": "spark_jobs.try_storage",
    "spark-submit of setup": "spark_jobs.load_classes",
    "python -m cli.collect": "cli.collect",
    "python -m cli.remake": "cli.remake",
}
"""What other programs start, or a person without make."""
_COMMAND = re.compile(r"-m (cli\.\w+)")
# Loads what is installed once, then forks for each entry point, since importing Airflow and Spark takes seconds.
_LOAD = """
import importlib, json, os, sys
for name in ("airflow.sdk", "mlflow", "pyspark.sql", "deltalake", "lightgbm", "pandas", "scipy.optimize"):
    importlib.import_module(name)
folders = set(json.loads(sys.argv[1]))
for name in sys.argv[2:]:
    sys.stdout.flush()
    if not os.fork():
        importlib.import_module(name)
        loaded = [module for module in sys.modules if module.partition(".")[0] in folders]
        print("loaded", json.dumps([name, loaded]), flush=True)
        os._exit(0)
    if os.wait()[1]:
        sys.exit(f"{name} cannot be imported")
"""


def list_entry_points() -> dict[str, str]:
    """Return what a person or Airflow starts -> its module: stages, controller, page, DAG files, commands of make."""
    result = {f"stage {name}": entry.module for name, entry in BUILT_IN.items()}
    result |= {"spark-submit": "spark_jobs.launch", "controller": "controller.command", "page": "page.app"}
    result |= {"tidewise": "cli.console"} | {
        f"command {name}": verb.module for name, verb in VERBS.items() if verb.module
    }
    result |= {f"DAG {path.stem}": f"dags.{path.stem}" for path in sorted((PROJECT / "dags").glob("tidewise_*.py"))}
    for module in sorted(set(_COMMAND.findall((PROJECT / "Makefile").read_text()))):
        result[f"command {module.partition('.')[2]}"] = module
    return {**result, **STARTED_BY_OTHERS}


def read_sources(root: Path, folders: Iterable[str]) -> dict[str, bytes]:
    """Return path below a checkout -> content of the Python files in some of its folders."""
    paths = [path for folder in folders for path in sorted((root / folder).rglob("*.py"))]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def import_each(modules: Iterable[str]) -> dict[str, list[str]]:
    """Return module -> the modules of product and laboratory that a process has once it has imported it.

    Raises:
        RuntimeError: one cannot be imported; the message has its traceback.
    """
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, json.dumps([*PRODUCT, "lab"]), *modules],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    lines = [line for line in done.stdout.splitlines() if line.startswith("loaded ")]
    return {name: sorted(loaded) for name, loaded in (json.loads(line.removeprefix("loaded ")) for line in lines)}


def close_each(modules: Iterable[str], sources: Mapping[str, bytes]) -> dict[str, list[str]]:
    """Return module -> the modules that it can import at any time, imports inside functions included."""
    return {
        module: [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in paths]
        for module in modules
        for paths in [close_over_imports(sources, [module])]
    }


def of_laboratory(modules: Iterable[str]) -> list[str]:
    """Return the modules of the laboratory among some."""
    return [name for name in modules if name.partition(".")[0] == "lab"]
