"""``tidewise VERB ...``: every command by its verb; one is loaded when it is asked for, and no other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

from cli.arguments import EXIT_USAGE
from cli.light_start import leave_pandas_out
from include.entry_points import EntryPointError, find_command
from include.version import VERSION


class Command(NamedTuple):
    """A command.

    Attributes:
        module: whose ``main`` takes the arguments; empty: another distribution's entry point has it.
        meaning: a few words.
        words: arguments before those that are given.
        has_pandas: whether it may load pandas, which takes a fifth of a short command's time.
    """

    module: str
    meaning: str
    words: tuple[str, ...] = ()
    has_pandas: bool = False


VERBS = {
    "status": Command("cli.status", "the fleet on one screen, and what needs you"),
    "page": Command("cli.page", "the fleet and its jobs on a page of this machine", has_pandas=True),
    "why": Command("cli.why", "why a job was rescaled"),
    "log": Command("cli.log", "what was decided, sent, answered, and done by persons"),
    "plan": Command("cli.plan", "the steps of the next hours"),
    "quarantine": Command("cli.quarantine", "input that was not used"),
    "hold": Command("cli.hold", "stop at once", ("hold",)),
    "release": Command("cli.hold", "let what is on hold go on", ("release",)),
    "undo": Command("cli.undo", "back to what ran before our last rescale"),
    "approve": Command("cli.approve", "say yes to a step that waits"),
    "lift": Command("cli.lift", "let a parallelism be tried again"),
    "models": Command("cli.models", "models in use, and what to do about them", has_pandas=True),
    "init": Command("cli.init", "write a tidewise.toml for a cluster", has_pandas=True),
    "settings": Command("cli.settings", "whether a settings file can be used, or what it is today", has_pandas=True),
    "doctor": Command("cli.doctor.__main__", "whether it will work here", has_pandas=True),
    "control": Command("controller.command", "the controller until Ctrl-C", has_pandas=True),
    "import": Command("cli.import_hours", "raw files of past hours from Prometheus", has_pandas=True),
    "manifests": Command("cli.manifests", "rights and monitoring under Kubernetes", has_pandas=True),
    "install": Command("cli.install", "pools and connection in an Airflow of your own", has_pandas=True),
    "maintain": Command("cli.maintain", "old rows and small files of the tables", has_pandas=True),
    "backup": Command("cli.backup", "copy what cannot be made again", has_pandas=True),
    "restore": Command("cli.restore", "put a backup back", has_pandas=True),
    "run": Command("cli.run", "the main job end to end on embedded defaults", has_pandas=True),
    "ui": Command("cli.ui", "Airflow and MLflow on this machine", has_pandas=True),
    "airflow": Command("cli.airflow_cli", "Airflow's command line on the same Airflow", has_pandas=True),
    "advise": Command("", "what the last days would have cost under Tidewise and others", has_pandas=True),
    "backtest": Command("", "what each policy would have cost on a job's own week", has_pandas=True),
    "demo": Command("", "a Flink cluster, the controller and the page on this machine", has_pandas=True),
}
SHELLS = {
    "bash": "complete -W '{verbs}' tidewise",
    "zsh": "compdef '_arguments \"1:verb:({verbs})\"' tidewise",
}


def describe_verbs() -> str:
    """Return the verbs, one a line."""
    lines = [f"  tidewise {name:<11}{verb.meaning}" for name, verb in VERBS.items()]
    more = "  tidewise completion bash (or zsh) prints what a shell evaluates; VERB --help has the options"
    return "\n".join([*lines, "", more])


def find_main(name: str) -> Callable[[Sequence[str]], int]:
    """Return what takes the arguments of a verb.

    Raises:
        EntryPointError: the distribution that has it is not installed.
        ModuleNotFoundError: a package of an extra is not installed.
    """
    verb = VERBS[name]
    main: Any = import_module(verb.module).main if verb.module else find_command(name)
    return lambda arguments: int(main([*verb.words, *arguments]))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb; returns the exit code: 2 for what cannot be meant, 130 after Ctrl-C."""
    name, *arguments = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in {"--help", "-h", "help"}:
        print(describe_verbs())
    elif name == "--version":
        print(f"tidewise {VERSION}")
    elif name == "completion" and len(arguments) == 1 and arguments[0] in SHELLS:
        print(SHELLS[arguments[0]].format(verbs=" ".join([*VERBS, "completion"])))
    elif name == "completion":
        print(f"tidewise: completion is of one shell: {', '.join(SHELLS)}", file=sys.stderr)
        return EXIT_USAGE
    elif name in VERBS:
        return _run(name, arguments)
    else:
        near = get_close_matches(name, [*VERBS, "completion"], cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else "tidewise --help lists the verbs"
        print(f"tidewise: there is no verb {name!r}; {hint}", file=sys.stderr)
        return EXIT_USAGE
    return 0


def _run(name: str, arguments: Sequence[str]) -> int:
    if not VERBS[name].has_pandas:
        leave_pandas_out()
    try:
        return find_main(name)(arguments)
    except EntryPointError as error:
        print(f"tidewise {name}: {error}", file=sys.stderr)
    except ModuleNotFoundError as error:
        print(
            f"tidewise {name}: the package {error.name} is not installed (docs/installing.md#by-pip)", file=sys.stderr
        )
    except KeyboardInterrupt:
        return 130
    return 1


if __name__ == "__main__":
    sys.exit(main())
