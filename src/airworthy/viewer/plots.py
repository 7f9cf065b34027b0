"""Plots of a flight over time beside the picture, with a line at the time shown; drawn by viser's own uPlot."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.logs import LogStream
from airworthy.scenes.record import Scene
from airworthy.tasks.course_fit import FAR
from airworthy.tasks.course_room import CourseRoom
from airworthy.vehicles import Vehicle
from airworthy.viewer.flights import PlaybackTrack
from airworthy.viewer.newest import NewestWorker

__all__ = ["FlightPlots", "Plot", "flight_plots", "room_plot", "stream_plots", "with_cursor"]

POINTS_MAX = 1500
"""Of each line: more than the panel has pixels, so that peaks stay."""
HEIGHT = 130
"""Of a plot [px]."""
COLORS = ("#e05a28", "#2878dc", "#2f9e5f", "#9a4fc4", "#c49a1a", "#1aa3a3", "#c43a6a", "#6b7280")
CURSOR = "#111827"
PLOTTED = ("gyro", "accelerometer", "motor_command", "motor_speed", "voltage", "current", "range", "rate_setpoint")
"""Kinds of a log's streams that are plotted; poses are seen in the picture."""
_EDGE = 0.05


@dataclass(frozen=True, eq=False)
class Plot:
    """Lines over one axis of time."""

    title: str
    """With the unit."""
    time: Array
    """[s], rising, (n,)."""
    lines: tuple[tuple[str, Array], ...]
    """What each is called, and its values, (n,); NaN where there is none."""

    @property
    def span(self) -> tuple[float, float]:
        """Lowest and highest value that the axis shows."""
        values = np.concatenate([line for _, line in self.lines])
        values = values[np.isfinite(values)]
        if not values.size:
            return 0.0, 1.0
        low, high = float(min(values.min(), 0.0)), float(values.max())
        edge = _EDGE * max(high - low, 1e-6)
        return (low - edge if low < 0.0 else 0.0), high + edge


def flight_plots(track: PlaybackTrack) -> list[Plot]:
    """Return what a flight's record says by itself: speed, distance from the plan, rotors."""
    time, rows = _thinned(track.times)
    speed = np.linalg.norm(track.velocity, axis=1)
    plots = [Plot("speed [m/s]", time, (("speed", _peaks(speed, rows)),))]
    plots.append(Plot("height [m]", time, (("z", track.position[rows, 2].astype(float)),)))
    if track.planned is not None:
        off = np.linalg.norm(track.position.astype(float) - track.planned, axis=1)
        plots.append(Plot("from the plan [m]", time, (("distance", _peaks(off, rows)),)))
    if track.rotors.shape[1] and np.abs(track.rotors).max(initial=0.0) > 0.0:
        share = np.array([track.turning(float(t)) for t in time])
        lines = tuple((f"{k}", share[:, k]) for k in range(share.shape[1]))
        plots.append(Plot("rotors, of the fastest", time, lines))
    return plots


def stream_plots(streams: Sequence[LogStream]) -> list[Plot]:
    """Return a plot of each stream of a log that a glance tells something of: sensors, commands, the battery."""
    plots = []
    for stream in streams:
        if stream.kind not in PLOTTED or len(stream.time) < 2:
            continue
        order = np.argsort(stream.time, kind="stable")
        time, rows = _thinned(stream.time[order])
        values = stream.values[order][rows]
        names = "xyz" if stream.values.shape[1] == 3 and stream.frame else [str(k) for k in range(stream.values.shape[1])]
        unit = "" if stream.unit == "1" else f" [{stream.unit}]"
        lines = tuple((name, values[:, k]) for k, name in enumerate(names))
        plots.append(Plot(f"{stream.name.replace('_', ' ')}{unit}", time, lines))
    return plots


def room_plot(track: PlaybackTrack, scene: Scene, vehicle: Vehicle) -> Plot:
    """Return how far the vehicle's body was from anything that can be hit; what moves is left out.

    Args:
        track: As flown.
        scene: Where.
        vehicle: Whose body.
    """
    room = CourseRoom(scene, vehicle)
    time, rows = _thinned(track.times)
    away = room.nearest(track.position[rows].astype(float)).distance - room.radius
    return Plot("room [m]", time, (("nearest", np.where(away < FAR, away, np.nan)),))


def with_cursor(plot: Plot, time: float) -> tuple[Array, ...]:
    """Return time and lines with a last one that stands upright at a time [s]: two points there, and none elsewhere.

    Args:
        plot: What is drawn.
        time: [s]
    """
    low, high = plot.span
    at = int(np.searchsorted(plot.time, time, side="right"))
    times = np.insert(plot.time, [at, at], [time, time])
    rows: list[Array] = []
    for _, line in plot.lines:
        here = float(np.interp(time, plot.time, line))
        rows.append(np.insert(line, [at, at], [here, here]))
    cursor = np.full(len(times), np.nan)
    cursor[at : at + 2] = low, high
    return (times, *rows, cursor)


class FlightPlots:
    """The plots in a folder of the panel; `choose` takes another flight, `show` moves the line.

    Args:
        gui: `viser.ViserServer.gui`.
        more: Gives a further plot of a track, which takes a while; called in a thread of its own. None: there is none.
        streams: Of a log, to be plotted, too.
    """

    def __init__(self, gui: Any, more: Callable[[PlaybackTrack], Plot] | None = None, streams: Sequence[LogStream] = ()):
        self._gui, self._more, self._streams = gui, more, stream_plots(streams)
        self._folder = gui.add_folder("plots")
        with self._folder:
            self._words = gui.add_markdown("", visible=False)
        self.plots: list[Plot] = []
        self._handles: list[Any] = []
        self._time = 0.0
        self._track: PlaybackTrack | None = None
        self._lock = threading.RLock()
        self._worker = None if more is None else NewestWorker(self._extend, "viewer plots")

    def choose(self, track: PlaybackTrack) -> None:
        """Plot another flight."""
        with self._lock:
            self._track = track
            self._draw([*flight_plots(track), *self._streams])
        if self._worker is not None:
            self._worker.ask(track)

    def show(self, time: float) -> None:
        """Put the line at a time [s]."""
        with self._lock:
            self._time = time
            for plot, handle in zip(self.plots, self._handles, strict=True):
                handle.data = with_cursor(plot, time)

    def settle(self, timeout: float = 60.0) -> bool:
        """Wait until all plots are there; False where that took longer [s]."""
        return self._worker is None or self._worker.wait(timeout)

    def close(self) -> None:
        """End the thread; what it was at is not shown any more."""
        with self._lock:
            self._track = None
        if self._worker is not None:
            self._worker.close()

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _draw(self, plots: Sequence[Plot]) -> None:
        for handle in self._handles:
            handle.remove()
        self.plots = list(plots)
        with self._folder:
            self._handles = [self._added(plot) for plot in plots]

    def _added(self, plot: Plot) -> Any:
        names = [name for name, _ in plot.lines]
        series: list[Any] = [{"label": "time [s]"}]
        series += [{"label": name, "stroke": COLORS[k % len(COLORS)], "width": 1.5} for k, name in enumerate(names)]
        series.append({"label": "now", "stroke": CURSOR, "width": 1.5, "points": {"show": False}})
        low, high = plot.span
        scales = {"x": {"time": False, "range": (float(plot.time[0]), float(plot.time[-1]))}, "y": {"range": (low, high)}}
        options: dict[str, Any] = {"legend": {"show": False}, "axes": ({"size": 28}, {"size": 44})}
        data = with_cursor(plot, self._time)
        return self._gui.add_uplot(data, tuple(series), title=plot.title, scales=scales, height=HEIGHT, **options)

    def _extend(self, track: PlaybackTrack) -> None:
        assert self._more is not None  # there is a worker only where there is more
        plot: Plot | None = None
        problem = ""
        try:
            plot = self._more(track)
        except AirworthyError as error:
            problem = f"No room is plotted: {error}"
        with self._lock:
            if track is not self._track:  # another was chosen meanwhile, or the viewer is closed
                return
            self._words.content, self._words.visible = problem, bool(problem)
            if plot is not None:
                self._draw([*self.plots, plot])


def _thinned(times: ArrayAny) -> tuple[Array, ArrayAny]:
    """Return times to plot and their rows; at least two, so that there is an axis."""
    rows = np.unique(np.linspace(0, len(times) - 1, min(len(times), POINTS_MAX)).astype(int))
    time = np.asarray(times, np.float64)[rows]
    return (time, rows) if len(time) > 1 else (np.array([time[0], time[0] + 1e-3]), np.array([rows[0], rows[0]]))


def _peaks(values: ArrayAny, rows: ArrayAny) -> Array:
    """Return the largest value from each row to the next that is plotted."""
    return np.asarray(np.maximum.reduceat(np.asarray(values, np.float64), np.unique(rows)))[
        np.searchsorted(np.unique(rows), rows)
    ]
