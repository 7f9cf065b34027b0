// Sixteen lanes at work on one thing: those of a vector on a CPU; on a GPU the threads of half a warp, each of which holds its
// own number of every vector. What is said once of the whole group (how far a list was walked, which blocks are met) is then known
// to all of its threads, and they stay together.
#if LANES == 1
#define EACH_LANE(lane) for (int lane = Group::own(), once_ = 1; once_; once_ = 0)
#else
#define EACH_LANE(lane) for (int lane = 0; lane < LANES; ++lane)
#endif
struct Group {
  enum { SIZE = LANE_STRIDE, STRIDE = SIZE };  // STRIDE: between rows of sums
#if LANES == 1
  static INLINE int own() { return (int)(threadIdx.x & 15u); }
  static INLINE unsigned int threads() { return 0xffffu << (threadIdx.x & 16u); }
  static INLINE unsigned int bits(M m) { return (__ballot_sync(threads(), m) >> (threadIdx.x & 16u)) & 0xffffu; }
  static INLINE int lowest(unsigned int x) { return __ffs((int)x) - 1; }
  static INLINE void set(F& x, int, float value) { x = value; }
  static INLINE F counted(int divisor, int modulus) { return (float)((own() / divisor) % modulus); }
  // Half of the lanes go on with a, half with b, each with its partner's share added.
  static INLINE F merged(F a, F b, int step) {
    const bool upper = own() & step;
    return (upper ? b : a) + __shfl_xor_sync(threads(), upper ? a : b, step);
  }
#else
  static INLINE int own() { return 0; }
  static INLINE unsigned int bits(M m) { return L::bits(m); }
  static INLINE int lowest(unsigned int x) { return __builtin_ctz(x); }
  static INLINE void set(F& x, int lane, float value) { x[lane] = value; }
  static INLINE F counted(int divisor, int modulus) { return L::counted(divisor, modulus); }
  // As on a GPU: in lane k stays a[k] + a[k ^ step] where k lacks the bit `step`, and b[k] + b[k ^ step] where it has it.
  static INLINE F merged(F a, F b, int step) {
    if (step == 8)
      return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 24, 25, 26, 27, 28, 29, 30, 31) +
             __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23);
    if (step == 4)
      return __builtin_shufflevector(a, b, 0, 1, 2, 3, 20, 21, 22, 23, 8, 9, 10, 11, 28, 29, 30, 31) +
             __builtin_shufflevector(a, b, 4, 5, 6, 7, 16, 17, 18, 19, 12, 13, 14, 15, 24, 25, 26, 27);
    if (step == 2)
      return __builtin_shufflevector(a, b, 0, 1, 18, 19, 4, 5, 22, 23, 8, 9, 26, 27, 12, 13, 30, 31) +
             __builtin_shufflevector(a, b, 2, 3, 16, 17, 6, 7, 20, 21, 10, 11, 24, 25, 14, 15, 28, 29);
    return __builtin_shufflevector(a, b, 0, 17, 2, 19, 4, 21, 6, 23, 8, 25, 10, 27, 12, 29, 14, 31) +
           __builtin_shufflevector(a, b, 1, 16, 3, 18, 5, 20, 7, 22, 9, 24, 11, 26, 13, 28, 15, 30);
  }
#endif
  static INLINE bool any(M m) { return bits(m) != 0; }
  static INLINE void add(float* to, F x) { N::store(to, N::load(to) + x); }
  // Sums over lanes of `count` <= 16 vectors, always added in the same order, halves first. That of x[k] stands in lane `place(k)`
  // of what is returned: k with its four bits turned round.
  static INLINE F sums(const F* x, const int count) {
    const F none = N::c(0.0f);
    F a[8];
    for (int k = 0; k < 8; ++k) a[k] = 2 * k < count ? merged(x[2 * k], 2 * k + 1 < count ? x[2 * k + 1] : none, 8) : none;
    for (int k = 0; k < 4; ++k) a[k] = 4 * k < count ? merged(a[2 * k], a[2 * k + 1], 4) : none;
    for (int k = 0; k < 2; ++k) a[k] = 8 * k < count ? merged(a[2 * k], a[2 * k + 1], 2) : none;
    return merged(a[0], a[1], 1);
  }
  static INLINE int place(int k) { return (k & 1) << 3 | (k & 2) << 1 | (k & 4) >> 1 | (k & 8) >> 3; }
};
