"""Training of splats from posed images: `train_splats`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture.record import CaptureImages
from airworthy.capture.training.options import TrainOptions
from airworthy.capture.training.run import HeldOutQuality, TrainingRun, first_splats
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import lock_folder, read_json, sha256, sha256_file, write_json, write_text
from airworthy.core.jobs.checkpoints import Checkpoint, Checkpoints
from airworthy.core.jobs.progress import progress, stoppable
from airworthy.reports.page import page_of
from airworthy.reports.pictures import data_uri, fitted
from airworthy.scenes.splats import write_splats

__all__ = ["TrainOptions", "TrainResult", "curve", "train_splats", "write_training_report"]

# -----------------------------------------------------------------------------------------------------------------------------
# The page that shows what a training came to: held-out images beside what the splats make of them, and curves.

_SHOWN = 8
"""Images on the page: from the worst to the best."""
_WIDTH = 480
_CURVE = (520, 190)
_MARGIN = (58, 14, 30, 14)
"""Left, right, bottom, top."""


def write_training_report(
    path: Path, report: Mapping[str, Any], found: Sequence[HeldOutQuality], images: CaptureImages
) -> None:
    """Write the page.

    Args:
        path: File to write.
        report: What `report.json` holds.
        found: The judged images.
        images: All of them.
    """
    ordered = sorted(found, key=lambda one: one.psnr)
    some = [ordered[k] for k in np.unique(np.linspace(0, len(ordered) - 1, min(_SHOWN, len(ordered))).astype(int))]
    curves = report["curves"]
    page = page_of(
        "airworthy.capture.training",
        "training.html.j2",
        report=report,
        rows=[_row(one, images) for one in some],
        curves=[
            ("Loss", "mean of 100 steps", curve([(s, v) for s, v in curves["loss"]], "Loss over steps")),
            ("PSNR [dB]", _of(report), curve([(s, p) for s, p, _ in curves["held_out"]], "PSNR over steps")),
            ("SSIM", _of(report), curve([(s, v) for s, _, v in curves["held_out"]], "Structural similarity over steps")),
        ],
        judged="held-out" if report["held_out"] else "trained-on",
        minutes=f"{report['seconds'] / 60.0:.1f}",
    )
    write_text(path, page)


def _of(report: Mapping[str, Any]) -> str:
    return "mean of the held-out images" if report["held_out"] else "mean of some images that were trained on"


def _row(one: HeldOutQuality, images: CaptureImages) -> dict[str, Any]:
    k = images.names.index(one.name)
    truth, mask = images.rgb[k], images.masks[k]
    shown = np.clip(one.image, 0.0, 1.0)
    off = np.clip(3.0 * np.abs(shown - truth / np.float32(255.0)), 0.0, 1.0)
    off = off if mask is None else off * mask[..., None]
    pictures = [truth, *(np.asarray(255.0 * part + 0.5, np.uint8) for part in (shown, off))]
    return {"name": one.name, "psnr": one.psnr, "ssim": one.ssim, "images": [data_uri(fitted(p, _WIDTH)) for p in pictures]}


def curve(points: Sequence[tuple[float, float]], description: str) -> str:
    """Return a line as inline SVG, with the extremes of both axes; empty where there are fewer than two points."""
    if len(points) < 2:
        return ""
    x, y = np.array(points, np.float64).T
    (width, height), (left, right, bottom, top) = _CURVE, _MARGIN
    low, high = float(y.min()), float(y.max())
    spread = max(high - low, 1e-12)
    across = left + (x - x[0]) / max(x[-1] - x[0], 1e-12) * (width - left - right)
    down = top + (high - y) / spread * (height - top - bottom)
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
    digits = max(0, 2 - int(np.floor(np.log10(spread)))) if spread > 1e-9 else 3
    label = 'font-size="14" fill="var(--muted)" font-family="var(--sans)"'
    rules = "".join(
        f'<line x1="{left}" x2="{width - right}" y1="{at:.1f}" y2="{at:.1f}" stroke="var(--grid)"/>'
        f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end" {label}>{value:.{min(digits, 4)}f}</text>'
        for value, at in ((v, top + (high - v) / spread * (height - top - bottom)) for v in np.linspace(low, high, 3))
    )
    ends = "".join(
        f'<text x="{at:.1f}" y="{height - 8}" text-anchor="{anchor}" {label}>{int(value):,}</text>'
        for value, at, anchor in ((x[0], left, "start"), (x[-1], width - right, "end"))
    )
    drawn = f'<polyline points="{line}" fill="none" stroke="var(--flown)" stroke-width="1.6" stroke-linejoin="round"/>'
    return f'<svg viewBox="0 0 {width} {height}" role="img"><title>{description}</title>{rules}{ends}{drawn}</svg>'


# -----------------------------------------------------------------------------------------------------------------------------

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
    """Return the SHA-256 of everything of a set that training depends on."""
    parts: list[Any] = [images.intrinsics, images.position, images.attitude, np.asarray(images.held_out)]
    parts += [x for x in (images.points, images.colors) if x is not None]
    # Exposures are learnt of photographs.
    parts += [np.zeros(1)] if images.rendered else []
    texts = [sha256(np.ascontiguousarray(part).tobytes()) for part in parts]
    for image, mask in zip(images.rgb, images.masks, strict=True):
        texts += [str(image.shape), sha256(image.tobytes()), "" if mask is None else sha256(mask.tobytes())]
    return sha256(" ".join(texts))


def _known(folder: Path, options: TrainOptions, identity: dict[str, Any]) -> TrainResult | None:
    """Return the result where this very training is finished; refuses a folder of another."""
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
    return _finished(folder) if (folder / REPORT).exists() else None


def _finished(folder: Path) -> TrainResult:
    """Return the result of a finished training; refuses one whose splats are not those that were trained."""
    anew = f"put it back from a copy, or delete {str(folder)!r}, which trains anew"
    try:
        report = read_json(folder / REPORT)
        result = _result(folder, report)
    except AssetError as error:
        raise AirworthyError(f"{str(error).rstrip('.')}: {anew}.") from error
    except (KeyError, TypeError) as error:
        raise AirworthyError(f"{str(folder / REPORT)!r} does not tell of a finished training: {anew}.") from error
    if not result.splats.is_file():
        raise AirworthyError(f"The splats {str(result.splats)!r} that were trained are gone: {anew}.")
    # Reports of before have no digest.
    digest, size = report.get("splats_sha256"), report.get("splats_bytes")
    if digest is not None and sha256_file(result.splats) != digest:
        found = result.splats.stat().st_size
        said = f"{found:,} bytes, {size:,} when they were trained" if found != size else "as many bytes, and others"
        raise AirworthyError(f"The splats {str(result.splats)!r} are damaged ({said}): {anew}.")
    return result


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
    # By training images alone: held-out ones must not place gaussians either.
    splats, origin = first_splats(images[images.training], options, quiet)
    run = TrainingRun(images, options, splats)
    run.notes |= {"start": origin, "seconds": time.perf_counter() - start}
    _say(quiet, f"Gaussians at first: {origin}.")
    _save(run, kept, identity)
    return run


def _save(run: TrainingRun, kept: Checkpoints, identity: dict[str, Any]) -> None:
    # Everything random is a function of the seed and the step: that is the whole state of the generators.
    random = {"seed": run.options.seed, "step": run.step}
    kept.save(Checkpoint(run.step, run.save(), run.notes), {"step": run.step, "random": random, **identity})


def _trained(run: TrainingRun, kept: Checkpoints, identity: dict[str, Any], quiet: bool) -> None:
    """Take all steps that are left, saving now and then, and when asked to stop."""
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
                _evaluate(run, quiet)
            if stopped() or time.perf_counter() - saved > o.checkpoint_seconds:
                save()
                if stopped():
                    return
    run.notes["seconds"] += time.perf_counter() - since


def _evaluate(run: TrainingRun, quiet: bool) -> None:
    found = run.evaluate()
    psnr, ssim = (float(np.mean([getattr(one, name) for one in found])) for name in ("psnr", "ssim"))
    run.notes["judged"].append([run.step, psnr, ssim])
    loss = run.notes["loss"][-1][1] if run.notes["loss"] else float("nan")
    what = "held-out" if len(run.images.held_out_ids) else "trained-on"
    _say(
        quiet,
        f"step {run.step:,} of {run.options.steps:,}: loss {loss:.4f}, PSNR {psnr:.2f} dB, SSIM {ssim:.3f} on {len(found)} "
        f"{what} images, {len(run.optimizer):,} gaussians",
    )


def _written(run: TrainingRun, folder: Path, identity: dict[str, Any]) -> TrainResult:
    found: list[HeldOutQuality] = run.evaluate()
    splats = run.final_splats()
    source = run.images.source
    # SPZ has no room for comments; the report holds the frame all the same.
    told = source if run.options.container == "ply" else None
    path = write_splats(splats, folder / f"splats.{run.options.container}", source=told)
    report = {
        "splats": path.name,
        "splats_bytes": path.stat().st_size,
        "splats_sha256": sha256_file(path),
        "gaussians": len(splats),
        "degree": splats.degree,
        "steps": run.step,
        "seconds": round(run.notes["seconds"], 1),
        "psnr_db": float(np.mean([one.psnr for one in found])),
        "worst_psnr_db": min(one.psnr for one in found),
        "exposure_fitted": run.exposed,
        "psnr_unfitted_db": float(np.mean([one.psnr_unfitted for one in found])),
        "ssim": float(np.mean([one.ssim for one in found])),
        "trained_on": len(run.images.training),
        "held_out": len(run.images.held_out_ids),
        "start": run.notes["start"],
        "metric": run.images.metric,
        "capture_to_place": {
            "scale": source.scale,
            "rotation_xyzw": list(source.rotation),
            "translation": list(source.translation),
        },
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
