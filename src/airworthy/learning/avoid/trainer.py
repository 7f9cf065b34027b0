"""Learns to avoid: windows of flights, their gradient, and a curriculum of places that grow denser with what is mastered."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch

from airworthy.core.arrays import ArrayF32
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.learning.avoid.config import AvoidOptions
from airworthy.learning.avoid.fleet import FLEET_MARGIN, FleetFlights
from airworthy.learning.avoid.flights import SLOWEST, AvoidFlights
from airworthy.learning.avoid.identifier import IDENTIFIER_RATE, identifier_step
from airworthy.learning.avoid.loss import AvoidTick, window_loss
from airworthy.learning.avoid.network import AvoidNet
from airworthy.learning.avoid.places import draw_places
from airworthy.learning.machine import ModelState
from airworthy.pilots.avoid_policy.contract import AvoidContract, FleetTold
from airworthy.pilots.avoid_policy.fleet import FEATURES
from airworthy.pilots.avoid_policy.sight import RATE

__all__ = ["FLOWN_MARGIN", "AvoidTraining"]

FLOWN_MARGIN = 0.25
"""That a policy is told in flight [m]: the vehicle's radius of 0.15 m and a hand's breadth; in forests of seed 101, 0.2 did
as well."""
_WARM_UP = 50
"""Gradient steps over which the rate rises; ours."""
_GRADIENT_NORM = 1.0
"""A longer gradient is shortened (specification, section 6: clip at 0.5 to 1)."""
# Ours: torch's default for AdamW is ten times as much.
_WEIGHT_DECAY = 1e-3
# Ours: enough to see whether the fast ones learn, few enough to read.
_QUARTERS = 4


class AvoidTraining:
    """A training under way; the same options give the same bits on the same machine.

    Args:
        options: What to learn, and how.
        threads: Most threads of the kernel; the numbers are the same.
    """

    def __init__(self, options: AvoidOptions, threads: int | None = None):
        self.options, self.iteration, self.skipped = options, 0, 0
        # Only torch's first weights ask it: everything later draws from generators of this training.
        torch.manual_seed(options.seed % (1 << 63))
        told = len(FEATURES) if options.vehicles and options.condition != "none" else 0
        self.net = AvoidNet(options.hidden, told, identifies=options.steps > options.iterations)
        self._adam = torch.optim.AdamW(self.net.parameters(), options.learning_rate, weight_decay=_WEIGHT_DECAY)
        self._state = ModelState(self.net, torch.device("cpu"))
        places = draw_places(options.place_count, options.seed)
        flown = (options.env_count, places, options.hidden, options.fastest)
        self.flights = (
            FleetFlights(*flown, options.vehicles, options.condition, options.blind, threads)
            if options.vehicles
            else AvoidFlights(*flown, options.blind, threads)
        )
        self.flights.begin(np.arange(options.env_count), self._rng(0))
        self.parts: dict[str, float] = {}
        """Of the last window's cost, before their weights."""

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        return self.iteration >= self.options.steps

    @property
    def env_steps(self) -> int:
        """Decisions so far, over all flights."""
        return self.iteration * self.options.window * self.options.env_count

    def _rng(self, stream: int) -> np.random.Generator:
        """Of this iteration: what is drawn depends on nothing that was drawn before it."""
        return np.random.default_rng([self.options.seed, self.iteration, stream])

    def step(self) -> float:
        """Fly a window of all flights and learn from it; returns its cost."""
        o, flights, noise = self.options, self.flights, torch.Generator()
        rng = self._rng(1)
        # A new generator each step: a training that goes on needs no state of torch's.
        noise.manual_seed(int(rng.integers(1 << 62)))
        if self.iteration:
            self._renew()
        if self.iteration >= o.iterations:
            return self._identify(noise, rng)
        for group in self._adam.param_groups:
            group["lr"] = o.learning_rate * self._rate_share()
        ticks: list[AvoidTick] = [flights.tick(self.net, noise, rng) for _ in range(o.window)]
        # Once per window: memory holds the graph of one window, whatever the flights' length.
        cost, self.parts = window_loss(ticks, flights.before, o.collision_weight, o.nearness_weight)
        self._adam.zero_grad()
        cost.backward()
        norm = float(torch.nn.utils.clip_grad_norm_(self.net.parameters(), _GRADIENT_NORM))
        # One flight that ran away must not end a training: its window is not learnt from.
        if math.isfinite(norm):
            self._adam.step()
        else:
            self.skipped += 1
        self.parts["gradient_norm"] = norm
        if self.net.identify is not None and isinstance(flights, FleetFlights):
            # Of whoever takes every vehicle for the middle one, until it is learnt.
            self.parts["identification"] = float(flights.features.square().mean())
        flights.detach(torch.stack([t.velocity for t in ticks]))
        self.iteration += 1
        return float(cost.detach())

    def _identify(self, noise: torch.Generator, rng: np.random.Generator) -> float:
        """Fly a window by what is identified, and learn to identify from it; returns the window's cost."""
        flights, net = self.flights, self.net.identify
        assert isinstance(flights, FleetFlights)
        assert net is not None
        flights.identifier = net
        ticks, histories = [], []
        with torch.no_grad():
            for _ in range(self.options.window):
                ticks.append(flights.tick(self.net, noise, rng))
                histories.append(flights.history)
            cost, self.parts = window_loss(ticks, flights.before, self.options.collision_weight, self.options.nearness_weight)
        for group in self._adam.param_groups:
            group["lr"] = IDENTIFIER_RATE
        # The policy stays as it is.
        self.parts["gradient_norm"] = 0.0
        self.parts["identification"] = identifier_step(net, self._adam, torch.stack(histories), flights.features)
        flights.detach(torch.stack([t.velocity for t in ticks]))
        self.iteration += 1
        return float(cost)

    def _renew(self) -> None:
        """Rate the flights whose time has come, and begin them anew."""
        o = self.options
        ids = np.arange(self.iteration % o.windows_per_flight, o.env_count, o.windows_per_flight)
        # Of the first flights most are cut short, so that later ones end at different times.
        if self.iteration >= o.windows_per_flight:
            self.flights.rate(ids, o.windows_per_flight * o.window / RATE)
        self.flights.begin(ids, self._rng(0))

    def _rate_share(self) -> float:
        # Source: specification, learning by reward, 7.2: AdamW at 1e-3, by a cosine to 1e-5, a hundredth.
        fall = 0.5 * (1.0 + math.cos(math.pi * self.iteration / self.options.iterations))
        return min(1.0, (self.iteration + 1) / _WARM_UP) * (0.01 + 0.99 * fall)

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of the last window; of levels and speeds by quarters of the top speeds."""
        f, n = self.flights, self.options.env_count // _QUARTERS
        # Flights stand in the order of their top speeds: quarters of the batch are quarters of speed.
        parts = [slice(k * n, (k + 1) * n) for k in range(_QUARTERS)]
        row: dict[str, Any] = {"cost": cost, **self.parts, "skipped": self.skipped}
        row["touched_share"] = float(f.hit.float().mean())
        row["level"] = [round(float(f.level[part].mean()), 4) for part in parts]
        row["speed_m_s"] = [round(float(f.v[part].norm(dim=1).mean()), 3) for part in parts]
        return row

    @property
    def top_speeds(self) -> list[float]:
        """Middles of the quarters of the top speeds [m/s]."""
        width = self.options.fastest + 0.5 - SLOWEST
        return [SLOWEST + width * (k + 0.5) / _QUARTERS for k in range(_QUARTERS)]

    @property
    def weights(self) -> dict[str, ArrayF32]:
        """Tensors of the policy as it is."""
        return self._state.weights("last")

    @property
    def contract(self) -> AvoidContract:
        """What the policy learnt for, and how far it came."""
        told = {"iterations": self.iteration, "env_steps": self.env_steps, "options": asdict(self.options)}
        plain = (self.options.hidden, FLOWN_MARGIN, self.options.fastest, self.options.blind, told)
        if not isinstance(self.flights, FleetFlights):
            return AvoidContract(*plain)
        low, high = self.flights.fleet.told_bounds
        fleet = FleetTold(self.options.condition, self.options.vehicles, low, high)
        return replace(AvoidContract(*plain, fleet), margin=FLEET_MARGIN)

    def save(self) -> Checkpoint:
        """Return everything that the next step depends on."""
        arrays = self._state.arrays(dict(self.net.named_parameters()), self._adam) | self.flights.arrays()
        return Checkpoint(self.iteration, arrays, {"skipped": self.skipped})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        self._state.restore(checkpoint.arrays)
        self._state.restore_moments(checkpoint.arrays, dict(self.net.named_parameters()), self._adam)
        self.flights.restore(checkpoint.arrays)
        self.iteration, self.skipped = checkpoint.number, int(checkpoint.notes["skipped"])
        if self.iteration > self.options.iterations and isinstance(self.flights, FleetFlights):
            self.flights.identifier = self.net.identify
