"""What a scene file may say more shortly than its record: headings, model files with a pose, persons, skinned actors."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.scenes import _schema
from airworthy.scenes._assets import Folder
from airworthy.scenes.casting import ActorKit
from airworthy.scenes.people import person
from airworthy.scenes.record import IDENTITY, Actor, Color, Quaternion, Scene, Vector3


@dataclass(frozen=True)
class ModelRow:
    """A model file with a pose."""

    file: str
    position: Vector3 = (0.0, 0.0, 0.0)
    attitude: Quaternion = IDENTITY
    scale: float = 1.0
    units: Literal["m", "cm", "mm"] = "m"
    up: Literal["z", "y"] = "z"
    floor: bool = False
    """Stand it on `position`: the middle of its lower side comes there."""
    semantic: str = "object"
    name: str = ""
    collide: bool = True


@dataclass(frozen=True)
class PersonRow:
    """Measures of a capsule person."""

    height: float = 1.75
    speed: float = 1.3
    shirt: Color | None = None


@dataclass(frozen=True)
class SkinRow:
    """A skinned model file."""

    file: str
    skeleton: str = ""
    semantic: str = "person"


def with_yaw(row: dict[str, Any], where: str) -> dict[str, Any]:
    """A table with its `yaw` [rad] turned into an attitude; raises AssetError where it has both."""
    if "yaw" not in row:
        return row
    if "attitude" in row:
        raise AssetError(f"{where} has both 'yaw' and 'attitude'; give one of them.")
    half = 0.5 * _schema.decode(float, row["yaw"], f"{where}.yaw")
    rest = {key: value for key, value in row.items() if key != "yaw"}
    return {**rest, "attitude": [0.0, 0.0, math.sin(half), math.cos(half)]}


def model_from_table(scene: Scene, row: dict[str, Any], folder: Folder, where: str) -> Scene:
    """The scene with the content of a model file; raises AssetError."""
    from airworthy.scenes.imports import add_model

    wanted: ModelRow = _schema.record(ModelRow, with_yaw(row, where), where)
    path = folder.path(wanted.file, f"{where}.file")
    options = {item.name: getattr(wanted, item.name) for item in fields(wanted) if item.name != "file"}
    try:
        return add_model(scene, path, limits=folder.limits, **options)
    except AssetError:
        raise
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None


def actor_from_table(row: dict[str, Any], folder: Folder, where: str) -> Actor | ActorKit:
    """An actor; with `person` or `skin`, together with all it is made of. Raises AssetError."""
    body = with_yaw(dict(row), where)
    for key in ("parts", "path"):
        if key in body:
            places = [(f"{where}.{key}[{k}]", item) for k, item in enumerate(_schema.rows(body[key], f"{where}.{key}"))]
            body[key] = [with_yaw(_schema.table(item, place), place) for place, item in places]
    extra = {key: body.pop(key) for key in ("person", "skin") if key in body}
    if not extra:
        actor: Actor = _schema.record(Actor, body, where)
        return actor
    for key in ("parts", "skeleton"):
        if key in body or len(extra) > 1:
            raise AssetError(f"{where} has {' and '.join(extra)} as well as {key!r}; give one of them.")
    actor = _schema.record(Actor, {**body, "parts": []}, where)
    try:
        kit = _person(actor, extra["person"], where) if "person" in extra else _skin(actor, extra["skin"], folder, where)
    except AssetError:
        raise
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None
    moving = {
        item.name: getattr(actor, item.name) for item in fields(Actor) if item.name not in ("parts", "skeleton", "animation")
    }
    return replace(kit, actor=replace(kit.actor, **moving))


def _person(actor: Actor, value: Any, where: str) -> ActorKit:
    asked: PersonRow = _schema.record(PersonRow, value, f"{where}.person")
    animation = actor.animation or "standing"
    return person(actor.name, asked.height, speed=asked.speed, shirt=asked.shirt, animation=animation)


def _skin(actor: Actor, value: Any, folder: Folder, where: str) -> ActorKit:
    from airworthy.scenes.formats import read_model
    from airworthy.scenes.skins import skinned_actor

    asked: SkinRow = _schema.record(SkinRow, value, f"{where}.skin")
    model = read_model(folder.path(asked.file, f"{where}.skin.file"), folder.limits)
    return skinned_actor(model, actor.name, asked.skeleton, actor.animation, asked.semantic)
