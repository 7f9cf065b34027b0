"""The readable twin of a flight with joints: the same equations and order of events, on NumPy float64 arrays."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from airworthy.control.gain_parameters import priority_of
from airworthy.control.kernel import control_layout
from airworthy.core.arrays import Array, Vector
from airworthy.core.random import flight_key
from airworthy.dynamics import equations as eq
from airworthy.dynamics.articulated.contact import meet_ground, sensed_change
from airworthy.dynamics.articulated.flight import jointed_layout
from airworthy.dynamics.articulated.steering import GAINS, steered, whole_motion
from airworthy.dynamics.articulated.step import joint_aim, sensed_rate, to_world
from airworthy.dynamics.articulated.twin import ArticulatedTwin, JointedMotion
from airworthy.dynamics.state import Effects
from airworthy.simulation.jointed.rows import tree_for
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import Twin

__all__ = ["JointedTwin"]


class JointedTwin(Twin):
    """A float64 copy of an articulated simulator's present, advanced by NumPy.

    Args:
        simulator: Where parameters, state and keys are taken from, at this instant.
    """

    def __init__(self, simulator: Simulator):
        self.config, self.effects = simulator.config, simulator.effects
        self._priority = priority_of(self.config.control)
        self.dt = 1.0 / simulator.config.physics_rate
        self._shape = simulator.shape
        layout, structure, n = simulator._param_layout, self._shape.structure, self._shape.rotor_count
        rows = np.asarray(simulator.rows, float)
        self.p = jointed_layout(self._shape).record(lambda row: rows[row])
        start = layout.offsets["control_mass"]
        self.c = control_layout(n).record(lambda row: rows[start + row])
        self._believed = layout.record(lambda row: rows[row])
        self._tree = ArticulatedTwin(tree_for(simulator.vehicles[0]), rows[layout.rows("tree")])
        self._belief = structure.model(lambda row: rows[layout.offsets["believed_tree"] + row])
        self.state: dict[str, Any] = {
            name: np.array(simulator.field(name), float).T.copy()
            for name in simulator.layout.fields
            if name != "position_residual"
        }
        inputs, of = simulator._arrays.inputs()[:, : simulator.env_count], simulator.inputs_layout
        self._asked = [np.array(inputs[of.rows(f"joint_{name}")], float) for name in ("target", "angle", "gain")]
        self.key = flight_key(simulator.seed, simulator.flight_ids, simulator.episode)
        self.clock = simulator.flight_step.astype(np.int64)
        self.rotor_count, self.scene = n, None
        self.force, self.moment = np.zeros((3, simulator.env_count)), np.zeros((3, simulator.env_count))

    def _step(self, wanted: Vector, elapsed: float) -> None:
        s, structure = self.state, self._shape.structure
        # Laws read the whole vehicle; its motion is put back after they have.
        noise = self._draws()
        force, moment = self._held_wrench(noise)
        wind = self._wind()
        sensed = np.array(
            sensed_rate(
                structure, self._tree.model, tuple(s["rate"]), tuple(s["joint"]), tuple(s["joint_rate"]), self._shape.sensing
            )
        )
        if Effects.IMU in self.effects:
            own, s["rate"] = s["rate"], sensed
            s["imu"][3:] = self._gyroscope(noise)
            s["rate"] = own
        s["rotor_command"] = np.array(
            eq.clip_rotors(tuple(self._steered(wanted, elapsed)), self.p.rotor_min, self.p.rotor_max, 1.0)
        )
        before = self._motion_now()
        self._tree.air = wind
        target, angle, gain = map(tuple, self._asked)
        aim = joint_aim(structure, tuple(s["joint"]), target, angle, gain, self.p.joint_rate_max)
        after, found = self._tree.acted(
            before, s["rotor_command"], np.array(np.broadcast_arrays(*aim)), self.dt, self.config.integrator, force, moment,
            self._shape.sensing,
        )  # fmt: skip
        torque, specific, felt, turn = found
        if Effects.GROUND in self.effects:
            after, change = self._meet_ground(after)
            more, more_turn = sensed_change(
                structure, self._tree.model, tuple(s["joint"]), tuple(change), self.dt, self._shape.sensing
            )
            specific, felt, turn = specific + change[:3] / self.dt, felt + np.array(more), turn + np.array(more_turn)
        if Effects.IMU in self.effects:
            self._accelerometer(tuple(felt), sensed, tuple(turn), noise)
        s["acceleration"], s["joint_torque"] = specific, torque
        for name in ("position", "velocity", "attitude", "rate", "joint", "joint_rate"):
            s[name] = getattr(after, name)
        s["rotor_speed"] = after.rotor
        center, drift = whole_motion(structure, self._tree.model, *self._pose())
        s["center"], s["center_velocity"] = np.array(center), np.array(drift)
        self.clock = self.clock + 1

    def _meet_ground(self, after: JointedMotion) -> tuple[JointedMotion, Array]:
        share = 1.0 if self.config.integrator == "semi_implicit" else 0.5
        motion = (
            after.position[2],
            *(tuple(getattr(after, name)) for name in ("velocity", "attitude", "rate", "joint", "joint_rate")),
        )
        structure, carriers = self._shape.structure, self._shape.carriers
        met, change, raised, approach, back = meet_ground(structure, self._tree.model, self.p, carriers, motion, self.dt, share)
        world = np.array(to_world(tuple(after.attitude), tuple(change[:3])))
        position = after.position + world * back
        position[2] += raised
        self.state["contact"] = np.where(met, 1.0, 0.0)
        self.state["impact_speed"] = np.where(met, approach, 0.0)
        made = replace(
            after,
            position=position,
            velocity=after.velocity + world,
            rate=after.rate + change[3:6],
            joint=after.joint + change[6:] * back,
            joint_rate=after.joint_rate + change[6:],
        )
        return made, change

    def _motion_now(self) -> JointedMotion:
        s = self.state
        fields = ("position", "velocity", "attitude", "rate", "joint", "joint_rate", "rotor_speed")
        return JointedMotion(*(s[name] for name in fields))

    def _pose(self) -> tuple[Vector, Vector, Vector, Vector, Vector, Vector]:
        s = self.state
        names = ("position", "velocity", "attitude", "rate", "joint", "joint_rate")
        position, velocity, attitude, rate, joint, joint_rate = (tuple(s[name]) for name in names)
        return position, velocity, attitude, rate, joint, joint_rate

    def _steered(self, wanted: Vector, elapsed: float) -> Vector:
        """Rotor commands of the law at the vehicle's present shape."""
        from airworthy.control.laws import extrapolated

        if self.config.level in ("tracking", "tracking:mellinger"):
            wanted = extrapolated(wanted, elapsed)
        center, drift, inertia, inverse, collective, gains, trim = steered(
            self._shape.structure, self._belief, *self._pose(), p=self._believed, leaning=self._shape.leaning
        )
        measured = np.asarray(self._believed.believed_measured) > 0.5
        rows = [tuple(inverse[6 * k : 6 * k + 6]) for k in range(self.rotor_count)]

        def chosen(now: Any, start: Any) -> Any:
            return tuple(
                chosen(a, b) if isinstance(a, tuple) else np.where(measured, a, b) for a, b in zip(now, start, strict=True)
            )

        live: dict[str, Any] = {
            "inertia": inertia,
            "inverse": chosen(tuple(rows), self._believed.believed_inverse),
            "trim": chosen(trim, self._believed.believed_trim),
            "collective": chosen(collective, self._believed.believed_collective),
            **{name: gains[3 * k : 3 * k + 3] for k, name in enumerate(GAINS)},
        }
        kept, own = self.c, {name: self.state[name] for name in ("position", "velocity")}
        self.c = SimpleNamespace(**{**vars(kept), **live})
        self.state["position"], self.state["velocity"] = np.array(center), np.array(drift)
        try:
            return self._control(wanted)
        finally:
            self.c = kept
            self.state.update(own)

    def command_joints(self, **rows: Array) -> None:
        """Set joint input rows: target, angle, gain, each (joints, env)."""
        for index, name in enumerate(("target", "angle", "gain")):
            if name in rows:
                self._asked[index] = np.asarray(rows[name], float)
