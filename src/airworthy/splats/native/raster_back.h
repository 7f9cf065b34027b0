// Derivatives of pixels with respect to the records of a tile, front to back again. With w the weight of a Gaussian at a pixel and
// `worth` the derivative of the loss with respect to w, what lies behind is (sum of w * worth) less what has passed; so
//   d loss / d opacity here = left * worth - behind / (1 - opacity).
// The sum is known from the image: colours less the background, and the alpha, times their derivatives; an expected depth, a mean,
// adds nothing to it.
struct Block {  // the pixels of a block; derivatives of the loss
  F red, green, blue;
  F base;   // of the alpha, less that of the background which is covered
  F share;  // of the depth, over the alpha
  F depth;  // of the image
  F limit;  // depth up to which Gaussians were blended
  F normal_x, normal_y, normal_z;
  F left, behind;
  // `own`: depth of the Gaussian here.
  INLINE F worth(const Record& g, const Plane* face, F own, const int mode) const {
    F lit = L::fma(red, N::c(g.red), L::fma(green, N::c(g.green), L::fma(blue, N::c(g.blue), base)));
    if (mode & FLAG_NORMAL)
      lit = L::fma(normal_x, N::c(face->normal_x), L::fma(normal_y, N::c(face->normal_y), L::fma(normal_z, N::c(face->normal_z), lit)));
    return mode & FLAG_DEPTH ? L::fma(share, own - depth, lit) : lit;
  }
};
// Of a Gaussian over pixels: red, green, blue, depth; of the slope of the logarithm 1, dx^2, dx dy, dy^2, dx, dy; of that of the lean
// dx, dy, 1; the normal.
struct Sums {
  F of[BACK_SIZE];
  INLINE void clear() {
    for (int k = 0; k < BACK_SIZE; ++k) of[k] = N::c(0.0f);
  }
  // As Pixels::blend; whether any pixel still takes what follows.
  INLINE bool blend(const Record& g, const Plane* face, F dx, F dy, Block& block, const int mode) {
    const F power = Pixels::weight(g, dx, dy);
    M hit = (power >= LEAST_PEAK) & (block.left >= LEAST_LEFT);
    if (mode & FLAG_LIMIT) {
      const M near = block.limit >= g.depth;
      if (!Group::any(near)) return false;
      hit = hit & near;
    }
    if (!Group::any(hit)) return true;
    const F bare = L::exp2(power), most = N::c(MOST_ALPHA), zero = N::c(0.0f);
    const F alpha = N::select(hit, L::min(bare, most), zero);
    const F slack = mode & FLAG_PLANE ? face->slack(dx, dy) : N::c(1.0f);
    const F own = mode & FLAG_PLANE ? g.depth / slack : N::c(g.depth);
    const F part = alpha * block.left, worth = block.worth(g, face, own, mode);
    block.behind = L::fma(-part, worth, block.behind);
    const F slope = L::fma(block.left, worth, -block.behind / (1.0f - alpha));
    // One that counts the most does not count more with a higher peak.
    const F up = N::select(hit & (bare < most), slope * alpha, zero);
    const F up_x = up * dx, up_y = up * dy;
    of[0] = L::fma(part, block.red, of[0]);
    of[1] = L::fma(part, block.green, of[1]);
    of[2] = L::fma(part, block.blue, of[2]);
    if (mode & FLAG_PLANE) {
      // Of the depth z / (1 - t), t the lean times the offset: 1 / (1 - t) by z, and z / (1 - t)^2 by t where t is not held.
      const F share = part * block.share;
      const F lean = N::select(slack > 1.0f - PLANE_MOST, share * own / slack, zero);
      of[3] = of[3] + share / slack;
      of[10] = L::fma(lean, dx, of[10]);
      of[11] = L::fma(lean, dy, of[11]);
      of[12] = of[12] + lean;
    } else if (mode & FLAG_DEPTH) {
      of[3] = L::fma(part, block.share, of[3]);
    }
    if (mode & FLAG_NORMAL) {
      of[13] = L::fma(part, block.normal_x, of[13]);
      of[14] = L::fma(part, block.normal_y, of[14]);
      of[15] = L::fma(part, block.normal_z, of[15]);
    }
    of[4] = of[4] + up;
    of[5] = L::fma(up_x, dx, of[5]);
    of[6] = L::fma(up_x, dy, of[6]);
    of[7] = L::fma(up_y, dy, of[7]);
    of[8] = of[8] + up_x;
    of[9] = of[9] + up_y;
    block.left = block.left - part;
    return Group::any(block.left >= LEAST_LEFT);
  }
};
enum { BACK_CAMERAS = 1, BACK_RECORDS = 2 };  // stages after BACK_TILES
struct BackTile {
  enum { ACROSS = TILE / BLOCK_X, BLOCKS = TILE * TILE / (BLOCK_X * BLOCK_Y) };
  const Record* records;
  const Plane* faces;
  const int* list;
  int count;
  int left, top;  // first pixel
  float* out;     // Group::STRIDE per place in the list
  Block blocks[BLOCKS];
  unsigned int shown;

  // One after the other; how many were walked before no light passed any more. What is not met anywhere gets sums of zero.
  INLINE int walk(const int mode) {
    const F pixel_x = Group::counted(1, BLOCK_X), pixel_y = Group::counted(BLOCK_X, BLOCK_Y);
    const F block_x = Group::counted(1, ACROSS) * (float)BLOCK_X, block_y = Group::counted(ACROSS, TILE) * (float)BLOCK_Y;
    unsigned int alive = shown;
    int e = 0;
    for (; e < count && alive; ++e) {
#if LANES != 1
      if (e + AHEAD < count) __builtin_prefetch(records + list[e + AHEAD]);
#endif
      const Record& g = records[list[e]];
      const Plane* const face = mode & (FLAG_PLANE | FLAG_NORMAL) ? faces + list[e] : faces;
      const float from_x = (float)left + 0.5f - g.x, from_y = (float)top + 0.5f - g.y;
      unsigned int met = alive & Group::bits(Touch::rectangle(g, block_x + from_x, block_y + from_y, (float)(BLOCK_X - 1),
                                                              (float)(BLOCK_Y - 1), LEAST_PEAK - TOUCH_MARGIN));
      Sums sums;
      sums.clear();
      for (; met; met &= met - 1) {
        const int k = Group::lowest(met);
        const F dx = pixel_x + (from_x + (float)(k % ACROSS * BLOCK_X)), dy = pixel_y + (from_y + (float)(k / ACROSS * BLOCK_Y));
        if (!sums.blend(g, face, dx, dy, blocks[k], mode)) alive &= ~(1u << k);
      }
      const int count_of = mode & (FLAG_PLANE | FLAG_NORMAL) ? BACK_SIZE : 10;
      N::store(out + (size_t)e * Group::STRIDE + Group::own(), Group::sums(sums.of, count_of));
    }
    return e;
  }
};
