"""What identification promises of drag by air speed, and of commands that go with the supply (specification identify, 11.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from airworthy.vehicles import (
    Known,
    identify,
)
from airworthy.verification.identification.truths import MASS_SHARE, FlownTruth, flown, truths
from airworthy.verification.keeping import Memo
from airworthy.verification.published import Figure, below


def air_figures(everything: bool, memo: Memo) -> Iterator[Figure]:
    """Measure drag and the exponent of the supply, of flights with poses in a wind on a battery that falls by 15 % (11.4).

    Args:
        everything: A small, a middle and a heavy vehicle by the full method; else the small one by the quick one.
        memo: Keeps what each of them was off by.
    """
    chosen = [truths()[k] for k in ((0, 3, 6) if everything else (0,))]
    rows = [
        memo(f"air_{truth.vehicle.name}", partial(_misses, truth, number, everything)) for number, truth in enumerate(chosen)
    ]

    def worst(name: str) -> float:
        return max(abs(value) for row in rows for value in row[name])

    said = f"of {len(chosen)} flown in a wind on a battery that falls by 15 %"
    yield below(f"linear drag, worst axis {said}", worst("drag"), 0.1)
    yield below(f"flights {said} whose drag is taken for square", sum(row["square"] for row in rows), 0.0)
    yield below(f"wind, worst {said}", worst("wind"), 0.3, "m/s")
    yield below(f"exponent of the supply, worst {said}", worst("sag"), 0.15)
    yield below(f"thrust over command at a voltage, worst {said}", worst("thrust"), 0.01)


def _misses(truth: FlownTruth, number: int, everything: bool) -> dict[str, Any]:
    """Fly and identify a vehicle, and return what was off: shares of drag and thrust, wind [m/s], exponent."""
    mass = truth.vehicle.mass
    linear = tuple(share * mass for share in (0.35, 0.3, 0.25))
    drag = replace(truth.vehicle.drag, linear=(linear[0], linear[1], linear[2]))
    wind, sag = (2.0, -1.0, 0.0), (1.0, 0.6, 0.8)[number]
    flies = replace(truth, vehicle=replace(truth.vehicle, drag=drag), wind=wind, sag=sag, volts=(4.2, 3.57))
    log = flown(flies, number, 40.0 if everything else 15.0)
    found = identify([log], Known(mass=(mass, MASS_SHARE * mass), vehicle=flies.known), quick=not everything)
    power, nominal = found.vehicle.command_sag or (0.0, 3.885)
    _, c1, c2 = truth.vehicle.rotors[0].thrust
    thrusts = []
    for command, thrust, _ in found.curve:
        state = 1000.0 * command * (nominal / 3.885) ** sag
        thrusts.append(thrust / (c1 * state + c2 * state**2) - 1.0)
    return {
        "drag": [found.vehicle.drag.linear[k] / linear[k] - 1.0 for k in range(3)],
        "square": float(found.air is None or found.air.square),
        "wind": [found.value(f"wind_{axis}[{log.name}]").value - wind[k] for k, axis in enumerate("xy")],
        "sag": [power - sag],
        "thrust": thrusts,
    }
