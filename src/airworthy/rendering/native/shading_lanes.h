// More lane operations than prelude.h has: whole numbers, gathers, vectors of three. Needs prelude.h before it.
#if defined(__CUDA_ARCH__) || defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define SHADING_FUNCTION static __device__ __noinline__
#define SHADING_MEMBER __device__ __noinline__
#else
#define SHADING_FUNCTION static __attribute__((noinline))
#define SHADING_MEMBER __attribute__((noinline))
#endif
struct W {
#if LANES == 1
  static INLINE I to_int(F x) { return (int)x; }
  static INLINE I i(int x) { return x; }
  static INLINE I pick(M m, I a, I b) { return m ? a : b; }
  static INLINE F f_bits(I x) { return N::from_bits((unsigned int)x); }
  static INLINE U unsigned_of(I x) { return (unsigned int)x; }
  static INLINE F minimum(F a, F b) { return a < b ? a : b; }
  static INLINE F maximum(F a, F b) { return a > b ? a : b; }
  static INLINE bool all(M m) { return m; }
  static INLINE bool at(M m, int) { return m; }
  static INLINE float get(F x, int) { return x; }
  static INLINE int get(I x, int) { return x; }
  static INLINE void set(F& x, int, float v) { x = v; }
  static INLINE void set(I& x, int, int v) { x = v; }
  static INLINE void set(M& m, int, bool v) { m = v; }
  static INLINE M always() { return true; }
#else
  static INLINE I to_int(F x) { return __builtin_convertvector(x, I); }
  static INLINE I i(int x) { return (I)x; }
  static INLINE I pick(M m, I a, I b) { return (m & a) | (~m & b); }
  static INLINE F f_bits(I x) { return __builtin_bit_cast(F, x); }
  static INLINE U unsigned_of(I x) { return __builtin_bit_cast(U, x); }
  static INLINE F minimum(F a, F b) { return N::select(a < b, a, b); }
  static INLINE F maximum(F a, F b) { return N::select(a > b, a, b); }
  static INLINE bool all(M m) { return __builtin_reduce_and(m) != 0; }
  static INLINE bool at(M m, int k) { return m[k] != 0; }
  static INLINE float get(F x, int k) { return x[k]; }
  static INLINE int get(I x, int k) { return x[k]; }
  static INLINE void set(F& x, int k, float v) { x[k] = v; }
  static INLINE void set(I& x, int k, int v) { x[k] = v; }
  static INLINE void set_m(M& m, int k, bool v) { m[k] = v ? -1 : 0; }
  static INLINE M always() { return (M)-1; }
#endif
#if LANES == 1
  static INLINE void set_m(M& m, int, bool v) { m = v; }
  static INLINE U gather(const unsigned int* p, I index) { return p[index]; }
  static INLINE F gather(const float* p, I index) { return p[index]; }
  static INLINE I gather(const int* p, I index) { return p[index]; }
#elif defined(__AVX512F__) && LANES == 16
  // One instruction; compilers make sixteen loads of the loop below.
  static INLINE F gather(const float* p, I index) {
    return (F)__builtin_ia32_gathersiv16sf((__attribute__((__vector_size__(64))) float){}, p, (__attribute__((__vector_size__(64))) int)index, (unsigned short)0xffff, 4);
  }
  static INLINE I gather(const int* p, I index) {
    return (I)__builtin_ia32_gathersiv16si((__attribute__((__vector_size__(64))) int){}, p, (__attribute__((__vector_size__(64))) int)index, (unsigned short)0xffff, 4);
  }
  static INLINE U gather(const unsigned int* p, I index) { return __builtin_bit_cast(U, gather((const int*)p, index)); }
#else
  static INLINE U gather(const unsigned int* p, I index) {
    U out;
    for (int k = 0; k < LANES; ++k) out[k] = p[index[k]];
    return out;
  }
  static INLINE F gather(const float* p, I index) {
    F out;
    for (int k = 0; k < LANES; ++k) out[k] = p[index[k]];
    return out;
  }
  static INLINE I gather(const int* p, I index) {
    I out;
    for (int k = 0; k < LANES; ++k) out[k] = p[index[k]];
    return out;
  }
#endif
  // Lanes into an array, for loops over them: a lane whose number is not known at compile time is read from memory, and each read
  // would send the whole vector there again.
  static INLINE void spill(float* p, F x) { N::store(p, x); }
  static INLINE void spill(int* p, I x) { N::store_u((unsigned int*)p, unsigned_of(x)); }
#if LANES == 1
  static INLINE void spill_m(int* p, M m) { *p = m ? -1 : 0; }
#else
  static INLINE void spill_m(int* p, M m) { spill(p, m); }
#endif
  // The whole number whose bits are a float's.
  static INLINE int as_int(float x) {
    union { float f; int i; } bits;
    bits.f = x;
    return bits.i;
  }
  static INLINE F clamp(F x, float a, float b) { return minimum(maximum(x, N::c(a)), N::c(b)); }
  static INLINE F mix(F a, F b, F t) { return a + (b - a) * t; }
  // 2 to the power of x, -126 < x < 127, to 1e-4: whole part into the exponent, a polynomial for the rest.
  static INLINE F exp2(F x) {
    const F whole = N::floor(x), r = x - whole;
    const F m = 1.0f + r * (0.69583282f + r * (0.22606716f + r * 0.07801557f));
    return m * N::from_bits(unsigned_of((to_int(whole) + 127) << 23));
  }
  // Base-2 logarithm of a positive normal number, to 0.01: exponent plus a parabola through the mantissa.
  static INLINE F log2(F x) {
    const U bits = N::to_bits(x);
    const F exponent = N::from_int(N::signed_of(bits >> 23u) - 127);
    const F m = N::from_bits((bits & N::u(0x007fffffu)) | N::u(0x3f800000u)) - 1.0f;
    return exponent + m * (1.3465f - 0.3465f * m);
  }
};
struct V3 {
  F x, y, z;
  static INLINE V3 c(float a, float b, float d) { return {N::c(a), N::c(b), N::c(d)}; }
  static INLINE V3 all(F a) { return {a, a, a}; }
  INLINE V3 operator+(const V3& o) const { return {x + o.x, y + o.y, z + o.z}; }
  INLINE V3 operator-(const V3& o) const { return {x - o.x, y - o.y, z - o.z}; }
  INLINE V3 operator*(const V3& o) const { return {x * o.x, y * o.y, z * o.z}; }
  INLINE V3 operator*(F s) const { return {x * s, y * s, z * s}; }
  INLINE F dot(const V3& o) const { return x * o.x + y * o.y + z * o.z; }
  INLINE V3 cross(const V3& o) const { return {y * o.z - z * o.y, z * o.x - x * o.z, x * o.y - y * o.x}; }
  INLINE V3 unit() const { return *this * (N::c(1.0f) / N::sqrt(W::maximum(dot(*this), N::c(1e-20f)))); }
  static INLINE V3 select(M m, const V3& a, const V3& b) {
    return {N::select(m, a.x, b.x), N::select(m, a.y, b.y), N::select(m, a.z, b.z)};
  }
  static INLINE V3 mix(const V3& a, const V3& b, F t) { return a + (b - a) * t; }
  typedef float Row[LANES];
  INLINE void spill(Row* p) const { W::spill(p[0], x), W::spill(p[1], y), W::spill(p[2], z); }
};
