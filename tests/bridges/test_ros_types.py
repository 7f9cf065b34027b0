"""Bytes of ROS 2's messages, against two other packers and readers; names and keys of both transports."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from airworthy.bridges.ros import messages
from airworthy.bridges.ros.bus import COMMANDS, LATCHED, SENSORS, topic_name
from airworthy.bridges.ros.dds import domain_of_environment, idl_type
from airworthy.bridges.ros.topics import INPUTS, input_of
from airworthy.bridges.ros.types import OWN_TYPES, RATE_THRUST, dds_type, ros_types
from airworthy.bridges.ros.zenoh import attachment, liveliness_key, topic_key
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import camera_attitude, from_euler, multiply, rotate, to_matrix
from airworthy.geometry import Sphere
from airworthy.logs.ros_types import decoded, message_layout
from airworthy.optics.distortion import PlumbBob
from airworthy.optics.projections import Pinhole
from airworthy.sensors.devices import Device
from airworthy.sensors.mounting import Mount
from airworthy.simulation.sensor_state import Sample

pytest.importorskip("rosbags")
pytest.importorskip("cyclonedds")

SENT = ("rosgraph_msgs/msg/Clock", "sensor_msgs/msg/Imu", "nav_msgs/msg/Odometry", "tf2_msgs/msg/TFMessage",
        "nav_msgs/msg/Path", "geometry_msgs/msg/PoseStamped", "std_msgs/msg/Empty", "sensor_msgs/msg/Image",
        "sensor_msgs/msg/CameraInfo", "sensor_msgs/msg/PointCloud2", "sensor_msgs/msg/Range",
        "std_msgs/msg/Float64", "visualization_msgs/msg/MarkerArray")  # fmt: skip
KINDS = sorted({*SENT, *OWN_TYPES, *(item.kind for item in INPUTS.values())})
_BASE, _NAME, _ARRAY = 1, 2, 3


def drawn(kind: str, rng: np.random.Generator) -> dict[str, Any]:
    """Random values of every field of a type."""

    def value(node: Any) -> Any:
        which, about = int(node[0]), node[1]
        if which == _BASE:
            if about[0] == "string":
                return "".join(rng.choice(list("abc/_ 0"), int(rng.integers(0, 9))))
            if about[0] == "bool":
                return bool(rng.integers(2))
            if about[0].startswith("float"):
                return float(np.float32(rng.normal()))
            return int(rng.integers(0, 100))
        if which == _NAME:
            return drawn(about, rng)
        inner, count = about
        return [value(inner) for _ in range(count if which == _ARRAY else int(rng.integers(0, 4)))]

    return {name: value(node) for name, node in ros_types().fields(kind)}


def of_idl(kind: str, values: dict[str, Any]) -> Any:
    """The same values as an object of Cyclone DDS."""

    def value(node: Any, given: Any) -> Any:
        which, about = int(node[0]), node[1]
        if which == _BASE:
            return given
        if which == _NAME:
            return of_idl(about, given)
        return [value(about[0], item) for item in given]

    return idl_type(kind)(**{name: value(node, values[name]) for name, node in ros_types().fields(kind)})


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_are_those_of_cyclone_dds_and_come_back(kind: str) -> None:
    rng = np.random.default_rng(sum(map(ord, kind)))
    for _ in range(20):
        values = drawn(kind, rng)
        data = ros_types().packed(kind, values)
        assert data == of_idl(kind, values).serialize(use_version_2=False)[: len(data)]
        assert idl_type(kind).deserialize(data) == of_idl(kind, values)
        assert ros_types().packed(kind, as_values(kind, ros_types().unpacked(kind, data))) == data


def as_values(kind: str, message: Any) -> dict[str, Any]:
    def value(node: Any, given: Any) -> Any:
        if int(node[0]) == _NAME:
            return as_values(node[1], given)
        if int(node[0]) != _BASE and int(node[1][0][0]) == _NAME:
            return [as_values(node[1][0][1], item) for item in given]
        return given

    return {name: value(node, getattr(message, name)) for name, node in ros_types().fields(kind)}


def test_logs_read_what_is_sent() -> None:
    said = messages.odometry_message(1.25, (1, 2, 3), (0.5, 0, 0), (0, 0, 0, 1), (0.1, 0.2, 0.3))
    layout = message_layout(said.kind, "")
    found = decoded(layout, memoryview(ros_types().packed(said.kind, said.values)))
    assert (found["header.stamp.sec"], found["header.stamp.nanosec"], found["child_frame_id"]) == (1, 250_000_000, "uav/imu")
    assert found["pose.pose.position.y"] == 2.0
    assert found["twist.twist.angular.z"] == 0.3


def test_a_hash_is_that_of_the_public_documents() -> None:
    # rmw_zenoh, docs/design.md, of std_msgs/msg/String.
    wanted = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
    assert ros_types().type_hash("std_msgs/msg/String") == wanted
    assert topic_key(0, "/chatter", "std_msgs/msg/String", wanted) == f"0/chatter/std_msgs::msg::dds_::String_/{wanted}"


def test_names_of_both_transports() -> None:
    assert dds_type("sensor_msgs/msg/Imu") == "sensor_msgs::msg::dds_::Imu_"
    assert liveliness_key(2, "ab", 0, "NN") == "@ros2_lv/2/ab/0/0/NN/%/%/airworthy"
    head = "@ros2_lv/2/ab/0/5/MP/%/%/airworthy/%uav%odometry/nav_msgs::msg::dds_::Odometry_/H"
    arguments = (2, "ab", 5, "MP", "/uav/odometry", "nav_msgs/msg/Odometry", "H")
    # What differs from reliable, volatile, keep last 42 alone is named.
    assert liveliness_key(*arguments, COMMANDS) == f"{head}/::,10:,:,:,,"
    assert liveliness_key(*arguments, SENSORS) == f"{head}/2::,5:,:,:,,"
    assert liveliness_key(*arguments, LATCHED) == f"{head}/:1:,1:,:,:,,"
    sent = attachment(3, 7, b"0123456789abcdef")
    assert sent == struct.pack("<qq", 3, 7) + b"\x10" + b"0123456789abcdef"


@pytest.mark.parametrize("text", ["", "/uav//x", "/9x", "/uav/a b", "/uav/x/"])
def test_no_topics(text: str) -> None:
    with pytest.raises(AirworthyError, match=r"is no topic of ROS 2"):
        topic_name(text)
    assert topic_name("uav/x_1") == "/uav/x_1"


def test_bytes_and_fields_that_are_none_are_refused() -> None:
    with pytest.raises(AirworthyError, match=r"has no field thrst; it has header, angular_rates, thrust"):
        ros_types().packed(RATE_THRUST, {"thrst": {}})
    for data in (b"", b"\x00\x03\x00\x00" + bytes(72), b"\x00\x01\x00\x00" + bytes(9)):
        with pytest.raises(AirworthyError, match="are no message mav_msgs/msg/RateThrust"):
            ros_types().unpacked(RATE_THRUST, data)
    with pytest.raises(AirworthyError, match="Unknown control level of ROS 2 'wrench'"):
        input_of("wrench")


@pytest.mark.parametrize("text", ["233", "-1", "x", ""])
def test_domains_that_are_none_are_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", text)
    with pytest.raises(AirworthyError, match="ROS_DOMAIN_ID is"):
        domain_of_environment()


# ---- What messages say ----------------------------------------------------------------------------------------------------


def test_twist_is_in_the_body() -> None:
    # A quarter turn to the left: what goes north goes straight ahead.
    quarter = (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))
    said = messages.odometry_message(0.0, (0, 0, 0), (0.0, 3.0, 1.0), quarter, (0, 0, 0)).values
    linear = said["twist"]["twist"]["linear"]
    np.testing.assert_allclose([linear[axis] for axis in "xyz"], [3.0, 0.0, 1.0], atol=1e-12)


def test_frames_are_one_tree_and_agree_with_the_camera() -> None:
    mount = Mount((0.1, 0.02, -0.03), tuple(from_euler(0.1, 0.4, -0.2)))
    lens = Pinhole(64, 48, 50.0, 51.0, 31.0, 23.0)
    device = Device("front", "camera", lens, mount=mount)
    attitude = from_euler(0.3, -0.2, 2.0)
    links = {}
    for said in (messages.static_frames({"front": device}), messages.transform_message(2.0, (1, 2, 3), attitude)):
        for item in said.values["transforms"]:
            assert item["child_frame_id"] not in links  # each has one parent
            place, turn = item["transform"]["translation"], item["transform"]["rotation"]
            at, by = np.array([place[a] for a in "xyz"]), np.array([turn[a] for a in "xyzw"])
            links[item["child_frame_id"]] = (item["header"]["frame_id"], at, by)
    place, turn, frame = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), "uav/front_optical"
    while frame != "world":
        frame, at, by = links[frame]
        place, turn = at + rotate(by, place), multiply(by, turn)
    np.testing.assert_allclose(place, np.array([1, 2, 3]) + rotate(attitude, mount.position), atol=1e-9)
    np.testing.assert_allclose(to_matrix(turn), to_matrix(camera_attitude(attitude, mount.attitude)), atol=1e-9)
    # The optical axis is where the mount's x looks.
    looks = rotate(multiply(attitude, np.array(mount.attitude)), (1.0, 0.0, 0.0))
    np.testing.assert_allclose(rotate(turn, (0.0, 0.0, 1.0)), looks, atol=1e-9)


def test_calibration_projects_to_the_same_pixel() -> None:
    lens = Pinhole(64, 48, 50.0, 51.0, 31.0, 23.0, PlumbBob(0.1, -0.02, 0.001, 0.002, 0.003))
    said = messages.camera_info("front", lens, 0.0).values
    point = np.array([0.2, -0.1, 1.0])
    x, y = lens.distortion.distort(point[:2])
    pixel = np.array(said["k"]).reshape(3, 3) @ np.array([x, y, 1.0])
    # ROS names the middle of the first pixel 0, we 0.5.
    np.testing.assert_allclose(pixel[:2] + 0.5, lens.project(point)[0], atol=1e-6)
    assert said["d"] == [0.1, -0.02, 0.001, 0.002, 0.003]


def sample(**data: Any) -> Sample:
    return Sample(np.array([1.5]), np.array([9]), np.array([3]), np.array([True]), np.zeros((1, 3)), np.zeros((1, 4)),
                  {name: array[None] for name, array in data.items()})  # fmt: skip


def test_images_hold_the_pixels_as_they_are() -> None:
    rng = np.random.default_rng(0)
    rgb, depth, ids = (
        rng.integers(0, 255, (5, 7, 3), np.uint8),
        rng.random((5, 7), np.float32),
        rng.integers(0, 9, (5, 7), np.int32),
    )
    said = {
        item.topic: item.values for item in messages.sensor_messages("a", None, sample(rgb=rgb, depth=depth, instance_id=ids))
    }
    for topic, array, encoding in (("image_rect_color", rgb, "rgb8"), ("depth", depth, "32FC1"), ("instance_id", ids, "32SC1")):
        image = said[f"/uav/camera/a/{topic}"]
        assert (image["encoding"], image["height"], image["width"], image["step"]) == (encoding, 5, 7, array.nbytes // 5)
        assert bytes(image["data"]) == array.tobytes()
        assert image["header"] == {"stamp": {"sec": 1, "nanosec": 500_000_000}, "frame_id": "uav/a_optical"}


@pytest.mark.parametrize("shape", [(1, 2), (2, 1)])
def test_two_pixels_are_an_image_and_one_is_a_range(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    depth, rgb = rng.random(shape, np.float32), rng.integers(0, 255, (*shape, 3), np.uint8)
    said = {item.topic: item.values for item in messages.sensor_messages("a", None, sample(rgb=rgb, depth=depth))}
    for topic, array in (("image_rect_color", rgb), ("depth", depth)):
        image = said[f"/uav/camera/a/{topic}"]
        assert (image["height"], image["width"], image["step"]) == (*shape, array.nbytes // shape[0])
        assert bytes(image["data"]) == array.tobytes()
        # Of the bytes, too: what is packed is what comes back.
        kind = "sensor_msgs/msg/Image"
        back = ros_types().unpacked(kind, ros_types().packed(kind, image))
        assert (back.height, back.width, bytes(back.data)) == (*shape, array.tobytes())
    (one,) = messages.sensor_messages("a", None, sample(depth=depth[:1, :1]))
    assert (one.topic, one.kind) == ("/uav/sensors/a", "sensor_msgs/msg/Range")
    assert one.values["range"] == depth[0, 0]


def test_points_and_ranges() -> None:
    points = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    (cloud,) = messages.sensor_messages("l", None, sample(points=points))
    assert (cloud.topic, cloud.values["width"], cloud.values["point_step"]) == ("/uav/sensors/l/points", 8, 12)
    np.testing.assert_array_equal(np.frombuffer(bytes(cloud.values["data"]), "<f4").reshape(8, 3), points.reshape(8, 3))
    reading = sample(range=np.array([2.5], np.float32), valid=np.array([True]))
    (ranged,) = messages.sensor_messages("r", None, reading)
    assert (ranged.topic, ranged.values["range"]) == ("/uav/sensors/r", 2.5)
    with pytest.raises(AirworthyError, match=r"has shape \(4,\), which no message holds"):
        list(messages.sensor_messages("b", None, sample(figures=np.zeros(4))))


def test_beacons_are_told_as_flightgoggles_does() -> None:
    from airworthy.bridges.lcm.pilot import lcm_message
    from airworthy.bridges.lcm.types import lcm_types
    from airworthy.scenes import Beacon, Instance, Scene, SceneBatch
    from airworthy.sensors.build import make_sensor
    from airworthy.sensors.devices import device
    from airworthy.sensors.sampling import SensorView

    places = {("Gate10", "1"): (2.0, 0.0, 1.0), ("Gate10", "3"): (-2.0, 0.0, 1.0), ("Gate21", "2"): (4.0, 1.0, 1.5)}
    beacons = tuple(Beacon(*label, place) for label, place in places.items())
    place = Scene("s", {"ball": Sphere(0.1)}, instances=(Instance("ball", (0.0, 30.0, 0.0)),), beacons=beacons)
    item = device("flightgoggles_beacons")
    view = SensorView(np.array([[0.0, 0.0, 1.0]]), np.array([[0.0, 0.0, 0.0, 1.0]]), np.zeros(1, np.int32))
    seen = make_sensor(item).capture(SceneBatch(place), view)
    one = np.zeros(1, np.int64)
    sample = Sample(np.array([1.5]), one, one, np.ones(1, bool), view.position, view.attitude, dict(seen))
    (message,) = messages.sensor_messages("left", item, sample, beacons=beacons)
    assert message.topic == "/uav/camera/left/ir_beacons"
    back = ros_types().unpacked(message.kind, ros_types().packed(message.kind, message.values))
    lens = item.projection
    # By hand: x right is -y, y down is -z, z forward is x; the one behind is not there.
    wanted = {("Gate10", "1"): (lens.cx, lens.cy), ("Gate21", "2"): (lens.cx - lens.fx / 4.0, lens.cy - lens.fy / 8.0)}
    assert {(m.landmark_id.data, m.marker_id.data) for m in back.markers} == set(wanted)
    for marker in back.markers:
        assert (marker.x, marker.y) == pytest.approx(wanted[marker.landmark_id.data, marker.marker_id.data], abs=1e-3)
        assert marker.z == 0.0
    told = lcm_message(message)
    assert told is not None
    values = lcm_types()["ir_markers_t"].unpacked(told[1])
    assert (told[0], values["utime"], bytes(values["names"])) == ("ir_markers_t", 1_500_000, b"Gate10/1 Gate21/2")
    np.testing.assert_allclose(values["pixel"], list(wanted.values()), atol=1e-3)
    with pytest.raises(AirworthyError, match="reports beacons by number, and their scene is not known here"):
        list(messages.sensor_messages("left", item, sample))
