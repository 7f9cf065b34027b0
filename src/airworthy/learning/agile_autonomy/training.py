"""A student under way: rounds of flights, and epochs over all that was flown; what is flown lies beside the checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from airworthy.core.arrays import Array, ArrayF32, ArrayInt
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import make_folder, read_bytes, sha256, write_bytes
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.learning.agile_autonomy.config import StudentOptions
from airworthy.learning.agile_autonomy.looks import InstantLooks
from airworthy.learning.agile_autonomy.loss import score_loss, space_loss
from airworthy.learning.agile_autonomy.network import StudentNet
from airworthy.learning.agile_autonomy.rollouts import Instants, collected
from airworthy.learning.agile_autonomy.twin import collision_costs
from airworthy.learning.machine import ModelState
from airworthy.learning.timed_training import StepStopped
from airworthy.planners.agile_autonomy.contract import StudentContract
from airworthy.planners.agile_autonomy.planner import Student
from airworthy.planners.agile_autonomy.sight import STEPS

__all__ = ["DATA_FOLDER", "StudentTraining", "learning_rate_share"]

DATA_FOLDER = "data"
_LIMIT_BYTES = 4 * 2**30
"""Of a file of instants; ours."""
# Source: spec/planners 8.3: t_mul 1.5, m_mul 0.75, floor 0.01; gradient norm clip 1 per tensor.
_LONGER, _LOWER, _FLOOR, _GRADIENT_NORM = 1.5, 0.75, 0.01, 1.0
# Ours: every so many-th batch of flights is not learnt from, and tells whether others are learnt by heart.
_HELD_OUT = 6
# Ours: what is held out is looked at this many instants at a time.
_LOOKED_AT = 64


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
    """"fly" or "learn"."""
    round: int
    number: int
    """Of the batch of flights over all rounds, or of the epoch over all rounds."""


def _tasks(options: StudentOptions) -> list[_Task]:
    found, epoch = [], 0
    for k in range(options.rounds):
        found += [_Task("fly", k, k * options.batches + b) for b in range(options.batches)]
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
        self._parts: dict[str, float | None] = dict.fromkeys(("space", "score", "held_out_space", "held_out_score"))

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
        if task.kind == "fly":
            self._fly(task)
        else:
            self._learn(task)
        self.iteration += 1
        return float((self._parts["space"] or 0.0) + (self._parts["score"] or 0.0))

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

    def _fly(self, task: _Task) -> None:
        student = Student(self.contract, self.weights) if task.round else None
        batch = collected(self.options, task.number, student, self._alive)
        self._batches.append(batch)
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
        o = self.options
        taught = [(k, row) for k, batch in enumerate(self._batches) if not self._held_out(k) for row in range(len(batch))]
        rng = np.random.default_rng([o.seed, task.number, 2])
        chosen = np.array(taught)[rng.permutation(len(taught))]
        looks = InstantLooks.drawn(len(chosen), rng)
        sums = np.zeros(2)
        steps = [slice(k, k + o.batch) for k in range(0, len(chosen), o.batch)]
        before, weights = self.gradient_steps, self._copied()
        try:
            for part in steps:
                self._alive()
                sums += len(chosen[part]) * np.array(self._descend(chosen[part], looks.some(part)))
        except StepStopped:
            # An epoch is learnt whole or not at all, so that one that goes on is the same.
            self._restore(weights)
            self.gradient_steps = before
            raise
        self._parts = {"space": float(sums[0] / len(chosen)), "score": float(sums[1] / len(chosen)), **self._looked_at()}

    def _held_out(self, batch: int) -> bool:
        return batch % _HELD_OUT == _HELD_OUT - 1

    def _descend(self, rows: ArrayInt, looks: InstantLooks) -> tuple[float, float]:
        o = self.options
        for group in self._adam.param_groups:
            group["lr"] = o.learning_rate * learning_rate_share(self.gradient_steps, o.cycle)
        space, score = self._losses(rows, looks)
        self._adam.zero_grad()
        (space + score).backward()
        # A gradient that is not finite must not end a training: its step is not made.
        norms = [torch.nn.utils.clip_grad_norm_(p, _GRADIENT_NORM) for p in self.net.parameters()]
        if all(math.isfinite(float(norm)) for norm in norms):
            self._adam.step()
        else:
            self.skipped += 1
        self.gradient_steps += 1
        return float(space.detach()), float(score.detach())

    def _losses(self, rows: ArrayInt, looks: InstantLooks | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Return both losses of instants, rows (m, 2) of a batch's number and the instant's in it, under other looks."""
        rows = rows[order := np.argsort(rows[:, 0], kind="stable")]
        parts = [(self._batches[k], rows[rows[:, 0] == k, 1]) for k in np.unique(rows[:, 0])]
        images, state, expert = (
            np.concatenate([getattr(batch, name)[which] for batch, which in parts]) for name in ("images", "state", "expert")
        )
        mirrored = np.zeros(len(rows), bool)
        if looks is not None:
            looks = looks.some(order)
            mirrored = looks.mirrored
            images, state, expert = looks.applied(images, state, expert)
        if self.options.blind:
            images = np.full_like(images, STEPS)
        score, points = self.net(torch.from_numpy(images), torch.from_numpy(state))
        # What is near lies where it lies: a mirrored trajectory is looked up where it was before.
        flown, at = points.detach().numpy().astype(np.float64), 0
        flown[mirrored, ..., 1] *= -1.0
        costs: list[Array] = []
        for batch, which in parts:
            costs.append(collision_costs(batch.distances(which, flown[at : at + len(which)])))
            at += len(which)
        cost = torch.from_numpy(np.concatenate(costs).astype(np.float32))
        return space_loss(points, torch.from_numpy(expert)), score_loss(score, cost)

    def _looked_at(self) -> dict[str, float | None]:
        """Return both losses of what is held out; None where nothing is."""
        rows = np.array([(k, row) for k, b in enumerate(self._batches) if self._held_out(k) for row in range(len(b))])
        if not len(rows):
            return {"held_out_space": None, "held_out_score": None}
        sums = np.zeros(2)
        with torch.no_grad():
            for at in range(0, len(rows), _LOOKED_AT):
                part = rows[at : at + _LOOKED_AT]
                sums += len(part) * np.array([float(loss) for loss in self._losses(part)])
        return {"held_out_space": float(sums[0] / len(rows)), "held_out_score": float(sums[1] / len(rows))}

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
