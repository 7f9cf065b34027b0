"""Where a training computes: devices, threads and precision by rules of their own, torch left as it was found, moments kept."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy import __version__
from airworthy.core.errors import AirworthyError
from airworthy.learning import HoverConfig
from airworthy.learning import machine as module
from airworthy.learning.folder_training import plain_options
from airworthy.learning.machine import Machine, ModelState, TrainingOptions, TrainingRunOptions, computing, machine_for
from airworthy.learning.task_training.options import TaskTrainingOptions

torch = pytest.importorskip("torch")

HERE = Machine("cpu", 2, "float32", "2.0", "1.0")


@dataclass(frozen=True)
class Options(TrainingOptions):
    """Of a training of nothing."""

    rate: float = 0.5
    word: str = ""
    sizes: tuple[int, ...] = (4, 2)
    inner: dict[str, Any] = field(default_factory=lambda: {"pair": (1, 2)})


def gpus(monkeypatch: pytest.MonkeyPatch, count: int, bfloat16: bool = True) -> None:
    """Let torch see so many GPUs."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: bfloat16)


def cpuinfo(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    """Let /proc/cpuinfo hold a text; None: it cannot be read."""

    def read(path: Path, **_: Any) -> str:
        assert str(path) == "/proc/cpuinfo"
        if text is None:
            raise FileNotFoundError(str(path))
        return text

    monkeypatch.setattr(Path, "read_text", read)


# ---- options -----------------------------------------------------------------------------------------------------------------


def test_differences_of_options_are_told_in_words() -> None:
    options = Options(rate=0.25, word="x")
    assert options.differences({"rate": 0.25, "word": "x", "sizes": [4, 2], "inner": {"pair": [1, 2]}}) == []
    assert options.differences({"rate": 0.25, "word": "", "sizes": [4, 3]}) == [
        "word was none, not x",
        "sizes was (4, 3), not (4, 2)",
    ]
    # What an earlier version did not have was at its default, made by a factory or not.
    assert Options().differences({}) == []
    assert options.differences({}) == ["rate was 0.5, not 0.25", "word was none, not x"]
    assert Options(inner={"pair": (1, 3)}).differences({}) == ["inner was pair=(1, 2), not pair=(1, 3)"]


def test_differences_name_the_options_that_were_given() -> None:
    """Words of --randomize and of --option are fields of other names; of several numbers those are told that differ."""

    def told(old: Any, new: Any) -> list[str]:
        return new.options(0).differences(json.loads(json.dumps(plain_options(old.options(0)))))

    plain, drawn = HoverConfig(delay=1), HoverConfig(delay=1, randomize=("mass=0.1",))
    assert told(plain, drawn) == ["randomize was mass=0.0, not mass=0.1"]
    tasks = [TaskTrainingOptions.usual("position_setpoint", options=o) for o in ({}, {"crash_m": 5.0})]
    assert tasks[1].differences(plain_options(tasks[0])) == ["option was none, not crash_m=5.0"]


@pytest.mark.parametrize(
    ("check", "held", "refused", "said"),
    [
        (lambda o: o._check_within("rate", 1.0, 2000.0), (1.0, 2000.0), (0.999, 2000.1, math.nan), "expected 1.0 to 2,000.0."),
        (lambda o: o._check_rates("word", "rate"), (1e-12, 1.0), (0.0, -0.1, 1.001, math.nan), "expected above 0, up to 1."),
        (lambda o: o._check_shares("word", "rate"), (0.0, 0.999), (-1e-9, 1.0, math.nan), "expected 0 or more, below 1."),
    ],
)
def test_ranges_of_options_hold_their_ends(check: Any, held: Any, refused: Any, said: str) -> None:
    for value in held:
        check(Options(rate=value, word=0.5))  # type: ignore[arg-type]
    for value in refused:
        with pytest.raises(AirworthyError) as caught:
            check(Options(rate=value, word=0.5))  # type: ignore[arg-type]
        assert str(caught.value) == f"rate is {value}; {said}"


def test_a_seed_is_kept_in_64_bits_with_a_sign() -> None:
    assert np.iinfo(np.int64).max == module.SEED_MAX
    torch.Generator().manual_seed(module.SEED_MAX)


def test_a_run_takes_every_number_within_its_range() -> None:
    at_ends = TrainingRunOptions(threads=1024, checkpoint_minutes=0.0, minutes=0.0)
    assert (at_ends.device, at_ends.tensorboard) == ("auto", False)
    for name, value in (
        ("threads", 1025),
        ("threads", -1),
        ("minutes", -1e-9),
        ("minutes", math.nan),
        ("checkpoint_minutes", math.inf),
    ):
        with pytest.raises(AirworthyError, match=f"^{name} is {value}"):
            TrainingRunOptions(**{name: value})  # type: ignore[arg-type]
    with pytest.raises(AirworthyError, match=re.escape("threads is 1025; expected 0 to 1,024.")):
        TrainingRunOptions(threads=1025)


# ---- tensors of a network while it learns ------------------------------------------------------------------------------------


def learning(steps: int = 2) -> tuple[Any, Any, dict[str, Any]]:
    """Return a small network that Adam has taken some steps with, Adam, and the parameters that learn: not the bias."""
    model = torch.nn.Linear(3, 2)
    with torch.no_grad():
        model.weight.copy_(torch.arange(6.0).reshape(2, 3))
        model.bias.fill_(0.5)
    trained = {"weight": model.weight}
    adam = torch.optim.Adam(trained.values(), lr=0.1)
    for _ in range(steps):
        stepped(model, adam)
    return model, adam, trained


def stepped(model: Any, adam: Any) -> None:
    adam.zero_grad()
    model(torch.tensor([[1.0, -2.0, 0.5]])).square().sum().backward()
    adam.step()


def test_the_best_epoch_stays_when_the_model_learns_on() -> None:
    model, adam, _ = learning()
    state = ModelState(model, torch.device("cpu"))
    assert state.chosen("best").keys() == {"weight", "bias"}  # no best epoch yet: the model as it is
    assert np.array_equal(state.weights("best")["weight"], model.weight.detach().numpy())
    state.keep_best()
    before = model.weight.detach().numpy().copy()
    stepped(model, adam)
    assert np.array_equal(state.weights("best")["weight"], before)
    last = state.weights("last")
    assert np.array_equal(last["weight"], model.weight.detach().numpy())
    assert not np.array_equal(last["weight"], before)
    stepped(model, adam)
    assert not np.array_equal(last["weight"], model.weight.detach().numpy()), "arrays of their own"


def test_what_was_saved_learns_on_to_the_same_bits() -> None:
    model, adam, trained = learning()
    state = ModelState(model, torch.device("cpu"))
    state.keep_best()
    kept = state.arrays(trained, adam)
    moments = {f"adam.weight.{name}" for name in ("step", "exp_avg", "exp_avg_sq")}
    assert kept.keys() == {"model.weight", "model.bias", "best.weight", "best.bias", *moments}
    assert kept["adam.weight.step"] == 2
    held = {name: value.copy() for name, value in kept.items()}

    other, fresh, names = learning(steps=0)
    again = ModelState(other, torch.device("cpu"))
    again.restore(kept)
    again.restore_moments(kept, names, fresh)
    assert torch.equal(again.best["weight"], state.best["weight"])
    for one, by in ((model, adam), (other, fresh)):
        stepped(one, by)
    assert torch.equal(model.weight, other.weight)
    assert all(np.array_equal(kept[name], held[name]) for name in held), "a checkpoint does not change with what is restored"


def test_without_a_best_epoch_and_without_moments_none_are_kept_or_made() -> None:
    model, adam, trained = learning(steps=0)
    state = ModelState(model, torch.device("cpu"))
    kept = state.arrays(trained, adam)
    assert kept.keys() == {"model.weight", "model.bias"}
    state.keep_best()
    state.restore(kept)
    assert state.best == {}
    state.restore_moments(kept, trained, adam)
    assert len(adam.state) == 0


@pytest.mark.parametrize(("device", "moved"), [("cpu", []), ("cuda:1", ["cuda:1"])])
def test_adam_counts_on_the_gpu_only_where_it_learns_there(
    device: str, moved: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, adam, trained = learning()
    kept = ModelState(model, torch.device("cpu")).arrays(trained, adam)
    asked = list[str]()

    def to(tensor: Any, where: Any) -> Any:
        asked.append(str(where))
        return tensor

    monkeypatch.setattr(torch.Tensor, "to", to)
    other, fresh, names = learning(steps=0)
    ModelState(other, torch.device(device)).restore_moments(kept, names, fresh)
    assert asked == moved
    assert fresh.state[other.weight]["step"].shape == ()


# ---- where it computes -------------------------------------------------------------------------------------------------------


def test_a_machine_tells_what_another_had_otherwise() -> None:
    assert HERE.differences({"device": "cpu", "threads": 2, "precision": "float32", "torch": "2.0", "airworthy": "1.0"}) == []
    before = {"device": "cuda:0", "threads": 2, "precision": "float32", "torch": "2.0"}
    assert HERE.differences(before) == ["device cuda:0, now cpu", "airworthy None, now 1.0"]


@pytest.mark.parametrize(
    ("asked", "before", "threads"),
    [
        (0, None, 5),
        (3, None, 3),
        (0, {"threads": 7}, 7),
        (3, {"threads": 7}, 3),
        (0, {"threads": "7"}, 5),
        (0, {"threads": 0}, 5),
        (0, {}, 5),
    ],
)
def test_threads_are_those_asked_for_then_those_it_began_with(
    asked: int, before: dict[str, Any] | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_processors", lambda: 5)
    found = machine_for(TrainingRunOptions("cpu", threads=asked), before=before)
    assert found == Machine("cpu", threads, "float32", torch.__version__, __version__)


def test_processors_are_those_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "sys", SimpleNamespace(platform="linux"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 8} if pid == 0 else set(), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert module._processors() == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(), raising=False)
    assert module._processors() == 1
    monkeypatch.setattr(module, "sys", SimpleNamespace(platform="darwin"))
    assert module._processors() == 64
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert module._processors() == 1


@pytest.mark.parametrize(
    ("asked", "count", "found"),
    [
        ("auto", 0, "cpu"),
        ("auto", 2, "cuda:0"),
        ("cpu", 2, "cpu"),
        ("cpu:0", 0, "cpu"),
        ("cuda", 1, "cuda:0"),
        ("cuda:0", 1, "cuda:0"),
        ("cuda:1", 2, "cuda:1"),
    ],
)
def test_devices_by_their_names(asked: str, count: int, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, count)
    assert machine_for(TrainingRunOptions(asked, threads=1)).device == found


@pytest.mark.parametrize(
    ("asked", "count", "said"),
    [
        ("gpu", 1, "There is no device 'gpu'; expected cpu, cuda, cuda:1, or auto."),
        ("meta", 1, "Networks are trained on cpu or cuda, not on 'meta'."),
        ("cuda", 0, "Device 'cuda' was asked for, but torch sees 0 GPUs here; use --device cpu."),
        ("cuda:1", 1, "Device 'cuda:1' was asked for, but torch sees 1 GPUs here; use --device cpu."),
        ("cuda:2", 1, "Device 'cuda:2' was asked for, but torch sees 1 GPUs here; use --device cpu."),
    ],
)
def test_devices_that_are_not_there_are_refused(asked: str, count: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, count)
    with pytest.raises(AirworthyError) as caught:
        machine_for(TrainingRunOptions(asked))
    assert str(caught.value) == said


def test_a_driver_that_counts_gpus_torch_cannot_use_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 4)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(AirworthyError, match="torch sees 0 GPUs here"):
        machine_for(TrainingRunOptions("cuda:1"))


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ("processor\t: 0\nflags\t\t: fpu sse avx512_bf16\n", "bfloat16"),
        ("flags : amx_bf16 fpu", "bfloat16"),
        ("Features\t: fp asimd bf16", "bfloat16"),
        ("flags\t: fpu avx512f bf16x", "float32"),
        ("model name\t: bf16\nflags\t: fpu", "float32"),
        ("", "float32"),
        (None, "float32"),
    ],
)
def test_precision_follows_the_processor(text: str | None, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 0, bfloat16=True)
    run = TrainingRunOptions("cpu", threads=1)
    cpuinfo(monkeypatch, text)
    assert machine_for(run, "auto").precision == precision
    assert [machine_for(run, asked).precision for asked in ("float32", "bfloat16")] == ["float32", "bfloat16"]


@pytest.mark.parametrize(("able", "precision"), [(True, "bfloat16"), (False, "float32")])
def test_precision_follows_the_gpu(able: bool, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 1, bfloat16=able)
    cpuinfo(monkeypatch, "flags : fpu" if able else "flags : amx_bf16")
    assert machine_for(TrainingRunOptions("cuda", threads=1), "auto").precision == precision


# ---- torch, set up and left as it was found ----------------------------------------------------------------------------------


def settings() -> tuple[int, bool, bool]:
    """What `computing` sets: threads, one order of sums, filling of new memory."""
    filled = torch.utils.deterministic.fill_uninitialized_memory
    return torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), filled


@pytest.fixture(params=[(1, False, True), (3, True, False)])
def before(request: pytest.FixtureRequest) -> Any:
    """Torch as it is found, in two ways."""
    entry = settings()
    apply(request.param)
    yield request.param
    apply(entry)


def apply(values: tuple[int, bool, bool]) -> None:
    torch.set_num_threads(values[0])
    torch.use_deterministic_algorithms(values[1])
    torch.utils.deterministic.fill_uninitialized_memory = values[2]


def test_torch_is_set_up_for_a_processor_and_left_as_it_was(before: tuple[int, bool, bool]) -> None:
    with computing(HERE) as device:
        assert device == torch.device("cpu")
        assert settings() == (2, True, False)
    assert settings() == before
    with pytest.raises(KeyboardInterrupt), computing(HERE):
        raise KeyboardInterrupt
    assert settings() == before


def test_on_a_gpu_sums_keep_their_order_and_threads_are_set(before: tuple[int, bool, bool]) -> None:
    with computing(Machine("cuda:1", 2, "float32", "2.0")) as device:
        assert device == torch.device("cuda", 1)
        assert settings() == (2, *before[1:])
    assert settings() == before
