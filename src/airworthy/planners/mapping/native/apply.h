// The counts of one image go into the log-odds, and what lies in a shell around the local bound is forgotten.
struct Apply {
  static INLINE void run(const Frame& f, const double* number, int part, int parts) {
    if (!f.seen()) return;
    int camera[3], lo[3], hi[3];
    Trace::cell_of(f, number[0], f.pose + 9, camera);
    const Cells box = Trace::near(f, camera);
    for (int a = 0; a < 3; ++a) {  // cells that one image may change
      lo[a] = (int)::floor((f.pose[9 + a] - number[5 + a] - f.origin[a]) / number[0]);
      hi[a] = (int)::floor((f.pose[9 + a] + number[5 + a] - f.origin[a]) / number[0]);
    }
    const int stride = Trace::stride(box), wide = box.hi[1] - box.lo[1], first = f.bound[2] - f.bound[2] % LANES;
    for (int x = f.bound[0] + part; x < f.bound[3]; x += parts)
      for (int y = f.bound[1]; y < f.bound[4]; ++y) {
        int* const counts = f.counts + ((size_t)(x - box.lo[0]) * wide + y - box.lo[1]) * stride - box.lo[2];
        short* const row = f.odds + f.row(x, y);
        const bool local = x >= lo[0] && x <= hi[0] && y >= lo[1] && y <= hi[1];
        for (int z = first; z < f.bound[5]; z += LANES) row_part(f, counts + z, row + f.slot(z), z, local, lo[2], hi[2]);
      }
    shell(f, part, parts);
  }
  static INLINE void row_part(const Frame& f, int* counts, short* odds, int z, bool local, int lowest, int highest) {
    const auto count = V::counts(counts);
    const auto touched = V::narrow((count & (WALKED | ENDED)) != 0 ? -1 + 0 * count : 0 * count);
    if (!V::any(touched != 0)) return;
    const auto up = V::narrow(count >= 0 ? f.hit + 0 * count : f.miss + 0 * count);
    const S old = V::load(odds), k = (S)(V::lane_numbers() + (short)z);
    const auto here = (k >= (short)lowest) & (k <= (short)highest);
    S now = here ? old : (S)(short)f.least;
    now = local ? now : (S)(short)f.least;
    now = V::plus(now, up);
    now = now < (short)f.least ? (S)(short)f.least : now;
    now = now > (short)f.most ? (S)(short)f.most : now;
    V::store(odds, touched != 0 ? now : old);
    V::clear(counts);
  }
  static INLINE void shell(const Frame& f, int part, int parts) {
    const Cells kept = f.grown(f.margin), outer = f.grown(f.margin + SHELL);
    for (int x = outer.lo[0] + part; x < outer.hi[0]; x += parts)
      for (int y = outer.lo[1]; y < outer.hi[1]; ++y) {
        short* const row = f.odds + f.row(x, y);
        const bool out = x < kept.lo[0] || x >= kept.hi[0] || y < kept.lo[1] || y >= kept.hi[1];
        forget(f, row, outer.lo[2], out ? outer.hi[2] : kept.lo[2]);
        if (!out) forget(f, row, kept.hi[2], outer.hi[2]);
      }
  }
  static INLINE void forget(const Frame& f, short* row, int z, int end) {
    for (; z < end && z % LANES; ++z) row[f.slot(z)] = f.unknown;
    for (; z + LANES <= end; z += LANES) V::store(row + f.slot(z), (S)(short)f.unknown);
    for (; z < end; ++z) row[f.slot(z)] = f.unknown;
  }
};
