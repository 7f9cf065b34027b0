// A convolution of PIXELS pixels and VECTORS times 16 channels, all of whose sums stay in registers.
struct ConvolveVECTORS {
  enum { PIXELS = PIXELS_VECTORS };
  static INLINE void run(const Layer& layer, const float* from, float* into, const float* weights, const float* bias, int first,
                         int count, int lane) {
    const float* source[PIXELS];
    F sum[PIXELS][VECTORS];
    const F least = N::c(layer.rectified ? 0.0f : -3.4e38f), most = N::c(layer.rectified == 2 ? 6.0f : MOST);
    UNROLL for (int p = 0; p < PIXELS; ++p) {
      // Behind the last pixel the last one is computed again, and not written.
      const int pixel = first + (p < count ? p : count - 1);
      const int y = pixel / layer.columns, x = pixel - y * layer.columns;
      source[p] = from + y * layer.stride * layer.from_row + x * layer.stride * layer.from_pixel;
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
    UNROLL for (int p = 0; p < PIXELS; ++p) {
      if (p >= count) break;
      const int y = (first + p) / layer.columns, x = first + p - y * layer.columns;
      float* to = into + y * layer.into_row + x * layer.into_pixel;
      // What is no number stays so.
      UNROLL for (int v = 0; v < VECTORS; ++v) {
        const F low = N::select(sum[p][v] < least, least, sum[p][v]);
        N::store(to + 16 * v + lane, N::select(most < low, most, low));
      }
    }
  }
};
