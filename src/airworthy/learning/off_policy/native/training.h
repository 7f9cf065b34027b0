// Steps of all environments with the actor, each kept in the replay, and the updates that they are due: one launch, one thread, so that
// an update reads what the one before it wrote. environment_step.h stands in it, which reads `actions` and leaves `result` and what is
// seen. The twin is airworthy.learning.off_policy.twin.
const int stepping = 1, blocks = env_count / LANES;
PRAGMA_NOUNROLL
for (int round = rounds > 0; round <= rounds; ++round) {
  const int time = counters.data[COUNT_TIME];
  // A launch of no rounds flies nothing, and makes the updates that are due.
  if (rounds > 0) {
    PRAGMA_NOUNROLL
    for (int task = 0; task < blocks; ++task) {
      const int at0 = task * LANES;
      float* const here = records.data + ((long long)time * env_count + at0) * RECORD;
      float* const there = here + (long long)env_count * RECORD;
      {
        F now[OBSERVED], h1[FIRST], h2[SECOND], sums[RAWS], taken[ACTIONS + 1], e[(ACTIONS + 3) / 4 * 4];
        U key[5];
        for (int k = 0; k < 4; ++k) key[k] = N::load_u(noise_keys.data + k * env_count + at0);
        Threefry::expand(key);
#if LANES == 1
        for (int k = 0; k < OBSERVED; ++k) now[k] = here[k];
#else
        for (int k = 0; k < OBSERVED; ++k)
          for (int lane = 0; lane < LANES; ++lane) now[k][lane] = here[lane * RECORD + k];
#endif
        Net::layer(FIRST, OBSERVED, actor, actor + Learner::A_B1, now, h1);
        Net::layer(SECOND, FIRST, actor + Learner::A_W2, actor + Learner::A_B2, h1, h2);
        Net::product(RAWS, SECOND, actor + Learner::A_W3, actor + Learner::A_B3, h2, sums);
        for (int k = 0; k < (ACTIONS + 3) / 4; ++k)
          Threefry::normals(key, N::u((unsigned int)time), STREAM, EXPLORED + k, e + 4 * k);
        L::explore(sums, e, taken);
        for (int k = 0; k < ACTIONS; ++k) {
          float given[LANES];
          N::store(given, taken[k]);
          for (int lane = 0; lane < LANES; ++lane)
            actions.data[(long long)(at0 + lane) * ACTIONS + k] = here[lane * RECORD + OBSERVED + k] = given[lane];
        }
      }
      {
ENVIRONMENT_STEP
      }
#define OF(r, lane) result.data[(long long)(r) * env_count + at0 + lane]
      PRAGMA_NOUNROLL
      for (int lane = 0; lane < LANES; ++lane) {
        const int terminated = OF(R_TERMINATED, lane) > 0.5f, truncated = OF(R_TRUNCATED, lane) > 0.5f;
        float way = terminated ? -1.0f : 0.0f;
        if (truncated) {
          // A flight that was only cut off would have gone on from what it saw last.
          const int place = counters.data[COUNT_FINALS]++;
          float* const last = finals.data + (long long)place * (OBSERVED + KNOWN_APART);
          for (int k = 0; k < OBSERVED; ++k) last[k] = final_observation.data[(long long)(at0 + lane) * OBSERVED + k];
          for (int k = 0; k < KNOWN_APART; ++k)
            last[OBSERVED + k] = final_critic_observation.data[(long long)(at0 + lane) * CRITIC_OBSERVED + k];
          way = (float)(place + 1);
        }
        here[lane * RECORD + REWARD_AT] = OF(R_REWARD, lane);
        here[lane * RECORD + REWARD_AT + 1] = way;
        for (int k = 0; k < OBSERVED; ++k) there[lane * RECORD + k] = observation.data[(long long)(at0 + lane) * OBSERVED + k];
        for (int k = 0; k < KNOWN_APART; ++k)
          there[lane * RECORD + REWARD_AT + 2 + k] = critic_observation.data[(long long)(at0 + lane) * CRITIC_OBSERVED + k];
        told_of[TELL_REWARD] += OF(R_REWARD, lane);
        if (terminated || truncated) {
          told_of[TELL_ENDED] += 1.0;
          told_of[TELL_TERMINATED] += terminated;
          told_of[TELL_RETURNS] += OF(R_LAST_RETURN, lane);
        }
      }
      if (keep_terms)
        for (int k = 0; k < TERMS; ++k)
          for (int lane = 0; lane < LANES; ++lane)
            terms.data[((long long)time * TERMS + k) * env_count + at0 + lane] = OF(R_TERMS + k, lane);
    }
    counters.data[COUNT_TIME] = time + 1;
  }
  // Updates are counted by steps of single environments, as if these were made one after the other.
  const long long flown = (long long)counters.data[COUNT_TIME] * env_count;
  PRAGMA_NOUNROLL
  while (counters.data[COUNT_LEARNT] < flown && !counters.data[COUNT_BROKEN]) {
    const int step = ++counters.data[COUNT_LEARNT];
    if (step > critic_warmup && step % critic_every == 0) {
CRITIC_UPDATE
    }
    if (step > actor_warmup && step % actor_every == 0) {
ACTOR_UPDATE
    }
  }
}
