// Counter-based random numbers: Threefry4x32 with 13 rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3,
// SC 2011) and normals by Box-Muller. The NumPy twin is airworthy.core.random. Needs prelude.h before it.
struct Threefry {
  static INLINE U rotate(U x, int n) { return (x << (unsigned int)n) | (x >> (unsigned int)(32 - n)); }
  static INLINE void mix(U& a, U& b, int n) {
    a = a + b;
    b = rotate(b, n) ^ a;
  }
  static INLINE void inject(U* x, const U* key, int s) {
    x[0] = x[0] + key[s % 5];
    x[1] = x[1] + key[(s + 1) % 5];
    x[2] = x[2] + key[(s + 2) % 5];
    x[3] = x[3] + key[(s + 3) % 5] + N::u((unsigned int)s);
  }
  // Key schedule of 4 words: the fifth is their parity.
  static INLINE void expand(U* key) { key[4] = N::u(0x1BD11BDAu) ^ key[0] ^ key[1] ^ key[2] ^ key[3]; }
  static INLINE void block(const U* key, U* x) {
    inject(x, key, 0);
    mix(x[0], x[1], 10); mix(x[2], x[3], 26);
    mix(x[0], x[3], 11); mix(x[2], x[1], 21);
    mix(x[0], x[1], 13); mix(x[2], x[3], 27);
    mix(x[0], x[3], 23); mix(x[2], x[1], 5);
    inject(x, key, 1);
    mix(x[0], x[1], 6); mix(x[2], x[3], 20);
    mix(x[0], x[3], 17); mix(x[2], x[1], 11);
    mix(x[0], x[1], 25); mix(x[2], x[3], 10);
    mix(x[0], x[3], 18); mix(x[2], x[1], 20);
    inject(x, key, 2);
    mix(x[0], x[1], 10); mix(x[2], x[3], 26);
    mix(x[0], x[3], 11); mix(x[2], x[1], 21);
    mix(x[0], x[1], 13); mix(x[2], x[3], 27);
    mix(x[0], x[3], 23); mix(x[2], x[1], 5);
    inject(x, key, 3);
    mix(x[0], x[1], 6); mix(x[2], x[3], 20);
  }
  // Uniform in (0, 1): 23 bits, centred in their cell, exact in float32, so never 0 or 1.
  static INLINE F uniform(U x) { return (N::from_int(N::signed_of(x >> 9u)) + 0.5f) * 1.1920928955078125e-7f; }
  // Natural logarithm of a normal positive number: exponent plus a series in s = (m - 1) / (m + 1), m in [0.707, 1.414).
  static INLINE F log(F x) {
    U bits = N::to_bits(x) - N::u(0x3f3504f3u);
    F exponent = N::from_int(N::signed_of(bits) >> 23);
    F m = N::from_bits((bits & N::u(0x007fffffu)) + N::u(0x3f3504f3u));
    F s = (m - 1.0f) / (m + 1.0f), z = s * s;
    F series = s * (2.0f + z * (0.666666667f + z * (0.4f + z * (0.285714286f + z * 0.222222222f))));
    return exponent * 0.693147182f + series;
  }
  // Two independent standard normals from two words.
  static INLINE void normal_pair(U a, U b, F* out) {
    F radius = N::sqrt(log(uniform(a)) * -2.0f);
    U quadrant = b >> 30u;
    F r = (N::from_int(N::signed_of((b << 2u) >> 9u)) + 0.5f) * 1.872535141e-07f - 0.785398163f;  // [-pi/4, pi/4)
    F z = r * r;
    F s = r + r * z * (-0.166666667f + z * (8.33333333e-3f + z * -1.98412698e-4f));
    F c = 1.0f + z * (-0.5f + z * (4.16666667e-2f + z * (-1.38888889e-3f + z * 2.48015873e-5f)));
    M odd = (quadrant & N::u(1u)) != N::u(0u);
    F sine = N::select(odd, c, s), cosine = N::select(odd, -s, c);
    M flip = (quadrant & N::u(2u)) != N::u(0u);
    out[0] = radius * N::select(flip, -cosine, cosine);
    out[1] = radius * N::select(flip, -sine, sine);
  }
  // Block `index` of stream `stream` at `step`: four words.
  static INLINE void draw(const U* key, U step, unsigned int stream, unsigned int index, U* x) {
    x[0] = step; x[1] = N::u(stream); x[2] = N::u(index); x[3] = N::u(0u);
    block(key, x);
  }
  static INLINE void normals(const U* key, U step, unsigned int stream, unsigned int index, F* out) {
    U x[4];
    draw(key, step, stream, index, x);
    normal_pair(x[0], x[1], out);
    normal_pair(x[2], x[3], out + 2);
  }
};
