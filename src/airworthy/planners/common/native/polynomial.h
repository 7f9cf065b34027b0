// Quintics between states. Readable twin: airworthy.planners.common.reference.
struct Quintic {
  double c[6][3];
  double duration;
  // States are position, velocity, acceleration (3 x 3).
  void between(const double* start, const double* end, double t) {
    const double cubed = t * t * t;
    duration = t;
    for (int k = 0; k < 3; ++k) {
      const double p0 = start[k], v0 = start[3 + k], a0 = start[6 + k], p1 = end[k], v1 = end[3 + k], a1 = end[6 + k];
      const double dp = p1 - p0 - v0 * t - a0 * (0.5 * t * t), dv = (v1 - v0 - a0 * t) * t, da = (a1 - a0) * (t * t);
      c[0][k] = p0;
      c[1][k] = v0;
      c[2][k] = 0.5 * a0;
      c[3][k] = (10.0 * dp - 4.0 * dv + 0.5 * da) / cubed;
      c[4][k] = (-15.0 * dp + 7.0 * dv - da) / (cubed * t);
      c[5][k] = (6.0 * dp - 3.0 * dv + 0.5 * da) / (cubed * t * t);
    }
  }
  // Two of them through a middle point, each of duration t, with the least integral of squared jerk.
  static void pair(const double* start, const double* middle, const double* end, double t, Quintic* out) {
    double half[9];
    for (int k = 0; k < 3; ++k) {
      const double p0 = start[k], v0 = start[3 + k], a0 = start[6 + k], pm = middle[k];
      const double dp = pm - p0 - v0 * t - a0 * (0.5 * t * t), dv = (-v0 - a0 * t) * t, da = -a0 * (t * t);
      const double ep = end[k] - pm, ev = end[3 + k] * t, ea = end[6 + k] * (t * t);
      half[k] = pm;
      half[3 + k] = (360.0 * dp - 192.0 * dv + 36.0 * da + 360.0 * ep - 168.0 * ev + 24.0 * ea) / (384.0 * t);
      half[6 + k] = (60.0 * ep - 24.0 * ev + 3.0 * ea - (60.0 * dp - 36.0 * dv + 9.0 * da)) / (18.0 * t * t);
    }
    out[0].between(start, half, t);
    out[1].between(half, end, t);
  }
  INLINE void at(double t, int order, double* p) const {
    const double factors[3][6] = {{1, 1, 1, 1, 1, 1}, {1, 2, 3, 4, 5, 0}, {2, 6, 12, 20, 0, 0}};
    for (int d = 0; d < 3; ++d) {
      double value = c[5][d] * factors[order][5 - order];
      for (int k = 4; k >= order; --k) value = value * t + c[k][d] * factors[order][k - order];
      p[d] = value;
    }
  }
};
