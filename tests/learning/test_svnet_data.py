"""SV-Net's training without torch: what it reads of a data set, checkpoints, figures, and what it says of mistakes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.jobs.checkpoints import Checkpoint, Checkpoints
from airworthy.learning.svnet import RunOptions, SvNetOptions
from airworthy.learning.svnet.adaptation import AdaptationConfig, absorbed_ratio, best_ratio, unexplained
from airworthy.learning.svnet.data import SizedImages, TrainingData, batch_order, training_data
from airworthy.learning.svnet.metrics import history_figures
from airworthy.learning.svnet.report import Line, lines, scatter
from airworthy.pilots.svnet.features import History, from_command, observable
from airworthy.pilots.svnet.variants import backbone_shapes, variant
from airworthy.splats.policy_view import CAMERA_INTRINSICS, PolicyView

Make = Callable[..., Any]


def test_data_are_what_a_flight_would_read(pairs_in_memory: Make) -> None:
    pairs = pairs_in_memory(rollouts=3, ticks=9, side=20, held=1)
    data = training_data(pairs, variant("sv_net"))
    sensed, given = pairs.of_rollouts(pairs.sensed), pairs.of_rollouts(from_command(pairs.command))
    history = History(3)
    for tick in range(9):
        before = given[:, tick - 1] if tick else np.zeros((3, 4))
        history.push(sensed[:, tick, 0], observable(sensed[:, tick, 1:]), before)
        rows = np.arange(3) * 9 + tick
        # One rounding to float32 lies between them.
        np.testing.assert_allclose(data.history[rows], history.features(), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(data.state[rows], observable(sensed[:, tick, 1:]), rtol=1e-6)
        assert (data.ticks[rows] == tick).all()
    np.testing.assert_allclose(data.command, from_command(pairs.command), rtol=1e-6)
    np.testing.assert_array_equal(data.parameters, pairs.parameters.astype(np.float32)[pairs.rollout])


def test_lateral_position_reaches_nothing_that_a_seeing_network_reads(pairs_in_memory: Make) -> None:
    here, there = pairs_in_memory(side=20), pairs_in_memory(side=20)
    there.sensed = there.sensed.copy()
    there.sensed[:, 1:3] += np.random.default_rng(5).normal(size=(len(there.sensed), 2)) * 100.0
    inputs = [training_data(pairs, variant("sv_net")) for pairs in (here, there)]
    for name in ("state", "objective", "history", "command"):
        np.testing.assert_array_equal(getattr(inputs[0], name), getattr(inputs[1], name))
    states = [training_data(pairs, variant("hp_net")).state for pairs in (here, there)]
    assert states[0].shape[1] == 11
    assert not np.array_equal(states[0], states[1])  # this one is told, by its definition


def test_order_depends_on_seed_stage_and_epoch_alone() -> None:
    which = np.arange(100, 150)
    first = [tuple(batch) for batch in batch_order(which, 16, 7, "command", 3)]
    assert first == [tuple(batch) for batch in batch_order(which, 16, 7, "command", 3)]
    assert [len(batch) for batch in first] == [16, 16, 16, 2]
    assert sorted(index for batch in first for index in batch) == which.tolist()
    for other in ((8, "command", 3), (7, "history", 3), (7, "command", 4)):
        assert first != [tuple(batch) for batch in batch_order(which, 16, *other)]


def test_views_are_resized_and_know_their_intrinsics(pairs_in_memory: Make) -> None:
    pairs = pairs_in_memory(side=32)
    assert pairs.images is not None
    same = SizedImages(pairs.images, pairs.camera)
    np.testing.assert_array_equal(same.take(np.array([3, 1])), pairs.images.values[[3, 1]])
    half = SizedImages(pairs.images, pairs.camera, 16)
    assert half.take(np.array([0])).shape == (1, 16, 16, 3)
    np.testing.assert_allclose(half.intrinsics, same.intrinsics / 2.0)
    pairs.images.values[:] = 77
    assert (half.take(np.array([0])) == 77).all()
    with pytest.raises(AirworthyError, match="side of 64 px, but the data's images have 32"):
        SizedImages(pairs.images, pairs.camera, 64)


class Whole:
    """Whole images of the camera, one colour each."""

    shape = (2, 360, 640, 3)

    def take(self, which: Any) -> Any:
        return np.full((len(which), *self.shape[1:]), 9, np.uint8)


def test_whole_images_are_cut_to_the_published_view() -> None:
    camera = {"view": "full", **dict(zip(("fx", "fy", "cx", "cy"), CAMERA_INTRINSICS, strict=True))}
    images = SizedImages(Whole(), camera)
    assert images.side == 224
    np.testing.assert_allclose(images.intrinsics, PolicyView().intrinsics(), atol=1e-9)
    small = SizedImages(Whole(), camera, 112)
    assert small.take(np.array([1])).shape == (1, 112, 112, 3)
    np.testing.assert_allclose(small.intrinsics, PolicyView().intrinsics() / 2.0, atol=1e-9)
    with pytest.raises(AirworthyError, match="multiple of 7"):
        SizedImages(Whole(), camera, 100)


@pytest.mark.parametrize(
    ("made", "name", "says"),
    [
        ({"held": 0, "side": 20}, "sv_net", "0 held out"),
        ({"rollouts": 2, "held": 2, "side": 20}, "sv_net", "0 pairs to train on"),
        ({}, "sv_net", "has no images"),
    ],
)
def test_data_that_cannot_be_used_are_refused(pairs_in_memory: Make, made: dict[str, Any], name: str, says: str) -> None:
    with pytest.raises(AirworthyError, match=says):
        training_data(pairs_in_memory(**made), variant(name))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"variant": "svnet"}, "Closest: 'sv_net'"),
        ({"epochs": 0}, "epochs is 0; expected 1 to"),
        ({"rate": 0.0}, "rate is 0.0; expected above 0"),
        ({"dropout": 1.0}, "dropout is 1.0; expected 0 or more, below 1"),
        ({"view": 5}, "view is 5 px; expected 17 to 1024, or 0"),
        ({"image_noise": float("nan")}, "image_noise is nan"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1 << 63}, "expected -2.63 to 2.63 - 1"),
        ({"image_noise": 1e300}, "expected 0 to 255"),
        ({"epochs": 10**400}, "expected -2.63 to 2.63 - 1"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(AirworthyError, match=says):
        SvNetOptions(**options)


def test_a_run_cannot_take_a_negative_time() -> None:
    with pytest.raises(AirworthyError, match="minutes is -1"):
        RunOptions(minutes=-1.0)


# ---- weights to begin with --------------------------------------------------------------------------------------------------


def test_a_backbone_is_read_and_strangers_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from safetensors.numpy import save_file

    from airworthy.learning.svnet.model import pretrained_init, read_backbone

    rng = np.random.default_rng(0)
    tensors = {name: rng.normal(size=shape).astype(np.float32) for name, shape in backbone_shapes().items()}
    good = tmp_path / "good.safetensors"
    save_file(tensors, good)
    found = read_backbone(good)
    assert all(np.array_equal(found[name], tensors[name]) for name in tensors)
    # A variant with classes of its own keeps them, and takes the rest over.
    anew, begun = (pretrained_init(SvNetOptions("sv_grid", weights=file), "float32").state_dict() for file in ("", str(good)))
    for name, tensor in tensors.items():
        wanted = anew[f"vision.backbone.{name}"].numpy() if name.startswith("classifier.") else tensor
        assert np.array_equal(begun[f"vision.backbone.{name}"].numpy(), wanted), name
    (tmp_path / "weights.pth").write_bytes(b"\x80\x02")
    with pytest.raises(AssetError, match=r"not a \.safetensors file; convert it"):
        read_backbone(tmp_path / "weights.pth")
    (tmp_path / "cut.safetensors").write_bytes(good.read_bytes()[:1000])
    with pytest.raises(AssetError, match="not a usable safetensors file"):
        read_backbone(tmp_path / "cut.safetensors")
    for change, says in (
        ({"classifier.1.bias": np.zeros(10, np.float32)}, "shape"),
        ({"classifier.1.bias": np.full(1000, np.nan, np.float32)}, "not finite"),
    ):
        save_file(tensors | change, tmp_path / "bad.safetensors")
        with pytest.raises(AssetError, match=says):
            read_backbone(tmp_path / "bad.safetensors")
    save_file({"a": np.zeros(3, np.float32)}, tmp_path / "bad.safetensors")
    with pytest.raises(AssetError, match="missing"):
        read_backbone(tmp_path / "bad.safetensors")


# ---- checkpoints ------------------------------------------------------------------------------------------------------------


def saved(folder: Path, count: int) -> Checkpoints:
    kept = Checkpoints(folder, "minibatch")
    for number in range(1, count + 1):
        kept.save(Checkpoint(number, {"a": np.full(8, number, np.float32)}, {"x": 0.1 * number}), {"options": {"seed": 0}})
    return kept


def test_the_last_two_checkpoints_are_kept(tmp_path: Path) -> None:
    kept = saved(tmp_path, 4)
    (tmp_path / ".step_000000009.0123.tmp.json").write_text("{")  # a killed process was writing
    assert [path.stem for path in sorted(tmp_path.glob("step_*.json"))] == ["step_000000003", "step_000000004"]
    newest = kept.newest()
    assert newest is not None
    assert newest.number == 4
    assert newest.notes["x"] == 0.4
    kept.clear()
    assert not tmp_path.exists()


def test_any_flipped_bit_falls_back_to_the_checkpoint_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = saved(tmp_path, 2)
    rng = np.random.default_rng(3)
    for path in (tmp_path / "step_000000002.safetensors", tmp_path / "step_000000002.json"):
        whole = path.read_bytes()
        for at in rng.integers(0, len(whole), 40):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << int(rng.integers(8))
            path.write_bytes(damaged)
            found = kept.newest()
            assert found is not None
            assert found.number == 1
        path.write_bytes(whole)
    assert "The checkpoint of minibatch 2 is damaged" in capsys.readouterr().err


def test_a_truncated_checkpoint_falls_back_and_none_is_none(tmp_path: Path) -> None:
    kept = saved(tmp_path, 2)
    path = tmp_path / "step_000000002.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    found = kept.newest()
    assert found is not None
    assert found.number == 1
    (tmp_path / "step_000000001.safetensors").unlink()
    assert kept.newest() is None


# ---- figures ----------------------------------------------------------------------------------------------------------------


def evaluated(pairs_in_memory: Make) -> TrainingData:
    return training_data(pairs_in_memory(rollouts=8, ticks=7, held=3), variant("hp_net"))


def test_the_ratio_is_judged_whatever_the_parts_are(pairs_in_memory: Make) -> None:
    data = evaluated(pairs_in_memory)
    truth = data.parameters[data.held_out]
    perfect, scaled = (history_figures(data, truth * factor) for factor in (1.0, 1.1))
    assert perfect["ratio_error"] == 0.0
    assert scaled["ratio_error"] < 1e-6  # float32
    assert scaled["mass_kg_rms"] > 0.05
    off = history_figures(data, truth * np.array([1.0, 1.02], np.float32))
    assert off["ratio_error"] == pytest.approx(0.02, abs=1e-6)
    assert off["ratio_bias"] == pytest.approx(0.02, abs=1e-6)
    mean = np.broadcast_to(data.parameters[data.train].mean(axis=0), truth.shape)
    assert history_figures(data, mean)["mass_kg_rms"] == pytest.approx(off["mass_kg_rms_of_mean"], rel=1e-5)


def test_drawings_are_whole_and_skip_what_is_not_finite() -> None:
    points = [(1, 0.5), (2, float("nan")), (3, 0.05), (4, 0.005), (5, None)]
    drawn = lines("a & b", "epoch", [Line("x < y", "flown", points), Line("none", "warn", [])])
    root = ET.fromstring(drawn)  # noqa: S314 - our own words
    assert len(root.findall("polyline")) == 1
    assert "1e-05" not in drawn
    assert lines("t", "x", [Line("none", "flown", [(1, None), (2, float("nan"))])]) == ""
    # A point alone is a mark.
    one = ET.fromstring(lines("t", "x", [Line("one", "flown", [(1, 1.0)])]))  # noqa: S314
    assert len(one.findall("circle")) == 1
    # A linear axis begins at 0 though no value is near; below 0 it begins with its values. The fourth word is the place across.
    plain = ET.fromstring(lines("t", "x", [Line("one", "flown", [(1, 5.0), (2, 6.0)])], logarithmic=False))  # noqa: S314
    assert [text.text for text in plain.findall("text")][:4] == ["0", "2", "4", "6"]
    below = ET.fromstring(lines("t", "x", [Line("one", "flown", [(1, -3.0), (2, 3.0)])], logarithmic=False))  # noqa: S314
    assert [text.text for text in below.findall("text")][:4] == ["-2", "0", "2", "1"]
    dots = ET.fromstring(scatter("s", np.arange(2000.0), np.arange(2000.0)[::-1]))  # noqa: S314
    assert len(dots.findall("g/circle")) == 600


# ---- why the ratio can absorb forces (specification, section 8) -------------------------------------------------------------


def test_a_fit_to_simulated_pushes_finds_what_the_formula_says() -> None:
    # c_hat = c + (z_B . f_add) / f, and |f_add| sin(angle) is left; z up, f the share of full thrust.
    from airworthy.core.frames import rotate

    rng = np.random.default_rng(2)
    for _ in range(50):
        c, share, push = rng.uniform(12.0, 40.0), rng.uniform(0.2, 0.9), rng.uniform(-4.0, 4.0, 3)
        turn = rng.normal(size=4)
        axis = rotate(turn / np.linalg.norm(turn), np.array([0.0, 0.0, 1.0]))
        # Motion over 20 ms of a drone that does not turn, exact: velocity and position by hand, acceleration from them.
        dt, velocity = 0.02, rng.normal(size=3)
        force = c * share * axis - (0.0, 0.0, 9.81) + push
        measured = ((velocity + dt * force) - velocity) / dt
        fitted, left = best_ratio(measured[None], axis[None], np.array([share]))
        assert fitted == pytest.approx(float(absorbed_ratio(c, axis, push, share)), abs=1e-9)
        assert left[0] == pytest.approx(float(unexplained(axis, push)), abs=1e-9)
        angle = np.arccos(np.clip(axis @ push / np.linalg.norm(push), -1.0, 1.0))
        assert left[0] == pytest.approx(np.linalg.norm(push) * np.sin(angle), abs=1e-7)  # arccos near 0 loses half the digits


@pytest.mark.parametrize("change", [{"flights": 0}, {"payload": 0.0}, {"noise": "loud"}])
def test_adaptation_refuses_what_it_cannot_measure(change: dict[str, Any]) -> None:
    with pytest.raises(AirworthyError):
        AdaptationConfig(**change)


# ---- command line -----------------------------------------------------------------------------------------------------------


def test_without_torch_one_sentence_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["train", "svnet", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "This needs the package 'torch': pip install 'airworthy[learn]'.\n"


def test_the_kind_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train"]) == 2
    assert "svnet" in capsys.readouterr().out
    assert main(["train", "sv_net", "folder"]) == 2
    assert "Closest: 'svnet'" in capsys.readouterr().err
