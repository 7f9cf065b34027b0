// What splats need of lanes beyond `prelude.h`, and the rows that their kernels share. On a GPU, and where SCALAR_PATH is set, a
// lane vector is one number.
struct L {
#if LANES == 1
  static INLINE I i(int x) { return x; }
  static INLINE I to_int(F x) { return (int)x; }
  static INLINE unsigned int bits(M m) { return m ? 1u : 0u; }
  static INLINE float at(F x, int) { return x; }
  static INLINE int at(I x, int) { return x; }
  static INLINE F counted(int, int) { return 0.0f; }
  static INLINE float sum(F x) { return x; }
#else
  typedef bool Bits __attribute__((ext_vector_type(16)));
  static INLINE I i(int x) { return (I)x; }
  static INLINE I to_int(F x) { return __builtin_convertvector(x, I); }
  static INLINE unsigned int bits(M m) { return __builtin_bit_cast(unsigned short, __builtin_convertvector(m, Bits)); }
  static INLINE float at(F x, int lane) { return x[lane]; }
  static INLINE int at(I x, int lane) { return x[lane]; }
  // (lane / divisor) % modulus
  static INLINE F counted(int divisor, int modulus) {
    F x;
    for (int k = 0; k < LANES; ++k) x[k] = (float)((k / divisor) % modulus);
    return x;
  }
  // Sum over lanes, halves first: the same order on every machine.
  static INLINE float sum(F x) {
    float s[16];
    for (int k = 0; k < LANES; ++k) s[k] = x[k];
    for (int half = 8; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) s[k] += s[k + half];
    return s[0];
  }
#endif
  // The whole number whose bits are a float's.
  static INLINE int as_int(float x) {
    union { float f; int i; } bits;
    bits.f = x;
    return bits.i;
  }
  static INLINE F min(F a, F b) { return N::select(a < b, a, b); }
  static INLINE F max(F a, F b) { return N::select(a > b, a, b); }
#if LANES != 1
  static INLINE float min(float a, float b) { return a < b ? a : b; }
  static INLINE float max(float a, float b) { return a > b ? a : b; }
#endif
  // a * b + c, rounded once where the processor can (every machine of one instruction set does the same).
  static INLINE F fma(F a, F b, F c) {
#if LANES == 1 && (defined(__CUDA_ARCH__) || defined(__CUDACC__) || defined(__CUDACC_RTC__))
    return ::fmaf(a, b, c);
#elif LANES == 1 && (defined(__FMA__) || defined(__aarch64__))
    return __builtin_fmaf(a, b, c);
#elif defined(__FMA__) || defined(__aarch64__)
    return __builtin_elementwise_fma(a, b, c);
#else
    return a * b + c;
#endif
  }
  // 2 to the power of x, -125 <= x <= 125; relative error under 4e-6: the nearest whole number goes into the exponent, a
  // polynomial of degree 4 (least largest relative error on [-1/2, 1/2]) does the rest.
  static INLINE F exp2(F x) {
    const F shifted = x + 12582912.0f;  // 1.5 * 2^23: the lowest bits are now the nearest whole number
    const F r = x - (shifted - 12582912.0f);
    F p = fma(N::c(EXP2_4), r, N::c(EXP2_3));
    p = fma(p, r, N::c(EXP2_2));
    p = fma(p, r, N::c(EXP2_1));
    p = fma(p, r, N::c(EXP2_0));
    return N::from_bits(N::to_bits(p) + (N::to_bits(shifted) << 23u));
  }
  // Base-2 logarithm of a positive normal number, absolute error under 1e-6: with m in [0.7, 1.42), log m is twice the area
  // tangent of (m - 1) / (m + 1), of whose series four terms are kept.
  static INLINE F log2(F x) {
    const U raw = N::to_bits(x) - N::u(0x3f3504f3u);
    const F exponent = N::from_int(N::signed_of(raw) >> 23);
    const F m = N::from_bits((raw & N::u(0x007fffffu)) + N::u(0x3f3504f3u));
    const F s = (m - 1.0f) / (m + 1.0f), s2 = s * s;
    return exponent + s * (2.8853900818f + s2 * (0.9617966939f + s2 * (0.5770780164f + s2 * 0.4121985831f)));
  }
};
// A camera before a cloud. Row k is image k before its scene; where clouds stand or move on their own, `more_count` rows from
// `more_first` are the same camera in the frame of each of these. Image k has `slot_count` slots, chunks of all its clouds, one
// cloud after the other; a row's begin at `slot`.
struct CameraRow {  // 48 words
  float rotation[9];  // of the cloud to the camera, row by row
  float position[3];
  float fx, fy, cx, cy;
  float x_low, x_high, y_low, y_high;  // where the projection is linearised at most: ray slopes
  float background[3];
  int first_chunk, chunk_count;
  int slot, slot_count, more_first, more_count;
  float lens[8];
  float lens_limit;                         // greatest slope, or angle [rad], at which the lens can be inverted
  float field, least_gain, steepest;        // image's radius [px], and what the lens makes at least and at most of a length
  float kept_x, kept_y, spread_x, spread_y;  // of an image that is a reduced one: variances of the camera's pixel, of both [px^2]
  float spare[3];
};
struct ChunkRow {  // 8 words
  float centre[3], radius;  // a ball that holds the means
  float extent;             // farthest that a Gaussian can be seen from its mean
  float reach;              // most standard deviations at which one can be seen
  int harmonics;            // first number in the array of harmonics
  int coefficients;         // per colour: 1, 4, 9, 16
};
// A Gaussian in the image. At an offset (dx, dy) [px] from its mean the base-2 logarithm of its opacity is
// peak + dx * (a * dx + b * dy) + c * dy * dy, where a, c < 0.
struct Record {  // 12 words
  float x, y, a, b, c, peak;
  float ridge_y;  // dy at which it is greatest along a column is ridge_y * dx
  float ridge_x;  // dx at which it is greatest along a row is ridge_x * dy
  float red, green, blue, depth;
};
// The plane of a Gaussian in the image: how its depth changes across it, and which way it faces.
struct Plane {  // 8 words
  float lean_x, lean_y;  // derivatives of the logarithm of its depth [1/px]
  float normal_x, normal_y, normal_z;
  float spare[3];
  // Its depth over that of its mean, at an offset: along a plane the inverse of the depth changes evenly over the image.
  static INLINE F slack(float x, float y, F dx, F dy) { return 1.0f - L::min(L::fma(N::c(x), dx, y * dy), N::c(PLANE_MOST)); }
  INLINE F slack(F dx, F dy) const { return slack(lean_x, lean_y, dx, dy); }
};
struct Touch {
  // Whether a Gaussian reaches `least` anywhere in a rectangle of pixel centres that begins at (x, y) from its mean: the greatest
  // value of a concave form over a rectangle lies on an edge that faces the mean, or at the mean.
  static INLINE M rectangle(const Record& g, F x, F y, float width, float height, float least) {
    const F far_x = x + width, far_y = y + height, zero = N::c(0.0f);
    const F edge_x = L::max(x, L::min(zero, far_x)), edge_y = L::max(y, L::min(zero, far_y));
    const F along_y = L::max(y, L::min(edge_x * g.ridge_y, far_y));
    const F along_x = L::max(x, L::min(edge_y * g.ridge_x, far_x));
    const F one = edge_x * (edge_x * g.a + along_y * g.b) + along_y * along_y * g.c;
    const F two = along_x * (along_x * g.a + edge_y * g.b) + edge_y * edge_y * g.c;
    return L::max(one, two) >= least - g.peak;
  }
};
