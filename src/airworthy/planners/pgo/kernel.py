"""Builds the kernel of the roadmap: a worker takes flights one after the other."""

# No postponed annotations here: Warp reads them.

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp, shared_source
from airworthy.planners.fast.records import FAR, WINDOW, struct_text
from airworthy.planners.pgo import records


def roadmap_source() -> str:
    """Complete native source."""
    fast, here = (files(f"airworthy.planners.{room}").joinpath("native") for room in ("fast", "pgo"))
    limits = {name: getattr(records, name) for name in ("MOST_CORNERS", "MOST_DEPTH", "MOST_ENDS", "MOST_PATHS", "MOST_REGION")}
    numbers = ", ".join(f"{name} = {value}" for name, value in {"FAR": int(FAR), **limits}.items())
    text = [shared_source("prelude.h"), f"enum {{ {numbers} }};", struct_text("Window", WINDOW)]
    text += [struct_text("RoadmapAsked", records.ASKED), struct_text("RoadmapFound", records.FOUND)]
    text.append(fast.joinpath("window.h").read_text())
    text += [here.joinpath(name).read_text() for name in ("threefry.h", "sight.h", "roadmap.h", "roadmap_task.h")]
    return "\n".join(text)


@cache
def roadmap_kernel() -> Any:
    """Return the Warp kernel; compiled at first launch, then cached on disk."""
    wp = quiet_warp()

    @wp.func_native(roadmap_source())
    def native_roadmap(
        windows: wp.array[wp.uint8],
        asked: wp.array[wp.uint8],
        found: wp.array[wp.uint8],
        work: wp.array[wp.uint8],
        work_size: int,
        count: int,
        workers: int,
        worker: int,
    ): ...

    def airworthy_roadmap(
        windows: wp.array[wp.uint8],  # WINDOW, (windows)
        asked: wp.array[wp.uint8],  # ASKED, (count)
        # output
        found: wp.array[wp.uint8],  # FOUND, (count)
        # work memory
        work: wp.array[wp.uint8],  # (workers, work_size)
        work_size: int,
        count: int,
        workers: int,
        first: int,
    ):
        native_roadmap(windows, asked, found, work, work_size, count, workers, first + wp.tid())

    return wp.kernel(airworthy_roadmap, module="unique", module_options=MODULE_OPTIONS)
