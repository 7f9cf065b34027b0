"""Nothing that a hostile file names is read outside of its folder, and its words cannot disturb whoever prints them."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from airworthy.core.errors import AssetError
from airworthy.core.files import NAME_MAX, Untrusted, image_kind, read_bytes, shown


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file in it, one beside it, and links of every kind; "link" is another way to the same folder."""
    (tmp_path / "secret").write_text("secret")
    real = tmp_path / "real"
    (real / "sub").mkdir(parents=True)
    for name in ("a.bin", "sub/b.bin", "%2e%2e", "Case.bin"):
        (real / name).write_text("mine")
    for name, target in {
        "out": tmp_path / "secret",
        "relative": "../secret",
        "chain": "out",
        "parent": "..",
        "device": "/dev/zero",
        "loop": "loop",
        "within": "sub/b.bin",
    }.items():
        (real / name).symlink_to(target)
    os.mkfifo(real / "pipe")
    (tmp_path / "link").symlink_to(real)
    return tmp_path / "link"


def gate(folder: Path) -> Untrusted:
    return Untrusted(folder / "model.gltf", folder)


REMOTE = "only files in its own folder are read, no remote or absolute ones"
OUTSIDE = "which is outside its own folder"
NAME = "refers to a file by the name"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", NAME),
        ("a\0b", NAME),
        ("a.bin\0", NAME),
        ("\x1b[31m", NAME),
        ("a\ud800", NAME),
        ("\u202egpj.bin", NAME),
        ("x" * (NAME_MAX + 1), "refers to a file by a name of 1,025 characters"),
        ("/etc/passwd", REMOTE),
        ("//host/a.bin", REMOTE),
        ("\\\\host\\a.bin", REMOTE),
        ("\\a.bin", REMOTE),
        ("C:\\a.bin", REMOTE),
        ("c:a.bin", REMOTE),
        ("http://host/a.bin", REMOTE),
        ("HTTPS://host/a.bin", REMOTE),
        ("FILE:///etc/passwd", REMOTE),
        ("DATA:,x", REMOTE),
        ("..", OUTSIDE),
        ("../secret", OUTSIDE),
        ("..\\secret", OUTSIDE),
        ("sub/../../secret", OUTSIDE),
        ("sub\\..\\..\\secret", OUTSIDE),
        ("missing/../../secret", OUTSIDE),
        ("./.././secret", OUTSIDE),
        ("../real2/a.bin", OUTSIDE),
        ("out", OUTSIDE),
        ("relative", OUTSIDE),
        ("chain", OUTSIDE),
        ("parent/secret", OUTSIDE),
        ("sub/../parent/secret", OUTSIDE),
        ("device", OUTSIDE),
    ],
)
@pytest.mark.parametrize("escaped", [False, True])
def test_names_that_lead_elsewhere(name: str, reason: str, escaped: bool, folder: Path) -> None:
    with pytest.raises(AssetError, match=reason) as refused:
        gate(folder).inside(name, escaped=escaped)
    assert str(refused.value).startswith(f"'{folder}/model.gltf' cannot be used: it refers to ")
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("%2e%2e/secret", OUTSIDE),
        ("%2E%2E%2Fsecret", OUTSIDE),
        ("..%5csecret", OUTSIDE),
        ("%2Fetc/passwd", REMOTE),
        ("file%3A///etc/passwd", REMOTE),
        ("%5c%5chost%5ca.bin", REMOTE),
        ("a%00b", NAME),
        ("a%1b[31m", NAME),
        ("p%61rent/secret", OUTSIDE),
        ("%61" * 342, "a name of 1,026 characters"),
    ],
)
def test_names_that_lead_elsewhere_once_decoded(name: str, reason: str, folder: Path) -> None:
    """As plain names all but the last are those of files in the folder, there or not."""
    with pytest.raises(AssetError, match=reason):
        gate(folder).inside(name, escaped=True)
    if len(name) <= NAME_MAX and "../" not in name.replace("\\", "/"):
        assert gate(folder).inside(name).is_relative_to(folder.resolve())


@pytest.mark.parametrize(
    ("name", "escaped", "found"),
    [
        ("a.bin", False, "a.bin"),
        ("./sub//b.bin", False, "sub/b.bin"),
        ("sub\\b.bin", False, "sub/b.bin"),
        ("sub/../a.bin", False, "a.bin"),
        ("../real/a.bin", False, "a.bin"),
        ("within", False, "sub/b.bin"),
        ("%61.bin", True, "a.bin"),
        ("%2e%2e", False, "%2e%2e"),
        ("%252e%252e", True, "%2e%2e"),
        ("missing", False, "missing"),
        ("~", False, "~"),
        ("$HOME", False, "$HOME"),
        ("..a", False, "..a"),
    ],
)
def test_names_inside(name: str, escaped: bool, found: str, folder: Path) -> None:
    """Decoded once only; nothing is expanded; a folder that is reached by a link is its own folder."""
    assert gate(folder).inside(name, escaped=escaped) == folder.resolve() / found


@pytest.mark.parametrize("name", ["pipe", "loop", "sub", "missing", "n" * 300, "a.bin/b"])
def test_what_is_no_regular_file_is_refused_at_once(name: str, folder: Path) -> None:
    with pytest.raises(AssetError):
        read_bytes(gate(folder).inside(name))


def test_the_same_name_in_another_case_leads_nowhere_else(folder: Path) -> None:
    """Whether it is the same file is for the file system to say; it is never one outside."""
    for name in ("CASE.BIN", "case.bin", "SUB/../Case.bin"):
        assert gate(folder).inside(name).parent == folder.resolve()
    with pytest.raises(AssetError, match=OUTSIDE):
        gate(folder).inside("../REAL2/a.bin")


PARTS = st.sampled_from(
    ["..", ".", "/", "\\", "sub", "out", "parent", "real", "%2e", "%2F", "%00", "\0", "C:", "//", "secret", "a.bin", "~"]
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.lists(PARTS | st.text(max_size=3), max_size=8).map("".join), escaped=st.booleans())
def test_any_name_is_inside_or_refused(name: str, escaped: bool, folder: Path) -> None:
    root = os.path.realpath(folder)
    found, said = root, ""
    try:
        found = os.path.realpath(gate(folder).inside(name, escaped=escaped))
    except AssetError as error:
        said = str(error)
    assert f"{found}/".startswith(f"{root}/")
    assert said.isprintable()


def test_limits_and_words(folder: Path) -> None:
    held = gate(folder)
    held.at_most(3, 3, "images")
    with pytest.raises(AssetError, match="it has 4,000 images, and at most 3 are accepted"):
        held.at_most(4000, 3, "images")
    assert Untrusted(folder, folder, 3).inside("abc").name == "abc"
    with pytest.raises(AssetError, match="a name of 4 characters"):
        Untrusted(folder, folder, 3).inside("abcd")


@settings(max_examples=300)
@given(st.text())
def test_what_is_shown_is_short_and_printable(text: str) -> None:
    # At most ten characters stand for one that repr writes as a number (\U0010ffff), and two quotes.
    assert shown(text).isprintable()
    assert len(shown(text)) <= 60 * 10 + 2
    assert shown(text)[0] == shown(text)[-1]
    assert shown(text)[0] in "'\""


def test_kinds_of_images_are_told_by_their_first_bytes() -> None:
    for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM"):
        held = io.BytesIO()
        Image.new("RGB", (2, 2)).save(held, kind)
        assert image_kind(held.getvalue()) == (kind if kind in ("PNG", "JPEG", "WEBP") else "")
    for data in (b"", b"\x89PNG", b"\xff\xd8", b"RIFF\0\0\0\0WAVE", b"RIFF", b" \x89PNG\r\n\x1a\n", b"%!PS", b"WEBP"):
        assert image_kind(data) == ""
