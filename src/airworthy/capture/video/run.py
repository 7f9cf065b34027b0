"""From a film to a place: `airworthy capture video`.

video.json           which films, what was chosen; written first
frames.json, images/ the pictures that were taken, upright
masks.json, masks/   what moves by itself in them, black
colmap/, sparse/, reconstruction.json   poses and points; the folder is a COLMAP set that all other commands read
alignment.json, alignment.html   the similarity into metres and level, its intervals, and what told them
trained_as.json      the options of scale and training that splats/ was begun with
splats/              the training, a folder of its own; in transients/ masks of what passes by
place/               what can be flown in: known free space, bounds, start, goal, contact
seconds.json         how long each step took
report.html          what it all stands on
summary.json         figures; written last: where it lies, all is done
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

from airworthy.capture.alignment.align import align_capture, aligned
from airworthy.capture.alignment.markers import SIDE
from airworthy.capture.alignment.page import write_alignment_page
from airworthy.capture.images import read_capture
from airworthy.capture.places.place import PlaceOptions, write_place
from airworthy.capture.record import CaptureImages
from airworthy.capture.training.train import TrainResult, train_splats
from airworthy.capture.video.advice import judged_reconstruction
from airworthy.capture.video.colmap_process import LOSS_PX
from airworthy.capture.video.decoding import open_source
from airworthy.capture.video.evidence import (
    coverage_map,
    depth_against_leftovers,
    poses_by_leftovers,
    read_leftovers,
    shutter_of,
)
from airworthy.capture.video.frames import LARGER, read_frames_record, take_frames
from airworthy.capture.video.mirrors import mirror_walls
from airworthy.capture.video.moving import write_masks
from airworthy.capture.video.options import CaptureVideoOptions, VideoPlan
from airworthy.capture.video.reconstruction import LEFTOVERS, reconstruct
from airworthy.capture.video.report import write_video_report
from airworthy.capture.video.transients import with_transients_masked
from airworthy.capture.writer import ALIGNMENT
from airworthy.core.errors import AirworthyError
from airworthy.core.files import lock_folder, read_json, sha256, sha256_file, write_json
from airworthy.core.jobs import differences, refuse_foreign
from airworthy.core.jobs.block_store import plain
from airworthy.scenes.splats import read_splats

__all__ = ["IDENTITY_FILE", "SUMMARY_FILE", "ScaledCapture", "VideoResult", "capture_video", "scaled_capture"]

IDENTITY_FILE, SUMMARY_FILE, SECONDS_FILE, REPORT_FILE = "video.json", "summary.json", "seconds.json", "report.html"
ALIGNMENT_PAGE, SPLATS_FOLDER, PLACE_FOLDER = "alignment.html", "splats", "place"
TRANSIENTS_FOLDER = "transients"
TRAINED_FILE = "trained_as.json"
_LATER = ("side", "markers", "dictionary", "marker_on", "known_distance", "train", "train_width", "steps", "gaussians")
"""Options that poses do not depend on: a distance, for one, is measured between points of pictures that have poses. Splats
depend on all of them but `train`, which only asks for them."""
_VERSION = 1


@dataclass(frozen=True)
class VideoResult:
    """What came of a film."""

    folder: Path
    summary: Mapping[str, Any]
    """As in summary.json."""
    report: Path
    splats: Path | None
    """None: not trained."""
    place: Path | None
    """Folder of the scene; None: there is none, since nothing was trained or the warnings say why."""


@dataclass(frozen=True, eq=False)
class ScaledCapture:
    """A capture in the frame of its place, and how it came there."""

    images: CaptureImages
    record: dict[str, Any] | None
    """Of alignment.json; None: the unit is that of the reconstruction."""
    warning: str = ""
    """What to tell a user who has no metres, or metres that hang on a side that nobody measured."""


def capture_video(
    inputs: Sequence[str | Path] | str | Path,
    out: str | Path,
    options: CaptureVideoOptions | None = None,
    *,
    plan: VideoPlan | None = None,
    threads: int = 0,
    command: str = "",
    quiet: bool = True,
) -> VideoResult:
    """Make a place of films or photographs of it, or go on where it was stopped.

    Args:
        inputs: Films, and folders of photographs, all of one place.
        out: Folder.
        options: What is chosen.
        plan: Every number of it instead (`CaptureVideoOptions.plan`).
        threads: Of the CPU for finding poses; 0: all it has.
        command: That does the same again, for page and summary.
        quiet: Say nothing but what is wrong.

    Returns:
        Figures and files.

    Raises:
        AirworthyError: An input cannot be read or shows no place that can be reconstructed (the sentence says what to film
            instead), or the folder holds something else.
        KeyboardInterrupt: It was asked to stop; what is done is kept.
    """
    paths = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    if not paths:
        raise AirworthyError("No film was named: give the path of a film, or of a folder of photographs.")
    if options is not None and plan is not None:
        raise AirworthyError("Both options and a plan were given for a film; a plan has its options in it: give one of them.")
    resolved = plan or (options or CaptureVideoOptions()).plan()
    if threads < 0:
        raise AirworthyError(f"Poses were to be found by {threads} threads; expected 1 or more, or 0 for all that there are.")
    _refuse_own_inputs(paths, Path(out))
    refuse_foreign(out, IDENTITY_FILE)
    with lock_folder(out) as folder:
        run = _VideoRun(paths, folder, resolved, threads, command, quiet)
        run.check_identity()
        return run.result()


def _refuse_own_inputs(inputs: Sequence[str | Path], out: Path) -> None:
    """Refuse a folder in which the photographs themselves would be written over, or stand among what is made of them."""
    kept = out.resolve()
    for path in map(Path, inputs):
        if not path.is_dir():
            continue
        folder = open_source(path).path.resolve()
        if kept in (path.resolve(), folder, *folder.parents):
            raise AirworthyError(
                f"{str(out)!r} was named to keep the place in, and the photographs of {str(path)!r} lie in it, which its own"
                " smaller copies would be written over: choose another --out."
            )


class _VideoRun:
    """The steps, in order; each leaves a file behind and is passed over where that lies already."""

    def __init__(
        self, inputs: list[str | Path], folder: Path, plan: VideoPlan, threads: int, command: str, quiet: bool
    ) -> None:
        self.inputs, self.folder, self.plan = inputs, folder, plan
        self.threads, self.command, self.quiet = threads, command, quiet
        self.notes: list[str] = []

    def check_identity(self) -> None:
        """Refuse a folder of other films or of other options; tell what this one is for."""
        plan = asdict(self.plan)
        options = {name: value for name, value in plan["options"].items() if name not in _LATER}
        before_scale = {"frames": plan["frames"], "side": plan["side"], "reconstruction": plan["reconstruction"]}
        identity = {
            "version": _VERSION,
            "inputs": [_digest(path) for path in self.inputs],
            "plan": {**before_scale, "options": options},
        }
        path = self.folder / IDENTITY_FILE
        if not path.exists():
            write_json(path, identity)
            return
        before = read_json(path)
        changed = differences(before if isinstance(before, dict) else {}, plain(identity))
        if changed:
            raise AirworthyError(
                f"{str(self.folder)!r} holds a place from other films or other options ({'; '.join(changed[:3])}): repeat"
                " those, choose another --out, or delete it."
            )

    def result(self) -> VideoResult:
        """Do what is left, and return all of it."""
        plan, options = self.plan, self.plan.options
        if (self.folder / SUMMARY_FILE).exists():
            held = dict(read_json(self.folder / SUMMARY_FILE))
            if held.get("plan") == plain(asdict(plan)):
                return self._result(held)
        # Before anything is written: alignment, splats and place of one folder tell of the same metres.
        self._check_trained()
        self._check_masks()
        self._step(
            "frames", lambda: take_frames(self.inputs, self.folder, plan.frames, plan.side, options.rule, self.quiet)
        )  # fmt: skip
        if options.masks:
            self._step("masks", lambda: write_masks(self.inputs, self.folder, self.quiet))
        poses = self._step("poses", lambda: reconstruct(self.folder, plan.reconstruction, self.threads, self.quiet))
        record, frames = read_frames_record(self.folder)
        advice = judged_reconstruction(poses, record, frames)
        for line in advice.warnings:
            self._say(line)
        if advice.refused:
            raise AirworthyError(advice.refused)
        leftovers = read_leftovers(self.folder / LEFTOVERS)
        shutter = shutter_of(poses)
        scaled = self._step("scale", lambda: scaled_capture(self.folder, plan, self.quiet))
        for line in filter(None, (shutter.sentence, scaled.warning)):
            self._say(line)
        trained, place, why = None, None, ""
        if options.train:
            write_json(self.folder / TRAINED_FILE, self._later())
            if options.masks:
                kept = self.folder / SPLATS_FOLDER / TRANSIENTS_FOLDER
                images = self._step("transients", lambda: with_transients_masked(scaled.images, kept, options.seed, self.quiet))
                scaled = replace(scaled, images=images)
            trained = self._step(
                "training", lambda: train_splats(scaled.images, self.folder / SPLATS_FOLDER, plan.training, self.quiet)
            )
            place, why = self._step("place", lambda: self._place(scaled, trained, poses))
            self._say(why)
        masked = self._masked(scaled)
        unmasked = "" if masked or not options.masks else "Nothing that moves or passes by was found: nothing is masked."
        self._say(unmasked)
        warnings = [*advice.warnings, *filter(None, (shutter.sentence, scaled.warning, why, unmasked)), *self.notes]
        found = self._summary(poses, record, frames, scaled, trained, leftovers, shutter, warnings)
        summary = found | {"place": place, "masked_pictures": len(masked), "masked_share": masked}
        write_video_report(
            self.folder / REPORT_FILE, self.folder, summary, scaled.images, coverage_map(scaled.images, leftovers)
        )
        write_json(self.folder / SUMMARY_FILE, summary)
        return self._result(dict(read_json(self.folder / SUMMARY_FILE)))

    def _later(self) -> dict[str, Any]:
        options = plain(asdict(self.plan.options))
        return {name: options[name] for name in _LATER if name != "train"}

    def _check_trained(self) -> None:
        """Refuse other metres, or another training, than splats that lie here were begun with."""
        path = self.folder / TRAINED_FILE
        if not path.exists() or not (self.folder / SPLATS_FOLDER).exists():
            return
        before = read_json(path)
        changed = differences(before if isinstance(before, dict) else {}, self._later())
        if changed:
            kept = f"delete {str(self.folder / SPLATS_FOLDER)!r}, which trains anew with the poses that are there"
            raise AirworthyError(
                f"{str(self.folder)!r} holds splats that were trained with other options ({'; '.join(changed[:3])}): repeat"
                f" those, {kept}, or choose another --out."
            )

    def _check_masks(self) -> None:
        """Refuse masks that nothing could find."""
        options = self.plan.options
        if options.masks and not options.train and all(open_source(path).kind != "film" for path in self.inputs):
            raise AirworthyError(
                "Masks were asked for of photographs that are not trained on, and nothing would be masked: motion is seen in"
                " films alone, and what passes by is told while training. Drop --masks, or --no-train."
            )

    def _masked(self, scaled: ScaledCapture) -> dict[str, float]:
        """Return the masked share of each picture in which something is, where masks were asked for."""
        if not self.plan.options.masks:
            return {}
        shares = dict(read_json(self.folder / "masks.json"))["masked"]
        if self.plan.options.train:
            own = zip(scaled.images.names, scaled.images.masks, strict=True)
            shares |= {name: float(1.0 - mask.mean()) for name, mask in own if mask is not None and not mask.all()}
        return dict(sorted(shares.items()))

    def _place(
        self, scaled: ScaledCapture, trained: TrainResult, poses: Mapping[str, Any]
    ) -> tuple[dict[str, Any] | None, str]:
        """Write the place; its record, or None, and what is to be said of it, or why there is none."""
        if not scaled.images.metric:
            whole, trained_in = quote(str(self.folder)), quote(str(self.folder / SPLATS_FOLDER))
            return None, (
                "No place was made, as nobody can tell whether a vehicle fits into one whose scale is not known: give a"
                " --known-distance before training (--no-train first), or take its unit for the metre with `airworthy capture"
                f" place {trained_in} --capture {whole} --assume-metric --out PLACE`."
            )
        root = self.folder / PLACE_FOLDER
        options = PlaceOptions(
            antialiased=self.plan.training.antialiased, background=float(self.plan.training.background == "white")
        )
        splats, walls = read_splats(trained.splats).splats, mirror_walls(poses, scaled.images.source)
        try:
            made = write_place(root, scaled.images, splats, options, name=root.parent.name, walls=walls)
        except AirworthyError as error:
            # Poses and splats are worth having without it.
            return None, f"No place was made: {error}"
        return dict(plain(made.record)), " ".join(made.record["warnings"])

    def _step(self, name: str, work: Callable[[], Any]) -> Any:
        """Do a step, and keep how long it took, all runs together."""
        begun = time.perf_counter()
        try:
            return work()
        finally:
            seconds = self._seconds()
            seconds[name] = round(seconds.get(name, 0.0) + time.perf_counter() - begun, 2)
            write_json(self.folder / SECONDS_FILE, seconds)

    def _seconds(self) -> dict[str, float]:
        """Return how long steps took before; none, with a note, where the file is damaged: nothing else depends on it."""
        path = self.folder / SECONDS_FILE
        if not path.exists():
            return {}
        try:
            found = read_json(path)
            if isinstance(found, dict) and all(type(value) in (int, float) for value in found.values()):
                return found
            reason = "it holds no seconds by the names of steps"
        except AirworthyError as error:
            reason = str(error).rstrip(".")
        note = f"Times of earlier runs in {SECONDS_FILE} were dropped, and are counted anew: {reason}."
        self.notes.append(note)
        self._say(note)
        return {}

    def _say(self, text: str) -> None:
        if not self.quiet and text:
            print(text, file=sys.stderr, flush=True)

    def _result(self, summary: dict[str, Any]) -> VideoResult:
        name = summary["splats"]
        return VideoResult(
            self.folder,
            summary,
            self.folder / REPORT_FILE,
            None if name is None else self.folder / SPLATS_FOLDER / name,
            self.folder / PLACE_FOLDER if summary["place"] is not None else None,
        )

    def _summary(
        self, poses: Mapping[str, Any], record: Mapping[str, Any], frames: list[Any], scaled: ScaledCapture,
        trained: TrainResult | None, leftovers: Mapping[str, Any], shutter: Any, warnings: list[str],
    ) -> dict[str, Any]:  # fmt: skip
        model = poses["models"][0]
        values: dict[str, Any] = {
            "inputs": [source["name"] for source in record["sources"]],
            "command": self.command,
            "plan": plain(asdict(self.plan)),
            "pictures": len(frames),
            "registered": len(model["images"]),
            "components": [len(one["images"]) for one in poses["models"]],
            "points": model["points"],
            "reprojection_px": model["reprojection_px"],
            "track_length": model["track_length"],
            "cameras": model["cameras"],
            "rolling_shutter": {"readout_s": shutter.readout, "half_95_s": shutter.half_95, "rolling": shutter.rolling},
            "metric": scaled.images.metric,
            "alignment": scaled.record,
            "warnings": warnings,
            "splats": None,
        }
        if trained is not None:
            splats = read_splats(trained.splats).splats
            names = [frame.name for frame in frames]
            values |= {
                "splats": trained.splats.name,
                "gaussians": trained.gaussians,
                "psnr_db": trained.psnr,
                "ssim": trained.ssim,
                "held_out": trained.held_out,
                "judged": dict(read_json(trained.report))["judged"],
                "depth": depth_against_leftovers(splats, scaled.images, leftovers, names),
            }
        return values | {"seconds": dict(read_json(self.folder / SECONDS_FILE))}


def _digest(path: str | Path) -> dict[str, str]:
    """Return what tells an input from another: the content, not where it lies."""
    source = open_source(path)
    if source.kind == "film":
        return {"name": source.path.name, "sha256": sha256_file(source.path)}
    return {"name": Path(path).name, "sha256": sha256(" ".join(sha256_file(source.path / name) for name in source.names))}


def scaled_capture(folder: str | Path, plan: VideoPlan, quiet: bool = True) -> ScaledCapture:
    """Return the posed pictures of a reconstruction in the frame of the place: level, and in metres where something tells them.

    Markers are looked for in the pictures at up to twice the size that poses were found in; what is trained on is reduced.

    Args:
        folder: Of the capture.
        plan: Of the film.
        quiet: Show no progress.

    Raises:
        AirworthyError: No image can be used.
    """
    root, warning = Path(folder), ""
    small, full = (read_capture(root, width=width, aligned=False, quiet=quiet) for width in (plan.train_width, None))
    small, full = (replace(images, names=tuple(Path(name).name for name in images.names)) for images in (small, full))
    larger = _larger(root, full, quiet)
    names = [frame.name for frame in read_frames_record(root)[1]]
    poses = poses_by_leftovers(full, read_leftovers(root / LEFTOVERS), names, LOSS_PX)
    try:
        found = align_capture(full, plan.options.aligning(), quiet=quiet, larger=larger, poses=poses)
    except AirworthyError as error:
        # Poses and splats are worth having without metres; other options, or `capture align`, can give them later.
        warning = f"The place has no known scale: {error}"
        try:
            found = align_capture(full, plan.options.aligning(unscaled=True), quiet=quiet, larger=larger, poses=poses)
        except AirworthyError as second:
            # Of an earlier run with other options: nothing tells metres now.
            for name in (ALIGNMENT, ALIGNMENT_PAGE):
                (root / name).unlink(missing_ok=True)
            return ScaledCapture(small, None, f"{warning} Nor is it level: {second}")
    record = found.record(full)
    write_json(root / ALIGNMENT, record)
    write_alignment_page(root / ALIGNMENT_PAGE, found, full)
    if not warning and found.bundle is not None and found.bundle.markers[0].side == SIDE:
        # One default for drawing and for looking: whoever printed another size is told what was taken.
        warning = (
            f"The marker was taken to be {SIDE:g} m wide, as `airworthy capture marker` draws it: measure its black square, and"
            " say --side where it is not."
        )
    # Both were read from one set, so their frames are the same.
    return ScaledCapture(aligned(small, found), record, warning)


def _larger(root: Path, images: CaptureImages, quiet: bool) -> CaptureImages | None:
    """Return larger copies of the same images; None where the film has no more pixels, or one of them cannot be read."""
    if not (root / LARGER).is_dir():
        return None
    found = read_capture(root, width=None, images=LARGER, quiet=quiet)
    found = replace(found, names=tuple(Path(name).name for name in found.names))
    return found if found.names == images.names else None
