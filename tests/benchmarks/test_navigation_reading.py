"""Folders from anywhere: what is damaged is refused in one sentence, and a run brings back all that can be made again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airworthy.benchmarks.navigation import job, store
from airworthy.benchmarks.navigation.config import NavigationConfig
from airworthy.benchmarks.navigation.flown_folder import config_of, read_flown
from airworthy.benchmarks.navigation.job import run_benchmark
from airworthy.benchmarks.navigation.replay import replay_row
from airworthy.benchmarks.navigation.report.page import summary_of, write_report
from airworthy.benchmarks.navigation.store import digest_of, identity_of, read_manifest, read_rows
from airworthy.cli.main import main
from airworthy.core.errors import AssetError
from airworthy.tasks.navigation import NavigationProtocol

Damage = Callable[[Path], object]


def small(folder: Path) -> NavigationConfig:
    protocol = NavigationProtocol(time_limit_s=4.0)
    return NavigationConfig(("straight",), ("virt_05",), ("maze",), 2, batch=1, protocol=protocol, report=False, out=folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    run_benchmark(small(folder))
    return folder


def column(name: str, value: Any, kind: Any) -> Damage:
    """Every row says `value`."""

    def damage(folder: Path) -> None:
        path = folder / store.RESULTS_FILE
        table = pq.read_table(path)
        said = pa.array([value] * len(table), kind)
        other = table.set_column(table.schema.get_field_index(name), name, said)
        pq.write_table(other.replace_schema_metadata(table.schema.metadata), path)

    return damage


def first(name: str, value: Any) -> Damage:
    """The first row says `value`."""

    def damage(folder: Path) -> None:
        path = folder / store.RESULTS_FILE
        table = pq.read_table(path)
        said = pa.array([value, *table.column(name).to_pylist()[1:]], table.schema.field(name).type)
        other = table.set_column(table.schema.get_field_index(name), name, said)
        pq.write_table(other.replace_schema_metadata(table.schema.metadata), path)

    return damage


def of_another_run(folder: Path) -> None:
    path = folder / store.RESULTS_FILE
    path.write_bytes(store.parquet_bytes(read_rows(path), {"digest": "0" * 64}))


def without(name: str) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / store.RESULTS_FILE
        pq.write_table(pq.read_table(path).drop_columns([name]), path)

    return damage


def half(folder: Path) -> None:
    path = folder / store.RESULTS_FILE
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(folder: Path) -> None:
    """One bit of the last byte of a column of numbers, which the format itself does not notice."""
    path = folder / store.RESULTS_FILE
    group = pq.ParquetFile(path).metadata.row_group(0)
    (chunk,) = [item for item in map(group.column, range(group.num_columns)) if item.path_in_schema == "speed_max_m_s"]
    data = bytearray(path.read_bytes())
    data[(chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size - 1] ^= 1
    path.write_bytes(data)


TABLES: dict[str, tuple[Damage, str]] = {
    "half": (half, "no table of flights, or damaged"),
    "empty": (lambda f: (f / store.RESULTS_FILE).write_bytes(b""), "no table of flights, or damaged"),
    "missing": (lambda f: (f / store.RESULTS_FILE).unlink(), "There is no file"),
    "another": (lambda f: pq.write_table(pa.table({"a": [1]}), f / store.RESULTS_FILE), "no table of flights"),
    "column gone": (without("time_s"), "its column 'time_s' is missing or of another kind"),
    "text for a number": (column("configuration", "one", pa.string()), "its column 'configuration' is missing"),
    "nothing for a number": (column("success", None, pa.int64()), "its column 'success' is missing"),
    "no such outcome": (column("outcome", "flew home", pa.string()), "row 0 tells of no flight"),
    "no such place": (column("scenario", "desert", pa.string()), "row 0 tells of no flight"),
    "no such layout": (column("configuration", 99, pa.int64()), "row 0 tells of no flight"),
    "success of a collision": (column("success", 1, pa.int64()), "row 0 tells of no flight"),
    "repeat below 0": (column("repeat", -5, pa.int64()), "row 0 tells of no flight"),
    "no such vehicle": (column("vehicle", "real_99", pa.string()), "row 0 is of the vehicle 'real_99', which is none"),
    "no time": (column("time_s", float("nan"), pa.float64()), "row 0 has time_s nan, where a flight that ended as"),
    "time below 0": (column("time_s", -1.0, pa.float64()), "row 0 has time_s -1.0"),
    "endless thrust": (column("twr", float("inf"), pa.float64()), "row 0 has twr inf"),
    "a flight twice": (column("configuration", 1, pa.int64()), "row 1 is the flight of row 0 once more"),
    "no way across": (column("alpha_xy", float("nan"), pa.float64()), "row 0 has alpha_xy nan"),
    "layout 0": (column("configuration", 0, pa.int64()), "row 0 tells of no flight"),
    "speed below 0": (first("speed_max_m_s", -3.0), "row 0 has speed_max_m_s -3.0, where a flight has 0 or more"),
    "mean speed below 0": (first("speed_mean_m_s", -3.0), "row 0 has speed_mean_m_s -3.0"),
    "an endless flight": (first("time_s", 1e9), "row 0 has time_s 1e+09, where benchmark.json has a limit of 4"),
    "arrival below 0": (first("arrival_s", -1.0), "row 0 has arrival_s -1.0, where a flight has 0 or more"),
    "arrival after the end": (first("arrival_s", 80.0), "row 0 has arrival_s 80.0, after its end at"),
    "no clearance": (first("clearance_min_m", float("nan")), "row 0 has clearance_min_m nan"),
    "no latency": (first("latency_p95_s", float("nan")), "row 0 has latency_p95_s nan"),
    "more than all": (first("thrust_saturation", 1.5), "row 0 has thrust_saturation 1.5, where a share is at most 1"),
    "replans below 0": (first("replans", -1), "row 0 has replans -1"),
    "no such category": (first("category", "real"), "row 0 calls 'virt_05' 'real', which is 'virtual'"),
    "no JSON": (first("work", "{broken"), "row 0 has the work '{broken', where a flight has counts by name, as JSON"),
    "no counts": (first("work", '{"proposals": "x"}'), 'row 0 has the work \'{"proposals": "x"}\''),
    "no times": (first("latencies", "[true]"), "row 0 has the latencies '[true]'"),
    "a vehicle nobody flew": (first("vehicle", "nosuch.toml"), "row 0 is of a flight that benchmark.json does not ask for"),
    "a pilot nobody asked": (first("pilot", "ego"), "row 0 is of a flight that benchmark.json does not ask for"),
    "a repeat nobody asked": (first("repeat", 9), "row 0 is of a flight that benchmark.json does not ask for"),
    "a scenario nobody asked": (first("scenario", "forest"), "row 0 is of a flight that benchmark.json does not ask for"),
    "another seed": (first("seed", 5), "row 0 has the seed 5, where benchmark.json has 0"),
    "other layouts": (first("layouts", 5), "row 0 has the layouts 5, where benchmark.json has 0"),
    "another limit": (first("a_max_m_s2", 3.0), "row 0 has a_max_m_s2 3, where benchmark.json has 6"),
    "of another run": (of_another_run, "is of another run than the benchmark.json beside it"),
    "a flipped bit": (flipped, "no table of flights, or damaged"),
}


@pytest.mark.parametrize("name", TABLES)
def test_damaged_tables_are_refused_and_written_again(
    name: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    damage, message = TABLES[name]
    damage(folder)
    out = str(tmp_path / "arena.html")
    lines = ["report", "--no-pictures"], ["report", "--why"], ["replay", "0", "--no-view"], ["arena", "--out", out]
    for command, *more in lines:
        line = [command, str(folder), *more]
        assert main(["bench", *line]) == 2
        said = capsys.readouterr().err
        assert message in said
        assert len(said.strip().splitlines()) == 1
    flown: list[str] = []
    run_benchmark(small(folder), step=flown.append)
    assert flown == []  # blocks were whole
    assert (folder / store.RESULTS_FILE).read_bytes() == (whole / store.RESULTS_FILE).read_bytes()


MANIFESTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "blocks": lambda manifest: manifest["blocks"].update({name: [1] for name in manifest["blocks"]}),
    "blocks without sums": lambda manifest: [entry.pop("sha256") for entry in manifest["blocks"].values()],
    "blocks of text": lambda manifest: [entry.update(seconds={"flying": "long"}) for entry in manifest["blocks"].values()],
    "pilots": lambda manifest: manifest.update(pilots={"straight": "x"}),
    "words": lambda manifest: manifest.update(words=[1]),
    "division": lambda manifest: manifest.update(division={"division": "open", "because": 7}),
    "system": lambda manifest: manifest.update(system=["x"]),
    "command": lambda manifest: manifest.update(command=5),
    "identity": lambda manifest: (
        manifest["identity"].update(version=1) or manifest.update(digest=digest_of(manifest["identity"]))
    ),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_damaged_manifests_are_refused_everywhere(name: str, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    manifest = json.loads((folder / store.MANIFEST_FILE).read_text())
    MANIFESTS[name](manifest)
    (folder / store.MANIFEST_FILE).write_text(json.dumps(manifest))
    part = name.split(maxsplit=1)[0]
    for act in (lambda: write_report(folder), lambda: replay_row(folder, 0), lambda: run_benchmark(small(folder))):
        with pytest.raises(AssetError, match=f"damaged, its '{part}' is not what a run writes"):
            act()
    assert len(list((folder / store.BLOCKS).glob("*.parquet"))) == 2


def test_manifests_keep_the_older_name_of_the_decision_timeout() -> None:
    identity = store.identity_of(NavigationConfig(decision_timeout=3.0))
    assert identity["config"]["patience"] == 3.0
    assert "decision_timeout" not in identity["config"]
    assert config_of(identity).decision_timeout == 3.0


def test_settings_that_nobody_may_choose_are_refused(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    manifest = json.loads((tmp_path / store.MANIFEST_FILE).read_text())
    for changes, message in (({"patience": "x"}, "damaged"), ({"trials": 99}, "--trials is 99"), ({"protocol": 3}, "damaged")):
        identity = {**manifest["identity"], "config": {**manifest["identity"]["config"], **changes}}
        (tmp_path / store.MANIFEST_FILE).write_text(
            json.dumps({**manifest, "identity": identity, "digest": digest_of(identity)})
        )
        with pytest.raises(Exception, match=message) as caught:
            replay_row(tmp_path, 0)
        assert caught.type.__name__ in ("AirworthyError", "AssetError")


@pytest.mark.parametrize("text", ["{}", "[]", '{"hardware": 3, "seconds": {"straight": {"flying": "x"}}, "state": {}}', None])
def test_a_report_needs_no_summary(text: str | None, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    path = tmp_path / job.SUMMARY_FILE
    path.unlink() if text is None else path.write_text(text)
    page = write_report(tmp_path, pictures=False).read_text()
    assert "straight flight" in page
    for name in ("fleet", "scenarios", "indicators", "grid", "outcomes"):
        assert f'id="{name}-' in page


def test_rows_tell_how_much_is_finished_whatever_a_summary_says(whole: Path, tmp_path: Path) -> None:
    """A row is lost after the run: the summary that calls it complete is not believed, and the page and command say so."""
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    assert summary_of(read_flown(tmp_path))["state"] == json.loads((whole / job.SUMMARY_FILE).read_text())["state"]
    path = tmp_path / store.RESULTS_FILE
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 1).replace_schema_metadata(table.schema.metadata), path)
    state = summary_of(read_flown(tmp_path))["state"]
    assert (state["complete"], state["finished"], state["flights"]) == (False, 1, len(table))
    assert f"This is not all: 1 of {len(table)} flights are finished." in write_report(tmp_path, pictures=False).read_text()


def test_a_folder_without_flights_is_no_report(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    path = tmp_path / store.RESULTS_FILE
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    for act in (lambda: write_report(tmp_path), lambda: replay_row(tmp_path, 0)):
        with pytest.raises(Exception, match="holds no flights yet"):
            act()


def test_the_processor_is_not_named_and_a_gpu_is(whole: Path, tmp_path: Path) -> None:
    assert not {"device", "controller"} & set(read_manifest(whole)["identity"]["config"])
    assert identity_of(NavigationConfig(device="cuda:0"))["config"]["device"] == "cuda:0"
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    manifest = json.loads((tmp_path / store.MANIFEST_FILE).read_text())
    manifest["identity"]["config"]["device"] = "cuda:77"
    manifest["digest"] = digest_of(manifest["identity"])
    (tmp_path / store.MANIFEST_FILE).write_text(json.dumps(manifest))
    path = tmp_path / store.RESULTS_FILE
    path.write_bytes(store.parquet_bytes(read_rows(path), {"digest": manifest["digest"]}))
    with pytest.raises(Exception, match="Device 'cuda:77' is not on this machine"):
        replay_row(tmp_path, 0)
    assert write_report(tmp_path).is_file()  # its pictures are made by the processor
    assert len(read_rows(tmp_path)) == 2


def test_an_arrival_without_its_time_is_refused(tmp_path: Path) -> None:
    results = Path(__file__).parents[2] / "docs/results/known_free"
    rows = store.read_rows(results)[:3]
    rows[2] |= {"arrival_s": float("nan")}
    (tmp_path / "rows.parquet").write_bytes(store.parquet_bytes(rows, {}))
    with pytest.raises(AssetError, match="row 2 has arrival_s nan, where a flight that ended as success has a number"):
        store.read_rows(tmp_path / "rows.parquet")


ROW = store.read_rows(Path(__file__).parents[2] / "docs/results/known_free")[0]


@pytest.mark.parametrize("changes", [{"repeat": 1}, {"configuration": 2}, {"scenario": "maze"}, {"pilot": "ego"}])
def test_flights_that_differ_in_one_thing_are_two(changes: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_bytes(store.parquet_bytes([ROW, {**ROW, **changes}], {}))
    assert len(store.read_rows(tmp_path / "rows.parquet")) == 2
    (tmp_path / "rows.parquet").write_bytes(store.parquet_bytes([ROW, {**ROW, "number": 1}], {}))
    with pytest.raises(AssetError, match="row 1 is the flight of row 0 once more"):
        store.read_rows(tmp_path / "rows.parquet")


@pytest.mark.parametrize("name", ["end_x_m", "end_y_m", "end_z_m", "take_off_s", "goal_distance_m", "path_length_m"])
def test_an_arrival_without_a_number_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_bytes(store.parquet_bytes([{**ROW, name: float("nan")}], {}))
    with pytest.raises(AssetError, match=f"row 0 has {name} nan, where a flight that ended as success has a number"):
        store.read_rows(tmp_path / "rows.parquet")


def test_a_flight_that_was_given_up_may_lack_numbers(tmp_path: Path) -> None:
    lost = {
        "outcome": "diverged",
        "success": 0,
        "arrival_s": float("nan"),
        "end_x_m": float("nan"),
        "path_length_m": float("nan"),
    }
    (tmp_path / "rows.parquet").write_bytes(store.parquet_bytes([{**ROW, **lost}], {}))
    assert len(store.read_rows(tmp_path / "rows.parquet")) == 1


def test_every_pilot_of_a_folder_is_asked_for_every_flight(tmp_path: Path) -> None:
    """One of two pilots lacks its flights: half is missing, although each flight has a row."""
    folder = tmp_path / "two"
    config = replace(small(folder), pilots=("straight", "expert"))
    identity, rows = identity_of(config), []
    for number in (1, 2):
        changes = {
            "pilot": "straight",
            "scenario": "maze",
            "configuration": number,
            "vehicle": "virt_05",
            "category": "virtual",
        }
        rows.append({**ROW, **changes, "success": 0, "outcome": "collision", "time_s": 2.0, "arrival_s": float("nan")})
    kept = store.NavigationStore(folder, identity, {"straight": {}, "expert": {}})
    kept.keep("one", rows, {})
    kept.write_results(["one"])
    flown = read_flown(folder)
    assert (flown.flights, flown.missing) == (4, {"expert": 2})
    state = summary_of(flown)["state"]
    assert (state["complete"], state["finished"], state["flights"]) == (False, 2, 4)
