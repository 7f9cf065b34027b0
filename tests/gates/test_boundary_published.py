"""The networks that come with the package: read by name, whole, and good for a plan that is approved."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.gates.benchmark.methods import search_of
from airworthy.gates.planner.contract import shipped_networks
from airworthy.gates.planner.network import Boundary
from airworthy.gates.planner.planner import plan
from airworthy.trajectories import course


@pytest.mark.parametrize("name", list(shipped_networks()))
def test_a_shipped_network_plans_a_course_and_tells_what_it_learnt_from(name: str) -> None:
    network = Boundary.read(name)
    options = search_of(network, name)
    low, high = network.ranges.T
    answers = network.predict(np.random.default_rng(0).uniform(low, high, (50, 8)))
    assert np.all((answers >= 0.0) & (answers <= np.array(network.contract.scales)))  # a sigmoid's ends may be reached
    assert np.all(answers[:, 1] > 0.1)
    assert network.contract.scales[0] == pytest.approx(options.choices.speed_max)
    assert plan(course("circle_8"), network).flyable
