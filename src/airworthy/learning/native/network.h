// A small network with tanh layers in lanes: each environment or sample is a lane, weights are broadcast. Needs prelude.h before it.
struct Net {
  // One rounding, on every machine alike: the network needs no variant of itself that rounds otherwise, and is twice as fast.
#if LANES == 1
  static INLINE F fused(F a, F b, F c) { return ::fmaf(a, b, c); }
#else
  static INLINE F fused(F a, F b, F c) { return __builtin_elementwise_fma(a, b, c); }
#endif
  // A rational function with the least relative error on [0, 9]: 2e-11 as a function, 3.5e-7 as float32 computes it (ours). Its
  // slope is taken as 1 - tanh^2.
  static INLINE F tanh(F x) {
    const F bound = N::c(9.0f);
    x = N::select(x > bound, bound, N::select(x < -bound, -bound, x));
    const F y = x * x;
    F p = N::c(TANH_P5), q = N::c(TANH_Q5);
    p = fused(p, y, N::c(TANH_P4));
    q = fused(q, y, N::c(TANH_Q4));
    p = fused(p, y, N::c(TANH_P3));
    q = fused(q, y, N::c(TANH_Q3));
    p = fused(p, y, N::c(TANH_P2));
    q = fused(q, y, N::c(TANH_Q2));
    p = fused(p, y, N::c(TANH_P1));
    q = fused(q, y, N::c(TANH_Q1));
    p = fused(p, y, N::c(TANH_P0));
    q = fused(q, y, N::c(TANH_Q0));
    const F t = x * p / q, one = N::c(1.0f);
    return N::select(t > one, one, N::select(t < -one, -one, t));
  }
  // y = W x (+ b), rows by eight: each input is read once for eight sums that do not wait for each other. Sizes are numbers where it
  // is called (no template can stand in a function's body).
  static INLINE void product(const int rows, const int columns, const float* W, const float* b, const F* x, F* y) {
    int r = 0;
    for (; r + 8 <= rows; r += 8) eight(8, columns, W + r * columns, b ? b + r : b, x, y + r);
    if (r < rows) eight(rows - r, columns, W + r * columns, b ? b + r : b, x, y + r);
  }
  static INLINE void eight(const int count, const int columns, const float* W, const float* b, const F* x, F* y) {
    F sum[8];
    for (int j = 0; j < count; ++j) sum[j] = N::c(b ? b[j] : 0.0f);
    for (int k = 0; k < columns; ++k)
      for (int j = 0; j < count; ++j) sum[j] = fused(N::c(W[j * columns + k]), x[k], sum[j]);
    for (int j = 0; j < count; ++j) y[j] = sum[j];
  }
  static INLINE void layer(const int rows, const int columns, const float* W, const float* b, const F* x, F* y) {
    product(rows, columns, W, b, x, y);
    for (int r = 0; r < rows; ++r) y[r] = tanh(y[r]);
  }
};
// The same over rows of samples, as training needs them: a quantity's row has a number per sample, LANES of them a block, and
// `stride` numbers lie from one row to the next; in sums over samples `between` (`d_between`, `x_between`) from a block to the next.
struct Rows {
  // What becomes of a sum: it stays; tanh; or, on the way back, it is multiplied by the slope 1 - h^2 of the layer before.
  enum { PLAIN, TANH, SLOPE };
  // y = W x (+ b) for one or two blocks side by side: a weight that was broadcast serves both.
  static INLINE void product(
    const int rows, const int columns, const int blocks, const int end, const int stride, const float* W, const float* b,
    const float* x, const float* h, float* y
  ) {
    PRAGMA_NOUNROLL
    for (int r = 0; r + 8 <= rows; r += 8)
      part(8, columns, blocks, end, stride, W + r * columns, b ? b + r : b, x, h + r * stride, y + r * stride);
    const int r = rows / 8 * 8;
    if (r < rows)
      part(rows - r, columns, blocks, end, stride, W + r * columns, b ? b + r : b, x, h + r * stride, y + r * stride);
  }
  static INLINE void part(
    const int rows, const int columns, const int blocks, const int end, const int stride, const float* W, const float* b,
    const float* x, const float* h, float* y
  ) {
    F sum[16];
    for (int j = 0; j < rows; ++j)
      for (int i = 0; i < blocks; ++i) sum[j * blocks + i] = N::c(b ? b[j] : 0.0f);
    PRAGMA_NOUNROLL
    for (int k = 0; k < columns; ++k) {
      F in[2];
      for (int i = 0; i < blocks; ++i) in[i] = N::load(x + k * stride + i * LANES);
      for (int j = 0; j < rows; ++j) {
        const F w = N::c(W[j * columns + k]);
        for (int i = 0; i < blocks; ++i) sum[j * blocks + i] = Net::fused(w, in[i], sum[j * blocks + i]);
      }
    }
    for (int j = 0; j < rows; ++j)
      for (int i = 0; i < blocks; ++i) {
        F value = sum[j * blocks + i];
        if (end == TANH) value = Net::tanh(value);
        if (end == SLOPE) {
          const F seen = N::load(h + j * stride + i * LANES);
          value *= N::c(1.0f) - seen * seen;
        }
        N::store(y + j * stride + i * LANES, value);
      }
  }
  // G = D X^T (or G += D X^T) over rows of `blocks` blocks, four rows of each at a time: sixteen sums that do not wait for each
  // other. Not by a library of linear algebra: its threads wait by spinning, and its sums depend on how many they are.
  static INLINE float total(F x) {
#if LANES == 1
    return x;
#else
    const auto eight = x.lo + x.hi;
    const auto four = eight.lo + eight.hi;
    const auto two = four.lo + four.hi;
    return two.x + two.y;
#endif
  }
#if LANES > 1
  // Sixteen totals at once, in the order of additions of `total`: each round halves what is left of two vectors and joins them.
  static INLINE F totals(const F* x) {
    F a[8], b[4], c[2];
    for (int i = 0; i < 8; ++i)
      a[i] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
             __builtin_shufflevector(x[2 * i], x[2 * i + 1], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    for (int i = 0; i < 4; ++i)
      b[i] = __builtin_shufflevector(a[2 * i], a[2 * i + 1], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
             __builtin_shufflevector(a[2 * i], a[2 * i + 1], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    for (int i = 0; i < 2; ++i)
      c[i] = __builtin_shufflevector(b[2 * i], b[2 * i + 1], 0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29) +
             __builtin_shufflevector(b[2 * i], b[2 * i + 1], 2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31);
    return __builtin_shufflevector(c[0], c[1], 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) +
           __builtin_shufflevector(c[0], c[1], 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  }
#endif
  static INLINE void tile(
    const int m, const int n, const int add, const int blocks, const int stride, const long long d_between,
    const long long x_between, const float* d, const float* x, const int columns, float* g
  ) {
    F sum[16];
    for (int j = 0; j < m * n; ++j) sum[j] = N::c(0.0f);
    PRAGMA_NOUNROLL
    for (int k = 0; k < blocks; ++k, d += d_between, x += x_between) {
      F left[4], right[4];
      for (int i = 0; i < m; ++i) left[i] = N::load(d + i * stride);
      for (int j = 0; j < n; ++j) right[j] = N::load(x + j * stride);
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) sum[i * n + j] = Net::fused(left[i], right[j], sum[i * n + j]);
    }
#if LANES > 1
    if (m * n == 16) {
      const F found = totals(sum);
      for (int j = 0; j < 16; ++j) {
        float* const at = g + j / 4 * columns + j % 4;
        *at = add ? *at + found[j] : found[j];
      }
      return;
    }
#endif
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        float* const at = g + i * columns + j;
        *at = add ? *at + total(sum[i * n + j]) : total(sum[i * n + j]);
      }
  }
  static INLINE void strip(
    const int m, const int columns, const int add, const int blocks, const int stride, const long long d_between,
    const long long x_between, const float* d, const float* x, float* g
  ) {
    PRAGMA_NOUNROLL
    for (int c = 0; c + 4 <= columns; c += 4)
      tile(m, 4, add, blocks, stride, d_between, x_between, d, x + c * stride, columns, g + c);
    const int c = columns / 4 * 4;
    if (columns % 4) tile(m, columns % 4, add, blocks, stride, d_between, x_between, d, x + c * stride, columns, g + c);
  }
  // The gradient of a layer: by its matrix, and behind that by its bias; `add` 1: on top of what is there.
  static INLINE void outer(
    const int rows, const int columns, const int add, const int blocks, const int stride, const long long d_between,
    const long long x_between, const float* d, const float* x, float* g
  ) {
    int r = 0;
    PRAGMA_NOUNROLL
    for (; r + 4 <= rows; r += 4)
      strip(4, columns, add, blocks, stride, d_between, x_between, d + r * stride, x, g + r * columns);
    if (rows % 4) strip(rows % 4, columns, add, blocks, stride, d_between, x_between, d + r * stride, x, g + r * columns);
    PRAGMA_NOUNROLL
    for (r = 0; r < rows; ++r) {
      F sum = N::c(0.0f);
      for (int k = 0; k < blocks; ++k) sum += N::load(d + r * stride + k * d_between);
      g[rows * columns + r] = add ? g[rows * columns + r] + total(sum) : total(sum);
    }
  }
};
