"""One schema for every configuration: types, bounds, and one sentence for whatever does not fit."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest

import airworthy
from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.core.schema import ANY, Bound, Length, check_fields, check_signs, number
from airworthy.tasks import GoalProtocol


@dataclass(frozen=True)
class Inner:
    share: Annotated[float, Bound(0.0, 1.0)] = 0.5

    def __post_init__(self) -> None:
        check_fields(self, "Inner.")


@dataclass(frozen=True)
class Sample:
    mass: Annotated[float, Bound(0.0, 10.0, "kg", above=True)] = 1.0
    count: Annotated[int, Bound(1, 9)] = 2
    flag: bool = False
    kind: Literal["plain", "fancy"] = "plain"
    wind: Annotated[tuple[float, float, float], Bound(-5.0, 5.0, "m/s")] = (0.0, 0.0, 0.0)
    names: tuple[str, ...] = ()
    limit: Annotated[float | None, Bound(0.0)] = None
    reach: float = float("inf")
    out: Path = Path("runs")
    inner: Inner = Inner()
    costs: Mapping[str, float] = field(default_factory=dict)
    maybe: bool | float = True
    sides: Annotated[tuple[float, ...], Bound(0.0), Length(1, 3)] = (1.0,)
    word: Annotated[str, Length(1, 4)] = "a"

    def __post_init__(self) -> None:
        check_fields(self)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"mass": 0}, "mass is 0 kg; expected more than 0 and at most 10."),
        ({"mass": float("nan")}, "mass is nan kg; expected more than 0 and at most 10."),
        ({"mass": "1"}, "mass is '1'; expected a number, more than 0 and at most 10 kg."),
        ({"mass": True}, "mass is True; expected a number, more than 0 and at most 10 kg."),
        ({"mass": 10**400}, "mass is inf kg; expected more than 0 and at most 10."),
        ({"count": 2.0}, "count is 2.0; expected a whole number, 1 to 9, written without a point."),
        ({"count": 10}, "count is 10; expected 1 to 9."),
        ({"flag": 1}, "flag is 1; expected True or False."),
        ({"kind": "fance"}, "Unknown kind 'fance'. Closest: 'fancy'. Known: fancy, plain."),
        ({"kind": 3}, "kind is 3; expected one of 'plain', 'fancy'."),
        ({"wind": (1.0, 2.0)}, "wind is (1.0, 2.0); expected 3 numbers."),
        ({"wind": (1.0, 2.0, 9.0)}, "wind[2] is 9 m/s; expected -5 to 5."),
        ({"wind": 3.0}, "wind is 3; expected 3 numbers."),
        ({"names": "lmf2"}, "names is 'lmf2'; expected a list of texts."),
        ({"names": (3,)}, "names[0] is 3; expected text of at most 4096 letters."),
        ({"limit": -1.0}, "limit is -1; expected 0 or more."),
        ({"reach": float("nan")}, "reach is nan; expected a number."),
        ({"out": 3}, "out is 3; expected text of at most 4096 letters."),
        ({"inner": {"share": 0.5}}, "inner is {'share': 0.5}; expected an Inner(...)."),
        ({"costs": [1]}, "costs is [1]; expected a dictionary."),
        ({"costs": {"ray": "dear"}}, "costs['ray'] is 'dear'; expected a number."),
        ({"maybe": "no"}, "maybe is 'no'; expected True or False."),
        ({"sides": ()}, "sides is (); expected 1 to 3 numbers."),
        ({"sides": [1.0] * 20}, "sides is a list of 20; expected 1 to 3 numbers."),
        ({"sides": (1.0, -1.0)}, "sides[1] is -1; expected 0 or more."),
        ({"word": "seven"}, "word is 'seven'; expected 1 to 4 letters."),
    ],
)
def test_sentences(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AirworthyError) as caught:
        Sample(**given)
    assert str(caught.value) == sentence


def test_a_nested_configuration_says_whose_field_it_was() -> None:
    with pytest.raises(AirworthyError, match=r"^Inner\.share is 2; expected 0 to 1\.$"):
        Inner(2.0)
    with pytest.raises(UnknownNameError):
        Sample(kind="x")  # type: ignore[arg-type]


def test_signs() -> None:
    check_signs(Inner(0.0), "The sample's")
    with pytest.raises(AirworthyError, match=r"^The sample's share is 0\.0; expected a finite number above 0\.$"):
        check_signs(Inner(0.0), "The sample's", zero=False)
    with pytest.raises(AirworthyError, match=r"^The protocol's radius_m is -1\.0; expected a finite number of at least 0\.$"):
        GoalProtocol(-1.0)


def test_numbers_of_numpy_and_lists_become_pythons_own() -> None:
    made = Sample(
        mass=np.float32(0.5),  # type: ignore[arg-type]
        count=np.int64(3),  # type: ignore[arg-type]
        flag=np.True_,  # type: ignore[arg-type]
        wind=np.array([1, 2, 3]),  # type: ignore[arg-type]
        names=["a", "b"],  # type: ignore[arg-type]
        limit=np.array(2.0),  # type: ignore[arg-type]
        out="runs/x",  # type: ignore[arg-type]
    )
    assert made == Sample(0.5, 3, True, wind=(1.0, 2.0, 3.0), names=("a", "b"), limit=2.0, out=Path("runs/x"))
    assert type(made.mass) is float
    assert type(made.count) is int
    assert type(made.flag) is bool
    assert type(made.wind[0]) is float


def test_bounds() -> None:
    assert Bound(0.0, 1.0).holds(0.0)
    assert Bound(0.0, 1.0).holds(1.0)
    assert not Bound(0.0, 1.0, above=True).holds(0.0)
    assert not Bound(0.0, 1.0, below=True).holds(1.0)
    assert not ANY.holds(float("inf"))
    assert Bound(infinite=True).holds(float("inf"))
    assert not any(Bound(infinite=True).holds(x) for x in (float("nan"),))
    assert [Bound(*x).expected for x in ((0.0,), (-np.inf, 1.0), (0.0, 1.0))] == ["0 or more", "at most 1", "0 to 1"]
    assert Bound(0.0, above=True).expected == "more than 0"
    assert Bound(0.0, 1.0, below=True).expected == "at least 0 and less than 1"
    with pytest.raises(AirworthyError, match=r"expected -2\^63 to 2\^63 - 1\.$"):
        number(10**400, "seed", whole=True)


# ---- every configuration of the package ----

NOT_CHOSEN = {
    # Records that files describe: their readers and `check` functions judge them as a whole.
    "airworthy.scenes.record",
    "airworthy.vehicles.record",
    "airworthy.scenes.catalogue",
    "airworthy.scenes.files.extras",
    "airworthy.scenes.formats.gltf.materials",
    # Containers of what was read or computed, not of what anybody chooses.
    "airworthy.scenes.formats.model",
    "airworthy.capture.cameras",
    "airworthy.planners.pgo.planner",
    "airworthy.core.schema",
}
BAD = [
    float("nan"),
    float("inf"),
    -float("inf"),
    -1,
    0,
    1e300,
    "960",
    None,
    True,
    (1, 2),
    [],
    {},
    np.float32(0.5),
    np.arange(9.0),
    object(),
    10**400,
]


def _configurations() -> Iterator[type]:
    """Every public frozen or plain dataclass of the package that can be made without arguments."""
    for module in pkgutil.walk_packages(airworthy.__path__, "airworthy."):
        if any(part.startswith(("_", "build")) for part in module.name.split(".")):
            continue
        if module.name in NOT_CHOSEN:
            continue
        try:
            found = importlib.import_module(module.name)
        except ImportError:  # an optional package is not installed
            continue
        for name, kind in vars(found).items():
            if not (inspect.isclass(kind) and dataclasses.is_dataclass(kind) and kind.__module__ == module.name):
                continue
            if name.startswith("_") or not _has_defaults(kind):
                continue
            yield kind


def _has_defaults(kind: Any) -> bool:
    return bool(dataclasses.fields(kind)) and all(
        item.default is not dataclasses.MISSING or item.default_factory is not dataclasses.MISSING
        for item in dataclasses.fields(kind)
        if item.init
    )


PACKAGE = Path(airworthy.__file__).parent
MODULES = sorted(
    {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*.py")} - {"__init__", "__main__"}
)
"""Rooms, and files beside them: what is in them is imported by the tests, not to collect them."""


@cache
def configurations() -> list[type]:
    return list(_configurations())


def test_there_are_configurations() -> None:
    names = {kind.__name__ for kind in configurations()}
    assert {kind.__module__.split(".")[1] for kind in configurations()} <= set(MODULES)
    assert {"SimulatorConfig", "Wind", "Ground", "Contact", "Imu", "Randomization", "ControlConfig", "FlyConfig"} <= names
    assert {"TrackingProtocol", "Limits", "DatasetConfig", "EgoConfig", "Realism", "NavigationConfig"} <= names
    assert len(configurations()) > 80


def refusal(make: Callable[[], Any]) -> str | None:
    """What is said against something; None where nothing is."""
    try:
        make()
    except AirworthyError as error:
        return str(error)
    return None


@pytest.mark.parametrize("module", MODULES)
def test_every_field_of_every_configuration(module: str) -> None:
    """Whatever arrives in a field, it is taken or refused in one sentence; a number that is none never is taken."""
    for kind in configurations():
        if kind.__module__.split(".")[1] == module:
            check_fields_of(kind)


def check_fields_of(kind: type) -> None:
    """Give every field what it cannot be."""
    for item in (item for item in dataclasses.fields(kind) if item.init):  # type: ignore[arg-type]
        for value in BAD:
            name = item.name
            where = f"{kind.__module__}.{kind.__name__}.{name}"
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                said = refusal(lambda: kind(**{name: value}))  # noqa: B023
            if said is not None:
                assert said, (where, value)
                assert "\n" not in said, (where, value)
                continue
            plain = str(item.type)
            if "float" in plain and not any(word in plain for word in ("Any", "object", "NDArray", "dict")):
                assert not (isinstance(value, float) and np.isnan(value)), where
                assert not isinstance(value, str) or "str" in plain, where
