"""Pictures rendered beside a flight: what is skipped and counted, what comes back, that the bits are those of lockstep."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import queue
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.bridges.test_flight_log import told
from tests.bridges.test_ros_flights import free_domain

from airworthy.bridges.pictures import process
from airworthy.bridges.pictures.process import PictureSettings, PictureWorker, work
from airworthy.bridges.pictures.renderer import AsyncRenderer, Rendered, RenderedFrames, Stamped, is_picture
from airworthy.bridges.ros import messages
from airworthy.bridges.ros.dds import DdsBus
from airworthy.bridges.topic_server import TopicServeConfig, serve_topics
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.scenes import SceneBatch, add_actor, person, scene
from airworthy.sensors import device
from airworthy.simulation import Ground, MountedSensor, MountedSensors, Simulator, SimulatorConfig
from airworthy.simulation.sensor_state import Capture, Sample, SampleRequest
from airworthy.vehicles import vehicle

for _package in ("rosbags", "cyclonedds"):
    pytest.importorskip(_package)
pytestmark = pytest.mark.usefixtures("loopback")

RATE = 100.0
CAMERA, RANGER = "base_depth_camera", "lightware_sf11b"


class GatedLink:
    """Renders a sample when it is let to; see `RenderLink`."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.back: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.gone = False
        self.back.put("ready")

    def finish(self) -> None:
        """Let the sample that was handed over last be rendered."""
        stamped = next(record for record in reversed(self.taken) if isinstance(record, Stamped))
        self.back.put(Rendered(stamped.exposure.name, (("/topic", "kind", stamped.stamp, b""),)))

    def put(self, record: Any) -> None:
        if self.gone:
            raise OSError
        self.taken.append(record)

    def get(self) -> Any:
        record = self.back.get()
        if record is None:
            raise EOFError
        return record

    def close(self) -> None:
        self.back.put(None)

    def reaped(self) -> str:
        return " (signal 9)"

    @property
    def steps(self) -> list[int]:
        return [int(record.exposure.step[0]) for record in self.taken if isinstance(record, Stamped)]


@pytest.fixture
def link() -> GatedLink:
    return GatedLink()


@pytest.fixture
def renderer(link: GatedLink) -> Iterator[AsyncRenderer]:
    made = AsyncRenderer(link, ["front"], RATE)
    made.wait_ready()
    yield made
    made.close()


def simulator() -> Simulator:
    flown = SimulatorConfig(physics_rate=RATE, control_rate=RATE, level="rotor_speed", ground=Ground())
    made = Simulator(vehicle("x500"), flown, env_count=1)
    made.reset(position=(0.0, 0.0, 1.5))
    return made


def mounted(made: Simulator, renderer: AsyncRenderer | None, word: str = "empty_room") -> MountedSensors:
    specs = {"front": MountedSensor(CAMERA), "below": MountedSensor(RANGER)}
    return MountedSensors(made, SceneBatch([scene(word)], 1), specs, renderer=renderer)


def test_a_picture_that_is_due_while_one_is_rendered_is_skipped_and_counted(link: GatedLink, renderer: AsyncRenderer) -> None:
    made = simulator()
    sensors = mounted(made, renderer)
    told_of: list[float] = []
    renderer.listen(lambda rendered: told_of.append(rendered.messages[0][2]))
    taken: list[Capture] = []
    sensors.listen(taken.append)

    def fly(steps: int) -> None:
        for _ in range(steps):
            made.step(np.zeros(4))

    # 30 Hz in steps of 100 Hz: samples 0 to 3 on steps 0, 4, 7 and 10, and physics goes on while the first is rendered.
    fly(10)
    assert link.steps == [0]
    assert vars(renderer.frames["front"]) == {"due": 4, "rendered": 0, "skipped": 3}
    link.finish()
    renderer.drain()
    fly(4)
    assert link.steps == [0, 14]
    link.finish()
    renderer.drain()
    assert vars(renderer.frames["front"]) == {"due": 5, "rendered": 2, "skipped": 3}
    assert told_of == [0.0, 0.14]
    (note,) = renderer.notes()
    assert note.startswith("front: 2 of 5 frames rendered; 3 skipped, since the one before was still being rendered; sent ")
    # What costs little is taken in the step, all of it: 60 Hz.
    assert [item.name for item in taken] == ["below"] * len(taken)
    assert len(taken) == 9


def test_it_is_given_copies_of_its_instant(link: GatedLink, renderer: AsyncRenderer) -> None:
    made = simulator()
    kit = person("walker", position=(2.0, 0.0, 0.0), motion="external")
    batch = SceneBatch([add_actor(scene("empty_room"), kit)], 1)
    sensors = MountedSensors(made, batch, {"front": MountedSensor(CAMERA)}, renderer=renderer)
    exposure: SampleRequest = link.taken[-1].exposure
    height = float(exposure.view.position[0, 2])
    batch.pose_actor("walker", (5.0, 0.0, 0.0))
    for _ in range(20):
        made.step(np.zeros(4))
    assert made.position[0, 2] < height - 0.1
    assert exposure.view.position[0, 2] == height
    twin = SceneBatch(batch.scenes, 1)
    assert exposure.motion is not None
    twin.follow(exposure.motion)
    assert twin.actor_pose("walker")[0][0].tolist() == [2.0, 0.0, 0.0]
    twin.follow(batch.motion())
    for array, other in zip(twin.dynamic_poses, batch.dynamic_poses, strict=True):
        np.testing.assert_array_equal(array, other)
    with pytest.raises(AirworthyError, match="rendered beside the simulation: read them where they are sent"):
        sensors.latest("front")
    with pytest.raises(AirworthyError, match="cannot be saved"):
        sensors.save()


def test_a_new_flight_is_told_and_stamped_behind_the_one_before(link: GatedLink, renderer: AsyncRenderer) -> None:
    made = simulator()
    mounted(made, renderer)
    link.finish()
    renderer.drain()
    renderer.since = 7.5
    made.reset(position=(0.0, 0.0, 1.5))
    kinds = [record.stamp if isinstance(record, Stamped) else record.tolist() for record in link.taken]
    assert kinds == [[0], 0.0, [0], 7.5]


def test_motion_of_another_scene_is_refused() -> None:
    kit = person("walker", motion="external")
    with pytest.raises(AirworthyError, match="got 1 environments with 1 actors and 0 vehicles; expected 1 with 0 and 0"):
        SceneBatch([scene("empty_room")], 1).follow(SceneBatch([add_actor(scene("empty_room"), kit)], 1).motion())


def test_what_goes_wrong_there_is_told_here(link: GatedLink, renderer: AsyncRenderer) -> None:
    def until_it_fails() -> None:
        while True:
            renderer.check()

    link.back.put("A thing is odd.")
    link.back.put(AirworthyError("The scene is damp."))
    with pytest.warns(AssetWarning, match="A thing is odd"):  # noqa: SIM117 - one is of the other's block
        with pytest.raises(AirworthyError, match="The scene is damp"):
            until_it_fails()


def test_a_process_that_is_gone_is_told_of(link: GatedLink, renderer: AsyncRenderer) -> None:
    made = simulator()
    mounted(made, renderer)
    link.gone = True
    link.close()
    with pytest.raises(AirworthyError, match=r"The process that renders pictures is gone \(signal 9\)\."):
        renderer.drain()
    with pytest.raises(AirworthyError, match="is gone"):
        renderer.reset(np.zeros(1, np.int64))


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), AirworthyError("The log is full.")])
def test_a_log_that_cannot_keep_a_picture_ends_it(link: GatedLink, renderer: AsyncRenderer, error: Exception) -> None:
    """Or its thread would end without a word, and every picture from then on be skipped."""

    def full(rendered: Rendered) -> None:
        raise error

    made = simulator()
    mounted(made, renderer)
    renderer.listen(full)
    link.finish()
    said = (
        r"picture of 'front' could not be kept \(OSError: .*No space left" if isinstance(error, OSError) else "The log is full"
    )
    with pytest.raises(AirworthyError, match=said):
        renderer.drain(10.0)


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        (RenderedFrames(36_000, 9_312, 26_688),
         "wide: 9,312 of 36,000 frames rendered; 26,688 skipped, since the one before was still being rendered"),
        (RenderedFrames(1_200, 1_200, 0), "wide: all 1,200 frames rendered"),
        (RenderedFrames(3, 1, 1),
         "wide: 1 of 3 frames rendered; 1 skipped, since the one before was still being rendered; 1 not finished at the end"),
    ],
)  # fmt: skip
def test_the_sentence_of_a_sensor(frames: RenderedFrames, said: str) -> None:
    assert frames.sentence("wide") == said


def test_what_counts_as_a_picture() -> None:
    words = (CAMERA, "ouster_os0_128", "d435", RANGER, "flightgoggles_beacons", "st_vl53l5cx")
    assert [is_picture(device(word)) for word in words] == [True, True, True, False, False, False]


# ---- The process that renders ------------------------------------------------------------------------------------------------


@pytest.fixture
def domain(monkeypatch: pytest.MonkeyPatch) -> int:
    found = free_domain()
    monkeypatch.setenv("ROS_DOMAIN_ID", str(found))
    return found


def test_pictures_are_bit_equal_to_those_that_a_flight_waits_for(domain: int, link: GatedLink, renderer: AsyncRenderer) -> None:
    sensors = ("front=flightgoggles_camera_v3:rgb,depth",)
    specs = {"front": MountedSensor(process.sensor_of(sensors[0])[1])}
    kit = person("walker", position=(2.0, 0.3, 0.0), motion="velocity")
    place = add_actor(scene("empty_room"), kit)
    beside, waiting = simulator(), simulator()
    MountedSensors(beside, SceneBatch([place], 1), specs, renderer=renderer)
    waited: list[Capture] = []
    MountedSensors(waiting, SceneBatch([place], 1), specs).listen(waited.append)
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "scene", lambda word: place)
        worker = PictureWorker(PictureSettings("ros2", "empty_room", sensors, kept=True), stack)
        for _ in range(5):
            beside.step(np.full(4, 300.0))
            waiting.step(np.full(4, 300.0))
            if len(link.steps) > 1:
                break
            link.finish()
            renderer.drain()
        assert link.steps == [0, 2]
        sent: list[messages.RosMessage] = []
        patch.setattr(worker._sender, "send", sent.append)
        front = "/uav/camera/front"
        for stamped, capture in zip((r for r in link.taken if isinstance(r, Stamped)), waited, strict=True):
            sent.clear()
            kept = worker.render(stamped).messages
            assert [item.topic for item in sent] == [f"{front}/image_rect_color", f"{front}/depth", f"{front}/camera_info"]
            sample = Sample(np.array([stamped.stamp]), capture.step, capture.number, np.ones(1, bool), capture.position,
                            capture.attitude, dict(capture.data))  # fmt: skip
            expected = list(messages.sensor_messages("front", specs["front"].device, sample))
            for message, own in zip(sent[:2], expected[:2], strict=True):
                assert bytes(message.values["data"]) == bytes(own.values["data"])
            topics = [message[0] for message in kept]
            assert topics == [f"{front}/image_rect_color/compressed", f"{front}/depth", f"{front}/camera_info"]


def test_sensors_there_begin_anew_with_the_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    class Remembers:
        anew: list[Any] = []  # noqa: RUF012 - of the one that is made

        def reset(self, env_ids: Any) -> None:
            self.anew.append(env_ids.tolist())

    monkeypatch.setattr(process, "make_sensor", lambda item, name: Remembers())
    monkeypatch.setattr(process, "LcmLink", lambda: SimpleNamespace(close=lambda: None))
    records, back = iter([np.zeros(1, np.int64), "over"]), list[Any]()
    work(PictureSettings("lcm", "empty_room", (f"front={CAMERA}",)), lambda: next(records), back.append)
    assert (back, Remembers.anew) == (["ready"], [[0]])


def test_what_cannot_be_had_there_is_passed_on() -> None:
    back: list[Any] = []
    work(PictureSettings("ros2", "no_such_scene", ()), lambda: "over", back.append)
    (error,) = back
    assert isinstance(error, AirworthyError)
    assert "no_such_scene" in str(error)


ODD = """
import warnings

from airworthy.bridges.pictures.process import PictureSettings


class Odd(PictureSettings):
    def __reduce__(self):
        return arrived, ()


def arrived():
    warnings.warn("A thing is odd.")
    return PictureSettings("lcm", "no_such_scene", ())
"""


@pytest.mark.slow
def test_a_process_of_a_pool_has_pictures_rendered_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a process may not have processes of multiprocessing, nor may a script without a main guard; warnings come back."""
    (tmp_path / "odd_settings.py").write_text(ODD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)  # type: ignore[attr-defined]
    made = process.PictureProcess(importlib.import_module("odd_settings").Odd("lcm", "no_such_scene", ()))
    warned, error = made.get(), made.get()
    made.close()
    assert made.reaped() == ""
    assert warned == "A thing is odd."
    assert isinstance(error, AirworthyError)
    assert "no_such_scene" in str(error)


def test_the_flight_begins_its_transport_before_the_pictures_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over zenoh the first one is the router: what the flight says is not to go through a process that renders."""
    begun: list[str] = []

    class Bus:
        address = "here"

        def __init__(self, domain: int):
            begun.append("flight")

        def subscriber(self, *of: Any) -> None: ...

        def close(self) -> None: ...

    def pictures(settings: PictureSettings) -> None:
        begun.append("pictures")
        raise AirworthyError("No pictures.")

    monkeypatch.setattr("airworthy.bridges.topic_server.ZenohBus", Bus)
    monkeypatch.setattr("airworthy.bridges.topic_server.PictureProcess", pictures)
    with pytest.raises(AirworthyError, match="No pictures"):
        serve_topics(TopicServeConfig("zenoh", scene="empty_room", sensors=(f"front={CAMERA}",)))
    assert begun == ["flight", "pictures"]


def test_served_pictures_are_rendered_by_another_process_and_kept(domain: int, tmp_path: Path) -> None:
    config = TopicServeConfig("ros2", scene="empty_room", sensors=(f"front={CAMERA}",), rate=100.0, duration=1.0,
                              clock="scaled", factor=0.25, start=None, out=tmp_path)  # fmt: skip
    with closing(DdsBus(domain)) as bus:
        from airworthy.bridges.ros.bus import SENSORS

        pictures = bus.subscriber("/uav/camera/front/depth", "sensor_msgs/msg/Image", SENSORS)
        served = serve_topics(config)
        assert served.frames["front"] + served.skipped["front"] >= 1
        assert served.frames["front"] >= 1
        kept = told(tmp_path / "flight.mcap")["/uav/camera/front/depth"]
        assert len(kept) == served.frames["front"]
        assert pictures.matched >= 0
    assert any(note.startswith("front: ") for note in served.notes)


@pytest.mark.slow
def test_a_killed_renderer_ends_it_in_a_sentence(domain: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[process.PictureProcess] = []

    class Seen(process.PictureProcess):
        def __init__(self, settings: PictureSettings):
            super().__init__(settings)
            made.append(self)

    monkeypatch.setattr("airworthy.bridges.topic_server.PictureProcess", Seen)
    config = TopicServeConfig("ros2", scene="empty_room", sensors=(f"front={CAMERA}",), rate=100.0, duration=600.0)

    def say(sentence: str) -> None:
        if sentence.startswith("Serving"):
            threading.Timer(0.1, os.kill, (made[0].pid, signal.SIGKILL)).start()

    with pytest.raises(AirworthyError, match=r"The process that renders pictures is gone \(signal 9\)\."):
        serve_topics(config, say)


def test_a_pipe_between_processes_does_not_end_dds(domain: int) -> None:
    one, other = socket.socketpair()
    with one, other, closing(DdsBus(domain)) as bus:
        assert bus.address.endswith("of this machine alone")
