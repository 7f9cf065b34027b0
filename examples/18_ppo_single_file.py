"""PPO in one file: a policy that commands four motors learns to hold a place, in about a minute of one core.

python examples/18_ppo_single_file.py [million steps]
"""

import sys
import time

import numpy as np
import torch
from torch import Tensor, nn

from airworthy.learning import VectorTask

ENVS, ROLLOUT, EPOCHS, BATCHES = 512, 48, 4, 4
GAMMA, LAMBDA, CLIP, RATE, ENTROPY = 0.99, 0.95, 0.2, 1.5e-3, 0.0
REWARD_SCALE = 0.05  # returns near 1 in size, so that the critic's first errors are not large


def advantages(reward: Tensor, value: Tensor, next_value: Tensor, terminated: Tensor, ended: Tensor) -> Tensor:
    """Generalized advantage estimation.

    `next_value` is V of what the flight itself saw after the step: where it was only cut off, V(final observation), since the
    flight would have gone on; V of the next flight's start or of the observation before is another number. All (time, env).
    """
    found, later = torch.zeros_like(reward), torch.zeros_like(reward[0])
    for t in reversed(range(len(reward))):
        error = reward[t] + GAMMA * next_value[t] * ~terminated[t] - value[t]
        found[t] = later = error + GAMMA * LAMBDA * later * ~ended[t]
    return found


def network(inputs: int, outputs: int, last_gain: float) -> nn.Sequential:
    """64-64, orthogonal; a small last layer begins near its bias."""
    layers = [nn.Linear(inputs, 64), nn.Linear(64, 64), nn.Linear(64, outputs)]
    for layer, gain in zip(layers, (2.0**0.5, 2.0**0.5, last_gain), strict=True):
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])


class Normaliser:
    """Running mean and variance of observations, in float64: float32 sums lose their last digits after millions of rows."""

    def __init__(self, width: int):
        self.count, self.mean, self.square = 1e-4, np.zeros(width), np.ones(width) * 1e-4

    def learn(self, rows: Tensor) -> None:
        """Take rows (n, width) into account."""
        new, n = rows.double().numpy(), len(rows)
        shift, whole = new.mean(0) - self.mean, self.count + n
        self.square += new.var(0) * n + shift**2 * self.count * n / whole
        self.mean, self.count = self.mean + shift * n / whole, whole

    def __call__(self, seen: Tensor) -> Tensor:
        scale = 1.0 / np.sqrt(self.square / self.count + 1e-8)
        return ((seen - torch.from_numpy(self.mean)) * torch.from_numpy(scale)).float().clamp(-8.0, 8.0)


class Agent(nn.Module):
    """A Gaussian policy and a critic."""

    def __init__(self, task: VectorTask, hover: Tensor):
        super().__init__()
        self.normal = Normaliser(task.observation_count)
        self.actor = network(task.observation_count, task.action_count, 0.01)
        self.critic = network(task.observation_count, 1, 1.0)
        self.log_std = nn.Parameter(torch.full((task.action_count,), -1.2))
        # The mean action begins at hover: with thrusts at mid range most flights are over in half a second.
        self.actor[-1].bias.data.copy_(hover)

    def policy(self, x: Tensor) -> torch.distributions.Normal:
        """Of normalised observations."""
        return torch.distributions.Normal(self.actor(x), self.log_std.exp(), validate_args=False)

    def value(self, x: Tensor) -> Tensor:
        """Of normalised observations."""
        return self.critic(x).squeeze(-1)


def roll_out(task: VectorTask, agent: Agent) -> tuple[dict[str, Tensor], float]:
    """Fly `ROLLOUT` steps everywhere; returns what PPO learns from, (time x env, ...), and the mean reward."""
    parts: dict[str, list[Tensor]] = {
        name: [] for name in ("x", "action", "log", "value", "next_value", "reward", "over", "end")
    }
    raw = []
    for _ in range(ROLLOUT):
        raw.append(torch.from_numpy(task.observation).clone())
        x = agent.normal(raw[-1])
        policy, value = agent.policy(x), agent.value(x)
        action = policy.sample()
        result = task.step(action.numpy())
        following = result.observation.copy()
        following[result.ends.ended] = result.final_observation[result.ends.ended]
        found = (
            x, action, policy.log_prob(action).sum(-1), value, agent.value(agent.normal(torch.from_numpy(following))),
            *map(torch.from_numpy, (result.reward * REWARD_SCALE, result.terminated, result.ends.ended)),
        )  # fmt: skip
        for name, one in zip(parts, found, strict=True):
            parts[name].append(one)
    data = {name: torch.stack(values) for name, values in parts.items()}
    gain = advantages(data["reward"], data["value"], data["next_value"], data["over"], data["end"])
    data |= {"gain": gain, "target": gain + data["value"]}
    agent.normal.learn(torch.cat(raw))
    return {name: values.flatten(0, 1) for name, values in data.items()}, float(data["reward"].mean()) / REWARD_SCALE


def update(agent: Agent, optimizer: torch.optim.Optimizer, data: dict[str, Tensor]) -> None:
    """Clipped surrogate, squared error of the critic, `EPOCHS` times over the data."""
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(data["x"])).chunk(BATCHES):
            policy = agent.policy(data["x"][rows])
            ratio = (policy.log_prob(data["action"][rows]).sum(-1) - data["log"][rows]).exp()
            gain = data["gain"][rows]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            surrogate = torch.min(ratio * gain, ratio.clamp(1.0 - CLIP, 1.0 + CLIP) * gain).mean()
            critic = (agent.value(data["x"][rows]) - data["target"][rows]).square().mean()
            loss = 0.5 * critic - surrogate - ENTROPY * policy.entropy().sum(-1).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 1.0)
            optimizer.step()


@torch.no_grad()
def judge(task: VectorTask, agent: Agent) -> tuple[float, float]:
    """Share of new flights that last, and the median distance at their end [m], by mean actions."""
    seen, lost = task.reset(seed=7919), np.zeros(task.env_count, bool)
    for _ in range(task.task.episode_steps - 1):
        result = task.step(agent.policy(agent.normal(torch.from_numpy(seen))).mean.numpy())
        seen, lost = result.observation, lost | result.terminated
    return float(1.0 - lost.mean()), float(
        np.median(np.linalg.norm(task.state[:3], axis=0)[~lost])
    ) if not lost.all() else np.inf


def main(million: float) -> None:
    """Train, printing what comes of it, and judge on flights that no training saw."""
    torch.set_num_threads(1)  # more of them slow small networks down
    torch.manual_seed(0)
    task = VectorTask("hover", ENVS, seed=0)
    # Flights of equal age would all be cut off in the same step.
    task.age[:] = np.random.default_rng(0).integers(0, task.task.episode_steps, ENVS)
    agent = Agent(task, torch.from_numpy(task.parameter("hover_action")[:, 0].copy()))
    optimizer = torch.optim.Adam(agent.parameters(), lr=RATE, eps=1e-5)
    updates = max(1, round(million * 1e6 / (ENVS * ROLLOUT)))
    started = time.process_time()
    for k in range(updates):
        optimizer.param_groups[0]["lr"] = RATE * (1.0 - k / updates)
        with torch.no_grad():
            data, reward = roll_out(task, agent)
        update(agent, optimizer, data)
        if k % 20 == 0 or k == updates - 1:
            steps, spent = (k + 1) * ENVS * ROLLOUT, time.process_time() - started
            print(
                f"{steps / 1e6:6.2f} M steps, {steps / spent:8,.0f} steps per CPU second: mean reward {reward:5.2f}", flush=True
            )
    kept, distance = judge(VectorTask("hover", 1000), agent)
    print(f"{100 * kept:.1f} % of 1000 new flights last 3 s, median {distance:.3f} m off")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 3.0)
