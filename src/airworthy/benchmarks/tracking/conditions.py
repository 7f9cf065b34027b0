"""Under what a pilot is tried: the conditions of SOUS VIDE's experiments and sweeps over them, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from math import isfinite
from typing import Any

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import packaged_toml

__all__ = [
    "Condition",
    "StateNoise",
    "Sweep",
    "condition",
    "condition_names",
    "described",
    "expanded",
    "noise_level",
    "noise_levels",
    "sweeps",
]

FILE = "conditions.toml"
_ROOT = "baseline"
LIGHT_MAX, GUST_MAX, PICKUP_MAX = 100.0, 100.0, 9.0
"""Factor of all light; lateral specific force [m/s^2], ten times gravity; share of the mass, as in ten times the mass."""


@dataclass(frozen=True)
class Condition:
    """One experiment: what differs from the baseline."""

    name: str
    title: str
    says: str = ""
    """One sentence for people."""
    paper: str = ""
    """Row of the published tables that it stands beside."""
    light: float = 1.0
    """Factor of all linear radiance."""
    people: int = 0
    """That walk near the path."""
    removed: tuple[str, ...] = ()
    """Classes of things taken out near the path."""
    covered: bool = False
    """Pillars near the path stand behind grey planes."""
    mass: float = 1.0
    """Factor of the drawn mass."""
    mass_spread: float = 0.0
    """Mass is uniform within this share."""
    thrust_spread: float = 0.0
    """So is thrust."""
    pickup: float = 0.0
    """Share of the drawn mass that is hung on in flight, of which nobody is told."""
    gust: float = 0.0
    """Specific force of a lateral pulse of one second [m/s^2]."""
    delay: float = 0.0
    """Of commands [s]."""
    noise: str = "baseline"
    """Level of what is sensed."""
    course: str = ""
    """Instead of the run's; so is the scene."""
    scene: str = ""
    clear: float = 0.0
    """Everything that stands on the floor this near the path is taken out [m]."""
    position_spread: float = 0.0
    """Starts lie within this of the course's, along each axis [m], where the run's own spread is not wider."""
    velocity_spread: float = 0.0
    """So do their velocities [m/s]."""
    attitude_spread: float = 0.0
    """So do the components of their quaternions."""
    blind: bool = False
    """Images are black."""
    freeze: float = 0.0
    """From this time on images stay as they are [s]; 0: never."""
    image_delay: float = 0.0
    """Images arrive so much later [s]."""
    shift: float = 0.0
    """The place, with everything in it, lies so far to the left of where it was, as seen from the start of the course [m]."""
    nearest: int = 0
    """So many things that are no part of the room, those nearest to the path, are taken out."""
    boxes: int = 0
    """So many boxes of gaussians of 1 m, those nearest to the path, are taken out."""

    def __post_init__(self) -> None:
        numbers = {f.name: getattr(self, f.name) for f in fields(self) if f.type == "float"}
        for name, value in numbers.items():
            if not (isfinite(value) and value >= 0.0):
                raise AirworthyError(f"Condition {self.name!r} has {name} {value}; expected a finite number of 0 or more.")
        if not (0.1 <= self.mass <= 10.0 and self.mass_spread < 1.0 and self.thrust_spread < 1.0):
            raise AirworthyError(
                f"Condition {self.name!r} has {self.mass} times the mass, spreads {self.mass_spread} and {self.thrust_spread};"
                " expected 0.1 to 10, and less than 1."
            )
        for name, most in (("light", LIGHT_MAX), ("gust", GUST_MAX), ("clear", 100.0), ("pickup", PICKUP_MAX)):
            if numbers[name] > most:
                raise AirworthyError(f"Condition {self.name!r} has {name} {numbers[name]:g}; expected 0 to {most:g}.")
        if not 0.0 <= self.delay <= 0.5:
            raise AirworthyError(f"Condition {self.name!r} delays commands by {self.delay} s; expected 0 to 0.5.")
        for name, most in (("image_delay", 10.0), ("freeze", 3600.0), ("shift", 100.0), ("position_spread", 10.0),
                           ("velocity_spread", 10.0), ("attitude_spread", 10.0)):  # fmt: skip
            if numbers[name] > most:
                raise AirworthyError(f"Condition {self.name!r} has {name} {numbers[name]:g}; expected 0 to {most:g}.")
        for name in ("nearest", "boxes"):
            value = getattr(self, name)
            if not (isinstance(value, int) and 0 <= value <= 100):
                raise AirworthyError(f"Condition {self.name!r} has {name} {value}; expected a whole number of 0 to 100.")
        if not 0 <= self.people <= 32:
            raise AirworthyError(f"Condition {self.name!r} has {self.people} people; expected 0 to 32.")
        noise_level(self.noise)

    @property
    def edits(self) -> bool:
        """Whether things are taken out of its scene, or covered."""
        return bool(self.removed or self.covered or self.clear or self.nearest or self.boxes)

    @property
    def sees_otherwise(self) -> bool:
        """Whether its images are others than those of the camera."""
        return self.blind or self.freeze > 0.0 or self.image_delay > 0.0


LATER = {"position_spread", "velocity_spread", "attitude_spread", "blind", "freeze", "image_delay", "shift", "nearest", "boxes",
         "pickup"}  # fmt: skip
"""Fields that came after results had been written: what does not use them is described without them, and is still itself."""


def described(item: Condition) -> dict[str, Any]:
    """Return a condition as plain data, but those fields of `LATER` that it does not use."""
    usual = {field.name: field.default for field in fields(Condition)}
    return {name: value for name, value in asdict(item).items() if name not in LATER or value != usual[name]}


@dataclass(frozen=True)
class Sweep:
    """A field of the baseline over a range; its conditions are named `name:value`."""

    specifier: str
    """Stands for all of them."""
    title: str
    name: str
    field: str
    unit: str
    values: tuple[Any, ...]

    @property
    def conditions(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(f"{self.name}:{_spelled(value)}" for value in self.values)


@dataclass(frozen=True)
class StateNoise:
    """Standard deviations of position x, y, z [m], velocity [m/s] and quaternion x, y, z, w."""

    sensor: tuple[float, ...]
    """Of what is sensed, at every tick."""
    model: tuple[float, ...]
    """Of what is added to the state between two ticks."""


@lru_cache(maxsize=1)
def _data() -> Mapping[str, Any]:
    return packaged_toml("airworthy.benchmarks.tracking", FILE)


def noise_levels() -> tuple[str, ...]:
    """Return names of the levels, from none to the most."""
    return tuple(_data()["noise"])


def noise_level(name: str) -> StateNoise:
    """Return a level by name.

    Raises:
        UnknownNameError: There is none of this name.
    """
    if name not in _data()["noise"]:
        raise unknown_name("noise level", name, noise_levels())
    found = _data()["noise"][name]
    return StateNoise(tuple(found["sensor"]), tuple(found["model"]))


def sweeps() -> tuple[Sweep, ...]:
    """Return all sweeps."""
    return tuple(
        Sweep(specifier, item["title"], item["name"], item["field"], item["unit"], tuple(item["values"]))
        for specifier, item in _data()["sweep"].items()
    )


def condition_names() -> tuple[str, ...]:
    """Return names of conditions, sweeps and groups that `expanded` takes."""
    data = _data()
    return (*data["condition"], *data["sweep"], *data["group"])


def condition(name: str) -> Condition:
    """Return a condition by name: one of the catalogue, or a point of a sweep ("wind:2.5", "noise:extreme").

    Raises:
        UnknownNameError: There is none of this name.
        AirworthyError: A value cannot be used.
    """
    found = _data()["condition"].get(name)
    if found is not None:
        given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}
        return Condition(name, **given)
    head, colon, text = name.partition(":")
    sweep = next((item for item in sweeps() if item.name == head), None)
    if not colon or sweep is None:
        points = [f"{item.name}:VALUE" for item in sweeps()]
        raise unknown_name("condition", name, condition_names(), f"Points of sweeps are {', '.join(points)}.")
    value: Any = text if sweep.field == "noise" else _number(name, text)
    if sweep.field in ("nearest", "boxes"):
        value = int(value) if value == int(value) else value
    shown = text if sweep.field == "noise" else f"{_spelled(value)} {sweep.unit}"
    base = condition(_ROOT)
    changed: dict[str, Any] = {sweep.field: value}
    return replace(base, name=f"{head}:{_spelled(value)}", title=f"{sweep.title}: {shown}", says="", paper="", **changed)


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise AirworthyError(f"Condition {name!r} ends with {text!r}; expected a number, as in wind:2.5.")
    return value


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def expanded(tokens: Sequence[str]) -> tuple[Condition, ...]:
    """Return conditions by the names of conditions, sweeps and groups, each once, in order.

    Raises:
        UnknownNameError: A name is unknown.
        AirworthyError: There is none.
    """
    names = dict.fromkeys(name for specifier in tokens for name in _names(specifier))
    if not names:
        raise AirworthyError("An evaluation needs at least one condition, as baseline.")
    return tuple(dict.fromkeys(condition(name) for name in names))


def _names(specifier: str) -> Iterator[str]:
    if specifier in _data()["group"]:
        for part in _data()["group"][specifier]:
            yield from _names(part)
        return
    sweep = next((item for item in sweeps() if item.specifier == specifier), None)
    if sweep is None:
        yield condition(specifier).name
    else:
        yield from sweep.conditions
