"""What a policy's folder holds: `weights.safetensors`, and `contract.json`, which says what the numbers mean.

Both come from strangers, perhaps: sizes are bounded before anything is read, every tensor is compared with its variant, and
whatever does not fit is refused in one sentence. See `airworthy.pilots.network_files`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError, AssetError, telling_refusals, unknown_name
from airworthy.core.schema import Bound, Length, check_fields, number
from airworthy.pilots import network_files
from airworthy.pilots.network_files import (
    CONTRACT_FILE,
    CONTRACT_LIMIT_BYTES,
    WEIGHTS_FILE,
    ContractTable,
    contract_and_weights,
    folder_contract,
    read_weights,
    write_network_files,
)
from airworthy.pilots.svnet import contract_text as text
from airworthy.pilots.svnet.contract_text import ports_of
from airworthy.pilots.svnet.features import HISTORY_TICKS, IMAGE_MEAN, IMAGE_STD, Form
from airworthy.pilots.svnet.setting import PolicySetting, read_setting, setting_table
from airworthy.pilots.svnet.variants import least_size, tensor_shapes, variant
from airworthy.sensors.carried import policy_cut

__all__ = [
    "CONTRACT_FILE",
    "CONTRACT_KEY",
    "CONTRACT_LIMIT_BYTES",
    "SHIPPED",
    "WEIGHTS_FILE",
    "PolicyContract",
    "PolicyImage",
    "checked_tensors",
    "contract_and_digest",
    "contract_from",
    "policy_folder",
    "policy_tensors",
    "ports_of",
    "read_contract",
    "read_policy",
    "shipped_name",
    "shipped_policy",
    "tensor_bytes",
    "write_policy",
]

# ---- Policies that come with the package, and where a policy's word leads ---------------------------------------------------

SHIPPED = {"hall": "the course robustness in the hall: through the gate, under the ladder, to the monitor"}
"""Name -> what it flies. How each was trained: docs/concepts/policies.md."""
DEFAULT = "hall"


def shipped_policy(name: str = DEFAULT) -> Path:
    """Return the folder of a policy that comes with the package.

    Raises:
        UnknownNameError: There is none of this name.
        AssetError: It is not where it was installed.
    """
    if name not in SHIPPED:
        raise unknown_name("shipped policy", name, SHIPPED)
    folder = Path(str(files("airworthy.pilots.svnet").joinpath("assets", name)))
    if not folder.is_dir():
        raise AssetError(f"The policy {name!r} is missing from the installation: install airworthy again.")
    return folder


def shipped_name(folder: Path) -> str:
    """Return the name of a shipped policy by its folder; empty where it is another folder."""
    return next((name for name in SHIPPED if folder == shipped_policy(name)), "")


@telling_refusals()
def policy_folder(specifier: str) -> Path:
    """Return where a policy lies that is named behind `svnet:`.

    Args:
        specifier: A folder; or, where there is no such folder, the name of a shipped policy; empty: the first of these.

    Raises:
        AssetError: There is neither a folder nor a shipped policy of this name.
    """
    if not specifier:
        return shipped_policy()
    folder = Path(specifier)
    if folder.is_dir():
        return folder
    if specifier in SHIPPED:
        return shipped_policy(specifier)
    names = ", ".join(SHIPPED)
    raise AssetError(
        f"{specifier!r} is no folder; svnet:FOLDER names what `airworthy train svnet` wrote, or a shipped policy: {names}."
    )


# -----------------------------------------------------------------------------------------------------------------------------
# The tensors of a policy in safetensors: compared with their variant before and after they are in a file.


def tensor_bytes(weights: Mapping[str, ArrayAny], name: str) -> bytes:
    """Return a safetensors file of a variant's tensors, in alphabetical order: equal tensors are equal bytes.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    return network_files.tensor_bytes(weights, tensor_shapes(name), _whose(name))


def checked_tensors(data: bytes, name: str, where: str) -> dict[str, ArrayF32]:
    """Return tensors of a safetensors file, which the caller has bounded.

    Args:
        data: Of the file.
        name: Of the variant, which has the shapes.
        where: What messages call the file.

    Raises:
        AssetError: It is damaged, or its tensors are not the variant's.
    """
    return network_files.checked_tensors(data, tensor_shapes(name), _whose(name), where)


def _whose(name: str) -> str:
    return f" of variant {name!r}"


# -----------------------------------------------------------------------------------------------------------------------------

# Ours; the version rises when a folder written before would be read wrongly.
KIND, VERSION = "airworthy-svnet", 2
FIRST_VERSION = 1
"""Still read: shapes, units and frames, but neither camera mount, resizing, bounds, objectives nor an example."""
CONTRACT_KEY = "airworthy_contract"
"""Of an exported model's metadata; the value is the text of contract.json."""
WEIGHTS_LIMIT_BYTES = 16 * 1024 * 1024
"""Twice what the largest variant takes."""
# Ours: work memory of the backbone grows with the square; published policies have 224.
SIDE_MAX = 1024
FOCAL_MIN = 1.0
"""Of a view [px]; a lens of less would see nearly half a sphere in every pixel."""
# Ours: a principal point may lie far outside of an image; beyond this it is a mistake.
_PIXELS_MAX = 1e6
_Focal = Annotated[float, Bound(FOCAL_MIN, _PIXELS_MAX, "px", below=True)]
_Centre = Annotated[float, Bound(-_PIXELS_MAX, _PIXELS_MAX, "px", above=True, below=True)]
# Ours: images are divided by 255; statistics of such numbers are far smaller, and a deviation near 0 would overflow float32.
_Mean = Annotated[tuple[float, ...], Bound(-1e3, 1e3, above=True, below=True), Length(3, 3)]
_Deviation = Annotated[tuple[float, ...], Bound(1e-3, 1e3, below=True), Length(3, 3)]


@dataclass(frozen=True)
class PolicyImage:
    """The image that the policy was shown: a pinhole's, without distortion.

    The default is SOUS VIDE's: the reference drone's 640 x 360 image resized to 256 x 256, its middle 224 x 224.

    Raises:
        AirworthyError: If a number is out of range.
    """

    width: int = 224
    """[px]"""
    height: int = 224
    fx: _Focal = 185.1824
    """[px]"""
    fy: _Focal = 329.24586666666664
    cx: _Centre = 113.2304
    """From the left edge of the image [px]."""
    cy: _Centre = 112.84195555555556

    def __post_init__(self) -> None:
        check_fields(self, "View.")
        sides = Bound(least_size(), SIDE_MAX, "px")
        for name in ("width", "height"):
            number(getattr(self, name), f"View.{name}", sides, whole=True)

    @classmethod
    def of_side(cls, side: int) -> PolicyImage:
        """Return the published view in other pixels, `side` of them along each side."""
        share = side / 224
        fx, fy, cx, cy = (value * share for value in (cls.fx, cls.fy, cls.cx, cls.cy))
        return cls(side, side, fx, fy, cx, cy)


@dataclass(frozen=True)
class PolicyContract:
    """What a policy reads and gives, and where it comes from.

    Raises:
        AirworthyError: If a number is out of range.
        UnknownNameError: There is no such variant.
    """

    variant: str = "sv_net"
    view: PolicyImage | None = field(default_factory=PolicyImage)
    """None for a variant that does not see."""
    rate: Annotated[float, Bound(1.0, 1000.0, "Hz")] = 20.0
    """Decisions per second [Hz]; the time between two ticks of the history."""
    history: Form = "paper"
    """Form of the history's position rows."""
    image_mean: _Mean = IMAGE_MEAN
    """Taken off red, green, blue in [0, 1]."""
    image_std: _Deviation = IMAGE_STD
    """By which they are then divided."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Configuration of the training; free."""
    data: str = ""
    """Digest of the data that it learnt from."""
    notes: str = ""
    """A sentence or two for people."""
    setting: PolicySetting | None = None
    """Vehicle, camera and courses that it learnt from; None: nobody told."""
    version: int = VERSION
    """Of the contract that it was read from."""

    @property
    def migration(self) -> str:
        """What to do about a contract of an earlier version, in a sentence; empty for one of this version."""
        if self.version == VERSION:
            return ""
        return (
            f"Its contract is of version {self.version}, which flies here as before, but does not say all that another program"
            f" needs; `airworthy seal FOLDER` rewrites it as version {VERSION}, the weights untouched."
        )

    @property
    def image_size(self) -> tuple[int, int] | None:
        """Rows and columns of the image; None of a variant that does not see."""
        return None if self.view is None else (self.view.height, self.view.width)

    def __post_init__(self) -> None:
        check_fields(self, "Contract.")
        kind = variant(self.variant)
        if kind.vision and self.view is None:
            raise AirworthyError(f"A contract of variant {self.variant!r}, which sees, has no view.")


def write_policy(folder: str | Path, contract: PolicyContract, weights: Mapping[str, ArrayAny]) -> Path:
    """Write a policy's folder; the contract last, so that a folder with one is whole.

    Args:
        folder: Made where it is missing.
        contract: What it means.
        weights: Tensors by the names of `variants.tensor_shapes`, float32.

    Returns:
        The folder.

    Raises:
        AirworthyError: A tensor is missing, superfluous, of another shape, or not finite.
    """
    # The example is flown by the pilot, which needs this file first.
    from airworthy.pilots.svnet.example import worked_example

    data = tensor_bytes(weights, contract.variant)
    example = worked_example(contract, checked_tensors(data, contract.variant, "the weights"))
    return write_network_files(folder, data, lambda file: _table(contract, file, example))


def read_contract(folder: str | Path) -> PolicyContract:
    """Return the contract of a policy's folder, without its weights; raises AssetError as `read_policy`."""
    return _read(Path(folder))[0]


def read_policy(folder: str | Path) -> tuple[PolicyContract, dict[str, ArrayF32]]:
    """Return contract and tensors of a policy's folder.

    Raises:
        AssetError: A file is missing, too large, damaged, of another variant, or not the one that the contract names.
    """
    where = Path(folder)
    contract, digest = _read(where)
    return contract, policy_tensors(contract, read_weights(where, digest, WEIGHTS_LIMIT_BYTES), where)


def policy_tensors(contract: PolicyContract, data: bytes, folder: str | Path) -> dict[str, ArrayF32]:
    """Return tensors of the file of weights of a folder; raises AssetError where they are others.

    Args:
        contract: Names the variant.
        data: Of the file of weights.
        folder: That it comes from, for messages.
    """
    return checked_tensors(data, contract.variant, str(Path(folder) / WEIGHTS_FILE))


def _read(folder: Path) -> tuple[PolicyContract, str]:
    """Contract of a folder and the digest of its weights."""
    return contract_and_digest(*folder_contract(folder, "a policy"))


def contract_from(table: Any, where: str) -> PolicyContract:
    """Return the contract in a parsed contract.json; raises AssetError where it cannot be used, `where` being its place in
    words.
    """
    return contract_and_digest(table, where)[0]


def _table(contract: PolicyContract, weights: Mapping[str, Any], example: Mapping[str, Any]) -> dict[str, Any]:
    """Content of contract.json."""
    kind = variant(contract.variant)
    inputs, outputs = ports_of(kind, contract.image_size)
    head = {"kind": KIND, "version": VERSION, "variant": contract.variant, "summary": kind.summary}
    view = contract.view if kind.vision else None
    return {
        **head,
        "rate_hz": contract.rate,
        "frames": text.frames_table(kind),
        "tick": text.tick_table(contract.rate),
        "history": text.history_table(contract.history),
        "objective": text.OBJECTIVE_RULE,
        "command": text.command_table(),
        "view": None if view is None else asdict(view),
        "resize": None if view is None else _resize(view),
        "image": text.image_table(contract.image_mean, contract.image_std) if view is not None else None,
        "setting": setting_table(contract.setting),
        "inputs": inputs,
        "outputs": outputs,
        "network": text.network_table(kind),
        "weights": dict(weights),
        "data": contract.data,
        "training": dict(contract.training),
        "notes": contract.notes,
        "example": dict(example),
    }


def _resize(view: PolicyImage) -> dict[str, Any] | None:
    """Return how whole images become a view; None: it is no cut of one, and images come at the view alone."""
    cut = policy_cut(view.width, view.height)
    return None if cut is None else text.resize_table(cut.resized, cut.corner, cut.size)


def contract_and_digest(table: Any, where: str) -> tuple[PolicyContract, str]:
    """Return contract and the digest of its weights; raises AssetError as `contract_from`."""
    first = isinstance(table, dict) and table.get("version") == FIRST_VERSION
    version = FIRST_VERSION if first else VERSION
    return contract_and_weights(table, where, "a contract of SV-Net", (KIND, version), _fields)


def _fields(table: ContractTable) -> PolicyContract:
    name, version = table.entry("variant", str), table.entry("version", int)
    kind = variant(name)
    table.must_be("history.ticks", HISTORY_TICKS)
    image: dict[str, Any] = {}
    if kind.vision:
        numbers = tuple[float, ...]
        image = {"image_mean": table.entry("image.mean", numbers), "image_std": table.entry("image.std", numbers)}
    contract = PolicyContract(
        name,
        table.entry("view", PolicyImage) if kind.vision else None,
        table.entry("rate_hz", float),
        table.entry("history.form", Form),
        training=table.entry("training", dict[str, Any], {}),
        data=table.entry("data", str, ""),
        notes=table.entry("notes", str, ""),
        setting=None if version == FIRST_VERSION else read_setting(table),
        version=version,
        **image,
    )
    if version != FIRST_VERSION:
        _check_rules(table, contract)
    # Names and shapes must be ours; what people wrote about them is free.
    for side, ports in zip(("inputs", "outputs"), ports_of(kind, contract.image_size), strict=True):
        table.must_be(side, [{"name": port["name"], "shape": port["shape"]} for port in ports], exact=False)
    return contract


def _check_rules(table: ContractTable, contract: PolicyContract) -> None:
    """Refuse other numbers than those by which this program flies; words about them are free."""
    bounds = text.command_table()
    table.must_be("command", {side: bounds[side] for side in ("low", "high")}, exact=False)
    table.must_be("tick", {"rate_hz": contract.rate, "early": text.EARLY}, exact=False)
    if contract.view is None or not variant(contract.variant).vision:
        return
    wanted = _resize(contract.view)
    numbers = None if wanted is None else {name: wanted[name] for name in ("resized", "corner", "size")}
    table.must_be("resize", numbers, exact=False)
