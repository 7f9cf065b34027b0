"""Which form a Betaflight takes is found out by turning it; one whose motors are crossed fits none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.bridges.conftest import RATE, free_port

from airworthy.benchmarks.fly.config import FlyConfig, check_config
from airworthy.bridges import BetaflightPilot, LinkSettings
from airworthy.bridges.betaflight_form import FormVerdict, find_form, hand_sticks
from airworthy.bridges.server import ServeConfig
from airworthy.core.errors import AirworthyError
from airworthy.vehicles import vehicle


@pytest.mark.parametrize(
    ("options", "form"),
    [
        ((), "gazebo"),
        pytest.param(("--legacy",), "legacy", marks=pytest.mark.slow),
        (("--old",), "before_2026"),
        (("--crossed",), None),
        (("--old", "--crossed"), None),
    ],
)
def test_the_form_is_found(stand_in: Callable[..., Any], options: tuple[str, ...], form: str | None) -> None:
    port = free_port()
    settings = LinkSettings(address=str(port), patience=5.0)
    with BetaflightPilot(vehicle("x500"), RATE, settings, sticks=hand_sticks, ports=(port + 1, port + 2)) as link:
        stand_in("betaflight", port, *options)
        verdict = find_form(link, clock="lockstep")
    assert verdict.form == form
    said = verdict.sentences()
    assert said[-1].startswith("No form fits" if form is None else f"The firmware takes form {form}")
    if form is not None:
        assert min(verdict.opposed[form]) > 0.01  # type: ignore[index]


def test_two_forms_that_fit_are_none() -> None:
    assert FormVerdict({"gazebo": (0.1, 0.1, 0.1), "legacy": (0.1, 0.1, 0.1)}).form is None
    assert FormVerdict({"gazebo": (0.1, 0.1, 0.1), "legacy": (0.1, 0.0, 0.1)}).form == "gazebo"


def test_options_that_are_of_betaflight_alone() -> None:
    with pytest.raises(AirworthyError, match="--self-test changes nothing for an autopilot that is no Betaflight"):
        ServeConfig("px4", self_test=True)
    with pytest.raises(AirworthyError, match="--form legacy changes nothing for a pilot that is no Betaflight"):
        check_config(FlyConfig(form="legacy"))
    check_config(FlyConfig(pilot="external:betaflight", form="legacy"))
