"""Tables to records and back, and the sentences about tables that do not fit."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest

from airworthy.core.errors import AssetError
from airworthy.core.table_schema import TableSchema, toml_key, toml_value


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
        ({"name": {}}, "cart.name must be text of at most 4096 characters, but is a table of 0."),
        ({"position": [1.0]}, "cart.position must be a list of 2 values, but is a list of 1."),
        ({"position": [1.0, "x"]}, "cart.position[1] must be a number, but is 'x'."),
        ({"wheels": [{}] * 4}, "cart.wheels must be a list of at most 3 tables, but is a list of 4."),
        ({"wheels": [{}]}, "cart.wheels[0] lacks 'radius'."),
        ({"hitch": {"radius": 1.0, "side": True}}, "cart.hitch.side must be one of -1, 1, but is True."),
        (
            {"extra": {str(k): 1.0 for k in range(21)}},
            "cart.extra must be a table of at most 20 entries, but is a table of 21.",
        ),
        ({"sources": {"load": []}}, "cart.sources.load must be a number, but is a list of 0."),
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


def test_numbers_of_numpy_are_written_as_toml_has_them() -> None:
    assert (
        toml_value([np.float32(0.5), np.int64(3), np.bool_(True), {}, {"a b": -0.0}]) == '[0.5, 3, true, {}, { "a b" = -0.0 }]'
    )
