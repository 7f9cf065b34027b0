// Rollouts, one per lane, from start to end; the step's equations come from equations.py. A task is a block of LANES rollouts.
const size_t column = (size_t)block * LANES;
#define AT(array, row) ((array).data + (size_t)(row) * stride + column)
enum { TIMES = 0, PACE = 2, HEADING = 4, BUDGET = 8, START = 9, CONSTANT = 21, SEGMENT = 40 };
F state[STATE_SIZE], lane[LANE_SIZE], reference[REFERENCE_SIZE], noise[NOISE_SIZE], c[24];
for (int i = 0; i < STATE_SIZE; ++i) state[i] = N::c(0.0f);
for (int i = 0; i < 10; ++i) state[i] = N::load(AT(lanes, START + i));
state[15] = N::load(AT(lanes, START + 10));
for (int i = 28; i < 32; ++i) state[i] = N::load(AT(lanes, START + 11));
for (int i = 0; i < LANE_SIZE - 1; ++i) lane[i] = N::load(AT(lanes, CONSTANT + i));
for (int i = 0; i < NOISE_SIZE; ++i) noise[i] = N::c(0.0f);
for (int i = 0; i < 24; ++i) c[i] = N::load(AT(lanes, SEGMENT + i));
const F first = N::load(AT(lanes, TIMES)), budget = N::load(AT(lanes, BUDGET));
F pace = N::load(AT(lanes, PACE)), begin = N::c(0.0f), yaw = N::load(AT(lanes, HEADING)), turn = N::load(AT(lanes, HEADING + 1));
U key[5];
for (int i = 0; i < 4; ++i) key[i] = N::load_u(keys.data + (size_t)i * stride + column);
Threefry::expand(key);
// Whole numbers up to 2^24 are exact in float32.
const F scored = N::load(AT(lanes, SEGMENT + 48)), last = N::load(AT(lanes, SEGMENT + 49));
F total = N::c(0.0f), counted = N::c(0.0f), flown = N::c(0.0f), mark = N::c(0.0f), passed = N::c(0.0f);
const F zero = N::c(0.0f), one = N::c(1.0f);
M second = N::never();
for (int step = 0; ; ++step) {
  const F now = N::c((float)step);
  const M active = (now < last) & (mark == zero);
  if (!N::any(active)) break;
  const float time = command_rate > 0.0f ? floorf((float)step * command_share + 1e-3f) / command_rate : (float)step * STEP;
  const M begun = (first <= N::c(time)) & N::invert(second);
  if (N::any(begun)) {
    for (int i = 0; i < 24; ++i) c[i] = N::select(begun, N::load(AT(lanes, SEGMENT + 24 + i)), c[i]);
    pace = N::select(begun, N::load(AT(lanes, PACE + 1)), pace);
    yaw = N::select(begun, N::load(AT(lanes, HEADING + 2)), yaw);
    turn = N::select(begun, N::load(AT(lanes, HEADING + 3)), turn);
    begin = N::select(begun, first, begin);
    second = second | begun;
  }
  F tau = (N::c(time) - begin) * pace;
  tau = N::select(tau > one, one, tau);
  Flight::reference_at(tau - 0.5f, c, pace, reference);
  const F part = tau * ramp_share;
  reference[9] = yaw + turn * N::select(part > one, one, part);
  reference[10] = N::select(part < one, turn * pace * ramp_share, zero);
  if (noisy) {
    U x[4];
    F pair[2];
    Threefry::draw(key, N::u((unsigned int)step), DISTURBANCE, 0u, x);
    noise[0] = (Threefry::uniform(x[0] & N::u(0xffff0000u)) * 2.0f - 1.0f) * force;
    noise[1] = (Threefry::uniform(x[0] << 16u) * 2.0f - 1.0f) * force;
    noise[2] = (Threefry::uniform(x[1] & N::u(0xffff0000u)) * 2.0f - 1.0f) * force;
    for (int i = 0; i < 2; ++i) {
      Threefry::normal_pair(x[2 + i] & N::u(0xffff0000u), x[2 + i] << 16u, pair);
      noise[3 + 2 * i] = pair[0] * thrust;
      noise[4 + 2 * i] = pair[1] * thrust;
    }
  }
  lane[LANE_SIZE - 1] = N::c(step ? 1.0f : 0.0f);
  F error, touching, within, next[STATE_SIZE];
  Flight::flight_step(state, reference, noise, lane, next, &error, &touching, &within);
  for (int i = 0; i < STATE_SIZE; ++i) state[i] = next[i];
  const M scoring = active & (now < scored);
  total = N::select(scoring, total + error, total);
  counted = N::select(scoring, counted + one, counted);
  flown = N::select(active, flown + one, flown);
  passed = N::select(active & (within > zero), one, passed);
  const M crashed = active & ((touching > zero) | N::invert(N::finite(error)));
  // Marks: 1 crashed, 2 given up.
  mark = N::select(crashed, one, N::select(active & (total > budget), N::c(2.0f), mark));
}
N::store(AT(found, 0), total);
N::store(AT(found, 1), flown);
N::store(AT(found, 2), counted);
N::store(AT(found, 3), mark);
N::store(AT(found, 4), passed);
#undef AT
