// The gradient of the loss by the weights, over a part of a minibatch per task: a slice of blocks of LANES samples forwards, through the
// loss and backwards, its rows left in the second cache, then the sums of outer products, and so on with the next slice. Needs network.h.
// T::loss and T::loss_adjoint are traced. The twin is airworthy.learning.native_ppo.twin.
struct T {
TRACED_BLOCKS
};
const float* const w = weights.data;
const float* const u = w + VALUE;
const float* const v = w + BACKWARD;
const float* const z = v + FIRST * SECOND + SECOND * ACTIONS;
// Matrix, bias, matrix, bias, matrix, bias.
enum { B1 = FIRST * OBSERVED, W2 = B1 + FIRST, B2 = W2 + SECOND * FIRST, W3 = B2 + SECOND };
// The critic's, which may see other numbers.
enum { C1 = FIRST * JUDGED, V2 = C1 + FIRST, C2 = V2 + SECOND * FIRST, V3 = C2 + SECOND };
enum { STRIDE = (SLICE + 1) * LANES };
float* const rows = scratch.data + (long long)task * (ROWS * STRIDE);
float* const g = gradient.data + (long long)task * (BACKWARD + 3);
for (int k = 0; k < BACKWARD + 3; ++k) g[k] = 0.0f;
F log_std[ACTIONS], by_log_std[ACTIONS], totals[3];
for (int k = 0; k < ACTIONS; ++k) log_std[k] = N::c(w[LOG_STD + k]), by_log_std[k] = N::c(0.0f);
for (int k = 0; k < 3; ++k) totals[k] = N::c(0.0f);
// Two blocks at a time: parts begin at even ones.
const int first_block = (int)((long long)pairs * task / parts) * 2, last_block = (int)((long long)pairs * (task + 1) / parts) * 2;
PRAGMA_NOUNROLL
for (int slice = first_block; slice < last_block; slice += SLICE) {
  const int blocks = last_block - slice < SLICE ? last_block - slice : SLICE;
  PRAGMA_NOUNROLL
  for (int at = 0; at < blocks; at += 2) {
    float* const x = rows + at * LANES;
#define ROW(name) (x + (name) * STRIDE)
    const float* sample[2];
    for (int i = 0; i < 2; ++i) {
      sample[i] = samples.data + (long long)order.data[slice + at + i] * (SAMPLE * LANES);
      for (int k = 0; k < OBSERVED; ++k) N::store(x + k * STRIDE + i * LANES, N::load(sample[i] + k * LANES));
      if (S_KNOWN)
        for (int k = 0; k < JUDGED; ++k) N::store(ROW(KNOWN + k) + i * LANES, N::load(sample[i] + (S_KNOWN + k) * LANES));
    }
    Rows::product(FIRST, OBSERVED, 2, Rows::TANH, STRIDE, w, w + B1, x, x, ROW(POLICY1));
    Rows::product(SECOND, FIRST, 2, Rows::TANH, STRIDE, w + W2, w + B2, ROW(POLICY1), x, ROW(POLICY2));
    Rows::product(ACTIONS, SECOND, 2, Rows::TANH, STRIDE, w + W3, w + W3 + ACTIONS * SECOND, ROW(POLICY2), x, ROW(D_ACTION));
    Rows::product(FIRST, JUDGED, 2, Rows::TANH, STRIDE, u, u + C1, ROW(KNOWN), x, ROW(VALUE1));
    Rows::product(SECOND, FIRST, 2, Rows::TANH, STRIDE, u + V2, u + C2, ROW(VALUE1), x, ROW(VALUE2));
    Rows::product(1, SECOND, 2, Rows::PLAIN, STRIDE, u + V3, u + V3 + SECOND, ROW(VALUE2), x, ROW(D_VALUE));
    for (int i = 0; i < 2; ++i) {
      const F one = N::c(1.0f);
      F mean[ACTIONS], a[ACTIONS], old[3], told[3], bar[3], slope[2 * ACTIONS + 1];
      for (int k = 0; k < ACTIONS; ++k) mean[k] = N::load(ROW(D_ACTION + k) + i * LANES);
      for (int k = 0; k < ACTIONS; ++k) a[k] = N::load(sample[i] + (S_ACTION + k) * LANES);
      for (int k = 0; k < 3; ++k) old[k] = N::load(sample[i] + (S_LOG + k) * LANES);
      const F value = N::load(ROW(D_VALUE) + i * LANES);
      bar[0] = N::c(weight);
      bar[1] = bar[2] = N::c(0.0f);
      T::loss(mean, log_std, value, a, old, told);
      T::loss_adjoint(mean, log_std, value, a, old, bar, slope);
      // The policy's last layer ends in tanh; the critic's does not.
      for (int k = 0; k < ACTIONS; ++k) N::store(ROW(D_ACTION + k) + i * LANES, slope[k] * (one - mean[k] * mean[k]));
      N::store(ROW(D_VALUE) + i * LANES, slope[2 * ACTIONS]);
      for (int k = 0; k < ACTIONS; ++k) by_log_std[k] += slope[ACTIONS + k];
      for (int k = 0; k < 3; ++k) totals[k] += told[k];
    }
    Rows::product(
      SECOND, ACTIONS, 2, Rows::SLOPE, STRIDE, v + FIRST * SECOND, nullptr, ROW(D_ACTION), ROW(POLICY2), ROW(D_POLICY2)
    );
    Rows::product(FIRST, SECOND, 2, Rows::SLOPE, STRIDE, v, nullptr, ROW(D_POLICY2), ROW(POLICY1), ROW(D_POLICY1));
    Rows::product(SECOND, 1, 2, Rows::SLOPE, STRIDE, z + FIRST * SECOND, nullptr, ROW(D_VALUE), ROW(VALUE2), ROW(D_VALUE2));
    Rows::product(FIRST, SECOND, 2, Rows::SLOPE, STRIDE, z, nullptr, ROW(D_VALUE2), ROW(VALUE1), ROW(D_VALUE1));
  }
#define OUTER(r, c, d, in, to) Rows::outer(r, c, 1, blocks, STRIDE, LANES, LANES, rows + (d) * STRIDE, rows + (in) * STRIDE, to);
  OUTER(FIRST, OBSERVED, D_POLICY1, 0, g)
  OUTER(SECOND, FIRST, D_POLICY2, POLICY1, g + W2)
  OUTER(ACTIONS, SECOND, D_ACTION, POLICY2, g + W3)
  OUTER(FIRST, JUDGED, D_VALUE1, KNOWN, g + VALUE)
  OUTER(SECOND, FIRST, D_VALUE2, VALUE1, g + VALUE + V2)
  OUTER(1, SECOND, D_VALUE, VALUE2, g + VALUE + V3)
}
for (int k = 0; k < ACTIONS; ++k) g[LOG_STD + k] = Rows::total(by_log_std[k]);
for (int k = 0; k < 3; ++k) g[BACKWARD + k] = Rows::total(totals[k]);
