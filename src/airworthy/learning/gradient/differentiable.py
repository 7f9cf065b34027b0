"""Flights through which torch derives: any network, any learning task, any control level, and the vehicle's own numbers.

The fused trainer (`GradientTraining`) is an order of magnitude quicker for the small networks that it has; this is for all
others, and for what is not a policy at all: a mass that explains a recorded flight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.random import flight_key, uniforms
from airworthy.core.schema import SHARE, number, shown
from airworthy.learning.environments.conditions import FlightConditions
from airworthy.learning.environments.jointed import JointedForm
from airworthy.learning.environments.kernel import JOINT_BLOCK, MEMORY_BLOCK, STREAM
from airworthy.learning.environments.nominal import nominal_row, shape_of
from airworthy.learning.environments.task import LearningTask, task_given
from airworthy.learning.environments.traits import told_by_member, traits_of
from airworthy.learning.environments.vector_task import threads_given
from airworthy.learning.gradient.derived_step import FLAGS, DerivedStep, StepEquations, StepTwin
from airworthy.learning.gradient.dynamics import refuse_dead_time
from airworthy.simulation.config import Randomization
from airworthy.simulation.start_state import whole_number
from airworthy.vehicles import Vehicle
from airworthy.vehicles.lookup import vehicle_given

__all__ = ["FACTORS", "DifferentiableSimulator"]

_DRAG = ("drag_linear", "drag_norm", "drag_axis", "drag_rotor", "angular_linear", "angular_norm", "angular_axis")
_HUBS = ("rotor_hub_drag", "rotor_flapping", "rotor_translational_lift")
FACTORS: Mapping[str, Mapping[str, int]] = {
    "mass": {"mass": 1, "mass_inverse": -1, "inertia": 1, "inertia_inverse": -1},
    "inertia": {"inertia": 1, "inertia_inverse": -1},
    "thrust": {"rotor_thrust": 1, "rotor_torque": 1},
    "lag": {"rotor_rise": -1, "rotor_fall": -1},
    "drag": dict.fromkeys((*_DRAG, *_HUBS), 1),
}
"""By what a vehicle is changed: rows of its parameters, and the power to which they take the factor. As `Randomization` draws
them: of a heavier vehicle every part is heavier, and a rotor's torque follows its thrust."""
_LARGEST = 1 << 20
"""Ours: a million environments at once; more is a mistake of a digit."""


class DifferentiableSimulator:
    """Flights of a learning task, stepped by torch tensors that carry their gradient.

        sim = DifferentiableSimulator("tinyprop", "hover", env_count=64, horizon=100)
        state = sim.begin()
        seen = sim.observe(state)
        for _ in range(sim.horizon):
            state, seen, cost = sim.step(state, policy(seen))

    A state is (rows, env): body and rotors, last action, what the task remembers, age. The cost is minus the task's reward. A
    flight that leaves the numbers costs 0 from then on, is seen as zeros and hands no gradient back; no other feels it.

    Args:
        vehicles: One for all flights, or one each; records, catalogue names or vehicle files. None: the task's own.
        task: Name of a registered learning task, or a task. A curriculum is at its hardest; observations have no noise.
        env_count: Flights.
        horizon: Decisions of a `window`.
        seed: Of starts.
        keep: Share of the slope by the state that each step hands back; below 1 distant consequences count less.
        precision: "float32" in lanes, or "float64": the same equations on NumPy, slow, to check gradients with.
        threads: Most threads of a launch.

    Raises:
        AirworthyError: A number out of range, an unknown task, vehicles that no kernel fits together.
    """

    def __init__(
        self,
        vehicles: Vehicle | str | Sequence[Vehicle | str] | None = None,
        task: str | LearningTask = "hover",
        env_count: int = 64,
        horizon: int = 100,
        *,
        seed: int = 0,
        keep: float = 1.0,
        precision: Literal["float32", "float64"] = "float32",
        threads: int | None = None,
    ):
        for name, value, most in (("env_count", env_count, _LARGEST), ("horizon", horizon, 1_000_000)):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise AirworthyError(f"{name} is {value!r}; expected a whole number from 1 to {most:,}.")
        keep, seed = float(number(keep, "keep", SHARE)), whole_number("seed", seed, -(2**63))
        if precision not in ("float32", "float64"):
            raise AirworthyError(f"precision is {precision!r}; expected float32 or float64.")
        self.task = task_given(task)
        self.env_count, self.horizon, self.keep, self.seed = env_count, horizon, keep, seed
        self.dtype = torch.float64 if precision == "float64" else torch.float32
        if traits_of(self.task).rooms is not None:
            raise AirworthyError(
                f"The task {self.task.name!r} flies through rooms, of whose walls nothing is derived; choose another."
            )
        fleet = _fleet(traits_of(self.task).airframe if vehicles is None else vehicles, env_count)
        # Names and records of a fleet repeat themselves: each is set up once.
        distinct = list({id(item): item for item in fleet}.values())
        refuse_dead_time(distinct)
        place = {id(item): k for k, item in enumerate(distinct)}
        with told_by_member(self.task):
            shape, columns = shape_of(self.task, distinct, Randomization(), 1.0, FlightConditions())
            self._equations = StepEquations(shape)
            rows = [nominal_row(shape, item, columns[:, k]) for k, item in enumerate(distinct)]
        self._twin = StepTwin(self._equations)
        self._parameters = self._equations.parameters
        self.action_count = shape.actions
        """Numbers of an action, each within -1 and 1."""
        self.observation_count = self._parameters.observed
        """Numbers that a policy sees."""
        self.state_count = self._equations.rows
        """Rows of a state: body 13, rotors, last action, memory, age."""
        mine = np.stack(rows, axis=1)[:, [place[id(item)] for item in fleet]]
        self._rows = torch.from_numpy(np.ascontiguousarray(mine)).to(self.dtype)
        self._derived: dict[bool, DerivedStep] = {}
        self._threads = threads_given(threads)
        self.episode: ArrayAny = np.full(env_count, -1, np.int64)
        """Number of each present flight among its environment's, (env,): what draws depend on; a run that goes on sets it."""
        self.terminated = self.success = torch.zeros(env_count, dtype=torch.bool)
        """Of the last step, (env,): flights that ended by what happened in them; that are what the task asks for."""
        self.sound = torch.ones(env_count, dtype=torch.bool)
        """Flights that were numbers throughout the last step, (env,)."""

    @property
    def hover_action(self) -> Tensor:
        """Actions that command hover of each flight's vehicle, (env, actions): where policies begin."""
        p = self._parameters
        first = p.place[p.extra["hover_action"].start]
        return self._rows[first : first + self.action_count].T.clone()

    # ---- beginning ---------------------------------------------------------------------------------------------------

    def begin(self, state: Tensor | None = None, where: Tensor | None = None) -> Tensor:
        """Begin flights, drawn from seed, flight and number of its flights alone; returns states, (rows, env).

        Args:
            state: Of flights that go on; None: all begin.
            where: Which of them begin anew, bool (env,); None: all.

        Raises:
            AirworthyError: One without the other, or another shape.
        """
        if (state is None) != (where is None):
            raise AirworthyError("begin got a state or `where` alone; give both, or neither to begin all flights.")
        if where is not None and not isinstance(where, Tensor):
            raise AirworthyError(f"where is a {type(where).__name__}; expected a tensor of bool, ({self.env_count},).")
        chosen = np.ones(self.env_count, bool) if where is None else where.cpu().numpy()
        if chosen.shape != (self.env_count,) or chosen.dtype != bool:
            raise AirworthyError(f"where is {chosen.dtype} of shape {chosen.shape}; expected bool, ({self.env_count},).")
        if state is not None:
            self._need("state", state, (self.state_count, self.env_count))
        begun = torch.zeros(self.state_count, self.env_count, dtype=self.dtype) if state is None else state.detach().clone()
        flights = np.flatnonzero(chosen)
        if flights.size:
            self.episode[flights] += 1
            begun[:, flights] = torch.from_numpy(self._starts(flights)).to(self.dtype)
        return begun

    def _starts(self, flights: ArrayAny) -> Array:
        """Rows of new flights, (rows, flights)."""
        key = flight_key(self.seed, flights, self.episode[flights])
        equations, values = self._equations, self._rows.numpy().astype(float)[:, flights]
        u = tuple(uniforms(key, 0, STREAM, 4 * JOINT_BLOCK + equations.shape.start_draws - 16).T)
        past = self.hover_action.numpy().astype(float)[flights].T
        nothing = np.zeros(self._parameters.memory)
        p = equations.record(tuple(values), tuple(past), tuple(nothing), np.zeros(flights.size))
        started = tuple(self.task.start((*u[:16], *u[4 * JOINT_BLOCK :]), p))
        memory = equations.shape.traits.begin(u[4 * MEMORY_BLOCK : 4 * MEMORY_BLOCK + 16], started, p)
        whole = (*started, *past, *memory, 0.0)
        return np.array([np.broadcast_to(x, (flights.size,)) for x in whole], float)

    def observe(self, state: Tensor) -> Tensor:
        """Return what policies see, (env, observed), without gradient: for the first decision of a window.

        Args:
            state: (rows, env).

        Raises:
            AirworthyError: It is of another shape or kind.
        """
        self._need("state", state, (self.state_count, self.env_count))
        seen = self._twin.observe(state.detach().numpy().astype(float), self._rows.numpy().astype(float))
        return torch.from_numpy(np.ascontiguousarray(seen.T)).to(self.dtype)

    # ---- stepping ----------------------------------------------------------------------------------------------------

    def step(self, state: Tensor, action: Tensor, parameters: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Take one decision: next state (rows, env), what is seen then (env, observed), its cost (env,).

        Args:
            state: (rows, env).
            action: (env, actions); beyond -1 and 1 it is clipped, without slope there.
            parameters: Of vehicles, from `parameters`; None: as they are recorded.

        Raises:
            AirworthyError: A tensor of another shape or kind.
        """
        rows = self._rows if parameters is None else parameters
        for name, tensor, shape in (
            ("state", state, (self.state_count, self.env_count)),
            ("action", action, (self.env_count, self.action_count)),
            ("parameters", rows, tuple(self._rows.shape)),
        ):
            self._need(name, tensor, shape)
        after, seen, cost, flags = _Step.apply(self, state, action, rows)
        told = flags > 0.5
        self.terminated, self.success, self.sound = told[1], told[2], told[3]
        return after, seen.T, cost

    def _need(self, name: str, tensor: Any, shape: tuple[int, ...]) -> None:
        if not isinstance(tensor, Tensor):
            raise AirworthyError(
                f"{name} is a {type(tensor).__name__}; expected a tensor, {self.dtype} of shape {shape} on cpu."
            )
        if tuple(tensor.shape) != shape or tensor.dtype != self.dtype or tensor.device.type != "cpu":
            found = f"{tensor.dtype} of shape {tuple(tensor.shape)} on {tensor.device}"
            raise AirworthyError(f"{name} is {found}; expected {self.dtype} of shape {shape} on cpu.")

    def window(
        self, policy: Callable[[Tensor], Tensor], state: Tensor, parameters: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Fly `horizon` decisions; returns the mean cost per decision of the flights, and where they are, detached.

        Args:
            policy: From what is seen, (env, observed), to actions, (env, actions).
            state: Where flights begin, (rows, env); no gradient flows beyond it.
            parameters: As of `step`.

        Raises:
            AirworthyError: A tensor of another shape or kind, or a policy that nobody can call.
        """
        if not callable(policy):
            raise AirworthyError(f"policy is a {type(policy).__name__}; expected what makes actions of what is seen.")
        self._need("state", state, (self.state_count, self.env_count))
        state = state.detach()
        seen, total = self.observe(state), torch.zeros((), dtype=self.dtype)
        for _ in range(self.horizon):
            state, seen, cost = self.step(state, policy(seen), parameters)
            total = total + cost.sum()
        return total / (self.horizon * self.env_count), state.detach()

    def parameters(self, **factors: Tensor) -> Tensor:
        """Return parameters of vehicles changed by factors, (rows, env), through which gradients flow to these.

        Args:
            factors: Of `FACTORS`, each one number or one per flight: 1 is the vehicle as it is recorded. A controller between
                command and rotors goes on to believe in that one.

        Raises:
            AirworthyError: An unknown name, a shape that does not fit, a factor that is not above 0, or one that changes
                nothing of this vehicle.
        """
        p = self._parameters
        changed = torch.ones_like(self._rows)
        for name, factor in factors.items():
            if name not in FACTORS:
                raise unknown_name("parameter", name, FACTORS)
            if not isinstance(factor, Tensor):
                raise AirworthyError(f"{name} is {factor!r}; expected a tensor: a factor of one number, or one per flight.")
            if factor.shape not in ((), (self.env_count,)):
                raise AirworthyError(f"{name} is of shape {tuple(factor.shape)}; expected one number, or ({self.env_count},).")
            if not bool((factor.detach() > 0.0).all() and torch.isfinite(factor.detach()).all()):
                raise AirworthyError(f"{name} is no factor above 0 everywhere; 1 is the vehicle as it is recorded.")
            found = False
            if isinstance(self._equations.shape.form, JointedForm):
                raise AirworthyError(f"A factor of {name} is not there for vehicles with joints: leave `parameters` out.")
            for field, power in FACTORS[name].items():
                rows = [p.place[r] for r in range(*p.layout.rows(field).indices(p.layout.size)) if r in p.place]
                if rows and bool((self._rows[rows] != 0.0).any()):
                    changed[rows] = changed[rows] * factor.to(self.dtype) ** power
                    found = True
            if not found:
                raise AirworthyError(f"A factor of {name} changes nothing: these vehicles have none of it; leave it out.")
        return self._with_exact_rotors(self._rows * changed, factors.get("lag"))

    def _with_exact_rotors(self, rows: Tensor, lag: Tensor | None) -> Tensor:
        """Rotors that are advanced exactly hold what is left of their lag after a step, exp(-t / tau), and half of one."""
        p = self._parameters
        form = self._equations.shape.form
        if lag is None or isinstance(form, JointedForm) or not form.exact:
            return rows
        rows = rows.clone()
        for field in (f"rotor_{way}_keep{half}" for way in ("rise", "fall") for half in ("", "_half")):
            mine = [p.place[r] for r in range(*p.layout.rows(field).indices(p.layout.size)) if r in p.place]
            # A rotor that follows at once keeps nothing, and 0 ** (1 / lag) has no slope.
            held = self._rows[mine]
            rows[mine] = torch.where(held > 0.0, held.clamp(min=1e-30) ** (1.0 / lag.to(self.dtype)), held)
        return rows

    def prepare(self) -> None:
        """Build the kernel, where no step has: the first takes no longer than others then."""
        if self.dtype == torch.float32:
            self._kernel(False)

    # ---- what `_Step` calls ------------------------------------------------------------------------------------------

    def _kernel(self, by_parameters: bool) -> DerivedStep:
        if by_parameters not in self._derived:
            self._derived[by_parameters] = DerivedStep(self._equations, self.env_count, by_parameters, self._threads)
        return self._derived[by_parameters]

    def _forward(self, state: Tensor, action: Tensor, rows: Tensor, by_parameters: bool) -> tuple[Tensor, ...]:
        if self.dtype == torch.float64:
            found = self._twin.forward(state.numpy(), action.numpy().T, rows.numpy())
            after, seen, flags = (torch.from_numpy(x) for x in found)
            return after, seen, flags[0].clone(), flags
        kernel = self._kernel(by_parameters)
        _put(kernel, {"state": state, "actions": action.T, "parameters": rows})
        kernel.forward()
        whole = torch.from_numpy(kernel.arrays["after"]).clone()
        flags = torch.from_numpy(kernel.arrays["flags"]).clone()
        return whole[: self.state_count], whole[self.state_count :], flags[0].clone(), flags

    def _backward(
        self, held: tuple[Tensor, ...], seeds: tuple[Tensor, ...], by_parameters: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        state, action, rows, sound = held
        whole = torch.cat([seeds[0], seeds[1], seeds[2][None]])
        if self.dtype == torch.float64:
            a, b, c, d, e = (x.numpy() for x in (state, action.T, rows, whole, sound))
            by_state, by_action, by_rows = (torch.from_numpy(x) for x in self._twin.backward(a, b, c, d, e, self.keep))
            return by_state, by_action.T, by_rows
        kernel = self._kernel(by_parameters)
        _put(kernel, {"state": state, "actions": action.T, "parameters": rows, "seeds": whole})
        kernel.arrays["flags"][FLAGS.index("sound")] = sound.numpy()
        kernel.backward(self.keep)
        slopes, ends = torch.from_numpy(kernel.arrays["slopes"]).clone(), (self.state_count, self.action_count)
        by_state, by_action = slopes[: ends[0]], slopes[ends[0] : sum(ends)]
        return by_state, by_action.T, slopes[sum(ends) :] if by_parameters else None


class _Step(torch.autograd.Function):
    """A step as a node of torch's graph: it keeps state, action and parameters, and flies the step once more backwards."""

    @staticmethod
    def forward(ctx: Any, sim: DifferentiableSimulator, state: Tensor, action: Tensor, rows: Tensor) -> tuple[Tensor, ...]:
        after, seen, cost, flags = sim._forward(state, action, rows, ctx.needs_input_grad[3])
        ctx.sim = sim
        ctx.save_for_backward(state, action, rows, flags[FLAGS.index("sound")].clone())
        ctx.mark_non_differentiable(flags)
        return after, seen, cost, flags

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *seeds: Tensor) -> tuple[Tensor | None, ...]:
        return (None, *ctx.sim._backward(ctx.saved_tensors, seeds, ctx.needs_input_grad[3]))


def _put(kernel: DerivedStep, given: Mapping[str, Tensor]) -> None:
    for name, tensor in given.items():
        # One copy into the kernel's memory, whatever strides the tensor has.
        torch.from_numpy(kernel.arrays[name]).copy_(tensor)


def _fleet(vehicles: Vehicle | str | Sequence[Vehicle | str], count: int) -> list[Vehicle]:
    if isinstance(vehicles, Vehicle | str | Path):
        return [vehicle_given(vehicles, "vehicles")] * count
    if not isinstance(vehicles, Sequence):
        raise AirworthyError(f"vehicles is {shown(vehicles)}; expected one vehicle for all flights, or a list of one for each.")
    if len(vehicles) != count:
        raise AirworthyError(f"{len(vehicles)} vehicles were given for {count} flights; expected one, or one for each.")
    known: dict[str, Vehicle] = {}
    fleet = []
    for k, item in enumerate(vehicles):
        found = known[item] if isinstance(item, str) and item in known else vehicle_given(item, f"vehicles[{k}]")
        if isinstance(item, str):
            known[item] = found
        fleet.append(found)
    return fleet
