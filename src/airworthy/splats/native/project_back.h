// Derivatives of a projection: from those with respect to a record to those with respect to the Gaussian and the camera.
struct ProjectionBack {
  const Projection& p;
  const M rendered;  // what the others' derivatives come out as is arbitrary
  F position[3], axes[9], opacity, shift;
  F turn[9];  // with respect to the camera's rotation matrix
  // s: of the record over its pixels (Sums), and `up` being the derivative with respect to the logarithm of the opacity there:
  // red, green, blue, depth; of up, up dx dx, up dx dy, up dy dy, up dx, up dy; where planes are asked for, of their lean and normal.
  INLINE void go(const F* s) {
    const CameraRow& camera = p.camera;
    const float* const r = camera.rotation;
    // Precision P = [i, j; j, k] of the image's Gaussian: the logarithm is that of its peak - (i dx dx + 2 j dx dy + k dy dy) / 2.
    const F over = 1.0f / (p.bare + p.dilation * (p.xx + p.yy - 2.0f * p.dilation) + p.dilation * p.dilation);
    const F i = p.yy * over, j = -p.xy * over, k = p.xx * over;
    F at_x = i * s[8] + j * s[9], at_y = j * s[8] + k * s[9], d_depth = s[3];
    const bool faced = p.flags & (FLAG_PLANE | FLAG_NORMAL);
    if (faced) {  // pixels are seen from the mean: what moves it moves the plane under them
      at_x = at_x - p.lean_x * s[12];
      at_y = at_y - p.lean_y * s[12];
    }
    shift = N::sqrt(at_x * at_x + at_y * at_y);
    // -P G P, where G = -[s5, s6; s6, s7] / 2
    const F m00 = i * s[5] + j * s[6], m01 = i * s[6] + j * s[7], m10 = j * s[5] + k * s[6], m11 = j * s[6] + k * s[7];
    F s_xx = 0.5f * (m00 * i + m01 * j), s_xy = 0.5f * (m00 * j + m01 * k), s_yy = 0.5f * (m10 * j + m11 * k);
    opacity = s[4] / p.row(ROW_OPACITY);
    if (p.flags & FLAG_ANTIALIASED) {
      // The logarithm of the opacity holds half of that of bare / determinant.
      const F half = 0.5f * s[4], bare = L::max(p.bare, N::c(1e-12f));
      s_xx = s_xx + half * ((p.yy - p.dilation) / bare - i);
      s_yy = s_yy + half * ((p.xx - p.dilation) / bare - k);
      s_xy = s_xy - half * (p.xy / bare + j);
    }
    F d_u[3], d_v[3], d_x[3], d_y[3], d_w[3];
    F by_x = N::c(0.0f), by_y = N::c(0.0f);  // with respect to the covariances of depth and place
    if (faced) lean(s, s_xx, s_xy, s_yy, d_depth, by_x, by_y);
    for (int n = 0; n < 3; ++n) {
      d_u[n] = 2.0f * (s_xx * p.u[n] + s_xy * p.v[n]);
      d_v[n] = 2.0f * (s_yy * p.v[n] + s_xy * p.u[n]);
      if (!faced) continue;
      d_u[n] = d_u[n] + by_x * p.w[n];
      d_v[n] = d_v[n] + by_y * p.w[n];
      d_w[n] = by_x * p.u[n] + by_y * p.v[n];
    }
    LensBack lens;
    if (p.flags & FLAG_FISHEYE) lens.fisheye_matrix(p);
    else lens.straight_matrix(p);
    F in_x[3], in_y[3];
    for (int m = 0; m < 3; ++m) in_x[m] = in_y[m] = N::c(0.0f);
    for (int n = 0; n < 3; ++n) {
      d_x[n] = d_y[n] = N::c(0.0f);
      for (int m = 0; m < 3; ++m) {
        const F axis = p.row(ROW_AXES + 3 * n + m);
        d_x[n] = L::fma(d_u[m], axis, d_x[n]);
        d_y[n] = L::fma(d_v[m], axis, d_y[n]);
        axes[3 * n + m] = d_u[m] * p.to_x[n] + d_v[m] * p.to_y[n];
      }
      d_x[n] = d_x[n] * camera.fx;
      d_y[n] = d_y[n] * camera.fy;
      turn[n] = d_x[n] * lens.xx + d_y[n] * lens.xy;
      turn[3 + n] = d_x[n] * lens.xy + d_y[n] * lens.yy;
      turn[6 + n] = d_x[n] * lens.xz + d_y[n] * lens.yz;
      for (int m = 0; m < 3; ++m) {
        in_x[m] = L::fma(d_x[n], N::c(r[3 * m + n]), in_x[m]);
        in_y[m] = L::fma(d_y[n], N::c(r[3 * m + n]), in_y[m]);
      }
    }
    lens.d_u = at_x * camera.fx;
    lens.d_v = at_y * camera.fy;
    lens.d_xx = in_x[0];
    lens.d_xy = in_x[1] + in_y[0];
    lens.d_yy = in_y[1];
    lens.d_xz = in_x[2];
    lens.d_yz = in_y[2];
    if (p.flags & FLAG_FISHEYE) lens.fisheye_point(p, d_depth);
    else lens.straight_point(p, d_depth);
    for (int n = 0; n < 3; ++n) {
      position[n] = lens.point[0] * r[n] + lens.point[1] * r[3 + n] + lens.point[2] * r[6 + n];
      for (int m = 0; m < 3; ++m) turn[3 * m + n] = turn[3 * m + n] + lens.point[m] * p.away[n];
    }
    if (faced) face(d_w, s + 13);
  }
  // The lean is S^-1 c over the depth, S the form widened by PLANE_SPREAD and c the covariance of depth and place: from derivatives
  // with respect to it to those with respect to S, c and the depth.
  INLINE void lean(const F* s, F& s_xx, F& s_xy, F& s_yy, F& d_depth, F& by_x, F& by_y) const {
    const F spread = N::c(PLANE_SPREAD), over = 1.0f / p.depth;
    const F xx = Projection::dot(p.u, p.u) + spread, yy = Projection::dot(p.v, p.v) + spread;
    by_x = (yy * s[10] - p.xy * s[11]) * p.spread_over * over;
    by_y = (xx * s[11] - p.xy * s[10]) * p.spread_over * over;
    const F steep_x = p.lean_x * p.depth, steep_y = p.lean_y * p.depth;
    s_xx = s_xx - by_x * steep_x;
    s_yy = s_yy - by_y * steep_y;
    s_xy = s_xy - 0.5f * (by_x * steep_y + by_y * steep_x);
    d_depth = d_depth - (s[10] * p.lean_x + s[11] * p.lean_y) * over;
  }
  // What depth and normal say of the axes, of the camera's turn, and before a fisheye of the mean.
  INLINE void face(const F* d_w, const F* d_normal) {
    const float* const r = p.camera.rotation;
    F d_to[3], back[3];
    for (int n = 0; n < 3; ++n) {
      d_to[n] = back[n] = N::c(0.0f);
      for (int m = 0; m < 3; ++m) {
        d_to[n] = L::fma(d_w[m], p.row(ROW_AXES + 3 * n + m), d_to[n]);
        axes[3 * n + m] = axes[3 * n + m] + d_w[m] * p.to_depth[n];
        back[n] = L::fma(d_normal[m], N::c(r[3 * m + n]), back[n]);
      }
    }
    if (p.flags & FLAG_FISHEYE) {
      const F along = Projection::dot(d_to, p.to_depth), over = 1.0f / p.depth;
      for (int n = 0; n < 3; ++n) position[n] = position[n] + (d_to[n] - p.to_depth[n] * along) * over;
    } else {
      for (int n = 0; n < 3; ++n) turn[6 + n] = turn[6 + n] + d_to[n];
    }
    // The normal is the shortest axis a over its length l: of that the derivative is (d - n (n d)) / l.
    F own[3];
    for (int n = 0; n < 3; ++n) own[n] = (r[n] * p.normal[0] + r[3 + n] * p.normal[1] + r[6 + n] * p.normal[2]);
    const F along = Projection::dot(back, own), none = N::c(0.0f);
    for (int n = 0; n < 3; ++n) {
      const F slope = (back[n] - own[n] * along) * p.thin_over;
      axes[3 * n] = axes[3 * n] + N::select(p.along_1 | p.along_2, none, slope);
      axes[3 * n + 1] = axes[3 * n + 1] + N::select(p.along_2, none, N::select(p.along_1, slope, none));
      axes[3 * n + 2] = axes[3 * n + 2] + N::select(p.along_2, slope, none);
      for (int m = 0; m < 3; ++m) turn[3 * m + n] = turn[3 * m + n] + d_normal[m] * own[n];
    }
  }
  // Of the colours: harmonics and, through the direction, the position.
  INLINE void differentiate_colour(const F* s, float* harmonics) {
    F lit[3], basis[16], basis_slope[16][3];
    for (int c = 0; c < 3; ++c) lit[c] = N::select(rendered & (p.colour[c] > 0.0f), s[c], N::c(0.0f));
    basis[0] = N::c(0.28209479f);
    const F over = 1.0f / N::sqrt(L::max(Projection::dot(p.away, p.away), N::c(1e-20f)));
    const F d[3] = {p.away[0] * over, p.away[1] * over, p.away[2] * over};
    if (p.coefficients > 1) {
      Projection::basis_of(d[0], d[1], d[2], p.coefficients, basis);
      basis_slopes(d[0], d[1], d[2], p.coefficients, basis_slope);
    }
    F g[3] = {N::c(0.0f), N::c(0.0f), N::c(0.0f)};
    for (int k = 0; k < p.coefficients; ++k) {
      F weight = N::c(0.0f);
      for (int c = 0; c < 3; ++c) {
        Group::add(harmonics + (3 * k + c) * LANE_STRIDE, basis[k] * lit[c]);
        weight = L::fma(p.coefficient(k, c), lit[c], weight);
      }
      for (int n = 0; n < 3 && k; ++n) g[n] = L::fma(weight, basis_slope[k][n], g[n]);
    }
    const F along = Projection::dot(g, d);
    for (int n = 0; n < 3; ++n) position[n] = position[n] + (g[n] - d[n] * along) * over;
  }
  // To the rows of a block, but for whether it was seen.
  INLINE void add_to(float* rows) const {
    for (int k = 0; k < 14; ++k) {
      const F value = k < 3 ? position[k] : k < 12 ? axes[k - 3] : k < 13 ? opacity : shift;
      Group::add(rows + k * LANE_STRIDE, N::select(rendered, value, N::c(0.0f)));
    }
  }
  // Derivatives of the harmonics with respect to x, y, z.
  static INLINE void basis_slopes(F x, F y, F z, int count, F (*w)[3]) {
    const F zero = N::c(0.0f);
    set(w[1], zero, N::c(-0.48860251f), zero);
    set(w[2], zero, zero, N::c(0.48860251f));
    set(w[3], N::c(-0.48860251f), zero, zero);
    if (count < 9) return;
    const float a = 1.09254843f, b = 0.31539157f, c = 0.54627422f;
    set(w[4], a * y, a * x, zero);
    set(w[5], zero, -a * z, -a * y);
    set(w[6], -2.0f * b * x, -2.0f * b * y, 4.0f * b * z);
    set(w[7], -a * z, zero, -a * x);
    set(w[8], 2.0f * c * x, -2.0f * c * y, zero);
    if (count < 16) return;
    const F xx = x * x, yy = y * y, zz = z * z;
    const float e = 0.59004359f, f = 2.89061144f, g = 0.45704580f, h = 0.37317633f, q = 1.44530572f;
    set(w[9], -6.0f * e * x * y, -3.0f * e * (xx - yy), zero);
    set(w[10], f * y * z, f * x * z, f * x * y);
    set(w[11], 2.0f * g * x * y, -g * (4.0f * zz - xx - 3.0f * yy), -8.0f * g * y * z);
    set(w[12], -6.0f * h * x * z, -6.0f * h * y * z, h * (6.0f * zz - 3.0f * xx - 3.0f * yy));
    set(w[13], -g * (4.0f * zz - 3.0f * xx - yy), 2.0f * g * x * y, -8.0f * g * x * z);
    set(w[14], 2.0f * q * x * z, -2.0f * q * y * z, q * (xx - yy));
    set(w[15], -3.0f * e * (xx - yy), 6.0f * e * x * y, zero);
  }
  static INLINE void set(F* w, F x, F y, F z) { w[0] = x, w[1] = y, w[2] = z; }
};
