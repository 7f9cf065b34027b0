// Gradient of half the mean squared error of a critic on the window that `policy_gradient.h` flew last, a block of flights per task: its
// observations lie in `inputs`, what is to be told in `returns`, both (block, step, row, lane). Twin: `critic.fit_twin`. Needs
// network.h; OBSERVED, HIDDEN are enumerators, INPUT_ROWS numbers that `inputs` has of each step. For lanes alone.
#define AT(array, rows, r, t) (array.data + (((long long)task * steps + (t)) * (rows) + (r)) * LANES)
const float* const w1 = value.data;
const float* const b1 = w1 + HIDDEN * OBSERVED;
const float* const w2 = b1 + HIDDEN;
const float* const b2 = w2 + HIDDEN * HIDDEN;
const float* const w3 = b2 + HIDDEN;
const float* const b3 = w3 + HIDDEN;
const float* const x2 = b3 + 1 + OBSERVED * HIDDEN;
enum { S_FIRST = 0, S_SECOND = HIDDEN, D_FIRST = 2 * HIDDEN, D_SECOND = 3 * HIDDEN, D_THIRD = 4 * HIDDEN, S_ROWS = 4 * HIDDEN + 1 };
const F one = N::c(1.0f), zero = N::c(0.0f);
F o[OBSERVED], h1[HIDDEN], h2[HIDDEN], d1[HIDDEN], told[1];
PRAGMA_NOUNROLL
for (int t = 0; t < steps; ++t) {
  for (int k = 0; k < OBSERVED; ++k) o[k] = N::load(AT(inputs, INPUT_ROWS, k, t));
  Net::layer(HIDDEN, OBSERVED, w1, b1, o, h1);
  Net::layer(HIDDEN, HIDDEN, w2, b2, h1, h2);
  Net::product(1, HIDDEN, w3, b3, h2, told);
  const F error = told[0] - N::load(AT(returns, 1, 0, t));
  // What left the numbers has no return.
  const F slope = N::select(N::finite(error), error * N::c(scale), zero);
  for (int k = 0; k < HIDDEN; ++k) N::store(AT(scratch, S_ROWS, S_FIRST + k, t), h1[k]);
  for (int k = 0; k < HIDDEN; ++k) N::store(AT(scratch, S_ROWS, S_SECOND + k, t), h2[k]);
  for (int k = 0; k < HIDDEN; ++k) {
    h2[k] = slope * N::c(w3[k]) * (one - h2[k] * h2[k]);
    N::store(AT(scratch, S_ROWS, D_SECOND + k, t), h2[k]);
  }
  Net::product(HIDDEN, HIDDEN, x2, nullptr, h2, d1);
  for (int k = 0; k < HIDDEN; ++k) N::store(AT(scratch, S_ROWS, D_FIRST + k, t), d1[k] * (one - h1[k] * h1[k]));
  N::store(AT(scratch, S_ROWS, D_THIRD, t), slope);
}
#if LANES > 1
float* const g1 = gradient.data + (long long)task * (b3 + 1 - w1);
enum { BETWEEN = S_ROWS * LANES };
#define OUTER(rows, columns, d, x, x_between, to) \
  Rows::outer(rows, columns, 0, steps, LANES, BETWEEN, x_between, AT(scratch, S_ROWS, d, 0), x, g1 + (to));
OUTER(HIDDEN, OBSERVED, D_FIRST, AT(inputs, INPUT_ROWS, 0, 0), INPUT_ROWS * LANES, 0)
OUTER(HIDDEN, HIDDEN, D_SECOND, AT(scratch, S_ROWS, S_FIRST, 0), BETWEEN, w2 - w1)
OUTER(1, HIDDEN, D_THIRD, AT(scratch, S_ROWS, S_SECOND, 0), BETWEEN, w3 - w1)
#endif
