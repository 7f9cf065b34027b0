// One policy step of many environments in one launch, a block of LANES per task: action -> command -> physics -> reward -> a new flight
// with newly drawn vehicle and start where one ended -> observation. The twin is airworthy.learning.environments.twin.
// STATE, ACTIONS, OBSERVED, PARAMETERS, TERMS are enumerators; traced blocks stand in T.
struct T {
TRACED_BLOCKS
};
const int lane0 = task * LANES;
#define ROW(array, r) (array.data + (long long)(r) * env_count + lane0)
F p[PARAMETERS], s[STATE], a[ACTIONS], past[ACTIONS], out[STATE + TERMS + 2], seen[OBSERVED];
for (int k = 0; k < PARAMETERS; ++k) p[k] = N::load(ROW(parameters, k));
for (int k = 0; k < STATE; ++k) s[k] = N::load(ROW(state, k));
for (int k = 0; k < ACTIONS; ++k) past[k] = N::load(ROW(state, STATE + k));
const F zero = N::c(0.0f), one = N::c(1.0f);
U key[5], age = N::load_u(ROW(keys, 4));
for (int k = 0; k < 4; ++k) key[k] = N::load_u(ROW(keys, k));
Threefry::expand(key);

// Sixteen standard normal numbers for the observation at an instant of a flight.
#define NOISES(now) \
  F noises[16]; \
  for (int k = 0; k < 16; ++k) noises[k] = zero; \
  if (NOISE) \
    for (int k = 0; k < 4; ++k) Threefry::normals(key, now, STREAM, k + 8, noises + 4 * k);
// Rows to (env, number): what learners read.
#if LANES == 1
#define WRITE(array, values) \
  for (int k = 0; k < OBSERVED; ++k) array.data[(long long)lane0 * OBSERVED + k] = values[k];
#else
#define WRITE(array, values) \
  for (int k = 0; k < OBSERVED; ++k) { \
    float* const at = array.data + (long long)lane0 * OBSERVED + k; \
    for (int lane = 0; lane < LANES; ++lane) at[lane * OBSERVED] = values[k][lane]; \
  }
#endif

M ended = N::never();
if (stepping) {
  M fine = one == one;
  for (int k = 0; k < ACTIONS; ++k) {
#if LANES == 1
    a[k] = actions.data[(long long)lane0 * ACTIONS + k];
#else
    for (int lane = 0; lane < LANES; ++lane) a[k][lane] = actions.data[(long long)(lane0 + lane) * ACTIONS + k];
#endif
    fine = fine & N::finite(a[k]);
    a[k] = N::select(a[k] > one, one, N::select(a[k] < -one, -one, a[k]));
    a[k] = N::select(N::finite(a[k]), a[k], zero);
  }
  T::step(s, a, past, p, out);
  F reward = zero;
  M sound = fine;
  for (int k = 0; k < STATE; ++k) sound = sound & N::finite(out[k]);
  for (int k = 0; k < TERMS; ++k) {
    const F term = out[STATE + k];
    reward += term;
    sound = sound & N::finite(term);
  }
  age = age + N::u(1u);
  // What left the numbers is over, without a reward; what it was is told by `diverged`.
  const M diverged = N::invert(sound);
  reward = N::select(sound, reward, zero);
  const M terminated = diverged | (out[STATE + TERMS] > N::c(0.5f));
  const M truncated = N::invert(terminated) & (N::from_int(N::signed_of(age)) >= N::c((float)episode_steps));
  const M succeeded = sound & (out[STATE + TERMS + 1] > N::c(0.5f));
  ended = terminated | truncated;
  for (int k = 0; k < STATE; ++k) s[k] = N::select(sound, out[k], s[k]);
  for (int k = 0; k < ACTIONS; ++k) past[k] = a[k];
  const F back = N::load(ROW(result, R_RETURN)) + reward;
  N::store(ROW(result, R_REWARD), reward);
  N::store(ROW(result, R_RETURN), back);
  N::store(ROW(result, R_TERMINATED), N::select(terminated, one, zero));
  N::store(ROW(result, R_TRUNCATED), N::select(truncated, one, zero));
  N::store(ROW(result, R_SUCCESS), N::select(succeeded, one, zero));
  N::store(ROW(result, R_DIVERGED), N::select(diverged, one, zero));
  N::store(ROW(result, R_LENGTH), N::from_int(N::signed_of(age)));
  for (int k = 0; k < TERMS; ++k) N::store(ROW(result, R_TERMS + k), N::select(sound, out[STATE + k], zero));
} else {
  for (int lane = 0; lane < LANES; ++lane) {
#if LANES == 1
    ended = mask.data[lane0] != 0;
#else
    ended[lane] = mask.data[lane0 + lane] != 0 ? -1 : 0;
#endif
  }
}
if (N::any(ended)) {
  if (stepping) {
    // What the flight saw last, for learners that go on from there where it was only cut off.
    NOISES(age)
    T::observe(s, noises, p, seen);
    WRITE(final_observation, seen)
  }
  // The next episode's key: its draws depend on seed, flight and episode alone.
  const U episode = N::load_u(ROW(keys, 3)) + N::u(1u);
  U fresh[5], words[4];
  for (int k = 0; k < 3; ++k) fresh[k] = key[k];
  fresh[3] = episode;
  Threefry::expand(fresh);
  F uniforms[32];
  for (int k = 0; k < 8; ++k) {
    Threefry::draw(fresh, N::u(0u), STREAM, k, words);
    for (int i = 0; i < 4; ++i) uniforms[4 * k + i] = Threefry::uniform(words[i]);
  }
  F first[STATE], nominal_row[PARAMETERS], drawn[PARAMETERS];
  for (int k = 0; k < PARAMETERS; ++k) nominal_row[k] = N::load(ROW(nominal, k));
  T::draw_vehicle(uniforms + 16, nominal_row, drawn);
  for (int k = 0; k < PARAMETERS; ++k) {
    p[k] = N::select(ended, drawn[k], p[k]);
    N::store(ROW(parameters, k), p[k]);
  }
  T::start(uniforms, p, first);
  for (int k = 0; k < STATE; ++k) s[k] = N::select(ended, first[k], s[k]);
  for (int k = 0; k < ACTIONS; ++k) past[k] = N::select(ended, p[HOVER_ACTION + k], past[k]);
  const F left = N::load(ROW(result, R_RETURN));
  N::store(ROW(result, R_LAST_RETURN), N::select(ended, left, N::load(ROW(result, R_LAST_RETURN))));
  N::store(ROW(result, R_RETURN), N::select(ended, zero, left));
  const F now = N::select(ended, zero, N::from_bits(age));
  age = N::to_bits(now);
  key[3] = N::to_bits(N::select(ended, N::from_bits(episode), N::from_bits(key[3])));
  Threefry::expand(key);
  N::store_u(ROW(keys, 3), key[3]);
}
N::store_u(ROW(keys, 4), age);
for (int k = 0; k < STATE; ++k) N::store(ROW(state, k), s[k]);
for (int k = 0; k < ACTIONS; ++k) N::store(ROW(state, STATE + k), past[k]);
NOISES(age)
T::observe(s, noises, p, seen);
WRITE(observation, seen)
