"""Folders of jobs of blocks: what differs is named, what is damaged is refused, what is whole is taken up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import write_bytes
from airworthy.core.jobs.block_store import BlockStore, ManifestKind, differences, parse_table, table_bytes
from airworthy.core.jobs.workers import shared

IDENTITY = {"version": "1", "config": {"seed": 0, "spread": {"mass": 0.1}}, "pilots": {"a": {"sha": "x"}}}


class Store(BlockStore):
    """Of blocks of some bytes; every file belongs to it."""

    kind = ManifestKind("job.json", "a job", 1, ("identity", "blocks"))
    ending = ".bin"

    def __init__(self, folder: Path, identity: dict[str, Any]):
        super().__init__(folder, identity)
        self.write()

    def _files(self, name: str) -> dict[str, str]:
        return {f"blocks/{name}.bin": self._known[name]["sha256"]}

    def _join(self, name: str) -> bool:
        return False

    def keep(self, name: str, data: bytes) -> None:
        from airworthy.core.files import sha256

        write_bytes(self.path(name), data)
        self._known[name] = {"sha256": sha256(data)}
        self.write()


def test_differences_name_fields_as_options_are_named() -> None:
    now = {"version": "1", "config": {"seed": 1, "spread": {"mass": None}}, "pilots": {"a": {"sha": "y"}}}
    lines = differences(IDENTITY, now, {"pilots": "pilot {!r} has other weights"})
    assert lines == ["seed: 0 before, 1 now", "spread.mass: 0.1 before, none now", "pilot 'a' has other weights"]
    assert differences(IDENTITY, IDENTITY) == []
    assert differences({"x": "a" * 99}, {"x": [1, 2]}) == [f"x: {'a' * 57}... before, 1 2 now"]


def test_a_folder_goes_on_and_refuses_another_identity(tmp_path: Path) -> None:
    Store(tmp_path, IDENTITY).keep("one", b"1")
    again = Store(tmp_path, IDENTITY)
    assert again.has("one")
    assert not again.has("two")
    with pytest.raises(AirworthyError, match=r"holds a job with other settings \(seed: 0 before, 2 now\): repeat those"):
        Store(tmp_path, {**IDENTITY, "config": {**IDENTITY["config"], "seed": 2}})  # type: ignore[dict-item]
    again.path("one").write_bytes(b"2")
    with pytest.raises(AssetError, match="was changed or damaged: delete it"):
        again.has("one")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.pop("blocks"), "is no manifest of a job: move it away"),
        (lambda table: table.update(schema_version=2), "of another version"),
        (lambda table: table["identity"].update(version="2"), "is damaged or of another version"),
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    Store(tmp_path, IDENTITY)
    table = json.loads((tmp_path / "job.json").read_text())
    change(table)
    (tmp_path / "job.json").write_text(json.dumps(table))
    with pytest.raises(AssetError, match=message):
        Store(tmp_path, IDENTITY)


def test_a_table_has_the_same_bytes_and_gives_back_its_rows() -> None:
    rows, kinds = [{"name": "a", "n": 1, "x": 0.5}, {"name": "b", "n": 2, "x": 1.5}], {"name": str, "n": int, "x": float}
    data = table_bytes(rows, kinds, {"block": "k"})
    assert data == table_bytes(rows, kinds, {"block": "k"})
    assert parse_table(data, "f", "is no table.") == ({"block": "k"}, rows)
    with pytest.raises(AssetError, match="'f' is no table"):
        parse_table(data[: len(data) // 2], "f", "is no table.")


def test_one_worker_works_here_and_says_so_itself() -> None:
    heard: list[int] = []
    assert list(shared(abs, [-1, -2], 1, "parts", here=lambda n: 10 * n, came=heard.append)) == [(-1, -10), (-2, -20)]
    assert heard == []
    assert sorted(shared(abs, [-1, -2], 5, "parts", here=lambda n: 10 * n, came=heard.append)) == [(-2, 2), (-1, 1)]
    assert sorted(heard) == [-2, -1]


def test_a_manifest_of_more_than_64_mebibytes_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    with open(path, "wb") as file:
        file.write(b"{}")
        file.truncate(64 << 20)
    kind = ManifestKind("job.json", "a job", 1)
    with pytest.raises(AssetError) as within:
        kind.read(tmp_path)
    with open(path, "ab") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(AssetError) as beyond:
        kind.read(tmp_path)
    assert "67,108,8" in str(beyond.value) or "64 MiB" in str(beyond.value) or "large" in str(beyond.value)
    assert str(within.value) != str(beyond.value)


def test_three_things_that_changed_are_named_at_most(tmp_path: Path) -> None:
    Store.kind.refuse(tmp_path, [])
    said = r"holds a job with other settings \(one; two; three\): repeat those, choose another --out, or delete it\.$"
    with pytest.raises(AirworthyError, match=said):
        Store.kind.refuse(tmp_path, ["one", "two", "three", "four"])
