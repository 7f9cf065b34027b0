"""Crazyflow 0.4: first-principles dynamics (rotor lag, linear drag, gyroscopic terms), RK4, 10 sub-steps in one compiled call.

`--devices 2` shards the worlds over two host devices of JAX, which is how it uses two cores in one process.
"""

from __future__ import annotations

import argparse
import os

from protocol import RATE_HZ, SUB_STEPS, Step, serve

_ARGUMENTS = argparse.ArgumentParser()
_ARGUMENTS.add_argument("--devices", type=int, default=1)
DEVICES = _ARGUMENTS.parse_args().devices
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"

HOVER_RPM = 19_000.0


def build(env_count: int) -> Step:
    """One drone per world, constant rotor speeds, commanded anew each env-step."""
    import jax  # only now: it reads the settings above when imported
    import jax.numpy as jnp
    from crazyflow.control import Control
    from crazyflow.dynamics import Dynamics
    from crazyflow.sim import Sim
    from crazyflow.sim.integration import Integrator
    from crazyflow.sim.sharding import world_mesh

    sim = Sim(
        n_worlds=env_count,
        dynamics=Dynamics.first_principles,
        control=Control.rotor_vel,
        integrator=Integrator.rk4,
        freq=int(RATE_HZ),
        fused_mjx_model=True,
        mesh=world_mesh(jax.devices()) if DEVICES > 1 else None,
    )
    sim.mjx_data = None  # only for rendering and contacts; frees memory in large batches
    sim.reset()
    command = jnp.full((env_count, 1, 4), HOVER_RPM)

    def step() -> None:
        sim.rotor_vel_control(command)
        sim.step(SUB_STEPS)
        jax.block_until_ready(sim.data)

    return step


serve(build, ("crazyflow", "jax", "mujoco"))
