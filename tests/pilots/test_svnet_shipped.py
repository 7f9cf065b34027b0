"""The policy that comes with the package: whole, small, found by its name, and able to do what it is shipped for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airworthy.benchmarks.tracking import EvaluateConfig, evaluate
from airworthy.benchmarks.tracking.methods import method_of
from airworthy.core.errors import AssetError, UnknownNameError
from airworthy.pilots.svnet.contract import (
    CONTRACT_FILE,
    SHIPPED,
    WEIGHTS_FILE,
    policy_folder,
    read_policy,
    shipped_name,
    shipped_policy,
)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_policy_is_whole_and_small(name: str) -> None:
    folder = shipped_policy(name)
    contract, weights = read_policy(folder)
    assert contract.variant == "sv_net"
    assert sum(tensor.size for tensor in weights.values()) == 1_948_822
    assert (folder / WEIGHTS_FILE).stat().st_size < 8_000_000
    assert {path.name for path in folder.iterdir()} == {CONTRACT_FILE, WEIGHTS_FILE}
    # Made on somebody's machine, of which nothing is to be told.
    table = json.loads((folder / CONTRACT_FILE).read_text())
    for name in ("training", "data", "notes", "setting"):
        assert "/" not in json.dumps(table[name])
    assert contract.training["options"]["epochs"] > 0


def test_where_a_word_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert policy_folder("") == policy_folder("hall") == shipped_policy("hall")
    assert shipped_name(policy_folder("hall")) == "hall"
    (tmp_path / "hall").mkdir()
    assert policy_folder("hall") == Path("hall")
    assert shipped_name(Path("hall")) == ""
    with pytest.raises(AssetError, match="or a shipped policy: hall"):
        policy_folder("nowhere")
    with pytest.raises(UnknownNameError, match="shipped policy"):
        shipped_policy("hal")


def test_words_of_an_evaluation() -> None:
    assert method_of("svnet").name == method_of("svnet:hall").name == "svnet:hall"
    assert method_of("svnet").identity == method_of("svnet:hall").identity


@pytest.mark.slow
def test_it_flies_the_course_that_it_is_shipped_for(tmp_path: Path) -> None:
    """One flight of the baseline; the figure is SOUS VIDE's of real flights, and the policy's mean is 0.11 m."""
    config = EvaluateConfig(("svnet",), conditions=("baseline",), flights=1, report=False, out=tmp_path)
    found = evaluate(config).summary["flights"][0]
    assert found["outcome"] == "success"
    assert found["tracking_error_m"] < 0.173
    assert found["proximity_percent"] > 96.0
