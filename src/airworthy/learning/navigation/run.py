"""From nothing to a folder with a policy that navigates by sight, or with its encoder: `airworthy train`.

training.json     what is learnt, and where it began; written first
encoder/          of policies that read a latent: a folder of `train dce`
checkpoints/      while it is not finished
weights.safetensors, contract.json   what is learnt, also of a training that was stopped
metrics.jsonl     level, success, reward and its terms, a line per update that was written down
tensorboard/      the same as event files, where they are asked for
report.html       curves and figures
summary.json      figures; written last: where it lies, all is done
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import copy_file, make_folder
from airworthy.learning.folder_training import ONE_THREAD, Rows, TorchFolder, scalars_of
from airworthy.learning.machine import Machine, TrainingRunOptions
from airworthy.learning.navigation.encoder import LatentEye, read_encoder
from airworthy.learning.navigation.encoder_options import EncoderOptions
from airworthy.learning.navigation.encoder_training import UNSEEN_SEED, EncoderTraining
from airworthy.learning.navigation.eyes import NavigationEye
from airworthy.learning.navigation.judging import check_levels, fly_level, fly_level_simulated, level_row, levels_of
from airworthy.learning.navigation.options import NavigationOptions, RoomsProtocol
from airworthy.learning.navigation.report import write_encoder_report, write_navigation_report
from airworthy.learning.navigation.training import NavigationTraining, plain_eye
from airworthy.learning.seeds import refuse_judged_seed, seed_rows, train_each, write_seeds
from airworthy.learning.timed_training import SUMMARY_FILE, TimedTraining, Trained, metric_scalars
from airworthy.learning.training_folder import REPORT_FILE, TrainingCurves, TrainingNames, say
from airworthy.pilots.navigation_policy.contract import ENCODER, write_navigation_folder
from airworthy.pilots.navigation_policy.encoder import read_encoder_folder, write_encoder
from airworthy.pilots.navigation_policy.network import NavigationPolicy, read_navigation_policy
from airworthy.pilots.network_files import CONTRACT_FILE, WEIGHTS_FILE

__all__ = ["ENCODER", "load_navigator", "shared_levels", "train_encoder", "train_navigation", "train_navigation_seeds"]

SCHEMA_VERSION = 1
_REST = "it was begun by another version of this program"
_NAMES = TrainingNames("a policy", "its encoder was another", _REST, "update", SUMMARY_FILE)
_JUDGED_ROOMS = "rooms in which policies are judged"
_ENCODER_NAMES = TrainingNames("an encoder", "its data were others", _REST, "gradient step", SUMMARY_FILE)


def _line(
    options: EncoderOptions | NavigationOptions, told: Callable[[Mapping[str, Any]], str]
) -> Callable[[Mapping[str, Any]], str]:
    """Return what says of a row of the log where the training is."""
    return lambda row: f"{row['iteration']:,} of {options.iterations:,} in {row['wall_s']:.0f} s, {told(row)}"


# ---- The encoder ------------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _EncoderFolder(TorchFolder[Any]):
    names = _ENCODER_NAMES

    kind: str = "dce"
    options: EncoderOptions

    def begin(self, folder: Path, machine: Machine) -> TimedTraining[Any]:
        return self.timed(EncoderTraining(self.options, machine.threads), _line(self.options, _error))

    def write(self, folder: Path, work: TimedTraining[Any]) -> None:
        write_encoder(folder, work.training.contract, work.training.weights)

    def read(self, folder: Path) -> Any:
        return read_encoder(folder)

    def learnt(self, work: TimedTraining[Any]) -> Any:
        return work.training

    def summary(self, work: TimedTraining[Any], network: Any, machine: Machine) -> dict[str, Any]:
        images = work.training.iteration * self.options.batch
        return self.summarised(work, machine, images=images, unseen=work.training.judged())

    def report(self, folder: Path, found: Mapping[str, Any], rows: Rows, network: Any, work: TimedTraining[Any] | None) -> None:
        write_encoder_report(folder / REPORT_FILE, found, rows)

    def curves(self, work: TimedTraining[Any]) -> TrainingCurves:
        return TrainingCurves(work.metrics, scalars_of)


def train_encoder(
    out: str | Path,
    options: EncoderOptions | None = None,
    run: TrainingRunOptions | None = None,
    *,
    command: str = "",
    quiet: bool = True,
) -> Trained:
    """Learn a Deep Collision Encoder, or go on where it was stopped, and judge it on images of unseen rooms.

    Args:
        out: Folder.
        options: What to learn, and how.
        run: For how long, by how many threads.
        command: That makes the training again, for the summary.
        quiet: Say nothing but what is wrong.

    Raises:
        AirworthyError: The folder holds another training or something that is none.
        KeyboardInterrupt: It was asked to stop; a checkpoint to go on from is in the folder.
    """
    options, run = options or EncoderOptions(), run or ONE_THREAD
    refuse_judged_seed([options.seed], UNSEEN_SEED, "rooms in which encoders are judged")
    return _EncoderFolder(options=options, run=run, command=command, quiet=quiet).train(out)


def _error(row: Mapping[str, Any]) -> str:
    return f"squared error {row['squared_error']:.5f}"


# ---- The policy -------------------------------------------------------------------------------------------------------------


def _eye(options: NavigationOptions, encoder: str | Path | None) -> tuple[NavigationEye, str]:
    """Return what a policy reads of images, and the digest of its encoder's weights."""
    if options.image != "latent":
        if encoder is not None:
            raise AirworthyError(
                f"Images that are {options.image} take no encoder: leave --encoder out, or ask for --image latent."
            )
        return plain_eye(options.task), ""
    if encoder is None:
        raise AirworthyError(
            "A policy that reads a latent needs an encoder: `airworthy train dce --out FOLDER` makes one for --encoder FOLDER."
        )
    _, net, digest = read_encoder(encoder)
    return LatentEye(net), digest


def _keep_encoder(folder: Path, encoder: str | Path | None, digest: str, quiet: bool) -> None:
    """Copy the encoder into a policy's folder, also where one lies there that is damaged or another.

    Args:
        folder: Of the policy, known to learn with this encoder.
        encoder: Its folder; None: the policy has none.
        digest: Of its weights.
        quiet: Say nothing.
    """
    if encoder is None:
        return
    place, found = folder / ENCODER, ""
    if place.is_dir():
        with suppress(AssetError):
            found = read_encoder_folder(place)[2]
        if found == digest:
            return
        say(quiet, f"{place}: it is damaged or not the encoder that the policy learns with, which is put back.")
    # As they are, to the byte, the contract last: what is cut off between them does not fit, and is put back.
    make_folder(place)
    for name in (WEIGHTS_FILE, CONTRACT_FILE):
        copy_file(Path(encoder) / name, place / name)


def load_navigator(folder: str | Path) -> tuple[NavigationPolicy, NavigationEye]:
    """Return a policy and its eye.

    Raises:
        AirworthyError: A file is missing or damaged, or the encoder is not the one that the policy learnt with.
    """
    policy = read_navigation_policy(folder)
    if policy.contract.image != "latent":
        return policy, plain_eye(policy.contract.task)
    _, net, digest = read_encoder(Path(folder) / ENCODER)
    if digest != policy.contract.encoder:
        raise AirworthyError(f"The encoder in {str(folder)!r} is not the one that its policy learnt with.")
    return policy, LatentEye(net)


@dataclass(kw_only=True)
class _NavigationFolder(TorchFolder[NavigationPolicy]):
    names = _NAMES

    options: NavigationOptions
    protocol: RoomsProtocol
    encoder: str | Path | None
    eye: NavigationEye = field(init=False)
    digest: str = field(init=False)

    def data(self, folder: Path) -> dict[str, Any]:
        self.eye, self.digest = _eye(self.options, self.encoder)
        return {"encoder": self.digest}

    def begin(self, folder: Path, machine: Machine) -> TimedTraining[Any]:
        _keep_encoder(folder, self.encoder, self.digest, self.quiet)
        training = NavigationTraining(self.options, self.eye, self.digest, machine.threads)
        return self.timed(training, _line(self.options, _level))

    def write(self, folder: Path, work: TimedTraining[Any]) -> None:
        write_navigation_folder(folder, work.training.contract, work.training.weights)

    def read(self, folder: Path) -> NavigationPolicy:
        _keep_encoder(folder, self.encoder, self.digest, self.quiet)
        return read_navigation_policy(folder)

    def learnt(self, work: TimedTraining[Any]) -> NavigationPolicy:
        policy: NavigationPolicy = work.training.policy
        return policy

    def evidence(self, network: NavigationPolicy, found: Mapping[str, Any]) -> dict[str, Any]:
        return dict(_judged(network, self.eye, self.protocol, found["level"], self.quiet))

    def summary(self, work: TimedTraining[Any], network: NavigationPolicy, machine: Machine) -> dict[str, Any]:
        told = {
            "seed": self.options.seed,
            "env_steps": work.training.env_steps,
            "level": work.training.environments.level,
            "seconds": work.training.seconds,
        }
        found = self.summarised(work, machine, **told)
        return {**found, **self.evidence(network, found)}

    def report(
        self, folder: Path, found: Mapping[str, Any], rows: Rows, network: NavigationPolicy, work: TimedTraining[Any] | None
    ) -> None:
        write_navigation_report(folder / REPORT_FILE, found, rows)

    def curves(self, work: TimedTraining[Any]) -> TrainingCurves:
        return TrainingCurves(work.metrics, metric_scalars)


def train_navigation(
    out: str | Path,
    options: NavigationOptions | None = None,
    protocol: RoomsProtocol | None = None,
    run: TrainingRunOptions | None = None,
    *,
    encoder: str | Path | None = None,
    command: str = "",
    quiet: bool = True,
) -> Trained:
    """Learn to navigate by sight, or go on where it was stopped, and judge what was learnt in unseen rooms.

    Args:
        out: Folder.
        options: What to learn, and how.
        protocol: How it is judged.
        run: For how long, by how many threads.
        encoder: Folder of a Deep Collision Encoder, where images are read as its latent.
        command: That makes the training again, for the summary.
        quiet: Say nothing but what is wrong.

    Raises:
        AirworthyError: The folder holds another training or something that is none, an encoder is missing or too much, or it
            is to be judged at a level beyond the curriculum's last.
        KeyboardInterrupt: It was asked to stop; the policy as it is, and a checkpoint to go on from, are in the folder.
    """
    options, protocol, run = options or NavigationOptions(), protocol or RoomsProtocol(), run or ONE_THREAD
    # Now: it would be a pity to hear it when all is learnt.
    refuse_judged_seed([options.seed], protocol.seed, _JUDGED_ROOMS)
    check_levels(protocol, options.learnt_task().curriculum.most)
    options.check_batch()
    made = _NavigationFolder(
        kind=options.task, options=options, run=run, command=command, quiet=quiet, protocol=protocol, encoder=encoder
    )
    return made.train(out)


def train_navigation_seeds(
    out: str | Path, options: NavigationOptions, count: int, *, commands: Sequence[str] = (), **told: Any
) -> list[Trained]:
    """Train several seeds, one after the other, each in a folder of its own; `summary.json` above has all of them.

    Args:
        out: Folder.
        options: What to learn, and how; their seed is the first.
        count: Seeds.
        commands: That make each again.
        told: As of `train_navigation`.

    Returns:
        Those that were finished, and one that was not behind them.

    Raises:
        AirworthyError: There are too many or too few seeds, the folder holds a single training, or one cannot be trained.
    """

    protocol = told.get("protocol") or RoomsProtocol()
    # All of them before the first learns for hours.
    refuse_judged_seed(range(options.seed, options.seed + count), protocol.seed, _JUDGED_ROOMS)

    def train(seed: int, folder: Path, command: str) -> Trained:
        return train_navigation(folder, replace(options, seed=seed), command=command, **told)

    done = train_each(out, range(options.seed, options.seed + count), train, commands)
    if not done[-1].finished:
        return done
    levels = shared_levels(done)
    about = {"kind": f"{options.task} seeds", "vehicle": options.learnt_task().vehicle}
    write_seeds(out, about, seed_rows(done, lambda found: _seed_row(found, levels)))
    return done


def shared_levels(done: Sequence[Trained]) -> list[int]:
    """Return the levels at which every finished training was judged: the one that each reached may be its own."""
    judged = [{row["level"] for row in item.figures["simulator"]} for item in done if item.finished]
    return sorted(set.intersection(*judged)) if judged else []


def _seed_row(found: Mapping[str, Any], levels: Sequence[int]) -> dict[str, Any]:
    """Return the figures of a seed among several, success in percent by physics and level."""
    row = {name: found[name] for name in ("seed", "training_wall_s", "training_cpu_s", "env_steps", "level")}
    for where in ("launch", "simulator"):
        by_level = {item["level"]: item["success_percent"] for item in found[where]}
        row |= {f"{where}_level_{level}_success_percent": by_level[level] for level in levels}
    return row


def _level(row: Mapping[str, Any]) -> str:
    success = "-" if row["success"] is None else f"{100.0 * row['success']:.0f} %"
    return f"{1e-6 * row['env_steps']:.2f} M decisions, level {row['level']}, success {success}, reward {row['reward']:.2f}"


def _judged(
    policy: NavigationPolicy, eye: NavigationEye, protocol: RoomsProtocol, reached: int, quiet: bool
) -> dict[str, list[dict[str, Any]]]:
    """Return rows of each level: as it learnt to fly, and in the simulator."""
    task = NavigationOptions(task=policy.contract.task, image=policy.contract.image).learnt_task()
    found: dict[str, list[dict[str, Any]]] = {"launch": [], "simulator": []}
    for level in levels_of(protocol, task.curriculum.least, reached, task.curriculum.most):
        say(quiet, f"Judging it on {protocol.flights} flights at level {level}, in the launch and in the simulator.")
        found["launch"].append(level_row(level, fly_level(policy, eye, protocol, level)))
        found["simulator"].append(level_row(level, fly_level_simulated(policy, eye, protocol, level)))
    return found
