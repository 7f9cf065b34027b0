"""F7: each scenario from above and from on board, with start, goal, the straight reference and one flown path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.progress import progress
from airworthy.evaluation._svg import PALETTE, STYLE, inline_svg
from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.entrants import Entrant
from airworthy.evaluation.navigation.flown import Flown
from airworthy.evaluation.navigation.missions import place
from airworthy.evaluation.navigation.replay import fly_row
from airworthy.evaluation.pictures import data_uri
from airworthy.geometry.distance import clearance
from airworthy.scenes import SceneBatch
from airworthy.sensors.build import make_sensor
from airworthy.sensors.devices import Device
from airworthy.sensors.projections import Pinhole
from airworthy.sensors.sampling import View
from airworthy.sensors.tone import to_8bit

__all__ = ["ScenarioView", "scenario_views", "shown_rows"]

Array = NDArray[np.float64]
Row = Mapping[str, Any]
CELL = 0.1
"""Of the picture from above [m]."""
WIDTH = 5.1
CAMERA = Pinhole(560, 320, 340.0, 340.0, 280.0, 160.0)
AHEAD = 0.3
"""The picture from on board is taken at this share of the flight."""


@dataclass(frozen=True)
class ScenarioView:
    """What is shown of a scenario."""

    title: str
    note: str
    above: str
    """Inline SVG."""
    aboard: str
    """Image as a data URI."""


def shown_rows(rows: Sequence[Row]) -> list[Row]:
    """One row of each scenario: of the pilot with most successes there the middle one of those that succeeded, else of all."""
    found = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        mine = [row for row in rows if row["scenario"] == scenario]
        pilots = list(dict.fromkeys(row["pilot"] for row in mine))
        best = max(pilots, key=lambda name: (sum(r["success"] for r in mine if r["pilot"] == name), -pilots.index(name)))
        its = [row for row in mine if row["pilot"] == best]
        good = [row for row in its if row["success"]] or its
        found.append(good[len(good) // 2])
    return found


def scenario_views(
    rows: Sequence[Row], who: Mapping[str, Entrant], config: NavigationConfig, titles: Mapping[str, str], quiet: bool = True
) -> list[ScenarioView]:
    """Fly the shown rows again and draw them; scenarios whose pilot is not to be had are left out."""
    shown = shown_rows([row for row in rows if row["pilot"] in who])
    return [_view(row, who[row["pilot"]], config, titles) for row in progress(shown, "drawing scenarios", quiet=quiet)]


def _view(row: Row, who: Entrant, config: NavigationConfig, titles: Mapping[str, str]) -> ScenarioView:
    flown, _ = fly_row(row, who, config, keep_track=True)
    perturb = config.perturb
    scene = place(row["scenario"], row["configuration"], config.layouts, perturb.moving_obstacles, perturb.moving_speed)
    batch = SceneBatch(scene, 1)
    assert flown.track is not None
    title = f"{row['scenario'].replace('_', ' ')} {row['configuration']}"
    outcome = row["outcome"].replace("_", " ")
    note = f"{titles.get(row['pilot'], row['pilot'])} on {row['vehicle']}: {outcome} after {row['time_s']:.1f} s"
    return ScenarioView(title, note, _above(flown, batch, row["scenario"]), _aboard(flown, batch))


def _above(flown: Flown, batch: SceneBatch, name: str) -> str:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    assert flown.track is not None
    mission, path = flown.mission, flown.track.path(0)
    low, high = mission.lower[0], mission.upper[0]
    span = high - low
    with mpl.rc_context(dict(STYLE)):
        # Areas of different shape get pictures of one size: what is beyond is left empty.
        figure = Figure(figsize=(WIDTH, 0.6 * WIDTH))
        axes = figure.add_axes((0.075, 0.1, 0.915, 0.885))
        axes.imshow(
            _blocked(batch, low, high, float(mission.start[0, 2])),
            extent=(low[0], high[0], low[1], high[1]),
            origin="lower",
            interpolation="nearest",
            zorder=0,
        )
        start, goal = mission.start[0], mission.goal[0]
        axes.plot([start[0], goal[0]], [start[1], goal[1]], color=PALETTE["flown"], linewidth=1.0, linestyle=(0, (4, 2)))
        axes.plot(path[:, 0], path[:, 1], color=PALETTE["bad"], linewidth=1.4)
        axes.plot(*start[:2], "o", color=PALETTE["second"], markersize=6.0)
        axes.plot(*goal[:2], "o", color=PALETTE["bad"], markersize=6.0)
        wide = max(span[0], span[1] / 0.58)
        axes.set_xlim(-0.5 * wide, 0.5 * wide)
        axes.set_ylim(-0.29 * wide, 0.29 * wide)
        axes.set_aspect("equal")
        axes.grid(visible=False)
        return inline_svg(figure, f"above-{name}", f"{name} from above with a flown path")


def _blocked(batch: SceneBatch, low: Array, high: Array, altitude: float) -> NDArray[np.uint8]:
    """From above, (ny, nx, 4): dark where something is at the altitude of the start, pale where it is at another height."""
    x = np.arange(low[0] + 0.5 * CELL, high[0], CELL)
    y = np.arange(low[1] + 0.5 * CELL, high[1], CELL)
    gx, gy = np.meshgrid(x, y)
    levels = [altitude, *(low[2] + share * (high[2] - low[2]) for share in (0.2, 0.5, 0.8))]
    inside = []
    for level in levels:
        points = np.stack([gx.ravel(), gy.ravel(), np.full(gx.size, level)], axis=1)
        found = clearance(batch.geometry, points, env=np.zeros(len(points), np.int64), max_distance=0.5 * CELL)
        inside.append((found.distance < 0.4 * CELL).reshape(gx.shape))
    picture = np.zeros((*gx.shape, 4), np.uint8)
    picture[np.any(inside, axis=0)] = (140, 150, 165, 110)
    picture[inside[0]] = (95, 104, 120, 255)
    return picture


def _aboard(flown: Flown, batch: SceneBatch) -> str:
    """What a levelled camera on the vehicle would see some way into the flight."""
    assert flown.track is not None
    path, turned = flown.track.path(0), flown.track.attitudes(0)
    at = min(int(AHEAD * len(path)), len(path) - 1)
    camera = Device("aboard", "camera", CAMERA, channels=("rgb",))
    x, y, z, w = turned[at]
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    level = np.array([[0.0, 0.0, np.sin(0.5 * yaw), np.cos(0.5 * yaw)]])  # pitched down at full thrust one sees the floor
    view = View(path[at : at + 1], level, np.zeros(1, np.int32))
    linear = make_sensor(camera).capture(batch, view, ("rgb",))["rgb"]
    return data_uri(to_8bit(linear, np.ones(1))[0])
