// The loss of a chunk of samples and its slopes by every layer's sums, a block of LANES samples per task; products of the rows that it
// leaves are the gradients of the weights. Needs network.h. T::loss and T::loss_adjoint are traced. The twin is
// airworthy.learning.native_ppo.twin.
struct T {
TRACED_BLOCKS
};
const int lane0 = task * LANES;
#define IN(r) (inputs.data + (r) * stride + lane0)
#define OUT(r) (slopes.data + (r) * stride + lane0)
F o[OBSERVED], h1[FIRST], h2[SECOND], g1[FIRST], g2[SECOND], mean[ACTIONS], value[1], a[ACTIONS], old[3];
#if LANES == 1
const int sample = index.data[lane0];
for (int k = 0; k < OBSERVED; ++k) o[k] = observation.data[(long long)sample * OBSERVED + k];
for (int k = 0; k < ACTIONS; ++k) a[k] = action.data[(long long)sample * ACTIONS + k];
for (int k = 0; k < 3; ++k) old[k] = about.data[(long long)sample * 3 + k];
#else
for (int lane = 0; lane < LANES; ++lane) {
  const int sample = index.data[lane0 + lane];
  for (int k = 0; k < OBSERVED; ++k) o[k][lane] = observation.data[(long long)sample * OBSERVED + k];
  for (int k = 0; k < ACTIONS; ++k) a[k][lane] = action.data[(long long)sample * ACTIONS + k];
  for (int k = 0; k < 3; ++k) old[k][lane] = about.data[(long long)sample * 3 + k];
}
#endif
const float* const w = weights.data;
NETWORK_FORWARD(w, mean, ACTIONS)
for (int k = 0; k < ACTIONS; ++k) mean[k] = Net::tanh(mean[k]);
for (int k = 0; k < FIRST; ++k) g1[k] = h1[k];
for (int k = 0; k < SECOND; ++k) g2[k] = h2[k];
const float* const u = weights.data + VALUE;
NETWORK_FORWARD(u, value, 1)
const F zero = N::c(0.0f), one = N::c(1.0f);
F log_std[ACTIONS], told[3], bar[3], slope[2 * ACTIONS + 1], d1[FIRST], d2[SECOND];
for (int k = 0; k < ACTIONS; ++k) log_std[k] = N::c(weights.data[LOG_STD + k]);
T::loss(mean, log_std, value[0], a, old, told);
bar[0] = N::c(weight);
bar[1] = bar[2] = zero;
T::loss_adjoint(mean, log_std, value[0], a, old, bar, slope);
for (int k = 0; k < 3; ++k) N::store(OUT(D_TOLD + k), told[k]);
for (int k = 0; k < OBSERVED; ++k) N::store(IN(k), o[k]);
// The policy, whose last layer ends in tanh.
for (int k = 0; k < ACTIONS; ++k) slope[k] *= one - mean[k] * mean[k];
const float* const v = weights.data + BACKWARD;
Net::product(SECOND, ACTIONS, v + FIRST * SECOND, nullptr, slope, d2);
for (int k = 0; k < SECOND; ++k) d2[k] *= one - g2[k] * g2[k];
Net::product(FIRST, SECOND, v, nullptr, d2, d1);
for (int k = 0; k < FIRST; ++k) d1[k] *= one - g1[k] * g1[k];
for (int k = 0; k < FIRST; ++k) N::store(IN(I_POLICY1 + k), g1[k]);
for (int k = 0; k < SECOND; ++k) N::store(IN(I_POLICY2 + k), g2[k]);
for (int k = 0; k < FIRST; ++k) N::store(OUT(D_POLICY1 + k), d1[k]);
for (int k = 0; k < SECOND; ++k) N::store(OUT(D_POLICY2 + k), d2[k]);
for (int k = 0; k < 2 * ACTIONS; ++k) N::store(OUT(D_ACTION + k), slope[k]);
// The value.
F* const by_value = slope + 2 * ACTIONS;
const float* const z = v + FIRST * SECOND + SECOND * ACTIONS;
Net::product(SECOND, 1, z + FIRST * SECOND, nullptr, by_value, d2);
for (int k = 0; k < SECOND; ++k) d2[k] *= one - h2[k] * h2[k];
Net::product(FIRST, SECOND, z, nullptr, d2, d1);
for (int k = 0; k < FIRST; ++k) d1[k] *= one - h1[k] * h1[k];
for (int k = 0; k < FIRST; ++k) N::store(IN(I_VALUE1 + k), h1[k]);
for (int k = 0; k < SECOND; ++k) N::store(IN(I_VALUE2 + k), h2[k]);
for (int k = 0; k < FIRST; ++k) N::store(OUT(D_VALUE1 + k), d1[k]);
for (int k = 0; k < SECOND; ++k) N::store(OUT(D_VALUE2 + k), d2[k]);
N::store(OUT(D_VALUE), by_value[0]);
