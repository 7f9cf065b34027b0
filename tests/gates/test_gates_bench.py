"""The gates benchmark: flights that differ as Table I says, the least time against a closed form, a job that resumes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.gates.boundary_planner_cases import oracle

from airworthy.core.errors import AirworthyError
from airworthy.gates.benchmark import (
    FAMILIES,
    OTHERS,
    FlightOptions,
    FlightSpread,
    GatesBenchConfig,
    GatesMethod,
    fly,
    least_time,
    run_gates,
)
from airworthy.gates.benchmark.baselines import Lap, baseline_laps
from airworthy.gates.benchmark.config import quick
from airworthy.gates.benchmark.families import drawn_vehicles, hover_integrals
from airworthy.gates.benchmark.predictions import off_grid, rows_of
from airworthy.gates.planner.planner import plan
from airworthy.gates.planner.window import RANGES, outside
from airworthy.trajectories import Limits, course
from airworthy.trajectories.generated_courses import straight_course
from airworthy.vehicles import Uncertainty, vehicle, write_vehicle
from airworthy.vehicles.uncertainty import uncertain_values

TWO = straight_course(2)
ORACLE = GatesMethod("own", oracle, {"kind": "own"})


def test_least_time_is_that_of_even_acceleration_and_bounds_every_plan() -> None:
    points = np.array([[0.0, 0.0, 0.5], [2.0, 0.0, 0.5]])
    # 2 m at 1 m/s^2 from rest; the lower sum over 200,000 steps is short by less than a millionth.
    assert least_time(points, Limits(acceleration=1.0)) == pytest.approx(2.0, rel=1e-4)
    assert least_time(points, Limits(acceleration=1.0)) <= 2.0
    # 1 m/s reached after 0.5 m and 1 s, then 1.5 m at that speed.
    assert least_time(points, Limits(acceleration=1.0, speed=1.0)) == pytest.approx(2.5, rel=1e-4)
    for name in ("straight_8", "circle_8"):
        made = plan(course(name), oracle)
        assert least_time(made.route.positions[:-1], Limits(envelope=(2.0, 0.3))) < made.lap_time
    # A bound on the thrust alone leaves no number; beside one on the acceleration or the envelope it changes none.
    assert np.isnan(least_time(points, Limits(thrust_max=15.0)))
    for bounded in (Limits(acceleration=1.0), Limits(envelope=(2.0, 0.3))):
        assert least_time(points, replace(bounded, thrust_max=15.0)) == least_time(points, bounded)


def test_other_planners_keep_the_limit_and_nothing_beats_the_least_time() -> None:
    limits = Limits(envelope=(2.0, 0.3))
    laps = baseline_laps(TWO.start, TWO.start_yaw, TWO.gates, limits, 0.12, 0.07)
    assert [lap.planner for lap in laps] == list(OTHERS)
    points = np.array([TWO.start, *(gate.position for gate in TWO.gates)])
    for lap in laps:
        assert lap.time > least_time(points, limits)
        assert lap.verdict == "proven"
        assert lap.passed


def test_flights_differ_as_table_one_says_and_by_their_own_number() -> None:
    nominal = vehicle("cf2x_scg_iros2022")
    many = drawn_vehicles(nominal, FlightSpread(), 3, range(400))
    mass = np.array([item.mass for item in many]) - nominal.mass
    assert np.abs(mass).max() <= 0.01
    # A uniform law's deviation is 0.00577; of 400 draws it is within 5 % with four standard errors.
    assert mass.std() == pytest.approx(0.01 / np.sqrt(3.0), rel=0.08)
    assert drawn_vehicles(nominal, FlightSpread(), 3, [7])[0] == many[7]
    with pytest.raises(AirworthyError, match="leaves nothing"):
        drawn_vehicles(nominal, FlightSpread(mass=0.04), 0, [0])


def test_identified_vehicles_are_drawn_by_their_number_and_fly_for_every_family(tmp_path: Path) -> None:
    base, state, names = vehicle("cf2x_scg_iros2022"), 1500.0, ("mass", "inertia_xx")
    values = uncertain_values(base, state)
    told = Uncertainty(
        names=names,
        transform=("log", "log"),
        mean=tuple(math.log(values[name]) for name in names),
        sd=(0.03, 0.1),
        correlation=((1.0, 0.0), (0.0, 1.0)),
        share=(0.9, 0.9),
        state=state,
    )
    write_vehicle(replace(base, name="mine", uncertainty=told), tmp_path / "mine.toml")
    made = plan(TWO, oracle)
    options = FlightOptions(seed=1, vehicle=str(tmp_path / "mine.toml"), identified=True)
    both = [fly([made.approved()], [made.gates], FAMILIES[name], 3, options) for name in ("competition", "crazyflow")]
    rows = [rows_of(flown) for flown in both]
    assert [row["drawn"] for row in rows[0]] == [row["drawn"] for row in rows[1]]
    assert all(row["drawn"]["mass"] == row["mass_kg"] for row in rows[0])
    assert len({row["mass_kg"] for row in rows[0]}) == 3
    assert [row["outcome"] for row in rows[0]] == ["success"] * 3
    alone = fly([made.approved()], [made.gates], FAMILIES["competition"], 1, options, numbers=[2])
    assert rows_of(alone)[0]["drawn"] == rows[0][2]["drawn"]
    assert alone.error_mean[0] == both[0].error_mean[2]


def test_forces_of_a_step_at_500_hz_have_the_variance_of_table_one() -> None:
    """A density times the rate is the variance of what is held for a step: of a uniform law a third of its bound's square."""
    spread = FlightSpread(thrust_noise=0.0)
    (one,) = drawn_vehicles(vehicle("cf2x_scg_iros2022"), spread, 3, [0])
    assert one.wrench_noise.force == pytest.approx((500.0**-1 * spread.force**2 / 3.0,) * 3, rel=1e-12, abs=0.0)


def test_the_height_integral_makes_up_for_the_controllers_mass() -> None:
    family, nominal = FAMILIES["crazyflow"], vehicle("cf2x_L250")
    # An ideal thrust map: 132,000 commands per newton on 65,535 for 0.12 N is 4 x 0.2417 N per newton asked; gravity 9.81.
    gain = 4.0 * 132000.0 / 65535.0 * 0.12
    missing = 0.0328 * 9.81 / gain - 0.029 * 9.81
    expected = np.clip(missing / 0.05, -0.4, 0.4)
    assert hover_integrals(family, nominal, [nominal])[0] == pytest.approx(expected, abs=2e-3)
    assert hover_integrals(FAMILIES["semi_kinematic"], nominal, [nominal]).tolist() == [0.0]


def test_flights_of_an_approved_plan_are_clean_and_do_not_depend_on_their_batch() -> None:
    made = plan(TWO, oracle)
    options = FlightOptions(seed=1)
    three = fly([made.approved()], [made.gates], FAMILIES["competition"], 3, options)
    assert three.results.outcomes.tolist() == ["success"] * 3
    alone = fly([made.approved()], [made.gates], FAMILIES["competition"], 1, options, numbers=[2])
    assert alone.error_mean[0] == three.error_mean[2]
    assert np.array_equal(alone.results.times[0], three.results.times[2])
    # 10 g too heavy or light is at most 8 cm of height by kp_z = 1.25 N/m; what tracking adds stays within the opening.
    assert three.error_max.max() < 0.2
    assert three.error_mean[0] == pytest.approx(np.nanmean(three.error[0]), rel=0.1)


def test_off_grid_situations_lie_inside_the_ranges() -> None:
    made = off_grid(300, 4)
    assert not outside(made, RANGES).any()
    assert set(np.unique(made[:, 4])) == {0.3, 0.525}


@pytest.fixture
def config(tmp_path: Path) -> GatesBenchConfig:
    return GatesBenchConfig(
        courses=("straight:2",), families=("competition",), flights=2, random=3, random_gates=2, block=2, out=tmp_path / "run"
    )


SIZES = ("courses", "flights", "random", "random_compared", "off_grid")


@pytest.mark.parametrize(
    ("asked", "made"),
    [
        ((), (("circle_8", "mixed_10"), 8, 20, 2, 100)),
        ((("a", "b", "c"), 5, 7, 1, 9), (("a", "b"), 5, 7, 1, 9)),
        ((("a",), 80, 70, 60, 900), (("a",), 8, 20, 2, 100)),
    ],
)
def test_a_quick_run_is_no_larger_than_it_says_nor_than_was_asked(asked: tuple[object, ...], made: tuple[object, ...]) -> None:
    options = dict(zip(SIZES, asked, strict=False))
    small = quick(GatesBenchConfig(quick=True, **options))  # type: ignore[arg-type]
    assert tuple(getattr(small, name) for name in SIZES) == made
    config = GatesBenchConfig(**options)  # type: ignore[arg-type]
    assert quick(config) is config


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "blocks").iterdir())}


@pytest.mark.slow
def test_a_stopped_job_goes_on_to_the_same_bytes(
    config: GatesBenchConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airworthy.gates.benchmark import blocks

    # They take seconds each, and are tried below.
    monkeypatch.setattr(blocks, "baseline_laps", lambda *_: [Lap(name, float("nan"), "", False) for name in OTHERS])
    reported: list[str] = []

    def stop(name: str) -> None:
        reported.append(name)
        if len(reported) == 2:
            raise KeyboardInterrupt

    first = run_gates(replace(config, report=False), [ORACLE], step=stop)
    assert first.interrupted
    assert (first.finished, first.blocks) == (2, 4)
    whole = run_gates(config, [ORACLE], step=reported.append)
    assert whole.complete
    assert len(reported) == 4
    other = run_gates(replace(config, out=tmp_path / "other", report=False), [ORACLE])
    assert _files(config.out) == _files(other.folder)
    summary = json.loads((config.out / "summary.json").read_text())
    assert summary["random"]["courses"] == 3
    assert summary["random"]["approved_but_not_proven"] == 0
    assert whole.report is not None
    page = whole.report.read_text()
    assert "http" not in page.split("</style>")[1].replace("http-equiv", "")
    with pytest.raises(AirworthyError, match="other settings"):
        run_gates(replace(config, flights=3), [ORACLE])
    damaged = config.out / "blocks" / "random-000000.json"
    damaged.write_text(damaged.read_text().replace("random_1_0", "random_9_0"))
    with pytest.raises(AirworthyError, match="changed or damaged"):
        run_gates(config, [ORACLE])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"courses": ("line",)}, "not gates"),
        ({"courses": (), "random": 0}, "nothing to fly"),
        ({"families": ("moon",)}, "moon"),
        ({"flights": 0}, "--flights is 0"),
        ({"mass_spread": 0.5}, "--mass-spread"),
        ({"courses": ("circle_8", "circle_8")}, "once"),
        ({"network": "oracle", "baselines": ("oracle",)}, "named once"),
        ({"certificate": "vehicle", "reserve": 0.5}, "could not hover"),
        ({"randomize": "identified"}, "cf2x_scg_iros2022 tells no uncertainty"),
        ({"randomize": "identified", "families": ("semi_kinematic",)}, "no rotors"),
        ({"randomize": "identified", "mass_spread": 0.005}, "draws masses together"),
        ({"vehicle": "carl", "certificate": "vehicle"}, "families' own vehicles"),
        ({"vehicle": "nobody"}, "Unknown vehicle 'nobody'"),
    ],
)
def test_mistakes_are_named_before_anything_is_written(config: GatesBenchConfig, change: dict[str, object], says: str) -> None:
    with pytest.raises(AirworthyError, match=says):
        run_gates(replace(config, **change), [ORACLE])  # type: ignore[arg-type]
    assert not config.out.exists()
