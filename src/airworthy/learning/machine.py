"""Where a training computes: device, threads, precision, and torch set so that the same run gives the same bits."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, asdict, dataclass, fields, is_dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy import __version__
from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields

if TYPE_CHECKING:
    # Options are read by commands that train nothing: torch is loaded by what computes.
    import torch
    from torch import Tensor

__all__ = [
    "COUNT_MAX",
    "SEED_MAX",
    "Machine",
    "ModelState",
    "TrainingOptions",
    "TrainingRunOptions",
    "computing",
    "machine_for",
]

# -----------------------------------------------------------------------------------------------------------------------------
# What the options of all trainings have in common: how they are checked and compared, where and for how long one runs.

# Ours: beyond it products of counts would leave 64 bits.
COUNT_MAX = 1_000_000_000
"""Of epochs, of rows in a minibatch, of minibatches."""
# Ours: kept in 64 bits with a sign; torch's generators would take twice as many.
SEED_MAX = (1 << 63) - 1
THREADS_MAX = 1024
"""More than any machine has; torch would take memory for each before it asks whether there is so much."""


@dataclass(frozen=True)
class TrainingOptions:
    """What is learnt, and how: the fields are each training's own."""

    def differences(self, before: Mapping[str, Any]) -> list[str]:
        """Return fields in which an earlier training differs, in words."""
        # An option that an earlier version did not have was at its default.
        now, then = (
            _held(asdict(self)),
            _held({item.name: _earlier(item, getattr(self, item.name), before) for item in fields(self)}),
        )
        return [
            f"{_GIVEN.get(name, name)} was {_shown(then[name], now[name])}, not {_shown(now[name], then[name])}"
            for name in now
            if then[name] != now[name]
        ]

    def _check_within(self, name: str, least: float, most: float) -> None:
        if not least <= getattr(self, name) <= most:
            raise AirworthyError(f"{name} is {getattr(self, name)}; expected {least:,} to {most:,}.")

    def _check_rates(self, *names: str) -> None:
        for name in names:
            if not 0.0 < getattr(self, name) <= 1.0:
                raise AirworthyError(f"{name} is {getattr(self, name)}; expected above 0, up to 1.")

    def _check_shares(self, *names: str) -> None:
        for name in names:
            if not 0.0 <= getattr(self, name) < 1.0:
                raise AirworthyError(f"{name} is {getattr(self, name)}; expected 0 or more, below 1.")


def _default(item: Field[Any]) -> Any:
    return item.default if item.default_factory is MISSING else item.default_factory()


def _earlier(item: Field[Any], now: Any, before: Mapping[str, Any]) -> Any:
    """Return what an earlier training had of a field; of a record inside it what was not there yet is at its default, too.

    Defaults are those of the kind of record that there is now, which may be another than the field's own default.
    """
    told = before[item.name] if item.name in before else _default(item)
    if is_dataclass(now) and not isinstance(now, type) and isinstance(told, Mapping):
        return {**told, **{inner.name: _default(inner) for inner in fields(now) if inner.name not in told}}
    return told


def _held(value: Any) -> Any:
    """Return a value as it is whether it was just made or comes back from JSON, which has lists for tuples."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {key: _held(inner) for key, inner in value.items()}
    return tuple(_held(inner) for inner in value) if isinstance(value, list | tuple) else value


_GIVEN = {"randomization": "randomize", "options": "option"}
"""What fields are called that are given as words: --randomize mass=0.1, --option rate=50."""


def _shown(value: Any, other: Any) -> str:
    """Write a value; of several by name those that the other has otherwise, as they are given: mass=0.1."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        apart = [f"{name}={inner}" for name, inner in value.items() if name not in other or other[name] != inner]
        return " ".join(apart) or "none"
    return "none" if value == "" else str(value)


@dataclass(frozen=True)
class TrainingRunOptions:
    """Where a training runs, and for how long; it can be stopped here and go on there.

    Raises:
        AirworthyError: If a number is out of range.
    """

    device: str = "auto"
    """cpu, cuda, cuda:1; auto: a GPU where there is one."""
    threads: int = 0
    """Of the CPU; 0: all it has. A training goes on with the number it began with."""
    checkpoint_minutes: float = 5.0
    """Between two checkpoints [min]."""
    minutes: float = 0.0
    """Stop after this long, with a checkpoint to go on from [min]; 0: when it is finished."""
    tensorboard: bool = False
    """Write curves for TensorBoard, too."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.threads <= THREADS_MAX:
            raise AirworthyError(f"threads is {self.threads}; expected 0 to {THREADS_MAX:,}.")
        for name in ("checkpoint_minutes", "minutes"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) >= 0.0):
                raise AirworthyError(f"{name} is {getattr(self, name)}; expected 0 or more.")


# -----------------------------------------------------------------------------------------------------------------------------
# A network while it learns: its tensors, those of its best epoch, and Adam's moments, as arrays of a checkpoint.

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


class ModelState:
    """What of a training is tensors.

    Args:
        model: That learns.
        device: Where it lies.
    """

    def __init__(self, model: torch.nn.Module, device: torch.device):
        self.model, self._device = model, device
        self.best: dict[str, Tensor] = {}
        """Tensors of the best epoch so far; empty before there is one."""

    def keep_best(self) -> None:
        """Take the model's tensors as they are for those of the best epoch."""
        # Copies: the optimizer changes the model's tensors in place.
        self.best = {key: value.detach().clone() for key, value in self.model.state_dict().items()}

    def chosen(self, kind: str) -> dict[str, Tensor]:
        """Return tensors of the "best" epoch, or of the "last"."""
        return self.best if kind == "best" and self.best else dict(self.model.state_dict())

    def weights(self, kind: str) -> dict[str, ArrayF32]:
        """Return the same as arrays of their own."""
        return _arrays(self.chosen(kind))

    def arrays(self, trained: Mapping[str, Tensor], adam: torch.optim.Optimizer) -> dict[str, ArrayAny]:
        """Return everything, by the names of a checkpoint: model.*, best.*, adam.*.

        Args:
            trained: Parameters that learn, by name.
            adam: Their optimizer.
        """
        found = {f"model.{key}": value for key, value in self.model.state_dict().items()}
        found |= {f"best.{key}": value for key, value in self.best.items()}
        for name, parameter in trained.items():
            state = adam.state.get(parameter, {})
            found |= {f"adam.{name}.{key}": state[key] for key in _MOMENTS if key in state}
        return _arrays(found)

    def restore(self, arrays: Mapping[str, ArrayAny]) -> None:
        """Take model and best epoch from what `arrays` gave."""
        self.model.load_state_dict(_under(arrays, "model."))
        self.best = {key: value.to(self._device) for key, value in _under(arrays, "best.").items()}

    def restore_moments(
        self, arrays: Mapping[str, ArrayAny], trained: Mapping[str, Tensor], adam: torch.optim.Optimizer
    ) -> None:
        """Take Adam's moments from what `arrays` gave; a parameter that had none has none.

        Args:
            arrays: From `arrays`.
            trained: Parameters by name.
            adam: Whose moments they become.
        """
        import torch

        moments = _under(arrays, "adam.")
        for name, parameter in trained.items():
            if f"{name}.step" in moments:
                found = {key: torch.empty_like(parameter).copy_(moments[f"{name}.{key}"]) for key in _MOMENTS[1:]}
                step = moments[f"{name}.step"]
                # On a GPU Adam is fused and counts there; else it counts on the processor.
                adam.state[parameter] = {"step": step.to(self._device) if self._device.type == "cuda" else step, **found}


def _arrays(tensors: Mapping[str, Tensor]) -> dict[str, ArrayAny]:
    return {key: value.detach().cpu().numpy().copy() for key, value in tensors.items()}


def _under(arrays: Mapping[str, ArrayAny], head: str) -> dict[str, Tensor]:
    import torch

    return {key[len(head) :]: torch.from_numpy(np.array(value)) for key, value in arrays.items() if key.startswith(head)}


# -----------------------------------------------------------------------------------------------------------------------------

_BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}
"""Of /proc/cpuinfo, where the processor multiplies in bfloat16."""


@dataclass(frozen=True)
class Machine:
    """What the bits of a training depend on besides its options and data."""

    device: str
    """cpu or cuda:N."""
    threads: int
    precision: str
    """float32 or bfloat16, of the image network."""
    torch: str
    airworthy: str = __version__

    def differences(self, before: Mapping[str, Any]) -> list[str]:
        """Return what another machine had otherwise, in words."""
        now = asdict(self)
        return [f"{name} {before.get(name)}, now {now[name]}" for name in now if before.get(name) != now[name]]


def machine_for(run: TrainingRunOptions, precision: str = "float32", before: Mapping[str, Any] | None = None) -> Machine:
    """Return where this run computes; a run that goes on takes the threads it began with, if it was not told otherwise.

    Args:
        run: What was asked for.
        precision: "float32", "bfloat16", or "auto", which takes bfloat16 where the machine computes with it.
        before: The machine on which the training began; None: it begins here.

    Raises:
        AirworthyError: There is no such device.
    """
    import torch

    device = _device(run.device)
    begun = before.get("threads") if before else None
    # Sums of other numbers of threads round otherwise: a training that goes on keeps its own.
    threads = run.threads or (begun if isinstance(begun, int) else 0) or _processors()
    if precision == "auto":
        precision = "bfloat16" if _has_bfloat16(device) else "float32"
    return Machine(device, threads, precision, torch.__version__)


@contextmanager
def computing(machine: Machine) -> Iterator[torch.device]:
    """Set torch up for a training, and leave it as it was found.

    On a CPU every operation is one that gives the same bits on every run. On a GPU the derivative of pooling adds in any
    order, so a repeated training agrees in its course, not in its bits.
    """
    import torch

    device = torch.device(machine.device)
    threads, settled = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory
    torch.set_num_threads(machine.threads)
    if device.type == "cpu":
        torch.use_deterministic_algorithms(True)
        # Filling new memory costs time and changes nothing where every number is written before it is read.
        torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        yield device
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(settled)
        torch.utils.deterministic.fill_uninitialized_memory = filled


def _device(name: str) -> str:
    import torch

    if name == "auto":
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise AirworthyError(f"There is no device {name!r}; expected cpu, cuda, cuda:1, or auto.") from error
    if device.type == "cpu":
        return "cpu"
    if device.type != "cuda":
        raise AirworthyError(f"Networks are trained on cpu or cuda, not on {name!r}.")
    if not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        raise AirworthyError(f"Device {name!r} was asked for, but torch sees {count} GPUs here; use --device cpu.")
    return f"cuda:{device.index or 0}"


def _processors() -> int:
    if sys.platform == "linux":
        # What this process may use, which in a container is less than the machine has.
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def _has_bfloat16(device: str) -> bool:
    import torch

    if device != "cpu":
        return bool(torch.cuda.is_bf16_supported())
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    lines = (line for line in text.splitlines() if line.partition(":")[0].strip().lower() in ("flags", "features"))
    return bool(_BFLOAT16_FLAGS & set(next(lines, "").split()))
