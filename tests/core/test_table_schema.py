"""Tables to records and back, and the sentences about tables that do not fit."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from airworthy.core.errors import AssetError
from airworthy.core.schema import Bound, Length
from airworthy.core.table_schema import TableSchema, check_header, check_same, number_array, toml_key, toml_value


@dataclass(frozen=True)
class Wheel:
    radius: float
    side: Literal[-1, 1] = 1


@dataclass(frozen=True)
class Cart:
    name: str
    load: float = 0.0
    axles: int = 2
    braked: bool = False
    position: tuple[float, float] = (0.0, 0.0)
    wheels: tuple[Wheel, ...] = ()
    extra: tuple[tuple[str, float], ...] = ()
    sources: dict[str, str | float] | None = None
    hitch: Wheel | None = None


SCHEMA = TableSchema(entries_max=20, list_max=3, list_noun="tables")
FULL: dict[str, Any] = {
    "name": "b\x7f\U0001f600",
    "load": 3,
    "axles": 1,
    "braked": True,
    "position": [1.0, -0.0],
    "wheels": [{"radius": 0.5, "side": -1}, {"radius": 0.25}],
    "extra": {"a b": 1.5},
    "sources": {"load": "weighed", "year": 1999},
    "hitch": {"radius": 1.0},
}


def test_a_table_becomes_a_record_and_the_same_table_again() -> None:
    cart = SCHEMA.decode(Cart, FULL, "cart")
    assert (cart.wheels, cart.extra, cart.hitch) == ((Wheel(0.5, -1), Wheel(0.25)), (("a b", 1.5),), Wheel(1.0))
    assert repr((cart.load, cart.sources["year"], cart.position[1])) == "(3.0, 1999.0, -0.0)"
    table = SCHEMA.encode(cart)
    assert table == FULL
    text = "\n".join(f"{toml_key(key)} = {toml_value(value)}" for key, value in table.items())
    assert SCHEMA.decode(Cart, tomllib.loads(text), "cart") == cart


def test_defaults_are_left_out_and_signed_zeros_only_where_they_count() -> None:
    cart = Cart("a", load=-0.0)
    assert SCHEMA.encode(cart) == {"name": "a", "load": -0.0}
    assert TableSchema(20, 3, signed_zeros=False).encode(cart) == {"name": "a"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"nmae": 1}, "cart has the unknown key 'nmae' (closest: 'name')."),
        (
            {"qqqq": 1},
            "cart has the unknown key 'qqqq' (known: axles, braked, extra, hitch, load, name, position, sources, wheels).",
        ),
        ({"load": True}, "cart.load must be a number, but is True."),
        ({"load": 2**53 + 1}, "cart.load must be a number, but is 9007199254740993."),
        ({"load": math.nan}, "cart.load must be a finite number, but is nan."),
        ({"axles": 1.0}, "cart.axles must be a whole number, but is 1.0."),
        ({"axles": 10**16}, "cart.axles must be a whole number, but is 10000000000000000."),
        ({"braked": 1}, "cart.braked must be true or false, but is 1."),
        ({"name": "n" * 4097}, f"cart.name must be text of at most 4096 characters, but is '{'n' * 56}...."),
        ({"name": {}}, "cart.name must be text, but is a table of 0."),
        ({"position": [1.0]}, "cart.position must be a list of 2 values, but is a list of 1."),
        ({"position": [1.0, "x"]}, "cart.position[1] must be a number, but is 'x'."),
        ({"wheels": [{}] * 4}, "cart.wheels must be a list of at most 3 tables, but is a list of 4."),
        ({"wheels": [{}]}, "cart.wheels[0] lacks 'radius'."),
        ({"hitch": {"radius": 1.0, "side": True}}, "cart.hitch.side must be one of -1, 1, but is True."),
        (
            {"extra": {str(k): 1.0 for k in range(21)}},
            "cart.extra must be a table of at most 20 entries, but is a table of 21.",
        ),
        ({"sources": {"load": []}}, "cart.sources.load must be text or a number, but is a list of 0."),
    ],
)
def test_sentences(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AssetError) as caught:
        SCHEMA.decode(Cart, {**FULL, **change}, "cart")
    assert str(caught.value) == sentence


def test_a_file_says_its_name_before_its_fields() -> None:
    with pytest.raises(AssetError, match=r"^a\.toml: load must be a finite number up to 1000, but is 1001\.$"):
        TableSchema(20, 3, number_max=1000.0).decode(Cart, {"name": "a", "load": 1001}, "a.toml: ")
    with pytest.raises(AssetError, match=r"^a\.toml lacks 'name'\.$"):
        SCHEMA.decode(Cart, {}, "a.toml: ")


@dataclass(frozen=True)
class Parcel:
    weight: Annotated[float, Bound(0.0, 30.0, "kg", above=True)]
    stops: Annotated[tuple[float | None, ...], Bound(-5.0, 5.0, "m"), Length(1, 2)] = (None,)
    label: Annotated[str, Length(1, 3)] = "a"
    pieces: Annotated[int, Bound(1, 9)] = 1
    route: Literal["short", "long"] | float | tuple[float, ...] = "short"
    wheels: Annotated[tuple[Wheel, ...], Length(0, 1)] = ()


def test_bounds_lengths_and_unions() -> None:
    read = SCHEMA.decode(Parcel, {"weight": 1, "stops": [None, 2], "label": "abc", "pieces": 9, "route": [1]}, "parcel")
    assert read == Parcel(1.0, (None, 2.0), "abc", 9, (1.0,))
    assert SCHEMA.decode(Parcel, {"weight": 30.0, "route": "long"}, "parcel").route == "long"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"weight": 0}, "weight must be a number, more than 0 and at most 30 kg, but is 0."),
        ({"weight": "1"}, "weight must be a number, more than 0 and at most 30 kg, but is '1'."),
        ({"weight": 10**400}, f"weight must be a number, more than 0 and at most 30 kg, but is 1{'0' * 56}...."),
        ({"weight": math.inf}, "weight must be a finite number, more than 0 and at most 30 kg, but is inf."),
        ({"stops": [None, 6.0]}, "stops[1] must be a number, -5 to 5 m, but is 6.0."),
        ({"stops": []}, "stops must be a list of 1 to 2 numbers or null, but is a list of 0."),
        ({"stops": None}, "stops must be a list of 1 to 2 numbers or null, but is None."),
        ({"label": ""}, "label must be text of 1 to 3 characters, but is ''."),
        ({"pieces": 10}, "pieces must be a whole number, 1 to 9, but is 10."),
        ({"pieces": True}, "pieces must be a whole number, 1 to 9, but is True."),
        ({"route": "middle"}, "route must be 'short', 'long', a number or a list, but is 'middle'."),
        ({"route": [True]}, "route[0] must be a number, but is True."),
        ({"wheels": [{}] * 2}, "wheels must be a list of 0 to 1 tables, but is a list of 2."),
    ],
)
def test_sentences_of_bounds_and_lengths(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AssetError) as caught:
        SCHEMA.decode(Parcel, {"weight": 1.0, **change}, "a.json: ")
    assert str(caught.value) == f"a.json: {sentence}"


def refusal(call: Any, *arguments: Any) -> str:
    with pytest.raises(AssetError) as caught:
        call(*arguments)
    return str(caught.value)


def test_one_entry_among_others() -> None:
    table = {"a": {"b": {"c": 3}}, "d": 1}
    assert SCHEMA.entry(table, "a.b.c", int, "x: ") == 3
    assert SCHEMA.entry(table, "a.e", str, "x: ", "none") == "none"
    for name, said in (
        ("e", "x lacks 'e'."),
        ("a.e.f", "x: a lacks 'e'."),
        ("d.e", "x: d must be a table, but is 1."),
        ("a.b", "x: a.b must be text, but is a table of 1."),
    ):
        assert refusal(SCHEMA.entry, table, name, str, "x: ") == said
    whole = TableSchema(20, 3, complete=True)
    assert refusal(whole.decode, Wheel, {"radius": 1.0}, "wheel") == "wheel lacks 'side'."


def test_what_must_be_repeated() -> None:
    wanted = {"names": ["a", "b"], "size": {"rows": 3}}
    check_same({"names": ["a", "b"], "size": {"rows": 3.0}}, wanted, "x")
    check_same({**wanted, "more": 1}, wanted, "x", False)
    for change, said in (
        ({"more": 1}, "x has the unknown key 'more' (known: names, size)."),
        ({"names": ["a"]}, "x.names must be a list of 2, but is a list of 1."),
        ({"names": ["a", "c"]}, "x.names[1] must be 'b', but is 'c'."),
        ({"size": {}}, "x.size lacks 'rows'."),
        ({"size": 3}, "x.size must be a table of 1, but is 3."),
    ):
        assert refusal(check_same, {**wanted, **change}, wanted, "x") == said


def test_heads_of_files() -> None:
    check_header({"format": "cart", "version": 2}, "x", "a cart file", ("format", "cart"), 2)
    for table, said in (
        ([], "x is not a cart file: its format must be 'cart', but is None."),
        ({"format": "card", "version": 2}, "x is not a cart file: its format must be 'cart', but is 'card'."),
        ({"format": "cart", "version": 3}, "x: version must be 2, the one that is read here, but is 3."),
    ):
        assert refusal(check_header, table, "x", "a cart file", ("format", "cart"), 2) == said


def test_long_lists_of_numbers() -> None:
    found = number_array([[1, 2.5], [3, 4]], 2, "x")
    assert found.dtype == np.float64
    assert found.tolist() == [[1.0, 2.5], [3.0, 4.0]]
    for value in ([1.0, 2.0], [[1.0], [1.0, 2.0]], [["1"]], [[True]], [[10**400]], None):
        assert "x must be a 2-dimensional list of numbers, but is" in refusal(number_array, value, 2, "x")


def test_numbers_of_numpy_are_written_as_toml_has_them() -> None:
    assert (
        toml_value([np.float32(0.5), np.int64(3), np.bool_(True), {}, {"a b": -0.0}]) == '[0.5, 3, true, {}, { "a b" = -0.0 }]'
    )
