// The window moves: what enters it is unknown, free and far from everything; the uppermost layer of the box is its ceiling. Along z
// windows begin and end at whole lanes.
struct Slide {
  static INLINE void forget(const Frame& f, int x, int y, int z, int end) {
    const size_t row = f.row(x, y);
    for (int k = z; k < end; k += LANES) {
      const size_t at = row + f.slot(k);
      V::store(f.odds + at, (S)(short)f.unknown);
      V::store(f.inflated + at, f.always(k));
      if (f.with_field) V::store(f.squared + at, (S)(short)FAR);
    }
  }
  static INLINE void run(const Frame& f, int part, int parts) {
    bool same = true;
    for (int a = 0; a < 3; ++a) same = same && f.from[a] == f.corner[a];
    if (same) return;
    for (int x = f.corner[0] + part; x < f.corner[0] + f.side[0]; x += parts) {
      const bool new_x = x < f.from[0] || x >= f.from[0] + f.side[0];
      for (int y = f.corner[1]; y < f.corner[1] + f.side[1]; ++y) {
        const int top = f.corner[2] + f.side[2], old = f.from[2] + f.side[2];
        if (new_x || y < f.from[1] || y >= f.from[1] + f.side[1] || f.from[2] >= top || old <= f.corner[2]) {
          forget(f, x, y, f.corner[2], top);
          continue;
        }
        forget(f, x, y, f.corner[2], f.from[2]);
        forget(f, x, y, old, top);
      }
    }
  }
};
