"""`airworthy vehicles` as users and scripts call it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from tests.dynamics.articulated_cases import star
from tests.fixtures.identified import identified

from airworthy.cli.main import main
from airworthy.vehicles import articulated_names, read_vehicle, vehicle, vehicle_names, write_vehicle
from airworthy.vehicles.record import LinkShape, SensorMount


def run(*arguments: str) -> int:
    return main(["vehicles", *arguments])


def test_list_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    text = capsys.readouterr().out
    names = [*vehicle_names(), *articulated_names()]
    assert f"{len(names)} vehicles" in text
    assert all(name in text for name in names)


def test_list_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == sorted([*vehicle_names(), *articulated_names()])
    assert {row["name"] for row in rows if row.get("joints")} == {*articulated_names()}
    wanted = {"name", "mass_kg", "rotor_count", "thrust_to_weight", "alpha_xy_max", "alpha_z_max"}
    assert all(wanted <= row.keys() for row in rows)
    lmf2 = next(row for row in rows if row["name"] == "lmf2")
    assert (lmf2["mass_kg"], lmf2["rotor_count"]) == (1.24, 4)
    assert lmf2["thrust_to_weight"] == pytest.approx(40 / (1.24 * 9.81))


def test_show_a_vehicle_with_joints(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "snakey") == 0
    text = capsys.readouterr().out
    for said in ("dof               12", "pole_per_s        8898.8", "step_ms           2", "integrator        extrapolated"):
        assert said in text
    assert "    link1_virtual2: 306.25 g, rotor 1; joint servo of rate, 10 N m s/rad, -28.65 to 28.65 degrees" in text
    assert run("show", "morphy_linear", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["dof"], found["step_ms"], found["integrator"]) == (14, pytest.approx(2.0), "midpoint")
    assert found["tree"][:3] == ["base_link", "connecting_link_arm0", "arm_motor_0"]


def told_as(tmp_path: Path, **changes: float) -> str:
    """The file of a vehicle with its uncertainty, some deviations changed."""
    made = identified()
    told = made.uncertainty
    assert told is not None
    sd = tuple(changes.get(name, value) for name, value in zip(told.names, told.sd, strict=True))
    write_vehicle(replace(made, uncertainty=replace(told, sd=sd)), tmp_path / "mine.toml")
    return str(tmp_path / "mine.toml")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"inertia_zz_ratio": 3.0, "thrust": 3.0},
            "of the draws from the uncertainty of cf2x_L250 are no vehicles that lift their weight",
        ),
        ({"lag": 1.5}, "too fast for rk4 at 960 Hz"),
    ],
)
def test_validate_refuses_an_uncertainty_that_no_flight_can_draw(
    changes: dict[str, float], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = told_as(tmp_path, **changes)
    assert run("validate", file) == 2
    refused = capsys.readouterr().err
    assert said in refused
    # The same sentence as of a flight.
    assert main(["fly", "--vehicle", file, "--randomize", "identified", "--out", str(tmp_path / "flown")]) == 2
    assert capsys.readouterr().err == refused


def test_validate_tells_what_draws_cut_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("validate", told_as(tmp_path, inertia_zz_ratio=0.13)) == 0
    assert "drawn anew, so that draws are narrower than the record says: inertia_zz_ratio 10.8 % in" in capsys.readouterr().out
    assert run("validate", told_as(tmp_path)) == 0
    assert "drawn anew" not in capsys.readouterr().out


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "carl") == 0
    text = capsys.readouterr().out
    assert "thrust_to_weight  2.459" in text
    assert "[sources]" in text


def test_show_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "carl", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["vehicle"]["rotors"][0]["spin"] == -1
    assert len(shown["hover_state"]) == 4


def test_validate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_vehicle(vehicle("lmf2"), tmp_path / "good.toml")
    assert run("validate", str(tmp_path / "good.toml")) == 0
    assert "lmf2 is valid" in capsys.readouterr().out
    lines = (tmp_path / "good.toml").read_text().split("[sources]")[0]
    (tmp_path / "good.toml").write_text(lines)
    assert run("validate", str(tmp_path / "good.toml")) == 0
    assert "note: no source is given for mass" in capsys.readouterr().out


def test_validate_looks_at_what_it_carries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind, device, said in (
        ("lidar", "", "Sensor 'top' of vehicle 'lmf2' is of kind 'lidar' and names no device: write device = \"NAME\""),
        ("d435", "", "is of kind 'd435' and names no device"),
        ("lidar", "ouster", "Unknown sensor 'ouster'"),
        ("lidar", "ouster_os0_64", ""),
    ):
        record = replace(vehicle("lmf2"), sensors=(SensorMount("top", kind, device),))
        write_vehicle(record, tmp_path / "own.toml")
        assert run("validate", str(tmp_path / "own.toml")) == (2 if said else 0)
        assert said in capsys.readouterr().err


def test_synthesize(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.toml"
    options = ("--base", "virt_05", "--mass", "1.2", "--arm", "0.25", "--omega-scale", "1.05", "--out", str(out))
    assert run("synthesize", *options) == 0
    assert "thrust to weight 4.12" in capsys.readouterr().out
    made = read_vehicle(out)
    assert (made.name, made.mass) == ("mine", 1.2)
    assert run("show", str(out)) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "carll"), "Unknown vehicle 'carll'. Closest: 'carl'"),
        (("shwo", "carl"), "Unknown 'airworthy vehicles' subcommand 'shwo'. Closest: 'show'"),
        (("validate", "missing.toml"), "There is no file 'missing.toml'"),
        (
            ("synthesize", "--base", "virt_05", "--mass", "9", "--arm", "0.3", "--out", "x.toml"),
            "x is rejected: mass 9 is outside 0.3 to 6 kg",
        ),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(
    arguments: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_help_names_units(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("synthesize", "--help") == 0
    assert "[kg]" in capsys.readouterr().out


def test_thrust_to_weight_is_along_what_points_up_in_hover(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rotors tilted alike lift as much as level ones; along body z it would be cos 60 degrees of that."""
    level, found = vehicle("flightgoggles"), []
    t = math.radians(60.0)
    leaning = replace(level, rotors=tuple(replace(r, axis=(math.sin(t), 0.0, math.cos(t))) for r in level.rotors))
    for airframe in (level, leaning):
        write_vehicle(airframe, tmp_path / "airframe.toml")
        assert run("show", str(tmp_path / "airframe.toml"), "--json") == 0
        found.append(json.loads(capsys.readouterr().out)["thrust_to_weight"])
    assert found[1] == pytest.approx(found[0], rel=1e-9)


def test_an_arm_in_millimetres_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    airframe = vehicle("flightgoggles")
    rotors = tuple(replace(r, position=tuple(1000.0 * x for x in r.position)) for r in airframe.rotors)
    write_vehicle(replace(airframe, rotors=rotors), tmp_path / "airframe.toml")
    assert run("validate", str(tmp_path / "airframe.toml")) == 0
    assert "positions are in metres, and" in capsys.readouterr().out
    write_vehicle(airframe, tmp_path / "airframe.toml")
    assert run("validate", str(tmp_path / "airframe.toml")) == 0
    assert "in metres" not in capsys.readouterr().out


def test_validate_tells_hover_where_flights_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A straight chain cannot hover; its flights start as a ring."""
    write_vehicle(vehicle("snakey"), tmp_path / "chain.toml")
    assert run("validate", str(tmp_path / "chain.toml")) == 0
    text = capsys.readouterr().out
    assert "hover: level" in text
    assert "WARNING" not in text


def test_validate_notes_what_joints_may_not_be_meant_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ball, bar = LinkShape("sphere", (0.1, 0.1, 0.1)), LinkShape("box", (0.45, 0.02, 0.02))
    for links, joint, words in (
        (0, {}, ["no link has shapes, so that it meets things with its body's sphere"]),
        (1, {}, ["arm0, arm1, arm2, arm3 have no shapes (sphere, box, cylinder; no meshes), so that they meet nothing"]),
        (5, {"lower": -45.0, "upper": 45.0}, ["the joints of arm0, arm1, arm2, arm3 stop after more than two turns"]),
        (5, {"kp": 0.0, "kd": 0.0}, ["nothing holds or damps the joints of arm0, arm1, arm2, arm3"]),
        (5, {}, []),
    ):
        craft = star(2.0, **joint)
        shaped = [replace(link, shapes=(ball,) if number < links else ()) for number, link in enumerate(craft.links)]
        write_vehicle(replace(craft, links=tuple(shaped)), tmp_path / "star.toml")
        assert run("validate", str(tmp_path / "star.toml")) == 0
        notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ") and "no source" not in line]
        assert len(notes) == len(words)
        assert all(word in note for word, note in zip(words, notes, strict=True))
    craft = star(2.0)
    write_vehicle(replace(craft, links=tuple(replace(link, shapes=(bar,)) for link in craft.links)), tmp_path / "star.toml")
    assert run("validate", str(tmp_path / "star.toml")) == 0
    assert "what is thinner than 0.39 m may pass between" in capsys.readouterr().out
