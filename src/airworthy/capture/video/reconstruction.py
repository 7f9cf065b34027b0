"""From pictures to poses: features, pairs, matches and a map, by COLMAP on the CPU, each step gone on with where it stopped.

colmap/database.db      features and matches, as COLMAP keeps them
colmap/colmap.log       what COLMAP said
colmap/leftovers.npz    of each observation of the largest model: picture, pixels, leftover [px], depth, place of the point
sparse/0, sparse/1 ...  models, the largest first; more than one: parts that do not hang together
reconstruction.json     figures; written last
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal

from airworthy.capture.video.frames import IMAGES, read_frames_record
from airworthy.capture.video.shutter import READOUTS
from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, read_json, write_json
from airworthy.core.jobs.progress import progress
from airworthy.core.native_kernel import thread_limit
from airworthy.core.schema import Bound, check_fields

__all__ = ["LEFTOVERS", "RECONSTRUCTION_FILE", "Colmap", "ReconstructionOptions", "camera_groups", "reconstruct"]

LEFTOVERS = "colmap/leftovers.npz"
RECONSTRUCTION_FILE, DATABASE, LOG, SPARSE, MASKS = "reconstruction.json", "database.db", "colmap.log", "sparse", "masks"


@dataclass(frozen=True)
class ReconstructionOptions:
    """How poses are found.

    Raises:
        AirworthyError: If a number is out of range.
    """

    camera_model: Literal["SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV"] = "SIMPLE_RADIAL"
    """Of COLMAP, one camera for each film. A telephone straightens its films, so that one coefficient is enough."""
    features: Annotated[int, Bound(200, 20_000)] = 4000
    """Most of a picture."""
    overlap: Annotated[int, Bound(1, 50)] = 6
    """Pictures that follow one in its film and are matched with it."""
    alike: Annotated[int, Bound(1, 100)] = 12
    """Pictures that look most like one and are matched with it."""
    guided: bool = False
    """Look for more matches along the lines where they must lie: more of them, and a longer wait."""
    mapper: Literal["incremental", "global"] = "incremental"
    seed: Annotated[int, Bound(0, 2**31 - 1)] = 0

    def __post_init__(self) -> None:
        check_fields(self, "ReconstructionOptions.")


class Colmap:
    """COLMAP in a process of its own, which ends with the block.

    Args:
        log: File for what COLMAP says.
        quiet: Show no progress.
    """

    def __init__(self, log: str | Path, quiet: bool = True) -> None:
        self.log, self.quiet = Path(log), quiet
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Colmap:
        if importlib.util.find_spec("pycolmap") is None:
            raise AirworthyError("Finding poses needs the package 'pycolmap': pip install 'airworthy[capture]'.")
        make_folder(self.log.parent)
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "airworthy.capture.video.colmap_process", str(os.getpid())],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8",
            )  # fmt: skip
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        # SQLite keeps what was committed, whenever its process ends.
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def run(self, step: str, what: str, **order: Any) -> dict[str, Any]:
        """Carry out one step.

        Args:
            step: Name in `colmap_process.STEPS`.
            what: Is being done, for the line of progress.
            order: Of the step.

        Raises:
            AirworthyError: COLMAP failed, or its process ended.
        """
        process = self._process
        assert process is not None
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"step": step, **order}, default=str) + "\n")
            process.stdin.flush()
        except OSError:
            self._fail(what)
        result: dict[str, Any] = {}
        for _ in progress(self._steps(what, result), what, result.get("total"), quiet=self.quiet):
            pass
        return result["result"]

    def _steps(self, what: str, result: dict[str, Any]) -> Any:
        """Yield as things are done; leaves the answer in `result`."""
        assert self._process is not None
        assert self._process.stdout is not None
        done = 0
        for line in self._process.stdout:
            answer = json.loads(line)
            if "error" in answer:
                raise AirworthyError(f"{what} failed: {answer['error']}; COLMAP's own words are in {str(self.log)!r}.")
            if "result" in answer:
                result["result"] = answer["result"]
                return
            yield from range(done, answer["done"])
            done = answer["done"]
        self._fail(what)

    def _fail(self, what: str) -> None:
        assert self._process is not None
        code = self._process.wait()
        raise AirworthyError(
            f"COLMAP's process ended (status {code}) while {what[0].lower()}{what[1:]}: what was done is kept, and the same"
            f" command goes on from there; its last words are in {str(self.log)!r}."
        )


def camera_groups(record: dict[str, Any], model: str) -> list[dict[str, Any]]:
    """Return names of pictures that one camera took, with what is known of it, a group per source.

    Photographs of several sizes are several cameras.

    Args:
        record: Of frames.json.
        model: COLMAP's camera model.
    """
    groups: dict[tuple[int, int, int], dict[str, Any]] = {}
    for frame in record["frames"]:
        width, height = frame["size"]
        source = record["sources"][frame["source"]]
        key = (frame["source"], width, height)
        focal = source["focal_over_longer_side"]
        start = {"names": [], "model": model, "width": width, "height": height}
        start["focal"] = None if focal is None else focal * max(width, height)
        groups.setdefault(key, start)["names"].append(frame["name"])
    return list(groups.values())


def reconstruct(
    folder: str | Path, options: ReconstructionOptions | None = None, threads: int = 0, quiet: bool = True
) -> dict[str, Any]:
    """Find the poses of a capture's pictures; a folder that has its reconstruction.json is left as it is.

    Args:
        folder: With frames.json and `images`, and perhaps `masks` (NAME.png, black: ignored).
        options: How.
        threads: Of the CPU; 0: all it has.
        quiet: Show no progress.

    Returns:
        What reconstruction.json holds: models with images, points, reprojection errors, cameras, and seconds of each step.

    Raises:
        AirworthyError: pycolmap is missing, its database is damaged, or no two pictures hang together; the sentence says what
            to do, or to film instead.
    """
    root, o = Path(folder), options or ReconstructionOptions()
    if (root / RECONSTRUCTION_FILE).exists():
        return dict(read_json(root / RECONSTRUCTION_FILE))
    record, frames = read_frames_record(root)
    names = [frame.name for frame in frames]
    work = make_folder(root / "colmap")
    _check_database(work / DATABASE)
    shared = {"database": str(work / DATABASE), "images": str(root / IMAGES)}
    count = threads or thread_limit()
    masks = str(root / MASKS) if (root / MASKS).is_dir() else ""
    with Colmap(work / LOG, quiet) as colmap:
        groups = camera_groups(record, o.camera_model)
        found = colmap.run(
            "features", "Finding features", **shared, masks=masks, groups=groups, features=o.features, threads=count
        )  # fmt: skip
        # Photographs too: who takes many walks from one to the next, and names count up.
        ordered = [True] * len(record["sources"])
        sources = [frame.source for frame in frames]
        chosen = colmap.run(
            "pairs", "Choosing pairs", **shared, names=names, sources=sources, ordered=ordered, overlap=o.overlap,
            alike=o.alike, seed=o.seed,
        )  # fmt: skip
        pairs = [(names[a], names[b]) for a, b in chosen["pairs"]]
        matched = colmap.run(
            "matches", "Matching pairs", **shared, pairs=pairs, list=str(work / "pairs.txt"), guided=o.guided,
            threads=count, seed=o.seed,
        )  # fmt: skip
        shutil.rmtree(root / SPARSE, ignore_errors=True)
        mapped = colmap.run(
            "mapping", "Finding poses", **shared, out=str(make_folder(root / SPARSE)), mapper=o.mapper, count=len(names),
            threads=count, seed=o.seed,
        )  # fmt: skip
        shutil.rmtree(root / SPARSE / "raw", ignore_errors=True)
        shutter, consistency, mirror = None, None, None
        if mapped["models"]:
            order = {"model": str(root / SPARSE / "0"), "names": names, "out": str(root / LEFTOVERS)}
            colmap.run("leftovers", "Looking at what is left over", **order)
            order = {"model": str(root / SPARSE / "0"), "names": names}
            consistency = colmap.run("consistency", "Looking whether it is one place", **order)
            order = {"model": str(root / SPARSE / "0"), "database": shared["database"]}
            mirror = colmap.run("mirror", "Looking for a mirror", **order)["mirror"]
            rates = {one.name: [max(one.size) * part for part in one.rate] for one in frames if any(one.rate)}
            if rates:
                shutter = colmap.run(
                    "shutter", "Looking for a rolling shutter", model=str(root / SPARSE / "0"), names=names, rates=rates,
                    readouts=READOUTS,
                )  # fmt: skip
    result = {
        "options": asdict(o),
        "pictures": len(names),
        "features": found["features"],
        "pairs": {"tried": len(pairs), "by_time": chosen["by_time"], "alike": chosen["alike"], **matched},
        "models": mapped["models"],
        "shutter": shutter,
        "consistency": consistency,
        "mirror": mirror,
    }
    write_json(root / RECONSTRUCTION_FILE, result)
    return dict(read_json(root / RECONSTRUCTION_FILE))


def _check_database(path: Path) -> None:
    """Refuse a database that is damaged, of which COLMAP's own words do not say so."""
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(path)) as database:
            found = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        found = str(error)
    if found != "ok":
        reason = " ".join(found.split())
        raise AirworthyError(f"{str(path)!r} is damaged ({reason}): delete it, and features and matches are found anew.")
