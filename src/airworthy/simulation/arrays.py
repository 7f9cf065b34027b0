"""The memory of a batch and its launches: state, inputs, parameters and keys, on a CPU or a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayIndex, ArrayU32
from airworthy.core.layout import Layout
from airworthy.core.native_kernel import CPU_LANES, Launcher, quiet_warp
from airworthy.dynamics.rigid import INTEGRATORS
from airworthy.dynamics.scene_contact import BodyMotion
from airworthy.dynamics.state import Effects
from airworthy.geometry.query_arguments import Repeated
from airworthy.simulation.config import Downwash, SimulatorConfig
from airworthy.simulation.family import ARGUMENTS, BLOCKS_PER_TASK, SCALARS, Specialization
from airworthy.simulation.group_kernel import Group


class BatchArrays:
    """Arrays of shape (row, stride), stride being the environments rounded up to whole lanes.

    On a CPU the NumPy arrays are the kernel's memory. On a GPU they are host mirrors: `state()` fetches, `push_*` sends.
    """

    def __init__(
        self,
        kernel: Callable[[Specialization | None, bool], Any],
        state: Layout,
        inputs: Layout,
        params: Layout,
        env_count: int,
        device: str,
        threads: int | None,
    ):
        self._wp = quiet_warp()
        self.device, self.env_count, self._threads = device, env_count, threads
        self.on_cpu = device == "cpu"
        self.stride = -(-env_count // CPU_LANES) * CPU_LANES
        self._kernel = kernel
        self._params_size = params.size
        self._host: dict[str, Any] = {
            "state": np.zeros((state.size, self.stride), np.float32),
            "inputs": np.zeros((inputs.size, self.stride), np.float32),
            "keys": np.zeros((5, self.stride), np.uint32),
            "imu_log": np.zeros((1, self.stride), np.float32),
            "param_table": np.zeros((params.size, 2), np.int32),
            "elapsed": np.zeros(1, np.int32),
        }
        # Padding lanes hold a level, resting vehicle, so that they compute nothing strange.
        self._host["state"][state.offsets["attitude"] + 3] = 1.0
        self._warp: dict[str, Any] = {name: self._send(array) for name, array in self._host.items()}
        self._launchers: dict[Any, Launcher] = {}
        self._graphs: dict[Any, Any] = {}
        self._varying = np.zeros(0, np.intp)
        self._device_wrote_inputs = False

    # ---- access -----------------------------------------------------------------------------------------------------

    def state(self) -> ArrayF32:
        """Return state rows on the host; on a CPU the memory itself."""
        return self._fetch("state")

    def keys(self) -> ArrayU32:
        """Return key words and flight step on the host."""
        return self._fetch("keys")

    def inputs(self) -> ArrayF32:
        """Return input rows on the host, with what was last written on the device."""
        if self._device_wrote_inputs:
            self._device_wrote_inputs = False
            self._fetch("inputs")
        return self._host["inputs"]

    def torch_state(self) -> Any:
        """Return state rows as a torch tensor that shares memory."""
        tensor = self._wp.to_torch(self._warp["state"])
        return tensor.reshape(-1, self.stride)

    def torch_inputs(self) -> Any:
        """Return input rows as a torch tensor that shares memory, also on a GPU, to be written."""
        self._device_wrote_inputs = True
        return self._wp.to_torch(self._warp["inputs"]).reshape(-1, self.stride)

    def push_state(self) -> None:
        """Send state and keys to the device after the host changed them."""
        self._push("state")
        self._push("keys")

    def push_inputs(self) -> None:
        """Send the input rows to the device."""
        self._push("inputs")

    def push_parameters(self, rows: Array, env_ids: ArrayIndex | None = None) -> bool:
        """Send parameter rows; returns whether all environments share every number.

        A row with one value for all is stored once, so that a batch of equal vehicles costs no memory traffic: the shared
        numbers come first, then a block of (varying rows, stride).

        Args:
            rows: Shape (rows, env).
            env_ids: The only environments that changed since the last call; None: all may have.
        """
        if env_ids is not None and self._push_columns(rows, env_ids):
            return not self._varying.size
        bits = rows.astype(np.float32) if rows.strides[1] else rows[:, :1].astype(np.float32)
        differs = (bits.view(np.uint32) != bits[:, :1].view(np.uint32)).any(axis=1)
        shared, self._varying = np.flatnonzero(~differs), np.flatnonzero(differs)
        table = np.zeros((self._params_size, 2), np.int32)
        table[shared, 0] = np.arange(shared.size)
        table[self._varying, 0] = shared.size + self.stride * np.arange(self._varying.size)
        table[self._varying, 1] = 1
        packed = np.empty(shared.size + self.stride * self._varying.size, np.float32)
        packed[: shared.size] = bits[shared, 0]
        block = packed[shared.size :].reshape(-1, self.stride)
        block[:, self.env_count :] = bits[self._varying, :1]
        block[:, : self.env_count] = bits[self._varying]
        self._host["param_table"][...] = table
        self._push("param_table")
        self._replace_parameters(packed)
        return not self._varying.size

    def _push_columns(self, rows: Array, env_ids: ArrayIndex) -> bool:
        """Send single columns, if they do not break what is shared; returns whether that was possible."""
        if "params" not in self._host or not rows.strides[1]:
            return False
        columns = rows[:, env_ids].astype(np.float32)
        shared = self._host["param_table"][:, 1] == 0
        values = self._host["params"][self._host["param_table"][shared, 0]]
        if np.any(columns[shared].view(np.uint32) != values.view(np.uint32)[:, None]):
            return False
        block = self._host["params"][values.size :].reshape(-1, self.stride)
        block[:, env_ids] = columns[self._varying]
        self._push("params")
        return True

    @property
    def is_shared(self) -> bool:
        """Whether all environments share every parameter."""
        return not self._varying.size

    def take_columns(self, other: BatchArrays, ids: ArrayIndex, slots: ArrayIndex) -> None:
        """Copy environments of another batch of the same kind: state, inputs, keys and parameters.

        Args:
            other: Where from.
            ids: Its environments.
            slots: Where to.
        """
        to, of = columns(slots), columns(ids)
        for name, source in (("state", other.state()), ("inputs", other.inputs()), ("keys", other.keys())):
            self._host[name][:, to] = source[:, of]
            self._push(name)
        self._take_parameters(other, ids, slots)

    def _take_parameters(self, other: BatchArrays, ids: ArrayIndex, slots: ArrayIndex) -> None:
        table, values = other._host["param_table"], other._host["params"]
        if other.is_shared:
            mine, packed = table, values
        else:  # a column for each, also of what all share: the same numbers, and one form for whichever flights come
            rows = np.arange(self._params_size)
            mine = np.stack([rows * self.stride, np.ones_like(rows)], axis=1).astype(np.int32)
            block = np.zeros((self._params_size, self.stride), np.float32)
            old = self._host.get("params")
            if old is not None and old.size == block.size:
                block[...] = old.reshape(block.shape)
            else:
                block[...] = values[table[:, 0] + table[:, 1] * ids[0]][:, None]
            block[:, slots] = values[table[:, :1] + table[:, 1:] * ids[None, :]]
            packed = block.ravel()
        self._varying = other._varying
        self._host["param_table"][...] = mine
        self._push("param_table")
        self._replace_parameters(packed)

    def _replace_parameters(self, packed: ArrayF32) -> None:
        if "params" in self._host and self._host["params"].size == packed.size:
            self._host["params"][...] = packed
            self._push("params")
        else:
            self._host["params"] = packed.copy()
            self._warp["params"] = self._send(self._host["params"])
            self._forget_launches()

    def state_row(self, row: int) -> ArrayF32:
        """Return one row of the state; on a GPU only that row is fetched."""
        if self.on_cpu:
            return np.asarray(self._host["state"][row])
        return np.asarray(self._warp["state"][row * self.stride : (row + 1) * self.stride].numpy())

    def lent(self, name: str, device: str) -> Any:
        """Return an array ("state", "keys", "imu_log") for a kernel on `device`: the memory itself if it lies there, else a
        copy.
        """
        if device == self.device:
            return self._warp[name]
        return self._wp.array(self._fetch(name).ravel(), device=device)

    def give_back(self, name: str, array: Any) -> None:
        """Take over what a kernel wrote into a lent array."""
        if array is not self._warp[name]:
            self._host[name].ravel()[...] = array.numpy()
            self._push(name)

    def reserve_log(self, steps: int) -> None:
        """Make room for the IMU samples of a launch."""
        if len(self._host["imu_log"]) < steps * 6:
            self._host["imu_log"] = np.zeros((steps * 6, self.stride), np.float32)
            self._warp["imu_log"] = self._send(self._host["imu_log"])
            self._forget_launches()

    def log(self, steps: int) -> ArrayF32:
        """Return IMU samples of the last launch, shape (steps, 6, stride)."""
        return self._fetch("imu_log")[: steps * 6].reshape(steps, 6, self.stride)

    def write_log(self, first: int, samples: ArrayF32, ids: ArrayIndex) -> None:
        """Overwrite IMU samples of some environments, shape (steps, 6, k), from step `first` on.

        Args:
            first: Step of the first sample.
            samples: (steps, 6, k): accelerometer [m/s^2], gyroscope [rad/s], sensor frame.
            ids: Environments (k,).
        """
        rows = self._fetch("imu_log")
        rows[first * 6 : (first + len(samples)) * 6, ids] = samples.reshape(-1, len(ids))
        self._push("imu_log")

    # ---- launch -----------------------------------------------------------------------------------------------------

    def launch(
        self, config: SimulatorConfig, effects: Effects, steps: int, level: int, command_rows: int, elapsed: int = 0
    ) -> None:
        """Run the fused kernel over all environments; `elapsed` steps of the same launch lie behind (its earlier parts).

        Args:
            config: Of the simulator.
            effects: Compiled into the kernel.
            steps: Physics steps.
            level: Number of the control level.
            command_rows: Rows of the command.
            elapsed: Steps of the same launch that lie behind.
        """
        if self._host["elapsed"][0] != elapsed:
            self._host["elapsed"][0] = elapsed
            self._push("elapsed")
        key = (int(effects), steps, level, command_rows)
        launcher = self._launchers.get(key)
        if launcher is None:
            launcher = self._launchers[key] = self._launcher(config, *key)
        if self.on_cpu:
            launcher.launch()
        else:
            self._launch_graph(key, launcher)

    def _launch_graph(self, key: Any, launcher: Launcher) -> None:
        """Launch through a CUDA graph, captured at the second launch: the first one compiles and loads the module."""
        graph = self._graphs.get(key)
        if graph is not None:
            self._wp.capture_launch(graph)
            return
        launcher.launch()
        with self._wp.ScopedCapture(device=self.device) as capture:
            launcher.launch()
        self._graphs[key] = capture.graph

    def launch_beside(self, kernel: Any, rows: ArrayF32, dt: float, effects: Effects, numbers: tuple[float, ...]) -> None:
        """Run a kernel of blocks over this memory and some rows of its caller's, which it may write.

        Args:
            kernel: Takes the arrays of `ARGUMENTS`, `rows`, stride, dt, flags, block count, and `numbers`.
            rows: (rows, stride), the same array each time.
            dt: Physics step [s].
            effects: Flags.
            numbers: What else it takes.
        """
        effects = effects | Effects.SHARED_PARAMETERS if self.is_shared else effects & ~Effects.SHARED_PARAMETERS
        blocks = self.stride // CPU_LANES
        scalars = [self.stride, dt, int(effects), blocks, *numbers]
        key = ("beside", id(kernel), id(rows))
        launcher = self._launchers.get(key)
        if launcher is None:
            arguments = [*(self._warp[name] for name in ARGUMENTS), self._send(rows), *scalars]
            tasks = -(-blocks // BLOCKS_PER_TASK) if self.on_cpu else self.stride
            launcher = self._launchers[key] = Repeated(kernel, tasks, arguments, self.device, self._threads)
        assert isinstance(launcher, Repeated)
        for index, value in enumerate(scalars, len(ARGUMENTS) + 1):
            launcher.exchange(index, value)
        if self.on_cpu:
            launcher.launch()
            return
        launcher.argument(len(ARGUMENTS)).assign(rows.ravel())
        launcher.launch()
        rows.ravel()[...] = launcher.argument(len(ARGUMENTS)).numpy()

    def blow(self, group: Group, rows: tuple[int, int, int], model: Downwash) -> None:
        """Write the downwash that each environment feels into its input rows.

        Args:
            group: Which environments share air.
            rows: First row of the position and row of the status in the state, row of the downwash in the inputs.
            model: Of the downwash.
        """
        group.blow(self._warp["state"], self._warp["inputs"], rows, self.stride, self.env_count, model)
        self._device_wrote_inputs = not self.on_cpu

    def _launcher(self, config: SimulatorConfig, effects: int, steps: int, level: int, command_rows: int) -> Launcher:
        blocks = self.stride // CPU_LANES
        scalars = {
            "stride": self.stride,
            "dt": 1.0 / config.physics_rate,
            "substeps": steps,
            "integrator": INTEGRATORS[config.integrator],
            "level": level,
            "command_rows": command_rows,
            "flags": effects,
            "block_count": blocks,
        }
        arguments = [*(self._warp[name] for name in ARGUMENTS), *(scalars[name] for name in SCALARS)]
        tasks = -(-blocks // BLOCKS_PER_TASK) if self.on_cpu else self.stride
        alone = None
        if config.specialized:
            alone = Specialization(effects & ~int(Effects.UNFINISHED), level, INTEGRATORS[config.integrator])
        return Launcher(self._kernel(alone, bool(effects & Effects.IRREGULAR)), tasks, arguments, self.device, self._threads)

    def _forget_launches(self) -> None:
        """Forget launches since an array moved: recorded launches and graphs point to the old one."""
        self._launchers.clear()
        self._graphs.clear()

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _send(self, array: ArrayAny) -> Any:
        return self._wp.array(array.ravel(), device=self.device, copy=not self.on_cpu)

    def _push(self, name: str) -> None:
        if not self.on_cpu:
            self._warp[name].assign(self._host[name].ravel())

    def _fetch(self, name: str) -> Any:
        if not self.on_cpu:
            self._host[name].ravel()[...] = self._warp[name].numpy()
        return self._host[name]


def columns(ids: ArrayIndex) -> Any:
    """Return an index of columns, as a slice where they lie in a row: those are copied many times faster."""
    first = int(ids[0]) if ids.size else 0
    return slice(first, first + ids.size) if np.array_equal(ids, np.arange(first, first + ids.size)) else ids


# ---- A small batch beside the large one, in which single flights are flown again --------------------------------------------
#
# Flights do not depend on their place, so the bits are those they would have had.

_MOTION = ("velocity", "attitude", "rate")


class Compact:
    """Some environments of a batch, in arrays of their own.

    Args:
        arrays: Memory, of at least as many environments as will be taken.
        state: State rows.
        inputs: Input rows.
    """

    def __init__(self, arrays: BatchArrays, state: Layout, inputs: Layout):
        self.arrays, self._state, self._inputs = arrays, state, inputs
        self.count = 0

    def take(self, other: BatchArrays, ids: ArrayIndex, at: ArrayIndex | None = None) -> None:
        """Copy environments of a batch, all into the first places, or some into the places `at`; nothing holds them here.

        Args:
            other: The whole batch.
            ids: Environments (k,) of it.
            at: Places here, (k,); None: the first k.
        """
        slots = np.arange(len(ids)) if at is None else at
        self.count = len(ids) if at is None else self.count
        self.arrays.take_columns(other, ids, slots)
        self.arrays.inputs()[self._inputs.offsets["safe_square"], slots] = np.inf
        self.arrays.push_inputs()

    def set_balls(self, other: BatchArrays, ids: ArrayIndex) -> None:
        """Watch for the safe balls of environments of a batch, those last taken."""
        row = self._inputs.offsets["safe_square"]
        self.arrays.inputs()[row, : self.count] = other.inputs()[row, ids]
        self.arrays.push_inputs()

    def fly(self, config: SimulatorConfig, effects: Effects, level: int, command_rows: int, elapsed: int, steps: int) -> None:
        """Fly some physics steps of a launch of which `elapsed` lie behind.

        Args:
            config: Of the simulator.
            effects: Compiled into the kernel.
            level: Number of the control level.
            command_rows: Rows of the command.
            elapsed: Steps of the same launch that lie behind.
            steps: Physics steps.
        """
        effects = effects if self.arrays.is_shared else effects & ~Effects.SHARED_PARAMETERS
        self.arrays.launch(config, effects, steps, level, command_rows, elapsed)

    def shorten_delays(self, steps: int) -> None:
        """Take steps that lie behind off the delays of commands."""
        self.arrays.inputs()[self._inputs.offsets["delay"], : self.count] -= np.float32(steps)
        self.arrays.push_inputs()

    def clock(self) -> ArrayU32:
        """Return physics steps since the start of each flight."""
        return self.arrays.keys()[4, : self.count]

    def row(self, name: str) -> Any:
        """Return a scalar state row, to be read."""
        return self.arrays.state_row(self._state.offsets[name])[: self.count]


def motion_of(state: ArrayF32, layout: Layout) -> BodyMotion:
    """Return the motion from state rows (rows, k)."""
    rows = {name: state[layout.rows(name)].T.astype(np.float64) for name in ("position", "position_residual", *_MOTION)}
    return BodyMotion(rows["position"] + rows["position_residual"], *(rows[name] for name in _MOTION))
