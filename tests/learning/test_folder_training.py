"""What every training in a folder does, by one that counts: its order, what goes on, what is read, what is judged again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy import __version__
from airworthy.core.errors import AirworthyError, AssetError, AssetWarning
from airworthy.core.files import write_json
from airworthy.core.jobs.checkpoints import Checkpoint, Checkpoints
from airworthy.learning import folder_training as module
from airworthy.learning.folder_training import (
    NOT_IN_TORCH,
    FlownFolder,
    FolderTraining,
    Rows,
    TorchFolder,
    plain_options,
    scalars_of,
)
from airworthy.learning.machine import Machine, TrainingOptions, TrainingRunOptions
from airworthy.learning.timed_training import TimedTraining
from airworthy.learning.training_folder import TrainingFolder, TrainingNames
from airworthy.pilots.network_files import write_sealed

ALWAYS = TrainingRunOptions("cpu", threads=1, checkpoint_minutes=0.0)
ONE_STEP = TrainingRunOptions("cpu", threads=1, minutes=1e-9)
HERE = Machine("cpu", 1, "float32", "2.0")


@dataclass(frozen=True)
class Options(TrainingOptions):
    """Of a training that counts."""

    iterations: int = 4
    sizes: tuple[int, ...] = (2, 1)


class Counting:
    """A training that counts, and says so."""

    def __init__(self, options: Options, events: list[str]):
        self.options, self.events, self.iteration = options, events, 0

    @property
    def finished(self) -> bool:
        return self.iteration == self.options.iterations

    env_steps, lost = 0, 0
    weights: tuple[Any, ...] = ()

    def step(self) -> float:
        self.iteration += 1
        self.events.append(f"step {self.iteration}")
        return float(self.iteration)

    def metrics(self, cost: float) -> Mapping[str, Any]:
        return {"cost": cost}

    def save(self) -> Checkpoint:
        return Checkpoint(self.iteration, {"at": np.array([self.iteration])}, {})

    def restore(self, checkpoint: Checkpoint) -> None:
        self.iteration = int(checkpoint.arrays["at"][0])
        self.events.append(f"restore {self.iteration}")

    def prepare(self) -> None:
        self.events.append("compile")

    def keep_in(self, folder: Path) -> None:
        self.events.append("keep_in")

    def forget(self) -> None:
        self.events.append("forget")


@dataclass(kw_only=True)
class Folder(FolderTraining[str]):
    """A training that counts; every call is an event."""

    names = TrainingNames("a count", "its data were others", "its version was another", "step", "summary.json")

    kind: str = "count"
    options: Options = field(default_factory=Options)
    run: TrainingRunOptions = ALWAYS
    command: str = "airworthy count"
    quiet: bool = True
    protocol: Mapping[str, Any] = field(default_factory=lambda: {"flights": 1})
    events: list[str] = field(default_factory=list)

    def identity(self, folder: Path) -> dict[str, Any]:
        assert folder.is_dir()
        self.events.append("identity")
        plain = plain_options(self.options)
        return {"schema_version": 1, "options": plain, "data": "", "protocol": self.protocol}

    def machine(self, before: Mapping[str, Any] | None) -> Machine:
        self.events.append(f"machine {before and before['device']}")
        return HERE

    @contextmanager
    def _computing(self) -> Iterator[None]:
        self.events.append("set up")
        try:
            yield
        finally:
            self.events.append("left")

    def computing(self, machine: Machine) -> AbstractContextManager[object]:
        assert machine == HERE
        return self._computing()

    def begin(self, folder: Path, machine: Machine) -> TimedTraining[Any]:
        self.events.append("begin")
        return TimedTraining(Counting(self.options, self.events), 100)

    def prepare(self, work: TimedTraining[Any]) -> None:
        self.events.append("prepare")

    def write(self, folder: Path, work: TimedTraining[Any]) -> object:
        (folder / "policy.txt").write_text(str(work.training.iteration))
        self.events.append("write")
        return None

    def read(self, folder: Path) -> str:
        self.events.append("read")
        return (folder / "policy.txt").read_text()

    def learnt(self, work: TimedTraining[Any]) -> str:
        return str(work.training.iteration)

    def evidence(self, network: str, found: Mapping[str, Any]) -> dict[str, Any]:
        return {"judged": f"again {network}", "seconds": {"evaluate_s": 2.0}}

    def summary(self, work: TimedTraining[Any], network: str, machine: Machine) -> dict[str, Any]:
        self.events.append("judge")
        took = {"train_s": work.wall_s, "evaluate_s": 1.0}
        return {"judged": network, "seconds": took, "iterations": work.training.iteration, "protocol": dict(self.protocol)}

    def report(
        self, folder: Path, found: Mapping[str, Any], rows: Rows, network: str, work: TimedTraining[Any] | None
    ) -> object:
        # Figures that lie there are those of before: new ones are written behind the page.
        finished, what = (folder / "summary.json").exists(), "again" if work is None else "first"
        self.events.append(f"report {what} {len(rows)} {network} {found['judged']}, summary {finished}")
        (folder / "page.html").write_text("")
        return None

    def beside(self) -> Mapping[str, str]:
        return {"page.html": "it is written again by who judges"}


def test_a_training_does_everything_in_its_order(tmp_path: Path) -> None:
    one = Folder()
    done = one.train(tmp_path)
    steps = [event for k in range(1, 5) for event in (f"step {k}", "write")]
    begun = ["identity", "machine None", "set up", "begin", "keep_in", "prepare"]
    # Written once more behind the last step: whoever stops it while it is judged finds everything.
    assert one.events == [*begun, *steps, "write", "judge", "left", "report first 4 4 4, summary False", "forget"]
    assert (done.folder, done.finished, done.iteration) == (tmp_path, True, 4)
    assert json.loads((tmp_path / "summary.json").read_text()) == done.figures
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 4
    assert not list((tmp_path / "checkpoints").glob("*"))


def test_checkpoints_go_only_when_the_figures_lie_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is killed between the two has one or the other to go on from."""
    lay: list[tuple[bool, int]] = []

    def seen(self: TrainingFolder) -> None:
        lay.append(((tmp_path / "summary.json").exists(), len(list((tmp_path / "checkpoints").iterdir()))))
        clear(self)

    clear = TrainingFolder.clear
    monkeypatch.setattr(TrainingFolder, "clear", seen)
    Folder().train(tmp_path)
    assert [there for there, _ in lay] == [True]
    assert lay[0][1] > 0
    assert not list((tmp_path / "checkpoints").glob("*"))


def test_a_stopped_training_leaves_a_policy_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = Folder(run=ONE_STEP, quiet=False)
    stopped = first.train(tmp_path)
    assert (stopped.finished, stopped.iteration, dict(stopped.figures)) == (False, 1, {})
    assert (tmp_path / "policy.txt").read_text() == "1"
    assert not (tmp_path / "summary.json").exists()
    assert first.events[-2:] == ["write", "left"]
    assert "goes on" not in capsys.readouterr().err
    again = Folder(quiet=False)
    done = again.train(tmp_path)
    begun = ["identity", "machine cpu", "set up", "begin", "keep_in", "restore 1", "prepare", "step 2"]
    assert again.events[: len(begun)] == begun
    assert f"{tmp_path}: goes on from step 1." in capsys.readouterr().err
    assert done.iteration == 4
    assert [json.loads(line)["iteration"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()] == [1, 2, 3, 4]


def test_as_many_steps_are_announced_as_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announced = list[int]()
    learn = TrainingFolder.learn

    def noted(self: Any, work: Any, steps: Any, count: int, *rest: Any) -> bool:
        announced.append(count)
        return learn(self, work, steps, count, *rest)

    monkeypatch.setattr(TrainingFolder, "learn", noted)
    Folder(run=ONE_STEP).train(tmp_path)
    Folder().train(tmp_path)
    assert announced == [4, 3]


def test_whoever_is_stopped_while_it_is_judged_has_learnt_everything(tmp_path: Path) -> None:
    class Stopped(Folder):
        def summary(self, work: TimedTraining[Any], network: str, machine: Machine) -> dict[str, Any]:
            raise KeyboardInterrupt

    one = Stopped()
    with pytest.raises(KeyboardInterrupt):
        one.train(tmp_path)
    assert ((tmp_path / "policy.txt").read_text(), one.events[-1]) == ("4", "left")
    again = Folder()
    assert again.train(tmp_path).finished
    assert "restore 4" in again.events
    assert not any(event.startswith("step") for event in again.events)


def test_a_finished_training_is_read_and_not_learnt_again(tmp_path: Path) -> None:
    done = Folder().train(tmp_path)
    again = Folder()
    found = again.train(tmp_path)
    assert again.events == ["identity", "read"]
    assert (found.folder, found.finished, found.iteration, found.figures) == (tmp_path, True, 4, done.figures)


def test_a_finished_training_is_judged_again_by_another_protocol(tmp_path: Path) -> None:
    done = Folder().train(tmp_path)
    again = Folder(protocol={"flights": 2}, command="airworthy count --flights 2")
    found = again.train(tmp_path)
    assert again.events == ["identity", "read", "report again 4 4 again 4, summary True"]
    figures = found.figures
    assert (figures["judged"], figures["protocol"]) == ("again 4", {"flights": 2})
    assert figures["command"] == "airworthy count --flights 2"
    assert figures["seconds"] == {**done.figures["seconds"], "evaluate_s": 2.0}
    assert json.loads((tmp_path / "summary.json").read_text()) == figures


def test_a_log_that_ends_within_a_line_loses_that_row_and_says_so(tmp_path: Path) -> None:
    Folder().train(tmp_path)
    log = tmp_path / "metrics.jsonl"
    whole = log.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    # Wherever it ends within its last line; what a power cut leaves may be zeros, too.
    for number, torn in enumerate([*(whole[:at] for at in range(last + 1, len(whole) - 1)), whole[:last] + bytes(40)], 2):
        log.write_bytes(torn)
        again = Folder(protocol={"flights": number})
        with pytest.warns(AssetWarning, match=r"metrics\.jsonl' ends within line 4: that row is left out"):
            again.train(tmp_path)
        assert again.events[-1] == "report again 3 4 again 4, summary True"
    # Only the line feed is missing: the row is whole.
    log.write_bytes(whole[:-1])
    again = Folder(protocol={"flights": 1000})
    again.train(tmp_path)
    assert again.events[-1] == "report again 4 4 again 4, summary True"


@pytest.mark.parametrize(
    "line", [b"", b'{"iteration": 1,', b"[1]", b"7", b"[" * 100_000, b'{"iteration": NaN}', b'{"iteratioo": 1}']
)
@pytest.mark.parametrize("number", [1, 3])
def test_a_log_with_something_else_between_its_rows_is_refused_before_it_is_judged(
    line: bytes, number: int, tmp_path: Path
) -> None:
    Folder().train(tmp_path)
    figures, log = (tmp_path / "summary.json").read_bytes(), tmp_path / "metrics.jsonl"
    lines = log.read_bytes().split(b"\n")
    lines[number - 1] = line
    log.write_bytes(b"\n".join(lines))
    again = Folder(protocol={"flights": 2})
    with pytest.raises(AssetError, match=rf"Line {number} of '.*metrics\.jsonl' is not a row .* Delete that line"):
        again.train(tmp_path)
    assert again.events == ["identity", "read"]
    assert (tmp_path / "summary.json").read_bytes() == figures
    # As it says: without that line it goes on.
    del lines[number - 1]
    log.write_bytes(b"\n".join(lines))
    assert Folder(protocol={"flights": 2}).train(tmp_path).figures["judged"] == "again 4"


def test_another_training_is_refused_before_anything_begins(tmp_path: Path) -> None:
    Folder(run=ONE_STEP).train(tmp_path)
    other = Folder(options=Options(iterations=5))
    with pytest.raises(AirworthyError, match="iterations was 4, not 5"):
        other.train(tmp_path)
    assert other.events == ["identity"]


# ---- the two kinds -----------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Flown(FlownFolder[str]):
    """What learns by kernels; its folder is that of `Folder`."""

    names = Folder.names
    stages = (0.5,)

    identity = write = read = learnt = summary = report = None  # type: ignore[assignment]


Flown.__abstractmethods__ = frozenset()


def flown(training: Any, **chosen: Any) -> Any:
    return Flown(kind="", options=Options(), run=ALWAYS, command="", quiet=False, training=training, **chosen)


def test_what_learns_by_kernels_is_prepared_ahead_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: 107.5))
    events: list[str] = []
    timed, untimed = (
        flown(Counting(Options(), events), begun=100.0),
        flown(Counting(Options(), events), split={"compile_s": 3.0}),
    )
    for one in (timed, untimed):
        one.prepare(one.begin(Path(), HERE))
    assert events == ["compile", "compile"]
    assert (timed.split, untimed.split) == ({"compile_s": 7.5}, {"compile_s": 3.0})
    assert flown(None).split == {}


def test_what_learns_by_kernels_has_log_line_curves_and_stages(capsys: pytest.CaptureFixture[str]) -> None:
    one = flown(Counting(Options(iterations=801), []))
    work = one.begin(Path(), HERE)
    assert work.training is one.training
    said = one.follow(work)
    for at in work.steps():
        if at == 801:
            said()
    assert "801 of 801 iterations" in capsys.readouterr().err
    assert list(work.earlier) == [401]
    assert len(work.metrics) == 401  # every second of 801, and the last
    curves = one.curves(work)
    assert curves.rows is work.metrics
    assert curves.scalars(curves.rows[0]) == (0, curves.rows[0])


def test_what_learns_by_kernels_computes_where_it_was_begun() -> None:
    assert flown(SimpleNamespace(machine=HERE)).machine({"device": "cuda:0"}) is HERE
    assert flown(SimpleNamespace()).machine(None) is NOT_IN_TORCH
    with flown(None).computing(HERE) as nothing:
        assert nothing is None


@dataclass(kw_only=True)
class Torch(TorchFolder[str]):
    """What learns in torch."""

    names = Folder.names


Torch.__abstractmethods__ = frozenset()


@pytest.mark.parametrize("quiet", [False, True])
def test_what_learns_in_torch_says_its_rows_unless_it_is_quiet(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    one = Torch(kind="", options=Options(), run=ALWAYS, command="", quiet=quiet)  # type: ignore[abstract]
    work = one.timed(Counting(Options(iterations=2001), []), lambda row: f"at {row['iteration']}")
    for _ in work.steps():
        pass
    assert capsys.readouterr().err == ("" if quiet else "at 2001\n")
    assert len(work.metrics) == 1001
    assert one.curves(work) is None
    one.prepare(work)
    one.follow(work)()
    assert one.evidence("", {}) == {}


def test_what_learns_in_torch_computes_on_the_machine_of_its_run() -> None:
    torch = pytest.importorskip("torch")
    run = TrainingRunOptions("cpu")
    one = Torch(kind="", options=Options(), run=run, command="", quiet=True)  # type: ignore[abstract]
    machine = one.machine({"threads": 7})
    assert (machine.device, machine.threads, machine.precision) == ("cpu", 7, "float32")
    threads = torch.get_num_threads()
    with one.computing(Machine("cpu", threads + 1, "float32", "")) as device:
        assert (device, torch.get_num_threads()) == (torch.device("cpu"), threads + 1)
    assert torch.get_num_threads() == threads


def test_what_every_training_tells_of_itself(tmp_path: Path) -> None:
    """Identity and the head of the summary, with a protocol and without one; what a kind tells besides stands behind them."""
    one = Torch(kind="count", options=Options(), run=ALWAYS, command="count", quiet=True)  # type: ignore[abstract]
    judged = replace(one, protocol=Options(iterations=9))
    plain = {"schema_version": 1, "kind": "count", "options": plain_options(Options())}
    assert one.identity(tmp_path) == {**plain, "data": {}}
    assert judged.identity(tmp_path) == {**plain, "data": {}, "protocol": {"iterations": 9, "sizes": [2, 1]}}
    work = one.timed(Counting(Options(), []), str)
    work.wall_s, work.cpu_s = 2.0, 3.0
    found = judged.summarised(work, HERE, flights=5)
    assert {name: found[name] for name in plain} == plain
    assert (found["iterations"], found["training_wall_s"], found["training_cpu_s"]) == (0, 2.0, 3.0)
    assert (found["machine"], found["command"], found["flights"]) == (asdict(HERE), "count", 5)
    assert found["protocol"] == {"iterations": 9, "sizes": [2, 1]}
    assert found["version"] == __version__
    assert "protocol" not in one.summarised(work, HERE)
    assert scalars_of({"iteration": 3, "cost": 0.5, "name": "x"}) == (3, {"iteration": 3, "cost": 0.5})


def test_options_are_kept_as_json_gives_them_back(tmp_path: Path) -> None:
    plain = plain_options(Options())
    assert plain == {"iterations": 4, "sizes": [2, 1]}
    write_json(tmp_path / "x.json", asdict(Options()))
    assert json.loads((tmp_path / "x.json").read_text()) == plain


# ---- folders of which a part is gone ---------------------------------------------------------------------------------


class Sealed(Folder):
    """The same with a contract that says how much is learnt."""

    def write(self, folder: Path, work: TimedTraining[Any]) -> object:
        write_sealed(folder / "contract.json", {"training": {"iterations": work.training.iteration}})
        return super().write(folder, work)


@pytest.mark.parametrize("run", [ALWAYS, ONE_STEP])
def test_what_has_learnt_all_is_not_written_over_by_less(tmp_path: Path, run: TrainingRunOptions) -> None:
    Sealed().train(tmp_path)
    (tmp_path / "summary.json").unlink()
    again = Sealed(run=run)
    with pytest.raises(AirworthyError, match=r"holds a count that has learnt all, and no figures \(summary\.json\): use it as"):
        again.train(tmp_path)
    assert not [event for event in again.events if event.startswith(("step", "write"))]
    assert (tmp_path / "policy.txt").read_text() == "4"


def test_a_training_whose_checkpoints_are_gone_says_that_it_begins_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Sealed(run=ONE_STEP).train(tmp_path)
    for path in (tmp_path / "checkpoints").iterdir():
        path.unlink()
    assert Sealed().train(tmp_path).iteration == 4
    assert "there is no checkpoint to go on from step 1; it begins anew." in capsys.readouterr().err


def test_figures_without_a_protocol_are_judged_again(tmp_path: Path) -> None:
    Folder().train(tmp_path)
    path = tmp_path / "summary.json"
    found = json.loads(path.read_text())
    write_json(path, {**found, "protocol": None})
    assert Folder().train(tmp_path).figures["judged"] == "again 4"
    assert json.loads(path.read_text())["protocol"] == {"flights": 1}


@pytest.mark.parametrize("seconds", [None, "fast"])
def test_figures_of_another_kind_are_told_where_they_are_judged_again(tmp_path: Path, seconds: Any) -> None:
    Folder().train(tmp_path)
    path = tmp_path / "summary.json"
    write_json(path, {**json.loads(path.read_text()), "seconds": seconds})
    with pytest.raises(AssetError, match=r"summary.json' does not hold the figures of a training\. This training was finished"):
        Folder(protocol={"flights": 2}).train(tmp_path)


@pytest.mark.parametrize("gone", [True, False])
def test_a_log_that_is_gone_or_empty_leaves_a_page_without_curves_and_says_so(tmp_path: Path, gone: bool) -> None:
    Folder().train(tmp_path)
    path = tmp_path / "metrics.jsonl"
    path.unlink() if gone else path.write_text("")
    again = Folder(protocol={"flights": 2})
    with pytest.warns(AssetWarning, match=r"metrics\.jsonl' is missing or empty: the page has no curves of learning"):
        again.train(tmp_path)
    assert "report again 0 4 again 4, summary True" in again.events


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda folder: (folder / "metrics.jsonl").unlink(), r"metrics\.jsonl' is missing or empty"),
        (lambda folder: (folder / "metrics.jsonl").write_text("{}\nnonsense\n"), r"Line 2 of '.*metrics\.jsonl' is not a row"),
        (lambda folder: (folder / "page.html").unlink(), r"lacks 1 of what was written beside its policy: page\.html\."),
    ],
)
def test_what_is_lost_of_a_finished_training_is_told_where_it_is_read(
    harm: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    """No figure depends on it, so that they are given all the same."""
    figures = Folder().train(tmp_path).figures
    harm(tmp_path)
    with pytest.warns(AssetWarning, match=said) as told:
        again = Folder().train(tmp_path)
    assert len(told) == 1
    assert (again.figures, again.read_back) == (figures, True)


def test_the_folder_above_several_seeds_is_told(tmp_path: Path) -> None:
    Folder().train(tmp_path / "seed_3")
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(AirworthyError, match=r"holds several trainings, one per seed \(seed_3\): name one of these folders"):
        Folder().train(tmp_path)


def test_what_lies_beside_a_checkpoint_is_lost_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The one before it is taken; where none can be restored, nothing is begun anew."""
    kept = Checkpoints(tmp_path, "step")
    for number in (1, 2):
        kept.save(Checkpoint(number, {"x": np.zeros(1)}, {}), {})
    tried: list[int] = []

    def restore(refused: set[int]) -> Callable[[Checkpoint], None]:
        def restored(found: Checkpoint) -> None:
            tried.append(found.number)
            if found.number in refused:
                raise AssetError(f"The part of {found.number} is gone.")

        return restored

    found = kept.newest(restore({2}))
    assert found is not None
    assert (found.number, tried) == (1, [2, 1])
    said = "The checkpoint of step 2 is damaged (The part of 2 is gone); the one before it is taken.\n"
    assert capsys.readouterr().err == said
    with pytest.raises(AssetError, match="The part of 1 is gone"):
        kept.newest(restore({1, 2}))
