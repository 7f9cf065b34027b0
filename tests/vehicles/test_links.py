"""Vehicles with joints: the record, its file, URDFs with free joints, the same vehicle held, and who refuses them."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.vehicles.test_urdf import ROTORS, URDF

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import data_dir
from airworthy.dynamics.state import body_parameters, rigid_layout
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import (
    Joint,
    Link,
    LinkShape,
    Rotor,
    RotorResponse,
    Vehicle,
    articulated,
    articulated_names,
    control_effectiveness,
    frozen,
    hover_trim,
    import_urdf,
    read_vehicle,
    synthesize,
    vehicle,
    vehicle_names,
)
from airworthy.vehicles.check import check
from airworthy.vehicles.files import missing_sources, vehicle_from_table, vehicle_text
from airworthy.vehicles.links import rotation_matrix, rotation_quaternion, turn_about

BASE = Link("base", mass=0.2, center_of_mass=(0.01, 0.0, 0.0), inertia=(1e-4, 1.2e-4, 2e-4, 0.0, 0.0, 0.0))
HINGE = Joint((0.04, 0.0, 0.0), (0.0, 1.0, 0.0), kp=0.2, kd=0.02, lower=-0.2, upper=0.3)
ARM = Link("arm", "base", HINGE, mass=0.01, center_of_mass=(0.07, 0.0, 0.0))
ROTOR = Rotor((0.07, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.01, 0.0), 1, RotorResponse.first_order(0.02), 2.0, link="arm")


def made(*links: Link, **fields: Any) -> Vehicle:
    return articulated("bent", links or (BASE, ARM), [ROTOR], motor_state="thrust", **fields)


def test_a_record_comes_back_from_its_file(tmp_path: Path) -> None:
    for craft in (made(fixed_base=True), *map(vehicle, articulated_names())):
        text = vehicle_text(craft)
        assert not {"mass", "inertia", "center_of_mass"} & set(tomllib.loads(text))
        (tmp_path / "craft.toml").write_text(text)
        assert read_vehicle(tmp_path / "craft.toml") == craft


def test_what_links_weigh_together_by_hand() -> None:
    craft = made()
    assert craft.mass == pytest.approx(0.21)
    np.testing.assert_allclose(craft.center_of_mass, [(0.2 * 0.01 + 0.01 * 0.11) / 0.21, 0.0, 0.0], rtol=1e-10)
    spread = 0.2 * 0.01 / 0.21 * 0.1**2  # reduced mass times distance squared
    np.testing.assert_allclose(craft.inertia[:3], [1e-4, 1.2e-4 + spread, 2e-4 + spread], rtol=1e-10)


def test_held_joints_make_a_rigid_vehicle() -> None:
    held = frozen(made(), [0.1])
    # About y by +0.1 the arm's tip goes down: (0.04 + 0.07 cos, 0, -0.07 sin), and thrust leans forward.
    np.testing.assert_allclose(held.rotors[0].position, [0.04 + 0.07 * math.cos(0.1), 0.0, -0.07 * math.sin(0.1)], atol=1e-12)
    np.testing.assert_allclose(held.rotors[0].axis, [math.sin(0.1), 0.0, math.cos(0.1)], atol=1e-12)
    assert (held.links, held.rotors[0].link) == ((), "")
    assert check(held) == held
    with pytest.raises(AirworthyError, match="2 angles were given for the 1 joints of 'bent'"):
        frozen(made(), [0.1, 0.2])
    with pytest.raises(AirworthyError, match="hold what is not finite"):
        frozen(made(), [math.nan])


@pytest.mark.parametrize("name", ["morphy", "snakey", "snakey5", "snakey6"])
def test_catalogue_against_published_numbers(name: str) -> None:
    """Mass, inertia and effectiveness about the root at neutral, as derived from the URDFs by another program."""
    data = data_dir()
    if data is None:
        pytest.skip("AIRWORTHY_DATA is not set")
    derived = json.loads((data / "aerial_gym" / "robots.json").read_text())["robots"][name]["derived"]
    held = frozen(vehicle(name))
    assert held.mass == pytest.approx(derived["total_mass"], rel=1e-8)
    xx, yy, zz, xy, xz, yz = held.inertia
    np.testing.assert_allclose(
        [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], derived["inertia_about_com_neutral"], rtol=1e-7, atol=1e-10
    )
    matrix = control_effectiveness(held, "root")
    np.testing.assert_allclose(matrix, derived["effectiveness_from_urdf"]["matrix"], atol=5e-7)
    assert np.linalg.matrix_rank(matrix, tol=1e-9) == derived["effectiveness_from_urdf"]["rank"]


@pytest.mark.parametrize("name", articulated_names())
def test_every_value_of_the_catalogue_has_a_source(name: str) -> None:
    assert missing_sources(vehicle(name)) == []
    assert name not in vehicle_names()


def shaped(**shape: Any) -> Vehicle:
    return made(BASE, replace(ARM, shapes=(LinkShape("sphere", **shape),)))


REFUSED = {
    "links[0] is the root, but 'arm' hangs on a joint": lambda: made(ARM, BASE),
    "holds 0 joints": lambda: made(BASE),
    "two links are named 'arm'": lambda: made(BASE, ARM, ARM),
    "links[1] ('arm') has no joint": lambda: made(BASE, replace(ARM, joint=None)),
    "hangs on 'tip', but that is no link before it": lambda: made(BASE, replace(ARM, parent="tip")),
    "joint.axis has length 2": lambda: made(BASE, replace(ARM, joint=replace(HINGE, axis=(0.0, 2.0, 0.0)))),
    "joint.kp is -1": lambda: made(BASE, replace(ARM, joint=replace(HINGE, kp=-1.0))),
    "joint.effort is 0.0, but must be positive": lambda: made(BASE, replace(ARM, joint=replace(HINGE, effort=0.0))),
    "joint.lower is 1 and upper 0.3": lambda: made(BASE, replace(ARM, joint=replace(HINGE, lower=1.0))),
    "beyond the stops at -0.2 and 0.3": lambda: made(BASE, replace(ARM, joint=replace(HINGE, initial_high=0.4))),
    "no body's largest exceeds": lambda: made(BASE, replace(ARM, inertia=(1e-6, 1e-6, 3e-6, 0.0, 0.0, 0.0))),
    "links[0] ('base') has no mass": lambda: made(replace(BASE, mass=0.0), ARM),
    "no inertia about its joint's axis": lambda: made(BASE, replace(ARM, center_of_mass=(0.0, 0.0, 0.0))),
    "rotors[0].link is 'arm', but its links are base, leg": lambda: made(BASE, replace(ARM, name="leg")),
    "rotors[0].link is 'arm', but it has no links": lambda: check(replace(made(), links=())),
    "mass is 1.0, but that of its links is 0.21": lambda: check(replace(made(), mass=1.0)),
    "fixed_base is for vehicles with links": lambda: check(replace(vehicle("carl"), fixed_base=True)),
    "1 to 24 can be flown": lambda: made(BASE, ARM, *(replace(ARM, name=f"arm{k}") for k in range(24))),
    "kp is 0.2, but the law 'torque' does not read it": lambda: made(BASE, replace(ARM, joint=replace(HINGE, law="torque"))),
    "weight is 0.1, but the law 'spring'": lambda: made(BASE, replace(ARM, joint=replace(HINGE, weight=0.1))),
    "rest is 0.1, but the law 'spring with kp = 0'": lambda: made(BASE, replace(ARM, joint=replace(HINGE, kp=0.0, rest=0.1))),
    "active is True, but the law 'morphy'": lambda: made(BASE, replace(ARM, joint=replace(HINGE, law="morphy", active=True))),
    "shapes[0].size is [0.1, -0.1, 0.1], but every half extent": lambda: shaped(size=(0.1, -0.1, 0.1)),
    "shapes[0].size is [0.1, 0.2, 0.1], but the radii of a sphere": lambda: shaped(size=(0.1, 0.2, 0.1)),
    "shapes[0].rotation has length 0": lambda: shaped(size=(0.1, 0.1, 0.1), rotation=(0.0, 0.0, 0.0, 0.0)),
    "links[1].joint.kd is nan": lambda: made(BASE, replace(ARM, joint=replace(HINGE, kd=math.nan))),
}


@pytest.mark.parametrize("message", REFUSED)
def test_impossible_trees_are_refused_in_one_sentence(message: str) -> None:
    with pytest.raises(AirworthyError) as error:
        REFUSED[message]()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_two_hinges_on_one_axis_leave_one_without_inertia() -> None:
    """Mass off the axis turns with the second hinge; nothing resists the first when both are free."""
    first = Link("first", "base", HINGE)
    second = replace(ARM, parent="first", joint=replace(HINGE, position=(0.0, 0.0, 0.0)))
    with pytest.raises(AirworthyError, match=r"links\[1\] \('first'\) has no inertia about its joint's axis"):
        made(BASE, first, second)
    across = replace(second, joint=replace(HINGE, position=(0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0)))
    assert made(BASE, first, across).joint_count == 2


def test_an_armature_resists_where_a_link_does_not() -> None:
    light = replace(ARM, center_of_mass=(0.0, 0.0, 0.0), joint=replace(HINGE, armature=1e-5))
    assert made(BASE, light).joint_count == 1


def test_a_file_says_no_mass_beside_links() -> None:
    table = tomllib.loads(vehicle_text(made()))
    with pytest.raises(AssetError, match=r"x\.toml: mass follows from the links and must not stand here"):
        vehicle_from_table({**table, "mass": 0.21}, "x.toml")
    with pytest.raises(AssetError, match="links is empty"):
        vehicle_from_table({**table, "links": []}, "x.toml")


ASKED = {
    "The rigid family": lambda craft: body_parameters(craft, rigid_layout(4), 4),
    "This analysis": hover_trim,
    "Scaling": lambda craft: synthesize(craft, 1.0, 0.2, 1.0, "scaled"),
}


@pytest.mark.parametrize("who", ASKED)
def test_who_knows_rigid_vehicles_only_says_so(who: str) -> None:
    """None of them takes a vehicle with joints for a rigid one."""
    for craft in (made(), vehicle("snakey6")):
        with pytest.raises(
            AirworthyError, match=rf"^{who} knows rigid vehicles only, but '{craft.name}' has {craft.joint_count} joints"
        ):
            ASKED[who](craft)


def test_the_simulator_flies_it_by_other_dynamics() -> None:
    for dynamics in ("rigid", "semi_kinematic"):
        config = SimulatorConfig(dynamics=dynamics, level="rate_thrust")  # type: ignore[arg-type]
        with pytest.raises(AirworthyError, match=r"has 10 joints, which .* do not have: set dynamics='articulated'"):
            Simulator(vehicle("snakey6"), config)


# ---- URDF ------------------------------------------------------------------------------------------------------------

FREE = ROTORS.replace('joints = "frozen"\n', "")


def imported(folder: Path, urdf: str = URDF, rotors: str = FREE, joints: str | None = None) -> Vehicle:
    (folder / "pair.urdf").write_text(urdf)
    (folder / "pair.toml").write_text(rotors)
    return import_urdf(folder / "pair.urdf", folder / "pair.toml", joints)


def test_a_urdf_with_free_joints(tmp_path: Path) -> None:
    settings = (
        '\n[joints."h*"]\nstiffness = 3\ndamping = 0.1\nactive = true\n[joints.hinge]\nstiffness = 2\ninitial = [-0.5, 0.5]\n'
    )
    craft = imported(tmp_path, URDF.replace('velocity="1"/>', 'velocity="1"/><dynamics damping="0.4"/>'), FREE + settings)
    base, arm = craft.links
    assert (base.name, base.mass, arm.name, arm.parent, arm.mass) == ("base", 2.0, "arm", "base", 1.0)
    joint = arm.joint
    assert joint is not None
    assert (joint.kp, joint.kd, joint.active, joint.initial_low) == (2.0, 0.1, True, -0.5)
    assert (joint.lower, joint.upper, joint.effort, joint.rate_max) == (-1.0, 1.0, 1.0, 1.0)
    np.testing.assert_allclose(rotation_matrix(joint.rotation), turn_about((0.0, 0.0, 1.0), math.pi / 2), atol=1e-12)
    # The arm and both hubs are one link: 0.5 kg each at 0.4 m on both sides.
    np.testing.assert_allclose(arm.center_of_mass, [0.0, 0.0, 0.0], atol=1e-12)
    assert arm.inertia[2] == pytest.approx(0.4**2 + 0.002 * math.sin(0.1) ** 2 + 0.003 * math.cos(0.1) ** 2, rel=1e-9)
    assert [rotor.link for rotor in craft.rotors] == ["arm", "arm"]
    np.testing.assert_allclose(craft.rotors[0].axis, [0.0, -math.sin(0.1), math.cos(0.1)], atol=1e-9)
    held, rigid = frozen(craft), imported(tmp_path, rotors=ROTORS)
    assert (rigid.links, rigid.extra["movable_joints_frozen"]) == ((), 1.0)
    np.testing.assert_allclose(held.inertia, rigid.inertia, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(held.rotors[0].position, rigid.rotors[0].position, atol=1e-9)
    assert imported(tmp_path, joints="frozen") == rigid
    assert imported(tmp_path, rotors=ROTORS, joints="free").joint_count == 1


def test_a_continuous_joint_turns_on_and_damping_of_the_file_holds(tmp_path: Path) -> None:
    text = URDF.replace('type="revolute"', 'type="continuous"').replace(
        'velocity="1"/>', 'velocity="1"/><dynamics damping="0.4"/>'
    )
    joint = imported(tmp_path, text).links[1].joint
    assert joint is not None
    assert (joint.lower, joint.upper, joint.kd) == (None, None, 0.4)


LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
UNFREE = {
    "joint 'hinge' is prismatic": URDF.replace('type="revolute"', 'type="prismatic"'),
    "joint 'hinge' mimics another": URDF.replace(LIMIT, LIMIT + '<mimic joint="l"/>'),
    "joint 'hinge' has the friction 0.1": URDF.replace(LIMIT, LIMIT + '<dynamics friction="0.1"/>'),
    "say friction = 0 of it in pair.toml, or say joints.hinge": URDF.replace(LIMIT, LIMIT + '<dynamics friction="0.1"/>'),
    "joint 'hinge' has no type, which cannot be flown: expected": URDF.replace(' type="revolute"', ""),
    "it holds xacro macros": URDF.replace("<robot", '<robot xmlns:xacro="http://x.org"').replace(
        "</robot>", "<xacro:leg/></robot>"
    ),
    "joint 'hinge' is revolute, but its <limit> has no lower below an upper": URDF.replace(LIMIT, ""),
    "joint 'hinge' has the axis 0 0 0": URDF.replace('<axis xyz="0 0 1"/>', '<axis xyz="0 0 0"/>'),
    "'hinge' is of type 'ball'": URDF.replace('type="revolute"', 'type="ball"'),
}


@pytest.mark.parametrize("message", UNFREE)
def test_joints_that_cannot_move_are_refused_by_name(message: str, tmp_path: Path) -> None:
    with pytest.raises(AssetError) as error:
        imported(tmp_path, UNFREE[message])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


SETTINGS = {
    "joints.knee fits no moving joint; there are hinge": "[joints.knee]\nstiffness = 1",
    "has the unknown key 'stifness' (closest: 'stiffness')": "[joints.hinge]\nstifness = 1",
    "joints.hinge.initial must be a list of the lowest and the highest angle": "[joints.hinge]\ninitial = 1",
    'expected "frozen", "free" or tables': 'joints = "loose"',
    "joints.hinge must be a table": "[joints]\nhinge = 3",
    "joints.k* fits no moving joint; there are hinge": '[joints]\n"k*" = "frozen"',
    "joints.hinge.* fits no moving joint": '[joints]\nhinge = "frozen"\n[joints."hinge.*"]\nstiffness = 1',
    "joint 'hinge' has the friction 0.2": "[joints.hinge]\nfriction = 0.2",
    "joint.kp is -1": "[joints.hinge]\nstiffness = -1",
    "links comes from the URDF": "links = []",
}


@pytest.mark.parametrize("message", SETTINGS)
def test_settings_that_fit_no_joint_are_refused(message: str, tmp_path: Path) -> None:
    said = SETTINGS[message]
    text = (
        FREE.replace('name = "pair"', f'name = "pair"\n{said}')
        if said.startswith(("joints =", "links ="))
        else f"{FREE}\n{said}\n"
    )
    with pytest.raises(AssetError) as error:
        imported(tmp_path, rotors=text)
    assert message in str(error.value)


def test_a_joint_is_held_by_its_name(tmp_path: Path) -> None:
    """A pattern holds what it fits, a name of its own says more; what is left moves."""
    rigid = imported(tmp_path, joints="frozen")
    for said in ('hinge = "frozen"', '"h*" = "frozen"'):
        assert imported(tmp_path, rotors=f"{FREE}\n[joints]\n{said}\n") == rigid
    mimics = URDF.replace(LIMIT, LIMIT + '<mimic joint="l"/>')
    assert imported(tmp_path, mimics, f'{FREE}\n[joints]\nhinge = "frozen"\n') == rigid
    freed = imported(tmp_path, rotors=f'{FREE}\n[joints]\n"h*" = "frozen"\n[joints.hinge]\nstiffness = 2\n')
    assert freed.links[1].joint is not None
    assert freed.links[1].joint.kp == 2.0
    spinning = URDF.replace('<joint name="l" type="fixed">', '<joint name="l" type="continuous">')
    part = imported(tmp_path, spinning, f'{FREE}\n[joints]\nl = "frozen"\n')
    assert [link.name for link in part.links] == ["base", "arm"]
    assert part.extra["movable_joints_frozen"] == 1.0


def test_friction_is_left_out_where_that_is_said(tmp_path: Path) -> None:
    rough = URDF.replace(LIMIT, LIMIT + '<dynamics friction="0.1"/>')
    assert imported(tmp_path, rough, f"{FREE}\n[joints.hinge]\nfriction = 0\n") == imported(tmp_path)


def test_stops_that_leave_out_zero_begin_at_the_nearest(tmp_path: Path) -> None:
    for lower, upper, start in ((0.2, 0.9, 0.2), (-0.9, -0.2, -0.2)):
        text = URDF.replace('lower="-1" upper="1"', f'lower="{lower}" upper="{upper}"')
        joint = imported(tmp_path, text).links[1].joint
        assert joint is not None
        assert (joint.initial_low, joint.initial_high) == (start, start)


def test_a_propeller_does_not_spin_on_a_joint_of_its_own(tmp_path: Path) -> None:
    text = URDF.replace('<joint name="r" type="fixed">', '<joint name="r" type="continuous"><axis xyz="0 0 -1"/>')
    with pytest.raises(AssetError, match=r"joint 'r' is a propeller's own, .* say joints\.r = \"frozen\" in pair\.toml"):
        imported(tmp_path, text)
    # Driven, or across the thrust, it is a joint like any other.
    assert imported(tmp_path, text, f"{FREE}\n[joints.r]\ndamping = 1\nactive = true\n").joint_count == 2
    assert imported(tmp_path, text.replace("0 0 -1", "1 0 0")).joint_count == 2


def test_joints_are_free_or_frozen(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="joints is 'loose'; expected 'free' or 'frozen'"):
        imported(tmp_path, joints="loose")


def test_quaternions_come_back_from_their_matrices() -> None:
    rng = np.random.default_rng(0)
    for q in [*rng.normal(size=(50, 4)), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0.6, 0.8, 0)]:
        unit = np.asarray(q, float) / np.linalg.norm(q)
        back = np.array(rotation_quaternion(rotation_matrix(unit)))
        assert min(np.abs(back - unit).max(), np.abs(back + unit).max()) < 1e-12
