"""Sealing a network's folder that an earlier version wrote: checked as it will be read, then sealed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from airworthy.core.errors import AssetError
from airworthy.core.files import parse_json, read_text
from airworthy.pilots.network_files import CONTRACT_FILE, CONTRACT_LIMIT_BYTES, parse_contract, read_weights, write_sealed

__all__ = ["seal"]


def seal(folder: str | Path) -> Literal["sealed", "rewritten", ""]:
    """Seal the contract of a folder; its text becomes the canonical one, its entries stay.

    One of SV-Net of version 1 becomes version 2: what both say stays, and so do the numbers of the weights.

    Args:
        folder: Of an SV-Net policy, a motor policy, an avoiding policy, a navigation policy or a boundary network.

    Returns:
        "sealed" now; "rewritten" as the newest version; empty where a good seal was there and nothing was to do.

    Raises:
        AssetError: The seal that is there does not fit, or contract or weights are no use.
    """
    from airworthy.gates.planner.contract import KIND as BOUNDARY
    from airworthy.gates.planner.contract import WEIGHTS_LIMIT_BYTES as BOUNDARY_LIMIT
    from airworthy.gates.planner.contract import contract_of, network_tensors
    from airworthy.pilots.avoid_policy.contract import KIND as AVOID
    from airworthy.pilots.avoid_policy.contract import WEIGHTS_LIMIT_BYTES as AVOID_LIMIT
    from airworthy.pilots.avoid_policy.contract import avoid_contract, avoid_tensors
    from airworthy.pilots.motor_policy.contract import KIND as MOTOR
    from airworthy.pilots.motor_policy.contract import WEIGHTS_LIMIT_BYTES as MOTOR_LIMIT
    from airworthy.pilots.motor_policy.contract import motor_contract, motor_tensors
    from airworthy.pilots.navigation_policy.contract import KIND as NAVIGATION
    from airworthy.pilots.navigation_policy.contract import WEIGHTS_LIMIT_BYTES as NAVIGATION_LIMIT
    from airworthy.pilots.navigation_policy.contract import navigation_contract, navigation_tensors
    from airworthy.pilots.svnet.contract import KIND as SVNET
    from airworthy.pilots.svnet.contract import WEIGHTS_LIMIT_BYTES as SVNET_LIMIT
    from airworthy.pilots.svnet.contract import contract_and_digest, policy_tensors, write_policy
    from airworthy.pilots.task_policy.contract import KIND as TASK
    from airworthy.pilots.task_policy.contract import WEIGHTS_LIMIT_BYTES as TASK_LIMIT
    from airworthy.pilots.task_policy.contract import task_contract, task_tensors

    path = Path(folder) / CONTRACT_FILE
    text = read_text(path, CONTRACT_LIMIT_BYTES)
    table: Any = parse_json(text, str(path))
    sealed = isinstance(table, dict) and "seal" in table
    if sealed:
        parse_contract(text, str(path))
    kind = table.get("kind") if isinstance(table, dict) else None
    if kind == BOUNDARY:
        _, digest = contract_of(table, str(path))
        network_tensors(read_weights(folder, digest, BOUNDARY_LIMIT), folder)
    elif kind == SVNET:
        contract, digest = contract_and_digest(table, str(path))
        weights = policy_tensors(contract, read_weights(folder, digest, SVNET_LIMIT), folder)
        if contract.migration:
            write_policy(folder, contract, weights)
            return "rewritten"
    elif kind == MOTOR:
        motor, digest = motor_contract(table, str(path))
        motor_tensors(motor, read_weights(folder, digest, MOTOR_LIMIT), folder)
    elif kind == TASK:
        learnt, digest = task_contract(table, str(path))
        task_tensors(learnt, read_weights(folder, digest, TASK_LIMIT), folder)
    elif kind == AVOID:
        avoiding, digest = avoid_contract(table, str(path))
        avoid_tensors(avoiding, read_weights(folder, digest, AVOID_LIMIT), folder)
    elif kind == NAVIGATION:
        navigating, digest = navigation_contract(table, str(path))
        navigation_tensors(navigating, read_weights(folder, digest, NAVIGATION_LIMIT), folder)
    else:
        known = f"{SVNET!r}, {MOTOR!r}, {TASK!r}, {AVOID!r}, {NAVIGATION!r} or {BOUNDARY!r}"
        raise AssetError(f"{str(path)!r} is a contract of kind {kind!r}; expected {known}."[:500])
    if sealed:
        return ""
    write_sealed(path, table)
    return "sealed"
