// Cost of the control points of an evenly knotted cubic in a distance field, with its gradient. Twin: costs.py; sums run in the
// same order, so both give the same bits.
struct SplineCosts {
  Known known;
  int count, free_end;
  double interval, smooth, distance, feasible, end, clearance, speed, most;
  double target[3];
  double *q, *g;
  bool halt;

  INLINE int unknowns() const { return 3 * (count - 3 - (free_end ? 0 : 3)); }
  INLINE double smoothness() {
    double sum = 0.0;
    for (int i = 0; i + 3 < count; ++i)
      for (int k = 0; k < 3; ++k) {
        const double* a = q + 3 * i + k;
        const double j = a[9] - 3.0 * a[6] + 3.0 * a[3] - a[0], push = smooth * 2.0 * j;
        sum += j * j;
        double* b = g + 3 * i + k;
        b[0] -= push;
        b[3] += 3.0 * push;
        b[6] -= 3.0 * push;
        b[9] += push;
      }
    return sum;
  }
  INLINE double nearness() {
    double sum = 0.0;
    for (int i = 3; i < (free_end ? count : count - 3); ++i) {
      double slope[3];
      const double d = known.distance(q + 3 * i, slope) - clearance;
      if (d >= 0.0) continue;
      sum += d * d;
      const double length = ::sqrt(slope[0] * slope[0] + slope[1] * slope[1] + slope[2] * slope[2]);
      const double unit = length > 1e-4 ? 1.0 / length : 1.0;
      for (int k = 0; k < 3; ++k) g[3 * i + k] += distance * 2.0 * d * (slope[k] * unit);
    }
    return sum;
  }
  INLINE double excess() {
    const double rate = 1.0 / interval, rate2 = rate * rate;
    double sum = 0.0;
    for (int i = 0; i + 1 < count; ++i)
      for (int k = 0; k < 3; ++k) {
        const double v = (q[3 * i + 3 + k] - q[3 * i + k]) * rate, e = v * v - speed * speed;
        if (e <= 0.0) continue;
        sum += e * e;
        const double push = feasible * 4.0 * e * v * rate;
        g[3 * i + k] -= push;
        g[3 * i + 3 + k] += push;
      }
    double bent = 0.0;
    for (int i = 0; i + 2 < count; ++i)
      for (int k = 0; k < 3; ++k) {
        const double a = (q[3 * i + 6 + k] - 2.0 * q[3 * i + 3 + k] + q[3 * i + k]) * rate2, e = a * a - most * most;
        if (e <= 0.0) continue;
        bent += e * e;
        const double push = feasible * 4.0 * e * a * rate2;
        g[3 * i + k] += push;
        g[3 * i + 3 + k] -= 2.0 * push;
        g[3 * i + 6 + k] += push;
      }
    return sum + bent;
  }
  INLINE double ending() {
    double sum = 0.0;
    const int last = 3 * (count - 3);
    for (int k = 0; k < 3; ++k) {
      const double miss = (q[last + k] + 4.0 * q[last + 3 + k] + q[last + 6 + k]) / 6.0 - target[k];
      sum += miss * miss;
      const double push = end * 2.0 * miss / 6.0;
      g[last + k] += push;
      g[last + 3 + k] += 4.0 * push;
      g[last + 6 + k] += push;
    }
    return sum;
  }
  INLINE double value(const double* x, double* gradient) {
    const int n = unknowns();
    for (int k = 0; k < n; ++k) q[9 + k] = x[k];
    for (int k = 0; k < 3 * count; ++k) g[k] = 0.0;
    double total = smooth * smoothness();
    total += distance * nearness();
    if (feasible > 0.0) total += feasible * excess();
    if (free_end) total += end * ending();
    for (int k = 0; k < n; ++k) gradient[k] = g[9 + k];
    return total;
  }
};
