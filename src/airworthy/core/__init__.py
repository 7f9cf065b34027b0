"""Frames, errors, files, long runs, traced equations, kernels and random numbers: nothing here knows about drones.

`frames` and `ops` are modules of functions: rotations on arrays, and the scalar operations of equations that are traced.
"""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.core import frames, ops
    from airworthy.core.errors import AirworthyError, AssetError, AssetWarning, UnknownNameError
    from airworthy.core.files import data_dir, read_json, read_toml, write_json, write_text
    from airworthy.core.frames import camera_attitude, from_euler
    from airworthy.core.jobs.progress import stoppable
    from airworthy.core.layout import Layout
    from airworthy.core.native_kernel import MODULE_OPTIONS, Launcher, quiet_launch, quiet_warp, shared_source
    from airworthy.core.random import Stream
    from airworthy.core.schema import Bound, check_fields
    from airworthy.core.tracing import adjoint, jacobian, trace
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "MODULE_OPTIONS", "AirworthyError", "AssetError", "AssetWarning", "Bound", "Launcher", "Layout", "Stream",
    "UnknownNameError", "adjoint", "camera_attitude", "check_fields", "data_dir", "frames", "from_euler", "jacobian", "ops",
    "quiet_launch", "quiet_warp", "read_json", "read_toml", "shared_source", "stoppable", "trace", "write_json", "write_text",
]  # fmt: skip
