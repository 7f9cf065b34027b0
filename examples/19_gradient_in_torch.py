"""Torch through a flight: a network of one's own learns to hold a place by the gradient of its flights' cost."""

import torch
from torch import nn

from airworthy.learning import DifferentiableSimulator

torch.manual_seed(0)
torch.set_num_threads(1)  # networks this small only wait for others
sim = DifferentiableSimulator("tinyprop", "hover", env_count=64, horizon=100)
policy = nn.Sequential(nn.Linear(18, 48), nn.LayerNorm(48), nn.ELU(), nn.Linear(48, 4), nn.Tanh())
nn.init.normal_(policy[3].weight, std=0.01)  # begins near hover: flights must not end at once
policy[3].bias.data = torch.atanh(sim.hover_action[0])
optimizer, state = torch.optim.Adam(policy.parameters(), 1e-2), sim.begin()
for _ in range(100):
    cost, state = sim.window(policy, state)
    optimizer.zero_grad()
    cost.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
    optimizer.step()
    state = sim.begin(state, ~(state[:3].norm(dim=0) < 4.0) | (state[-1] >= 300))  # lost, or three seconds old
print(f"after 100 windows of a second: {100 * sim.window(policy, state)[1][:3].norm(dim=0).median():.0f} cm off")
