"""Actors with all they are made of, and putting them into scenes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Shape
from airworthy.scenes.formats.model import Skeleton
from airworthy.scenes.record import Actor, Material, Scene, Texture

__all__ = ["ActorKit", "add_actor", "prefixed_material"]


@dataclass(frozen=True, eq=False)
class ActorKit:
    """An actor and the tables that its parts refer to."""

    actor: Actor
    shapes: dict[str, Shape] = field(default_factory=dict)
    materials: dict[str, Material] = field(default_factory=dict)
    textures: dict[str, Texture] = field(default_factory=dict)
    skeletons: dict[str, Skeleton] = field(default_factory=dict)


def add_actor(scene: Scene, kit: ActorKit) -> Scene:
    """A scene with one more actor. What the scene holds under a name of the kit's already must be the same, or of equal value.

    Raises:
        AirworthyError: The scene has an actor of this name, or something else under a name of the kit's.
    """
    if any(actor.name == kit.actor.name for actor in scene.actors):
        raise AirworthyError(f"Scene {scene.name!r} already has an actor {kit.actor.name!r}; give the new one another name.")
    return replace(
        scene,
        actors=(*scene.actors, kit.actor),
        shapes=_joined(scene.name, "shape", scene.shapes, kit.shapes),
        materials=_joined(scene.name, "material", scene.materials, kit.materials),
        textures=_joined(scene.name, "texture", scene.textures, kit.textures),
        # Skeletons of one name are one: persons of equal height and speed.
        skeletons={**kit.skeletons, **scene.skeletons},
    )


def prefixed_material(material: Material, prefix: str) -> Material:
    """A material whose maps are named "PREFIX/..."."""
    maps: dict[str, Any] = {key: f"{prefix}/{value}" for key, value in vars(material).items() if key.endswith("_map") and value}
    return replace(material, **maps)


def _joined(scene: str, kind: str, there: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    for name, value in new.items():
        if name in there and there[name] is not value and there[name] != value:
            raise AirworthyError(f"Scene {scene!r} already has another {kind} {name!r}; rename one of them.")
    return {**there, **new}
