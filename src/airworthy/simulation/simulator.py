"""The clock: a batch of rigid vehicles, stepped one control period per call."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.control.kernel import LEVELS
from airworthy.core.arrays import Array, ArrayBool, ArrayFloat, ArrayIndex, ArrayLike, ArrayU32
from airworthy.core.errors import AirworthyError, AssetWarning, unknown_name
from airworthy.core.layout import Layout
from airworthy.core.random import flight_key
from airworthy.dynamics.state import Effects
from airworthy.geometry.batch import GeometryBatch
from airworthy.simulation.arrays import BatchArrays, Compact
from airworthy.simulation.config import Randomization, SimulatorConfig
from airworthy.simulation.events import ContactRecord, Events, EventSource
from airworthy.simulation.family import FAMILIES, rotor_slots
from airworthy.simulation.group_kernel import Group
from airworthy.simulation.obstacles import environments_of
from airworthy.simulation.parameters import parameter_numbers, randomize, started_turbulence, with_parameter
from airworthy.simulation.posterior import (
    DRAW_UNIFORMS,
    DrawnVehicle,
    bounded_config,
    draw_rows,
    drawn_vehicles,
    posteriors_of,
)
from airworthy.simulation.scene_contact import STEPS_MAX, SceneContact
from airworthy.simulation.stability import check_steps
from airworthy.simulation.start_state import (
    Snapshot,
    StartStates,
    check_beliefs,
    check_device,
    check_family,
    check_rotor_start,
    checked_config,
    command_array,
    delay_array,
    external_array,
    flight_id_array,
    initial_biases,
    mounted_rotations,
    resolve_ids,
    scatter,
    vehicles_per_env,
    whole_number,
)
from airworthy.vehicles import Vehicle

if TYPE_CHECKING:
    from airworthy.simulation.jointed.joints import Joints


class Simulator:
    """N environments of rigid multirotors that may all differ.

    Args:
        vehicles: One vehicle for all environments, or one per environment.
        config: Clock, equations and surroundings.
        env_count: Number of environments; may be left out when `vehicles` is a sequence.
        seed: Key of all random numbers.
        flight_ids: Identity of each environment's flights, shape (env,); random numbers depend on it and on nothing else of
            the batch. Default: 0, 1, 2, ...
        believed: What the controllers take the vehicles for, as `vehicles`; default: the records themselves.
        groups: Group of each environment, (env,), for effects between vehicles; a flight then depends on its group's members
            and on nothing else of the batch.
        device: "cpu" or a CUDA device ("cuda:0").
        threads: Most threads on a CPU.
        geometry: What vehicles may hit, for `SimulatorConfig.contact`; on whichever device.
        geometry_env: Its environment that each environment is in, (env,); default: the same number, or the only one.

    Raises:
        AirworthyError: If the numbers do not fit together; the message says how.
    """

    def __init__(
        self,
        vehicles: Vehicle | Sequence[Vehicle],
        config: SimulatorConfig | None = None,
        env_count: int | None = None,
        seed: int = 0,
        flight_ids: ArrayLike | None = None,
        believed: Vehicle | Sequence[Vehicle] | None = None,
        groups: ArrayLike | None = None,
        device: str = "cpu",
        threads: int | None = None,
        geometry: GeometryBatch | None = None,
        geometry_env: ArrayLike | None = None,
    ):
        self.config = checked_config(config)
        self.family = FAMILIES[self.config.dynamics]
        self.family.check_level(self.config.level)
        self.vehicles = vehicles_per_env(vehicles, env_count, "vehicles")
        self.env_count = len(self.vehicles)
        check_family(self.vehicles, self.config)
        if self.config.dynamics != "rigid":
            _tell_delays(self.vehicles, self.config.dynamics)
        self.shape = self.family.shape(self.vehicles, self.config)
        """What the kernel is built for."""
        counts = np.array([v.rotor_count for v in self.vehicles])
        self.rotor_count = int(counts.max())
        self.has_rotor = np.arange(self.rotor_count) < counts[:, None]
        """Which rotors each vehicle has, (env, rotor_count); commands to others are not read, their states are zero."""
        # As whole numbers: a ratio of floats would lose a step after some hours, or where it is whole in decimals only.
        ratio = self.config.physics_rate / self.config.control_rate
        self._ratio = Fraction(ratio).limit_denominator(10**6).as_integer_ratio()
        check_device(device)
        self.seed, self.device = whole_number("seed", seed, -(2**63)), device
        padded = rotor_slots(self.shape)
        self.layout: Layout = self.family.state_layout(self.shape)
        self.inputs_layout = self._inputs_layout = self.family.input_layout(self.shape)
        self._param_layout = self.family.parameter_layout(self.shape)
        self.flight_ids = flight_id_array(flight_ids, self.env_count)
        self.episode = np.zeros(self.env_count, np.uint32)
        self.step_count = 0
        """Control steps taken since construction or the last full reset."""
        beliefs = self.vehicles if believed is None else vehicles_per_env(believed, self.env_count, "believed")
        check_beliefs(self.vehicles, beliefs)
        self._posteriors = posteriors_of(self.vehicles, self.config)
        self._bounded = bounded_config(self.config, [posterior for posterior, _ in self._posteriors])
        """With all that is drawn inside its independent spread: what stability and effects are found by."""
        self._rejected_draws = np.zeros(self.env_count, np.int64)
        self._nominal = self.family.rows(self.vehicles, beliefs, self._bounded, self.shape)
        self.rows = self._nominal
        """Parameter rows in force, shape (rows, env), float64; see `parameter`."""
        self.effects = self._needed_effects()
        self._joints = _joints_of(self.vehicles, self.config)
        rigid = {id(item): self.family.held(item, self.config) for item in {id(item): item for item in self.vehicles}.values()}
        angles = None if self._joints is None else self._joints.angles
        self._starts = StartStates(
            [rigid[id(item)] for item in self.vehicles], self.layout, self.config.dynamics, padded, angles
        )
        self._kernel = partial(self.family.kernel, self.shape)
        self._threads = None if threads is None else whole_number("threads", threads)
        self._arrays = self._make_arrays(self.env_count)
        self.command_rows = LEVELS[self.config.level].width(padded)
        self._group = self._make_group(groups)
        self._uploaded = False
        self._events = Events()
        self.scene = self._make_scene(geometry, geometry_env)
        """Contact with the geometry, if the configuration has it."""
        self.reset()

    # ---- state ------------------------------------------------------------------------------------------------------

    @property
    def rejected_draws(self) -> int:
        """Draws from the vehicles' uncertainty that were no vehicle, or none that flies, for the flights that are in the air;
        others were drawn in their place."""
        return int(self._rejected_draws.sum())

    def field(self, name: str) -> ArrayFloat:
        """Return the state of all environments: shape (env, k) for vectors, (env,) for scalars.

        On a CPU a view into the simulation's memory, without a copy; on a GPU a copy. Names: `simulator.layout.fields`.
        """
        if name not in self.layout:
            raise unknown_name("state field", name, self.layout.fields)
        rows = self._arrays.state()[self.layout.rows(name), : self.env_count]
        return rows[0] if self.layout.fields[name] == () else rows.T

    def torch(self, name: str) -> Any:
        """Return a field, as `field`, as a torch tensor that shares the simulation's memory, also on a GPU."""
        if name not in self.layout:
            raise unknown_name("state field", name, self.layout.fields)
        rows = self._arrays.torch_state()[self.layout.rows(name), : self.env_count]
        return rows[0] if self.layout.fields[name] == () else rows.T

    @property
    def position(self) -> ArrayFloat:
        """World [m], (env, 3)."""
        return self.field("position")

    @property
    def velocity(self) -> ArrayFloat:
        """World [m/s], (env, 3)."""
        return self.field("velocity")

    @property
    def center(self) -> ArrayFloat:
        """Centre of mass of the whole vehicle, world [m], (env, 3): of one with joints not `position`, which is its root's."""
        return self.position if self._joints is None else self.field("center")

    @property
    def center_velocity(self) -> ArrayFloat:
        """Velocity of `center`, world [m/s], (env, 3)."""
        return self.velocity if self._joints is None else self.field("center_velocity")

    def link_pose(self, link: str, env_ids: ArrayLike | None = None) -> tuple[Array, Array]:
        """Return the world pose of a link of vehicles with joints, of its frame as the record has it.

        Args:
            link: Its name; empty: the root.
            env_ids: Indices or a mask; None: all.

        Returns:
            Positions (k, 3) [m] and attitudes (k, 4), float64.

        Raises:
            AirworthyError: The vehicles have no joints, or no such link.
        """
        if self._joints is None:
            raise AirworthyError(f"{self.config.dynamics} dynamics have no links.")
        ids = resolve_ids(env_ids, self.env_count)
        state = {name: self.field(name)[ids] for name in ("position", "attitude", "joint")}
        return self._joints.link_pose(link, self.rows[self._param_layout.rows("tree")][:, ids], state)

    @property
    def mass(self) -> ArrayFloat:
        """Mass of the whole vehicle in force [kg], (env,)."""
        return self.parameter("mass") if self._joints is None else self._joints.mass(self.rows, self._param_layout)

    @property
    def held(self) -> list[Vehicle]:
        """The rigid vehicles that those of the environments are as flights start: the same records where nothing has joints."""
        made = {id(item): self.family.held(item, self.config) for item in {id(item): item for item in self.vehicles}.values()}
        return [made[id(item)] for item in self.vehicles]

    @property
    def attitude(self) -> ArrayFloat:
        """Quaternion x, y, z, w, body to world, (env, 4)."""
        return self.field("attitude")

    @property
    def rate(self) -> ArrayFloat:
        """Body rate in the body frame [rad/s], (env, 3)."""
        return self.field("rate")

    @property
    def rotor_speed(self) -> ArrayFloat:
        """Rotor states [rad/s; N for thrust-domain vehicles], (env, rotor_count)."""
        return self.field("rotor_speed")[:, : self.rotor_count]

    def rotors(self, name: str) -> ArrayFloat:
        """Return a state field of rotors, (env, rotor_count), NaN for rotors that a vehicle lacks and another has; for
        records.

        "rotor_command" is what was issued for the last step, limited: of a vehicle with a dead time, what its rotors are still
        to follow, as a controller's log would have it.
        """
        if name == "rotor_command" and "rotor_queue" in self.layout:
            values = self.field("rotor_queue")[:, -self.layout.fields["rotor_queue"][1] :][:, : self.rotor_count]
        else:
            values = self.field(name)[:, : self.rotor_count]
        return values if self.has_rotor.all() else np.where(self.has_rotor, values, np.float32(np.nan))

    @property
    def exact_rotors(self) -> ArrayBool:
        """Whose rotors advance by their exact solution, (env,): where asked for, and where they are too fast for the step."""
        if self.config.dynamics != "rigid":
            return np.zeros(self.env_count, bool)
        return np.asarray(self.parameter("rotor_exact") > 0.5)

    @property
    def imu(self) -> ArrayFloat:
        """Sample of the present instant: accelerometer [m/s^2], gyroscope [rad/s], sensor frame, (env, 6).

        It is found by a physics step on trial, under the command in force, so reading it costs a launch of one step; the next
        `imu_log` begins with it. Right after a reset it is the sample of step 0. `field("imu")` is that of the step before,
        as a launch leaves it, and costs nothing.
        """
        self._need_imu()
        return self._tried("imu")

    @property
    def diverged(self) -> ArrayBool:
        """Flights that left the bounds of sense; they are frozen and never touch the others, (env,)."""
        return np.asarray(self.field("status") == 1.0)

    @property
    def contacts(self) -> ContactRecord:
        """Impacts with the geometry; see `ContactRecord`."""
        return self._need_scene().record

    @property
    def flight_step(self) -> ArrayU32:
        """Physics steps since the start of each flight, (env,)."""
        return self._arrays.keys()[4, : self.env_count].copy()

    @property
    def time(self) -> ArrayFloat:
        """Seconds since the start of each flight, (env,), float64."""
        return self.flight_step / self.config.physics_rate

    def parameter(self, name: str) -> ArrayFloat:
        """Return parameter rows in force, shape (env, k) or (env,), float64; see `airworthy.dynamics.state.rigid_layout`."""
        if name not in self._param_layout:
            raise unknown_name("parameter", name, self._param_layout.fields)
        rows = self.rows[self._param_layout.rows(name)]
        return rows[0] if self._param_layout.fields[name] == () else rows.T

    def drawn_vehicles(self) -> list[DrawnVehicle]:
        """Return what each flight in the air drew from what the identification of its vehicle left open, one per environment;
        empty without Randomization(posterior=True)."""
        found: dict[int, DrawnVehicle] = {}
        for posterior, flown in self._posteriors:
            keys = flight_key(self.seed, self.flight_ids[flown], self.episode[flown])
            drawn = drawn_vehicles(posterior.vehicle, self.config.randomization, keys)
            found |= dict(zip(flown.tolist(), drawn, strict=True))
        return [found[k] for k in sorted(found)]

    def set_parameter(self, name: str, value: ArrayLike, lasting: bool = True) -> None:
        """Change a parameter; what follows from it (inverses, levers) follows.

        Args:
            name: See `airworthy.dynamics.state.rigid_layout`.
            value: (env, k) or (env,) for a scalar parameter; or (k,) or a number for every environment.
            lasting: For this and later flights; False: for the flights in the air, until each is reset. What is drawn anew
                for each flight can be changed for those alone.

        Raises:
            AirworthyError: If the name is unknown, the shape does not fit, no vehicle has such a parameter (a mass below
                zero, an inertia of no body, a number that is not finite), or it becomes too fast for the step; nothing has
                changed then.
        """
        if lasting and any(posterior.sets(name) for posterior, _ in self._posteriors):
            raise AirworthyError(
                f"Parameter {name!r} is drawn anew for each flight, from what the identification left open: change the vehicle,"
                " say lasting=False for the flights in the air, or build the simulator without Randomization(posterior=True)."
            )
        if name == "command_delay" and name in self._param_layout:
            most, asked = self.layout.fields["rotor_queue"][0] - 1, float(np.max(parameter_numbers(name, value), initial=0.0))
            if asked > most:
                raise AirworthyError(
                    f"Parameter 'command_delay' got {asked:g} physics steps; this simulator was built for at most {most}: build"
                    " one with a vehicle of that dead time."
                )
        # Into a copy, and checked as a whole, before anything of the simulator changes.
        if not lasting:
            self._set_until_reset(with_parameter(self.rows, self._param_layout, name, value, self.config))
            return
        nominal = with_parameter(self._nominal, self._param_layout, name, value, self.config)
        if self.config.dynamics == "rigid":
            check_steps(nominal, self._param_layout, self._bounded, self.vehicles)
        same = self.rows is self._nominal
        self.rows = nominal if same else with_parameter(self.rows, self._param_layout, name, value, self.config)
        self._nominal = nominal
        # What was switched on by calls does not follow from parameters, and stays.
        switched = self.effects & (Effects.DELAY | Effects.EXTERNAL | Effects.DOWNWASH | Effects.CLEARANCE)
        self.effects = self._needed_effects() | switched
        self._upload_parameters()

    def _set_until_reset(self, rows: Array) -> None:
        """Put rows in force that the next reset of each flight sets back."""
        if not self.config.randomization.any:
            raise AirworthyError(
                "A parameter that does not last needs a simulator that draws parameters at each reset: without Randomization"
                " nothing sets it back; leave lasting out."
            )
        if self.config.dynamics == "rigid":
            check_steps(rows, self._param_layout, replace(self.config, randomization=Randomization()), self.vehicles)
        self.rows = rows
        self.effects |= self.family.effects(rows, self._param_layout, self._bounded)
        self._upload_parameters()

    # ---- clock ------------------------------------------------------------------------------------------------------

    def substeps(self, control_step: int) -> int:
        """Return physics steps between command `control_step` and the next: command k falls on step ceil(k f_physics /
        f_control)."""
        up, down = self._ratio
        # A difference of two ceilings in whole numbers: no error adds up, however long a flight is.
        return -(-(control_step + 1) * up // down) + (-control_step * up // down)

    def step(self, command: ArrayLike | None = None) -> None:
        """Advance every environment by one control period.

        Args:
            command: At the configured level, shape (env, width), or (width,) for all; None repeats the last one.

        Raises:
            AirworthyError: If its shape does not fit.
        """
        if command is not None:
            self.set_command(command)
        self._launch(self.substeps(self.step_count), self.effects)
        self.step_count += 1

    def advance(self, steps: int, command: ArrayLike | None = None, imu_log: bool = False) -> ArrayFloat | None:
        """Advance by whole physics steps under one command, outside the control clock.

        Args:
            steps: Physics steps in one launch.
            command: As in `step`.
            imu_log: Keep every IMU sample.

        Returns:
            With `imu_log`, samples of shape (steps, env, 6); else None.
        """
        steps = whole_number("steps", steps)
        if command is not None:
            self.set_command(command)
        effects = self.effects
        if imu_log:
            self._need_imu()
            self._arrays.reserve_log(steps)
            effects |= Effects.IMU_LOG
        self._launch(steps, effects)
        return self._arrays.log(steps)[:, :, : self.env_count].transpose(0, 2, 1) if imu_log else None

    def set_command(self, command: ArrayLike, delay_steps: ArrayLike | None = None) -> None:
        """Set the command of the next launches.

        Args:
            command: Shape (env, width) or (width,); on a GPU a CUDA tensor is taken without leaving the device.
            delay_steps: Physics steps, from the next launch on, that still follow the previous command, scalar or (env,).
                A new command ends a delay that is still running.

        Raises:
            AirworthyError: If the shape does not fit.
        """
        # A delay has to keep the command before, which is done on the host.
        if getattr(command, "is_cuda", False) and delay_steps is None:
            self._set_device_command(command)
            return
        rows = self._inputs_layout.rows("command")
        inputs = self._arrays.inputs()
        width = LEVELS[self.config.level].width(self.rotor_count)
        array = command_array(command, self.config.level, self.env_count, self.rotor_count, width)
        delay = None if delay_steps is None else delay_array(delay_steps, self.env_count)
        if delay is not None:
            inputs[self._inputs_layout.rows("command_previous"), : self.env_count] = inputs[rows, : self.env_count]
            inputs[self._inputs_layout.offsets["delay"], : self.env_count] = delay
            self.effects |= Effects.DELAY
        # A new command without a delay ends one that is still running.
        elif self.effects & Effects.DELAY:
            inputs[self._inputs_layout.offsets["delay"], : self.env_count] = 0.0
        inputs[rows.start : rows.start + width, : self.env_count] = array.T if array.ndim == 2 else array[:, None]
        self._arrays.push_inputs()

    def _set_device_command(self, command: Any) -> None:
        width = LEVELS[self.config.level].width(self.rotor_count)
        if tuple(command.shape) not in ((width,), (self.env_count, width)):
            shape, level, count = tuple(command.shape), self.config.level, self.env_count
            expected = f"({count}, {width}) or ({width},)"
            raise AirworthyError(f"A CUDA command at level {level!r} has shape {shape}; expected {expected}.")
        start = self._inputs_layout.offsets["command"]
        self._arrays.torch_inputs()[start : start + width, : self.env_count] = (
            command.T if command.ndim == 2 else command[:, None]
        )

    def set_external(self, force: ArrayLike = 0.0, moment: ArrayLike = 0.0) -> None:
        """Set the external force (world [N]) and moment (body [N m]) of the next launches, shape (env, 3) or (3,)."""
        inputs = self._arrays.inputs()
        for name, value in (("force", force), ("moment", moment)):
            inputs[self._inputs_layout.rows(name), : self.env_count] = external_array(name, value, self.env_count).T
        self.effects |= Effects.EXTERNAL
        self._arrays.push_inputs()

    def set_joint_command(
        self,
        angle: ArrayLike | None = None,
        rate: ArrayLike | None = None,
        torque: ArrayLike | None = None,
        env_ids: ArrayLike | None = None,
    ) -> None:
        """Set what the joints do from the next launch on; joints that are not told keep on.

        Args:
            angle: Of springs that commands set, which then pull there, and of servos, which turn there at 10 (angle - q) + rate
                [rad], (k, joints) or (joints,); NaN: this joint is not told.
            rate: Of servos [rad/s], alike; without an angle they turn on at it.
            torque: Of joints that are driven by torques [N m], alike.
            env_ids: Indices or a mask; None: all.

        Raises:
            AirworthyError: The vehicles have no joints, or a joint does not take what is said to it.
        """
        if self._joints is None:
            raise AirworthyError(f"{self.config.dynamics} dynamics have no joints to command.")
        ids = resolve_ids(env_ids, self.env_count)
        inputs = self._arrays.inputs()
        self._joints.command(inputs, self._inputs_layout, ids, {"angle": angle, "rate": rate, "torque": torque})
        self._arrays.push_inputs()

    def add_events(self, source: EventSource) -> None:
        """Serve a source of events, such as mounted sensors: launches are cut where it is due, and it is told of resets.

        Args:
            source: See `airworthy.simulation.events.EventSource`.
        """
        self._events.add(source)

    def geometry_changed(self, env_ids: ArrayLike | None = None) -> None:
        """Note that the geometry was changed other than by posing dynamic instances: what is around these environments is
        looked up again.
        """
        if self.scene is not None:
            self.scene.forget(resolve_ids(env_ids, self.env_count))

    def set_dynamic_velocity(self, velocity: ArrayLike | None) -> None:
        """Set the world velocity of dynamic instances [m/s], for rebounds: (geometry env, dynamic_count, 3); None: they stand
        still."""
        scene = self._need_scene()
        scene.set_dynamic_velocity(velocity)

    # ---- reset, save, restore ---------------------------------------------------------------------------------------

    def reset(
        self,
        env_ids: ArrayLike | None = None,
        position: ArrayLike | None = None,
        velocity: ArrayLike | None = None,
        attitude: ArrayLike | None = None,
        rate: ArrayLike | None = None,
        rotor_speed: ArrayLike | None = None,
        joint: ArrayLike | None = None,
        joint_rate: ArrayLike | None = None,
    ) -> None:
        """Start a new flight in some environments; the others are untouched.

        Their commands are forgotten: until the next one, rotors keep their start, and any other level is commanded zeros.

        Args:
            env_ids: Indices or a mask, (k,) or (env,); None: all, which also restarts the control clock.
            position: World [m], (3,) or (k, 3); default: that of the last reset, at first the origin.
            velocity: World [m/s]; default 0.
            attitude: Quaternion x, y, z, w; default level. Normalised here.
            rate: Body rate [rad/s]; default 0.
            rotor_speed: Rotor states within their limits, or 0; default hover.
            joint: Angles of joints between their stops [rad]; default those of the configuration.
            joint_rate: Their rates [rad/s]; default 0.
        """
        ids = resolve_ids(env_ids, self.env_count)
        given = {
            "position": position,
            "velocity": velocity,
            "attitude": attitude,
            "rate": rate,
            "rotor_speed": rotor_speed,
            "joint": joint,
            "joint_rate": joint_rate,
        }
        if not ids.size:
            return
        start = self._starts.build(ids, given)
        if rotor_speed is not None:
            lower, upper = (self.rows[self._param_layout.rows(f"rotor_{end}")][:, ids].T for end in ("min", "max"))
            check_rotor_start(start["rotor_speed"], lower, upper)
        if joint is not None and self._joints is not None:
            self._joints.refuse_beyond(start["joint"], ids)
        if env_ids is None:
            self.step_count = 0
        if self.scene is not None:
            self.scene.record.clear(ids)
        self._start(ids, start)

    def restart(self, env_ids: ArrayIndex) -> None:
        """Start new flights where the last reset put them, without clearing `contacts`: what contact does in mode "reset"."""
        nothing = dict.fromkeys(("position", "velocity", "attitude", "rate", "rotor_speed", "joint", "joint_rate"))
        self._start(env_ids, self._starts.build(env_ids, nothing))

    def _start(self, ids: ArrayIndex, start: dict[str, ArrayFloat]) -> None:
        # The reset of the constructor begins episode 0.
        self.episode[ids] += 1 if self._uploaded else 0
        keys = flight_key(self.seed, self.flight_ids[ids], self.episode[ids])
        self._draw_parameters(ids, keys)
        scatter(start, self.config.randomization, keys)
        if self._joints is not None:
            self._joints.scatter(start, ids, self.config.randomization.joint, keys)
        state = self._arrays.state()
        # Everything: what a field added later keeps from the last flight would be found by no test of its own.
        state[:, ids] = 0.0
        for name, value in start.items():
            state[self.layout.rows(name), ids] = value.T
        if "rotor_speed" in start:
            state[self.layout.rows("rotor_command"), ids] = start["rotor_speed"].T
            if "rotor_queue" in self.layout:  # as if it had been commanded for long
                slots = self.layout.fields["rotor_queue"][0]
                state[self.layout.rows("rotor_queue"), ids] = np.tile(start["rotor_speed"].T, (slots, 1))
            state[self.layout.offsets["battery_ratio"], ids] = self._battery_start(ids)
        if self._joints is not None:
            tree = self.rows[self._param_layout.rows("tree")][:, ids]
            for name, whole in self._joints.whole(tree, start).items():
                state[self.layout.rows(name), ids] = whole
            # A flight that begins within a launch is steered by its own shape.
            state[self.layout.rows("launch_joint"), ids] = start["joint"].T
        if self.effects & Effects.TURBULENCE:
            keep, gain = (self.rows[self._param_layout.rows(f"dryden_{name}")][:, ids] for name in ("keep", "gain"))
            state[self.layout.rows("turbulence"), ids] = started_turbulence(keep, gain, keys)
        if self.config.imu is not None:
            biases = initial_biases(self.config.imu, keys)
            state[self.layout.rows("accelerometer_bias"), ids] = biases[:, :3].T
            state[self.layout.rows("gyroscope_bias"), ids] = biases[:, 3:].T
        key_rows = self._arrays.keys()
        key_rows[:4, ids] = keys.T
        # The fifth row counts the flight's steps: random numbers are drawn by it.
        key_rows[4, ids] = 0
        self._arrays.push_state()
        self._forget_commands(ids, start)
        if self.scene is not None:
            self.scene.forget(ids)
        self._events.reset(ids)

    def save(self) -> Snapshot:
        """Return everything that the future depends on, besides vehicles, configuration, seed and flight ids."""
        return Snapshot(
            state=self._arrays.state().copy(),
            inputs=self._arrays.inputs().copy(),
            keys=self._arrays.keys().copy(),
            rows=_packed(self.rows),
            nominal=_packed(self._nominal),
            start_position=self._starts.position.copy(),
            start_attitude=self._starts.attitude.copy(),
            episode=self.episode.copy(),
            step_count=self.step_count,
            effects=int(self.effects),
            contacts=np.zeros((self.env_count, 0)) if self.scene is None else self.scene.record.packed(),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of a simulator with the same environments.

        Raises:
            AirworthyError: If its arrays are of another shape.
        """
        state = self._arrays.state()
        count = len(snapshot.episode)
        if snapshot.state.shape != state.shape or len(snapshot.rows) != len(self.rows) or count != self.env_count:
            raise AirworthyError(
                f"A snapshot of {count} environments and state {snapshot.state.shape} does not fit a simulator of"
                f" {self.env_count} and {state.shape}; restore it into one with the same vehicles and env_count."
            )
        state[...] = snapshot.state
        self._arrays.inputs()[...] = snapshot.inputs
        self._arrays.keys()[...] = snapshot.keys
        self._nominal = _unpacked(snapshot.nominal, self.env_count)
        # One array for both again, so that kernels may share the parameters.
        same = np.array_equal(snapshot.rows, snapshot.nominal, equal_nan=True)
        self.rows = self._nominal if same else _unpacked(snapshot.rows, self.env_count)
        self._starts.position[...] = snapshot.start_position
        self._starts.attitude[...] = snapshot.start_attitude
        self.episode[...] = snapshot.episode
        # Of this simulator, not of the one that saved: only one of them may have geometry.
        watched = self.effects & Effects.CLEARANCE
        self.step_count, self.effects = snapshot.step_count, Effects(snapshot.effects) & ~Effects.CLEARANCE | watched
        self._arrays.push_state()
        self._arrays.push_inputs()
        self._upload_parameters()
        if self.scene is not None:
            self.scene.forget()
            if snapshot.contacts.shape[1]:
                self.scene.record.unpack(snapshot.contacts)
        self._events.reset(np.arange(self.env_count))

    def _make_group(self, groups: ArrayLike | None) -> Group | None:
        if self.config.downwash is None:
            return None
        if groups is None:
            raise AirworthyError("Downwash acts among vehicles of a group; give `groups`, one whole number per environment.")
        self.effects |= Effects.DOWNWASH
        return Group(groups, self.flight_ids, self.device)

    def _blow(self) -> None:
        if self._group is None or self.config.downwash is None:
            return
        offsets = self.layout.offsets
        rows = (offsets["position"], offsets["status"], self._inputs_layout.offsets["downwash"])
        self._arrays.blow(self._group, rows, self.config.downwash)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _launch(self, steps: int, effects: Effects) -> None:
        """Fly a control period, in parts where an event source is due in between; the parts give the bits of the whole."""
        self._blow()
        done, most = 0, steps if self.scene is None else STEPS_MAX
        while done < steps:
            # Randomness and compensated sums are by step, not by launch: that is why the parts give the bits of the whole.
            part, due = self._events.next_part(self, min(steps - done, most))
            last = done + part == steps
            self._fly(part, effects if last else effects | Effects.UNFINISHED, done)
            done += part
            for source in due:
                source.fire(self)

    def _fly(self, steps: int, effects: Effects, elapsed: int) -> None:
        level = LEVELS[self.config.level].number
        if self.scene is not None:
            self.scene.prepare(steps / self.config.physics_rate)
        self._arrays.launch(self.config, effects, steps, level, self.command_rows, elapsed)
        if self.scene is not None:
            self.scene.finish(steps, effects, elapsed)
        if self.effects & Effects.DELAY:
            self._pass_delay(steps)

    def _tried(self, name: str) -> ArrayFloat:
        """Return a state field as one more physics step would leave it; nothing else of the simulation changes."""
        arrays = self._arrays
        memory = (arrays.state(), arrays.inputs(), arrays.keys())
        kept, effects = [array.copy() for array in memory], self.effects
        balls = None if self.scene is None else self.scene.begin_trial()
        try:
            self._blow()
            self._fly(1, self.effects, 0)
            return np.array(self.field(name))
        finally:
            # In `finally`: an interrupt must not leave a step on trial as if it had been flown.
            for array, before in zip(memory, kept, strict=True):
                array[...] = before
            self.effects = effects
            arrays.push_state()
            arrays.push_inputs()
            if self.scene is not None and balls is not None:
                self.scene.end_trial(balls)

    def _pass_delay(self, steps: int) -> None:
        """Take a launch's steps off the delays that still run."""
        inputs = self._arrays.inputs()
        delay = inputs[self._inputs_layout.offsets["delay"]]
        delay[...] = np.maximum(delay - steps, 0.0)
        if not delay.any():
            self.effects &= ~Effects.DELAY
        self._arrays.push_inputs()

    def _forget_commands(self, ids: ArrayIndex, start: dict[str, ArrayFloat]) -> None:
        """Forget what was commanded before a flight began, which it must not follow."""
        inputs = self._arrays.inputs()
        for name in ("command", "command_previous", "delay"):
            inputs[self._inputs_layout.rows(name), ids] = 0.0
        if self.config.level == "rotor_speed":
            speeds = start["rotor_speed"].T
            for name in ("command", "command_previous"):
                first = self._inputs_layout.offsets[name]
                inputs[first : first + len(speeds), ids] = speeds
        if self._joints is not None:
            self._joints.forget(inputs, self._inputs_layout, ids, start["joint"])
        self._arrays.push_inputs()

    def compact(self, env_count: int) -> Compact:
        """Return a small batch of the same kind, in which single flights can be flown again; see `Compact`."""
        return Compact(self._make_arrays(env_count), self.layout, self._inputs_layout)

    def _make_arrays(self, env_count: int) -> BatchArrays:
        layouts = (self.layout, self._inputs_layout, self._param_layout)
        return BatchArrays(self._kernel, *layouts, env_count, self.device, self._threads)

    def _make_scene(self, geometry: GeometryBatch | None, geometry_env: ArrayLike | None) -> SceneContact | None:
        contact = self.config.contact
        if contact is None:
            return None
        if geometry is None:
            raise AirworthyError("SimulatorConfig.contact needs something to meet; give Simulator(..., geometry=...).")
        env = environments_of(geometry, geometry_env, self.env_count)
        self.effects |= Effects.CLEARANCE
        return SceneContact(self, contact, geometry, env, self._arrays)

    def _need_scene(self) -> SceneContact:
        if self.scene is None:
            raise AirworthyError(
                "This simulator has no contact with geometry;"
                " build it with SimulatorConfig(contact=Contact(...)) and Simulator(..., geometry=...)."
            )
        return self.scene

    def _need_imu(self) -> None:
        if self.config.imu is None:
            raise AirworthyError("This simulator has no IMU; build it with SimulatorConfig(imu=Imu(...)).")

    def _battery_start(self, ids: ArrayIndex) -> ArrayFloat:
        if not self.config.battery:
            return np.ones(len(ids))
        full = self.rows[self._param_layout.offsets["battery"], ids]
        nominal = self.rows[self._param_layout.offsets["battery"] + 3, ids]
        return full / nominal

    def _draw_parameters(self, ids: ArrayIndex, keys: ArrayU32) -> None:
        if self.config.randomization.any:
            if self.rows is self._nominal:
                self.rows = self._nominal.copy()
            drawn = randomize if self._joints is None else self._joints.randomize
            self.rows[:, ids] = drawn(self._drawn_together(ids, keys), self._param_layout, self.config, keys)
        if self.config.imu is not None and self.config.imu.bias_initial[2] != 0.0:
            if self.rows is self._nominal:
                self.rows = self._nominal.copy()
            self.rows[self._param_layout.rows("imu_rotation"), ids] = mounted_rotations(self.config.imu, keys).T
        elif self._uploaded and not self.config.randomization.any:
            return
        self._upload_parameters(ids if self._uploaded else None)

    def _drawn_together(self, ids: ArrayIndex, keys: ArrayU32) -> Array:
        """Return rows of flights, drawn from what the identification of their vehicles left open where that is asked for."""
        rows = self._nominal[:, ids]
        for posterior, flown in self._posteriors:
            mine = np.flatnonzero(np.isin(ids, flown))
            if mine.size:
                dt = 1.0 / self.config.physics_rate
                rows[:, mine], rejected = draw_rows(posterior, rows[:, mine], self._param_layout, keys[mine], dt)
                self._rejected_draws[ids[mine]] = rejected
        return rows

    def _needed_effects(self) -> Effects:
        """Return what the batch needs, also for vehicles that are drawn."""
        rows = self._nominal if self._nominal.strides[1] else self._nominal[:, :1]
        # A draw has what a record may lack: damping, and a part of thrust that is linear.
        for posterior, flown in self._posteriors:
            one = dict(enumerate(self._nominal[:, flown[0]]))
            made = posterior.rows(posterior.values((0.3,) * DRAW_UNIFORMS), one, self._param_layout, 1.0)
            rows = np.column_stack([rows, [float(made[row]) for row in range(len(rows))]])
        return self.family.effects(rows, self._param_layout, self._bounded) | self._random_effects()

    def _upload_parameters(self, env_ids: ArrayIndex | None = None) -> None:
        self._uploaded = True
        if self._arrays.push_parameters(self.rows, env_ids):
            self.effects |= Effects.SHARED_PARAMETERS
        else:
            self.effects &= ~Effects.SHARED_PARAMETERS

    def _random_effects(self) -> Effects:
        return Effects.WIND if self.config.randomization.wind != 0.0 else Effects(0)


def _tell_delays(vehicles: Sequence[Vehicle], dynamics: str) -> None:
    """Warn, once for each record, of dead times that dynamics do not know."""
    for item in {id(item): item for item in vehicles}.values():
        if item.command_delay > 0.0:
            warnings.warn(
                f"{item.name} has a dead time of {1e3 * item.command_delay:.3g} ms from command to rotor, which only rigid"
                f" dynamics fly: in {dynamics.replace('_', '-')} ones it answers at once.",
                AssetWarning,
                stacklevel=3,
            )


def _joints_of(vehicles: Sequence[Vehicle], config: SimulatorConfig) -> Joints | None:
    """Joints of a batch; the room of vehicles with joints is loaded where there are some."""
    if config.dynamics != "articulated":
        return None
    from airworthy.simulation.jointed.joints import Joints

    return Joints(vehicles, config)


def _packed(rows: Array) -> Array:
    """Rows to keep: one column where all environments share one."""
    # A stride of 0 is how a broadcast array says that all columns are one.
    return rows[:, :1].copy() if rows.strides[1] == 0 else rows.copy()


def _unpacked(rows: Array, env_count: int) -> Array:
    return np.broadcast_to(rows, (len(rows), env_count)) if env_count > 1 and rows.shape[1] == 1 else rows.copy()
