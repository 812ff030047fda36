"""``make setup``: from a fresh machine to a project that runs, in .venv and .cache of this directory.

Standard library only: it runs before the virtual environment exists.  uv makes that and installs into it.  Every step
leaves a mark when it is done, so one that was stopped half-way continues.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cli.jar_fetch import fetch_jars
from cli.preflight import Jdk, PreflightError, check_machine
from cli.setup_steps import ROOT, SetupError, run, stamp_matches, step, works
from include.atomic_write import replace_atomically, write_text
from include.extras import EXTRAS
from include.spark.byte_code import add_byte_code
from include.spark.jars import ALL_JARS, ARCHIVE_STAMP, CLASS_ARCHIVE, S3_JARS, Jar, log_store_jar, unusable_jars

VENV = ROOT / ".venv"
CACHE = ROOT / ".cache"
JARS = CACHE / "jars"
FLINK = CACHE / "flink"
UV = CACHE / "uv"
LABORATORY = ROOT / "lab"
PACKAGES = "--packages"
REQUIREMENTS = ROOT / "requirements.txt"
UV_REQUIREMENTS = ROOT / "requirements-uv.txt"
FLINK_REQUIREMENTS = ROOT / "requirements-flink.txt"
# Nothing is installed whose hash is not in these files. Byte code at once: where Python may not write any, each of the
# many programs of a run would compile what it imports.
SYNC_OPTIONS = ("--require-hashes", "--compile-bytecode")
NETWORK = "check the network (or the package index that uv is configured for) and run `make setup` again"
PYTHON_MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"
PYTHON = Path(sys.base_prefix, "bin", f"python{PYTHON_MINOR}")  # also where .venv's own one runs this


def read_pin(package: str, file: Path = REQUIREMENTS) -> str:
    """Return the version of a package that a requirements file pins."""
    for line in file.read_text().splitlines():
        if line.startswith(f"{package}=="):
            return line.split("==")[1].split()[0]
    raise SetupError(f"{file.name} does not pin {package}: run `make lock`")


def _requirements(extras: Sequence[str]) -> list[Path]:
    return [REQUIREMENTS, UV_REQUIREMENTS, *map(extra_requirements, extras)]


def _packages_stamp(extras: Sequence[str]) -> str:
    """Return a hash of what is installed, how, for which Python, and where: a copy has other times in its byte code."""
    how = " ".join((*SYNC_OPTIONS, PYTHON_MINOR, str(VENV.resolve())))
    pinned = b"".join(file.read_bytes() for file in _requirements(extras))
    return hashlib.sha256(pinned + how.encode()).hexdigest()


def _is_installed(extras: Sequence[str]) -> bool:
    return _is_environment() and stamp_matches(VENV / ".tidewise-packages", _packages_stamp(extras))


def _is_environment() -> bool:
    """Return whether .venv has this Python, which an upgrade of the system removes, and scripts that run it."""
    config, version = VENV / "pyvenv.cfg", f"import sys; sys.exit('%d.%d' % sys.version_info[:2] != '{PYTHON_MINOR}')"
    if not config.is_file() or not works([VENV / "bin" / "python", "-c", version]):
        return False
    made = config.read_text()  # by an earlier release in this folder, or so that it can be moved
    return f" {VENV.resolve()}\n" in made or "relocatable = true" in made


def install_uv() -> None:
    """Install uv beside .venv, which it makes."""
    shutil.rmtree(UV, ignore_errors=True)
    run([PYTHON, "-m", "venv", UV], "remove .cache/uv and run `make setup` again")
    pip: list[str | Path] = [UV / "bin" / "python", "-m", "pip", "install", "--quiet", "--require-hashes"]
    run([*pip, "-r", UV_REQUIREMENTS], NETWORK)
    write_text(UV / ".complete", UV_REQUIREMENTS.read_text())


def install_python_packages(extras: Sequence[str] = ()) -> None:
    """Have uv make .venv, whose scripts run after a move too, and bring it to exactly what is pinned."""
    uv, python = UV / "bin" / "uv", VENV / "bin" / "python"
    step("uv into .cache/uv", lambda: stamp_matches(UV / ".complete", UV_REQUIREMENTS.read_text()), install_uv)
    if not _is_environment():
        shutil.rmtree(VENV, ignore_errors=True)
        run([uv, "venv", "--quiet", "--relocatable", "--no-project", "--python", PYTHON, VENV], NETWORK)
    run([uv, "pip", "sync", *SYNC_OPTIONS, "--python", python, *_requirements(extras)], NETWORK)
    assert_pyspark()
    (VENV / ".tidewise-lab").unlink(missing_ok=True)  # it is not pinned, so it went
    for extra in extras:
        (VENV / f".tidewise-extra-{extra}").touch()
    write_text(VENV / ".tidewise-packages", _packages_stamp(extras))


def _laboratory_stamp() -> str:
    """Return what the installed laboratory depends on: its entry points, and where it lies, for it is not copied."""
    return f"{LABORATORY}\n{(LABORATORY / 'pyproject.toml').read_text()}"


def install_laboratory() -> None:
    """Install the entry points of lab/; its code stays where it is."""
    python = VENV / "bin" / "python"
    options = ("--offline", "--no-deps", "--no-build-isolation", "--python", python)
    run([VENV / "bin" / "uv", "pip", "install", *options, "-e", LABORATORY], "remove .venv and run `make setup` again")
    write_text(VENV / ".tidewise-lab", _laboratory_stamp())


def extra_requirements(extra: str) -> Path:
    """Return the file that pins an extra."""
    return ROOT / f"requirements-{extra}.txt"


def wanted_extras(arguments: Sequence[str]) -> list[str]:
    """Return the extras that are asked for or were installed before.

    Raises:
        SetupError: there is no such extra.
    """
    if unknown := sorted(set(arguments) - EXTRAS.keys()):
        raise SetupError(f"there is no extra {' and no '.join(unknown)}: EXTRA may name {', '.join(sorted(EXTRAS))}")
    return [one for one in sorted(EXTRAS) if one in arguments or (VENV / f".tidewise-extra-{one}").is_file()]


def assert_pyspark() -> None:
    """Check that ``import pyspark`` gives the pinned version.

    Raises:
        SetupError: another package (pyspark-client, of later Airflow providers) was installed over pyspark's folder.
    """
    command = [str(VENV / "bin" / "python"), "-c", "import pyspark; print(pyspark.__version__)"]
    result = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    if result != read_pin("pyspark"):
        raise SetupError(
            f"pyspark {result or 'does not import'}, {read_pin('pyspark')} is pinned: another package wrote into its"
            " folder; remove .venv and run `make setup` again"
        )


def _spark_zip() -> Path:
    """Return the zip from which spark-submit has drivers and workers import PySpark, though it is installed."""
    return next(VENV.glob("lib/python*/site-packages/pyspark/python/lib/pyspark.zip"))


def _has_byte_code() -> bool:
    with zipfile.ZipFile(_spark_zip()) as packed:
        return "pyspark/__init__.pyc" in packed.namelist()


def compile_spark_zip() -> None:
    """Put byte code into Spark's own zip, whole or not at all: a second less for every driver and every worker."""
    target = _spark_zip()
    with replace_atomically(target) as temporary:
        shutil.copy(target, temporary)
        with zipfile.ZipFile(temporary, "a") as packed:
            add_byte_code(packed)


def _fetch_jars(jdk: Jdk, jars: Sequence[Jar] = ALL_JARS) -> None:
    fetch_jars(JARS, jdk.java, next(VENV.glob("lib/python*/site-packages")), jars)


def _archive_stamp(jdk: Jdk) -> str:
    """Return what an archive of classes depends on: Java, the jars, and where they lie."""
    places = (str(folder.resolve()) for folder in (VENV, JARS))
    return "\n".join((jdk.version, *places, read_pin("pyspark"), *(jar.sha256 for jar in ALL_JARS)))


def archive_classes(jdk: Jdk) -> None:
    """Write an archive of the classes that Spark loads; without one its applications start some 5 s slower."""
    stamp = JARS / ARCHIVE_STAMP
    stamp.unlink(missing_ok=True)  # the archive goes first: what is stopped meanwhile is done again
    try:
        run([VENV / "bin" / "python", "-m", "tools.class_archive", JARS / CLASS_ARCHIVE], "nothing to be done")
    except SetupError as error:
        print(f"setup: no archive of classes, Spark starts without: {error}", flush=True)
    write_text(stamp, _archive_stamp(jdk))


def _flink_libraries() -> str:
    """Return the package of Flink's libraries with its version."""
    return f"apache-flink-libraries=={read_pin('apache-flink-libraries', FLINK_REQUIREMENTS)}"


def install_flink() -> None:
    """Install Flink's own distribution (jars and scripts) into a folder of its own, beside .venv."""
    unfinished = CACHE / "flink.partial"
    for leftover in (unfinished, FLINK):
        shutil.rmtree(leftover, ignore_errors=True)
    uv: list[str | Path] = [UV / "bin" / "uv", "pip", "install", "--no-deps", "--python", VENV / "bin" / "python"]
    pinned_by: list[str | Path] = ["--require-hashes", "-r", FLINK_REQUIREMENTS]
    run([*uv, "--target", unfinished, *pinned_by], NETWORK)
    (unfinished / ".complete").write_text(_flink_libraries())
    unfinished.rename(FLINK)


def compile_flink_job() -> None:
    """Compile the Flink job against Flink's jars (the build itself checks whether anything changed)."""
    build = "from lab.local_flink.build import build_job; build_job()"
    run([VENV / "bin" / "python", "-c", build], "fix flink_job/ and run `make setup` again")


def prepare_spark(jdk: Jdk) -> None:
    """Do what Spark needs beside its package."""
    step("Byte code into Spark's Python zip", _has_byte_code, compile_spark_zip)
    step("Spark's further jars into .cache/jars", lambda: not unusable_jars(JARS), lambda: _fetch_jars(jdk))
    step(
        "Archive of Spark's classes (a minute)",
        lambda: stamp_matches(JARS / ARCHIVE_STAMP, _archive_stamp(jdk)),
        lambda: archive_classes(jdk),
    )


def prepare_s3(jdk: Jdk) -> None:
    """Do what Spark needs for tables on S3."""
    step(
        "Spark's jars for S3 into .cache/jars (645 MB)",
        lambda: not unusable_jars(JARS, S3_JARS),
        lambda: _fetch_jars(jdk, S3_JARS),
    )
    build: list[str | Path] = [VENV / "bin" / "python", "-m", "cli.log_store", JARS]
    step(
        "Delta's log store for S3",
        log_store_jar(JARS).is_file,
        lambda: run(build, "fix include/spark/log_store and run `make setup EXTRA=s3` again"),
    )


def prepare_flink() -> None:
    """Install Flink and compile its job."""
    step("Flink into .cache/flink", lambda: stamp_matches(FLINK / ".complete", _flink_libraries()), install_flink)
    compile_flink_job()


def do_side_by_side(*parts: Callable[[], None]) -> None:
    """Do parts of the set-up that need nothing of each other; raises what the first of them raised, after all ended."""
    with ThreadPoolExecutor(len(parts)) as pool:
        ends = [pool.submit(part) for part in parts]
    for end in ends:
        end.result()


def prepare_packages(extras: Sequence[str]) -> None:
    """Do what needs neither Spark nor Flink."""
    step(
        "Python packages into .venv (1-3 minutes)",
        lambda: _is_installed(extras),
        lambda: install_python_packages(extras),
    )
    step(
        "Laboratory into .venv",
        lambda: stamp_matches(VENV / ".tidewise-lab", _laboratory_stamp()),
        install_laboratory,
    )


def main(argv: Sequence[str]) -> int:
    """Run the set-up with the extras of the arguments, with ``--packages`` of Python alone; returns the exit code."""
    try:
        extras = wanted_extras([one for one in argv if one != PACKAGES])
        jdk = check_machine()
        taken = f"Python {sys.version.split()[0]} at {sys.executable}, Java {jdk.version} at {jdk.java}"
        if not _is_environment():
            print(f"setup: takes {taken}; up to 2.3 GB come into .venv and .cache", flush=True)
        prepare_packages(extras)
        if PACKAGES in argv:
            return 0
        do_side_by_side(lambda: prepare_spark(jdk), prepare_flink)
        if "s3" in extras:
            prepare_s3(jdk)
    except (PreflightError, SetupError) as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    print(f"setup: ready ({taken})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
