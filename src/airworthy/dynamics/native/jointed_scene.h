// What a scene does to vehicles with joints: a small batch after each of its physics steps. `MODE_PLACES` writes where the spheres of
// links are from the root; the host looks at what they meet on their way, and `MODE_MEET` acts with the surfaces that it found. Needs
// jointed_contact.h and the batch's arrays; nothing here is flown where no sphere is near anything.
#define PARAMETERS_USED P_CONTROL_START
BATCH_OPEN
float* const own = scene.data + lane0;
#define SCENE(r) (own + (r) * stride)
F X[NY];
for (int i = 0; i < 10; ++i) X[i] = N::load(STATE(S_velocity + i));
for (int i = 0; i < 2 * JOINTS; ++i) X[10 + i] = N::load(STATE(S_joint + i));
if (mode == MODE_PLACES) {
  F places[3 * SPHERES];
  T::sphere_offsets(CTX, X + Q, X + J, places);
  for (int i = 0; i < 3 * SPHERES; ++i) N::store(SCENE(i), places[i]);
  continue;
}
F surface[T::SURFACE * SPHERES], base[3], moved[3], change[NU], approach;
for (int i = 0; i < T::SURFACE * SPHERES; ++i) surface[i] = N::load(SCENE(i));
for (int i = 0; i < 3; ++i) {
  base[i] = N::load(STATE(S_position + i));
  moved[i] = N::load(STATE(S_position_residual + i));
}
par_lanes[P_restitution] = N::c(restitution);
par_lanes[P_friction] = N::c(friction);
const M met = T::meet(CTX, dt, held_share, N::c(0.0f), surface, X, moved, change, &approach);
const F one = N::c(1.0f), zero = N::c(0.0f);
N::store(SCENE(0), N::select(met, one, zero));
N::store(SCENE(1), N::select(met, approach, zero));
if (!N::any(met)) continue;
#define PUT(r, x) N::store(STATE(r), N::select(met, x, N::load(STATE(r))))
// The next part of the launch counts from here.
F place[3], middle[3], drift[3];
for (int i = 0; i < 3; ++i) {
  const F sum = base[i] + moved[i], rest = moved[i] - (sum - base[i]);
  place[i] = sum;
  PUT(S_position + i, sum);
  PUT(S_position_residual + i, rest);
  PUT(S_launch_base + i, sum);
  PUT(S_launch_moved + i, rest);
  PUT(S_acceleration + i, N::load(STATE(S_acceleration + i)) + change[i] * (1.0f / dt));
}
for (int i = 0; i < 10; ++i) PUT(S_velocity + i, X[i]);
for (int i = 0; i < 2 * JOINTS; ++i) PUT(S_joint + i, X[10 + i]);
T::whole_motion(CTX, place, X + V, X + Q, X + W, X + J, X + JD, middle, drift);
for (int i = 0; i < 3; ++i) {
  PUT(S_center + i, middle[i]);
  PUT(S_center_velocity + i, drift[i]);
}
const F fastest = N::load(STATE(S_impact_speed));
PUT(S_contact, N::load(STATE(S_contact)) + one);
PUT(S_impact_speed, N::select(approach > fastest, approach, fastest));
if (HAS(E_IMU)) {
  // An accelerometer feels its support: what contact changed over the step.
  F more[3], more_turn[3], sample[3];
  const F still[3] = {zero, zero, zero};
  T::sensed_change(CTX, X + J, change, N::c(dt), more, more_turn);
  T::accelerometer(CTX, more, still, more_turn, sample);
  for (int i = 0; i < 3; ++i) {
    const F sum = N::load(STATE(S_imu + i)) + sample[i], limit = PAR(P_imu_limit);
    PUT(S_imu + i, N::select(sum > limit, limit, N::select(sum < zero - limit, zero - limit, sum)));
  }
  if (log_step >= 0)
    for (int i = 0; i < 6; ++i) N::store(imu_log.data + (log_step * 6 + i) * stride + lane0, N::load(STATE(S_imu + i)));
}
}
