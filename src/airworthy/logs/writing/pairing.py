"""Which stream belongs to which: a position and its attitude, a voltage and its current, a gyro and its accelerometer."""

from __future__ import annotations

import numpy as np

from airworthy.logs.record import Log, LogStream


def beside(log: Log, stream: LogStream, kind: str) -> LogStream | None:
    """Return the stream of another kind that comes of the same device, at the same stamps.

    Devices are told by labels. Equal stamps alone say little: all columns of a table share theirs. Only where a log has one
    stream of either kind do the two belong together whatever their labels are.

    Args:
        log: The log.
        stream: One stream of it.
        kind: What is looked for.

    Returns:
        The stream, or None where there is none of that label, or its stamps are others.
    """
    found = log.of_kind(kind)
    alone = len(found) == 1 and len(log.of_kind(stream.kind)) == 1
    for other in found:
        if (alone or other.label == stream.label) and np.array_equal(other.time, stream.time):
            return other
    return None
