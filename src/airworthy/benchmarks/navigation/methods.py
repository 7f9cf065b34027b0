"""Who is tried: planners and pilots by name, and classes of a user's own, found where they are first asked for."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from airworthy.bridges.remote.words import external_entry, is_external
from airworthy.core.errors import AirworthyError, AssetError, telling_refusals, unknown_name
from airworthy.core.files import sha256
from airworthy.core.own_modules import load_with, own_digest
from airworthy.pilots.containment import PilotFailure, contained, import_contained, stops_noted

__all__ = [
    "NavigationMethod",
    "check_ready",
    "external_method",
    "is_learnt_pilot",
    "is_learnt_planner",
    "is_own_pilot",
    "method_names",
    "method_of",
    "own_method",
    "own_pilot",
    "register",
]


@dataclass(frozen=True)
class NavigationMethod:
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
    """A planner that is given maps of the whole scene instead of what a camera saw."""
    own: bool = False
    """Of a user: its decisions are timed."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """What its decisions depend on besides its name: hashes of files, settings."""
    title: str = ""
    """In reports."""
    single: bool = False
    """Flies one flight at a time: all its flights share the same topics of one program outside."""
    checks: bool = False
    """Has a method `check_ready()`, which raises where something is missing that it needs."""
    local: bool = False
    """A user's class or object in this process, which can be made once to see whether it refuses."""


def check_ready(item: NavigationMethod) -> None:
    """Refuse a method that lacks something without which it cannot fly, such as weights, before anything flies.

    A planner or pilot says so in `check_ready()`, which raises; those without it need nothing. A user's class that refuses to
    be made, by an `AirworthyError` such as settings out of range give, is refused, too; whatever else goes wrong there fails
    its flights, one by one.

    Raises:
        AirworthyError: With its reason.
    """
    if not (item.checks or item.local):
        return
    try:
        with stops_noted():
            contained(lambda: item.make().check_ready() if item.checks else item.make())
    except PilotFailure as failure:
        cause = failure.__cause__
        if not item.checks and not isinstance(cause, AirworthyError):
            return
        why = str(cause) if isinstance(cause, AirworthyError) else f"{failure}."
        raise AirworthyError(f"Pilot {item.name!r} cannot fly: {why}") from failure


BODY = 0.3
"""Radius for which maps are inflated: the benchmark's sphere [m]."""
_BUILT_IN: dict[str, tuple[str, str, Mapping[str, Any]]] = {
    "straight": ("airworthy.planners.straight:StraightFlight", "straight flight", {}),
    "ego": ("airworthy.planners.ego:EgoPlanner", "EGO-Planner", {"body": BODY}),
    "fast": ("airworthy.planners.fast:FastPlanner", "Fast-Planner", {"body": BODY}),
    "pgo": ("airworthy.planners.pgo:PgoPlanner", "PGO", {"body": BODY}),
    "ego_published": ("airworthy.planners.ego:EgoPlanner", "EGO-Planner, published inflation", {}),
    "fast_published": ("airworthy.planners.fast:FastPlanner", "Fast-Planner, published inflation", {}),
    "pgo_published": ("airworthy.planners.pgo:PgoPlanner", "PGO, published inflation", {}),
    "navrl": ("airworthy.planners.navrl:NavRL", "NavRL", {"wrapper": "faithful"}),
    "expert": ("airworthy.planners.sampling_expert:SamplingExpert", "sampling expert", {}),
    "oracle": ("airworthy.planners.oracle:Oracle", "oracle, knows the place", {}),
    "known_free": ("airworthy.planners.known_free:KnownFreePlanner", "flight in known free space", {"body": BODY}),
    "agile_autonomy": ("airworthy.planners.agile_autonomy:AgileAutonomy", "Agile-Autonomy, the shipped student", {}),
    "navrl_full_3d": ("airworthy.planners.navrl:NavRL", "NavRL, full 3D", {"wrapper": "full_3d"}),
}
"""Name -> where its class is, title, settings that differ from the class's own. Planners inflate their maps for the body that
flies; those called published do so by their public configurations' 0.1 m."""
BUILT_IN_PILOTS = tuple(_BUILT_IN)
"""Their names."""
_PRIVILEGED = ("expert", "oracle")
STUDENT, AVOID, HYBRID = "agile_autonomy", "avoid", "hybrid"
"""Before a colon and the folder of a trained network: a student of Agile-Autonomy, which alone is the shipped one, an avoiding
policy, and the planner of known free space that is offered what either proposes."""
_MADE: dict[str, NavigationMethod] = {}


def register(item: NavigationMethod) -> None:
    """Add a method by its name, for this process.

    Raises:
        AirworthyError: The name is taken.
    """
    if item.name in _BUILT_IN or item.name in _MADE:
        raise AirworthyError(f"A pilot {item.name!r} is there already; choose another name.")
    _MADE[item.name] = item


def is_learnt_planner(specifier: str) -> bool:
    """Return whether a word is agile_autonomy:FOLDER, of a student that `airworthy train agile_autonomy` made, or
    hybrid:FOLDER; one whose folder is missing too, which `method_of` refuses."""
    word, colon, _ = specifier.partition(":")
    return word == HYBRID or (word == STUDENT and bool(colon))


def is_learnt_pilot(specifier: str) -> bool:
    """Return whether a word is avoid:FOLDER, of a policy that `airworthy train avoid` made; one without a folder too."""
    return specifier.partition(":")[0] == AVOID


def is_own_pilot(specifier: str) -> bool:
    """Return whether a word is FILE.py:CLASS."""
    path, colon, name = specifier.rpartition(":")
    return bool(colon) and path.endswith(".py") and bool(name)


def own_pilot(item: NavigationMethod) -> Any:
    """Return a new pilot of a user's class, for a course.

    Raises:
        AirworthyError: It could not be made, or does not say its name, level and what it observes.
    """
    try:
        with stops_noted():
            made = contained(item.make)
    except PilotFailure as failure:
        raise AirworthyError(f"Pilot {item.name!r} cannot be made: {failure}.") from failure
    missing = [name for name in ("name", "level", "observes", "command") if not hasattr(made, name)]
    if missing:
        raise AirworthyError(f"Pilot {item.name!r} has no {' and no '.join(missing)}: see docs/howto/python.md.")
    return made


def own_method(made: Any) -> NavigationMethod:
    """Return a user's class, or an object of one, that was given itself instead of its file.

    Args:
        made: The class, which is called for each object that is needed, or an object, of which copies are made.

    Raises:
        AirworthyError: It is none that can fly.
    """
    kind = made if isinstance(made, type) else type(made)
    make = made if isinstance(made, type) else lambda: deepcopy(made)
    return _described(kind, make, kind.__name__, {"class": kind.__qualname__})


def external_method(specifier: str) -> NavigationMethod:
    """Return a pilot of a program outside, external:KIND[:WHERE], which is asked what it is.

    Raises:
        UnknownNameError: There is no such kind.
        AirworthyError: It does not answer, or cannot be flown.
    """
    entry = external_entry(specifier)
    name = entry.hello.name
    return NavigationMethod(
        name, entry, "pilot", alone=not entry.hello.batched, own=True, identity=entry.identity, title=name, single=entry.single
    )


def method_names() -> list[str]:
    """Return names of methods."""
    return [*_BUILT_IN, *_MADE]


def method_of(specifier: str, body: float = BODY) -> NavigationMethod:
    """Return a method by its word: a name, FILE.py:CLASS, external:KIND[:WHERE], agile_autonomy:FOLDER, avoid:FOLDER or
    hybrid:FOLDER; `body` is the radius [m] for which maps are inflated, where they are.

    Raises:
        UnknownNameError: No such name.
        AssetError: The file, or a student's folder, cannot be read.
        AirworthyError: It cannot be imported, or the class is none that can fly.
    """
    if specifier in _MADE:
        return _MADE[specifier]
    if is_learnt_planner(specifier) or is_learnt_pilot(specifier):
        _require_folder(specifier)
    if specifier == STUDENT or is_learnt_planner(specifier):
        return _hybrid(specifier, body) if specifier.startswith(f"{HYBRID}:") else _student(specifier)
    if specifier in _BUILT_IN:
        return _built_in(specifier, body)
    if is_own_pilot(specifier):
        path, _, name = specifier.rpartition(":")
        return _from_file(Path(path), name)
    if is_external(specifier):
        return external_method(specifier)
    if is_learnt_pilot(specifier):
        return _avoiding(specifier)
    raise unknown_name(
        "pilot",
        specifier,
        method_names(),
        "One of your own is FILE.py:CLASS. A program's is external:KIND. A trained network is agile_autonomy:FOLDER,"
        " avoid:FOLDER or hybrid:FOLDER.",
    )


def _require_folder(specifier: str) -> None:
    word, _, folder = specifier.partition(":")
    if not folder:
        shipped = ", or hybrid:agile_autonomy with the shipped student" if word == HYBRID else ""
        raise AirworthyError(
            f"Pilot {specifier!r} names no folder of a trained network; write {word}:FOLDER{shipped} (docs/howto/fleet.md)."
        )


def _student(specifier: str) -> NavigationMethod:
    """Return a student of Agile-Autonomy, which is read at once: what is damaged flies nowhere."""
    from airworthy.pilots.network_files import WEIGHTS_FILE
    from airworthy.planners.agile_autonomy import AgileAutonomy, read_student, shipped_student

    folder = Path(specifier.partition(":")[2] or shipped_student())
    student = read_student(folder)
    identity = {"weights": sha256((folder / WEIGHTS_FILE).read_bytes()), "blind": student.contract.blind}
    kind = "blind" if student.contract.blind else "shipped" if specifier == STUDENT else ""
    title = f"Agile-Autonomy, {kind} student".replace("  ", " ")
    return NavigationMethod(specifier, lambda: AgileAutonomy(student=student), title=title, identity=identity)


def _avoiding(specifier: str) -> NavigationMethod:
    """Return an avoiding policy by its folder, which is read at once."""
    from airworthy.benchmarks.navigation.avoid_pilot import AvoidNavigationPilot
    from airworthy.pilots.avoid_policy.pilot import read_avoid_policy
    from airworthy.pilots.network_files import WEIGHTS_FILE

    folder = Path(specifier.partition(":")[2])
    policy = read_avoid_policy(folder)
    fleet = policy.contract.fleet
    knows = "" if fleet is None else f", {fleet.vehicles} fleet, {fleet.condition}"
    identity = {"weights": sha256((folder / WEIGHTS_FILE).read_bytes()), "blind": policy.contract.blind, "knows": knows}
    title = f"avoiding policy{', blind' if policy.contract.blind else ''}{knows}"
    return NavigationMethod(specifier, lambda: AvoidNavigationPilot(policy), "pilot", title=title, identity=identity)


def _hybrid(specifier: str, body: float) -> NavigationMethod:
    """Return the planner of known free space that is offered what a network of a folder proposes."""
    from airworthy.pilots.network_files import WEIGHTS_FILE
    from airworthy.planners.agile_autonomy import shipped_student
    from airworthy.planners.hybrid import HybridPlanner, read_proposer

    whose = specifier.partition(":")[2]
    folder = Path(shipped_student() if whose == STUDENT else whose)
    proposer = read_proposer(folder)
    identity = {"weights": sha256((folder / WEIGHTS_FILE).read_bytes()), "proposer": proposer.name, "settings": {"body": body}}
    title = f"known free space, offered proposals of {proposer.title}"
    return NavigationMethod(
        specifier, lambda: HybridPlanner.for_body(body, read_proposer(folder)), title=title, identity=identity
    )


def _built_in(specifier: str, body: float) -> NavigationMethod:
    where, title, settings = _BUILT_IN[specifier]
    settings = {**settings, "body": body} if "body" in settings else settings
    module, _, name = where.partition(":")
    try:
        found = importlib.import_module(module)
        made = getattr(found, name)
    except (ImportError, AttributeError) as error:
        if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("airworthy"):
            raise
        raise AirworthyError(f"This version of airworthy does not have the pilot {specifier!r}.") from error
    identity = {"settings": dict(settings)} if settings else {}
    checks = hasattr(made, "check_ready")
    if not settings:
        return NavigationMethod(specifier, made, title=title, privileged=specifier in _PRIVILEGED, checks=checks)
    if "body" in settings:
        return NavigationMethod(
            specifier, lambda: made.for_body(settings["body"]), title=title, identity=identity, checks=checks
        )
    kind = getattr(found, f"{name}Settings")
    return NavigationMethod(specifier, lambda: made(kind(**settings)), title=title, identity=identity, checks=checks)


@telling_refusals()
def _from_file(path: Path, name: str) -> NavigationMethod:
    """Return a user's class; the file's own code runs, as the user asks."""
    if not path.is_file():
        raise AssetError(f"There is no file {str(path)!r} for the pilot {name!r}.")
    digest = own_digest(path)
    made = getattr(load_with(import_contained, path, digest), name, None)
    if not callable(made):
        raise AirworthyError(
            f"{str(path)!r} has no class {name!r}; write FILE.py:CLASS of a planner (docs/howto/add_planner.md)."
        )
    return _described(made, made, name, {"file": path.name, "class": name, "sha256": digest}, f" of {str(path)!r}")


def _own_name(made: Any) -> str:
    """Return the name that a class or object of the user's gives itself; what it has from a planner of ours is that one's."""
    kind = made if isinstance(made, type) else type(made)
    whose = next((base for base in kind.__mro__ if "name" in vars(base)), kind)
    ours = whose is not kind and whose.__module__.partition(".")[0] == "airworthy"
    shown = getattr(made, "name", None)
    return shown if isinstance(shown, str) and (not ours or shown != vars(whose)["name"]) else ""


def _described(made: Any, make: Callable[[], Any], name: str, identity: Mapping[str, Any], where: str = "") -> NavigationMethod:
    """Return what a user's class says of itself."""
    kind: Literal["planner", "pilot"]
    if all(hasattr(made, part) for part in ("update", "setpoints", "reset")):
        kind = "planner"
    elif hasattr(made, "command"):
        kind = "pilot"
    else:
        raise AirworthyError(
            f"The class {name!r}{where} has neither command(observation) nor update(...) and setpoints(time):"
            " see docs/benchmarks/navigation.md."
        )
    shown = _own_name(made) or name
    alone, privileged = not getattr(made, "batched", False), kind == "planner" and bool(getattr(made, "privileged", False))
    return NavigationMethod(
        shown, make, kind, alone, privileged, True, identity, shown, checks=hasattr(made, "check_ready"), local=True
    )
