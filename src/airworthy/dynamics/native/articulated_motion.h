// The integrators of vehicles with joints, shared by the bare step and by flights. X is the state: velocity, attitude, rate, angles and
// rates of the joints; `after` and `shift` are the state and the displacement one step on, `felt` what the first evaluation yields
// beside accelerations. AIM are the joints' targets, AIR the velocity of the air; `half` and `whole` the rotors' states after half the step and after all of it.
//@ MOTION_PARTS
enum { V = 0, Q = 3, W = 7, J = 10, JD = 10 + JOINTS, NY = 10 + 2 * JOINTS };           // state: velocity, attitude, rate, joints
enum { DV = 0, DW = 3, DJD = 6, TORQUE = 6 + JOINTS, FELT = 6 + 2 * JOINTS, NK = FELT + FELT_COUNT };  // what an evaluation yields
//@ MOTION_MOVES
// A semi-implicit step: velocities first, then positions by the new ones; `shift` is the displacement.
static INLINE void move(const F* from, const F* K, const float h, F* to, F* shift) {
  F next[NY];
  for (int i = 0; i < 3; ++i) {
    next[V + i] = from[V + i] + K[DV + i] * h;
    next[W + i] = from[W + i] + K[DW + i] * h;
    shift[i] = next[V + i] * h;
  }
  turned(from + Q, next + W, N::c(h), next + Q);
  for (int i = 0; i < JOINTS; ++i) {
    next[JD + i] = from[JD + i] + K[DJD + i] * h;
    next[J + i] = from[J + i] + next[JD + i] * h;
  }
  for (int i = 0; i < NY; ++i) to[i] = next[i];
}
// The second half of a midpoint step: positions by the mean of old and new velocity.
static INLINE void move_by_mean(const F* from, const F* K, const float dt, F* to, F* shift) {
  F next[NY], mean[3];
  const float h = 0.5f * dt;
  for (int i = 0; i < 3; ++i) {
    next[V + i] = from[V + i] + K[DV + i] * dt;
    next[W + i] = from[W + i] + K[DW + i] * dt;
    shift[i] = (from[V + i] + next[V + i]) * h;
    mean[i] = (from[W + i] + next[W + i]) * 0.5f;
  }
  turned(from + Q, mean, N::c(dt), next + Q);
  for (int i = 0; i < JOINTS; ++i) {
    next[JD + i] = from[JD + i] + K[DJD + i] * dt;
    next[J + i] = from[J + i] + (from[JD + i] + next[JD + i]) * h;
  }
  for (int i = 0; i < NY; ++i) to[i] = next[i];
}
//@ MOTION_STAGES
  const float h2 = 0.5f * dt;
  F Z[NY], after[NY], K[NK], sum[NY], once[NY], shift[3], total[3], single[3];
  for (int i = 0; i < NY; ++i) Z[i] = X[i];
  // One evaluation stands in the code, however many an integrator has: it is thousands of operations.
  PRAGMA_NOUNROLL
  for (int stage = 0; stage < stages; ++stage) {
    const float h = integrator == INTEGRATOR_SEMI_IMPLICIT || (integrator == INTEGRATOR_EXTRAPOLATED && stage == 0) ? dt : h2;
    const bool at_half = integrator == INTEGRATOR_EXTRAPOLATED ? stage == 2 : stage == 1 || stage == 2, last = stage == 3;
    const F* const law = integrator == INTEGRATOR_MIDPOINT ? X : Z;
    const F* const spin = last ? whole : at_half ? half : rotor;
    const bool explicitly = integrator == INTEGRATOR_RK4;
    T::evaluate(CTX, Z + Q, Z + W, Z + J, Z + JD, law + J, law + JD, spin, command, AIM, force, moment, Z + V, AIR,
                N::c(explicitly ? 0.0f : h), N::c(explicitly ? dt : h), K + DV, K + DW, K + DJD, K + TORQUE, K + FELT FELT_MORE);
    if (stage == 0)
      for (int i = 0; i < FELT_COUNT; ++i) felt[i] = K[FELT + i];
    if (integrator == INTEGRATOR_SEMI_IMPLICIT) {
      T::move(X, K, dt, after, shift);
    } else if (integrator == INTEGRATOR_MIDPOINT) {
      if (stage == 0)
        T::move(X, K, h2, Z, shift);
      else
        T::move_by_mean(X, K, dt, after, shift);
    } else if (integrator == INTEGRATOR_EXTRAPOLATED) {
      if (stage == 0) {
        T::move(X, K, dt, once, single);
      } else if (stage == 1) {
        T::move(X, K, h2, Z, total);
      } else {
        T::move(Z, K, h2, after, shift);
        for (int i = 0; i < 3; ++i) shift[i] = (total[i] + shift[i]) * 2.0f - single[i];
        for (int i = 0; i < NY; ++i) after[i] = after[i] * 2.0f - once[i];
        T::normalize(after + Q, after + Q);
      }
    } else {
      F slope[NY];
      const float weight = stage == 0 || stage == 3 ? 1.0f : 2.0f, ahead = stage == 2 ? dt : h2;
      for (int i = 0; i < 3; ++i) {
        slope[V + i] = K[DV + i];
        slope[W + i] = K[DW + i];
        total[i] = stage == 0 ? Z[V + i] : total[i] + Z[V + i] * weight;
      }
      T::attitude_slope(Z + Q, Z + W, slope + Q);
      for (int i = 0; i < JOINTS; ++i) {
        slope[J + i] = Z[JD + i];
        slope[JD + i] = K[DJD + i];
      }
      for (int i = 0; i < NY; ++i) {
        sum[i] = stage == 0 ? slope[i] : sum[i] + slope[i] * weight;
        Z[i] = X[i] + slope[i] * ahead;
      }
      if (stage == 3) {
        for (int i = 0; i < NY; ++i) after[i] = X[i] + sum[i] * (dt / 6.0f);
        for (int i = 0; i < 3; ++i) shift[i] = total[i] * (dt / 6.0f);
        T::normalize(after + Q, after + Q);
      }
    }
  }
