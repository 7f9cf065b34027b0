"""Any task learnt by reward: what its programs compute, the folder, the pilot, stopping, commands, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import airworthy as aw
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import json_text
from airworthy.core.ops import where
from airworthy.learning.environments import Judgement, VectorTask, learning_task
from airworthy.learning.environments.tasks import HoverTask
from airworthy.learning.gradient import GradientOptions, GradientTraining
from airworthy.learning.gradient.hover import hover_observation
from airworthy.learning.gradient.trainer import network_action
from airworthy.learning.native_ppo.config import MotorCommandConfig
from airworthy.learning.native_ppo.training import PpoTraining
from airworthy.learning.off_policy.training import OffPolicyTrainingOptions
from airworthy.learning.task_training import run as run_module
from airworthy.learning.task_training.config import TaskConfig
from airworthy.learning.task_training.evaluation import PathController, TaskProtocol, fly_task, task_figures
from airworthy.learning.task_training.options import TaskTrainingOptions, task_settings
from airworthy.learning.task_training.path_options import PathGradientOptions
from airworthy.learning.task_training.policy import FlownTask, NetworkForm, contract_of_task, without_noise
from airworthy.learning.task_training.recovery import RecoveryGradientOptions
from airworthy.learning.task_training.run import train_task
from airworthy.learning.task_training.training import TaskTraining
from airworthy.learning.timed_training import Trained
from airworthy.pilots import TaskPolicy, policy_word, read_task_policy, task_pilot
from airworthy.pilots.pilot import observe
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.trajectories import Trajectory
from airworthy.vehicles import vehicle

TASKS = (
    "position_setpoint", "position_setpoint_velocity", "position_setpoint_acceleration", "px4_motor_command", "l2f_position",
    "recovery", "track", "motor_track", "motor_command", "hover",
)  # fmt: skip
TASK = "position_setpoint_velocity"
TINY: dict[str, Any] = {"env_count": 64, "steps": 4 * 512, "rollout": 8, "hidden": (16, 8), "minibatches": 2}
QUICK = TaskProtocol(flights=8, mpc_flights=0)


def tiny(seed: int = 3, **chosen: Any) -> TaskTrainingOptions:
    """Options of a training of a few milliseconds; flights of half a second."""
    return TaskTrainingOptions.usual(TASK, seed, **{**TINY, "options": {"episode_steps": 50}, **chosen})


def still(position: tuple[float, float, float] = (0.0, 0.0, 0.0), yaw: float = 0.0) -> Trajectory:
    """Return a reference that stands still."""
    at = np.array(position).reshape(1, 3, 1)
    return Trajectory([0.0, 100.0], at, [0.0, 100.0], np.full((1, 1), yaw))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A small training, finished and judged; its folder is read only."""
    return train_task(tiny(), tmp_path_factory.mktemp("task") / "run", protocol=QUICK, command="airworthy train ...")


# ---- programs ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS)
def test_programs_compute_what_the_task_does(name: str) -> None:
    """Without noise, over states of real flights, with memory and path: to float32 of the task's own NumPy twin."""
    task = without_noise(learning_task(name))
    flights = VectorTask(task, 32, seed=5)
    rng = np.random.default_rng(2)
    for _ in range(7):
        flights.step(rng.uniform(-1.0, 1.0, (32, flights.action_count)))
    flown = FlownTask(flights)
    state, memory, age = flights.state.astype(float), flights.memory.astype(float), flights.age.astype(float)
    past, action = rng.uniform(-1.0, 1.0, (2, flights.action_count, 32))
    column = flights.nominal.astype(float)[:, None] * np.ones(32)
    p = flights.parameters_of_flight(column, tuple(past), (age, 0.0), tuple(memory))
    points = np.zeros((0, 32))
    if flown.path:
        points = np.concatenate([task.reference(age + t * task.rate, p) for t in flown.path])
        memory = np.zeros((0, 32))
    given = {"state": state, "before": state, "action": action, "past": past, "memory": memory, "age": age[None]}
    for program, wanted in (
        (flown.observe, task.observe(tuple(state), (0.0,) * 16, p)),
        (flown.command, task.command(tuple(action), p)),
    ):
        expected = np.array([np.broadcast_to(x, 32) for x in wanted], float)
        np.testing.assert_allclose(program.run(**given, points=points), expected, rtol=2e-6, atol=2e-6)
    seen = flown.observe.run(**given, points=points)
    if name != "position_setpoint_velocity" and name != "position_setpoint_acceleration":  # which see the last action
        np.testing.assert_allclose(seen.T, flights.observation, rtol=1e-5, atol=1e-5)


# ---- training ----------------------------------------------------------------------------------------------------------------


def test_a_training_leaves_policy_figures_log_and_page(done: Trained) -> None:
    found = json.loads((done.folder / "summary.json").read_text())
    assert (found["task"], found["trainer"], found["level"], found["vehicle"]) == (TASK, "native_ppo", "velocity", "lmf2")
    assert found["env_steps"] == 4 * 512
    assert {"training_wall_s", "training_cpu_s", "kept_percent", "success_percent", "median_error_m"} <= set(found)
    assert sum(found["terms"].values()) * 50 == pytest.approx(found["mean_return"], rel=1e-6)
    rows = [json.loads(line) for line in (done.folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["env_steps"] for row in rows] == [512, 1024, 1536, 2048]
    assert all(sum(row["terms"].values()) == pytest.approx(row["reward"], abs=1e-4) for row in rows)
    page = done.report.read_text()
    for word in ("Reward per step", "position_steady", "geometric controller", "airworthy tasks show"):
        assert word in page
    contract = read_task_policy(done.folder).contract
    assert (contract.task, contract.gains, contract.rate, contract.hidden) == (TASK, "lmf2", 100.0, (16, 8))
    assert contract.training["iterations"] == 4
    assert policy_word(done.folder) == f"policy:{done.folder}"


def test_a_policy_is_judged_with_the_noise_of_its_task_and_without(done: Trained) -> None:
    """Noise is of flight and decision alone: fewer flights are the first of more, and what a law sees is as the task says."""
    found, page = done.figures, done.report.read_text()
    assert found["without_noise"]["flights"] == found["flights"]
    assert found["without_noise"]["mean_return"] != found["mean_return"]
    assert "learnt policy, without noise of observations" in page
    policy, task = read_task_policy(done.folder), learning_task(TASK, episode_steps=20)
    few, more = (fly_task(task, vehicle("lmf2"), policy, QUICK, count) for count in (3, 8))
    np.testing.assert_array_equal(few.returns, more.returns[:3])

    seen: list[Any] = []

    class Watching:
        def action(self, x: Any) -> Any:
            seen.append(x)
            return np.zeros((len(x), 4))

    for noise in (True, False):
        fly_task(task, vehicle("lmf2"), Watching(), TaskProtocol(flights=512), 512, noise=noise)
    # The first observation of both is of the same states.
    off = seen[0] - seen[20]
    np.testing.assert_allclose(off.std(axis=0)[[0, 1, 2, 7, 8, 9, 10, 11, 12]], 3 * [0.03] + 6 * [0.02], rtol=0.15)
    np.testing.assert_array_equal(off[:, 13:], 0.0)


def test_a_killed_training_goes_on_to_the_same_bits(done: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = TaskTraining.step

    def dies(self: TaskTraining) -> float:
        if self.iteration == 2:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(run_module, "_CHECKPOINT_S", 0.0)
    monkeypatch.setattr(TaskTraining, "step", dies)
    with pytest.raises(KeyboardInterrupt):
        train_task(tiny(), tmp_path, protocol=QUICK)
    assert read_task_policy(tmp_path).contract.training["iterations"] == 2  # flies as it is
    monkeypatch.setattr(TaskTraining, "step", step)
    whole = train_task(tiny(), tmp_path, protocol=QUICK)
    assert (whole.folder / "weights.safetensors").read_bytes() == (done.folder / "weights.safetensors").read_bytes()
    assert whole.figures["mean_return"] == done.figures["mean_return"]
    for other, match in (
        (tiny(clip=0.1), "clip was 0.2, not 0.1"),
        (tiny(options={"episode_steps": 60}), "option was episode_steps=50, not episode_steps=60"),
        (tiny(4), "seed was 3, not 4"),
    ):
        with pytest.raises(AirworthyError, match=match):
            train_task(other, tmp_path, protocol=QUICK)


_LOSING: dict[str, Callable[[], Any]] = {
    "task": lambda: TaskTrainingOptions.usual("motor_command", 3, **TINY).begin(None),
    "hover": lambda: GradientTraining(vehicle("tinyprop"), GradientOptions(env_count=16, window=20, hidden=16)),
    "motor_command": lambda: PpoTraining(vehicle("tinyprop"), MotorCommandConfig(env_count=64, steps=40_000).options(3)),
    "off_policy": lambda: OffPolicyTrainingOptions.usual("sac", "motor_command", 3, env_count=16).begin(None),
}


@pytest.mark.parametrize("kind", _LOSING)
def test_flights_that_were_lost_before_a_stop_count_on(kind: str) -> None:
    whole, after = _LOSING[kind](), _LOSING[kind]()
    for _ in range(400):
        whole.step()
        if whole.lost:
            break
    assert whole.lost > 0
    after.restore(whole.save())
    assert after.lost == whole.lost
    costs = [one.step() for one in (whole, after)]
    lost = [one.metrics(cost)["lost"] for one, cost in zip((whole, after), costs, strict=True)]
    assert lost[0] == lost[1] >= 1


@dataclass(frozen=True)
class Falling(HoverTask):
    """Every step is worth 1 until the flight falls too fast, which ends it; or, counted, as long as it did not before."""

    name: ClassVar[str] = "falling_in_a_test"
    episode_steps: int = 60
    counted: bool = False

    def judge(self, before: Any, after: Any, action: Any, past: Any, p: Any) -> Judgement:
        if self.counted:
            return Judgement({"one": where(before[5] < -3.0, 0.0, 1.0)}, 0.0 * after[0], 0.0 * after[0])
        return Judgement({"one": 1.0 + 0.0 * after[0]}, where(after[5] < -3.0, 1.0, 0.0), 0.0 * after[0])


def test_a_lost_flight_earns_nothing_any_more() -> None:
    """Its return is what it earned up to the step that lost it, and the mean of a term is over steps that were flown."""

    class Dropped:
        def action(self, seen: Any) -> Any:
            return np.full((len(seen), 4), -1.0)

    lost, kept = (
        fly_task(Falling(counted=counted), vehicle("tinyprop"), Dropped(), TaskProtocol(), 32, noise=False)
        for counted in (False, True)
    )
    assert kept.returns is not None
    assert lost.lost.sum() > 8
    assert not kept.lost.any()
    np.testing.assert_array_equal(lost.returns, kept.returns)
    assert 5.0 < kept.returns.min() < kept.returns.max() <= 60.0
    assert lost.terms == {"one": 1.0}


def test_settings_of_every_task_can_be_used() -> None:
    for name in TASKS:
        assert TaskTrainingOptions.usual(name).iterations > 10
    assert task_settings("somebodys_own")["steps"] == task_settings("any")["steps"]
    # The published number: 400 iterations of 4,096 actors and 32 steps.
    assert TaskTrainingOptions.usual("position_setpoint").steps == 52_400_000


def test_the_rate_falls_over_the_whole_training() -> None:
    """Steps of Adam with the same gradient: each is as long as what is left of the rate."""
    training = TaskTraining(None, tiny(steps=8 * 512))
    ppo = training.ppo
    assert ppo.options.decay_steps == 8 * 512
    moved = []
    for share in (0.0, 0.5, 0.99, 2.0):
        ppo.env_steps = int(share * 8 * 512)
        ppo._first[:], ppo._second[:], ppo._steps = 0.0, 0.0, 0
        before = ppo.parameters[:8].astype(float).copy()
        ppo._descend(np.full(len(ppo.parameters), 1e-3))
        moved.append(np.abs(ppo.parameters[:8] - before).mean())
    np.testing.assert_allclose(np.array(moved) / moved[0], [1.0, 0.5, 0.01, 0.01], rtol=2e-2)


# ---- flight ------------------------------------------------------------------------------------------------------------------


def random_policy(name: str, **options: Any) -> tuple[VectorTask, TaskPolicy]:
    """Environments of a task, and a policy of it with drawn weights."""
    flights = VectorTask(learning_task(name, **options), 16, seed=7919)
    contract = contract_of_task(flights, NetworkForm((8,), "elu", "clip"), {})
    rng = np.random.default_rng(3)
    sizes = list(zip(contract.widths[1:], contract.widths[:-1], strict=True))
    weights = [0.3 * rng.normal(size=shape) for size in sizes for shape in (size, size[:1])]
    return flights, TaskPolicy(contract, tuple(w.astype(np.float32) for w in weights))


@pytest.mark.parametrize("name", ["position_setpoint_velocity", "l2f_position", "position_setpoint"])
def test_the_pilot_decides_what_the_task_would(name: str) -> None:
    """With the reference at the origin, the same commands as the task's own twin in the evaluation's flights, to the bit."""
    flights, policy = random_policy(name, episode_steps=20, **({"disturbance": 0.0} if name == "l2f_position" else {}))
    task, c = flights.task, policy.contract
    judged = fly_task(task, flights.vehicle, policy, TaskProtocol(flights=16), 16)
    config = SimulatorConfig(level=c.level, control=c.control, control_rate=c.rate, physics_rate=1000.0)
    simulator = Simulator(flights.vehicle, config, 16, seed=7919)
    first = flights.state.astype(float)
    simulator.reset(
        position=first[:3].T, velocity=first[3:6].T, attitude=first[6:10].T, rate=first[10:13].T, rotor_speed=first[13:].T
    )
    pilot = task_pilot(policy, simulator, still())
    errors = []
    for _ in range(task.episode_steps):
        simulator.step(pilot.command(observe(simulator, pilot.observes)))
        errors.append(np.linalg.norm(simulator.position, axis=1))
    assert judged.error is not None
    # Programs compute functions to float32: flights part slowly.
    np.testing.assert_allclose(np.mean(errors[-10:], axis=0), judged.error, rtol=1e-3, atol=1e-5)


def test_the_pilot_holds_any_place_and_heading_alike() -> None:
    """A turned and moved target sees the same flight, turned and moved."""
    flights, policy = random_policy("position_setpoint_velocity")
    yaw, place = 2.0, np.array([3.0, -2.0, 1.0])
    c, s = np.cos(yaw), np.sin(yaw)
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    found = []
    for moved in (False, True):
        # Without pushes, whose directions are the world's.
        config = SimulatorConfig(level="velocity", control=policy.contract.control, disturbance=False, wrench_noise=False)
        simulator = Simulator(flights.vehicle, config, 1)
        attitude = (0.0, 0.0, np.sin(0.5 * yaw), np.cos(0.5 * yaw)) if moved else (0.0, 0.0, 0.0, 1.0)
        at = np.array([0.5, 0.3, -0.2])
        simulator.reset(position=place + turn @ at if moved else at, attitude=attitude)
        pilot = task_pilot(policy, simulator, still(tuple(place), yaw) if moved else still())
        for _ in range(100):
            simulator.step(pilot.command(observe(simulator, pilot.observes)))
        position = np.asarray(simulator.position[0], float)
        found.append(turn.T @ (position - place) if moved else position)
    np.testing.assert_allclose(found[1], found[0], atol=2e-4)


def test_known_controllers_do_what_tasks_ask_for() -> None:
    """The law on set-points holds its place within a centimetre or so; that on paths follows a figure eight."""
    path = learning_task("track", path="eight_normal", episode_steps=400)
    eight = task_figures(fly_task(path, vehicle("cf2x_L250"), PathController(100.0), TaskProtocol(flights=8), 8))
    assert eight["kept_percent"] == 100.0
    assert eight["median_error_m"] < 0.05


def test_a_policy_is_refused_where_its_commands_mean_something_else() -> None:
    policies = {name: random_policy(name)[1] for name in ("recovery", "position_setpoint", "position_setpoint_velocity")}
    for name, other, match in (
        ("recovery", "tinyprop", "learnt to command 4 rotors"),
        ("position_setpoint", "lmf2", "weighs"),
        ("position_setpoint_velocity", "x500", "gains 'lmf2'"),
    ):
        simulator = Simulator(vehicle(other), SimulatorConfig(level=policies[name].contract.level), 1)
        with pytest.raises(AirworthyError, match=match):
            task_pilot(policies[name], simulator, still())
    c = policies["recovery"].contract
    with pytest.raises(AirworthyError, match="build it for that level"):
        task_pilot(policies["recovery"], Simulator(vehicle("cf2x_L250"), SimulatorConfig(level="position"), 1), still())
    with pytest.raises(AirworthyError, match="raise it"):
        task_pilot(policies["recovery"], Simulator(vehicle("cf2x_L250"), SimulatorConfig(control_rate=50.0), 1), still())
    with pytest.raises(AirworthyError, match=r"Contract\.command does not fit"):
        replace(c, command=c.observe)


def test_a_damaged_folder_is_refused(done: Trained, tmp_path: Path) -> None:
    for name in ("contract.json", "weights.safetensors"):
        (tmp_path / name).write_bytes((done.folder / name).read_bytes())
    read_task_policy(tmp_path)
    text = (tmp_path / "contract.json").read_text()
    (tmp_path / "contract.json").write_text(text.replace("state[0]", "state[1]"))
    with pytest.raises(AssetError, match="not as it was sealed"):
        read_task_policy(tmp_path)
    table = {k: v for k, v in json.loads(text).items() if k != "seal"}
    table["programs"]["observe"]["lines"][0] = "open[0]"
    (tmp_path / "contract.json").write_text(json_text(table))
    assert main(["seal", str(tmp_path)]) == 2


# ---- the command -------------------------------------------------------------------------------------------------------------

OWN = '''
from airworthy.core import ops
from airworthy.learning import HoverTask, Judgement
from beside import LIMIT


class Climb(HoverTask):
    """Climb."""

    name = "climb"
    error = None

    def judge(self, before, after, action, past, p):
        return Judgement({"climb": after[5]}, ops.where(after[2] < -LIMIT, 1.0, 0.0), ops.where(after[2] > 2.0, 1.0, 0.0))
'''


def test_a_task_of_ones_own_is_learnt_kept_and_flown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "beside.py").write_text("LIMIT = 3.0\n")
    (tmp_path / "mine.py").write_text(OWN)
    words = ["--steps", "2048", "--env-count", "64", "--hidden", "16", "8", "--flights", "4", "--option", "episode_steps=30"]
    asked = ["train", f"{tmp_path}/mine.py:Climb", *words, "--out", str(tmp_path / "run")]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["task"], found["baselines"], "median_error_m" in found) == ("climb", [], False)
    assert (tmp_path / "run" / "task" / "mine.py").read_text() == OWN
    assert (tmp_path / "run" / "task" / "beside.py").is_file()
    flown = ["fly", "--vehicle", "tinyprop", "--pilot", f"policy:{tmp_path / 'run'}", "--course", "line", "--json"]
    assert main([*flown, "--out", str(tmp_path / "flown"), "--no-report"]) == 0
    capsys.readouterr()
    (tmp_path / "beside.py").write_text("LIMIT = 4.0\n")  # the same folder is another training now
    assert main(asked) == 2
    assert "its data were" in capsys.readouterr().err or "its task or vehicle was another"


def test_a_path_is_no_tasks_name_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text("class Mine: ...", encoding="utf-8")
    cases = {
        "../../evil": "is a path and no task's name",
        str(tmp_path / "own.py"): "is a file: a task of one's own is FILE.py:NAME",
        f"{tmp_path / 'own.py'}:": "names no class",
        f"{tmp_path / 'own.py'}:../../evil": "names no class",
        f"{tmp_path / 'own.py'}:Mine": "is no learning task",
    }
    monkeypatch.chdir(tmp_path)
    for word, says in cases.items():
        assert main(["train", word, "--env-count", "64"]) == 2
        said = capsys.readouterr().err
        assert says in said, word
        assert said.count("\n") == 1
        with pytest.raises(AirworthyError, match=says.replace(".", r"\.")):
            aw.train(word, "tinyprop")
    # Nothing is written, here or above.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.py"]


@pytest.mark.parametrize(
    ("text", "beside", "said"),
    [
        ("x = 1\ny = = 2\n", "", "cannot be imported: SyntaxError: invalid syntax (own.py, line 2)."),
        ("import helper_of_own\n", "def f(:\n", "cannot be imported: SyntaxError: invalid syntax (helper_of_own.py, line 1)."),
        ("import math\n\nmath.no\n", "", "AttributeError: module 'math' has no attribute 'no' (own.py, line 3)."),
        ("raise SyntaxError('mine')\n", "", "cannot be imported: SyntaxError: mine (own.py, line 1)."),
        (
            "class Mine:\n    def __init__(self):\n        raise ValueError('not today')\n",
            "",
            "cannot be made: ValueError: not today (own.py, line 3).",
        ),
        (
            "import airworthy as aw\n\n\nclass Mine:\n    def __init__(self):\n        raise aw.AirworthyError('As I say.')\n",
            "",
            "As I say.",
        ),
    ],
)
def test_what_fails_in_an_own_file_is_told_with_its_own_line(
    text: str, beside: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    if beside:
        (tmp_path / "helper_of_own.py").write_text(beside, encoding="utf-8")
    assert main(["train", f"{tmp_path / 'own.py'}:Mine", "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert told.endswith(f"{said}\n")
    assert "importlib" not in told


def test_a_finished_training_is_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"steps": 512, "env_count": 64, "hidden": (16, 8), "mpc_flights": 0, "option": ("episode_steps=20",)}
    done = aw.train("position_setpoint_velocity", None, tmp_path / "run", flights=4, **asked)
    monkeypatch.setattr(TaskTraining, "step", lambda self: pytest.fail("it learns again"))
    # A count that was written as a fraction is the whole number that it is.
    again = aw.train("position_setpoint_velocity", None, tmp_path / "run", flights=6.0, **{**asked, "steps": 5.12e2})
    assert (done.summary["flights"], again.summary["flights"]) == (4, 6)
    for name in ("training_wall_s", "env_steps", "options"):
        assert again.summary[name] == json.loads(json.dumps(done.summary[name]))
    with pytest.raises(AirworthyError, match=r"steps is .*512\.5.*expected a whole number"):
        aw.train("position_setpoint_velocity", None, tmp_path / "run", flights=6, **{**asked, "steps": 512.5})


def test_from_python(tmp_path: Path) -> None:
    asked = {"steps": 512, "env_count": 64, "hidden": (16, 8), "flights": 4, "mpc_flights": 0, "option": ("episode_steps=20",)}
    done = aw.train("position_setpoint_velocity", None, tmp_path / "run", **asked)
    assert done.summary["task"] == TASK
    assert (done.folder / "contract.json").is_file()
    with pytest.raises(AirworthyError, match=r"Unknown kind of network 'recovry'\. Closest: 'recovery'"):
        aw.train("recovry", None)


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["train", "pozition"], "position_setpoint"),
        (["train", "recovery", "--trainer", "sacc"], "native_ppo"),
        (["train", "recovery", "--option", "rate_max"], "rate_max=VALUE"),
        (["train", "recovery", "--option", "speed=3"], "speed_max"),
        (["train", "recovery", "--option", "rate_max=10"], "changes nothing"),
        (["train", "recovery", "--option", "rate_max=fast"], "expected a number"),
        (["train", "recovery", "--option", "episode_steps=0"], "--option episode_steps is 0; expected 1 to 1000000."),
        (["train", "recovery", "--steps", "-1"], "--steps is -1; expected 1 to 1000000000000."),
        (["train", "position_setpoint", "--steps", "0"], "--steps is 0; expected 1 to 1000000000000."),
        (["train", "recovery", "--trainer", "gradient", "--steps", "0"], "--steps is 0; expected 1 to 1000000000000."),
        (["train", "recovery", "--seed", "7919"], "starts on which policies are judged"),
        (["train", "recovery", "--hidden", "32", "500"], "--hidden is [32, 500]; expected two widths of 1 to 128"),
        (["train", "recovery", "--rotors", "r.toml"], "--rotors"),
        (["train", f"{tmp_path}/none.py:Climb"], "is no file"),
    ):
        assert main([*words, "--out", str(tmp_path / "run"), *(["--env-count", "64"] if "--seed" in words else [])]) == 2
        assert said in capsys.readouterr().err, words
    assert not (tmp_path / "run" / "summary.json").exists()
    with pytest.raises(AirworthyError, match="rate"):
        TaskConfig(option=("rate=5",)).training("recovery", 0).learnt_task()


# ---- recovery by gradient ----------------------------------------------------------------------------------------------------


def test_recovery_by_gradient_leaves_a_policy_of_the_task(tmp_path: Path) -> None:
    """It commands what the gradient's flights did: the task shows the same numbers in the same order."""
    options = RecoveryGradientOptions(hidden=16, env_count=16, window=10, iterations=4)
    made = train_task(options, tmp_path / "run", protocol=TaskProtocol(flights=8, mpc_flights=0))
    assert (made.figures["trainer"], made.figures["task"], made.figures["vehicle"]) == ("gradient", "recovery", "cf2x_L250")
    again = RecoveryGradientOptions(hidden=16, env_count=16, window=10, iterations=4).begin(None)
    while not again.finished:
        again.step()
    policy = read_task_policy(made.folder)
    for mine, theirs in zip(policy.weights, again.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    flights = VectorTask("recovery", 16, seed=3)
    state = flights.state.astype(float)
    np.testing.assert_allclose(flights.observation.T, hover_observation(tuple(state)), atol=1e-5)
    np.testing.assert_allclose(
        policy.action(flights.observation), network_action(again.weights, flights.observation), atol=1e-6
    )


def test_the_gradient_learns_its_tasks_in_one_form() -> None:
    config = TaskConfig(trainer="gradient", env_count=32)
    assert config.training("recovery", 5) == RecoveryGradientOptions(seed=5, env_count=32)
    assert config.training("motor_track", 2) == PathGradientOptions("motor_track", seed=2, env_count=32)
    said = (
        "The gradient learns l2f_position, recovery, track, motor_track, morphy_hover, chain_hover, gap and hover, not the task"
    )
    with pytest.raises(AirworthyError, match=said):
        config.training("px4_motor_command", 0)
    with pytest.raises(AirworthyError, match="expected no history and no memory"):
        RecoveryGradientOptions(history=2)
