"""Damage in the middle of films that their decoders hide: which pictures are left out, by how the films were written."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.capture.video.film_building import SIZE, textured_film

from airworthy.capture.video import take_frames
from airworthy.capture.video.damage import FilmDamage, UnitFormat, damage_sentence, unit_format
from airworthy.capture.video.decoding import open_source
from airworthy.capture.video.frames import looked_at
from airworthy.core.errors import AirworthyError

av = pytest.importorskip("av")
pytest.importorskip("cv2")

H264, HEVC = UnitFormat("h264", 4), UnitFormat("hevc", 4)
RATE, GROUP = 10, 10
"""Pictures a second, and from one that stands for itself to the next."""


def film(path: Path, codec: str = "libx264", count: int = 40, **options: str) -> Path:
    with av.open(str(path), "w", format="mp4") as file:
        stream = file.add_stream(codec, rate=RATE, options={"g": str(GROUP), "keyint_min": str(GROUP), **options})
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        for picture in textured_film(count):
            file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        file.mux(stream.encode(None))
    return path


def pieces(path: Path) -> list[Any]:
    """Pieces in the order in which they are decoded: number of the picture, place and size in the file, bytes."""
    with av.open(str(path)) as file:
        found = [p for p in file.demux(video=0) if p.size]
        return [SimpleNamespace(shown=round(float(p.pts * p.time_base) * RATE), pos=p.pos, data=bytes(p)) for p in found]


def overwritten(path: Path, at: int, data: bytes) -> Path:
    whole = bytearray(path.read_bytes())
    whole[at : at + len(data)] = data
    out = path.with_name("damaged.mp4")
    out.write_bytes(whole)
    return out


def left_out(path: Path) -> list[int]:
    source = open_source(path)
    assert len(list(source.pictures())) > 0
    return sorted(source.damaged)


@pytest.mark.parametrize(
    ("codec", "options"), [("libx264", {"bf": "0"}), ("libx264", {}), ("libx265", {"x265-params": "log-level=none:keyint=10"})]
)
def test_what_an_encoder_wrote_is_whole(tmp_path: Path, codec: str, options: dict[str, str]) -> None:
    path = film(tmp_path / "a.mp4", codec, **options)
    assert left_out(path) == []
    with av.open(str(path)) as file:
        context = file.streams.video[0].codec_context
        units = unit_format(context.name, context.extradata)
    assert units is not None
    assert not any(units.broken(piece.data) for piece in pieces(path))


@pytest.mark.parametrize(
    ("codec", "options"), [("libx264", {"bf": "0"}), ("libx265", {"x265-params": "log-level=none:keyint=10:bframes=0"})]
)
def test_zeros_spoil_all_until_a_picture_stands_for_itself(tmp_path: Path, codec: str, options: dict[str, str]) -> None:
    path = film(tmp_path / "a.mp4", codec, **options)
    piece = next(one for one in pieces(path) if one.shown == 13)
    damaged = overwritten(path, piece.pos + len(piece.data) // 2, bytes(12))
    assert left_out(damaged) == list(range(13, 20))
    source = open_source(damaged)
    assert [look.number for look in looked_at(source)] == [*range(13), *range(20, 40)]
    assert source.notes == ["left out as damaged, or predicted from damaged ones: 7 of 40 pictures (1.3 to 1.9 s)"]


def test_what_nothing_is_predicted_from_spoils_itself_alone(tmp_path: Path) -> None:
    path = film(tmp_path / "a.mp4", bf="2", **{"x264-params": "b-pyramid=none:b-adapt=0"})
    alone = [one for one in pieces(path) if not H264.referred(one.data)]
    assert len(alone) > 10
    # The first of its group, so that many follow in the order of decoding.
    piece = next(one for one in alone if one.shown % GROUP == 1 and one.shown > GROUP)
    assert left_out(overwritten(path, piece.pos + len(piece.data) - 6, bytes(6))) == [piece.shown]


def test_what_a_decoder_marks_spoils_as_much(tmp_path: Path) -> None:
    """Other bytes, which could be an encoder's: H.264's decoder sees that they lead nowhere, and conceals it."""
    path = film(tmp_path / "a.mp4", bf="0")
    piece = next(one for one in pieces(path) if one.shown == 10)
    rubbish = np.random.default_rng(0).integers(1, 256, len(piece.data) // 2, dtype=np.uint8).tobytes()
    damaged = overwritten(path, piece.pos + len(piece.data) // 4, rubbish)
    with av.open(str(damaged)) as file:
        assert any(frame.is_corrupt for frame in file.decode(video=0))
    assert left_out(damaged) == list(range(10, 20))


def test_pictures_are_taken_from_what_is_whole(tmp_path: Path) -> None:
    path = film(tmp_path / "a.mp4", bf="0")
    piece = next(one for one in pieces(path) if one.shown == 20)
    damaged = overwritten(path, piece.pos + len(piece.data) // 2, bytes(12))
    record = take_frames([damaged], tmp_path / "out", 40)
    assert [one["number"] for one in record["frames"]] == [*range(20), *range(30, 40)]
    (note,) = record["sources"][0]["notes"]
    assert note.endswith("10 of 40 pictures (2.0 to 2.9 s)")
    # Across the gap nothing is known of the motion; beside it, it is that of the film.
    rates = {one["number"]: one["rate"][0] for one in record["frames"]}
    assert rates[19] == pytest.approx(rates[18], rel=0.2)
    assert rates[30] == pytest.approx(rates[31], rel=0.2)


def test_too_little_that_is_whole_is_told(tmp_path: Path) -> None:
    path = film(tmp_path / "a.mp4", count=20, bf="0", g="100", keyint_min="100")
    piece = next(one for one in pieces(path) if one.shown == 4)
    damaged = overwritten(path, piece.pos + len(piece.data) // 2, bytes(12))
    with pytest.raises(AirworthyError, match=r"only 4 pictures.*copy the film again \(left out as damaged.*16 of 20"):
        take_frames([damaged], tmp_path / "out")


# ---- Units and pieces, by hand ----------------------------------------------------------------------------------------------


def unit(*data: int) -> bytes:
    return len(data).to_bytes(4, "big") + bytes(data)


@pytest.mark.parametrize(
    ("piece", "broken"),
    [
        (unit(0x65, 1, 2, 3) + unit(0x41, 9), False),
        (unit(0x65, 0, 0, 3, 1), False),
        (unit(0x65, 7, 0, 0, 0, 0), False),  # zeros that were kept behind it
        (unit(0x65, 7, 0, 0, 0, 0, 0), True),
        (unit(0x65, 0, 0, 0, 1), True),
        (unit(0x65, 0, 0, 1, 1), True),
        (unit(0x65, 0, 0, 2, 1), True),
        (unit(0xE5, 1), True),
        (unit(0x65, 1)[:-1], True),
        (unit(0x65, 1) + bytes(4), True),
        (b"", False),
    ],
)
def test_bytes_that_no_encoder_writes(piece: bytes, broken: bool) -> None:
    assert H264.broken(piece) == broken


@pytest.mark.parametrize(
    ("units", "piece", "referred"),
    [
        (H264, unit(0x41, 1), True),
        (H264, unit(0x01, 1), False),
        (H264, unit(0x06, 1) + unit(0x01, 1), False),  # beside the slice something that says more of it
        (H264, unit(0x01, 1) + unit(0x21, 1), True),
        (H264, unit(0x00, 1), True),  # no slice is left of it
        (HEVC, unit(0x02, 0x01, 9), True),  # TRAIL_R
        (HEVC, unit(0x00, 0x01, 9), False),  # TRAIL_N
        (HEVC, unit(0x00, 0x00, 9), True),
        (HEVC, unit(0x26, 0x01, 9), True),  # IDR_W_RADL
    ],
)
def test_whom_others_are_predicted_from(units: UnitFormat, piece: bytes, referred: bool) -> None:
    assert units.referred(piece) == referred


def test_pictures_shown_before_one_that_stands_for_itself_may_lean_on_what_came_before() -> None:
    damage = FilmDamage(None)
    for time, alone in ((0, True), (3, False), (2, False), (6, True), (4, False), (5, False), (7, False)):
        damage.piece(SimpleNamespace(pts=time, is_keyframe=alone, is_corrupt=False))
    assert damage.times() == set()
    damage.failed(1)
    assert damage.times() == {3, 2, 4, 5}
    damage.marked(0)
    assert damage.times() == {0, 3, 2, 4, 5}


def test_which_streams_have_units_with_lengths() -> None:
    assert unit_format("h264", bytes([1, 0x64, 0, 0x1F, 0xFF])) == UnitFormat("h264", 4)
    assert unit_format("hevc", bytes([1, *[0] * 20, 0xFD])) == UnitFormat("hevc", 2)
    # Start codes of a transport stream, another codec, no head.
    assert unit_format("h264", bytes([0, 0, 0, 1, 0x67])) is None
    assert unit_format("vp9", bytes([1, 2, 3, 4, 5])) is None
    assert unit_format("h264", None) is None


def test_parts_of_the_film_are_told_with_their_seconds() -> None:
    said = damage_sentence([1.0, 1.1, 1.2, 5.0, 8.0, 9.0, 12.0], 100)
    assert said.endswith("7 of 100 pictures (1.0 to 1.2 s; 5.0 s; 8.0 s; 9.0 s; ...)")
