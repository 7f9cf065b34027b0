"""The readable twin of a flight with joints: the same equations and order of events, on NumPy float64 arrays."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from airworthy.control.kernel import control_layout
from airworthy.core.arrays import Array, Vector
from airworthy.core.errors import AirworthyError
from airworthy.dynamics import equations as eq
from airworthy.dynamics.articulated.contact import sensed_change
from airworthy.dynamics.articulated.flight import battery_step, jointed_layout
from airworthy.dynamics.articulated.impacts import LinkImpact, meet, meet_ground, sphere_centers
from airworthy.dynamics.articulated.steering import GAINS, SHAPE_STEPS, shaped, whole_motion
from airworthy.dynamics.articulated.step import joint_aim, sensed_rate, to_world
from airworthy.dynamics.articulated.twin import ArticulatedTwin, JointedMotion
from airworthy.dynamics.state import Effects
from airworthy.simulation.jointed.joints import tree_for
from airworthy.simulation.scene_contact import SceneContact
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import Twin

__all__ = ["JointedTwin"]


class JointedTwin(Twin):
    """A float64 copy of an articulated simulator's present, advanced by NumPy.

    Args:
        simulator: Where parameters, state and keys are taken from, at this instant.
    """

    def __init__(self, simulator: Simulator):
        self._begin(simulator)
        self._shape = simulator.shape
        layout, structure = simulator._param_layout, self._shape.structure
        rows = np.asarray(simulator.rows, float)
        self.p = jointed_layout(self._shape).record(lambda row: rows[row])
        start = layout.offsets["control_mass"]
        self.c = control_layout(self.rotor_count).record(lambda row: rows[start + row])
        self._believed = layout.record(lambda row: rows[row])
        self._tree = ArticulatedTwin(tree_for(simulator.vehicles[0]), rows[layout.rows("tree")])
        self._belief = structure.model(lambda row: rows[layout.offsets["believed_tree"] + row])
        self._found: tuple[Vector, ...] = ()
        inputs, of = simulator._arrays.inputs()[:, : simulator.env_count], simulator.inputs_layout
        self._asked = [np.array(inputs[of.rows(f"joint_{name}")], float) for name in ("target", "angle", "gain")]

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
        ceiling = s["battery_ratio"] if Effects.BATTERY in self.effects else 1.0
        limits = (self.p.rotor_min, self.p.rotor_max, ceiling)
        s["rotor_command"] = np.array(eq.clip_rotors(tuple(self._steered(wanted, elapsed)), *limits))
        before = self._motion_now()
        self._tree.air = wind
        target, angle, gain = map(tuple, self._asked)
        aim = joint_aim(structure, tuple(s["joint"]), target, angle, gain, self.p.joint_rate_max)
        after, found = self._tree.acted(
            before, s["rotor_command"], np.array(np.broadcast_arrays(*aim)), self.dt, self.config.integrator, force, moment,
            self._shape.sensing,
        )  # fmt: skip
        torque, specific, felt, turn = found
        if Effects.BATTERY in self.effects:
            after = replace(after, rotor=np.array(eq.clip_rotors(tuple(after.rotor), *limits)))
            drawn = battery_step(self._tree.model, self.p.battery, s["battery_charge"], tuple(after.rotor), self.dt)
            s["battery_charge"], s["battery_ratio"] = drawn
        if Effects.GROUND in self.effects:
            after, change = self._meet_ground(after)
            specific, felt, turn = self._supported(change, s["joint"], specific, felt, turn)
        if self.scene is not None:
            after, change = self._meet_scene(self.scene, before, after)
            specific, felt, turn = self._supported(change, after.joint, specific, felt, turn)
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
        motion = (after.position[2], *self._moving(after))
        found = meet_ground(
            self._shape.structure, self._tree.model, self.p, self._shape.carriers, motion, self.dt, self._held_share
        )
        return self._changed(after, found), found.change

    def _supported(self, change: Array, joint: Array, specific: Array, felt: Array, turn: Array) -> tuple[Array, ...]:
        """Return what accelerometers feel, with what surfaces changed over the step."""
        structure = self._shape.structure
        more, more_turn = sensed_change(structure, self._tree.model, tuple(joint), tuple(change), self.dt, self._shape.sensing)
        return specific + change[:3] / self.dt, felt + np.array(more), turn + np.array(more_turn)

    def _meet_scene(self, scene: SceneContact, before: JointedMotion, after: JointedMotion) -> tuple[JointedMotion, Array]:
        """Motion after contact with the scene, and the change of the coordinates."""
        config, count = scene.config, len(self.clock)
        if config.mode == "reset":
            raise AirworthyError("The twin cannot begin new flights; compare with it in contact mode 'freeze' or 'respond'.")
        stopped = self.state["status"] == 2.0
        after = _between(before, after, np.where(stopped, 0.0, 1.0))
        radius = np.array([np.broadcast_to(sphere[3], (count,)) for sphere in self.p.sphere]).T
        envs = np.arange(count)
        found = scene.met_surfaces(envs, self._centers(before), self._centers(after), radius)
        none = np.zeros((6 + self._shape.structure.joint_count, count))
        if config.mode == "freeze":
            fraction, _ = found.first()
            self.state["status"] = np.where(fraction <= 1.0, 2.0, self.state["status"])
            return _between(before, after, np.minimum(fraction, 1.0)), none
        share = np.where(found.deep, found.fraction, 1.0).min(axis=1)
        after = _between(before, after, share)
        found.moved_to(self._centers(after))
        p = SimpleNamespace(sphere=self.p.sphere, restitution=config.restitution, friction=config.friction)
        structure, carriers = self._shape.structure, self._shape.carriers
        motion = self._moving(after)
        impact = meet(structure, self._tree.model, p, carriers, motion, found.surfaces(), self.dt, self._held_share)
        return self._changed(after, impact), impact.change

    def _centers(self, motion: JointedMotion) -> Array:
        places = (motion.position, motion.attitude, motion.joint)
        return sphere_centers(self._shape.structure, self._tree.model, self.p, self._shape.carriers, *places)

    @property
    def _held_share(self) -> float:
        return 1.0 if self.config.integrator == "semi_implicit" else 0.5

    @staticmethod
    def _moving(motion: JointedMotion) -> tuple[Vector, ...]:
        return tuple(tuple(getattr(motion, name)) for name in ("velocity", "attitude", "rate", "joint", "joint_rate"))

    def _changed(self, after: JointedMotion, impact: LinkImpact) -> JointedMotion:
        """Motion after an impact; what it was is noted."""
        world = np.array(to_world(tuple(after.attitude), tuple(impact.change[:3])))
        self.state["contact"] = np.where(impact.met, 1.0, 0.0)
        self.state["impact_speed"] = np.where(impact.met, impact.approach, 0.0)
        return replace(
            after,
            position=after.position + world * impact.back + impact.moved,
            velocity=after.velocity + world,
            rate=after.rate + impact.change[3:6],
            joint=after.joint + impact.change[6:] * impact.back,
            joint_rate=after.joint_rate + impact.change[6:],
        )

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
        structure = self._shape.structure
        center, drift = whole_motion(structure, self._belief, *self._pose())
        if round(elapsed / self.dt) % SHAPE_STEPS == 0:
            self._found = shaped(structure, self._belief, tuple(self.state["joint"]), self._believed, self._shape.leaning)
        inertia, inverse, collective, gains, trim = self._found
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


def _between(before: JointedMotion, after: JointedMotion, share: Array) -> JointedMotion:
    """Motion at a share of the way through a step, rotors at its end."""
    names = ("position", "velocity", "attitude", "rate", "joint", "joint_rate")
    parts = {name: getattr(before, name) + share * (getattr(after, name) - getattr(before, name)) for name in names}
    parts["attitude"] = np.array(eq.normalize(tuple(parts["attitude"])))
    return replace(after, **parts)
