// Derivatives of a projection: from those with respect to a record to those with respect to the Gaussian and the camera.
struct ProjectionBack {
  F position[3], axes[9], opacity;
  F turn[9];  // with respect to the camera's rotation matrix
  // s: x, y, a, b, c, peak, red, green, blue, depth.
  INLINE void go(const Projection& p, const F* s) {
    const CameraRow& camera = p.camera;
    const float* const r = camera.rotation;
    for (int k = 0; k < 9; ++k) turn[k] = N::c(0.0f);
    // Precision P = [i, j; j, k] of the image's Gaussian; a = -h i, b = -2 h j, c = -h k.
    const float h = -HALF_LOG2_E;
    const F over = 1.0f / (p.bare + p.dilation * (p.xx + p.yy - 2.0f * p.dilation) + p.dilation * p.dilation);
    const F i = p.yy * over, j = -p.xy * over, k = p.xx * over;
    const F g_i = s[2] * h, g_j = s[3] * h, g_k = s[4] * h;  // symmetric: the off-diagonal's derivative is halved
    // -P G P
    const F m00 = i * g_i + j * g_j, m01 = i * g_j + j * g_k, m10 = j * g_i + k * g_j, m11 = j * g_j + k * g_k;
    F s_xx = -(m00 * i + m01 * j), s_xy = -(m00 * j + m01 * k), s_yy = -(m10 * j + m11 * k);
    opacity = s[5] * LOG2_E / p.row(ROW_OPACITY);
    if (p.flags & FLAG_ANTIALIASED) {
      // log2 of the opacity holds half of log2(bare / determinant).
      const F half = s[5] * (0.5f * LOG2_E), bare = L::max(p.bare, N::c(1e-12f));
      s_xx = s_xx + half * ((p.yy - p.dilation) / bare - i);
      s_yy = s_yy + half * ((p.xx - p.dilation) / bare - k);
      s_xy = s_xy - half * (p.xy / bare + j);
    }
    F d_u[3], d_v[3], d_x[3], d_y[3];
    for (int n = 0; n < 3; ++n) {
      d_u[n] = 2.0f * (s_xx * p.u[n] + s_xy * p.v[n]);
      d_v[n] = 2.0f * (s_yy * p.v[n] + s_xy * p.u[n]);
    }
    F grown_x = N::c(0.0f), grown_y = N::c(0.0f), bent_x = N::c(0.0f), bent_y = N::c(0.0f);
    const F e_x = camera.fx * p.inverse, e_y = camera.fy * p.inverse;
    for (int n = 0; n < 3; ++n) {
      d_x[n] = d_y[n] = N::c(0.0f);
      for (int m = 0; m < 3; ++m) {
        const F axis = p.row(ROW_AXES + 3 * n + m);
        d_x[n] = L::fma(d_u[m], axis, d_x[n]);
        d_y[n] = L::fma(d_v[m], axis, d_y[n]);
        axes[3 * n + m] = d_u[m] * p.to_x[n] + d_v[m] * p.to_y[n];
      }
      grown_x = grown_x + d_x[n] * (r[n] - p.at_x * r[6 + n]);
      grown_y = grown_y + d_y[n] * (r[3 + n] - p.at_y * r[6 + n]);
      bent_x = bent_x - e_x * d_x[n] * r[6 + n];
      bent_y = bent_y - e_y * d_y[n] * r[6 + n];
      turn[n] = e_x * d_x[n];
      turn[3 + n] = e_y * d_y[n];
      turn[6 + n] = -(e_x * p.at_x * d_x[n] + e_y * p.at_y * d_y[n]);
    }
    const F zero = N::c(0.0f);
    const F slope_x = s[0] * camera.fx + N::select(p.at_x == p.slope_x, bent_x, zero);
    const F slope_y = s[1] * camera.fy + N::select(p.at_y == p.slope_y, bent_y, zero);
    const F d_inverse = grown_x * camera.fx + grown_y * camera.fy + (slope_x * p.slope_x + slope_y * p.slope_y) * p.z;
    const F inside[3] = {slope_x * p.inverse, slope_y * p.inverse, s[9] - d_inverse * p.inverse * p.inverse};
    for (int n = 0; n < 3; ++n) {
      position[n] = inside[0] * r[n] + inside[1] * r[3 + n] + inside[2] * r[6 + n];
      for (int m = 0; m < 3; ++m) turn[3 * m + n] = turn[3 * m + n] + inside[m] * p.away[n];
    }
  }
  // Of the colours: harmonics and, through the direction, the position.
  INLINE void look(const Projection& p, const F* s, F* harmonics) {
    F lit[3], basis[16], way[16][3];
    for (int c = 0; c < 3; ++c) lit[c] = N::select(p.colour[c] > 0.0f, s[6 + c], N::c(0.0f));
    basis[0] = N::c(0.28209479f);
    const F over = 1.0f / N::sqrt(L::max(Projection::dot(p.away, p.away), N::c(1e-20f)));
    const F d[3] = {p.away[0] * over, p.away[1] * over, p.away[2] * over};
    if (p.coefficients > 1) {
      Projection::basis_of(d[0], d[1], d[2], p.coefficients, basis);
      ways_of(d[0], d[1], d[2], p.coefficients, way);
    }
    F g[3] = {N::c(0.0f), N::c(0.0f), N::c(0.0f)};
    for (int k = 0; k < p.coefficients; ++k) {
      F weight = N::c(0.0f);
      for (int c = 0; c < 3; ++c) {
        harmonics[3 * k + c] = basis[k] * lit[c];
        weight = L::fma(p.coefficient(k, c), lit[c], weight);
      }
      for (int n = 0; n < 3 && k; ++n) g[n] = L::fma(weight, way[k][n], g[n]);
    }
    const F along = Projection::dot(g, d);
    for (int n = 0; n < 3; ++n) position[n] = position[n] + (g[n] - d[n] * along) * over;
  }
  // Derivatives of the harmonics with respect to x, y, z.
  static INLINE void ways_of(F x, F y, F z, int count, F (*w)[3]) {
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
