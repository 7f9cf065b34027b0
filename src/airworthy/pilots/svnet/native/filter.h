// A depthwise layer: a row of pixels of one vector of channels.
struct Filter {
  static INLINE void run(const Layer& layer, const float* from, float* into, const float* weights, int channel, int row,
                         int first, int count) {
    const int taps = layer.rows * layer.length, step = layer.stride * layer.from_pixel;
    const float* w = weights + layer.weights + (channel - channel % 16) * taps + channel % 16;
    const F start = N::load(weights + layer.bias + channel);
    const float* source = from + row * layer.stride * layer.from_row + first * step + channel;
    float* to = into + row * layer.into_row + first * layer.into_pixel + channel;
#if LANES != 1
    if (layer.rows == 3 && layer.stride == 1 && count >= PIXELS_FILTER) return Filter3_1::row(layer, source, to, w, start, count);
    if (layer.rows == 3 && layer.stride == 2 && count >= PIXELS_FILTER) return Filter3_2::row(layer, source, to, w, start, count);
    if (layer.rows == 5 && layer.stride == 1 && count >= PIXELS_FILTER) return Filter5_1::row(layer, source, to, w, start, count);
    if (layer.rows == 5 && layer.stride == 2 && count >= PIXELS_FILTER) return Filter5_2::row(layer, source, to, w, start, count);
#endif
    for (int p = 0; p < count; ++p, source += step, to += layer.into_pixel) {
      const float* at = source;
      const float* tap = w;
      F sum = start;
      for (int k = 0; k < layer.rows; ++k, at += layer.from_row)
        for (int column = 0; column < layer.length; ++column, tap += 16)
          sum = L::fma(N::load(at + column * layer.from_pixel), N::load(tap), sum);
      const F least = N::c(0.0f), most = N::c(6.0f);
      sum = N::select(sum < least, least, sum);
      N::store(to, N::select(most < sum, most, sum));
    }
  }
};
