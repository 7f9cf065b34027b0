"""Which pictures the page of a visuomotor policy shows, where there are more than it has room for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airworthy.benchmarks.tracking.block import file_name
from airworthy.learning.visuomotor.report import _PICTURES, _pictures


def flights(folder: Path, places: int, failed: frozenset[tuple[str, int, str]] = frozenset()) -> list[dict[str, Any]]:
    """One flight of each condition and course in each place, with a picture each."""
    rows = []
    for course in ("round", "over"):
        for place in range(places):
            for condition in ("baseline", "drones", "blindfold"):
                where = f"evaluate/{course}_{place}"
                flight = folder / where / "flights" / f"svnet__rigid__{file_name(condition)}__0"
                flight.mkdir(parents=True)
                (flight / "seen.png").write_bytes(b"\x89PNG" + f"{course}{place}{condition}".encode())
                outcome = "crash" if (course, place, condition) in failed else "success"
                rows.append(
                    {"course": course, "place": f"hall:{place}", "condition": condition, "family": "rigid", "folder": where}
                    | {"outcome": outcome}
                )
    return rows


def test_all_are_shown_where_there_is_room(tmp_path: Path) -> None:
    shown, left = _pictures(tmp_path, flights(tmp_path, 3))
    assert (len(shown), left) == (18, 0) == (_PICTURES, 0)
    assert shown[0][0].endswith(", round in hall:0")


def test_of_many_those_that_failed_are_shown_and_of_each_kind_as_many_as_of_the_others(tmp_path: Path) -> None:
    failed = frozenset({("over", 33, "drones"), ("round", 7, "baseline")})
    shown, left = _pictures(tmp_path, flights(tmp_path, 40, failed))
    assert (len(shown), left) == (18, 240 - 18)
    titles = [title for title, _ in shown]
    # Two courses and three conditions: three places of each.
    assert sorted(title.split(", ")[-1].split(" in ")[0] for title in titles) == ["over"] * 9 + ["round"] * 9
    assert sum("over in hall:33" in title for title in titles) == sum("round in hall:7" in title for title in titles) == 1
    # In the order in which they were judged.
    assert titles[0].endswith("round in hall:0")
    assert titles[-1] == "Other drones, rigid, over in hall:33"
