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
MOTION_PARTS
struct T {
TRACED_BLOCKS
MOTION_MOVES
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
const F still[3] = {N::c(0.0f), N::c(0.0f), N::c(0.0f)};
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
  F* const X = Y;
  MOTION_STAGES
  for (int i = 0; i < 3; ++i) moved[i] += shift[i];
  for (int i = 0; i < NY; ++i) Y[i] = after[i];
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
