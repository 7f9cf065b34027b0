// One step of the equations of motion for one specialised derivative (VARIANT is replaced by its name). The state is Y: velocity,
// attitude, rate, rotor states; `moved` returns the time integral of velocity over the step. Nothing is chosen inside the stages,
// so that the compiler keeps intermediate values in registers: this alone is worth a factor of two.
static INLINE void advance_VARIANT(CONTEXT, int integrator, bool exact, float dt, const F* Y, const F* command, const F* wind,
                                    const F* force, const F* moment, const F* factor, const F* half_m, const F* full_m,
                                    const F* mean_rate, F* next, F* moved, F* first_rate_dot, F* first_specific) {
  F K[10 + ROTORS], unused[3];
  const M exactly_so = EXACT ? PAR(P_rotor_exact) > N::c(0.5f) : N::never();
  const F exactly = N::select(exactly_so, N::c(1.0f), N::c(0.0f));
  derivative_VARIANT(CTX, Y, Y + 3, Y + 7, Y + 10, command, wind, force, moment FACTOR, K, K + 3, K + 7, K + 10, first_specific);
  for (int i = 0; i < 3; ++i) first_rate_dot[i] = K[7 + i];
  if (integrator != INTEGRATOR_RK4) {
    for (int i = 0; i < 10 + ROTORS; ++i) next[i] = Y[i] + K[i] * dt;
    for (int i = 0; i < 3; ++i) moved[i] = (integrator == INTEGRATOR_SEMI_IMPLICIT ? next[i] : Y[i]) * dt;
    if (integrator == INTEGRATOR_SEMI_IMPLICIT) turn(Y + 3, next + 7, N::c(dt), next + 3);
  } else {
    F Z[10 + ROTORS], A[10 + ROTORS], D[3];
    for (int i = 0; i < 10 + ROTORS; ++i) A[i] = K[i];
    for (int i = 0; i < 3; ++i) D[i] = Y[i];
    STAGES
    for (int stage = 1; stage < 4; ++stage) {
      const float h = stage == 3 ? dt : 0.5f * dt, weight = stage == 3 ? 1.0f : 2.0f;
      for (int i = 0; i < 10 + ROTORS; ++i) Z[i] = Y[i] + K[i] * h;
      if (EXACT)
        for (int i = 0; i < ROTORS; ++i) Z[10 + i] = N::select(exactly_so, stage == 3 ? full_m[i] : half_m[i], Z[10 + i]);
      derivative_VARIANT(CTX, Z, Z + 3, Z + 7, Z + 10, command, wind, force, moment FACTOR, K, K + 3, K + 7, K + 10, unused);
      for (int i = 0; i < 10 + ROTORS; ++i) A[i] += K[i] * weight;
      for (int i = 0; i < 3; ++i) D[i] += Z[i] * weight;
    }
    for (int i = 0; i < 10 + ROTORS; ++i) next[i] = Y[i] + A[i] * (dt / 6.0f);
    for (int i = 0; i < 3; ++i) moved[i] = D[i] * (dt / 6.0f);
  }
  if (EXACT)
    for (int i = 0; i < ROTORS; ++i) next[10 + i] = N::select(exactly_so, full_m[i], next[10 + i]);
}
