"""What identification promises of drag by air speed, and of commands that go with the supply (specification identify, 11.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from airworthy.vehicles import (
    Known,
    identify,
)
from airworthy.verification.identification.truths import MASS_SHARE, flown, truths
from airworthy.verification.published import Figure, below


def air_figures(everything: bool = False) -> Iterator[Figure]:
    """Measure drag and the exponent of the supply, of flights with poses in a wind on a battery that falls by 15 % (11.4).

    Args:
        everything: A small, a middle and a heavy vehicle by the full method; else the small one by the quick one.
    """
    chosen = [truths()[k] for k in ((0, 3, 6) if everything else (0,))]
    drags, squares, winds, sags, thrusts = [], [], [], [], []
    for number, truth in enumerate(chosen):
        linear = tuple(share * truth.vehicle.mass for share in (0.35, 0.3, 0.25))
        drag = replace(truth.vehicle.drag, linear=(linear[0], linear[1], linear[2]))
        flies = replace(
            truth,
            vehicle=replace(truth.vehicle, drag=drag),
            wind=(2.0, -1.0, 0.0),
            sag=(1.0, 0.6, 0.8)[number],
            volts=(4.2, 3.57),
        )
        mass = truth.vehicle.mass
        log = flown(flies, number, 40.0 if everything else 15.0)
        found = identify([log], Known(mass=(mass, MASS_SHARE * mass), vehicle=flies.known), quick=not everything)
        drags += [found.vehicle.drag.linear[k] / linear[k] - 1.0 for k in range(3)]
        squares.append(float(found.air is None or found.air.square))
        winds += [found.value(f"wind_{axis}[{log.name}]").value - flies.wind[k] for k, axis in enumerate("xy") if flies.wind]
        power, nominal = found.vehicle.command_sag or (0.0, 3.885)
        sags.append(power - flies.sag)
        _, c1, c2 = truth.vehicle.rotors[0].thrust
        for command, thrust, _ in found.curve:
            state = 1000.0 * command * (nominal / 3.885) ** flies.sag
            thrusts.append(thrust / (c1 * state + c2 * state**2) - 1.0)
    said = f"of {len(chosen)} flown in a wind on a battery that falls by 15 %"
    yield below(f"linear drag, worst axis {said}", max(map(abs, drags)), 0.1)
    yield below(f"flights {said} whose drag is taken for square", sum(squares), 0.0)
    yield below(f"wind, worst {said}", max(map(abs, winds)), 0.3, "m/s")
    yield below(f"exponent of the supply, worst {said}", max(map(abs, sags)), 0.15)
    yield below(f"thrust over command at a voltage, worst {said}", max(map(abs, thrusts)), 0.01)
