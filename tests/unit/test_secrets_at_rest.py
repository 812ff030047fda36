"""No password of the settings lies in a file that others can read, in a command line or in a message."""

from __future__ import annotations

import grp
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from cli import ui
from include.readers import close_out
from include.settings import Settings, SettingsError, check_settings
from include.settings.storage import Paths
from include.spark.shipped_settings import ship_settings

PASSWORD = "Tr0ub4dor-pw"


@pytest.mark.parametrize(
    ("section", "value"),
    [
        ("mlflow.tracking_uri", f"https://tw:{PASSWORD}@mlflow.internal"),
        ("mlflow.tracking_uri", f"https://{PASSWORD}@mlflow.internal"),
        ("mlflow.tracking_uri", f"postgresql://tw:{PASSWORD}@db/mlflow"),
        ("mlflow.tracking_uri", f"postgresql://tw:{PASSWORD}/#?@db/mlflow"),
        ("mlflow.tracking_uri", f"mysql+pymysql://db/mlflow?user=tw&password={PASSWORD}"),
        ("mlflow.tracking_uri", f"mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BPWD%3D{PASSWORD}"),
        ("mlflow.artifact_root", f"s3://AKIA:{PASSWORD}@bucket/artifacts"),
        ("paths.lake", f"s3a://AKIA:{PASSWORD}@bucket/lake"),
        ("paths.raw", f"s3a://{PASSWORD}@bucket/raw"),
        ("storage.endpoint", f"http://key:{PASSWORD}@minio:9000"),
        ("spark.master", f"k8s://https://tw:{PASSWORD}@api:6443"),
        ("spark.options", {"spark.hadoop.fs.s3a.secret.key": PASSWORD}),
        ("spark.options", {"spark.driver.extraJavaOptions": f"-Djavax.net.ssl.keyStorePassword={PASSWORD}"}),
        ("clusters.a.rest_url", f"http://tw:{PASSWORD}@jobmanager:8081"),
        ("clusters.a.prometheus.url", f"http://tw:{PASSWORD}@prometheus:9090"),
        ("clusters.a.connection.proxy", f"http://tw:{PASSWORD}@proxy:3128"),
    ],
)
@pytest.mark.covers("harm secret-at-rest")
def test_a_password_is_refused_in_every_key_and_not_repeated(section: str, value: Any) -> None:
    tree: Any = value
    for part in reversed(section.split(".")):
        tree = {part: tree}
    with pytest.raises(SettingsError) as refused:
        check_settings(tree)
    assert section in str(refused.value)
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    ("key", "uri"),
    [
        ("tracking_uri", "postgresql://tw@db:5432/mlflow"),
        ("tracking_uri", "mysql+pymysql://tw@db/mlflow?read_default_file=/etc/tidewise/password.cnf"),
        ("tracking_uri", "sqlite:////data/a:b@c/mlflow.db"),
        ("tracking_uri", "http://mlflow:5000/a@b"),
        ("artifact_root", "s3://bucket/folder@2"),
        ("artifact_root", "/data/a:b@c/artifacts"),
    ],
)
def test_a_uri_without_a_password_is_taken(key: str, uri: str) -> None:
    assert getattr(check_settings({"mlflow": {key: uri}}).mlflow, key) == uri


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.covers("harm secret-at-rest")
def test_what_is_shipped_is_read_by_its_owner_and_the_group_that_is_named(tmp_path: Path) -> None:
    file = ship_settings(Settings(), tmp_path)
    assert mode_of(file) == 0o600
    file.chmod(0o644)  # as an earlier release wrote it
    assert mode_of(ship_settings(Settings(), tmp_path)) == 0o600
    group = grp.getgrgid(os.getgid()).gr_name
    shared = ship_settings(Settings(paths=Paths(group=group)), tmp_path)
    assert mode_of(shared) == 0o640
    assert shared.stat().st_gid == os.getgid()
    with pytest.raises(SettingsError, match="no-such-group"):
        ship_settings(Settings(paths=Paths(group="no-such-group")), tmp_path)


@pytest.mark.covers("harm secret-at-rest")
def test_out_is_closed_to_others(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for _ in range(2):
        close_out(Settings(paths=Paths(out=str(out))))
        assert mode_of(out) & 0o007 == 0
        out.chmod(0o777)
    close_out(Settings(paths=Paths(out=str(out), group=grp.getgrgid(os.getgid()).gr_name)))
    assert mode_of(out) == 0o770
    (tmp_path / "file").touch()
    close_out(Settings(paths=Paths(out=str(tmp_path / "file" / "out"))))  # what writes there says why it cannot
    close_out(Settings(paths=Paths(out="s3a://bucket/out")))


@pytest.mark.covers("harm secret-at-rest")
def test_shipped_files_that_no_stage_can_need_are_removed(tmp_path: Path) -> None:
    earlier, used = (ship_settings(Settings(paths=Paths(lake=one)), tmp_path) for one in ("a", "b"))
    for file in (earlier, used):
        os.utime(file, (1e9, 1e9))
    (tmp_path / "tidewise-settings.md").write_text("somebody's own")
    assert ship_settings(Settings(paths=Paths(lake="b")), tmp_path) == used
    ship_settings(Settings(), tmp_path)
    assert not earlier.exists()
    assert used.exists()  # a stage was submitted with it just now
    assert (tmp_path / "tidewise-settings.md").exists()


@pytest.mark.covers("harm secret-at-rest")
def test_the_uri_of_mlflow_is_on_no_command_line() -> None:
    assert not [one for service in ui.services(8080, 5000) for one in service.command if "://" in one]
