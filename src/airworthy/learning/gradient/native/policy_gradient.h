// One window of flights with a policy, forwards and backwards, a block of LANES environments per task: STEPS times the network and the
// traced step, then the adjoint of both. Weights are broadcast; inputs and slopes of each layer are stored as rows, whose products
// are the gradient by the weights, block by block; on a GPU they are the host's. Its twin is `airworthy.learning.gradient.twin`.
// Needs network.h. STATE, ACTIONS, OBSERVED, HIDDEN, PARAMETERS are enumerators; T::step gives the next state, its observation and the cost.
#if defined(__CUDA_ARCH__) || defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define SEPARATE __device__ __noinline__
#else
#define SEPARATE __attribute__((noinline))
#endif
struct T {
TRACED_BLOCKS
};
const int lane0 = task * LANES;
const float* const w1 = weights.data;
const float* const b1 = w1 + HIDDEN * OBSERVED;
const float* const w2 = b1 + HIDDEN;
const float* const b2 = w2 + HIDDEN * HIDDEN;
const float* const w3 = b2 + HIDDEN;
const float* const b3 = w3 + ACTIONS * HIDDEN;
const float* const v1 = b3 + ACTIONS;
const float* const v2 = v1 + OBSERVED * HIDDEN;
const float* const v3 = v2 + HIDDEN * HIDDEN;
// On a CPU a block's rows lie together, (block, row, step, lane): what one block writes forwards and reads backwards then stays in
// the second cache. On a GPU neighbours are environments: (row, step, env).
#if LANES == 1
#define AT(array, rows, r, t) (array.data + ((long long)(r) * steps + (t)) * env_count + lane0)
#else
#define AT(array, rows, r, t) (array.data + (((long long)task * (rows) + (r)) * steps + (t)) * LANES)
#endif
#define INPUT_ROW(r, t) AT(inputs, I_STATE + STATE, r, t)
#define SLOPE_ROW(r, t) AT(slopes, 2 * HIDDEN + ACTIONS, r, t)
// Rows of `inputs`: observation, first and second hidden layer, action, state. Of `slopes`: of the three layers' sums.
enum { I_HIDDEN1 = OBSERVED, I_HIDDEN2 = I_HIDDEN1 + HIDDEN, I_ACTION = I_HIDDEN2 + HIDDEN, I_STATE = I_ACTION + ACTIONS };
enum { D_FIRST = 0, D_SECOND = HIDDEN, D_THIRD = 2 * HIDDEN };
F p[PARAMETERS], s[STATE], o[OBSERVED], h1[HIDDEN], h2[HIDDEN], a[ACTIONS], out[STATE + OBSERVED + 1];
for (int k = 0; k < PARAMETERS; ++k) p[k] = N::load(parameters.data + k * env_count + lane0);
for (int k = 0; k < STATE; ++k) s[k] = N::load(state.data + k * env_count + lane0);
T::observe(s, o);
F total = N::c(0.0f);
for (int t = 0; t < steps; ++t) {
  Net::layer(HIDDEN, OBSERVED, w1, b1, o, h1);
  Net::layer(HIDDEN, HIDDEN, w2, b2, h1, h2);
  Net::layer(ACTIONS, HIDDEN, w3, b3, h2, a);
  for (int k = 0; k < OBSERVED; ++k) N::store(INPUT_ROW(k, t), o[k]);
  for (int k = 0; k < HIDDEN; ++k) N::store(INPUT_ROW(I_HIDDEN1 + k, t), h1[k]);
  for (int k = 0; k < HIDDEN; ++k) N::store(INPUT_ROW(I_HIDDEN2 + k, t), h2[k]);
  for (int k = 0; k < ACTIONS; ++k) N::store(INPUT_ROW(I_ACTION + k, t), a[k]);
  for (int k = 0; k < STATE; ++k) N::store(INPUT_ROW(I_STATE + k, t), s[k]);
  T::step(s, a, p, out);
  for (int k = 0; k < STATE; ++k) s[k] = out[k];
  for (int k = 0; k < OBSERVED; ++k) o[k] = out[STATE + k];
  total += out[STATE + OBSERVED];
}
// A flight that left the numbers teaches nothing and spoils no other: its rows become zeros.
F size = total;
for (int k = 0; k < STATE; ++k) {
  N::store(state.data + k * env_count + lane0, s[k]);
  size += s[k] * N::c(0.0f);
}
N::store(cost.data + lane0, total);
const M sound = N::finite(size);
const bool spoilt = N::any(N::invert(sound));
const F zero = N::c(0.0f), one = N::c(1.0f);
F bar[STATE + OBSERVED + 1], g[STATE + ACTIONS], d1[HIDDEN], d2[HIDDEN], d3[ACTIONS];
for (int k = 0; k < STATE + OBSERVED; ++k) bar[k] = zero;
for (int t = steps - 1; t >= 0; --t) {
  for (int k = 0; k < STATE; ++k) s[k] = N::load(INPUT_ROW(I_STATE + k, t));
  for (int k = 0; k < ACTIONS; ++k) a[k] = N::load(INPUT_ROW(I_ACTION + k, t));
  for (int k = 0; k < HIDDEN; ++k) h1[k] = N::load(INPUT_ROW(I_HIDDEN1 + k, t));
  for (int k = 0; k < HIDDEN; ++k) h2[k] = N::load(INPUT_ROW(I_HIDDEN2 + k, t));
  bar[STATE + OBSERVED] = N::c(seed);
  T::step_adjoint(s, a, p, bar, g);
  for (int k = 0; k < ACTIONS; ++k) d3[k] = g[STATE + k] * (one - a[k] * a[k]);
  Net::product(HIDDEN, ACTIONS, v3, nullptr, d3, d2);
  for (int k = 0; k < HIDDEN; ++k) d2[k] *= one - h2[k] * h2[k];
  Net::product(HIDDEN, HIDDEN, v2, nullptr, d2, d1);
  for (int k = 0; k < HIDDEN; ++k) d1[k] *= one - h1[k] * h1[k];
  if (spoilt) {
    for (int k = 0; k < I_STATE; ++k) N::store(INPUT_ROW(k, t), N::select(sound, N::load(INPUT_ROW(k, t)), zero));
    for (int k = 0; k < ACTIONS; ++k) d3[k] = N::select(sound, d3[k], zero);
    for (int k = 0; k < HIDDEN; ++k) d2[k] = N::select(sound, d2[k], zero);
    for (int k = 0; k < HIDDEN; ++k) d1[k] = N::select(sound, d1[k], zero);
  }
  for (int k = 0; k < HIDDEN; ++k) N::store(SLOPE_ROW(D_FIRST + k, t), d1[k]);
  for (int k = 0; k < HIDDEN; ++k) N::store(SLOPE_ROW(D_SECOND + k, t), d2[k]);
  for (int k = 0; k < ACTIONS; ++k) N::store(SLOPE_ROW(D_THIRD + k, t), d3[k]);
  for (int k = 0; k < STATE; ++k) bar[k] = g[k] * keep;
  Net::product(OBSERVED, HIDDEN, v1, nullptr, d1, bar + STATE);
}
#if LANES > 1
const int count = steps * LANES;
float* const g1 = gradient.data + (long long)task * (v1 - w1);
Rows::outer(HIDDEN, OBSERVED, 0, count, count, SLOPE_ROW(D_FIRST, 0), INPUT_ROW(0, 0), g1);
Rows::outer(HIDDEN, HIDDEN, 0, count, count, SLOPE_ROW(D_SECOND, 0), INPUT_ROW(I_HIDDEN1, 0), g1 + (w2 - w1));
Rows::outer(ACTIONS, HIDDEN, 0, count, count, SLOPE_ROW(D_THIRD, 0), INPUT_ROW(I_HIDDEN2, 0), g1 + (w3 - w1));
#endif
