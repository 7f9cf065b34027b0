"""EfficientNet-Lite0 up to its block 10 in torch, normalisations folded: the same tensors that the native layers read."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from airworthy.pilots.svnet.lite0 import BLOCKS, STEM, Bottleneck, same_padding

__all__ = ["Lite0Trunk"]


class Lite0Trunk(nn.ModuleDict):
    """Images to features; names of tensors as `airworthy.pilots.svnet.lite0.lite0_shapes`."""

    def __init__(self) -> None:
        blocks = {str(number): _BottleneckLayers(block) for number, block in enumerate(BLOCKS)}
        super().__init__({"stem": nn.Conv2d(3, STEM, 3, stride=2), **blocks})

    def forward(self, images: Tensor) -> Tensor:
        """Return (n, 3, H, W) -> (n, 112, h, w), not rectified"""
        x = functional.relu6(_padded(self["stem"], images))
        for number in range(len(BLOCKS)):
            x = self[str(number)](x)
        return x


class _BottleneckLayers(nn.Module):
    def __init__(self, block: Bottleneck):
        super().__init__()
        self.block, wide = block, block.expanded
        if wide != block.given:
            self.expand = nn.Conv2d(block.given, wide, 1)
        self.depthwise = nn.Conv2d(wide, wide, block.kernel, stride=block.stride, groups=wide)
        self.project = nn.Conv2d(wide, block.out, 1)

    def forward(self, x: Tensor) -> Tensor:
        wide = x if self.block.expanded == self.block.given else functional.relu6(self.expand(x))
        projected: Tensor = self.project(functional.relu6(_padded(self.depthwise, wide)))
        return projected + x if self.block.adds else projected


def _padded(convolution: nn.Module, x: Tensor) -> Tensor:
    kernel, stride = convolution.kernel_size[0], convolution.stride[0]
    (above, below), (left, right) = (same_padding(side, kernel, stride) for side in x.shape[2:])
    found: Tensor = convolution(functional.pad(x, (left, right, above, below)))
    return found
