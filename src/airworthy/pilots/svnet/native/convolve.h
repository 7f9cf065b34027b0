// A convolution of PIXELS pixels and VECTORS times 16 channels, all of whose sums stay in registers.
struct ConvolveVECTORS {
  enum { PIXELS = PIXELS_VECTORS };
  static INLINE void run(const Layer& layer, const float* from, const float* also, float* into, const float* weights,
                         const float* bias, int first, int count, int lane) {
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
    const int step = NARROW ? 16 * layer.vectors : 16 * VECTORS;
    for (int row = 0; row < layer.rows; ++row) {
      PRAGMA_NOUNROLL for (int k = 0; k < layer.length; ++k) {
        F weight[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; ++v) weight[v] = N::load(weights + 16 * v + lane);
        UNROLL for (int p = 0; p < PIXELS; ++p) {
          const F given = N::c(source[p][k]);
          UNROLL for (int v = 0; v < VECTORS; ++v) sum[p][v] = L::fma(given, weight[v], sum[p][v]);
        }
        weights += step;
      }
      UNROLL for (int p = 0; p < PIXELS; ++p) source[p] += layer.from_row;
    }
    const int written = row_first * layer.into_row + column_first * layer.into_pixel + lane;
    float* to = into + written;
    also += written;
    const int end = layer.into_row - (layer.columns - 1) * layer.into_pixel;
    column = column_first;
    UNROLL for (int p = 0; p < PIXELS; ++p) {
      if (p >= count) break;
      UNROLL for (int v = 0; v < VECTORS; ++v) {
        const F found = L::within(sum[p][v], least, most);
        N::store(to + 16 * v, layer.adds ? found + N::load(also + 16 * v) : found);
      }
      const bool more = ++column < layer.columns;
      to += more ? layer.into_pixel : end;
      also += more ? layer.into_pixel : end;
      column = more ? column : 0;
    }
  }
  // Channels from `channel` on: all pixels, or, on a GPU, those from `first` on.
  static APART void group(const Layer& layer, float* memory, const float* weights, int channel, int first, int lane) {
    const int wide = 16 * layer.vectors, within = channel % wide;
    const float* w = weights + layer.weights + (size_t)(channel - within) * layer.rows * layer.length + within;
    const float* b = weights + layer.bias + channel;
    const float* from = memory + layer.from;
    const float* also = memory + layer.also + channel;
    float* into = memory + layer.into + channel;
    const int end = LANES == 1 ? first + 1 : layer.count;
    for (; first < end; first += PIXELS)
      run(layer, from, also, into, w, b, first, layer.count - first < PIXELS ? layer.count - first : PIXELS, lane);
  }
};
