"""A command reads back as what it was made from; its words are the short ones that people would write."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import tyro
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core.jobs.progress import command_line


@dataclass(frozen=True)
class Inner:
    on: bool = True
    some_share: float = 1.0


@dataclass(frozen=True)
class Options:
    place: tyro.conf.Positional[str]
    text: str = "a"
    maybe: str | None = None
    number: float | None = 2.0
    count: int = 0
    flag: bool = True
    texts: tuple[str, ...] = ("x",)
    three: tuple[float, float, float] = (0.0, 0.0, 0.0)
    size: tuple[int, int] | None = None
    folder: Path = Path("runs")
    inner: Inner = field(default_factory=lambda: Inner(on=False, some_share=3.0))
    """Its defaults here are not those of its class."""
    json: bool = False


TEXTS = st.text("ab äN-_=.,'\" \n0$*~@", max_size=6)
NUMBERS = st.floats(allow_nan=False)
LATER = TEXTS.filter(lambda text: not text.startswith("-"))
"""What may follow the first text of a tuple."""


def written(options: Options, short: bool = False) -> str:
    return command_line("air x", options, leave_out=("json",), positional=("place",), short_numbers=short)


@settings(max_examples=150)
@given(
    options=st.builds(
        Options,
        place=TEXTS.filter(lambda text: text != ""),
        text=TEXTS,
        maybe=st.none() | TEXTS,
        number=st.none() | NUMBERS,
        count=st.integers(),
        flag=st.booleans(),
        texts=st.just(()) | st.tuples(TEXTS, LATER, LATER),
        three=st.tuples(NUMBERS, NUMBERS, NUMBERS),
        size=st.none() | st.tuples(st.integers(), st.integers()),
        folder=TEXTS.map(Path),
        inner=st.builds(Inner, st.booleans(), NUMBERS),
    ),
    short=st.booleans(),
)
def test_a_command_reads_back_as_what_it_was_made_from(options: Options, short: bool) -> None:
    tokens = shlex.split(written(options, short))
    assert tokens[:2] == ["air", "x"]
    assert tyro.cli(Options, args=tokens[2:]) == options


@pytest.mark.parametrize(
    ("options", "command"),
    [
        (Options("here"), "here"),
        (Options("here", json=True), "here"),
        (Options("a b", text="it's"), """'a b' --text 'it'"'"'s'"""),
        (Options("-x", count=-1), "--count -1 -- -x"),
        (Options("-", text="-"), "- --text -"),
        (Options("-5"), "-5"),
        (Options("p", text="-x", folder=Path("-y")), "p --text=-x --folder=-y"),
        (Options("p", texts=("--a", "b")), "p --texts=--a b"),
        (Options("p", texts=("-4,0,1", "-3,0,1")), "p --texts -4,0,1 -3,0,1"),
        (Options("p", texts=()), "p --texts"),
        (Options("p", flag=False, inner=Inner()), "p --no-flag --inner.on --inner.some-share 1.0"),
        (Options("p", inner=Inner(on=False, some_share=3.0)), "p"),
        (Options("p", number=None), "p --number None"),
        (Options("p", number=0.1 + 0.2, size=(640, 480)), "p --number 0.30000000000000004 --size 640 480"),
        (Options("p", three=(-1e-7, 5.0, float("-inf"))), "p --three -1e-07 5.0 -inf"),
        (Options("p", number=np.float64(0.5)), "p --number 0.5"),
    ],
)
def test_written_options(options: Options, command: str) -> None:
    assert written(options) == f"air x {command}"


def test_short_numbers_are_the_same_numbers() -> None:
    assert written(Options("p", three=(5.0, 1e6, 123456789.0)), short=True) == "air x p --three 5 1e+06 123456789.0"


def test_a_dataclass_in_one_can_say_no() -> None:
    @dataclass(frozen=True)
    class Outer:
        inner: Inner = field(default_factory=Inner)

    line = command_line("x", Outer(Inner(on=False)))
    assert line == "x --inner.no-on"
    assert tyro.cli(Outer, args=line.split()[1:]) == Outer(Inner(on=False))
