"""Events of a training as arrays: of a new installation there are none."""

from __future__ import annotations

import pandas as pd

from spark_jobs.train.training_events import list_events

COLUMNS = (
    *("cluster", "job", "kind", "cause_kind", "started_at"),
    *("downtime_s", "checkpoint_age_s", "state_size_bytes"),
)


def test_without_any_event_there_is_none_of_a_job() -> None:
    known, arrays = list_events(pd.DataFrame(columns=list(COLUMNS)), [("prod", "orders")])
    assert (len(known), list(known.columns)) == (0, list(COLUMNS))
    assert len(arrays.kind) == 0


def test_events_of_jobs_that_are_not_known_are_left_out_and_the_others_are_in_order() -> None:
    rows = pd.DataFrame(
        {
            **dict.fromkeys(COLUMNS, 1.0),
            "cluster": "prod",
            "job": ["orders", "gone", "orders"],
            "kind": ["rescale", "restart", "restart"],
            "cause_kind": "",
            "started_at": pd.to_datetime([30, 20, 10], unit="s", utc=True),
        }
    )
    known, arrays = list_events(rows, [("prod", "orders")])
    assert known["kind"].tolist() == arrays.kind.tolist() == ["restart", "rescale"]
