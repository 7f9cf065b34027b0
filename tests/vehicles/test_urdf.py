"""The URDF reader against closed forms, and against files that mean harm."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from airworthy.cli.vehicles import main as vehicles_command
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.vehicles import control_effectiveness, import_urdf, lookup, named_vehicle, urdf_tree
from airworthy.vehicles.urdf_tree import BrokenXmlError, parse, read_urdf

# Two rotors on an arm that is turned by a quarter about z and hangs on a hinge, on a cylinder of 2 kg.
URDF = """<?xml version="1.0"?>
<robot name="pair">
  <link name="base">
    <inertial><origin xyz="0 0 0.1" rpy="0 0 0"/><mass value="2"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial>
    <collision><origin xyz="0 0 0.05"/><geometry><cylinder radius="0.2" length="0.3"/></geometry></collision>
  </link>
  <link name="arm"/>
  <link name="left"><inertial><mass value="0.5"/><inertia ixx="0" iyy="0" izz="0"/></inertial></link>
  <link name="right">
    <inertial><mass value="0.5"/><inertia ixx="0.001" ixy="0" ixz="0" iyy="0.002" iyz="0" izz="0.003"/></inertial>
  </link>
  <joint name="hinge" type="revolute">
    <parent link="base"/><child link="arm"/><origin xyz="0 0 0.2" rpy="0 0 1.5707963267948966"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/>
  </joint>
  <joint name="l" type="fixed"><parent link="arm"/><child link="left"/><origin xyz="0.4 0 0"/></joint>
  <joint name="r" type="fixed">
    <parent link="arm"/><child link="right"/><origin xyz="-0.4 0 0" rpy="0.1 0 0"/>
  </joint>
</robot>
"""
ROTORS = """
version = 1
name = "pair"
joints = "frozen"
[rotor]
thrust = [0, 0, 1e-4]
torque = [0, 0, 1e-6]
response = { rise = [20, 0], fall = [20, 0] }
speed_max = 600
[[rotors]]
link = "right"
spin = 1
[[rotors]]
link = "left"
spin = -1
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "pair.urdf").write_text(URDF)
    (tmp_path / "pair.toml").write_text(ROTORS)
    return tmp_path / "pair.urdf", tmp_path / "pair.toml"


def test_masses_poses_and_inertia_by_hand(files: tuple[Path, Path]) -> None:
    airframe = import_urdf(*files)
    assert airframe.mass == 3.0
    # Base centre at z = 0.1 (2 kg), hubs at (0, +-0.4, 0.2) (0.5 kg each).
    np.testing.assert_allclose(airframe.center_of_mass, [0.0, 0.0, (2 * 0.1 + 0.2) / 3], atol=1e-12)
    np.testing.assert_allclose(airframe.rotors[1].position, [0.0, 0.4, 0.2], atol=1e-12)
    np.testing.assert_allclose(airframe.rotors[0].position, [0.0, -0.4, 0.2], atol=1e-12)
    # "right": roll of 0.1 rad about the arm's x axis, which is the root's y axis: z leans to (sin 0.1, 0, cos 0.1).
    np.testing.assert_allclose(airframe.rotors[0].axis, [math.sin(0.1), 0.0, math.cos(0.1)], atol=1e-12)
    vertical = 2 * (0.1 - 2 / 15) ** 2 + (0.2 - 2 / 15) ** 2  # sum of m dz^2
    turned = Rotation.from_euler("z", 90, degrees=True) * Rotation.from_euler("x", 0.1)
    right = turned.as_matrix() @ np.diag([0.001, 0.002, 0.003]) @ turned.as_matrix().T
    expected = np.diag([0.02 + vertical + 0.16, 0.03 + vertical, 0.04 + 0.16]) + right
    xx, yy, zz, xy, xz, yz = airframe.inertia
    np.testing.assert_allclose([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], expected, atol=1e-12)
    assert (airframe.body.shape, airframe.body.size, airframe.body.center) == ("cylinder", (0.2, 0.2, 0.15), (0.0, 0.0, 0.05))
    assert airframe.extra["movable_joints_frozen"] == 1.0
    assert control_effectiveness(airframe).shape == (6, 2)


def test_products_of_inertia_keep_their_places(files: tuple[Path, Path]) -> None:
    """A mass off every axis: the three products differ, and each stands where the record says."""
    text = (
        files[0]
        .read_text()
        .replace('<origin xyz="0 0 0.1" rpy="0 0 0"/><mass value="2"/>', '<origin xyz="0.3 0.1 -0.2"/><mass value="2"/>')
    )
    files[0].write_text(text.replace('ixy="0" ixz="0" iyy="0.03" iyz="0"', 'ixy="0.001" ixz="-0.002" iyy="0.03" iyz="0.004"'))
    tree = read_urdf(files[0])
    airframe = import_urdf(*files)
    center = sum(link.mass * link.center for link in tree.links.values()) / tree.mass
    expected = np.zeros((3, 3))
    for link in tree.links.values():
        d = link.center - center
        expected += link.inertia + link.mass * (d @ d * np.eye(3) - np.outer(d, d))
    xx, yy, zz, xy, xz, yz = airframe.inertia
    np.testing.assert_allclose([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], expected, rtol=1e-9, atol=1e-12)
    assert len({round(abs(v), 6) for v in (xy, xz, yz)}) == 3
    assert airframe.center_of_mass == pytest.approx(tuple(center), rel=1e-9)


def test_the_centre_of_massless_links_is_their_root(files: tuple[Path, Path]) -> None:
    empty = re.sub(r"<inertial>.*?</inertial>", "", URDF, flags=re.DOTALL)
    files[0].write_text(empty)
    tree = read_urdf(files[0])
    assert tree.mass == 0.0
    assert np.array_equal(tree.center_of_mass(), np.zeros(3))


@given(st.tuples(*[st.floats(-3.0, 3.0)] * 3))
def test_roll_pitch_yaw_is_fixed_axis_xyz(tmp_path_factory: pytest.TempPathFactory, angles: tuple[float, float, float]) -> None:
    path = tmp_path_factory.getbasetemp() / "rpy.urdf"
    path.write_text(URDF.replace("0.1 0 0", " ".join(map(repr, angles))))
    found = read_urdf(path).links["right"].rotation
    expected = Rotation.from_euler("z", 90, degrees=True) * Rotation.from_euler("xyz", angles)  # lower case: fixed axes
    np.testing.assert_allclose(found, expected.as_matrix(), atol=1e-12)


def test_turned_and_several_shapes_become_their_bounding_box(files: tuple[Path, Path]) -> None:
    shape = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
    files[0].write_text(URDF.replace('<link name="arm"/>', f'<link name="arm">{shape}</link>'))
    body = import_urdf(*files).body
    # Cylinder: z from -0.1 to 0.2; sphere about z = 0.2: up to 0.3.
    assert body.shape == "box"
    np.testing.assert_allclose(body.size, [0.2, 0.2, 0.2], atol=1e-12)
    np.testing.assert_allclose(body.center, [0.0, 0.0, 0.1], atol=1e-12)


def test_without_primitives_the_hubs_bound_the_body(files: tuple[Path, Path]) -> None:
    files[0].write_text(URDF.replace('<cylinder radius="0.2" length="0.3"/>', '<mesh filename="/etc/passwd"/>'))
    body = import_urdf(*files).body
    np.testing.assert_allclose(body.size, math.hypot(0.4, 0.2), rtol=1e-9)


BOMB = '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9)
)
BROKEN = {
    "not readable XML": URDF.replace("</robot>", ""),
    "document type or entities": BOMB + "]>" + URDF.replace('<?xml version="1.0"?>', ""),
    "a URDF's is <robot>": "<sdf/>",
    "0 links": "<robot/>",
    "hangs on two joints": URDF.replace('child link="right"', 'child link="left"'),
    "2 root links": URDF.replace(
        '<joint name="l" type="fixed"><parent link="arm"/><child link="left"/><origin xyz="0.4 0 0"/></joint>', ""
    ),
    "child link 'nowhere', which does not exist": URDF.replace('child link="left"', 'child link="nowhere"'),
    "0 root links": URDF.replace(
        "</robot>", '<joint name="x" type="fixed"><parent link="left"/><child link="base"/></joint></robot>'
    ),
    "hang in a loop": URDF.replace('parent link="base"', 'parent link="left"'),
    "has the mass -2": URDF.replace('mass value="2"', 'mass value="-2"'),
    "value='nan' must be 1 finite number": URDF.replace('mass value="2"', 'mass value="nan"'),
    "value='1e300' must be": URDF.replace('mass value="2"', 'mass value="1e300"'),
    "value='2_0' must be": URDF.replace('mass value="2"', 'mass value="2_0"'),
    "xyz='0.4 0' must be 3 finite numbers": URDF.replace('xyz="0.4 0 0"', 'xyz="0.4 0"'),
    "an element with 'value' is missing": URDF.replace('<mass value="2"/>', ""),
    "<cylinder> lacks 'length'": URDF.replace(' length="0.3"', ""),
    "half extents": URDF.replace('length="0.3"', 'length="-0.3"'),
    "type 'floating', which cannot be flown": URDF.replace('type="revolute"', 'type="floating"'),
    "no name of its own ('left')": URDF.replace('link name="right"', 'link name="left"'),
    "nested deeper": "<robot>" + "<a>" * 40 + "</a>" * 40 + "</robot>",
    "more than 50000 elements": "<robot>" + "<a/>" * 60_000 + "</robot>",
    "unknown encoding": '<?xml version="1.0" encoding="klingon"?><robot/>',
    "but no body's largest exceeds": URDF.replace('izz="0.04"', 'izz="4"'),
    "principal moments": URDF.replace('ixx="0.02"', 'ixx="-1"'),
}


@pytest.mark.parametrize("message", BROKEN)
def test_broken_urdfs_are_refused_at_once(message: str, files: tuple[Path, Path]) -> None:
    files[0].write_text(BROKEN[message])
    with pytest.raises(AssetError) as error:
        import_urdf(*files)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


ROTOR_MISTAKES = {
    "rotors[0].link is 'propeller', which is no link of pair.urdf": ('link = "right"', 'link = "propeller"'),
    "rotors[1].position comes from the URDF": ('link = "left"', 'link = "left"\nposition = [0, 0, 0]'),
    "mass comes from the URDF": ("version = 1", "version = 1\nmass = 3"),
    "each with the name of its 'link'": ("[[rotors]]", "[[rotor]]"),
    "lacks 'spin'": ("spin = 1", ""),
}


@pytest.mark.parametrize("message", list(ROTOR_MISTAKES)[:3] + list(ROTOR_MISTAKES)[4:])
def test_rotor_mistakes_are_explained(message: str, files: tuple[Path, Path]) -> None:
    files[1].write_text(ROTORS.replace(*ROTOR_MISTAKES[message], 1))
    with pytest.raises(AssetError) as error:
        import_urdf(*files)
    assert message in str(error.value)


def test_a_file_beyond_the_limit_is_refused_unread(files: tuple[Path, Path]) -> None:
    with open(files[0], "wb") as file:
        file.truncate(10**12)
    with pytest.raises(AssetError):
        import_urdf(*files)


def mutate(text: str, generator: random.Random) -> bytes:
    """Structured damage (swapped, dropped, doubled tags and numbers) and random bytes."""
    tokens = [
        "nan",
        "1e999",
        "-1",
        "<link>",
        "</robot>",
        "<!DOCTYPE a>",
        "&a;",
        '"',
        "revolute",
        "base",
        "left",
        "\x00",
        "<![CDATA[",
    ]
    lines = text.splitlines(True)
    for _ in range(generator.randint(1, 4)):
        kind, at, other = generator.randrange(4), generator.randrange(len(lines)), generator.randrange(len(lines))
        if kind == 0:
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 1:
            lines[at] = ""
        elif kind == 2:
            lines[at] = lines[at] * 2
        else:
            cut = generator.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:cut] + generator.choice(tokens) + lines[at][cut + generator.randrange(3) :]
    data = bytearray("".join(lines).encode())
    for _ in range(generator.choice((0, 0, 0, 3))):
        data[generator.randrange(len(data))] = generator.randrange(256)
    return bytes(data)


@pytest.mark.slow
def test_a_thousand_mutated_urdfs_load_or_raise_asset_error(files: tuple[Path, Path]) -> None:
    generator = random.Random(20250102)
    loaded, messages = 0, []
    for index in range(1_000):
        urdf, rotors = (mutate(URDF, generator), ROTORS.encode()) if index % 4 else (URDF.encode(), mutate(ROTORS, generator))
        files[0].write_bytes(urdf)
        files[1].write_bytes(rotors)
        try:
            import_urdf(*files)
            loaded += 1
        except AssetError as error:
            messages.append(str(error))
    assert not any("\n" in message for message in messages)
    assert 0 < loaded < 700


def test_the_command_line_reads_urdfs(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    urdf, rotors = files
    assert vehicles_command(["validate", str(urdf)]) == 0
    assert "a valid URDF (3 kg, 4 links, 1 joints that move)" in capsys.readouterr().out
    assert vehicles_command(["validate", str(urdf), "--rotors", str(rotors)]) == 0
    assert "is valid (" in capsys.readouterr().out
    with pytest.raises(AirworthyError, match="--rotors belongs to a URDF"):
        vehicles_command(["validate", str(rotors), "--rotors", str(rotors)])
    assert named_vehicle(str(urdf), rotors) == import_urdf(urdf, rotors)


def test_the_number_of_links_has_a_limit() -> None:
    def links(count: int) -> str:
        one = '<link name="l{0}"/><joint name="j{0}" type="fixed"><parent link="base"/><child link="l{0}"/></joint>'
        joints = "".join(map(one.format, range(count)))
        return f'<robot name="r"><link name="base"/>{joints}</robot>'

    assert len(urdf_tree._tree(parse(links(999).encode())).links) == 1_000
    with pytest.raises(BrokenXmlError, match="1001 links, but 1 to 1000"):
        urdf_tree._tree(parse(links(1_000).encode()))


@pytest.mark.parametrize(("lean", "shape"), [(0.0, "cylinder"), (1e-12, "cylinder"), (1e-6, "box")])
def test_a_cylinder_is_the_body_where_it_stands_upright_but_for_rounding(lean: float, shape: str) -> None:
    turn = np.array([[1.0, 0.0, lean], [0.0, 1.0, 0.0], [-lean, 0.0, 1.0]])
    cylinder = urdf_tree.Shape("cylinder", (0.2, 0.2, 0.1), turn, np.zeros(3))
    tree = SimpleNamespace(links={"base": SimpleNamespace(shapes=[cylinder])})
    body = lookup._body(tree, [])  # type: ignore[arg-type]
    assert body["shape"] == shape
    np.testing.assert_allclose(body["size"], [0.2, 0.2, 0.1], atol=1e-6)
