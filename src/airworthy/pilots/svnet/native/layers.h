// Layers of a network on images with channels last. Channels go through lanes, 16 at a time: on a CPU they are one vector, on a
// GPU each is a thread's, `lane` its number. Sums run over the taps in one order, whatever is computed beside them.
struct L {
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
  // Between two numbers; what is no number stays so.
  static INLINE F within(F x, F least, F most) {
    const F low = N::select(x < least, least, x);
    return N::select(most < low, most, low);
  }
};
// Pixels that are computed together with so many vectors of channels: their sums fill the registers and do not spill. Where a
// vector takes several registers, groups are computed a vector at a time (NARROW; NARROW_PATH asks for it). Filters of several pixels, and groups of 5 and
// 7 vectors, are a CPU's alone.
#if LANES == 1
#define NARROW 0
enum { PIXELS_1 = 6, PIXELS_2 = 6, PIXELS_3 = 6, PIXELS_4 = 6 };
#elif defined(__AVX512F__) && !defined(NARROW_PATH)
#define NARROW 0
enum { PIXELS_1 = 8, PIXELS_2 = 8, PIXELS_3 = 7, PIXELS_4 = 6, PIXELS_5 = 5, PIXELS_7 = 3, PIXELS_FILTER = 7 };
#else
#define NARROW 1
enum { PIXELS_1 = 6, PIXELS_FILTER = 4 };
#endif
// A function of its own on a CPU, whose sums no other's numbers drive out of the registers.
#if defined(__CUDA_ARCH__) || defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define APART INLINE
#else
#define APART __attribute__((noinline))
#endif
#define UNROLL _Pragma("unroll")
enum { NORMALISE = 0, CONVOLVE = 1, POOL = 2, MEAN = 3, DEPTHWISE = 4 };
#define MOST (1e38f * 1e38f)  // infinity: nothing is more
// One row of the table of layers; offsets count floats in an image's work memory, or in the weights.
struct Layer {
  int kind;
  int from, from_row, from_pixel;  // where it reads: offset, and steps from row to row and from pixel to pixel
  int into, into_row, into_pixel;
  int columns, count;              // pixels (a mean: cells) that it writes: of a row, and in all
  int stride;                      // pixels of the input from one to the next
  int height, width;               // of the input
  int rows, length;                // taps: rows, and neighbouring floats in each
  int weights, bias;
  int vectors, blocks;             // 16 channels each: computed together, and groups of so many
  int rectified;                   // 0 not, 1 at 0, 2 at 0 and at 6
  int adds, also;                  // whether what lies at the offset `also`, in the steps of `into`, is added at last
  // Parts of a CPU, which runs them one after the other: what is alike in all pixels of a group of channels is found out once.
  INLINE int items() const {
    switch (kind) {
      case NORMALISE: return height;
      case CONVOLVE: return NARROW ? blocks * vectors : blocks;
      case DEPTHWISE: return blocks;
      case POOL: return count;
      default: return count * blocks;
    }
  }
};
