"""From images with poses to splats: a hall is photographed in flight, splats are trained and judged on other images.

With photographs of your own the first step is COLMAP's (see docs/howto/capture.md); the rest is the same.
"""

from pathlib import Path

import numpy as np
from PIL import Image

from airworthy.capture import RenderCaptureOptions, TrainOptions, read_capture, render_capture, train_splats
from airworthy.scenes import read_splats, scene
from airworthy.splats import SplatRenderer

out = Path("runs/13_train_a_splat")
render_capture(
    scene("mid_gate"), out / "photos", RenderCaptureOptions(views=96, along="robustness", width=128, height=72, points=40_000)
)
images = read_capture(out / "photos")
print(f"{len(images)} images of {images.sizes[0]} pixels, {len(images.held_out_ids)} held out, {len(images.points)} points")

options = TrainOptions(steps=900, count=40_000, degree=0, start_share=0.9, judge_every=450)
result = train_splats(images, out / "splats", options, quiet=True)
print(f"{result.gaussians} gaussians, PSNR {result.psnr:.1f} dB on {result.held_out} images that were not trained on")

k = images.held_out_ids[3::4]
cloud = read_splats(result.splats).splats
seen = SplatRenderer(cloud).render(128, 72, images.intrinsics[k], images.position[k], images.attitude[k], channels=("rgb",))[
    "rgb"
]
pairs = [np.vstack((images.rgb[j], np.uint8(255 * seen[i].clip(0, 1)))) for i, j in enumerate(k)]
Image.fromarray(np.hstack(pairs)).resize((1152, 432), Image.Resampling.NEAREST).save(out / "compared.png")
