// Eight windows, or rotors, side by side in double precision; these kernels run on a CPU alone.
typedef double V __attribute__((ext_vector_type(8)));
typedef double V_any __attribute__((ext_vector_type(8), aligned(8)));
// Whole numbers as wide, of which comparisons are made.
typedef decltype((V)0.0 < (V)0.0) K;
#define LANE_COUNT 8
#define ALWAYS inline __attribute__((always_inline))
struct L {
  static ALWAYS V load(const double* p) { return *(const V_any*)p; }
  static ALWAYS void store(double* p, V x) { *(V_any*)p = x; }
  static ALWAYS V select(K m, V a, V b) { return m ? a : b; }
  static ALWAYS V abs(V x) { return __builtin_elementwise_abs(x); }
  // What is no number takes the least, as where one lane is compared.
  static ALWAYS V at_least(V x, double least) { return select(x > (V)least, x, (V)least); }
  // exp(x) - 1, exact where x is small, too. As Cody and Waite: x = n ln 2 + r, |r| < 0.35, whose series ends below rounding
  // behind its 13th power. Beyond 708 it stops.
  static ALWAYS V expm1(V x) {
    x = select(x < (V)-708.0, (V)-708.0, select(x > (V)708.0, (V)708.0, x));
    // Adding it leaves the nearest whole number in the lowest bits.
    const V magic = (V)6755399441055744.0;
    const V shifted = x * (V)1.4426950408889634 + magic;
    const V n = shifted - magic;
    const V r = (x - n * (V)6.93147180369123816490e-01) - n * (V)1.90821492927058770002e-10;
    const double over[] = {1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0,
                           1.0 / 720.0,       1.0 / 120.0,      1.0 / 24.0,      1.0 / 6.0,      0.5,           1.0};
    V sum = (V)(1.0 / 6227020800.0);
    _Pragma("clang loop unroll(full)") for (int i = 0; i < 12; ++i) sum = sum * r + (V)over[i];
    const V power = __builtin_bit_cast(V, __builtin_bit_cast(K, (V)1.0) + (__builtin_bit_cast(K, shifted) << 52));
    return r * sum * power + (power - (V)1.0);
  }
};
// How a rotor's state follows a command that is held: `held_command.followed`, for lanes.
struct Response {
  V a[2], b[2];
  double slowest;
  // Whether rise and fall are alike, and whether a lag is the same at any speed.
  bool alike, linear;
  V gone[2], bend[2];
  ALWAYS void look() {
    alike = linear = true;
    for (int i = 0; i < LANE_COUNT; ++i) {
      alike = alike && a[0][i] == a[1][i] && b[0][i] == b[1][i];
      linear = linear && b[0][i] == 0.0 && b[1][i] == 0.0;
    }
  }
  // What a command and the time that it is held say, whatever the state.
  ALWAYS void hold(V command, V elapsed) {
    for (int side = 0; side < (alike ? 1 : 2); ++side) {
      const V rate = L::at_least(linear ? a[side] : a[side] + (V)2.0 * b[side] * L::abs(command), slowest);
      const V lost = L::expm1(-rate * elapsed);
      gone[side] = (V)1.0 + lost;
      if (!linear) bend[side] = L::select(command < (V)0.0, b[side], -b[side]) * lost / rate;
    }
  }
  ALWAYS V after(V state, V command) const {
    const V error = state - command;
    const K rise = L::abs(command) >= L::abs(state);
    const V left = error * (alike ? gone[0] : L::select(rise, gone[0], gone[1]));
    if (linear) return command + left;
    return command + left / L::at_least((V)1.0 + (alike ? bend[0] : L::select(rise, bend[0], bend[1])) * error, 1e-3);
  }
};
