"""People as actors that look like people: what is hit of them stays fifteen capsules, what is seen is a figure over these."""

from __future__ import annotations

from dataclasses import replace

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Mesh, Shape
from airworthy.scenes.actors import ActorKit
from airworthy.scenes.extent import hidden
from airworthy.scenes.figures.figure import FigureForm, figure_mesh, limb_meshes
from airworthy.scenes.figures.stances import Stance
from airworthy.scenes.figures.surfaces import FIGURE_MATERIALS
from airworthy.scenes.people import PERSON_JOINTS, person_skeleton
from airworthy.scenes.record import Instance, Quaternion, Vector3
from airworthy.scenes.skeletons import joint_matrices

__all__ = ["FIGURE_FOOTPRINTS", "with_figure"]

FIGURE_FOOTPRINTS: dict[int, tuple[float, float]] = {2: (0.0, 0.006), 1: (0.006, 0.022), 0: (0.022, 0.0)}
"""Widths of a pixel at a figure [m] between which each detail is shown: a face is some 30 pixels wide when it changes first."""


def with_figure(kit: ActorKit, form: FigureForm) -> ActorKit:
    """Return a person whose capsules are hit, ranged and labelled as before, and in whose place colours show a figure.

    Somebody who stands is one mesh for each level of detail; who walks, or is posed by a skeleton from outside, is one of
    middle detail cut at the joints, each part of which goes with its own.

    Args:
        kit: As `people.person` makes it.
        form: Who is seen; stature and pose are those of the kit.

    Raises:
        AirworthyError: The actor is no person.
    """
    actor = kit.actor
    joints = [part.name for part in actor.parts]
    if tuple(joints) != PERSON_JOINTS:
        raise AirworthyError(f"The actor {actor.name!r} is no person: it has the parts {joints[:3]}; expected `people.person`.")
    form = replace(form, stature=_stature(kit), stance=form.stance if actor.animation == "standing" else Stance())
    shapes: dict[str, Shape] = {}
    looks: list[Instance] = []

    def seen(
        shape: str,
        mesh: Mesh,
        name: str,
        position: Vector3 = (0.0, 0.0, 0.0),
        attitude: Quaternion = (0.0, 0.0, 0.0, 1.0),
        footprint: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        shapes[shape] = mesh
        looks.append(
            Instance(
                shape,
                position,
                attitude,
                1.0,
                tuple(FIGURE_MATERIALS),
                "person",
                name=name,
                collide=False,
                footprint=footprint,
                attached=actor.name,
            )
        )

    if actor.animation == "standing":
        for detail, footprint in FIGURE_FOOTPRINTS.items():
            seen(f"{actor.name}/figure/{detail}", figure_mesh(replace(form, detail=detail)), "figure", footprint=footprint)
    else:
        for joint, mesh in limb_meshes(replace(form, detail=1)).items():
            seen(f"{actor.name}/figure/{joint}", mesh, joint)
    hit = replace(actor, parts=tuple(hidden(part) for part in actor.parts))
    return replace(
        kit,
        actor=hit,
        shapes={**kit.shapes, **shapes},
        materials={**kit.materials, **FIGURE_MATERIALS},
        looks=(*kit.looks, *looks),
    )


def _stature(kit: ActorKit) -> float:
    """Return the height of a person [m]: its head's joint is as high as its share of it says."""
    skeleton = kit.skeletons[kit.actor.skeleton]
    rest = joint_matrices(skeleton)[0]
    one = joint_matrices(person_skeleton(1.0))[0]
    head = PERSON_JOINTS.index("head")
    return round(float(rest[head, 2, 3] / one[head, 2, 3]), 6)
