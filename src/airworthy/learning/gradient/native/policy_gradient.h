// One window of flights with a policy, forwards and backwards, a block of LANES environments per task: STEPS times the network and the
// traced step, then the adjoint of both. Weights are broadcast; inputs and slopes of each layer are stored as rows, whose products
// are the gradient by the weights, block by block; on a GPU they are the host's. Its twin is `airworthy.learning.gradient.twin`.
// Needs network.h. STATE, ACTIONS, OBSERVED, HIDDEN, PARAMETERS are enumerators, CRITIC (1: a network tells what comes after the
// window) and RECURRENT (1: the middle layer is a GRU), too; T::step gives the next state, its observation and the cost.
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
// Of a GRU `w2` are the gates' matrices by what comes in and `u2` those by memory, 3 HIDDEN rows each: reset, update, new.
enum { MIDDLE = RECURRENT ? 3 * HIDDEN : HIDDEN, BY_MEMORY = RECURRENT ? 3 * HIDDEN : 0 };
const float* const w2 = b1 + HIDDEN;
const float* const b2 = w2 + MIDDLE * HIDDEN;
const float* const u2 = b2 + MIDDLE;
const float* const c2 = u2 + BY_MEMORY * HIDDEN;
const float* const w3 = c2 + BY_MEMORY;
const float* const b3 = w3 + ACTIONS * HIDDEN;
const float* const v1 = b3 + ACTIONS;
const float* const v2 = v1 + OBSERVED * HIDDEN;
const float* const y2 = v2 + MIDDLE * HIDDEN;
const float* const v3 = y2 + BY_MEMORY * HIDDEN;
// On a CPU a step's rows lie together, (block, step, row, lane): what one block writes forwards and reads backwards then stays in
// the second cache, and a step touches three pages of memory in the order of their lines, not one per row, of which a processor
// knows few at once. On a GPU neighbours are environments: (row, step, env).
#if LANES == 1
#define AT(array, rows, r, t) (array.data + ((long long)(r) * steps + (t)) * env_count + lane0)
#else
#define AT(array, rows, r, t) (array.data + (((long long)task * steps + (t)) * (rows) + (r)) * LANES)
#endif
// Rows of `inputs`: observation, first and second hidden layer, action, of a GRU memory before, gates, and what the reset gate
// multiplies; state. Of `slopes`: of the layers' sums.
enum { I_HIDDEN1 = OBSERVED, I_HIDDEN2 = I_HIDDEN1 + HIDDEN, I_ACTION = I_HIDDEN2 + HIDDEN, I_MEMORY = I_ACTION + ACTIONS };
enum { I_GATES = I_MEMORY + BY_MEMORY / 3, I_STATE = I_GATES + BY_MEMORY + BY_MEMORY / 3 };
enum { D_FIRST = 0, D_SECOND = HIDDEN, D_MEMORY = D_SECOND + MIDDLE, D_THIRD = D_MEMORY + BY_MEMORY };
enum { INPUT_ROWS = I_STATE + STATE, SLOPE_ROWS = D_THIRD + ACTIONS };
#define INPUT_ROW(r, t) AT(inputs, INPUT_ROWS, r, t)
#define SLOPE_ROW(r, t) AT(slopes, SLOPE_ROWS, r, t)
F p[PARAMETERS], s[STATE], o[OBSERVED], h1[HIDDEN], h2[HIDDEN], a[ACTIONS], out[STATE + OBSERVED + 1];
F u[MIDDLE], v[BY_MEMORY + 1], m[HIDDEN];
for (int k = 0; k < PARAMETERS; ++k) p[k] = N::load(parameters.data + k * env_count + lane0);
for (int k = 0; k < STATE; ++k) s[k] = N::load(state.data + k * env_count + lane0);
if (RECURRENT)
  for (int k = 0; k < HIDDEN; ++k) m[k] = N::load(memory.data + k * env_count + lane0);
T::observe(s, o);
const F zero = N::c(0.0f), one = N::c(1.0f), half = N::c(0.5f);
F total = N::c(0.0f);
float far = seed;
for (int t = 0; t < steps; ++t) {
  Net::layer(HIDDEN, OBSERVED, w1, b1, o, h1);
  if (RECURRENT) {
    Net::product(MIDDLE, HIDDEN, w2, b2, h1, u);
    Net::product(BY_MEMORY, HIDDEN, u2, c2, m, v);
    for (int k = 0; k < HIDDEN; ++k) {
      const F r = half + half * Net::tanh(half * (u[k] + v[k]));
      const F z = half + half * Net::tanh(half * (u[HIDDEN + k] + v[HIDDEN + k]));
      const F fresh = Net::tanh(u[2 * HIDDEN + k] + r * v[2 * HIDDEN + k]);
      N::store(INPUT_ROW(I_MEMORY + k, t), m[k]);
      N::store(INPUT_ROW(I_GATES + k, t), r);
      N::store(INPUT_ROW(I_GATES + HIDDEN + k, t), z);
      N::store(INPUT_ROW(I_GATES + 2 * HIDDEN + k, t), fresh);
      N::store(INPUT_ROW(I_GATES + 3 * HIDDEN + k, t), v[2 * HIDDEN + k]);
      m[k] = h2[k] = fresh + z * (m[k] - fresh);
    }
  } else {
    Net::layer(HIDDEN, HIDDEN, w2, b2, h1, h2);
  }
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
  if (CRITIC) {
    N::store(AT(returns, 1, 0, t), out[STATE + OBSERVED]);
    far *= discount;
  }
}
// A flight that left the numbers teaches nothing and spoils no other: its rows become zeros.
F size = total;
for (int k = 0; k < STATE; ++k) {
  N::store(state.data + k * env_count + lane0, s[k]);
  size += s[k] * N::c(0.0f);
}
if (RECURRENT)
  for (int k = 0; k < HIDDEN; ++k) N::store(memory.data + k * env_count + lane0, m[k]);
N::store(cost.data + lane0, total);
const M sound = N::finite(size);
const bool spoilt = N::any(N::invert(sound));
F bar[STATE + OBSERVED + 1], g[STATE + ACTIONS], d1[HIDDEN], d2[HIDDEN], d3[ACTIONS];
for (int k = 0; k < STATE + OBSERVED; ++k) bar[k] = zero;
if (CRITIC) {
  // What comes after the window is a network of what is seen at its end: (1 - discount) times the discounted sum of costs, so that
  // it is as large as a step's cost.
  const float* const q1 = value.data;
  const float* const e1 = q1 + HIDDEN * OBSERVED;
  const float* const q2 = e1 + HIDDEN;
  const float* const e2 = q2 + HIDDEN * HIDDEN;
  const float* const q3 = e2 + HIDDEN;
  const float* const e3 = q3 + HIDDEN;
  const float* const x1 = e3 + 1;
  const float* const x2 = x1 + OBSERVED * HIDDEN;
  F k1[HIDDEN], k2[HIDDEN], told[1];
#define VALUE_OF(seen) \
  Net::layer(HIDDEN, OBSERVED, q1, e1, seen, k1); \
  Net::layer(HIDDEN, HIDDEN, q2, e2, k1, k2); \
  Net::product(1, HIDDEN, q3, e3, k2, told);
  VALUE_OF(o)
  const F weight = N::c(far / (1.0f - discount));
  for (int k = 0; k < HIDDEN; ++k) d2[k] = weight * N::c(q3[k]) * (one - k2[k] * k2[k]);
  Net::product(HIDDEN, HIDDEN, x2, nullptr, d2, d1);
  for (int k = 0; k < HIDDEN; ++k) d1[k] *= one - k1[k] * k1[k];
  Net::product(OBSERVED, HIDDEN, x1, nullptr, d1, bar + STATE);
  // Lambda returns, from behind (Sutton and Barto 2018, eq. 12.20), scaled alike: what the network is to learn of each step.
  F back = told[0], ahead = told[0];
  PRAGMA_NOUNROLL
  for (int t = steps - 1; t >= 0; --t) {
    back = N::c(1.0f - discount) * N::load(AT(returns, 1, 0, t)) + N::c(discount) * (ahead + N::c(blend) * (back - ahead));
    N::store(AT(returns, 1, 0, t), N::select(sound, back, zero / zero));
    for (int k = 0; k < OBSERVED; ++k) o[k] = N::load(INPUT_ROW(k, t));
    VALUE_OF(o)
    ahead = told[0];
  }
}
if (RECURRENT)
  for (int k = 0; k < HIDDEN; ++k) m[k] = zero;
for (int t = steps - 1; t >= 0; --t) {
  for (int k = 0; k < STATE; ++k) s[k] = N::load(INPUT_ROW(I_STATE + k, t));
  for (int k = 0; k < ACTIONS; ++k) a[k] = N::load(INPUT_ROW(I_ACTION + k, t));
  for (int k = 0; k < HIDDEN; ++k) h1[k] = N::load(INPUT_ROW(I_HIDDEN1 + k, t));
  for (int k = 0; k < HIDDEN; ++k) h2[k] = N::load(INPUT_ROW(I_HIDDEN2 + k, t));
  if (CRITIC) far /= discount;
  bar[STATE + OBSERVED] = N::c(far);
  T::step_adjoint(s, a, p, bar, g);
  for (int k = 0; k < ACTIONS; ++k) d3[k] = g[STATE + k] * (one - a[k] * a[k]);
  Net::product(HIDDEN, ACTIONS, v3, nullptr, d3, d2);
  if (RECURRENT) {
    // `m` is the slope by the memory that the step left; `u` and `v` become those of the sums by what comes in and by memory.
    F direct[HIDDEN];
    for (int k = 0; k < HIDDEN; ++k) {
      const F r = N::load(INPUT_ROW(I_GATES + k, t)), z = N::load(INPUT_ROW(I_GATES + HIDDEN + k, t));
      const F fresh = N::load(INPUT_ROW(I_GATES + 2 * HIDDEN + k, t)), pushed = N::load(INPUT_ROW(I_GATES + 3 * HIDDEN + k, t));
      const F slope = d2[k] + m[k];
      const F by_fresh = slope * (one - z) * (one - fresh * fresh);
      direct[k] = slope * z;
      u[k] = v[k] = by_fresh * pushed * r * (one - r);
      u[HIDDEN + k] = v[HIDDEN + k] = slope * (N::load(INPUT_ROW(I_MEMORY + k, t)) - fresh) * z * (one - z);
      u[2 * HIDDEN + k] = by_fresh;
      v[2 * HIDDEN + k] = by_fresh * r;
    }
    Net::product(HIDDEN, BY_MEMORY, y2, nullptr, v, m);
    for (int k = 0; k < HIDDEN; ++k) m[k] += direct[k];
    Net::product(HIDDEN, MIDDLE, v2, nullptr, u, d1);
  } else {
    for (int k = 0; k < HIDDEN; ++k) u[k] = d2[k] * (one - h2[k] * h2[k]);
    Net::product(HIDDEN, HIDDEN, v2, nullptr, u, d1);
  }
  for (int k = 0; k < HIDDEN; ++k) d1[k] *= one - h1[k] * h1[k];
  if (spoilt) {
    for (int k = 0; k < I_STATE; ++k) N::store(INPUT_ROW(k, t), N::select(sound, N::load(INPUT_ROW(k, t)), zero));
    for (int k = 0; k < ACTIONS; ++k) d3[k] = N::select(sound, d3[k], zero);
    for (int k = 0; k < MIDDLE; ++k) u[k] = N::select(sound, u[k], zero);
    for (int k = 0; k < BY_MEMORY; ++k) v[k] = N::select(sound, v[k], zero);
    for (int k = 0; k < HIDDEN; ++k) d1[k] = N::select(sound, d1[k], zero);
  }
  for (int k = 0; k < HIDDEN; ++k) N::store(SLOPE_ROW(D_FIRST + k, t), d1[k]);
  for (int k = 0; k < MIDDLE; ++k) N::store(SLOPE_ROW(D_SECOND + k, t), u[k]);
  for (int k = 0; k < BY_MEMORY; ++k) N::store(SLOPE_ROW(D_MEMORY + k, t), v[k]);
  for (int k = 0; k < ACTIONS; ++k) N::store(SLOPE_ROW(D_THIRD + k, t), d3[k]);
  for (int k = 0; k < STATE; ++k) bar[k] = g[k] * keep;
  Net::product(OBSERVED, HIDDEN, v1, nullptr, d1, bar + STATE);
}
#if LANES > 1
float* const g1 = gradient.data + (long long)task * (v1 - w1);
#define OUTER(rows, columns, d, x, to) \
  Rows::outer(rows, columns, 0, steps, LANES, SLOPE_ROWS * LANES, INPUT_ROWS * LANES, SLOPE_ROW(d, 0), INPUT_ROW(x, 0), g1 + (to));
OUTER(HIDDEN, OBSERVED, D_FIRST, 0, 0)
OUTER(MIDDLE, HIDDEN, D_SECOND, I_HIDDEN1, w2 - w1)
if (RECURRENT) OUTER(BY_MEMORY, HIDDEN, D_MEMORY, I_MEMORY, u2 - w1)
OUTER(ACTIONS, HIDDEN, D_THIRD, I_HIDDEN2, w3 - w1)
#endif
