// One try of EGO-Planner: from a start and a local target to control points, or a reason why not. Needs problem.h, bspline.h,
// polynomial.h and the minimiser as `EgoLbfgs`. Readable twin: airworthy.planners.ego.twin.
struct EgoTry {
  enum { MOST = EGO_MOST, SAMPLES = EGO_SAMPLES };
  enum { POLYNOMIAL, WARM, RANDOM };
  enum { FOUND, CLOSE, NO_START, IN_OBSTACLE, IN_COLLISION, REBOUNDS, END_TAKEN, REFINED_INTO };
  EgoProblem problem;
  const double *start, *target;  // position, velocity, acceleration; position, velocity, zeros
  const double *previous, *numbers;
  int previous_count, mode;
  double *points, *fit_work, *solver_work, *samples, *arcs, *knots, *x;
  double interval, slopes[6], bends[6];
  int count, rebounds, restarts;

  // Numbers of the try: speed, acceleration, two random numbers, failures so far, interval and time of the previous one.
  int run() {
    const EgoSettings& set = problem.set;
    double gap[3];
    rebounds = restarts = 0;
    problem.speed = numbers[0];
    problem.acceleration = numbers[1];
    problem.expansions = 0;
    problem.evaluated = 0;
    EgoProblem::minus(start, target, gap);
    const double distance = EgoProblem::length(gap);
    if (distance < set.close) return CLOSE;
    interval = 1.2 * set.spacing / numbers[0];
    int sampled = mode == WARM ? warm_points() : 0;
    if (sampled == 0) sampled = polynomial_points(distance);
    if (sampled == 0) return NO_START;
    count = sampled + 2;
    problem.count = count;
    problem.interval = interval;
    Bspline::fit(points, sampled, interval, slopes, bends, problem.q, fit_work);
    for (int i = 0; i < count; ++i) problem.pair_count[i] = 0;
    problem.pair_up(problem.scan());
    const int status = rebound();
    return status == FOUND ? refine() : status;
  }
  // The beginning of points at constant time steps along one quintic, or two through a random middle; their number.
  int polynomial_points(double distance) {
    const EgoSettings& set = problem.set;
    const double v = numbers[0], a = numbers[1];
    const double time = v * v / a > distance ? ::sqrt(distance / a) : (distance - v * v / a) / v + 2.0 * v / a;
    Quintic halves[2];
    if (mode == RANDOM) {
      double middle[3];
      random_middle(distance, middle);
      Quintic::pair(start, middle, target, time / 2.0, halves);
    } else {
      halves[0].between(start, target, time);
    }
    double step = 1.2 * set.spacing / v * 1.5, t = 0.0, p[3], last[3], gap[3];
    int size = 0;
    for (int round = 0; round < 60; ++round) {
      bool far = false;
      step /= 1.5;
      size = 0;
      halves[0].at(0.0, 0, last);
      for (t = 0.0; t < time; t += step) {
        along(halves, t, 0, p);
        EgoProblem::minus(last, p, gap);
        if (EgoProblem::length(gap) > 1.5 * set.spacing) {
          far = true;
          break;
        }
        if (size >= MOST - 2) return 0;
        for (int k = 0; k < 3; ++k) points[3 * size + k] = last[k] = p[k];
        ++size;
      }
      if (!far && size >= 7) break;
    }
    if (size < 7) return 0;
    t -= step;
    interval = step;
    halves[0].at(0.0, 1, slopes);
    halves[0].at(0.0, 2, bends);
    for (int k = 0; k < 3; ++k) slopes[3 + k] = target[3 + k];
    along(halves, t, 2, bends + 3);
    return size;
  }
  INLINE void along(const Quintic* halves, double t, int order, double* p) const {
    if (mode == RANDOM && t > halves[0].duration) halves[1].at(t - halves[0].duration, order, p);
    else halves[0].at(t, order, p);
  }
  void random_middle(double distance, double* middle) const {
    double d[3], h[3], w[3];
    EgoProblem::minus(start, target, d);
    h[0] = d[1];
    h[1] = -d[0];
    h[2] = 0.0;
    unit(h);
    w[0] = d[1] * h[2] - d[2] * h[1];
    w[1] = d[2] * h[0] - d[0] * h[2];
    w[2] = d[0] * h[1] - d[1] * h[0];
    unit(w);
    const double s = 0.989 - 0.978 / (numbers[4] + 0.989);
    const double side = (numbers[2] - 0.5) * distance * 0.8 * s, up = (numbers[3] - 0.5) * distance * 0.4 * s;
    for (int k = 0; k < 3; ++k) middle[k] = (start[k] + target[k]) / 2.0 + side * h[k] + up * w[k];
  }
  INLINE static void unit(double* a) {
    const double size = EgoProblem::length(a);
    for (int k = 0; k < 3; ++k) a[k] = size > 0.0 ? a[k] / size : 0.0;
  }
  // Points at equal distances along the rest of the previous trajectory and a quintic from its end to the target; their number,
  // or 0 where that makes no start.
  int warm_points() {
    const EgoSettings& set = problem.set;
    const double before = numbers[5], now = numbers[6], end = (double)(previous_count - 3) * before;
    int size = 0;
    double t = now, state[9], gap[3];
    if (previous_count < 4) return 0;
    for (; t < end + 1e-3; t += interval) {
      if (size >= SAMPLES) return 0;
      Bspline::even(previous, previous_count, before, t, 0, samples + 3 * size++);
    }
    if (size == 0) return 0;
    t -= interval;
    for (int order = 0; order < 3; ++order) Bspline::even(previous, previous_count, before, t, order, state + 3 * order);
    EgoProblem::minus(state, target, gap);
    const double rest = EgoProblem::length(gap) / numbers[0] * 2.0;
    if (rest > interval) {
      Quintic to;
      to.between(state, target, rest);
      for (t = interval; t < rest; t += interval) {
        if (size >= SAMPLES) return 0;
        to.at(t, 0, samples + 3 * size++);
      }
    }
    if (size < 2) return 0;
    arcs[0] = 0.0;
    for (int i = 1; i < size; ++i) {
      EgoProblem::minus(samples + 3 * i, samples + 3 * (i - 1), gap);
      arcs[i] = arcs[i - 1] + EgoProblem::length(gap);
    }
    double spacing = set.spacing * 1.5;
    int made = 0;
    for (int round = 0; round < 60 && made < 7; ++round) {
      spacing /= 1.5;
      made = 0;
      double at = 0.0;
      for (int i = 0; i + 1 < size && at <= arcs[size - 1];) {
        if (!(at >= arcs[i] && at < arcs[i + 1])) {
          ++i;
          continue;
        }
        if (made >= MOST - 3) return 0;
        const double share = (at - arcs[i]) / (arcs[i + 1] - arcs[i]);
        for (int k = 0; k < 3; ++k) points[3 * made + k] = share * samples[3 * i + 3 + k] + (1.0 - share) * samples[3 * i + k];
        ++made;
        at += spacing;
      }
      for (int k = 0; k < 3; ++k) points[3 * made + k] = target[k];
      ++made;
    }
    if (made < 7 || (double)made > set.horizon / set.spacing * 3.0) return 0;
    for (int k = 0; k < 3; ++k) {
      slopes[k] = start[3 + k];
      slopes[3 + k] = target[3 + k];
      bends[k] = start[6 + k];
      bends[3 + k] = 0.0;
    }
    return made;
  }
  void minimise(double tolerance) {
    const int size = 3 * (count - 6);
    EgoLbfgs solver = {size, 16, problem.set.iterations, problem.set.evaluations, tolerance, 0.0, solver_work};
    for (int i = 0; i < size; ++i) x[i] = problem.q[9 + i];
    problem.stop = EgoProblem::GO;
    problem.halt = false;
    solver.minimise(problem, x);
    for (int i = 0; i < size; ++i) problem.q[9 + i] = x[i];
    evaluations += solver.evaluations_done;
  }
  int evaluations;
  int rebound() {
    problem.refining = false;
    problem.collision_weight = problem.set.collision;
    while (true) {
      problem.evaluated = 0;
      minimise(problem.set.gradient);
      if (problem.stop == EgoProblem::ERROR) return END_TAKEN;
      if (problem.stop == EgoProblem::REBOUND) {
        if (++rebounds > 20) return REBOUNDS;
        continue;
      }
      double when;
      if (!collides(&when)) return FOUND;
      if (when <= interval) return IN_OBSTACLE;
      if (++restarts > 3) return IN_COLLISION;
      problem.pair_up(problem.scan());
      problem.collision_weight *= 2.0;
    }
  }
  // Whether the first two thirds of the curve meet an obstacle, and when.
  bool collides(double* when) const {
    double length_sum = 0.0, gap[3], p[3];
    for (int i = 0; i + 1 < count; ++i) {
      EgoProblem::minus(problem.q + 3 * (i + 1), problem.q + 3 * i, gap);
      length_sum += EgoProblem::length(gap);
    }
    const double time = (double)(count - 3) * interval, least = time / 10000.0;
    double step = time / (length_sum / problem.cells->resolution);
    step = step > least ? step : least;
    for (double t = 0.0; t < time * 2.0 / 3.0; t += step) {
      Bspline::even(problem.q, count, interval, t, 0, p);
      if (problem.cells->taken(p)) {
        *when = t;
        return true;
      }
    }
    return false;
  }
  // Stretch the time of a trajectory that breaks its limits, and bring it back to the shape that it had.
  int refine() {
    double fastest = 0.0, hardest = 0.0;
    const double* q = problem.q;
    for (int i = 0; i + 1 < count; ++i)
      for (int k = 0; k < 3; ++k) {
        const double v = fabs((q[3 * i + 3 + k] - q[3 * i + k]) / interval);
        fastest = v > fastest ? v : fastest;
      }
    for (int i = 0; i + 2 < count; ++i)
      for (int k = 0; k < 3; ++k) {
        const double a = fabs((q[3 * i + 6 + k] - 2.0 * q[3 * i + 3 + k] + q[3 * i + k]) / (interval * interval));
        hardest = a > hardest ? a : hardest;
      }
    const double grace = 1.0 + problem.set.tolerance;
    if (fastest <= problem.speed * grace + 1e-4 && hardest <= problem.acceleration * grace + 1e-4) return FOUND;
    const double ratio_v = fastest / problem.speed, ratio_a = ::sqrt(hardest / problem.acceleration);
    stretch(ratio_v > ratio_a ? ratio_v : ratio_a);
    problem.refining = true;
    problem.reference = points;
    minimise(problem.set.gradient / 10.0);
    double when;
    return collides(&when) ? REFINED_INTO : FOUND;
  }
  void stretch(double ratio) {
    const int last = count + 3 - 5;
    for (int i = 0; i < count + 4; ++i) knots[i] = ((double)i - 3.0) * interval;
    const double share = (ratio - 1.0) * (knots[last] - knots[5]) / (double)(last - 5);
    for (int i = 6; i < count + 4; ++i) knots[i] = knots[i] + share * (double)((i < last ? i : last) - 5);
    const double time = knots[count] - knots[3], step = time / (double)(count - 3);
    for (int i = 0; i < count - 2; ++i)
      Bspline::at(problem.q, knots, count, 3, knots[3] + (double)i * step, points + 3 * i);
    interval = problem.interval = step;
    Bspline::fit(points, count - 2, step, slopes, bends, problem.q, fit_work);
    for (int i = 0; i < count - 2; ++i) Bspline::even(problem.q, count, step, (double)i * step, 0, points + 3 * i);
  }
};
