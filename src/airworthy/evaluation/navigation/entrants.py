"""Who is tried: planners and pilots by name, and classes of a user's own, found where they are first asked for."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.files import sha256_file

__all__ = ["Entrant", "entrant", "pilot_words", "register"]


@dataclass(frozen=True)
class Entrant:
    """A pilot that is tried."""

    name: str
    """As in results; no two of a run may be equal."""
    make: Callable[[], Any]
    """Makes a planner (`pilots.planning.interface.Planner`) or a pilot (`reset(mission)`, `command(observation)`)."""
    kind: Literal["planner", "pilot"] = "planner"
    alone: bool = False
    """One object per flight, so that whatever one does the others never notice: every pilot of a user's own that does not say
    `batched = True`."""
    privileged: bool = False
    """A planner that is given maps of the whole place instead of what a camera saw."""
    own: bool = False
    """Of a user: its decisions are timed."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """What its decisions depend on besides its name: hashes of files, settings."""
    title: str = ""
    """In reports."""


BODY = 0.3
"""Radius for which maps are inflated: the benchmark's sphere [m]."""
_BUILT_IN: dict[str, tuple[str, str, Mapping[str, Any]]] = {
    "straight": ("airworthy.pilots.straight:StraightFlight", "straight flight", {}),
    "ego": ("airworthy.pilots.ego:EgoPlanner", "EGO-Planner", {"body": BODY}),
    "fast": ("airworthy.pilots.fast:FastPlanner", "Fast-Planner", {"body": BODY}),
    "pgo": ("airworthy.pilots.pgo:PgoPlanner", "PGO", {"body": BODY}),
    "ego_published": ("airworthy.pilots.ego:EgoPlanner", "EGO-Planner, published inflation", {}),
    "fast_published": ("airworthy.pilots.fast:FastPlanner", "Fast-Planner, published inflation", {}),
    "pgo_published": ("airworthy.pilots.pgo:PgoPlanner", "PGO, published inflation", {}),
    "navrl": ("airworthy.pilots.navrl:NavRL", "NavRL", {"wrapper": "faithful"}),
    "expert": ("airworthy.pilots.sampling_expert:SamplingExpert", "sampling expert", {}),
    "oracle": ("airworthy.pilots.oracle:Oracle", "oracle, knows the place", {}),
    "navrl_full_3d": ("airworthy.pilots.navrl:NavRL", "NavRL, full 3D", {"wrapper": "full_3d"}),
}
"""Name -> where its class is, title, settings that differ from the class's own. Planners inflate their maps for the body that
flies; those called published do so by their public configurations' 0.1 m."""
_PRIVILEGED = ("expert", "oracle")
_MADE: dict[str, Entrant] = {}


def register(item: Entrant) -> None:
    """Add an entrant by its name, for this process.

    Raises:
        AirworthyError: The name is taken.
    """
    if item.name in _BUILT_IN or item.name in _MADE:
        raise AirworthyError(f"A pilot {item.name!r} is there already; choose another name.")
    _MADE[item.name] = item


def pilot_words() -> list[str]:
    """Names of entrants."""
    return [*_BUILT_IN, *_MADE]


def entrant(word: str) -> Entrant:
    """An entrant by its word: a name, or FILE.py:CLASS.

    Raises:
        UnknownNameError: No such name.
        AssetError: The file cannot be read.
        AirworthyError: It cannot be imported, or the class is none that can fly.
    """
    if word in _MADE:
        return _MADE[word]
    if word in _BUILT_IN:
        return _built_in(word)
    path, colon, name = word.rpartition(":")
    if colon and path.endswith(".py") and name:
        return _from_file(Path(path), name)
    raise unknown_name("pilot", word, pilot_words(), "One of your own is FILE.py:CLASS.")


def _built_in(word: str) -> Entrant:
    where, title, settings = _BUILT_IN[word]
    module, _, name = where.partition(":")
    try:
        found = importlib.import_module(module)
        made = getattr(found, name)
    except (ImportError, AttributeError) as error:
        if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("airworthy"):
            raise
        raise AirworthyError(f"This version of airworthy does not have the pilot {word!r}.") from error
    identity = {"settings": dict(settings)} if settings else {}
    if not settings:
        return Entrant(word, made, title=title, privileged=word in _PRIVILEGED)
    if "body" in settings:
        return Entrant(word, lambda: made.for_body(settings["body"]), title=title, identity=identity)
    kind = getattr(found, f"{name}Settings")
    return Entrant(word, lambda: made(kind(**settings)), title=title, identity=identity)


def _from_file(path: Path, name: str) -> Entrant:
    """A user's class; the file's own code runs, as the user asks."""
    if not path.is_file():
        raise AssetError(f"There is no file {str(path)!r} for the pilot {name!r}.")
    digest = sha256_file(path)
    made = getattr(_module(path, digest), name, None)
    if not callable(made):
        raise AirworthyError(f"{str(path)!r} has no class {name!r}.")
    kind: Literal["planner", "pilot"]
    if all(hasattr(made, part) for part in ("update", "setpoints", "reset")):
        kind = "planner"
    elif hasattr(made, "command"):
        kind = "pilot"
    else:
        raise AirworthyError(
            f"The class {name!r} of {str(path)!r} has neither command(observation) nor update(...) and setpoints(time):"
            " see docs/navigation_benchmark.md."
        )
    shown = getattr(made, "name", None)
    shown = shown if isinstance(shown, str) and shown else name
    identity = {"file": path.name, "class": name, "sha256": digest}
    alone, privileged = not getattr(made, "batched", False), kind == "planner" and bool(getattr(made, "privileged", False))
    return Entrant(shown, made, kind, alone, privileged, True, identity, shown)


def _module(path: Path, digest: str) -> Any:
    name = f"airworthy_own_pilot_{digest[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(name, None)
        reason = (str(error).splitlines() or [""])[0][:200]
        raise AirworthyError(f"{str(path)!r} cannot be imported: {type(error).__name__}: {reason}.") from error
    finally:
        sys.path.remove(str(path.parent.resolve()))
    return module
