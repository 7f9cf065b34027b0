// Cubic B-splines of one flight: fit, evaluation over any knots. Readable twin: airworthy.planners.common.bspline.
struct Bspline {
  // Point (3) of a spline of `count` control points (count, 3) with knots (count + degree + 1), u in [u_degree, u_count].
  static void at(const double* control, const double* knots, int count, int degree, double u, double* p) {
    u = u < knots[degree] ? knots[degree] : u > knots[count] ? knots[count] : u;
    int span = degree;
    while (span + 1 < count && knots[span + 1] <= u) ++span;
    double d[4][3];
    for (int j = 0; j <= degree; ++j)
      for (int k = 0; k < 3; ++k) d[j][k] = control[3 * (span - degree + j) + k];
    for (int r = 1; r <= degree; ++r)
      for (int j = degree; j >= r; --j) {
        const double low = knots[j + span - degree], high = knots[1 + j + span - r], share = (u - low) / (high - low);
        for (int k = 0; k < 3; ++k) d[j][k] = (1.0 - share) * d[j - 1][k] + share * d[j][k];
      }
    for (int k = 0; k < 3; ++k) p[k] = d[degree][k];
  }
  // Point, or derivative `order`, of an evenly knotted cubic at time t, clipped to its duration.
  static void even(const double* control, int count, double interval, double t, int order, double* p) {
    const double basis[4][4] = {{1.0 / 6.0, -3.0 / 6.0, 3.0 / 6.0, -1.0 / 6.0},
                                {4.0 / 6.0, 0.0, -6.0 / 6.0, 3.0 / 6.0},
                                {1.0 / 6.0, 3.0 / 6.0, 3.0 / 6.0, -3.0 / 6.0},
                                {0.0, 0.0, 0.0, 1.0 / 6.0}};
    const double falling[4][4] = {{1, 1, 1, 1}, {1, 2, 3, 0}, {2, 6, 0, 0}, {6, 0, 0, 0}};
    const int pieces = count - 3;
    double scaled = t / interval;
    scaled = scaled < 0.0 ? 0.0 : scaled > (double)pieces ? (double)pieces : scaled;
    int piece = (int)scaled;
    piece = piece < 0 ? 0 : piece < pieces - 1 ? piece : pieces - 1;  // not a number: anywhere inside
    const double tau = scaled - (double)piece;
    for (int k = 0; k < 3; ++k) p[k] = 0.0;
    for (int j = 0; j < 4; ++j) {
      double weight = basis[j][3] * falling[order][3 - order];
      for (int k = 2; k >= order; --k) weight = weight * tau + basis[j][k] * falling[order][k - order];
      for (int k = 0; k < 3; ++k) p[k] += weight * control[3 * (piece + j) + k];
    }
    for (int j = 0; j < order; ++j)
      for (int k = 0; k < 3; ++k) p[k] /= interval;
  }
  struct Rows {
    double *d, *e, *f, *x;
    INLINE void add(int at, double r0, double r1, double r2, const double* value) {
      const double r[3] = {r0, r1, r2};
      for (int i = 0; i < 3; ++i) {
        for (int k = 0; k < 3; ++k) x[3 * (at + i) + k] += r[i] * value[k];
        for (int j = i; j < 3; ++j) (j == i ? d : j == i + 1 ? e : f)[at + i] += r[i] * r[j];
      }
    }
  };
  // Control points (points + 2, 3) through points; slopes and bends: velocity and acceleration at start and end (2, 3).
  // Work of 3 (points + 2) doubles.
  static void fit(const double* through, int points, double interval, const double* slopes, const double* bends, double* x,
                  double* work) {
    const int count = points + 2;
    for (int i = 0; i < 3 * count; ++i) work[i] = x[i] = 0.0;
    Rows rows = {work, work + count, work + 2 * count, x};
    for (int i = 0; i < points; ++i) rows.add(i, 1.0 / 6.0, 4.0 / 6.0, 1.0 / 6.0, through + 3 * i);
    const double slope = 1.0 / (2.0 * interval), bend = 1.0 / (interval * interval);
    for (int end = 0; end < 2; ++end) {
      rows.add(end * (points - 1), -slope, 0.0, slope, slopes + 3 * end);
      rows.add(end * (points - 1), bend, -2.0 * bend, bend, bends + 3 * end);
    }
    for (int i = 0; i < count; ++i)
      for (int k = 1; k <= 2 && i + k < count; ++k) {
        const double side = k == 1 ? rows.e[i] : rows.f[i], share = side / rows.d[i];
        rows.d[i + k] -= share * side;
        if (k == 1 && i + 2 < count) rows.e[i + 1] -= share * rows.f[i];
        for (int c = 0; c < 3; ++c) x[3 * (i + k) + c] -= share * x[3 * i + c];
      }
    for (int i = count - 1; i >= 0; --i)
      for (int c = 0; c < 3; ++c) {
        for (int k = 1; k <= 2 && i + k < count; ++k) x[3 * i + c] -= (k == 1 ? rows.e : rows.f)[i] * x[3 * (i + k) + c];
        x[3 * i + c] /= rows.d[i];
      }
  }
};
