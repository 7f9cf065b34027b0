"""What is done to images while a network learns: light, noise, and things that do not belong there."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from airworthy.core.errors import AirworthyError  # noqa: E402
from airworthy.learning.svnet.data_loader import normalized, pasted  # noqa: E402
from airworthy.learning.svnet.options import SvNetOptions  # noqa: E402


def images(count: int = 400, side: int = 24) -> torch.Tensor:
    drawn = np.random.default_rng(0).random((count, 3, side, side))
    return torch.from_numpy(drawn.astype(np.float32))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_so_many_images_get_something_pasted_and_the_rest_stays() -> None:
    x = images()
    y = pasted(x, generator(), 0.5)
    changed = (x != y).any(1)
    share = float(changed.flatten(1).any(1).float().mean())
    # Of 400 with a chance of 0.5 each, less those of which no piece is used (0.4^4 = 2.6 %): 4 standard deviations are 0.1.
    assert share == pytest.approx(0.5 * (1.0 - 0.4**4), abs=0.1)
    # Whole pixels are replaced, and never all of an image.
    assert bool((changed == (x != y).all(1)).all())
    assert float(changed.float().flatten(1).mean(1).max()) < 0.9


def test_what_is_pasted_is_plain_or_of_another_image() -> None:
    x = images()
    y = pasted(x, generator(), 1.0)
    other = x.roll(1, 0).flip(3)
    changed = (x != y).any(1)
    kinds = set()
    for image, source, mask in zip(y, other, changed, strict=True):
        if not mask.any():
            continue
        new = image[:, mask]
        if bool((new == source[:, mask]).all()):
            kinds.add("other")
        else:
            assert bool((new == new[:, :1]).all())
            kinds.add("plain")
    assert kinds == {"other", "plain"}


def test_it_is_a_function_of_the_generator() -> None:
    x = images(16)
    assert torch.equal(pasted(x, generator(3), 0.5), pasted(x, generator(3), 0.5))
    assert not torch.equal(pasted(x, generator(3), 0.5), pasted(x, generator(4), 0.5))
    assert torch.equal(pasted(x, generator(3), 0.0), x)


def test_judged_images_are_not_touched() -> None:
    shown = (images(8) * 255).byte().permute(0, 2, 3, 1).contiguous()
    plain = normalized(shown)
    assert torch.equal(plain, normalized(shown, None, 0.5, 3.0, 1.0))
    assert not torch.equal(plain, normalized(shown, generator(), 0.0, 0.0, 1.0))


def test_the_share_is_checked() -> None:
    with pytest.raises(AirworthyError, match=r"paste is 1\.5; expected 0 to 1"):
        SvNetOptions(paste=1.5)


def test_a_training_from_before_the_option_goes_on() -> None:
    before = asdict(SvNetOptions())
    del before["paste"]
    assert SvNetOptions().differences(before) == []
    assert SvNetOptions(paste=0.5).differences(before) == ["paste was 0.0, not 0.5"]


def test_what_is_pasted_lies_as_often_at_one_end_of_an_image_as_at_the_other() -> None:
    """Pieces stick out on all sides alike: over 4000 images the shares of both ends agree to a tenth."""
    x = images(4_000, 12)
    covered = (x != pasted(x, generator(), 1.0)).any(1).float().mean(0)
    for lines in (covered.mean(0), covered.mean(1)):
        assert float(lines[:4].mean() / lines[-4:].mean()) == pytest.approx(1.0, abs=0.1)
