"""What the tests of this room are given."""

from __future__ import annotations

from tests.fixtures.views import place, view  # noqa: F401
