"""A training of splats in the browser while it runs: the newest checkpoint, and how well held-out images are matched."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture.training.train import CHECKPOINTS, IDENTITY, REPORT
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_json
from airworthy.core.jobs.checkpoints import Checkpoint, Checkpoints
from airworthy.scenes.splats import Splats, read_splats

__all__ = ["TrainingState", "TrainingWatch", "WatchedTraining", "holds_training"]

PERIOD = 2.0
"""Between two looks at the folder [s]."""


def holds_training(path: Path) -> bool:
    """Tell whether a folder is one of `airworthy capture train`."""
    identity = path / IDENTITY
    if not identity.is_file():
        return False
    try:
        content = read_json(identity)
    except AirworthyError:  # whoever reads it says so
        return False
    # Other trainings leave a file of this name, too; only this one is of images.
    return isinstance(content, dict) and "images" in content and (path / CHECKPOINTS).exists() | (path / REPORT).exists()


@dataclass(frozen=True, eq=False)
class TrainingState:
    """A training at one step."""

    step: int
    steps: int
    """Of the whole training; 0: not known."""
    splats: Splats
    done: bool
    judged: tuple[tuple[int, float, float], ...] = ()
    """(step, PSNR [dB], SSIM) of held-out images."""

    def text(self) -> str:
        """Return how far it is, in words."""
        of = f" of {self.steps:,}" if self.steps else ""
        head = f"step {self.step:,}{of}" + (", finished" if self.done else "")
        last = f", PSNR {self.judged[-1][1]:.2f} dB at step {self.judged[-1][0]:,}" if self.judged else ""
        return f"{head}: {len(self.splats):,} gaussians{last}"


class WatchedTraining:
    """The folder of a training, asked for what is newest in it.

    Args:
        folder: Of `airworthy capture train`.

    Raises:
        AssetError: It is none.
    """

    def __init__(self, folder: Path):
        if not holds_training(folder):
            raise AssetError(
                f"{str(folder)!r} holds no training of splats, or one that has saved nothing yet: `airworthy capture train"
                " CAPTURE --out FOLDER` makes one, and saves it every minute or so."
            )
        self.folder = folder
        self._seen = -1

    def newest(self) -> TrainingState | None:
        """Return the newest state; None where it was seen before, or nothing whole is there at the moment.

        Raises:
            AirworthyError: What the training wrote when it ended is damaged.
        """
        report = self.folder / REPORT
        if report.is_file():
            return self._finished(read_json(report))
        folder = self.folder / CHECKPOINTS
        # Looked at before it is asked: `Checkpoints` makes its folder, and this one is somebody else's.
        if not folder.is_dir() or self._number(folder) <= self._seen:
            return None
        try:
            found = Checkpoints(folder, digits=8).newest()
        except AirworthyError:  # it was just replaced, or removed at the end
            return None
        if found is None or found.number <= self._seen:
            return None
        self._seen = found.number
        options = read_json(self.folder / IDENTITY).get("options") or {}
        return TrainingState(found.number, int(options.get("steps", 0)), splats_of(found), False, _judged(found.notes))

    @staticmethod
    def _number(folder: Path) -> int:
        numbers = [int(path.stem[5:]) for path in folder.glob("step_*.json") if path.stem[5:].isdigit()]
        return max(numbers, default=-1)

    def _finished(self, report: Any) -> TrainingState | None:
        if not isinstance(report, dict) or not isinstance(report.get("splats"), str):
            raise AssetError(f"{str(self.folder / REPORT)!r} is damaged: it does not name the splats.")
        step = int(report.get("steps", 0))
        if step <= self._seen and self._seen >= 0 and self._ended:
            return None
        self._seen, self._ended = step, True
        splats = read_splats(self.folder / Path(report["splats"]).name).splats
        curves = report.get("curves")
        judged = _judged({"judged": curves.get("held_out")} if isinstance(curves, dict) else {})
        return TrainingState(step, step, splats, True, judged)

    _ended = False


def splats_of(found: Checkpoint) -> Splats:
    """Return the cloud of a checkpoint; raises AirworthyError where it holds none."""
    from airworthy.splats.training.optimizer import SplatOptimizer

    nothing = np.zeros((1, 3), np.float32)
    start = Splats(nothing, np.array([[0.0, 0.0, 0.0, 1.0]]), nothing + 1.0, np.zeros(1), nothing[:, None])
    optimizer = SplatOptimizer(start, threads=1)
    try:
        optimizer.restore(dict(found.arrays))
    except (KeyError, ValueError, TypeError) as error:
        raise AssetError(f"The checkpoint of step {found.number:,} holds no splats: {error}.") from error
    return optimizer.splats()


def _judged(notes: Mapping[str, Any]) -> tuple[tuple[int, float, float], ...]:
    rows = notes.get("judged")
    rows = rows if isinstance(rows, list) else []
    return tuple((int(row[0]), float(row[1]), float(row[2])) for row in rows if isinstance(row, list) and len(row) == 3)


class TrainingWatch:
    """Looks at a folder now and then, in a thread of its own.

    Args:
        folder: What to look at.
        shown: Called with every new state, or with what is wrong.
        period: Between two looks [s].
    """

    def __init__(self, folder: WatchedTraining, shown: Callable[[TrainingState | None, str], None], period: float = PERIOD):
        self._folder, self._shown, self._period = folder, shown, period
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="training watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        while not self._stop.wait(self._period):
            try:
                state = self._folder.newest()
            except AirworthyError as error:
                self._shown(None, str(error))
                return
            if state is not None:
                self._shown(state, "")
                if state.done:
                    return
