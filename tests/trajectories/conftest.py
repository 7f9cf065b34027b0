"""References shared by the tests of this room."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(scope="session")
def vectors() -> dict[str, Any]:
    """Segments, peaks, limits and yaw of the gate specification, computed for this project."""
    return json.loads((FIXTURES / "reference_vectors.json").read_text())


@pytest.fixture(scope="session")
def course_reference() -> dict[str, dict[str, Array]]:
    """Per published course the columns of its reference, z down, every eighth sample."""
    with open(FIXTURES / "course_reference.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [name for name in rows[0] if name != "course"]
    names = sorted({row["course"] for row in rows})
    return {
        name: {column: np.array([float(row[column]) for row in rows if row["course"] == name]) for column in columns}
        for name in names
    }
