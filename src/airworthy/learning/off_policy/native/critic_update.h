// An update of both critics from a batch: targets from the next actions and the lower of the slow critics, then each by itself.
Learner::gather(batch_keys.data, (unsigned int)step, CRITIC_DRAWS, flown, records.data, env_count, finals.data, 1, rows);
Learner::actor(SAC ? actor : targets.data, R(NEXT), R(POLICY1), R(POLICY2), R(RAW));
PRAGMA_NOUNROLL
for (int at = 0; at < BATCH; at += LANES) {
  DRAW_ACTION(step, CRITIC_DRAWS)
  L::target(raw, noise, out);
  for (int k = 0; k < ACTIONS; ++k) N::store(AT(BEYOND, KNOWN + k), out[k]);
  N::store(AT(DENSITY, 0), out[ACTIONS]);
}
PRAGMA_NOUNROLL
for (int c = 0; c < 2; ++c)
  Learner::critic(targets.data + CRITIC + c * CRITIC_SIZE, R(BEYOND), R(VALUE1), R(VALUE2), R(Q) + c * Learner::STRIDE);
const F weighed = SAC ? Learner::power((float)temperature.data[0]) : N::c(0.0f);
const F discount = N::c(settings.data[SET_GAMMA]), scaled = N::c(settings.data[SET_REWARD_SCALE]);
for (int at = 0; at < BATCH; at += LANES) {
  const F one = N::load(AT(Q, 0)), two = N::load(AT(Q, 1)), least = N::select(one < two, one, two);
  const F beyond = N::load(AT(GOING, 0)) * (least - weighed * N::load(AT(DENSITY, 0)));
  N::store(AT(TARGET, 0), scaled * N::load(AT(REWARD, 0)) + discount * beyond);
}
PRAGMA_NOUNROLL
for (int c = 0; c < 2; ++c) {
  float* const w = critics + c * CRITIC_SIZE;
  float* const turned = turned_critics + c * TURNED;
  Learner::critic(w, R(SEEN), R(VALUE1), R(VALUE2), R(Q));
  F loss = N::c(0.0f), value = N::c(0.0f);
  for (int at = 0; at < BATCH; at += LANES) {
    const F error = N::load(AT(Q, 0)) - N::load(AT(TARGET, 0));
    N::store(AT(D_Q, 0), error * (1.0f / BATCH));
    loss += error * error;
    value += N::load(AT(Q, 0));
  }
  told_of[TELL_CRITIC_LOSS] += 0.25 / BATCH * Rows::total(loss);
  told_of[TELL_VALUE] += 0.5 / BATCH * Rows::total(value);
  Learner::critic_back(w, turned, R(D_Q), R(VALUE1), R(VALUE2), R(D_VALUE1), R(D_VALUE2));
  Learner::critic_gradient(R(D_VALUE1), R(D_VALUE2), R(D_Q), R(SEEN), R(VALUE1), R(VALUE2), slopes_of_weights + CRITIC);
  const int place = CRITIC + c * CRITIC_SIZE;
  if (!Learner::descend(CRITIC_SIZE, w, first_moments + place, second_moments + place, slopes_of_weights + CRITIC,
                        powers.data + 2 + 2 * c, Learner::rate(settings.data, step), settings.data))
    counters.data[COUNT_BROKEN] = 1;
  Learner::turn_critic(w, turned);
  Learner::follow(CRITIC_SIZE, w, targets.data + place, settings.data[SET_FOLLOW]);
}
told_of[TELL_CRITIC_UPDATES] += 1.0;
