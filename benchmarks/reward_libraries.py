"""PPO of libraries as sides of `benchmarks/learn_reward.py --beside`: one task, one network, one rollout's size for all.

Each side is a function that flies a rollout, learns from it and returns; whoever is not installed is left out.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from typing import Any

from airworthy.learning.environments import VectorTask
from airworthy.learning.native_ppo import NativePpo, PpoOptions

__all__ = ["EPOCHS", "HIDDEN", "MINIBATCHES", "ROLLOUT", "sides"]

HIDDEN, ROLLOUT, EPOCHS, MINIBATCHES = (64, 64), 32, 4, 4
"""Specification, learning by reward, section 0: with 1,024 environments all libraries were measured so."""
_TASK = "motor_command"
Update = Callable[[], object]


def sides(count: int, threads: int) -> dict[str, tuple[str, Update]]:
    """Return each side's package and update, ready to be timed.

    Args:
        count: Environments.
        threads: Of every side.
    """
    found: dict[str, tuple[str, Update]] = {"native_ppo": ("airworthy", _native(count, threads))}
    makers = {
        "ppo": ("torch", "torch", _ours),
        "Stable-Baselines3": ("stable-baselines3", "stable_baselines3", _stable_baselines),
        "rsl-rl": ("rsl-rl-lib", "rsl_rl", _rsl_rl),
        "skrl": ("skrl", "skrl", _skrl),
    }
    for name, (package, module, make) in makers.items():
        if importlib.util.find_spec(module) is not None:
            found[name] = package, make(count, threads)
    return found


def _native(count: int, threads: int) -> Update:
    options = PpoOptions(hidden=HIDDEN, rollout=ROLLOUT, epochs=EPOCHS, minibatches=MINIBATCHES)
    return NativePpo(VectorTask(_TASK, count, threads=threads), options, threads).update


def _ours(count: int, threads: int) -> Update:
    from airworthy.learning.ppo import TorchPpo, TorchPpoOptions

    options = TorchPpoOptions(hidden=HIDDEN, rollout=ROLLOUT, epochs=EPOCHS, minibatches=MINIBATCHES)
    return TorchPpo(VectorTask(_TASK, count, threads=threads), options, threads).update


def _with_threads(threads: int, update: Update) -> Update:
    """Have torch compute with as many threads as everybody else."""
    import torch

    def timed() -> object:
        torch.set_num_threads(threads)
        return update()

    return timed


def _stable_baselines(count: int, threads: int) -> Update:
    import torch
    from stable_baselines3 import PPO

    from airworthy.learning import StableBaselinesEnv

    env = StableBaselinesEnv(VectorTask(_TASK, count, threads=threads))
    network = {"net_arch": {"pi": list(HIDDEN), "vf": list(HIDDEN)}, "activation_fn": torch.nn.Tanh}
    size = count * ROLLOUT // MINIBATCHES
    model = PPO("MlpPolicy", env, n_steps=ROLLOUT, batch_size=size, n_epochs=EPOCHS, policy_kwargs=network, device="cpu")
    return _with_threads(threads, lambda: model.learn(count * ROLLOUT, reset_num_timesteps=False))


def _rsl_rl(count: int, threads: int) -> Update:
    import contextlib
    import io

    from rsl_rl.runners import OnPolicyRunner

    from airworthy.learning import RslRlEnv

    network = {"class_name": "rsl_rl.models.MLPModel", "hidden_dims": list(HIDDEN), "activation": "tanh"}
    config: dict[str, Any] = {
        "num_steps_per_env": ROLLOUT,
        "save_interval": 10**9,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": {"class_name": "rsl_rl.modules.GaussianDistribution", "init_std": 0.4}},
        "critic": network,
        "algorithm": {
            "class_name": "rsl_rl.algorithms.PPO",
            "num_learning_epochs": EPOCHS,
            "num_mini_batches": MINIBATCHES,
        },
        "multi_gpu": None,
    }
    runner = OnPolicyRunner(RslRlEnv(VectorTask(_TASK, count, threads=threads)), config, log_dir=None)

    def update() -> object:
        # It prints a page for each update.
        with contextlib.redirect_stdout(io.StringIO()):
            return runner.learn(1)

    return _with_threads(threads, update)


def _skrl(count: int, threads: int) -> Update:
    from skrl import logger
    from skrl.agents.torch.ppo import PPO, PPO_CFG
    from skrl.memories.torch import RandomMemory
    from skrl.trainers.torch import SequentialTrainer
    from skrl.utils.model_instantiators.torch import deterministic_model, gaussian_model

    from airworthy.learning import SkrlEnv

    logger.setLevel("ERROR")
    env = SkrlEnv(VectorTask(_TASK, count, threads=threads))
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": "cpu"}
    network = [{"name": "net", "input": "OBSERVATIONS", "layers": list(HIDDEN), "activations": "tanh"}]
    models = {
        "policy": gaussian_model(**spaces, network=network, output="ACTIONS"),
        "value": deterministic_model(**spaces, network=network, output="ONE"),
    }
    for model in models.values():
        model.init_state_dict(role="x")
    config = PPO_CFG(rollouts=ROLLOUT, learning_epochs=EPOCHS, mini_batches=MINIBATCHES)
    config.experiment.directory = tempfile.mkdtemp()
    config.experiment.write_interval = config.experiment.checkpoint_interval = 0
    memory = RandomMemory(memory_size=ROLLOUT, num_envs=count, device="cpu")
    agent = PPO(models=models, memory=memory, cfg=config, **spaces)
    asked = {"timesteps": ROLLOUT, "disable_progressbar": True, "headless": True, "close_environment_at_exit": False}
    return _with_threads(threads, lambda: SequentialTrainer(env=env, agents=agent, cfg=asked).train())
