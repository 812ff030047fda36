"""Which version of the models the controller reads, when it reads another, and what it says where it can read none."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from benchmarks.pipeline.packed_models import pack_models
from controller.view.champion import ChampionReader
from include.settings import Mlflow
from models.training.model_review import PROMOTED_TAG, VERSION_TAG


class Registry:
    """MLflow's registry without MLflow, whose import takes seconds: aliases, and a file for each version."""

    def __init__(self) -> None:
        self.aliases: dict[str, int] = {}
        self.files: dict[int, bytes] = {}
        self.reads: list[int] = []

    def add(self, number: int, content: bytes | None = None) -> None:
        """Register a version that was champion; without content its file is a good one."""
        self.files[number] = pack_models(f"v{number}", {}).to_bytes() if content is None else content

    def version_of(self, number: int) -> Any:
        return SimpleNamespace(version=str(number), tags={VERSION_TAG: f"v{number}", PROMOTED_TAG: "yes"})

    def find_alias(self, client: object, model: str, alias: str) -> Any:
        return self.version_of(self.aliases[alias]) if alias in self.aliases else None

    def list_versions(self, client: object, model: str) -> list[Any]:
        return [self.version_of(number) for number in sorted(self.files)]

    def read_bundle(self, model: str, number: int) -> bytes:
        self.reads.append(number)
        return next(content for content in [self.files[number]] if content)


def module(name: str, **content: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(content)
    return made


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    made = Registry()
    calls: Mapping[str, Any] = {name: getattr(made, name) for name in ("find_alias", "list_versions", "read_bundle")}
    for one in (
        module("mlflow", MlflowClient=lambda uri: None, set_tracking_uri=lambda uri: None),
        module("mlflow.exceptions", MlflowException=type("MlflowException", (Exception,), {})),
        module("include.model_registry", CHAMPION="champion", PINNED="pinned", **calls),
    ):
        monkeypatch.setitem(sys.modules, one.__name__, one)
    return made


def start(uri: str = "http://registry:1") -> ChampionReader:
    return ChampionReader(Mlflow(tracking_uri=uri))


def refresh(reader: ChampionReader) -> str | None:
    reader.refresh()
    return reader.model_version


def test_the_champion_is_read_once_and_another_when_there_is_one(registry: Registry) -> None:
    reader = start()
    registry.add(1)
    registry.aliases["champion"] = 1
    assert [refresh(reader) for _ in range(3)] == ["v1"] * 3
    assert registry.reads == [1]
    registry.add(2)
    registry.aliases["champion"] = 2
    assert [refresh(reader) for _ in range(2)] == ["v2"] * 2
    assert registry.reads == [1, 2]


def test_the_pinned_version_is_read_before_the_champion(registry: Registry) -> None:
    registry.add(1)
    registry.add(2)
    registry.aliases |= {"champion": 2, "pinned": 1}
    assert refresh(start()) == "v1"


def test_where_no_version_is_named_nothing_is_read_and_nothing_is_said(registry: Registry, caplog) -> None:
    """Versions may be registered before any of them is good enough."""
    registry.add(1)
    assert refresh(start()) is None
    assert (registry.reads, caplog.messages) == ([], [])


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"", "no bundle in it"), (b"no bundle", "not a bundle of models: .*")],
    ids=["without a file", "of another format"],
)
def test_an_earlier_champion_stands_in_for_one_that_cannot_be_used(registry, caplog, content: bytes, why: str) -> None:
    registry.add(1)
    registry.add(2, content)
    registry.aliases["champion"] = 2
    assert refresh(start()) == "v1"
    (message,) = caplog.messages
    assert re.fullmatch(f"version 2 of the models cannot be used: {why}", message)


def test_without_a_version_that_can_be_used_the_models_stay(registry: Registry, caplog) -> None:
    reader = start()
    registry.add(1)
    registry.aliases["champion"] = 1
    assert refresh(reader) == "v1"
    registry.add(2, b"no bundle")
    del registry.files[1]
    registry.aliases["champion"] = 2
    assert refresh(reader) == "v1"
    assert "no version that is named can be used" in caplog.messages[-1]


@pytest.mark.parametrize("is_there", [False, True])
def test_a_database_that_is_no_file_yet_is_not_asked(registry: Registry, tmp_path, is_there: bool) -> None:
    """MLflow would make it, which takes long."""
    registry.add(1)
    registry.aliases["champion"] = 1
    if is_there:
        (tmp_path / "mlflow.db").touch()
    for options in ("", "?timeout=5"):
        assert refresh(start(f"sqlite:///{tmp_path}/mlflow.db{options}")) == ("v1" if is_there else None)
