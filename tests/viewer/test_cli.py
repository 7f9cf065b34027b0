"""`airworthy view` as people type it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("viser")

from airworthy.cli.main import main
from airworthy.viewer import Viewer

Output = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("foresst", "Unknown scene 'foresst'. Closest: 'forest'"),
        ("forest --host 0.0.0.0", "--host is '0.0.0.0', which others may reach"),
        ("forest --env 1", "--env belongs to a flight, and 'forest' is a scene: leave it out."),
        ("forest --splats 0", "--splats is 0; expected 1 or more."),
        ("missing.spz", "There is no file 'missing.spz'."),
        ("RUN --env 9", "There is no environment 9 in"),
        ("RUN --camera recorded", "No colour images were recorded in"),
        ("RUN --camera vlp16", "Unknown sensor 'vlp16'."),
        ("BROKEN", "There is no file"),
        ("RUN --camera gyro", "Unknown sensor 'gyro'."),
        ("forest --port 99999", "--port is 99999; expected 0 (any free one) to 65535."),
        ("training.ckpt", "training.ckpt"),
        ("", "airworthy view needs an argument: a folder of"),
    ],
)
def test_mistakes(line: str, said: str, flown: Path, tmp_path: Path, capsys: Output) -> None:
    shutil.copytree(flown, tmp_path / "broken")
    (tmp_path / "broken" / "flight.parquet").unlink()
    arguments = line.replace("RUN", str(flown)).replace("BROKEN", str(tmp_path / "broken")).split()
    assert main(["view", *arguments]) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert err.count("\n") == 1
    assert not out


def test_a_damaged_splat_file(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "bad.sog").write_bytes(b"PK\x03\x04 no")
    assert main(["view", str(tmp_path / "bad.sog")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def _interrupted(self: Viewer) -> None:
    raise KeyboardInterrupt


def test_interrupting_ends_cleanly(loopback: None, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Viewer, "run", _interrupted)
    assert main(["view", "empty_room", "--port", "0"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("empty_room:0: http://127.0.0.1:")
    assert out.endswith("Closed.\n")
    assert not err


def test_a_taken_port_is_told(loopback: None, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    from airworthy.viewer import server as module

    monkeypatch.setattr(Viewer, "run", _interrupted)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        monkeypatch.setattr(module, "PORT", port)
        monkeypatch.setattr(module.free_port, "__defaults__", ("127.0.0.1", port))
        assert main(["view", "empty_room"]) == 0
        said = capsys.readouterr().out
        assert f", since port {port} is taken (Ctrl-C ends)" in said
        assert f"http://127.0.0.1:{port} " not in said
        assert main(["view", "empty_room", "--port", str(port)]) == 2
        assert f"Could not listen on 127.0.0.1:{port}" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_closes_at_once(flown: Path) -> None:
    line = [sys.executable, "-c", "from airworthy.cli.main import entry; entry()", "view", str(flown), "--port", "0"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "http://127.0.0.1:" in process.stdout.readline()
    time.sleep(0.2)  # it renders its first image now
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0
    assert out == "Closed.\n"
    assert "Traceback" not in err  # a compiler that was just at work may complain
