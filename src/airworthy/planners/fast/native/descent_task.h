// One worker: its share of the splines, one after the other.
for (int which = worker; which < count; which += workers) {
  Descent& p = ((Descent*)asked.data)[which];
  double* own = (double*)(work.data + (long long)worker * work_size);
  if (p.fit > 0) Bspline::fit(p.points, p.fit, p.interval, p.ends, p.ends + 6, p.control, own);
  SplineCosts costs;
  costs.known = {(const Window*)windows.data + p.window};
  costs.count = p.count;
  costs.free_end = p.free_end;
  costs.interval = p.interval;
  costs.smooth = p.smooth;
  costs.distance = p.distance;
  costs.feasible = p.feasible;
  costs.end = p.end;
  costs.clearance = p.clearance;
  costs.speed = p.speed;
  costs.most = p.most;
  costs.q = p.control;
  costs.g = own;
  costs.halt = false;
  const int last = 3 * (p.count - 3), size = costs.unknowns();
  for (int k = 0; k < 3; ++k)
    costs.target[k] = (p.control[last + k] + 4.0 * p.control[last + 3 + k] + p.control[last + 6 + k]) / 6.0;
  p.evaluations_done = 0;
  if (size > 0 && p.evaluations > 0) {
    double *x = own + 3 * MOST_POINTS, *memory = x + 3 * MOST_POINTS;
    for (int k = 0; k < size; ++k) x[k] = p.control[9 + k];
    Lbfgs solver = {size, p.memory, p.evaluations, p.evaluations, p.gradient_tolerance, p.step_tolerance, memory};
    p.status = solver.minimise(costs, x);
    p.value = solver.value;
    p.evaluations_done = solver.evaluations_done;
    for (int k = 0; k < size; ++k) p.control[9 + k] = x[k];
  }
  for (int k = 0; k < p.count + 4; ++k) p.knots[k] = (k - 3) * p.interval;
  TimeAdjustment times = {p.control, p.knots, p.count, p.speed, p.most};
  for (int s = 0; s < p.sweeps; ++s)
    if (times.sweep()) break;
}
