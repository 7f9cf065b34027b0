// Knots of a cubic stretched where its control points break the limits, at most `sweeps` times. Twin: time_adjustment.py.
struct TimeAdjustment {
  const double* q;
  double* u;
  int count;
  double speed, most;
  static INLINE double larger(double a, double b) { return a > b ? a : b; }
  static INLINE double smaller(double a, double b) { return a < b ? a : b; }
  INLINE double velocity(int i, int k) const { return 3.0 * (q[3 * i + 3 + k] - q[3 * i + k]) / (u[i + 4] - u[i + 1]); }
  INLINE double acceleration(int i, int k) const { return 2.0 * (velocity(i + 1, k) - velocity(i, k)) / (u[i + 4] - u[i + 2]); }
  // Spread `longer` evenly over knots first .. last and move the later ones along.
  INLINE void stretch(int first, int last, double longer) {
    const double share = longer / (last - first + 1);
    for (int j = first; j <= last; ++j) u[j] += (j - first + 1) * share;
    for (int j = last + 1; j < count + 4; ++j) u[j] += longer;
  }
  INLINE bool sweep() {
    bool kept = true;
    for (int i = 0; i + 1 < count; ++i) {
      double worst = 0.0;
      for (int k = 0; k < 3; ++k) worst = larger(worst, ::fabs(velocity(i, k)));
      if (worst <= speed + 1e-4) continue;
      kept = false;
      const double ratio = smaller(1.1, worst / speed + 1e-4);
      stretch(i + 2, i + 4, (ratio - 1.0) * (u[i + 4] - u[i + 1]));
    }
    for (int i = 0; i + 2 < count; ++i) {
      double worst = 0.0;
      for (int k = 0; k < 3; ++k) worst = larger(worst, ::fabs(acceleration(i, k)));
      if (worst <= most + 1e-4) continue;
      kept = false;
      const double ratio = smaller(1.1, ::sqrt(worst / most) + 1e-4), longer = (ratio - 1.0) * (u[i + 4] - u[i + 2]);
      // At the beginning the time is put where it leaves the first acceleration as it is.
      if (i == 1 || i == 2) stretch(2, 5, 2.0 * longer);
      else stretch(i + 3, i + 4, longer);
    }
    return kept;
  }
};
