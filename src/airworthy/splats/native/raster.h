// Compositing, front to back. On a CPU a task is a tile, 16 pixels (a block of BLOCK_X by BLOCK_Y) per lane vector; on a GPU it is
// one pixel, the 256 of a tile side by side. Both read the same list and do the same arithmetic in the same order.
struct Pixels {
  F left, red, green, blue, depth;  // `left`: what light still passes
  F normal_x, normal_y, normal_z;
  static INLINE F nowhere() { return N::from_bits(N::u(0x7f800000u)); }
  INLINE void clear(int flags) {
    left = N::c(1.0f);
    red = green = blue = normal_x = normal_y = normal_z = N::c(0.0f);
    depth = flags & FLAG_MEDIAN ? nowhere() : N::c(0.0f);
  }
  static INLINE F weight(const Record& g, F dx, F dy) {
    const F slope = L::fma(N::c(g.a), dx, g.b * dy);
    return L::fma(slope, dx, L::fma(g.c * dy, dy, N::c(g.peak)));
  }
  static INLINE F alpha(F weight) { return L::min(L::exp2(weight), N::c(MOST_ALPHA)); }
  // Blends a Gaussian seen at offsets from its mean, where it is not beyond `limit`; whether any pixel still takes what follows.
  // `face`: its plane, where one is asked for.
  INLINE bool blend(const Record& g, const Plane* face, F dx, F dy, const int mode, F limit) {
    const F power = weight(g, dx, dy);
    M hit = (power >= LEAST_PEAK) & (left >= LEAST_LEFT);
    if (mode & FLAG_LIMIT) {
      const M near = limit >= g.depth;
      if (!N::any(near)) return false;  // nor is any of those that follow
      hit = hit & near;
    }
    if (!L::bits(hit)) return true;
    const F part = N::select(hit, alpha(power), N::c(0.0f)) * left;
    red = L::fma(part, N::c(g.red), red);
    green = L::fma(part, N::c(g.green), green);
    blue = L::fma(part, N::c(g.blue), blue);
    const F rest = left - part;
    const F own = mode & FLAG_PLANE ? g.depth / face->slack(dx, dy) : N::c(g.depth);
    if (mode & FLAG_EXPECTED) depth = L::fma(part, own, depth);
    if (mode & FLAG_MEDIAN) depth = N::select((left > 0.5f) & (rest <= 0.5f), own, depth);
    if (mode & FLAG_NORMAL) {
      normal_x = L::fma(part, N::c(face->normal_x), normal_x);
      normal_y = L::fma(part, N::c(face->normal_y), normal_y);
      normal_z = L::fma(part, N::c(face->normal_z), normal_z);
    }
    left = rest;
    return N::any(left >= LEAST_LEFT);
  }
  // Depth to deliver: the mean over what is rendered, or where half of the light has been stopped.
  INLINE F distance(int flags) const {
    const F stopped = 1.0f - left;
    if (flags & FLAG_MEDIAN) return depth;
    return N::select(stopped >= LEAST_ALPHA, depth / L::max(stopped, N::c(LEAST_ALPHA)), nowhere());
  }
};
struct Tile {
  // x, y: the centre of the tile's first pixel. Offsets are summed in one order everywhere: tile, block, pixel.
#if LANES == 1
  static INLINE void composite(const Record* records, const Plane* faces, const int* list, int count, float x, float y, int block,
                               int pixel, int flags, float limit, Pixels& p) {
    const float block_x = (float)(block % (TILE / BLOCK_X) * BLOCK_X), block_y = (float)(block / (TILE / BLOCK_X) * BLOCK_Y);
    const float pixel_x = (float)(pixel % BLOCK_X), pixel_y = (float)(pixel / BLOCK_X);
    for (int e = 0; e < count; ++e) {
      const Record& g = records[list[e]];
      const Plane* const face = flags & (FLAG_PLANE | FLAG_NORMAL) ? faces + list[e] : faces;
      if (!p.blend(g, face, pixel_x + (x - g.x + block_x), pixel_y + (y - g.y + block_y), flags, limit)) return;
    }
  }
#else
  static INLINE void composite(const Record* records, const Plane* faces, const int* list, int count, float x, float y,
                               const int flags, const F* limits, Pixels* blocks, unsigned int alive) {
    const F pixel_x = L::counted(1, BLOCK_X), pixel_y = L::counted(BLOCK_X, BLOCK_Y);
    const F block_x = L::counted(1, TILE / BLOCK_X) * (float)BLOCK_X, block_y = L::counted(TILE / BLOCK_X, TILE) * (float)BLOCK_Y;
    for (int e = 0; e < count && alive; ++e) {
      if (e + AHEAD < count) __builtin_prefetch(records + list[e + AHEAD]);
      const Record& g = records[list[e]];
      const Plane* const face = flags & (FLAG_PLANE | FLAG_NORMAL) ? faces + list[e] : faces;
      const float from_x = x - g.x, from_y = y - g.y;
      unsigned int met = alive & L::bits(touched(g, block_x + from_x, block_y + from_y));
      for (; met; met &= met - 1) {
        const int k = __builtin_ctz(met);
        const float corner_x = (float)(k % (TILE / BLOCK_X) * BLOCK_X), corner_y = (float)(k / (TILE / BLOCK_X) * BLOCK_Y);
        const F limit = flags & FLAG_LIMIT ? limits[k] : pixel_x;
        if (!blocks[k].blend(g, face, pixel_x + (from_x + corner_x), pixel_y + (from_y + corner_y), flags, limit))
          alive &= ~(1u << k);
      }
    }
  }
  static INLINE M touched(const Record& g, F x, F y) {
    return Touch::rectangle(g, x, y, (float)(BLOCK_X - 1), (float)(BLOCK_Y - 1), LEAST_PEAK - TOUCH_MARGIN);
  }
#endif
};
