"""Steps of a place from a film: passed over where their files lie whole, done again or refused where these are damaged."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.capture.capture_building import SIZE, colmap, picture, write
from tests.capture.video.film_building import textured_film, write_film

from airworthy.capture import CaptureVideoOptions, VideoResult, capture_video
from airworthy.capture.places.free_space import NoRoomError
from airworthy.capture.record import CaptureImages
from airworthy.capture.training.train import TrainResult
from airworthy.capture.video import reconstruct, run, scale
from airworthy.capture.video.advice import judged_depth
from airworthy.capture.video.steps import FilmSteps, StepProducts
from airworthy.core import frames
from airworthy.core.errors import AirworthyError

COUNT = 8
MODEL = {
    "images": [f"{k}.jpg" for k in range(COUNT)], "points": 500, "reprojection_px": 0.3, "track_length": 4.0,
    "cameras": [{"model": "PINHOLE", "parameters": [10.0, 11.0, 6.0, 4.0], "focal_px": 10.0, "focal_deviation_px": None}],
}  # fmt: skip
RECORD: dict[str, Any] = {
    "metric": True, "origin": "the marker 0", "scale_by": ["marker 0"], "scale_half_95": 0.01, "level": None,
    "read_to_place": {
        "scale": 2.5, "rotation_xyzw": frames.from_euler(0.1, 0.2, 0.3).tolist(), "translation_m": [1.0, 2.0, 3.0]
    },
}  # fmt: skip
PLACE = {
    "warnings": [], "space_m3": {"free": 1.0, "unknown": 2.0}, "bounds_m": [[0, 0, 0], [1, 1, 1]],
    "gaussians": {"pruned": 0, "background": 0},
}  # fmt: skip
GOOD = {"points": 900, "median_percent": 3.0, "within_5_percent": 60.0}


@dataclass
class Stand:
    """A film, its folder, and steps that write small files at once; what was done is counted."""

    film: Path
    out: Path
    done: list[str] = field(default_factory=list)
    seen: list[CaptureImages] = field(default_factory=list)
    """What splats were trained from."""
    depth: dict[str, Any] = field(default_factory=lambda: dict(GOOD))
    room: Exception | None = None
    focal: float = 10.0
    """Of the poses [px]."""
    splats: bytes = b"splats " * 100
    doubts: list[str] = field(default_factory=list)
    """What places were told of their splats."""

    def run(self, **options: Any) -> VideoResult:
        self.done.clear()
        return capture_video(self.film, self.out, CaptureVideoOptions(frames=COUNT, **options))

    # Steps, as the command calls them.

    def take_frames(self, *_: Any) -> None:
        if (self.out / "frames.json").exists():
            return
        self.done.append("frames")
        write(self.out, {f"images/{k}.jpg": picture(k, kind="JPEG") for k in range(COUNT)})
        taken = [
            {"name": f"{k}.jpg", "source": 0, "number": k, "time": float(k), "sharpness": 1.0, "relative_sharpness": 1.0,
             "rate": [0.0, 0.0], "size": list(SIZE), "marked": False}
            for k in range(COUNT)
        ]  # fmt: skip
        sources = [{"name": "a.mp4", "kind": "film", "notes": [], "shaken": 0, "pictures": COUNT}]
        (self.out / "frames.json").write_text(json.dumps({"sources": sources, "frames": taken}))

    def reconstruct(self, *_: Any) -> Any:
        path = self.out / "reconstruction.json"
        if not path.exists():
            self.done.append("poses")
            model = colmap(COUNT, model="PINHOLE", parameters=(self.focal, 11.0, 6.0, 4.0))
            write(self.out, {name: data for name, data in model.items() if name.startswith("sparse")})
            path.write_text(json.dumps({"pictures": COUNT, "models": [MODEL], "shutter": None}))
        return json.loads(path.read_text())

    def align(self, *_: Any, **__: Any) -> Any:
        self.done.append("scale")
        return SimpleNamespace(record=lambda images: RECORD, bundle=None)

    def train(self, images: CaptureImages, folder: Path, *_: Any) -> TrainResult:
        if not (folder / "report.json").exists():
            self.done.append("training")
            write(folder, {"splats.ply": self.splats, "report.json": b'{"judged": []}'})
            self.seen.append(images)
        return TrainResult(folder / "splats.ply", folder / "report.json", 7, 10, 1.0, 30.0, 0.9, 1)

    def place(self, folder: Path, *_: Any, doubt: str = "", **__: Any) -> Any:
        self.done.append("place")
        self.doubts.append(doubt)
        if self.room is not None:
            raise self.room
        write(folder, {"place.json": json.dumps(PLACE).encode(), "scene.toml": b"name = 'x'", "cloud/a.ply": b"1234" * 50})
        return SimpleNamespace(record=PLACE)


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    made = Stand(write_film(tmp_path / "a.mp4", textured_film(4)), tmp_path / "out")
    for name, step in (
        ("take_frames", made.take_frames), ("reconstruct", made.reconstruct), ("train_splats", made.train),
        ("write_place", made.place), ("mirror_walls", lambda *_: []), ("depth_against_leftovers", lambda *_: made.depth),
        ("read_splats", lambda *_: SimpleNamespace(splats=None)),
    ):  # fmt: skip
        monkeypatch.setattr(run, name, step)
    monkeypatch.setattr(scale, "align_capture", made.align)
    monkeypatch.setattr(scale, "write_alignment_page", lambda path, *_: path.write_text("<html>"))
    return made


def test_a_finished_folder_is_left_as_it_is(stand: Stand) -> None:
    first = stand.run()
    assert stand.done == ["frames", "poses", "scale", "training", "place"]
    assert first.place == stand.out / "place"
    assert stand.run().summary == first.summary
    assert stand.done == []
    # A copy has other times, and the same content.
    shutil.copytree(stand.out, stand.out.with_name("copy"))
    stand.out = stand.out.with_name("copy")
    assert stand.run().summary == first.summary
    assert stand.done == []


def test_scale_and_place_are_not_found_again_when_a_run_goes_on(stand: Stand) -> None:
    first = stand.run()
    (stand.out / "summary.json").unlink()
    again = stand.run()
    assert stand.done == []
    assert {**again.summary, "seconds": 0} == {**first.summary, "seconds": 0}


def test_other_options_of_scale_find_it_again(stand: Stand) -> None:
    stand.run(train=False)
    stand.run(train=False, side=0.3)
    assert stand.done == ["scale"]
    # Pictures of another width have the same scale.
    stand.run(train=True, side=0.3, train_width=64)
    assert stand.done == ["training", "place"]


def test_splats_are_trained_from_the_same_numbers_whenever_scale_was_found(stand: Stand) -> None:
    stand.run()
    shutil.rmtree(stand.out / "splats")
    stand.run()
    # The same splats make the same place.
    assert stand.done == ["training"]
    one, two = stand.seen
    assert np.array_equal(one.position, two.position)
    assert np.array_equal(one.attitude, two.attitude)
    assert one.metric
    assert two.metric


def test_what_told_no_scale_is_not_asked_again(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any, **__: Any) -> None:
        stand.done.append("scale")
        raise AirworthyError("No image shows the marker.")

    monkeypatch.setattr(scale, "align_capture", nothing)
    first = stand.run(train=False)
    assert stand.done == ["frames", "poses", "scale", "scale"]
    assert any("Nor is it level" in line for line in first.summary["warnings"])
    (stand.out / "summary.json").unlink()
    assert stand.run(train=False).summary["warnings"] == first.summary["warnings"]
    assert stand.done == []


def test_other_poses_find_scale_again(stand: Stand) -> None:
    stand.run(train=False)
    stand.focal = 10.5
    gone(stand.out / "reconstruction.json")
    said = stand.run(train=False).summary["warnings"]
    assert stand.done == ["poses", "scale"]
    assert "Done again, finding poses: reconstruction.json is gone." in said


def test_notes_of_the_alignment_stand_on_the_films_page(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECORD, "notes", ["the marker 0 was not used in 1 image (3.jpg): see the table"])
    assert "The marker 0 was not used in 1 image (3.jpg): see alignment.html." in stand.run(train=False).summary["warnings"]


def test_other_splats_make_the_place_again(stand: Stand) -> None:
    stand.run()
    shutil.rmtree(stand.out / "splats")
    stand.splats = b"others " * 100
    stand.run()
    assert stand.done == ["training", "place"]


def test_metres_of_before_are_gone_where_nothing_tells_them_now(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    stand.run(train=False)
    assert (stand.out / "alignment.json").exists()

    def nothing(*_: Any, **__: Any) -> None:
        raise AirworthyError("No image shows the marker.")

    monkeypatch.setattr(scale, "align_capture", nothing)
    assert not stand.run(train=False, side=0.3).summary["metric"]
    assert not (stand.out / "alignment.json").exists()
    assert not (stand.out / "alignment.html").exists()


def own_mask(stand: Stand) -> None:
    write(stand.out, {"masks/2.jpg.png": picture(2, kind="PNG")})


def test_masks_that_somebody_lays_beside_the_pictures_find_poses_again(stand: Stand) -> None:
    stand.run(train=False)
    own_mask(stand)
    said = stand.run(train=False).summary["warnings"]
    assert stand.done == ["poses"]
    assert any(line.startswith("Masks beside the pictures are others") for line in said)
    stand.run(train=False)
    assert stand.done == []
    changed(stand.out / "masks" / "2.jpg.png")
    stand.run(train=False)
    assert stand.done == ["poses"]


def test_splats_that_were_trained_without_a_mask_are_not_gone_on_with(stand: Stand) -> None:
    stand.run()
    own_mask(stand)
    with pytest.raises(AirworthyError, match="the pictures, their poses or their scale are others"):
        stand.run()


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("9.jpg:1,2+1.jpg:3,4", "image '9.jpg'"), ("0.jpg:1,2+1.jpg:300,4", "outside of the picture"),
        ("1.jpg:-1,2+0.jpg:3,4", "outside of the picture"),
    ],
)  # fmt: skip
def test_distances_between_points_that_there_are_not_are_refused_before_poses(stand: Stand, first: str, said: str) -> None:
    for points in ((first, "0,0,0"), ("0,0,0", first)):
        with pytest.raises(AirworthyError, match=said):
            stand.run(known_distance=((*points, 2.0),))
    assert (stand.out / "frames.json").exists()
    assert not (stand.out / "reconstruction.json").exists()


def test_a_distance_that_tells_nothing_ends_before_splats(stand: Stand) -> None:
    """Splats that were trained without metres could not have them later."""
    with pytest.raises(AirworthyError, match="choose points farther apart"):
        stand.run(known_distance=(("0,0,0", "0,0,1e-9", 2.0),))
    assert stand.done == ["frames", "poses"]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def changed(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))


def gone(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("how", [cut, changed, gone])
@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("images/3.jpg", ["frames"]), ("frames.json", ["frames"]), ("reconstruction.json", ["poses"]),
        ("sparse/0/images.bin", ["poses"]), ("alignment.json", ["scale"]), ("alignment.html", ["scale"]),
        ("place/cloud/a.ply", ["place"]), ("place/place.json", ["place"]), ("report.html", []), ("summary.json", []),
        ("seconds.json", []), ("steps.json", []),
    ],
)  # fmt: skip
def test_what_is_damaged_is_done_again(stand: Stand, name: str, again: list[str], how: Callable[[Path], None]) -> None:
    """Steps that are made from it are not, where it comes out the same."""
    first, before = stand.run(), (stand.out / name).read_bytes()
    how(stand.out / name)
    second = stand.run()
    assert stand.done == again
    if name not in ("seconds.json", "steps.json", "summary.json", "report.html"):
        assert (stand.out / name).read_bytes() == before
    ignored = {"seconds", "warnings"}
    assert {k: v for k, v in second.summary.items() if k not in ignored} == {
        k: v for k, v in first.summary.items() if k not in ignored
    }
    stand.run()
    assert stand.done == []


def test_what_a_folder_is_of_is_written_again_where_the_same_run_left_it(stand: Stand) -> None:
    stand.run()
    before = (stand.out / "video.json").read_bytes()
    cut(stand.out / "video.json")
    said = stand.run().summary["warnings"]
    assert stand.done == []
    assert (stand.out / "video.json").read_bytes() == before
    assert said == []
    cut(stand.out / "video.json")
    (stand.out / "summary.json").unlink()
    assert any("video.json was written anew" in line for line in stand.run().summary["warnings"])
    # Whether it was of these options, or of others, is not known then.
    cut(stand.out / "video.json")
    with pytest.raises(AirworthyError, match=r"video.json' is not valid JSON.*It says which films and options"):
        stand.run(seed=1)


def test_what_was_done_again_is_said(stand: Stand) -> None:
    stand.run()
    cut(stand.out / "sparse" / "0" / "images.bin")
    said = " ".join(stand.run().summary["warnings"])
    assert "Done again, finding poses: sparse/0/images.bin has " in said
    assert " of its " in said


@pytest.mark.parametrize("how", [cut, changed, gone])
@pytest.mark.parametrize("name", ["splats.ply", "report.json"])
def test_damaged_splats_are_refused(stand: Stand, name: str, how: Callable[[Path], None]) -> None:
    """Minutes of training, of which a copy may be there."""
    stand.run()
    how(stand.out / "splats" / name)
    for _ in range(2):
        with pytest.raises(AirworthyError, match=rf"splats/{name} (has|was|is) .*or delete that folder, which trains anew"):
            stand.run()
    shutil.rmtree(stand.out / "splats")
    stand.run()
    assert stand.done == ["training"]


def test_splats_of_other_pictures_or_metres_are_refused(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever led to them: scale that was found again, and came out otherwise."""
    stand.run()
    for name in ("alignment.json", "summary.json"):
        (stand.out / name).unlink()
    monkeypatch.setitem(RECORD["read_to_place"], "scale", 2.6)
    with pytest.raises(AirworthyError, match="their poses or their scale are others"):
        stand.run()


def test_a_folder_of_before_is_taken_as_it_is(stand: Stand) -> None:
    stand.run()
    (stand.out / "steps.json").unlink()
    (stand.out / "summary.json").unlink()
    stand.run()
    # Scale kept no other record of what it was made from, nor did the place.
    assert stand.done == ["scale", "place"]
    (stand.out / "steps.json").unlink()
    cut(stand.out / "reconstruction.json")
    (stand.out / "summary.json").unlink()
    said = stand.run().summary["warnings"]
    assert stand.done == ["poses", "scale", "place"]
    assert any("Done again, finding poses" in line and "not valid JSON" in line for line in said)


def test_a_folder_that_cannot_say_what_it_is_of_is_refused(stand: Stand) -> None:
    stand.run()
    (stand.out / "steps.json").unlink()
    cut(stand.out / "video.json")
    with pytest.raises(AirworthyError, match=r"video.json' is not valid JSON.*choose another --out, or delete"):
        stand.run()


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_damaged_database_is_refused_with_what_to_do(stand: Stand, damage: str) -> None:
    """COLMAP says that no registered database factory succeeded."""
    stand.out.mkdir()
    stand.take_frames()
    (stand.out / "colmap").mkdir()
    path = stand.out / "colmap" / "database.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE a (b BLOB)")
        database.executemany("INSERT INTO a VALUES (?)", [(bytes(5000),)] * 40)
        database.commit()
    if damage == "cut":
        cut(path)
    else:
        path.write_bytes(b"no database " * 500)
    with pytest.raises(AirworthyError, match=r"database.db' is damaged \(.*\): delete it, and features and matches are found"):
        reconstruct(stand.out)


# ---- Depth, and room --------------------------------------------------------------------------------------------------------


def test_splats_that_lie_elsewhere_are_said(stand: Stand) -> None:
    good = stand.run()
    assert good.summary["depth"]["believed"]
    page_of_good = good.report.read_text()
    shutil.rmtree(stand.out)
    stand.depth = {"points": 412, "median_percent": 25.2, "within_5_percent": 1.0}
    done = stand.run()
    said = [line for line in done.summary["warnings"] if "do not lie where" in line]
    assert len(said) == 1
    assert "1 % of 412 points" in said[0]
    assert "off by 25 %" in said[0]
    assert "--steps and --gaussians" in said[0]
    assert not done.summary["depth"]["believed"]
    page = unescape(done.report.read_text())
    assert said[0].split(": ")[0] in page
    assert page.count("poor") == 1 + page_of_good.count("poor")
    assert stand.doubts == ["", said[0]]


@pytest.mark.parametrize(
    ("median", "within", "good"),
    [(2.1, 78.4, True), (4.1, 56.4, True), (3.7, 61.3, True), (6.4, 40.0, True), (25.2, 1.0, False), (8.0, 5.0, False)],
)
def test_depths_of_good_and_bad_captures(median: float, within: float, good: bool) -> None:
    found = judged_depth({"points": 900, "median_percent": median, "within_5_percent": within})
    assert (found == "") == good
    assert "not known" in judged_depth({"points": 0})


def test_the_command_stands_on_the_page_in_one_piece(stand: Stand) -> None:
    """It was an item of a list in columns, which parted it."""
    command = "airworthy capture video 'my films/a.mp4' --out out " + "--known-distance a:1,2+b:3,4 a:5,6+b:7,8 2.5 " * 3
    done = capture_video(stand.film, stand.out, CaptureVideoOptions(frames=COUNT), command=command)
    page = done.report.read_text()
    assert f'<pre class="command">{command}</pre>' in unescape(page)
    assert "<li>command" not in page


def test_a_place_without_room_names_commands_that_there_are(stand: Stand) -> None:
    """`capture video` has no --radius; `capture place` has."""
    stand.room = NoRoomError(0.3)
    done = stand.run()
    assert done.place is None
    said = next(line for line in done.summary["warnings"] if "No place was made" in line)
    assert "(radius)" not in said
    assert f"`airworthy capture place {stand.out}/splats --capture {stand.out} --radius METRES --out PLACE`" in said


# ---- The record itself ------------------------------------------------------------------------------------------------------


def test_products_by_size_then_time_then_content(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"1234")
    StepProducts(tmp_path).keep("one", "k", ["a.bin"], {"x": 1.5})
    found = StepProducts(tmp_path)
    assert found.whole("one", "k")
    assert not found.whole("one", "other")
    assert found.said("one") == {"x": 1.5}
    assert found.made_from("two") is None
    before = found.digest("one")
    path.write_bytes(b"1235")
    assert StepProducts(tmp_path).damaged("one") == ["a.bin was changed"]
    path.write_bytes(b"12345")
    assert StepProducts(tmp_path).damaged("one") == ["a.bin has grown"]
    path.write_bytes(b"1235")
    found.keep("one", "k", ["a.bin"])
    assert found.digest("one") != before
    assert found.files("one") == {"a.bin"}
    assert found.files("two") == frozenset()
    path.write_bytes(b"12")
    assert StepProducts(tmp_path).damaged("one") == ["a.bin has 2 of its 4 bytes"]
    path.unlink()
    assert StepProducts(tmp_path).damaged("one") == ["a.bin is gone"]


def test_a_record_that_is_gone_is_said(stand: Stand) -> None:
    stand.run(train=False)
    gone(stand.out / "steps.json")
    assert "steps.json is gone" in FilmSteps(stand.out).notes[0]
    assert FilmSteps(stand.out.with_name("new")).notes == []


@pytest.mark.parametrize("path", ["../a.mp4", "/etc/hostname", "images/../../a.mp4"])
def test_a_record_names_no_files_outside_of_its_folder(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "room"
    folder.mkdir()
    step = {"made_from": "k", "files": {path: [1, 2, "3"]}, "said": None}
    (folder / "steps.json").write_text(json.dumps({"one": step}))
    found = FilmSteps(folder)
    assert found.damaged("one") == []
    assert "no files of the folder" in found.notes[0]


@pytest.mark.parametrize("text", ["{", "[]", '{"one": 1}', '{"one": {"made_from": "k", "files": {"a": [1, 2]}}}'])
def test_a_damaged_record_tells_nothing_and_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "steps.json").write_text(text)
    found = FilmSteps(tmp_path)
    assert found.names == ()
    assert len(found.notes) == 1
    assert "steps.json was dropped" in found.notes[0]
