"""What a student is taught by: losses by hand, tensors beside their float64 twin, the network beside the one that flies."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from airworthy.core.frames import from_euler, to_matrix  # noqa: E402
from airworthy.learning.agile_autonomy import twin  # noqa: E402
from airworthy.learning.agile_autonomy.loss import clearance_loss, score_loss, space_loss  # noqa: E402
from airworthy.learning.agile_autonomy.network import StudentNet  # noqa: E402
from airworthy.planners.agile_autonomy.layers import IMAGE, STATE, STEPS, StudentNetwork, tensor_shapes  # noqa: E402
from airworthy.planners.agile_autonomy.level import level_views  # noqa: E402


def test_collision_costs_by_hand() -> None:
    distance = np.array([-0.1, 0.0, 0.15, 0.3, 0.3 + 1e-12, 0.55, 0.8, 2.0])
    found = [float(twin.collision_costs(np.array([d]))) for d in distance]
    assert found == pytest.approx([4.0, 4.0, 3.5, 2.0, 2.0, 1.0, 0.0, 0.0], abs=1e-9)
    assert twin.collision_costs(distance) == pytest.approx(16.5 / 8.0)


def shifted(*shifts: float) -> np.ndarray:
    """Trajectories (k, 10, 3) that are off in x alone."""
    out = np.zeros((len(shifts), 10, 3))
    out[:, :, 0] = np.array(shifts)[:, None]
    return out


def test_space_loss_by_hand() -> None:
    # A shift of s in one of three coordinates costs 10 s^2 / 3. Experts at 0, 0.3, 0.6; modes at 0.1, 0.7 and 3.
    modes, expert = shifted(0.1, 0.7, 3.0)[None], shifted(0.0, 0.3, 0.6)[None]
    won = 0.95 * np.mean([0.1**2, 0.2**2, 0.1**2])
    # The third mode won none: it is drawn to the first of the expert's, with half of what is left.
    expected = 10.0 / 3.0 * (won + 0.025 * 3.0**2)
    assert twin.space_loss(modes, expert) == pytest.approx(expected)
    assert float(space_loss(torch.tensor(modes), torch.tensor(expert))) == pytest.approx(expected)
    # Each mode won one: nothing else is asked.
    assert twin.space_loss(shifted(0.0, 0.3, 0.6)[None], expert) == 0.0
    # One mode has no others to spare.
    assert float(space_loss(torch.tensor(shifted(0.3)[None]), torch.tensor(expert))) == pytest.approx(
        10.0 / 3.0 * 0.95 * (0.09 + 0.0 + 0.09) / 3.0
    )


def test_score_loss_by_hand() -> None:
    score, cost = np.array([[1.0, 0.0], [2.0, 0.5]]), np.array([[0.0, 0.0], [2.0, 1.5]])
    assert twin.score_loss(score, cost) == pytest.approx(2.0 * (1.0 + 1.0) / 4.0)
    assert float(score_loss(torch.tensor(score), torch.tensor(cost))) == pytest.approx(1.0)


def test_clearance_loss_by_hand() -> None:
    # Missing to 0.8 m: 0.3, nothing, and 1.0 inside of something.
    distance = np.array([[[0.5, 2.0, -0.2, 0.8]]])
    expected = 10.0 * (0.09 + 1.0) / 4.0
    assert twin.clearance_loss(distance) == pytest.approx(expected)
    points = torch.zeros((1, 1, 4, 3), dtype=torch.float64)
    assert float(clearance_loss(points, torch.tensor(distance), torch.zeros_like(points))) == pytest.approx(expected)


def test_clearance_loss_leads_off_things_as_fast_as_distances_grow() -> None:
    # A wall at x = 1 and what is free before it: the distance of a point is 1 - x.
    rng = np.random.default_rng(2)
    points = rng.uniform(-1.0, 2.0, (2, 3, 10, 3))
    tensor, slope = torch.tensor(points, requires_grad=True), np.zeros_like(points)
    slope[..., 0] = -1.0
    clearance_loss(tensor, torch.tensor(1.0 - points[..., 0]), torch.tensor(slope)).backward()
    assert tensor.grad is not None
    for index in np.ndindex(2, 3, 10):
        step = np.zeros((2, 3, 10))
        step[index] = 1e-5
        up, down = (twin.clearance_loss(1.0 - points[..., 0] - sign * step) for sign in (1.0, -1.0))
        assert float(tensor.grad[*index, 0]) == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-8)
    assert float(tensor.grad[..., 1:].abs().max()) == 0.0


@pytest.mark.parametrize("modes", [1, 2, 3, 5])
def test_space_loss_is_its_twin(modes: int) -> None:
    rng = np.random.default_rng(modes)
    for _ in range(20):
        points, expert = rng.normal(size=(6, modes, 10, 3)), rng.normal(size=(6, 3, 10, 3))
        found = float(space_loss(torch.tensor(points), torch.tensor(expert)))
        assert found == pytest.approx(twin.space_loss(points, expert), rel=1e-12)


def test_gradient_is_that_of_the_twin() -> None:
    rng = np.random.default_rng(7)
    points, expert = rng.normal(size=(2, 3, 10, 3)), rng.normal(size=(2, 3, 10, 3))
    tensor = torch.tensor(points, requires_grad=True)
    space_loss(tensor, torch.tensor(expert)).backward()
    assert tensor.grad is not None
    for index in [(0, 0, 3, 1), (1, 2, 9, 2), (0, 1, 0, 0)]:
        step = np.zeros_like(points)
        step[index] = 1e-5
        slope = (twin.space_loss(points + step, expert) - twin.space_loss(points - step, expert)) / 2e-5
        assert float(tensor.grad[index]) == pytest.approx(slope, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("modes", [1, 3])
def test_network_that_learns_is_the_one_that_flies(modes: int) -> None:
    torch.manual_seed(3)
    net = StudentNet(modes).double()
    weights = {name: value.detach().numpy() for name, value in net.state_dict().items()}
    assert {name: value.shape for name, value in weights.items()} == tensor_shapes(modes)
    rng = np.random.default_rng(5)
    images, state = rng.integers(0, 251, (4, IMAGE, IMAGE)).astype(np.uint8), rng.normal(size=(4, STATE))
    state[:, :9] = np.asarray(to_matrix(np.asarray(from_euler(*rng.normal(0.0, 0.5, (3, 4)))))).reshape(4, 9)
    with torch.no_grad():
        score, points = net(torch.tensor(level_views(images, state, STEPS)), torch.tensor(state))
    flown = StudentNetwork(weights, modes, np.float64)(images, state)
    np.testing.assert_allclose(flown[0], score.numpy(), atol=1e-10)
    np.testing.assert_allclose(flown[1], points.numpy(), atol=1e-10)
