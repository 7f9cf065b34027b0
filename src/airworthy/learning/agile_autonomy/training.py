"""A student under way: rounds of flights, and epochs over all that was flown; what is flown lies beside the checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from airworthy.core.arrays import ArrayBool, ArrayF32, ArrayInt
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import make_folder, read_bytes, sha256, write_bytes
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.learning.agile_autonomy.config import StudentOptions
from airworthy.learning.agile_autonomy.instants import Instants, joined
from airworthy.learning.agile_autonomy.looks import mirrored
from airworthy.learning.agile_autonomy.loss import clearance_loss, score_loss, space_loss
from airworthy.learning.agile_autonomy.network import StudentNet
from airworthy.learning.agile_autonomy.poses import posed
from airworthy.learning.agile_autonomy.rollouts import collected
from airworthy.learning.agile_autonomy.twin import collision_costs
from airworthy.learning.machine import ModelState
from airworthy.learning.timed_training import StepStopped
from airworthy.planners.agile_autonomy.contract import StudentContract
from airworthy.planners.agile_autonomy.level import MIRROR, blank_views
from airworthy.planners.agile_autonomy.planner import Student

__all__ = ["DATA_FOLDER", "StudentTraining", "learning_rate_share"]

DATA_FOLDER = "data"
_LIMIT_BYTES = 4 * 2**30
"""Of a file of instants; ours."""
# Source: spec/planners 8.3: t_mul 1.5, m_mul 0.75, floor 0.01; gradient norm clip 1 per tensor.
_LONGER, _LOWER, _FLOOR, _GRADIENT_NORM = 1.5, 0.75, 0.01, 1.0
# Ours: every so many-th batch of flights is not learnt from, and tells whether others are learnt by heart.
_HELD_OUT = 7
_LOSSES = ("space", "score", "clearance")
"""Of what is learnt, in this order."""
# Ours: what is held out is looked at this many instants at a time.
_LOOKED_AT = 256


def learning_rate_share(step: int, cycle: int) -> float:
    """Return the share of the learning rate at a gradient step: cosines that begin again, longer and lower each time.

    Args:
        step: From 0 on.
        cycle: Steps of the first cosine.
    """
    length, height, at = float(cycle), 1.0, float(step)
    while at >= length:
        at, length, height = at - length, length * _LONGER, height * _LOWER
    fall = 0.5 * height * (1.0 + math.cos(math.pi * at / length))
    return (1.0 - _FLOOR) * fall + _FLOOR


@dataclass(frozen=True)
class _Task:
    kind: str
    """"pose", "fly" or "learn"."""
    round: int
    number: int
    """Of the batch of flights over all rounds, or of the epoch over all rounds."""


def _tasks(options: StudentOptions) -> list[_Task]:
    found: list[_Task] = []
    batch = epoch = 0
    for k in range(options.rounds):
        kind, count = ("pose", options.posed) if k == 0 and options.posed else ("fly", options.batches)
        found += [_Task(kind, k, batch + number) for number in range(count)]
        batch += count
        for _ in range(options.epochs if k < options.rounds - 1 else options.last_epochs):
            found.append(_Task("learn", k, epoch))
            epoch += 1
    return found


class StudentTraining:
    """See the module.

    Args:
        options: What to learn, and how.
    """

    def __init__(self, options: StudentOptions):
        self.options, self.iteration, self.skipped, self.gradient_steps = options, 0, 0, 0
        self.stopped: Callable[[], bool] = lambda: False
        torch.manual_seed(options.seed % (1 << 63))
        self.net = StudentNet(options.modes)
        self._adam = torch.optim.Adam(self.net.parameters(), options.learning_rate)
        self._state = ModelState(self.net, torch.device("cpu"))
        self._tasks = _tasks(options)
        self._batches: list[Instants] = []
        self._files: list[dict[str, Any]] = []
        self._folder: Path | None = None
        self._joined: dict[bool, Instants] = {}
        self._parts: dict[str, float | None] = dict.fromkeys(
            f"{which}{name}" for which in ("", "held_out_") for name in _LOSSES
        )

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        return self.iteration >= self.options.iterations

    @property
    def instants(self) -> int:
        """How many there are to learn from, those that are held out among them."""
        return sum(len(batch) for batch in self._batches)

    @property
    def flown(self) -> list[dict[str, Any]]:
        """Of each batch of flights, in order: its round, and what became of them."""
        return [{"round": item["round"], **item["figures"]} for item in self._files]

    def keep_in(self, folder: Path) -> None:
        """Keep what is flown in a folder, and not in each checkpoint."""
        self._folder = folder / DATA_FOLDER

    def forget(self) -> None:
        """Remove what was kept."""
        if self._folder is not None and self._folder.is_dir():
            for path in self._folder.glob("batch_*.safetensors"):
                path.unlink()
            self._folder.rmdir()

    # ---- learning -----------------------------------------------------------------------------------------------------

    def step(self) -> float:
        """Fly a batch, or learn for an epoch; returns the mean loss of the last epoch so far, 0 before the first."""
        task = self._tasks[self.iteration]
        if task.kind == "pose":
            self._keep(task, posed(self.options, task.number, self._alive))
        elif task.kind == "fly":
            student = Student(self.contract, self.weights) if task.round else None
            self._keep(task, collected(self.options, task.number, student, self._alive))
        else:
            self._learn(task)
        self.iteration += 1
        return float(sum(self._parts[name] or 0.0 for name in _LOSSES))

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of the last step."""
        task, last = self._tasks[self.iteration - 1], self._files[-1]["figures"]
        return {
            "cost": cost,
            "stage": task.kind,
            "round": task.round,
            "instants": self.instants,
            "flights": last["flights"],
            "success": last["success"],
            "gradient_steps": self.gradient_steps,
            **self._parts,
            "skipped": self.skipped,
        }

    def _keep(self, task: _Task, batch: Instants) -> None:
        self._batches.append(batch)
        self._joined.clear()
        item: dict[str, Any] = {"round": task.round, "figures": batch.figures}
        if self._folder is not None:
            from safetensors.numpy import save

            make_folder(self._folder)
            data = save({name: np.ascontiguousarray(value) for name, value in batch.arrays().items()})
            name = f"batch_{task.number:04d}.safetensors"
            write_bytes(self._folder / name, data)
            item |= {"file": name, "sha256": sha256(data)}
        self._files.append(item)

    def _alive(self) -> None:
        if self.stopped():
            raise StepStopped

    def _learn(self, task: _Task) -> None:
        o, taught = self.options, self._rows(False)
        rng = np.random.default_rng([o.seed, task.number, 2])
        chosen = rng.permutation(len(taught))
        mirror = rng.random(len(chosen)) < 0.5
        sums = np.zeros(len(_LOSSES))
        steps = [slice(k, k + o.batch) for k in range(0, len(chosen), o.batch)]
        before, weights = self.gradient_steps, self._copied()
        try:
            for part in steps:
                self._alive()
                sums += len(chosen[part]) * np.array(self._descend(chosen[part], mirror[part]))
        except StepStopped:
            # An epoch is learnt whole or not at all, so that one that goes on is the same.
            self._restore(weights)
            self.gradient_steps = before
            raise
        learnt = {name: float(total / len(chosen)) for name, total in zip(_LOSSES, sums, strict=True)}
        self._parts = {**learnt, **self._looked_at()}

    def _rows(self, held_out: bool) -> Instants:
        """Return all instants that are held out, or all others; raises AirworthyError where there is none to learn from."""
        if held_out not in self._joined:
            parts = [b for k, b in enumerate(self._batches) if (k % _HELD_OUT == _HELD_OUT - 1) == held_out]
            self._joined[held_out] = joined(parts) if parts else self._batches[0].none()
        return self._joined[held_out]

    def _descend(self, rows: ArrayInt, mirror: ArrayBool) -> list[float]:
        o = self.options
        for group in self._adam.param_groups:
            group["lr"] = o.learning_rate * learning_rate_share(self.gradient_steps, o.cycle)
        losses = self._losses(self._rows(False), rows, mirror)
        self._adam.zero_grad()
        torch.stack(losses).sum().backward()
        # A gradient that is not finite must not end a training: its step is not made.
        norms = [torch.nn.utils.clip_grad_norm_(p, _GRADIENT_NORM) for p in self.net.parameters()]
        if all(math.isfinite(float(norm)) for norm in norms):
            self._adam.step()
        else:
            self.skipped += 1
        self.gradient_steps += 1
        return [float(loss.detach()) for loss in losses]

    def _losses(self, among: Instants, rows: ArrayInt, mirror: ArrayBool) -> list[torch.Tensor]:
        """Return the losses of some instants (m,), some of them as in a mirror, in the order of `_LOSSES`."""
        views, state, expert = mirrored(mirror, among.views[rows], among.state[rows], among.expert[rows])
        if self.options.blind:
            views = blank_views(views)
        score, points = self.net(torch.from_numpy(views), torch.from_numpy(state))
        # What is near lies where it lies: a mirrored trajectory is looked up where it was before.
        sides = np.where(mirror[:, None], MIRROR, 1.0)[:, None, None]
        distance, slope = among.distances(rows, points.detach().numpy() * sides)
        cost = torch.from_numpy(collision_costs(distance).astype(np.float32))
        found = [space_loss(points, torch.from_numpy(expert)), score_loss(score, cost)]
        near = (torch.from_numpy(part.astype(np.float32)) for part in (distance, slope * sides))
        return [*found, self.options.clearance * clearance_loss(points, *near)]

    def _looked_at(self) -> dict[str, float | None]:
        """Return the losses of what is held out; None where nothing is."""
        among = self._rows(True)
        if not len(among):
            return {f"held_out_{name}": None for name in _LOSSES}
        sums = np.zeros(len(_LOSSES))
        with torch.no_grad():
            for at in range(0, len(among), _LOOKED_AT):
                part = np.arange(at, min(at + _LOOKED_AT, len(among)))
                sums += len(part) * np.array([float(loss) for loss in self._losses(among, part, np.zeros(len(part), bool))])
        return {f"held_out_{name}": float(total / len(among)) for name, total in zip(_LOSSES, sums, strict=True)}

    # ---- what is learnt, stopping and going on -------------------------------------------------------------------------

    @property
    def weights(self) -> dict[str, ArrayF32]:
        """Tensors of the student as it is."""
        return self._state.weights("last")

    @property
    def contract(self) -> StudentContract:
        """What the student learnt for, and how far it came."""
        o = self.options
        told = {"iterations": self.iteration, "instants": self.instants, "options": asdict(o)}
        return StudentContract(o.modes, o.reach, o.fastest, o.blind, told)

    def _copied(self) -> dict[str, Any]:
        return self._state.arrays(dict(self.net.named_parameters()), self._adam)

    def _restore(self, arrays: dict[str, Any]) -> None:
        self._state.restore(arrays)
        self._adam.state.clear()
        self._state.restore_moments(arrays, dict(self.net.named_parameters()), self._adam)

    def save(self) -> Checkpoint:
        """Return everything that the next step depends on, but for what was flown, which lies in files."""
        notes = {"skipped": self.skipped, "gradient_steps": self.gradient_steps, "files": self._files, "parts": self._parts}
        return Checkpoint(self.iteration, self._copied(), notes)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits.

        Raises:
            AssetError: A file of what was flown is missing or damaged.
        """
        notes = checkpoint.notes
        files = [dict(item) for item in notes["files"]]
        batches = [self._read(item) for item in files]
        self._restore(dict(checkpoint.arrays))
        self._files, self._batches = files, batches
        self._joined.clear()
        self.iteration, self.skipped = checkpoint.number, int(notes["skipped"])
        self.gradient_steps, self._parts = int(notes["gradient_steps"]), dict(notes["parts"])

    def _read(self, item: dict[str, Any]) -> Instants:
        from safetensors import SafetensorError
        from safetensors.numpy import load

        if self._folder is None or "file" not in item:
            raise AssetError("A training that goes on needs the folder in which its flights lie.")
        path = self._folder / str(item["file"])
        data = read_bytes(path, _LIMIT_BYTES)
        if sha256(data) != item["sha256"]:
            raise AssetError(f"{str(path)!r} is not the file of flights that the training wrote: it was changed or damaged.")
        try:
            return Instants.of_arrays(load(data), dict(item["figures"]))
        except (SafetensorError, AirworthyError) as error:
            raise AssetError(f"{str(path)!r} does not hold flights to learn from: {error}") from None
