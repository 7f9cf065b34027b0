"""What `aw.train` does for each kind of network: configurations of keyword arguments, and the job of the command line."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from airworthy.api import REPORT, configured
from airworthy.core.errors import AirworthyError, telling_broken, unknown_name
from airworthy.core.files import path_given
from airworthy.results import Result
from airworthy.vehicles import Vehicle, named_vehicle
from airworthy.vehicles.lookup import vehicle_given

__all__ = ["KINDS", "trained"]

_TOLD = ("minutes", "tensorboard")
"""Of a training, what it does not depend on."""
_JOURNAL = "metrics.jsonl"


def trained(kind: str, data: Any, out: str | Path | None, quiet: bool, options: Mapping[str, Any]) -> Result:
    """Train a network of a kind; see `airworthy.api.train`.

    Args:
        kind: One of `KINDS`, or a learning task.
        data: What it learns from, or flies.
        out: Folder; None: runs/KIND.
        quiet: Show no progress.
        options: Keyword arguments.
    """
    if not isinstance(kind, str):
        raise AirworthyError(f"What is trained is named first, aw.train('hover', ...); got {type(kind).__name__}.")
    if out is not None and not isinstance(out, str | PathLike):
        raise AirworthyError(f"`out` is the folder of the training, a path or its text; got {type(out).__name__}.")
    if out is not None:
        path_given(out, "out")
    with telling_broken(["torch"]):
        return _trained(kind, data, out, quiet, options)


def _trained(kind: str, data: Any, out: str | Path | None, quiet: bool, options: Mapping[str, Any]) -> Result:
    from airworthy import learning
    from airworthy.learning.task_training.own_tasks import refuse_path

    if kind in KINDS:
        return KINDS[kind](data, Path(f"runs/{kind}" if out is None else out), quiet, options)
    refuse_path(kind)
    if not learning.is_learning_task(kind):
        raise unknown_name("kind of network", kind, tuple(dict.fromkeys((*KINDS, *learning.learning_tasks()))))
    name = kind.rpartition(":")[2].lower()
    return _task(kind, data, Path(f"runs/{name}" if out is None else out), quiet, options)


def _parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options that a training depends on, and those that it does not."""
    told = {name: value for name, value in options.items() if name in _TOLD}
    return {name: value for name, value in options.items() if name not in _TOLD}, told


def _needed(kind: str, data: Any, what: str, example: str = "") -> None:
    if data is None:
        raise AirworthyError(
            f"train needs its second argument, `data`, of {kind} {what}: aw.train({kind!r}, {example or 'FOLDER'})."
        )


def _unused(kind: str, data: Any, why: str) -> None:
    if data is not None:
        raise AirworthyError(f"{kind} {why}, and {str(data)[:60]!r} was given: leave it out, aw.train({kind!r}).")


def _flown(item: Any) -> Vehicle:
    return vehicle_given(item, "data")


def _left(done: Any) -> Result:
    """Return what a training left that writes a journal and a page."""
    return Result(done.folder, dict(done.figures), done, done.folder / REPORT, (done.folder / _JOURNAL,))


# ---- policies that command motors ----------------------------------------------------------------------------------------


def _hover(data: Any, out: Path, quiet: bool, options: Mapping[str, Any]) -> Result:
    from airworthy import learning

    _needed("hover", data, "the vehicle, its name, file or record", "'cf2x_L250'")
    rest, told = _parted(options)
    (config,) = configured("train hover", rest, learning.HoverConfig)
    protocol = learning.HoverProtocol(**_flights(config))
    return _left(
        learning.train_hover(
            _flown(data), out, config.options(config.seed), protocol, device=config.device, quiet=quiet, **told
        )
    )


def _motor_command(data: Any, out: Path, quiet: bool, options: Mapping[str, Any]) -> Result:
    from airworthy import learning

    name = data.name if isinstance(data, Vehicle) else data
    if name is not None and (not isinstance(name, str) or name != "tinyprop"):
        raise AirworthyError(
            f"motor_command is learnt on tinyprop, as published, not on {name!r}: learn hover with this vehicle."
        )
    rest, told = _parted(options)
    (config,) = configured("train motor_command", rest, learning.MotorCommandConfig)
    protocol = learning.HoverProtocol(**_flights(config), reach_m=learning.MOTOR_COMMAND_REACH_M)
    wanted = config.options(config.seed)
    flown = named_vehicle("tinyprop")
    return _left(learning.train_hover(flown, out, wanted, protocol, device=config.device, quiet=quiet, **told))


def _flights(config: Any) -> dict[str, int]:
    """Of the evaluation, by their names in the protocol."""
    return {name: getattr(config, name) for name in ("flights", "grid_flights", "mpc_flights", "film_flights")}


def _foundation(data: Any, out: Path, quiet: bool, options: Mapping[str, Any]) -> Result:
    from airworthy.learning.foundation import FoundationConfig, train_foundation

    _unused("foundation", data, "learns on vehicles that it draws itself")
    rest, told = _parted(options)
    (config,) = configured("train foundation", rest, FoundationConfig)
    return _left(train_foundation(out, config.options(config.seed), config.protocol, quiet=quiet, **told))


def _distill(data: Any, out: Path, quiet: bool, options: Mapping[str, Any]) -> Result:
    from airworthy.learning.distill import DistillOptions, train_distill

    _needed("distill", data, "folders of motor policies")
    several = data if isinstance(data, list | tuple) else [data]
    rest, told = _parted(options)
    told |= {"flights": rest.pop("judged")} if "judged" in rest else {}
    (what,) = configured("train distill", rest, DistillOptions)
    # FILE.toml=FOLDER is no path, so that texts stay as they are.
    teachers = [item if isinstance(item, str) else _folder(item) for item in several]
    return _left(train_distill(teachers, out, what, quiet=quiet, **told))


def _race(data: Any, out: Path, quiet: bool, options: Mapping[str, Any]) -> Result:
    from airworthy.race.learned.config import RacePolicyOptions
    from airworthy.race.learned.run import train_race

    _unused("race", data, "learns the AlphaPilot race on courses that it draws itself")
    rest, told = _parted(options)
    told |= {"judged": rest.pop("judged")} if "judged" in rest else {}
    (what,) = configured("train race", rest, RacePolicyOptions)
    return _left(train_race(out, what, quiet=quiet, **told))


def _task(kind: str, item: Any, out: Path, quiet: bool, options: Mapping[str, Any]) -> Result:
    from airworthy import learning

    rest, told = _parted(options)
    (config,) = configured("train task", rest, learning.TaskConfig)
    flown = None if item is None else _flown(item)
    return _left(learning.train_task(config.training(kind, config.seed), out, flown, config.protocol, quiet=quiet, **told))


# ---- policies that see, and networks of gates -----------------------------------------------------------------------------


def _avoid(data: Any, out: Path, quiet: bool, options: Mapping[str, Any]) -> Result:
    from airworthy.learning.avoid import AvoidOptions, AvoidRunOptions
    from airworthy.learning.avoid.evaluation import AvoidProtocol

    _unused("avoid", data, "learns in places that it draws itself")
    what, how, run = configured("train avoid", options, AvoidOptions, AvoidProtocol, AvoidRunOptions)
    # Behind the checks: it loads torch.
    from airworthy.learning.avoid.run import train_avoid

    return _left(train_avoid(out, what, how, run.training_run, quiet=quiet))


def _agile_autonomy(data: Any, out: Path, quiet: bool, options: Mapping[str, Any]) -> Result:
    from airworthy.learning.agile_autonomy import StudentOptions, StudentProtocol, StudentRunOptions

    _unused("agile_autonomy", data, "flies in places that it draws itself")
    given = dict(options)
    # Those of learning have the plain names, as on the command line.
    judged = {name: given.pop(f"judged_{name}") for name in ("scenarios", "vehicles") if f"judged_{name}" in given}
    mine: dict[str, Any] = {name: given.pop(name) for name in ("speeds", "configurations", "baselines") if name in given}
    judged |= mine
    (how,) = configured("train agile_autonomy", judged, StudentProtocol)
    what, run = configured("train agile_autonomy", given, StudentOptions, StudentRunOptions)
    # Behind the checks: it loads torch.
    from airworthy.learning.agile_autonomy.run import train_agile_autonomy

    return _left(train_agile_autonomy(out, what, how, run.training_run, quiet=quiet))


def _visuomotor(data: Any, out: Path, quiet: bool, options: Mapping[str, Any]) -> Result:
    from airworthy.learning.visuomotor import VisuomotorOptions, VisuomotorProtocol

    _unused("visuomotor", data, "makes its own data: name scene= and course=")
    rest = dict(options)
    told = {name: rest.pop(name) for name in ("threads", "tensorboard") if name in rest}
    judge = rest.pop("judge", None) or VisuomotorProtocol()
    (what,) = configured("train visuomotor", rest, VisuomotorOptions)
    # Behind the checks: it loads torch.
    from airworthy.learning.visuomotor.run import train_visuomotor

    return _left(train_visuomotor(out, what, judge, quiet=quiet, **told))


def _backbone(data: Any, out: Path, quiet: bool, options: Mapping[str, Any]) -> Result:
    from airworthy.learning.backbone import BackboneOptions, ProbeOptions
    from airworthy.learning.navigation.options import NavigationRunOptions

    _unused("backbone", data, "learns from images of places that it draws itself")
    what, how, run = configured("train backbone", options, BackboneOptions, ProbeOptions, NavigationRunOptions)
    # Behind the checks: it loads torch.
    from airworthy.learning.backbone.run import train_backbone

    return _left(train_backbone(out, what, how, run.training_run, quiet=quiet))


def _navigation(kind: str) -> Callable[[Any, Path, bool, Mapping[str, Any]], Result]:
    def called(data: Any, out: Path, quiet: bool, options: Mapping[str, Any]) -> Result:
        from airworthy.learning.navigation.options import NavigationOptions, NavigationRunOptions, RoomsProtocol
        from airworthy.learning.navigation.run import train_navigation

        if "task" in options:
            raise AirworthyError(f'The kind of a training says its task: train("{kind}") takes no option `task`.')
        rest = {name: value for name, value in options.items() if name != "encoder"}
        parts = configured(f"train {kind}", {**rest, "task": kind}, NavigationOptions, RoomsProtocol, NavigationRunOptions)
        what, how, run = parts
        # Its data are, at most, the encoder that it sees by.
        encoder = options.get("encoder", data)
        folder = None if encoder is None else _folder(encoder)
        return _left(train_navigation(out, what, how, run.training_run, encoder=folder, quiet=quiet))

    return called


def _dce(data: Any, out: Path, quiet: bool, options: Mapping[str, Any]) -> Result:
    from airworthy.learning.navigation.encoder_options import EncoderOptions
    from airworthy.learning.navigation.options import NavigationRunOptions
    from airworthy.learning.navigation.run import train_encoder

    _unused("dce", data, "learns from images that it draws itself")
    what, run = configured("train dce", options, EncoderOptions, NavigationRunOptions)
    return _left(train_encoder(out, what, run.training_run, quiet=quiet))


def _folder(data: Any) -> Path:
    if isinstance(data, Result):
        return data.folder
    if not isinstance(data, str | PathLike):
        raise AirworthyError(f"It learns from a folder: a path, its text, or what made it; got {type(data).__name__}.")
    return Path(data)


def _svnet(data: Any, out: Path, quiet: bool, options: Mapping[str, Any]) -> Result:
    from airworthy import learning

    _needed("svnet", data, "a folder of pairs")
    what, run = configured("train svnet", options, learning.SvNetOptions, learning.RunOptions)
    pairs = typing.cast(learning.ExpertPairs, learning.ExpertDataset.open(_folder(data)))
    return _network(learning.train_svnet(pairs, out, what, run, quiet=quiet))


def _boundary(data: Any, out: Path, quiet: bool, options: Mapping[str, Any]) -> Result:
    from airworthy import gates

    _needed("boundary", data, "a folder of labels")
    what, run = configured("train boundary", options, gates.BoundaryOptions, gates.BoundaryRunOptions)
    return _network(gates.train_boundary(gates.read_labels(_folder(data)), out, what, run, quiet=quiet))


def _network(done: Any) -> Result:
    return Result(done.folder, done.figures, done, done.folder / REPORT, (done.folder / "training.jsonl",))


KINDS: Mapping[str, Callable[[Any, Path, bool, Mapping[str, Any]], Result]] = {
    "hover": _hover,
    "motor_command": _motor_command,
    "foundation": _foundation,
    "distill": _distill,
    "race": _race,
    "avoid": _avoid,
    "agile_autonomy": _agile_autonomy,
    "depth_navigation": _navigation("depth_navigation"),
    "lidar_navigation": _navigation("lidar_navigation"),
    "dce": _dce,
    "visuomotor": _visuomotor,
    "backbone": _backbone,
    "svnet": _svnet,
    "boundary": _boundary,
}
"""Those that are no learning task: called with data, folder, quiet, options."""
