"""Files handed in: what is taken, what is refused by name, and that a second delivery changes nothing."""

import gzip

import pytest

from cli.raw_import import FileSource
from include.flink.raw_format import RawRecord, write_lines

PLACE = "cluster=prod/date=2026-11-20/hour=07"


def record(at_ms):
    return RawRecord(at_ms, "prod", "overview", "/overview", None, None, 200, '{"slots-total":8}')


@pytest.fixture
def folder(tmp_path):
    source = tmp_path / "handed-in"
    lines = [record(1).to_line(), '{"observed_at_ms": 2, "clus', record(3).to_line()]
    write_lines(source / PLACE / "a.jsonl.gz", lines)
    return source


def test_files_arrive_byte_for_byte_with_their_corrupt_lines(folder, tmp_path):
    delivery = FileSource(folder).deliver(tmp_path / "raw")
    target = tmp_path / "raw" / PLACE / "a.jsonl.gz"
    assert (delivery.written, delivery.kept) == (1, 0)
    assert target.read_bytes() == (folder / PLACE / "a.jsonl.gz").read_bytes()
    assert '{"observed_at_ms": 2, "clus' in gzip.decompress(target.read_bytes()).decode().splitlines()


def test_a_second_delivery_copies_nothing(folder, tmp_path):
    FileSource(folder).deliver(tmp_path / "raw")
    again = FileSource(folder).deliver(tmp_path / "raw")
    assert (again.written, again.kept) == (0, 1)
    assert again.refused == {}
    assert [path.name for path in (tmp_path / "raw" / PLACE).iterdir()] == ["a.jsonl.gz"]


@pytest.mark.parametrize(
    ("place", "content", "reason"),
    [
        ("a.jsonl.gz", b"\x1f\x8b", "not at cluster="),
        (f"{PLACE}/a.json", b"{}", "not at cluster="),
        (f"{PLACE}/.a.jsonl.gz", b"\x1f\x8b", "not at cluster="),
        (f"{PLACE}/deeper/b.jsonl.gz", b"\x1f\x8b", "not at cluster="),
        ("cluster=prod/date=2026-13-20/hour=07/b.jsonl.gz", b"\x1f\x8b", "no hour of the calendar"),
        ("cluster=prod/date=2026-11-20/hour=24/b.jsonl.gz", b"\x1f\x8b", "no hour of the calendar"),
        (f"{PLACE}/b.jsonl.gz", b"", "empty file"),
        (f"{PLACE}/b.jsonl.gz", b'{"plain": 1}', "not compressed"),
    ],
)
def test_a_file_that_ingestion_could_not_read_is_refused_by_name(folder, tmp_path, place, content, reason):
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    delivery = FileSource(folder).deliver(tmp_path / "raw")
    assert list(delivery.refused) == [place]
    assert reason in delivery.refused[place]
    assert delivery.written == 1
    assert not (tmp_path / "raw" / place).exists()


def test_a_different_file_of_the_same_name_never_overwrites(folder, tmp_path):
    FileSource(folder).deliver(tmp_path / "raw")
    before = (tmp_path / "raw" / PLACE / "a.jsonl.gz").read_bytes()
    write_lines(folder / PLACE / "a.jsonl.gz", [record(9).to_line()])
    delivery = FileSource(folder).deliver(tmp_path / "raw")
    assert "another file of this name" in delivery.refused[f"{PLACE}/a.jsonl.gz"]
    assert (tmp_path / "raw" / PLACE / "a.jsonl.gz").read_bytes() == before


def test_a_readme_beside_the_data_is_passed_over(folder, tmp_path):
    (folder / "README.md").write_text("how it was made")
    assert FileSource(folder).deliver(tmp_path / "raw").refused == {}
