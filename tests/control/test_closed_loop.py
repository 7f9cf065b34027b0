"""Every airframe of the catalogue at every level, in one batch: a rigid body written here, RK4 in float64."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from airworthy.control import (
    MODES,
    Allocation,
    BodyState,
    GeometricParameters,
    MellingerParameters,
    MellingerState,
    Mode,
    RateLoopParameters,
    RateLoopState,
    Reference,
    WaypointParameters,
    allocate_bounded,
    allocation_for,
    bandwidth,
    default_gains,
    exact_coefficients,
    geometric_control,
    low_pass_constants,
    mellinger_control,
    mellinger_for,
    mellinger_parameters,
    mixer_for,
    motor_commands,
    pose_control,
    rate_loop,
    rate_loop_parameters,
    speed_for_thrust,
    speed_of_command,
    thrust_of_command,
    waypoint_control,
)
from airworthy.vehicles import control_effectiveness, hover_speed, rotor_thrust, vehicle, vehicle_names

ROTORS = 8


class Plant:
    """Rigid bodies with first-order rotors, one per name; nothing shared with the package but the vehicle records."""

    def __init__(self, names, dt):
        self.bodies = [vehicle(name) for name in names]
        n = len(names)
        self.dt = np.broadcast_to(np.asarray(dt, float), n)
        self.mass = np.array([b.mass for b in self.bodies])
        self.gravity = np.array([b.gravity for b in self.bodies])
        i = np.array([b.inertia for b in self.bodies])
        self.inertia = i[:, [0, 3, 4, 3, 1, 5, 4, 5, 2]].reshape(n, 3, 3)
        self.inverse = np.linalg.inv(self.inertia)
        shape = (n, ROTORS)
        self.thrust, self.torque = np.zeros((*shape, 3)), np.zeros((*shape, 3))
        self.rise, self.fall = np.ones((*shape, 2)), np.ones((*shape, 2))
        self.low, self.high, self.spin = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.axis, self.lever = np.zeros((*shape, 3)), np.zeros((*shape, 3))
        self.flywheel, self.speed = np.zeros(shape), np.zeros(shape)
        for e, body in enumerate(self.bodies):
            self.speed[e, : body.rotor_count] = hover_speed(body)
            for k, r in enumerate(body.rotors):
                self.thrust[e, k], self.torque[e, k] = r.thrust, r.torque
                self.rise[e, k], self.fall[e, k] = r.response.rise, r.response.fall
                self.low[e, k], self.high[e, k], self.spin[e, k] = r.speed_min, r.speed_max, r.spin
                self.flywheel[e, k] = r.inertia
                self.axis[e, k], self.lever[e, k] = r.axis, np.array(r.position) - body.center_of_mass
        self.x, self.v, self.w = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3))
        self.q = np.tile([0.0, 0.0, 0.0, 1.0], (n, 1))

    def state(self):
        return BodyState(tuple(self.x.T), tuple(self.v.T), tuple(self.q.T), tuple(self.w.T))

    def _rates(self, v, q, w, force, moment):
        r = Rotation.from_quat(q)
        acceleration = r.apply(force) / self.mass[:, None] - self.gravity[:, None] * [0.0, 0.0, 1.0]
        spin = np.einsum("eij,ej->ei", self.inertia, w)
        turning = np.einsum("eij,ej->ei", self.inverse, moment - np.cross(w, spin))
        x, y, z, s = q.T
        a, b, c = w.T
        q_dot = 0.5 * np.stack(
            [s * a + y * c - z * b, s * b - x * c + z * a, s * c + x * b - y * a, -(x * a + y * b + z * c)], 1
        )
        return v, acceleration, q_dot, turning

    def step(self, command):
        """One control period: rotors by their exact local lag, then RK4 of the body under the mean thrusts."""
        command = np.clip(command, self.low, self.high)
        rising = np.abs(command) >= np.abs(self.speed)
        a = np.where(rising, self.rise[..., 0], self.fall[..., 0])
        b = np.where(rising, self.rise[..., 1], self.fall[..., 1])
        rate = a + b * (np.abs(command) + np.abs(self.speed))
        before = self.speed
        self.speed = command + (before - command) * np.exp(-rate * self.dt[:, None])
        w = 0.5 * (before + self.speed)
        powers = np.stack([np.ones_like(w), w, w * np.abs(w)], -1)
        lift, torque = (self.thrust * powers).sum(-1), (self.torque * powers).sum(-1) * self.spin
        # Spinning a rotor up turns the body as its reaction torque does; the Crazyflie's yaw loop lives on it.
        torque = torque + self.spin * self.flywheel * (self.speed - before) / self.dt[:, None]
        push = self.axis * lift[..., None]
        force = push.sum(1)
        moment = np.cross(self.lever, push).sum(1) + (self.axis * torque[..., None]).sum(1)
        h = self.dt[:, None]
        z = (self.x, self.v, self.q, self.w)
        total = [np.zeros_like(part) for part in z]
        k = None
        for share, weight in ((0.0, 1), (0.5, 2), (0.5, 2), (1.0, 1)):
            at = z if k is None else tuple(p + share * h * d for p, d in zip(z, k, strict=True))
            k = self._rates(at[1], at[2] / np.linalg.norm(at[2], axis=1, keepdims=True), at[3], force, moment)
            total = [t + weight * d for t, d in zip(total, k, strict=True)]
        self.x, self.v, self.q, self.w = (p + h / 6.0 * t for p, t in zip(z, total, strict=True))
        self.q /= np.linalg.norm(self.q, axis=1, keepdims=True)

    def speeds_for(self, thrusts):
        polynomials = tuple(tuple(self.thrust[:, k].T) for k in range(ROTORS))
        return np.array([speed_for_thrust(c, t) for c, t in zip(polynomials, thrusts, strict=True)]).T

    def tilt(self):
        """Angle between body z and the vertical [rad]."""
        return np.arccos(np.clip(Rotation.from_quat(self.q).as_matrix()[:, 2, 2], -1.0, 1.0))


def stack(records):
    """Records of numbers and tuples as one record of arrays over environments."""
    columns = [_stack(values) for values in zip(*records, strict=True)]
    return type(records[0])(*columns) if hasattr(records[0], "_fields") else tuple(columns)


def _stack(values):
    if hasattr(values[0], "_fields"):
        return stack(values)
    if isinstance(values[0], tuple):
        return tuple(_stack(v) for v in zip(*values, strict=True))
    return np.array(values)


def upset(plant, seed, size=1.0):
    """Tilted by up to 45 degrees, turning, moving and displaced."""
    rng = np.random.default_rng(seed)
    n = len(plant.bodies)
    plant.q = Rotation.from_rotvec(size * 0.785 * rng.uniform(-1, 1, (n, 3)) / np.sqrt(3)).as_quat()
    plant.w = size * rng.uniform(-1, 1, (n, 3))
    plant.v = size * rng.uniform(-0.5, 0.5, (n, 3))
    plant.x = size * rng.uniform(-0.5, 0.5, (n, 3))


@pytest.mark.slow
def test_every_airframe_recovers_at_every_level():
    pairs = [(name, level) for name in vehicle_names() for level in MODES if level != "rate_thrust"]
    names = [name for name, _ in pairs]
    # Time runs with each airframe: ten controller steps per radian of its attitude loop, four steps at most 20 ms.
    dt = np.array([np.clip(0.1 / bandwidth(vehicle(name)).attitude[0], 0.002, 0.02) for name in names])
    plant = Plant(names, dt)
    p: GeometricParameters = stack([default_gains(b, float(h)) for b, h in zip(plant.bodies, dt, strict=True)])
    a: Allocation = stack([allocation_for(b, ROTORS) for b in plant.bodies])
    mode: Mode = stack([MODES[level] for _, level in pairs])
    upset(plant, 4)
    reference = Reference(thrust=plant.mass * plant.gravity)
    for _ in range(1200):
        out = geometric_control(plant.state(), reference, mode, p)
        wrench = (0.0 * out.thrust, 0.0 * out.thrust, out.thrust, *out.moment)
        plant.step(plant.speeds_for(allocate_bounded(wrench, a)))
        assert np.isfinite(plant.x).all()
    levels = np.array([level for _, level in pairs])
    assert plant.tilt().max() < 0.01
    assert np.abs(plant.w).max() < 0.01
    placed = np.isin(levels, ["position", "tracking"])
    # 1200 steps are 120 / w seconds; the position loop (0.23 w) has decayed by more than e^-10 then.
    assert np.linalg.norm(plant.x[placed], axis=1).max() < 0.01
    steady = np.isin(levels, ["position", "tracking", "velocity", "velocity_steering"])
    assert np.linalg.norm(plant.v[steady], axis=1).max() < 0.01
    turned = np.isin(levels, ["position", "tracking", "velocity_steering"])
    heading = Rotation.from_quat(plant.q).as_matrix()[:, 1, 0]
    assert np.abs(heading[turned]).max() < 0.01


def test_rates_settle_on_their_command():
    names = vehicle_names()
    dt = np.array([np.clip(0.1 / bandwidth(vehicle(name)).attitude[0], 0.002, 0.02) for name in names])
    plant = Plant(names, dt)
    p = stack([default_gains(b, float(h)) for b, h in zip(plant.bodies, dt, strict=True)])
    a = stack([allocation_for(b, ROTORS) for b in plant.bodies])
    upset(plant, 9)
    reference = Reference(thrust=plant.mass * plant.gravity, rate=(0.3, -0.2, 0.1))
    for _ in range(600):
        out = geometric_control(plant.state(), reference, MODES["rate_thrust"], p)
        plant.step(plant.speeds_for(allocate_bounded((0.0, 0.0, out.thrust, *out.moment), a)))
    # No integral: the gyroscopic term is compensated, so nothing but lag remains.
    assert np.allclose(plant.w, [0.3, -0.2, 0.1], atol=0.01)


@pytest.mark.slow
def test_agile_airframes_recover_from_upside_down():
    starts = [(np.pi, 0, 0), (0, np.pi, 0), (2.5, 1.0, 0.3)]
    names = ["flightgoggles", "virt_07", "x500", "real_04", "lmf1"]
    plant = Plant(names * len(starts), 0.005)
    p = stack([default_gains(b, 0.005) for b in plant.bodies])
    a = stack([allocation_for(b, ROTORS) for b in plant.bodies])
    plant.q = Rotation.from_rotvec(np.repeat(starts, len(names), axis=0)).as_quat()
    for _ in range(1600):
        out = geometric_control(plant.state(), Reference(), MODES["position"], p)
        plant.step(plant.speeds_for(allocate_bounded((0.0, 0.0, out.thrust, *out.moment), a)))
    assert np.linalg.norm(plant.x, axis=1).max() < 0.05
    assert plant.tilt().max() < 0.02


@pytest.mark.slow
def test_far_goals_are_reached_without_tumbling():
    names = vehicle_names()
    plant = Plant(names, 0.008)
    p = stack([default_gains(b, 0.008) for b in plant.bodies])
    a = stack([allocation_for(b, ROTORS) for b in plant.bodies])
    steepest = np.zeros(len(names))
    goal = (20.0, -15.0, -10.0)
    for _ in range(2000):
        out = geometric_control(plant.state(), Reference(position=goal, yaw=2.0), MODES["position"], p)
        plant.step(plant.speeds_for(allocate_bounded((0.0, 0.0, out.thrust, *out.moment), a)))
        steepest = np.maximum(steepest, plant.tilt())
    assert np.linalg.norm(plant.x - goal, axis=1).max() < 0.1
    # The inclination limit is 60 degrees; the attitude overshoots it by some.
    assert steepest.max() < np.radians(80.0)


@pytest.mark.slow
def test_tracking_a_circle_with_and_without_feed_forward():
    names = ["flightgoggles", "carl", "real_01", "virt_03", "x500"]
    dt, radius, w = 0.005, 2.0, 1.5
    plant = Plant(names * 2, dt)
    p = stack([default_gains(b, dt) for b in plant.bodies])
    a = stack([allocation_for(b, ROTORS) for b in plant.bodies])
    flat = np.repeat([1.0, 0.0], len(names))

    def circle(t):
        c, s = np.cos(w * t), np.sin(w * t)
        at, tangent = radius * np.array([c, s, 0.0]), radius * w * np.array([-s, c, 0.0])
        return at, tangent, -w * w * at, -w * w * tangent

    plant.x[:], plant.v[:] = circle(0.0)[:2]
    worst = np.zeros(len(plant.bodies))
    for k in range(1300):
        out = geometric_control(plant.state(), Reference(*map(tuple, circle(k * dt))), MODES["tracking"]._replace(flat=flat), p)
        plant.step(plant.speeds_for(allocate_bounded((0.0, 0.0, out.thrust, *out.moment), a)))
        if k > 900:
            worst = np.maximum(worst, np.linalg.norm(plant.x - circle((k + 1) * dt)[0], axis=1))
    # 3 m/s and 4.5 m/s^2 on 2 m: what remains with feed-forward is the rotors' lag.
    assert worst[flat > 0.5].max() < 0.10
    assert np.all(worst[flat > 0.5] < 0.5 * worst[flat < 0.5])


@pytest.mark.slow
def test_pose_control_moves_and_turns_an_omnidirectional_airframe_independently():
    names = ["base_octarotor", "base_random"]
    plant = Plant(names, 0.005)
    p = stack([default_gains(b, 0.005) for b in plant.bodies])
    a = stack([allocation_for(b, ROTORS) for b in plant.bodies])
    assert all(np.linalg.matrix_rank(control_effectiveness(b)) == 6 for b in plant.bodies)
    target = Rotation.from_euler("xyz", [0.5, -0.3, 0.8])
    for _ in range(1200):
        force, moment = pose_control(plant.state(), (0.3, -0.2, 0.1), tuple(target.as_quat()), p)
        plant.step(plant.speeds_for(allocate_bounded((*force, *moment), a)))
    assert np.linalg.norm(plant.x - [0.3, -0.2, 0.1], axis=1).max() < 0.01
    assert (target.inv() * Rotation.from_quat(plant.q)).magnitude().max() < 0.01


@pytest.mark.slow
def test_waypoints_through_the_rate_loop():
    """FlightGoggles: way-point controller at 96 Hz over the published rate loop, here at 480 Hz."""
    plant = Plant(["flightgoggles"], 1 / 480)
    body = plant.bodies[0]
    a = stack([allocation_for(body, ROTORS)])
    loop: RateLoopParameters = rate_loop_parameters(body)
    c = exact_coefficients(*low_pass_constants(30.0), 1 / 480)
    state = RateLoopState((0.0,) * 3, (0.0,) * 3, (0.0,) * 3)
    fastest, goal = 0.0, (4.0, 2.0, 1.0)
    thrust, rates = 0.0, (0.0, 0.0, 0.0)
    for k in range(480 * 5):
        if k % 5 == 0:
            thrust, rates = waypoint_control(plant.state(), goal, 0.5, WaypointParameters(body.mass, body.gravity))
        moment, state = rate_loop(tuple(plant.w.T), rates, state, c, 1 / 480, loop)
        plant.step(plant.speeds_for(allocate_bounded((0.0, 0.0, thrust, *moment), a)))
        fastest = max(fastest, float(np.linalg.norm(plant.v)))
    assert np.linalg.norm(plant.x - goal) < 0.15
    assert fastest < 3.0 * 1.25  # the speed limit acts on the set-point, and the soft rate loop overshoots


@pytest.mark.slow
def test_mellinger_in_si_holds_every_airframe():
    names = vehicle_names()
    dt = np.array([np.clip(0.1 / bandwidth(vehicle(name)).attitude[0], 0.002, 0.02) for name in names])
    plant = Plant(names, dt)
    p: MellingerParameters = stack([mellinger_for(b, float(h)) for b, h in zip(plant.bodies, dt, strict=True)])
    a = stack([allocation_for(b, ROTORS) for b in plant.bodies])
    zeros = (np.zeros(len(names)),) * 3
    memory = MellingerState(zeros, zeros, zeros)
    upset(plant, 6, size=0.5)
    for k in range(1500):
        thrust, moment, memory = mellinger_control(plant.state(), Reference(), (0.0,) * 3, memory, float(k > 0), plant.dt, p)
        plant.step(plant.speeds_for(allocate_bounded((0.0, 0.0, thrust, *moment), a)))
    assert np.linalg.norm(plant.x, axis=1).max() < 0.05
    assert plant.tilt().max() < 0.02


@pytest.mark.slow
def test_the_firmwares_mellinger_hovers_the_crazyflie():
    """Firmware gains, motor commands and mixer at 500 Hz, with the motors' ideal map; started off the goal."""
    plant = Plant(["cf2x_L250", "cf2x_P250", "rotorpy_crazyflie"], 1 / 500)
    p = stack([mellinger_parameters(gravity=b.gravity, mass=b.mass) for b in plant.bodies])
    mixer = stack([mixer_for(b) for b in plant.bodies])
    memory = MellingerState((0.0,) * 3, (0.0,) * 3, (0.0,) * 3)
    plant.x[:] = [0.2, -0.1, 0.1]
    largest = np.array([rotor_thrust(b.rotors[0], b.rotors[0].speed_max) for b in plant.bodies])
    padding = (np.zeros(3),) * 4
    for k in range(500 * 5):
        thrust, moment, memory = mellinger_control(plant.state(), Reference(), (0.0,) * 3, memory, float(k > 0), 1 / 500, p)
        thrusts = [thrust_of_command(c, largest) for c in motor_commands(thrust, moment, mixer)]
        plant.step(plant.speeds_for((*thrusts, *padding)))
    # massThrust assumes 0.1241 N at full command; another map leaves a height error until the integral fills.
    assert np.linalg.norm(plant.x, axis=1).max() < 0.1
    assert plant.tilt().max() < 0.05


@pytest.mark.slow
def test_the_competitions_legacy_chain_settles_1_cm_high():
    """spec/boundary_predictor 9: 34.54 g flown with a controller mass of 0.027 kg ends 1.1 cm high, before the integral.

    The competition's wrapper filters the gyro at 30 Hz, and so does this test.
    """
    plant = Plant(["cf2x_scg_iros2022"], 1 / 500)
    body = plant.bodies[0]
    p = mellinger_parameters(gravity=body.gravity, mass=0.027)._replace(ki=(0.0, 0.0, 0.0))
    memory = MellingerState((0.0,) * 3, (0.0,) * 3, (0.0,) * 3)
    c = exact_coefficients(*low_pass_constants(30.0), 1 / 500)
    filtered, slope = np.zeros(3), np.zeros(3)
    plant.q[0] = Rotation.from_rotvec([0.05, -0.03, 0.0]).as_quat()
    for k in range(500 * 5):
        w = plant.w[0]
        filtered, slope = c.a11 * filtered + c.a12 * slope + c.b1 * w, c.a21 * filtered + c.a22 * slope + c.b2 * w
        state = plant.state()._replace(body_rate=tuple(filtered))
        thrust, moment, memory = mellinger_control(state, Reference(), (0.0,) * 3, memory, float(k > 0), 1 / 500, p)
        command = motor_commands(thrust, moment, mixer_for(body))
        speeds = [speed_of_command(c, body.voltage_chain) for c in command]
        plant.step(np.pad(np.array(speeds, float).reshape(1, -1), ((0, 0), (0, ROTORS - 4))))
    assert plant.x[0, 2] == pytest.approx(0.011, abs=0.002)
    assert plant.tilt().max() < 0.02
