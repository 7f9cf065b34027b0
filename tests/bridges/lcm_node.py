"""A program over LCM that holds its first place, by the library's own codec and sockets, not a line of the package.

    python lcm_node.py FOLDER URL

FOLDER has what `lcm-gen --python` made of airworthy.lcm, as the package `told`.
"""

import sys

import lcm
import numpy as np

sys.path.insert(0, sys.argv[1])
from told.pose_t import pose_t
from told.rate_thrust_t import rate_thrust_t

START = []


def turned(q, v):
    axis = np.array(q[:3])
    return v + 2.0 * np.cross(axis, np.cross(axis, v) + q[3] * v)


def answer(channel, data):
    seen = pose_t.decode(data)
    at, velocity = np.array(seen.position), np.array(seen.velocity)
    if seen.utime == 0 or not START:
        START[:] = [at]
    force = 2.0 * (START[0] - at) - 2.5 * velocity + np.array([0.0, 0.0, 9.81])
    up = turned(seen.orientation, np.array([0.0, 0.0, 1.0]))
    back = [-seen.orientation[0], -seen.orientation[1], -seen.orientation[2], seen.orientation[3]]
    command = rate_thrust_t()
    command.utime, command.thrust = seen.utime, float(force @ up)
    command.angular_rates = list(map(float, 6.0 * turned(back, np.cross(up, force / np.linalg.norm(force)))))
    link.publish("uav_input_rateThrust", command.encode())


link = lcm.LCM(sys.argv[2])
link.subscribe("uav_odometry", answer)
while True:
    link.handle()
