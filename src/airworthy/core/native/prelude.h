// Types and primitive operations of traced code: lane vectors on a CPU, single numbers elsewhere. Included in the body of a
// Warp native function, hence a local struct with static members. LANES is 16 or 1; SCALAR_PATH forces 1 on a CPU.
#if defined(__CUDA_ARCH__) || defined(__CUDACC__) || defined(__CUDACC_RTC__) || defined(SCALAR_PATH)
#define LANES 1
typedef float F;
typedef int I;
typedef unsigned int U;
typedef bool M;
#else
#define LANES 16
typedef float F __attribute__((ext_vector_type(16)));
typedef int I __attribute__((ext_vector_type(16)));
typedef unsigned int U __attribute__((ext_vector_type(16)));
typedef I M;
// The same without an alignment promise: arrays may come from anywhere.
typedef float F_any __attribute__((ext_vector_type(16), aligned(4)));
typedef unsigned int U_any __attribute__((ext_vector_type(16), aligned(4)));
#endif
#if defined(__CUDA_ARCH__) || defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define INLINE __device__ __forceinline__
// Stages of an integrator stay a loop on a GPU: a third of the code, parameters read once, and nothing of it is spilled.
#define STAGES _Pragma("unroll 1")
#define PRAGMA_NOUNROLL _Pragma("unroll 1")
#else
#define INLINE inline __attribute__((always_inline))
#define STAGES _Pragma("clang loop unroll(full)")
#define PRAGMA_NOUNROLL _Pragma("clang loop unroll(disable)")
#endif
struct N {
#if LANES == 1
  static INLINE F c(float x) { return x; }
  static INLINE U u(unsigned int x) { return x; }
  static INLINE F sqrt(F x) { return ::sqrtf(x); }
  static INLINE F abs(F x) { return ::fabsf(x); }
  static INLINE F floor(F x) { return ::floorf(x); }
  static INLINE F select(M m, F a, F b) { return m ? a : b; }
  static INLINE M invert(M m) { return !m; }
  static INLINE M never() { return false; }
  static INLINE bool any(M m) { return m; }
  static INLINE F from_bits(U u) {
    union { unsigned int i; float f; } x;
    x.i = u;
    return x.f;
  }
  static INLINE U to_bits(F f) {
    union { unsigned int i; float f; } x;
    x.f = f;
    return x.i;
  }
  static INLINE F from_int(I i) { return (float)i; }
  static INLINE I signed_of(U u) { return (int)u; }
  static INLINE U whole(F x) { return (unsigned int)x; }
  static INLINE F load(const float* p) { return *p; }
  static INLINE void store(float* p, F x) { *p = x; }
  static INLINE U load_u(const unsigned int* p) { return *p; }
  static INLINE void store_u(unsigned int* p, U x) { *p = x; }
#else
  static INLINE F c(float x) { return (F)x; }
  static INLINE U u(unsigned int x) { return (U)x; }
  static INLINE F sqrt(F x) { return __builtin_elementwise_sqrt(x); }
  static INLINE F abs(F x) { return __builtin_elementwise_abs(x); }
  static INLINE F floor(F x) { return __builtin_elementwise_floor(x); }
  static INLINE F select(M m, F a, F b) { return m ? a : b; }
  static INLINE M invert(M m) { return ~m; }
  static INLINE M never() { return (M)0; }
  static INLINE bool any(M m) { return __builtin_reduce_or(m) != 0; }
  static INLINE F from_bits(U u) { return __builtin_bit_cast(F, u); }
  static INLINE U to_bits(F f) { return __builtin_bit_cast(U, f); }
  static INLINE F from_int(I i) { return __builtin_convertvector(i, F); }
  static INLINE I signed_of(U u) { return __builtin_bit_cast(I, u); }
  static INLINE U whole(F x) { return __builtin_convertvector(x, U); }
  static INLINE F load(const float* p) { return *(const F_any*)p; }
  static INLINE void store(float* p, F x) { *(F_any*)p = x; }
  static INLINE U load_u(const unsigned int* p) { return *(const U_any*)p; }
  static INLINE void store_u(unsigned int* p, U x) { *(U_any*)p = x; }
#endif
  // NaN or infinity: x - x is then NaN.
  static INLINE M finite(F x) { return (x - x) == N::c(0.0f); }
};
