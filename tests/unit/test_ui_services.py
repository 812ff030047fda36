"""What `make ui` starts; that it really answers, and on this machine only, stands in ``tests/e2e/test_run_ui.py``."""

from cli.embedded import LOOPBACK
from cli.ui import services
from include.settings import Settings


def test_only_the_two_interfaces_listen_and_only_on_this_machine() -> None:
    commands = {one.name: one.command for one in services(Settings(), 8080, 5000)}
    listening = {name: command for name, command in commands.items() if "--port" in command}
    assert listening.keys() == {"api-server", "mlflow"}
    assert {command[command.index("--host") + 1] for command in listening.values()} == {LOOPBACK}
    assert all("--skip-serve-logs" in commands[name] for name in ("scheduler", "triggerer"))  # logs would be served
