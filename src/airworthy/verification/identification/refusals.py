"""What identification refuses, and what it calls assumed, each by a log in a file (specification of identification, 11.7).

Each figure counts what went wrong, and its note is the sentence that a user reads.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, LogStream, read_log, write_log
from airworthy.vehicles import Identified, Known, identify
from airworthy.verification.identification.truths import MASS_SHARE, FlownTruth, flown, truths
from airworthy.verification.published import Figure, zero

__all__ = ["refusal_figures"]

SECONDS = 14.0
"""In the air."""
SLOW = 26
"""Every so many commands is logged: 19 of 500 in a second, as an autopilot's outputs often are."""
TOLD = ("identified", "supported")
"""Words of values that logs told."""


def refusal_figures(folder: Path | None) -> Iterator[Figure]:
    """Measure whether what no log can tell is refused or called assumed.

    Args:
        folder: Of reference files, for a real flight without motor commands; None: that is left out.
    """
    truth = truths()[0]
    with tempfile.TemporaryDirectory() as place:
        log = flown(truth, 0, SECONDS)
        yield _refused("without a mass", "weigh it, and give --mass", lambda: Known(vehicle=truth.known))
        bare = replace(log, streams=tuple(s for s in log.streams if s.kind != "motor_command"))
        yield _refused("without motor commands", "but no vehicle", lambda: _fit(_filed(bare, place), truth))
        real = None if folder is None else folder / "flights/euroc_v101"
        if real is not None and real.is_dir():
            seen = read_log(real / "imu0.csv")
            yield _refused("EuRoC V1_01, which has no motor commands", "but no vehicle", lambda: _fit(seen, truth))
        yield _without_yaw(truth, place)
        yield _hover_alone(truth, place)
        yield _constant_voltage(truth, log, place)
        yield _slow_commands(truth, log, place)


def _filed(log: Log, place: str) -> Log:
    """Write a log into a file, and read it."""
    path = Path(place) / "flight.npz"
    path.unlink(missing_ok=True)
    write_log(log, path)
    return read_log(path)


def _fit(log: Log, truth: FlownTruth) -> Identified:
    mass = truth.vehicle.mass
    # The file does not say its frame, and its owner knows how motors are wired.
    order = tuple(range(truth.vehicle.rotor_count))
    return identify([log], Known(mass=(mass, MASS_SHARE * mass), vehicle=truth.known, order=order), quick=True)


def _refused(what: str, words: str, ask: Callable[[], object]) -> Figure:
    """Check that something is refused with a sentence of these words."""
    name = f"{what}: not refused with the sentence"
    try:
        ask()
    except AirworthyError as error:
        return replace(zero(name, int(words not in str(error))), note=str(error))
    return zero(name, 1)


def _told(found: Identified, names: Sequence[str] = ()) -> list[str]:
    """Return values of these names, or all, that are said to be from the log."""
    return [v.name for v in found.values if v.word in TOLD and (not names or v.name in names)]


def _said(lines: Sequence[str], begin: str) -> str:
    return next((line for line in lines if begin in line), "")


def _without_yaw(truth: FlownTruth, place: str) -> Figure:
    quiet = flown(replace(truth, excited=(1.0, 1.0, 0.0)), 1, SECONDS)
    found = _fit(_filed(quiet, place), truth)
    wrong, said = _told(found, ("inertia_zz_ratio", "torque_ratio")), _said(found.advice, "inertia zz")
    figure = zero("without yaw steps: Izz and torque not called assumed", len(wrong) + (not said))
    return replace(figure, note=f"{found.vehicle.sources['rotors.torque']}; {said}")


def _hover_alone(truth: FlownTruth, place: str) -> Figure:
    calm = flown(replace(truth, excited=(0.0, 0.0, 0.0)), 2, SECONDS)
    found = _fit(_filed(calm, place), truth)
    told = _told(found)
    flyable = found.table is not None and found.table.verdict == "flyable"
    wrong = len(set(told) ^ {"thrust"}) + flyable
    figure = zero("hover alone: values called identified but thrust over mass", wrong)
    return replace(figure, note=f"identified: {', '.join(told)}; {_said(found.advice, 'inertia xx')}")


def _constant_voltage(truth: FlownTruth, log: Log, place: str) -> Figure:
    time = log.stream("gyro").time
    still = replace(log, streams=(*log.streams, LogStream("voltage", time, np.full((len(time), 1), 3.7))))
    found = _fit(_filed(still, place), truth)
    said = _said(found.notes, "the voltage is constant")
    sags = found.vehicle.command_sag is not None
    return replace(zero("a constant voltage: an exponent of the supply told", sags + (not said)), note=said)


def _slow_commands(truth: FlownTruth, log: Log, place: str) -> Figure:
    command = log.stream("motor_command")
    slow = replace(command, time=command.time[::SLOW], values=command.values[::SLOW])
    thinned = replace(log, streams=tuple(slow if s.kind == "motor_command" else s for s in log.streams))
    found = _fit(_filed(thinned, place), truth)
    wrong = _told(found, ("lag", "command_delay", "inertia_xx", "inertia_yy"))
    figure = zero("commands at 19 Hz: lag, dead time, Ixx, Iyy not called assumed", len(wrong))
    return replace(figure, note=_said(found.advice, "lag"))
