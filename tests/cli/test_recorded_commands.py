"""The command that a result records makes the same result: its words read back as the configuration it was made with."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import fields, replace
from math import radians
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.benchmarks.fly import config as fly_config
from airworthy.benchmarks.fly.config import FlyConfig
from airworthy.benchmarks.tracking import config as tracking
from airworthy.benchmarks.tracking.config import EvaluateConfig
from airworthy.benchmarks.tracking.methods import VehicleSpread
from airworthy.cli.common import run_tyro
from airworthy.cli.learning.synthesize import SynthesizeDatasetConfig
from airworthy.cli.learning.train import TrainSvNetConfig
from airworthy.tasks import TrackingProtocol

LATER = st.text("abcäé_-=., 012'$", min_size=1, max_size=8).filter(lambda text: not text.startswith("-"))
"""Behind the first text of a list; tyro takes what begins with a hyphen there for an option."""
TEXTS = LATER | LATER.map("-{}".format) | LATER.map("--{}".format) | st.just("-")
PATHS = TEXTS.map(Path)
ANY = st.floats(allow_nan=False, allow_infinity=False)
POSITIVE = st.floats(1e-9, 1e9)
BELOW_100 = st.floats(1e-9, 100.0)
SHARES = st.floats(0.0, 0.999)
BOOLS = st.booleans()
COUNTS = st.integers(1, 10**9)
WINDS = st.floats(-100.0, 100.0)
SEEDS = st.integers(0, 2**63 - 1)


def lists(least: int = 0) -> st.SearchStrategy[tuple[str, ...]]:
    return st.builds(lambda first, rest: (first, *rest), TEXTS, st.lists(LATER, max_size=2)) | (
        st.nothing() if least else st.just(())
    )


FLY = st.builds(
    FlyConfig,
    vehicle=lists(),
    course=st.none() | TEXTS,
    waypoints=st.lists(st.tuples(ANY, ANY, ANY).map(lambda p: ",".join(map(str, p))), max_size=3).map(tuple),
    scene=st.none() | TEXTS,
    contact=st.sampled_from(["freeze", "reset", "respond", "none"]),
    sensors=lists(),
    pilot=TEXTS,
    latency=st.floats(0.0, 2.0),
    envs=st.integers(1, 10**6),
    dynamics=st.sampled_from(["rigid", "semi_kinematic"]),
    randomize=lists(),
    wind=st.tuples(WINDS, WINDS, WINDS),
    speed=st.none() | st.floats(0.01, 1000.0),
    ground=BOOLS,
    gains=TEXTS,
    seed=SEEDS,
    out=PATHS,
    report=BOOLS,
    record=lists(),
    video_size=st.none() | st.tuples(st.integers(1, 4096), st.integers(1, 4096)),
)
SYNTHESIZE = st.builds(
    SynthesizeDatasetConfig,
    courses=lists(1).filter(lambda names: len(set(names)) == len(names)),
    vehicle=TEXTS,
    per_second=BELOW_100,
    length=st.floats(0.05, 1e3),
    jitter=BELOW_100,
    mass=SHARES,
    noise=st.sampled_from(["baseline", "assisted", "challenged", "extreme"]),
    mpc=st.sampled_from(["flightroom", "backroom"]),
    physics_rate=st.integers(1, 100).map(lambda n: 20.0 * n),
    seed=SEEDS,
    scene=TEXTS,
    view=st.sampled_from(["224", "112", "full", "none"]),
    light=st.tuples(BELOW_100, BELOW_100).map(lambda pair: (min(pair), max(pair))),
    image_noise=BELOW_100,
    shard=st.integers(1, 1000),
    out=PATHS,
    workers=st.integers(0, 64),
    cluster=st.none() | TEXTS,
    card=BOOLS,
)
TRAIN = st.builds(
    TrainSvNetConfig,
    data=PATHS,
    epochs=COUNTS,
    rate=st.floats(1e-12, 1.0),
    schedule=st.sampled_from(["constant", "cosine"]),
    dropout=SHARES,
    normalize=BOOLS,
    clip=POSITIVE,
    view=st.just(0) | st.just(112),
    paste=SHARES,
    weights=TEXTS,
    seed=SEEDS,
    variant=st.sampled_from(["sv_net", "no_rma", "hp_net"]),
    out=PATHS,
)
EVALUATE = st.builds(
    EvaluateConfig,
    pilot=lists(),
    course=TEXTS,
    conditions=lists(),
    flights=st.integers(1, 10**5),
    family=st.sampled_from([(), ("rigid",), ("rigid", "semi_kinematic")]),
    spread=st.builds(VehicleSpread, *([ANY] * len(fields(VehicleSpread)))),
    protocol=st.builds(TrackingProtocol, POSITIVE, yaw_error_max_rad=st.integers(0, 180).map(radians), proximity_m=POSITIVE),
    contact=st.sampled_from(["respond", "freeze", "none"]),
    seed=SEEDS,
    device=TEXTS,
    out=PATHS,
    report=BOOLS,
)


def trained(config: TrainSvNetConfig) -> str:
    return config.command(config.variant, config.out)


CASES: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], str]]] = {
    "fly": (FLY, fly_config.command_line),
    "synthesize": (SYNTHESIZE, SynthesizeDatasetConfig.command),
    "train svnet": (TRAIN, trained),
    "evaluate": (EVALUATE, tracking.command_line),
}


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=25)
@given(data=st.data())
def test_words_read_back_as_the_configuration(name: str, data: st.DataObject) -> None:
    read_back(name, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=400)
@given(data=st.data())
def test_words_of_many_configurations_read_back(name: str, data: st.DataObject) -> None:
    read_back(name, data)


def read_back(name: str, data: st.DataObject) -> None:
    choices, command = CASES[name]
    config = data.draw(choices)
    program = f"airworthy {name}"
    tokens = shlex.split(command(config))
    count = len(program.split())
    assert " ".join(tokens[:count]) == program
    assert run_tyro(type(config), tokens[count:], program, "") == config


def test_what_a_result_does_not_depend_on_is_left_out() -> None:
    assert fly_config.command_line(FlyConfig(json=True)) == "airworthy fly"
    assert SynthesizeDatasetConfig(json=True, repair=True).command() == "airworthy synthesize"
    assert tracking.command_line(EvaluateConfig(json=True, quick=True)) == "airworthy evaluate"
    train = TrainSvNetConfig(data=Path("set"), json=True, resume=False, verify=False, variant="all")
    train = replace(train, run=replace(train.run, device="cpu", threads=2))
    assert train.command("no_rma", Path("runs/a")) == "airworthy train svnet set --variant no_rma --out runs/a"
