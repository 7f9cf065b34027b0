"""Messages that tell the fix: their text is part of the interface."""

from __future__ import annotations

import pytest

from airworthy.core.errors import AirworthyError, AssetError, UnknownNameError, unknown_name


def test_unknown_name_says_what_is_close_what_is_known_and_what_to_do() -> None:
    error = unknown_name("vehicle", "crazyfile", ["racer250", "crazyflie2", "hummingbird"], "See docs to add one.")
    assert str(error) == (
        "Unknown vehicle 'crazyfile'. Closest: 'crazyflie2'. Known: crazyflie2, hummingbird, racer250. See docs to add one."
    )


def test_unknown_name_without_anything_close_leaves_that_sentence_out() -> None:
    assert str(unknown_name("course", "zzz", ["robustness"])) == "Unknown course 'zzz'. Known: robustness."


def test_a_long_catalogue_is_cut_and_counted() -> None:
    message = str(unknown_name("vehicle", "zzz", [f"v{i:02}" for i in range(40)]))
    assert message.endswith("v10, v11, ... (40 in all).")


def test_every_error_is_caught_as_airworthy_error_and_names_as_key_error() -> None:
    assert issubclass(AssetError, AirworthyError)
    assert issubclass(UnknownNameError, AirworthyError)
    with pytest.raises(KeyError):
        raise unknown_name("vehicle", "x", [])
