// The double integrator between two states at least cost: integral of |a|^2 + weight, over the acceleration and the duration T.
// With dp the way to go and v0, v1 the velocities at its ends, the best acceleration for a given T costs
//   c(T) = weight T + 4 (v0.v0 + v0.v1 + v1.v1) / T - 12 (v0 + v1).dp / T^2 + 12 dp.dp / T^3,
// and c'(T) = 0 is T^4 + p T^2 + q T + r = 0, which is solved in closed form (Ferrari). Twin: boundary.py.
struct Boundary {
  double weight, p, q, r;
  INLINE double cost(double t) const {
    const double s = weight / t;
    return weight * t - p * s - 0.5 * q * s / t - r * s / (3.0 * t * t);
  }
  // The largest root of m^3 + p m^2 + (p^2 / 4 - r) m - q^2 / 8, never below zero.
  INLINE double resolvent() const {
    const double a = -p * p / 12.0 - r, b = -p * p * p / 108.0 + p * r / 3.0 - q * q / 8.0;
    const double inside = 0.25 * b * b + a * a * a / 27.0;
    double t;
    if (inside >= 0.0) {
      const double u = ::cbrt(-0.5 * b + (b > 0.0 ? -::sqrt(inside) : ::sqrt(inside)));
      t = u != 0.0 ? u - a / (3.0 * u) : 0.0;
    } else {
      const double size = ::sqrt(-a / 3.0);
      double angle = -0.5 * b / (size * size * size);
      angle = angle > 1.0 ? 1.0 : (angle < -1.0 ? -1.0 : angle);
      t = 2.0 * size * ::cos(::acos(angle) / 3.0);
    }
    const double m = t - p / 3.0;
    return m > 0.0 ? m : 0.0;
  }
  // Both roots of T^2 + b T + c, polished by Newton's steps on the quartic; the better of them and of what was best before.
  INLINE void consider(double b, double c, double least, double* best, double* when) const {
    const double inside = 0.25 * b * b - c;
    if (!(inside >= 0.0)) return;
    for (int side = 0; side < 2; ++side) {
      double t = -0.5 * b + (side ? -::sqrt(inside) : ::sqrt(inside));
      for (int k = 0; k < 3; ++k) {
        const double slope = (4.0 * t * t + 2.0 * p) * t + q;
        if (slope != 0.0) t -= (((t * t + p) * t + q) * t + r) / slope;
      }
      if (t >= least && t > 1e-9) offer(t, best, when);
    }
  }
  INLINE void offer(double t, double* best, double* when) const {
    const double c = cost(t);
    if (c < *best) {
      *best = c;
      *when = t;
    }
  }
  // Least cost over T >= least, and that T; zero for both where there is nothing to do.
  INLINE double solve(double least, double* when) const {
    double best = 1e300;
    *when = 0.0;
    if (least > 1e-9) offer(least, &best, when);
    const double m = resolvent();
    if (m <= 1e-12 * (::fabs(p) + ::sqrt(::fabs(r)))) {
      const double inside = 0.25 * p * p - r, square = inside > 0.0 ? -0.5 * p + ::sqrt(inside) : -0.5 * p;
      consider(0.0, -square, least, &best, when);
    } else {
      const double s = ::sqrt(2.0 * m);
      consider(-s, 0.5 * p + m + 0.5 * q / s, least, &best, when);
      consider(s, 0.5 * p + m - 0.5 * q / s, least, &best, when);
    }
    return best < 1e300 ? best : 0.0;
  }
  // From state (p, v) to state (p, v), each (6); `speed` is the limit of a velocity's component.
  static INLINE double between(const double* from, const double* to, double weight, double speed, double* when) {
    double far = 0.0, reach = 0.0, along = 0.0, motion = 0.0;
    for (int k = 0; k < 3; ++k) {
      const double d = to[k] - from[k], a = from[k + 3], b = to[k + 3];
      far += d * d;
      along += (a + b) * d;
      motion += a * a + a * b + b * b;
      if (::fabs(d) > reach) reach = ::fabs(d);
    }
    const Boundary problem = {weight, -4.0 * motion / weight, 24.0 * along / weight, -36.0 * far / weight};
    return problem.solve(reach / (0.5 * speed), when);
  }
};
