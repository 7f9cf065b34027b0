"""What flies is what was validated: the simulator, given the saved record, does what the fit predicts."""

from dataclasses import replace

import numpy as np
import pytest

from airworthy.benchmarks.validation.calibration import Calibration
from airworthy.benchmarks.validation.fits import ModelFit
from airworthy.benchmarks.validation.protocol import BRUSHED, Experiment, Split
from airworthy.benchmarks.validation.run import fly_windows, flyable
from airworthy.benchmarks.validation.structure import STRUCTURES, Structure, predict
from airworthy.benchmarks.validation.windows import cut_windows, reference
from airworthy.core.errors import AirworthyError
from airworthy.vehicles import RotorResponse, read_vehicle, write_vehicle
from airworthy.vehicles.files import missing_sources

IDENTITY = Calibration(np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3), np.zeros(3), 0.0)
HUB_AIR = ("hubs", "hubs and lift", "full and hubs")
TILT = {"tilt_x": 0.003, "tilt_y": -0.004}  # 0.29 degrees, about what the fits find
AIR = {"hub_across": 2.5e-6, "hub_along": 1e-6, "flapping": 5e-8, "translational_lift": 1e-3}


@pytest.fixture(scope="module")
def windows(synthetic):
    return cut_windows(reference(synthetic.log, IDENTITY), span=(0.0, 5.0))


def fitted(windows, name):
    structure = Structure(BRUSHED, STRUCTURES[name], 2.0e-8)
    values = dict(zip(structure.free, structure.mean, strict=True)) | TILT | (AIR if name in HUB_AIR else {})
    return ModelFit(structure, np.array([values[n] for n in structure.free]), 0.0)


def apart(a, b):
    """Largest distance of two predictions in position [m] and attitude [rad]."""
    turned = 2.0 * np.sqrt(np.maximum(0.0, 1.0 - np.sum(a.attitude * b.attitude, axis=-1) ** 2))
    return np.abs(a.position - b.position).max(), turned.max()


def straightened(model):
    """The model with upright rotors: what was saved once, and was not what had been judged."""
    upright = tuple(replace(rotor, axis=(0.0, 0.0, 1.0)) for rotor in model.vehicle.rotors)
    return replace(model, vehicle=replace(model.vehicle, rotors=upright))


@pytest.mark.parametrize("name", ["full", *HUB_AIR])
def test_the_saved_record_flies_as_the_fit_predicts(windows, tmp_path, name):
    fit = fitted(windows, name)
    experiment = Experiment("brushed", "", BRUSHED, [Split("all", windows, windows)], False)
    saved = flyable(experiment, fit)
    assert missing_sources(saved) == []
    write_vehicle(saved, tmp_path / "saved.toml")
    flown = fly_windows(read_vehicle(tmp_path / "saved.toml"), windows)
    predicted = predict(windows, [fit.model()])
    # The simulator's float32 against float64, and its steps of 1 ms against the prediction's of 10 ms.
    moved, turned = apart(flown, predicted)
    assert moved < 2e-4
    assert turned < 1e-3
    # Straightened, the same vehicle is somewhere else: this would have been seen.
    assert apart(predict(windows, [straightened(fit.model())]), predicted)[0] > 10.0 * moved


def test_a_rotor_that_cannot_follow_is_said(windows):
    vehicle = fitted(windows, "full").model().vehicle
    slow = replace(vehicle.rotors[2], response=RotorResponse.first_order(0.05, 0.1))
    with pytest.raises(AirworthyError, match=r"Rotor 2 of crazyflie_brushed_35g lags by rise .* needs one time constant"):
        fly_windows(replace(vehicle, rotors=(*vehicle.rotors[:2], slow, vehicle.rotors[3])), windows)
