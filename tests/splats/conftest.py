"""What the tests of this room are given."""

from __future__ import annotations

from tests.fixtures.splats import cloud, plain, pose, ring  # noqa: F401
