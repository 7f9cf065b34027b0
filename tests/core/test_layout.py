"""Named rows: offsets, records, names, and the C enumerators that native code reads them by."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.layout import Layout

LAYOUT = Layout({"mass": (), "inertia": (3,), "lever": (2, 3), "limit": ()})

shapes = st.one_of(st.just(()), st.tuples(st.integers(1, 5)), st.tuples(st.integers(1, 4), st.integers(1, 4)))
layouts = st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True), shapes, min_size=1, max_size=6).map(
    lambda fields: Layout(dict(fields))
)


def test_rows_follow_each_other() -> None:
    assert LAYOUT.size == 11
    assert LAYOUT.offsets == {"mass": 0, "inertia": 1, "lever": 4, "limit": 10}
    assert LAYOUT.rows("inertia") == slice(1, 4)
    assert LAYOUT.rows("limit") == slice(10, 11)
    assert "mass" in LAYOUT
    assert "colour" not in LAYOUT


def test_record_nests_as_the_shapes_say() -> None:
    record = LAYOUT.record(lambda row: row)
    assert record.mass == 0
    assert record.inertia == (1, 2, 3)
    assert record.lever == ((4, 5, 6), (7, 8, 9))
    assert record.limit == 10


def test_enumerators() -> None:
    assert LAYOUT.c_enum("P") == "enum { P_mass = 0, P_inertia = 1, P_lever = 4, P_limit = 10, P_COUNT = 11 };"


@given(layouts)
def test_every_row_belongs_to_exactly_one_field(layout: Layout) -> None:
    rows = np.concatenate([np.arange(layout.size)[layout.rows(name)] for name in layout.fields])
    np.testing.assert_array_equal(rows, np.arange(layout.size))
    assert layout.size == sum(prod(s) for s in layout.fields.values())
    record = layout.record(lambda row: row)
    for name, shape in layout.fields.items():
        np.testing.assert_array_equal(np.array(getattr(record, name)), np.arange(layout.size)[layout.rows(name)].reshape(shape))


def test_a_layout_does_not_change_with_the_dictionary_it_came_from() -> None:
    fields: dict[str, tuple[int, ...]] = {"a": (2,)}
    layout = Layout(fields)
    fields["b"] = ()
    assert "b" not in layout
