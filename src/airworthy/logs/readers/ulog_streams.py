"""Topics of PX4 as streams: which one is taken, its unit, its frame, and the filter it has been through.

Meaning of fields: PX4's message definitions (uORB); body axes are FRD, the world is NED, quaternions have w first and turn FRD
into NED.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.frames import flu_enu, from_wxyz
from airworthy.logs.building import LARGE_BYTES, FileContent, Found, LogDraft
from airworthy.logs.readers.ulog import Ulog, UlogTopic, read_container
from airworthy.logs.record import LowPass, RotorGeometry
from airworthy.logs.units import RPM

MOTORS_MAX = 12
_ARMED = 2  # vehicle_status.arming_state: ARMING_STATE_ARMED
_NS = 1000  # per us
_MODES_MAX = 200


def read_ulog(content: FileContent, draft: LogDraft) -> None:
    """Read a ULog file into a draft; raises AssetError where it is not one."""
    ulog = read_container(content.data, draft)
    large = len(content.data) > LARGE_BYTES
    content.let_go()
    topics = _Topics(ulog, draft)
    draft.parameters |= ulog.parameters | {f"info.{k}": v for k, v in ulog.facts.items()}
    for make in (_inertial, _motors, _estimates, _setpoints, _others):
        draft.found += make(topics)
    _leave_out_untimed(draft)
    draft.geometry = rotor_geometry(ulog.parameters)
    _events(topics)
    _raw(topics, large)


def _leave_out_untimed(draft: LogDraft) -> None:
    """Leave out streams stamped with 0 throughout: what PX4 logs of a topic that nobody has written to would set the clock."""
    timed = [int(np.min(found.stamps)) for found in draft.found if len(found.stamps) and np.any(found.stamps)]
    if not timed or min(timed) <= 0:
        return
    untimed = [len(found.stamps) > 0 and not np.any(found.stamps) for found in draft.found]
    for found, none in zip(draft.found, untimed, strict=True):
        if none:
            draft.note(f"{found.origin} has no time (its stamps are 0) and is left out.")
    draft.found[:] = [found for found, none in zip(draft.found, untimed, strict=True) if not none]


class _Topics:
    """Columns of topics, by name."""

    def __init__(self, ulog: Ulog, draft: LogDraft) -> None:
        self.ulog = ulog
        self.draft = draft
        self.used: set[tuple[str, int, str]] = set()
        """Topic, instance and field of what became streams."""
        self._stamps: dict[tuple[str, int, str], ArrayAny] = {}

    def stamps(self, topic: UlogTopic, sampled: bool = False) -> ArrayAny:
        """Stamps [ns]; of the data behind a sample where asked for and there."""
        names = topic.rows.dtype.names or ()
        name = "timestamp_sample" if sampled and "timestamp_sample" in names else "timestamp"
        key = (topic.name, topic.instance, name)
        if key not in self._stamps:
            stamps = np.asarray(topic.rows[name])
            good = stamps.dtype.kind in "iu" and stamps.ndim == 1
            # 2^52 us are 142 years: what is later is damage, and stays where nothing overflows.
            self._stamps[key] = np.minimum(stamps, 1 << 52).astype(np.int64) * _NS if good else np.zeros(len(stamps), np.int64)
        return self._stamps[key]

    def columns(self, topic: UlogTopic, names: Sequence[str], most: int | None = None) -> Array | None:
        """Fields side by side, arrays with all their columns, or the first `most`; None where one is missing or no number."""
        parts = []
        for name in names:
            if name not in (topic.rows.dtype.names or ()):
                return None
            values = np.asarray(topic.rows[name])
            if values.dtype.kind not in "iuf" or values.ndim > 2:
                return None
            parts.append(values.reshape(len(values), -1)[:, :most].astype(np.float64))
        self.used |= {(topic.name, topic.instance, name) for name in names}
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def found(self, kind: str, topic: str, names: Sequence[str], width: int, **more: object) -> list[Found]:
        """Every instance of a topic as streams of a kind; none where it lacks a field or has another width."""
        scale = float(more.pop("scale", 1.0))  # type: ignore[arg-type]
        shift = float(more.pop("shift", 0.0))  # type: ignore[arg-type]
        label = str(more.pop("label", ""))
        sampled = bool(more.pop("sampled", False))
        out = []
        for item in self.ulog.topics:
            values = self.columns(item, names) if item.name == topic and len(item.rows) else None
            if values is None or values.shape[1] != width:
                continue
            if scale != 1.0 or shift != 0.0:
                values = values * scale + shift
            mark = ":".join(filter(None, (label, str(item.instance) if item.instance else "")))
            origin = f"{topic}.{','.join(names)}"
            stamps = self.stamps(item, sampled)
            out.append(Found(kind, stamps, values, mark, origin=origin, **more))  # type: ignore[arg-type]
        return out


def _low_pass(topics: _Topics, name: str) -> LowPass | None:
    cutoff = float(topics.ulog.parameters.get(name, 0.0))
    return LowPass(2, cutoff) if np.isfinite(cutoff) and cutoff > 0.0 else None


def _inertial(topics: _Topics) -> list[Found]:
    """Gyroscopes and accelerometers, what the controllers used first."""
    found = []
    axes = ["x", "y", "z"]
    gyro_filter, force_filter = _low_pass(topics, "IMU_GYRO_CUTOFF"), _low_pass(topics, "IMU_ACCEL_CUTOFF")
    gyro = topics.found("gyro", "vehicle_angular_velocity", ["xyz"], 3, frame="frd", filter=gyro_filter, sampled=True)
    gyro += topics.found("gyro", "sensor_combined", ["gyro_rad"], 3, frame="frd", label="combined" if gyro else "")
    gyro += topics.found("gyro", "sensor_gyro", axes, 3, frame="frd", label="raw" if gyro else "", sampled=True)
    force = topics.found("accelerometer", "vehicle_acceleration", ["xyz"], 3, frame="frd", filter=force_filter, sampled=True)
    more = {"frame": "frd", "label": "combined" if force else ""}
    force += topics.found("accelerometer", "sensor_combined", ["accelerometer_m_s2"], 3, **more)
    force += topics.found("accelerometer", "sensor_accel", axes, 3, frame="frd", label="raw" if force else "", sampled=True)
    found += gyro + force
    found += topics.found("magnetometer", "vehicle_magnetometer", ["magnetometer_ga"], 3, frame="frd", scale=1e-4)
    return found


def _motors(topics: _Topics) -> list[Found]:
    """Commands and speeds of motors."""
    found = []
    item = topics.ulog.topic("actuator_motors")
    control = topics.columns(item, ["control"], _count(item, "control")) if item else None
    if item is not None and control is not None:
        found.append(Found("motor_command", topics.stamps(item, True), control, origin="actuator_motors.control"))
    found += _outputs(topics, "outputs" if found else "")
    speeds = topics.ulog.topic("esc_status")
    if speeds is not None and "esc" in (speeds.rows.dtype.names or ()):
        esc = np.asarray(speeds.rows["esc"])
        if esc.ndim == 2 and "esc_rpm" in (esc.dtype.names or ()):
            rpm = np.asarray(esc["esc_rpm"], np.float64)
            rpm = rpm[:, : max(1, _used(np.where(rpm == 0.0, np.nan, rpm)))]
            found.append(Found("motor_speed", topics.stamps(speeds), rpm * RPM, origin="esc_status.esc[].esc_rpm"))
    return found


def _count(topic: UlogTopic, name: str) -> int | None:
    """Return how many columns of a field are used; None where it is not one of numbers."""
    values = np.asarray(topic.rows[name]) if name in (topic.rows.dtype.names or ()) else np.zeros(0)
    return _used(values) if values.ndim == 2 and values.dtype.kind in "iuf" else None


def _used(values: ArrayAny) -> int:
    """Return the number of columns up to the last one that ever holds a number; at least one."""
    used = np.flatnonzero(np.isfinite(values).any(axis=0)) if values.size else np.zeros(0, int)
    return int(used[-1]) + 1 if used.size else 1


def _outputs(topics: _Topics, label: str) -> list[Found]:
    """Pulses of older logs, by PWM_MIN and PWM_MAX, on a scale of 0 to 1."""
    item = topics.ulog.topic("actuator_outputs")
    values = topics.columns(item, ["output"]) if item else None
    if item is None or values is None or not values.size:
        return []
    numbers = topics.columns(item, ["noutputs"])
    count = int(np.nanmax(numbers)) if numbers is not None and numbers.size else values.shape[1]
    values = values[:, : max(1, min(count, values.shape[1], MOTORS_MAX))]
    values = values[:, : max(1, _used(np.where(values > 0.0, values, np.nan)))]
    low, high = (float(topics.ulog.parameters.get(k, d)) for k, d in (("PWM_MIN", 1000.0), ("PWM_MAX", 2000.0)))
    if not (np.isfinite(low) and np.isfinite(high) and high > low):
        low, high = 1000.0, 2000.0
    if values.max() < 800.0:  # no pulse of a servo is shorter: DShot or something else
        topics.draft.note(f"Outputs reach {values.max():g}, which are no pulses in microseconds; they are left as raw values.")
        return []
    topics.draft.note(f"Motor commands are output pulses on PWM_MIN..PWM_MAX = {low:g}..{high:g} us; below it a motor is off.")
    commands = np.clip((values - low) / (high - low), 0.0, 1.0)
    return [Found("motor_command", topics.stamps(item), commands, label, origin="actuator_outputs.output")]


def _attitudes(topics: _Topics, kind: str, topic: str, name: str, **more: object) -> list[Found]:
    found = topics.found(kind, topic, [name], 4, frame="frd->ned", **more)
    return [Found(f.kind, f.stamps, from_wxyz(f.values), f.label, f.frame, origin=f.origin) for f in found]


def _estimates(topics: _Topics) -> list[Found]:
    found = _attitudes(topics, "attitude", "vehicle_attitude", "q", sampled=True)
    found += topics.found("position", "vehicle_local_position", ["x", "y", "z"], 3, frame="ned", sampled=True)
    found += topics.found("velocity", "vehicle_local_position", ["vx", "vy", "vz"], 3, frame="ned", sampled=True)
    return found


def _setpoints(topics: _Topics) -> list[Found]:
    found = topics.found("rate_setpoint", "vehicle_rates_setpoint", ["roll", "pitch", "yaw"], 3, frame="frd")
    found += _attitudes(topics, "attitude_setpoint", "vehicle_attitude_setpoint", "q_d")
    thrust = topics.found("thrust_setpoint", "vehicle_rates_setpoint", ["thrust"], 1)
    if not thrust:
        body = topics.found("thrust_setpoint", "vehicle_rates_setpoint", ["thrust_body"], 3)
        # Body axes are FRD: thrust points along -z.
        thrust = [Found(f.kind, f.stamps, -np.asarray(f.values)[:, 2:], f.label, origin=f.origin) for f in body]
    sticks = topics.found("stick", "manual_control_setpoint", ["roll", "pitch", "yaw", "throttle"], 4)
    sticks = sticks or topics.found("stick", "manual_control_setpoint", ["y", "x", "r", "z"], 4)
    return found + thrust + sticks


def _others(topics: _Topics) -> list[Found]:
    found = topics.found("voltage", "battery_status", ["voltage_v"], 1)
    found += topics.found("current", "battery_status", ["current_a"], 1)
    found += topics.found("pressure", "vehicle_air_data", ["baro_pressure_pa"], 1, sampled=True)
    found += topics.found("temperature", "vehicle_air_data", ["baro_temp_celcius"], 1, shift=273.15)
    found += topics.found("range", "distance_sensor", ["current_distance"], 1)
    found += topics.found("mode", "vehicle_status", ["nav_state"], 1)
    return found


def rotor_geometry(parameters: dict[str, float | int]) -> RotorGeometry | None:
    """Return rotors by PX4's parameters CA_ROTOR*, in FLU; None where they are not there or not finite."""
    count = int(parameters.get("CA_ROTOR_COUNT", 0))
    if not 1 <= count <= MOTORS_MAX:
        return None

    def values(name: str, default: float) -> Array:
        return np.array([float(parameters.get(f"CA_ROTOR{k}_{name}", default)) for k in range(count)])

    position = np.stack([values(n, 0.0) for n in ("PX", "PY", "PZ")], axis=1)
    axis = np.stack([values(n, d) for n, d in (("AX", 0.0), ("AY", 0.0), ("AZ", -1.0))], axis=1)
    moment = values("KM", 0.05)
    length = np.linalg.norm(axis, axis=1, keepdims=True)
    linear = float(parameters.get("THR_MDL_FAC", 0.0))
    if not (np.isfinite(position).all() and np.isfinite(moment).all() and np.isfinite(linear) and np.all(length > 1e-6)):
        return None
    # KM is positive for a rotor that turns counter-clockwise.
    return RotorGeometry(flu_enu(position, "frd"), flu_enu(axis / length, "frd"), np.sign(moment), np.abs(moment), linear)


def _events(topics: _Topics) -> None:
    draft, ulog = topics.draft, topics.ulog
    _changes(topics, "vehicle_status", "arming_state", lambda v: ("armed" if v == _ARMED else "disarmed", ""))
    _changes(topics, "vehicle_status", "nav_state", lambda v: ("mode", f"{v:g}"))
    _changes(topics, "vehicle_land_detected", "landed", lambda v: ("landed" if v else "in_air", ""))
    draft.events += [(t * _NS, "parameter", text) for t, text in ulog.changes]
    draft.events += [(t * _NS, "message", text) for t, text in ulog.texts]
    draft.events += [(t * _NS, "dropout", f"{length} ms") for t, length in ulog.dropouts]


def _changes(topics: _Topics, topic: str, name: str, event: object) -> None:
    item = topics.ulog.topic(topic)
    values = topics.columns(item, [name]) if item else None
    if item is None or values is None or values.shape[1] != 1:
        return
    stamps, column = topics.stamps(item), values[:, 0]
    last = None
    for k in np.flatnonzero(np.diff(column, prepend=np.nan) != 0.0)[:_MODES_MAX]:
        what = event(column[k])  # type: ignore[operator]
        if what != last:
            topics.draft.events.append((int(stamps[k]), *what))
        last = what


def _raw(topics: _Topics, large: bool) -> None:
    """Keep every field of every topic; nested ones as `topic.field.part`, with their second axis.

    Args:
        topics: Of the file.
        large: Keep what is no stream alone, copied, so that rows of messages need not stay.
    """
    draft = topics.draft
    for item in topics.ulog.topics:
        if not len(item.rows):
            continue
        stamps = topics.stamps(item)
        head = f"{item.name}:{item.instance}" if item.instance else item.name
        for name in item.rows.dtype.names or ():
            if large and ((item.name, item.instance, name) in topics.used or name.startswith(("timestamp", "_padding"))):
                continue
            values = item.rows[name]
            for part in values.dtype.names or ("",):
                kept = values[part] if part else values
                draft.raw[f"{head}.{name}.{part}" if part else f"{head}.{name}"] = (stamps, kept.copy() if large else kept)
    if large:
        draft.note("The file is large: variables that are streams are kept as these alone.")
