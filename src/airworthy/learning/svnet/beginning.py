"""What a training begins with: random numbers, the backbone of a file, or the networks of a policy that flies already."""

from __future__ import annotations

import torch

from airworthy.core.errors import AirworthyError
from airworthy.core.files import sha256_file
from airworthy.learning.svnet.backbone import read_backbone
from airworthy.learning.svnet.model import SvNet
from airworthy.learning.svnet.options import SvNetOptions
from airworthy.pilots.svnet.contract import WEIGHTS_FILE, Contract, read_policy
from airworthy.pilots.svnet.shipped import policy_folder

__all__ = ["beginning", "beginning_digests"]


def beginning(options: SvNetOptions, precision: str) -> SvNet:
    """The network before its first minibatch.

    Args:
        options: Of the training.
        precision: Of the image network: "float32" or "bfloat16".

    Raises:
        AssetError: There is no such file or policy, or it is damaged.
        AirworthyError: The policy is of another variant, or its history is of another form.
    """
    model = SvNet(options.variant, options.seed)
    model.precision = torch.bfloat16 if precision == "bfloat16" else torch.float32
    if options.weights and model.variant.vision:
        state = {key: torch.from_numpy(value) for key, value in read_backbone(options.weights).items()}
        model.vision.backbone.load_state_dict(state)
    if options.start:
        _take_over(model, options)
    if model.variant.vision:
        model.vision.to(memory_format=torch.channels_last)
    return model


def beginning_digests(options: SvNetOptions) -> dict[str, str | None]:
    """SHA-256 of the files that a training begins with; None where it needs none.

    Raises:
        AssetError: There is no such file.
    """
    start = policy_folder(options.start) / WEIGHTS_FILE if options.start else None
    return {
        "weights_sha256": sha256_file(options.weights) if options.weights else None,
        "start_sha256": sha256_file(start) if start else None,
    }


def _take_over(model: SvNet, options: SvNetOptions) -> None:
    """The policy's tensors; a history network that is to learn begins anew, since its numbers are scaled while it does."""
    folder = policy_folder(options.start)
    contract, weights = read_policy(folder)
    if fault := _fault(contract, options):
        raise AirworthyError(f"The training cannot start from {options.start!r}: {fault}.")
    anew = bool(options.history_epochs) and model.variant.learns_history
    kept = {key: value for key, value in weights.items() if not (anew and key.startswith("history."))}
    state = {key: torch.from_numpy(value) for key, value in kept.items()}
    model.load_state_dict({**model.state_dict(), **state})


def _fault(contract: Contract, options: SvNetOptions) -> str:
    if contract.variant != options.variant:
        return f"it is of variant {contract.variant!r}, and {options.variant!r} is to be trained"
    if contract.history != options.form:
        return f"its history is of the form {contract.history!r}, and {options.form!r} was asked for (--form)"
    return ""
