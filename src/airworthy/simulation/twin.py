"""The readable twin of the fused step: the same equations and order of events, on NumPy float64 arrays.

It is the reference that the kernels are tested against, and the float64 path for checks tighter than float32 can give. It
loops over steps in Python; use the simulator for anything else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from airworthy.control import laws
from airworthy.control.gain_parameters import priority_of
from airworthy.control.kernel import LED_LEVELS, control_layout
from airworthy.control.laws import extrapolated, tracking_rates
from airworthy.core.arrays import Array, ArrayBool, ArrayLike, NDArray, Vector
from airworthy.core.random import Stream, flight_key, normals, uniforms
from airworthy.dynamics import contact
from airworthy.dynamics import equations as eq
from airworthy.dynamics import semi_kinematic as sk
from airworthy.dynamics.equations import normalize
from airworthy.dynamics.rigid import GROUND_LIFT, GROUND_SLOP, GROUND_SWEEPS, HELD_SHARE
from airworthy.dynamics.scene_contact import BodyMotion
from airworthy.dynamics.state import COMMAND_ROWS, CONTACT_POINTS, Effects, padded_rotor_count, rigid_layout
from airworthy.simulation.scene_contact import SceneContact
from airworthy.simulation.simulator import Simulator

__all__ = ["Twin"]


class _AdvancedState(ABC):
    """A float64 copy of a simulator's present; what a step does is its heirs'."""

    state: dict[str, Any]
    """Fields by name, (k, env) or (env,)."""
    clock: NDArray[np.int64]
    """Steps that each flight has done, (env,)."""
    dt: float

    def field(self, name: str) -> Array:
        """State, shape (env, k) or (env,)."""
        return np.asarray(self.state[name]).T

    def advance(self, steps: int, command: ArrayLike) -> None:
        """Advance by physics steps under one command, shape (env, width) or (width,)."""
        array = np.atleast_2d(np.asarray(command, float))
        wanted = np.zeros((COMMAND_ROWS, len(self.clock)))
        wanted[: array.shape[1]] = np.broadcast_to(array, (len(self.clock), array.shape[1])).T
        for step in range(steps):
            self._step(tuple(wanted), step * self.dt)

    @abstractmethod
    def _step(self, wanted: Vector, elapsed: float) -> None:
        """Advance by one step, some time after the command was given [s]."""


# ---- The readable twin of the semi-kinematic step, on NumPy float64 arrays --------------------------------------------------


class SemiKinematicTwin(_AdvancedState):
    """A float64 copy of a semi-kinematic simulator's present, advanced by NumPy.

    Args:
        simulator: Where parameters, state and keys are taken from, at this instant.
    """

    def __init__(self, simulator: Simulator):
        rotor_count = padded_rotor_count(simulator.rotor_count)
        split = sk.semi_kinematic_layout().size
        self.p = sk.semi_kinematic_layout().record(lambda row: simulator.rows[row])
        self.c = control_layout(rotor_count).record(lambda row: simulator.rows[split + row])
        self.dt, self.level = 1.0 / simulator.config.physics_rate, simulator.config.level
        self.noisy = Effects.WRENCH_NOISE in simulator.effects
        self.key = flight_key(simulator.seed, simulator.flight_ids, simulator.episode)
        self.clock = simulator.flight_step.astype(np.int64)
        self.force = np.zeros((3, simulator.env_count))
        self.state: dict[str, Any] = {
            name: np.array(simulator.field(name), float).T.copy()
            for name in ("position", "velocity", "attitude", "rate", "thrust")
        }

    def _step(self, wanted: Vector, elapsed: float) -> None:
        s = self.state
        if self.level == "tracking":
            body = (tuple(s["position"]), tuple(s["velocity"]), tuple(s["attitude"]), tuple(s["rate"]))
            asked = tracking_rates(*body, extrapolated(wanted, elapsed), self.c)
        else:
            asked = wanted[:4]
        thrust, *body_rate = sk.limited_input(asked[0], asked[1:4], self.p)
        y = np.concatenate([s["position"], s["velocity"], s["attitude"]])
        y = self._rk4(y, thrust, tuple(body_rate))
        if self.noisy:
            y = y + np.array(self.p.noise) * normals(self.key, self.clock, Stream.SENSOR_AND_WRENCH, 12).T[:10]
        s["position"], s["velocity"] = y[:3], y[3:6]
        s["attitude"] = np.array(normalize(tuple(y[6:])))
        s["rate"], s["thrust"] = np.array(np.broadcast_arrays(*body_rate)), thrust
        self.clock = self.clock + 1

    def _rk4(self, y: Array, thrust: Any, body_rate: tuple[Any, ...]) -> Array:
        def slope(z: Array) -> Array:
            dv, dq = sk.derivative(tuple(z[3:6]), tuple(z[6:]), thrust, body_rate, tuple(self.force), self.p)
            return np.concatenate([z[3:6], np.array(dv), np.array(dq)])

        k1 = slope(y)
        k2 = slope(y + 0.5 * self.dt * k1)
        k3 = slope(y + 0.5 * self.dt * k2)
        k4 = slope(y + self.dt * k3)
        return np.asarray(y + self.dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))


# -----------------------------------------------------------------------------------------------------------------------------

_FIELDS = ("velocity", "attitude", "rate", "rotor_speed")


class Twin(_AdvancedState):
    """A float64 copy of a simulator's present, advanced by NumPy.

    Args:
        simulator: Where parameters, state and keys are taken from, at this instant.
    """

    def __init__(self, simulator: Simulator):
        self._begin(simulator)
        layout = simulator._param_layout
        split = layout.offsets["control_mass"]
        self._delay = simulator.rows[layout.offsets["command_delay"]] if "command_delay" in layout else None
        self.p = rigid_layout(self.rotor_count).record(lambda row: simulator.rows[row])
        self.c = control_layout(self.rotor_count).record(lambda row: simulator.rows[split + row])

    def _begin(self, simulator: Simulator) -> None:
        """Take over what twins of all families need."""
        self.config, self.effects = simulator.config, simulator.effects
        self._priority = priority_of(self.config.control)
        self.dt = 1.0 / simulator.config.physics_rate
        self.state: dict[str, Any] = {
            name: np.array(simulator.field(name), float).T.copy()
            for name in simulator.layout.fields
            if name != "position_residual"
        }
        self.key = flight_key(simulator.seed, simulator.flight_ids, simulator.episode)
        self.clock = simulator.flight_step.astype(np.int64)
        self.rotor_count = int(simulator.layout.fields["rotor_speed"][0])
        self.scene = simulator.scene
        self.force, self.moment = np.zeros((3, simulator.env_count)), np.zeros((3, simulator.env_count))

    def _step(self, wanted: Vector, elapsed: float) -> None:
        p, s, has = self.p, self.state, self.effects.__contains__
        if self.config.level in ("tracking", "tracking:mellinger"):
            wanted = extrapolated(wanted, elapsed)
        if self.config.level in ("rotor_speed", "rotor_thrust"):
            wanted = tuple(np.where(p.rotor_count > i, x, 0.0) for i, x in enumerate(wanted))
        before, stopped = self._motion(), s["status"] == 2.0
        noise = self._draws()
        force, moment = self._held_wrench(noise)
        wind = self._wind()
        if has(Effects.IMU):
            s["imu"][3:] = self._gyroscope(noise)
        raw = self._control(wanted)
        ceiling = s["battery_ratio"] if has(Effects.BATTERY) else np.ones_like(self.dt + s["status"])
        s["rotor_command"] = self._late(np.array(eq.clip_rotors(tuple(raw), p.rotor_min, p.rotor_max, ceiling)))
        factor = None
        if has(Effects.GROUND_EFFECT):
            factor = eq.ground_effect_factors(s["position"][2], tuple(s["attitude"]), p)
        y = np.concatenate([s[name] for name in _FIELDS])
        y_next, moved, rate_dot, specific = self._integrate(y, s["rotor_command"], wind, force, moment, factor)
        # After the whole step: in between, normalising would change the order of the integrator.
        y_next[3:7] = np.array(eq.normalize(tuple(y_next[3:7])))
        y_next[10:] = np.array(eq.clip_rotors(tuple(y_next[10:]), p.rotor_min, p.rotor_max, ceiling))
        if has(Effects.GROUND):
            y_next, moved, (met, support, turn) = self._ground(y_next, s["position"] + moved, moved, specific)
            # An accelerometer on the ground feels its support.
            specific = tuple(np.where(met, a + b, a) for a, b in zip(specific, support, strict=True))
            rate_dot = tuple(np.where(met, a + b, a) for a, b in zip(rate_dot, turn, strict=True))
        if has(Effects.IMU):
            self._accelerometer(specific, y[7:10], rate_dot, noise)
        if has(Effects.BATTERY):
            used, ratio = eq.battery_step(s["battery_charge"], tuple(y_next[10:]), self.dt, p)
            s["battery_charge"], s["battery_ratio"] = used, ratio
        s["acceleration"] = np.array(specific)
        s["position"] = s["position"] + moved
        s["velocity"], s["attitude"], s["rate"], s["rotor_speed"] = y_next[:3], y_next[3:7], y_next[7:10], y_next[10:]
        self.clock = self.clock + 1
        if self.scene is not None:
            self._meet(self.scene, before, stopped)

    def _late(self, issued: Array) -> Array:
        """Return what reaches the rotors of a step's limited commands, (rotors, env): between whole steps the mean over one."""
        if self._delay is None:
            return issued
        queue = np.concatenate([self.state["rotor_queue"][self.rotor_count :], issued])
        self.state["rotor_queue"] = queue
        ages = queue.reshape(-1, self.rotor_count, len(self.clock))[::-1]
        shares = np.maximum(1.0 - np.abs(self._delay - np.arange(len(ages))[:, None]), 0.0)
        return np.einsum("ke,kre->re", shares, ages)

    def _motion(self) -> BodyMotion:
        return BodyMotion(*(self.state[name].T.copy() for name in ("position", "velocity", "attitude", "rate")))

    def _meet(self, scene: SceneContact, before: BodyMotion, stopped: ArrayBool) -> None:
        """Contact with the scene; what it adds to the accelerometer's sample is left out."""
        s, after = self.state, self._motion()
        end, _, stops = scene.acted(np.arange(len(self.clock)), before, after)
        end.put(stopped, before.take(stopped))
        s["status"] = np.where(stops & ~stopped, 2.0, s["status"])
        moved = (("position", end.position), ("velocity", end.velocity), ("attitude", end.attitude), ("rate", end.body_rate))
        for name, value in moved:
            s[name] = value.T.copy()

    # ---- what acts -------------------------------------------------------------------------------------------------

    def _draws(self) -> Array:
        """Return the 20 normals of a step per environment; zeros where nothing uses them, since drawing takes half the time."""
        if not self.effects & (Effects.WRENCH_NOISE | Effects.IMU_NOISE):
            return np.zeros((20, len(self.clock)))
        return normals(self.key, self.clock, Stream.SENSOR_AND_WRENCH, 20).T

    def _held_wrench(self, noise: Array) -> tuple[Vector, Vector]:
        p = self.p
        force, moment = self.force.copy(), self.moment.copy()
        if Effects.WRENCH_NOISE in self.effects:
            force, moment = force + np.array(p.force_noise) * noise[:3], moment + np.array(p.moment_noise) * noise[3:6]
        if Effects.DISTURBANCE in self.effects:
            # Spans are counted in float32, as in the kernel: where one begins must not depend on the number format.
            ratio, now = np.asarray(p.disturbance_ratio, np.float32), self.clock.astype(np.float32)
            begin, end = now * ratio, (now + np.float32(1.0)) * ratio
            span = np.floor(begin)
            while np.any(span < end):
                draw = uniforms(self.key, span.astype(np.int64), Stream.DISTURBANCE, 8).T
                hit = (draw[0] < p.disturbance_probability) & (span < end)
                share = hit * ((np.minimum(span + 1.0, end) - np.maximum(span, begin)) / ratio)
                force = force + share * (2.0 * draw[[1, 2, 3]] - 1.0) * np.array(p.disturbance_force)
                moment = moment + share * (2.0 * draw[[4, 5, 6]] - 1.0) * np.array(p.disturbance_torque)
                span = span + np.float32(1.0)
        return tuple(force), tuple(moment)

    def _wind(self) -> Vector:
        if Effects.WIND not in self.effects:
            return (0.0, 0.0, 0.0)
        gusts: Vector = (0.0, 0.0, 0.0)
        if Effects.TURBULENCE in self.effects:
            noise = normals(self.key, self.clock, Stream.WIND, 4).T
            state, gusts = eq.dryden_step(tuple(self.state["turbulence"]), tuple(noise[:3]), self.p)
            self.state["turbulence"] = np.array(state)
        wind = eq.wind_velocity(self.clock * self.dt, gusts, self.p)
        self.state["wind"] = np.array(np.broadcast_arrays(*wind))
        return wind

    # ---- sensor ----------------------------------------------------------------------------------------------------

    def _gyroscope(self, noise: Array) -> Array:
        sample = np.array(eq.into_sensor(tuple(self.state["rate"]), self.p.imu_rotation)) + self.state["gyroscope_bias"]
        if Effects.IMU_NOISE in self.effects:
            sample = sample + np.array(self.p.imu_noise[3:]) * noise[9:12]
        return np.clip(sample, -self.p.imu_limit[1], self.p.imu_limit[1])

    def _accelerometer(self, specific: Vector, body_rate: Array, rate_dot: Vector, noise: Array) -> None:
        p, s = self.p, self.state
        sample = np.array(eq.accelerometer(specific, tuple(body_rate), rate_dot, p.imu_rotation, p.imu_position))
        sample = sample + s["accelerometer_bias"]
        if Effects.IMU_NOISE in self.effects:
            sample = sample + np.array(p.imu_noise[:3]) * noise[6:9]
            s["accelerometer_bias"] = s["accelerometer_bias"] + np.array(p.imu_walk[:3]) * noise[12:15]
            s["gyroscope_bias"] = s["gyroscope_bias"] + np.array(p.imu_walk[3:]) * noise[15:18]
        s["imu"][:3] = np.clip(sample, -p.imu_limit[0], p.imu_limit[0])

    # ---- control ---------------------------------------------------------------------------------------------------

    def _control(self, wanted: Vector) -> Vector:
        s, c, level = self.state, self.c, self.config.level
        zero = np.zeros_like(self.clock, float)
        attitude, body_rate = tuple(s["attitude"]), tuple(s["rate"])
        if Effects.LEANING in self.effects:
            attitude, body_rate = laws.trimmed(attitude, body_rate, c)
        body = (tuple(s["position"]), tuple(s["velocity"]), attitude, body_rate)
        # Controllers with memory begin with the first sample, not with a difference from zero.
        started = (self.clock > 0).astype(float)
        mellinger = tuple(np.concatenate([s["position_integral"], s["moment_integral"], s["rate_error"]]))
        if level == "rotor_speed":
            return wanted[: self.rotor_count]
        if level == "tracking:crazyflie":
            states, kept = laws.crazyflie_states(*body, wanted, mellinger, started, self.dt, c)
            self._keep("position_integral", kept)
            return tuple(states)
        if level == "rotor_thrust":
            return laws.rotor_states(wanted[: self.rotor_count], c)
        if level == "wrench":
            wrench: Vector = wanted[:6]
        elif level == "pose":
            force, torque = laws.pose_wrench(*body, wanted, c)
            wrench = (*force, *torque)
        elif level == "rate_thrust:flightgoggles":
            memory = tuple(np.concatenate([s["rate_filtered"], s["rate_slope"], s["rate_integral"]]))
            measured = tuple(s["imu"][3:]) if Effects.GYRO_FEEDBACK in self.effects else body[3]
            wrench, kept = laws.rate_loop_wrench(measured, wanted, memory, self.dt, c)
            self._keep("rate_filtered", kept)
        elif level == "tracking:mellinger":
            wrench, kept = laws.mellinger_wrench(*body, wanted, mellinger, started, self.dt, c)
            self._keep("position_integral", kept)
        else:
            *sideways, thrust, torque = laws.geometric_wrench(*body, wanted, c, level)
            wrench = (*sideways, thrust, *torque)
        wrench = tuple(x + zero for x in wrench)
        if Effects.PSEUDO_INVERSE in self.effects:
            thrusts = laws.pseudo_inverse_thrusts(wrench, c)
        else:
            thrusts = laws.bounded_thrusts(wrench, c, self._priority)
        states = laws.rotor_states(thrusts, c)
        return laws.led_states(tuple(s["rotor_speed"]), states, c) if level in LED_LEVELS else states

    def _keep(self, first: str, kept: Any) -> None:
        names = {
            "rate_filtered": ("rate_filtered", "rate_slope", "rate_integral"),
            "position_integral": ("position_integral", "moment_integral", "rate_error"),
        }[first]
        numbers = [x for group in kept for x in (group if isinstance(group, tuple) else (group,))]
        flat = [np.broadcast_to(x, self.clock.shape) for x in numbers]
        for k, name in enumerate(names):
            self.state[name] = np.array(flat[3 * k : 3 * k + 3])

    # ---- motion ----------------------------------------------------------------------------------------------------

    def _derivative(
        self, y: Array, command: Array, wind: Vector, force: Vector, moment: Vector, factor: Any, mean_rate: Vector | None
    ) -> tuple[Array, Any, Any]:
        state = (tuple(y[:3]), tuple(y[3:7]), tuple(y[7:10]), tuple(y[10:]))
        forms: dict[str, Any] = {"drag": "hubs" if Effects.HUB_AIR in self.effects else "full", "exact": self.p.rotor_exact}
        out = eq.derivative(*state, tuple(command), wind, force, moment, factor, self.p, mean_rate=mean_rate, **forms)
        rates = [np.broadcast_to(x, y.shape[1:]) for part in out[:4] for x in part]
        return np.array(rates), out[2], out[4]

    def _integrate(
        self, y: Array, command: Array, wind: Vector, force: Vector, moment: Vector, factor: Any
    ) -> tuple[Array, Array, Any, Any]:
        dt, exact = self.dt, Effects.EXACT_ROTORS in self.effects
        half = full = y[10:]
        mean_rate = None
        if exact:
            p, speed, asked = self.p, tuple(y[10:]), tuple(command)
            half = np.array(eq.rotor_exact(speed, asked, p.rotor_rise_keep_half, p.rotor_fall_keep_half))
            full = np.array(eq.rotor_exact(speed, asked, p.rotor_rise_keep, p.rotor_fall_keep))
            mean_rate = tuple((full - y[10:]) / dt)
        acting = (command, wind, force, moment, factor, mean_rate)
        k1, rate_dot, specific = self._derivative(y, *acting)
        if self.config.integrator == "rk4":
            stages, at = [k1], [y]
            for share, rotors in ((0.5, half), (0.5, half), (1.0, full)):
                z = y + share * dt * stages[-1]
                if exact:
                    z[10:] = np.where(self.p.rotor_exact > 0.5, rotors, z[10:])
                at.append(z)
                stages.append(self._derivative(z, *acting)[0])
            weights = (1.0, 2.0, 2.0, 1.0)
            y_next = y + dt / 6.0 * sum(w * k for w, k in zip(weights, stages, strict=True))
            moved = dt / 6.0 * sum(w * z[:3] for w, z in zip(weights, at, strict=True))
        else:
            y_next = y + dt * k1
            moved = dt * y[:3]
            if self.config.integrator == "semi_implicit":
                moved = dt * y_next[:3]
                y_next[3:7] = np.array(eq.quaternion_exponential(tuple(y[3:7]), tuple(y_next[7:10]), dt))
        if exact:
            y_next[10:] = np.where(self.p.rotor_exact > 0.5, full, y_next[10:])
        return y_next, np.asarray(moved), rate_dot, specific

    def _ground(self, y: Array, position: Array, moved: Array, specific: Vector) -> tuple[Array, Array, Any]:
        """State, displacement, and (mask, support, its angular acceleration) after contact; see `dynamics.contact`."""
        p, height = self.p, position[2]
        points = [tuple(np.broadcast_to(x, height.shape) for x in point) for point in p.contact_point]
        up, u = contact.ground_frame(tuple(y[:3]), tuple(y[3:7]))
        w: Vector = tuple(y[7:10])
        u0, w0 = u, w
        states = [contact.contact_state(height, up, u, w, point, p) for point in points]
        touch = [(depth > 0.0).astype(float) for depth, _ in states]
        met = np.any(touch, axis=0)
        approach = np.max([np.where(depth > 0.0, speed, 0.0) for depth, speed in states] + [np.zeros_like(height)], axis=0)
        inverse = 1.0 / np.maximum(np.sum(touch, axis=0), 1.0)
        middle = tuple(sum(t * point[i] for t, point in zip(touch, points, strict=True)) * inverse for i in range(3))
        share: Any = 0.0
        rests = met & (approach < contact.bounce_speed(self.dt, p))
        below = np.max([np.where(depth > 0.0, depth, 0.0) for depth, _ in states], axis=0)
        stands = rests & (np.asarray(contact.contact_holds(u, w, up, points[0], p)) > 0.0)
        risen = np.where(rests | (below < GROUND_SLOP), 0.0, below - GROUND_SLOP)
        risen = contact.affordable_lift(risen, u, w, p)
        u, w = contact.contact_rise(risen, u, w, up, p)
        u1, w1, height = u, w, height + risen
        deepest = np.zeros_like(height)
        for turn in range(2):
            u, w, together = contact.contact_push(met.astype(float), 0.0, u, w, up, middle, p)
            push = [t * together * inverse for t in touch]
            for k in list(range(CONTACT_POINTS)) * GROUND_SWEEPS:
                u, w, push[k] = contact.contact_push(touch[k], push[k], u, w, up, points[k], p)
            if turn == 0:
                u, w, share = contact.contact_rebound(approach, u, w, u1, w1, self.dt, p)
            for k in range(CONTACT_POINTS):
                u, w, leaving = contact.contact_friction(touch[k], push[k] * (1.0 + share), u, w, up, points[k], p)
                depth, _ = contact.contact_state(height, up, u, w, points[k], p)
                deepest = np.where((touch[k] > 0.5) & (leaving < 0.05) & (depth > deepest), depth, deepest)
            u, w = contact.contact_rolling(sum(push) * (1.0 + share), u, w, up, points[0], p)
            share = 0.0
        u, w = (tuple(np.where(stands, 0.0, x) for x in vector) for vector in (u, w))
        held = np.where(rests, HELD_SHARE[self.config.integrator] * self.dt, 0.0)
        stopped = sum(n * (a - b) for n, a, b in zip(up, u, u0, strict=True)) * held
        lift = np.maximum((deepest - stopped - GROUND_SLOP) * GROUND_LIFT, 0.0)
        u, w = contact.contact_lift(contact.unpaid_lift(lift, specific, up, p), u, w, p)
        change, support = (np.array(x) for x in contact.ground_result(u, u0, tuple(y[3:7]), self.dt))
        moved = moved + change * held
        moved[2] += np.where(met, lift + risen, 0.0)
        turned = np.where(met, np.array(w), y[7:10])
        y = np.concatenate([np.where(met, y[:3] + change, y[:3]), y[3:7], turned, y[10:]])
        return y, moved, (met, support, (turned - np.array(w0)) / self.dt)
