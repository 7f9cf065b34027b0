// Layers that see a window of each channel alone.
// A filter of any size, pixel by pixel.
struct Filter {
  static INLINE void run(const Layer& layer, const float* from, float* into, const float* weights, const float* bias, int first,
                         int count) {
    for (int p = first; p < first + count; ++p) {
      const int y = p / layer.columns, x = p - y * layer.columns;
      const float* source = from + y * layer.stride * layer.from_row + x * layer.stride * layer.from_pixel;
      const float* tap = weights;
      F sum = N::load(bias);
      for (int row = 0; row < layer.rows; ++row, source += layer.from_row)
        for (int column = 0; column < layer.length; ++column, tap += 16)
          sum = L::fma(N::load(source + column * layer.from_pixel), N::load(tap), sum);
      N::store(into + y * layer.into_row + x * layer.into_pixel, L::within(sum, N::c(0.0f), N::c(6.0f)));
    }
  }
};
// The largest of 3 x 3 of a pixel's channels from `first` on; what reaches over the edge counts the edge again.
struct Pool {
  static INLINE void run(const Layer& layer, const float* from, float* into, int pixel, int first, int end) {
    const int y = pixel / layer.columns, x = pixel - y * layer.columns;
    int rows[3], columns[3];
    UNROLL for (int k = 0; k < 3; ++k) {
      rows[k] = (2 * y + k < layer.height ? 2 * y + k : layer.height - 1) * layer.from_row;
      columns[k] = (2 * x + k < layer.width ? 2 * x + k : layer.width - 1) * layer.from_pixel;
    }
    float* to = into + y * layer.into_row + x * layer.into_pixel;
    for (int channel = first; channel < end; channel += 16) {
      F best = N::c(-3.4e38f);
      UNROLL for (int k = 0; k < 9; ++k) {
        const F given = N::load(from + rows[k / 3] + columns[k % 3] + channel);
        best = N::select(given < best, best, given);
      }
      N::store(to + channel, best);
    }
  }
};
