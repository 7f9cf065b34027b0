// One launch of the semi-kinematic family; arrays, lanes and names as in rigid_step.cpp.
#define PARAMETERS_USED P_COUNT
BATCH_OPEN

F Y[7], base[3], moved[3], force[3];  // velocity, attitude
F *const v = Y, *const q = Y + 3;
LOAD_POSITION(base, moved)
for (int i = 0; i < 3; ++i) {
  force[i] = HAS(E_EXTERNAL) ? N::load(INPUT(IN_force + i)) : N::c(0.0f);
}
for (int i = 0; i < 7; ++i) Y[i] = N::load(STATE(S_velocity + i));
F w[3];
for (int i = 0; i < 3; ++i) w[i] = N::load(STATE(S_rate + i));
F status = N::load(STATE(S_status)), saturated = LOAD_SATURATED, thrust = N::load(STATE(S_thrust));
M alive = status == N::c(0.0f);
U key[5], clock;
for (int i = 0; i < 4; ++i) key[i] = N::load_u(keys.data + i * stride + lane0);
Threefry::expand(key);
clock = N::load_u(keys.data + 4 * stride + lane0);

PRAGMA_NOUNROLL
for (int step = 0; step < substeps; ++step) {
  F wanted[COMMAND_ROWS];
  for (int i = 0; i < command_rows; ++i) wanted[i] = N::load(INPUT(IN_command + i));
  if (HAS(E_DELAY)) {
    M late = N::load(INPUT(IN_delay)) > N::c((float)step);
    for (int i = 0; i < command_rows; ++i) wanted[i] = N::select(late, N::load(INPUT(IN_command_previous + i)), wanted[i]);
  }
  // Asked here, since the limits inside a control law can turn a NaN into a number.
  F size = N::c(0.0f);
  for (int i = 0; i < command_rows; ++i) size += N::abs(wanted[i]);
  F p[3], asked[4], u[4];
  for (int i = 0; i < 3; ++i) p[i] = base[i] + moved[i];
  if (level == LEVEL_TRACKING) {
    F now[COMMAND_ROWS];
    T::extrapolated(wanted, N::c((float)(begun + step) * dt), now);
    T::control_tracking(CTX, p, v, q, w, now, asked);
  } else {
    for (int i = 0; i < 4; ++i) asked[i] = wanted[i];
  }
  size += N::abs(asked[0]) + N::abs(asked[1]) + N::abs(asked[2]) + N::abs(asked[3]);
  const M command_ok = N::finite(size);
  T::limited_input(CTX, asked[0], asked + 1, u);
  M over = N::never();
  for (int i = 0; i < 4; ++i) over = over | (u[i] != asked[i]);
  saturated += N::select(over, N::c(1.0f), N::c(0.0f));

  // Classic RK4 under held inputs.
  F K[7], Z[7], A[7], D[3], next[7];
  for (int i = 0; i < 7; ++i) Z[i] = Y[i];
  STAGES
  for (int stage = 0; stage < 4; ++stage) {
    const float weight = stage == 0 || stage == 3 ? 1.0f : 2.0f, h = stage == 2 ? dt : 0.5f * dt;
    T::derivative(CTX, Z, Z + 3, u[0], u + 1, force, K, K + 3);
    for (int i = 0; i < 7; ++i) A[i] = stage == 0 ? K[i] : A[i] + K[i] * weight;
    for (int i = 0; i < 3; ++i) D[i] = stage == 0 ? Z[i] : D[i] + Z[i] * weight;
    for (int i = 0; i < 7; ++i) Z[i] = Y[i] + K[i] * h;
  }
  for (int i = 0; i < 7; ++i) next[i] = Y[i] + A[i] * (dt / 6.0f);
  for (int i = 0; i < 3; ++i) D[i] = moved[i] + D[i] * (dt / 6.0f);
  if (HAS(E_WRENCH_NOISE)) {  // noise on the state itself, as the published roll-outs have it
    F noise[12];
    for (int k = 0; k < 3; ++k) Threefry::normals(key, clock, STREAM_SENSOR_AND_WRENCH, k, noise + 4 * k);
    for (int i = 0; i < 3; ++i) D[i] += PAR(P_noise + i) * noise[i];
    for (int i = 0; i < 7; ++i) next[i] += PAR(P_noise + 3 + i) * noise[3 + i];
  }
  F unit[4];
  T::normalize(next + 3, unit);
  for (int i = 0; i < 4; ++i) next[3 + i] = unit[i];
  F x = base[0] + D[0], y = base[1] + D[1], z = base[2] + D[2];
  M ok = command_ok & ((x * x + y * y + z * z) < PAR(P_limit) * PAR(P_limit)) &
         ((next[0] * next[0] + next[1] * next[1] + next[2] * next[2]) < PAR(P_limit + 1) * PAR(P_limit + 1)) &
         ((next[3] * next[3] + next[4] * next[4] + next[5] * next[5] + next[6] * next[6]) > N::c(0.5f));
  M good = alive & ok;
  for (int i = 0; i < 7; ++i) Y[i] = N::select(good, next[i], Y[i]);
  for (int i = 0; i < 3; ++i) {
    moved[i] = N::select(good, D[i], moved[i]);
    w[i] = N::select(good, u[1 + i], w[i]);
  }
  thrust = N::select(good, u[0], thrust);
  status = N::select(alive & N::invert(ok), N::c(1.0f), status);
  alive = good;
  CHECK_SAFE_BALL(base, moved)
  clock = clock + N::u(1u);
}

HOLD
STORE_POSITION(base, moved)
for (int i = 0; i < 3; ++i) {
  STORE(S_rate + i, w[i]);
  STORE(S_acceleration + i, i == 2 ? thrust * PAR(P_mass_inverse) : N::c(0.0f));
}
for (int i = 0; i < 7; ++i) STORE(S_velocity + i, Y[i]);
STORE(S_thrust, thrust);
STORE(S_status, status);
STORE(S_saturated, SATURATED_SHARE(saturated));
if (HAS(E_CLEARANCE)) {  // without a ground plane, contact is the host's to count
  STORE(S_contact, begun > 0 ? N::load(STATE(S_contact)) : N::c(0.0f));
  STORE(S_impact_speed, begun > 0 ? N::load(STATE(S_impact_speed)) : N::c(0.0f));
}
STORE_CLOCK(clock)
}
