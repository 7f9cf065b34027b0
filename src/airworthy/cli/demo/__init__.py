"""`airworthy demo`: from a place and a course to a visuomotor policy with evidence, in minutes and on one page."""

from __future__ import annotations

import contextlib
import io
import shlex
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from airworthy.benchmarks.fly.job import check_device
from airworthy.cli.common import emit_json, run_tyro, stopped_by_terminate
from airworthy.cli.demo.page import DEMO_FILE, DemoManifest, DemoPart, parts_of
from airworthy.core.errors import AirworthyError
from airworthy.core.files import lock_folder, make_folder
from airworthy.core.jobs.block_job import refuse_foreign
from airworthy.core.schema import check_fields

PROG = "airworthy demo"
_DESCRIPTION = (
    "Learn to hover by motor commands, from nothing, in about a second. Then fly the expert through a hall of Gaussian splats,"
    " learn to fly there by sight, from nothing, in five minutes, and put what was learnt through every condition of the"
    " tracking protocol; one page says whether it is fit to fly there, and what it stands on."
    " Each part is a command of its own, which is printed. A stopped demo goes on where it was."
)


@dataclass(frozen=True)
class DemoConfig:
    """How much of it, and where."""

    flights: int = 5
    """Per condition and family of dynamics; the published experiments had five."""
    seed: int = 0
    """Of everything that is drawn."""
    device: str = "cpu"
    """"cpu", or a CUDA device such as "cuda:0"."""
    quick: bool = False
    """As little of everything as shows that it works: a few minutes less, and numbers that say little."""
    out: Path = Path("runs/demo")
    """Folder of everything that it makes, and of report.html."""
    json: bool = False
    """Print JSON, and nothing of the parts."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not 1 <= self.flights <= 10_000:
            raise AirworthyError(f"The demo got {self.flights} flights; expected 1 to 10,000.")
        if not 0 <= self.seed < 1 << 63:
            raise AirworthyError(f"The demo got the seed {self.seed}; expected 0 to 2^63 - 1.")


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    config = run_tyro(DemoConfig, argv, PROG, _DESCRIPTION)
    check_device(config.device)
    refuse_foreign(config.out, DEMO_FILE)
    with lock_folder(make_folder(config.out)), stopped_by_terminate() as received:
        parts = parts_of(config.out, config.flights, config.seed, config.device, config.quick)
        manifest = DemoManifest.open(config.out, _identity(config), [part.command_line for part in parts])
        code, page = 0, None
        try:
            code = _run(config, parts, manifest, received)
            from airworthy.cli.demo.page import write_page

            page = write_page(config.out, parts, manifest)
        except KeyboardInterrupt:
            code = code or _stopped(received)
            print("The demo stopped while its page was made; the same command makes it.", file=sys.stderr)
    if config.json:
        report = None if page is None else str(page)
        emit_json({"folder": str(config.out), "report": report, "interrupted": code != 0, **manifest.described()})
    elif page is not None:
        replay = "" if code else f"\nReplay: {shlex.join(['airworthy', 'view', str(config.out)])}"
        print(f"\nReport: {page}{replay}")
    return code


def _identity(config: DemoConfig) -> list[str]:
    """Return what is made, wherever it lies: the parts' commands with a folder that stands for any."""
    return [part.command_line for part in parts_of(Path("DEMO"), config.flights, config.seed, config.device, config.quick)]


def _stopped(received: list[int]) -> int:
    """Exit code of a demo that a signal stopped."""
    return 128 + (received[0] if received else signal.SIGINT)


def _run(config: DemoConfig, parts: list[DemoPart], manifest: DemoManifest, received: list[int]) -> int:
    """Make what is not made; returns the exit code of the part that somebody stopped, or 0."""
    for number, part in enumerate(parts, 1):
        where = f"part {number} of {len(parts)}; the same command goes on there."
        if part.left_out:
            manifest.leave_out(part.name, part.left_out)
            _say(config, f"\n[{number}/{len(parts)}] {part.title}: left out. {part.left_out}")
            continue
        if manifest.has(part.name) and (config.out / part.name).is_dir():
            _say(config, f"\n[{number}/{len(parts)}] {part.title}: made already.")
            continue
        _say(config, f"\n[{number}/{len(parts)}] {part.title}\n$ {part.command_line}")
        try:
            with manifest.clocked(part.name), _muted(config.json):
                code = part.run()
        except KeyboardInterrupt:
            code = _stopped(received)
        except AirworthyError as error:
            raise AirworthyError(f"{error} This was in {where}") from error
        if code:
            print(f"The demo stopped in {where}", file=sys.stderr)
            return code
        manifest.keep(part.name)
    return 0


def _say(config: DemoConfig, text: str) -> None:
    if not config.json:
        print(text, flush=True)


def _muted(quiet: bool) -> contextlib.AbstractContextManager[object]:
    return contextlib.redirect_stdout(io.StringIO()) if quiet else contextlib.nullcontext()
