"""How many images a second SV-Net learns from: forward, backward and Adam's step, on random images, by side and precision.

    python benchmarks/svnet_training.py                          a minute on two cores; needs torch (extra 'learn')
    python benchmarks/svnet_training.py --sides 224 --device cuda:0 --batch 512 --compile max-autotune

What is timed is the command step as `airworthy train svnet` runs it, on images that lie in memory. On a machine that others use
too, one thread is often faster than two: threads wait for each other.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from airworthy.learning.svnet.data import SizedImages, TrainingData
from airworthy.learning.svnet.options import RunOptions, SvNetOptions
from airworthy.pilots.svnet.features import HISTORY_SIZE, OBJECTIVE_SIZE, OBSERVABLE_SIZE
from benchmarks import hardware


class RandomImages:
    """Images of nothing."""

    def __init__(self, count: int, side: int):
        self.values = np.random.default_rng(0).integers(0, 256, (count, side, side, 3), dtype=np.uint8)
        self.shape = self.values.shape

    def take(self, which: Any) -> Any:
        return self.values[which]


def random_data(count: int, side: int) -> TrainingData:
    """Pairs of nothing."""
    rng = np.random.default_rng(1)
    numbers = [rng.normal(size=(count, n)).astype(np.float32) for n in (OBSERVABLE_SIZE, OBJECTIVE_SIZE, HISTORY_SIZE, 4, 2)]
    camera = {"view": str(side), "fx": 1.0, "fy": 1.0, "cx": 0.0, "cy": 0.0}
    every = np.arange(count)
    images = SizedImages(RandomImages(count, side), camera)
    return TrainingData(*numbers, every, every[:1], np.full(count, "none"), every % 40, images, "random")


def measure(side: int, precision: str, options: argparse.Namespace) -> dict[str, Any]:
    """Images per second, the best minibatch and the median one."""
    import torch

    from airworthy.learning.machine import computing, machine_for
    from airworthy.learning.svnet.run import SvNetRun

    chosen = SvNetOptions(batch=options.batch, history_epochs=0, precision=precision, compile=options.compile)
    machine = machine_for(RunOptions(device=options.device, threads=options.threads), precision)
    with computing(machine) as device:
        run = SvNetRun(random_data(options.batch, side), chosen, device, machine.precision, "yes")
        which, images = next(iter(run.data_loader.stream([np.arange(options.batch)])))
        times, begun = [], time.perf_counter()
        while len(times) < 4 or time.perf_counter() - begun < options.seconds:
            at = time.perf_counter()
            run.stage.learn(len(times), which, images)
            times.append(time.perf_counter() - at)
    best, middle = options.batch / min(times[1:]), options.batch / float(np.median(times[1:]))
    found = {"side": side, "precision": machine.precision, "threads": machine.threads, "device": machine.device}
    return {**found, "torch": torch.__version__, "best_per_s": round(best, 1), "median_per_s": round(middle, 1)}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", type=int, nargs="+", default=[224, 112], help="of the images [px]")
    parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--batch", type=int, default=64, help="images per minibatch")
    parser.add_argument("--device", default="cpu", help="cpu, or a GPU as cuda:0")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; 0: all")
    parser.add_argument("--compile", default="none", help="mode of torch.compile")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each measurement")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measure(side, precision, options) for side in options.sides for precision in options.precisions]
    about = hardware.describe(list(range(rows[0]["threads"])))
    if options.json:
        print(json.dumps({"hardware": about, "batch": options.batch, "rows": rows}, indent=2))
        return 0
    print(f"SV-Net learns from images of ({about['cpu']}, torch {rows[0]['torch']}, minibatches of {options.batch}):")
    for row in rows:
        what = f"{row['side']} px, {row['precision']}, {row['device']}, {row['threads']} threads"
        print(f"  {what:44} {row['best_per_s']:9,.0f} images/s best, {row['median_per_s']:9,.0f} median")
    print(f"  {about['command']}; load {about['load_average']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
