"""A task that runs a module of the project as a process of its own, without Spark."""

from __future__ import annotations

import shlex
from typing import Any

from airflow.providers.standard.operators.bash import BashOperator

from include.own_python import find_python
from include.settings import PROJECT


def module_options(module: str) -> dict[str, Any]:
    """Return the arguments of a BashOperator that runs a module, with its arguments, as `python -m` takes them."""
    return {
        "bash_command": f"exec {shlex.quote(find_python())} -m {module}",
        "cwd": str(PROJECT),
        "env": {"PYTHONPATH": str(PROJECT)},
        "append_env": True,
    }


def module_step(task_id: str, module: str, **options: Any) -> BashOperator:
    """Return the task that runs a module with its arguments, as `python -m` takes them; a template of Airflow."""
    return BashOperator(task_id=task_id, **module_options(module), **options)
