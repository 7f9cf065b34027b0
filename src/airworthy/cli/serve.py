"""`airworthy serve`: a simulated vehicle for an autopilot of the user's, or pictures for a real one that is tracked."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

from tyro.conf import arg

from airworthy.bridges.loop.latency import latency_text
from airworthy.bridges.loop.session import LoopConfig, serve_poses
from airworthy.bridges.server import ServeConfig, self_test, serve
from airworthy.bridges.topic_server import TRANSPORTS, TopicServeConfig, serve_topics
from airworthy.cli.common import interrupted, run_tyro, stopped_by_terminate
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.pilots.catalogue import AUTOPILOTS

_DESCRIPTION = (
    "Simulate one vehicle on the ground for PX4, ArduPilot or Betaflight, which runs beside it, sees our sensors and commands"
    " our motors (docs/howto/autopilots.md). Programs of this machine alone can reach it unless --listen names another address."
    " With --as ros2, zenoh or lcm the vehicle flies on topics: airworthy serve --as ros2 --help. With --poses it shows a"
    " scene to a vehicle that is tracked elsewhere: airworthy serve --poses udp --help."
)
_TOPICS = (
    "Simulate one vehicle in real time that says on topics what it senses, and takes commands from whoever gives some"
    " (docs/howto/ros2.md, docs/howto/lcm.md)."
)
_LOOP = (
    "Show a scene to a vehicle that is tracked elsewhere: its poses come in, what its cameras see goes out, with measured"
    " latency (docs/howto/vehicle_in_the_loop.md)."
)


@dataclass(frozen=True)
class AutopilotOptions(ServeConfig):
    """What is served."""

    # The specification of a link reads `--as px4`; `as` is no name that a field can have.
    autopilot: Annotated[Literal["px4", "ardupilot", "betaflight"], arg(name="as")]
    """Whose protocol is spoken."""


@dataclass(frozen=True)
class TopicOptions(TopicServeConfig):
    """What is served."""

    transport: Annotated[Literal["ros2", "zenoh", "lcm"], arg(name="as")]
    """Over what."""


@dataclass(frozen=True)
class LoopOptions(LoopConfig):
    """What is shown to a vehicle that is tracked elsewhere."""

    publish: Annotated[Literal["none", "ros2", "zenoh"], arg(name="as")] = "none"
    """Where pictures go: topics of ROS 2 (docs/howto/ros2.md), over DDS or zenoh."""


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    if any(word.partition("=")[0] == "--poses" for word in argv):
        return _shown(argv)
    kind = next((value or None for word, value in pairwise([*argv, ""]) if word == "--as"), None)
    kind = next((word.removeprefix("--as=") for word in argv if word.startswith("--as=")), kind)
    if kind in TRANSPORTS:
        return _on_topics(argv)
    if kind is not None and kind not in AUTOPILOTS:
        raise unknown_name("program to serve", kind, (*AUTOPILOTS, *TRANSPORTS), "Given with --as.")
    if kind is None and not {"-h", "--help"} & set(argv):
        raise AirworthyError(
            f"airworthy serve does not know for whom: --as {', '.join((*AUTOPILOTS, *TRANSPORTS))}, or --poses SOURCE to show a"
            " scene to a vehicle that is tracked elsewhere."
        )
    config = run_tyro(AutopilotOptions, argv, "airworthy serve", _DESCRIPTION)
    if config.self_test:
        with stopped_by_terminate():
            verdict = self_test(config, say=lambda sentence: print(sentence, flush=True))
        print("\n".join(f"{sentence}." for sentence in verdict.sentences()))
        return 0 if verdict.form == config.form else 1
    with stopped_by_terminate() as received:
        served = serve(config, say=lambda sentence: print(sentence, flush=True))
    columns: Any = served.run.table.columns
    print(f"Flown: {float(columns['t'][-1]):.2f} s, highest {float(columns['position_z_m'].max()):.2f} m.")
    for note in (served.run.pilot_error, *served.notes):
        if note:
            print(f"{note.rstrip('.')}.")
    if config.out is not None:
        print(f"Flight: {config.out}")
    return interrupted(received, "Stopped.") if served.run.interrupted else 0


def _on_topics(argv: list[str]) -> int:
    config = run_tyro(TopicOptions, argv, "airworthy serve --as ros2", _TOPICS)
    with stopped_by_terminate() as received:
        served = serve_topics(config, say=lambda sentence: print(sentence, flush=True))
    x, y, z = served.position
    print(f"Flown: {served.seconds:.2f} s, {served.commands:,} commands; at {x:.2f}, {y:.2f}, {z:.2f} m.")
    print(f"Clock {config.clock}: {served.lateness.sentence()}.")
    # Of those that are rendered beside the flight a note says how many of how many.
    counts = [f"{name}: {count:,} frames" for name, count in served.frames.items() if name not in served.skipped]
    for note in (*counts, *served.notes):
        print(f"{note}.")
    print(f"{served.resets:,} resets, {served.collisions:,} collisions.")
    return interrupted(received, "Stopped.") if served.interrupted else 0


def _shown(argv: list[str]) -> int:
    config = run_tyro(LoopOptions, argv, "airworthy serve --poses", _LOOP)
    with stopped_by_terminate() as received:
        shown = serve_poses(config, say=lambda sentence: print(sentence, flush=True))
    for name, count in shown.frames.items():
        print(f"{name}: {count:,} frames.")
        for line in latency_text(shown.latency[name]):
            print(line)
    for line in latency_text(shown.abort_latency)[1:]:
        print(line)
    flagged = f"{shown.held:,} frames held; {len(shown.aborts):,} aborts; {shown.collisions:,} collisions"
    print(f"Poses: {shown.track.taken:,} taken; {flagged}.")
    for note in shown.notes:
        print(f"{note}.")
    if config.out is not None:
        print(f"Frames: {config.out}")
    return interrupted(received, "Stopped.") if shown.interrupted else 0
