"""Vehicles with joints as they are shown: links where kinematics puts them, in the viewer, in films and for sensors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.dynamics.articulated_cases import small

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.reports.film.flight_track import FlightTrack
from airworthy.reports.film.rendered_scene import puppet
from airworthy.simulation import FlightTable, MountedSensor, MountedSensors, Simulator, SimulatorConfig
from airworthy.simulation.mounted import DynamicVehicles
from airworthy.vehicles import vehicle
from airworthy.vehicles.links import frozen, link_poses, neutral_inertial, placed_links
from airworthy.viewer.flight_nodes import JointedNodes, reach_of
from airworthy.viewer.flights import PlaybackTrack

BENT = np.array([1.2, 0.1, 1.0, -0.2, 1.4, 0.15])


class Node:
    """A node that keeps what it is given."""

    def __init__(self, name: str, **options: Any):
        self.name, self.visible = name, True
        self.__dict__.update(options)


class Api:
    """Of viser, what the nodes of a vehicle use."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}

    def add_frame(self, name: str, **options: Any) -> Node:
        self.nodes[name] = Node(name, **options)
        return self.nodes[name]

    def add_mesh_simple(self, name: str, vertices: Any, faces: Any, **options: Any) -> Node:
        self.nodes[name] = Node(name, vertices=vertices, faces=faces, **options)
        return self.nodes[name]


def flown(angles: Any, count: int = 3) -> FlightTable:
    """Rows of a flight that stands still, while its joints go from zero to the angles."""
    share = np.linspace(0.0, 1.0, count)
    names = ("position_{}_m", "velocity_{}_m_s", "rate_{}_rad_s")
    columns: dict[str, Any] = {name.format(axis): np.zeros(count) for name in names for axis in "xyz"}
    columns |= {"env": np.zeros(count), "t": share, "status": np.zeros(count), "attitude_w": np.ones(count)}
    columns |= {f"attitude_{axis}": np.zeros(count) for axis in "xyz"}
    columns |= {f"joint_{k}_rad": share * angle for k, angle in enumerate(angles)}
    return FlightTable.from_columns(columns)


def test_links_are_placed_from_the_centre_of_mass() -> None:
    craft = vehicle("snakey")
    position, attitude = placed_links(craft.links, BENT)
    poses, center = link_poses(craft.links, BENT), neutral_inertial(craft.links, BENT)[1]
    for number, link in enumerate(craft.links):
        np.testing.assert_allclose(position[number], poses[link.name].position - center, atol=1e-12)
        np.testing.assert_allclose(frames.to_matrix(attitude[number]), poses[link.name].rotation, atol=1e-9)
    held = frozen(craft, BENT)
    hubs = [position[[k.name for k in craft.links].index(r.link)] for r in craft.rotors]
    turned = [frames.rotate(attitude[[k.name for k in craft.links].index(r.link)], r.position) for r in craft.rotors]
    want = np.array([r.position for r in held.rotors]) - held.center_of_mass
    np.testing.assert_allclose(np.array(hubs) + turned, want, atol=1e-9)


def test_the_viewer_bends_the_links() -> None:
    craft, api = vehicle("morphy"), Api()
    nodes = JointedNodes(api, "/v", craft)
    assert len(nodes.blades) == 4
    assert all(name.startswith("/v/link_") for name in api.nodes)
    nodes.bend(np.full(8, 0.1))
    position, attitude = placed_links(craft.links, np.full(8, 0.1))
    for number in range(len(craft.links)):
        np.testing.assert_allclose(api.nodes[f"/v/link_{number}"].position, position[number])
        np.testing.assert_allclose(api.nodes[f"/v/link_{number}"].wxyz, frames.to_wxyz(attitude[number]))
    nodes.turn(np.ones(4), np.ones(4))
    assert all(disc.visible for disc in nodes.discs)
    assert reach_of(craft) == pytest.approx(reach_of(frozen(craft)))


def test_tracks_know_the_angles_between_rows() -> None:
    table = flown(BENT)
    track = FlightTrack.of(table)
    np.testing.assert_allclose(track.bent(np.array([0.25, 2.0])), np.stack([0.25 * BENT, BENT]), rtol=1e-6)
    shown = PlaybackTrack(
        table.t, table.vector("position"), table.vector("attitude"), table.vector("velocity"), table.status, None,
        np.zeros((3, 0)), joints=table.joints,
    )  # fmt: skip
    np.testing.assert_allclose(shown.bent(0.25), 0.25 * BENT, rtol=1e-6)
    assert FlightTrack.of(flown(())).bent(np.zeros(2)) is None


def test_films_pose_every_link_and_disc() -> None:
    craft = vehicle("snakey")
    made = puppet(craft)
    assert (made.body_count, len(made.outlines)) == (len([k for k in craft.links if k.mass]), 4)
    turn = np.array([[0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)]])
    place, attitude = made.poses(np.array([[1.0, 2.0, 3.0]]), turn, BENT[None])
    links, turns = placed_links(craft.links, BENT)
    for shape, number in enumerate(made.carriers):
        here = np.array([1.0, 2.0, 3.0]) + frames.rotate(turn[0], links[number])
        np.testing.assert_allclose(place[0, shape], here, atol=1e-9)
        both = frames.multiply(turn[0], turns[number])
        np.testing.assert_allclose(frames.to_matrix(attitude[0, shape]), frames.to_matrix(both), atol=1e-9)
    rigid = puppet(frozen(craft))
    assert rigid.poses(np.zeros((2, 3)), np.tile(turn, (2, 1)), None)[0].shape == (2, 1, 3)


def test_sensors_sit_on_links() -> None:
    craft = small(active=True)
    simulator = Simulator(craft, SimulatorConfig(dynamics="articulated", physics_rate=500.0, integrator="midpoint"), 2)
    simulator.reset(position=[[0.0, 0.0, 1.0], [1.0, 0.0, 2.0]], attitude=[0.1, 0.2, 0.3, 0.9], joint=[[0.4], [-0.3]])
    for number, angle in enumerate((0.4, -0.3)):
        pose = link_poses(craft.links, [angle])
        place, turn = simulator.link_pose("arm")
        root = simulator.attitude[number].astype(float)
        want = simulator.position[number] + frames.rotate(root, pose["arm"].position - craft.links[0].center_of_mass)
        np.testing.assert_allclose(place[number], want, atol=1e-6)
        matrix = frames.to_matrix(root) @ pose["arm"].rotation
        np.testing.assert_allclose(frames.to_matrix(turn[number]), matrix, atol=1e-6)
    np.testing.assert_allclose(simulator.link_pose("", [1])[0], simulator.position[1:], atol=1e-6)
    with pytest.raises(AirworthyError, match="the links are base, arm"):
        simulator.link_pose("leg")
    with pytest.raises(AirworthyError, match="have no links"):
        Simulator(vehicle("lmf2"), SimulatorConfig(), 1).link_pose("arm")


def test_a_range_finder_on_a_link_turns_with_it() -> None:
    from airworthy.scenes import SceneBatch, scene

    craft = small(active=True)
    craft = replace(craft, links=(craft.links[0], craft.links[1]))
    simulator = Simulator(craft, SimulatorConfig(dynamics="articulated", physics_rate=500.0, integrator="midpoint"), 1)
    simulator.reset(position=[0.0, 0.0, 1.0], joint=[0.5])
    batch = SceneBatch(scene("empty_room"), 1)
    mounted = MountedSensors(simulator, batch, {"low": MountedSensor("lightware_sf11b", link="arm"), "root": "lightware_sf11b"})
    place, turn = simulator.link_pose("arm")
    sample, root = mounted.latest("low"), mounted.latest("root")
    mount = mounted.sensor("low").device.effective_mount  # type: ignore[attr-defined]
    np.testing.assert_allclose(sample.position[0], place[0] + frames.rotate(turn[0], mount.position), atol=1e-5)
    assert np.abs(sample.attitude - root.attitude).max() > 0.05
    with pytest.raises(AirworthyError, match="the links are base, arm"):
        MountedSensors(simulator, batch, {"low": MountedSensor("lightware_sf11b", link="leg")})


def test_vehicles_with_joints_are_not_seen_by_each_other() -> None:
    with pytest.raises(AirworthyError, match="rigid vehicles only"):
        DynamicVehicles([vehicle("morphy")])
