"""Whether real flights are predicted through the general path as by the protocol of validation (identify, 11.10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from airworthy.benchmarks.validation.errors import error_samples
from airworthy.benchmarks.validation.fits import fit
from airworthy.benchmarks.validation.open_loop.flights import ready_flights
from airworthy.benchmarks.validation.open_loop.judgement import errors_of
from airworthy.benchmarks.validation.open_loop.prediction import batch_windows, open_loop
from airworthy.benchmarks.validation.protocol import BRUSHLESS, BRUSHLESS_FLIGHTS, CASE, Experiment, Split
from airworthy.benchmarks.validation.run import flyable, load_references
from airworthy.benchmarks.validation.structure import STRUCTURES, predict
from airworthy.benchmarks.validation.windows import GYRO_DELAY, HORIZONS, cut_windows, join_windows
from airworthy.logs import read_log
from airworthy.verification.published import Figure, below

__all__ = ["general_path_figures"]

FACTORS = {"position": 1.0, "velocity": 1.0, "attitude": 180.0 / np.pi, "rate": 1.0}
"""From the general path's units to those of the protocol."""
WORSE = 1.02
"""Of errors over the protocol's."""


def general_path_figures(data: Path) -> Iterator[Figure]:
    """Fit each pair of the case's three flights, and predict the third by both ways, with the record that would be saved.

    Args:
        data: Folder of reference files; without the case's flights nothing is measured.
    """
    folder = data / "flights" / CASE.folder
    if not folder.is_dir():
        return
    references = load_references(folder)
    cut = {name: cut_windows(references[name]) for name in BRUSHLESS_FLIGHTS}
    logs = [read_log(folder / f"{name}.npz") for name in BRUSHLESS_FLIGHTS]
    for place, judged in enumerate(BRUSHLESS_FLIGHTS):
        train, test = join_windows([w for name, w in cut.items() if name != judged]), cut[judged]
        fitted = fit(BRUSHLESS, train, STRUCTURES["damping"])
        vehicle = flyable(Experiment("", "", BRUSHLESS, [Split(judged, train, test)], True), fitted)
        today = error_samples(predict(test, [fitted.model()]), test).rms()
        ready = ready_flights(logs, vehicle, pose_rate=CASE.pose_rate)[place]
        windows = batch_windows([ready], 1, HORIZONS, starts=[test.time])
        errors = errors_of(windows, {"vehicle": open_loop(vehicle, windows, sensor_delay=GYRO_DELAY)})
        ratios = [
            factor * np.sqrt(np.nanmean(errors[channel]["vehicle"] ** 2, axis=0)) / today[row]
            for row, (channel, factor) in enumerate(FACTORS.items())
        ]
        yield below(f"{judged} by the general path: worst of twelve errors over the protocol's", float(np.max(ratios)), WORSE)
