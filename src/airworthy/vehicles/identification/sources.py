"""Where the values of an identified record come from, in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from airworthy.vehicles.identification.air_speed.told import OF_BODY
from airworthy.vehicles.identification.motors.measured_speeds import MotorFit
from airworthy.vehicles.identification.values import IdentifiedValue

__all__ = ["METHOD", "motor_sources", "said_of", "sources_of", "supply_source"]

METHOD = "joint multi-step"


def said_of(values: Sequence[IdentifiedValue], where: str, *names: str) -> str:
    """Say of some values together whether logs told them, which, and how surely.

    Args:
        values: Of the vehicle.
        where: Logs and parts, in words.
        names: Of those of which it is said.
    """
    of = {v.name: v for v in values}
    parts = [of[n] for n in names]
    words = {p.word for p in parts}
    least = min(parts, key=lambda p: p.share)
    # A share of thrust that may be 0 or less has no relative error; its own is one of thrust.
    sizes = [p.sd if p.name == "thrust_linear" else p.sd / abs(p.value) if p.value else 0.0 for p in parts]
    wide = max(sizes)
    size = f"+-{100.0 * wide:.2g} %" if wide else "exactly"
    stands = list(dict.fromkeys(p.beside for p in parts if p.beside))
    beside = f"; with {', '.join(stands)}" if stands else ""
    if words <= {"identified", "supported"}:
        head = "supported" if "supported" in words else "identified"
        return f"{head}: {where}; {METHOD}; {size}; share {least.share:.2f}{beside}"
    if words & {"identified", "supported"}:
        told = " ".join(p.name for p in parts if p.word in ("identified", "supported"))
        rest = " ".join(f"{p.name} {p.word}" for p in parts if p.word not in ("identified", "supported"))
        return f"partly: {told} from {where}; {METHOD}; {rest}; {size}{beside}"
    head = sorted(words)[0] if len(words) == 1 else "assumed"
    if words == {"bench"}:
        return f"{', '.join(stands)}; {size}"
    return f"{head}: no log told it; {size}{beside}"


def sources_of(values: Sequence[IdentifiedValue], where: str, gauge: bool, drag: str) -> dict[str, str]:
    """Return sources by field of the record.

    Args:
        values: Of the vehicle.
        where: Logs and parts, in words.
        gauge: Whether the scale of rotor states is nominal.
        drag: What is said of drag.
    """
    of = {v.name: v for v in values}

    def said(*names: str) -> str:
        return said_of(values, where, *names)

    lengths = re.split(r"; (?:\+-|exactly)", said("center_x", "center_y"))[0]
    return {
        "inertia": said("inertia_xx", "inertia_yy", "inertia_zz_ratio"),
        "center_of_mass": f"{lengths}; x +-{1e3 * of['center_x'].sd:.2g} mm, y +-{1e3 * of['center_y'].sd:.2g} mm; z as given",
        "command_delay": said("command_delay"),
        "drag": f"{drag}; damping {said('damping')}" if drag.startswith(OF_BODY) else said("damping") + f"; {drag}",
        "rotor_range": f"flown: {where}",
        "rotors.position": "given geometry",
        "rotors.axis": "given geometry",
        "rotors.spin": "given geometry, or as the order of motors showed",
        "rotors.thrust": said("thrust", "thrust_linear") + "; no thrust at standstill",
        "rotors.torque": said("torque_ratio"),
        "rotors.response": said("lag"),
        "rotors.speed_max": "gauge: a command of 1 is this nominal state; no log told speeds" if gauge else "given",
        "body": "assumed: by the arms",
        "gravity": "standard",
    }


def motor_sources(motors: MotorFit, where: str) -> dict[str, str]:
    """Return sources of what measured rotor speeds told."""
    head = f"identified: {where}; measured rotor speeds"
    spread = 100.0 * max(abs(gain - 1.0) for gain in motors.gains)
    return {
        "rotors.speed_max": f"{head}; that of a command of 1, beyond what was flown; motors differ by up to {spread:.1f} %",
        "command_map": f"{head}; steady speed over command; offset +-{motors.offset_sd * motors.full:.2g} rad/s",
    }


def supply_source(values: Sequence[IdentifiedValue], where: str, volts: float) -> str:
    """Return where the exponent of the supply is from.

    Args:
        values: Of the vehicle.
        where: Logs and parts, in words.
        volts: At which a command acts as it is [V].
    """
    value = next(v for v in values if v.name == "sag")
    head = "; ".join(part for part in said_of(values, where, "sag").split("; ") if not part.startswith("+-"))
    return f"{head}; +-{value.sd:.2g}; at {volts:g} V a command acts as it is"
