// Exact squared distances [cells^2] in the local bound of the inflated layer, to the nearest occupied and to the nearest free
// centre: sweeps along x, then along y and z the least of value(j) + (i - j)^2, looking outwards from i until no farther cell can
// be nearer. Numbers stop at FAR. The layer gets the first, or minus the second inside.
struct Field {
  static INLINE short* plane(const Frame& f, const Cells& b, int kind, int x) {
    const size_t size = (size_t)(b.hi[1] - b.lo[1]) * Inflate::stride(b);
    return f.work + ((size_t)kind * (b.hi[0] - b.lo[0]) + x - b.lo[0]) * size;
  }
  static INLINE S square(S d) { return d >= (short)ROOT ? (S)(short)FAR : d * d; }
  static INLINE S step(S d, S stop) {
    d = V::lower(d + (short)1, (S)(short)ROOT);
    return stop != 0 ? (S)(short)0 : d;
  }
  static INLINE void along_x(const Frame& f, int part, int parts) {
    if (!f.seen()) return;
    const Cells b = f.grown(f.field_margin);
    const int begin = Inflate::first(b), size = Inflate::stride(b);
    for (int y = b.lo[1] + part; y < b.hi[1]; y += parts)
      for (int z = 0; z < size; z += LANES) {
        const S inside = V::wide(V::between(b.lo[2] - begin - z, b.hi[2] - begin - z));
        const size_t at = (size_t)(y - b.lo[1]) * size + z;
        S out = (S)(short)ROOT, in = (S)(short)ROOT;
        for (int x = b.lo[0]; x < b.hi[0]; ++x) {
          const S taken = V::wide(V::load(f.inflated + f.row(x, y) + f.slot(begin + z)));
          out = step(out, taken & inside);
          in = step(in, (taken ^ (short)1) & inside);
          V::store(plane(f, b, 0, x) + at, out);
          V::store(plane(f, b, 1, x) + at, in);
        }
        out = in = (S)(short)ROOT;
        for (int x = b.hi[0] - 1; x >= b.lo[0]; --x) {
          short *const a = plane(f, b, 0, x) + at, *const c = plane(f, b, 1, x) + at;
          out = V::lower(V::load(a), V::lower(out + (short)1, (S)(short)ROOT));
          in = V::lower(V::load(c), V::lower(in + (short)1, (S)(short)ROOT));
          V::store(a, square(out));
          V::store(c, square(in));
        }
      }
  }
  // The least along y of a plane (y, z), in place; `kept` holds 16 numbers per y.
  static INLINE void along_y(short* values, short* kept, int count, int size) {
    for (int z = 0; z < size; z += LANES) {
      S least = (S)(short)FAR;
      for (int y = 0; y < count; ++y) {
        const S v = V::load(values + (size_t)y * size + z);
        V::store(kept + y * LANES, v);
        least = V::lower(least, v);
      }
      for (int y = 0; y < count; ++y) {
        S best = V::load(kept + y * LANES);
        const int last = y > count - 1 - y ? y : count - 1 - y;
        for (int r = 1; r <= last && r < ROOT && V::any(best > V::plus(least, (S)(short)(r * r))); ++r) {
          const S more = (S)(short)(r * r);
          if (y - r >= 0) best = V::lower(best, V::plus(V::load(kept + (y - r) * LANES), more));
          if (y + r < count) best = V::lower(best, V::plus(V::load(kept + (y + r) * LANES), more));
        }
        V::store(values + (size_t)y * size + z, best);
      }
    }
  }
  // The least along z of a row, in place; `wide` holds FAR for `size` numbers on both sides of its middle.
  static INLINE void along_z(short* values, short* wide, int size) {
    S low = (S)(short)FAR;
    for (int z = 0; z < size; z += LANES) {
      const S v = V::load(values + z);
      V::store(wide + z, v);
      low = V::lower(low, v);
    }
    int least = V::least(low);
#if LANES == 1
    for (int z = 0; z < size; ++z) least = values[z] < least ? values[z] : least;
#endif
    for (int z = 0; z < size; z += LANES) {
      S best = V::load(wide + z);
      for (int r = 1; r < size && r < ROOT && least + r * r < FAR && V::any(best > (short)(least + r * r)); ++r) {
        const S near = V::lower(V::load(wide + z - r), V::load(wide + z + r));
        best = V::lower(best, V::plus(near, (S)(short)(r * r)));
      }
      V::store(values + z, best);
    }
  }
  static INLINE void along_y_and_z(const Frame& f, int part, int parts) {
    if (!f.seen()) return;
    const Cells b = f.grown(f.field_margin);
    const int begin = Inflate::first(b), size = Inflate::stride(b), count = b.hi[1] - b.lo[1];
    short* const lines = f.work + 2 * (size_t)(b.hi[0] - b.lo[0]) * count * size;
    for (int x = b.lo[0] + part; x < b.hi[0]; x += parts) {
      short *const out = plane(f, b, 0, x), *const in = plane(f, b, 1, x);
      short* const kept = lines + (size_t)(x - b.lo[0]) * (count * CPU_LANES + 3 * size);
      short* const wide = kept + count * CPU_LANES + size;
      along_y(out, kept, count, size);
      along_y(in, kept, count, size);
      for (int k = 0; k < size; ++k) wide[k - size] = wide[size + k] = FAR;
      for (int y = 0; y < count; ++y) {
        along_z(out + (size_t)y * size, wide, size);
        along_z(in + (size_t)y * size, wide, size);
        short* const row = f.squared + f.row(x, y + b.lo[1]);
        for (int z = 0; z < size; z += LANES) {
          const S near = V::load(out + (size_t)y * size + z), deep = V::load(in + (size_t)y * size + z);
          const S here = V::wide(V::between(b.lo[2] - begin - z, b.hi[2] - begin - z));
          short* const at = row + f.slot(begin + z);
          V::store(at, here != 0 ? (deep > (short)0 ? (S)(-deep) : near) : V::load(at));
        }
      }
    }
  }
};
