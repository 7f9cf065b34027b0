// One launch of bare articulated physics: rotors, joint laws and the integrator over all steps, nothing else. A task is GROUP blocks
// of LANES environments (one environment on a GPU); arrays are (row, environment) with `stride` environments per row, a multiple of
// LANES. Parameters are one column for all, or one per environment (`each`). Traced blocks stand in struct T, enumerators S_*, IN_*
// and P_* come from the layouts in Python. The readable twin is airworthy.dynamics.articulated.twin.
#define STATE(r) (state.data + (r) * stride + lane0)
#define INPUT(r) (inputs.data + (r) * stride + lane0)
#if LANES == 1
#define CONTEXT const float* par_data, const int par_stride, const int par_lane
#define CTX par_data, par_stride, par_lane
#define PAR(r) (par_data[(r) * par_stride + par_lane])
#else
#define CONTEXT const F* par_lanes
#define CTX par_lanes
#define PAR(r) par_lanes[r]
#endif
enum { V = 0, Q = 3, W = 7, J = 10, JD = 10 + JOINTS, NY = 10 + 2 * JOINTS };           // state: velocity, attitude, rate, joints
enum { DV = 0, DW = 3, DJD = 6, TORQUE = 6 + JOINTS, FELT = 6 + 2 * JOINTS, NK = 9 + 2 * JOINTS };  // what an evaluation yields
struct T {
TRACED_BLOCKS
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
};
#if LANES == 1
const int block_end = task + 1;
const float* const par_data = params.data;
const int par_stride = each ? stride : 1;
#else
F par_lanes[P_COUNT];
const int block_end = task * GROUP + GROUP < block_count ? task * GROUP + GROUP : block_count;
#endif
for (int block = LANES == 1 ? task : task * GROUP; block < block_end; ++block) {
const int lane0 = block * LANES;
#if LANES == 1
const int par_lane = each ? lane0 : 0;
#else
if (each || block == task * GROUP)
  for (int r = 0; r < P_COUNT; ++r) par_lanes[r] = each ? N::load(params.data + r * stride + lane0) : N::c(params.data[r]);
#endif
F Y[NY], base[3], moved[3], rotor[ROTORS], asked[ROTORS], command[ROTORS], target[JOINTS], force[3], moment[3];
F torque[JOINTS], felt[3], pressed = N::c(0.0f);
for (int i = 0; i < 3; ++i) {
  base[i] = N::load(STATE(S_position + i));
  moved[i] = N::load(STATE(S_position_residual + i));
  force[i] = N::load(INPUT(IN_force + i));
  moment[i] = N::load(INPUT(IN_moment + i));
  felt[i] = N::load(STATE(S_acceleration + i));
}
for (int i = 0; i < NY; ++i) Y[i] = N::load(STATE(S_velocity + i));
for (int i = 0; i < ROTORS; ++i) {
  rotor[i] = N::load(STATE(S_rotor_speed + i));
  asked[i] = N::load(INPUT(IN_command + i));
}
for (int i = 0; i < JOINTS; ++i) {
  target[i] = N::load(INPUT(IN_joint_target + i));
  torque[i] = N::load(STATE(S_joint_torque + i));
}
T::within_limits(CTX, asked, command);
F keep_rise[ROTORS], keep_fall[ROTORS];
T::rotor_keep(CTX, N::c(dt), keep_rise, keep_fall);

PRAGMA_NOUNROLL
for (int step = 0; step < substeps; ++step) {
  F half[ROTORS], whole[ROTORS];
  T::rotor_step(CTX, rotor, command, keep_rise, keep_fall, N::c(dt), half, whole);
  const float h2 = 0.5f * dt;
  F Z[NY], next[NY], K[NK], sum[NY], once[NY], shift[3], total[3], single[3];
  for (int i = 0; i < NY; ++i) Z[i] = Y[i];
  // One evaluation stands in the code, however many an integrator has: it is thousands of operations.
  PRAGMA_NOUNROLL
  for (int stage = 0; stage < stages; ++stage) {
    const float h = integrator == INTEGRATOR_SEMI_IMPLICIT || (integrator == INTEGRATOR_EXTRAPOLATED && stage == 0) ? dt : h2;
    const bool at_half = integrator == INTEGRATOR_EXTRAPOLATED ? stage == 2 : stage == 1 || stage == 2, last = stage == 3;
    const F* const law = integrator == INTEGRATOR_MIDPOINT ? Y : Z;
    const F* const spin = last ? whole : at_half ? half : rotor;
    const bool explicitly = integrator == INTEGRATOR_RK4;
    T::evaluate(CTX, Z + Q, Z + W, Z + J, Z + JD, law + J, law + JD, spin, command, target, force, moment,
                N::c(explicitly ? 0.0f : h), N::c(explicitly ? dt : h), K + DV, K + DW, K + DJD, K + TORQUE, K + FELT);
    if (stage == 0)
      for (int i = 0; i < 3; ++i) felt[i] = K[FELT + i];
    if (integrator == INTEGRATOR_SEMI_IMPLICIT) {
      T::move(Y, K, dt, next, shift);
    } else if (integrator == INTEGRATOR_MIDPOINT) {
      if (stage == 0)
        T::move(Y, K, h2, Z, shift);
      else
        T::move_by_mean(Y, K, dt, next, shift);
    } else if (integrator == INTEGRATOR_EXTRAPOLATED) {
      if (stage == 0) {
        T::move(Y, K, dt, once, single);
      } else if (stage == 1) {
        T::move(Y, K, h2, Z, total);
      } else {
        T::move(Z, K, h2, next, shift);
        for (int i = 0; i < 3; ++i) shift[i] = (total[i] + shift[i]) * 2.0f - single[i];
        for (int i = 0; i < NY; ++i) next[i] = next[i] * 2.0f - once[i];
        T::normalize(next + Q, next + Q);
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
        Z[i] = Y[i] + slope[i] * ahead;
      }
      if (stage == 3) {
        for (int i = 0; i < NY; ++i) next[i] = Y[i] + sum[i] * (dt / 6.0f);
        for (int i = 0; i < 3; ++i) shift[i] = total[i] * (dt / 6.0f);
        T::normalize(next + Q, next + Q);
      }
    }
  }
  for (int i = 0; i < 3; ++i) moved[i] += shift[i];
  for (int i = 0; i < NY; ++i) Y[i] = next[i];
  for (int i = 0; i < ROTORS; ++i) rotor[i] = whole[i];
  for (int i = 0; i < JOINTS; ++i) torque[i] = K[TORQUE + i];
  F count;
  T::on_stops(CTX, Y + J, &count);
  pressed += N::select(count > N::c(0.0f), N::c(1.0f), N::c(0.0f));
}

T::wrapped(Y + J, Y + J);
for (int i = 0; i < 3; ++i) {
  const F sum = base[i] + moved[i];
  N::store(STATE(S_position + i), sum);
  N::store(STATE(S_position_residual + i), moved[i] - (sum - base[i]));
  N::store(STATE(S_acceleration + i), felt[i]);
}
for (int i = 0; i < NY; ++i) N::store(STATE(S_velocity + i), Y[i]);
for (int i = 0; i < ROTORS; ++i) N::store(STATE(S_rotor_speed + i), rotor[i]);
for (int i = 0; i < JOINTS; ++i) N::store(STATE(S_joint_torque + i), torque[i]);
N::store(STATE(S_stop), pressed * (1.0f / (float)(substeps > 0 ? substeps : 1)));
}
