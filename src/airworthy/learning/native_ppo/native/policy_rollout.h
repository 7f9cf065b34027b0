// A rollout of environments with a policy in one launch, a block of LANES environments per task: STEPS times network, noise and the
// environments' own step. Needs network.h and random.h; environment_step.h stands in it, which reads `actions` and leaves `result` and
// what is seen. OBSERVED, JUDGED (what the critic sees), FIRST, SECOND, ACTIONS, TERMS and places in weights and samples are enumerators.
const int stepping = 1, at0 = task * LANES, block_count = env_count / LANES;
const float* const w = weights.data;
const float* const u = w + VALUE;
F now[OBSERVED], by_term[TERMS];
for (int k = 0; k < TERMS; ++k) by_term[k] = N::c(0.0f);
#if LANES == 1
#define READ(array, size, to) \
  for (int k = 0; k < size; ++k) to[k] = array.data[(long long)at0 * size + k];
#else
#define READ(array, size, to) \
  for (int k = 0; k < size; ++k) \
    for (int lane = 0; lane < LANES; ++lane) to[k][lane] = array.data[(long long)(at0 + lane) * size + k];
#endif
READ(observation, OBSERVED, now)
// Of most tasks critics see what policies see: then nothing is read twice.
#define CRITIC_READS(array, own, to) \
  if (S_KNOWN) { \
    READ(array, JUDGED, to) \
  } else { \
    for (int k = 0; k < JUDGED; ++k) to[k] = own[k < OBSERVED ? k : 0]; \
  }
F judged[JUDGED];
CRITIC_READS(critic_observation, now, judged)
for (int t = 0; t <= steps; ++t) {
  F h1[FIRST], h2[SECOND], value[1];
  NETWORK_FORWARD(u, JUDGED, judged, value, 1)
  N::store(values.data + t * env_count + at0, value[0]);
  if (t == steps) break;
  F mean[ACTIONS], noise[(ACTIONS + 3) / 4 * 4], taken[ACTIONS], log_probability = N::c(0.0f);
  NETWORK_FORWARD(w, OBSERVED, now, mean, ACTIONS)
  {
    U key[5];
    for (int k = 0; k < 4; ++k) key[k] = N::load_u(noise_keys.data + k * env_count + at0);
    Threefry::expand(key);
    for (int k = 0; k < (ACTIONS + 3) / 4; ++k)
      Threefry::normals(key, N::u((unsigned int)(first_step.data[0] + t)), STREAM, 16 + k, noise + 4 * k);
  }
  for (int k = 0; k < ACTIONS; ++k) {
    const F drawn = N::c(deviation.data[k]) * noise[k];
    taken[k] = Net::tanh(mean[k]) + drawn;
    log_probability += noise[k] * noise[k] * -0.5f - w[LOG_STD + k] - 0.918938533f;
    // What earlier actions left of their noise is flown besides; to the policy it is a part of the environment.
    float* const place = lasting.data + k * env_count + at0;
    const F left = N::load(place), flown = taken[k] + left;
    N::store(place, (left + drawn) * memory);
#if LANES == 1
    actions.data[(long long)at0 * ACTIONS + k] = flown;
#else
    for (int lane = 0; lane < LANES; ++lane) actions.data[(long long)(at0 + lane) * ACTIONS + k] = flown[lane];
#endif
  }
  float* const sample = samples.data + ((long long)t * block_count + task) * (SAMPLE * LANES);
  for (int k = 0; k < OBSERVED; ++k) N::store(sample + k * LANES, now[k]);
  for (int k = 0; k < ACTIONS; ++k) N::store(sample + (S_ACTION + k) * LANES, taken[k]);
  N::store(sample + S_LOG * LANES, log_probability);
  if (S_KNOWN)
    for (int k = 0; k < JUDGED; ++k) N::store(sample + (S_KNOWN + k) * LANES, judged[k]);
  {
ENVIRONMENT_STEP
    for (int k = 0; k < OBSERVED; ++k) now[k] = seen[k];
  }
  CRITIC_READS(critic_observation, now, judged)
#define OF(r) N::load(result.data + (r) * env_count + at0)
#define TELL(k, x) N::store(told.data + ((long long)(k) * steps + t) * env_count + at0, x)
  for (int k = 0; k < TERMS; ++k) by_term[k] += OF(R_TERMS + k);
  const F terminated = OF(R_TERMINATED), truncated = OF(R_TRUNCATED);
  // A new flight has no earlier actions.
  for (int k = 0; k < ACTIONS; ++k) {
    float* const place = lasting.data + k * env_count + at0;
    N::store(place, N::select(terminated + truncated > N::c(0.5f), N::c(0.0f), N::load(place)));
  }
  F beyond = N::c(0.0f);
  if (N::any(truncated > N::c(0.5f))) {
    // A flight that was only cut off would have gone on from what it saw last.
    F cut[OBSERVED], last[JUDGED], expected[1];
    READ(final_observation, OBSERVED, cut)
    CRITIC_READS(final_critic_observation, cut, last)
    NETWORK_FORWARD(u, JUDGED, last, expected, 1)
    beyond = N::select(truncated > N::c(0.5f), expected[0], beyond);
  }
  TELL(0, OF(R_REWARD));
  TELL(1, terminated + truncated);
  TELL(2, terminated);
  TELL(3, beyond);
  TELL(4, OF(R_LAST_RETURN));
  TELL(5, OF(R_SUCCESS));
}
for (int k = 0; k < TERMS; ++k) N::store(terms.data + k * env_count + at0, by_term[k]);
