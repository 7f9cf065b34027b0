"""The engines of `benchmarks/rays.py`: each gives one frame per environment, distance and number of what is met."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.arrays import Array, ArrayF32
from benchmarks import ray_scenes
from benchmarks.ray_scenes import CUBES, GROUND, Places


@dataclass(frozen=True)
class Task:
    """What all sides are asked."""

    name: str
    directions: Array
    """(H, W, 3), sensor frame."""
    attitude: tuple[float, ...]
    """Of the sensor, at (0, 0, 1)."""
    place: Places | None = None
    mesh: tuple[ArrayF32, NDArray[np.int32]] | None = None
    """Or one mesh at (2.5, 0, 1), the same in all environments."""
    env_count: int = 8

    @property
    def position(self) -> Array:
        """(env, 3) of the sensors."""
        return np.tile([0.0, 0.0, 1.0], (self.env_count, 1))


Frames = Callable[[], NDArray[np.int32]]
"""Renders every environment once and returns the numbers met, (env, rays): 0..19 cubes, 20 ground, -1 nothing."""


def airworthy(task: Task, threads: int, solids: bool = True) -> Frames:
    """Ours: boxes analytic, or as triangles."""
    from airworthy.geometry import Box, GeometryBatch, Mesh, Placement, RayTable, Shape, cast

    ground = Placement.of([1], [[0.0, 0.0, -GROUND[2]]])
    axis = (0.0, 0.0, 1.0) if task.attitude == ray_scenes.FORWARD else (1.0, 0.0, 0.0)
    table = RayTable(task.directions, axis=axis)
    if task.place is not None:
        p = task.place
        cube: Shape = Box((0.5, 0.5, 0.5)) if solids else Mesh(ray_scenes.CUBE_VERTICES, ray_scenes.CUBE_FACES)
        layouts = [
            Placement.of(
                [0] * CUBES + [1],
                np.concatenate([p.position[k], ground.position]),
                np.concatenate([p.attitude[k], ground.attitude]),
                np.append(p.scale[k], 1.0),
                instance_id=np.arange(CUBES + 1),
            )
            for k in range(p.env_count)
        ]
        batch = GeometryBatch([cube, Box(GROUND)], layouts, threads=threads)
    else:
        assert task.mesh is not None
        place = Placement.of([0], [[2.5, 0.0, 1.0]], instance_id=[0])
        batch = GeometryBatch([Mesh(*task.mesh)], [place], np.zeros(task.env_count, int), threads=threads)
    attitude = np.tile(task.attitude, (task.env_count, 1))

    def render() -> NDArray[np.int32]:
        ids = cast(batch, table, task.position, attitude, channels=("depth", "instance_id"))["instance_id"]
        return np.asarray(np.maximum(ids, -1)).reshape(task.env_count, -1)

    return render


def embree(task: Task, threads: int) -> Frames:
    """Embree's own scenes, one per environment, all rays of a frame in one call.

    The wheel holds the interpreter's lock during a query (measured: two threads are no faster than one), so for more than one
    core the environments are shared out over processes. Those keep their images: sending them would cost Embree something
    for a weakness of its wheel.
    """
    if threads == 1:
        frame = _embree_frames(task)
        return lambda: np.stack([frame(env) for env in range(task.env_count)])
    context = multiprocessing.get_context("spawn")
    pipes = []
    for k in range(threads):
        ours, theirs = context.Pipe()
        context.Process(target=_embree_worker, args=(task, k, threads, theirs), daemon=True).start()
        pipes.append(ours)

    def render() -> NDArray[np.int32]:
        for pipe in pipes:
            pipe.send("render")
        for pipe in pipes:
            pipe.recv()
        return np.zeros((0, 0), np.int32)

    for pipe in pipes:
        pipe.recv()  # built
    return render


def _embree_frames(task: Task) -> Callable[[int], NDArray[np.int32]]:
    from embreex.mesh_construction import TriangleMesh
    from embreex.rtcore_scene import EmbreeScene

    rays = ray_scenes.world_rays(task.directions, task.attitude)
    start = np.tile(np.array([0.0, 0.0, 1.0], np.float32), (len(rays), 1))
    scenes = []
    for env in range(task.env_count if task.place is not None else 1):
        vertices, faces = _world(task, env)
        scene = EmbreeScene()
        scenes.append((scene, TriangleMesh(scene, vertices, faces)))
    divisor = 12 if task.place is not None else 2**30

    def frame(env: int) -> NDArray[np.int32]:
        answer = scenes[env % len(scenes)][0].run(start, rays, output=True)
        return np.where(answer["primID"] >= 0, answer["primID"] // divisor, -1)

    return frame


def _embree_worker(task: Task, first: int, step: int, pipe: Any) -> None:
    frame = _embree_frames(task)
    pipe.send("built")
    with suppress(EOFError):  # the benchmark is over
        while pipe.recv() == "render":
            for env in range(first, task.env_count, step):
                frame(env)
            pipe.send("rendered")


def _world(task: Task, env: int) -> tuple[ArrayF32, NDArray[np.int32]]:
    if task.place is not None:
        return ray_scenes.world_mesh(task.place, env)
    assert task.mesh is not None
    return task.mesh[0] + np.array([2.5, 0.0, 1.0], np.float32), task.mesh[1]


def warp_query(task: Task, threads: int) -> Frames:
    """Warp's `mesh_query_ray` on one mesh per environment, launches shared out over threads."""
    import warp as wp

    kernel = _warp_kernel()
    rays = wp.array(ray_scenes.world_rays(task.directions, task.attitude), dtype=wp.vec3, device="cpu")
    meshes = []
    for env in range(task.env_count if task.place is not None else 1):
        vertices, faces = _world(task, env)
        points = wp.array(vertices, dtype=wp.vec3, device="cpu")
        meshes.append(wp.Mesh(points, wp.array(faces.reshape(-1), dtype=wp.int32, device="cpu"), bvh_constructor="sah"))
    count = len(rays)
    depth = [wp.zeros(count, dtype=wp.float32, device="cpu") for _ in range(task.env_count)]
    face = [wp.zeros(count, dtype=wp.int32, device="cpu") for _ in range(task.env_count)]
    divisor = 12 if task.place is not None else 2**30
    launches = [
        wp.launch(
            kernel,
            dim=count,
            inputs=[meshes[k % len(meshes)].id, rays, divisor, depth[k], face[k]],
            device="cpu",
            record_cmd=True,
        )
        for k in range(task.env_count)
    ]
    pool = ThreadPoolExecutor(threads)

    def render() -> NDArray[np.int32]:
        list(pool.map(lambda launch: launch.launch(), launches))
        return np.stack([f.numpy() for f in face])

    render.keep = meshes  # type: ignore[attr-defined]
    return render


def _warp_kernel() -> Any:
    import warp as wp

    def ray_query(
        mesh: wp.uint64,
        rays: wp.array(dtype=wp.vec3),  # type: ignore[valid-type]
        divisor: int,
        depth: wp.array(dtype=wp.float32),  # type: ignore[valid-type]
        face: wp.array(dtype=wp.int32),  # type: ignore[valid-type]
    ):  # type: ignore[no-untyped-def]
        i = wp.tid()
        hit = wp.mesh_query_ray(mesh, wp.vec3(0.0, 0.0, 1.0), rays[i], 1000.0)
        depth[i] = wp.where(hit.result, hit.t, wp.inf)
        face[i] = wp.where(hit.result, hit.face / divisor, -1)

    ray_query.__annotations__ = {
        "mesh": wp.uint64,
        "rays": wp.array(dtype=wp.vec3),
        "divisor": int,
        "depth": wp.array(dtype=wp.float32),
        "face": wp.array(dtype=wp.int32),
    }
    return wp.kernel(ray_query, module="unique", module_options={"enable_backward": False, "optimization_level": 3})
