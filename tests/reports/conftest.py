"""What the tests of this room are given."""

from __future__ import annotations

from tests.fixtures.flights import make_flights, reference  # noqa: F401
from tests.fixtures.small_pictures import small_pictures  # noqa: F401
