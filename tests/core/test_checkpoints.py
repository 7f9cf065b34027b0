"""Checkpoints: what is written comes back, and whatever was done to the files since is found out and said."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

import airworthy
from airworthy.core import _atomic
from airworthy.core.errors import AirworthyError
from airworthy.core.files import json_text, sha256
from airworthy.core.jobs import checkpoints
from airworthy.core.jobs.checkpoints import Checkpoint, Checkpoints

ABOUT = {"options": {"seed": 3, "rate": 1e-4}, "data": "ab" * 32}


def made(number: int) -> Checkpoint:
    """A small one, with what is awkward: no numbers at all, a single number, raw bytes, an array that does not lie in order."""
    rng = np.random.default_rng(number)
    arrays = {
        "weights": rng.normal(size=(3, 2)).astype(np.float32),
        "turned": rng.normal(size=(2, 4)).T,
        "one": np.array(7, np.int64),
        "none": np.zeros((0, 5), np.float16),
        "raw": np.frombuffer(b"any bytes \x00\xff", np.uint8),
    }
    return Checkpoint(number, arrays, {"random": {"seed": 3, "step": number}, "journal": [[number, 0.1 + 0.2]]})


def saved(folder: Path, *numbers: int, **options: Any) -> Checkpoints:
    kept = Checkpoints(folder, **options)
    for number in numbers:
        kept.save(made(number), ABOUT)
    return kept


def number_of(kept: Checkpoints) -> int | None:
    found = kept.newest()
    return None if found is None else found.number


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ---- what is written --------------------------------------------------------------------------------------------------------


def test_everything_comes_back_to_the_bit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = saved(tmp_path / "new" / "folder", 4).newest()
    assert found is not None
    wanted = made(4)
    assert dict(found.notes) == wanted.notes
    assert set(found.arrays) == set(wanted.arrays)
    for name, array in wanted.arrays.items():
        got = found.arrays[name]
        assert (got.dtype, got.shape, got.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert capsys.readouterr().err == ""


def test_the_manifest_says_what_the_run_is(tmp_path: Path) -> None:
    saved(tmp_path, 12)
    manifest = json.loads((tmp_path / "step_000000012.json").read_text())
    data = (tmp_path / "step_000000012.safetensors").read_bytes()
    assert list(manifest) == ["manifest_sha256", "schema_version", "number", "sha256", "bytes", "options", "data", "notes"]
    assert {name: manifest[name] for name in ABOUT} == ABOUT
    assert (manifest["schema_version"], manifest["number"], manifest["bytes"]) == (1, 12, len(data))
    assert manifest["sha256"] == sha256(data)
    assert manifest["notes"]["random"] == {"seed": 3, "step": 12}
    signed = manifest.pop("manifest_sha256")
    assert signed == sha256(json_text(manifest))


def test_the_same_state_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        saved(tmp_path / name, 5)
    for name in names(tmp_path / "a"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_the_last_ones_are_kept(tmp_path: Path, keep: int) -> None:
    kept = saved(tmp_path, 1, 2, 10, 30, keep=keep, digits=8)
    endings = (".json", ".safetensors")
    assert names(tmp_path) == sorted(f"step_{number:08d}{end}" for number in (2, 10, 30)[-keep:] for end in endings)
    kept.clear()
    assert not tmp_path.exists()


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)
    others = {"notes.txt": b"mine", "step_12.json": b"{}", "weights.safetensors": b"", "step_best.safetensors": b"mine"}
    for name, data in others.items():
        (tmp_path / name).write_bytes(data)
    for number in (1, 2, 3):
        kept.save(made(number), ABOUT)
    kept.clear()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == others


# ---- damage -----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_thousand_flipped_bits_are_all_found_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = saved(tmp_path, 1, 2)
    rng = np.random.default_rng(7)
    for name in ("step_000000002.json", "step_000000002.safetensors"):
        path = tmp_path / name
        whole = path.read_bytes()
        for bit in rng.choice(8 * len(whole), 500, replace=False):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << int(bit % 8)
            path.write_bytes(damaged)
            assert number_of(kept) == 1, (name, bit)
        path.write_bytes(whole)
        assert number_of(kept) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1000
    assert all(line.startswith("The checkpoint of step 2 is damaged (") for line in said)
    assert all(line.endswith("); the one before it is taken.") for line in said)


@pytest.mark.parametrize("ending", ["json", "safetensors"])
@pytest.mark.parametrize("left", [0.0, 0.5, 0.999])
def test_a_truncated_one_is_found_out(tmp_path: Path, ending: str, left: float) -> None:
    kept = saved(tmp_path, 1, 2)
    path = tmp_path / f"step_000000002.{ending}"
    data = path.read_bytes()
    path.write_bytes(data[: int(left * len(data))])
    assert number_of(kept) == 1


def test_missing_arrays_are_found_out_and_a_missing_manifest_is_no_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = saved(tmp_path, 1, 2)
    (tmp_path / "step_000000002.safetensors").unlink()
    assert number_of(kept) == 1
    assert "There is no file" in capsys.readouterr().err
    (tmp_path / "step_000000001.json").unlink()
    assert number_of(kept) is None
    assert "; there is none before it.\n" in capsys.readouterr().err


def test_files_of_two_checkpoints_do_not_make_one(tmp_path: Path) -> None:
    kept = saved(tmp_path, 1, 2)
    for ending in ("json", "safetensors"):
        data = (tmp_path / f"step_000000001.{ending}").read_bytes()
        (tmp_path / f"step_000000003.{ending}").write_bytes(data)
    assert number_of(kept) == 2  # 3 is a copy of 1


def test_another_version_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    kept = saved(tmp_path, 1)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "SCHEMA_VERSION", 2)
        kept.save(made(2), ABOUT)
    assert number_of(kept) == 1
    assert "(it is of version 2, this program reads 1); the one before it is taken" in capsys.readouterr().err


def test_nothing_in_an_empty_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Checkpoints(tmp_path).newest() is None
    assert capsys.readouterr().err == ""


def test_work_that_goes_on_replaces_what_was_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two damaged ones must not push out each new one that is written behind them."""
    kept = saved(tmp_path, 20, 30, counted="minibatch")
    for path in tmp_path.glob("*.json"):
        path.write_bytes(b"{}")
    assert kept.newest() is None
    assert capsys.readouterr().err.count("The checkpoint of minibatch") == 2
    kept.save(made(5), ABOUT)
    assert names(tmp_path) == ["step_000000005.json", "step_000000005.safetensors"]
    assert number_of(kept) == 5


# ---- the file system, and kills ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("ending", ["safetensors", "json"])
def test_a_full_disk_or_read_only_folder_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, ending: str
) -> None:
    """The file that cannot be written is the first, then the second."""
    kept = saved(tmp_path, 1, 2)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    create = _atomic._create_temporary

    def refused(target: Path) -> Path:
        if target.suffix == f".{ending}":
            raise OSError(code, os.strerror(code))
        return create(target)

    with monkeypatch.context() as patch:
        patch.setattr(_atomic, "_create_temporary", refused)
        with pytest.raises(AirworthyError, match=f"Could not write .*{os.strerror(code)}"):
            kept.save(made(3), ABOUT)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {name: after[name] for name in before} == before
    assert number_of(kept) == 2
    kept.save(made(3), ABOUT)
    assert number_of(kept) == 3
    assert len(names(tmp_path)) == 4


def test_what_cannot_be_removed_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = saved(tmp_path, 1, 2)

    def refused(self: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(AirworthyError, match=r"Could not use the checkpoints in '.*': Read-only file system\."):
        kept.clear()
    assert number_of(kept) == 2  # reading needs no writing


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AirworthyError, match="Could not make the folder"):
        Checkpoints(tmp_path / "file" / "checkpoints")


_KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_checkpoints import ABOUT, Checkpoints, made
from airworthy.core.jobs import checkpoints
def killed(path, text):
    os.kill(os.getpid(), signal.SIGKILL)
checkpoints.write_text = killed
Checkpoints(Path(sys.argv[1])).save(made(3), ABOUT)
"""


def test_killed_between_the_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = saved(tmp_path, 1, 2)
    script = _KILLED.format(tests=str(Path(__file__).parent))
    source = str(Path(airworthy.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH", ""))))
    command = [sys.executable, "-c", script, str(tmp_path)]
    assert subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=False).returncode == -signal.SIGKILL
    assert (tmp_path / "step_000000003.safetensors").exists()
    assert number_of(kept) == 2
    assert capsys.readouterr().err == ""  # nothing is damaged: the third was never made
    (tmp_path / ".step_000000004.0123.tmp.json").write_text("{")  # as a kill in the middle of a file leaves it
    kept.save(made(4), ABOUT)
    assert names(tmp_path) == [f"step_00000000{number}.{end}" for number in (2, 4) for end in ("json", "safetensors")]


# ---- folders of trainings that were begun before ----------------------------------------------------------------------------


def test_a_training_of_sv_net_begun_before_goes_on(tmp_path: Path) -> None:
    """Its manifest as it was written first, text by text."""
    data = save({"a": np.arange(3, dtype=np.float32)})
    (tmp_path / "step_000000007.safetensors").write_bytes(data)
    rest = (
        f'  "schema_version": 1,\n  "number": 7,\n  "sha256": "{sha256(data)}",\n  "bytes": {len(data)},\n'
        '  "machine": {\n    "device": "cuda",\n    "threads": 2\n  },\n'
        '  "notes": {\n    "at": {\n      "stage": 0,\n      "sum": 0.30000000000000004\n    },\n    "best": {}\n  }\n}\n'
    )
    signed = sha256("{\n" + rest)
    (tmp_path / "step_000000007.json").write_text(f'{{\n  "manifest_sha256": "{signed}",\n{rest}')
    found = Checkpoints(tmp_path, "minibatch").newest()
    assert found is not None
    assert (found.number, found.arrays["a"].tolist()) == (7, [0.0, 1.0, 2.0])
    assert found.notes["at"] == {"stage": 0, "sum": 0.30000000000000004}


def unsigned(folder: Path, number: int, **changes: Any) -> None:
    """As trainings of splats wrote them first: the manifest vouches for the arrays alone."""
    data = save({"sums": np.full(2, number, np.float64)})
    (folder / f"step_{number:08d}.safetensors").write_bytes(data)
    manifest = {"format": 1, "step": number, "sha256": sha256(data), "bytes": len(data), "random": {"seed": 0, "step": number}}
    manifest |= {"options": {"seed": 0}, "images": "cd" * 32, "notes": {"loss": [[100, 0.5]]}}
    (folder / f"step_{number:08d}.json").write_text(json.dumps(manifest | changes, indent=2) + "\n")


def test_a_training_of_splats_begun_before_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unsigned(tmp_path, 100)
    unsigned(tmp_path, 200)
    kept = Checkpoints(tmp_path, digits=8)
    found = kept.newest()
    assert found is not None
    assert (found.number, found.arrays["sums"].tolist(), dict(found.notes)) == (200, [200.0, 200.0], {"loss": [[100, 0.5]]})
    path = tmp_path / "step_00000200.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    assert number_of(kept) == 100
    assert "its arrays are not those that were written" in capsys.readouterr().err
    kept.save(made(150), ABOUT)  # from 100 on, in today's layout
    assert number_of(kept) == 150
    assert names(tmp_path) == [f"step_00000{number}.{end}" for number in (100, 150) for end in ("json", "safetensors")]


@pytest.mark.parametrize(
    "changes",
    [{"step": 1}, {"format": 2}, {"bytes": "9"}, {"bytes": 9}, {"notes": []}, {"sha256": None}, {"schema_version": 1}],
)
def test_old_manifests_that_do_not_fit_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    unsigned(tmp_path, 100, **changes)
    assert number_of(Checkpoints(tmp_path, digits=8)) is None
