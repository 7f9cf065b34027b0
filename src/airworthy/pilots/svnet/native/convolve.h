// A convolution of PIXELS pixels and VECTORS times 16 channels, all of whose sums stay in registers.
struct ConvolveVECTORS {
  enum { PIXELS = PIXELS_VECTORS };
  static INLINE void run(const Layer& layer, const float* from, float* into, const float* weights, const float* bias, int first,
                         int count, int lane) {
    const float* source[PIXELS];
    F sum[PIXELS][VECTORS];
    const F least = N::c(layer.rectified ? 0.0f : -3.4e38f), most = N::c(layer.rectified == 2 ? 6.0f : MOST);
    // One division for all pixels: they follow each other.
    const int row_first = first / layer.columns, column_first = first - row_first * layer.columns;
    const int ahead = layer.stride * layer.from_pixel, wrap = layer.stride * layer.from_row - (layer.columns - 1) * ahead;
    const float* at = from + row_first * layer.stride * layer.from_row + column_first * ahead;
    int column = column_first;
    UNROLL for (int p = 0; p < PIXELS; ++p) {
      // Behind the last pixel the last one is computed again, and not written.
      source[p] = at;
      if (p + 1 < count) {
        const bool more = ++column < layer.columns;
        at += more ? ahead : wrap;
        column = more ? column : 0;
      }
    }
    UNROLL for (int v = 0; v < VECTORS; ++v) {
      const F start = N::load(bias + 16 * v + lane);
      UNROLL for (int p = 0; p < PIXELS; ++p) sum[p][v] = start;
    }
    for (int row = 0; row < layer.rows; ++row) {
      PRAGMA_NOUNROLL for (int k = 0; k < layer.length; ++k) {
        F weight[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; ++v) weight[v] = N::load(weights + 16 * v + lane);
        UNROLL for (int p = 0; p < PIXELS; ++p) {
          const F given = N::c(source[p][k]);
          UNROLL for (int v = 0; v < VECTORS; ++v) sum[p][v] = L::fma(given, weight[v], sum[p][v]);
        }
        weights += 16 * VECTORS;
      }
      UNROLL for (int p = 0; p < PIXELS; ++p) source[p] += layer.from_row;
    }
    float* to = into + row_first * layer.into_row + column_first * layer.into_pixel + lane;
    const int end = layer.into_row - (layer.columns - 1) * layer.into_pixel;
    column = column_first;
    UNROLL for (int p = 0; p < PIXELS; ++p) {
      if (p >= count) break;
      // What is no number stays so.
      UNROLL for (int v = 0; v < VECTORS; ++v) {
        const F low = N::select(sum[p][v] < least, least, sum[p][v]);
        N::store(to + 16 * v, N::select(most < low, most, low));
      }
      const bool more = ++column < layer.columns;
      to += more ? layer.into_pixel : end;
      column = more ? column : 0;
    }
  }
  // All pixels of a group of channels.
  static APART void all(const Layer& layer, const float* from, float* into, const float* weights, const float* bias) {
    for (int first = 0; first < layer.count; first += PIXELS)
      run(layer, from, into, weights, bias, first, layer.count - first < PIXELS ? layer.count - first : PIXELS, 0);
  }
};
