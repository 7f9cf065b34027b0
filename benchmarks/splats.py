"""How fast Gaussian splats are rendered on a CPU or a GPU: whole frames, and the part of each stage.

    python benchmarks/splats.py                     about two minutes on two cores
    python benchmarks/splats.py --file scene.ply    a scene of your own beside them (several files: parts of one scene)
    python benchmarks/splats.py --device cuda:0     on a GPU, beside gsplat where it is installed

Ten fixed cameras each in three places, at 640x360 and, as SOUS VIDE's policy sees them, at 224x224:

* `room200k`, made from a seed: 200,000 Gaussians of degree 0: 100,000 on the walls, floor and ceiling of a room of
  12 x 8 x 3.5 m (standard deviations around 4 cm, log-normal, one third as thick), 80,000 on 40 balls and boxes in it (2.5 cm),
  20,000 faint ones in the air (10 cm), as training leaves them; half of those on surfaces are nearly opaque, the others
  anything. Every ray ends at something. The cameras stand on a ring in it and look across.
* `hall`, the default scene: likewise from a ring in its middle.
* `sign`, a capture of 542,104 Gaussians of degree 2 (from AIRWORTHY_DATA): from a ring around it.

Then 256 cameras of 224x224 in one call, and the policy's view rendered directly beside rendering, resizing and cropping.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import quiet_warp
from airworthy.splats import PolicyView, SplatRenderer
from airworthy.splats.cameras import RenderRequest, camera_view
from airworthy.splats.policy_view import CAMERA_INTRINSICS
from benchmarks import hardware
from benchmarks.splat_scenes import CAMERAS, Place, Poses, places, ring, room_cloud

__all__ = ["LENSES", "main", "measure", "ring", "room_cloud"]

SIZES = ((640, 360), (224, 224))
LENSES = {SIZES[0]: CAMERA_INTRINSICS, SIZES[1]: tuple(PolicyView().intrinsics().tolist())}
"""The camera of SOUS VIDE's drone, and the same seen through its policy's resize and crop: fx, fy, cx, cy [px]."""
BEFORE = {"Numba tiles, whole frame": 5.1, "plain Warp kernel, raster alone": 0.7, "16 lanes in Warp, raster alone": 20.8}
"""Measured before this renderer was written, in a cloud of 200,000 Gaussians at 640x360 on two cores [1/s]."""
MANY = 256


def measure(renderer: Any, size: tuple[int, int], poses: Poses, rounds: int) -> dict[str, Any]:
    """Frames per second of ten single frames in turn, of the ten in one call, and the stages of the single frames."""
    lens = LENSES[size]
    where, attitude = poses

    def each() -> None:
        for k in range(len(where)):
            renderer.render(*size, lens, where[k : k + 1], attitude[k : k + 1], channels=("rgb",))

    single = _seconds(each, rounds) / len(where)
    used = _processor_seconds(each, rounds) / len(where)
    together = _seconds(lambda: renderer.render(*size, lens, where, attitude, channels=("rgb",)), rounds) / len(where)
    found: dict[str, Any] = {"frames_per_second": 1.0 / single, "frames_per_second_batch": 1.0 / together}
    found["processor_ms"] = 1e3 * used
    if isinstance(renderer, SplatRenderer) and renderer.device == "cpu":
        found["stages_ms"] = _stages(renderer, size, poses, rounds)
    return found


def _stages(renderer: SplatRenderer, size: tuple[int, int], poses: Poses, rounds: int) -> dict[str, float]:
    """Milliseconds per frame of each stage; binning is collecting per band of tiles and dealing out to tiles."""
    engine: Any = renderer._engine
    image = {"rgb": np.empty((1, size[1], size[0], 3), np.float32)}
    total = dict.fromkeys(("projection", "binning", "sorting", "raster"), 0.0)
    for k in range(len(poses[0])):
        camera = (*size, LENSES[size], poses[0][k : k + 1], poses[1][k : k + 1])
        asked = camera_view(renderer._spans, RenderRequest(*camera, channels=("rgb",)))
        total["projection"] += _seconds(lambda asked=asked: engine.project(asked), rounds)
        parts = {
            stage: _seconds(lambda asked=asked, s=stage: engine.arrange(asked, s), rounds) for stage in ("collect", "sort")
        }
        whole = _seconds(lambda asked=asked: engine.arrange(asked), rounds)
        total["sorting"] += parts["sort"] - parts["collect"]
        total["binning"] += whole - parts["sort"] + parts["collect"]
        total["raster"] += _seconds(lambda asked=asked: engine.raster(asked, image), rounds)
    return {name: 1e3 * seconds / len(poses[0]) for name, seconds in total.items()}


def many_cameras(renderer: Any, poses: Poses, rounds: int) -> float:
    """Images per second of 256 cameras of 224x224 in one call: the ten, each a little farther along every time round.

    Ours stay on the device.
    """
    turns = np.arange(MANY)
    where = poses[0][turns % CAMERAS] + 0.002 * (turns // CAMERAS)[:, None]
    attitude = poses[1][turns % CAMERAS]
    render = renderer.render_on_device if isinstance(renderer, SplatRenderer) else renderer.render

    def call() -> None:
        render(*SIZES[1], LENSES[SIZES[1]], where, attitude, channels=("rgb",))
        if renderer.device != "cpu":
            quiet_warp().synchronize_device(renderer.device)

    return MANY / _seconds(call, max(1, rounds // 2), 1)


def policy_view(renderer: SplatRenderer, poses: Poses, rounds: int) -> dict[str, float]:
    """Policy images per second, rendered directly, and rendered at 640x360, resized and cropped."""
    view = PolicyView()
    one = [(poses[0][k : k + 1], poses[1][k : k + 1]) for k in range(len(poses[0]))]

    def direct() -> None:
        for pose in one:
            view.render(renderer, *pose, channels=("rgb",))

    def twice() -> None:
        for pose in one:
            view.of(renderer.render(*SIZES[0], CAMERA_INTRINSICS, *pose, channels=("rgb",))["rgb"])

    return {"direct": len(one) / _seconds(direct, rounds), "resized": len(one) / _seconds(twice, rounds)}


def _seconds(call: Callable[[], Any], rounds: int, warm: int = 3) -> float:
    for _ in range(warm):
        call()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return median(taken)


def _processor_seconds(call: Callable[[], Any], rounds: int) -> float:
    """Of all threads of this process, least of some rounds: what a busy machine changes little."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return min(taken)


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu or a CUDA device")
    parser.add_argument("--cores", type=int, default=2, help="cores to use")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions; the median counts")
    parser.add_argument("--file", type=Path, nargs="*", default=[], help="splat files to render beside the clouds")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    cores = hardware.use_cores(options.cores)
    machine = hardware.describe(cores)
    print("\n".join(f"{key:22} {value}" for key, value in machine.items()))
    results: dict[str, Any] = {"hardware": machine, "scenes": {}}
    for place in places(options.file):
        print(f"\n{place.name}: {len(place.splats)} Gaussians of degree {place.splats.degree}", flush=True)
        results["scenes"][place.name] = _measured(place, options.device, len(cores), options.rounds)
    if options.out:
        options.out.write_text(json.dumps(results, indent=2) + "\n")
    return 0


def _measured(place: Place, device: str, threads: int, rounds: int) -> dict[str, Any]:
    renderer = SplatRenderer(place.splats, device, threads)
    beside = _beside(place, device)
    found: dict[str, Any] = {}
    for index, size in enumerate(SIZES):
        row = found["x".join(map(str, size))] = measure(renderer, size, place.poses, rounds)
        _print_row(size, row, place.aims and place.aims[index])
        if place.name == "room200k" and device == "cpu" and index == 0:
            _print_before(row)
        if beside is not None:
            row["gsplat"] = measure(beside, size, place.poses, rounds)
            _print_row(size, row["gsplat"], None, "gsplat ")
    found["images_per_second_256"] = many_cameras(renderer, place.poses, rounds)
    print(f"  {MANY} cameras of 224x224 in one call: {found['images_per_second_256']:.0f} images/s")
    if beside is not None:
        found["images_per_second_256_gsplat"] = many_cameras(beside, place.poses, rounds)
        print(f"  the same by gsplat: {found['images_per_second_256_gsplat']:.0f} images/s")
    view = found["policy_view"] = policy_view(renderer, place.poses, rounds)
    print(
        f"  policy's view: {view['direct']:.1f} images/s directly, {view['resized']:.1f} by 640x360, resizing and cropping"
        f" ({view['direct'] / view['resized']:.1f} times as many)"
    )
    return found


def _beside(place: Place, device: str) -> Any:
    """gsplat's renderer of the same cloud, on a GPU and where it is installed."""
    if device == "cpu":
        return None
    try:
        from airworthy.splats.gsplat_backend import GsplatRenderer

        return GsplatRenderer(place.splats, device)
    except (AirworthyError, ImportError) as error:
        print(f"  gsplat: skipped; {error}")
        return None


def _print_row(size: tuple[int, int], found: dict[str, Any], aim: float | None, who: str = "") -> None:
    print(
        f"  {who}{size[0]}x{size[1]}: {found['frames_per_second']:.1f} frames/s one by one, "
        f"{found['frames_per_second_batch']:.1f} in one call of {CAMERAS}"
        + ("" if aim is None else f" (aim {aim:g})")
        + f"; {found['processor_ms']:.1f} ms of processor time per frame"
    )
    stages = found.get("stages_ms", {})
    whole = sum(stages.values()) or 1.0
    if stages:
        print("    " + ", ".join(f"{name} {ms:.2f} ms ({100.0 * ms / whole:.0f} %)" for name, ms in stages.items()), flush=True)


def _print_before(found: dict[str, Any]) -> None:
    raster = 1e3 / found["stages_ms"]["raster"]
    for name, before in BEFORE.items():
        now = raster if "alone" in name else found["frames_per_second"]
        print(f"    {now / before:.1f} times {name}: {now:.1f} against {before:g} before")


if __name__ == "__main__":
    sys.exit(main())
