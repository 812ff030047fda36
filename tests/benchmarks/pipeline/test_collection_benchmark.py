"""The benchmark of the collection in small: every reply of every healthy cluster, beside a slow and a silent one."""

from benchmarks.pipeline.collection import measure


def test_every_reply_arrives_in_time_beside_slow_and_silent_clusters(tmp_path):
    first, second = measure(tmp_path, clusters=3, jobs=4, operators=3, rounds=2, every_s=3.0)
    assert 0 < first < 3.0
    assert 0 < second < 3.0
