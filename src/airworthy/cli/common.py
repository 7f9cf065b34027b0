"""What every command shares: options from a dataclass, being stopped, machine output, tables."""

from __future__ import annotations

import io
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from airworthy.core.errors import unknown_name
from airworthy.core.files import json_text
from airworthy.core.keyword_messages import raises_in_options

Config = TypeVar("Config")


def run_tyro(config_type: type[Config], argv: Sequence[str], prog: str, description: str) -> Config:
    """Return options of a command, parsed into its frozen dataclass.

    Help shows each field's docstring (with its unit) and default. Options are spelled with hyphens, flags have a `--no-` form.

    Args:
        config_type: The dataclass.
        argv: Arguments after the command's name.
        prog: How the command is called ("airworthy fly").
        description: One paragraph for the top of the help.

    Raises:
        AirworthyError: The dataclass refuses a value; it names the option.
        SystemExit: With 0 after printing help, with 2 after saying what is wrong with the arguments.
    """
    import tyro

    said = io.StringIO()
    try:
        # A value that the dataclass refuses is told by the option that had it.
        with redirect_stderr(said), _unbroken_help(), _words_as_written(), raises_in_options(option_fields(config_type)):
            return tyro.cli(config_type, args=list(argv), prog=prog, description=description)
    except SystemExit as stop:
        if stop.code:
            sys.stderr.write(f"{_plain(_sentence(said.getvalue()))} Run '{prog} --help' for the options.\n")
        raise


Subcommands = Mapping[str, tuple[type, Callable[[Any], int], str]]
"""By name: the dataclass of options, what runs with them, the help's first paragraph."""


@dataclass(frozen=True)
class ListConfig:
    """What to list."""

    json: bool = False
    """Print a JSON list of objects instead of a table."""


def option_fields(kind: type) -> dict[str, str]:
    """Return the option of each field of a command's dataclass, without hyphens: those of configurations inside it included.

    An inner one is "perturb.latency", or "latency" where the prefix is left out; of fields of one name the outer counts.
    """
    from tyro.conf import OmitArgPrefixes

    marked: Any = OmitArgPrefixes[int]
    (bare,) = marked.__metadata__
    hints = get_type_hints(kind, include_extras=True)
    spelled = {name: getattr(mark, "name", None) for name, hint in hints.items() for mark in getattr(hint, "__metadata__", ())
               if type(mark).__name__ == "_ArgConfig"}  # fmt: skip
    found: dict[str, str] = {}
    inner: dict[str, str] = {}
    for item in fields(kind):
        made = item.default_factory
        if is_dataclass(made) and isinstance(made, type):
            head = "" if bare in getattr(hints[item.name], "__metadata__", ()) else f"{item.name}."
            inner |= {name: f"{head}{option}" for name, option in option_fields(made).items()}
        else:
            found[item.name] = spelled.get(item.name) or item.name
    return {**inner, **found}


def run_subcommand(prog: str, commands: Subcommands, argv: Sequence[str]) -> int:
    """Run one of a command's subcommands; returns its exit code.

    Args:
        prog: How the command is called ("airworthy courses").
        commands: The first is run where none is named.
        argv: Arguments after the command's name.

    Raises:
        UnknownNameError: There is no such subcommand.
        SystemExit: As `run_tyro`.
    """
    subcommand = argv[0] if argv and not argv[0].startswith("-") else ""
    if subcommand and subcommand not in commands:
        raise unknown_name(f"'{prog}' subcommand", subcommand, commands)
    kind, run, description = commands[subcommand or next(iter(commands))]
    return run(run_tyro(kind, argv[1:] if subcommand else argv, f"{prog} {subcommand}".strip(), description))


def _whole(text: str) -> int:
    """Return the whole number that a word is, also one that is written as 1e6, as keyword arguments of Python may be."""
    try:
        return int(text)
    except ValueError as error:
        # Exact, whatever its size: a float would be another number above 2^53.
        try:
            value = Decimal(text)
        except InvalidOperation:
            raise error from None
        if not value.is_finite() or value.adjusted() > _DIGITS_MAX or value != value.to_integral_value():
            raise error from None
        return int(value)


_DIGITS_MAX = 25
"""Ours: more digits than any option takes, so that what is beyond its bounds is said to be that."""


def _path(text: str) -> Path:
    """Return the path that a word is; an empty one would be the folder where one stands."""
    if not text:
        raise ValueError("an empty text is no path; '.' is the folder you are in")
    return Path(text)


@contextmanager
def _words_as_written() -> Iterator[None]:
    """Let tyro take whole numbers by `_whole` and paths by `_path`, wherever an option has them: alone, several, left out."""
    from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec

    registry: Any = ConstructorRegistry()
    kinds: dict[type, tuple[str, Callable[[str], Any]]] = {int: ("INT", _whole), Path: ("PATH", _path)}

    def rule(type_info: Any) -> Any:
        if type_info.type not in kinds:
            return None
        kind, (metavar, taken) = type_info.type, kinds[type_info.type]
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar=metavar,
            instance_from_str=lambda words: taken(words[0]),
            is_instance=lambda value: isinstance(value, kind),
            str_from_instance=lambda value: [str(value)],
        )

    registry.primitive_rule(rule)
    with registry:
        yield


@contextmanager
def _unbroken_help() -> Iterator[None]:
    """Let tyro read fields' docstrings without their line breaks: it keeps those before indented lines, as all of ours are."""
    import docstring_parser

    parse: Any = docstring_parser.parse_from_object

    def unbroken(component: Any) -> Any:
        found = parse(component)
        for field in found.params:
            field.description = None if field.description is None else " ".join(field.description.split())
        return found

    shared: Any = docstring_parser
    shared.parse_from_object = unbroken
    try:
        yield
    finally:
        shared.parse_from_object = parse


def _sentence(box: str) -> str:
    """Return what tyro says in a box, up to its first rule, as one sentence.

    Where the output takes no line drawing (a C locale, as of cron), the box is a title, a rule of hyphens, and the text.
    """
    tokens: list[str] = []
    for line in box.splitlines()[1:]:
        text = line.strip("\u2502\u256d\u256e\u2570\u256f ").strip()
        if _RULE.fullmatch(text):
            # Behind the text tyro's box goes on with usage; one sentence is enough.
            if tokens:
                break
        elif text:
            tokens.append(text)
    return " ".join(tokens).rstrip(".") + "."


_RULE = re.compile("\u2500+|-+")
_PYTHONS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"invalid literal for int\(\) with base 10: ('.*?')"), r"\1 is not a whole number"),
    (re.compile(r"could not convert string to float: ('.*?')"), r"\1 is not a number"),
    # Of an option that may be left out tyro says what it tried one after the other.
    (
        re.compile(r"no type matching .*?\|INT could be instantiated from \[('.*?')\]\. Got errors:.*"),
        r"\1 is not a whole number.",
    ),
    (re.compile(r"no type matching .*?\|FLOAT could be instantiated from \[('.*?')\]\. Got errors:.*"), r"\1 is not a number."),
    (
        re.compile(r"no type matching .*?\|PATH could be instantiated from .*<class 'pathlib\.Path'>: (.*)"),
        r"\1",
    ),
    (
        re.compile(r"no type matching .*?\|\{(?P<kinds>(?:INT ?|FLOAT ?)+)\} could be instantiated from \[(?P<got>.*?)\]\..*"),
        lambda match: f"got {match['got'].replace(',', '')}; expected {len(match['kinds'].split())} numbers.",
    ),
    (
        re.compile(r"Missing from (.+?): [A-Z]+ (.)(.+?)\.? \(required\)"),
        lambda match: f"{match[1]} needs an argument: {match[2].lower()}{match[3]}",
    ),
)
"""What Python says of a word that is no number, and what we say."""


def _plain(sentence: str) -> str:
    for said, ours in _PYTHONS:
        sentence = said.sub(ours, sentence)
    return sentence


@contextmanager
def stopped_by_terminate() -> Iterator[list[int]]:
    """Let SIGTERM, by which batch systems announce the end, stop a run as Ctrl-C does; yields what was received.

    Outside of the main thread, which alone is given signals, nothing changes.
    """
    received: list[int] = []

    def stop(number: int, frame: Any) -> None:
        received.append(number)
        raise KeyboardInterrupt(number)

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


def interrupted(received: Sequence[int], said: str) -> int:
    """Say on standard error what is kept of a run that was stopped, and how it goes on.

    Args:
        received: What `stopped_by_terminate` yielded.
        said: A sentence.

    Returns:
        The exit code: 128 and the signal's number, 130 after Ctrl-C and 143 after a request to terminate.
    """
    # Standard output may be a file of JSON.
    print(said, file=sys.stderr)
    return 128 + (received[0] if received else signal.SIGINT)


EXIT_PILOT_ERROR = 1
PILOT_FAILED = ("pilot_error", "planner_crash")
"""Outcomes of a pilot that raised, died, was silent or sent what is no command; FlyingTrust's word for it is the second."""


def flown_exit(outcomes: Mapping[str, int]) -> int:
    """Return the exit code of a command whose flights are whole, and say on standard error where it is not 0.

    A collision is what was to be found out; a pilot that failed was not tried to the end.

    Args:
        outcomes: How many flights ended how.
    """
    failed, flights = {name: outcomes.get(name, 0) for name in PILOT_FAILED if outcomes.get(name)}, sum(outcomes.values())
    if not failed:
        return 0
    of = "The flight" if flights == 1 else f"{sum(failed.values()):,} of {flights:,} flights"
    print(f"{of} ended as {' or '.join(failed)}: exit code {EXIT_PILOT_ERROR}.", file=sys.stderr)
    return EXIT_PILOT_ERROR


NOTHING_LEARNT = "before anything was learnt that could be kept; the same command begins anew"
"""Said of a training that was stopped, where no weights lie in its folder."""


def interrupted_training(received: Sequence[int], folder: str | Path, kept: str, early: str = NOTHING_LEARNT) -> int:
    """Say what a training that was stopped has left, which is nothing where it was stopped before it began.

    Args:
        received: What `stopped_by_terminate` yielded.
        folder: Of the training, or of its seeds.
        kept: What lies there ("the policy as it is lies").
        early: Said where no weights do.

    Returns:
        The exit code, as `interrupted`.
    """
    from airworthy.learning.training_folder import CHECKPOINTS

    # Weights of one training, or of one of several seeds below it; a checkpoint may be of one that has none yet.
    weights = (path for place in ("*.safetensors", "*/*.safetensors") for path in Path(folder).glob(place))
    if not any(path.parent.name != CHECKPOINTS for path in weights):
        return interrupted(received, f"Stopped {early}.")
    return interrupted(received, f"Stopped: {kept} in the folder, and the same command goes on from there.")


def gathered(argv: Sequence[str], lists: Sequence[str]) -> list[str]:
    """Return the same arguments with what a list option is given several times in one place: --pilot A --pilot B is --pilot A
    B.

    Args:
        argv: Arguments of a command.
        lists: Its options that take several values ("--pilot"). A value that itself begins with a hyphen is given as
            --pilot=VALUE, and stays in this form.
    """
    values: dict[str, list[str]] = {}
    rest: list[str] = []
    current: list[str] = rest
    for argument in argv:
        if argument.startswith("-"):
            option, equals, value = argument.partition("=")
            if option in lists and not value.startswith("-"):
                current = values.setdefault(option, [])
                current += [value] if equals else []
                continue
            current = rest
        current.append(argument)
    return rest + [argument for option, tokens in values.items() for argument in (option, *tokens)]


def emit_json(value: Any) -> None:
    """Print a value as JSON on standard output (for --json): nothing else may go there."""
    sys.stdout.write(json_text(value))


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table for people on standard output.

    Args:
        title: Line above the table; none where empty.
        columns: Headings, with units ("mass [kg]").
        rows: Cells; numbers are set flush right with four significant digits, None is left blank.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [list(row) for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, heading in enumerate(columns):
        numeric = all(_is_number(row[index]) or row[index] is None for row in cells)
        # Text, not str: rich would read "[kg]" as a style.
        table.add_column(Text(heading), justify="right" if numeric else "left", no_wrap=index == 0)
    for row in cells:
        table.add_row(*(Text(_cell(value)) for value in row))
    console = _console(Console)
    if title:  # not rich's own, which it folds at the width of the table
        console.print(Text(title, style="italic"))
    console.print(table)


def _console(console: Any) -> Any:
    """Return a console as wide as the terminal; output that goes to a file or a pipe is not folded at 80 columns."""
    return console() if sys.stdout.isatty() else console(width=200)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
