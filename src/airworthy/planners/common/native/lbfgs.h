// Limited-memory BFGS with the line search of More and Thuente. Readable twins: airworthy.planners.common.lbfgs, lbfgs_line;
// the same operations in the same order, so the same bits. LBFGS_PROBLEM and LBFGS_NAME are replaced when the text is taken.
struct LBFGS_NAME {
  int size, memory, iterations_max, evaluations_max;
  double gradient_tolerance, step_tolerance;
  double* work;
  double value;
  int iterations_done, evaluations_done;
  enum { CONVERGED, ITERATIONS, EVALUATIONS, STALLED, HALTED, NOT_FINITE };

  struct End {
    double step, value, slope;
  };
  struct Line {
    double step;
    bool over, bracketed, first_stage;
    int trials;
    End start, best, other;
    double width, width_before, low, high;
    INLINE static double larger(double a, double b) { return a > b ? a : b; }
    INLINE static double smaller(double a, double b) { return a < b ? a : b; }
    INLINE static End tilted(const End& e, double slope) { return End{e.step, e.value - e.step * slope, e.slope - slope}; }
    INLINE void begin(double value, double slope, double first) {
      step = first;
      over = bracketed = false;
      first_stage = true;
      trials = 0;
      start = best = other = End{0.0, value, slope};
      width = 1e20 - 1e-20;
      width_before = 2.0 * (1e20 - 1e-20);
      low = 0.0;
      high = step + 4.0 * step;
    }
    bool judge(double value, double slope) {
      ++trials;
      const double test = 1e-4 * start.slope, level = start.value + step * test;
      if (first_stage && value <= level && slope >= 0.0) first_stage = false;
      if (value <= level && fabs(slope) <= 0.9 * -start.slope) return true;
      const bool outside = bracketed && (step <= low || step >= high), narrow = bracketed && high - low <= 1e-16 * high;
      const bool longest = step >= 1e20 && value <= level && slope <= test;
      const bool shortest = step <= 1e-20 && (value > level || slope >= test);
      over = outside || narrow || longest || shortest || trials >= 40;
      if (!over) move(End{step, value, slope}, level, test);
      return false;
    }
    void move(const End& trial, double level, double test) {
      if (first_stage && trial.value <= best.value && trial.value > level) {
        End a = tilted(best, test), b = tilted(other, test);
        update(a, b, tilted(trial, test));
        best = tilted(a, -test);
        other = tilted(b, -test);
      } else {
        update(best, other, trial);
      }
      if (bracketed) {
        if (fabs(other.step - best.step) >= 0.66 * width_before) step = best.step + 0.5 * (other.step - best.step);
        width_before = width;
        width = fabs(other.step - best.step);
        low = smaller(best.step, other.step);
        high = larger(best.step, other.step);
      } else {
        low = step + 1.1 * (step - best.step);
        high = step + 4.0 * (step - best.step);
      }
      step = smaller(larger(step, 1e-20), 1e20);
      const bool narrow = bracketed && high - low <= 1e-16 * high;
      if (bracketed && (step <= low || step >= high || narrow)) step = best.step;
    }
    void update(End& a, End& b, const End& trial) {
      const bool opposite = (a.slope < 0.0 ? -trial.slope : trial.slope) < 0.0, above = trial.value > a.value;
      if (above) {
        step = higher(a, trial);
        bracketed = true;
      } else if (opposite) {
        step = turned(a, trial);
        bracketed = true;
      } else if (fabs(trial.slope) < fabs(a.slope)) {
        step = flatter(a, b, trial);
      } else {
        step = steeper(a, b, trial);
      }
      if (above) {
        b = trial;
        return;
      }
      if (opposite) b = a;
      a = trial;
    }
    static double cubic(const End& e, const End& t, double* theta_out) {
      const double theta = 3.0 * (e.value - t.value) / (t.step - e.step) + e.slope + t.slope;
      const double scale = larger(larger(fabs(theta), fabs(e.slope)), fabs(t.slope));
      *theta_out = theta;
      if (scale == 0.0) return 0.0;
      const double under = (theta / scale) * (theta / scale) - (e.slope / scale) * (t.slope / scale);
      return scale * ::sqrt(larger(0.0, under));
    }
    static double higher(const End& a, const End& t) {
      double theta, gamma = cubic(a, t, &theta);
      if (t.step < a.step) gamma = -gamma;
      const double r = ((gamma - a.slope) + theta) / (((gamma - a.slope) + gamma) + t.slope), length = t.step - a.step;
      const double c = a.step + r * length;
      const double square = a.step + a.slope / ((a.value - t.value) / length + a.slope) / 2.0 * length;
      return fabs(c - a.step) < fabs(square - a.step) ? c : c + (square - c) / 2.0;
    }
    static double turned(const End& a, const End& t) {
      double theta, gamma = cubic(a, t, &theta);
      if (t.step > a.step) gamma = -gamma;
      const double r = ((gamma - t.slope) + theta) / (((gamma - t.slope) + gamma) + a.slope);
      const double c = t.step + r * (a.step - t.step), secant = t.step + t.slope / (t.slope - a.slope) * (a.step - t.step);
      return fabs(c - t.step) > fabs(secant - t.step) ? c : secant;
    }
    double flatter(const End& a, const End& b, const End& t) {
      double theta, gamma = cubic(a, t, &theta), c;
      if (t.step > a.step) gamma = -gamma;
      const double r = ((gamma - t.slope) + theta) / ((gamma + (a.slope - t.slope)) + gamma);
      if (r < 0.0 && gamma != 0.0) c = t.step + r * (a.step - t.step);
      else c = t.step > a.step ? high : low;
      const double secant = t.step + t.slope / (t.slope - a.slope) * (a.step - t.step);
      const bool nearer = fabs(c - t.step) < fabs(secant - t.step);
      if (bracketed) {
        const double found = nearer ? c : secant, most = t.step + 0.66 * (b.step - t.step);
        return t.step > a.step ? smaller(most, found) : larger(most, found);
      }
      return larger(low, smaller(high, nearer ? secant : c));
    }
    double steeper(const End& a, const End& b, const End& t) {
      if (!bracketed) return t.step > a.step ? high : low;
      double theta, gamma = cubic(b, t, &theta);
      if (t.step > b.step) gamma = -gamma;
      const double r = ((gamma - t.slope) + theta) / (((gamma - t.slope) + gamma) + b.slope);
      return t.step + r * (b.step - t.step);
    }
  };

  INLINE double dot(const double* a, const double* b) const {
    double sum = a[0] * b[0];
    for (int i = 1; i < size; ++i) sum += a[i] * b[i];
    return sum;
  }
  INLINE bool converged(const double* x, const double* gradient) const {
    double length = ::sqrt(dot(x, x));
    return ::sqrt(dot(gradient, gradient)) < gradient_tolerance * (length > 1.0 ? length : 1.0);
  }
  INLINE static bool finite(double v) { return v - v == 0.0; }

  int minimise(LBFGS_PROBLEM& problem, double* x) {
    double *base = work, *trial = base + size, *direction = trial + size, *gradient = direction + size;
    double *fresh = gradient + size, *steps = fresh + size, *changes = steps + memory * size;
    double *products = changes + memory * size, *shares = products + memory;
    int kept = 0, newest = -1;
    iterations_done = 0;
    evaluations_done = 1;
    value = problem.value(x, gradient);
    if (problem.halt) return HALTED;
    if (!finite(value)) return NOT_FINITE;
    if (converged(x, gradient)) return CONVERGED;
    for (int i = 0; i < size; ++i) direction[i] = -gradient[i];
    double step = 1.0 / ::sqrt(dot(direction, direction));
    Line line;
    while (true) {
      const double slope = dot(gradient, direction);
      for (int i = 0; i < size; ++i) base[i] = x[i];
      if (slope >= 0.0) return STALLED;
      line.begin(value, slope, step);
      while (true) {
        for (int i = 0; i < size; ++i) trial[i] = base[i] + line.step * direction[i];
        ++evaluations_done;
        const double found = problem.value(trial, fresh);
        if (problem.halt) {
          for (int i = 0; i < size; ++i) x[i] = trial[i];
          return HALTED;
        }
        if (!finite(found)) return NOT_FINITE;
        const double at = dot(fresh, direction);
        const bool enough = line.judge(found, at);
        if (enough || found < value) {
          for (int i = 0; i < size; ++i) x[i] = trial[i];
          value = found;
        }
        if (enough) break;
        if (line.over) return STALLED;
        if (evaluations_done >= evaluations_max) return EVALUATIONS;
      }
      ++iterations_done;
      const int next = (newest + 1) % memory;
      double *s = steps + next * size, *y = changes + next * size;
      bool still = true;
      for (int i = 0; i < size; ++i) {
        s[i] = x[i] - base[i];
        y[i] = fresh[i] - gradient[i];
        gradient[i] = fresh[i];
        still = still && fabs(s[i]) < step_tolerance * fabs(x[i]);
      }
      if (converged(x, gradient) || still) return CONVERGED;
      if (iterations_done >= iterations_max) return ITERATIONS;
      if (evaluations_done >= evaluations_max) return EVALUATIONS;
      const double bend = dot(s, y);
      if (bend > 0.0) {
        newest = next;
        products[newest] = bend;
        if (kept < memory) ++kept;
      }
      recall(direction, gradient, steps, changes, products, shares, kept, newest);
      step = 1.0;
    }
  }
  // The two-loop recursion.
  INLINE void recall(double* direction, const double* gradient, const double* steps, const double* changes,
                     const double* products, double* shares, int kept, int newest) const {
    for (int i = 0; i < size; ++i) direction[i] = -gradient[i];
    if (kept == 0) return;
    for (int k = 0, at = newest; k < kept; ++k, at = (at + memory - 1) % memory) {
      shares[at] = dot(steps + at * size, direction) / products[at];
      for (int i = 0; i < size; ++i) direction[i] = direction[i] - shares[at] * changes[at * size + i];
    }
    const double scale = products[newest] / dot(changes + newest * size, changes + newest * size);
    for (int i = 0; i < size; ++i) direction[i] = direction[i] * scale;
    for (int k = 0, at = (newest + memory - kept + 1) % memory; k < kept; ++k, at = (at + 1) % memory) {
      const double back = dot(changes + at * size, direction) / products[at];
      for (int i = 0; i < size; ++i) direction[i] = direction[i] + (shares[at] - back) * steps[at * size + i];
    }
  }
};
