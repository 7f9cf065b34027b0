// The inflated layer: in the local bound every cell within a cube of +-radius of an occupied one, around the bound added to what
// was there. Along z and y into bytes (x, y, z) of the bound grown by the radius, then along x into the layer.
struct Inflate {
  static INLINE int first(const Cells& b) { return b.lo[2] - b.lo[2] % LANES; }
  static INLINE int stride(const Cells& b) { return (b.hi[2] - first(b) + CPU_LANES - 1) / CPU_LANES * CPU_LANES; }
  static INLINE unsigned char* rows(const Frame& f, const Cells& b, int kind, int x) {
    const size_t plane = (size_t)(b.hi[1] - b.lo[1]) * stride(b);
    return (unsigned char*)f.work + ((size_t)kind * (b.hi[0] - b.lo[0]) + x - b.lo[0]) * plane;
  }
  static INLINE B occupied(const Frame& f, const short* odds, int z, const Cells& b) {
    return V::flags(V::load(odds) > (short)f.occupied) & V::between(b.lo[2] - z, b.hi[2] - z);
  }
  static INLINE void along_z_and_y(const Frame& f, int part, int parts) {
    if (!f.seen()) return;
    const Cells b = f.grown(f.radius);
    const int begin = first(b), size = stride(b);
    unsigned char* const line = (unsigned char*)f.work + 2 * (size_t)(b.hi[0] - b.lo[0]) * (b.hi[1] - b.lo[1]) * size;
    for (int x = b.lo[0] + part; x < b.hi[0]; x += parts) {
      unsigned char *const up = rows(f, b, 0, x), *const out = rows(f, b, 1, x);
      unsigned char* const wide = line + (size_t)(x - b.lo[0]) * (size + 2 * CPU_LANES) + CPU_LANES;
      for (int k = 0; k < CPU_LANES; ++k) wide[k - CPU_LANES] = wide[size + k] = 0;
      for (int y = b.lo[1]; y < b.hi[1]; ++y) {
        const short* const odds = f.odds + f.row(x, y);
        unsigned char* const row = up + (size_t)(y - b.lo[1]) * size;
        B any = (B)0;
        for (int z = 0; z < size; z += LANES) {
          const B taken = occupied(f, odds + f.slot(begin + z), begin + z, b);
          V::store(wide + z, taken);
          V::store(row + z, (B)0);
          any = any | taken;
        }
        if (!V::any_byte(any)) continue;
        for (int z = 0; z < size; z += LANES) {
          B grown = V::load(wide + z);
          for (int r = 1; r <= f.radius; ++r) grown = grown | V::load(wide + z - r) | V::load(wide + z + r);
          V::store(row + z, grown);
        }
      }
      const int count = b.hi[1] - b.lo[1];
      for (int y = 0; y < count; ++y)
        for (int z = 0; z < size; z += LANES) {
          const int from = y > f.radius ? y - f.radius : 0, to = y + f.radius < count - 1 ? y + f.radius : count - 1;
          B grown = (B)0;
          for (int j = from; j <= to; ++j) grown = grown | V::load(up + (size_t)j * size + z);
          V::store(out + (size_t)y * size + z, grown);
        }
    }
  }
  static INLINE void along_x(const Frame& f, int part, int parts) {
    if (!f.seen()) return;
    const Cells b = f.grown(f.radius);
    const int begin = first(b), size = stride(b);
    for (int x = b.lo[0] + part; x < b.hi[0]; x += parts) {
      const int from = x - f.radius > b.lo[0] ? x - f.radius : b.lo[0], to = x + f.radius < b.hi[0] - 1 ? x + f.radius : b.hi[0] - 1;
      for (int y = b.lo[1]; y < b.hi[1]; ++y) {
        unsigned char* const row = f.inflated + f.row(x, y);
        const bool local = x >= f.bound[0] && x < f.bound[3] && y >= f.bound[1] && y < f.bound[4];
        for (int z = 0; z < size; z += LANES) {
          B grown = (B)0;
          for (int i = from; i <= to; ++i) grown = grown | V::load(rows(f, b, 1, i) + (size_t)(y - b.lo[1]) * size + z);
          write(f, b, row + f.slot(begin + z), begin + z, grown, local);
        }
      }
    }
  }
  static INLINE void write(const Frame& f, const Cells& b, unsigned char* cells, int z, B grown, bool local) {
    const B old = V::load(cells), here = V::between(b.lo[2] - z, b.hi[2] - z);
    const B anew = local ? V::between(f.bound[2] - z, f.bound[5] - z) : (B)0;
    V::store(cells, (((old & (anew ^ 1)) | grown) & here) | (old & (here ^ 1)) | f.always(z));
  }
};
