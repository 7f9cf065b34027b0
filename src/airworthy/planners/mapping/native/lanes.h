// Lanes of 16 neighbours along z on a CPU, single cells elsewhere: whole numbers of 16 bits and bytes, and doubles for 16 pixels.
#if LANES == 1
typedef short S;
typedef unsigned char B;
typedef double D;
typedef int DI;
#else
typedef short S __attribute__((ext_vector_type(16), aligned(2)));
typedef unsigned char B __attribute__((ext_vector_type(16), aligned(1)));
typedef double D __attribute__((ext_vector_type(16), aligned(8)));
typedef int DI __attribute__((ext_vector_type(16), aligned(4)));
#endif
struct V {
#if LANES == 1
  static INLINE S plus(S a, S b) {
    const int s = (int)a + (int)b;
    return (short)(s > FAR ? FAR : s);
  }
  static INLINE S lower(S a, S b) { return a < b ? a : b; }
  static INLINE bool any(bool m) { return m; }
  static INLINE bool any_byte(B b) { return b != 0; }
  static INLINE int least(S a) { return a; }
  static INLINE S wide(B b) { return b; }
  static INLINE S narrow(int a) { return (short)a; }
  static INLINE int lane_numbers() { return 0; }
  static INLINE D sqrt(D x) { return ::sqrt(x); }
  static INLINE D floor(D x) { return ::floor(x); }
  static INLINE int whole(D x) { return (int)x; }
  static INLINE int counts(const int* p) { return *p; }
  static INLINE B flags(bool m) { return m; }
#else
  static INLINE S plus(S a, S b) { return __builtin_elementwise_add_sat(a, b); }
  static INLINE S lower(S a, S b) { return __builtin_elementwise_min(a, b); }
  static INLINE bool any(S m) { return __builtin_reduce_or(m) != 0; }
  static INLINE bool any_byte(B b) { return __builtin_reduce_or(b) != 0; }
  static INLINE int least(S a) { return __builtin_reduce_min(a); }
  static INLINE S wide(B b) { return __builtin_convertvector(b, S); }
  static INLINE S narrow(I a) { return __builtin_convertvector(a, S); }
  static INLINE S lane_numbers() { return (S){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; }
  static INLINE D sqrt(D x) { return __builtin_elementwise_sqrt(x); }
  static INLINE D floor(D x) { return __builtin_elementwise_floor(x); }
  static INLINE I whole(D x) { return __builtin_convertvector(x, I); }
  static INLINE I counts(const int* p) { return *(const DI*)p; }
  static INLINE B flags(S m) { return __builtin_convertvector(-m, B); }
#endif
  // 1 in lanes from <= lane < to.
  static INLINE B between(int from, int to) {
    const S lane = lane_numbers();
    return flags((lane >= (short)from) & (lane < (short)to));
  }
  static INLINE void clear(int* p) { *(DI*)p = (DI)0; }
  static INLINE S load(const short* p) { return *(const S*)p; }
  static INLINE void store(short* p, S x) { *(S*)p = x; }
  static INLINE B load(const unsigned char* p) { return *(const B*)p; }
  static INLINE void store(unsigned char* p, B x) { *(B*)p = x; }
};
