"""Vehicles drawn from what an identification left open: as parameter rows, as records, and how far draws are cut."""

from airworthy.simulation.posterior.records import (
    DrawnVehicle,
    NarrowedDraws,
    drawn_vehicles,
    draws_record,
    narrowed_draws,
)
from airworthy.simulation.posterior.rows import (
    ATTEMPTS,
    DRAW_UNIFORMS,
    DRAWN_ROWS,
    Posterior,
    bounded_config,
    draw_rows,
    drawn_values,
    latest_command,
    posterior_of,
    posteriors_of,
    rejected_share,
)

__all__ = [
    "ATTEMPTS",
    "DRAWN_ROWS",
    "DRAW_UNIFORMS",
    "DrawnVehicle",
    "NarrowedDraws",
    "Posterior",
    "bounded_config",
    "draw_rows",
    "drawn_values",
    "drawn_vehicles",
    "draws_record",
    "latest_command",
    "narrowed_draws",
    "posterior_of",
    "posteriors_of",
    "rejected_share",
]
