"""Training of splats from posed images: `train_splats`."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture.record import CaptureImages
from airworthy.capture.training_options import TrainOptions
from airworthy.capture.training_report import write_training_report
from airworthy.capture.training_run import Judged, TrainingRun
from airworthy.capture.training_start import first_splats
from airworthy.core.checkpoints import Checkpoint, Checkpoints
from airworthy.core.errors import AirworthyError
from airworthy.core.files import lock_folder, read_json, sha256, write_json
from airworthy.core.progress import progress
from airworthy.core.stopping import stoppable
from airworthy.scenes.splats import write_splats

__all__ = ["TrainOptions", "TrainResult", "train_splats"]

REPORT, PAGE, IDENTITY, CHECKPOINTS = "report.json", "report.html", "training.json", "checkpoints"


@dataclass(frozen=True)
class TrainResult:
    """What came of a training."""

    splats: Path
    """The file."""
    report: Path
    """`report.json`; `report.html` lies beside it."""
    gaussians: int
    steps: int
    seconds: float
    """Spent on training, all runs together."""
    psnr: float
    """Mean over the held-out images [dB]; over some of those trained on where none are held out."""
    ssim: float
    held_out: int
    """Images that were judged and not trained on."""


def train_splats(
    images: CaptureImages, out: str | Path, options: TrainOptions | None = None, quiet: bool = False
) -> TrainResult:
    """Train splats from posed images, or go on with a training that was stopped.

    The same images and options give the same bytes of the splats' file on a machine, however often the run was stopped. On
    SIGINT and SIGTERM everything is saved before the process ends.

    Args:
        images: Those of `held_out` are judged on and never trained on.
        out: Folder, of one run at a time, for `splats.ply` (or .spz), `report.json`, `report.html`, `training.json` and
            `checkpoints`.
        options: Chosen; None: all as they are.
        quiet: Show no progress.

    Raises:
        AirworthyError: There are too few images, the folder holds another training or is in use, or it cannot be written.
    """
    options = options or TrainOptions()
    if len(images.training) < 2:
        raise AirworthyError(f"Splats were to be trained from {len(images.training)} images; expected 2 or more.")
    identity = {"options": asdict(options), "images": digest(images)}
    with lock_folder(out) as folder:
        done = _known(folder, options, identity)
        if done is not None:
            return done
        kept = Checkpoints(folder / CHECKPOINTS, digits=8)
        run = _begun(images, options, kept, identity, quiet)
        _trained(run, kept, identity, quiet)
        result = _written(run, folder, identity)
        kept.clear()
        return result


def digest(images: CaptureImages) -> str:
    """SHA-256 of everything of a set that training depends on."""
    parts: list[Any] = [images.intrinsics, images.position, images.attitude, np.asarray(images.held_out)]
    parts += [x for x in (images.points, images.colors) if x is not None]
    texts = [sha256(np.ascontiguousarray(part).tobytes()) for part in parts]
    for image, mask in zip(images.rgb, images.masks, strict=True):
        texts += [str(image.shape), sha256(image.tobytes()), "" if mask is None else sha256(mask.tobytes())]
    return sha256(" ".join(texts))


def _known(folder: Path, options: TrainOptions, identity: dict[str, Any]) -> TrainResult | None:
    """The result where this very training is finished; refuses a folder of another."""
    path = folder / IDENTITY
    if not path.exists():
        if (folder / CHECKPOINTS).exists() or (folder / REPORT).exists():
            raise AirworthyError(f"{str(folder)!r} holds results but no {IDENTITY}; choose another folder.")
        write_json(path, identity)
        return None
    before = read_json(path)
    if not isinstance(before, dict) or not isinstance(before.get("options"), dict):
        raise AirworthyError(f"{str(path)!r} does not describe a training; choose another folder.")
    changed = options.differences(before["options"])
    if changed or before.get("images") != identity["images"]:
        what = "; ".join(changed) or "its images were others"
        raise AirworthyError(f"{str(folder)!r} holds another training ({what}); choose another folder, or ask for the same.")
    return _result(folder, read_json(folder / REPORT)) if (folder / REPORT).exists() else None


def _result(folder: Path, report: dict[str, Any]) -> TrainResult:
    numbers = (report[name] for name in ("gaussians", "steps", "seconds", "psnr_db", "ssim", "held_out"))
    return TrainResult(folder / report["splats"], folder / REPORT, *numbers)


def _begun(
    images: CaptureImages, options: TrainOptions, kept: Checkpoints, identity: dict[str, Any], quiet: bool
) -> TrainingRun:
    """From the newest checkpoint, or anew."""
    saved = kept.newest()
    if saved is not None:
        from airworthy.scenes.splats.record import Splats

        nothing = np.zeros((1, 3), np.float32)
        dummy = Splats(nothing, np.array([[0.0, 0.0, 0.0, 1.0]]), nothing + 1.0, np.zeros(1), nothing[:, None])
        run = TrainingRun(images, options, dummy)
        run.restore(saved.number, dict(saved.arrays), dict(saved.notes))
        _say(quiet, f"Going on after step {saved.number:,} of {options.steps:,}.")
        return run
    start = time.perf_counter()
    splats, words = first_splats(images[images.training], options, quiet)
    run = TrainingRun(images, options, splats)
    run.notes |= {"start": words, "seconds": time.perf_counter() - start}
    _say(quiet, f"Gaussians at first: {words}.")
    _save(run, kept, identity)
    return run


def _save(run: TrainingRun, kept: Checkpoints, identity: dict[str, Any]) -> None:
    # Everything random is a function of the seed and the step: that is the whole state of the generators.
    random = {"seed": run.options.seed, "step": run.step}
    kept.save(Checkpoint(run.step, run.save(), run.notes), {"step": run.step, "random": random, **identity})


def _trained(run: TrainingRun, kept: Checkpoints, identity: dict[str, Any], quiet: bool) -> None:
    """All steps that are left, saving now and then, and when asked to stop."""
    o, since = run.options, time.perf_counter()
    saved = since

    def save() -> None:
        nonlocal since, saved
        now = time.perf_counter()
        run.notes["seconds"] += now - since
        _save(run, kept, identity)
        since, saved = now, time.perf_counter()

    with stoppable() as stopped:
        for _ in progress(range(run.step, o.steps), "Training", o.steps - run.step, quiet=quiet):
            run.advance()
            if run.step % o.judge_every == 0 or run.step == o.steps:
                _judge(run, quiet)
            if stopped() or time.perf_counter() - saved > o.checkpoint_seconds:
                save()
                if stopped():
                    return
    run.notes["seconds"] += time.perf_counter() - since


def _judge(run: TrainingRun, quiet: bool) -> None:
    found = run.judge()
    psnr, ssim = (float(np.mean([getattr(one, name) for one in found])) for name in ("psnr", "ssim"))
    run.notes["judged"].append([run.step, psnr, ssim])
    loss = run.notes["loss"][-1][1] if run.notes["loss"] else float("nan")
    what = "held-out" if len(run.images.judging) else "trained-on"
    _say(
        quiet,
        f"step {run.step:,} of {run.options.steps:,}: loss {loss:.4f}, PSNR {psnr:.2f} dB, SSIM {ssim:.3f} on {len(found)} "
        f"{what} images, {len(run.optimizer):,} gaussians",
    )


def _written(run: TrainingRun, folder: Path, identity: dict[str, Any]) -> TrainResult:
    found: list[Judged] = run.judge()
    splats = run.optimizer.splats()
    path = write_splats(splats, folder / f"splats.{run.options.container}")
    report = {
        "splats": path.name,
        "gaussians": len(splats),
        "degree": splats.degree,
        "steps": run.step,
        "seconds": round(run.notes["seconds"], 1),
        "psnr_db": float(np.mean([one.psnr for one in found])),
        "worst_psnr_db": min(one.psnr for one in found),
        "ssim": float(np.mean([one.ssim for one in found])),
        "trained_on": len(run.images.training),
        "held_out": len(run.images.judging),
        "start": run.notes["start"],
        "metric": run.images.metric,
        "judged": [{"name": one.name, "psnr_db": one.psnr, "ssim": one.ssim} for one in found],
        "skipped": list(run.images.skipped),
        "curves": {"loss": run.notes["loss"], "held_out": run.notes["judged"]},
        **identity,
    }
    write_training_report(folder / PAGE, report, found, run.images)
    # Last: where it lies, all is done.
    write_json(folder / REPORT, report)
    return _result(folder, report)


def _say(quiet: bool, text: str) -> None:
    if not quiet:
        print(text, file=sys.stderr, flush=True)
