"""A node of ROS 2 that flies, as a program of its own: Cyclone DDS alone, types written by hand, not a line of the package.

    python ros_node.py hover|goal DOMAIN [--die SECONDS] [--wrong-stamp] [--twice]

It sees /uav/odometry and answers each with a command of the same stamp: `hover` by rates and thrust holds the first place that
it sees, `goal` by a velocity flies to /uav/goal, slower where the depth camera shows something near.
"""

import argparse
import os
import sys
import time
from dataclasses import dataclass

import numpy as np
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import array, float64, int32, sequence, uint8, uint32
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration


@dataclass
class Time(IdlStruct, typename="builtin_interfaces.msg.dds_.Time_"):
    sec: int32
    nanosec: uint32


@dataclass
class Header(IdlStruct, typename="std_msgs.msg.dds_.Header_"):
    stamp: Time
    frame_id: str


@dataclass
class Vector3(IdlStruct, typename="geometry_msgs.msg.dds_.Vector3_"):
    x: float64
    y: float64
    z: float64


@dataclass
class Point(IdlStruct, typename="geometry_msgs.msg.dds_.Point_"):
    x: float64
    y: float64
    z: float64


@dataclass
class Quaternion(IdlStruct, typename="geometry_msgs.msg.dds_.Quaternion_"):
    x: float64
    y: float64
    z: float64
    w: float64


@dataclass
class Pose(IdlStruct, typename="geometry_msgs.msg.dds_.Pose_"):
    position: Point
    orientation: Quaternion


@dataclass
class PoseStamped(IdlStruct, typename="geometry_msgs.msg.dds_.PoseStamped_"):
    header: Header
    pose: Pose


@dataclass
class PoseWithCovariance(IdlStruct, typename="geometry_msgs.msg.dds_.PoseWithCovariance_"):
    pose: Pose
    covariance: array[float64, 36]


@dataclass
class Twist(IdlStruct, typename="geometry_msgs.msg.dds_.Twist_"):
    linear: Vector3
    angular: Vector3


@dataclass
class TwistStamped(IdlStruct, typename="geometry_msgs.msg.dds_.TwistStamped_"):
    header: Header
    twist: Twist


@dataclass
class TwistWithCovariance(IdlStruct, typename="geometry_msgs.msg.dds_.TwistWithCovariance_"):
    twist: Twist
    covariance: array[float64, 36]


@dataclass
class Odometry(IdlStruct, typename="nav_msgs.msg.dds_.Odometry_"):
    header: Header
    child_frame_id: str
    pose: PoseWithCovariance
    twist: TwistWithCovariance


@dataclass
class RateThrust(IdlStruct, typename="mav_msgs.msg.dds_.RateThrust_"):
    header: Header
    angular_rates: Vector3
    thrust: Vector3


@dataclass
class Image(IdlStruct, typename="sensor_msgs.msg.dds_.Image_"):
    header: Header
    height: uint32
    width: uint32
    encoding: str
    is_bigendian: uint8
    step: uint32
    data: sequence[uint8]


LOOPBACK = (
    "<CycloneDDS><Domain><General><Interfaces><NetworkInterface address='127.0.0.1'/></Interfaces><AllowMulticast>false"
    "</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>32"
    "</MaxAutoParticipantIndex><Peers><Peer Address='127.0.0.1'/></Peers></Discovery></Domain></CycloneDDS>"
)
RELIABLE = Qos(Policy.Reliability.Reliable(duration(seconds=1)), Policy.History.KeepLast(10))
BEST_EFFORT = Qos(Policy.Reliability.BestEffort, Policy.History.KeepLast(5))
LATCHED = Qos(Policy.Reliability.Reliable(duration(seconds=1)), Policy.History.KeepLast(1), Policy.Durability.TransientLocal)
PLAIN = Qos(*RELIABLE, Policy.DataRepresentation(use_cdrv0_representation=True))


def turned(q, v):
    """Body vector in the world."""
    axis = np.array([q.x, q.y, q.z])
    return v + 2.0 * np.cross(axis, np.cross(axis, v) + q.w * v)


class Node:
    def __init__(self, domain):
        self.domain = Domain(domain, LOOPBACK)
        self.participant = DomainParticipant(domain)
        self.odometry = self.reader("/uav/odometry", Odometry, RELIABLE)

    def reader(self, name, kind, qos):
        return DataReader(self.participant, Topic(self.participant, f"rt{name}", kind), qos=qos)

    def writer(self, name, kind):
        return DataWriter(self.participant, Topic(self.participant, f"rt{name}", kind), qos=PLAIN)


class Hover:
    """Thrust and rates that hold the first place; gains and the vehicle's mass (flightgoggles, 1 kg) are its own."""

    def __init__(self, node):
        self.out, self.start = node.writer("/uav/input/rateThrust", RateThrust), None

    def answer(self, seen):
        place, turn = seen.pose.pose.position, seen.pose.pose.orientation
        linear, at = seen.twist.twist.linear, np.array([place.x, place.y, place.z])
        self.start = at if self.start is None else self.start
        velocity = turned(turn, np.array([linear.x, linear.y, linear.z]))
        force = 2.0 * (self.start - at) - 2.5 * velocity + np.array([0.0, 0.0, 9.81])
        up = turned(turn, np.array([0.0, 0.0, 1.0]))
        error = np.cross(up, force / np.linalg.norm(force))
        back = Quaternion(-turn.x, -turn.y, -turn.z, turn.w)
        rates = 6.0 * turned(back, error)
        self.out.write(RateThrust(seen.header, Vector3(*map(float, rates)), Vector3(0.0, 0.0, float(force @ up))))


class Goal:
    """Flies to the goal at 1 m/s, slower near things."""

    def __init__(self, node):
        self.out = node.writer("/uav/input/velocity", TwistStamped)
        self.goals = node.reader("/uav/goal", PoseStamped, LATCHED)
        self.images = node.reader("/uav/camera/depth/depth", Image, RELIABLE)
        self.goal, self.near, self.seen = None, 5.0, 0

    def answer(self, seen):
        for message in self.goals.take(10):
            if hasattr(message, "pose"):
                self.goal = np.array([message.pose.position.x, message.pose.position.y, message.pose.position.z])
        for message in self.images.take(10):
            if hasattr(message, "data"):
                depth = np.frombuffer(bytes(message.data), "<f4").reshape(message.height, message.width)
                found = depth[depth > 0.0]
                self.near, self.seen = float(found.min()) if found.size else 5.0, self.seen + 1
        place = seen.pose.pose.position
        away = self.goal - np.array([place.x, place.y, place.z])
        speed = min(1.0, 0.4 * self.near) * away / max(np.linalg.norm(away), 1.0)
        header = Header(seen.header.stamp, "world")
        self.out.write(TwistStamped(header, Twist(Vector3(*map(float, speed)), Vector3(0.0, 0.0, 0.0))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("hover", "goal"))
    parser.add_argument("domain", type=int)
    parser.add_argument("--die", type=float, default=1e9)
    parser.add_argument("--wrong-stamp", action="store_true")
    parser.add_argument("--twice", action="store_true")
    options = parser.parse_args()
    node = Node(options.domain)
    make = {"hover": Hover, "goal": Goal}[options.what]
    pilot, last = make(node), -1.0
    while True:
        for seen in node.odometry.take(1):
            if not hasattr(seen, "pose"):
                continue
            now = seen.header.stamp.sec + 1e-9 * seen.header.stamp.nanosec
            if now < last and now == 0.0 and options.what == "hover":
                pilot.start = None  # another flight
            last = now
            if now > options.die:
                os._exit(9)
            if options.wrong_stamp:
                seen.header.stamp.nanosec ^= 1
            pilot.answer(seen)
            if options.twice:
                pilot.answer(seen)
        time.sleep(2e-4)


if __name__ == "__main__":
    sys.exit(main())
