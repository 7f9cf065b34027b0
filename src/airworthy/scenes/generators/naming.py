"""Names of shared shapes."""

from __future__ import annotations

from airworthy.geometry import Box, Capsule, Cylinder, Mesh, Shape, Sphere

__all__ = ["shape_name"]


def shape_name(shape: Shape) -> str:
    """Kind and full measures of a solid, so that equal solids share one entry.

    Measures are written in full: two solids that differ by a bit have different names.
    """
    assert not isinstance(shape, Mesh), "meshes are named by who makes them"
    sizes: tuple[float, ...]
    if isinstance(shape, Box):
        sizes = shape.half_size
    elif isinstance(shape, Sphere):
        sizes = (shape.radius,)
    else:
        assert isinstance(shape, Cylinder | Capsule)
        sizes = (shape.radius, shape.half_length)
    return f"{type(shape).__name__.lower()}_{'_'.join(f'{2.0 * size:.17g}' for size in sizes)}"
