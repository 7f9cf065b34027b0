"""Mirror images of flights: what a policy would have seen and done had left been right, or front been back.

A mirror turns world and body alike: S = diag(s) with signs s. Positions, velocities and thrusts turn with S, attitudes R become
S R S, and body rates, which are axial, turn with det(S) S. A rotor becomes the one that stands where it would have stood, if it
turns the way that it would have turned. Of a quadrotor whose rotors stand on both diagonals that leaves four images: as it is,
left and right changed, front and back changed, and both, a half turn about z (Klein's four-group). A quarter turn is none: it
puts rotors in places of those that turn the other way. Samples of mirror images cost no flight (Mittal et al., "Symmetry
considerations for learning task symmetric robot policies", ICRA 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from airworthy.core.arrays import Array, ArrayIndex
from airworthy.core.errors import AirworthyError
from airworthy.learning.environments import VectorTask
from airworthy.learning.gradient.dynamics import BODY
from airworthy.vehicles import Vehicle

if TYPE_CHECKING:  # it loads torch
    from airworthy.learning.ppo.rollout import PpoEnvironments

__all__ = ["Mirror", "mirrors"]

_SIGNS = {"y": ((1.0, -1.0, 1.0),), "xy": ((1.0, -1.0, 1.0), (-1.0, 1.0, 1.0), (-1.0, -1.0, 1.0))}
"""Signs s of the images, by the option that asks for them."""
_STATES = 64
"""States on which it is tested that a task and a vehicle look alike mirrored (ours)."""
_KINDS = (slice(0, 3), slice(3, 6), slice(6, 10), slice(10, BODY), slice(BODY, None))
"""Rows of a state that have one unit: position, velocity, attitude, body rate, rotor states."""
_SAME = 1e-6
"""Of observations and rewards in float64 that have to be equal; records hold rounded numbers."""
_NEARLY = 0.01
"""Of the largest change of such rows in a step: as much may a vehicle differ from its image. tinyprop, whose products of
inertia are 0.1 % of its moments, does by less; of vehicles that are drawn each differs (ours)."""


@dataclass(frozen=True)
class Mirror:
    """One image."""

    signs: Array
    """Of world and body axes, (3,)."""
    rotors: ArrayIndex
    """Which number of an action stands in the place of each of the image's, (actions,); of rotors: which rotor does."""
    seen: Array
    """Signs of the numbers of an observation, (observed,)."""
    seen_order: ArrayIndex | None = None
    """Which number of an observation stands in the place of each of the image's, (observed,); None: each in its own."""
    acted: Array | None = None
    """Signs of the numbers of an action, (actions,); None: none changes."""

    def state(self, state: Array) -> Array:
        """Return states of the image, (13 + rotors, env): position, velocity, attitude x y z w, body rate, rotor states."""
        s, axial = self.signs, np.prod(self.signs) * self.signs
        signs = np.concatenate([s, s, axial, [1.0], axial])
        return np.concatenate([state[:BODY] * signs[:, None], state[BODY:][self.rotors]])

    def action(self, action: Array) -> Array:
        """Return actions of the image, (env, actions)."""
        turned = action[:, self.rotors]
        return turned if self.acted is None else turned * self.acted

    def observation(self, seen: Array) -> Array:
        """Return what the image sees, (..., observed), of what its flight saw."""
        return (seen if self.seen_order is None else seen[..., self.seen_order]) * self.seen


def mirrors(environments: PpoEnvironments | VectorTask, which: str) -> list[Mirror]:
    """Return the images of a task, without the flight itself.

    Args:
        environments: Of the task; those with `mirror_images` of their own are asked for them.
        which: "y" or "xy".

    Raises:
        AirworthyError: Task or vehicle do not look alike mirrored.
    """
    if own := getattr(environments, "mirror_images", None):
        found: list[Mirror] = own(which)
        return found
    if not hasattr(environments, "shape"):
        raise AirworthyError("These environments do not know what mirrors them; expected mirror 'none' here.")
    drawn = cast("VectorTask", environments)
    shape = drawn.shape
    if not shape.traits.by_rotor or shape.traits.remembers or shape.traits.privileged:
        raise AirworthyError(f"The task {shape.task.name!r} cannot be mirrored: only tasks by rotors and without memory can.")
    return [_mirror(drawn, np.array(signs)) for signs in _SIGNS[which]]


def _mirror(environments: VectorTask, signs: Array) -> Mirror:
    plain = Mirror(signs, _rotors(environments.vehicle, signs), np.ones(environments.observation_count))
    task, shape, rng = environments.task, environments.shape, np.random.Generator(np.random.Philox(key=0))
    state, action, past = _drawn(environments, rng)

    def flown(state: Array, action: Array, past: Array) -> Array:
        p = environments.parameters_of_flight(environments.nominal.astype(float), tuple(past))
        return _rows(shape.flown(tuple(state), tuple(action), p))

    def told(before: Array, after: Array, action: Array, past: Array) -> tuple[Array, Array]:
        p = environments.parameters_of_flight(environments.nominal.astype(float), tuple(past))
        judged = shape.judged(tuple(before), tuple(after), tuple(action), p)
        reward = (*judged.terms.values(), judged.terminated, 0.0 * before[0])
        return _rows(reward), _rows((*task.observe(tuple(after), (0.0,) * 16, p), 0.0 * before[0]))

    turned = plain.state(state), action[plain.rotors], past[plain.rotors]
    after = flown(state, action, past)
    apart, change = np.abs(flown(*turned) - plain.state(after)), np.abs(after - state)
    (reward, seen), (image, seen_image) = told(state, after, action, past), told(turned[0], plain.state(after), *turned[1:])
    # A number of an observation keeps its sign or changes it; of one that is always 0 either is right.
    seen_signs = np.where((seen * seen_image).sum(axis=1) < 0.0, -1.0, 1.0)[:-1]
    wrong = {
        "the vehicle flies": any(apart[k].max() > _NEARLY * change[k].max() + _SAME for k in _KINDS),
        "the reward is": not np.allclose(reward, image, rtol=_SAME, atol=_SAME),
        "the observation is": not np.allclose(seen_signs[:, None] * seen[:-1], seen_image[:-1], rtol=_SAME, atol=_SAME),
    }
    for what in (name for name, is_so in wrong.items() if is_so):
        looks = f"{task.name!r} with {environments.vehicle.name!r} does not look alike mirrored by {signs.tolist()}"
        raise AirworthyError(f"{looks}: {what} another; leave mirror at 'none'.")
    return Mirror(signs, plain.rotors, seen_signs)


def _drawn(environments: VectorTask, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """States around hover, actions and past actions, (numbers, _STATES)."""
    rotors = environments.action_count
    attitude = rng.normal(size=(4, _STATES))
    hover = environments.state[BODY:, :1].astype(float)
    body = [rng.normal(size=(3, _STATES)), rng.normal(size=(3, _STATES)), attitude / np.linalg.norm(attitude, axis=0)]
    state = np.concatenate([*body, rng.normal(size=(3, _STATES)), hover * rng.uniform(0.8, 1.2, (rotors, _STATES))])
    action, past = rng.uniform(-1.0, 1.0, (2, rotors, _STATES))
    return state, action, past


def _rows(values: tuple[Any, ...]) -> Array:
    return np.array(np.broadcast_arrays(*values), float)


def _rotors(vehicle: Vehicle, signs: Array) -> ArrayIndex:
    """Which rotor stands, and turns, as each would in the mirror.

    Raises:
        AirworthyError: None does.
    """
    handed = int(np.prod(signs))
    places = np.array([rotor.position for rotor in vehicle.rotors]) - np.array(vehicle.center_of_mass)
    found = []
    for place, rotor in zip(places, vehicle.rotors, strict=True):
        # Seen in a mirror a rotor turns the other way; by a half turn, which is two mirrors, it does not.
        far = np.abs(places - signs * place).max(axis=1)
        far[[other.spin != handed * rotor.spin for other in vehicle.rotors]] = np.inf
        found.append(int(np.argmin(far)))
        if far[found[-1]] > 1e-3 * np.abs(places).max():
            raise AirworthyError(
                f"{vehicle.name!r} does not look alike mirrored by {signs.tolist()}: no rotor stands and turns as the one at"
                f" {list(rotor.position)} would; leave mirror at 'none'."
            )
    return np.array(found)
