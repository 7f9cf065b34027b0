"""An avoiding policy as a pilot of the navigation benchmark: what it sees through its camera, and when it decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.benchmarks.navigation.avoid_pilot import AvoidNavigationPilot
from airworthy.benchmarks.navigation.config import Flight, NavigationConfig
from airworthy.benchmarks.navigation.fly_batch import fly_flights
from airworthy.benchmarks.navigation.methods import is_learnt_pilot, is_learnt_planner, method_of
from airworthy.benchmarks.navigation.report.tables import PROPOSAL_COUNTS, proposals
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.pilots.avoid_policy.contract import AvoidContract, FleetTold, tensor_shapes, write_avoid_folder
from airworthy.pilots.avoid_policy.sight import IMAGE, REACH, TILT_DEG
from airworthy.pilots.avoid_policy.wide_view import WideView
from airworthy.planners.hybrid.planner import COUNTS
from airworthy.planners.mapping.boxes import MODES


def _folder(path: Path, contract: AvoidContract) -> Path:
    """A policy of zeros, which asks for nothing."""
    shapes = tensor_shapes(contract)
    return write_avoid_folder(path, contract, {name: np.zeros(shape, np.float32) for name, shape in shapes.items()})


@pytest.mark.parametrize("mode", sorted(MODES))
def test_a_wall_is_seen_where_it_is(mode: str) -> None:
    """Level depth 3 m everywhere: along an axis that looks up by 20 degrees rays at its middle meet it at 3 / cos(20)."""
    camera = MODES[mode]
    seen = WideView(camera)(np.full((2, camera.height, camera.width), 3.0, np.float32))
    assert seen.shape == (2, IMAGE[0] * IMAGE[1])
    image = seen[0].reshape(IMAGE)
    np.testing.assert_allclose(image[:, 0], image[:, -1])
    middle = 3.0 * np.cos(np.radians(TILT_DEG)) + 3.0 * np.tan(np.radians(TILT_DEG)) * np.sin(np.radians(TILT_DEG))
    assert image[5, 8] > middle * 0.95 > image[6, 8] * 0.9
    # Farther up a wall is farther along an axis that looks up.
    assert (np.diff(image[:, 8]) < 0.0).all()


def test_what_stands_to_the_left_is_seen_there_and_nothing_is_far() -> None:
    camera = MODES["fast"]
    depth = np.zeros((1, camera.height, camera.width), np.float32)
    depth[:, :, : camera.width // 4] = 2.0
    image = WideView(camera)(depth)[0].reshape(IMAGE)
    assert (image[:, :3] < 3.0).all()
    assert (image[:, 8:] == REACH).all()
    with pytest.raises(AirworthyError, match="camera's"):
        WideView(camera)(np.zeros((1, 5, 5)))


def test_words_are_found_and_damaged_folders_are_not(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "p", AvoidContract(8, fleet=FleetTold("told", "virtual")))
    method = method_of(f"avoid:{folder}")
    assert method.kind == "pilot"
    assert "virtual fleet, told" in method.title
    assert method_of(f"hybrid:{folder}").kind == "planner"
    assert is_learnt_pilot(f"avoid:{folder}")
    assert is_learnt_planner(f"hybrid:{folder}")
    assert not is_learnt_pilot("avoider:x")
    shipped, own = method_of("hybrid:agile_autonomy"), method_of(f"hybrid:{folder}")
    assert shipped.identity["weights"] == method_of("agile_autonomy").identity["weights"] != own.identity["weights"]
    assert "student" in shipped.title
    for word in (f"avoid:{tmp_path}", f"hybrid:{tmp_path}"):
        with pytest.raises(AssetError):
            method_of(word)
    with pytest.raises(AirworthyError, match="reset"):
        AvoidNavigationPilot(folder).command(None)  # type: ignore[arg-type]


def test_it_flies_in_the_benchmark_as_what_it_knows_lets_it(tmp_path: Path) -> None:
    """A policy of zeros asks to stay; one that is told nothing takes a weak vehicle for the middle one, and drops."""
    config = NavigationConfig()
    flights = [Flight("forest", 1, "real_09")]
    nothing = _folder(tmp_path / "none", AvoidContract(8, fleet=FleetTold("none", "virtual")))
    flown: Any = fly_flights(flights, method_of(f"avoid:{nothing}"), config)
    assert flown.watch.outcome[0] == "collision"


def test_reports_count_what_hybrids_flew() -> None:
    assert PROPOSAL_COUNTS == COUNTS
    rows = [
        {"pilot": "h", "work": '{"proposals":10.0,"proposals_flown":3.0,"plans_flown":1.0}'},
        {"pilot": "h", "work": '{"proposals":5.0,"proposals_flown":0.0,"plans_flown":4.0}'},
        {"pilot": "other", "work": '{"certificates":5.0}'},
        {"pilot": "blind", "work": ""},
    ]
    (found,) = proposals(rows, {"h": "Hybrid"})
    assert found == {
        "title": "Hybrid", "flights": 2, "proposals": 15, "proposals_flown": 3, "plans_flown": 5, "share": "37.5"
    }  # fmt: skip
