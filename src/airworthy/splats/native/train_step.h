// One step of Adam (Kingma, Ba: Adam, 2015, algorithm 1) on 16 Gaussians that lie side by side, for those that were seen: from
// derivatives with respect to means, axes, opacity and harmonics to those with respect to means, logarithms of scales, unit
// quaternions, logits and harmonics, and on to what the renderer reads. On a GPU a lane is one Gaussian.
// Rows of `raw`: logarithms of scales (3), quaternion x, y, z, w (4), logit, powers of both decays, sum of shifts, times seen.
struct Step {
  const float* set;  // SET_* of train_step_kernel.py
  float* geometry;   // rows of the first lane, LANE_STRIDE apart, as the others
  float* raw;
  float* moments;  // first (11) and second (11): mean, logarithms of scales, quaternion, logit
  float* slopes;
  M rendered;
  F first_left, second_left, over_first, over_second;

  static INLINE F row(const float* rows, int k) { return N::load(rows + k * LANE_STRIDE); }
  INLINE void put(float* rows, int k, F x) const { N::store(rows + k * LANE_STRIDE, N::select(rendered, x, row(rows, k))); }
  static INLINE F exp(F x) { return L::exp2(x * LOG2_E); }

  // How often a Gaussian has moved corrects the bias of its own moments.
  INLINE void begin() {
    first_left = row(raw, RAW_FIRST) * set[SET_FIRST_DECAY];
    second_left = row(raw, RAW_SECOND) * set[SET_SECOND_DECAY];
    over_first = 1.0f / (1.0f - first_left);
    over_second = 1.0f / (1.0f - second_left);
    put(raw, RAW_FIRST, first_left);
    put(raw, RAW_SECOND, second_left);
    put(raw, RAW_SHIFT, row(raw, RAW_SHIFT) + row(slopes, SLOPE_ROWS - 2));
    put(raw, RAW_RENDERED, row(raw, RAW_RENDERED) + row(slopes, SLOPE_ROWS - 1));
  }
  // What to subtract at a rate of 1; `first`, `second`: rows of moments.
  INLINE F adam(float* rows, int first, int second, F slope) const {
    const float a = set[SET_FIRST_DECAY], b = set[SET_SECOND_DECAY];
    const F mean = a * row(rows, first) + (1.0f - a) * slope;
    const F square = b * row(rows, second) + (1.0f - b) * (slope * slope);
    put(rows, first, mean);
    put(rows, second, square);
    return (mean * over_first) / (N::sqrt(square * over_second) + set[SET_EPSILON]);
  }
  static INLINE void rotation(const F* q, F* r) {
    const F x = q[0], y = q[1], z = q[2], w = q[3];
    r[0] = 1.0f - 2.0f * (y * y + z * z), r[1] = 2.0f * (x * y - z * w), r[2] = 2.0f * (x * z + y * w);
    r[3] = 2.0f * (x * y + z * w), r[4] = 1.0f - 2.0f * (x * x + z * z), r[5] = 2.0f * (y * z - x * w);
    r[6] = 2.0f * (x * z - y * w), r[7] = 2.0f * (y * z + x * w), r[8] = 1.0f - 2.0f * (x * x + y * y);
  }
  // Of the logarithms of scales: the shortest is pulled towards 0, and of a needle the longest towards the middle one. Equal ones
  // count in their order.
  INLINE void pulls(const F* log_scale, const F* scale, F* pull) const {
    const F one = N::c(1.0f), none = N::c(0.0f);
    F least[3], most[3], ratio = none;
    least[2] = N::select(log_scale[2] < L::min(log_scale[0], log_scale[1]), one, none);
    least[1] = N::select(log_scale[1] < log_scale[0], one - least[2], none);
    least[0] = one - least[1] - least[2];
    most[2] = N::select(log_scale[2] > L::max(log_scale[0], log_scale[1]), one, none);
    most[1] = N::select(log_scale[1] > log_scale[0], one - most[2], none);
    most[0] = one - most[1] - most[2];
    for (int k = 0; k < 3; ++k) ratio = ratio + (2.0f * most[k] + least[k] - 1.0f) * log_scale[k];
    const F over = N::select(ratio > NEEDLE, N::c(set[SET_NEEDLE_PULL]), none);
    for (int k = 0; k < 3; ++k)
      pull[k] = least[k] * scale[k] * set[SET_FLAT_PULL] + over * (2.0f * most[k] + least[k] - 1.0f);
  }
  INLINE void shape(F* q, F* log_scale, F* scale, F* r) const {
    F turn[4];
    for (int k = 0; k < 3; ++k) log_scale[k] = row(raw, RAW_SCALE + k), scale[k] = exp(log_scale[k]);
    for (int k = 0; k < 4; ++k) q[k] = row(raw, RAW_TURN + k);
    rotation(q, r);
    F g[9];
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 3; ++k) g[3 * j + k] = row(slopes, ROW_AXES + 3 * j + k) * scale[k];
    const F x = q[0], y = q[1], z = q[2], w = q[3];
    turn[0] = 2.0f * (y * (g[1] + g[3]) + z * (g[2] + g[6]) - 2.0f * x * (g[4] + g[8]) + w * (g[7] - g[5]));
    turn[1] = 2.0f * (x * (g[1] + g[3]) + z * (g[5] + g[7]) - 2.0f * y * (g[0] + g[8]) + w * (g[2] - g[6]));
    turn[2] = 2.0f * (x * (g[2] + g[6]) + y * (g[5] + g[7]) - 2.0f * z * (g[0] + g[4]) + w * (g[3] - g[1]));
    turn[3] = 2.0f * (x * (g[7] - g[5]) + y * (g[2] - g[6]) + z * (g[3] - g[1]));
    const F along = q[0] * turn[0] + q[1] * turn[1] + q[2] * turn[2] + q[3] * turn[3];
    F pull[3] = {N::c(0.0f), N::c(0.0f), N::c(0.0f)};
    const bool pulled = set[SET_FLAT_PULL] > 0.0f || set[SET_NEEDLE_PULL] > 0.0f;
    if (pulled) pulls(log_scale, scale, pull);
    for (int k = 0; k < 3; ++k) {
      // Of the logarithm: scale times the derivative with respect to the scale; scales are pulled towards 0 besides.
      F slope = r[k] * g[k] + r[3 + k] * g[3 + k] + r[6 + k] * g[6 + k] + scale[k] * set[SET_SCALE_PULL];
      if (pulled) slope = slope + pull[k];
      const F moved = log_scale[k] - set[SET_SCALE_RATE] * adam(moments, 3 + k, MOVED + 3 + k, slope);
      log_scale[k] = L::max(N::c(set[SET_LEAST_SCALE]), L::min(moved, N::c(set[SET_MOST_SCALE])));
    }
    F norm = N::c(0.0f);
    for (int k = 0; k < 4; ++k) {
      q[k] = q[k] - set[SET_TURN_RATE] * adam(moments, 6 + k, MOVED + 6 + k, turn[k] - q[k] * along);
      norm = norm + q[k] * q[k];
    }
    const F over = 1.0f / N::sqrt(L::max(norm, N::c(1e-20f)));
    for (int k = 0; k < 4; ++k) q[k] = q[k] * over;
    for (int k = 0; k < 3; ++k) put(raw, RAW_SCALE + k, log_scale[k]);
    for (int k = 0; k < 4; ++k) put(raw, RAW_TURN + k, q[k]);
    rotation(q, r);
  }
  INLINE F opacity() const {
    const F old = row(geometry, ROW_OPACITY);
    const F slope = (row(slopes, ROW_OPACITY) + set[SET_OPACITY_PULL]) * old * (1.0f - old);
    const F moved = row(raw, RAW_LOGIT) - set[SET_OPACITY_RATE] * adam(moments, 10, MOVED + 10, slope);
    const F limit = N::c(set[SET_MOST_LOGIT]), logit = L::max(-limit, L::min(moved, limit));
    put(raw, RAW_LOGIT, logit);
    return 1.0f / (1.0f + exp(-logit));
  }
  // Means move by their derivative, and at random within their own form, the less the more opaque they are (Kheradmand et al.:
  // 3D Gaussian splatting as Markov chain Monte Carlo, 2024, equations 8 and 9).
  INLINE void place(const F* scale, const F* r, F alpha, U number, const unsigned int* draw) {
    F move[3] = {N::c(0.0f), N::c(0.0f), N::c(0.0f)};
    const F rate = set[SET_PLACE_RATE] + set[SET_PLACE_SHARE] * L::max(scale[0], L::max(scale[1], scale[2]));
    for (int k = 0; k < 3; ++k) move[k] = -rate * adam(moments, k, MOVED + k, row(slopes, k));
    if (set[SET_NOISE] > 0.0f) {
      const F steep = L::min((alpha - NOISE_MIDDLE) * (NOISE_STEEPNESS * LOG2_E), N::c(60.0f));
      const F share = set[SET_NOISE] / (1.0f + L::exp2(steep));
      if (N::any(rendered & (share > set[SET_NOISE] * 1e-6f))) {
        const U key[5] = {N::u(draw[0]), N::u(draw[1]), number, N::u(0u), N::u(0x1BD11BDAu) ^ N::u(draw[0]) ^ N::u(draw[1]) ^ number};
        F normal[4], inside[3];
        Threefry::normals(key, N::u(draw[2]), NOISE_STREAM, 0u, normal);
        for (int k = 0; k < 3; ++k) inside[k] = scale[k] * scale[k] * (r[k] * normal[0] + r[3 + k] * normal[1] + r[6 + k] * normal[2]);
        for (int k = 0; k < 3; ++k)
          move[k] = move[k] + share * (r[3 * k] * inside[0] + r[3 * k + 1] * inside[1] + r[3 * k + 2] * inside[2]);
      }
    }
    for (int k = 0; k < 3; ++k) put(geometry, k, row(geometry, k) + move[k]);
  }
  INLINE void go(U number, const unsigned int* draw) {
    begin();
    F q[4], log_scale[3], scale[3], r[9];
    shape(q, log_scale, scale, r);
    for (int k = 0; k < 3; ++k) scale[k] = exp(log_scale[k]);
    const F alpha = opacity();
    place(scale, r, alpha, number, draw);
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 3; ++k) put(geometry, ROW_AXES + 3 * j + k, r[3 * j + k] * scale[k]);
    put(geometry, ROW_OPACITY, alpha);
    for (int k = 0; k < SLOPE_ROWS; ++k) N::store(slopes + k * LANE_STRIDE, N::c(0.0f));
  }
  INLINE void shades(float* harmonics, float* held, float* found, int coefficients) const {
    for (int k = 0; k < 3 * coefficients; ++k) {
      const float rate = k < 3 ? set[SET_COLOR_RATE] : set[SET_REST_RATE];
      put(harmonics, k, row(harmonics, k) - rate * adam(held, k, 3 * coefficients + k, row(found, k)));
      N::store(found + k * LANE_STRIDE, N::c(0.0f));
    }
  }
};
// What culling asks of a chunk: a ball about the means that can be seen, and how far the Gaussians reach.
struct Bounds {
  static INLINE void of(const float* geometry, const float* raw, ChunkRow& chunk) {
    F low[3], high[3], reach = N::c(0.0f), extent = N::c(0.0f);
    const F far = N::c(3e38f), zero = N::c(0.0f);
    for (int k = 0; k < 3; ++k) low[k] = far, high[k] = -far;
    for (int block = 0; block < CHUNK / LANES; ++block) {
      const float* const g = at(geometry, GEOMETRY_ROWS, block);
      const float* const own = at(raw, RAW_ROWS, block);
      const F alpha = Step::row(g, ROW_OPACITY);
      const M shown = alpha >= LEAST_ALPHA;
      for (int k = 0; k < 3; ++k) {
        low[k] = L::min(low[k], N::select(shown, Step::row(g, k), far));
        high[k] = L::max(high[k], N::select(shown, Step::row(g, k), -far));
      }
      // A little more than it is, as logarithms here are off by a millionth.
      const F most = L::max(Step::row(own, RAW_SCALE), L::max(Step::row(own, RAW_SCALE + 1), Step::row(own, RAW_SCALE + 2)));
      const F far_off = N::sqrt(L::log2(L::max(alpha * (1.0f / LEAST_ALPHA), N::c(1.0f))) * (2.0f * LN_2) + 1e-5f);
      reach = L::max(reach, N::select(shown, far_off, zero));
      extent = L::max(extent, N::select(shown, far_off * Step::exp(most), zero));
    }
    float centre[3];
    for (int k = 0; k < 3; ++k) {
      const float a = least(low[k]), b = -least(-high[k]);
      centre[k] = a <= b ? 0.5f * (a + b) : 0.0f;
      chunk.centre[k] = centre[k];
    }
    F square = zero;
    for (int block = 0; block < CHUNK / LANES; ++block) {
      const float* const g = at(geometry, GEOMETRY_ROWS, block);
      const F x = Step::row(g, 0) - centre[0], y = Step::row(g, 1) - centre[1], z = Step::row(g, 2) - centre[2];
      square = L::max(square, N::select(Step::row(g, ROW_OPACITY) >= LEAST_ALPHA, x * x + y * y + z * z, zero));
    }
    chunk.radius = -least(-N::sqrt(square)) * 1.00001f;
    chunk.extent = -least(-extent) * 1.00001f;
    chunk.reach = -least(-reach);
  }
  // Of LANES Gaussians side by side; on a GPU one of them.
  static INLINE const float* at(const float* rows, int width, int block) {
    return rows + (size_t)(block * LANES / LANE_STRIDE) * (width * LANE_STRIDE) + block * LANES % LANE_STRIDE;
  }
  static INLINE float least(F x) {
    float found = L::at(x, 0);
    for (int k = 1; k < LANES; ++k) found = L::at(x, k) < found ? L::at(x, k) : found;
    return found;
  }
};
