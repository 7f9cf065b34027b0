// A depthwise layer: every channel alone.
struct Filter {
  static INLINE void pixel(const Layer& layer, const float* from, float* into, const float* weights, F sum) {
    for (int row = 0; row < layer.rows; ++row, from += layer.from_row)
      for (int column = 0; column < layer.length; ++column, weights += 16)
        sum = L::fma(N::load(from + column * layer.from_pixel), N::load(weights), sum);
    const F least = N::c(0.0f), most = N::c(6.0f);
    sum = N::select(sum < least, least, sum);
    N::store(into, N::select(most < sum, most, sum));
  }
  static INLINE void run(const Layer& layer, const float* from, float* into, const float* weights, const float* bias, int first,
                         int count) {
    for (int p = first; p < first + count; ++p) {
      const int y = p / layer.columns, x = p - y * layer.columns;
      pixel(layer, from + y * layer.stride * layer.from_row + x * layer.stride * layer.from_pixel,
            into + y * layer.into_row + x * layer.into_pixel, weights, N::load(bias));
    }
  }
};
