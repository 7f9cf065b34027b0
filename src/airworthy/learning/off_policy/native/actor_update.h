// An update of the actor through the critics' values of its actions, and of the temperature.
Learner::gather(batch_keys.data, (unsigned int)step, ACTOR_DRAWS, flown, records.data, env_count, finals.data, 0, rows);
Learner::actor(actor, R(X), R(POLICY1), R(POLICY2), R(RAW));
PRAGMA_NOUNROLL
for (int at = 0; at < BATCH; at += LANES) {
  DRAW_ACTION(step, ACTOR_DRAWS)
  L::act(raw, noise, out);
  for (int k = 0; k < ACTIONS; ++k) N::store(AT(SEEN, KNOWN + k), out[k]);
  N::store(AT(DENSITY, 0), out[ACTIONS]);
}
// TD3 follows its first critic alone, SAC the lower of both.
Learner::critic(critics, R(SEEN), R(VALUE1), R(VALUE2), R(Q));
if (SAC) Learner::critic(critics + CRITIC_SIZE, R(SEEN), R(OTHER1), R(OTHER2), R(Q) + Learner::STRIDE);
const F weighed = SAC ? Learner::power((float)temperature.data[0]) : N::c(0.0f), share = N::c(-1.0f / BATCH), none = N::c(0.0f);
F loss = none, density = none;
for (int at = 0; at < BATCH; at += LANES) {
  const F one = N::load(AT(Q, 0)), two = SAC ? N::load(AT(Q, 1)) : one;
  const M lower = one <= two;
  N::store(AT(D_Q, 0), N::select(lower, share, none));
  N::store(AT(D_Q, 1), N::select(lower, none, share));
  loss += weighed * N::load(AT(DENSITY, 0)) - N::select(lower, one, two);
  density += N::load(AT(DENSITY, 0));
}
const double mean = Rows::total(density) / (double)BATCH;
told_of[TELL_ACTOR_LOSS] += Rows::total(loss) / (double)BATCH;
told_of[TELL_LOG_DENSITY] += mean;
Learner::critic_back(critics, turned_critics, R(D_Q), R(VALUE1), R(VALUE2), R(D_VALUE1), R(D_VALUE2));
Learner::critic_action(turned_critics, R(D_VALUE1), R(D_ACTION));
if (SAC) {
  float* const other = turned_critics + TURNED;
  Learner::critic_back(critics + CRITIC_SIZE, other, R(D_Q) + Learner::STRIDE, R(OTHER1), R(OTHER2), R(D_VALUE1), R(D_VALUE2));
  Learner::critic_action(other, R(D_VALUE1), R(D_ACTION) + ACTIONS * Learner::STRIDE);
}
PRAGMA_NOUNROLL
for (int at = 0; at < BATCH; at += LANES) {
  F bar[ACTIONS + 1], slope[RAWS];
  for (int k = 0; k < ACTIONS; ++k)
    bar[k] = SAC ? N::load(AT(D_ACTION, k)) + N::load(AT(D_ACTION, ACTIONS + k)) : N::load(AT(D_ACTION, k));
  bar[ACTIONS] = weighed * (1.0f / BATCH);
  DRAW_ACTION(step, ACTOR_DRAWS)
  L::act_slopes(raw, noise, bar, slope);
  for (int k = 0; k < RAWS; ++k) N::store(AT(D_RAW, k), slope[k]);
}
Learner::actor_back(turned_actor, R(D_RAW), R(POLICY1), R(POLICY2), R(D_POLICY1), R(D_POLICY2));
Learner::actor_gradient(R(D_POLICY1), R(D_POLICY2), R(D_RAW), R(X), R(POLICY1), R(POLICY2), slopes_of_weights);
if (!Learner::descend(CRITIC, actor, first_moments, second_moments, slopes_of_weights, powers.data, Learner::rate(settings.data, step), settings.data))
  counters.data[COUNT_BROKEN] = 1;
Learner::turn_actor(actor, turned_actor);
if (SAC) {
  // The temperature, by the slope of -temperature (log-density + target entropy) by its logarithm: one number, in float64.
  double* const t = temperature.data;
  double* const p = powers.data + 6;
  const double by = -(double)(Rows::total(weighed) / LANES) * (mean + settings.data[SET_TARGET_ENTROPY]);
  p[0] *= ADAM_FIRST;
  p[1] *= ADAM_SECOND;
  t[1] += (1.0 - ADAM_FIRST) * (by - t[1]);
  t[2] += (1.0 - ADAM_SECOND) * (by * by - t[2]);
  const double ahead = t[1] / (1.0 - p[0]), spread = Learner::root(t[2] / (1.0 - p[1]));
  t[0] -= Learner::rate(settings.data, step) * ahead / (spread + ADAM_EPSILON);
  // What is judged is a mean of actors, since single ones swing.
  Learner::follow(CRITIC, actor, targets.data, settings.data[SET_AVERAGE]);
} else {
  Learner::follow(CRITIC, actor, targets.data, settings.data[SET_FOLLOW]);
}
told_of[TELL_ACTOR_UPDATES] += 1.0;
