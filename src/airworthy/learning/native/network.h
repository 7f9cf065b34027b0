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
