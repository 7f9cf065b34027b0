"""How flights start: which environments, in what state, with what luck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.control.levels import command_fields
from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayFloat, ArrayIndex, ArrayLike, ArrayU32
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import write_bytes
from airworthy.core.frames import from_euler, multiply, to_matrix
from airworthy.core.layout import Layout
from airworthy.core.native_kernel import quiet_warp
from airworthy.core.random import Stream, uniforms
from airworthy.core.schema import shown
from airworthy.simulation.config import Imu, Randomization, SimulatorConfig
from airworthy.vehicles import Vehicle, hover_trim

# ---- A saved instant of a simulation, in memory or on disk ------------------------------------------------------------------

FORMAT_VERSION = "1"


@dataclass(frozen=True)
class Snapshot:
    """Everything that the future of a batch depends on, besides its vehicles and configuration."""

    state: ArrayF32
    inputs: ArrayF32
    keys: ArrayU32
    rows: Array
    """Parameters in force; one column where all environments share one."""
    nominal: Array
    """Parameters that later flights are drawn around."""
    start_position: Array
    """Start of later flights."""
    start_attitude: Array
    episode: ArrayU32
    step_count: int
    effects: int
    contacts: Array
    """Record of impacts with the scene, (env, 10), or (env, 0) without one."""

    def write(self, path: str | Path) -> None:
        """Write as safetensors, atomically."""
        from safetensors.numpy import save

        arrays = {name: getattr(self, name) for name in _ARRAYS}
        metadata = {"format": FORMAT_VERSION, "step_count": str(self.step_count), "effects": str(self.effects)}
        write_bytes(Path(path), save(arrays, metadata))

    @classmethod
    def read(cls, path: str | Path) -> Snapshot:
        """Read a snapshot.

        Raises:
            AssetError: If the file is missing, damaged or of another version.
        """
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), framework="numpy") as file:
                metadata: dict[str, Any] = file.metadata() or {}
                if metadata.get("format") != FORMAT_VERSION:
                    raise AssetError(f"{path} is no snapshot of format {FORMAT_VERSION}; write one with save().write(path).")
                arrays = {name: file.get_tensor(name) for name in _ARRAYS}
            step_count, effects = int(metadata["step_count"]), int(metadata["effects"])
        except FileNotFoundError:
            raise AssetError(f"Snapshot {path} does not exist.") from None
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise AssetError(f"Snapshot {path} cannot be read: {error}.") from None
        for name, kind in _ARRAYS.items():
            if arrays[name].dtype != kind:
                raise AssetError(f"Snapshot {path} holds {name} as {arrays[name].dtype}; expected {np.dtype(kind)}.")
        return cls(**arrays, step_count=step_count, effects=effects)


_ARRAYS = {
    "state": np.float32,
    "inputs": np.float32,
    "keys": np.uint32,
    "rows": np.float64,
    "nominal": np.float64,
    "start_position": np.float64,
    "start_attitude": np.float64,
    "episode": np.uint32,
    "contacts": np.float64,
}

# -----------------------------------------------------------------------------------------------------------------------------
# What a user may get wrong when building or driving a simulator, each with one sentence that says how to mend it.

START_MAX = 1e9
"""Beyond it the products of float32 overflow."""


def checked_config(config: SimulatorConfig | None) -> SimulatorConfig:
    """Return the configuration, which has checked its own numbers, or the default one."""
    if config is None:
        return SimulatorConfig()
    if not isinstance(config, SimulatorConfig):
        raise AirworthyError(f"Simulator got a {type(config).__name__} as config; expected a SimulatorConfig(...).")
    return config


def vehicles_per_env(vehicles: Vehicle | Sequence[Vehicle], env_count: int | None, what: str) -> list[Vehicle]:
    """Return one vehicle per environment, from one for all or a sequence.

    Args:
        vehicles: One for all, or one per environment.
        env_count: Environments; None: as many as vehicles.
        what: Their name in messages.
    """
    if isinstance(vehicles, Vehicle):
        count = 1 if env_count is None else whole_number("env_count", env_count)
        return [vehicles] * count
    if isinstance(vehicles, str):
        raise AirworthyError(f"`{what}` is the name {vehicles!r}; look the vehicle up first: vehicle({vehicles!r}).")
    if not isinstance(vehicles, Sequence):
        raise AirworthyError(f"`{what}` is a {type(vehicles).__name__}; expected a Vehicle or a list of them.")
    items = list(vehicles)
    if not items:
        raise AirworthyError(f"`{what}` is empty; give at least one vehicle.")
    for item in items:
        if not isinstance(item, Vehicle):
            raise AirworthyError(f"`{what}` holds {item!r}; expected Vehicle records, such as vehicle('lmf2').")
    if env_count is not None and env_count != len(items):
        raise AirworthyError(f"`{what}` has {len(items)} entries but env_count is {env_count}; leave env_count out.")
    return items


def check_family(vehicles: Sequence[Vehicle], config: SimulatorConfig) -> None:
    """Refuse vehicles with joints where the dynamics are those of rigid ones."""
    for item in vehicles:
        if item.links and config.dynamics != "articulated":
            raise AirworthyError(
                f"{item.name!r} has {item.joint_count} joints, which {config.dynamics.replace('_', '-')} dynamics do not have:"
                " set dynamics='articulated', or hold them with airworthy.vehicles.frozen(vehicle)."
            )


def check_beliefs(vehicles: Sequence[Vehicle], believed: Sequence[Vehicle]) -> None:
    """Check beliefs: a controller may be wrong about numbers, not about how many rotors there are."""
    for item, belief in zip(vehicles, believed, strict=True):
        if item.rotor_count != belief.rotor_count:
            raise AirworthyError(
                f"`believed` takes {item.name} ({item.rotor_count} rotors) for {belief.name} ({belief.rotor_count} rotors);"
                " the numbers of rotors must agree."
            )


def flight_id_array(flight_ids: ArrayLike | None, env_count: int) -> ArrayU32:
    """Return flight ids, by default 0, 1, 2, ..."""
    if flight_ids is None:
        return np.arange(env_count, dtype=np.uint32)
    try:
        ids = np.asarray(flight_ids)
    except ValueError:
        raise AirworthyError(f"flight_ids is ragged; expected ({env_count},) whole numbers from 0 to 2^32 - 1.") from None
    # 32 bits each, since ids are one word of a random key (`core.random`).
    whole = np.issubdtype(ids.dtype, np.integer)
    if ids.shape != (env_count,) or not whole or (ids.size and (ids.min() < 0 or ids.max() > 0xFFFFFFFF)):
        raise AirworthyError(f"flight_ids has shape {ids.shape}; expected ({env_count},) whole numbers from 0 to 2^32 - 1.")
    return ids.astype(np.uint32)


def check_device(device: str) -> None:
    """Tell whether this machine has a device."""
    wp = quiet_warp()
    try:
        wp.get_device(device)
    except (ValueError, RuntimeError, TypeError):
        there = ", ".join(d.alias for d in wp.get_devices())
        raise AirworthyError(f"Device {device!r} is not on this machine, which has {there}; choose one of these.") from None


def whole_number(name: str, value: Any, least: int = 1, most: int = 2**63 - 1) -> int:
    """Return a whole number, no less than `least` and no more than `most`.

    Args:
        name: Of the number in messages.
        value: As it was given.
        least: Smallest that is allowed.
        most: Largest that is allowed.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        bound = f" and at most {most}" if isinstance(value, int) and value > most else ""
        raise AirworthyError(f"{name} is {value!r}; expected a whole number of at least {least}{bound}.")
    return int(value)


def command_array(command: ArrayLike, level: str, env_count: int, rotor_count: int, width: int) -> ArrayFloat:
    """Return a command as an array of shape (env, width) or (width,). Numbers that are not finite pass: they end their own
    flight.

    Args:
        command: (env, width) or (width,), in the level's units.
        level: Of control, for messages.
        env_count: Environments.
        rotor_count: Padded number of rotors.
        width: Numbers of a command.
    """
    try:
        array = np.asarray(command)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "fiu":
        raise AirworthyError(f"A command at level {level!r} must be numbers of shape ({env_count}, {width}) or ({width},).")
    if array.shape not in ((width,), (env_count, width)):
        names = ", ".join(command_fields(level.partition(":")[0], rotor_count))
        raise AirworthyError(
            f"A command at level {level!r} has shape {array.shape}; expected ({env_count}, {width}) or ({width},): {names}."
        )
    return array


def external_array(name: str, value: ArrayLike, env_count: int) -> ArrayFloat:
    """Return an external force or moment, (env, 3), from (env, 3), (3,) or a number; what is not finite ends its own flight.

    Args:
        name: Of the quantity in messages.
        value: World [N] or [N m].
        env_count: Environments.
    """
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "fiu":
        raise AirworthyError(f"External {name} must be numbers of shape ({env_count}, 3) or (3,).")
    if array.shape not in ((), (3,), (env_count, 3)):
        raise AirworthyError(f"External {name} has shape {array.shape}; expected ({env_count}, 3) or (3,).")
    return np.broadcast_to(np.asarray(array, np.float64), (env_count, 3))


def delay_array(value: ArrayLike, env_count: int) -> ArrayFloat:
    """Return physics steps that a command is late, (env,), from a whole number or one per environment."""
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    numbers = array.dtype.kind in "fiu" and array.shape in ((), (env_count,))
    # float32, in which delays are kept, counts to 2^24.
    if not numbers or not np.all((array >= 0) & (array <= 2**24) & (array == np.floor(array))):
        raise AirworthyError(
            f"delay_steps is {shown(value)}; expected a whole number of physics steps, 0 to {2**24}, or ({env_count},) of them."
        )
    return np.broadcast_to(np.asarray(array, np.float64), (env_count,))


def check_rotor_start(speed: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> None:
    """Refuse rotor states that the rotors cannot have: beyond their limits, standing still aside; all (k, rotors).

    Args:
        speed: (k, rotors) [rad/s], or [N] of rotors whose state is a thrust.
        lower: Least that turns, (k, rotors).
        upper: Largest, (k, rotors).

    Raises:
        AirworthyError: One sentence, with the first of them.
    """
    speed, lower, upper = (np.asarray(x, float) for x in (speed, lower, upper))
    # Limits come back from float32 rows: what a caller read there must be accepted.
    slack = 1e-5 * np.maximum(np.abs(lower), np.abs(upper))  # float32 kept the limits
    beyond = (speed < np.minimum(lower, 0.0) - slack) | (speed > upper + slack)
    if beyond.any():
        row, rotor = np.argwhere(beyond)[0]
        raise AirworthyError(
            f"Reset got {speed[row, rotor]:.5g} for rotor {rotor}, whose states go from {lower[row, rotor]:.5g} to"
            f" {upper[row, rotor]:.5g}: start within them, or at 0."
        )


def start_array(
    name: str, value: ArrayLike, count: int, width: int, stored: int, absent: ArrayBool | None = None
) -> ArrayFloat:
    """Return a start value of `count` environments, shape (count, stored); what a narrower vehicle lacks is zero.

    Args:
        name: Of the value, for messages.
        value: Shape (count, width) or (width,).
        count: Environments.
        width: Numbers that are expected.
        stored: Numbers that are kept, at least `width`.
        absent: Which numbers a vehicle has no place for, (count, width): they are not read; None: none.
    """
    try:
        array = np.asarray(value, float)
    except (ValueError, TypeError):
        raise AirworthyError(f"Reset got a {name} that is not numbers; expected ({count}, {width}) or ({width},).") from None
    if array.shape not in ((width,), (count, width)):
        raise AirworthyError(f"Reset got {name} of shape {array.shape}; expected ({count}, {width}) or ({width},).")
    if absent is not None:
        array = np.where(absent, 0.0, array)
    if not np.isfinite(array).all():
        raise AirworthyError(f"Reset got a {name} that is not finite; a flight has to start from numbers.")
    if np.abs(array).max(initial=0.0) > START_MAX:
        raise AirworthyError(f"Reset got a {name} of {np.abs(array).max():.4g}; expected at most {START_MAX:g} in SI units.")
    full = np.zeros((count, stored))
    full[:, :width] = array
    return full


# -----------------------------------------------------------------------------------------------------------------------------


def resolve_ids(env_ids: ArrayLike | None, env_count: int) -> ArrayIndex:
    """Return environment indices from indices, a mask, or None for all.

    Raises:
        AirworthyError: If an index does not exist or a mask has another length.
    """
    if env_ids is None:
        return np.arange(env_count)
    try:
        ids = np.asarray(env_ids)
    except ValueError:
        ids = np.asarray("ragged")
    if ids.dtype == bool:
        if ids.shape != (env_count,):
            raise AirworthyError(f"A reset mask has shape {ids.shape}; expected ({env_count},).")
        return np.flatnonzero(ids)
    if ids.size and not (np.issubdtype(ids.dtype, np.integer) and ids.min() >= 0 and ids.max() < env_count):
        raise AirworthyError(f"Reset got environment ids outside 0..{env_count - 1}.")
    return np.atleast_1d(ids).astype(np.intp)


class StartStates:
    """Start states: what a reset names, and for the rest what the last one named or hover (level, or leaning as it has to).

    Args:
        vehicles: One per environment; of those with joints, what they are while these are held.
        layout: State rows.
        dynamics: Name of the family, for messages.
        rotor_count: Padded number of rotors.
        joints: Angles that joints start from, (env, joints) [rad].
    """

    def __init__(
        self, vehicles: Sequence[Vehicle], layout: Layout, dynamics: str, rotor_count: int, joints: Array | None = None
    ):
        count = len(vehicles)
        self._layout, self._dynamics, self._joints = layout, dynamics, joints
        self._hover = _hover_states(vehicles, rotor_count)
        self._rotor_count = max(item.rotor_count for item in vehicles)
        own = np.array([item.rotor_count for item in vehicles])
        self._absent = np.arange(rotor_count) >= own[:, None] if own.min() < self._rotor_count else None
        self.position, self.attitude = np.zeros((count, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))
        if "rotor_speed" in layout:
            self.attitude = np.array([hover_trim(item).attitude for item in vehicles])

    def build(self, ids: ArrayIndex, given: Mapping[str, ArrayLike | None]) -> dict[str, ArrayFloat]:
        """Return the state per field for some environments, each (k, width); positions and attitudes are kept for later resets.

        Raises:
            AirworthyError: If a value has the wrong shape or the dynamics have no such field.
        """
        start = {name: self._value(name, ids, value) for name, value in given.items() if self._has(name, value)}
        norm = np.linalg.norm(start["attitude"], axis=1, keepdims=True)
        if not np.all(norm > 1e-6):
            raise AirworthyError("Reset got an attitude of zero length or not a number; expected quaternions x, y, z, w.")
        # q and -q turn alike; one sign for both, so that records of equal flights are equal.
        start["attitude"] = start["attitude"] / norm * np.where(start["attitude"][:, 3:] < 0, -1.0, 1.0)
        self.position[ids], self.attitude[ids] = start["position"], start["attitude"]
        return start

    def _has(self, name: str, value: ArrayLike | None) -> bool:
        if name not in self._layout and value is not None:
            raise AirworthyError(f"Reset got {name}, which {self._dynamics} dynamics do not have.")
        return name in self._layout

    def _value(self, name: str, ids: ArrayIndex, value: ArrayLike | None) -> ArrayFloat:
        width = self._layout.fields[name][0]
        if value is None:
            kept = {"position": self.position, "attitude": self.attitude, "rotor_speed": self._hover, "joint": self._joints}
            values = kept.get(name)
            return np.zeros((len(ids), width)) if values is None else np.array(values[ids])
        # Rotors that pad the kernel may be left out.
        asked = self._rotor_count if name == "rotor_speed" and np.shape(value)[-1:] != (width,) else width
        absent = self._absent[ids, :asked] if name == "rotor_speed" and self._absent is not None else None
        return start_array(name, value, len(ids), asked, width, absent)


def scatter(start: dict[str, ArrayFloat], spread: Randomization, keys: ArrayU32) -> None:
    """Move and turn start poses within the configured spread, each by its own flight key, in place.

    Args:
        start: State arrays (env, ...) by name.
        spread: Half widths.
        keys: Of the flights, (env, 4).
    """
    if spread.position == 0.0 and spread.yaw == 0.0:
        return
    draw = 2.0 * uniforms(keys, 0, Stream.RESET, 4) - 1.0
    start["position"] = start["position"] + spread.position * draw[:, :3]
    zero = np.zeros(len(keys))
    # From the left: a turn about the world's vertical, whatever the vehicle's tilt.
    start["attitude"] = multiply(from_euler(zero, zero, spread.yaw * draw[:, 3]), start["attitude"])


def initial_biases(imu: Imu, keys: ArrayU32) -> ArrayFloat:
    """Return accelerometer and gyroscope biases at the start of flights, (k, 6)."""
    draw = 2.0 * uniforms(keys, 1, Stream.RESET, 8)[:, :6] - 1.0
    return draw * np.repeat(imu.bias_initial[:2], 3)


def mounted_rotations(imu: Imu, keys: ArrayU32) -> ArrayFloat:
    """Return sensor-to-body matrices by rows, (k, 9): the mount turned by random Euler angles within its tolerance."""
    angles = imu.bias_initial[2] * (2.0 * uniforms(keys, 2, Stream.RESET, 4) - 1.0)
    turned = multiply(np.asarray(imu.mounting()), from_euler(angles[:, 0], angles[:, 1], angles[:, 2]))
    return to_matrix(turned).reshape(len(keys), 9)


def _hover_states(vehicles: Sequence[Vehicle], padded: int) -> ArrayFloat:
    """Rotor states at hover per environment, (env, padded); the lower limits for a vehicle that cannot hover."""
    known: dict[Vehicle, ArrayFloat] = {}
    for item in vehicles:
        if item not in known:
            states, trim = np.zeros(padded), hover_trim(item)
            states[: item.rotor_count] = trim.states if trim.hovers else [r.speed_min for r in item.rotors]
            known[item] = states
    # A view instead of a thousand equal rows.
    if len(known) == 1:
        return np.broadcast_to(next(iter(known.values())), (len(vehicles), padded))
    return np.stack([known[item] for item in vehicles])
