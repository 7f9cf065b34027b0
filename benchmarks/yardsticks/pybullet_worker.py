"""PyBullet 3.2.7: free bodies in one world, semi-implicit Euler, no motor model, forces through its Python API.

`--mode each` applies four forces and a torque every sub-step, as gym-pybullet-drones does; `--mode held` applies them once per
env-step and lets Bullet run the 10 sub-steps by itself, the least work that it can be asked for.
"""

from __future__ import annotations

import argparse

import pybullet as p
from protocol import RATE_HZ, SUB_STEPS, Step, serve

_ARGUMENTS = argparse.ArgumentParser()
_ARGUMENTS.add_argument("--mode", choices=("each", "held"), default="each")
MODE = _ARGUMENTS.parse_args().mode
HUBS = ((0.08, 0.08, 0.0), (-0.08, 0.08, 0.0), (-0.08, -0.08, 0.0), (0.08, -0.08, 0.0))
LIFT = (0.0, 0.0, 9.81 / 4.0)


def build(env_count: int) -> Step:
    """Bodies of 1 kg, 2 m apart, without collision shapes or damping."""
    world = p.connect(p.DIRECT)
    p.setGravity(0, 0, -9.81, physicsClientId=world)
    if MODE == "held":
        p.setPhysicsEngineParameter(fixedTimeStep=SUB_STEPS / RATE_HZ, numSubSteps=SUB_STEPS, physicsClientId=world)
    else:
        p.setTimeStep(1.0 / RATE_HZ, physicsClientId=world)
    bodies = [_body(world, index) for index in range(env_count)]
    calls = SUB_STEPS if MODE == "each" else 1

    def step() -> None:
        for _ in range(calls):
            for body in bodies:
                for hub in HUBS:
                    p.applyExternalForce(body, -1, LIFT, hub, p.LINK_FRAME, physicsClientId=world)
                p.applyExternalTorque(body, -1, (0.0, 0.0, 0.0), p.LINK_FRAME, physicsClientId=world)
            p.stepSimulation(physicsClientId=world)

    return step


def _body(world: int, index: int) -> int:
    body = p.createMultiBody(baseMass=1.0, basePosition=[2.0 * index, 0.0, 10.0], physicsClientId=world)
    p.changeDynamics(
        body, -1, linearDamping=0, angularDamping=0, localInertiaDiagonal=[0.0049, 0.0049, 0.0069], physicsClientId=world
    )
    return int(body)


serve(build, ("pybullet",))
