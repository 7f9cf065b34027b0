"""The form of the kernels that a GPU runs: compiled without one, run on a CPU, and compared where a GPU is.

Tests marked `gpu` run with `make test-gpu`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array, ArrayAny, ArrayIndex
from airworthy.core.native_kernel import CPU_LANES, native_kernel, quiet_launch, quiet_warp
from airworthy.dynamics.rigid import CPU_VARIANTS, GPU_VARIANTS, VARIANTS, advance_source, variant_name
from airworthy.dynamics.state import ROTOR_COUNTS, Effects
from airworthy.simulation import arrays, family
from airworthy.simulation.config import Ground, Imu, SimulatorConfig, Wind
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import Drag, Vehicle, vehicle

CAPABILITY = 90
"""Hopper; any that NVRTC knows would do."""

NEEDS_NVRTC = pytest.mark.skipif(sys.platform == "darwin", reason="Warp has no CUDA compiler on macOS")


def compiled(kernel: Any, folder: Path, use_ptx: bool) -> Path:
    """A kernel's CUDA code, made without a GPU."""
    wp = quiet_warp()
    with wp.ScopedLogLevel(wp.LOG_ERROR):
        wp.compile_aot_module(kernel.module, device=None, arch=CAPABILITY, module_dir=folder, use_ptx=use_ptx)
    (path,) = folder.glob(f"*.sm{CAPABILITY}.{'ptx' if use_ptx else 'cubin'}")
    return path


# ---- without a GPU ---------------------------------------------------------------------------------------------------


@NEEDS_NVRTC
@pytest.mark.slow
def test_the_fused_step_compiles_for_cuda(tmp_path: Path) -> None:
    text = compiled(family.step_kernel(4), tmp_path, use_ptx=True).read_text(errors="replace")
    assert f".target sm_{CAPABILITY}" in text
    assert re.search(r"\.visible \.entry airworthy_step_4\w*_cuda_kernel_forward", text)
    # Correctly rounded, nothing contracted, nothing flushed to zero: the same bits as on a CPU.
    assert "div.rn.f32" in text
    assert "sqrt.rn.f32" in text
    assert not re.search(r"fma\.rn|\.approx|div\.full|\.ftz", text)
    # No double arithmetic: some GPUs do it at 1/64 of the speed.
    assert not re.search(r"^\s*(add|sub|mul|div|fma|cvt)\.\S*f64", text, re.MULTILINE)


@NEEDS_NVRTC
def test_the_semi_kinematic_step_compiles_to_machine_code(tmp_path: Path) -> None:
    code = compiled(family.semi_kinematic_kernel(4), tmp_path, use_ptx=False).read_bytes()
    assert code.startswith(b"\x7fELF")
    assert int.from_bytes(code[18:20], "little") == 190  # EM_CUDA
    assert b"airworthy_semi_kinematic" in code


@NEEDS_NVRTC
def test_every_traced_operation_compiles_for_cuda(probe_kernel: Any, tmp_path: Path) -> None:
    text = compiled(probe_kernel, tmp_path, use_ptx=True).read_text(errors="replace")
    assert "airworthy_probe" in text
    assert not re.search(r"fma\.rn|\.approx|div\.full|\.ftz", text)


@NEEDS_NVRTC
@pytest.mark.slow
@pytest.mark.parametrize("rotor_count", ROTOR_COUNTS)
def test_machine_code_of_every_rotor_count(rotor_count: int, tmp_path: Path) -> None:
    """Also prints registers and stack, where a CUDA toolkit is."""
    path = compiled(family.step_kernel(rotor_count), tmp_path, use_ptx=False)
    # All twelve derivatives inlined and unrolled were 600 kB for four rotors; as it is, 426 kB for 4 and 1.1 MB for 12.
    assert path.stat().st_size < 140_000 * rotor_count
    tool = shutil.which("cuobjdump") or shutil.which("cuobjdump", path=os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin")
    if tool is not None:
        printed = subprocess.run([tool, "-res-usage", str(path)], capture_output=True, text=True, check=True)
        print(printed.stdout + printed.stderr)


def test_a_gpu_has_a_derivative_for_every_set_of_flags() -> None:
    """The choice is a switch: the same cases on both sides, and no general form where a special one covers."""
    choice = advance_source().rpartition("switch (variant)")[2]
    gpu, _, cpu = choice.partition("#else")
    cases = [sorted(re.findall(r"case (\d+):", side)) for side in (gpu, cpu)]
    assert cases[0] == cases[1]
    assert len(cases[0]) == len(VARIANTS) == 16
    called = [re.findall(r"advance_(\w+)\(", side) for side in (gpu, cpu)]
    assert called[0] == sorted({variant_name(*v) for v in GPU_VARIANTS}, key=called[0].index)
    assert called[1] == sorted({variant_name(*v) for v in CPU_VARIANTS}, key=called[1].index)
    assert len(called[1]) == len(CPU_VARIANTS) == 14


# ---- scenarios: what a batch meets -----------------------------------------------------------------------------------

IMU = Imu(
    accelerometer_noise=(0.02,) * 3, gyroscope_noise=(2e-3,) * 3, accelerometer_walk=(1e-3,) * 3, gyroscope_walk=(1e-4,) * 3
)
WIND = Wind(mean=(1.0, -2.0, 0.5), gust=(2.0, 0.0, 0.0), turbulence=(0.5, 0.5, 0.3))

SCENARIOS: dict[str, tuple[tuple[str, ...], SimulatorConfig]] = {
    "bare": (("virt_01",), SimulatorConfig(wrench_noise=False, disturbance=False)),
    "drag": (("flightgoggles",), SimulatorConfig()),
    "polynomial": (("cf2x_L250",), SimulatorConfig()),
    "exact": (("flightgoggles",), SimulatorConfig(exact_rotors=True)),
    "tilted": (("tinyprop",), SimulatorConfig(integrator="euler")),
    "mixed": (("virt_01", "flightgoggles", "cf2x_L250", "tinyprop"), SimulatorConfig(integrator="semi_implicit")),
    "everything": (
        ("flightgoggles",),
        SimulatorConfig(
            level="rate_thrust:flightgoggles", imu=IMU, gyro_feedback=True, wind=WIND, ground=Ground(), ground_effect=0.1
        ),
    ),
    "mellinger": (("cf2x_L250",), SimulatorConfig(level="tracking:mellinger", wind=WIND)),
    "position": (("virt_01", "flightgoggles"), SimulatorConfig(level="position", imu=IMU)),
    "irregular": (("virt_01", "uneven"), SimulatorConfig(level="rate_thrust")),
}
ENVS = 32


def _vehicle(name: str) -> Vehicle:
    """One of the catalogue, or `uneven`: one whose rotors differ, so that one of them is full before the others."""
    if name != "uneven":
        return vehicle(name)
    body = vehicle("flightgoggles")
    rotors = zip(body.rotors, (0.7, 1.3, 1.1, 0.8), strict=True)
    return replace(body, rotors=tuple(replace(r, thrust=tuple(f * c for c in r.thrust)) for r, f in rotors))


def _simulator(name: str, device: str = "cpu", members: ArrayIndex | None = None, seed: int = 3) -> Simulator:
    """A scenario in motion: every environment from a state and under a command of its own."""
    names, config = SCENARIOS[name]
    members = np.arange(ENVS) if members is None else members
    fleet: list[Vehicle] = [_vehicle(names[k % len(names)]) for k in members]
    simulator = Simulator(fleet, config, seed=seed, flight_ids=members, device=device)
    rng = np.random.default_rng(5)
    spread = {"position": 0.3, "velocity": 2.0, "attitude": 0.3, "rate": 1.0}
    start = {field: scale * rng.normal(size=(ENVS, 4 if field == "attitude" else 3)) for field, scale in spread.items()}
    start["attitude"][:, 3] += 1.0
    # One flight upside down and turned, so that axes have every sign; where there is a ground some start below it.
    start["attitude"][1] = (0.5, -0.4, 0.7, 0.3)
    simulator.reset(**{field: value[members] for field, value in start.items()})
    commands = _commands(simulator, rng)[members]
    if config.level == "rotor_speed":  # in units of each member's own hover
        commands *= simulator.rotor_speed[:, :4].mean(axis=1, keepdims=True)
    simulator.set_command(commands)
    return simulator


def _commands(simulator: Simulator, rng: np.random.Generator) -> Array:
    level = simulator.config.level
    if level == "rotor_speed":
        return rng.uniform(0.8, 1.3, (ENVS, simulator.rotor_count))
    if level.startswith("rate_thrust"):
        return np.column_stack([rng.uniform(5.0, 12.0, ENVS), rng.normal(size=(ENVS, 3))])
    width = 14 if level.startswith("tracking") else 4
    return 0.3 * rng.normal(size=(ENVS, width))


def _fields(simulator: Simulator) -> dict[str, ArrayAny]:
    return {name: np.array(simulator.field(name)) for name in simulator.layout.fields}


@cache
def _scalar_kernel(irregular: bool) -> Any:
    """The step for 4 rotors as a GPU runs it, one environment after the other, compiled for the CPU."""
    name = "step_scalar_irregular" if irregular else "step_scalar"
    return native_kernel(name, "#define SCALAR_PATH\n" + family.step_snippet(4, irregular), family._ARGUMENTS)


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> Callable[[Simulator], Simulator]:
    """Makes a simulator on a CPU launch as on a GPU: one task per environment."""

    def changed(simulator: Simulator) -> Simulator:
        monkeypatch.setattr(simulator._arrays, "_kernel", lambda only, irregular: _scalar_kernel(irregular))
        simulator._arrays._forget_launches()
        monkeypatch.setattr(arrays, "BLOCKS_PER_TASK", Fraction(1, CPU_LANES))
        return simulator

    return changed


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_gpu_form_gives_the_bytes_of_the_lanes(name: str, one_by_one: Callable[[Simulator], Simulator]) -> None:
    """It has four of the twelve derivatives, its own parameter reading and its own loops; run here without a GPU."""
    lanes = _simulator(name)
    assert bool(lanes.effects & Effects.IRREGULAR) == (name == "irregular")
    for _ in range(5):
        lanes.step()
    single = one_by_one(_simulator(name))
    for _ in range(5):
        single.step()
    ours, theirs = _fields(lanes), _fields(single)
    assert np.isfinite(ours["position"]).all()
    assert not np.array_equal(ours["position"], np.array(_simulator(name).field("position")))  # it moved
    for field, value in ours.items():
        assert theirs[field].tobytes() == value.tobytes(), field


@pytest.mark.parametrize("neighbour", ["tinyprop", "cf2x_L250", "flightgoggles", "lmf1"])
def test_the_form_that_a_neighbour_needs_changes_no_bit(neighbour: str) -> None:
    """Down to the signs of zeros: where a special form drops a term that is zero, the general one adds it."""
    plain = replace(vehicle("virt_01"), drag=Drag())
    config = SimulatorConfig(wrench_noise=False, disturbance=False, imu=Imu())
    rng = np.random.default_rng(0)
    zeros = rng.choice([0.0, -0.0], (2, 257, 3))
    results = []
    for first in (plain, vehicle(neighbour)):
        simulator = Simulator([first] + [plain] * 256, config, flight_ids=np.arange(257))
        attitude = np.random.default_rng(1).normal(size=(257, 4))
        simulator.reset(velocity=zeros[0], rate=zeros[1], attitude=attitude, rotor_speed=np.zeros(simulator.rotor_count))
        simulator.set_command(np.zeros(simulator.rotor_count))
        simulator.step()
        results.append((int(simulator.effects), {name: value[1:] for name, value in _fields(simulator).items()}))
    (special, alone), (general, beside) = results
    assert special != general  # another derivative was taken
    for name, value in alone.items():
        assert beside[name][..., : value.shape[-1]].tobytes() == value.tobytes(), name


# ---- with a GPU ------------------------------------------------------------------------------------------------------

GPU = "cuda:0"


def _relative(a: ArrayAny, b: ArrayAny) -> float:
    """Largest difference over the larger of 1 and the field's own size."""
    if not a.size:
        return 0.0
    return float(np.max(np.abs(a.astype(float) - b.astype(float))) / max(1.0, float(np.max(np.abs(b)))))


@pytest.mark.gpu
@pytest.mark.parametrize("name", SCENARIOS)
def test_one_step_on_a_gpu_equals_the_cpu(name: str) -> None:
    """To 1e-5; by design to the bit, but that is promised per device type only."""
    results = []
    for device in ("cpu", GPU):
        simulator = _simulator(name, device)
        simulator.advance(1)
        results.append(_fields(simulator))
    for field, value in results[0].items():
        assert _relative(results[1][field], value) <= 1e-5, field


@pytest.mark.gpu
def test_two_seconds_of_closed_loop_stay_within_a_millimetre_of_the_cpu() -> None:
    results = []
    for device in ("cpu", GPU):
        simulator = _simulator("position", device)
        for _ in range(200):
            simulator.step()
        results.append(np.array(simulator.position))
    assert np.max(np.abs(results[0] - results[1])) <= 1e-3


@pytest.mark.gpu
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_gpu_repeats_itself_to_the_byte(name: str) -> None:
    runs = []
    for _ in range(2):
        simulator = _simulator(name, GPU)
        for _ in range(20):
            simulator.step()
        runs.append(_fields(simulator))
    for field, value in runs[0].items():
        assert runs[1][field].tobytes() == value.tobytes(), field


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["drag", "mixed", "everything"])
def test_on_a_gpu_a_flight_does_not_depend_on_its_batch(name: str) -> None:
    order = np.random.default_rng(8).permutation(ENVS)
    whole, shuffled, alone = _simulator(name, GPU), _simulator(name, GPU, order), _simulator(name, GPU, np.array([7]))
    for _ in range(10):
        for simulator in (whole, shuffled, alone):
            simulator.step()
    for field, value in _fields(whole).items():
        assert np.ascontiguousarray(_fields(shuffled)[field]).tobytes() == np.ascontiguousarray(value[order]).tobytes(), field
        assert np.ascontiguousarray(_fields(alone)[field][0]).tobytes() == np.ascontiguousarray(value[7]).tobytes(), field


@pytest.mark.gpu
def test_on_a_gpu_save_and_restore_continue_to_the_byte() -> None:
    simulator = _simulator("everything", GPU)
    for _ in range(7):
        simulator.step()
    snapshot = simulator.save()
    for _ in range(9):
        simulator.step()
    expected = _fields(simulator)
    simulator.restore(snapshot)
    for _ in range(9):
        simulator.step()
    for field, value in _fields(simulator).items():
        assert value.tobytes() == expected[field].tobytes(), field


@pytest.mark.gpu
def test_a_flight_that_diverges_on_a_gpu_leaves_the_others_alone() -> None:
    clean, hurt = _simulator("drag", GPU), _simulator("drag", GPU)
    commands = _commands(hurt, np.random.default_rng(1))
    clean.set_command(commands)
    commands = commands.copy()
    commands[5] = np.nan
    hurt.set_command(commands)
    for _ in range(5):
        clean.step()
        hurt.step()
    np.testing.assert_array_equal(np.flatnonzero(hurt.diverged), [5])
    others = np.arange(ENVS) != 5
    for field, value in _fields(clean).items():
        assert _fields(hurt)[field][others].tobytes() == value[others].tobytes(), field


@pytest.mark.gpu
def test_every_traced_operation_on_a_gpu_equals_numpy(
    probe_kernel: Any, traced_operations: Callable[..., dict[str, Any]]
) -> None:
    """To the bit, denormals included: no operation is contracted, approximated or flushed."""
    wp = quiet_warp()
    rng = np.random.default_rng(2)
    values = (rng.normal(size=(3, 4096)) * 10.0 ** rng.uniform(-20, 18, (3, 4096))).astype(np.float32)
    values[:, :64] = rng.choice([0.0, -0.0, 1e-45, 1.0, -2.5, 3.4e38, np.inf, -np.inf, np.nan], (3, 64))
    with np.errstate(all="ignore"):
        expected = {name: np.asarray(x, np.float32) for name, x in traced_operations(*values).items()}
    count = values.shape[1]
    results, words = wp.zeros(128 * count, dtype=wp.float32, device=GPU), wp.zeros(4 * count, dtype=wp.uint32, device=GPU)
    sent, keys = wp.array(values.ravel(), device=GPU), wp.zeros(5 * count, dtype=wp.uint32, device=GPU)
    quiet_launch(probe_kernel, count, [sent, keys, results, words, count, 1, 0], GPU)
    for (name, value), row in zip(expected.items(), results.numpy().reshape(128, count), strict=False):
        same = (row.view(np.uint32) == value.view(np.uint32)) | (np.isnan(row) & np.isnan(value))
        assert same.all(), (name, values[:, ~same][:, :3], row[~same][:3], value[~same][:3])
