"""What mass explains a recorded flight? The gradient of the error of predictions by the mass says which way to look."""

import numpy as np
import torch

from airworthy.learning import DifferentiableSimulator
from airworthy.simulation import Randomization, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

# A second of a vehicle whose mass is drawn, at 1,000 Hz, as a log holds it: how it moved, what it was commanded.
config = SimulatorConfig(level="rotor_speed", control_rate=100.0, physics_rate=1000.0, randomization=Randomization(mass=0.2))
flown = Simulator(vehicle("tinyprop"), config, seed=2)
model = DifferentiableSimulator("tinyprop", "hover", env_count=100)
low, high = (flown.parameter(f"rotor_{end}")[0, :4] for end in ("min", "max"))
actions = np.clip(model.hover_action[0].numpy() + 0.05 * np.random.default_rng(0).normal(size=(101, 4)), -1.0, 1.0)
log = []
for action in actions:
    log.append(np.concatenate([flown.field(name)[0] for name in ("position", "velocity", "attitude", "rate", "rotor_speed")]))
    flown.step(0.5 * (low + high) + 0.5 * (high - low) * action)
rows, command = torch.from_numpy(np.array(log, np.float32).T), torch.from_numpy(actions[:-1]).float()
now = torch.cat([rows[:, :-1], torch.zeros(model.state_count - len(rows), 100)])
factor = torch.ones((), requires_grad=True)
finder = torch.optim.LBFGS([factor], tolerance_grad=1e-12, tolerance_change=1e-12)


def misfit() -> torch.Tensor:
    """Error of predicted velocities: every instant of the log is a flight of one step."""
    finder.zero_grad()
    after, _, _ = model.step(now, command, model.parameters(mass=factor))
    error = (after[3:6] - rows[3:6, 1:]).square().mean()
    error.backward()
    return error


finder.step(misfit)
truth = float(flown.parameter("mass")[0]) / vehicle("tinyprop").mass
print(f"mass by gradient {factor.item():.4f} of the record's, in truth {truth:.4f}")
