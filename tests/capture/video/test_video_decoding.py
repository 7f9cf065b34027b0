"""Films and photographs as they come: turned, of uneven rate, HDR, cut off, broken, not films at all."""

from __future__ import annotations

import contextlib
import io
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.capture.video.film_building import SIZE, textured_film, textured_picture, write_film

from airworthy.capture._gate import CaptureLimits
from airworthy.capture.video.decoding import open_source
from airworthy.core.errors import AirworthyError

av = pytest.importorskip("av")
pytest.importorskip("cv2")

# Rows of the matrix in a track's header, 16.16 fixed point and 2.30 for the last column (ISO/IEC 14496-12, 8.3.2).
UPRIGHT = [0x10000, 0, 0, 0, 0x10000, 0]
QUARTER_CLOCKWISE = [0, 0x10000, 0, -0x10000, 0, 0]


def turned(path: Path, matrix: list[int]) -> Path:
    """Write another matrix into the track header of an MP4."""
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 4 + 40
    old = b"".join(v.to_bytes(4, "big", signed=True) for v in UPRIGHT[:2])
    assert data[at : at + 8] == old
    values = [matrix[0], matrix[1], 0, matrix[3], matrix[4], 0, 0, 0, 0x40000000]
    data[at : at + 36] = b"".join(v.to_bytes(4, "big", signed=True) for v in values)
    path.write_bytes(data)
    return path


def encoded(path: Path, times: list[int], pixel_format: str = "yuv420p", codec: str = "libx264", **tags: int) -> Path:
    """A film whose pictures have the given times in milliseconds."""
    with av.open(str(path), "w", format="mp4") as file:
        stream = file.add_stream(codec, rate=30)
        stream.width, stream.height, stream.pix_fmt = *SIZE, pixel_format
        stream.codec_context.time_base = Fraction(1, 1000)
        for name, value in tags.items():
            setattr(stream.codec_context, name, value)
        for picture, time in zip(textured_film(len(times)), times, strict=True):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format=pixel_format)
            frame.pts, frame.time_base = time, Fraction(1, 1000)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return path


def test_a_film_is_read_as_it_was_written(tmp_path: Path) -> None:
    pictures = textured_film(6)
    source = open_source(write_film(tmp_path / "a.mp4", pictures, rate=10.0))
    found = [(p.time, p.rgb(), p.grey()) for p in source.pictures()]
    assert (source.width, source.height, source.kind) == (*SIZE, "film")
    assert [time for time, _, _ in found] == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.5], abs=1e-3)
    for k, (_, rgb, grey) in enumerate(found):
        # x264's rate factor of 20 on a pattern, colours at half the resolution.
        assert np.abs(rgb.astype(int) - pictures[k]).mean() < 14.0
        assert grey.shape == rgb.shape[:2]


def test_a_turned_telephone_is_upright(tmp_path: Path) -> None:
    """The header asks for a quarter turn clockwise: the picture's left column becomes its top row."""
    path = write_film(tmp_path / "a.mp4", textured_film(3))
    plain = next(iter(open_source(path).pictures())).rgb()
    source = open_source(turned(path, QUARTER_CLOCKWISE))
    found = next(iter(source.pictures())).rgb()
    assert (source.width, source.height) == (SIZE[1], SIZE[0])
    assert np.array_equal(found, np.rot90(plain, -1))


def test_uneven_times_are_kept(tmp_path: Path) -> None:
    times = [0, 33, 40, 200, 210, 400]
    found = [p.time for p in open_source(encoded(tmp_path / "a.mp4", times)).pictures()]
    assert found == pytest.approx([t / 1000.0 for t in times], abs=2e-3)


def test_ten_bits_with_hlg_come_out_as_light_for_a_screen(tmp_path: Path) -> None:
    """18 is HLG, 9 are BT.2020's primaries and matrix (ITU-T H.273)."""
    path = encoded(tmp_path / "a.mp4", [0, 33, 66], "yuv420p10le", color_trc=18, color_primaries=9, colorspace=9)
    source = open_source(path)
    found = next(iter(source.pictures())).rgb()
    assert found.dtype == np.uint8
    assert 20 < found.mean() < 235
    assert any("HDR" in note for note in source.notes)


def test_a_film_that_was_cut_off_gives_what_is_there_or_a_sentence(tmp_path: Path) -> None:
    whole = write_film(tmp_path / "a.mp4", textured_film(40)).read_bytes()
    reached = []
    for share in (0.98, 0.7, 0.3, 0.02):
        (tmp_path / "b.mp4").write_bytes(whole[: int(share * len(whole))])
        try:
            reached.append(len(list(open_source(tmp_path / "b.mp4").pictures())))
        except AirworthyError as error:
            assert "b.mp4" in str(error)  # noqa: PT017
            reached.append(0)
    assert reached[0] > 0
    assert reached == sorted(reached, reverse=True)


def test_a_film_whose_head_tells_of_more_pictures_is_said_to_be_cut_off(tmp_path: Path) -> None:
    """The head comes first in what we write, so that a film that is half copied can be opened."""
    whole = write_film(tmp_path / "a.mp4", textured_film(40)).read_bytes()
    (tmp_path / "b.mp4").write_bytes(whole[: len(whole) * 4 // 5])
    source = open_source(tmp_path / "b.mp4")
    count = len(list(source.pictures()))
    assert 0 < count < 36
    assert f"{count} pictures can be read of the 40 that its head tells of: it was cut off or is damaged" in source.notes
    intact = open_source(tmp_path / "a.mp4")
    assert len(list(intact.pictures())) == 40
    assert intact.notes == []


@pytest.mark.parametrize("seed", range(12))
def test_damaged_bytes_never_raise_anything_else(tmp_path: Path, seed: int) -> None:
    data = bytearray(write_film(tmp_path / "a.mp4", textured_film(12)).read_bytes())
    rng = np.random.default_rng(seed)
    for at in rng.integers(0, len(data), 30):
        data[at] = rng.integers(256)
    (tmp_path / "b.mp4").write_bytes(data)
    with contextlib.suppress(AirworthyError):
        for picture in open_source(tmp_path / "b.mp4").pictures():
            picture.grey()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.mp4", b"", "is empty (0 bytes)"),
        ("a.mp4", b"no film at all " * 20, "cannot be read as a film"),
        ("a.gif", b"GIF89a" + bytes(40), "is a GIF, of 256 colours: give the film that it was made from"),
        ("a.heic", bytes(4) + b"ftypheic" + bytes(40), "is one photograph, in a form that is not read here (HEIC)"),
        ("a.m3u8", b"#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:9/a.ts\n", "cannot be read as a film"),
        ("a.ffconcat", b"ffconcat version 1.0\nfile /etc/hostname\n", "cannot be read as a film"),
    ],
)
def test_what_is_no_film_is_told(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AirworthyError, match=said.replace("(", r"\(").replace(")", r"\)")):
        open_source(tmp_path / name)


def test_sound_alone_and_missing_files_are_told(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "a.mp4"), "w") as file:
        stream = file.add_stream("aac", rate=16000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 16000
        file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    with pytest.raises(AirworthyError, match="no moving pictures"):
        open_source(tmp_path / "a.mp4")
    with pytest.raises(AirworthyError, match="no film and no folder"):
        open_source(tmp_path / "b.mp4")


def test_more_pixels_than_the_limits_are_refused_before_decoding(tmp_path: Path) -> None:
    path = write_film(tmp_path / "a.mp4", textured_film(2))
    with pytest.raises(AirworthyError, match="has 96 x 64 pixels"):
        open_source(path, CaptureLimits(image_pixels=4000))


# ---- Photographs ------------------------------------------------------------------------------------------------------------


def photograph(path: Path, pixels: np.ndarray, orientation: int = 1, focal_35mm: int | None = None) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    if focal_35mm is not None:
        exif.get_ifd(0x8769)[0xA405] = focal_35mm
    held = io.BytesIO()
    Image.fromarray(pixels).save(held, "JPEG", quality=95, subsampling=0, exif=exif)
    path.write_bytes(held.getvalue())


@pytest.mark.parametrize("orientation", range(1, 9))
def test_photographs_are_upright_as_pillow_has_them(tmp_path: Path, orientation: int) -> None:
    from PIL import ImageOps

    photograph(tmp_path / "a.jpg", textured_picture(96), orientation, 26)
    source = open_source(tmp_path)
    found = next(iter(source.pictures())).rgb()
    with Image.open(tmp_path / "a.jpg") as image:
        expected = np.asarray(ImageOps.exif_transpose(image))
    assert np.array_equal(found, expected)
    assert source.focal == pytest.approx(26.0 / 36.0)


def test_damaged_photographs_are_left_out_and_told(tmp_path: Path) -> None:
    photograph(tmp_path / "a.jpg", textured_picture(96))
    (tmp_path / "b.jpg").write_bytes((tmp_path / "a.jpg").read_bytes()[:300])
    source = open_source(tmp_path)
    assert [picture.name for picture in source.pictures()] == ["a.jpg"]
    assert any(note.startswith("b.jpg is damaged") for note in source.notes)


def test_folders_called_like_photographs_are_passed_over_and_told(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    photograph(tmp_path / "images" / "b.jpg", textured_picture(96))
    for name in ("sub.jpg", "images/sub.jpg"):
        (tmp_path / name).mkdir()
    source = open_source(tmp_path)
    assert [picture.name for picture in source.pictures()] == ["b.jpg"]
    assert (source.names, source.count, source.notes) == (("b.jpg",), 1, ["sub.jpg is no file"])
    for name in "cdef":
        (tmp_path / "images" / f"{name}.jpg").mkdir()
    found = [f"{name}.jpg is no file" for name in "cde"]
    assert open_source(tmp_path).notes == [*found, "further names of photographs are of no files"]


def test_photographs_that_are_not_read_are_counted(tmp_path: Path) -> None:
    """They were passed over without a word, and the telephone's own form is one of them."""
    for name in ("b.HEIC", "c.heic", "d.dng"):
        (tmp_path / name).write_bytes(b"1")
    said = r"3 photographs that are not read here and were passed over \(DNG, HEIC\): convert them to JPEG"
    with pytest.raises(AirworthyError, match=rf"holds no photographs \(JPEG, PNG, WebP\); it has {said}"):
        open_source(tmp_path)
    photograph(tmp_path / "a.jpg", textured_picture(96))
    (note,) = open_source(tmp_path).notes
    assert re.match(said, note)


def test_folders_without_photographs_are_told(tmp_path: Path) -> None:
    write_film(tmp_path / "walk.mp4", textured_film(2))
    with pytest.raises(AirworthyError, match=r"holds no photographs.*it has films: name"):
        open_source(tmp_path)
