// Derivatives of pixels with respect to the records of a tile, front to back again. With w the weight of a Gaussian at a pixel and
// `value` the derivative of the loss with respect to w, what lies behind is (sum of w * value) less what has passed; so
//   d loss / d opacity here = left * value - behind / (1 - opacity).
struct Slopes {  // of the loss, at the pixels of a block
  F red, green, blue, depth, alpha;
};
struct Back {
  F sums[16];  // of a Gaussian over the pixels: red, green, blue, depth, peak, dx dx, dx dy, dy dy, dx, dy
  INLINE void clear() {
    for (int k = 0; k < 16; ++k) sums[k] = N::c(0.0f);
  }
  static INLINE F value(const Record& g, const Slopes& s) {
    return L::fma(s.red, N::c(g.red), L::fma(s.green, N::c(g.green), L::fma(s.blue, N::c(g.blue), L::fma(s.depth, N::c(g.depth), s.alpha))));
  }
  // As Pixels::blend, but sums up weights times values.
  static INLINE bool total(const Record& g, F dx, F dy, const Slopes& s, F& left, F& sum) {
    const F power = Pixels::weight(g, dx, dy);
    const M hit = (power >= LEAST_PEAK) & (left >= LEAST_LEFT);
    if (!L::bits(hit)) return true;
    const F part = N::select(hit, Pixels::alpha(power), N::c(0.0f)) * left;
    sum = L::fma(part, value(g, s), sum);
    left = left - part;
    return N::any(left >= LEAST_LEFT);
  }
  INLINE bool blend(const Record& g, F dx, F dy, const Slopes& s, F& left, F& behind) {
    const F power = Pixels::weight(g, dx, dy);
    const M hit = (power >= LEAST_PEAK) & (left >= LEAST_LEFT);
    if (!L::bits(hit)) return true;
    const F bare = L::exp2(power);
    const F most = N::c(MOST_ALPHA), zero = N::c(0.0f);
    const F alpha = N::select(hit, L::min(bare, most), zero);
    const F part = alpha * left, worth = value(g, s);
    behind = behind - part * worth;
    const F slope = L::fma(left, worth, -behind / (1.0f - alpha));
    // One that counts the most does not count more with a higher peak.
    const F up = N::select(hit & (bare < most), slope * alpha * LN_2, zero);
    sums[0] = L::fma(part, s.red, sums[0]);
    sums[1] = L::fma(part, s.green, sums[1]);
    sums[2] = L::fma(part, s.blue, sums[2]);
    sums[3] = L::fma(part, s.depth, sums[3]);
    sums[4] = sums[4] + up;
    const F up_x = up * dx, up_y = up * dy;
    sums[5] = L::fma(up_x, dx, sums[5]);
    sums[6] = L::fma(up_x, dy, sums[6]);
    sums[7] = L::fma(up_y, dy, sums[7]);
    sums[8] = sums[8] + up_x;
    sums[9] = sums[9] + up_y;
    left = left - part;
    return N::any(left >= LEAST_LEFT);
  }
  // Sums over lanes, in one order on every machine. Out: x, y, a, b, c, peak, red, green, blue, depth.
  INLINE void finish(const Record& g, float* out) const {
    float s[10];
    for (int k = 0; k < 10; ++k) s[k] = L::sum(sums[k]);
    out[0] = -2.0f * g.a * s[8] - g.b * s[9];
    out[1] = -g.b * s[8] - 2.0f * g.c * s[9];
    out[2] = s[5];
    out[3] = s[6];
    out[4] = s[7];
    out[5] = s[4];
    for (int k = 0; k < 4; ++k) out[6 + k] = s[k];
  }
};
