"""Families of dynamics behind one interface: what the simulator needs to know of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from airworthy.control.kernel import (
    LEVELS,
    control_blocks,
    control_column,
    control_constants,
    control_layout,
    control_native,
    tracking_rates_blocks,
)
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.layout import Layout
from airworthy.core.native_kernel import native_kernel, shared_source
from airworthy.core.random import Stream
from airworthy.dynamics.rigid import INTEGRATORS, advance_source, rigid_blocks, step_source
from airworthy.dynamics.semi_kinematic import (
    semi_kinematic_blocks,
    semi_kinematic_layout,
    semi_kinematic_parameters,
    semi_kinematic_source,
    semi_kinematic_state_layout,
)
from airworthy.dynamics.state import (
    COMMAND_ROWS,
    CONTACT_POINTS,
    SPANS_MAX,
    Effects,
    delay_slots,
    delayed_layout,
    input_layout,
    padded_rotor_count,
    rigid_layout,
    rigid_state_layout,
)
from airworthy.simulation.config import SimulatorConfig
from airworthy.simulation.parameters import effects_of, rigid_column
from airworthy.simulation.posterior import latest_command
from airworthy.simulation.stability import check_law
from airworthy.vehicles.links import refuse_links
from airworthy.vehicles.record import Vehicle

# ---------------------------------------------------------------------------------------------------------------------------
# Builds the fused kernel: control, allocation, rotors, body, disturbances and IMU over all steps of a control period

ARGUMENTS = ("state", "inputs", "params", "param_table", "keys", "imu_log", "elapsed")
"""Array arguments of the kernel, in order; then the scalars below and the first block."""
SCALARS = ("stride", "dt", "substeps", "integrator", "level", "command_rows", "flags", "block_count")


BLOCKS_PER_TASK = 16
"""Blocks of 16 environments that one CPU task covers."""


def parameter_layout(rotor_count: int, slots: int = 0) -> Layout:
    """Return rows of the rigid family's parameters: the vehicle's, then the controller's under the prefix `control_`.

    Args:
        rotor_count: Padded.
        slots: Commands on their way to rotors, see `dynamics.state.delay_slots`.
    """
    return with_control(delayed_layout(rigid_layout(rotor_count), False, rotor_count, slots), rotor_count)


def semi_kinematic_parameter_layout(rotor_count: int) -> Layout:
    """Return rows of the semi-kinematic family's parameters: the vehicle's, then the controller's under the prefix
    `control_`."""
    return with_control(semi_kinematic_layout(), rotor_count)


def with_control(vehicle: Layout, rotor_count: int) -> Layout:
    """Return a vehicle's parameter rows with the controller's behind them, under the prefix `control_`.

    Args:
        vehicle: Its rows.
        rotor_count: Padded.
    """
    # Its own copies of mass and inertia: a controller may believe others than the vehicle has.
    control = {f"control_{name}": shape for name, shape in control_layout(rotor_count).fields.items()}
    return Layout({**vehicle.fields, **control})


class Specialization(NamedTuple):
    """What a kernel is compiled for alone, instead of asking at run time."""

    flags: int
    """`Effects`, without `UNFINISHED`, which differs between the parts of one launch."""
    level: int
    """Number of the control level."""
    integrator: int
    """Number of the integrator."""

    @property
    def name(self) -> str:
        """For the kernel's name."""
        return f"_{self.flags}_{self.level}_{self.integrator}"

    def enclose(self, source: str) -> str:
        """Return native text in which these three are constants, so that the compiler leaves out what is not asked for.

        The arguments of the same names are hidden by an inner block; of the flags only `UNFINISHED` is still read. They are not
        `const`: compilers warn of a switch over a constant.
        """
        return (
            f"const int asked = flags & {int(Effects.UNFINISHED)};\n"
            f"{{\nint flags = {self.flags} | asked, level = {self.level}, integrator = {self.integrator};\n{source}\n}}"
        )


def step_snippet(rotor_count: int, irregular: bool = False, slots: int = 0) -> str:
    """Return the complete native source of the rigid step; for its arguments see `step_kernel`.

    Args:
        rotor_count: Padded number of rotors.
        irregular: As of `step_kernel`.
        slots: Commands on their way to rotors; 0: rotors are commanded at once.
    """
    vehicle, control = delayed_layout(rigid_layout(rotor_count), False, rotor_count, slots), control_layout(rotor_count)
    blocks = [*rigid_blocks(vehicle, rotor_count), *control_blocks(control, rotor_count, irregular)]
    text = step_source(slots > 0)
    # Control is put in as text: a call through a pointer would keep the compiler from inlining it.
    for hook, part in control_native().items():
        text = text.replace(hook, part)
    text = text.replace("TRACED_BLOCKS", "".join(b.source for b in blocks) + advance_source())
    constants = {"ROTORS": rotor_count, "STATES": 10 + rotor_count, "P_CONTROL_START": vehicle.size}
    if slots:
        constants["DELAY_SLOTS"] = slots
    state = delayed_layout(rigid_state_layout(rotor_count), True, rotor_count, slots)
    return assembled(text, constants, parameter_layout(rotor_count, slots), state)


def semi_kinematic_snippet(rotor_count: int) -> str:
    """Complete native source of the semi-kinematic step."""
    vehicle, control = semi_kinematic_layout(), control_layout(rotor_count)
    blocks = [*semi_kinematic_blocks(vehicle), *tracking_rates_blocks(control)]
    text = semi_kinematic_source().replace("TRACED_BLOCKS", "".join(b.source for b in blocks))
    constants = {"P_CONTROL_START": vehicle.size}
    return assembled(text, constants, semi_kinematic_parameter_layout(rotor_count), semi_kinematic_state_layout())


def assembled(text: str, constants: dict[str, int], parameters: Layout, state: Layout, inputs: Layout | None = None) -> str:
    """Return complete native source: constants and rows as enumerators before a family's text.

    Args:
        text: Of the family, traced blocks put in.
        constants: Its own, by name.
        parameters: Their rows.
        state: Rows of the state.
        inputs: Rows of the inputs; None: those of all families.
    """
    values = {
        **constants,
        "GROUP": BLOCKS_PER_TASK,
        "COMMAND_ROWS": COMMAND_ROWS,
        "CONTACT_POINTS": CONTACT_POINTS,
        "SPANS_MAX": SPANS_MAX,
        **control_constants(),
        **{f"STREAM_{s.name}": int(s) for s in Stream},
        **{f"E_{e.name}": int(e) for e in Effects},
        **{f"INTEGRATOR_{name.upper()}": number for name, number in INTEGRATORS.items()},
    }
    enumerators = ", ".join(f"{name} = {number}" for name, number in values.items())
    layouts = [parameters.c_enum("P"), state.c_enum("S"), (inputs or input_layout()).c_enum("IN")]
    return "\n".join([shared_source("prelude.h"), f"enum {{ {enumerators} }};", *layouts, shared_source("random.h"), text])


@cache
def step_kernel(rotor_count: int, only: Specialization | None = None, irregular: bool = False, slots: int = 0) -> Any:
    """Return the rigid family's Warp kernel for a padded number of rotors; compiled at first launch, then cached on disk.

    Args:
        rotor_count: Padded number of rotors.
        only: What it is compiled for alone; None: for everything. The bits are the same.
        irregular: For airframes of which some are irregular (`Effects.IRREGULAR`); regular ones get the same bits by either.
        slots: Commands on their way to rotors; 0: rotors are commanded at once.
    """
    name = f"step_{rotor_count}_irregular" if irregular else f"step_{rotor_count}"
    return specialized(f"{name}_late{slots}" if slots else name, step_snippet(rotor_count, irregular, slots), only)


@cache
def semi_kinematic_kernel(rotor_count: int, only: Specialization | None = None, irregular: bool = False) -> Any:
    """Return the semi-kinematic family's Warp kernel.

    Args:
        rotor_count: Padded number of rotors.
        only: As of `step_kernel`.
        irregular: Of no account: nothing is allocated.
    """
    return specialized("semi_kinematic", semi_kinematic_snippet(rotor_count), only)


def specialized(name: str, source: str, only: Specialization | None) -> Any:
    """Return a family's Warp kernel.

    Args:
        name: Of the kernel.
        source: Complete native text.
        only: What it is compiled for alone; None: for everything.
    """
    if only is None:
        return native_kernel(name, source, _ARGUMENTS)
    return native_kernel(name + only.name, only.enclose(source), _ARGUMENTS)


_ARGUMENTS = """
    state: float32[]
    inputs: float32[]
    params: float32[]
    param_table: int32[]
    keys: uint32[]
    imu_log: float32[]
    elapsed: int32[]
    stride: int
    dt: float
    substeps: int
    integrator: int
    level: int
    command_rows: int
    flags: int
    block_count: int
"""


# ---------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DelayedShape:
    """What a kernel of the rigid family is built for where commands of some vehicle reach their rotors late."""

    rotor_count: int
    """Padded."""
    slots: int
    """Commands on their way, one per physics step; see `dynamics.state.delay_slots`."""


def rotor_slots(shape: Any) -> int:
    """Return for how many rotors a shape has rows."""
    return shape if isinstance(shape, int) else int(shape.rotor_count)


def _queue_slots(shape: Any) -> int:
    return shape.slots if isinstance(shape, DelayedShape) else 0


def _padded_shape(vehicles: Sequence[Vehicle], config: SimulatorConfig) -> int:
    for item in vehicles:
        refuse_links(item, f"The {config.dynamics.replace('_', '-')} family")
    return padded_rotor_count(max(item.rotor_count for item in vehicles))


def _rigid_shape(vehicles: Sequence[Vehicle], config: SimulatorConfig) -> int | DelayedShape:
    count = _padded_shape(vehicles, config)
    latest = max(latest_command(item, config) for item in {id(item): item for item in vehicles}.values())
    slots = delay_slots(latest * config.physics_rate)
    return DelayedShape(count, slots) if slots else count


def _rigid_kernel(shape: Any, only: Specialization | None, irregular: bool) -> Any:
    return step_kernel(rotor_slots(shape), only, irregular, _queue_slots(shape))


def _rigid_states(shape: Any) -> Layout:
    return delayed_layout(rigid_state_layout(rotor_slots(shape)), True, rotor_slots(shape), _queue_slots(shape))


def _rigid_rows(shape: Any) -> Layout:
    return parameter_layout(rotor_slots(shape), _queue_slots(shape))


def _inputs_of_all(shape: Any) -> Layout:
    return input_layout()


def _itself(vehicle: Vehicle, config: SimulatorConfig) -> Vehicle:
    return vehicle


def _rigid_control(column: Array, item: Vehicle, belief: Vehicle, config: SimulatorConfig, layout: Layout, shape: Any) -> None:
    law = control_column(belief, config.control, config.level, 1.0 / config.physics_rate, rotor_slots(shape))
    column[layout.offsets["control_mass"] :] = law


@dataclass(frozen=True)
class DynamicsFamily:
    """A family of dynamics: its rows, its kernel, and how vehicles fill it."""

    name: str
    """As in `SimulatorConfig.dynamics`."""
    state_layout: Callable[[Any], Layout]
    """State rows of a shape: what the vehicles of a batch must share, see `shape`."""
    parameter_layout: Callable[[Any], Layout]
    """Parameter rows: the vehicle's, then the controller's."""
    kernel: Callable[[Any, Specialization | None, bool], Any]
    """The Warp kernel; for its arguments see `step_kernel`."""
    column: Callable[[Vehicle, SimulatorConfig, Layout, Any], Array]
    """The vehicle's part of a parameter column, length of the layout, the controller's part zero."""
    effects: Callable[[Array, Layout, SimulatorConfig], Effects]
    """What a batch needs."""
    levels: tuple[str, ...]
    """Control levels it takes."""
    shape: Callable[[Sequence[Vehicle], SimulatorConfig], Any] = _padded_shape
    """What a kernel is built for, from the vehicles of a batch: the padded number of rotors, or a `DelayedShape`; of the
    articulated family a `JointedShape`."""
    input_layout: Callable[[Any], Layout] = _inputs_of_all
    """Input rows."""
    control: Callable[[Array, Vehicle, Vehicle, SimulatorConfig, Layout, Any], None] = _rigid_control
    """Fills the controller's part of a column: column, vehicle, belief, configuration, layout, shape."""
    held: Callable[[Vehicle, SimulatorConfig], Vehicle] = _itself
    """The rigid vehicle that one is as a flight starts."""

    def rows(self, vehicles: Sequence[Vehicle], believed: Sequence[Vehicle], config: SimulatorConfig, shape: Any) -> Array:
        """Return parameter rows of every environment before randomisation, shape (rows, env).

        Args:
            vehicles: One per environment.
            believed: The same as their controllers believe them to be.
            config: Of the simulator.
            shape: Of the batch.
        """
        layout = self.parameter_layout(shape)
        # Equal records share a column, also where each environment brought its own copy.
        known: dict[Any, Array] = {}
        known_columns: dict[tuple[int, int], Array] = {}
        for item, belief in zip(vehicles, believed, strict=True):
            # By identity first: hashing a whole record for each of thousands of environments takes its time.
            if (id(item), id(belief)) in known_columns:
                continue
            key = (item, belief, tuple(sorted(belief.extra.items())))
            if key not in known:
                column = self.column(item, config, layout, shape)
                self.control(column, item, belief, config, layout, shape)
                if self.name == "rigid":
                    check_law(column, layout, config, item)
                known[key] = column
            known_columns[id(item), id(belief)] = known[key]
        if len(known) == 1:  # one column for all: no memory per environment
            return np.broadcast_to(next(iter(known.values()))[:, None], (layout.size, len(vehicles)))
        return np.stack([known_columns[id(a), id(b)] for a, b in zip(vehicles, believed, strict=True)], axis=1)

    def check_level(self, level: str) -> None:
        """Raise where the family does not take commands at a level."""
        if level not in LEVELS:
            raise unknown_name("control level", level, LEVELS)
        if level not in self.levels:
            raise AirworthyError(f"Control level {level!r} does not fit these dynamics; choose {' or '.join(self.levels)}.")


def _semi_kinematic_column(item: Vehicle, config: SimulatorConfig, layout: Layout, rotor_count: int) -> Array:
    column = np.zeros(layout.size)
    body = semi_kinematic_parameters(item, config.rate_limit)
    column[: body.size] = body
    column[layout.rows("noise")] = np.sqrt(config.state_noise_rate / config.physics_rate) * np.asarray(config.state_noise)
    return column


def _semi_kinematic_effects(rows: Array, layout: Layout, config: SimulatorConfig) -> Effects:
    return Effects.WRENCH_NOISE if np.any(rows[layout.rows("noise")] != 0.0) else Effects(0)


class _Families(dict[str, DynamicsFamily]):
    """Families by name; that of vehicles with joints is loaded where it is asked for."""

    def __missing__(self, name: str) -> DynamicsFamily:
        if name != "articulated":
            raise KeyError(name)
        from airworthy.simulation.jointed.family import JOINTED

        self[name] = JOINTED
        return JOINTED


FAMILIES = _Families(
    {
        "rigid": DynamicsFamily(
            "rigid",
            _rigid_states,
            _rigid_rows,
            _rigid_kernel,
            lambda item, config, layout, shape: rigid_column(item, config, layout, rotor_slots(shape)),
            effects_of,
            tuple(LEVELS),
            shape=_rigid_shape,
        ),
        "semi_kinematic": DynamicsFamily(
            "semi_kinematic",
            lambda rotor_count: semi_kinematic_state_layout(),
            semi_kinematic_parameter_layout,
            semi_kinematic_kernel,
            _semi_kinematic_column,
            _semi_kinematic_effects,
            ("rate_thrust", "tracking"),
        ),
    }
)
"""Families by name."""
