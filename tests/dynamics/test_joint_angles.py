"""Angles at which flights with joints start: within the stops, where the record says, springs in true balance."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.dynamics.articulated_cases import line, star, with_joints

from airworthy.core.errors import AirworthyError
from airworthy.dynamics.articulated.joint_angles import joint_angles, joint_residual, start_angles
from airworthy.dynamics.articulated.tree import tree_of
from airworthy.vehicles import Joint, Link, Vehicle, articulated, frozen, hover_trim


def test_arms_bend_by_what_a_hand_calculation_says() -> None:
    """kp q = m g c cos q - T L with four thrusts T = M g / (4 cos q) along axes that lean with the arms."""
    low, high = -1.0, 1.0
    for _ in range(60):
        q = 0.5 * (low + high)
        left = 2.0 * q + 9.81 / (4.0 * math.cos(q)) * 0.25 - 0.1 * 9.81 * 0.175 * math.cos(q)
        low, high = (low, q) if left > 0.0 else (q, high)
    assert start_angles(star(2.0)) == pytest.approx([q] * 4, abs=1e-7)


def branches() -> Vehicle:
    """A trunk with two boughs that swing, two tips on each that roll: thrusts and angles depend on each other."""
    links, rotors = [Link("trunk", mass=0.8, inertia=(4e-3, 4e-3, 6e-3, 0.0, 0.0, 0.0))], []
    for side in (1, -1):
        swing = Joint((0.1 * side, 0.0, 0.0), (0.0, 0.0, 1.0), kp=3.0, kd=0.05)
        bough = f"bough{side + 1}"
        links.append(Link(bough, "trunk", swing, 0.1, (0.1 * side, 0.0, 0.0), (1e-4, 4e-4, 4e-4, 0.0, 0.0, 0.0)))
        for tip in (1, -1):
            roll = Joint((0.2 * side, 0.0, 0.0), (1.0, 0.0, 0.0), kp=3.0, kd=0.05)
            inertia = (4e-4, 1e-4, 4e-4, 0.0, 0.0, 0.0)
            links.append(Link(f"{bough}t{tip + 1}", bough, roll, 0.1, (0.0, 0.12 * tip, 0.0), inertia))
            rotor = star(1.0).rotors[0]
            rotors.append(replace(rotor, position=(0.0, 0.2 * tip, 0.02), spin=side * tip, link=f"{bough}t{tip + 1}"))
    return articulated("branches", links, rotors, motor_state="thrust")


def test_springs_balance_where_thrusts_follow_the_angles() -> None:
    craft = branches()
    q = start_angles(craft)
    trim = hover_trim(frozen(craft, q))
    assert np.abs(joint_residual(tree_of(craft), trim, q)).max() < 1e-8
    assert max(map(abs, q)) > 0.1


def test_springs_that_cannot_carry_rest_on_their_stops() -> None:
    assert start_angles(star(0.05, lower=-0.6, upper=0.6)) == (-0.6,) * 4
    # One arm on its stop: the others balance what they then carry.
    craft = star(2.0)
    links = [craft.links[0], replace(craft.links[1], joint=replace(craft.links[1].joint, lower=-0.1)), *craft.links[2:]]
    mixed = articulated("mixed", links, craft.rotors, motor_state="thrust")
    q = start_angles(mixed)
    left = joint_residual(tree_of(mixed), hover_trim(frozen(mixed, q)), q)
    assert q[0] == -0.1
    assert left[0] < 0.0
    assert np.abs(left[1:]).max() < 1e-8


def test_springs_without_a_balance_are_refused() -> None:
    with pytest.raises(AirworthyError, match=r"The springs of 'star' find no angles .* give angles .*--joints"):
        start_angles(star(0.02))


def test_a_ring_keeps_to_the_stops() -> None:
    """Three links close by 120 degrees each; where stops allow less, they close as far as that."""
    assert start_angles(line(3, lower=-2.5, upper=2.5)) == pytest.approx([2.0 * math.pi / 3.0] * 2)
    tight = line(4, lower=-1.4, upper=1.4)
    assert start_angles(tight) == (1.4,) * 3
    with pytest.raises(AirworthyError, match=r"given 1\.571 rad by 'ring'; its stops are at -1\.4 and 1\.4 rad: give angles"):
        joint_angles(tight, "ring")


def test_flights_start_where_the_record_says() -> None:
    apart = line(4, lower=0.2, upper=1.5, initial_low=0.9, initial_high=1.1)
    assert start_angles(apart) == (1.0,) * 3
    assert joint_angles(apart, "hover") == (1.0,) * 3
    with pytest.raises(AirworthyError, match=r"given 0 rad by 'neutral'; its stops are at 0\.2 and 1\.5 rad"):
        joint_angles(apart, "neutral")
    held = replace(with_joints(star(2.0), initial_low=0.29, initial_high=0.29), fixed_base=True)
    assert start_angles(held) == (0.29,) * 4
