"""Windows of ready flights, and what the batched Simulator makes of them: fed with what the rotors did, and never corrected.

All windows of all flights are one batch. Rotors follow measured speeds exactly (their commands are solved for, so that no lag
of the vehicle plays a part), or commands through the vehicle's own dead time and lag, from the state that these had led to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.benchmarks.validation.open_loop.flights import ReadyFlight
from airworthy.core.arrays import Array, ArrayBool, ArrayIndex
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import rotate, rotate_inverse
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle
from airworthy.vehicles.check import inertia_matrix
from airworthy.vehicles.identification.compared import HORIZONS, PAST
from airworthy.vehicles.identification.prediction.held_command import HeldCommand
from airworthy.vehicles.identification.prediction.predict import STEP, WIDTH, Windows, cut_windows
from airworthy.vehicles.links import refuse_links
from airworthy.vehicles.record import Drag, RotorResponse

__all__ = ["CHANNELS", "BatchWindows", "OpenLoop", "batch_windows", "open_loop"]

CHANNELS = ("rate", "force", "attitude", "velocity", "position")
"""Body rate [rad/s], specific force along z [m/s^2], attitude [rad], velocity [m/s], position [m]."""
GRAVITY = 9.81
RATE = 1000.0
"""Physics steps per second."""
SUBSTEPS = round(STEP * RATE)
HALF = 2
"""Physics steps on either side over which specific force is averaged: about as long as the sensor's means."""
TRIM = (1.0, 0.4)
"""Gain and decay [s] of the push that was missed in the moment before a window (`identification.compared` has others)."""
FOLLOWED_LAG = 0.01
"""Of rotors that follow measured speeds [s]; their commands make up for it exactly."""


@dataclass(frozen=True, eq=False)
class BatchWindows:
    """Windows of several flights as one batch; the first axis of every array is the window."""

    flights: tuple[ReadyFlight, ...]
    parts: tuple[Windows, ...]
    """Of each flight: starts, rates and specific forces at each step."""
    flight: ArrayIndex
    """Which flight each window is of, (w,)."""
    start: Array
    """[s], (w,)."""
    rate: Array
    """Measured at each step [rad/s], (w, steps + 1, 3)."""
    force: Array
    """Measured specific force [m/s^2], (w, steps + 1, 3)."""
    measured: dict[str, Array]
    """By channel, at the start and at each horizon, (w, 1 + horizons, k); a channel that was not measured is not there."""
    valid: ArrayBool
    """Whether poses tell the state at each horizon, (w, horizons); without poses always."""
    horizons: tuple[float, ...]
    """[s]"""
    excited: ArrayBool
    """Windows in which the vehicle turns more than in half of its flight's, (w,)."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def steps(self) -> int:
        """Steps of a window."""
        return self.rate.shape[1] - 1

    @property
    def posed(self) -> bool:
        """Whether states by poses are known."""
        return "position" in self.measured


def batch_windows(
    flights: Sequence[ReadyFlight],
    count: int,
    horizons: Sequence[float] = HORIZONS,
    starts: Sequence[Array] | None = None,
) -> BatchWindows:
    """Cut windows of flights.

    Args:
        flights: Of one vehicle.
        count: At most so many of each; they are fewer where they would overlap by over half.
        horizons: At which errors are judged [s], ascending.
        starts: Of each flight's windows [s], in the place of even ones.

    Raises:
        AirworthyError: No usable part is long enough for a window.
    """
    length = horizons[-1]
    posed = all(flight.poses is not None for flight in flights)
    parts, tables, valid = [], [], []
    for k, flight in enumerate(flights):
        if starts is None:
            windows = cut_windows(flight.signals, count, length, STEP, before=PAST)
        else:
            windows = _windows_at(flight, np.asarray(starts[k], np.float64), length)
        table, good = _states(flight, windows, horizons) if posed else ({}, np.ones((len(windows), len(horizons)), bool))
        keep = np.asarray(good.any(axis=1))
        if not keep.any():
            raise AirworthyError(f"No window of {flight.name!r} has poses at its start and at a horizon; judge it by --use.")
        parts.append(windows.select(keep))
        tables.append({name: values[keep] for name, values in table.items()})
        valid.append(good[keep])
    rate, force = (np.concatenate([getattr(w, name) for w in parts]) for name in ("rate", "force"))
    at = [0, *(round(h / STEP) for h in horizons)]
    measured = {"rate": rate[:, at]}
    if all(flight.force for flight in flights):
        measured["force"] = force[:, at, 2:]
    if posed:
        measured |= {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}
    return BatchWindows(
        tuple(flights),
        tuple(parts),
        np.concatenate([np.full(len(w), k) for k, w in enumerate(parts)]),
        np.concatenate([w.start for w in parts]),
        rate,
        force,
        measured,
        np.concatenate(valid),
        tuple(horizons),
        np.concatenate([w.excited for w in parts]),
    )


def _windows_at(flight: ReadyFlight, start: Array, length: float) -> Windows:
    time = start[:, None] + STEP * np.arange(round(length / STEP) + 1)
    signals = flight.signals
    return Windows(signals, start, STEP, signals.gyro.mean(time, WIDTH), signals.force.mean(time, WIDTH))


def _states(flight: ReadyFlight, windows: Windows, horizons: Sequence[float]) -> tuple[dict[str, Array], ArrayBool]:
    """States by poses at the start and each horizon, and whether they can be trusted at each horizon."""
    assert flight.poses is not None
    begin = windows.start - flight.poses.log.start
    states = [flight.poses.states(begin + h) for h in (0.0, *horizons)]
    names = ("rate", "attitude", "velocity", "position")
    table = {name: np.stack([getattr(s, name) for s in states], axis=1) for name in names}
    valid = np.stack([s.valid for s in states[1:]], axis=1) & states[0].valid[:, None]
    return table, np.asarray(valid)


# ---- Fed with ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _RotorInput:
    """What rotors are fed with, of all windows."""

    state: Array
    """Rotor states at the start, (w, rotors)."""
    command: Array
    """Mean command over each physics step, (steps, w, rotors)."""


def _inputs(vehicle: Vehicle, windows: BatchWindows, before: float, count: int, late: float) -> _RotorInput:
    """Rotor inputs from so long before each start [s], for so many physics steps."""
    states, commands = [], []
    for flight, part in zip(windows.flights, windows.parts, strict=True):
        begin = part.start - before - late
        edges = begin[:, None] + np.arange(count + 1) / RATE
        if flight.speeds is not None:
            speed = flight.speeds.mean(edges, 0.0)
            keep = np.exp(-1.0 / (RATE * FOLLOWED_LAG))
            # A lag of first order under a constant command c: w+ = c + (w - c) keep, solved for c.
            command = (speed[:, 1:] - speed[:, :-1] * keep) / (1.0 - keep)
            states.append(speed[:, 0])
        else:
            full = np.array([rotor.speed_max for rotor in vehicle.rotors])
            edges = edges - vehicle.command_delay
            states.append(full * _state_at(flight.signals.command, vehicle, edges[:, 0]))
            command = full * _means(flight.signals.command, edges)
        commands.append(command)
    return _RotorInput(np.concatenate(states), np.moveaxis(np.concatenate(commands), 1, 0))


def _state_at(command: HeldCommand, vehicle: Vehicle, time: Array) -> Array:
    """Rotor states that the commands have led to, fractions of full, (w, rotors)."""
    columns = []
    for k, rotor in enumerate(vehicle.rotors):
        values = rotor.response.rise + rotor.response.fall
        response = np.array([v * (rotor.speed_max if i % 2 else 1.0) for i, v in enumerate(values)])
        one = HeldCommand(command.start, command.period, command.values[:, [k]])
        columns.append(one.at(one.states(response[None])[0], response, time)[:, 0])
    return np.stack(columns, axis=1)


def _means(command: HeldCommand, edges: Array) -> Array:
    """Mean held command between neighbouring edges, (w, n, rotors)."""
    held = np.concatenate([np.zeros((1, command.values.shape[1])), np.cumsum(command.values, axis=0)]) * command.period
    place = np.clip((edges - command.start) / command.period, 0.0, len(command.values) - 1e-9)
    index = place.astype(np.int64)
    until = held[index] + ((place - index) * command.period)[..., None] * command.values[index]
    return np.asarray(np.diff(until, axis=1) / np.diff(edges, axis=1)[..., None])


# ---- Flown -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OpenLoop:
    """What a vehicle would have done in each window."""

    rate: Array
    """At each step [rad/s], (w, steps + 1, 3)."""
    force: Array
    """Specific force [m/s^2], (w, steps + 1, 3)."""
    attitude: Array
    """x, y, z, w, (w, steps + 1, 4)."""
    velocity: Array
    """[m/s], (w, steps + 1, 3)."""
    position: Array
    """[m], (w, steps + 1, 3)."""
    diverged: ArrayBool
    """(w,)"""


def open_loop(vehicle: Vehicle, windows: BatchWindows, *, trimmed: bool = False, sensor_delay: float = 0.0) -> OpenLoop:
    """Predict every window in the Simulator.

    Args:
        vehicle: Rigid.
        windows: Starts, and what feeds the rotors.
        trimmed: Whether the push that the vehicle missed in the tenth of a second before each window goes on, and dies away.
        sensor_delay: By which gyro, accelerometer and poses come late [s].

    Returns:
        Of windows that diverge, the state in which they were stopped.
    """
    refuse_links(vehicle, "Open-loop prediction of a log")
    push = _missed(vehicle, windows, sensor_delay) if trimmed else None
    begin = _begin(windows)
    inputs = _inputs(vehicle, windows, 0.0, windows.steps * SUBSTEPS + HALF, sensor_delay)
    return _flown(vehicle, windows, begin, inputs, windows.steps, push)


def _begin(windows: BatchWindows) -> dict[str, Array]:
    names = ("position", "velocity", "attitude", "rate")
    return {name: windows.measured[name][:, 0] for name in names if name in windows.measured}


def _missed(vehicle: Vehicle, windows: BatchWindows, late: float) -> tuple[Array, Array]:
    """Return angular acceleration and specific force along z that were missed before each window, (w, 3) and (w,)."""
    steps = round(PAST / STEP)
    gyro, force = [], []
    for flight, part in zip(windows.flights, windows.parts, strict=True):
        time = part.start[:, None] - PAST + STEP * np.arange(steps + 1)
        gyro.append(flight.signals.gyro.mean(time, WIDTH))
        force.append(flight.signals.force.mean(time, WIDTH))
    rate, felt = np.concatenate(gyro), np.concatenate(force)
    begin = {"rate": rate[:, 0]}
    if windows.posed:
        # Where the vehicle was a tenth of a second before, as near as air forces ask for.
        begin |= {name: windows.measured[name][:, 0] for name in ("velocity", "attitude", "position")}
    inputs = _inputs(vehicle, windows, PAST, steps * SUBSTEPS + HALF, late)
    found = _flown(vehicle, windows, begin, inputs, steps, None)
    turning = (rate[:, -1] - found.rate[:, -1]) / PAST
    lifted = (felt - found.force)[:, 1:, 2].mean(axis=1) if "force" in windows.measured else np.zeros(len(rate))
    return turning, np.asarray(lifted)


def _flown(
    vehicle: Vehicle,
    windows: BatchWindows,
    begin: dict[str, Array],
    inputs: _RotorInput,
    steps: int,
    push: tuple[Array, Array] | None,
) -> OpenLoop:
    fed = all(flight.speeds is not None for flight in windows.flights)
    flying = _flying(vehicle, fed, windows.posed)
    exact = not any(rotor.response.rise[1] or rotor.response.fall[1] for rotor in flying.rotors)
    config = SimulatorConfig(
        physics_rate=RATE, control_rate=RATE, wrench_noise=False, disturbance=False, exact_rotors=exact, battery=False
    )
    simulator = Simulator(flying, config, env_count=len(inputs.state))
    simulator.reset(rotor_speed=inputs.state, **begin)
    names = ("rate", "attitude", "velocity", "position")
    kept: dict[str, list[Array]] = {name: [np.array(getattr(simulator, name), np.float64)] for name in names}
    inertia = inertia_matrix(vehicle)
    for step, command in enumerate(inputs.command):
        if push is not None:
            share = TRIM[0] * float(np.exp(-step / RATE / TRIM[1]))
            lift = np.zeros((len(push[1]), 3))
            lift[:, 2] = vehicle.mass * share * push[1]
            simulator.set_external(rotate(np.asarray(simulator.attitude, np.float64), lift), share * push[0] @ inertia.T)
        simulator.advance(1, command)
        for name in names:
            kept[name].append(np.array(getattr(simulator, name), np.float64))
    fine = {name: np.stack(values, axis=1) for name, values in kept.items()}
    at = SUBSTEPS * np.arange(steps + 1)
    force = _specific_force(fine["velocity"], fine["attitude"], at)
    return OpenLoop(force=force, diverged=np.array(simulator.diverged), **{name: fine[name][:, at] for name in names})


def _specific_force(velocity: Array, attitude: Array, at: ArrayIndex) -> Array:
    """Specific force by changes of velocity about each step, body axes, (w, n, 3)."""
    middle = np.clip(at, HALF, velocity.shape[1] - 1 - HALF)
    change = (velocity[:, middle + HALF] - velocity[:, middle - HALF]) * (RATE / (2 * HALF))
    change[..., 2] += GRAVITY
    return rotate_inverse(attitude[:, middle], change)


def _flying(vehicle: Vehicle, fed: bool, posed: bool) -> Vehicle:
    """Return the record as it is predicted with: dead time lies in the inputs, and so do lags where speeds were measured."""
    rotors = vehicle.rotors
    if fed:
        lag = RotorResponse.first_order(FOLLOWED_LAG)
        # Commands that make up for the lag overshoot; no limit must cut them.
        rotors = tuple(replace(r, response=lag, speed_max=20.0 * r.speed_max, speed_min=-20.0 * r.speed_max) for r in rotors)
    drag = vehicle.drag
    if not posed:
        rotors = tuple(replace(r, hub_drag=(0.0, 0.0), flapping=0.0, translational_lift=0.0) for r in rotors)
        drag = Drag(angular_linear=drag.angular_linear, angular_norm=drag.angular_norm, angular_axis=drag.angular_axis)
    return replace(vehicle, rotors=rotors, drag=drag, command_delay=0.0)
