"""Closed and open divisions: whether results may stand beside others, and what the system under test is said to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from airworthy.core.errors import AssetError
from airworthy.core.files import read_toml
from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.entrants import Entrant
from airworthy.pilots.pilot import PRIVILEGED

__all__ = ["SYSTEM_KEYS", "division_of", "read_system"]

_FIXED = ("layouts", "compute", "a_max", "body", "controller", "protocol", "perturb")
"""What the closed division leaves at its defaults."""
_ODOMETRY = ("position", "velocity", "attitude", "rate", "height")
SYSTEM_KEYS = ("name", "organisation", "description", "processor", "accelerator", "training", "sensors", "notes")
"""What a description of a system under test says, each a text; all but the name may be left out."""
_TEXT_MAX = 4000


def division_of(config: NavigationConfig, entrants: Sequence[Entrant]) -> dict[str, Any]:
    """The division of a run, and why it is not the closed one.

    Closed: the protocol as it is, ideal sensing, the common limit of acceleration, counted compute, the benchmark's own
    configurations and vehicles, and pilots that know nothing but odometry and the depth camera. Everything else is open.
    """
    default, why = NavigationConfig(), []
    for item in fields(config):
        if item.name in _FIXED and getattr(config, item.name) != getattr(default, item.name):
            why.append(f"--{item.name.replace('_', '-')} differs from the benchmark's")
    for who in entrants:
        if who.privileged:
            why.append(f"pilot {who.name!r} knows the whole place")
        observes = getattr(who.make, "observes", ()) if who.own and who.kind == "pilot" else ()
        privileged = [name for name in observes if name in PRIVILEGED and name not in _ODOMETRY]
        if privileged:
            why.append(f"pilot {who.name!r} is given {', '.join(privileged)}")
    return {"division": "open" if why else "closed", "because": why}


def read_system(path: Path | None) -> dict[str, Any]:
    """The description of a system under test.

    Raises:
        AssetError: The file cannot be read, or holds something else.
    """
    if path is None:
        return {}
    told = read_toml(path)
    for key, value in told.items():
        if key not in SYSTEM_KEYS or not isinstance(value, str) or len(value) > _TEXT_MAX:
            raise AssetError(
                f"{str(path)!r} says {key!r}; a description of a system holds texts of at most {_TEXT_MAX} characters named"
                f" {', '.join(SYSTEM_KEYS)}."
            )
    if not told.get("name"):
        raise AssetError(f'{str(path)!r} does not say the system\'s name: add a line name = "...".')
    return dict(told)
