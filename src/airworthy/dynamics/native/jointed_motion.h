// What vehicles with joints put into rigid_step.cpp: a section per hook. Bodies and joints: airworthy.dynamics.articulated. The state Y
// holds angles and rates of the joints behind the rotors' states.
//@ MOTION_LOAD
F *const joint = Y + 10 + ROTORS, *const joint_rate = joint + JOINTS;
F torque[JOINTS], asked_target[JOINTS], asked_angle[JOINTS], asked_gain[JOINTS], keep_rise[ROTORS], keep_fall[ROTORS];
F pressed = begun > 0 ? N::floor(N::load(STATE(S_stop)) * (float)begun + 0.5f) : N::c(0.0f), joints_asked = N::c(0.0f);
for (int i = 0; i < JOINTS; ++i) {
  torque[i] = N::load(STATE(S_joint_torque + i));
  asked_target[i] = N::load(INPUT(IN_joint_target + i));
  asked_angle[i] = N::load(INPUT(IN_joint_angle + i));
  asked_gain[i] = N::load(INPUT(IN_joint_gain + i));
  joints_asked += N::abs(asked_target[i]) + N::abs(asked_angle[i]);
}
// Angles at which inertia and allocation were last found: parts of a launch find them as the whole does.
F shape[JOINTS];
for (int i = 0; i < JOINTS; ++i) shape[i] = begun > 0 ? N::load(STATE(S_launch_joint + i)) : joint[i];
const M joints_ok = N::finite(joints_asked);
T::rotor_keep(CTX, N::c(dt), keep_rise, keep_fall);
//@ MOTION_SENSE
  F sensed[3];
  for (int i = 0; i < 3; ++i) sensed[i] = w[i];
  if (HAS(E_IMU)) T::sensed_rate(CTX, w, joint, joint_rate, sensed);
//@ SENSED_RATE
sensed
//@ MOTION_STEER
      // Laws steer the whole: its centre of mass as it is now; inertia and effectiveness change with the joints only, and slowly.
      F middle[3] = {p[0], p[1], p[2]}, drift[3] = {v[0], v[1], v[2]};
      if (level > LEVEL_ROTOR_THRUST) {
        T::believed_motion(CTX, p, v, q, w, joint, joint_rate, middle, drift);
        const bool anew = (begun + step) % SHAPE_STEPS == 0;
        if (anew)
          for (int i = 0; i < JOINTS; ++i) shape[i] = joint[i];
        if (anew || step == 0) {
        F whole_inertia[6], whole_inverse[6 * ROTORS], whole_collective[ROTORS], whole_gains[GAIN_ROWS], whole_trim[4];
        T::shaped(CTX, shape, whole_inertia, whole_inverse, whole_collective, whole_gains, whole_trim);
        STEERED_ROWS
        const M measured = PAR(P_believed_measured) > N::c(0.5f);
        for (int i = 0; i < 6 * ROTORS; ++i)
          par_lanes[P_control_inverse + i] = N::select(measured, whole_inverse[i], PAR(P_believed_inverse + i));
        for (int i = 0; i < ROTORS; ++i)
          par_lanes[P_control_collective + i] = N::select(measured, whole_collective[i], PAR(P_believed_collective + i));
        for (int i = 0; i < 4; ++i) par_lanes[P_control_trim + i] = N::select(measured, whole_trim[i], PAR(P_believed_trim + i));
        }
      }
      const F *const p = middle, *const v = drift;
//@ MOTION_STEP
  F acted[JOINTS], felt[FELT_COUNT], half[ROTORS], whole[ROTORS], aim[JOINTS];
  T::joint_aim(CTX, joint, asked_target, asked_angle, asked_gain, aim);
  {
    const F* const rotor = m;
    const int stages = integrator == INTEGRATOR_RK4            ? 4
                       : integrator == INTEGRATOR_EXTRAPOLATED ? 3
                       : integrator == INTEGRATOR_MIDPOINT     ? 2
                                                               : 1;
    F X[NY];
    for (int i = 0; i < 10; ++i) X[i] = Y[i];
    for (int i = 0; i < 2 * JOINTS; ++i) X[10 + i] = joint[i];
    T::rotor_step(CTX, rotor, command, keep_rise, keep_fall, N::c(dt), half, whole);
    MOTION_STAGES
    for (int i = 0; i < 10; ++i) next[i] = after[i];
    for (int i = 0; i < ROTORS; ++i) next[10 + i] = whole[i];
    for (int i = 0; i < 2 * JOINTS; ++i) next[10 + ROTORS + i] = after[10 + i];
    for (int i = 0; i < JOINTS; ++i) acted[i] = K[TORQUE + i];
    for (int i = 0; i < 3; ++i) D[i] = shift[i];
  }
  if (HAS(E_BATTERY)) {
    F limited[ROTORS];
    T::clip_rotors(CTX, next + 10, ceiling, limited);
    for (int i = 0; i < ROTORS; ++i) next[10 + i] = limited[i];
  }
  for (int i = 0; i < 3; ++i) specific[i] = felt[i];
  if (HAS(E_IMU)) T::accelerometer(CTX, felt + 3, sensed, felt + 6, accel);
//@ MOTION_BATTERY
  if (HAS(E_BATTERY)) {
    F used, ratio;
    T::battery(CTX, charge, next + 10, N::c(dt), &used, &ratio);
    charge = used;
    ceiling = ratio;
  }
//@ MOTION_BOUNDS
    ok = ok & joints_ok;
    for (int i = 0; i < JOINTS; ++i) ok = ok & (N::abs(next[10 + ROTORS + JOINTS + i]) < PAR(P_limit + 3));
//@ MOTION_KEPT
  {
    F count;
    T::on_stops(CTX, joint, &count);
    pressed += N::select(count > N::c(0.0f), N::c(1.0f), N::c(0.0f));
    for (int i = 0; i < JOINTS; ++i) torque[i] = N::select(alive, acted[i], torque[i]);
  }
//@ MOTION_STORE
if (!unfinished) {
  F angles[JOINTS];
  T::wrapped(joint, angles);
  for (int i = 0; i < JOINTS; ++i) joint[i] = angles[i];
}
{
  F place[3], middle[3], drift[3];
  for (int i = 0; i < 3; ++i) place[i] = base[i] + moved[i];
  T::whole_motion(CTX, place, v, q, w, joint, joint_rate, middle, drift);
  for (int i = 0; i < 3; ++i) {
    STORE(S_center + i, middle[i]);
    STORE(S_center_velocity + i, drift[i]);
  }
}
for (int i = 0; i < JOINTS; ++i) {
  STORE(S_joint_torque + i, torque[i]);
  STORE(S_launch_joint + i, unfinished ? shape[i] : N::c(0.0f));
}
STORE(S_stop, SATURATED_SHARE(pressed));
//@ MOTION_GROUND
  // Ground: impulses at the spheres of links, only where a lane is near it.
  if (HAS(E_GROUND)) {
    const F height = base[2] + D[2];
    if (N::any(height - PAR(P_contact_reach) < PAR(P_ground_height))) {
      F body[NY], shift[3] = {D[0], D[1], D[2]}, change[NU], approach, more[3], more_turn[3];
      for (int i = 0; i < 10; ++i) body[i] = next[i];
      for (int i = 0; i < 2 * JOINTS; ++i) body[10 + i] = next[10 + ROTORS + i];
      const float held_share = integrator == INTEGRATOR_SEMI_IMPLICIT ? 1.0f : 0.5f;
      const M met = T::meet(CTX, dt, held_share, height, 0, body, shift, change, &approach);
      for (int i = 0; i < 10; ++i) next[i] = body[i];
      for (int i = 0; i < 2 * JOINTS; ++i) next[10 + ROTORS + i] = body[10 + i];
      for (int i = 0; i < 3; ++i) {
        D[i] = shift[i];
        specific[i] += change[i] * (1.0f / dt);
      }
      touched += N::select(met, N::c(1.0f), N::c(0.0f));
      impact = N::select(met & (approach > impact), approach, impact);
      if (HAS(E_IMU)) {
        T::sensed_change(CTX, joint, change, N::c(dt), more, more_turn);
        for (int i = 0; i < 3; ++i) {
          felt[3 + i] += more[i];
          felt[6 + i] += more_turn[i];
        }
        T::accelerometer(CTX, felt + 3, sensed, felt + 6, accel);
      }
    }
  }
