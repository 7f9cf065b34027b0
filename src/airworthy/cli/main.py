"""`airworthy COMMAND ...`: finds the command's module and turns users' mistakes into one sentence and exit code 2.

Nothing is imported but the command that was asked for, so that `airworthy --help` answers at once.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

from airworthy import __version__
from airworthy.core.errors import AirworthyError, AssetWarning, telling_broken, telling_refusals, unknown_name

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("airworthy.cli.demo", "from a place to a policy with evidence, in minutes, on one page"),
    "fly": ("airworthy.cli.fly", "one or many flights -> a folder with summary.json and report.html"),
    "judge": ("airworthy.cli.judge", "summary and report of recorded flights, also of a run that was interrupted"),
    "replay": ("airworthy.cli.replay", "fly a recorded run again and compare it bit for bit"),
    "film": ("airworthy.cli.film", "film a recorded flight, from any camera, with a contact sheet"),
    "logs": ("airworthy.cli.logs", "flight logs of every kind: streams, checks, what they tell; map and convert them"),
    "vehicles": ("airworthy.cli.vehicles", "list the catalogue, show one, measure, check or synthesize"),
    "tune": ("airworthy.cli.tune", "gains for a vehicle: swept, flown, with loop margins, as a file for --gains"),
    "synthesize": ("airworthy.cli.learning.synthesize", "expert roll-outs with what the drone sees -> a data set to train on"),
    "train": ("airworthy.cli.learning.train", "a vehicle alone, or expert data -> weights of a policy, with a report"),
    "tasks": ("airworthy.cli.learning.tasks", "list the tasks that are learnt by reward, show one"),
    "export": ("airworthy.cli.learning.export", "a trained policy as an ONNX model that carries its contract"),
    "seal": ("airworthy.cli.learning.seal", "check a network's folder of an earlier version, and vouch for its contract"),
    "evaluate": ("airworthy.cli.evaluate", "pilots under every condition of the tracking protocol -> a table and a report"),
    "capture": ("airworthy.cli.capture", "posed images of a place: show, render, align to a marker, train splats"),
    "view": ("airworthy.cli.view", "look at a scene or a flight in the browser"),
    "serve": ("airworthy.cli.serve", "a simulated vehicle for PX4, ArduPilot or Betaflight, which runs beside it"),
    "sensors": ("airworthy.cli.sensors", "list the cameras, LiDARs and rangers, show one, or all in one gallery"),
    "courses": ("airworthy.cli.courses", "list the courses, show one, check a new one"),
    "races": ("airworthy.cli.races", "list the races, show one, check a new one"),
    "scenes": ("airworthy.cli.scenes", "list the scenes, show, begin (new), validate, export or render one"),
    "verify": ("airworthy.cli.verify", "acceptance figures of physics, scenes, sensors and promises, on this machine"),
    "validate": ("airworthy.cli.validate", "prediction error of the dynamics on real flights"),
    "bench": ("airworthy.cli.bench", "protocols and speed, measured"),
}
"""Command -> (module with `main(argv) -> int`, what it does)."""

EXIT_OK, EXIT_MISTAKE, EXIT_INTERRUPTED, EXIT_BROKEN_PIPE = 0, 2, 130, 141

_EXTRAS = {
    "torch": "learn",
    "viser": "viewer",
    "cv2": "capture",
    "gsplat": "splat-cuda",
    "onnx": "export",
    "onnxruntime": "export",
    "pxr": "usd",
    "av": "video",
    "ray": "cluster",
    "casadi": "race",
    "zstandard": "logs",
    "lz4": "logs",
    "gymnasium": "rl",
    "stable_baselines3": "sb3",
    "rsl_rl": "rsl-rl",
    "skrl": "skrl",
}


def help_text() -> str:
    """Return what `airworthy --help` prints."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: airworthy COMMAND [options]",
            "",
            "Is this drone fit to fly there? Fly any vehicle with any pilot, and get evidence.",
            "",
            "commands:",
            *lines,
            "",
            "  airworthy COMMAND --help  options of a command, with units and defaults",
            "  airworthy --version       the version",
        ]
    )


def main(argv: list[str]) -> int:
    """Run one command.

    Args:
        argv: Arguments after the program's name.

    Returns:
        The exit code: 0, 2 for a user's mistake, 130 when interrupted, 143 when terminated, 141 when nobody reads our
        output any more.
    """
    _open_streams()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", AssetWarning)
            warnings.showwarning = _show_warning(warnings.showwarning)
            # What the file system refuses is the user's to mend; anything else is ours, and shown whole.
            with telling_refusals(), telling_broken(_EXTRAS):
                code = _run(argv)
        sys.stdout.flush()  # here, so that a reader who left is noticed inside this block
        return code
    except BrokenPipeError:
        # Or the interpreter would write its buffer at exit, and complain once more.
        _silence_stdout()
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt as stop:
        # A request to terminate comes with its signal; Ctrl-C comes without.
        return _fail("Interrupted.", 128 + stop.args[0] if stop.args else EXIT_INTERRUPTED)
    except AirworthyError as error:
        return _fail(str(error))
    except MemoryError:
        return _fail("This takes more memory than there is, or than the shell allows (ulimit -v): ask for less at once.")
    except ModuleNotFoundError as error:
        missing = _extra_of(error)
        if missing is None:
            raise
        return _fail(f"This needs the package {missing[0]!r}: pip install 'airworthy[{missing[1]}]'.")


def entry() -> None:
    """Serve as entry point of the console script, which says on standard error what would otherwise be a long silence."""
    try:
        if sys.argv[1:2] and sys.argv[1] in COMMANDS:
            from airworthy.core.native_kernel import announce_builds

            announce_builds(lambda sentence: print(sentence, file=sys.stderr, flush=True))
        code = main(sys.argv[1:])
    except KeyboardInterrupt:  # while the first modules load, or between `main` and the end
        code = _fail("Interrupted.", EXIT_INTERRUPTED)
    sys.exit(code)


def _run(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(help_text())
        return EXIT_OK if argv else EXIT_MISTAKE
    if argv[0] in ("-V", "--version"):
        print(f"airworthy {__version__}")
        return EXIT_OK
    if argv[0].startswith("-"):
        near = difflib.get_close_matches(argv[0], ("--help", "--version"), n=1)
        if near:
            raise AirworthyError(f"Unknown option {argv[0]!r}. Closest: {near[0]!r}.")
        raise AirworthyError(
            f"The command comes first, {argv[0]!r} after it: airworthy COMMAND [options]; see airworthy --help."
        )
    if argv[0] not in COMMANDS:
        raise unknown_name("command", argv[0], COMMANDS, "See airworthy --help.")
    command = _load(argv[0])
    return _exit_code(command, argv[1:])


def _load(command: str) -> Callable[[list[str]], int]:
    module = COMMANDS[command][0]
    try:
        loaded: Callable[[list[str]], int] = importlib.import_module(module).main
    except ModuleNotFoundError as error:
        # A module that a command itself needs and lacks is a fault, and not an unknown command.
        if error.name != module:
            raise
        message = f"This version of airworthy ({__version__}) has no command {command!r}; see airworthy --help."
        raise AirworthyError(message) from error
    return loaded


def _exit_code(command: Callable[[list[str]], int], argv: list[str]) -> int:
    """Run a command; argument parsers end with SystemExit, which is an exit code to us."""
    try:
        return command(argv)
    except SystemExit as end:
        # `sys.exit("text")`: Python would print it and return 1.
        if isinstance(end.code, str):
            return _fail(end.code)
        return end.code or EXIT_OK


def _extra_of(error: ModuleNotFoundError) -> tuple[str, str] | None:
    """Return the optional package that is not installed and the extra that brings it; None for a fault of ours."""
    package = (error.name or "").partition(".")[0]
    return (package, _EXTRAS[package]) if package in _EXTRAS else None


def _show_warning(others: Callable[..., None]) -> Callable[..., None]:
    """Return how warnings are shown: what a file lost as one plain line on standard error, all others as ever."""
    shown: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> None:
        if not issubclass(category, AssetWarning):
            others(message, category, *more, **named)
        elif str(message) not in shown:
            shown.add(str(message))
            print(f"warning: {message}", file=sys.stderr)

    return show


def _fail(message: str, code: int = EXIT_MISTAKE) -> int:
    print(message, file=sys.stderr)
    return code


def _open_streams() -> None:
    """Let what is printed go nowhere where our output was closed (`>&-`): a run is not undone because nobody listens.

    The descriptors are taken as well, or the next file that is opened would get what native code prints.
    """
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - until the process ends
    # A terminal that has no umlauts gets names as '\\xfc' instead of nothing at all.
    if getattr(sys.stdout, "errors", "") == "strict" and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


def _silence_stdout() -> None:
    """Point standard output nowhere, or the interpreter would complain about the closed pipe when it ends."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, sys.stdout.fileno())
    os.close(descriptor)


if __name__ == "__main__":
    entry()
