// What rays need of lanes beyond `prelude.h`. On a GPU, and where SCALAR_PATH is set, a packet is one ray.
struct L {
#if LANES == 1
  static INLINE I i(int x) { return x; }
  static INLINE int pick(M m, int a) { return m ? a : 0; }
  static INLINE I select(M m, I a, I b) { return m ? a : b; }
  static INLINE unsigned int bits(M m) { return m ? 1u : 0u; }
  static INLINE int first(M) { return 0; }
  static INLINE float at(F x, int) { return x; }
  static INLINE int at(I x, int) { return x; }
  static INLINE void put(F& x, int, float value) { x = value; }
  static INLINE void put(I& x, int, int value) { x = value; }
  static INLINE I load_i(const int* p) { return *p; }
#else
  typedef bool Bits __attribute__((ext_vector_type(16)));
  typedef int I_any __attribute__((ext_vector_type(16), aligned(4)));
  static INLINE I i(int x) { return (I)x; }
  static INLINE I pick(M m, int a) { return m & (I)a; }
  static INLINE I select(M m, I a, I b) { return m ? a : b; }
  static INLINE unsigned int bits(M m) { return __builtin_bit_cast(unsigned short, __builtin_convertvector(m, Bits)); }
  static INLINE int first(M m) { return __builtin_ctz(bits(m)); }
  static INLINE float at(F x, int lane) { return x[lane]; }
  static INLINE int at(I x, int lane) { return x[lane]; }
  static INLINE void put(F& x, int lane, float value) { x[lane] = value; }
  static INLINE void put(I& x, int lane, int value) { x[lane] = value; }
  static INLINE I load_i(const int* p) { return *(const I_any*)p; }
#endif
  // Has memory that is read soon brought nearer, where there is a way to say so.
  static INLINE void prefetch(const void* p) {
#if LANES != 1
    __builtin_prefetch(p);
#endif
  }
  static INLINE bool any(M m) { return bits(m) != 0; }
  static INLINE F min(F a, F b) { return N::select(a < b, a, b); }
  static INLINE F max(F a, F b) { return N::select(a > b, a, b); }
#if LANES != 1
  static INLINE float min(float a, float b) { return a < b ? a : b; }
  static INLINE float max(float a, float b) { return a > b ? a : b; }
  static INLINE float abs(float a) { return __builtin_fabsf(a); }
#endif
  static INLINE F abs(F a) { return N::abs(a); }
  // 1 / d, where a zero counts as a tiny number of its sign.
  static INLINE F inverse(F d) {
    const F tiny = N::select(d < 0.0f, N::c(-1e-18f), N::c(1e-18f));
    return 1.0f / N::select(N::abs(d) < 1e-18f, tiny, d);
  }
  static INLINE F dot(const F* a, const F* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
};
// What a ray met. In: t is how far to look, numbers are -1. Out: u, v weigh the second and third vertex of a triangle.
struct Hits {
  F t;
  I instance, face;
  F u, v;
};
