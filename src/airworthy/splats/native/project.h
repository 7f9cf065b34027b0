// Gaussians of a scene into the image of a camera: mean, form and extent (EWA: the projection linearised at the mean), opacity,
// colour from harmonics. On a CPU a task is a chunk of one camera, and what is visible is packed at the chunk's beginning; on a
// GPU it is one Gaussian of one camera.
struct Projection {
  const CameraRow& camera;
  const float* rows;  // of the first lane: GEOMETRY_ROWS numbers, LANE_STRIDE apart
  const float* harmonics;
  int coefficients, width, height, flags;
  float near, dilation;
  // out
  F x, y, z, a, b, c, peak, ridge_y, ridge_x, half_x, half_y;
  F depth;  // by which Gaussians are sorted: along the axis, of a fisheye the distance
  F away[3];
  F colour[3];
  // on the way
  F inverse, slope_x, slope_y, at_x, at_y, bare, xx, yy, xy, opacity;
  F to_x[3], to_y[3], u[3], v[3];
  // Of its plane, where that is asked for (`face`).
  F lean_x, lean_y, normal[3];
  F to_depth[3], w[3], product_x, product_y, spread_over, thin_over;
  M along_1, along_2;

  INLINE F row(int k) const { return N::load(rows + k * LANE_STRIDE); }
  static INLINE F dot(const F* p, const F* q) { return L::fma(p[0], q[0], L::fma(p[1], q[1], p[2] * q[2])); }
  static INLINE F turned(const float* r, const F* v) { return L::fma(v[0], N::c(r[0]), L::fma(v[1], N::c(r[1]), v[2] * r[2])); }

  // Which lie in front of the camera; their place along the axis.
  INLINE M in_front() {
    for (int k = 0; k < 3; ++k) away[k] = row(k) - camera.position[k];
    z = turned(camera.rotation + 6, away);
    depth = flags & FLAG_FISHEYE ? N::sqrt(dot(away, away)) : z;
    return (depth > near) & (depth < FAR_LIMIT) & (row(ROW_OPACITY) >= LEAST_ALPHA);
  }

  // The place in the image, and the rows of the linear map from the world to it; which a lens shows at all.
  INLINE M place(M wanted) {
    const float* const r = camera.rotation;
    if (!(flags & FLAG_FISHEYE)) {
      inverse = 1.0f / N::select(wanted, z, N::c(1.0f));
      slope_x = turned(r, away) * inverse;
      slope_y = turned(r + 3, away) * inverse;
      at_x = L::max(N::c(camera.x_low), L::min(slope_x, N::c(camera.x_high)));
      at_y = L::max(N::c(camera.y_low), L::min(slope_y, N::c(camera.y_high)));
      if (!(flags & FLAG_OPENCV)) {
        x = L::fma(slope_x, N::c(camera.fx), N::c(camera.cx));
        y = L::fma(slope_y, N::c(camera.fy), N::c(camera.cy));
        for (int k = 0; k < 3; ++k) {
          to_x[k] = (camera.fx * inverse) * (r[k] - at_x * r[6 + k]);
          to_y[k] = (camera.fy * inverse) * (r[3 + k] - at_y * r[6 + k]);
        }
        return wanted;
      }
    }
    LensMap map;
    if (flags & FLAG_OPENCV) {
      map.opencv(camera.lens, camera.lens_limit, slope_x, slope_y, at_x, at_y, inverse);
    } else {
      const F range = N::select(wanted, depth, N::c(1.0f));
      map.fisheye(camera.lens, camera.lens_limit, turned(r, away), turned(r + 3, away), z, range);
    }
    x = L::fma(map.u, N::c(camera.fx), N::c(camera.cx));
    y = L::fma(map.v, N::c(camera.fy), N::c(camera.cy));
    for (int k = 0; k < 3; ++k) {
      to_x[k] = camera.fx * (map.xx * r[k] + map.xy * r[3 + k] + map.xz * r[6 + k]);
      to_y[k] = camera.fy * (map.xy * r[k] + map.yy * r[3 + k] + map.yz * r[6 + k]);
    }
    return wanted & map.good;
  }

  // Which can be seen, and how.
  INLINE M shape(M wanted) {
    wanted = place(wanted);
    // The linear map, times the axes of the Gaussian.
    for (int k = 0; k < 3; ++k) {
      const F axis[3] = {row(ROW_AXES + k), row(ROW_AXES + 3 + k), row(ROW_AXES + 6 + k)};
      u[k] = dot(to_x, axis);
      v[k] = dot(to_y, axis);
    }
    // The determinant as squares of minors: differences of products would lose that of a thin Gaussian.
    const F m0 = u[1] * v[2] - u[2] * v[1], m1 = u[2] * v[0] - u[0] * v[2], m2 = u[0] * v[1] - u[1] * v[0];
    bare = L::fma(m0, m0, L::fma(m1, m1, m2 * m2));
    const F uu = dot(u, u), vv = dot(v, v);
    xy = dot(u, v);
    F kept = bare, over;  // the determinant of what keeps its light; one over that of the form
    if (flags & FLAG_REDUCED) {
      if (!(flags & FLAG_ANTIALIASED)) kept = widened(camera.kept_x, camera.kept_y, uu, vv);
      over = 1.0f / widened(camera.spread_x, camera.spread_y, uu, vv);
      xx = uu + camera.spread_x;
      yy = vv + camera.spread_y;
    } else {
      over = 1.0f / (bare + dilation * (uu + vv) + dilation * dilation);
      xx = uu + dilation;
      yy = vv + dilation;
    }
    opacity = row(ROW_OPACITY);
    if (flags & (FLAG_ANTIALIASED | FLAG_REDUCED)) opacity = opacity * N::sqrt(kept * over);
    const M visible = wanted & (opacity >= LEAST_ALPHA);
    peak = L::log2(L::max(opacity, N::c(LEAST_ALPHA)));
    a = yy * over * -HALF_LOG2_E;
    b = xy * over * (2.0f * HALF_LOG2_E);
    c = xx * over * -HALF_LOG2_E;
    ridge_y = xy / xx;
    ridge_x = xy / yy;
    const F reach = (peak - LEAST_PEAK) * (1.0f / HALF_LOG2_E);
    half_x = N::sqrt(reach * xx) * 1.0001f + 0.001f;
    half_y = N::sqrt(reach * yy) * 1.0001f + 0.001f;
    // Some pixel centre lies between its bounds, in the image.
    return visible & (x + half_x > 0.5f) & (x - half_x < (float)width - 0.5f) & (y + half_y > 0.5f) &
           (y - half_y < (float)height - 0.5f);
  }

  // The plane of a Gaussian. Along a ray it is densest at depth z + c S^-1 (dx, dy), c the covariance of depth and place in the image
  // (Zhang et al., RaDe-GS: rasterizing depth in Gaussian splatting, 2024, section 3); of a flat one that is where the ray meets it,
  // its slope being that of the plane at the mean. The products are those of cross products, for the sake of thin ones.
  INLINE void face() {
    const float* const r = camera.rotation;
    const F over = 1.0f / depth, spread = N::c(PLANE_SPREAD);
    for (int k = 0; k < 3; ++k) to_depth[k] = flags & FLAG_FISHEYE ? away[k] * over : N::c(r[6 + k]);
    for (int k = 0; k < 3; ++k) {
      const F axis[3] = {row(ROW_AXES + k), row(ROW_AXES + 3 + k), row(ROW_AXES + 6 + k)};
      w[k] = dot(to_depth, axis);
    }
    const F m0 = u[1] * v[2] - u[2] * v[1], m1 = u[2] * v[0] - u[0] * v[2], m2 = u[0] * v[1] - u[1] * v[0];
    const F x0 = w[1] * v[2] - w[2] * v[1], x1 = w[2] * v[0] - w[0] * v[2], x2 = w[0] * v[1] - w[1] * v[0];
    const F y0 = u[1] * w[2] - u[2] * w[1], y1 = u[2] * w[0] - u[0] * w[2], y2 = u[0] * w[1] - u[1] * w[0];
    product_x = dot(w, u);
    product_y = dot(w, v);
    spread_over = 1.0f / (bare + spread * (dot(u, u) + dot(v, v)) + PLANE_SPREAD * PLANE_SPREAD);
    lean_x = flags & FLAG_PLANE ? (m0 * x0 + m1 * x1 + m2 * x2 + spread * product_x) * spread_over * over : N::c(0.0f);
    lean_y = flags & FLAG_PLANE ? (m0 * y0 + m1 * y1 + m2 * y2 + spread * product_y) * spread_over * over : N::c(0.0f);
    // The normal: the shortest axis, turned towards the camera, in the camera's frame.
    F square[3], n[3];
    for (int k = 0; k < 3; ++k) {
      const F axis[3] = {row(ROW_AXES + k), row(ROW_AXES + 3 + k), row(ROW_AXES + 6 + k)};
      square[k] = dot(axis, axis);
    }
    along_1 = square[1] < square[0];
    along_2 = square[2] < L::min(square[0], square[1]);
    const F least = N::select(along_2, square[2], N::select(along_1, square[1], square[0]));
    for (int k = 0; k < 3; ++k)
      n[k] = N::select(along_2, row(ROW_AXES + 3 * k + 2), N::select(along_1, row(ROW_AXES + 3 * k + 1), row(ROW_AXES + 3 * k)));
    thin_over = N::select(dot(n, away) > 0.0f, N::c(-1.0f), N::c(1.0f)) / N::sqrt(L::max(least, N::c(1e-30f)));
    for (int k = 0; k < 3; ++k) normal[k] = turned(r + 3 * k, n) * thin_over;
  }

  // The determinant with variances added along the axes.
  INLINE F widened(float across, float down, F uu, F vv) const { return bare + across * vv + down * uu + across * down; }

  INLINE F coefficient(int k, int channel) const { return N::load(harmonics + (k * 3 + channel) * LANE_STRIDE); }

  // Real spherical harmonics of the direction from the camera to the mean.
  INLINE void evaluate_colour() {
    F basis[16];
    basis[0] = N::c(0.28209479f);
    if (coefficients > 1) {
      const F over = 1.0f / N::sqrt(L::max(dot(away, away), N::c(1e-20f)));
      basis_of(away[0] * over, away[1] * over, away[2] * over, coefficients, basis);
    }
    for (int channel = 0; channel < 3; ++channel) {
      F sum = N::c(0.5f);
      for (int k = 0; k < 16; ++k)  // a fixed end keeps the basis in registers
        if (k < coefficients) sum = L::fma(basis[k], coefficient(k, channel), sum);
      colour[channel] = L::max(sum, N::c(0.0f));
    }
  }

  static INLINE void basis_of(F dx, F dy, F dz, int count, F* basis) {
    basis[1] = -0.48860251f * dy;
    basis[2] = 0.48860251f * dz;
    basis[3] = -0.48860251f * dx;
    if (count < 9) return;
    const F xx = dx * dx, yy = dy * dy, zz = dz * dz;
    basis[4] = 1.09254843f * dx * dy;
    basis[5] = -1.09254843f * dy * dz;
    basis[6] = 0.31539157f * (2.0f * zz - xx - yy);
    basis[7] = -1.09254843f * dx * dz;
    basis[8] = 0.54627422f * (xx - yy);
    if (count < 16) return;
    basis[9] = -0.59004359f * dy * (3.0f * xx - yy);
    basis[10] = 2.89061144f * dx * dy * dz;
    basis[11] = -0.45704580f * dy * (4.0f * zz - xx - yy);
    basis[12] = 0.37317633f * dz * (2.0f * zz - 3.0f * xx - 3.0f * yy);
    basis[13] = -0.45704580f * dx * (4.0f * zz - xx - yy);
    basis[14] = 1.44530572f * dz * (xx - yy);
    basis[15] = -0.59004359f * dx * (xx - 3.0f * yy);
  }

  // Whether nothing of a chunk can be seen: its ball of means, widened by the farthest that one can reach in the image.
  static INLINE bool hidden(const CameraRow& k, const ChunkRow& chunk, int width, int height, int flags, float near,
                            float dilation) {
    float d[3], at[3];
    for (int i = 0; i < 3; ++i) d[i] = chunk.centre[i] - k.position[i];
    for (int i = 0; i < 3; ++i) {
      const float* const r = k.rotation + 3 * i;
      at[i] = r[0] * d[0] + r[1] * d[1] + r[2] * d[2];
    }
    const float ball = chunk.radius * 1.0001f + 1e-4f;
    if (flags & (FLAG_OPENCV | FLAG_FISHEYE)) return lost(k, chunk, flags & FLAG_FISHEYE, near, dilation, at, ball);
    const float nearest = at[2] - ball, farthest = at[2] + ball;
    if (farthest <= near) return true;
    if (nearest <= near) return false;
    return outside(at[0], ball, nearest, farthest, k.fx, k.cx, k.x_low, k.x_high, width, chunk, dilation) ||
           outside(at[1], ball, nearest, farthest, k.fy, k.cy, k.y_low, k.y_high, height, chunk, dilation);
  }
  // The same before a lens, by distances from its axis alone.
  static INLINE bool lost(const CameraRow& k, const ChunkRow& chunk, int fisheye, float near, float dilation, const float* at,
                          float ball) {
    const float across = ::sqrtf(at[0] * at[0] + at[1] * at[1]);
    const float depth = fisheye ? ::sqrtf(across * across + at[2] * at[2]) : at[2];
    const float nearest = depth - ball, farthest = depth + ball;
    if (farthest <= near) return true;
    if (nearest <= near) return false;
    // Least slope; or least angle, from sin t <= t, asin s <= pi s / 2 (in the middle, behind, and across the ball).
    const float sine = across / depth;
    const float turn = fisheye ? (at[2] > 0.0f ? sine : 3.1415926f - 1.5707964f * sine) - 1.5707964f * ball / depth
                               : (across - ball) / farthest;
    const float reach = k.steepest / nearest * chunk.extent + chunk.reach * (dilation + 1.0f) + 1.0f;
    return turn > k.lens_limit || k.least_gain * turn - reach > k.field;
  }
  static INLINE bool outside(float at, float ball, float nearest, float farthest, float focal, float centre, float low,
                             float high, int size, const ChunkRow& chunk, float dilation) {
    const float slope = -low > high ? -low : high;
    const float steep = 1.0f + slope * slope;
    const float reach = focal / nearest * (steep > 1.0f ? steep : 1.0f) * chunk.extent + chunk.reach * (dilation + 1.0f) + 1.0f;
    const float right = at + ball, left = at - ball;
    const float greatest = right / (right > 0.0f ? nearest : farthest), least = left / (left > 0.0f ? farthest : nearest);
    return focal * greatest + centre + reach < 0.0f || focal * least + centre - reach > (float)size;
  }
};
// Where a slot of an image belongs.
struct Slots {
  // The row whose slots hold it: the last of the image's rows that begins at or before it.
  static INLINE int row(const CameraRow* rows, int image, int slot) {
    const CameraRow& first = rows[image];
    if (!first.more_count || slot < first.chunk_count) return image;
    int low = 0, high = first.more_count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (rows[first.more_first + middle].slot <= slot) low = middle;
      else high = middle;
    }
    return first.more_first + low;
  }
};
// First and last tile along one axis.
struct Tiles {
  static INLINE int first(float middle, float half) {
    const float p = middle - half - 0.5f;
    return p <= 0.0f ? 0 : (int)p / TILE;
  }
  static INLINE int last(float middle, float half, int size) {
    const float p = middle + half - 0.5f;
    return (p >= (float)(size - 1) ? size - 1 : (int)p) / TILE;
  }
};
struct Writer {
  // Notes the Gaussian in place k of its chunk in four planes: rows and columns of tiles, key of the depth, number of the Gaussian.
  static INLINE void tag(int* tags, int k, const Record& g, float half_x, float half_y, float near, int source, int width,
                         int height) {
    tags[k] = Tiles::first(g.y, half_y) | Tiles::last(g.y, half_y, height) << 16;
    tags[CHUNK + k] = Tiles::first(g.x, half_x) | Tiles::last(g.x, half_x, width) << 16;
    tags[2 * CHUNK + k] = L::as_int(g.depth) - L::as_int(near);
    tags[3 * CHUNK + k] = source;
  }
  static INLINE void fields(const Projection& p, F* f) {
    f[0] = p.x, f[1] = p.y, f[2] = p.a, f[3] = p.b, f[4] = p.c, f[5] = p.peak, f[6] = p.ridge_y, f[7] = p.ridge_x;
    for (int k = 0; k < 3; ++k) f[8 + k] = p.colour[k];
    f[11] = p.depth;
  }
  static INLINE void plane(const Projection& p, F* f) {
    f[0] = p.lean_x, f[1] = p.lean_y;
    for (int k = 0; k < 3; ++k) f[2 + k] = p.normal[k], f[5 + k] = N::c(0.0f);
  }
};
