"""Libraries for reinforcement learning see the same flights, bit for bit, as `VectorTask`; a missing one skips its tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.learning import adapters
from airworthy.learning.environments import VectorTask
from airworthy.learning.environments.tasks import MotorCommand
from airworthy.simulation import Randomization

COUNT, STEPS = 5, 110
TASK = MotorCommand(episode_steps=30)
SPREAD = Randomization(mass=0.2, inertia=0.3, thrust=0.1, rotor=0.05, lag=0.3)  # as elsewhere: kernels are compiled once
Transition = tuple[ArrayAny, float, ArrayAny, bool, bool]
"""Seen before, reward, seen after (last of the flight where it ended), terminated, truncated."""
Step = tuple[ArrayAny, ArrayAny, ArrayAny, ArrayAny, ArrayAny, ArrayAny]
"""Seen next, reward, seen last of ended flights, terminated, truncated, whether a transition is to be learnt from."""


def environments(seed: int = 4) -> VectorTask:
    return VectorTask(TASK, COUNT, seed=seed, randomization=SPREAD)


def policy(seen: ArrayAny) -> ArrayF32:
    """About hover, with something of each observation, the same bits whoever asks; it ends flights that are far off."""
    weights = np.linspace(-0.3, 0.5, seen.shape[1] * 4).reshape(-1, 4)
    actions = [0.45 + 0.3 * np.tanh((row[:, None] * weights).sum(0)) for row in seen.astype(float)]
    return np.where(abs(seen[:, :1]) > 0.6, np.nan, actions).astype(np.float32)


class Player:
    """One library's way of stepping."""

    def __init__(self, begin: Callable[[], ArrayAny], go: Callable[[ArrayF32], Step]):
        self.begin, self.go = begin, go

    def transitions(self, calls: int) -> list[list[Transition]]:
        """Of each environment, in `calls` steps."""
        seen, found = self.begin().copy(), [[] for _ in range(COUNT)]
        for _ in range(calls):
            after, reward, last, terminated, truncated, real = self.go(policy(seen))
            for k in np.flatnonzero(real):
                over = terminated[k] or truncated[k]
                what = (seen[k], float(reward[k]), np.array(last[k] if over else after[k]), terminated[k], truncated[k])
                found[k].append(what)
            seen = np.array(after)
        return found


def native() -> Player:
    task = environments()

    def go(actions: ArrayF32) -> Step:
        r = task.step(actions)
        return r.observation, r.reward, r.final_observation, r.terminated, r.truncated, np.ones(COUNT, bool)

    return Player(lambda: task.reset(seed=9), go)


def gymnasium_mode(mode: str) -> Player:
    pytest.importorskip("gymnasium")
    env = adapters.GymnasiumVector(environments(), autoreset_mode=mode)
    over = np.zeros(COUNT, bool)

    def go(actions: ArrayF32) -> Step:
        nonlocal over
        masked = over.copy() if mode == "NEXT_STEP" else np.zeros(COUNT, bool)
        seen, reward, terminated, truncated, info = env.step(actions)
        over = terminated | truncated
        last = info.get("final_obs", seen)
        assert not reward[masked].any()
        assert not over[masked].any()
        if mode == "DISABLED" and over.any():
            seen = env.reset(options={"reset_mask": over})[0]
        return seen, reward, last, terminated, truncated, ~masked

    return Player(lambda: env.reset(seed=9)[0], go)


def stable_baselines3() -> Player:
    pytest.importorskip("stable_baselines3")
    env = adapters.StableBaselinesEnv(environments())

    def begin() -> ArrayAny:
        env.seed(9)
        return env.reset()

    def go(actions: ArrayF32) -> Step:
        seen, reward, dones, infos = env.step(actions)
        last, truncated = np.zeros_like(seen), np.zeros(COUNT, bool)
        for k in range(COUNT):
            assert bool(infos[k]) == dones[k]
            if dones[k]:
                last[k], truncated[k] = infos[k]["terminal_observation"], infos[k]["TimeLimit.truncated"]
        return seen, reward, last, dones & ~truncated, truncated, np.ones(COUNT, bool)

    return Player(begin, go)


def rsl_rl() -> Player:
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("rsl_rl")
    env = adapters.RslRlEnv(environments(seed=9))

    def go(actions: ArrayF32) -> Step:
        seen, reward, dones, extras = env.step(torch.from_numpy(actions))
        truncated = extras["time_outs"].numpy()
        last = extras["final_observation"].numpy()
        return seen["policy"].numpy(), reward.numpy(), last, dones.numpy() & ~truncated, truncated, np.ones(COUNT, bool)

    return Player(env.get_observations()["policy"].numpy, go)


def skrl() -> Player:
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("skrl")
    env = adapters.SkrlEnv(environments(seed=9))

    def go(actions: ArrayF32) -> Step:
        seen, *rest, info = env.step(torch.from_numpy(actions))
        assert [x.shape for x in rest] == [(COUNT, 1)] * 3
        reward, terminated, truncated = (x[:, 0].numpy() for x in rest)
        return seen.numpy(), reward, info["final_observation"].numpy(), terminated, truncated, np.ones(COUNT, bool)

    return Player(env.reset()[0].numpy, go)


PLAYERS: dict[str, Callable[[], Player]] = {
    "same_step": lambda: gymnasium_mode("SAME_STEP"),
    "next_step": lambda: gymnasium_mode("NEXT_STEP"),
    "disabled": lambda: gymnasium_mode("DISABLED"),
    "stable_baselines3": stable_baselines3,
    "rsl_rl": rsl_rl,
    "skrl": skrl,
}


@pytest.fixture(scope="module")
def expected() -> list[list[Transition]]:
    return native().transitions(STEPS)


@pytest.mark.parametrize("name", PLAYERS)
def test_the_same_flights_by_every_library(name: str, expected: list[list[Transition]]) -> None:
    """The same bits of what is seen, and with one policy the same rewards, ends and returns."""
    found = PLAYERS[name]().transitions(STEPS + 40)  # some steps are no transitions where the next step begins a flight
    crashed = cut = 0
    for mine, others in zip(found, expected, strict=True):
        returns, sums = [], [0.0, 0.0]
        for (seen, reward, after, terminated, truncated), other in zip(mine[:100], others[:100], strict=True):
            np.testing.assert_array_equal(seen, other[0])
            np.testing.assert_array_equal(after, other[2])
            assert (reward, terminated, truncated) == (other[1], other[3], other[4])
            assert not (terminated and truncated)
            sums = [sums[0] + reward, sums[1] + other[1]]
            if terminated or truncated:
                returns.append(sums)
                sums = [0.0, 0.0]
            crashed, cut = crashed + bool(terminated), cut + bool(truncated)
        assert returns
        assert all(a == b for a, b in returns)
    assert crashed >= 3
    assert cut >= 3


@pytest.mark.parametrize("name", PLAYERS)
def test_flights_that_diverge_are_terminated_with_a_finite_reward(name: str) -> None:
    player = PLAYERS[name]()
    actions = policy(player.begin())
    actions[2] = np.nan
    after, reward, last, terminated, truncated, _ = player.go(actions)
    assert terminated[2]
    assert not truncated.any()
    assert np.isfinite(after).all()
    assert np.isfinite(last[2]).all()
    assert np.isfinite(reward).all()


def test_next_step_and_disabled_hold_what_ended() -> None:
    """Held flights keep every bit."""
    task = environments()
    for _ in range(7):
        task.step(policy(task.observation))
    held = np.arange(COUNT) < 2
    state, age, seen = task.state.copy(), task.age.copy(), task.observation.copy()
    result = task.step(np.full((COUNT, 4), np.nan), held=held)
    np.testing.assert_array_equal(task.state[:, held], state[:, held])
    np.testing.assert_array_equal(task.age, np.where(held, age, 0))
    np.testing.assert_array_equal(result.observation[held], seen[held])
    np.testing.assert_array_equal(result.ends.ended, ~held)
    assert not result.reward[held].any()


def test_observations_last_over_one_step() -> None:
    """Learners store what was seen with what came of it, after the step."""
    task = environments()
    first = task.reset(seed=1)
    kept = first.copy()
    second = task.step(policy(first)).observation
    np.testing.assert_array_equal(first, kept)
    assert not np.shares_memory(first, second)
    assert np.shares_memory(first, task.step(policy(second)).observation)


# ---- Gymnasium -------------------------------------------------------------------------------------------------------


def test_make_vec_and_spaces() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    name = "airworthy.learning.adapters.gymnasium_env:airworthy/motor_command-v0"
    env = gymnasium.make_vec(name, num_envs=7, seed=3, autoreset_mode="NextStep")
    assert (env.num_envs, env.metadata["autoreset_mode"].name) == (7, "NEXT_STEP")
    assert env.single_action_space == gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float32)
    seen, _ = env.reset(seed=3)
    assert seen in env.observation_space
    np.testing.assert_array_equal(seen, VectorTask("motor_command", 7, seed=3).observation)
    assert {f"airworthy/{name}-v0" for name in ("hover", "motor_command")} <= set(gymnasium.registry)
    env.action_space.seed(0)
    assert env.step(env.action_space.sample())[1].shape == (7,)
    env.close()


def test_options_that_environments_do_not_have_are_a_sentence() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    name = "airworthy.learning.adapters.gymnasium_env:airworthy/motor_command-v0"
    for made in (lambda: gymnasium.make_vec(name, num_envs=2, foo=3), lambda: gymnasium.make(name, foo=3)):
        with pytest.raises(AirworthyError, match=r"Unknown option of a vector environment 'foo'\. Known: conditions,"):
            made()
    with pytest.raises(AirworthyError, match="'seed' changes nothing of environments that stand ready"):
        adapters.GymnasiumVector(environments(), seed=3)


def test_wrappers_of_gymnasium_understand_the_infos() -> None:
    pytest.importorskip("gymnasium")
    from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

    recorded = RecordEpisodeStatistics(adapters.GymnasiumVector(environments()))
    listed = DictInfoToList(adapters.GymnasiumVector(environments()))
    seen = recorded.reset(seed=2)[0]
    listed.reset(seed=2)
    ended = 0
    for _ in range(35):
        actions = policy(seen)
        seen, *_, info = recorded.step(actions)
        *_, others = listed.step(actions)
        for k in range(COUNT):
            over = bool(info.get("_episode", np.zeros(COUNT, bool))[k])
            assert ("final_info" in others[k]) == over
            if over:
                mine = others[k]["final_info"]
                assert mine["return"] == pytest.approx(info["episode"]["r"][k], rel=1e-5)
                assert mine["length"] == info["episode"]["l"][k]
                ended += 1
    assert ended >= COUNT


@pytest.mark.filterwarnings("ignore:.*A Box observation space m:UserWarning")
@pytest.mark.filterwarnings("ignore:.*not have `render:UserWarning", "ignore:.*[Nn]o render:UserWarning")
def test_checks_of_gymnasium_and_stable_baselines() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make("airworthy.learning.adapters.gymnasium_env:airworthy/hover-v0").unwrapped
    check_env(env, skip_render_check=True)
    pytest.importorskip("stable_baselines3.common.env_checker").check_env(env)


def test_mistakes_are_told() -> None:
    pytest.importorskip("gymnasium")
    with pytest.raises(AirworthyError, match="Unknown autoreset_mode 'never'; there are NEXT_STEP, SAME_STEP, DISABLED"):
        adapters.GymnasiumVector("hover", 2, autoreset_mode="never")
    env = adapters.GymnasiumVector(environments(), autoreset_mode="DISABLED")
    for mask in (np.ones(3, bool), np.ones(COUNT)):
        with pytest.raises(AirworthyError, match=r"reset_mask is to be bool of shape \(5,\)"):
            env.reset(options={"reset_mask": mask})
    env.step(np.full((COUNT, 4), np.nan))
    with pytest.raises(AirworthyError, match="5 flights are over; begin them"):
        env.step(np.zeros((COUNT, 4)))


def test_infos_of_stable_baselines_are_shared() -> None:
    pytest.importorskip("stable_baselines3")
    env = adapters.StableBaselinesEnv(environments())
    env.reset()
    *_, infos = env.step(np.zeros((COUNT, 4), np.float32))
    unfinished = [one for one in infos if not one]
    assert len(unfinished) > 2
    assert all(one is unfinished[0] for one in unfinished)
    assert env.get_attr("env_count", [0, 1]) == [COUNT] * 2
    with pytest.raises(AirworthyError, match="rows of one batch"):
        env.set_attr("seed", 3)
    with pytest.raises(AirworthyError, match="rows of one batch"):
        env.env_method("render")
    assert env.env_is_wrapped(object) == [False] * COUNT


def test_episode_lengths_written_by_rsl_rl_are_honoured() -> None:
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("rsl_rl")
    env = adapters.RslRlEnv(VectorTask(MotorCommand(episode_steps=10, crash_m=100.0), COUNT))
    env.episode_length_buf = torch.tensor([0, 2, 4, 6, 8])
    ends = [env.step(torch.full((COUNT, 4), 0.4))[3]["time_outs"].tolist() for _ in range(10)]
    assert [row.index(True) for row in ends if any(row)] == [4, 3, 2, 1, 0]
    assert env.episode_length_buf.tolist() == [0, 2, 4, 6, 8]


def test_tensors_are_views() -> None:
    pytest.importorskip("torch")
    task = environments()
    pytest.importorskip("rsl_rl")
    seen = adapters.RslRlEnv(task).get_observations()["policy"]
    assert np.shares_memory(seen.numpy(), task.observation)
    pytest.importorskip("skrl")
    assert np.shares_memory(adapters.SkrlEnv(task).reset()[0].numpy(), task.observation)


def test_rsl_rl_gets_what_critics_see_in_a_group_of_its_own() -> None:
    """And keeps it over a step, as it stores it afterwards; tasks without such a thing give the observation."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("rsl_rl")
    task = VectorTask("l2f_position", 16, seed=1)
    seen = adapters.RslRlEnv(task).get_observations()
    assert seen["critic"].shape[1] != seen["policy"].shape[1]
    before = seen["critic"].clone()
    after, *_ = adapters.RslRlEnv(task).step(torch.zeros(16, task.action_count))
    assert torch.equal(seen["critic"], before)
    np.testing.assert_array_equal(after["critic"].numpy(), task.critic_observation)
    assert not torch.equal(after["critic"], before)
    plain = adapters.RslRlEnv(environments()).get_observations()
    assert plain["critic"].data_ptr() == plain["policy"].data_ptr()


# ---- a few thousand steps of training --------------------------------------------------------------------------------


@pytest.fixture
def small() -> Iterator[VectorTask]:
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield VectorTask("motor_command", 32, seed=1)
    torch.set_num_threads(threads)


def test_stable_baselines_trains(small: VectorTask) -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    model = sb3.PPO("MlpPolicy", adapters.StableBaselinesEnv(small), n_steps=32, batch_size=512, n_epochs=2, seed=1)
    before = [p.detach().clone() for p in model.policy.parameters()]
    model.learn(3000)
    assert model.num_timesteps == 3072
    assert changed_and_finite(before, model.policy.parameters())
    assert len(model.ep_info_buffer) > 10


def test_rsl_rl_trains(small: VectorTask, tmp_path: Path) -> None:
    runners = pytest.importorskip("rsl_rl.runners")
    net = {"class_name": "rsl_rl.models.MLPModel", "hidden_dims": [32, 32], "activation": "elu"}
    config = {
        "num_steps_per_env": 32, "save_interval": 100, "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**net, "distribution_cfg": {"class_name": "rsl_rl.modules.GaussianDistribution", "init_std": 0.5}},
        "critic": net, "algorithm": {"class_name": "rsl_rl.algorithms.PPO", "num_learning_epochs": 2}, "multi_gpu": None,
    }  # fmt: skip
    runner = runners.OnPolicyRunner(adapters.RslRlEnv(small), config, log_dir=None)
    before = [p.detach().clone() for p in runner.alg.actor.parameters()]
    runner.learn(3, init_at_random_ep_len=True)
    assert changed_and_finite(before, runner.alg.actor.parameters())
    assert small.age.max() <= small.task.episode_steps


def test_skrl_trains(small: VectorTask, tmp_path: Path) -> None:
    pytest.importorskip("skrl")
    from skrl.agents.torch.ppo import PPO, PPO_CFG
    from skrl.memories.torch import RandomMemory
    from skrl.trainers.torch import SequentialTrainer
    from skrl.utils.model_instantiators.torch import deterministic_model, gaussian_model

    env = adapters.SkrlEnv(small)
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": "cpu"}
    network = [{"name": "net", "input": "OBSERVATIONS", "layers": [32, 32], "activations": "elu"}]
    models = {
        "policy": gaussian_model(**spaces, network=network, output="ACTIONS"),
        "value": deterministic_model(**spaces, network=network, output="ONE"),
    }
    for model in models.values():
        model.init_state_dict(role="x")
    before = [p.detach().clone() for p in models["policy"].parameters()]
    config = PPO_CFG(rollouts=32, learning_epochs=2)
    config.experiment.directory, config.experiment.write_interval, config.experiment.checkpoint_interval = str(tmp_path), 0, 0
    agent = PPO(models=models, memory=RandomMemory(memory_size=32, num_envs=32, device="cpu"), cfg=config, **spaces)
    SequentialTrainer(
        env=env,
        agents=agent,
        cfg={"timesteps": 96, "disable_progressbar": True, "headless": True, "close_environment_at_exit": False},
    ).train()
    assert changed_and_finite(before, models["policy"].parameters())


def changed_and_finite(before: list[Any], after: Iterator[Any]) -> bool:
    now = list(after)
    return all(bool(p.isfinite().all()) for p in now) and any(bool((a != b).any()) for a, b in zip(before, now, strict=True))


# ---- the page --------------------------------------------------------------------------------------------------------

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "reinforcement_learning.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize(
    ("index", "module"),
    [
        (0, "numpy"),
        (1, "numpy"),
        (2, "numpy"),
        (3, "gymnasium"),
        (4, "stable_baselines3"),
        (5, "rsl_rl"),
        (6, "skrl"),
        (7, "numpy"),
        (8, "numpy"),
        (9, "torch"),
    ],
)
def test_snippets_of_the_page_run(index: int, module: str) -> None:
    pytest.importorskip(module)
    assert len(SNIPPETS) == 10
    names: dict[str, Any] = {}
    exec(compile(SNIPPETS[index], "reinforcement_learning.md", "exec"), names)
    if index == 1:
        state = np.zeros(17)
        state[2:6] = (3.0, 1.0, 2.0, 0.5)
        task = names["Climb"](episode_steps=200)
        assert task.observe(state, (), None).tolist() == [3.0, 1.0, 2.0, 0.5]
        judged = task.judge(state, state, (), (), None)
        assert (judged.terms, float(judged.terminated), float(judged.success)) == ({"climb": 0.5}, 0.0, 1.0)
