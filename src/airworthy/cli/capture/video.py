"""`airworthy capture video` and `airworthy capture film`: a place from a film, and films to try it on."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any

from tyro.conf import OmitArgPrefixes, Positional

from airworthy.capture.filming.film import FilmOptions
from airworthy.capture.video.options import CaptureVideoOptions
from airworthy.capture.video.run import VideoResult, capture_video
from airworthy.cli.common import emit_json, show_table
from airworthy.core.jobs.progress import command_line

__all__ = ["CaptureFilmConfig", "VideoConfig", "film", "video"]

INTERRUPTED = 130


@dataclass(frozen=True)
class CaptureFilmConfig:
    """What to film."""

    scene: Positional[str]
    """NAME[:INDEX][@SEED] (`airworthy scenes` lists them), or the path of a scene."""
    out: Path = Path("film.mp4")
    """Film to write (.mp4), or a folder of JPEGs; the truth is written beside it."""
    film: OmitArgPrefixes[FilmOptions] = field(default_factory=FilmOptions)
    """How."""
    json: bool = False
    """Print JSON, and no progress."""


@dataclass(frozen=True)
class VideoConfig:
    """Which films, and what to make of them."""

    inputs: Positional[tuple[Path, ...]]
    """Films, and folders of photographs, all of one place."""
    out: Path = Path("place")
    """Folder for everything; a stopped run goes on there."""
    video: OmitArgPrefixes[CaptureVideoOptions] = field(default_factory=CaptureVideoOptions)
    """How."""
    threads: int = 0
    """Of the CPU for finding poses; 0: all it has."""
    json: bool = False
    """Print JSON, and no progress."""


def film(config: CaptureFilmConfig) -> int:
    """Film a scene, and say where it lies."""
    from airworthy.capture.filming.film import render_film
    from airworthy.scenes import scene

    try:
        truth = render_film(scene(config.scene), config.out, config.film, quiet=config.json)
    except KeyboardInterrupt:
        kept = "its finished pictures are kept" if not config.out.suffix else "nothing was written"
        print(f"Stopped; {kept}.", file=sys.stderr)
        return INTERRUPTED
    if config.json:
        emit_json({"film": config.out, "truth": truth, "frames": config.film.count})
    else:
        made = f"{quote(str(config.out))} --out {quote(f'{config.out.stem}_place')}"
        print(f"Wrote {config.out} and {truth}. Next: airworthy capture video {made}")
    return 0


def video(config: VideoConfig) -> int:
    """Make a place of films, and say what came of it."""
    words = replace(config, json=False, threads=0)
    command = command_line("airworthy capture video", _flat(words), positional=("inputs",))
    try:
        done = capture_video(
            config.inputs, config.out, config.video, threads=config.threads, command=command, quiet=config.json
        )
    except KeyboardInterrupt:
        print(
            f"Stopped; what is done is kept in {str(config.out)!r}, and the same command goes on from there.", file=sys.stderr
        )
        return INTERRUPTED
    if config.json:
        emit_json({"out": config.out, **done.summary})
        return 0
    _show(done)
    return 0


def _flat(config: VideoConfig) -> Any:
    """Return the same words as one record, whose fields are written without a prefix."""
    from dataclasses import fields as fields_of
    from dataclasses import make_dataclass

    own = {item.name: getattr(config, item.name) for item in fields_of(config) if item.name != "video"}
    options = {item.name: (item.type, item.default) for item in fields_of(config.video)}
    columns: list[Any] = [("inputs", Any), ("out", Any, field(default=Path("place")))]
    columns += [(name, Any, field(default=default)) for name, (_, default) in options.items()]
    made = make_dataclass("VideoWords", columns, frozen=True)
    return made(own["inputs"], own["out"], **asdict(config.video))


def _show(done: VideoResult) -> None:
    found = done.summary
    camera = found["cameras"][0]
    rows: list[tuple[str, object]] = [
        ("pictures with a pose", f"{found['registered']} of {found['pictures']}"),
        ("points", found["points"]),
        ("reprojection [px]", found["reprojection_px"]),
        ("focal length [px]", camera["focal_px"]),
        ("metric", "yes" if found["metric"] else "no"),
    ]
    if found["splats"] is not None:
        rows += [("gaussians", found["gaussians"]), ("PSNR [dB]", found["psnr_db"]), ("SSIM", found["ssim"])]
    rows.append(("minutes", sum(found["seconds"].values()) / 60.0))
    show_table(str(done.folder), ("", ""), rows)
    print(f"Wrote {done.report}.")
    for line in found["warnings"]:
        print(f"Note: {line}")
    depth = found.get("depth")
    if done.place is not None and depth is not None and not depth["believed"]:
        print(f"Next: look at {quote(str(done.report))}: what would be flown in is not what was filmed.")
    elif done.place is not None:
        print(f"Next: airworthy fly --scene {quote(str(done.place))}; airworthy view {quote(str(done.place))}")
    elif done.splats is not None:
        print(f"Next: airworthy view {quote(str(done.splats))}")
