"""COLMAP's steps in a process of their own: `python -m airworthy.capture.video.colmap_process PARENT`.

COLMAP ends its whole process where it meets what it does not expect, and does not look for Ctrl-C in its loops. Here both
cost one step, and what is in the database by then is kept. Orders come as lines of JSON on standard input; progress, the
result or what went wrong leave as lines of JSON on standard output; COLMAP's own words go to a log.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture.video.consistency import (
    consistency_record,
    contradictions,
    split_by_contradictions,
    thinnest_cut,
)
from airworthy.capture.video.mirrors import find_mirror, mirror_matches, mirror_record
from airworthy.capture.video.pairs import likely_pairs, likeness, sequential_pairs, visual_words
from airworthy.core.jobs.parent_watch import die_with_parent, watch_parent

__all__ = ["LOSS_PX", "STEPS", "main"]

Progress = Callable[[int, int], None]
_IMAGES_AT_ONCE, _PAIRS_AT_ONCE = 4, 40
_FOCAL = 0.8
"""Over the longer side, where nothing is known: telephones have 0.72 (main camera, photographs) to 0.85 (films, stabilised)."""
_VERIFIED = 30
"""Matches that agree on two views from where on a pair is looked at. COLMAP's 15 let carpets and posters that repeat place two
of 60 pictures of a hall metres off."""
_OFF_PX, LOSS_PX = 2.0, 0.5
"""In the last adjustment: points are dropped that are off by more, and the Cauchy loss bends there. A hall's 60 places are
within 3 mm then, and within 11 mm by COLMAP's own squares."""
_ANGLE_DEG = 1.5
"""Under which rays of a point must meet (COLMAP's own)."""
_EDGE = 0.04
"""Of the width: SIFT finds less at the edge of a picture, and what is not found there says nothing."""
_FEW, _ENOUGH = 0.2, 60
"""A picture with under this share of the median of observations, and under so many (twice the matches that a pair must have),
is not believed to be where it was put. Of 60 pictures of a room two that were taken close before monitors had 131 and 147 of
757, and were within 2 mm."""


def _features(o: dict[str, Any], tell: Progress) -> dict[str, Any]:
    """Find features in all pictures that have none yet.

    The order: `database`, `images`, `masks` (or ""), `groups` of `names`, `model` and `focal` [px] or null, `features`,
    `threads`.
    """
    import pycolmap

    extraction = pycolmap.FeatureExtractionOptions()
    extraction.num_threads = o["threads"]
    extraction.max_image_size = 4096
    extraction.sift.max_num_features = o["features"]
    total = sum(len(group["names"]) for group in o["groups"])
    done = 0
    for group in o["groups"]:
        reader = pycolmap.ImageReaderOptions()
        reader.camera_model = group["model"]
        reader.default_focal_length_factor = _FOCAL
        if group["focal"] is not None:
            reader.camera_params = _parameters(group)
        if o["masks"]:
            reader.mask_path = o["masks"]
        with pycolmap.Database.open(o["database"]) as database:
            known = {image.name: image.camera_id for image in database.read_all_images()}
        for first in range(0, len(group["names"]), _IMAGES_AT_ONCE):
            names = group["names"][first : first + _IMAGES_AT_ONCE]
            cameras = [known[name] for name in group["names"] if name in known]
            # One camera for all of a group, also where the group is done in parts.
            reader.existing_camera_id = cameras[0] if cameras else -1
            pycolmap.extract_features(
                o["database"], o["images"], names, pycolmap.CameraMode.SINGLE, reader, extraction, pycolmap.Device.cpu
            )  # fmt: skip
            if not cameras:
                with pycolmap.Database.open(o["database"]) as database:
                    known = {image.name: image.camera_id for image in database.read_all_images()}
            done += len(names)
            tell(done, total)
    with pycolmap.Database.open(o["database"]) as database:
        counts = {image.name: database.num_keypoints_for_image(image.image_id) for image in database.read_all_images()}
        return {"features": counts, "cameras": database.num_cameras()}


def _parameters(group: dict[str, Any]) -> str:
    focal, width, height = group["focal"], group["width"], group["height"]
    centre = [0.5 * width, 0.5 * height]
    heads = {"SIMPLE_PINHOLE": [focal], "SIMPLE_RADIAL": [focal], "RADIAL": [focal]}
    tails = {"SIMPLE_RADIAL": 1, "RADIAL": 2, "OPENCV": 4}
    values = [*heads.get(group["model"], [focal, focal]), *centre, *[0.0] * tails.get(group["model"], 0)]
    return ",".join(map(repr, map(float, values)))


def _pairs(o: dict[str, Any], tell: Progress) -> dict[str, Any]:
    """Choose pairs: neighbours in time and pictures that look alike; all where there are few.

    The order: `database`, `names`, `sources` (a number each), `ordered` (by source), `overlap`, `alike`, `seed`.
    """
    import pycolmap

    names, count = o["names"], len(o["names"])
    if count * (count - 1) // 2 <= count * (o["overlap"] + o["alike"]) // 2:
        found = {(a, b) for a in range(count) for b in range(a + 1, count)}
        return {"pairs": sorted(found), "by_time": 0, "alike": 0}
    with pycolmap.Database.open(o["database"]) as database:
        number = {image.name: image.image_id for image in database.read_all_images()}
        rows = [np.asarray(database.read_descriptors(number[name]).data, np.uint8).reshape(-1, 128) for name in names]
    by_time = sequential_pairs(np.array(o["sources"]), o["ordered"], o["overlap"])
    found = likely_pairs(likeness(rows, visual_words(rows, seed=o["seed"])), o["alike"])
    return {"pairs": sorted(by_time | found), "by_time": len(by_time), "alike": len(found - by_time)}


def _matches(o: dict[str, Any], tell: Progress) -> dict[str, Any]:
    """Match and verify all pairs that are not done yet.

    The order: `database`, `pairs` of names, `list` (a file to write them into), `guided`, `threads`, `seed`.
    """
    import pycolmap

    options = pycolmap.FeatureMatchingOptions()
    options.num_threads, options.guided_matching = o["threads"], o["guided"]
    pairing, verification = pycolmap.ImportedPairingOptions(), pycolmap.TwoViewGeometryOptions()
    verification.ransac.random_seed = o["seed"]
    pairing.match_list_path = o["list"]
    for first in range(0, len(o["pairs"]), _PAIRS_AT_ONCE):
        some = o["pairs"][first : first + _PAIRS_AT_ONCE]
        Path(o["list"]).write_text("".join(f"{a} {b}\n" for a, b in some), encoding="utf-8")
        pycolmap.match_image_pairs(o["database"], options, pairing, verification, pycolmap.Device.cpu)
        tell(min(first + _PAIRS_AT_ONCE, len(o["pairs"])), len(o["pairs"]))
    with pycolmap.Database.open(o["database"]) as database:
        _, inliers = database.read_two_view_geometry_num_inliers()
        held = [count for count in inliers if count >= _VERIFIED]
        return {"verified": len(held), "inlier_matches": sum(held)}


def _mapping(o: dict[str, Any], tell: Progress) -> dict[str, Any]:
    """Find poses and points; writes models into folders 0, 1, ... of `out`, the largest first.

    The order: `database`, `images`, `out`, `mapper` (incremental or global), `count`, `threads`, `seed`.
    """
    import pycolmap

    pycolmap.set_random_seed(o["seed"])
    raw = Path(o["out"]) / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    seen = 0

    def one() -> None:
        nonlocal seen
        seen += 1
        tell(min(seen, o["count"]), o["count"])

    if o["mapper"] == "global":
        plan = pycolmap.GlobalPipelineOptions()
        plan.num_threads, plan.random_seed = o["threads"], o["seed"]
        models = pycolmap.global_mapping(o["database"], o["images"], raw, plan)
    else:
        options = pycolmap.IncrementalPipelineOptions()
        options.num_threads, options.random_seed = o["threads"], o["seed"]
        options.multiple_models, options.min_model_size = True, 5
        options.max_num_models, options.max_model_overlap = 8, 5
        options.min_num_matches = _VERIFIED
        options.mapper.num_threads, options.mapper.random_seed = o["threads"], o["seed"]
        models = pycolmap.incremental_mapping(
            o["database"], o["images"], raw, options, "", one, one
        )  # fmt: skip
    ordered = sorted(models.values(), key=lambda model: -model.num_reg_images())
    rows = []
    for k, model in enumerate(ordered):
        _settled(model)
        folder = Path(o["out"]) / str(k)
        folder.mkdir(parents=True, exist_ok=True)
        model.write_binary(str(folder))
        rows.append(_model_row(model))
    return {"models": rows}


def _settled(model: Any) -> None:
    """Adjust a model once more, against outliers, without pictures that hardly hang on it."""
    import pycolmap

    for image_id in hardly_held({k: model.image(k).num_points3D for k in model.reg_image_ids()}):
        model.deregister_frame(model.image(image_id).frame_id)
    options = _bent_loss(pycolmap)
    for _ in range(2):
        pycolmap.ObservationManager(model).filter_all_points3D(_OFF_PX, _ANGLE_DEG)
        pycolmap.bundle_adjustment(model, options)
    model.update_point_3d_errors()


def hardly_held(counts: dict[int, int]) -> list[int]:
    """Return the pictures that see so few points that their poses are not believed; of few pictures, none.

    Args:
        counts: Points that each picture sees, by its number.
    """
    bar = min(_FEW * float(np.median(list(counts.values()))), _ENOUGH)
    return [number for number, count in counts.items() if count < bar] if len(counts) > 10 else []


def _model_row(model: Any) -> dict[str, Any]:
    """Figures of a model."""
    return {
        "images": sorted(model.image(k).name for k in model.reg_image_ids()),
        "points": model.num_points3D(),
        "reprojection_px": model.compute_mean_reprojection_error(),
        "track_length": model.compute_mean_track_length(),
        "observations_per_image": model.compute_mean_observations_per_reg_image(),
        "cameras": [_camera_row(model, camera) for camera in model.cameras.values()],
    }


def _camera_row(model: Any, camera: Any) -> dict[str, Any]:
    return {
        "model": camera.model.name,
        "width": camera.width,
        "height": camera.height,
        "parameters": [float(value) for value in camera.params],
        "focal_px": float(camera.mean_focal_length()),
        "focal_deviation_px": _focal_deviation(model, camera),
    }


def _focal_deviation(model: Any, camera: Any) -> float | None:
    """Return the standard deviation of the focal length by the covariance of the bundle adjustment; None where it has none."""
    import pycolmap

    try:
        config = pycolmap.BundleAdjustmentConfig()
        for number in model.reg_image_ids():
            config.add_image(number)
        config.fix_gauge(pycolmap.BundleAdjustmentGauge.TWO_CAMS_FROM_WORLD)
        options = pycolmap.BundleAdjustmentOptions()
        options.refine_principal_point = False
        adjuster = pycolmap.create_default_ceres_bundle_adjuster(options, config, model)
        plan = pycolmap.BACovarianceOptions()
        plan.params = pycolmap.BACovarianceOptionsParams.ALL
        found = pycolmap.estimate_ba_covariance(plan, model, adjuster)
        block = None if found is None else found.get_other_params_cov(camera.params)
        # COLMAP weighs an observation by one pixel; the residuals tell what it really is, per coordinate.
        sigma = model.compute_mean_reprojection_error() / 1.2533
        return None if block is None else float(np.sqrt(block[0, 0])) * sigma
    except (RuntimeError, ValueError, AttributeError, TypeError):
        return None


def _leftovers(o: dict[str, Any], tell: Progress) -> dict[str, Any]:
    """Write what every observation of a model is off by into an .npz: picture, pixels, leftover [px], depth, place of the
    point.

    The order: `model` (a folder), `names` (of pictures, whose places number them), `out`.
    """
    import pycolmap

    model, number = pycolmap.Reconstruction(o["model"]), {name: k for k, name in enumerate(o["names"])}
    parts: list[list[Any]] = []
    for image_id in model.reg_image_ids():
        pixels, found, points, depth = _observed(model, model.image(image_id))
        good = np.isfinite(found).all(axis=1)
        which = np.full(int(good.sum()), number[model.image(image_id).name])
        parts.append([which, pixels[good], (pixels - found)[good], depth[good], points[good]])
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    picture, pixels, leftover, depth, position = columns
    np.savez(o["out"], picture=picture, pixels=pixels, leftover=leftover, depth=depth, position=position)
    return {"observations": len(columns[0])}


def _observed(model: Any, image: Any) -> tuple[Any, Any, Any, Any]:
    """Pixels (n, 2) of an image's points, where they are projected to (NaN behind the camera), their places and depths."""
    seen = [(p.xy, p.point3D_id) for p in image.points2D if p.has_point3D()]
    pixels = np.array([xy for xy, _ in seen]).reshape(-1, 2)
    points = np.array([model.point3D(k).xyz for _, k in seen]).reshape(-1, 3)
    pose = image.cam_from_world()
    eye = points @ pose.rotation.matrix().T + pose.translation
    front = eye[:, 2] > 1e-6
    found = np.full(pixels.shape, np.nan)
    if front.any():
        found[front] = model.camera(image.camera_id).img_from_cam(eye[front])
    return pixels, found, points, eye[:, 2]


def _consistency(o: dict[str, Any], tell: Progress) -> dict[str, Any]:
    """Count what parts of a model's pictures see through each other, and what they share.

    The order: `model` (a folder), `names` (of pictures, in the order in which they were taken).
    """
    import pycolmap

    model = pycolmap.Reconstruction(o["model"])
    posed = {model.image(k).name: model.image(k) for k in model.reg_image_ids()}
    images = [posed[name] for name in o["names"] if name in posed]
    row = {k: n for n, k in enumerate(sorted(model.points3D))}
    points = np.array([model.point3D(k).xyz for k in row]).reshape(-1, 3)
    tracks = [[row[p.point3D_id] for p in image.points2D if p.has_point3D()] for image in images]
    picture, point = np.repeat(np.arange(len(images)), [len(one) for one in tracks]), np.concatenate(tracks).astype(np.int64)
    centres = np.array([image.projection_center() for image in images])

    def project(k: int) -> tuple[Any, Any]:
        tell(k + 1, len(images))
        return _projected(model, images[k], points)

    split = split_by_contradictions(contradictions(centres, points, picture, point, project))
    return consistency_record([image.name for image in images], split, thinnest_cut(len(images), picture, point))


def _mirror(o: dict[str, Any], tell: Progress) -> dict[str, Any]:
    """Look for a plane of which points are each other's mirror images.

    The order: `database`, `model` (a folder).
    """
    import pycolmap

    model = pycolmap.Reconstruction(o["model"])
    images = [model.image(k) for k in model.reg_image_ids()]
    row = {k: n for n, k in enumerate(sorted(model.points3D))}
    points = np.array([model.point3D(k).xyz for k in row]).reshape(-1, 3)
    mean, seen = np.zeros((len(points), 128), np.float32), []
    with pycolmap.Database.open(o["database"]) as database:
        for image in images:
            own = [(n, row[p.point3D_id]) for n, p in enumerate(image.points2D) if p.has_point3D()]
            which, point = np.array(own, np.int64).reshape(-1, 2).T
            found = np.asarray(database.read_descriptors(image.image_id).data, np.float32).reshape(-1, 128)
            np.add.at(mean, point, found[which])
            seen.append(point)
    centres = np.array([image.projection_center() for image in images])
    plane = find_mirror(points, mirror_matches(mean), centres)
    return {"mirror": mirror_record(plane, [image.name for image in images], seen)}


def _projected(model: Any, image: Any, points: Any) -> tuple[Any, Any]:
    """Where an image shows points, in shares of its width (n, 2), NaN near its edge and outside; their depths (n,)."""
    pose, camera = image.cam_from_world(), model.camera(image.camera_id)
    eye = points @ pose.rotation.matrix().T + pose.translation
    # Far off the axis a polynomial of distortion folds points back into the picture.
    front = (eye[:, 2] > 1e-6) & (np.abs(eye[:, :2]).max(axis=1) < 2.0 * np.maximum(eye[:, 2], 1e-6))
    found = np.full((len(points), 2), np.nan)
    if front.any():
        found[front] = camera.img_from_cam(eye[front])
    size = np.array([camera.width, camera.height])
    with np.errstate(invalid="ignore"):
        inside = ((found > _EDGE * camera.width) & (found < size - _EDGE * camera.width)).all(axis=1)
    found[~inside] = np.nan
    return found / camera.width, eye[:, 2]


def _shutter(o: dict[str, Any], tell: Progress) -> dict[str, Any]:
    """Adjust a model again for several readout times of a rolling shutter, and tell what each picture costs at each.

    The order: `model` (a folder), `names` (of pictures, in the order in which they were taken), `rates` (motion of the image,
    right and down [px/s], by name), `readouts` [s].
    """
    import pycolmap

    options = _bent_loss(pycolmap)
    rows: list[list[float]] = []
    pictures = 0
    for k, readout in enumerate(o["readouts"]):
        model = pycolmap.Reconstruction(o["model"])
        for image_id in model.reg_image_ids():
            image = model.image(image_id)
            rate = np.array(o["rates"].get(image.name, (0.0, 0.0)))
            height = model.camera(image.camera_id).height
            for point in image.points2D:
                if point.has_point3D():
                    point.xy = point.xy - readout * (point.xy[1] / height - 0.5) * rate
        pycolmap.bundle_adjustment(model, options)
        posed = {model.image(n).name: model.image(n) for n in model.reg_image_ids()}
        rows.append([_cost(model, posed[name]) for name in o["names"] if name in posed])
        pictures = sum(name in o["rates"] for name in posed)
        tell(k + 1, len(o["readouts"]))
    return {"readouts": o["readouts"], "costs": rows, "pictures": pictures}


def _bent_loss(pycolmap: Any) -> Any:
    """Return how a model is adjusted against outliers."""
    options = pycolmap.BundleAdjustmentOptions()
    options.print_summary = False
    options.ceres.loss_function_type = pycolmap.LossFunctionType.CAUCHY
    options.ceres.loss_function_scale = LOSS_PX
    return options


def _cost(model: Any, image: Any) -> float:
    """Sum of the Cauchy loss of an image's observations [px^2]."""
    off = np.subtract(*_observed(model, image)[:2])
    square = np.square(off[np.isfinite(off).all(axis=1)]).sum(axis=1)
    return float(LOSS_PX**2 * np.log1p(square / LOSS_PX**2).sum())


STEPS: dict[str, Callable[[dict[str, Any], Progress], dict[str, Any]]] = {
    "features": _features,
    "pairs": _pairs,
    "matches": _matches,
    "mapping": _mapping,
    "leftovers": _leftovers,
    "consistency": _consistency,
    "mirror": _mirror,
    "shutter": _shutter,
}


def main() -> int:
    """Carry out orders until standard input ends, or the process that gives them, whose number is the only argument."""
    # Killed at once it could not end this one, which would go on with its step, and write, for as long as that takes.
    parent = int(sys.argv[1])
    die_with_parent(parent)
    watch_parent(parent)
    # Whoever gave the orders decides what Ctrl-C means, and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    # COLMAP prints where it likes; nothing of it may come between the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def answer(**what: Any) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    for line in sys.stdin:
        order = json.loads(line)
        try:
            result = STEPS[order["step"]](order, lambda done, total: answer(done=done, total=total))
        except Exception as error:
            answer(error=f"{type(error).__name__}: {error}")
        else:
            answer(result=result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
