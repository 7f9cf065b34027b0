"""Pictures of a log's poses: exact instants, frames, lenses and mounts as an independent reader takes them, and resumed."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation

from airworthy.bridges.replay import job
from airworthy.bridges.replay.imu import simulated_imu
from airworthy.bridges.replay.job import LogRenderConfig, render_log
from airworthy.bridges.replay.poses import PosePath, body_axes, logged_path, read_stamps
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import normalize
from airworthy.geometry import Sphere
from airworthy.logs import read_log
from airworthy.scenes import Instance, Material, Region, Scene, write_scene
from airworthy.simulation import Imu

FIRST = 1_403_636_580_000_000_000
BALL = np.array([4.0, 0.3, 1.2])
RADIUS = 0.4
EUROC_AXES = ("up", "right", "forward")
# Columns: forward, left, up of our body in the axes of the log's, x up, y right, z forward.
LOG_FROM_FLU = np.array([[0.0, 0.0, 1.0], [0.0, -1.0, 0.0], [1.0, 0.0, 0.0]])
STEP = 10_000_000


def body_of(k: int) -> tuple[np.ndarray, Rotation]:
    """Our body's pose, of the k-th row."""
    t = 0.01 * k
    return np.array([0.1 * t, 0.2 * np.sin(3 * t), 1.0 + 0.1 * t]), Rotation.from_euler("ZYX", [0.3 * t, -0.2 * t, 0.1 * t])


@pytest.fixture
def euroc(tmp_path: Path) -> Path:
    """A log in EuRoC's layout, whose body has x up, y right, z forward."""
    folder = tmp_path / "log"
    for name in ("imu0", "state_groundtruth_estimate0"):
        (folder / "mav0" / name).mkdir(parents=True)
    rng = np.random.default_rng(0)
    axes = [f"{name}_{axis}" for name in ("w_RS_S", "a_RS_S") for axis in "xyz"]
    truth = ["#timestamp, " + ", ".join((*(f"p_RS_R_{a} [m]" for a in "xyz"), *(f"q_RS_{a} []" for a in "wxyz"),
                                         *(f"v_RS_R_{a} [m s^-1]" for a in "xyz")))]  # fmt: skip
    imu = ["#timestamp [ns]," + ",".join(f"{name} [SI]" for name in axes)]
    for k in range(41):
        place, turn = body_of(k)
        x, y, z, w = (turn * Rotation.from_matrix(LOG_FROM_FLU.T)).as_quat()
        truth.append(f"{FIRST + STEP * k}," + ",".join(map(repr, map(float, (*place, w, x, y, z, 1, 2, 3)))))
        imu.append(f"{FIRST + STEP * k}," + ",".join(map(repr, rng.normal(size=6).tolist())))
    (folder / "mav0/state_groundtruth_estimate0/data.csv").write_text("\n".join(truth) + "\n")
    (folder / "mav0/imu0/data.csv").write_text("\n".join(imu) + "\n")
    (folder / "mav0/imu0/sensor.yaml").write_text("sensor_type: imu\ngyroscope_noise_density: 1.6968e-04 # [ rad/s ]\n")
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A ball in empty air."""
    ball = Instance("ball", tuple(BALL), materials=("white",))
    made = Scene("ball", {"ball": Sphere(RADIUS)}, {"white": Material((1.0, 1.0, 1.0, 1.0))}, instances=(ball,),
                 bounds=Region((-5.0, -5.0, 0.0), (8.0, 5.0, 5.0)))  # fmt: skip
    write_scene(made, tmp_path / "place")
    return tmp_path / "place"


@pytest.fixture
def cameras(tmp_path: Path) -> str:
    """A camera that is mounted aslant, with a lens that bends."""
    text = (
        '[bent]\nkind = "camera"\nchannels = ["rgb", "depth"]\nrate = 10.0\n[bent.projection]\nmodel = "pinhole"\n'
        "width = 160\nheight = 120\nfx = 120.0\nfy = 118.0\ncx = 78.5\ncy = 61.0\ndistortion = [-0.2, 0.05, 0.001, -0.002]\n"
        "[bent.mount]\nposition = [0.1, -0.05, 0.02]\neuler = [0.05, 0.1, -0.08]\n"
    )
    (tmp_path / "own.toml").write_text(text)
    return f"{tmp_path / 'own.toml'}:bent"


# ---- A reader that knows the layout and nothing of ours -------------------------------------------------------------------


def table(path: Path) -> tuple[list[int], np.ndarray]:
    with open(path, newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [int(row[0]) for row in rows], np.array([[float(cell) for cell in row[1:]] for row in rows])


def picture(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image)


def calibration(path: Path) -> dict[str, Any]:
    text = path.read_text()
    found = {key: [float(v) for v in re.split(r"[,\s]+", values.strip())] for key, values in
             re.findall(r"(\w+): \[([^\]]*)\]", text)}  # fmt: skip
    found["T_BS"] = np.array(found.pop("data")).reshape(4, 4)
    return found


def ball_seen(folder: Path, camera: str, row: int, stamps: list[int], truth: np.ndarray) -> np.ndarray:
    """Which pixels of a picture look at the ball, and how far along the axis, by the data set alone."""
    cv2 = pytest.importorskip("cv2")
    known = calibration(folder / "mav0" / camera / "sensor.yaml")
    width, height = (int(v) for v in known["resolution"])
    fu, fv, cu, cv = known["intrinsics"]
    u, v = np.meshgrid(np.arange(width, dtype=float), np.arange(height, dtype=float))
    matrix = np.array([[fu, 0, cu], [0, fv, cv], [0, 0, 1]])
    bend = np.array(known["distortion_coefficients"])
    criteria = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 100, 1e-12)
    flat = cv2.undistortPoints(np.stack([u, v], -1).reshape(-1, 1, 2), matrix, bend, criteria=criteria)
    rays = np.concatenate([flat.reshape(-1, 2), np.ones((width * height, 1))], 1)
    world = np.eye(4)
    w, x, y, z = truth[row, 3:7]
    world[:3, :3], world[:3, 3] = Rotation.from_quat([x, y, z, w]).as_matrix(), truth[row, :3]
    pose = world @ known["T_BS"]
    to_ball = pose[:3, :3].T @ (BALL - pose[:3, 3])
    # |s r - c|^2 = R^2 along the ray s r, whose third part is 1: s is the depth.
    a, b, c = (rays**2).sum(1), rays @ to_ball, to_ball @ to_ball - RADIUS**2
    root = b**2 - a * c
    return np.where(root > 0.0, (b - np.sqrt(np.maximum(root, 0.0))) / a, 0.0).reshape(height, width)


def test_a_data_set_is_what_an_independent_reader_takes_it_for(euroc: Path, place: Path, cameras: str, tmp_path: Path) -> None:
    out = tmp_path / "set"
    made = render_log(LogRenderConfig(euroc, out, str(place), sensors=(f"bent={cameras}",), axes=EUROC_AXES, quiet=True))
    assert (made.frames, made.made, made.outside, made.inside, made.imu) == ({"cam0": 5, "depth0": 5}, 10, 0, 0, "log")
    stamps, truth = table(out / "mav0/state_groundtruth_estimate0/data.csv")
    assert stamps == [FIRST + STEP * k for k in range(41)]
    for name in ("cam0", "depth0"):
        rows = list(csv.reader((out / "mav0" / name / "data.csv").read_text().splitlines()))[1:]
        assert [int(row[0]) for row in rows] == [FIRST + 100_000_000 * k for k in range(5)]
        assert sorted(path.name for path in (out / "mav0" / name / "data").iterdir()) == [row[1] for row in rows]
        for stamp, file in rows:
            image = picture(out / "mav0" / name / "data" / file)
            wanted = ball_seen(out, name, stamps.index(int(stamp)), stamps, truth)
            assert (wanted > 0.0).sum() > 300
            if name == "depth0":
                seen = (image > 0) == (wanted > 0.0)
                assert seen.mean() > 0.9995  # edges, of pixels whose middle lies within rounding of the outline
                both = (image > 0) & (wanted > 0.0)
                # Millimetres, rounded; at the outline depth changes with the root of the angle.
                assert np.abs(image[both] / 1000.0 - wanted[both]).max() < 0.02
                assert np.median(np.abs(image[both] / 1000.0 - wanted[both])) < 0.0004
            else:
                assert image.dtype == np.uint8
                assert image.shape == (120, 160)


def test_the_logs_own_numbers_come_back(euroc: Path, place: Path, cameras: str, tmp_path: Path) -> None:
    out = tmp_path / "set"
    config = LogRenderConfig(
        euroc, out, str(place), sensors=(cameras,), axes=EUROC_AXES, quiet=True, align=(1.0, 2.0, 0.5, 90.0)
    )
    made = render_log(config)
    before, back = read_log(euroc), read_log(out)
    for name in ("gyro", "accelerometer"):
        np.testing.assert_array_equal(before.stream(name).values, back.stream(name).values)
        np.testing.assert_array_equal(before.stream(name).time, back.stream(name).time)
    assert before.source.start_ns == back.source.start_ns
    # Turned by a right angle to the left, and moved.
    x, y, z = before.stream("position").values.T
    np.testing.assert_allclose(back.stream("position").values, np.stack([1.0 - y, 2.0 + x, 0.5 + z], 1), atol=1e-12)
    np.testing.assert_allclose(back.stream("velocity").values, [[-2.0, 1.0, 3.0]] * 41, atol=1e-12)
    turned = Rotation.from_euler("Z", 90, degrees=True) * Rotation.from_quat(before.stream("attitude").values)
    assert (turned.inv() * Rotation.from_quat(back.stream("attitude").values)).magnitude().max() < 1e-12
    text = (out / "mav0/imu0/sensor.yaml").read_text()
    assert "gyroscope_noise_density: 0.00016968 # [ rad / s / sqrt(Hz) ]" in text
    assert any("lacks gyroscope_random_walk, accelerometer_noise_density" in note for note in made.notes)
    assert (out / "mav0/imu0/data.csv").read_text().count("\n") == 42


def test_at_poses_and_at_stamps_of_a_file(euroc: Path, place: Path, cameras: str, tmp_path: Path) -> None:
    stamps = [FIRST - 5, FIRST + 5_000_001, FIRST + 20_000_000, FIRST + 400_000_001]
    (tmp_path / "at.csv").write_text("#timestamp [ns],filename\n" + "".join(f"{s},{s}.png\n" for s in stamps))
    config = LogRenderConfig(euroc, tmp_path / "a", str(place), sensors=(f"{cameras}:depth",), axes=EUROC_AXES, quiet=True,
                             at=str(tmp_path / "at.csv"))  # fmt: skip
    made = render_log(config)
    assert made.frames == {"depth0": 2}
    assert any("2 of 4 pictures of bent lie before the first pose or after the last" in note for note in made.notes)
    every = render_log(LogRenderConfig(euroc, tmp_path / "b", str(place), sensors=(f"{cameras}:depth",), axes=EUROC_AXES,
                                       quiet=True, at="poses"))  # fmt: skip
    assert every.frames == {"depth0": 41}
    one, two = (tmp_path / name / f"mav0/depth0/data/{FIRST + 20_000_000}.png" for name in "ab")
    assert one.read_bytes() == two.read_bytes()


def test_a_job_that_was_stopped_goes_on_to_equal_bytes(
    euroc: Path, place: Path, cameras: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def config(name: str, **changes: Any) -> LogRenderConfig:
        return LogRenderConfig(euroc, tmp_path / name, str(place), sensors=(cameras,), axes=EUROC_AXES, quiet=True, **changes)

    render_log(config("whole"))
    write, count = job.write_png, [0]

    def stopping(path: Path, image: Any) -> None:
        count[0] += 1
        if count[0] == 4:
            raise KeyboardInterrupt
        write(path, image)

    monkeypatch.setattr(job, "write_png", stopping)
    with pytest.raises(KeyboardInterrupt):
        render_log(config("parts"))
    monkeypatch.undo()
    assert render_log(config("parts")).made == 7
    assert render_log(config("parts")).made == 0
    for path in (tmp_path / "whole").rglob("*.*"):
        if path.is_file() and path.name != ".lock":
            assert path.read_bytes() == (tmp_path / "parts" / path.relative_to(tmp_path / "whole")).read_bytes(), path
    with pytest.raises(AirworthyError, match=r"holds a data set of other settings \(color: False before, True now\)"):
        render_log(config("parts", color=True))


def test_poses_beyond_the_place_and_within_things_are_told_and_counted(
    euroc: Path, place: Path, cameras: str, tmp_path: Path
) -> None:
    def rendered(name: str, start: tuple[float, float, float, float]) -> Any:
        return render_log(LogRenderConfig(euroc, tmp_path / name, str(place), sensors=(f"{cameras}:depth",), axes=EUROC_AXES,
                                          quiet=True, start=start))  # fmt: skip

    inside = rendered("in", (4.0, 0.3, 1.2, 0.0))
    assert inside.inside > 30
    assert any("poses lie within something, the first at 0.000 s at 4.00, 0.30, 1.20 m" in note for note in inside.notes)
    outside = rendered("out", (0.0, -6.0, 1.0, 45.0))
    assert (outside.outside, outside.inside) == (41, 0)
    assert any("41 of 41 poses lie beyond the bounds" in note for note in outside.notes)
    back = read_log(tmp_path / "out")
    np.testing.assert_allclose(back.stream("position").values[0], [0.0, -6.0, 1.0], atol=1e-12)
    heading = Rotation.from_quat(back.stream("attitude").values[0]) * Rotation.from_matrix(LOG_FROM_FLU)
    assert heading.as_euler("ZYX", degrees=True)[0] == pytest.approx(45.0, abs=1e-9)


# ---- The inertial sensor along poses --------------------------------------------------------------------------------------


def circle() -> PosePath:
    """One metre, 2 rad/s, nose along the way, banked by 0.2 rad."""
    t = np.arange(0.0, 2.0, 0.01)
    place = np.stack([np.cos(2 * t), np.sin(2 * t), 0 * t + 1.0], 1)
    turn = Rotation.from_euler("ZYX", np.stack([2 * t + np.pi / 2, 0 * t, 0 * t - 0.2], 1)).as_quat()
    stamps = FIRST + np.rint(t * 1e9).astype(np.int64)
    return PosePath(stamps, place, normalize(turn), np.zeros_like(place), True, None)  # type: ignore[arg-type]


def test_a_simulated_sensor_feels_the_closed_form_of_a_circle() -> None:
    found = simulated_imu(circle(), Imu(), 400.0)
    assert len(found.stamps) == 797
    assert (np.diff(found.stamps) == 2_500_000).all()
    # In the middle, away from the ends of the splines: 4 m/s^2 to the left, gravity up, in a body rolled by -0.2.
    bank = Rotation.from_euler("X", -0.2)
    middle = slice(80, -80)
    np.testing.assert_allclose(found.force[middle], np.tile(bank.inv().apply([0.0, 4.0, 9.81]), (637, 1)), atol=1e-4)
    np.testing.assert_allclose(found.rate[middle], np.tile(bank.inv().apply([0.0, 0.0, 2.0]), (637, 1)), atol=1e-4)


def test_noise_is_that_of_the_device() -> None:
    device = Imu(accelerometer_noise=(0.01,) * 3, gyroscope_noise=(0.001,) * 3, bias_initial=(0.5, 0.1, 0.2))
    clean, noisy = simulated_imu(circle(), Imu(), 1000.0), simulated_imu(circle(), device, 1000.0, seed=3)
    assert noisy.force_bias is not None
    assert noisy.rate_bias is not None
    white = noisy.force - clean.force - noisy.force_bias
    assert white.std() == pytest.approx(0.01 * np.sqrt(1000.0), rel=0.05)
    assert (noisy.rate - clean.rate - noisy.rate_bias).std() == pytest.approx(0.001 * np.sqrt(1000.0), rel=0.05)
    assert 0.01 < np.abs(noisy.force_bias[0]).max() <= 0.5
    np.testing.assert_array_equal(noisy.force, simulated_imu(circle(), device, 1000.0, seed=3).force)


@pytest.mark.parametrize("rate", [250.0, 2000.0])
def test_biases_walk_by_the_devices_density(rate: float) -> None:
    walks = np.array([[0.02, 0.03, 0.04], [0.001, 0.002, 0.003]])
    device = Imu(accelerometer_walk=tuple(walks[0]), gyroscope_walk=tuple(walks[1]))
    found = [simulated_imu(circle(), device, rate, seed) for seed in range(4)]
    for name, walk in (("force_bias", walks[0]), ("rate_bias", walks[1])):
        steps = np.concatenate([np.diff(getattr(series, name), axis=0) for series in found])
        # Units per second per root hertz: a step of 1 / rate is the number by the root of it. 2,000 steps or more: 1.6 %.
        np.testing.assert_allclose(steps.std(axis=0) * np.sqrt(rate), walk, rtol=0.06)


def test_a_log_without_an_inertial_sensor_is_given_one(place: Path, cameras: str, tmp_path: Path) -> None:
    rows = [f"{1.5e9 + 0.01 * k:.6f} {0.01 * k:.9f} 0 1 0 0 0 1" for k in range(60)]
    (tmp_path / "a.txt").write_text("\n".join(rows) + "\n")
    said = render_log(LogRenderConfig(tmp_path / "a.txt", tmp_path / "none", str(place), sensors=(cameras,), quiet=True))
    assert said.imu == "none"
    assert any("has no inertial sensor" in note for note in said.notes)
    assert any("differences of its positions" in note for note in said.notes)
    assert not (tmp_path / "none/mav0/imu0").exists()
    with pytest.raises(AirworthyError, match="has no gyro with an accelerometer at the same stamps"):
        render_log(LogRenderConfig(tmp_path / "a.txt", tmp_path / "x", str(place), sensors=(cameras,), quiet=True, imu="log"))
    with_one = LogRenderConfig(tmp_path / "a.txt", tmp_path / "with", str(place), sensors=(cameras,), quiet=True, imu="bmi088")
    assert render_log(with_one).imu == "bmi088"
    back = read_log(tmp_path / "with")
    assert np.median(back.stream("accelerometer").values[:, 2]) == pytest.approx(9.81, abs=0.5)
    assert back.stream("gyro").quality.rate == pytest.approx(200.0, abs=0.1)
    assert table(tmp_path / "with/mav0/state_groundtruth_estimate0/data.csv")[1].shape == (60, 16)


# ---- What is refused ------------------------------------------------------------------------------------------------------


def test_what_makes_no_sense_is_refused(euroc: Path, place: Path, cameras: str, tmp_path: Path) -> None:
    good = {"log": euroc, "out": tmp_path / "o", "scene": str(place), "sensors": (cameras,), "quiet": True}
    for changes, said in (
        ({"axes": ("up", "left", "forward")}, "make no right-handed frame"),
        ({"axes": ("up", "north", "forward")}, "Unknown direction of --axes 'north'"),
        ({"align": (0, 0, 0, 0), "start": (0, 0, 0, 0)}, "give one of them"),
        ({"sensors": ()}, "No camera is named"),
        ({"imu": "nothing"}, "Unknown inertial sensor 'nothing'"),
        ({"sensors": ("base_lidar",)}, "is no camera with a lens"),
        ({"sensors": (f"{cameras}:points",)}, "a data set holds colours and depths"),
        ({"sensors": (), "vehicle": "x500"}, "carries no camera"),
        ({"poses": "capture"}, "Unknown stream of positions 'capture'"),
        ({"out": euroc}, "is the log that is read"),
    ):  # fmt: skip
        with pytest.raises(AirworthyError, match=said):
            render_log(LogRenderConfig(**{**good, **changes}))  # type: ignore[arg-type]
    for text, said in (("x\n", "begins with 'x'"), ("2\n1\n", "does not come after"), ("# a\n", "holds no stamp"),
                       ("1.5\n", "expected a stamp in whole nanoseconds")):  # fmt: skip
        (tmp_path / "s.txt").write_text(text)
        with pytest.raises(AirworthyError, match=said):
            read_stamps(tmp_path / "s.txt")


def test_gaps_are_left_out_and_missing_poses_told(place: Path, cameras: str, tmp_path: Path) -> None:
    rows = [f"{0.01 * k:.6f} 0 0 1 0 0 0 1" for k in (*range(30), *range(90, 120))]
    rows[3] = rows[3].replace("0 0 1 0", "nan 0 1 0")
    (tmp_path / "a.txt").write_text("\n".join(rows) + "\n")
    # The gap is one of 0.61 s: less than twice what is said.
    made = render_log(LogRenderConfig(tmp_path / "a.txt", tmp_path / "o", str(place), sensors=(f"{cameras}:depth",), quiet=True,
                                      gap=0.4))  # fmt: skip
    assert made.frames == {"depth0": 6}  # 0.0, 0.1, 0.2, and 0.9, 1.0, 1.1 of ten a second
    assert any("6 of 12 pictures of bent lie in gaps of over 0.4 s" in note for note in made.notes)
    assert any("1 of 60 poses are missing" in note for note in made.notes)
    path = logged_path(read_log(tmp_path / "a.txt"))
    position, _, reached, gap = path.at([30_000_000, 25_000_000, 500_000_000, -1], 0.25)
    assert (reached.tolist(), gap.tolist()) == ([True, True, True, False], [False, False, True, False])
    assert np.isfinite(position).all()


@pytest.mark.parametrize(
    ("gap", "lost"),
    [(0.15, [False, True, True, True]), (0.25, [False, True, False, True]), (0.35, [False, False, False, True])],
)
def test_a_gap_is_as_long_as_it_is_said(gap: float, lost: list[bool]) -> None:
    stamps = FIRST + np.array([0, 100, 400, 600, 1200]) * 1_000_000
    level = np.tile([0.0, 0.0, 0.0, 1.0], (5, 1))
    path = PosePath(stamps, np.zeros((5, 3)), level, np.zeros((5, 3)), True, None)  # type: ignore[arg-type]
    assert path.at(FIRST + np.array([50, 250, 500, 900]) * 1_000_000, gap)[3].tolist() == lost
    assert not path.at(stamps, gap)[3].any()


def test_the_command_says_what_it_made(euroc: Path, place: Path, cameras: str, tmp_path: Path, capsys: Any) -> None:
    words = ["logs", "render", str(euroc), "--scene", str(place), "--sensors", f"{cameras}:depth", "--out", str(tmp_path / "o")]
    assert main([*words, "--axes", *EUROC_AXES]) == 0
    said = capsys.readouterr().out
    assert "mav0/depth0: 5 pictures." in said
    assert "Inertial sensor: log. Poses beyond the scene's bounds: 0; within something: 0." in said
    assert main([*words, "--axes", "up", "up", "up"]) == 2
    np.testing.assert_allclose(body_axes(("forward", "left", "up")), [0, 0, 0, 1], atol=1e-12)
