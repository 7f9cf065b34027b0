"""The steps on which samples fall, exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.sensors.mounting import SampleClock


@given(st.integers(1, 500), st.integers(500, 2000), st.integers(0, 10**7))
def test_sample_k_falls_on_the_step_that_is_not_before_it(rate: int, physics: int, sample: int) -> None:
    clock = SampleClock(float(rate), float(physics))
    exact = Fraction(sample * physics, rate)
    step = int(clock.step_of(sample))
    assert step == -(-exact.numerator // exact.denominator)
    assert clock.due(step)
    assert int(clock.taken(step)) == sample + 1
    assert int(clock.next_step(step)) == int(clock.step_of(sample + 1))


@pytest.mark.parametrize(("rate", "physics"), [(60, 960), (30, 1200), (24, 500), (30, 500), (14.5, 960), (1000 / 3, 1000)])
def test_every_step_is_due_or_not(rate: float, physics: float) -> None:
    clock = SampleClock(rate, physics)
    steps = np.arange(5000)
    exact = Fraction(physics).limit_denominator(10**6) / Fraction(rate).limit_denominator(10**6)
    expected = {-(-(k * exact).numerator // (k * exact).denominator) for k in range(5000)}
    np.testing.assert_array_equal(np.flatnonzero(clock.due(steps)), sorted(s for s in expected if s < 5000))


def test_latency_is_rounded_up_to_steps() -> None:
    assert SampleClock(30, 1000, 0.01).delay_steps == 10
    assert SampleClock(30, 960, 0.01).delay_steps == 10  # 9.6
    assert SampleClock(30, 960).delay_steps == 0


@pytest.mark.parametrize(("rate", "latency"), [(0.0, 0.0), (2000.0, 0.0), (30.0, -1.0), (30.0, np.nan)])
def test_what_cannot_be_a_clock_is_refused(rate: float, latency: float) -> None:
    with pytest.raises(AirworthyError):
        SampleClock(rate, 1000.0, latency)
