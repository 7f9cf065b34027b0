"""How well films become poses and places: pictures with a pose, errors of places and focal length, seconds of each step.

    python benchmarks/capture_video.py                          # 60 pictures of three halls, 960 x 540, poses only
    python benchmarks/capture_video.py mid_gate --train --quick # the whole command
    python benchmarks/capture_video.py --fox $AIRWORTHY_DATA/splats/fox_images

Films are rendered once into --work and kept there, as is what is made of them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.capture import best_similarity, read_capture
from airworthy.capture.alignment.similarity import Similarity
from airworthy.capture.filming import FilmOptions, render_film
from airworthy.capture.video import CaptureVideoOptions, capture_video
from airworthy.core import frames
from airworthy.scenes import scene
from benchmarks import hardware

HALLS = ("mid_gate", "flightroom", "backroom")


def main() -> None:
    """Print hardware, then a row for each place."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", default=HALLS)
    parser.add_argument("--work", type=Path, default=Path("runs/capture_video"))
    parser.add_argument("--pictures", type=int, default=60)
    parser.add_argument("--size", type=int, nargs=2, default=(960, 540))
    parser.add_argument("--exposures", type=int, default=4)
    parser.add_argument("--readout", type=float, default=0.0)
    parser.add_argument("--marker-side", type=float, default=0.2)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--steps", type=int, help="of the training; without it, as the command has it")
    parser.add_argument("--gaussians", type=int, help="most of them; without it, as the command has it")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--fox", type=Path, help="folder of the fox photographs, with its transforms.json")
    asked = parser.parse_args()
    print(json.dumps(hardware.describe(sorted(os.sched_getaffinity(0)))))
    if asked.fox is not None:
        report(asked, "fox", asked.fox / "images", None)
        return
    for name in asked.scenes:
        film = asked.work / "films" / name.replace(":", "_")
        options = FilmOptions(
            seconds=float(asked.pictures), rate=1.0, width=asked.size[0], height=asked.size[1], exposures=asked.exposures,
            readout=asked.readout, marker_side=asked.marker_side,
        )  # fmt: skip
        truth = film / "truth.json"
        if not truth.exists():
            render_film(scene(name), film, options, quiet=False)
        report(asked, name, film, json.loads(truth.read_text()))


def report(asked: argparse.Namespace, name: str, photographs: Path, truth: dict[str, Any] | None) -> None:
    """Make the place, and print its figures."""
    out = asked.work / f"{name.replace(':', '_')}{'_quick' if asked.quick else ''}{'_trained' if asked.train else ''}"
    count = len(truth["times"]) if truth else None
    options = CaptureVideoOptions(
        quick=asked.quick, frames=count, train=asked.train, side=asked.marker_side, steps=asked.steps,
        gaussians=asked.gaussians,
    )  # fmt: skip
    begun, spent = time.perf_counter(), processor_seconds()
    done = capture_video(photographs, out, options, threads=asked.threads, quiet=False)
    found = done.summary
    row = {
        "place": name,
        "registered": f"{found['registered']}/{found['pictures']}",
        "reprojection_px": round(found["reprojection_px"], 3),
        "focal_px": round(found["cameras"][0]["focal_px"], 2),
    }
    if truth is not None:
        row |= errors(out, found, truth)
    if found["splats"] is not None:
        row |= {"psnr_db": round(found["psnr_db"], 2), "ssim": round(found["ssim"], 3), "depth": found["depth"]}
    row |= {
        "seconds": found["seconds"],
        "now_s": round(time.perf_counter() - begun, 1),
        "processor_s": round(processor_seconds() - spent, 1),
    }
    print(json.dumps(row))


def processor_seconds() -> float:
    """Seconds of all processors that this process and those it waited for (COLMAP's) have used: alike on a busy machine."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, kinds))


def errors(out: Path, found: dict[str, Any], truth: dict[str, Any]) -> dict[str, float | None]:
    """Errors after the similarity of least squares: of centres [mm], attitudes [degrees], focal length [%]."""
    images = read_capture(out, width=64, up="none", every=0)
    numbers = np.array([int(Path(name).stem) for name in images.names])
    position, attitude = np.array(truth["position"])[numbers], np.array(truth["attitude"])[numbers]
    fit = best_similarity(images.position, position)
    off = np.linalg.norm(fit.points(images.position) - position, axis=1)
    angle = frames.angle_between(frames.multiply(fit.rotation, images.attitude), attitude)
    camera = found["cameras"][0]
    focal = truth["intrinsics"][0] * camera["width"] / truth["size"][0]
    return {
        "centres_mm_rms": round(1e3 * float(np.sqrt(np.square(off).mean())), 2),
        "centres_mm_worst": round(1e3 * float(off.max()), 2),
        "attitude_deg_rms": round(float(np.degrees(np.sqrt(np.square(angle).mean()))), 3),
        "focal_error_percent": round(100.0 * (camera["focal_px"] / focal - 1.0), 3),
    } | scale_and_level(found["alignment"], fit)


def scale_and_level(record: dict[str, Any] | None, fit: Similarity) -> dict[str, float | None]:
    """How far scale [%] and level [degrees] are off the similarity of the centres, and half of the scale's 95 % interval."""
    if record is None or record["scale_half_95"] is None:
        return {"scale_error_percent": None}
    place = record["capture_to_place"]
    # Both are from the frame of the set's own files; the place's z in the frame of the truth.
    up = frames.rotate(fit.rotation, frames.rotate_inverse(np.array(place["rotation_xyzw"]), np.array([0.0, 0.0, 1.0])))
    return {
        "scale_error_percent": round(100.0 * (place["scale"] / fit.scale - 1.0), 3),
        "scale_half_95_percent": round(100.0 * record["scale_half_95"], 3),
        "level_error_deg": round(float(np.degrees(np.arctan2(np.linalg.norm(up[:2]), up[2]))), 3),
    }


if __name__ == "__main__":
    main()
