"""What a user may get wrong when building or driving a simulator, each with one sentence that says how to mend it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.control.levels import command_fields
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import quiet_warp
from airworthy.simulation.config import SimulatorConfig
from airworthy.vehicles import Vehicle

Array = NDArray[np.floating[Any]]


def checked_config(config: SimulatorConfig | None) -> SimulatorConfig:
    """The configuration, or the default one, with its numbers checked."""
    if config is None:
        return SimulatorConfig()
    if not isinstance(config, SimulatorConfig):
        raise AirworthyError(f"Simulator got a {type(config).__name__} as config; expected a SimulatorConfig(...).")
    config.validate()
    return config


def vehicles_per_env(vehicles: Vehicle | Sequence[Vehicle], env_count: int | None, what: str) -> list[Vehicle]:
    """One vehicle per environment, from one for all or a sequence."""
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


def check_beliefs(vehicles: Sequence[Vehicle], believed: Sequence[Vehicle]) -> None:
    """A controller may be wrong about numbers, not about how many rotors there are."""
    for item, belief in zip(vehicles, believed, strict=True):
        if item.rotor_count != belief.rotor_count:
            raise AirworthyError(
                f"`believed` takes {item.name} ({item.rotor_count} rotors) for {belief.name} ({belief.rotor_count} rotors);"
                " the numbers of rotors must agree."
            )


def flight_id_array(flight_ids: ArrayLike | None, env_count: int) -> NDArray[np.uint32]:
    """Flight ids, by default 0, 1, 2, ..."""
    if flight_ids is None:
        return np.arange(env_count, dtype=np.uint32)
    ids = np.asarray(flight_ids)
    whole = np.issubdtype(ids.dtype, np.integer)
    if ids.shape != (env_count,) or not whole or (ids.size and (ids.min() < 0 or ids.max() > 0xFFFFFFFF)):
        raise AirworthyError(f"flight_ids has shape {ids.shape}; expected ({env_count},) whole numbers from 0 to 2^32 - 1.")
    return ids.astype(np.uint32)


def check_device(device: str) -> None:
    """Whether this machine has a device."""
    wp = quiet_warp()
    try:
        wp.get_device(device)
    except (ValueError, RuntimeError, TypeError):
        there = ", ".join(d.alias for d in wp.get_devices())
        raise AirworthyError(f"Device {device!r} is not on this machine, which has {there}; choose one of these.") from None


def whole_number(name: str, value: Any, least: int = 1) -> int:
    """A whole number, no less than `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise AirworthyError(f"{name} is {value!r}; expected a whole number of at least {least}.")
    return int(value)


def command_array(command: ArrayLike, level: str, env_count: int, rotor_count: int, width: int) -> Array:
    """A command as an array of shape (env, width) or (width,). Numbers that are not finite pass: they end their own flight."""
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


def start_array(name: str, value: ArrayLike, count: int, width: int, stored: int) -> Array:
    """A start value of `count` environments, shape (count, stored); what a narrower vehicle lacks is zero."""
    try:
        array = np.asarray(value, float)
    except (ValueError, TypeError):
        raise AirworthyError(f"Reset got a {name} that is not numbers; expected ({count}, {width}) or ({width},).") from None
    if array.shape not in ((width,), (count, width)):
        raise AirworthyError(f"Reset got {name} of shape {array.shape}; expected ({count}, {width}) or ({width},).")
    if not np.isfinite(array).all():
        raise AirworthyError(f"Reset got a {name} that is not finite; a flight has to start from numbers.")
    full = np.zeros((count, stored))
    full[:, :width] = array
    return full
