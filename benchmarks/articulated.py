"""The physics step of vehicles with joints beside MuJoCo's in one run: processor seconds, sides taken in turn.

Run: python benchmarks/articulated.py [--rounds 5] [--envs 4096]

MuJoCo and newton are left out, with a line that says so, where they are not installed (`pip install --no-deps newton`).
"""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from airworthy.dynamics.articulated.batch import ArticulatedBatch
from airworthy.vehicles import Disturbance, Vehicle, WrenchNoise, vehicle
from airworthy.verification.articulated.mujoco_model import has_mujoco, mujoco_model, mujoco_text

STEP = 0.002
CAVEATS = """\
Read with care: ours is float32 on lanes of 16, many environments with parameters of each, with rotor lag and joint laws,
without noise, IMU, control, containment and contact; "whole" is the simulator's step at level tracking, with law and
allocation by the measured joints at every tenth physics step, stochastic wrench, pushes, IMU noise and containment. MuJoCo is
float64, one environment, mj_step on one thread, constraints and contacts switched off, and no rotor lag. Both at a step of
2 ms; rk4 of chains is unstable there and is left out. newton is float32, 512 worlds, with gravity and springs alone; it gives
massless links another inertia, and whether its motion is right was not looked at."""


def free(name: str) -> Vehicle:
    """Return a catalogue vehicle without stops, which the other side has switched off."""
    craft = vehicle(name)
    links = tuple(replace(k, joint=k.joint and replace(k.joint, lower=None, upper=None)) for k in craft.links)
    return replace(craft, links=links)


def ours(craft: Vehicle, integrator: str, envs: int) -> Callable[[], float]:
    """Return a measurement: steps of environments per processor second."""
    steps, hover = 20, craft.mass * craft.gravity / craft.rotor_count
    first = ArticulatedBatch(craft, 1)
    rows = np.repeat(first.rows, envs, axis=1)
    batch = ArticulatedBatch(craft, envs, STEP, integrator, rows=rows, threads=1)
    rng = np.random.default_rng(0)

    def measure() -> float:
        batch.reset(joint=rng.uniform(-0.1, 0.1, (envs, craft.joint_count)), rotor_speed=np.full(craft.rotor_count, hover))
        start = time.process_time()
        batch.advance(steps, np.full(craft.rotor_count, hover))
        spent = time.process_time() - start
        assert np.isfinite(batch.field("position")).all()
        return envs * steps / spent

    measure()  # compiles
    return measure


def whole(craft: Vehicle, integrator: str, envs: int) -> Callable[[], float]:
    """Return a measurement of the simulator's whole step: law, allocation by measured joints, noise, IMU, containment."""
    from airworthy.simulation import Imu, Randomization, Simulator, SimulatorConfig

    imu = Imu.named("vn100")
    spread = Randomization(mass=0.05, rotor=0.02, position=0.1)
    made = SimulatorConfig(
        dynamics="articulated", physics_rate=1.0 / STEP, control_rate=50.0, integrator=integrator, level="tracking", imu=imu,
        randomization=spread, specialized=True,
    )  # fmt: skip
    noisy = replace(craft, wrench_noise=WrenchNoise((1e-4,) * 3, (1e-8,) * 3), disturbance=Disturbance(0.02, (0.1,) * 3))
    simulator = Simulator(noisy, made, envs, threads=1)
    place, steps = np.zeros((envs, 14)), 2

    def measure() -> float:
        simulator.reset()
        place[:, :3] = simulator.center
        start = time.process_time()
        for _ in range(steps):
            simulator.step(place)
        spent = time.process_time() - start
        assert not simulator.diverged.any()
        return envs * steps * round(1.0 / STEP / 50.0) / spent

    measure()  # compiles
    return measure


def theirs(craft: Vehicle, integrator: str) -> Callable[[], float]:
    """Return MuJoCo's steps per processor second."""
    import mujoco

    model = mujoco_model(craft, STEP, integrator)
    data = mujoco.MjData(model)
    data.ctrl[:] = craft.mass * craft.gravity / craft.rotor_count

    def measure() -> float:
        count = 1000
        start = time.process_time()
        mujoco.mj_step(model, data, count)
        return count / (time.process_time() - start)

    measure()
    return measure


def newtons(craft: Vehicle, worlds: int = 512) -> Callable[[], float]:
    """Return steps of worlds per processor second of newton's SolverFeatherstone: gravity, and what of joints it reads."""
    import newton

    one = newton.ModelBuilder()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        path.write_text(mujoco_text(craft, STEP, "implicitfast"))
        one.add_mjcf(str(path))
    many = newton.ModelBuilder()
    many.replicate(one, worlds)
    model = many.finalize(device="cpu")
    solver, control, states = newton.solvers.SolverFeatherstone(model), model.control(), [model.state(), model.state()]

    def measure() -> float:
        count = 8
        start = time.process_time()
        for _ in range(count):
            states[0].clear_forces()
            solver.step(states[0], states[1], control, None, STEP)
            states.reverse()
        return worlds * count / (time.process_time() - start)

    measure()  # compiles
    return measure


def main() -> None:
    """Print the table and what it is of."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--envs", type=int, default=4096)
    asked = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}", end="")
    if has_mujoco():
        import mujoco

        print(f", MuJoCo {mujoco.__version__}")
    else:
        print("; MuJoCo is not installed and left out")
    print(f"newton {version('newton')}" if find_spec("newton") else "newton is not installed and left out")
    print("| vehicle | side | thousand steps of environments per second, median | fastest |\n| --- | --- | --- | --- |")
    for name in ("morphy_linear", "snakey", "snakey6"):
        craft = free(name)
        explicit = name == "morphy_linear"
        sides = {
            f"ours, {k}": ours(craft, k, asked.envs)
            for k in ("semi_implicit", "midpoint", "extrapolated", "rk4")[: 4 if explicit else 3]
        }
        sides |= {
            f"whole, {k}": whole(craft, k, asked.envs) for k in ("semi_implicit", "midpoint" if explicit else "extrapolated")
        }
        if has_mujoco():
            sides |= {f"MuJoCo, {k}": theirs(craft, k) for k in (("implicitfast", "RK4") if explicit else ("implicitfast",))}
        if find_spec("newton") is not None:
            sides["newton, Featherstone"] = newtons(craft)
        found: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(asked.rounds):
            for side, measure in sides.items():
                found[side].append(measure() / 1e3)
        for side, values in found.items():
            print(f"| {name} | {side} | {np.median(values):,.5g} | {max(values):,.5g} |")
        pairs = (("ours, semi_implicit", "implicitfast"), ("ours, rk4", "RK4"), ("whole, semi_implicit", "implicitfast"))
        for mine, other in (*pairs, ("whole, midpoint", "implicitfast"), ("whole, extrapolated", "implicitfast")):
            if f"MuJoCo, {other}" in found and mine in found:
                ratio = np.median(found[mine]) / np.median(found[f"MuJoCo, {other}"])
                print(f"| {name} | {mine} over {other} | {ratio:.4g} times | |")
        if "newton, Featherstone" in found:
            ratio = np.median(found["ours, semi_implicit"]) / np.median(found["newton, Featherstone"])
            print(f"| {name} | ours, semi_implicit over newton's Featherstone | {ratio:.4g} times | |")
    print(CAVEATS)


if __name__ == "__main__":
    main()
