// One launch of the families that fly by rotors: every physics step of one control period, state in registers. What differs between
// them stands in files of their own (rigid_motion.h, jointed_motion.h), in sections that are put in at the hooks MOTION_*. A task is GROUP blocks of LANES
// environments (one environment on a GPU), so that parameters which all share are spread into lanes once per task; arrays are (row, environment) with `stride` environments per row, a multiple of LANES. Parameters have a
// stride per row: 0 where all environments share the number. Traced blocks stand in struct T, enumerators S_*, P_*, C_* and E_*
// come from the layouts and flags in Python. The readable twin is airworthy.simulation.twin.
#define PARAMETERS_USED level > LEVEL_ROTOR_SPEED ? P_COUNT : P_CONTROL_START
BATCH_OPEN

// ---- load -----------------------------------------------------------------------------------------------------------
F Y[STATES];  // velocity, attitude, rate, rotor states, and what else the family has
F *const v = Y, *const q = Y + 3, *const w = Y + 7, *const m = Y + 10;
F base[3], moved[3];
LOAD_POSITION(base, moved)
// Specialised derivatives drop terms that are zero, which can turn a zero negative. Adding 0 makes it positive again, here and
// where specific force is put out: then no bit depends on the form that a batch needs.
for (int i = 0; i < STATES; ++i) Y[i] = N::load(STATE(S_velocity + i)) + nought;
F status = N::load(STATE(S_status));
status = N::select(N::finite(status), status, N::c(1.0f));
M alive = status == N::c(0.0f);
F command[ROTORS], wanted[COMMAND_ROWS];
for (int i = 0; i < ROTORS; ++i) command[i] = N::load(STATE(S_rotor_command + i));
F bias_a[3], bias_g[3], imu[6], wind[3], turbulence[5], specific[3];
for (int i = 0; i < 3; ++i) {
  bias_a[i] = bias_g[i] = wind[i] = specific[i] = N::c(0.0f);
  imu[i] = imu[i + 3] = N::c(0.0f);
}
for (int i = 0; i < 5; ++i) turbulence[i] = N::c(0.0f);
if (HAS(E_IMU)) {
  for (int i = 0; i < 3; ++i) {
    bias_a[i] = N::load(STATE(S_accelerometer_bias + i));
    bias_g[i] = N::load(STATE(S_gyroscope_bias + i));
  }
}
if (HAS(E_TURBULENCE))
  for (int i = 0; i < 5; ++i) turbulence[i] = N::load(STATE(S_turbulence + i));
F charge = N::c(0.0f), ceiling = N::c(1.0f);
if (HAS(E_BATTERY)) {
  charge = N::load(STATE(S_battery_charge));
  ceiling = N::load(STATE(S_battery_ratio));
}
U key[5], clock;
for (int i = 0; i < 4; ++i) key[i] = N::load_u(keys.data + i * stride + lane0);
Threefry::expand(key);
clock = N::load_u(keys.data + 4 * stride + lane0);
F outside_force[3], outside_moment[3];
for (int i = 0; i < 3; ++i) {
  outside_force[i] = HAS(E_EXTERNAL) ? N::load(INPUT(IN_force + i)) : N::c(0.0f);
  outside_moment[i] = HAS(E_EXTERNAL) ? N::load(INPUT(IN_moment + i)) : N::c(0.0f);
}
M asked_ok = N::never(), command_ok = N::never(), over = N::never();
if (HAS(E_DOWNWASH)) outside_force[2] += N::load(INPUT(IN_downwash));
F saturated = LOAD_SATURATED, touched = N::c(0.0f), impact = N::c(0.0f);
if (HAS(E_GROUND | E_CLEARANCE) && begun > 0) {
  touched = N::load(STATE(S_contact));
  impact = N::load(STATE(S_impact_speed));
}
MOTION_LOAD
CONTROL_LOAD
DELAY_LOAD

// ---- the steps ------------------------------------------------------------------------------------------------------
PRAGMA_NOUNROLL
for (int step = 0; step < substeps; ++step) {
  // Commands, with the previous one still in force during a delay.
  if (step == 0 || HAS(E_DELAY)) {
    for (int i = 0; i < command_rows; ++i) wanted[i] = N::load(INPUT(IN_command + i));
    if (HAS(E_DELAY)) {
      M late = N::load(INPUT(IN_delay)) > N::c((float)step);
      for (int i = 0; i < command_rows; ++i) wanted[i] = N::select(late, N::load(INPUT(IN_command_previous + i)), wanted[i]);
    }
    // Columns of rotors that a vehicle does not have, but others of the batch do, say nothing.
    if (level <= LEVEL_ROTOR_THRUST)
      for (int i = 0; i < command_rows; ++i) wanted[i] = N::select(PAR(P_rotor_count) > N::c((float)i), wanted[i], N::c(0.0f));
    // Asked here, since the limits inside a control law can turn a NaN into a number.
    F size = N::c(0.0f);
    for (int i = 0; i < command_rows; ++i) size += N::abs(wanted[i]);
    asked_ok = N::finite(size);
  }

  // Random draws of this step: 0-5 stochastic wrench, 6-17 IMU; the numbers do not depend on which effects are on.
  F noise[20];
  if (HAS(E_WRENCH_NOISE)) Threefry::normals(key, clock, STREAM_SENSOR_AND_WRENCH, 0, noise);
  if (HAS(E_WRENCH_NOISE | E_IMU_NOISE)) Threefry::normals(key, clock, STREAM_SENSOR_AND_WRENCH, 1, noise + 4);
  if (HAS(E_IMU_NOISE)) {
    Threefry::normals(key, clock, STREAM_SENSOR_AND_WRENCH, 2, noise + 8);
    Threefry::normals(key, clock, STREAM_SENSOR_AND_WRENCH, 3, noise + 12);
    Threefry::normals(key, clock, STREAM_SENSOR_AND_WRENCH, 4, noise + 16);
  }

  // Forces that are held over the step.
  F force[3], moment[3];
  for (int i = 0; i < 3; ++i) {
    force[i] = outside_force[i];
    moment[i] = outside_moment[i];
    if (HAS(E_WRENCH_NOISE)) {
      force[i] += PAR(P_force_noise + i) * noise[i];
      moment[i] += PAR(P_moment_noise + i) * noise[3 + i];
    }
  }
  if (HAS(E_DISTURBANCE)) {
    // Pushes are drawn per span of the source's own step. A step feels the mean over it of the spans that it covers: neither
    // their number nor their impulse depends on its length, and at the source's rate it is the one push of its span.
    const F ratio = PAR(P_disturbance_ratio), now = N::from_int(N::signed_of(clock));
    const F from = now * ratio, to = (now + 1.0f) * ratio;
    F span = N::floor(from);
    for (int k = 0; k < SPANS_MAX && N::any(span < to); ++k) {
      U word[4], more[4];
      Threefry::draw(key, N::whole(span), STREAM_DISTURBANCE, 0, word);
      Threefry::draw(key, N::whole(span), STREAM_DISTURBANCE, 1, more);
      const F after = span + 1.0f;
      const F share = (N::select(after < to, after, to) - N::select(span > from, span, from)) / ratio;
      M hit = (Threefry::uniform(word[0]) < PAR(P_disturbance_probability)) & (span < to);
      const U draws[6] = {word[1], word[2], word[3], more[0], more[1], more[2]};
      for (int i = 0; i < 3; ++i) {
        F f = (Threefry::uniform(draws[i]) * 2.0f - 1.0f) * PAR(P_disturbance_force + i);
        F t = (Threefry::uniform(draws[3 + i]) * 2.0f - 1.0f) * PAR(P_disturbance_torque + i);
        force[i] += N::select(hit, f * share, N::c(0.0f));
        moment[i] += N::select(hit, t * share, N::c(0.0f));
      }
      span = after;
    }
  }
  if (HAS(E_WIND)) {
    F gusts[3] = {N::c(0.0f), N::c(0.0f), N::c(0.0f)};
    if (HAS(E_TURBULENCE)) {
      F n4[4];
      Threefry::normals(key, clock, STREAM_WIND, 0, n4);
      F next[5];
      T::dryden(CTX, turbulence, n4, next, gusts);
      for (int i = 0; i < 5; ++i) turbulence[i] = next[i];
    }
    T::wind(CTX, N::from_int(N::signed_of(clock)) * dt, gusts, wind);
  }

  MOTION_SENSE
  // Gyroscope first: a controller may close its loop on it. Attitude and rate are those at the start of the step.
  if (HAS(E_IMU)) {
    T::gyroscope(CTX, SENSED_RATE, imu + 3);
    for (int i = 0; i < 3; ++i) {
      F sample = imu[3 + i] + bias_g[i];
      if (HAS(E_IMU_NOISE)) sample += PAR(P_imu_noise + 3 + i) * noise[9 + i];
      imu[3 + i] = N::select(sample > PAR(P_imu_limit + 1), PAR(P_imu_limit + 1),
                             N::select(sample < -PAR(P_imu_limit + 1), -PAR(P_imu_limit + 1), sample));
    }
  }

  // Control: the level is uniform over the batch. Rotor speeds that nothing changes are taken once per launch.
  F p[3];
  for (int i = 0; i < 3; ++i) p[i] = base[i] + moved[i];
  if (step == 0 || level != LEVEL_ROTOR_SPEED || HAS(E_DELAY | E_BATTERY)) {
    F raw[ROTORS];
    if (level == LEVEL_ROTOR_SPEED) {
      for (int i = 0; i < ROTORS; ++i) raw[i] = i < command_rows ? wanted[i] : N::c(0.0f);
    } else {
      MOTION_STEER
      CONTROL_STEP
    }
    F total = N::c(0.0f);
    for (int i = 0; i < ROTORS; ++i) total += N::abs(raw[i]);
    command_ok = asked_ok & N::finite(total);
    over = N::never();
    for (int i = 0; i < ROTORS; ++i)
      over = over | (raw[i] > PAR(P_rotor_max + i) * ceiling * 0.9995f) |
             (raw[i] < PAR(P_rotor_min + i) + (PAR(P_rotor_max + i) - PAR(P_rotor_min + i)) * 5e-4f);
    CONTROL_LEAD
    F clipped[ROTORS];
    T::clip_rotors(CTX, raw, ceiling, clipped);
    for (int i = 0; i < ROTORS; ++i) COMMANDED[i] = N::select(alive, clipped[i], COMMANDED[i]);
  }
DELAY_STEP
  saturated += N::select(over, N::c(1.0f), N::c(0.0f));

  // The step itself: `next` and the displacement D from Y, and what an accelerometer feels.
  F next[STATES], D[3], accel[3];
  MOTION_STEP
  for (int i = 0; i < 3; ++i) D[i] += moved[i];

  MOTION_GROUND
  // Accelerometer and bias walk.
  if (HAS(E_IMU)) {
    for (int i = 0; i < 3; ++i) {
      F sample = accel[i] + 0.0f + bias_a[i];
      if (HAS(E_IMU_NOISE)) sample += PAR(P_imu_noise + i) * noise[6 + i];
      imu[i] = N::select(sample > PAR(P_imu_limit), PAR(P_imu_limit), N::select(sample < -PAR(P_imu_limit), -PAR(P_imu_limit), sample));
      if (HAS(E_IMU_NOISE)) {
        bias_a[i] += PAR(P_imu_walk + i) * noise[12 + i];
        bias_g[i] += PAR(P_imu_walk + 3 + i) * noise[15 + i];
      }
    }
    if (HAS(E_IMU_LOG))
      for (int i = 0; i < 6; ++i) N::store(imu_log.data + ((begun + step) * 6 + i) * stride + lane0, imu[i]);
  }
  MOTION_BATTERY

  // Containment: a flight that left the bounds of sense keeps its last good state, is labelled and never moves again.
  {
    F x = base[0] + D[0], y = base[1] + D[1], z = base[2] + D[2];
    F rotor_sum = N::c(0.0f);
    for (int i = 10; i < STATES; ++i) rotor_sum += N::abs(next[i]);
    M ok = command_ok & N::finite(rotor_sum) & ((x * x + y * y + z * z) < PAR(P_limit) * PAR(P_limit)) &
           ((next[0] * next[0] + next[1] * next[1] + next[2] * next[2]) < PAR(P_limit + 1) * PAR(P_limit + 1)) &
           ((next[7] * next[7] + next[8] * next[8] + next[9] * next[9]) < PAR(P_limit + 2) * PAR(P_limit + 2)) &
           ((next[3] * next[3] + next[4] * next[4] + next[5] * next[5] + next[6] * next[6]) > N::c(0.5f));
    MOTION_BOUNDS
    M good = alive & ok;
    if (N::any(N::invert(good))) {
      for (int i = 0; i < STATES; ++i) next[i] = N::select(good, next[i], Y[i]);
      for (int i = 0; i < 3; ++i) D[i] = N::select(good, D[i], moved[i]);
      status = N::select(alive & N::invert(ok), N::c(1.0f), status);
      alive = good;
    }
    for (int i = 0; i < STATES; ++i) Y[i] = next[i];
    for (int i = 0; i < 3; ++i) moved[i] = D[i];
  }
  MOTION_KEPT
  CHECK_SAFE_BALL(base, moved)
  clock = clock + N::u(1u);
}

// What is not part of the motion but not a number would reach the user as a reading: it ends a flight too.
if (!unfinished) {
  F rest = N::abs(charge) + N::abs(ceiling);
  for (int i = 0; i < 3; ++i) rest += N::abs(bias_a[i]) + N::abs(bias_g[i]) + N::abs(wind[i]) + N::abs(specific[i]);
  for (int i = 0; i < 6; ++i) rest += N::abs(imu[i]);
  for (int i = 0; i < 5; ++i) rest += N::abs(turbulence[i]);
  if (level >= LEVEL_WITH_MEMORY)
    for (int i = 0; i < 18; ++i) rest += N::abs(memory[i]);
  status = N::select(alive & N::invert(N::finite(rest)), N::c(1.0f), status);
}

// ---- store ----------------------------------------------------------------------------------------------------------
HOLD
MOTION_STORE
STORE_POSITION(base, moved)
for (int i = 0; i < 3; ++i) STORE(S_acceleration + i, specific[i] + 0.0f);
for (int i = 0; i < STATES; ++i) STORE(S_velocity + i, Y[i]);
for (int i = 0; i < ROTORS; ++i) STORE(S_rotor_command + i, command[i]);
STORE(S_status, status);
STORE(S_saturated, SATURATED_SHARE(saturated));
if (HAS(E_GROUND | E_CLEARANCE)) {
  STORE(S_contact, touched);
  STORE(S_impact_speed, impact);
}
if (HAS(E_IMU)) {
  for (int i = 0; i < 6; ++i) STORE(S_imu + i, imu[i]);
  for (int i = 0; i < 3; ++i) {
    STORE(S_accelerometer_bias + i, bias_a[i]);
    STORE(S_gyroscope_bias + i, bias_g[i]);
  }
}
if (HAS(E_WIND))
  for (int i = 0; i < 3; ++i) STORE(S_wind + i, wind[i]);
if (HAS(E_TURBULENCE))
  for (int i = 0; i < 5; ++i) STORE(S_turbulence + i, turbulence[i]);
if (HAS(E_BATTERY)) {
  STORE(S_battery_charge, charge);
  STORE(S_battery_ratio, ceiling);
}
CONTROL_STORE
DELAY_STORE
STORE_CLOCK(clock)
}
