// Networks of a learner over the rows of a batch: actor and critics forwards and backwards, Adam, targets that follow. Each row of a
// quantity has a number per sample; a network lies as matrix, bias, matrix, bias, matrix, bias. Needs network.h before it.
#ifndef SEPARATE
#define SEPARATE __attribute__((noinline))
#endif
struct L {
LEARNER_BLOCKS
};
struct Learner {
  enum { STRIDE = BATCH + LANES, PAIR = 2 * LANES };
  // Where in the actor and in a critic each matrix and bias begins.
  enum { A_B1 = FIRST * OBSERVED, A_W2 = A_B1 + FIRST, A_B2 = A_W2 + SECOND * FIRST, A_W3 = A_B2 + SECOND, A_B3 = A_W3 + RAWS * SECOND };
  enum { C_B1 = FIRST * JUDGED, C_W2 = C_B1 + FIRST, C_B2 = C_W2 + SECOND * FIRST, C_W3 = C_B2 + SECOND, C_B3 = C_W3 + SECOND };
  // Transposed matrices, which the way back reads: a network's middle one, then the actor's last, or a critic's columns of actions.
  enum { TURNED_ACTOR = FIRST * SECOND + SECOND * RAWS, TURNED_CRITIC = FIRST * SECOND + ACTIONS * FIRST };
  static INLINE void turn(const int rows, const int columns, const int stride, const float* w, float* to) {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) to[c * rows + r] = w[r * stride + c];
  }
  static SEPARATE void turn_actor(const float* w, float* to) {
    turn(SECOND, FIRST, FIRST, w + A_W2, to);
    turn(RAWS, SECOND, SECOND, w + A_W3, to + FIRST * SECOND);
  }
  static SEPARATE void turn_critic(const float* w, float* to) {
    turn(SECOND, FIRST, FIRST, w + C_W2, to);
    turn(FIRST, ACTIONS, JUDGED, w + KNOWN, to + FIRST * SECOND);
  }
  static SEPARATE void actor(const float* w, const float* x, float* h1, float* h2, float* raw) {
    PRAGMA_NOUNROLL
    for (int at = 0; at < BATCH; at += PAIR) {
      Rows::product(FIRST, OBSERVED, 2, Rows::TANH, STRIDE, w, w + A_B1, x + at, x, h1 + at);
      Rows::product(SECOND, FIRST, 2, Rows::TANH, STRIDE, w + A_W2, w + A_B2, h1 + at, x, h2 + at);
      Rows::product(RAWS, SECOND, 2, Rows::PLAIN, STRIDE, w + A_W3, w + A_B3, h2 + at, x, raw + at);
    }
  }
  static SEPARATE void critic(const float* w, const float* x, float* h1, float* h2, float* q) {
    PRAGMA_NOUNROLL
    for (int at = 0; at < BATCH; at += PAIR) {
      Rows::product(FIRST, JUDGED, 2, Rows::TANH, STRIDE, w, w + C_B1, x + at, x, h1 + at);
      Rows::product(SECOND, FIRST, 2, Rows::TANH, STRIDE, w + C_W2, w + C_B2, h1 + at, x, h2 + at);
      Rows::product(1, SECOND, 2, Rows::PLAIN, STRIDE, w + C_W3, w + C_B3, h2 + at, x, q + at);
    }
  }
  // Slopes by the sums of both hidden layers, from those by the values.
  static SEPARATE void critic_back(const float* w, const float* turned, const float* dq, const float* h1, const float* h2, float* d1, float* d2) {
    PRAGMA_NOUNROLL
    for (int at = 0; at < BATCH; at += PAIR) {
      // The last matrix has one row: it is its own transpose.
      Rows::product(SECOND, 1, 2, Rows::SLOPE, STRIDE, w + C_W3, nullptr, dq + at, h2 + at, d2 + at);
      Rows::product(FIRST, SECOND, 2, Rows::SLOPE, STRIDE, turned, nullptr, d2 + at, h1 + at, d1 + at);
    }
  }
  static SEPARATE void critic_action(const float* turned, const float* d1, float* d_action) {
    PRAGMA_NOUNROLL
    for (int at = 0; at < BATCH; at += PAIR)
      Rows::product(ACTIONS, FIRST, 2, Rows::PLAIN, STRIDE, turned + FIRST * SECOND, nullptr, d1 + at, d1, d_action + at);
  }
  static SEPARATE void actor_back(const float* turned, const float* d_raw, const float* h1, const float* h2, float* d1, float* d2) {
    PRAGMA_NOUNROLL
    for (int at = 0; at < BATCH; at += PAIR) {
      Rows::product(SECOND, RAWS, 2, Rows::SLOPE, STRIDE, turned + FIRST * SECOND, nullptr, d_raw + at, h2 + at, d2 + at);
      Rows::product(FIRST, SECOND, 2, Rows::SLOPE, STRIDE, turned, nullptr, d2 + at, h1 + at, d1 + at);
    }
  }
  static SEPARATE void actor_gradient(const float* d1, const float* d2, const float* d3, const float* x, const float* h1, const float* h2, float* g) {
    Rows::outer(FIRST, OBSERVED, 0, BATCH / LANES, STRIDE, LANES, LANES, d1, x, g);
    Rows::outer(SECOND, FIRST, 0, BATCH / LANES, STRIDE, LANES, LANES, d2, h1, g + A_W2);
    Rows::outer(RAWS, SECOND, 0, BATCH / LANES, STRIDE, LANES, LANES, d3, h2, g + A_W3);
  }
  static SEPARATE void critic_gradient(const float* d1, const float* d2, const float* d3, const float* x, const float* h1, const float* h2, float* g) {
    Rows::outer(FIRST, JUDGED, 0, BATCH / LANES, STRIDE, LANES, LANES, d1, x, g);
    Rows::outer(SECOND, FIRST, 0, BATCH / LANES, STRIDE, LANES, LANES, d2, h1, g + C_W2);
    Rows::outer(1, SECOND, 0, BATCH / LANES, STRIDE, LANES, LANES, d3, h2, g + C_W3);
  }
  // exp, the same in all lanes.
  static INLINE F power(float x) {
    F found[1];
    L::exponential(N::c(x), found);
    return found[0];
  }
  // The learning rate of an env-step's updates: it falls evenly to its final share.
  static INLINE float rate(const float* settings, const int step) {
    return settings[SET_LEARNING_RATE] * (1.0f - (1.0f - settings[SET_FINAL_SHARE]) * (float)((double)step / settings[SET_STEPS]));
  }
  static INLINE float root(double x) { return Rows::total(N::sqrt(N::c((float)x))) / LANES; }
  // Adam with both bias corrections in the step (Kingma and Ba 2015, end of section 2) and decay apart from it (Loshchilov and Hutter
  // 2019), on a gradient that is shortened; false, and nothing is done, where the gradient is none.
  static SEPARATE bool descend(const int count, float* w, float* m, float* v, const float* g, double* powers, const float rate, const float* settings) {
    F sum = N::c(0.0f);
    for (int k = 0; k < count; k += LANES) sum = Net::fused(N::load(g + k), N::load(g + k), sum);
    const float norm = root(Rows::total(sum));
    if (!(norm < 1e30f)) return false;
    const float limit = settings[SET_GRADIENT_NORM];
    powers[0] *= ADAM_FIRST;
    powers[1] *= ADAM_SECOND;
    const F shorter = N::c(norm > limit ? limit / norm : 1.0f), kept = N::c(1.0f - rate * settings[SET_WEIGHT_DECAY]);
    const F size = N::c(rate * root(1.0 - powers[1]) / (float)(1.0 - powers[0]));
    const F to_first = N::c((float)(1.0 - ADAM_FIRST)), to_second = N::c((float)(1.0 - ADAM_SECOND));
    for (int k = 0; k < count; k += LANES) {
      const F x = N::load(g + k) * shorter;
      const F a = Net::fused(to_first, x - N::load(m + k), N::load(m + k));
      const F b = Net::fused(to_second, x * x - N::load(v + k), N::load(v + k));
      N::store(m + k, a);
      N::store(v + k, b);
      N::store(w + k, N::load(w + k) * kept - size * a / (N::sqrt(b) + N::c((float)ADAM_EPSILON)));
    }
    return true;
  }
  static SEPARATE void follow(const int count, const float* w, float* target, const float share) {
    for (int k = 0; k < count; k += LANES) {
      const F held = N::load(target + k);
      N::store(target + k, Net::fused(N::c(share), N::load(w + k) - held, held));
    }
  }
  // The samples of a batch, drawn with replacement from `count` steps: what was seen, and where `whole`, all else that was kept.
  static SEPARATE void gather(
    const unsigned int* keys, const unsigned int step, const int first, const long long count, const float* records, const int next,
    const float* finals, const int whole, float* rows
  ) {
    U key[5], words[4];
    for (int k = 0; k < 4; ++k) key[k] = N::load_u(keys + k * LANES);
    Threefry::expand(key);
    PRAGMA_NOUNROLL
    for (int at = 0; at < BATCH; at += LANES) {
      const int block = at / LANES;
      if (block % 4 == 0) Threefry::draw(key, N::u(step), STREAM, (unsigned int)(first + block / 4), words);
      unsigned int drawn[LANES];
      N::store_u(drawn, words[block % 4]);
      PRAGMA_NOUNROLL
      for (int lane = 0; lane < LANES; ++lane) {
        const float* const from = records + (((unsigned long long)drawn[lane] * (unsigned long long)count) >> 32) * RECORD;
        float* const to = rows + at + lane;
        for (int k = 0; k < OBSERVED; ++k) to[(ROW_OF_X + k) * STRIDE] = from[k];
        if (KNOWN_APART)
          for (int k = 0; k < KNOWN; ++k) to[(ROW_OF_SEEN + k) * STRIDE] = from[REWARD_AT + 2 + k];
        if (!whole) continue;
        for (int k = 0; k < ACTIONS; ++k) to[(ROW_OF_SEEN + KNOWN + k) * STRIDE] = from[OBSERVED + k];
        // How it went on: 0, with what was seen next; -1, not at all; or cut off, with what was seen last in another place.
        const float way = from[REWARD_AT + 1];
        const float* const next_record = from + (long long)next * RECORD;
        const float* const last = finals + ((long long)way - 1) * (OBSERVED + KNOWN_APART);
        const float* const seen = way > 0.5f ? last : next_record;
        for (int k = 0; k < OBSERVED; ++k) to[(ROW_OF_NEXT + k) * STRIDE] = seen[k];
        if (KNOWN_APART) {
          const float* const known = way > 0.5f ? last + OBSERVED : next_record + REWARD_AT + 2;
          for (int k = 0; k < KNOWN; ++k) to[(ROW_OF_BEYOND + k) * STRIDE] = known[k];
        }
        to[ROW_OF_REWARD * STRIDE] = from[REWARD_AT];
        to[ROW_OF_GOING * STRIDE] = way < -0.5f ? 0.0f : 1.0f;
      }
    }
  }
};
