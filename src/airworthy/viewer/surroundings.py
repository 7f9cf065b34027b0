"""What stands around a scene in the browser: a sky, a grid where there is no ground, and light."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayF32, ArrayU32
from airworthy.scenes.record import Color, Scene, Sky, Sun
from airworthy.scenes.sky.tables import as_gradient
from airworthy.viewer.controls import FirstView

__all__ = ["GREY", "add_grid", "add_sky", "light", "surround"]

GREY = Sky((0.30, 0.34, 0.40), (0.62, 0.65, 0.69), (0.34, 0.35, 0.37))
"""Behind splats and flights that have no scene, and so no sky: calm, and neither black nor white."""
_RINGS, _SECTORS = 24, 48
_UNLIT = "KHR_materials_unlit"


def surround(api: Any, scene: Scene | None, view: FirstView) -> dict[str, Any]:
    """Return sky and light as the scene has them, and a grid where no meshes stand.

    Args:
        api: `viser.ViserServer.scene`.
        scene: What is shown; None: nothing but a flight.
        view: How large it is, and where.

    Returns:
        What can be switched off, by its name.
    """
    light(api, [] if scene is None else [lamp for lamp in scene.lights if isinstance(lamp, Sun)])
    stands = scene is not None and bool(scene.instances or scene.actors)
    sky = as_gradient(scene.sky) if scene is not None and stands else GREY
    add_sky(api, sky, view.middle, 0.45 * view.far)
    return {} if stands else {"grid": add_grid(api, view.middle, view.size, view.floor)}


def add_sky(api: Any, sky: Sky, middle: ArrayAny, radius: float) -> Any:
    """Return a dome around everything in the colours of a sky, the ground's below the horizon.

    Args:
        api: `viser.ViserServer.scene`.
        sky: Its colours are taken as they are, without the browser's light.
        middle: Of the scene [m].
        radius: Of the dome [m].
    """
    center = np.array([float(middle[0]), float(middle[1]), 0.0])
    return api.add_glb("/sky", _dome(sky, radius), position=center, cast_shadow=False, receive_shadow=False)


def add_grid(api: Any, middle: ArrayAny, size: float, height: float) -> Any:
    """Return a grid of cells of 1, 10 or 0.1 m, as suits the size of what is shown [m].

    Args:
        api: Of viser's scene.
        middle: Of what is shown [m]; its x and y count.
        size: Of what is shown [m].
        height: Of the grid [m].
    """
    # Of powers of ten the one that leaves some 4 to 40 cells across what is shown.
    cell = 10.0 ** max(-2, round(math.log10(max(size, 1e-3) / 12.0)))
    return api.add_grid(
        "/grid",
        infinite_grid=True,
        cell_size=cell,
        section_size=5.0 * cell,
        cell_color=(150, 154, 160),
        section_color=(120, 124, 130),
        fade_distance=10.0 * max(size, 1.0),
        shadow_opacity=0.0,
        position=(float(middle[0]), float(middle[1]), height),
    )


def light(api: Any, suns: list[Sun]) -> None:
    """Add soft light from everywhere, and from a scene's sun where it has one."""
    api.configure_default_lights(enabled=False)
    api.configure_environment_map(None)  # without a GPU it takes many seconds, and adds little to rough surfaces
    api.add_light_hemisphere("/light/sky", sky_color=(235, 242, 255), ground_color=(150, 140, 130), intensity=3.0)
    direction = np.array(suns[0].direction if suns else (-0.35, 0.45, -0.82), float)
    color = _bytes(suns[0].color) if suns else (255, 250, 240)
    position = -50.0 * direction / np.linalg.norm(direction)  # it shines from there towards the origin
    api.add_light_directional("/light/sun", color=color, intensity=2.2, position=tuple(position))


def _bytes(color: Color) -> tuple[int, int, int]:
    red, green, blue = (round(255.0 * min(max(part, 0.0), 1.0)) for part in color)
    return red, green, blue


def _dome(sky: Sky, radius: float) -> bytes:
    """Return a sphere seen from inside, z up, coloured per vertex, as a .glb in memory."""
    up, around = np.meshgrid(
        np.linspace(-0.5, 0.5, _RINGS + 1) * math.pi, np.linspace(0.0, 2.0, _SECTORS + 1) * math.pi, indexing="ij"
    )
    out = np.stack((np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)), axis=-1).reshape(-1, 3)
    corner = np.arange(_RINGS)[:, None] * (_SECTORS + 1) + np.arange(_SECTORS)
    quad = np.stack(
        (corner, corner + _SECTORS + 1, corner + 1, corner + 1, corner + _SECTORS + 1, corner + _SECTORS + 2), axis=-1
    )
    return _glb((radius * out).astype(np.float32), _colors(sky, out[:, 2]), quad.reshape(-1).astype(np.uint32))


def _colors(sky: Sky, height: ArrayAny) -> ArrayF32:
    """Colour (n, 3) of directions by their z, (n,): from the horizon up to the zenith, and quickly to the ground below it."""
    horizon, zenith, ground = (sky.intensity * np.array(part) for part in (sky.horizon, sky.zenith, sky.ground))
    above = np.clip(height, 0.0, 1.0)[:, None] ** 0.6
    below = np.clip(-height / 0.15, 0.0, 1.0)[:, None]
    return np.clip(
        np.where(height[:, None] >= 0.0, horizon + above * (zenith - horizon), horizon + below * (ground - horizon)), 0, 1
    ).astype(np.float32)


def _glb(points: ArrayF32, colors: ArrayF32, corners: ArrayU32) -> bytes:
    blocks = [points.tobytes(), colors.tobytes(), corners.tobytes()]
    starts = np.cumsum([0] + [len(block) for block in blocks])
    low, high = points.min(0).tolist(), points.max(0).tolist()
    root = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0, "COLOR_0": 1}, "indices": 2, "material": 0}]}],
        "materials": [{"doubleSided": True, "extensions": {_UNLIT: {}}}],
        "extensionsUsed": [_UNLIT],
        "buffers": [{"byteLength": int(starts[-1])}],
        "bufferViews": [{"buffer": 0, "byteOffset": int(starts[k]), "byteLength": len(blocks[k])} for k in range(3)],
        "accessors": [
            # glTF names types by OpenGL's numbers: 5126 is float32, 5125 uint32.
            {"bufferView": 0, "componentType": 5126, "count": len(points), "type": "VEC3", "min": low, "max": high},
            {"bufferView": 1, "componentType": 5126, "count": len(points), "type": "VEC3"},
            {"bufferView": 2, "componentType": 5125, "count": len(corners), "type": "SCALAR"},
        ],
    }
    text = json.dumps(root, separators=(",", ":")).encode()
    # A .glb pads its chunks to four bytes, JSON with spaces; the other holds numbers of four bytes only.
    text += b" " * (-len(text) % 4)
    body = b"".join(blocks)
    size = 12 + 8 + len(text) + 8 + len(body)
    head = struct.pack("<4sII", b"glTF", 2, size) + struct.pack("<I4s", len(text), b"JSON")
    return head + text + struct.pack("<I4s", len(body), b"BIN\0") + body
