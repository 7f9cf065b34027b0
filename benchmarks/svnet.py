"""How long SV-Net takes to decide on this machine, beside onnxruntime and torch where they are installed.

    python benchmarks/svnet.py               about half a minute
    python benchmarks/svnet.py --view 112 --device cuda:0

Random weights, random images; the time of a decision does not depend on them. "core" is processor time of all threads, which a
busy machine changes little; "wall" is what a clock shows. A decision is the whole of it: 8-bit image, history, command.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayF32

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.pilots.svnet.contract import PolicyContract, PolicyImage, write_policy
from airworthy.pilots.svnet.network import Reading, SvNetwork, svnet_twin
from airworthy.pilots.svnet.variants import tensor_shapes
from benchmarks import hardware

RATE = 20.0
"""Decisions per second that a flight needs [Hz]."""
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


def with_torch(contract: PolicyContract, weights: dict[str, ArrayF32], threads: int) -> Decide:
    """Return the network that training uses."""
    import torch

    from airworthy.learning.svnet.model import Inputs, SvNet
    from airworthy.pilots.svnet.network import normalised

    torch.set_num_threads(threads)
    model = SvNet("sv_net").eval()
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})

    def decide(reading: Reading) -> Any:
        images = torch.from_numpy(np.ascontiguousarray(normalised(contract, reading.images).transpose(0, 3, 1, 2)))
        told = (torch.from_numpy(part).float() for part in (reading.state, reading.objective, reading.history))
        with torch.no_grad():
            return model(Inputs(*told, images)).numpy()

    return decide


def sides(contract: PolicyContract, weights: dict[str, ArrayF32], device: str) -> dict[str, Decide]:
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


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--view", type=int, default=224, help="side of the image [px]")
    parser.add_argument("--flights", type=int, default=64, help="of the batch")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--device", default="cpu", help="cpu, or a GPU as cuda:0")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    contract, weights = PolicyContract("sv_net", PolicyImage.of_side(options.view)), random_weights()
    one, many = random_reading(1, options.view), random_reading(options.flights, options.view)
    rows = {name: timed(decide, one, options.seconds) for name, decide in sides(contract, weights, options.device).items()}
    ours = SvNetwork(contract, weights, options.device)
    rows[f"ours, {options.flights} flights"] = timed(ours, many, options.seconds)
    cores = list(range(hardware_threads()))
    if options.json:
        print(json.dumps({"hardware": hardware.describe(cores), "view": options.view, "per_flight": rows}, indent=2))
        return 0
    print(f"A decision of SV-Net at {options.view} x {options.view}, per flight, on {hardware.describe(cores)['cpu']}:")
    for name, row in rows.items():
        share = row["core_ms"] * RATE / 10.0
        print(f"  {name:26} {row['core_ms']:8.2f} ms core  {row['wall_ms']:8.2f} ms wall  {share:6.1f} % of a core at 20 Hz")
    return 0


def hardware_threads() -> int:
    """Threads that our kernels may use."""
    from airworthy.core.native_kernel import thread_limit

    return thread_limit()


if __name__ == "__main__":
    sys.exit(main())
