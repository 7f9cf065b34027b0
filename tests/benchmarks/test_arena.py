"""The arena: ranks with ties that are called so, rows that may stand beside each other, and the committed page."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from airworthy.benchmarks.navigation.arena.entries import found_folders, leagues_of
from airworthy.benchmarks.navigation.arena.page import arena_page, write_arena
from airworthy.benchmarks.navigation.arena.ranking import Duel, ranked, ranks_of, vehicle_class
from airworthy.benchmarks.navigation.store import parquet_bytes, read_manifest, read_rows
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import write_json
from airworthy.core.jobs.block_store import digest_of

RESULTS = Path(__file__).parents[2] / "docs" / "results"
PLACES = ("forest", "maze")


def flown(pilot: str, share: int, **changes: Any) -> list[dict[str, Any]]:
    """Flights of which each vehicle's first `share` of ten layouts arrive, in two places."""
    common = {"pilot": pilot, "repeat": 0, "seed": 0, "layouts": 0, "speed_mean_m_s": 2.0, "twr": 1.5, **changes}
    return [
        {**common, "scenario": place, "configuration": layout, "vehicle": vehicle, "success": int(layout <= share)}
        for place in PLACES
        for layout in range(1, 11)
        for vehicle in ("real_01", "real_02")
    ]


def test_the_committed_page_is_what_the_command_makes_of_the_committed_rows() -> None:
    page, left_out = arena_page([RESULTS], RESULTS)
    assert left_out == []
    assert page == (RESULTS / "arena.html").read_text(encoding="utf-8"), (
        "airworthy bench arena docs/results makes docs/results/arena.html again"
    )


def test_the_page_loads_nothing_and_its_links_lead_to_rows() -> None:
    page = (RESULTS / "arena.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    assert not re.search(r'(?:src|href)="(?:https?:|//)', page)
    targets = re.findall(r'href="([^"#]+)"', page)
    assert any(target.endswith("results.parquet") for target in targets)
    assert all((RESULTS / target).is_file() for target in targets)


def test_who_is_ahead_has_the_better_rank_and_ties_share_one() -> None:
    standings, duels = ranked([*flown("far", 2), *flown("first", 9), *flown("second", 9)])
    assert [(item.pilot, item.rank, item.shared) for item in standings] == [
        ("first", 1, True), ("second", 1, True), ("far", 2, False),
    ]  # fmt: skip
    assert {(d.first, d.second): d.ahead for d in duels} == {
        ("far", "first"): "first", ("far", "second"): "second", ("first", "second"): "",
    }  # fmt: skip
    assert standings[0].value == pytest.approx(0.9)
    assert standings[0].low < 0.9 < standings[0].high


def test_ties_that_are_not_transitive_never_lift_a_pilot_over_a_better_one() -> None:
    def duel(a: str, b: str, ahead: bool) -> Duel:
        return Duel(a, b, 0.1, 0.01 if ahead else -0.01, 0.2)

    # a is ahead of b, and c, which is worse than b, is tied with both.
    chain = [duel("a", "b", True), duel("a", "c", False), duel("b", "c", False)]
    assert ranks_of(["a", "b", "c"], chain) == {"a": 1, "b": 2, "c": 2}
    # By its mean over other flights b comes first, on those that both flew a is ahead.
    assert ranks_of(["b", "a"], [duel("a", "b", True)]) == {"a": 1, "b": 2}
    circle = [duel("a", "b", True), duel("b", "c", True), duel("c", "a", True)]
    assert sorted(ranks_of(["a", "b", "c"], circle)) == ["a", "b", "c"]


def test_speed_is_compared_where_both_arrived() -> None:
    rows = [*flown("bold", 2, speed_mean_m_s=3.0), *flown("calm", 9, speed_mean_m_s=1.0)]
    standings, _ = ranked(rows, lambda row: float(row["speed_mean_m_s"]), arrived=True)
    assert [(item.pilot, item.rank, item.flights) for item in standings] == [("bold", 1, 8), ("calm", 2, 36)]
    never, _ = ranked([*rows, *flown("lost", 0)], lambda row: float(row["speed_mean_m_s"]), arrived=True)
    assert [item.pilot for item in never] == ["bold", "calm"]


def test_who_flew_a_part_is_not_ranked() -> None:
    part = [row for row in flown("part", 10) if row["configuration"] <= 2]
    standings, duels = ranked([*part, *flown("whole", 5), *flown("half", 0)])
    assert [(item.pilot, item.rank, item.cells) for item in standings] == [("whole", 1, 40), ("half", 2, 40), ("part", 0, 8)]
    assert standings[2].cells_wanted == 40
    assert len(duels) == 3
    twice = [{**row, "repeat": k} for row in flown("twice", 5) for k in (0, 1)]
    again, _ = ranked([*twice, *flown("once", 5)])
    assert [(item.pilot, item.rank, item.flights) for item in again] == [("once", 1, 40), ("twice", 1, 80)]


def test_vehicles_are_called_by_their_thrust_to_weight() -> None:
    assert [vehicle_class({"twr": twr}) for twr in (1.9, 2.0, 2.9, 3.0)] == ["weak", "middle", "middle", "agile"]


# ---- Folders ----------------------------------------------------------------------------------------------------------------


def folder_of(place: Path, pilots: tuple[str, ...], config: dict[str, Any] | None = None, **notes: Any) -> Path:
    """A folder with some committed rows of some pilots, whose run was asked for otherwise."""
    place.mkdir(parents=True)
    manifest = read_manifest(RESULTS / "navigation")
    manifest["identity"]["config"] |= config or {}
    manifest["pilots"] = {name: manifest["pilots"][name] for name in pilots}
    manifest |= {"digest": digest_of(manifest["identity"]), **notes}
    write_json(place / "benchmark.json", manifest)
    rows = [row for row in read_rows(RESULTS / "navigation") if row["pilot"] in pilots and row["configuration"] <= 2]
    said = manifest["identity"]["config"]
    how = {"seed": said["seed"], "a_max_m_s2": said["protocol"]["acceleration_m_s2"]}
    table = parquet_bytes([{**row, **how} for row in rows[::12]], {"digest": manifest["digest"]})
    (place / "results.parquet").write_bytes(table)
    return place


def test_folders_beside_each_other_are_one_league(tmp_path: Path) -> None:
    one, two = folder_of(tmp_path / "a", ("ego",)), folder_of(tmp_path / "b", ("fast", "ego"))
    assert found_folders([tmp_path]) == [one, two]
    (league,), left_out = leagues_of([one, two])
    assert league.pilots == ["ego", "fast"]
    assert [entry.pilots for entry in league.entries] == [("ego",), ("fast",)]
    again = sum(row["pilot"] == "ego" for row in read_rows(one))
    assert again > 0
    absent, both = 2520 - again, 5040 - len(read_rows(two))
    asked = "flights that benchmark.json asks for, which have no row"
    assert left_out == [
        f"a: {absent:,} of the 2,520 {asked} (ego).",
        f"b: {again:,} flights that a folder before it holds, too.",
        f"b: {both:,} of the 5,040 {asked} (fast, ego).",
    ]
    assert len(league.rows) == len(read_rows(two))


def test_what_may_not_stand_beside_the_rest_is_told(tmp_path: Path) -> None:
    fair = folder_of(tmp_path / "a", ("ego",))
    noisy = folder_of(
        tmp_path / "b", ("fast",), division={"division": "open", "because": ["--perturb differs from the benchmark's"]}
    )
    knows = folder_of(tmp_path / "c", ("pgo",), division={"division": "open", "because": ["pilot 'pgo' knows the whole place"]})
    other = folder_of(tmp_path / "d", ("fast",), {"seed": 7})
    (league,), told = leagues_of([fair, noisy, knows, other])
    left_out = [line for line in told if "no row" not in line]
    assert league.pilots == ["ego"]
    assert [line.partition(":")[0] for line in left_out] == ["b", "c", "d"]
    assert "--perturb differs" in left_out[0]
    assert "privileged" in left_out[1]
    assert "seed" in left_out[2]
    with pytest.raises(AirworthyError, match="No flight is left"):
        leagues_of([noisy])


def test_two_kinds_of_one_pilot_are_refused(tmp_path: Path) -> None:
    one = folder_of(tmp_path / "a", ("ego",))
    two = tmp_path / "b"
    shutil.copytree(one, two)
    rows = [{**row, "trace": "0" * 16} for row in read_rows(one)]
    (two / "results.parquet").write_bytes(parquet_bytes(rows, {"digest": read_manifest(two)["digest"]}))
    with pytest.raises(AirworthyError, match="other flights of 'ego'"):
        leagues_of([one, two])


def test_each_limit_of_acceleration_is_a_league(tmp_path: Path) -> None:
    one = folder_of(tmp_path / "a", ("ego", "fast"))
    protocol = read_manifest(one)["identity"]["config"]["protocol"]
    two = folder_of(tmp_path / "b", ("ego",), {"protocol": {**protocol, "acceleration_m_s2": 3.0}})
    leagues, _ = leagues_of([two, one])
    assert [league.acceleration for league in leagues] == [6.0, 3.0]
    page, _ = arena_page([tmp_path], tmp_path)
    assert page.count("Common limit of acceleration") == 2


def test_the_command_writes_the_page_and_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder_of(tmp_path / "runs" / "a", ("ego",))
    folder_of(tmp_path / "runs" / "b", ("ego",), {"seed": 3})
    assert main(["bench", "arena", str(tmp_path / "runs"), "--out", str(tmp_path / "arena.html")]) == 0
    said = capsys.readouterr()
    assert "left out of the arena, b: flown with another seed" in said.err
    assert "At 6 m/s\N{SUPERSCRIPT TWO}; = is a tie" in said.out
    assert re.search(r"^1 +EGO", said.out, re.MULTILINE)
    assert main(["bench", "arena", str(tmp_path / "runs"), "--out", str(tmp_path / "arena.html"), "--json"]) == 0
    (rows,) = json.loads(capsys.readouterr().out)["standings"].values()
    assert [(row["rank"], row["title"]) for row in rows] == [("1", "EGO-Planner")]
    assert 'href="runs/a/results.parquet"' in (tmp_path / "arena.html").read_text(encoding="utf-8")
    with pytest.raises(AssetError, match="no folder of airworthy bench navigation"):
        write_arena([tmp_path / "nowhere"], tmp_path / "arena.html")


@pytest.mark.parametrize(
    ("kept", "says"),
    [
        (lambda rows: [*rows, rows[0]], "row 2520 is the flight of row 0 once more"),
        (lambda rows: [], "2,520 of the 2,520 flights"),
        (lambda rows: [*rows[1:], {**rows[0], "repeat": 1}], "row 2519 is of a flight that benchmark.json does not ask for"),
        (lambda rows: [{**rows[0], "pilot": "nobody"}], "row 0 is of a flight that benchmark.json does not ask for"),
    ],
)
def test_flights_twice_and_none_at_all_are_told(tmp_path: Path, kept: Any, says: str) -> None:
    folder = tmp_path / "some"
    shutil.copytree(RESULTS / "known_free", folder)
    rows = read_rows(folder)
    (folder / "results.parquet").write_bytes(parquet_bytes(kept(rows), {"digest": read_manifest(folder)["digest"]}))
    with pytest.raises(AirworthyError, match=says):
        leagues_of([folder])


def test_flights_without_a_row_are_counted_on_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "some"
    shutil.copytree(RESULTS / "known_free", folder)
    (folder / "results.parquet").write_bytes(
        parquet_bytes(read_rows(folder)[:2000], {"digest": read_manifest(folder)["digest"]})
    )
    found = write_arena([folder], tmp_path / "arena.html")
    (line,) = found.left_out
    assert line == "some: 520 of the 2,520 flights that benchmark.json asks for, which have no row (known_free)."
    assert line in (tmp_path / "arena.html").read_text(encoding="utf-8")


def test_a_page_in_no_folder_is_told_how_to_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "arena", str(RESULTS / "known_free")]) == 2
    assert "'docs/results/arena.html' lies in no folder that is here: name another with --out" in capsys.readouterr().err
