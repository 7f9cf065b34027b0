"""How every vehicle of the catalogue lands, and what contact costs: the tables of docs/concepts/contact.md.

Run: python benchmarks/contact.py
"""

from __future__ import annotations

import time

import numpy as np

from airworthy.geometry import GeometryBatch, Placement
from airworthy.simulation import Contact, Ground, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle
from airworthy.verification.contact import box_mesh, landings

COUNT, STEPS, ROUNDS = 256, 480, 5


def main() -> None:
    """Print both tables in Markdown."""
    ground, mesh = landings(False), landings(True)
    print("| vehicle | body | rest on `Ground` [mm] | on a mesh [mm] | stands after [s] | gain of energy, at most |")
    print("| --- | --- | --- | --- | --- | --- |")
    rows: dict[tuple[str, ...], list[str]] = {}
    for k, name in enumerate(ground.names):
        body = vehicle(name).body
        size = " x ".join(f"{2e3 * s:.0f}" for s in (body.size[:1] if body.shape == "sphere" else body.size))
        settled, gain = max(ground.settled[k], mesh.settled[k]), max(ground.gain[k], mesh.gain[k], 0.0)
        heights = (f"{1e3 * ground.height[k]:.2f}", f"{1e3 * mesh.height[k]:.2f}")
        rows.setdefault((f"{body.shape} {size} mm", *heights, f"{settled:.2f}", f"{gain:.0e}"), []).append(name)
    for row, names in rows.items():
        print("| " + " | ".join((", ".join(names), *row)) + " |")
    print()
    for label, seconds in costs().items():
        print(f"{label}: {1e6 * seconds:.2f} us per step and flight")


def costs() -> dict[str, float]:
    """Median processor time of a step of one flight of 256 [s], cases taken in turn."""
    floor = GeometryBatch([box_mesh((5.0, 5.0, 1.0))], [Placement.of([0], [(0.0, 0.0, -1.0)])])
    made, times = {}, {}
    for name in ("real_01", "x500", "cf2x_gym_pybullet_drones"):
        height = vehicle(name).body.size[2]
        for label, z in (("in the air", 3.0), ("standing", height)):
            for what in ("no contact", "ground", "mesh"):
                config = SimulatorConfig(
                    physics_rate=480.0,
                    ground=Ground() if what == "ground" else None,
                    contact=Contact("respond") if what == "mesh" else None,
                    wrench_noise=False,
                    disturbance=False,
                )
                if what == "no contact" and label == "standing":
                    continue
                scene = {"geometry": floor, "geometry_env": np.zeros(COUNT, int)} if what == "mesh" else {}
                made[f"{name}, {label}, {what}"] = (Simulator(vehicle(name), config, COUNT, **scene), z)
    for label, (simulator, z) in made.items():
        simulator.reset(position=(0.0, 0.0, z + 1e-4), rotor_speed=np.zeros(4))
        simulator.advance(48, np.zeros(4))
        times[label] = []
    for _ in range(ROUNDS):
        for label, (simulator, z) in made.items():
            simulator.reset(position=(0.0, 0.0, z + 1e-4), rotor_speed=np.zeros(4))
            steps = STEPS if z < 1.0 else STEPS // 2
            begin = time.process_time()
            simulator.advance(steps, np.zeros(4))
            times[label].append((time.process_time() - begin) / (steps * COUNT))
    return {label: float(np.median(values)) for label, values in times.items()}


if __name__ == "__main__":
    main()
