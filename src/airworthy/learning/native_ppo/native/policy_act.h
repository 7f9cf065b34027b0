// Actions, their log-probability and the value of what environments see, a block of LANES per task. Needs network.h and random.h.
// OBSERVED, FIRST, SECOND, ACTIONS are enumerators. The twin is airworthy.learning.native_ppo.twin.
const int lane0 = task * LANES;
F o[OBSERVED], h1[FIRST], h2[SECOND], mean[ACTIONS], value[1], noise[(ACTIONS + 3) / 4 * 4];
#if LANES == 1
for (int k = 0; k < OBSERVED; ++k) o[k] = observation.data[(long long)lane0 * OBSERVED + k];
#else
for (int k = 0; k < OBSERVED; ++k)
  for (int lane = 0; lane < LANES; ++lane) o[k][lane] = observation.data[(long long)(lane0 + lane) * OBSERVED + k];
#endif
const float* w = weights.data;
NETWORK_FORWARD(w, mean, ACTIONS)
for (int k = 0; k < ACTIONS; ++k) mean[k] = Net::tanh(mean[k]);
const float* const log_std = weights.data + LOG_STD;
const float* u = weights.data + VALUE;
NETWORK_FORWARD(u, value, 1)
U key[5];
for (int k = 0; k < 4; ++k) key[k] = N::load_u(keys.data + k * env_count + lane0);
Threefry::expand(key);
for (int k = 0; k < (ACTIONS + 3) / 4; ++k) Threefry::normals(key, N::u((unsigned int)step), STREAM, 16 + k, noise + 4 * k);
F log_probability = N::c(0.0f);
for (int k = 0; k < ACTIONS; ++k) {
  const F spread = N::c(deviation.data[k]);
  const F taken = mean[k] + spread * noise[k];
  log_probability += noise[k] * noise[k] * -0.5f - log_std[k] - 0.918938533f;
#if LANES == 1
  action.data[(long long)lane0 * ACTIONS + k] = taken;
#else
  for (int lane = 0; lane < LANES; ++lane) action.data[(long long)(lane0 + lane) * ACTIONS + k] = taken[lane];
#endif
}
N::store(log_probabilities.data + lane0, log_probability);
N::store(values.data + lane0, value[0]);
