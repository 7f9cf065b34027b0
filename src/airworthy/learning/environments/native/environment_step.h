// One policy step of many environments in one launch, a block of LANES per task: action -> command -> physics -> reward -> a new flight
// with newly drawn vehicle and start where one ended -> observation. The twin is airworthy.learning.environments.twin.
// STATE, ACTIONS, OBSERVED, PARAMETERS, TERMS, MEMORY ... are enumerators; traced blocks stand in T. Rows of `state` from ROW_PAST on
// are what else a flight is made of (FlightRows).
struct T {
TRACED_BLOCKS
};
ROOMS_TEXT
DELAY_LINE
const int lane0 = task * LANES;
#define ROW(array, r) (array.data + (long long)(r) * env_count + lane0)
F p[PARAMETERS], s[STATE], a[ACTIONS], past[ACTIONS], seen[OBSERVED], h[FLIGHT], m[MEMORY + 1];
for (int k = 0; k < PARAMETERS; ++k) p[k] = N::load(ROW(parameters, k));
for (int k = 0; k < STATE; ++k) s[k] = N::load(ROW(state, k));
for (int k = 0; k < ACTIONS; ++k) past[k] = N::load(ROW(state, ROW_PAST + k));
for (int k = 0; k < MEMORY; ++k) m[k] = N::load(ROW(state, ROW_MEMORY + k));
#ifdef DELAYED_ROTORS
DelayLine line;
line.set(p[COMMAND_DELAY]);
for (int k = 0; k < DELAY_SLOTS * ROTORS; ++k) line.kept[k] = N::load(ROW(state, ROW_QUEUE + k));
#define REACHING(issued) line.pass(issued, acting)
#define ACTING(issued) acting
#else
#define REACHING(issued)
#define ACTING(issued) issued
#endif
const F zero = N::c(0.0f), one = N::c(1.0f);
U key[5], age = N::load_u(ROW(keys, 4));
for (int k = 0; k < 4; ++k) key[k] = N::load_u(ROW(keys, k));
Threefry::expand(key);
// Age and level, as tasks read them.
F level = zero, seen_late = zero, actions_late = zero;
if (CURRICULUM) level = N::load(ROW(state, ROW_LEVEL));
if (DELAYED) {
  seen_late = N::load(ROW(state, ROW_DELAYS));
  actions_late = N::load(ROW(state, ROW_DELAYS + 1));
}
h[0] = N::from_int(N::signed_of(age));
h[1] = level;
#ifdef ROOMS
// Behind them whether the flight touched something, its place, and what pushes it in a step of physics.
for (int k = 2; k < FLIGHT; ++k) h[k] = zero;
for (int k = 0; k < PLACE; ++k) h[3 + k] = N::load(ROW(state, ROW_PLACE + k));
#endif

// Sixteen standard normal numbers for the observation at an instant of a flight.
#define NOISES(now) \
  F noises[16]; \
  for (int k = 0; k < 16; ++k) noises[k] = zero; \
  if (NOISE) \
    for (int k = 0; k < 4; ++k) Threefry::normals(key, now, STREAM, k + 8, noises + 4 * k);
// Rows to (env, number): what learners read.
#if LANES == 1
#define WRITE(array, values, count) \
  for (int k = 0; k < count; ++k) array.data[(long long)lane0 * (count) + k] = values[k];
#else
#define WRITE(array, values, count) \
  for (int k = 0; k < count; ++k) { \
    float* const at = array.data + (long long)lane0 * (count) + k; \
    for (int lane = 0; lane < LANES; ++lane) at[lane * (count)] = values[k][lane]; \
  }
#endif
#ifdef PRIVILEGED
#define WRITE_CRITIC(array) \
  { \
    F known[CRITIC_OBSERVED]; \
    T::observe_critic(s, p, past, h, m, known); \
    WRITE(array, known, CRITIC_OBSERVED) \
  }
#else
#define WRITE_CRITIC(array)
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
  F reaching[ACTIONS], wanted[WANTED], after[STATE], out[TERMS + 2 + MEMORY];
  for (int k = 0; k < ACTIONS; ++k) {
    reaching[k] = a[k];
    // From newest to oldest of those on their way; each then moves on by a place.
    F moving = a[k];
    for (int d = 0; d < LATE_ACTIONS; ++d) {
      float* const place = ROW(state, ROW_ACTIONS + d * ACTIONS + k);
      const F held = N::load(place);
      reaching[k] = N::select(actions_late > N::c((float)d + 0.5f), held, reaching[k]);
      N::store(place, moving);
      moving = held;
    }
  }
  T::command(reaching, p, past, h, m, wanted);
  for (int k = 0; k < STATE; ++k) after[k] = s[k];
#ifdef ROOMS
  Rooms::Near near[LANES];
  float places[LANES][PLACE];
  M touched = N::never();
  for (int lane = 0; lane < LANES; ++lane) {
    // Nothing is listed yet: no distance is as small as a negative one.
    near[lane].travel = 0.0f, near[lane].count = 0;
    for (int k = 0; k < 3; ++k) near[lane].from[k] = 1e9f;
    for (int k = 0; k < PLACE; ++k) places[lane][k] = Rooms::of(h[3 + k], lane);
  }
#endif
  for (int step = 0; step < SUBSTEPS; ++step) {
    F next[STATE];
#ifdef DELAYED_ROTORS
    F acting[ROTORS];
#endif
#ifdef ROOMS
    if (PUSHED) {
      // Uniform in a box, at some steps: numbers of a step of physics are told from others by their index.
      U push_words[8];
      const U instant = age * N::u(SUBSTEPS / PUSH_EVERY) + N::u((unsigned int)(step / PUSH_EVERY));
      for (int k = 0; k < 2; ++k) Threefry::draw(key, instant, STREAM, PUSH_BLOCK + k, push_words + 4 * k);
      const M pushed = Threefry::uniform(push_words[6]) < N::c(PUSH_SHARE);
      for (int k = 0; k < 6; ++k)
        h[3 + PLACE + k] = N::select(pushed, (2.0f * Threefry::uniform(push_words[k]) - 1.0f) * PUSH_MOST[k], zero);
    }
#endif
#ifdef CONTROLLED
    F wrench[6], thrusts[ROTORS + 1], rotors[ROTORS];
    T::wrench(after, wanted, p, past, h, m, wrench);
    T::exact(wrench, p, past, h, m, thrusts);
    // The bounded scheme equals the pseudo-inverse wherever that is within limits: it runs only where a lane needs it.
    if (BOUNDED && N::any(N::invert(thrusts[ROTORS] <= zero))) T::within(wrench, p, past, h, m, thrusts);
    T::rotors(after, thrusts, p, past, h, m, rotors);
    REACHING(rotors);
    T::physics(after, ACTING(rotors), p, past, h, m, next);
#else
    REACHING(wanted);
    T::physics(after, ACTING(wanted), p, past, h, m, next);
#endif
    for (int k = 0; k < STATE; ++k) after[k] = next[k];
#ifdef ROOMS
    for (int lane = 0; lane < LANES; ++lane)
      if (Rooms::touches(near[lane], pool.data, after, places[lane], lane)) Rooms::mark(touched, lane);
#endif
  }
#ifdef ROOMS
  h[2] = N::select(touched, one, zero);
#endif
  T::judge(s, after, a, p, past, h, m, out);
  F reward = zero;
  M sound = fine;
  for (int k = 0; k < STATE; ++k) sound = sound & N::finite(after[k]);
  for (int k = 0; k < MEMORY; ++k) sound = sound & N::finite(out[TERMS + 2 + k]);
  for (int k = 0; k < TERMS; ++k) {
    const F term = out[k];
    reward += term;
    sound = sound & N::finite(term);
  }
  age = age + N::u(1u);
  // What left the numbers is over, without a reward; what it was is told by `diverged`.
  const M diverged = N::invert(sound);
  reward = N::select(sound, reward, zero);
  const M terminated = diverged | (out[TERMS] > N::c(0.5f));
  const M truncated = N::invert(terminated) & (N::from_int(N::signed_of(age)) >= N::c((float)episode_steps));
  const M succeeded = sound & (out[TERMS + 1] > N::c(0.5f));
  ended = terminated | truncated;
  for (int k = 0; k < STATE; ++k) s[k] = N::select(sound, after[k], s[k]);
  for (int k = 0; k < MEMORY; ++k) m[k] = N::select(sound, out[TERMS + 2 + k], m[k]);
  for (int k = 0; k < ACTIONS; ++k) past[k] = a[k];
  h[0] = N::from_int(N::signed_of(age));
  if (CURRICULUM_EACH) {
    const F higher = level + (float)LEVEL_RISE, lower = level - (float)LEVEL_FALL, least = N::c(LEVEL_LEAST), most = N::c(LEVEL_MOST);
    const F moved = N::select(succeeded, N::select(higher < most, higher, most), N::select(lower > least, lower, least));
    level = N::select(ended, moved, level);
  }
  if (CURRICULUM_BATCH) {
    N::store(ROW(result, R_FINISHED), N::load(ROW(result, R_FINISHED)) + N::select(ended, one, zero));
    N::store(ROW(result, R_SUCCEEDED), N::load(ROW(result, R_SUCCEEDED)) + N::select(ended & succeeded, one, zero));
  }
  const F back = N::load(ROW(result, R_RETURN)) + reward;
  N::store(ROW(result, R_REWARD), reward);
  N::store(ROW(result, R_RETURN), back);
  N::store(ROW(result, R_TERMINATED), N::select(terminated, one, zero));
  N::store(ROW(result, R_TRUNCATED), N::select(truncated, one, zero));
  N::store(ROW(result, R_SUCCESS), N::select(succeeded, one, zero));
  N::store(ROW(result, R_DIVERGED), N::select(diverged, one, zero));
  N::store(ROW(result, R_LENGTH), N::from_int(N::signed_of(age)));
  for (int k = 0; k < TERMS; ++k) N::store(ROW(result, R_TERMS + k), N::select(sound, out[k], zero));
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
    T::observe(s, noises, p, past, h, m, seen);
    // Late as all others: those that came before stand one place further back once this one is in.
    for (int k = 0; k < OBSERVED; ++k)
      for (int d = 1; d <= LATE_SEEN; ++d)
        seen[k] = N::select(seen_late > N::c((float)d - 0.5f), N::load(ROW(state, ROW_SEEN + (d - 1) * OBSERVED + k)), seen[k]);
    WRITE(final_observation, seen, OBSERVED)
    WRITE_CRITIC(final_critic_observation)
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
#ifdef POSTERIOR
  // Of an identified vehicle draws are tried until they are vehicles that fly; after ATTEMPTS, which is rare, it flies as recorded.
  M settled = N::invert(ended);
  for (int k = 0; k < PARAMETERS; ++k) drawn[k] = nominal_row[k];
  for (int attempt = 0; attempt < ATTEMPTS && N::any(N::invert(settled)); ++attempt) {
    F chance[16], tried[PARAMETERS], sound_draw;
    for (int k = 0; k < 4; ++k) {
      Threefry::draw(fresh, N::u(0u), STREAM, POSTERIOR_BLOCK + 4 * attempt + k, words);
      for (int i = 0; i < 4; ++i) chance[4 * k + i] = Threefry::uniform(words[i]);
    }
    T::draw_posterior(chance, uniforms + 16, nominal_row, tried, &sound_draw);
    const M taken = N::invert(settled) & (sound_draw > N::c(0.5f));
    for (int k = 0; k < PARAMETERS; ++k) drawn[k] = N::select(taken, tried[k], drawn[k]);
    settled = settled | taken;
  }
#else
  T::draw_vehicle(uniforms + 16, nominal_row, drawn);
#endif
  for (int k = 0; k < PARAMETERS; ++k) {
    p[k] = N::select(ended, drawn[k], p[k]);
    N::store(ROW(parameters, k), p[k]);
  }
  F guide = one, young = zero;
  if (DRAWN) {
    Threefry::draw(fresh, N::u(0u), STREAM, CONDITIONS_BLOCK, words);
    guide = Threefry::uniform(words[2]);
    if (STAGGERED) young = N::select(episode == N::u(0u), N::floor(Threefry::uniform(words[3]) * (float)episode_steps), zero);
    if (DELAYED) {
      const F spans[2] = {N::c((float)(LATE_SEEN - LATE_SEEN_LEAST + 1)), N::c((float)(LATE_ACTIONS - LATE_ACTIONS_LEAST + 1))};
      const F steps[2] = {N::floor(Threefry::uniform(words[0]) * spans[0]) + (float)LATE_SEEN_LEAST,
                          N::floor(Threefry::uniform(words[1]) * spans[1]) + (float)LATE_ACTIONS_LEAST};
      seen_late = N::select(ended, steps[0], seen_late);
      actions_late = N::select(ended, steps[1], actions_late);
      N::store(ROW(state, ROW_DELAYS), seen_late);
      N::store(ROW(state, ROW_DELAYS + 1), actions_late);
    }
  }
  h[0] = N::select(ended, young, h[0]);
  h[1] = level;
  if (CURRICULUM) N::store(ROW(state, ROW_LEVEL), level);
  for (int k = 0; k < ACTIONS; ++k) past[k] = N::select(ended, p[HOVER_ACTION + k], past[k]);
#ifdef ROOMS
  F spot[16], place[PLACE];
  for (int k = 0; k < 4; ++k) {
    Threefry::draw(fresh, N::u(0u), STREAM, PLACE_BLOCK + k, words);
    for (int i = 0; i < 4; ++i) spot[4 * k + i] = Threefry::uniform(words[i]);
  }
  T::place(spot, level, place);
  h[2] = N::select(ended, zero, h[2]);
  for (int k = 0; k < PLACE; ++k) {
    h[3 + k] = N::select(ended, place[k], h[3 + k]);
    N::store(ROW(state, ROW_PLACE + k), h[3 + k]);
  }
#endif
  F starting[START_DRAWS];
  for (int k = 0; k < 16; ++k) starting[k] = uniforms[k];
  // Of vehicles with joints: how these begin.
  for (int k = 0; 4 * k < START_DRAWS - 16; ++k) {
    Threefry::draw(fresh, N::u(0u), STREAM, JOINT_BLOCK + k, words);
    for (int i = 0; i < 4; ++i) starting[16 + 4 * k + i] = Threefry::uniform(words[i]);
  }
  T::start(starting, guide, p, past, h, m, first);
  if (MEMORY) {
    F begun[MEMORY + 1];
    for (int k = 0; k < 4; ++k) {
      Threefry::draw(fresh, N::u(0u), STREAM, MEMORY_BLOCK + k, words);
      for (int i = 0; i < 4; ++i) uniforms[4 * k + i] = Threefry::uniform(words[i]);
    }
    T::begin(uniforms, first, p, past, h, m, begun);
    for (int k = 0; k < MEMORY; ++k) m[k] = N::select(ended, begun[k], m[k]);
  }
  for (int k = 0; k < STATE; ++k) s[k] = N::select(ended, first[k], s[k]);
#ifdef DELAYED_ROTORS
  // A flight begins as if its rotors had long been commanded what they do.
  for (int k = 0; k < DELAY_SLOTS; ++k)
    for (int i = 0; i < ROTORS; ++i) line.kept[k * ROTORS + i] = N::select(ended, first[13 + i], line.kept[k * ROTORS + i]);
#endif
  for (int d = 0; d < LATE_ACTIONS; ++d)
    for (int k = 0; k < ACTIONS; ++k) {
      float* const place = ROW(state, ROW_ACTIONS + d * ACTIONS + k);
      N::store(place, N::select(ended, past[k], N::load(place)));
    }
  const F left = N::load(ROW(result, R_RETURN));
  N::store(ROW(result, R_LAST_RETURN), N::select(ended, left, N::load(ROW(result, R_LAST_RETURN))));
  N::store(ROW(result, R_RETURN), N::select(ended, zero, left));
  age = N::to_bits(N::select(ended, N::from_bits(N::whole(young)), N::from_bits(age)));
  key[3] = N::to_bits(N::select(ended, N::from_bits(episode), N::from_bits(key[3])));
  Threefry::expand(key);
  N::store_u(ROW(keys, 3), key[3]);
}
N::store_u(ROW(keys, 4), age);
for (int k = 0; k < STATE; ++k) N::store(ROW(state, k), s[k]);
#ifdef DELAYED_ROTORS
for (int k = 0; k < DELAY_SLOTS * ROTORS; ++k) N::store(ROW(state, ROW_QUEUE + k), line.stored(k));
#endif
for (int k = 0; k < ACTIONS; ++k) N::store(ROW(state, ROW_PAST + k), past[k]);
for (int k = 0; k < MEMORY; ++k) N::store(ROW(state, ROW_MEMORY + k), m[k]);
NOISES(age)
T::observe(s, noises, p, past, h, m, seen);
if (LATE_SEEN) {
  // A new flight has seen but this; without a step nothing moves.
  for (int k = 0; k < OBSERVED; ++k) {
    F moving = seen[k];
    const F newest = seen[k];
    for (int d = 0; d <= LATE_SEEN; ++d) {
      float* const place = ROW(state, ROW_SEEN + d * OBSERVED + k);
      const F held = N::load(place);
      const F kept = N::select(ended, newest, stepping ? moving : held);
      N::store(place, kept);
      seen[k] = N::select(seen_late > N::c((float)d - 0.5f), kept, seen[k]);
      moving = held;
    }
  }
}
WRITE(observation, seen, OBSERVED)
WRITE_CRITIC(critic_observation)
