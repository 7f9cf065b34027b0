"""How long SV-Net takes to decide on this machine, beside onnxruntime and torch where they are installed.

    python benchmarks/svnet.py               about half a minute
    python benchmarks/svnet.py --view 112 --device cuda:0
    python benchmarks/svnet.py --policy runs/sight     a folder that was trained, or hall; with what it commands elsewhere

Random weights, random images; the time of a decision does not depend on them. "core" is processor time of all threads, which a
busy machine changes little; "wall" is what a clock shows. A decision is the whole of it: 8-bit image, history, command. Of a
policy it is also told by how much its commands differ in the exported ONNX model and in the exported program (extra `export`),
over ticks that each read the history of their own commands; beyond the bar of 1e-5 the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayF32

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.core.frames import from_euler
from airworthy.pilots.pilot import HEIGHT, Observation
from airworthy.pilots.svnet.contract import PolicyContract, PolicyImage, policy_folder, read_policy, write_policy
from airworthy.pilots.svnet.example import PARITY
from airworthy.pilots.svnet.features import to_objective
from airworthy.pilots.svnet.network import Reading, SvNetwork, svnet_twin
from airworthy.pilots.svnet.pilot import SvNetPilot
from airworthy.pilots.svnet.variants import tensor_shapes
from airworthy.simulation.sensor_state import Sample
from benchmarks import hardware

RATE = 20.0
"""Decisions per second that a flight needs [Hz]."""
DECISION_MS = 1.0
"""Bar of a decision at 112 pixels, ours: a fiftieth of the time there is, processor time of one thread [ms]."""
FULL, WEIGHT = 27.6, 11.22264
"""Thrust of all rotors at full command, and weight, of the reference drone [N]."""
Decide = Callable[[Reading], Any]


def random_weights(seed: int = 0) -> dict[str, ArrayF32]:
    """Of SV-Net, of a size that keeps numbers near 1."""
    rng = np.random.default_rng(seed)
    return {
        name: (rng.uniform(-1, 1, shape) * np.sqrt(6.0 / np.prod(shape[1:]))).astype(np.float32)
        for name, shape in tensor_shapes("sv_net").items()
    }


def random_reading(count: int, side: int, seed: int = 1) -> Reading:
    """Return what n flights are shown."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, side, side, 3), np.uint8)
    return Reading(rng.normal(size=(count, 8)), rng.normal(size=(count, 18)), rng.normal(size=(count, 75)), images)


def timed(decide: Decide, reading: Reading, seconds: float) -> dict[str, float]:
    """Shortest and middle times of a call, per flight [ms]."""
    for _ in range(4):  # compiles, and lets the launcher find out whether threads pay
        decide(reading)
    wall, core, end = [], [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(wall) < 5:
        begin, spent = time.perf_counter(), time.process_time()
        decide(reading)
        wall.append(time.perf_counter() - begin)
        core.append(time.process_time() - spent)
    scale = 1e3 / len(reading.state)
    figures = {"core_ms": min(core), "core_median_ms": np.median(core), "wall_ms": min(wall), "wall_median_ms": np.median(wall)}
    return {name: round(float(value) * scale, 3) for name, value in figures.items()}


def with_torch(contract: PolicyContract, weights: Mapping[str, ArrayF32], threads: int) -> Decide:
    """Return the network that training uses."""
    import torch

    from airworthy.learning.svnet.model import Inputs, SvNet
    from airworthy.pilots.svnet.network import normalised

    torch.set_num_threads(threads)
    model = SvNet(contract.variant).eval()
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})

    def decide(reading: Reading) -> Any:
        images = torch.from_numpy(np.ascontiguousarray(normalised(contract, reading.images).transpose(0, 3, 1, 2)))
        told = (torch.from_numpy(part).float() for part in (reading.state, reading.objective, reading.history))
        with torch.no_grad():
            return model(Inputs(*told, images)).numpy()

    return decide


def sides(contract: PolicyContract, weights: Mapping[str, ArrayF32], device: str) -> dict[str, Decide]:
    """Return what is compared, all on one thread of a CPU, and ours on the device asked for."""
    found: dict[str, Decide] = {
        "ours, one thread": SvNetwork(contract, weights, threads=1),
        "numpy twin": lambda reading: svnet_twin(contract, weights, reading),
    }
    if device != "cpu":
        found[f"ours, {device}"] = SvNetwork(contract, weights, device)
    if find_spec("onnx") and find_spec("onnxruntime"):
        from airworthy.learning.export import export_onnx
        from airworthy.pilots.svnet.onnx_runner import OnnxNetwork

        with tempfile.TemporaryDirectory() as folder:
            write_policy(folder, contract, weights)
            path = export_onnx(folder, Path(folder) / "policy.onnx")
            found["onnxruntime, one thread"] = OnnxNetwork(path, threads=1)
    if find_spec("torch"):
        found["torch, one thread"] = with_torch(contract, weights, 1)
    return found


def sensed(number: int, rng: np.random.Generator, side: tuple[int, int]) -> tuple[float, Any, Any, Any, Any]:
    """Return time [s], position, velocity and attitude (z up) of a tick of a made-up flight, and a random image."""
    t = number / RATE
    position = np.array([3.0 * np.cos(0.3 * t), 3.0 * np.sin(0.3 * t), 1.2 + 0.3 * np.sin(0.7 * t)])
    velocity = np.array([-0.9 * np.sin(0.3 * t), 0.9 * np.cos(0.3 * t), 0.21 * np.cos(0.7 * t)])
    attitude = from_euler(0.2 * np.sin(1.1 * t), 0.2 * np.cos(0.9 * t), 0.3 * t + 1.5)
    return t, position, velocity, attitude, rng.integers(0, 256, (*side, 3), np.uint8)


def apart(folder: Path, contract: PolicyContract, weights: Mapping[str, ArrayF32], ticks: int) -> dict[str, float]:
    """Return by how much commands differ from ours at most: thrust as a share of full thrust, rates [rad/s].

    Args:
        folder: Of the policy.
        contract: Of it.
        weights: Of it.
        ticks: How many, in one flight.
    """
    from airworthy.learning import export_policy, svnet_runner
    from airworthy.pilots.svnet.onnx_runner import OnnxNetwork

    objective = np.random.default_rng(2).normal(size=18)
    with tempfile.TemporaryDirectory() as made:
        model = export_policy(folder, Path(made) / "policy.onnx")
        runner = svnet_runner.Runner(str(model), objective, FULL, WEIGHT)
        networks: list[Any] = [SvNetwork(contract, weights, threads=1), OnnxNetwork(model, threads=1)]
    # Pilots are told courses z up; the same signs lead there and back.
    pilots = [SvNetPilot(contract, network, to_objective(objective), [FULL], "camera", WEIGHT) for network in networks]
    assert contract.image_size is not None
    rng, scale = np.random.default_rng(3), np.array([FULL, 1.0, 1.0, 1.0])
    worst = np.zeros(2)
    for number in range(ticks):
        t, position, velocity, attitude, image = sensed(number, rng, contract.image_size)
        fields = {HEIGHT: position[2:], "velocity": velocity[None], "attitude": attitude[None]}
        one = np.array([number])
        shown = Sample(one / RATE, one, one, np.array([True]), np.zeros((1, 3)), np.zeros((1, 4)), {"rgb": image[None]})
        ours, theirs = (pilot.command(Observation(np.array([t]), fields, {"camera": shown}))[0] for pilot in pilots)
        alone = runner.decide(t, position[2], velocity, attitude, image)
        worst = np.maximum(worst, [np.abs((other - ours) / scale).max() for other in (theirs, alone)])
    return {"onnx": float(worst[0]), "runner": float(worst[1])}


def main() -> int:
    """Measure and print; returns 1 where a policy commands otherwise elsewhere."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--view", type=int, default=224, help="side of the image [px]")
    parser.add_argument("--flights", type=int, default=64, help="of the batch")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--device", default="cpu", help="cpu, or a GPU as cuda:0")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--policy", help="a folder of `airworthy train visuomotor` or svnet, or the name of a shipped one")
    parser.add_argument(
        "--ticks", type=int, default=1000, help="of the flight on which a policy is compared with itself elsewhere"
    )
    options = parser.parse_args()
    folder = policy_folder(options.policy) if options.policy else None
    contract, weights = read_policy(folder) if folder else (made_up(options.view), random_weights())
    if contract.image_size is None:
        parser.error(f"{options.policy!r} reads no images: there is nothing to compare")
    side = contract.image_size[0]
    one, many = random_reading(1, side), random_reading(options.flights, side)
    rows = {name: timed(decide, one, options.seconds) for name, decide in sides(contract, weights, options.device).items()}
    ours = SvNetwork(contract, weights, options.device)
    rows[f"ours, {options.flights} flights"] = timed(ours, many, options.seconds)
    exported = bool(find_spec("onnx") and find_spec("onnxruntime"))
    off = apart(folder, contract, weights, options.ticks) if folder and exported else {}
    same = all(value <= PARITY for value in off.values())
    about = hardware.describe(list(range(hardware_threads())))
    if options.json:
        told = {"policy": str(folder), "ticks": options.ticks, "apart": off} if folder else {}
        print(json.dumps({"hardware": about, "view": side, "per_flight": rows, **told}, indent=2))
        return 0 if same else 1
    print(f"A decision of {contract.variant} at {side} x {side}, per flight, on {about['cpu']}:")
    for name, row in rows.items():
        share = row["core_ms"] * RATE / 10.0
        print(f"  {name:26} {row['core_ms']:8.2f} ms core  {row['wall_ms']:8.2f} ms wall  {share:6.1f} % of a core at 20 Hz")
    if folder:
        print(judged_line(rows["ours, one thread"]["core_ms"], off, options.ticks))
    return 0 if same else 1


def judged_line(milliseconds: float, off: Mapping[str, float], ticks: int) -> str:
    """Return a policy's figures beside their bars."""
    lines = [f"A decision: {milliseconds:.2f} ms of a core, {_met(milliseconds < DECISION_MS)} (bar {DECISION_MS:g} ms)."]
    names = {"onnx": "the ONNX model", "runner": "the exported program"}
    lines += [
        f"Commands of {names[name]}: at most {value:.1e} apart over {ticks:,} ticks, {_met(value <= PARITY)} (bar {PARITY:g})."
        for name, value in off.items()
    ]
    return "\n".join(
        lines if off else [*lines, "Not compared with its exported forms: that needs pip install 'airworthy[export]'."]
    )


def _met(good: bool) -> str:
    return "met" if good else "missed"


def made_up(view: int) -> PolicyContract:
    """Return the contract of a policy that is none."""
    return PolicyContract("sv_net", PolicyImage.of_side(view))


def hardware_threads() -> int:
    """Threads that our kernels may use."""
    from airworthy.core.native_kernel import thread_limit

    return thread_limit()


if __name__ == "__main__":
    sys.exit(main())
