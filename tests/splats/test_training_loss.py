"""The loss of images against SciPy in float64 and differences."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.rendering.refining import image_psnr, image_ssim
from airworthy.splats.training import ImageLoss
from airworthy.splats.training.image_loss import likeness_map


def plain(image: np.ndarray, truth: np.ndarray, share: float) -> float:
    alike = np.mean([likeness_map(a, b).mean() for a, b in zip(image, truth, strict=True)])
    return float((1.0 - share) * np.abs(image - truth).mean() + share * (1.0 - alike))


@pytest.mark.parametrize("shape", [(1, 20, 33), (2, 17, 5), (1, 3, 64), (3, 12, 16)])
def test_loss_equals_the_plain_one(shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(sum(shape))
    truth = rng.random((*shape, 3))
    image = np.clip(truth + 0.2 * rng.normal(size=truth.shape), 0.0, 1.2)
    for share in (0.0, 0.2, 1.0):
        value, _ = ImageLoss(share)(image.astype(np.float32), truth.astype(np.float32))
        # Variances are differences of float32 means (6e-8) over the constant 9e-4: 1e-4 at worst in a pixel, less on average.
        assert value == pytest.approx(plain(image, truth, share), abs=2e-6)


def test_derivative_equals_differences() -> None:
    rng = np.random.default_rng(1)
    truth = rng.random((1, 15, 18, 3))
    image = np.clip(truth + 0.2 * rng.normal(size=truth.shape), 0.0, 1.2).astype(np.float32)
    _, slope = ImageLoss(0.2)(image, truth.astype(np.float32))
    for _ in range(40):
        at = tuple(int(rng.integers(n)) for n in image.shape)
        values = []
        for step in (1e-6, -1e-6):
            moved = image.astype(np.float64)
            moved[at] += step
            values.append(plain(moved, truth.astype(np.float32).astype(np.float64), 0.2))
        # Differences of float64 lose 1e-16 / 2e-6; the kernel's float32 variances 1e-4 of the slope.
        assert slope[at] == pytest.approx((values[0] - values[1]) / 2e-6, rel=2e-3, abs=2e-8)


def test_equal_images_lose_nothing() -> None:
    image = np.random.default_rng(2).random((1, 24, 40, 3)).astype(np.float32)
    value, slope = ImageLoss(0.2)(image, image)
    assert abs(value) < 1e-6
    assert float(np.abs(slope).max()) * slope.size < 1e-2  # a slope per pixel is at most about 1 / size
    assert image_ssim(image[0], image[0]) == pytest.approx(1.0, abs=1e-12)
    assert image_psnr(image[0], image[0]) == pytest.approx(120.0)


def test_threads_do_not_matter() -> None:
    rng = np.random.default_rng(4)
    image, truth = (rng.random((1, 60, 70, 3)).astype(np.float32) for _ in range(2))
    one, several = ImageLoss(0.2, threads=1), ImageLoss(0.2, threads=3)
    for _ in range(4):  # after some launches the work is split
        first, second = one(image, truth), several(image, truth)
        assert first[0] == second[0]
        assert first[1].tobytes() == second[1].tobytes()


def test_similarity_of_shifted_brightness_is_the_closed_form() -> None:
    # Constant images: no variance, so only the term of the means stays.
    a, b = np.full((20, 20, 3), 0.5), np.full((20, 20, 3), 0.6)
    assert image_ssim(a, b) == pytest.approx((2 * 0.5 * 0.6 + 1e-4) / (0.5**2 + 0.6**2 + 1e-4), abs=1e-9)
    assert image_psnr(a, b) == pytest.approx(20.0, abs=1e-6)


def test_masked_pixels_do_not_count() -> None:
    rng = np.random.default_rng(5)
    truth = rng.random((30, 30, 3))
    image, mask = truth.copy(), np.ones((30, 30), bool)
    image[:10], mask[:15] = 0.0, False
    assert image_psnr(image, truth, mask) == pytest.approx(120.0)
    assert image_ssim(image, truth, mask) == pytest.approx(1.0, abs=1e-12)
