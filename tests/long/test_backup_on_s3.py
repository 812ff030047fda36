"""A backup to a bucket, of a lake in a bucket, and back into another one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from local_s3 import BUCKET, s3_environment, s3_server

from include.control.holds import Hold, HoldStore
from include.control.interventions import Intervention, UserAction, record_intervention
from include.lake_table import LakeTable
from include.tables import INTERVENTIONS

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.long
def test_a_lake_in_a_bucket_is_backed_up_and_put_back(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    from cli import backup, restore

    with s3_server() as address:
        variables = s3_environment(address) | {
            "TIDEWISE__PATHS__OUT": str(tmp_path / "out"),
            "TIDEWISE__MLFLOW__TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db",
            "TIDEWISE__MLFLOW__ARTIFACT_ROOT": str(tmp_path / "artifacts"),
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        from include.settings import load_settings

        lake = load_settings().paths.lake
        record_intervention(lake, Intervention(AT.timestamp(), UserAction.HOLD, "live", "anna"))
        HoldStore(lake).write(Hold("live", "a fair", "anna", AT.timestamp()))
        to = f"s3://{BUCKET}/backups"
        assert backup.main(["--to", to]) == 0
        assert backup.main(["--to", to, "--retain", "1"]) == 0
        assert restore.main(["--from", to]) == 1  # the lake is there
        assert restore.main(["--from", to, "--replace"]) == 0
        monkeypatch.setenv("TIDEWISE__PATHS__LAKE", f"s3://{BUCKET}/another/lake")
        other = load_settings().paths.lake
        assert restore.main(["--from", to]) == 0
        rows = LakeTable(other, INTERVENTIONS).read(["act"], AT.date(), datetime.now(UTC).date())
        assert sorted(rows.column("act").to_pylist()) == ["hold", "restore"]
        assert {one.scope for one in HoldStore(other).read(AT.timestamp())} == {"all", "live"}
