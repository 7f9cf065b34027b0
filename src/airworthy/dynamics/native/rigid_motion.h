// What the rigid family puts into rigid_step.cpp: a section per hook.
//@ MOTION_LOAD
const int variant = flags & (E_PLANAR | E_SQUARE | E_DRAG | E_DRAG_FULL | E_HUB_AIR);
//@ SENSED_RATE
w
//@ MOTION_STEP
  F factor[ROTORS], half_m[ROTORS], full_m[ROTORS], mean_rate[ROTORS], rate_dot[3];
  if (HAS(E_GROUND_EFFECT)) {
    T::ground_effect(CTX, p[2], q, factor);
  } else {
    for (int i = 0; i < ROTORS; ++i) factor[i] = N::c(1.0f);
  }
  if (HAS(E_EXACT_ROTORS)) {
    T::rotor_exact(CTX, m, command, half_m, full_m);
    for (int i = 0; i < ROTORS; ++i) mean_rate[i] = (full_m[i] - m[i]) / dt;
  }
  T::advance(CTX, variant, integrator, HAS(E_EXACT_ROTORS), dt, Y, command, wind, force, moment, factor, half_m, full_m, mean_rate,
             next, D, rate_dot, specific);
  if (HAS(E_IMU)) T::accelerometer(CTX, specific, w, rate_dot, accel);
  {
    F unit[4], limited[ROTORS];
    T::normalize(next + 3, unit);
    for (int i = 0; i < 4; ++i) next[3 + i] = unit[i];
    F sum = N::c(0.0f);
    for (int i = 0; i < ROTORS; ++i) sum += N::abs(next[10 + i]);
    const M rotors_ok = N::finite(sum);
    T::clip_rotors(CTX, next + 10, ceiling, limited);
    for (int i = 0; i < ROTORS; ++i) next[10 + i] = N::select(rotors_ok, limited[i], next[10 + i]);
  }
//@ MOTION_GROUND
  // Ground: impulses at the contact points, only where a lane is near it; lanes in the air come out unchanged.
  if (HAS(E_GROUND)) {
    const F height = base[2] + D[2];
    if (N::any(height - PAR(P_contact_reach) < PAR(P_ground_height))) {
      // Copies, since what a call points to cannot stay in registers.
      F support[3], support_turn[3], approach, felt[3], body[10], shift[3] = {D[0], D[1], D[2]};
      const F push[3] = {specific[0], specific[1], specific[2]};
      for (int i = 0; i < 10; ++i) body[i] = next[i];
      const float held_share = integrator == INTEGRATOR_RK4 ? 0.5f : integrator == INTEGRATOR_SEMI_IMPLICIT ? 1.0f : 0.0f;
      const M met = T::ground(CTX, dt, held_share, height, push, body, shift, support, support_turn, &approach);
      for (int i = 0; i < 10; ++i) next[i] = body[i];
      for (int i = 0; i < 3; ++i) D[i] = shift[i];
      touched += N::select(met, N::c(1.0f), N::c(0.0f));
      impact = N::select(met & (approach > impact), approach, impact);
      for (int i = 0; i < 3; ++i) {
        specific[i] = N::select(met, specific[i] + support[i], specific[i]);
        support_turn[i] += rate_dot[i];
      }
      if (HAS(E_IMU)) {
        T::accelerometer(CTX, specific, w, support_turn, felt);
        for (int i = 0; i < 3; ++i) accel[i] = N::select(met, felt[i], accel[i]);
      }
    }
  }
//@ MOTION_BATTERY
  if (HAS(E_BATTERY)) {
    F used, ratio;
    T::battery(CTX, charge, next + 10, dt, &used, &ratio);
    charge = used;
    ceiling = ratio;
  }
