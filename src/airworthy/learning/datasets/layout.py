"""How a data set lies on disk.

    dataset.json            what it is, and the SHA-256 of every file
    shard_00000/            roll-outs in shuffled order, those of one course together
        rollouts.parquet    a row per roll-out, also of those that were not kept
        pairs.parquet       a row per image, sensed state and command of the same instant
        images.npy          (pairs, rows, columns, 3), 8 bits
        shard.json          counts and SHA-256 of these files
    run.json                how the last run went: time by stage, machine
    card.html               what is in it, to look at

World: z up; body: x forward, y left, z up; quaternions x, y, z, w.
"""

from __future__ import annotations

import numpy as np

SCHEMA_VERSION = 1
DATASET_FILE, RUN_FILE, CARD_FILE = "dataset.json", "run.json", "card.html"
PAIRS_FILE, ROLLOUTS_FILE, IMAGES_FILE, SHARD_FILE = "pairs.parquet", "rollouts.parquet", "images.npy", "shard.json"

_XYZ = ("x", "y", "z")
STATE_COLUMNS = (
    *(f"position_{a}_m" for a in _XYZ),
    *(f"velocity_{a}_m_s" for a in _XYZ),
    *(f"attitude_{a}" for a in (*_XYZ, "w")),
)
COMMAND_COLUMNS = ("thrust_share", *(f"rate_{a}_rad_s" for a in _XYZ))

PAIR_FIELDS: dict[str, type] = {
    "rollout": np.int64,
    "tick": np.int32,
    "t_s": np.float64,
    **{f"sensed_{name}": np.float32 for name in STATE_COLUMNS},
    **{f"true_{name}": np.float32 for name in STATE_COLUMNS},
    **{f"command_{name}": np.float32 for name in COMMAND_COLUMNS},
}
"""Columns of `pairs.parquet`. `rollout` is a roll-out's number, `t_s` the time on the course."""

ROLLOUT_FIELDS: dict[str, type] = {
    "rollout": np.int64,
    "course": np.int32,
    "start_s": np.float64,
    "mass_kg": np.float64,
    "rotor_force_N": np.float64,
    "end_error_m": np.float64,
    "failed_ticks": np.int32,
    "kept": np.bool_,
}
"""Columns of `rollouts.parquet`. `course` counts in the configuration's courses; `end_error_m` is what is kept by."""


def shard_name(index: int) -> str:
    """Folder of a shard."""
    return f"shard_{index:05d}"
