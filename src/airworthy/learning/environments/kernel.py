"""The kernel of one policy step, traced for one task and one form of vehicles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

from airworthy.core.arrays import Vector
from airworthy.core.errors import AirworthyError
from airworthy.core.layout import Layout
from airworthy.core.native_kernel import native_kernel, shared_source
from airworthy.core.ops import maximum, minimum, where
from airworthy.core.random import Stream
from airworthy.core.tracing import Graph, TracedBlock, needed_inputs, trace
from airworthy.core.vectors import choose, dot, matrix_columns
from airworthy.dynamics.rigid import delay_line_source
from airworthy.learning.environments.conditions import Curriculum, FlightConditions
from airworthy.learning.environments.controller import Controller
from airworthy.learning.environments.drawn import drawn_rows
from airworthy.learning.environments.jointed import JointedForm
from airworthy.learning.environments.rooms import PLACE, WALL
from airworthy.learning.environments.soundness import check_observation
from airworthy.learning.environments.task import Judgement, LearningTask
from airworthy.learning.environments.traits import TaskTraits, traits_of
from airworthy.learning.gradient.dynamics import Form
from airworthy.simulation.config import Randomization
from airworthy.simulation.posterior import ATTEMPTS, DRAW_UNIFORMS, Posterior

__all__ = [
    "KERNEL_ARGUMENTS",
    "RESULTS",
    "START_DRAWS",
    "STREAM",
    "EnvironmentShape",
    "environment_kernel",
    "environment_parts",
    "parameters_of",
]

RESULTS = (
    "reward", "return", "terminated", "truncated", "success", "diverged", "length", "last_return", "finished", "succeeded",
)  # fmt: skip
"""Rows of what a step tells of each environment; named terms of the reward follow. `finished` and `succeeded` count flights
of tasks with a curriculum of the batch."""
START_DRAWS = 32
"""Uniform numbers of a new flight: 16 of its start, 16 of its vehicle."""
STREAM = Stream.RESET
"""Of those, at step 0 with index 0 to 7, and of the noise of observations, at each step with index 8 to 11; of what a flight
remembers from its start, at step 0 with index 12 to 15; of its delays, guidance and first age, with index 16; see below."""
MEMORY_BLOCK, CONDITIONS_BLOCK, PLACE_BLOCK, PUSH_BLOCK, JOINT_BLOCK = 12, 16, 17, 21, 23
"""First index of those draws, of a flight's place in rooms, at step 0, of what pushes it, at each step of physics, and of the
joints at its start, at step 0."""
POSTERIOR_BLOCK = 32
"""First index of draws of identified vehicles, at step 0: four for each attempt."""
JOINT_DRAWS = 32
"""Uniform numbers of a new flight's joints, behind the 16 of its start."""


_controller = cache(Controller)  # its layout is the same for all that ask


@dataclass(frozen=True)
class EnvironmentShape:
    """What is known when a kernel is built."""

    task: LearningTask
    form: Form | JointedForm
    spread: Randomization
    least_thrust_to_weight: float
    conditions: FlightConditions
    leaning: bool
    """Whether hover is not level; see `controller.leans`."""
    allocation: str
    """See `controller.allocation_of`."""
    irregular: bool
    """See `controller.has_irregular_rotors`."""
    body: tuple[float, ...] = ()
    """Of the vehicle's box, where the task has rooms: middle from the centre of mass 3, half edges 3 [m]."""
    posterior: Posterior | None = None
    """Of the vehicle, where flights draw what its identification left open."""

    @property
    def flight(self) -> int:
        """Numbers of a flight beside state and memory: age and level; in rooms contact, place, and force and moment, too."""
        return 2 if self.traits.rooms is None else 3 + PLACE + 6

    @property
    def traits(self) -> TaskTraits:
        """What the task has besides its functions."""
        return traits_of(self.task)

    @property
    def controller(self) -> Controller:
        """Between command and rotors."""
        return _controller(self.traits, self.form.rotor_count, self.leaning, self.allocation, self.irregular)

    @property
    def state(self) -> int:
        """Rows of a state."""
        return self.form.state

    @property
    def slots(self) -> int:
        """Commands on their way to rotors; 0: they are commanded at once."""
        return 0 if isinstance(self.form, JointedForm) else self.form.slots

    @property
    def start_draws(self) -> int:
        """Uniform numbers that `start` of the task is given."""
        return 16 + (JOINT_DRAWS if isinstance(self.form, JointedForm) else 0)

    @property
    def actions(self) -> int:
        """Numbers of an action."""
        return self.traits.actions or self.form.rotor_count

    @property
    def substeps(self) -> int:
        """Steps of physics and controller per policy step."""
        return self.form.substeps * self.traits.physics_steps

    @property
    def dt(self) -> float:
        """Of physics [s]."""
        return 1.0 / (self.task.rate * self.substeps)

    def physics(self, state: Vector, command: Vector, p: Any) -> Vector:
        """Take one step of physics.

        Args:
            state: Before it.
            command: Commanded rotor states.
            p: Parameters.
        """
        return self.form.step(state, command, p, self.dt, self.traits.wrench(state, p))

    def flown(self, state: Vector, action: Vector, p: Any, most: int | None = None) -> Vector:
        """Return the state after a policy step: what the launch does in parts, as one.

        Args:
            state: Before it.
            action: That reaches the vehicle, within [-1, 1].
            p: Parameters.
            most: Steps of physics that are taken at most; None: all.
        """
        wanted = self.task.command(action, p)
        for _ in range(self.substeps if most is None else min(most, self.substeps)):
            command = wanted if self.traits.by_rotor else self.controller.commanded(state, wanted, p)
            state = self.physics(state, command, p)
        return state

    def judged(self, before: Vector, after: Vector, action: Vector, p: Any) -> Judgement:
        """Return what the task says of a step, and the ground.

        Args:
            before: State before it.
            after: State after it.
            action: That was taken.
            p: Parameters, with the past action and the memory.
        """
        height = self.conditions.ground
        if height is None:
            return self.task.judge(before, after, action, p.past, p)
        # Lowest of the points that the body stands on, as the simulator's ground sees it.
        up = tuple(column[2] for column in matrix_columns(after[6:10]))
        lowest = dot(up, p.contact_point[0])
        for point in p.contact_point[1:]:
            lowest = minimum(lowest, dot(up, point))
        p.touched = where(after[2] + lowest - p.contact_radius < height, 1.0, 0.0)
        found = self.task.judge(before, after, action, p.past, p)
        ended, success = maximum(found.terminated, p.touched), where(p.touched > 0.5, 0.0, found.success)
        return replace(found, terminated=ended, success=success)


@dataclass(frozen=True)
class FlightRows:
    """Where in the rows of `state` what stands, in this order."""

    past: int
    """Of the last action."""
    memory: int
    """Of what the task remembers."""
    level: int
    """Of the curriculum, if there is one."""
    delays: int
    """Of observation and action, if there are any."""
    actions: int
    """That are still on their way, newest first."""
    seen: int
    """Observations, newest first."""
    queue: int
    """Commands on their way to the rotors, oldest first, if the vehicle has a dead time."""
    place: int
    """Of the flight in its room, if there are rooms."""
    count: int


class EnvironmentParameters:
    """Which parameter rows a task and its vehicles read, and in which order they are kept."""

    def __init__(self, shape: EnvironmentShape):
        self.shape = shape
        self.layout: Layout = shape.form.layout
        n, size, wide = shape.form.rotor_count, self.layout.size, shape.actions
        self.extra = {"hover": slice(size, size + n), "hover_action": slice(size + n, size + n + wide)}
        self.weight_row = size + n + wide
        traits = shape.traits
        graph = Graph()
        rows: dict[int, int] = {}

        def read(row: int) -> Any:
            value = graph.input(f"p{row}")
            rows[value.index] = row
            return value

        def some(name: str, count: int) -> Vector:
            return tuple(graph.input(f"{name}{i}") for i in range(count))

        s, a = some("s", shape.state), some("a", wide)
        p = self.record(read, some("b", wide), (*some("h", shape.flight),))
        start = shape.task.start(some("u", shape.start_draws), p)
        begun = traits.begin(some("v", 16), s, p)
        self.memory = len(begun)
        p.memory = some("m", self.memory)
        # Two steps read whatever all of them do.
        after = shape.flown(s, a, p, most=2)
        judged = shape.judged(s, after, a, p)
        kept = traits.remember(s, after, a, p)
        if len(kept) != self.memory:
            raise AirworthyError(f"{shape.task.name} remembers {self.memory} numbers at first, then {len(kept)}.")
        seen = shape.task.observe(after, some("n", 16), p)
        check_observation(shape.task.name, len(seen))
        judging = traits.observe_critic(after, p)
        self.terms, self.observed, self.critic_observed = tuple(judged.terms), len(seen), len(judging)
        ends = (judged.terminated, judged.success)
        results = (*after, *judged.terms.values(), *ends, *begun, *kept, *seen, *judging, *start, *traits.goal(p))
        needed = {rows[i] for i in needed_inputs(graph, results) if i in rows}
        # And what drawing asks for besides; every action of hover, with which flights begin.
        needed |= shape.form.needed | set(range(size + n, size + n + wide))
        self.used = sorted(needed)
        self.place = {row: k for k, row in enumerate(self.used)}
        self.rows = self._rows()

    def _rows(self) -> FlightRows:
        s, c = self.shape, self.shape.conditions
        sizes = {
            "past": s.actions,
            "memory": self.memory,
            "level": int(s.traits.curriculum is not None),
            "delays": 2 * int(c.observation_delay[1] > 0 or c.action_delay[1] > 0),
            "actions": c.action_delay[1] * s.actions,
            "seen": (c.observation_delay[1] + 1) * self.observed if c.observation_delay[1] > 0 else 0,
            "queue": s.slots * s.form.rotor_count,
            "place": PLACE if s.traits.rooms is not None else 0,
        }
        at, first = s.state, {}
        for name, size in sizes.items():
            first[name] = at
            at += size
        return FlightRows(**first, count=at)

    def record(
        self, read: Callable[[int], Any], past: Vector = (), flight: Vector = (0.0, 0.0), memory: Vector = ()
    ) -> SimpleNamespace:
        """Return the record that task and vehicles read.

        Args:
            read: Called with a row.
            past: Action before.
            flight: Age [policy steps] and level of the curriculum; of tasks with rooms whether it touched something, its place,
                force (body) [N] and moment (body) [N m] that push it, too.
            memory: Of the task.
        """
        record = self.shape.form.record(read)
        record.hover = tuple(read(row) for row in range(self.extra["hover"].start, self.extra["hover"].stop))
        record.nominal_weight = read(self.weight_row)
        if not self.shape.traits.by_rotor:
            record.control = self.shape.controller.record(read, self.layout.offsets["control_mass"])
        record.past, (record.age, level, *around), record.memory = past, flight, memory
        record.touched = around[0] if around else 0.0
        # Without rooms, and where a policy's functions are written down, a flight has neither a place nor what pushes it.
        record.place = tuple(around[1 : 1 + PLACE])
        record.push = tuple(around[1 + PLACE :]) or (0.0,) * 6
        curriculum = self.shape.traits.curriculum
        # Without a curriculum flights are as hard as they come.
        record.progress = 1.0
        if curriculum is not None:
            record.progress = (level - curriculum.least) * (1.0 / (curriculum.most - curriculum.least))
        return record

    def of(self, values: Any, past: Vector = (), flight: Vector = (0.0, 0.0), memory: Vector = ()) -> SimpleNamespace:
        """Return the record over values.

        Args:
            values: In the order of `used`.
            past: As of `record`, and so the rest.
            flight: Age and level.
            memory: Of the task.
        """
        split = self.layout.offsets.get("control_mass", self.layout.size)

        def read(row: int) -> Any:
            # No result depends on rows that are not used; laws combine their comparisons, which of numbers are not traced.
            return values[self.place[row]] if row in self.place else values[0] if split <= row < self.layout.size else 0.0

        return self.record(read, past, flight, memory)

    def started(self, uniforms: Vector, guide: Any, p: Any) -> Vector:
        """Return the state of a new flight: the task's, or the goal.

        Args:
            uniforms: `start_draws` numbers of the task's start.
            guide: A uniform number; below the share of guidance the flight begins at the goal.
            p: Parameters.
        """
        state, share = self.shape.task.start(uniforms, p), self.shape.conditions.guidance
        return choose(guide < share, self.shape.traits.goal(p), state) if share else state

    def drawn_together(self, chance: Vector, uniforms: Vector, nominal: Vector) -> tuple[Vector, Any]:
        """Return the rows of a new flight's vehicle, drawn from what its identification left open, and 1 if it is one, else 0.

        Args:
            chance: `DRAW_UNIFORMS` uniform numbers.
            uniforms: Of what is drawn besides, as of `drawn`.
            nominal: Rows of the record, in the order of `used`.
        """
        s = self.shape
        assert s.posterior is not None
        rows: Mapping[int, Any] = dict(zip(self.used, nominal, strict=True))
        values = s.posterior.values(chance)
        drawn: Mapping[int, Any] = s.posterior.rows(values, rows, self.layout, s.dt)
        if s.spread.shares:
            # Thrust over mass is what a log tells best: nothing raises it.
            drawn = drawn_rows(drawn, uniforms, self.layout, s.form.rotor_count, s.spread, 0.0)
        return tuple(drawn[row] for row in self.used), s.posterior.sound(values)

    def drawn(self, uniforms: Vector, nominal: Vector) -> Vector:
        """Return the rows of a new flight's vehicle, in the order of `used`."""
        rows: Mapping[int, Any] = dict(zip(self.used, nominal, strict=True))
        s = self.shape
        if isinstance(s.form, JointedForm):
            return nominal
        drawn = drawn_rows(rows, uniforms, self.layout, s.form.rotor_count, s.spread, s.least_thrust_to_weight)
        return tuple(drawn[row] for row in self.used)


@cache
def parameters_of(shape: EnvironmentShape) -> EnvironmentParameters:
    """Return the parameters of a shape, found by tracing it once."""
    return EnvironmentParameters(shape)


@cache
def environment_kernel(shape: EnvironmentShape) -> Any:
    """Return the Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel(f"environment_{shape.task.name}", environment_source(shape), environment_arguments(shape))


def environment_arguments(shape: EnvironmentShape) -> str:
    """Return the kernel's list of arguments."""
    if shape.traits.rooms is None:
        return KERNEL_ARGUMENTS
    # Behind the arrays of all tasks, before the first number.
    return KERNEL_ARGUMENTS.replace("    env_count:", f"{ROOM_ARGUMENT}    env_count:")


def environment_source(shape: EnvironmentShape) -> str:
    """Return the kernel's native text."""
    numbers, text = environment_parts(shape)
    enumerators = ", ".join(f"{name} = {value}" for name, value in numbers.items())
    return "\n".join([shared_source("prelude.h"), f"enum {{ {enumerators} }};", shared_source("random.h"), text])


def environment_parts(shape: EnvironmentShape) -> tuple[dict[str, int], str]:
    """Return enumerators of a step and its native text, which other kernels may take into theirs, behind random.h."""
    parameters = parameters_of(shape)
    numbers = {
        "STATE": shape.state,
        "ACTIONS": shape.actions,
        "OBSERVED": parameters.observed,
        "CRITIC_OBSERVED": parameters.critic_observed,
        "PARAMETERS": len(parameters.used),
        "TERMS": len(parameters.terms),
        "MEMORY": parameters.memory,
        "ROTORS": shape.form.rotor_count,
        "SUBSTEPS": shape.substeps,
        "HOVER_ACTION": parameters.place[parameters.extra["hover_action"].start],
        "NOISE": int(shape.task.noise),
        "STREAM": int(STREAM),
        "MEMORY_BLOCK": MEMORY_BLOCK,
        "CONDITIONS_BLOCK": CONDITIONS_BLOCK,
        "JOINT_BLOCK": JOINT_BLOCK,
        "START_DRAWS": shape.start_draws,
        "WANTED": _wanted(parameters),
        "FLIGHT": shape.flight,
        **_room_numbers(shape),
        **_delay_numbers(parameters),
        **({"POSTERIOR_BLOCK": POSTERIOR_BLOCK, "ATTEMPTS": ATTEMPTS} if shape.posterior else {}),
        "BOUNDED": int(shape.controller.bounded),
        **_flight_numbers(parameters),
        **{f"R_{name.upper()}": k for k, name in enumerate((*RESULTS, "terms"))},
        **{f"ROW_{name.upper()}": value for name, value in vars(parameters.rows).items()},
    }
    text = files("airworthy.learning.environments").joinpath("native", "environment_step.h").read_text()
    level = "" if shape.traits.by_rotor else "#define CONTROLLED\n"
    level += "#define PRIVILEGED\n" if shape.traits.privileged else ""
    level += "#define DELAYED_ROTORS\n" if shape.slots else ""
    level += "#define POSTERIOR\n" if shape.posterior else ""
    text = text.replace("DELAY_LINE", delay_line_source() if shape.slots else "")
    rooms = _rooms_text(shape)
    blocks = "".join(b.source for b in _blocks(parameters))
    return numbers, level + rooms[0] + text.replace("TRACED_BLOCKS", blocks).replace("ROOMS_TEXT", rooms[1])


def _rooms_text(shape: EnvironmentShape) -> tuple[str, str]:
    """Return what stands before the text of a step, and in it, for tasks with rooms."""
    traits = shape.traits
    if traits.rooms is None:
        return "", ""
    share, *most = traits.pushes
    reach = sum((abs(c) + h) ** 2 for c, h in zip(shape.body[:3], shape.body[3:], strict=True))
    lines = [
        "#define ROOMS",
        f"#define WALL {WALL!r}f",
        f"#define BODY_REACH_SQUARE {reach!r}f",
        f"#define PUSH_SHARE {share!r}f",
    ]
    arrays = {"BODY_MIDDLE": shape.body[:3], "BODY_HALF": shape.body[3:], "PUSH_MOST": most}
    # Static: a local struct sees no other variables of the function around it.
    tables = [f"static constexpr float {n}[] = {{{', '.join(f'{x!r}f' for x in v)}}};" for n, v in arrays.items()]
    text = files("airworthy.learning.environments").joinpath("native", "rooms.h").read_text()
    return "\n".join([*lines, ""]), "\n".join([*tables, text])


def _room_numbers(shape: EnvironmentShape) -> dict[str, int]:
    form = shape.traits.rooms
    if form is None:
        return {}
    counts = {"PLACE": PLACE, "BOXES": form.boxes, "PANELS": form.panels.count, "PLACE_BLOCK": PLACE_BLOCK}
    # A push lasts a step of the controller, into however many steps of the equations that is divided.
    pushes = {"PUSHED": int(shape.traits.pushes[0] > 0.0), "PUSH_EVERY": shape.form.substeps}
    return {**counts, "PUSH_BLOCK": PUSH_BLOCK, **pushes}


def _delay_numbers(parameters: EnvironmentParameters) -> dict[str, int]:
    """Return the enumerators of a dead time of commands."""
    if not parameters.shape.slots:
        return {}
    row = parameters.layout.offsets["command_delay"]
    return {"DELAY_SLOTS": parameters.shape.slots, "COMMAND_DELAY": parameters.place[row]}


def _flight_numbers(parameters: EnvironmentParameters) -> dict[str, int]:
    """Return the enumerators of conditions and curriculum."""
    c, traits = parameters.shape.conditions, parameters.shape.traits
    curriculum = traits.curriculum or Curriculum()
    return {
        "LATE_SEEN": c.observation_delay[1],
        "LATE_SEEN_LEAST": c.observation_delay[0],
        "LATE_ACTIONS": c.action_delay[1],
        "LATE_ACTIONS_LEAST": c.action_delay[0],
        "DELAYED": int(c.observation_delay[1] > 0 or c.action_delay[1] > 0),
        "STAGGERED": int(c.staggered),
        "DRAWN": int(c.drawn),
        "CURRICULUM": int(traits.curriculum is not None),
        "CURRICULUM_BATCH": int(traits.curriculum is not None and curriculum.each == "batch"),
        "CURRICULUM_EACH": int(traits.curriculum is not None and curriculum.each == "environment"),
        **{f"LEVEL_{name.upper()}": getattr(curriculum, name) for name in ("least", "most", "rise", "fall")},
    }


def _blocks(parameters: EnvironmentParameters) -> list[TracedBlock]:
    shape, traits, controller = parameters.shape, parameters.shape.traits, parameters.shape.controller
    size = {"p": len(parameters.used), "b": shape.actions, "h": shape.flight, "m": parameters.memory}
    state, task = shape.state, shape.task

    def block(name: str, function: Callable[..., Any], inputs: dict[str, int | None], count: int) -> TracedBlock:
        def called(**given: Any) -> Any:
            # Parameters are inputs, not constants: one kernel serves every vehicle of a form (specification, 6.1).
            flight = [given.pop(x) for x in ("p", "b", "h", "m")]
            return function(*given.values(), parameters.of(*flight))

        return trace(called, name, {**inputs, **size}, {"out": count})

    def judged(s: Vector, after: Vector, a: Vector, p: Any) -> list[Any]:
        found = shape.judged(s, after, a, p)
        return [*found.terms.values(), found.terminated, found.success, *traits.remember(s, after, a, p)]

    wanted = _wanted(parameters)
    blocks = [
        block("command", task.command, {"a": shape.actions}, wanted),
        block("physics", shape.physics, {"s": state, "c": wanted if traits.by_rotor else shape.form.rotor_count}, state),
        block(
            "judge",
            judged,
            {"s": state, "after": state, "a": shape.actions},
            len(parameters.terms) + 2 + parameters.memory,
        ),
        block("observe", task.observe, {"s": state, "noises": 16}, parameters.observed),
        _drawing(parameters),
        block("start", parameters.started, {"u": shape.start_draws, "guide": None}, state),
        block("begin", traits.begin, {"u": 16, "s": state}, parameters.memory),
    ]
    if traits.rooms is not None:
        blocks.append(trace(traits.rooms.place, "place", {"uniforms": 16, "level": None}, {"out": PLACE}))
    if traits.privileged:
        blocks.append(block("observe_critic", traits.observe_critic, {"s": state}, parameters.critic_observed))
    if not traits.by_rotor:
        n = shape.form.rotor_count
        blocks += [
            block("wrench", controller.wrench, {"s": state, "wanted": wanted}, 6),
            block("exact", lambda w, p: (*controller.exact(w, p)[0], controller.exact(w, p)[1]), {"w": 6}, n + 1),
            block("within", controller.within, {"w": 6}, n),
            block("rotors", controller.rotors, {"s": state, "thrusts": n}, n),
        ]
    return blocks


def _drawing(parameters: EnvironmentParameters) -> TracedBlock:
    """Return the block that draws vehicles."""
    count = len(parameters.used)
    if parameters.shape.posterior is None:
        return trace(parameters.drawn, "draw_vehicle", {"uniforms": 16, "nominal": count}, {"out": count})
    inputs: dict[str, int | None] = {"chance": DRAW_UNIFORMS, "uniforms": 16, "nominal": count}
    return trace(parameters.drawn_together, "draw_posterior", inputs, {"out": count, "sound": None})


def _wanted(parameters: EnvironmentParameters) -> int:
    """Return how many numbers a command has."""
    graph = Graph()
    most = max(len(parameters.used), parameters.memory, parameters.shape.actions, parameters.shape.flight)
    inputs = tuple(graph.input(f"x{k}") for k in range(most))
    p = parameters.of(inputs, inputs, inputs[: parameters.shape.flight], inputs[: parameters.memory])
    return len(parameters.shape.task.command(inputs[: parameters.shape.actions], p))


KERNEL_ARGUMENTS = """
    parameters: float32[]         # (used rows, env): of the present flight's vehicle
    nominal: float32[]            # alike: from which vehicles are drawn
    state: float32[]              # (`FlightRows.count`, env): state, then what else a flight is made of
    keys: uint32[]                # (5, env): seed low and high, flight, episode; age in policy steps
    actions: float32[]            # (env, actions)
    mask: int32[]                 # (env,): whose flight begins anew, where nothing is stepped
    result: float32[]             # (len(RESULTS) + terms, env)
    observation: float32[]        # (env, observed)
    final_observation: float32[]  # (env, observed): written where a flight ended
    critic_observation: float32[]        # (env, critic observed), of tasks whose critics see something else
    final_critic_observation: float32[]  # alike: written where a flight ended
    env_count: int
    stepping: int                 # 1: a policy step; 0: new flights where `mask` says
    episode_steps: int
"""
ROOM_ARGUMENT = "    pool: float32[]               # (room, box, 15): of tasks with rooms\n"
