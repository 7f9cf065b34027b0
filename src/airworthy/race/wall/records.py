"""What crosses the wall, as messages and back, to the same bits: facts, records, truth, commands, and what pilots say."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import numpy as np

from airworthy.bridges.wire import Message
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.files import parse_toml
from airworthy.optics.distortion import PlumbBob
from airworthy.optics.projections import Pinhole
from airworthy.race.background import Charge
from airworthy.race.briefing import BeaconFrame
from airworthy.race.onboard import ImageFrame, Onboard, OnboardFacts, RangerSample, Truth
from airworthy.vehicles import Vehicle
from airworthy.vehicles.files import vehicle_from_table, vehicle_text

FACTS, RECORD, CLOSE = "facts", "record", "close"
"""Kinds of messages to a pilot."""
HELLO, READY, COMMAND, FAILURE = "hello", "ready", "command", "failure"
"""Kinds of messages from it."""
PROTOCOL = 1
"""Version of all of them."""
TRUE = "true_"
"""Before names of arrays that only pilots called `truth:...` are sent."""


def facts_message(facts: OnboardFacts, charge: Charge) -> Message:
    """Return what a pilot is told before the start.

    Args:
        facts: Of its flights.
        charge: Of work at its desk, for a pilot of ours that has one.
    """
    told: dict[str, Any] = {"protocol": PROTOCOL, "charge": charge}
    arrays: dict[str, Array] = {}
    for item in fields(facts):
        value = getattr(facts, item.name)
        if isinstance(value, np.ndarray):
            arrays[item.name] = value
        elif isinstance(value, Vehicle):
            # As the catalogue's files have it: text that anybody can read, and that gives the same values back.
            told[item.name] = vehicle_text(value)
        else:
            told[item.name] = asdict(value) if isinstance(value, Pinhole) else value
    return Message(FACTS, told, arrays)


def facts_of(message: Message) -> tuple[OnboardFacts, Charge]:
    """Return facts and charge of a message.

    Raises:
        AirworthyError: It is not of this version.
    """
    told = dict(message.fields)
    if message.kind != FACTS or told.pop("protocol", None) != PROTOCOL:
        raise AirworthyError(f"A pilot was sent a message {message.kind[:40]!r}; expected facts of protocol {PROTOCOL}.")
    charge = told.pop("charge")
    told["vehicle"] = vehicle_from_table(parse_toml(told["vehicle"], "the vehicle"), "the vehicle")
    camera = told["camera"]
    lens = {name: _tupled(value) for name, value in camera.pop("distortion").items()}
    told["camera"] = Pinhole(**camera, distortion=PlumbBob(**lens))
    values: dict[str, Any] = {name: _tupled(value) for name, value in told.items()}
    return OnboardFacts(**values, **dict[str, Any](message.arrays)), charge


def _tupled(value: Any) -> Any:
    return tuple(_tupled(item) for item in value) if isinstance(value, list) else value


def record_message(onboard: Onboard, truth: Truth | None) -> Message:
    """Return what came since the last command.

    Args:
        onboard: The record.
        truth: For pilots that are given it.
    """
    flights = len(onboard.collision)
    arrays: dict[str, np.ndarray[Any, Any]] = {
        "imu_stamp": onboard.imu_stamp,
        "imu": onboard.imu,
        "collision": onboard.collision,
        "frame_stamp": np.array([frame.stamp for frame in onboard.frames], np.float64),
        "frame_pixel": _stacked([frame.pixel for frame in onboard.frames]),
        "ranger_stamp": np.array([item.stamp for item in onboard.ranger], np.float64),
        "ranger_distance": np.stack([x.distance for x in onboard.ranger]) if onboard.ranger else np.zeros((0, flights)),
    }
    lit = [frame.decoys for frame in onboard.frames if frame.decoys is not None]
    if lit:
        arrays["frame_decoys"] = np.stack(lit)
    if onboard.images:
        arrays["image_stamp"] = np.array([image.stamp for image in onboard.images], np.float64)
        arrays["image_pixels"] = np.stack([image.pixels for image in onboard.images])
        right = [image.right for image in onboard.images if image.right is not None]
        if right:
            arrays["image_right"] = np.stack(right)
    if truth is not None:
        arrays |= {TRUE + item.name: getattr(truth, item.name) for item in fields(truth)}
    return Message(RECORD, {"time": onboard.time}, arrays)


def _stacked(pixels: list[Array]) -> Array:
    # Where no frame came, which gates there are is not said either.
    return np.stack(pixels) if pixels else np.zeros((0, 0, 0, 0, 2))


def _images(message: Message) -> tuple[ImageFrame, ...]:
    """Return the images of a record; those who asked for none are sent no arrays of them."""
    if "image_stamp" not in message.arrays:
        return ()
    stamps, pixels = message.arrays["image_stamp"].tolist(), message.arrays["image_pixels"]
    right = message.arrays.get("image_right", [None] * len(stamps))
    images = zip(stamps, pixels, right, strict=True)
    return tuple(ImageFrame(stamp, left.copy(), None if more is None else more.copy()) for stamp, left, more in images)


def record_of(message: Message) -> tuple[Onboard, Truth | None]:
    """Return record and truth of a message."""
    arrays = message.arrays
    stamps = arrays["frame_stamp"].tolist()
    lit = arrays.get("frame_decoys", [None] * len(stamps))
    frames = zip(stamps, arrays["frame_pixel"], lit, strict=True)
    ranged = zip(arrays["ranger_stamp"].tolist(), arrays["ranger_distance"], strict=True)
    onboard = Onboard(
        message.fields["time"],
        arrays["imu_stamp"],
        arrays["imu"],
        tuple(BeaconFrame(stamp, pixel.copy(), None if more is None else more.copy()) for stamp, pixel, more in frames),
        tuple(RangerSample(stamp, distance.copy()) for stamp, distance in ranged),
        arrays["collision"],
        _images(message),
    )
    true = {item.name: arrays[TRUE + item.name] for item in fields(Truth) if TRUE + item.name in arrays}
    return onboard, Truth(**true) if true else None
