"""Vehicle files: exact round trip, strict reading, and nothing but AssetError on hostile bytes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.benchmarks.navigation.config import vehicle_names_of
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.scenes.formats import MODEL_SUFFIXES, POINT_SUFFIXES
from airworthy.scenes.splats import SPLAT_SUFFIXES
from airworthy.vehicles import (
    Battery,
    CollisionBody,
    Disturbance,
    Drag,
    Rotor,
    RotorResponse,
    SensorMount,
    Vehicle,
    VoltageChain,
    WrenchNoise,
    named_vehicle,
    read_vehicle,
    vehicle,
    vehicle_names,
    write_vehicle,
)
from airworthy.vehicles.lookup import CATALOGUE

MINIMAL = """
version = 1
name = "mine"
mass = 1
inertia = [0.01, 0.01, 0.015, 0, 0, 0]
[rotor]
thrust = [0, 0, 1e-5]
torque = [0, 0, 1e-7]
response = { rise = [20, 0], fall = [20, 0] }
speed_max = 900
[[rotors]]
position = [0.1, 0.1, 0]
spin = 1
[[rotors]]
position = [-0.1, 0.1, 0]
spin = -1
"""


def reals(low: float, high: float) -> st.SearchStrategy[float]:
    return (st.floats(low, high, allow_nan=False, allow_subnormal=False)).map(
        lambda x: 0.0 if abs(x) < 1e-20 else x
    )  # what is smaller is refused as a slip of units


def triples(low: float, high: float) -> st.SearchStrategy[tuple[float, float, float]]:
    return st.tuples(reals(low, high), reals(low, high), reals(low, high))


TEXT = st.text(st.characters(blacklist_categories=("Cs",)), max_size=20)  # everything UTF-8 can hold

ROTORS = st.builds(
    Rotor,
    position=triples(-1.0, 1.0),
    thrust=st.tuples(reals(0.0, 0.1), reals(0.0, 1e-3), reals(1e-9, 1e-4)),
    torque=st.tuples(reals(0.0, 0.1), reals(0.0, 1e-3), reals(0.0, 1e-5)),
    spin=st.sampled_from([-1, 1]),
    response=st.builds(
        RotorResponse, st.tuples(reals(1e-3, 1e3), reals(0.0, 1.0)), st.tuples(reals(0.0, 1e3), reals(1e-6, 1.0))
    ),
    speed_max=reals(10.0, 4e3),
    speed_min=reals(-4e3, 9.0),
    axis=st.sampled_from([(0.0, 0.0, 1.0), (0.6, 0.0, 0.8), (0.0, -1.0, 0.0)]),
    inertia=reals(0.0, 1e-3),
    radius=reals(0.0, 1.0),
)
SENSORS = st.builds(
    SensorMount,
    name=st.just("eye"),
    kind=TEXT,
    device=TEXT,
    position=triples(-1.0, 1.0),
    orientation=st.just((0.5, -0.5, 0.5, 0.5)),
    parameters=st.dictionaries(TEXT, reals(-1e6, 1e6), max_size=3).map(lambda d: tuple(d.items())),
)
VEHICLES = st.builds(
    Vehicle,
    name=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,20}", fullmatch=True),
    mass=reals(1e-3, 1e3),
    inertia=st.tuples(*[reals(1.0, 1.5)] * 3, *[reals(-0.1, 0.1)] * 3),
    rotors=st.lists(ROTORS, min_size=1, max_size=8).map(tuple),
    center_of_mass=triples(-1.0, 1.0),
    drag=st.builds(Drag, linear=triples(0.0, 1.0), angular_axis=triples(0.0, 1.0)),
    wrench_noise=st.builds(WrenchNoise, triples(0.0, 1.0), triples(0.0, 1.0)),
    disturbance=st.builds(Disturbance, reals(0.0, 1.0), triples(0.0, 9.0), triples(0.0, 1.0)),
    battery=st.none() | st.builds(Battery, reals(4.0, 5.0), reals(2.0, 3.0), reals(3.0, 4.0), reals(1.0, 9e3), reals(0.0, 1.0)),
    voltage_chain=st.none() | st.just(VoltageChain(9e-4, 0.088, -6e-4, 3.0, 2e4, 65535.0, 0.028, 426.0)),
    body=st.builds(lambda r, h: CollisionBody("cylinder", (r, r, h), (0.0, 0.0, r)), reals(0.01, 1.0), reals(0.01, 1.0)),
    sensors=st.tuples() | st.tuples(SENSORS),
    gravity=reals(0.0, 30.0),
    sources=st.dictionaries(TEXT, TEXT, max_size=3),
    extra=st.dictionaries(TEXT, TEXT | reals(-1e6, 1e6), max_size=3),
)


@settings(max_examples=150)
@given(VEHICLES)
def test_round_trip_is_exact(tmp_path_factory: pytest.TempPathFactory, made: Vehicle) -> None:
    path = tmp_path_factory.getbasetemp() / "round_trip.toml"
    write_vehicle(made, path)
    again = read_vehicle(path)
    assert again == made
    assert again.sources == made.sources
    assert again.extra == made.extra


@pytest.mark.parametrize("name", vehicle_names())
def test_the_catalogue_round_trips(name: str, tmp_path: Path) -> None:
    airframe = vehicle(name)
    write_vehicle(airframe, tmp_path / "copy.toml")
    assert read_vehicle(tmp_path / "copy.toml") == airframe
    assert (tmp_path / "copy.toml").read_text() == (CATALOGUE / f"{name}.toml").read_text()  # and the writer is stable


def test_shared_rotor_values_apply_to_all_and_can_be_overridden(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINIMAL + "speed_max = 800\n")
    airframe = read_vehicle(path)
    assert [rotor.speed_max for rotor in airframe.rotors] == [900.0, 800.0]
    assert airframe.rotors[0].response == RotorResponse((20.0, 0.0), (20.0, 0.0))


MISTAKES = {
    "unknown key 'masss' (closest: 'mass')": ("mass = 1", "masss = 1"),
    "lacks 'mass'": ("mass = 1\n", ""),
    "mine.toml: mass must be a number, but is 'heavy'": ("mass = 1", "mass = 'heavy'"),
    "mine.toml: mass must be a number, but is True": ("mass = 1", "mass = true"),
    "mine.toml: mass must be a finite number, but is nan": ("mass = 1", "mass = nan"),
    "mass must be a number, but is 1000000000000000000000": ("mass = 1", "mass = 1000000000000000000000"),
    "mass is 0 kg, but must be positive": ("mass = 1", "mass = 0"),
    "inertia must be a list of 6 numbers": ("0.015, 0, 0, 0]", "0.015, 0]"),
    "file version '2'": ("version = 1", "version = 2"),
    "says no file version: begin it with the line version = 1": ("version = 1", ""),
    "rotor has the unknown key 'thrus' (closest: 'thrust')": ("thrust =", "thrus ="),
    "rotors[0].spin must be one of -1, 1, but is 3": ("spin = 1", "spin = 3"),
    "rotors[0].response lacks 'fall'": (", fall = [20, 0]", ""),
    "rotor must be a table": ("[rotor]", "[[rotor]]"),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_gives_one_clear_sentence(message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINIMAL.replace(*MISTAKES[message], 1))
    with pytest.raises(AssetError) as error:
        read_vehicle(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        "x = " + "[" * 5_000 + "]" * 5_000,
        "version = 1\nname = '" + "x" * 100_000 + "'",
        "version = 1\nmass = " + "9" * 10_000,
        MINIMAL + "\n[extra]\n" + "\n".join(f"k{i} = 1" for i in range(20_000)),
        MINIMAL.replace("[[rotors]]", "[[rotors]]\n[rotors.axis.axis]", 1),
        MINIMAL + "[[rotors]]\nposition = [0, 0, 0]\nspin = 1\n" * 200,
        "version = 1\nrotors = 7",
        "version = 1\nrotors = [1, 2]",
        "a." * 2_000 + "b = 1",
    ],
)
def test_hostile_text_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.toml"
    path.write_text(text)
    with pytest.raises(AssetError):
        read_vehicle(path)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.toml"
    with open(path, "wb") as file:
        file.truncate(10**12)  # a sparse terabyte
    with pytest.raises(AssetError):
        read_vehicle(path)


def test_an_impossible_vehicle_is_not_written(tmp_path: Path) -> None:
    from dataclasses import replace

    with pytest.raises(AirworthyError):
        write_vehicle(replace(vehicle("lmf2"), mass=-1.0), tmp_path / "bad.toml")
    assert not (tmp_path / "bad.toml").exists()


def mutate(data: bytes, generator: random.Random) -> bytes:
    """A few random edits: flipped, removed, doubled or exchanged pieces, and words that parsers stumble over."""
    tokens = [
        b"nan",
        b"-inf",
        b"1e400",
        b"[[rotors]]",
        b"[",
        b"]",
        b"{",
        b"'''",
        b"=",
        b"\x00",
        b"\xff",
        b"9" * 50,
        b"version = 1",
    ]
    for _ in range(generator.randint(1, 6)):
        at = generator.randrange(len(data) + 1)
        length = generator.randint(0, 40)
        kind = generator.randrange(4)
        if kind == 0:
            data = data[:at] + bytes([generator.randrange(256)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + data[at + length :]
        elif kind == 2:
            data = data[:at] + data[at : at + length] * 2 + data[at + length :]
        else:
            data = data[:at] + generator.choice(tokens) + data[at:]
    return data


def test_a_thousand_mutated_files_load_or_raise_asset_error(tmp_path: Path) -> None:
    generator = random.Random(20250101)
    originals = [(CATALOGUE / f"{name}.toml").read_bytes() for name in ("carl", "cf2x_scg_iros2022", "base_random")]
    originals.append(MINIMAL.encode())
    path = tmp_path / "fuzz.toml"
    loaded, messages = 0, []
    for index in range(1_000):
        path.write_bytes(mutate(originals[index % 4], generator))
        try:
            read_vehicle(path)
            loaded += 1
        except AssetError as error:
            messages.append(str(error))
    assert not any("\n" in message for message in messages)
    assert 0 < loaded < 900  # edits in comments and texts are harmless, most others are not


def test_a_mesh_or_cloud_is_no_vehicle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every file that scenes are read from is called what it is, whoever is told that it is a vehicle."""
    for suffix in {*MODEL_SUFFIXES, *POINT_SUFFIXES, *SPLAT_SUFFIXES} - {".urdf", ".json", ".zip"}:
        path = tmp_path / f"room{suffix.upper()}"
        path.write_bytes(b"<a>" * 100)
        for use in (read_vehicle, vehicle, named_vehicle, lambda name: vehicle_names_of([str(name)])):
            with pytest.raises(AssetError, match=r"^'.*' is a (mesh|point cloud|cloud|place)\b.*, not a vehicle: .*\.$"):
                use(str(path))
    for arguments in (["vehicles", "validate", str(path)], ["fly", "--vehicle", str(path), "--out", str(tmp_path / "run")]):
        assert main(arguments) == 2
        assert ", not a vehicle: expected a vehicle's name, TOML or URDF" in capsys.readouterr().err
