// A filter of KERNEL x KERNEL taps of each channel alone, at every STRIDE-th pixel: of some neighbouring pixels of a row together,
// so that a vector of what is read serves all sums that want it, and the sums do not wait for each other.
struct FilterKERNEL_STRIDE {
  enum { WIDE = PIXELS_FILTER };
  static INLINE void run(const Layer& layer, const float* from, float* into, const float* weights, F start) {
    F sum[WIDE];
    UNROLL for (int p = 0; p < WIDE; ++p) sum[p] = start;
    PRAGMA_NOUNROLL for (int row = 0; row < KERNEL; ++row, from += layer.from_row, weights += 16 * KERNEL) {
      F weight[KERNEL];
      UNROLL for (int k = 0; k < KERNEL; ++k) weight[k] = N::load(weights + 16 * k);
      UNROLL for (int column = 0; column < STRIDE * (WIDE - 1) + KERNEL; ++column) {
        const F given = N::load(from + column * layer.from_pixel);
        // Each sum goes over its taps in their order.
        UNROLL for (int p = 0; p < WIDE; ++p) {
          const int k = column - STRIDE * p;
          if (k >= 0 && k < KERNEL) sum[p] = L::fma(given, weight[k], sum[p]);
        }
      }
    }
    UNROLL for (int p = 0; p < WIDE; ++p)
      N::store(into + p * layer.into_pixel, L::within(sum[p], N::c(0.0f), N::c(6.0f)));
  }
  // All pixels of a vector of channels; the last ones of a row begin earlier, and some are computed twice.
  static APART void all(const Layer& layer, const float* from, float* into, const float* weights, const float* bias) {
    const F start = N::load(bias);
    for (int row = 0; row < layer.count / layer.columns; ++row)
      for (int p = 0; p < layer.columns; p += WIDE) {
        const int first = p + WIDE <= layer.columns ? p : layer.columns - WIDE;
        run(layer, from + row * STRIDE * layer.from_row + first * STRIDE * layer.from_pixel,
            into + row * layer.into_row + first * layer.into_pixel, weights, start);
      }
  }
};
