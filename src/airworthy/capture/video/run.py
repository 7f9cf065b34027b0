"""From a film to a place: `airworthy capture video`.

video.json           which films, what was chosen; written first
frames.json, images/ the pictures that were taken, upright
masks.json, masks/   what moves by itself in them, black
colmap/, sparse/, reconstruction.json   poses and points; the folder is a COLMAP set that all other commands read
alignment.json, alignment.html   the similarity into metres and level, its intervals, and what told them
trained_as.json      the options of scale and training that splats/ was begun with
steps.json           what each step was made from, and its files, which are held against it before it is passed over
splats/              the training, a folder of its own; in transients/ masks of what passes by
place/               what can be flown in: known free space, bounds, start, goal, contact
seconds.json         how long each step took
report.html          what it all stands on
summary.json         figures; written last: where it lies, all is done
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

from airworthy.capture.alignment.known_distance import check_picks
from airworthy.capture.places.free_space import NoRoomError
from airworthy.capture.places.place import PlaceOptions, write_place
from airworthy.capture.training.train import TrainResult, digest, train_splats
from airworthy.capture.video.advice import judged_depth, judged_reconstruction
from airworthy.capture.video.decoding import open_source
from airworthy.capture.video.evidence import (
    coverage_map,
    depth_against_leftovers,
    read_leftovers,
    shutter_of,
)
from airworthy.capture.video.frames import FRAMES_FILE, IMAGES, LARGER, read_frames_record, take_frames
from airworthy.capture.video.mirrors import mirror_walls
from airworthy.capture.video.moving import MASKS, MASKS_FILE, write_masks
from airworthy.capture.video.options import CaptureVideoOptions, VideoPlan
from airworthy.capture.video.reconstruction import LEFTOVERS, RECONSTRUCTION_FILE, reconstruct
from airworthy.capture.video.report import write_video_report
from airworthy.capture.video.scale import ALIGNMENT_PAGE, ScaledCapture, scaled_capture
from airworthy.capture.video.steps import SECONDS_FILE, FilmSteps, some_of
from airworthy.capture.video.transients import TRANSIENTS_FILE, with_transients_masked
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import lock_folder, read_json, sha256, sha256_file, write_json
from airworthy.core.jobs import differences, refuse_foreign
from airworthy.core.jobs.block_store import digest_of, plain
from airworthy.scenes.splats import read_splats

__all__ = ["IDENTITY_FILE", "SUMMARY_FILE", "VideoResult", "capture_video"]

IDENTITY_FILE, SUMMARY_FILE, REPORT_FILE = "video.json", "summary.json", "report.html"
SPLATS_FOLDER, PLACE_FOLDER, TRANSIENTS_FOLDER, SPARSE_FOLDER = "splats", "place", "transients", "sparse"
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
    """The steps, in order; each leaves files behind and is passed over where they lie whole already."""

    def __init__(
        self, inputs: list[str | Path], folder: Path, plan: VideoPlan, threads: int, command: str, quiet: bool
    ) -> None:
        self.inputs, self.folder, self.plan = inputs, folder, plan
        self.threads, self.command, self.quiet = threads, command, quiet
        self.steps = FilmSteps(folder, quiet)
        self.identity = ""

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
        self.identity = digest_of(identity)
        path = self.folder / IDENTITY_FILE
        before = self._identity_before(path) if path.exists() else None
        if before is None:
            write_json(path, identity)
        else:
            changed = differences(_named(before), _named(plain(identity)))
            if changed:
                raise AirworthyError(
                    f"{str(self.folder)!r} holds a place from other films or other options ({'; '.join(changed[:3])}): repeat"
                    " those, choose another --out, or delete it."
                )
        if not self.steps.whole("identity", self.identity):
            self.steps.keep("identity", self.identity, [IDENTITY_FILE])

    def _identity_before(self, path: Path) -> dict[str, Any] | None:
        """Return what the folder is for; None where its file is damaged and this very run is known to have begun it."""
        try:
            found = read_json(path)
            return found if isinstance(found, dict) else {}
        except AssetError as error:
            if self.steps.made_from("identity") == self.identity:
                self.steps.note(f"{IDENTITY_FILE} was written anew: {error}")
                return None
            raise AirworthyError(
                f"{error} It says which films and options {str(self.folder)!r} is of: choose another --out, or delete that"
                " folder."
            ) from error

    def result(self) -> VideoResult:
        """Do what is left, and return all of it."""
        plan = self.plan
        held = self._finished()
        if held is not None:
            return self._result(held)
        # Before anything is written: alignment, splats and place of one folder tell of the same metres.
        self._check_trained()
        self._check_masks()
        poses = self._poses()
        record, frames = read_frames_record(self.folder)
        advice = judged_reconstruction(poses, record, frames)
        for line in advice.warnings:
            self.steps.say(line)
        if advice.refused:
            raise AirworthyError(advice.refused)
        leftovers = read_leftovers(self.folder / LEFTOVERS)
        shutter = shutter_of(poses)
        self.steps.note_damage("scale")
        scaled = self.steps.timed("scale", lambda: scaled_capture(self.folder, plan, self.steps, self.quiet))
        # What its own page tells of markers and level, a reader of this one wants to know, too.
        notes = (scaled.record or {}).get("notes", ())
        told = [_sentence(note).replace("see the table", f"see {ALIGNMENT_PAGE}") for note in notes]
        of_scale = [*filter(None, (shutter.sentence, scaled.warning)), *told]
        for line in of_scale:
            self.steps.say(line)
        trained, depth, place, bad, why = None, None, None, "", ""
        if plan.options.train:
            scaled, trained = self._trained(scaled)
            depth = depth_against_leftovers(
                read_splats(trained.splats).splats, scaled.images, leftovers, [frame.name for frame in frames]
            )  # fmt: skip
            bad = judged_depth(depth)
            place, why = self.steps.timed("place", lambda: self._place(scaled, trained, poses, bad))
        masked = self._masked(scaled)
        unmasked = "" if masked or not plan.options.masks else "Nothing that moves or passes by was found: nothing is masked."
        # What the place says of itself it has from here.
        why = "" if why == bad else why.removesuffix(bad).rstrip()
        late = [*map(_sentence, scaled.images.skipped), *filter(None, (bad, why, unmasked))]
        for line in late:
            self.steps.say(line)
        warnings = [*advice.warnings, *of_scale, *late, *self.steps.notes]
        found = self._summary(poses, record, frames, scaled, trained, depth, shutter, warnings)
        summary = found | {"place": place, "masked_pictures": len(masked), "masked_share": masked}
        write_video_report(
            self.folder / REPORT_FILE, self.folder, summary, scaled.images, coverage_map(scaled.images, leftovers)
        )
        write_json(self.folder / SUMMARY_FILE, summary)
        self.steps.keep("page", self._page_from(), [REPORT_FILE, SUMMARY_FILE])
        return self._result(dict(read_json(self.folder / SUMMARY_FILE)))

    # ---- What lies in the folder already ------------------------------------------------------------------------------------

    def _finished(self) -> dict[str, Any] | None:
        """Return the summary where all is done, and all that was done lies there whole."""
        path = self.folder / SUMMARY_FILE
        if not path.exists():
            return None
        try:
            held = read_json(path)
        except AssetError as error:
            self.steps.note(f"{SUMMARY_FILE} was written anew: {error}")
            return None
        if not isinstance(held, dict) or held.get("plan") != plain(asdict(self.plan)):
            return None
        wrong = [line for name in self.steps.names for line in self.steps.damaged(name)]
        if self.steps.made_from("page") not in (None, self._page_from()):
            self.steps.note("Masks beside the pictures are others than they were: what depends on them is done again.")
            return None
        return None if wrong else held

    def _poses(self) -> dict[str, Any]:
        """Take pictures, mask what moves in them, and find their poses; what reconstruction.json holds."""
        plan, options, root = self.plan, self.plan.options, self.folder
        self.steps.made(
            "frames", self.identity, FRAMES_FILE,
            lambda: take_frames(self.inputs, root, plan.frames, plan.side, options.rule, self.quiet), self._frame_files,
        )  # fmt: skip
        if options.masks:
            self.steps.made(
                "masks", self.steps.digest("frames"), MASKS_FILE, lambda: write_masks(self.inputs, root, self.quiet),
                lambda: [MASKS_FILE, *(f"masks/{name}.png" for name in read_json(root / MASKS_FILE)["masked"])],
            )  # fmt: skip
        self._check_distances()
        made_from = digest_of(
            {"options": asdict(plan.reconstruction), "pictures": self.steps.digest("frames", "masks")} | self._own_masks()
        )
        return dict(
            self.steps.made(
                "poses", made_from, RECONSTRUCTION_FILE,
                lambda: reconstruct(root, plan.reconstruction, self.threads, self.quiet), self._pose_files,
            )
        )  # fmt: skip

    def _check_distances(self) -> None:
        """Refuse a distance between points of pictures that there are not, before poses and splats take their minutes."""
        sizes = {frame.name: frame.size for frame in read_frames_record(self.folder)[1]}
        for first, second, _ in self.plan.options.known_distance:
            check_picks(sizes, first)
            check_picks(sizes, second)

    def _own_masks(self) -> dict[str, str]:
        """Return what tells masks that somebody laid beside the pictures from others; nothing where there are none."""
        made = self.steps.files("masks")
        own = [path for path in self._inside(MASKS) if path not in made]
        return {"own_masks": sha256(" ".join(f"{path} {sha256_file(self.folder / path)}" for path in own))} if own else {}

    def _page_from(self) -> str:
        return digest_of({"identity": self.identity} | own) if (own := self._own_masks()) else self.identity

    def _frame_files(self) -> list[str]:
        names = [frame.name for frame in read_frames_record(self.folder)[1]]
        copies = [f"{room}/{name}" for room in (IMAGES, LARGER) for name in names]
        return [FRAMES_FILE, *(path for path in copies if (self.folder / path).is_file())]

    def _pose_files(self) -> list[str]:
        leftovers = [LEFTOVERS] if (self.folder / LEFTOVERS).is_file() else []
        return [RECONSTRUCTION_FILE, *leftovers, *self._inside(SPARSE_FOLDER)]

    def _inside(self, name: str) -> list[str]:
        found = (path for path in (self.folder / name).rglob("*") if path.is_file() and not path.name.startswith("."))
        return sorted(path.relative_to(self.folder).as_posix() for path in found)

    # ---- Splats and place ---------------------------------------------------------------------------------------------------

    def _later(self) -> dict[str, Any]:
        options = plain(asdict(self.plan.options))
        return {name: options[name] for name in _LATER if name != "train"}

    def _check_trained(self) -> None:
        """Refuse other metres, or another training, than splats that lie here were begun with."""
        path, splats = self.folder / TRAINED_FILE, self.folder / SPLATS_FOLDER
        if not path.exists() or not splats.exists():
            return
        kept = f"delete {str(splats)!r}, which trains anew with the poses that are there"
        try:
            before = read_json(path)
        except AssetError as error:
            raise AirworthyError(f"{error} It says by which options splats were trained: {kept}.") from error
        changed = differences(before if isinstance(before, dict) else {}, self._later())
        if changed:
            raise AirworthyError(
                f"{str(self.folder)!r} holds splats that were trained with other options ({'; '.join(changed[:3])}): repeat"
                f" those, {kept}, or choose another --out."
            )

    def _trained(self, scaled: ScaledCapture) -> tuple[ScaledCapture, TrainResult]:
        """Train splats of the pictures; these, with what passes by masked where that was asked for, and what came of it."""
        folder, options = self.folder / SPLATS_FOLDER, self.plan.options
        made_from = digest_of({"images": digest(scaled.images), "options": self._later()})
        self._check_splats(folder, made_from)
        write_json(self.folder / TRAINED_FILE, self._later())
        if options.masks:
            images = self.steps.made(
                "transients", made_from, f"{SPLATS_FOLDER}/{TRANSIENTS_FOLDER}/{TRANSIENTS_FILE}",
                lambda: with_transients_masked(scaled.images, folder / TRANSIENTS_FOLDER, options.seed, self.quiet),
                lambda: [f"{SPLATS_FOLDER}/{TRANSIENTS_FOLDER}/{TRANSIENTS_FILE}"],
            )  # fmt: skip
            scaled = replace(scaled, images=images)
        trained = self.steps.timed("training", lambda: train_splats(scaled.images, folder, self.plan.training, self.quiet))
        if not self.steps.whole("training", made_from):
            files = (TRAINED_FILE, f"{SPLATS_FOLDER}/{trained.splats.name}", f"{SPLATS_FOLDER}/{trained.report.name}")
            self.steps.keep("training", made_from, files)
        return scaled, trained

    def _check_splats(self, folder: Path, made_from: str) -> None:
        """Refuse splats that are not as they were trained: that takes longest of all, and a copy may be there."""
        before = self.steps.made_from("training")
        if before is None or not folder.exists():
            return
        wrong = [line for line in self.steps.damaged("training") if not line.startswith(TRAINED_FILE)]
        if before != made_from:
            wrong.append("the pictures, their poses or their scale are others than they were")
        if wrong:
            raise AirworthyError(
                f"The splats in {str(folder)!r} cannot be gone on with ({some_of(wrong)}): put back what was there, or delete"
                " that folder, which trains anew."
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
        shares = dict(read_json(self.folder / MASKS_FILE))["masked"]
        if self.plan.options.train:
            own = zip(scaled.images.names, scaled.images.masks, strict=True)
            shares |= {name: float(1.0 - mask.mean()) for name, mask in own if mask is not None and not mask.all()}
        return dict(sorted(shares.items()))

    def _place(
        self, scaled: ScaledCapture, trained: TrainResult, poses: Mapping[str, Any], doubt: str
    ) -> tuple[dict[str, Any] | None, str]:
        """Write the place; its record, or None, and what is to be said of it, or why there is none."""
        whole, trained_in = quote(str(self.folder)), quote(str(self.folder / SPLATS_FOLDER))
        by_hand = f"airworthy capture place {trained_in} --capture {whole}"
        if not scaled.images.metric:
            return None, (
                "No place was made, as nobody can tell whether a vehicle fits into one whose scale is not known: give a"
                " --known-distance before training (--no-train first), or take its unit for the metre with"
                f" `{by_hand} --assume-metric --out PLACE`."
            )
        options = PlaceOptions(
            antialiased=self.plan.training.antialiased, background=float(self.plan.training.background == "white")
        )
        trained_from = self.steps.made_from("training"), self.steps.digest("training")
        made_from = digest_of(
            {"splats": trained_from, "walls": poses.get("mirror"), "options": asdict(options)}
            | ({"doubt": doubt} if doubt else {})
        )
        self.steps.note_damage("place")
        if self.steps.whole("place", made_from):
            said = self.steps.said("place")
            return said["record"], said["words"]
        root = self.folder / PLACE_FOLDER
        splats, walls = read_splats(trained.splats).splats, mirror_walls(poses, scaled.images.source)
        try:
            made = write_place(root, scaled.images, splats, options, name=root.parent.name, walls=walls, doubt=doubt)
        except NoRoomError as error:
            return None, (
                f"No place was made: {error.found} Film more of it, from several sides; or, for a vehicle smaller than"
                f" {options.radius:g} m in radius, `{by_hand} --radius METRES --out PLACE`."
            )
        except AirworthyError as error:
            # Poses and splats are worth having without it.
            return None, f"No place was made: {error}"
        record, words = dict(plain(made.record)), " ".join(made.record["warnings"])
        self.steps.keep("place", made_from, self._inside(PLACE_FOLDER), {"record": record, "words": words})
        return record, words

    # ---- Times, words, figures ----------------------------------------------------------------------------------------------

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
        trained: TrainResult | None, depth: Mapping[str, Any] | None, shutter: Any, warnings: list[str],
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
            values |= {
                "splats": trained.splats.name,
                "gaussians": trained.gaussians,
                "psnr_db": trained.psnr,
                "ssim": trained.ssim,
                "held_out": trained.held_out,
                "judged": dict(read_json(trained.report))["judged"],
                "depth": {**depth, "believed": not judged_depth(depth)} if depth is not None else None,
            }
        return values | {"seconds": dict(read_json(self.folder / SECONDS_FILE))}


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _named(identity: dict[str, Any]) -> dict[str, Any]:
    """Return an identity whose inputs are told in words."""
    inputs = identity.get("inputs")
    rows = inputs if isinstance(inputs, list) else []
    words = [f"{row.get('name')} ({str(row.get('sha256'))[:8]})" for row in rows if isinstance(row, dict)]
    return {**identity, "inputs": ", ".join(words)} if words else identity


def _digest(path: str | Path) -> dict[str, str]:
    """Return what tells an input from another: the content, not where it lies."""
    source = open_source(path)
    if source.kind == "film":
        return {"name": source.path.name, "sha256": sha256_file(source.path)}
    return {"name": Path(path).name, "sha256": sha256(" ".join(sha256_file(source.path / name) for name in source.names))}
