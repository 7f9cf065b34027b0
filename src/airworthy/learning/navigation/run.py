"""From nothing to a folder with a policy that navigates by sight, or with its encoder: `airworthy train`.

training.json     what is learnt, and where it began; written first
encoder/          of policies that read a latent: a folder of `train dce`
checkpoints/      while it is not finished
weights.safetensors, contract.json   what is learnt, also of a training that was stopped
metrics.jsonl     level, success, reward and its terms, a line per update that was written down
report.html       curves and figures
summary.json      figures; written last: where it lies, all is done
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from airworthy import __version__
from airworthy.core.errors import AirworthyError
from airworthy.core.files import json_text, lock_folder, write_json
from airworthy.learning.machine import TrainingOptions, TrainingRunOptions, computing, machine_for
from airworthy.learning.navigation.encoder import LatentEye, read_encoder, write_encoder
from airworthy.learning.navigation.encoder_options import EncoderOptions
from airworthy.learning.navigation.encoder_training import EncoderTraining
from airworthy.learning.navigation.eyes import NavigationEye
from airworthy.learning.navigation.judging import fly_level, fly_level_simulated, level_row, levels_of
from airworthy.learning.navigation.options import NavigationOptions, RoomsProtocol
from airworthy.learning.navigation.report import write_encoder_report, write_navigation_report
from airworthy.learning.navigation.training import NavigationTraining, plain_eye
from airworthy.learning.timed_training import (
    SUMMARY_FILE,
    TimedTraining,
    Trained,
    hardware_found,
    judged_again,
    read_metrics,
)
from airworthy.learning.training_folder import REPORT_FILE, TrainingFolder, TrainingNames, say
from airworthy.pilots.navigation_policy.contract import write_navigation_folder
from airworthy.pilots.navigation_policy.network import NavigationPolicy, read_navigation_policy

__all__ = ["ENCODER", "load_navigator", "train_encoder", "train_navigation"]

ENCODER = "encoder"
SCHEMA_VERSION = 1
_REST = "it was begun by another version of this program"
_NAMES = TrainingNames("a policy", "its encoder was another", _REST, "update", SUMMARY_FILE)
_ENCODER_NAMES = TrainingNames("an encoder", "its data were others", _REST, "gradient step", SUMMARY_FILE)
_METRICS_MOST = 1000
"""Ours: rows of the training log at most."""
_SAID_EVERY_S = 10.0
"""Between two lines for whoever watches."""
_RUN = TrainingRunOptions(device="cpu", threads=1, checkpoint_minutes=1.0)


def _identity(kind: str, options: TrainingOptions, data: Mapping[str, Any], protocol: Any = None) -> dict[str, Any]:
    found = {"schema_version": SCHEMA_VERSION, "kind": kind, "options": json.loads(json_text(asdict(options)))}
    judged = {} if protocol is None else {"protocol": json.loads(json_text(asdict(protocol)))}
    return {**found, "data": dict(data), **judged}


def _line(
    options: EncoderOptions | NavigationOptions, told: Callable[[Mapping[str, Any]], str]
) -> Callable[[Mapping[str, Any]], str]:
    """Return what says of a row of the log where the training is."""
    return lambda row: f"{row['iteration']:,} of {options.iterations:,} in {row['wall_s']:.0f} s, {told(row)}"


# ---- The encoder ------------------------------------------------------------------------------------------------------------


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
    options, run = options or EncoderOptions(), run or _RUN
    with lock_folder(out) as folder:
        held = TrainingFolder(folder, _identity("dce", options, {}), options, _ENCODER_NAMES, quiet)
        if held.done:
            return held.outcome(read_encoder, lambda at, found: Trained(at, True, found, found["iterations"]))
        machine = machine_for(run, before=held.machine)
        with computing(machine):
            training = EncoderTraining(options, machine.threads)
            work = TimedTraining(training, _METRICS_MOST, None if quiet else _line(options, _error), _SAID_EVERY_S)
            if held.begin(work, machine):
                say(quiet, f"{folder}: goes on from gradient step {training.iteration:,}.")

            def saved() -> None:
                write_encoder(folder, training.contract, training.weights)
                work.write_metrics(folder)

            if not held.learn(work, work.steps, options.iterations - training.iteration, run, saved=saved):
                return Trained(folder, False, {}, training.iteration)
            saved()
            judged = training.judged()
        found = {
            **_clock("dce", work, machine, options),
            "images": training.iteration * options.batch,
            "unseen": judged,
            "command": command,
        }
        write_encoder_report(folder / REPORT_FILE, found, work.metrics)
        # Last: where it lies, everything else does.
        write_json(folder / SUMMARY_FILE, found)
        held.clear()
    return Trained(folder, True, found, training.iteration)


def _clock(kind: str, work: TimedTraining[Any], machine: Any, options: TrainingOptions) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": kind,
        "iterations": work.training.iteration,
        "training_wall_s": work.wall_s,
        "training_cpu_s": work.cpu_s,
        "machine": asdict(machine),
        "hardware": hardware_found(),
        "version": __version__,
        "options": json.loads(json_text(asdict(options))),
    }


def _error(row: Mapping[str, Any]) -> str:
    return f"squared error {row['squared_error']:.5f}"


# ---- The policy -------------------------------------------------------------------------------------------------------------


def _eye(options: NavigationOptions, folder: Path, encoder: str | Path | None) -> tuple[NavigationEye, str]:
    """Return what a policy reads of images, and the digest of its encoder's weights, which is copied into the folder."""
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
    contract, net, digest = read_encoder(encoder)
    if not (folder / ENCODER).exists():
        write_encoder(folder / ENCODER, contract, {name: x.numpy() for name, x in net.state_dict().items()})
    return LatentEye(net), digest


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
        AirworthyError: The folder holds another training or something that is none, or an encoder is missing or too much.
        KeyboardInterrupt: It was asked to stop; the policy as it is, and a checkpoint to go on from, are in the folder.
    """
    options, protocol, run = options or NavigationOptions(), protocol or RoomsProtocol(), run or _RUN
    with lock_folder(out) as folder:
        eye, digest = _eye(options, folder, encoder)
        identity = _identity(options.task, options, {"encoder": digest}, protocol)
        held = TrainingFolder(folder, identity, options, _NAMES, quiet)
        if held.done:

            def judge(policy: NavigationPolicy, found: dict[str, Any]) -> dict[str, Any]:
                again = judged_again(found, _judged(policy, eye, protocol, found["level"], quiet))
                again |= {"protocol": identity["protocol"], "command": command}
                write_navigation_report(folder / REPORT_FILE, again, read_metrics(folder))
                return again

            return held.outcome(read_navigation_policy, lambda at, found: Trained(at, True, found, found["iterations"]), judge)
        machine = machine_for(run, before=held.machine)
        with computing(machine):
            training = NavigationTraining(options, eye, digest, machine.threads)
            work = TimedTraining(training, _METRICS_MOST, None if quiet else _line(options, _level), _SAID_EVERY_S)
            if held.begin(work, machine):
                say(quiet, f"{folder}: goes on from update {training.iteration:,}.")

            def saved() -> None:
                # Whoever stops it, or kills it, has a policy that flies.
                write_navigation_folder(folder, training.contract, training.weights)
                work.write_metrics(folder)

            if not held.learn(work, work.steps, options.iterations - training.iteration, run, saved=saved):
                return Trained(folder, False, {}, training.iteration)
            saved()
            found = {
                **_clock(options.task, work, machine, options),
                "seed": options.seed,
                "env_steps": training.env_steps,
                "level": training.environments.level,
                "seconds": training.seconds,
                "protocol": identity["protocol"],
                **_judged(training.policy, eye, protocol, training.environments.level, quiet),
                "command": command,
            }
        write_navigation_report(folder / REPORT_FILE, found, work.metrics)
        # Last: where it lies, everything else does.
        write_json(folder / SUMMARY_FILE, found)
        held.clear()
    return Trained(folder, True, found, training.iteration)


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
