"""What nobody can fly: through Python, each is refused in one sentence, or flown without a warning."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest

from airworthy.control.levels import ControlConfig
from airworthy.core.errors import AirworthyError
from airworthy.simulation import Contact, Downwash, Ground, Imu, Randomization, Simulator, SimulatorConfig, Wind
from airworthy.simulation.parameters import BOUNDS
from airworthy.vehicles import vehicle

QUAD = vehicle("flightgoggles")
BAD: list[Any] = [float("nan"), float("inf"), -float("inf"), -1, 0, 1e300, "960", None, True, (1, 2), [], object(), 1e-320]
PARTS: dict[str, Any] = {
    "wind": Wind(turbulence=(1.0, 1.0, 1.0), gust=(1.0, 0.0, 0.0)),
    "ground": Ground(),
    "downwash": Downwash(),
    "imu": Imu(accelerometer_noise=(0.1, 0.1, 0.1), bias_initial=(0.1, 0.1, 0.1)),
    "randomization": Randomization(mass=0.1, wind=1.0),
    "control": ControlConfig(),
}
FIELDS = [(part, item.name) for part, config in PARTS.items() for item in dataclasses.fields(config)]
FIELDS += [("", item.name) for item in dataclasses.fields(SimulatorConfig) if item.name not in PARTS]


def fly(config: SimulatorConfig) -> None:
    """A few steps near the ground; a flight may diverge, but nothing of it may be undefined."""
    simulator = Simulator(QUAD, config, env_count=2, groups=[0, 0])
    simulator.reset(position=[(0.0, 0.0, 0.3), (0.0, 0.1, 3.0)])
    simulator.step(np.zeros(4) if config.level != "rotor_speed" else np.full(4, 1100.0))
    assert np.isfinite(simulator.position).all()


def refusal(base: SimulatorConfig, part: str, name: str, value: Any) -> str | None:
    """What is said against a value; None where it flies."""
    try:
        changed = {part: dataclasses.replace(PARTS[part], **{name: value})} if part else {name: value}
        fly(dataclasses.replace(base, **changed))
    except AirworthyError as error:
        return str(error)
    return None


@pytest.mark.parametrize(("part", "name"), FIELDS)
def test_every_field(part: str, name: str) -> None:
    base = SimulatorConfig(physics_rate=500.0, **PARTS)
    for value in BAD:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            said = refusal(base, part, name, value)
        assert said is None or (said and "\n" not in said), value


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: Randomization(mass=1.5), "Randomization.mass is 1.5; expected at least 0 and less than 1."),
        (lambda: Randomization(mass=float("nan")), "Randomization.mass is nan; expected at least 0 and less than 1."),
        (lambda: Ground(friction=-2.0), "Ground.friction is -2; expected 0 to 100."),
        (lambda: Contact(friction=-2.0), "Contact.friction is -2; expected 0 to 100."),
        (lambda: Contact(restitution=1.5), "Contact.restitution is 1.5; expected 0 to 1."),
        (
            lambda: Wind(turbulence_length=(0.0, 1.0, 1.0)),
            "Wind.turbulence_length[0] is 0 m; expected 0.01 to 100000.",
        ),
        (lambda: Wind(mean=(float("nan"), 0.0, 0.0)), "Wind.mean[0] is nan m/s; expected -100 to 100."),
        (lambda: SimulatorConfig(ground_effect=float("nan")), "ground_effect is nan; expected 0 to 10000."),
        (lambda: SimulatorConfig(physics_rate="960"), "physics_rate is '960'; expected a number, 1 to 100000 Hz."),  # type: ignore[arg-type]
    ],
)
def test_sentences(made: Any, sentence: str) -> None:
    with pytest.raises(AirworthyError) as caught:
        made()
    assert str(caught.value) == sentence


def simulator(**config: Any) -> Simulator:
    return Simulator(QUAD, SimulatorConfig(level="position", imu=Imu(), ground=Ground(), **config), env_count=2)


@pytest.mark.parametrize("dynamics", ["rigid", "semi_kinematic"])
def test_no_parameter_takes_what_is_no_number(dynamics: Any) -> None:
    level = "position" if dynamics == "rigid" else "tracking"
    made = Simulator(QUAD, SimulatorConfig(dynamics=dynamics, level=level), env_count=2)
    for name in made._param_layout.fields:
        before, width = made.rows.copy(), int(np.prod(made._param_layout.fields[name], dtype=int))
        for value in (float("nan"), -float("inf"), 1e300, "960", None, True, object(), [[1.0], [1.0, 2.0]]):
            given = np.full(width, value) if isinstance(value, float) and made._param_layout.fields[name] else value
            with pytest.raises(AirworthyError) as caught:
                made.set_parameter(name, given)  # type: ignore[arg-type]
            assert "\n" not in str(caught.value)
        assert np.array_equal(made.rows, before), "a refused parameter changed something"


def test_what_no_vehicle_has_is_refused() -> None:
    made = simulator()
    refused = {
        "mass": (-1.0, 0.0, 1e-308, 1e300),
        "mass_inverse": (-1.0, 0.0),
        "inertia": (
            (1.0, 1.0, 3.0, 0.0, 0.0, 0.0),
            (1.0, 1.0, -1.0, 0.0, 0.0, 0.0),
            (1.0, 1.0, 1.0, 2.0, 0.0, 0.0),
            (0.0,) * 6,
        ),
        "rotor_axis": (np.tile([0.0, 0.0, 2.0], 4), np.zeros(12)),
        "rotor_max": (np.full(4, -1.0),),
        "rotor_min": (np.full(4, 1e6),),
        "rotor_thrust": (np.tile([-1.0, 0.0, 0.0], 4),),
        "rotor_rise": (np.tile([-1.0, 0.0], 4),),
        "friction": (-2.0,),
        "restitution": (1.01,),
        "drag_linear": ((-1.0, 0.0, 0.0),),
        "imu_rotation": (np.zeros(9), np.diag([1.0, 1.0, -1.0]).ravel()),
        "wind": ((1000.0, 0.0, 0.0),),
        "dryden_keep": ((1.0, 1.0, 1.0),),
        "battery": (np.zeros(6),),
        "limit": ((0.0, 1.0, 1.0),),
        "gravity": (-9.81,),
        "control_mass": (0.0,),
    }
    for name, values in refused.items():
        for value in values:
            with pytest.raises(AirworthyError):
                made.set_parameter(name, value)
    assert set(BOUNDS) <= {*made._param_layout.fields, "command_delay", "thrust_limit", "rate_limit", "noise"}


def test_what_a_vehicle_has_is_taken_back() -> None:
    """Every row of the catalogue's vehicles lies inside its bounds."""
    for name in ("flightgoggles", "lmf2", "base_octarotor", "cf2x_L250", "real_01"):
        made = Simulator(vehicle(name), SimulatorConfig(level="position", imu=Imu(), ground=Ground()), env_count=2)
        before = made.rows.copy()
        for field in made._param_layout.fields:
            made.set_parameter(field, np.array(made.parameter(field)))
        assert np.allclose(made.rows, before, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(
    "act",
    [
        lambda: Simulator(QUAD, threads=0),
        lambda: Simulator(QUAD, threads=-3),
        lambda: Simulator(QUAD, threads="two"),  # type: ignore[arg-type]
        lambda: Simulator(QUAD, seed="x"),  # type: ignore[arg-type]
        lambda: Simulator(QUAD, seed=1.5),  # type: ignore[arg-type]
        lambda: Simulator(QUAD, device=3),  # type: ignore[arg-type]
        lambda: Simulator(QUAD, flight_ids=["a"]),
        lambda: Simulator(QUAD, flight_ids=[[0], [1, 2]]),  # type: ignore[arg-type]
        lambda: Simulator(QUAD, SimulatorConfig(downwash=Downwash()), groups=[0.5]),
        lambda: Simulator(QUAD, SimulatorConfig(downwash=Downwash()), groups="a"),  # type: ignore[arg-type]
        lambda: Simulator(QUAD, believed="lmf2"),  # type: ignore[arg-type]
        lambda: simulator().set_external("hard"),  # type: ignore[arg-type]
        lambda: simulator().set_external([[1.0, 2.0], [1.0]]),  # type: ignore[list-item]
        lambda: simulator().set_external(None),  # type: ignore[arg-type]
        lambda: simulator().set_command(np.zeros(4), delay_steps=-1),
        lambda: simulator().set_command(np.zeros(4), delay_steps=float("nan")),
        lambda: simulator().set_command(np.zeros(4), delay_steps="x"),  # type: ignore[arg-type]
        lambda: simulator().set_command(np.zeros(4), delay_steps=[1, 2, 3]),
        lambda: simulator().reset(env_ids="all"),  # type: ignore[arg-type]
        lambda: simulator().reset(env_ids=[0.5]),
        lambda: simulator().reset(env_ids=[[0], [0, 1]]),  # type: ignore[arg-type]
        lambda: simulator().reset(position="here"),  # type: ignore[arg-type]
        lambda: simulator().reset(position=[1e300, 0.0, 0.0]),
    ],
)
def test_arguments(act: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AirworthyError) as caught:
            act()
    assert "\n" not in str(caught.value)
