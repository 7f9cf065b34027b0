"""A gyro beside noisy attitudes: wrong scales, units, axes and frames are named, and right ones are not."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.frames import conjugate, flu_frd_vector, from_euler, from_rotation_vector, multiply, rotate_inverse
from airworthy.logs import Log, LogCheck, LogSource, LogStream, ReadOptions, integrate_gyro, log_checks, read_log
from airworthy.logs.against_attitude import RATE_MOST, _scale_of, quarter_turns
from airworthy.logs.checks import refuse_wrong_units
from airworthy.logs.clocks import turn_map as maps
from airworthy.logs.clocks.turn_map import DEGREES, TurnMap, turn_map
from airworthy.logs.clocks.turn_windows import REACH, TurnWindows

NOISY = (2.0, 50, 0.05)
"""Deviation of attitudes [degrees], their rate [Hz], how late they come [s]."""


def turning(
    noise: float = 0.0, rate: int = 50, late: float = 0.0, seed: int = 1, seconds: float = 20.0, gyro_noise: float = 0.01
) -> Log:
    """A vehicle in flight that rocks about all axes and stays near level.

    Args:
        noise: Deviation of attitudes [degrees].
        rate: Of attitudes [Hz].
        late: They come late by [s].
        seed: Of noise and of the motion's phases.
        seconds: Of the log.
        gyro_noise: [rad/s]
    """
    draw = np.random.default_rng(seed)
    fine, step = np.arange(0.0, seconds, 0.004), 250 // rate
    phase = draw.uniform(0.0, 2.0 * np.pi, (3, 3))
    waves = ((0.5, 2.1), (0.4, 4.7), (0.3, 8.3))
    turns = np.stack(
        [sum(a * np.sin((w + k) * fine + p) for (a, w), p in zip(waves, phase[k], strict=True)) for k in range(3)], 1
    )
    attitude = integrate_gyro(fine, turns)
    force = rotate_inverse(attitude, np.tile([0.0, 0.0, 9.81], (len(fine), 1)))
    gyro = turns + [0.01, -0.02, 0.015] + gyro_noise * draw.normal(size=turns.shape)
    poses = attitude[::step]
    shaken = multiply(poses, from_rotation_vector(np.deg2rad(noise) * draw.normal(size=(len(poses), 3))))
    streams = (
        LogStream("gyro", fine, gyro),
        LogStream("accelerometer", fine, force),
        LogStream("motor_command", fine, np.full((len(gyro), 4), 0.5), stamp="held"),
        LogStream("attitude", fine[::step] + late, shaken),
    )
    return Log("made", streams, LogSource("made", "", "test"))


def changed(log: Log, **values: Array) -> Log:
    return replace(log, streams=tuple(replace(s, values=values.get(s.kind, s.values)) for s in log.streams))


def compared(log: Log) -> LogCheck:
    return next(c for c in log_checks(log) if c.name == "gyro against attitude")


def refused(log: Log, said: str) -> None:
    with pytest.raises(AirworthyError, match=rf"Log 'made': {said}.* Nothing is told\."):
        refuse_wrong_units(log, "Nothing is told.")


@pytest.mark.parametrize("noise", [0.0, 1.0, 3.0])
@pytest.mark.parametrize(("rate", "late"), [(50, 0.02), (25, 0.1)])
def test_right_gyros_are_not_called_wrong(noise: float, rate: int, late: float) -> None:
    for seed in range(2):
        log = turning(noise, rate, late, seed)
        found = compared(log)
        assert found.passed, found.said
        assert found.value == pytest.approx(1.0, abs=0.04)
        refuse_wrong_units(log, "Nothing is told.")


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("scale", [0.9, 1.08, 2.0])
def test_a_wrong_scale_is_named_and_refused(scale: float, noisy: bool) -> None:
    log = turning(*(NOISY if noisy else ()))
    wrong = changed(log, gyro=scale * log.stream("gyro").values)
    found = compared(wrong)
    assert found.passed is False, found.said
    assert found.value == pytest.approx(scale, rel=0.015)
    assert found.blamed == "gyro"
    assert re.match(rf"The gyro turns {found.value:.3f} \+- [\d.]+ times as fast as attitude: its scale is wrong", found.said)
    refused(wrong, "The gyro turns .* its scale is wrong")


def test_other_attitudes_that_agree_with_a_gyro_clear_it() -> None:
    log = turning()
    wrong = changed(log, gyro=1.2 * log.stream("gyro").values)
    time = log.stream("gyro").time
    right = LogStream("attitude", time, integrate_gyro(time, wrong.stream("gyro").values), label="other")
    streams = (*(s for s in wrong.streams if s.kind != "accelerometer"), right)
    refuse_wrong_units(replace(wrong, streams=streams), "Nothing is told.")


def test_intervals_of_a_scale_hold_the_truth() -> None:
    """Noise of attitudes does not shorten the slope: of 8 noisy flights nearly all hold the scale."""
    inside = 0
    for seed in range(8):
        log = turning(3.0, 25, 0.06, seed)
        found = turn_map(replace(log.stream("gyro"), values=1.2 * log.stream("gyro").values), log.stream("attitude"))
        assert found.told
        assert found.late == pytest.approx(0.06, abs=0.015)
        inside += abs(found.ratio - 1.2) < found.within
    assert inside >= 7


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_noise_of_the_gyro_is_no_scale(noise: float) -> None:
    """It makes the slope of attitudes on the gyro's turns too small: the interval says by how much at most."""
    log = turning(1.0, 50, 0.0, gyro_noise=noise)
    found = turn_map(log.stream("gyro"), log.stream("attitude"))
    assert abs(found.ratio - 1.0) < found.within
    assert compared(log).passed is not False


def test_a_scale_that_is_not_told_is_not_judged() -> None:
    """A vehicle that hardly turns, beside attitudes of 3 degrees' noise."""
    log = turning(3.0, 25, 0.02, seconds=10.0)
    slow = integrate_gyro(log.stream("gyro").time, 0.02 * log.stream("gyro").values)
    draw = np.random.default_rng(4)
    poses = slow[::10][: len(log.stream("attitude").time)]
    poses = multiply(poses, from_rotation_vector(np.deg2rad(3.0) * draw.normal(size=(len(poses), 3))))
    still = replace(log.stream("attitude"), time=log.stream("gyro").time[::10][: len(poses)], values=poses)
    quiet = replace(changed(log, gyro=0.02 * log.stream("gyro").values), streams=())
    quiet = replace(quiet, streams=(*changed(log, gyro=0.02 * log.stream("gyro").values).streams[:3], still))
    found = compared(quiet)
    assert found.passed is None
    assert found.said.endswith("noise, a vehicle that hardly turned, or other poses. Neither scale nor axes are told.")


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize(
    ("columns", "signs", "said"),
    [
        ([1, 0, 2], [1, 1, 1], r'The gyro\'s x and y are swapped against attitude; its columns must be "y", "x", "z"'),
        ([2, 1, 0], [1, 1, 1], r'The gyro\'s x and z are swapped against attitude; its columns must be "z", "y", "x"'),
        ([0, 1, 2], [1, 1, -1], r'The gyro\'s z points the other way against attitude; its columns must be "x", "y", "-z"'),
        ([0, 1, 2], [-1, 1, 1], r'The gyro\'s x points the other way against attitude; its columns must be "-x", "y", "z"'),
        ([1, 2, 0], [1, 1, 1], r'The gyro\'s axes are in another order against attitude; its columns must be "z", "x", "y"'),
    ],
)
def test_axes_in_another_order_are_named(columns: list[int], signs: list[int], said: str, noisy: bool) -> None:
    log = turning(*(NOISY if noisy else ()))
    wrong = changed(log, gyro=log.stream("gyro").values[:, columns] * signs)
    found = compared(wrong)
    assert found.passed is False
    assert re.match(said, found.said), found.said
    refused(wrong, said)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize(
    ("angle", "columns"), [(90.0, '"-y", "x", "z"'), (180.0, '"-x", "-y", "z"'), (-90.0, '"y", "-x", "z"')]
)
def test_a_sensor_that_is_turned_about_z_is_told(angle: float, columns: str, noisy: bool) -> None:
    """It passes: markers of a capture system may be what is turned."""
    log = turning(*(NOISY if noisy else ()))
    turn = from_rotation_vector([0.0, 0.0, np.deg2rad(angle)])
    gyro = rotate_inverse(turn, log.stream("gyro").values)
    found = compared(changed(log, gyro=gyro, accelerometer=rotate_inverse(turn, log.stream("accelerometer").values)))
    assert found.passed
    told = re.search(r"The gyro is turned by (-?\d+) degrees about z against attitude; if motors are in the body", found.said)
    assert told is not None, found.said
    assert np.cos(np.deg2rad(float(told[1]) - angle)) > np.cos(np.deg2rad(3.0))
    assert found.said.endswith(f"turn the gyro, and the accelerometer if it sits with it: its columns are {columns}.")


def test_a_sensor_in_frd_is_blamed_and_not_the_attitudes() -> None:
    """Gyro and accelerometer both have z down: attitudes turn the force down, and are right."""
    for noise in (0.0, 2.0):
        log = turning(noise)
        wrong = changed(log, gyro=flu_frd_vector(log.stream("gyro").values))
        wrong = changed(wrong, accelerometer=flu_frd_vector(log.stream("accelerometer").values))
        found = compared(wrong)
        assert found.passed is False
        assert found.said.startswith("The gyro's body z is down by attitude: FRD named FLU.")
        assert found.value == -1.0


@pytest.mark.parametrize(("degrees", "units"), [(True, ("deg/s", "rad/s")), (False, ("rad/s", "deg/s"))])
def test_rates_in_another_unit_are_told_beside_noise(degrees: bool, units: tuple[str, str]) -> None:
    log = turning(3.0, 25, 0.05)
    factor = 180.0 / np.pi if degrees else np.pi / 180.0
    wrong = changed(log, gyro=factor * log.stream("gyro").values)
    found = compared(wrong)
    assert found.passed is False
    assert f"the file's rates are in {units[0]} and were taken for {units[1]}" in found.said
    refused(wrong, "The gyro turns 5")


def test_attitudes_from_the_world_to_the_body_are_named() -> None:
    log = turning(*NOISY)
    found = compared(changed(log, attitude=conjugate(log.stream("attitude").values)))
    assert found.passed is False
    assert found.blamed == "attitude"
    assert found.said == "attitude turns as if it were inverted: it is given from the world to the body; invert it."


def test_attitudes_of_another_flight_are_named_and_the_gyro_is_not_blamed() -> None:
    log = turning(*NOISY, seconds=60.0)
    time, draw = log.stream("attitude").time, np.random.default_rng(9)
    rate = np.stack([np.interp(time, np.arange(0.0, 62.0, 0.25), row) for row in draw.normal(size=(3, 248))], axis=1)
    other = changed(log, attitude=integrate_gyro(time, rate))
    found = compared(other)
    assert found.passed is False
    assert "does not turn as the gyro does: it is of another flight, or over 0.2 s early or late." in found.said
    refuse_wrong_units(other, "Nothing is told.")


@pytest.mark.parametrize("seed", [11, 12])
def test_noisy_attitudes_of_another_flight_neither_clear_nor_blame_the_accelerometer(seed: int) -> None:
    """Their turns are like the gyro's in size, and by chance a little like it in shape."""
    log = turning(*NOISY, seconds=45.0)
    time, draw = log.stream("attitude").time, np.random.default_rng(seed)
    rate = np.stack([np.interp(time, np.arange(0.0, 47.0, 0.25), row) for row in draw.normal(size=(3, 188))], axis=1)
    poses = integrate_gyro(time, rate - rate.mean(axis=0))
    poses = multiply(poses, from_rotation_vector(np.deg2rad(2.0) * draw.normal(size=(len(time), 3))))
    checks = log_checks(changed(log, attitude=poses))
    found = next(c for c in checks if c.name == "gyro against attitude")
    assert found.blamed == "attitude", found.said
    assert "it is of another flight" in found.said
    gravity = next(c for c in checks if c.name == "gravity without rest")
    assert gravity.passed is None, gravity.said
    assert "nothing tells the accelerometer's scale" in gravity.said


def angles(log: Log) -> tuple[Array, Array]:
    """Return times of attitudes and their roll, pitch, yaw [rad]."""
    stream = log.stream("attitude")
    x, y, z, w = stream.values.T
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return stream.time, np.stack([roll, pitch, yaw], axis=1)


def test_radians_that_were_taken_for_degrees_are_blamed_on_attitudes() -> None:
    """Rates are those of a multirotor, and attitudes never leave level by over 3.2 degrees: the gyro is not in deg/s."""
    log = turning(0.0)
    _, told = angles(log)
    wrong = changed(log, attitude=from_euler(*np.deg2rad(told).T))
    found = compared(wrong)
    assert found.passed is False
    assert found.blamed == "attitude"
    assert "its angles are in rad and were taken for deg." in found.said
    refuse_wrong_units(wrong, "Nothing is told.")


def test_degrees_that_are_named_radians_are_refused_by_the_mapping(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """And a minus before a column's name turns its sign."""
    time, told = angles(turning(0.0))
    table = np.column_stack([time, np.rad2deg(told), np.ones((len(time), 3)) * [1.0, 2.0, 9.81]])
    path, mapping = tmp_path / "log.csv", tmp_path / "mapping.toml"
    np.savetxt(path, table, delimiter=",", header="time,roll,pitch,yaw,ax,ay,az", comments="")
    force = 'accelerometer = { columns = ["-ay", "ax", "az"] }\n'
    mapping.write_text(force + 'attitude = { columns = ["roll", "pitch", "yaw"], unit = "rad" }\n')
    with pytest.raises(AssetError, match=r"angles of 'attitude' have pitch up to .* rad, over half a turn: they look in deg"):
        read_log(path, ReadOptions(mapping=mapping))
    mapping.write_text(force + 'attitude = { columns = ["roll", "pitch", "yaw"], unit = "deg" }\n')
    log = read_log(path, ReadOptions(mapping=mapping))
    assert log.stream("accelerometer").values[0].tolist() == [-2.0, 1.0, 9.81]
    mapping.write_text('accelerometer = { columns = ["-ay", "-none", "az"] }\n')
    with pytest.raises(AssetError, match="none"):
        read_log(path, ReadOptions(mapping=mapping))


def mapped(ratio: float, within: float = 0.0, axes: Array | None = None) -> TurnMap:
    """A map of turns with a ratio and half its interval."""
    slope = 1.0 / ratio
    return TurnMap(slope, 0.5 * within * slope**2, np.eye(3) if axes is None else axes, np.eye(3), 0.0, 0.9)


@pytest.mark.parametrize(
    ("ratio", "within", "passed"),
    [(1.08, 0.02, False), (1.08, 0.06, None), (0.93, 0.04, None), (1.01, 0.08, None), (1.01, 0.04, True)],
)
def test_a_scale_is_judged_beyond_its_whole_interval(ratio: float, within: float, passed: bool | None) -> None:
    log = turning(seconds=5.0)
    assert _scale_of(log, mapped(ratio, within), log.stream("attitude"), "name").passed is passed


def test_windows_that_differ_widen_an_interval() -> None:
    found = replace(mapped(1.25, 0.02), spread=0.04)
    assert found.within == pytest.approx(0.02 + 0.04 * 1.25**2)


@pytest.mark.parametrize(("rate", "blamed"), [(0.5 * RATE_MOST, "attitude"), (2.0 * RATE_MOST, "gyro")])
def test_slight_attitudes_are_blamed_where_rates_are_a_multirotors(rate: float, blamed: str) -> None:
    log = turning(seconds=5.0)
    still = np.tile([0.0, 0.0, 0.0, 1.0], (len(log.stream("attitude").time), 1))
    gyro = np.full((len(log.stream("gyro").time), 3), rate / np.sqrt(3.0))
    log = changed(log, attitude=still, gyro=gyro)
    assert _scale_of(log, mapped(DEGREES), log.stream("attitude"), "name").blamed == blamed


def test_axes_of_a_second_look_come_behind_those_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one sees a gyro whose axes the first has put in order."""
    first, second = quarter_turns(1), np.diag([1.0, -1.0, -1.0])
    monkeypatch.setattr(maps, "_fitted", lambda gyro, poses, factor, axes: mapped(1.2, axes=second if axes is first else first))
    log = turning(seconds=5.0)
    found = turn_map(log.stream("gyro"), log.stream("attitude"))
    assert np.array_equal(found.axes, second @ first)


def test_noise_of_a_gyro_is_that_of_its_second_differences() -> None:
    log = turning(seconds=60.0, gyro_noise=0.5)
    noise = TurnWindows(log.stream("gyro"), log.stream("attitude")).noise()
    # White noise of 0.5 rad/s about three axes, at 250 Hz.
    assert noise == pytest.approx(3.0 * 0.5**2 / 250.0, rel=0.05)


def test_no_window_goes_over_a_gap_of_the_gyro() -> None:
    log = turning(seconds=20.0)
    gyro = log.stream("gyro")
    kept = (gyro.time < 10.0) | (gyro.time > 10.4)
    windows = TurnWindows(replace(gyro, time=gyro.time[kept], values=gyro.values[kept]), log.stream("attitude"))
    over = (windows.start - REACH < 10.4) & (windows.stop + REACH > 10.0)
    assert not over.any()
    assert ((windows.start > 10.4) & (windows.start < 11.0)).any()
