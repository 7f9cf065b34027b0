"""`render_log`: pictures of a log's poses at their stamps, in a scene, as a data set that goes on where it was stopped."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from airworthy import __version__
from airworthy.bridges.people.crowd import Crowd
from airworthy.bridges.replay import euroc
from airworthy.bridges.replay.imu import InertialSeries, simulated_imu
from airworthy.bridges.replay.poses import PosePath, alignment, body_axes, camera_stamps, logged_path, read_stamps
from airworthy.bridges.sensor_words import sensor_of
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.files import lock_folder, make_folder, read_json, sha256, write_json
from airworthy.core.frames import BODY_FROM_CAMERA, conjugate, multiply, rotate
from airworthy.core.jobs.block_job import refuse_foreign
from airworthy.core.jobs.block_store import differences
from airworthy.core.jobs.progress import progress
from airworthy.core.schema import SEED, Bound, check_fields
from airworthy.geometry.distance import clearance
from airworthy.logs import Log, ReadOptions, read_log
from airworthy.logs.clocks.clock import NS
from airworthy.logs.writing.outputs import refuse_input
from airworthy.logs.writing.pairing import beside
from airworthy.optics.tone import to_8bit
from airworthy.scenes import SceneBatch, scene, scene_digest
from airworthy.sensors.build import make_sensor
from airworthy.sensors.carried import carried_sensors
from airworthy.sensors.devices import Device, imu_device
from airworthy.sensors.mounting import mounted_pose
from airworthy.sensors.sampling import SensorView
from airworthy.simulation import Imu
from airworthy.simulation.sensor_recording import depth_16bit, depth_unit, grey, write_png
from airworthy.vehicles import named_vehicle

__all__ = ["RENDER_FILE", "LogRenderConfig", "LogRendered", "render_log"]

RENDER_FILE = "render.json"
"""What the folder is of, and what was counted."""
_CHANNELS = ("rgb", "depth")
_NEAR = 0.0
_COARSE = 50.0
"""A specific force that no vehicle bears for long: what poses say then is their noise [m/s^2]; ours, five times gravity."""
_SHARE = 99.0


@dataclass(frozen=True)
class LogRenderConfig:
    """What is rendered of a log."""

    log: Path
    """File or folder with positions and attitudes: EuRoC, TUM, ULog, MCAP, a run of `airworthy fly`, a table with --map, ..."""
    out: Path
    """Folder of the data set; one that was begun with the same settings is gone on with."""
    scene: str = "hall"
    """What the cameras see: a scene's name or file."""
    vehicle: str = ""
    """Whose cameras: of the catalogue, or a file."""
    sensors: tuple[str, ...] = ()
    """Which cameras: names of the vehicle's own, or DEVICE, NAME=DEVICE, each with :rgb, :depth or :rgb,depth behind it;
    without any, all of the vehicle's."""
    people: tuple[str, ...] = ()
    """Who walks in the scene, [NAME=]file:PATH, recordings of skeletons; they begin with the first pose."""
    format: Literal["euroc"] = "euroc"
    """Layout."""
    at: str = "camera"
    """When: "camera", at each camera's own rate from the first pose on; "poses", at exactly every pose of the log; or a file of
    stamps [ns]."""
    color: bool = False
    """Pictures in colour; else grey, as most visual-inertial estimators want them."""
    axes: tuple[str, str, str] = ("forward", "left", "up")
    """Where x, y and z of the log's body point; of EuRoC's own flights "up right forward"."""
    align: tuple[float, float, float, float] | None = None
    """Where the log's origin lies in the scene, x, y, z [m], and how far the log's world is turned to the left [deg]."""
    start: tuple[float, float, float, float] | None = None
    """Instead: where the first pose is to lie, x, y, z [m], and its heading [deg]."""
    poses: str = ""
    """Label of the positions ("truth", "capture"); without one, the first that have attitudes."""
    gap: Annotated[float, Bound(1e-3, 60.0, "s")] = 0.25
    """Poses farther apart say nothing of the time between them: pictures there are left out, and counted [s]."""
    imu: str = ""
    """"log": the log's own; "none"; or a device (`airworthy sensors`) that is simulated along the poses. Without a word: the
    log's own where it has one."""
    imu_rate: Annotated[float, Bound(10.0, 10000.0, "Hz")] = 200.0
    """Of a simulated one [Hz]."""
    seed: Annotated[int, SEED] = 0
    """Key of its noise."""
    map: Path | None = None
    """As of `airworthy logs show`."""
    topic: tuple[str, ...] = ()
    """As of `airworthy logs show`."""
    env: int = 0
    """Of a recorded run: the environment."""
    quiet: bool = False
    """Show no progress."""

    def __post_init__(self) -> None:
        check_fields(self)
        body_axes(self.axes)
        if self.align is not None and self.start is not None:
            raise AirworthyError("--align and --start both say where the log lies in the scene: give one of them.")
        if not self.vehicle and not self.sensors:
            raise AirworthyError(
                "No camera is named: give --vehicle NAME or --sensors DEVICE (`airworthy sensors` lists them)."
            )
        if self.imu not in ("", "log", "none"):
            imu_device(self.imu)


@dataclass(frozen=True)
class LogRendered:
    """What was rendered."""

    frames: Mapping[str, int]
    """Pictures in the data set, by folder."""
    made: int
    """Of these, made now."""
    outside: int
    """Poses beyond the scene's bounds."""
    inside: int
    """Poses within something."""
    imu: str
    """Where the inertial sensor is from; "none"."""
    notes: tuple[str, ...]
    """What was left out or taken for granted."""


@dataclass(frozen=True)
class _Camera:
    """One folder of pictures."""

    folder: str
    name: str
    channel: str
    device: Device
    stamps: Any


def render_log(
    config: LogRenderConfig, options: ReadOptions | None = None, say: Callable[[str], None] = lambda sentence: None
) -> LogRendered:
    """Render a log's poses at their stamps as a data set.

    Pictures show exactly the poses: without noise, at one instant, of the scene with its actors at the time since the first
    pose. Ground truth is in the scene's world; the body's axes are the log's, so that a real inertial sensor's samples stay as
    they are.

    Args:
        config: What is rendered.
        options: How the log is read; None: as the configuration says.
        say: Is given a sentence about each thing that was left out or taken for granted, before pictures are made.

    Raises:
        AirworthyError: Log, scene or cameras cannot be used, or the folder holds something else.
    """
    refuse_foreign(config.out, RENDER_FILE)
    refuse_input(config.out, [config.log], "log")
    if config.out.exists() and config.log.exists() and os.path.samefile(config.out, config.log):
        raise AirworthyError(f"{str(config.out)!r} is the log that is read: choose another --out.")
    topics = dict(text.partition("=")[::2] for text in config.topic)
    log = read_log(config.log, options or ReadOptions(mapping=config.map, topics=topics, env=config.env))
    axes = body_axes(config.axes)
    path = logged_path(log, config.poses)
    # Of our body first: a heading is that of its nose.
    own = path.turned(conjugate(axes))
    align = alignment(own, config.align, config.start)
    made = _Job(config, log, path.placed(align), own.placed(align), axes)
    make_folder(config.out)
    with lock_folder(config.out):
        return made.run(say)


class _Job:
    def __init__(self, config: LogRenderConfig, log: Log, path: PosePath, own: PosePath, axes: Array):
        self._config, self._log, self._path, self._own, self._axes = config, log, path, own, axes
        self._notes = [*log.notes, *(f"{note[0].upper()}{note[1:]}." for note in path.notes)]
        crowd = Crowd(config.people, live=False)
        self._place = crowd.added(scene(config.scene))
        self._notes += [f"{note}." for note in crowd.notes()]
        self._cameras = self._chosen()
        self._mav = config.out / "mav0"

    def run(self, say: Callable[[str], None]) -> LogRendered:
        """Write everything that is not there yet."""
        config = self._config
        identity = self._identity()
        self._take_up(identity)
        batch = SceneBatch([self._place], 1)
        outside, inside = self._misplaced(batch)
        imu = self._inertial()
        self._calibrations()
        told = {"version": 1, "identity": identity, "outside": outside, "inside": inside, "imu": imu, "notes": self._notes}
        counts = {camera.folder: len(camera.stamps) for camera in self._cameras}
        write_json(config.out / RENDER_FILE, told | {"frames": counts, "finished": False})
        for note in self._notes:
            say(note)
        made = self._pictures(batch)
        write_json(config.out / RENDER_FILE, told | {"frames": counts, "finished": True})
        return LogRendered(counts, made, outside, inside, imu, tuple(self._notes))

    # ---- What is asked ---------------------------------------------------------------------------------------------------

    def _chosen(self) -> list[_Camera]:
        config = self._config
        carried = carried_sensors(named_vehicle(config.vehicle)) if config.vehicle else {}
        words = config.sensors or tuple(name for name, item in carried.items() if item.projection.optical)
        if not words:
            raise AirworthyError(
                f"The vehicle {config.vehicle!r} carries no camera: name one with --sensors (`airworthy sensors` lists them)."
            )
        found: list[_Camera] = []
        for word in words:
            name, _, channels = word.partition(":")
            if name in carried:
                item = carried[name]
                item = replace(item, channels=tuple(channels.split(","))) if channels else item
            else:
                name, item = sensor_of(word)
            euroc.camera_lines(item)  # refuses what is no camera
            for channel in item.channels:
                if channel not in _CHANNELS:
                    raise AirworthyError(
                        f"The camera {name!r} gives {channel!r}; a data set holds colours and depths: write {name}:rgb or"
                        f" {name}:rgb,depth."
                    )
                kind = "cam" if channel == "rgb" else "depth"
                number = sum(camera.folder.startswith(kind) for camera in found)
                found.append(_Camera(f"{kind}{number}", name, channel, item, self._stamps(item)))
        return found

    def _stamps(self, device: Device) -> Any:
        """Return the instants of a camera's pictures; those that no pose tells of are left out and counted."""
        at, path = self._config.at, self._path
        asked = {"poses": lambda: path.stamps, "camera": lambda: camera_stamps(path, device.rate)}
        stamps = asked[at]() if at in asked else read_stamps(Path(at))
        _, _, reached, gap = path.at(stamps, self._config.gap)
        kept = stamps[reached & ~gap]
        for count, why in (
            (int((~reached).sum()), "lie before the first pose or after the last, and are left out"),
            (int(gap.sum()), f"lie in gaps of over {self._config.gap:g} s between poses, and are left out (--gap)"),
        ):
            note = f"{count:,} of {len(stamps):,} pictures of {device.name} {why}."
            if count and note not in self._notes:
                self._notes.append(note)
        if not len(kept):
            first, last = int(path.stamps[0]), int(path.stamps[-1])
            raise AirworthyError(
                f"None of {len(stamps):,} stamps, {int(stamps[0])} to {int(stamps[-1])} ns, has poses about it; the log's reach"
                f" from {first} to {last} ns."
            )
        return kept

    def _identity(self) -> dict[str, Any]:
        config = self._config
        chosen = {k: v for k, v in asdict(config).items() if k not in ("out", "quiet", "log")}
        return {
            "airworthy": __version__,
            "log": self._log.source.sha256,
            "config": {k: str(v) if isinstance(v, Path) else list(v) if isinstance(v, tuple) else v for k, v in chosen.items()},
            "scene": scene_digest(self._place),
            "cameras": [f"{c.folder}: {c.device!r}" for c in self._cameras],
            "stamps": [sha256(c.stamps.tobytes()) for c in self._cameras],
        }

    def _take_up(self, identity: Mapping[str, Any]) -> None:
        path = self._config.out / RENDER_FILE
        if not path.exists():
            return
        known = read_json(path)
        before = known.get("identity") if isinstance(known, dict) else None
        if not isinstance(before, dict):
            raise AirworthyError(f"{str(path)!r} is damaged: delete the folder, and the data set is made again.")
        odd = differences(before, identity)
        if odd:
            raise AirworthyError(
                f"{str(self._config.out)!r} holds a data set of other settings ({'; '.join(odd[:3])}): choose another --out."
            )

    # ---- What the poses are worth here -------------------------------------------------------------------------------------

    def _misplaced(self, batch: SceneBatch) -> tuple[int, int]:
        """Count poses beyond the scene's bounds, and within something, and tell of them."""
        at, stamps = self._own.position, (self._own.stamps - self._own.stamps[0]) / NS
        low, high = np.asarray(self._place.bounds.lower), np.asarray(self._place.bounds.upper)
        outside = ((at < low) | (at > high)).any(axis=1)
        inside = np.zeros(len(at), bool)
        if batch.geometry.dynamic_start or batch.extra_count or self._place.actors:
            near = clearance(batch.geometry, at, env=np.zeros(len(at), np.int32), max_distance=1.0)
            inside = near.distance < _NEAR
        for bad, what in ((outside, f"lie beyond the bounds of {self._config.scene}"), (inside, "lie within something")):
            if bad.any():
                k = int(np.argmax(bad))
                where = ", ".join(f"{value:.2f}" for value in at[k])
                self._notes.append(
                    f"{int(bad.sum()):,} of {len(at):,} poses {what}, the first at {stamps[k]:.3f} s at {where} m: move the log"
                    " with --align or --start."
                )
        return int(outside.sum()), int(inside.sum())

    # ---- What is no picture ------------------------------------------------------------------------------------------------

    def _inertial(self) -> str:
        config, log = self._config, self._log
        gyro = next(iter(log.of_kind("gyro")), None)
        force = None if gyro is None else beside(log, gyro, "accelerometer")
        bias: Array | None = self._logged_bias()
        source = config.imu or ("log" if force is not None else "none")
        if source == "log":
            if gyro is None or force is None:
                raise AirworthyError(
                    f"Log {log.name!r} has no gyro with an accelerometer at the same stamps: name a device to be simulated, as"
                    " --imu bmi088, or --imu none."
                )
            known = np.isfinite(gyro.values).all(axis=1) & np.isfinite(force.values).all(axis=1)
            if not known.all():
                self._notes.append(f"{int((~known).sum()):,} samples of the inertial sensor are missing, and left out.")
            stamps = np.rint(gyro.time[known] * NS).astype(np.int64) + log.source.start_ns
            series = InertialSeries(stamps, gyro.values[known], force.values[known])
            noise = euroc.read_imu_noise(config.log)
            missing = [key for key in euroc.IMU_NOISE if key not in noise]
            if missing:
                self._notes.append(f"imu0/sensor.yaml lacks {', '.join(missing)}: the log does not say.")
            euroc.write_imu(self._mav, series, gyro.quality.rate, noise, f"{log.source.format} log, {gyro.name}")
        elif source != "none":
            device = Imu.named(source)
            series = simulated_imu(self._path, device, config.imu_rate, config.seed)
            self._tell_rough(series)
            # Some devices differ by axis; the layout has one number, of which the largest is the safe one.
            values = (device.gyroscope_noise, device.gyroscope_walk, device.accelerometer_noise, device.accelerometer_walk)
            noise = dict(zip(euroc.IMU_NOISE, map(max, values), strict=True))
            euroc.write_imu(self._mav, series, config.imu_rate, noise, f"{source}, simulated along the poses")
            near = np.clip(np.searchsorted(series.stamps, self._path.stamps), 0, len(series.stamps) - 1)
            assert series.rate_bias is not None
            assert series.force_bias is not None
            bias = np.hstack([series.rate_bias, series.force_bias])[near]
        else:
            self._notes.append("The data set has no inertial sensor: the log has none, or --imu none was said.")
        self._truth(bias)
        return source

    def _tell_rough(self, series: InertialSeries) -> None:
        most = float(np.percentile(np.linalg.norm(series.force, axis=1), _SHARE))
        if most > _COARSE:
            self._notes.append(
                f"The simulated specific force exceeds {most:.0f} m/s^2 in 1 % of its samples: the poses are too noisy or too"
                " coarse to derive an inertial sensor from."
            )

    def _logged_bias(self) -> Array | None:
        """Return biases that an EuRoC ground truth states for its poses, gyroscope before accelerometer, (n, 6)."""
        found = []
        for start in ("b_w_rs_s_", "b_a_rs_s_"):
            for axis in "xyz":
                name = next((key for key in self._log.raw_series if f"{start}{axis}" in key.lower()), None)
                series = None if name is None else self._log.raw_series[name]
                if series is None or len(series.values) != len(self._path.origin.time):
                    return None
                found.append(np.asarray(series.values, float))
        values = np.stack(found, axis=1)
        stamps = np.rint(self._path.origin.time * NS).astype(np.int64) + self._log.source.start_ns
        order = np.argsort(stamps, kind="stable")
        picked = values[order][np.searchsorted(stamps[order], self._path.stamps)]
        return picked if np.isfinite(picked).all() else None

    def _truth(self, bias: Array | None) -> None:
        path = self._path
        if not path.measured_velocity:
            self._notes.append("Velocities of the ground truth are differences of its positions: the log has none.")
        if bias is None:
            self._notes.append("The ground truth has no columns of biases: nobody knows them.")
        comment = f"poses of {self._log.name} in the scene {self._config.scene}"
        euroc.write_truth(self._mav, path.stamps, path.position, path.attitude, path.velocity, bias, comment)

    def _calibrations(self) -> None:
        for camera in self._cameras:
            mount = camera.device.effective_mount
            # From our body to the log's, whose axes are those of the inertial sensor.
            back = conjugate(self._axes)
            turn = multiply(back, multiply(mount.attitude, BODY_FROM_CAMERA))
            matrix = euroc.pose_matrix(rotate(back, mount.position), turn)
            unit = f", 16 bits, {depth_unit(camera.device):g} m per count, 0: none" if camera.channel == "depth" else ""
            comment = f"{camera.name} ({camera.device.name}), {camera.channel}{unit}"
            euroc.write_camera(self._mav, camera.folder, camera.device, matrix, camera.stamps, comment)

    # ---- Pictures ----------------------------------------------------------------------------------------------------------

    def _pictures(self, batch: SceneBatch) -> int:
        """Make the pictures that are not there, in the order of their stamps; they are whole or not there."""
        sensors = {camera.name: make_sensor(camera.device, camera.name) for camera in self._cameras}
        left = [
            (int(stamp), camera)
            for camera in self._cameras
            for stamp in camera.stamps
            if not (self._mav / camera.folder / "data" / f"{stamp}.png").exists()
        ]
        left.sort(key=lambda item: (item[0], item[1].folder))
        for stamp, camera in progress(left, "Rendering", quiet=self._config.quiet):
            position, attitude, _, _ = self._own.at([stamp], self._config.gap)
            batch.advance((stamp - int(self._own.stamps[0])) / NS)
            mount = camera.device.effective_mount
            place, turn = mounted_pose(position, attitude, mount.position, mount.attitude)
            view = SensorView(place, turn, np.zeros(1, np.int32))
            seen = sensors[camera.name].capture(batch, view, (camera.channel,))[camera.channel][0]
            write_png(self._mav / camera.folder / "data" / f"{stamp}.png", self._image(camera, seen))
        return len(left)

    def _image(self, camera: _Camera, seen: Any) -> Any:
        if camera.channel == "depth":
            return depth_16bit(camera.device.limits.metres(seen), depth_unit(camera.device))
        counts = seen if seen.dtype == np.uint8 else to_8bit(seen)
        return counts if self._config.color else grey(counts)
