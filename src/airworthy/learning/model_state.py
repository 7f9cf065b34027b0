"""A network while it learns: its tensors, those of its best epoch, and Adam's moments, as arrays of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["ModelState"]

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
        self.best = {key: value.detach().clone() for key, value in self.model.state_dict().items()}

    def chosen(self, kind: str) -> dict[str, Tensor]:
        """Tensors of the "best" epoch, or of the "last"."""
        return self.best if kind == "best" and self.best else dict(self.model.state_dict())

    def weights(self, kind: str) -> dict[str, NDArray[np.float32]]:
        """The same as arrays of their own."""
        return _arrays(self.chosen(kind))

    def arrays(self, trained: Mapping[str, Tensor], adam: torch.optim.Optimizer) -> dict[str, NDArray[Any]]:
        """Everything, by the names of a checkpoint: model.*, best.*, adam.*.

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

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take model and best epoch from what `arrays` gave."""
        self.model.load_state_dict(_under(arrays, "model."))
        self.best = {key: value.to(self._device) for key, value in _under(arrays, "best.").items()}

    def restore_moments(
        self, arrays: Mapping[str, NDArray[Any]], trained: Mapping[str, Tensor], adam: torch.optim.Optimizer
    ) -> None:
        """Take Adam's moments from what `arrays` gave; a parameter that had none has none."""
        moments = _under(arrays, "adam.")
        for name, parameter in trained.items():
            if f"{name}.step" in moments:
                found = {key: torch.empty_like(parameter).copy_(moments[f"{name}.{key}"]) for key in _MOMENTS[1:]}
                step = moments[f"{name}.step"]
                # On a GPU Adam is fused and counts there; else it counts on the processor.
                adam.state[parameter] = {"step": step.to(self._device) if self._device.type == "cuda" else step, **found}


def _arrays(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    return {key: value.detach().cpu().numpy().copy() for key, value in tensors.items()}


def _under(arrays: Mapping[str, NDArray[Any]], head: str) -> dict[str, Tensor]:
    return {key[len(head) :]: torch.from_numpy(np.array(value)) for key, value in arrays.items() if key.startswith(head)}
