"""A root on S3 is a path in all that needs no request; tests/long/test_paths_on_s3.py has the rest."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from cli.embedded import below
from include.place import NameRefusedError, ObjectPath, is_object, join_name, local_beside, place

ROOT = place("s3a://bucket/run/raw")
FILE = ROOT / "cluster=c" / "date=2026-01-01" / "poll-1.jsonl.gz"


def test_a_root_keeps_its_name():
    assert str(ROOT) == "s3a://bucket/run/raw"
    assert str(FILE) == "s3a://bucket/run/raw/cluster=c/date=2026-01-01/poll-1.jsonl.gz"
    assert place(str(FILE)) == FILE
    assert str(FILE.parent) == "s3a://bucket/run/raw/cluster=c/date=2026-01-01"
    assert FILE.with_name("other").name == "other"
    assert FILE.relative_to(ROOT).as_posix() == "cluster=c/date=2026-01-01/poll-1.jsonl.gz"
    assert sorted([FILE, ROOT]) == [ROOT, FILE]
    assert {FILE: 1}[place(str(FILE))] == 1
    assert pickle.loads(pickle.dumps(FILE)) == FILE  # histories are written by several processes
    assert FILE.resolve() == FILE.absolute() == FILE
    assert FILE.is_absolute()


def test_a_folder_stays_a_folder():
    assert place("out/raw") == Path("out/raw")
    assert not is_object(place("out/s3a:/x"))
    assert type(place("out/raw")) is type(Path())


@pytest.mark.parametrize("act", [open, Path.rename, Path.chmod, Path.rmdir, Path.symlink_to])
def test_what_a_bucket_cannot_do_touches_no_file_of_this_machine(act):
    arguments = {Path.rename: ("x",), Path.chmod: (0o600,), Path.symlink_to: ("x",)}.get(act, ())
    with pytest.raises(TypeError, match="is no file of this machine"):
        act(FILE, *arguments)
    with pytest.raises(TypeError, match="written whole"):
        FILE.open("w")


def test_what_no_bucket_can_hold_lies_beside_the_checkout():
    assert local_beside("/data/out") == Path("/data/out")
    assert local_beside("s3a://bucket/run") == Path("out/bucket_run")
    made = below(ObjectPath("s3://bucket/run"))
    assert made["TIDEWISE__PATHS__RAW"] == "s3://bucket/run/raw"
    assert made["TIDEWISE__SPARK__PACKAGE_ZIP"].endswith("/out/bucket_run/tidewise.zip")
    assert "bucket_run/mlflow.db" in made["TIDEWISE__MLFLOW__TRACKING_URI"]


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "a/../../b", "a/./b", "a//b", "a/", "/a", "//a", "a\0b", "../" * 3000 + "a"),
        *("file:///etc/passwd", "s3://bucket/a"),
    ],
)
def test_a_name_from_a_file_that_leaves_its_root_is_refused(tmp_path, name):
    with pytest.raises(NameRefusedError, match="is no name of a file below"):
        join_name(tmp_path, name)


@pytest.mark.parametrize(
    "name", ["a", "...", "..a/b..", "%2e%2e/a", "..\\a", "~/a", "date=2026-01-01/p ä.parquet", "$HOME/a"]
)
def test_a_name_from_a_file_is_taken_as_it_is(tmp_path, name):
    path = join_name(tmp_path, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    assert path.resolve().is_relative_to(tmp_path.resolve())
    assert str(path) == f"{tmp_path}/{name}"


@pytest.mark.parametrize("name", ["link/evil.py", "link/a/b", "file"])
def test_a_link_leads_no_name_out_of_its_folder(tmp_path: Path, name: str) -> None:
    root = tmp_path / "lake"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    (root / "file").symlink_to(tmp_path / "elsewhere.py")
    with pytest.raises(NameRefusedError, match="no name of a file below"):
        join_name(root, name)
    (tmp_path / "shown").symlink_to(root)
    (root / "folder").mkdir()
    (root / "beside").symlink_to("folder")
    assert join_name(tmp_path / "shown", "beside/x") == tmp_path / "shown" / "beside" / "x"
