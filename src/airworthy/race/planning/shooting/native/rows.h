// What is known and unknown of one problem, its rows of bounds, and the quadratic programme of the next step: as iterate.py.
struct Solver {
  const Given* g;
  Found* f;
  Work* w;
  int legs, nodes, steps, looks, columns, kind[7];
  double mu, stationary, off, gap;
  INLINE double part(const double* t, int k) const { return t[k / nodes] / nodes; }
  // Of looks at nodes 1 to N.
  METHOD void see(const double* x, double* worth) const {
    for (int q = 0; q < looks; ++q)
      for (int k = 0; k < steps; ++k) {
        const double* state = x + (k + 1) * NX;
        double place[SIGHT];
        for (int i = 0; i < 3; ++i) place[i] = state[i];
        for (int i = 0; i < 4; ++i) place[3 + i] = state[6 + i];
        double value = 0.0;
        if (g->counts[q * STEPS + k] != 0.0) Equations::sight(place, g->target + 3 * q, g->soft[0], &value);
        worth[q * STEPS + k] = value;
      }
  }
  METHOD void rows(const double* x, const double* u, const double* t, const double* b, const double* lack, const double* worth,
                   double* to) const {
    linear(x, u, t, b, lack, to);
    for (int j = 1; j <= steps; ++j) {
      double* r = to + (j - 1) * ROWS_X;
      for (int i = 0; i < 6; ++i) r[i] += g->rate[i / 2];
      r[6] -= g->height[0];
      for (int i = 0; i < 4; ++i) r[7 + i] += g->window_offset[j * 4 + i];
      for (int i = 0; i < 6; ++i) r[11 + i] += g->cap[j];
    }
    for (int k = 0; k < steps; ++k)
      for (int i = 0; i < ROWS_U; ++i) to[kind[1] + k * ROWS_U + i] += g->input_offset[i];
    for (int l = 0; l < legs; ++l) {
      to[kind[2] + l] -= g->leg[0];
      to[kind[2] + legs + l] += g->leg[1];
    }
    for (int q = 0; q < looks; ++q) {
      double sum = lack[q] - g->needed[q];
      for (int k = 0; k < steps; ++k) sum += part(t, k) * g->counts[q * STEPS + k] * worth[q * STEPS + k];
      to[kind[5] + q] = sum;
    }
  }
  // All rows but the looks' are linear: without their constants.
  METHOD void linear(const double* x, const double* u, const double* t, const double* b, const double* lack, double* to) const {
    for (int j = 1; j <= steps; ++j) {
      const double* state = x + j * NX;
      double* r = to + (j - 1) * ROWS_X;
      for (int i = 0; i < 3; ++i) {
        r[2 * i] = state[10 + i];
        r[2 * i + 1] = -state[10 + i];
        r[11 + 2 * i] = g->capped[j] * state[3 + i];
        r[12 + 2 * i] = -g->capped[j] * state[3 + i];
      }
      r[6] = state[2];
      const int beside = (int)g->beside[j];
      const double wide = beside >= 0 ? b[beside] : 0.0;
      for (int i = 0; i < 4; ++i) {
        const double* slope = g->window_rows + (j * 4 + i) * 3;
        r[7 + i] = slope[0] * state[0] + slope[1] * state[1] + slope[2] * state[2] + wide;
      }
    }
    for (int k = 0; k < steps; ++k)
      for (int i = 0; i < ROWS_U; ++i) {
        const double* slope = g->input_rows + i * NU;
        double sum = 0.0;
        for (int a = 0; a < NU; ++a) sum += slope[a] * u[k * NU + a];
        to[kind[1] + k * ROWS_U + i] = sum;
      }
    for (int l = 0; l < legs; ++l) {
      to[kind[2] + l] = t[l];
      to[kind[2] + legs + l] = -t[l];
      to[kind[3] + l] = b[l];
    }
    for (int q = 0; q < looks; ++q) to[kind[4] + q] = lack[q];
  }
  // What a line search compares: the sum of what equations are off, the cost, and the sum of the slacks' logarithms.
  METHOD void judge(const double* x, const double* u, const double* t, const double* b, const double* slack, double* worth,
                    double* value, double* judged) const {
    double sum = 0.0, paid = 0.0, logs = 0.0;
    const double* lack = slack + kind[4];
    see(x, worth);
    rows(x, u, t, b, lack, worth, value);
    for (int k = 0; k < steps; ++k) {
      double after[NX];
      const double h = part(t, k);
      Equations::advance(x + k * NX, u + k * NU, h, g->vehicle, after);
      for (int i = 0; i < NX; ++i) sum += fabs(after[i] - x[(k + 1) * NX + i]);
      double turning = 0.0;
      for (int a = 1; a < NU; ++a) turning += u[k * NU + a] * u[k * NU + a];
      const double yaw = x[(k + 1) * NX + 12];
      paid += h * (0.5 * g->turning[0] * turning + 0.5 * g->yaw[0] * yaw * yaw);
    }
    for (int l = 0; l < legs; ++l) {
      sum += fabs(plane(l, x));
      paid += t[l] + g->price[0] * b[l];
    }
    for (int q = 0; q < looks; ++q) paid += g->price[1] * lack[q];
    for (int r = 0; r < kind[6]; ++r) {
      sum += fabs(value[r] - slack[r]);
      logs += log(slack[r]);
    }
    judged[0] = sum;
    judged[1] = paid;
    judged[2] = logs;
  }
  INLINE double plane(int l, const double* x) const {
    const double *n = g->plane + 4 * l, *p = x + (l + 1) * nodes * NX;
    return n[0] * p[0] + n[1] * p[1] + n[2] * p[2] + n[3];
  }
