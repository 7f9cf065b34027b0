"""Records that go to the roadmap's compiled code and come back."""

from __future__ import annotations

import numpy as np

MOST_CORNERS = 256
"""Corners of a path; one that needs more is given up."""

MOST_DEPTH = 64
"""Nodes of a path through the roadmap."""

MOST_ENDS = 80
"""Points of the safe beginning of a segment, and of its end."""

MOST_REGION = 1 << 21
"""Cells around a question that are copied, for fast lines of sight; a larger region is read where it lies."""

MOST_PATHS = 8
"""Paths that a roadmap may give."""

ASKED = np.dtype(
    [
        ("window", np.int32),  # number of its window
        ("samples", np.int32),
        ("heads", np.int32),  # points of `head`
        ("tails", np.int32),
        ("most_raw", np.int32),  # paths enumerated
        ("most_paths", np.int32),  # of which so many are looked at
        ("reserve", np.int32),  # of which so many are given
        ("effort", np.int32),  # steps of the enumeration
        ("key", np.int32, (4,)),  # of the random numbers; see airworthy.core.random
        ("attempt", np.int32),  # which roadmap of the flight it is
        ("stream", np.int32),
        ("start", np.float64, (3,)),
        ("end", np.float64, (3,)),
        ("wider", np.float64, (3,)),  # half sizes of the box of samples: beyond the ends, sideways, up and down
        ("clearance", np.float64),  # of samples
        ("ratio", np.float64),  # longest over shortest path
        ("head", np.float64, (3 * MOST_ENDS,)),  # flown before the start
        ("tail", np.float64, (3 * MOST_ENDS,)),  # and after the end
    ]
)
"""One roadmap."""

FOUND = np.dtype(
    [
        ("nodes", np.int32),  # after pruning
        ("raw", np.int32),  # paths enumerated
        ("distinct", np.int32),  # after shortening and comparing
        ("paths", np.int32),  # given
        ("sizes", np.int32, (MOST_PATHS,)),  # corners of each
        ("points", np.float64, (MOST_PATHS * 3 * MOST_CORNERS,)),
    ]
)
"""Its paths, the shortest between start and end first."""
