"""A record flown: the same windows by the simulator, in float32, with rotors that follow the measured speeds.

What a prediction says of a fit is worth something for the vehicle that is saved only where the simulator, given the saved
record, does the same. So it is asked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from airworthy.benchmarks.validation.predict import Prediction
from airworthy.benchmarks.validation.windows import HORIZON_STEPS, STEPS, TIME_STEP, LogWindows
from airworthy.core.errors import AirworthyError
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle

Array = NDArray[np.float64]

SUBSTEPS = 5
"""Physics steps per half step of the windows: 1,000 Hz."""
_RATE = 2.0 * SUBSTEPS / TIME_STEP


def fly_windows(vehicle: Vehicle, windows: LogWindows) -> Prediction:
    """Fly every window from its reference start, open loop, with commands that make the rotors turn as they did.

    Args:
        vehicle: The record, four rotors in the order of the log with first-order lags.
        windows: Starts and rotor speeds; between their samples speeds are linear.

    Returns:
        States at each horizon, one model.

    Raises:
        AirworthyError: A rotor's lag is not of first order, so that no command is known that makes it follow.
    """
    lag = _lags(vehicle)
    keep = np.exp(-1.0 / (_RATE * lag))
    config = SimulatorConfig(physics_rate=_RATE, control_rate=_RATE, wrench_noise=False, disturbance=False)
    simulator = Simulator(vehicle, config, env_count=len(windows))
    simulator.reset(
        position=windows.position[:, 0],
        velocity=windows.velocity[:, 0],
        attitude=windows.attitude[:, 0],
        rate=windows.rate[:, 0],
        rotor_speed=windows.rotor_speed[:, 0],
    )
    kept = []
    for step in range(2 * STEPS * SUBSTEPS):
        index, part = divmod(step + 1, SUBSTEPS)
        share = part / SUBSTEPS
        after = windows.rotor_speed[:, min(index + 1, 2 * STEPS)]
        wanted = (1.0 - share) * windows.rotor_speed[:, index] + share * after
        # A lag of first order under a constant command c: w+ = c + (w - c) keep, solved for c.
        simulator.advance(1, (wanted - simulator.rotor_speed * keep) / (1.0 - keep))
        if (step + 1) % (2 * SUBSTEPS) == 0 and (step + 1) // (2 * SUBSTEPS) in HORIZON_STEPS:
            kept.append([np.array(getattr(simulator, name), float) for name in ("position", "velocity", "attitude", "rate")])
    position, velocity, attitude, rate = (np.stack(parts, axis=1)[None] for parts in zip(*kept, strict=True))
    return Prediction(position, velocity, attitude, rate)


def _lags(vehicle: Vehicle) -> Array:
    """Time constants [s], (rotor,)."""
    for index, rotor in enumerate(vehicle.rotors):
        response = rotor.response
        if response.rise != response.fall or response.rise[1] != 0.0:
            raise AirworthyError(
                f"Rotor {index} of {vehicle.name} lags by rise {response.rise} and fall {response.fall}; to follow measured"
                " speeds it needs one time constant: RotorResponse.first_order(seconds)."
            )
    return np.array([1.0 / rotor.response.rise[0] for rotor in vehicle.rotors])
