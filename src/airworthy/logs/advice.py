"""What to set so that the next log tells more, where streams of this one are too slow for the lag of a vehicle's rotors.

Sources: PX4's parameter reference (SDLOG_PROFILE: bit 0 the default set, bit 3 system identification, bit 4 high rate),
Bitcraze's documentation of the micro-SD deck (config.txt), Betaflight's command line reference (blackbox_sample_rate).
"""

from __future__ import annotations

from airworthy.logs.record import Log

LAG = 0.05
"""Lag of a small vehicle's rotors, for which rates are judged [s]."""
RATES = {"motor_command": 4.0 / LAG, "gyro": 8.0 / LAG, "accelerometer": 8.0 / LAG, "motor_speed": 8.0 / LAG}
"""Least rate of a kind of stream that shows a lag [Hz]: 4 commands and 8 samples of the rest in it."""
NEAR = 0.97
"""Ours: 248 Hz are 250 Hz."""

_PX4 = 0b11001
_HINTS = {
    "Crazyflie micro-SD": "give fixedFrequency a higher rate in the card's config.txt (1000 Hz), and fewer variables",
    "Betaflight blackbox CSV": "`set blackbox_sample_rate = 1/1`, or 1/2 where the card is too slow",
    "MCAP": "publish their topics at a higher rate, or record all of their messages",
    "ROS 2 bag": "publish their topics at a higher rate, or record all of their messages",
    "run": "fly it with --control-rate 480 --record-rate 480",
}
_HINT = "log them at a higher rate"


def slow_streams(log: Log) -> dict[str, tuple[float, float]]:
    """Return the first stream of each kind that is too slow to show a lag: its name, and its rate and the least one [Hz]."""
    found = {}
    for kind, least in RATES.items():
        if log.has(kind):
            stream = log.stream(kind)
            if stream.quality.rate < NEAR * least:
                found[stream.name] = (stream.quality.rate, least)
    return found


def rate_advice(log: Log) -> tuple[str, ...]:
    """Say which streams are too slow to tell lag and dead time, and what to set for the next log; empty where none is.

    Rates are one over the median of differences of stamps.

    Args:
        log: The log.
    """
    slow = slow_streams(log)
    if not slow:
        return ()
    listed = ", ".join(f"{name} {rate:.4g} Hz of {least:.0f}" for name, (rate, least) in slow.items())
    return (f"Too slow to tell a lag of {1e3 * LAG:.0f} ms: {listed}. For the next log {rate_hint(log)}.",)


def rate_hint(log: Log) -> str:
    """Return what makes the next log of this kind a faster one, as the rest of a sentence."""
    if log.source.format != "ULog":
        return _HINTS.get(log.source.format, _HINT)
    profile = log.parameters.get("SDLOG_PROFILE")
    now = f"; it was {profile}" if isinstance(profile, int) else ""
    if isinstance(profile, int) and profile & _PX4 == _PX4:
        return "take a faster card: SDLOG_PROFILE has high rate and system identification already"
    wanted = _PX4 | (profile if isinstance(profile, int) and profile >= 0 else 0)
    return f"set SDLOG_PROFILE to {wanted} (high rate and system identification{now})"
