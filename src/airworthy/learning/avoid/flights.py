"""Many flights through places, decision by decision, with the gradient of each decision kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from airworthy.core.arrays import ArrayAny, ArrayBool, ArrayIndex
from airworthy.learning.avoid.kernel import Looks
from airworthy.learning.avoid.loss import MEAN_OVER, POINTS, AvoidTick
from airworthy.learning.avoid.network import AvoidNet
from airworthy.learning.avoid.places import BALLS, BOXES, SIDE, TRUNKS, Places
from airworthy.learning.avoid.point_mass import Body, advance, attitude_axes
from airworthy.pilots.avoid_policy.contract import GAIN
from airworthy.pilots.avoid_policy.pilot import TURN, limited
from airworthy.pilots.avoid_policy.sight import HALF_TANGENT, IMAGE, RATE, REACH, TILT_DEG, image_input, rays

__all__ = ["AvoidFlights"]

AHEAD_M = 40.0
"""From a flight's start to its goal, and from goal to goal [m]; ours."""
REACHED_M = 2.0
"""From a goal at which the next one is set [m]; ours, because who is to stop learns nothing of trees."""
SLOWEST = 1.5
"""Least top speed of a flight [m/s]; ours, below the slowest that is judged."""
MARGINS = (0.15, 0.3)
"""Distance that flights are told to keep free [m]; specification: 0.1 to 0.3."""
KEEP_PER_SECOND = 0.4
"""Of a state's slope, per second backwards (specification, 7.2)."""
_IMAGE_NOISE, _VELOCITY_NOISE, _THRUST_NOISE, _GUST, _GUST_KEEP = 0.02, 0.1, 0.01, 0.2, 0.95
"""Standard deviations: of the image (specification), of what it knows of its velocity [m/s] (ours), of thrust, of gusts [m/s^2]
(specification), and what of a gust is left a decision later (ours)."""
_TIME_SPREAD = 0.1
"""Standard deviation of a decision's length, relative (specification)."""
LEVEL_UP, LEVEL_LEAST, ANY_LEVEL = 0.03, 0.03, 0.1
"""Ours: by how much a flight's level moves, the least, and the share of flights that begin at any level."""
CLUTTERED = 0.3
"""Share of flights in places with balls and boxes besides trunks; ours."""

_STATE = ("p", "v", "a", "act", "memory", "goal", "heading", "gust", "speed", "margin", "tilt", "hit", "progress")
_BODY = ("lag", "linear", "square", "wind")


class AvoidFlights:
    """Flights of one training; what is random is a function of seed and iteration.

    Args:
        count: At once.
        places: Where.
        hidden: Width of the network's memory.
        fastest: Largest top speed but half a metre per second [m/s].
        blind: Blank all images.
        threads: Most threads of the kernel.
    """

    margins = MARGINS

    def __init__(
        self, count: int, places: Places, hidden: int, fastest: float, blind: bool = False, threads: int | None = None
    ):
        self.count, self.places, self.fastest, self.blind = count, places, fastest, blind
        # A ray stands for a pixel of 4 x 4 whose nearest return counts: half of it to each side.
        spread = HALF_TANGENT / IMAGE[1]
        self.looks = Looks(places, rays(), count, POINTS, REACH, spread, threads)

        def zeros(width: int) -> Tensor:
            return torch.zeros(count, width)

        self.p, self.v, self.a, self.act, self.goal, self.gust = (zeros(3) for _ in range(6))
        self.heading, self.memory = zeros(2), zeros(hidden)
        self.speed, self.margin, self.tilt = zeros(1), zeros(1), zeros(1)
        self.hit, self.progress = torch.zeros(count, dtype=torch.bool), torch.zeros(count)
        self.body = Body(zeros(1), zeros(1), zeros(1), zeros(3))
        self.before = torch.zeros(MEAN_OVER - 1, count, 3)
        """Velocities of the decisions before the window."""
        self.level = np.full(count, LEVEL_LEAST)
        """How dense each flight's place may be, as a share of the densest."""

    # ---- beginning ------------------------------------------------------------------------------------------------

    def begin(self, ids: ArrayIndex, rng: np.random.Generator) -> None:
        """Begin some flights anew, each in a place as dense as its level says.

        Args:
            ids: Which.
            rng: Of all that is drawn.
        """
        n, looks = len(ids), self.looks
        looks.layout[ids] = rng.integers(0, len(self.places.trunks), n)
        looks.offset[ids] = rng.uniform(0.0, SIDE, (n, 2))
        # Easier places than mastered stay in the mix, or what was learnt in them is lost.
        level = self.level[ids] * rng.uniform(0.4, 1.0, n)
        level = np.where(rng.random(n) < ANY_LEVEL, rng.random(n), level)
        cluttered = rng.random(n) < CLUTTERED
        looks.counts[ids, 0] = np.round(level * TRUNKS)
        for k, most in ((1, BALLS), (2, BOXES)):
            looks.counts[ids, k] = np.where(cluttered, rng.integers(0, most + 1, n), 0)
        # Speeds are spread over the flights once and for all, so that each speed has levels of its own.
        share = (ids + rng.random(n)) / self.count
        self._put("speed", ids, (SLOWEST + (self.fastest + 0.5 - SLOWEST) * share)[:, None])
        self._put("margin", ids, rng.uniform(*self.margins, (n, 1)))
        self._put("tilt", ids, np.radians(TILT_DEG + rng.normal(0.0, 1.0, (n, 1))))
        self._draw_bodies(ids, rng)
        place, way = self._starts(ids, rng)
        # Some begin in flight: images at speed are seen from the first window on.
        start = np.concatenate([self.speed[ids].numpy() * rng.uniform(0.0, 0.6, (n, 1)) * way, np.zeros((n, 1))], 1)
        self._put("p", ids, place)
        self._put("v", ids, start + rng.normal(0.0, 0.2, (n, 3)))
        self._put("heading", ids, way)
        self._put("goal", ids, np.concatenate([place[:, :2] + AHEAD_M * way, rng.uniform(1.0, 2.5, (n, 1))], 1))
        for name in ("a", "act", "memory", "gust", "hit", "progress"):
            getattr(self, name)[ids] = 0
        self.before[:, ids] = self.v[ids]

    def _draw_bodies(self, ids: ArrayIndex, rng: np.random.Generator) -> None:
        n = len(ids)
        drawn = {
            # Source: specification 7.2: 12 (1 + 0.1 n).
            "lag": 12.0 * (1.0 + 0.1 * rng.normal(size=(n, 1))),
            # Ours: from none to that of quadrotors with much of it; the specification has 0.3 to 0.45, linear alone.
            "linear": rng.uniform(0.0, 0.3, (n, 1)),
            "square": rng.uniform(0.0, 0.15, (n, 1)),
            "wind": rng.normal(0.0, (0.5, 0.5, 0.1), (n, 3)),
        }
        for name, value in drawn.items():
            getattr(self.body, name)[ids] = torch.as_tensor(value, dtype=torch.float32)

    def _starts(self, ids: ArrayIndex, rng: np.random.Generator) -> tuple[ArrayAny, ArrayAny]:
        """Free places (n, 3), and directions (n, 2)."""
        n, looks = len(ids), self.looks
        angle = rng.uniform(-math.pi, math.pi, n)
        # At the height at which trunks stand, clear of the ground and of what looks over them.
        place = np.concatenate([rng.uniform(0.0, SIDE, (n, 2)), rng.uniform(1.0, 2.5, (n, 1))], 1)
        least, left = 0.6, np.arange(n)
        while len(left):
            looks.position[ids], looks.points[ids] = place, place[:, None]
            looks.look()
            left = np.flatnonzero(looks.nearest[ids, 0, 0] < least)
            place[left, :2] = rng.uniform(0.0, SIDE, (len(left), 2))
            # In the densest places few spots are so free: less will do after a while.
            least *= 0.98
        return place, np.stack([np.cos(angle), np.sin(angle)], 1)

    def _put(self, name: str, ids: ArrayIndex, value: ArrayAny) -> None:
        getattr(self, name)[ids] = torch.as_tensor(value, dtype=torch.float32)

    def rate(self, ids: ArrayIndex, seconds: float) -> None:
        """Raise the level of flights that touched nothing and came on, lower that of those that touched something.

        Args:
            ids: Which; they have come to their end.
            seconds: For which they flew.
        """
        hit = self.hit[ids].numpy()
        came = (self.progress[ids] / (seconds * self.speed[ids, 0])).numpy()
        # A flight that only stood still touched nothing, and learnt nothing: its level stays.
        change = np.where(hit, -LEVEL_UP, np.where(came > 0.5, LEVEL_UP, 0.0))
        self.level[ids] = np.clip(self.level[ids] + change, LEVEL_LEAST, 1.0)

    # ---- a decision -----------------------------------------------------------------------------------------------

    def detach(self, velocities: Tensor) -> None:
        """Cut what was flown off from its gradient; velocities (tick, env, 3) are those of the window."""
        for name in ("p", "v", "a", "act", "memory"):
            setattr(self, name, getattr(self, name).detach())
        self.before = torch.cat([self.before, velocities.detach()])[-(MEAN_OVER - 1) :].clone()

    def tick(self, net: AvoidNet, noise: torch.Generator, rng: np.random.Generator) -> AvoidTick:
        """See, decide and fly a fifteenth of a second.

        Args:
            net: Decides.
            noise: Of all normal numbers.
            rng: Of new goals.
        """

        def normal(width: int) -> Tensor:
            return torch.randn(self.count, width, generator=noise)

        # At three deviations it ends: no step is much longer than those that the judgement flies.
        dt = (1.0 + _TIME_SPREAD * normal(1)).clamp(0.7, 1.3) / RATE
        share = torch.linspace(1.0 / POINTS, 1.0, POINTS)[None, :, None] * dt[:, None]
        with torch.no_grad():
            way = self.goal - self.p
            length = way.norm(dim=1, keepdim=True)
            direction = way / length.clamp(min=0.1)
            wanted = direction * torch.minimum(length, self.speed)
            up = self._look(share)
            image = image_input(torch.from_numpy(self.looks.depth), torch.clip) + _IMAGE_NOISE * normal(
                self.looks.depth.shape[1]
            )
            near = torch.from_numpy(self.looks.nearest.copy())
            image = torch.zeros_like(image) if self.blind else image
        # Nearest surfaces do not move with the point (specification): their distance grows along their normal.
        ahead = self.p[:, None] + self.v[:, None] * share
        clearance = near[:, :, 0] + (near[:, :, 1:] * (ahead - ahead.detach())).sum(2) - self.margin
        # In the heading's frame what is seen and what is known turn together: one policy for all directions.
        felt = self._turned(self.v)
        sensed, lean = felt + _VELOCITY_NOISE * normal(3), self._turned(up)
        state = torch.cat([sensed, self._turned(wanted), lean, self.margin, *self._known(sensed.detach(), lean)], 1)
        out, self.memory = net(image, state, self.memory)
        asked = self._turned(GAIN * out[:, :3] - out[:, 3:], back=True)
        self.gust = _GUST_KEEP * self.gust + _GUST * math.sqrt(1.0 - _GUST_KEEP**2) * normal(3)
        thrust = self._acting(asked, _THRUST_NOISE * normal(1))
        p, v, a, act = advance(self.p, self.v, self.a, self.act, thrust, self.gust, self.body, dt, torch)
        self.p, self.v, self.a, self.act = _fading(p), _fading(v), a, act
        with torch.no_grad():
            self.heading = F.normalize(TURN * self.heading + direction[:, :2], dim=1)
            self.hit |= (clearance < 0.0).any(1)
            self.progress += (v * direction).sum(1) * dt[:, 0]
            self._next_goals((length[:, 0] < REACHED_M).numpy(), rng)
        return AvoidTick(self.v, wanted, clearance, asked, act, out[:, 3:] - felt.detach())

    def _known(self, felt: Tensor, up: Tensor) -> list[Tensor]:
        """Return what else the policy knows, (env, any) each: nothing.

        Args:
            felt: Velocity as it is known, heading frame [m/s], (env, 3).
            up: Of the body, heading frame, (env, 3).
        """
        return []

    def _acting(self, asked: Tensor, noise: Tensor) -> Tensor:
        """Return the acceleration (env, 3) that the vehicle is commanded when the policy asks for one [m/s^2].

        Args:
            asked: World, net of gravity, (env, 3).
            noise: Relative, (env, 1).
        """
        # The limit of the pilot that will fly it: nothing is learnt that it would cut off.
        return limited(asked, torch) * (1.0 + noise)

    def _look(self, share: Tensor) -> Tensor:
        """Fill images and clearances; returns the thrust's direction, world, (env, 3)."""
        forward, left, up = attitude_axes(self.act.detach(), self.heading, torch)
        c, s = torch.cos(self.tilt), torch.sin(self.tilt)
        self.looks.camera[:] = torch.stack([c * forward + s * up, left, c * up - s * forward], 1).numpy()
        self.looks.position[:] = self.p.detach().numpy()
        self.looks.points[:] = (self.p[:, None] + self.v[:, None] * share).detach().numpy()
        self.looks.look()
        return up

    def _turned(self, q: Tensor, back: bool = False) -> Tensor:
        """World to heading, or back, as `sight.turned`."""
        c, s = self.heading[:, :1], self.heading[:, 1:]
        s = -s if back else s
        return torch.cat([c * q[:, :1] + s * q[:, 1:2], c * q[:, 1:2] - s * q[:, :1], q[:, 2:]], 1)

    def _next_goals(self, reached: ArrayBool, rng: np.random.Generator) -> None:
        ids = np.flatnonzero(reached)
        # Up to a radian to either side: who comes on has a way ahead, who turned round would leave what it sees.
        angle = rng.uniform(-1.0, 1.0, len(ids))
        c, s = np.cos(angle), np.sin(angle)
        x, y = self.heading[ids].numpy().T
        way = np.stack([c * x - s * y, s * x + c * y], 1)
        goal = np.concatenate([self.p.detach()[ids, :2].numpy() + AHEAD_M * way, rng.uniform(1.0, 2.5, (len(ids), 1))], 1)
        self._put("goal", ids, goal)

    # ---- checkpoints ----------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, ArrayAny]:
        """Return everything that the next decision depends on, by name."""
        found = {name: getattr(self, name).numpy() for name in _STATE}
        found |= {name: getattr(self.body, name).numpy() for name in _BODY}
        found |= {name: getattr(self.looks, name) for name in ("layout", "offset", "counts")}
        return {
            f"flights.{name}": np.array(a) for name, a in (found | {"before": self.before.numpy(), "level": self.level}).items()
        }

    def restore(self, arrays: Mapping[str, ArrayAny]) -> None:
        """Take what `arrays` gave."""
        held = {name.removeprefix("flights."): np.array(a) for name, a in arrays.items() if name.startswith("flights.")}
        for name in (*_STATE, "before"):
            setattr(self, name, torch.from_numpy(held[name]))
        for name in _BODY:
            setattr(self.body, name, torch.from_numpy(held[name]))
        for name in ("layout", "offset", "counts"):
            getattr(self.looks, name)[:] = held[name]
        self.level = held["level"]


def _fading(x: Any) -> Any:
    """Return the same number, whose slope is shorter: over many decisions it would grow without end."""
    keep = KEEP_PER_SECOND ** (1.0 / RATE)
    return x * keep + x.detach() * (1.0 - keep) if x.requires_grad else x
