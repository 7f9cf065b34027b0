"""Two forms of one gradient, in turn: the fused trainer's window in lanes, and torch through `DifferentiableSimulator`.

    python benchmarks/gradient_forms.py                  32-32 and 64-64, a few seconds
    python benchmarks/gradient_forms.py --threads 1      on one core

Same task (hover), vehicle, network, weights, starts and threads: env-steps per second of wall time and of the processor,
forwards and backwards without the optimiser's step, medians of rounds; the ratio of wall times in the same round; and how far
the gradients are apart, by the norm of the whole. Weights are those of a policy that has learnt for a while: through flights
that tumble both forms are right only to their first digits.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.core.arrays import Array
from airworthy.learning.gradient import DifferentiableSimulator, GradientOptions, GradientTraining
from airworthy.vehicles import vehicle
from benchmarks import hardware

CASES = ((32, 64, 100), (64, 128, 100), (32, 256, 100), (64, 256, 100))
"""Width of both layers, flights, steps of a window: those of the specification (learning by reward, 6.3)."""
LEARNT = 200
"""Steps of training before anything is measured."""


def network(weights: list[Any]) -> nn.Sequential:
    """Return the fused trainer's network in torch."""
    layers: list[nn.Module] = []
    for w, b in zip(weights[::2], weights[1::2], strict=True):
        layer = nn.Linear(w.shape[1], w.shape[0])
        layer.weight.data, layer.bias.data = torch.from_numpy(w.copy()), torch.from_numpy(b.copy())
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers)


def seconds(call: Callable[[], Any], times: int = 1) -> Array:
    """Seconds of a call by the clock and of the processor, (2,); the mean of as many calls."""
    begun = np.array([time.perf_counter(), time.process_time()])
    for _ in range(times):
        call()
    return (np.array([time.perf_counter(), time.process_time()]) - begun) / times


def measure(name: str, hidden: int, count: int, steps: int, rounds: int) -> dict[str, Any]:
    """Speeds of both forms, and how far their gradients are apart.

    Args:
        name: Of the vehicle.
        hidden: Width of both layers.
        count: Flights.
        steps: Of a window.
        rounds: Of each form, in turn.
    """
    fused = GradientTraining(vehicle(name), GradientOptions(hidden=hidden, env_count=count, window=steps, iterations=LEARNT))
    while not fused.finished:
        fused.step()
    weights, begun = [w.copy() for w in fused.weights], fused.window.state.copy()
    sim = DifferentiableSimulator(name, "hover", count, steps)
    policy, state = network(weights), sim.begin()
    state[: len(begun)] = torch.from_numpy(begun)
    found: dict[str, list[Any]] = {}

    def in_lanes() -> None:
        fused.window.state[:] = begun
        found["lanes"] = fused.window.run(weights)[1]

    def in_torch() -> None:
        policy.zero_grad()
        sim.window(policy, state)[0].backward()
        found["torch"] = [p.grad.numpy().copy() for p in policy.parameters()]

    in_lanes(), in_torch()  # compile, fill caches
    many = 20  # a window in lanes takes a millisecond or two: clocks are coarser
    times = np.array([(seconds(in_lanes, many), seconds(in_torch)) for _ in range(rounds)])
    flat = [np.concatenate([g.ravel() for g in found[form]]) for form in ("lanes", "torch")]
    flown = count * steps
    return {
        "network": f"{hidden}-{hidden}",
        "flights": count,
        "window": steps,
        **{f"{form}_env_steps_per_s": flown / np.median(times[:, k, 0]) for k, form in enumerate(("fused", "torch"))},
        **{f"{form}_env_steps_per_cpu_s": flown / np.median(times[:, k, 1]) for k, form in enumerate(("fused", "torch"))},
        "ratio": float(np.median(times[:, 1, 0] / times[:, 0, 0])),
        "gradients_apart": float(np.linalg.norm(flat[0] - flat[1]) / np.linalg.norm(flat[0])),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vehicle", default="tinyprop")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="figures as one JSON object")
    given = parser.parse_args()
    os.environ["AIRWORTHY_THREADS"] = str(given.threads)
    torch.set_num_threads(given.threads)
    rows = [measure(given.vehicle, *case, given.rounds) for case in CASES]
    if given.json:
        print(json.dumps({"vehicle": given.vehicle, "rows": rows, "hardware": hardware.describe([])}, indent=2))
        return
    print(f"{given.vehicle}, hover; load {os.getloadavg()[0]:.1f}; torch {torch.__version__}, {given.threads} threads")
    print("network  flights x window  fused [M/s], of the processor  torch [M/s], of the processor  ratio  gradients apart")
    for row in rows:
        fast, fast_cpu, slow, slow_cpu = (
            row[f"{form}_env_steps_per_{unit}"] / 1e6 for form in ("fused", "torch") for unit in ("s", "cpu_s")
        )
        print(
            f"{row['network']:7}  {row['flights']:7} x {row['window']:<6}  {fast:11.2f}  {fast_cpu:16.2f}  {slow:11.3f}"
            f"  {slow_cpu:16.3f}  {row['ratio']:5.1f}  {row['gradients_apart']:.1e}"
        )


if __name__ == "__main__":
    main()
