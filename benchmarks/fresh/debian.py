"""A Debian system in a folder, entered by chroot with mounts and processes of its own, which end with each command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
# How this machine reaches the network: names and certificates, and which package index pip asks.
CHECKOUT = "/srv/tidewise"
"""Where the project is inside."""
NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
JAVA_CERTIFICATES = Path("etc/ssl/certs/java/cacerts")
NETWORK_VARIABLES = re.compile(r"(?i)(https?|no|all)_proxy|PIP_(INDEX_URL|CERT)|UV_(DEFAULT_INDEX|INDEX_URL)")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
MADE = ".tidewise-fresh"
ENTER = 'mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$0" /bin/bash -c "$1"'


class FreshError(RuntimeError):
    """The trial cannot go on; the message says what failed."""


def readme_packages(readme: str) -> list[str]:
    """Return the system packages that the README asks for."""
    (line,) = re.findall(r"^apt-get install -y (.*)$", readme, re.MULTILINE)
    return str(line).split()


def readme_commands(readme: str) -> list[str]:
    """Return the two commands with which the README begins."""
    return re.findall(r"^(make (?:run|test))\b", readme, re.MULTILINE)


def is_root_mounted() -> bool:
    """Whether the root folder is a mount of its own: within a chroot it is none, and no mounts can be made private."""
    return any(line.split()[4] == "/" for line in Path("/proc/self/mountinfo").read_text().splitlines())


def find_mirror() -> str:
    """Return where this machine takes Debian's packages from.

    Raises:
        FreshError: its sources name none.
    """
    for file in SOURCES:
        text = file.read_text() if file.is_file() else ""
        address = re.search(r"^(?:URIs:|deb(?: \[.*\])?) *(\S+/debian)/?(?:\s|$)", text, re.MULTILINE)
        if address:
            return address[1]
    raise FreshError("this machine takes no packages from Debian: pass --mirror")


@dataclass(frozen=True, slots=True)
class Debian:
    """A system in a folder.

    Attributes:
        root: the folder.
        suite: the release's name, such as trixie.
        mirror: of Debian's packages; this machine's when None.
    """

    root: Path
    suite: str
    mirror: str | None = None

    def create(self) -> None:
        """Install the base system unless an earlier call did, and let it reach the network as this machine does.

        Raises:
            FreshError: debootstrap failed.
        """
        mark = self.root / MADE
        if not (mark.is_file() and mark.read_text() == self.suite):
            self.root.mkdir(parents=True, exist_ok=True)
            mark.write_text("")
            options = ["--variant=minbase", "--include=git,ca-certificates"]
            command = ["debootstrap", *options, self.suite, str(self.root), self.mirror or find_mirror()]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise FreshError(f"debootstrap failed:\n{(done.stdout + done.stderr).strip()[-2000:]}")
            mark.write_text(self.suite)
        self.trust_what_this_machine_trusts()

    def trust_what_this_machine_trusts(self) -> None:
        """Copy names and certificates into the system; Java keeps certificates of its own."""
        for place in NETWORK_FILES:
            if Path(place).is_file():
                shutil.copyfile(place, self.root / place[1:])
        if (self.root / JAVA_CERTIFICATES).is_file() and (Path("/") / JAVA_CERTIFICATES).is_file():
            shutil.copyfile(Path("/") / JAVA_CERTIFICATES, self.root / JAVA_CERTIFICATES)

    def clone(self, project: Path) -> None:
        """Put the last commit of a checkout into :data:`CHECKOUT`, whatever was there.

        Raises:
            FreshError: git failed.
        """
        target = self.root / CHECKOUT.lstrip("/")
        shutil.rmtree(target, ignore_errors=True)
        done = subprocess.run(["git", "clone", "-q", str(project), str(target)], check=False)
        if done.returncode:
            raise FreshError(f"{project} cannot be cloned: it has to be a git checkout")

    def run(self, command: str, *, quiet: bool = False) -> None:
        """Run a shell command inside, as root, with mounts and processes of its own.

        Raises:
            FreshError: it failed; of a quiet one the end of what it printed is shown.
        """
        inside = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
        argv = [*inside, "bash", "-c", ENTER, str(self.root), command]
        done = subprocess.run(argv, env=_environment(), capture_output=quiet, text=True, check=False)
        if done.returncode:
            end = f"\n{(done.stdout + done.stderr).strip()[-2000:]}" if quiet else ""
            raise FreshError(f"`{command}` failed with exit code {done.returncode} in {self.root}{end}")

    def remove(self) -> None:
        """Remove the system, with everything in it; a folder that this did not make is left alone.

        Raises:
            FreshError: the folder holds something else.
        """
        if (self.root / MADE).is_file():
            shutil.rmtree(self.root)
        elif self.root.is_dir() and any(self.root.iterdir()):
            raise FreshError(f"{self.root} is no system of `make fresh`: remove it, or pass another --folder")


def _environment() -> dict[str, str]:
    """Return the variables inside: those of a new login, and how this machine reaches the network."""
    network = {name: value for name, value in os.environ.items() if NETWORK_VARIABLES.fullmatch(name)}
    return network | {
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "DEBIAN_FRONTEND": "noninteractive",
        "SSL_CERT_FILE": CERTIFICATES,
        "REQUESTS_CA_BUNDLE": CERTIFICATES,
    }
