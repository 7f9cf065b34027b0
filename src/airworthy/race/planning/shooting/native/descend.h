  // Largest part of a step that keeps what is positive so.
  static METHOD double largest(const double* value, const double* change, int count, double keep) {
    double size = 1.0;
    for (int r = 0; r < count; ++r) {
      const double reach = keep * value[r];
      if (size * change[r] < -reach) size = -reach / change[r];
    }
    return size;
  }
  static INLINE void move(const double* from, const double* by, double size, int count, double* to) {
    for (int i = 0; i < count; ++i) to[i] = from[i] + size * by[i];
  }
  METHOD double worst(double aim) const {
    double gone = 0.0;
    for (int r = 0; r < kind[6]; ++r) gone = Step::larger(gone, fabs(w->slack[r] * w->dual[r] - aim));
    return Step::larger(Step::larger(stationary, off), gone);
  }
  METHOD void begin() {
    legs = (int)g->legs[0];
    nodes = (int)g->nodes[0];
    looks = (int)g->looks[0];
    steps = legs * nodes;
    columns = 1 + 2 * legs + looks;
    const int counts[6] = {steps * ROWS_X, steps * ROWS_U, 2 * legs, legs, looks, looks};
    kind[0] = 0;
    for (int i = 0; i < 6; ++i) kind[i + 1] = kind[i] + counts[i];
    mu = MU_FIRST;
    for (int l = 0; l < legs; ++l) {
      f->b[l] = WIDE_FIRST;
      w->held[l] = 0.0;
    }
    for (int q = 0; q < looks; ++q) w->dlack[q] = LACK_FIRST;
    Step::zero(w->costate, (steps + 1) * NX);
    Step::zero(w->worth, LOOKS * STEPS);
    see(f->x, w->worth);
    rows(f->x, f->u, f->t, f->b, w->dlack, w->worth, w->value);
    for (int r = 0; r < kind[6]; ++r) {
      w->slack[r] = Step::larger(w->value[r], SLACK_LEAST);
      w->dual[r] = mu / w->slack[r];
    }
  }
  // A part of the step, to where it is tried.
  METHOD void advance(double size) {
    move(f->x, w->dx, size, (steps + 1) * NX, w->x);
    move(f->u, w->du, size, steps * NU, w->u);
    move(f->t, w->theta + 1, size, legs, w->t);
    move(f->b, w->theta + 1 + legs, size, legs, w->b);
    move(w->slack, w->dslack, size, kind[6], w->trial);
  }
  // The slope of the cost with the barrier's along the step.
  METHOD double falling() const {
    double sum = 0.0;
    for (int l = 0; l < legs; ++l) sum += w->theta[1 + l] + g->price[0] * w->theta[1 + legs + l];
    for (int q = 0; q < looks; ++q) sum += g->price[1] * w->dlack[q];
    for (int k = 0; k < steps; ++k) {
      const double h = part(f->t, k), dh = w->theta[1 + k / nodes] / nodes, yaw = f->x[(k + 1) * NX + 12];
      sum += g->yaw[0] * yaw * (h * w->dx[(k + 1) * NX + 12] + 0.5 * dh * yaw);
      for (int a = 1; a < NU; ++a) {
        const double turn = f->u[k * NU + a];
        sum += g->turning[0] * turn * (h * w->du[k * NU + a] + 0.5 * dh * turn);
      }
    }
    for (int r = 0; r < kind[6]; ++r) sum -= mu * w->dslack[r] / w->slack[r];
    return sum;
  }
  METHOD void run() {
    begin();
    double last = 0.0, here[3], there[3], pairs[2 * FILTER];
    int held = 0;
    judge(f->x, f->u, f->t, f->b, w->slack, w->worth, w->value, here);
    const double most = GROWTH * Step::larger(1.0, here[0]), least = 1e-4 * Step::larger(1.0, here[0]);
    const int limit = (int)g->iterations[0];
    int count = 0, status = STATUS_LIMIT;
    for (;; ++count) {
      assemble();
      const double error = worst(0.0);
      if (error <= TOLERANCE && off <= OFF_MAX && gap <= PRODUCT_MAX) {
        status = STATUS_SOLVED;
        break;
      }
      if (count == limit) {
        if (error <= NEARLY && off <= NEARLY_OFF) status = STATUS_NEARLY;
        break;
      }
      bool lower = false;
      while (mu > MU_LAST && worst(mu) <= 10.0 * mu) {
        mu = Step::larger(MU_LAST, Step::smaller(0.2 * mu, mu * sqrt(mu)));
        lower = true;
      }
      if (lower) {
        held = 0;
        assemble();
      }
      double ridge = 0.0;
      if (!factor(0.0)) {
        ridge = last == 0.0 ? RIDGE_FIRST : last / 3.0;
        while (ridge < RIDGE_MAX && !factor(ridge)) ridge *= last == 0.0 ? 100.0 : 8.0;
        if (!(ridge < RIDGE_MAX)) {
          status = STATUS_LOST;
          break;
        }
        last = ridge;
      }
      direct();
      const double keep = Step::larger(KEEP, 1.0 - mu), down = falling();
      const double whole = largest(w->slack, w->dslack, kind[6], keep), dual = largest(w->dual, w->ddual, kind[6], keep);
      const double now = here[0], cost = here[1] - mu * here[2];
      double size = whole;
      bool passed = false;
      for (int half = 0; half < HALVINGS && !passed; ++half) {
        advance(size);
        judge(w->x, w->u, w->t, w->b, w->trial, w->worth, w->value, there);
        const double then = there[0], paid = there[1] - mu * there[2];
        bool good = then < most && paid - paid == 0.0;
        for (int i = 0; i < held && good; ++i) good = then < (1.0 - SHARE_OFF) * pairs[2 * i] || paid < pairs[2 * i + 1];
        const bool aims = down < 0.0 && size * pow(-down, 2.3) > pow(now, 1.1);
        if (good && now <= least && aims) {
          passed = paid <= cost + 1e-8 * size * down + 1e-10;
        } else if (good && (then <= (1.0 - SHARE_OFF) * now || paid <= cost - SHARE_OFF * now)) {
          const int seat = held < FILTER ? held++ : FILTER - 1;
          pairs[2 * seat] = (1.0 - SHARE_OFF) * now;
          pairs[2 * seat + 1] = cost - SHARE_OFF * now;
          passed = true;
        }
        if (!passed) size *= 0.5;
      }
      if (!passed) {
        held = 0;
        size = whole;
        advance(size);
        judge(w->x, w->u, w->t, w->b, w->trial, w->worth, w->value, there);
      }
      for (int i = 0; i < 3; ++i) here[i] = there[i];
      for (int i = 0; i < (steps + 1) * NX; ++i) f->x[i] = w->x[i];
      for (int i = 0; i < steps * NU; ++i) f->u[i] = w->u[i];
      for (int l = 0; l < legs; ++l) {
        f->t[l] = w->t[l];
        f->b[l] = w->b[l];
      }
      move(w->costate, w->dcostate, size, (steps + 1) * NX, w->costate);
      move(w->held, w->dheld, size, legs, w->held);
      for (int r = 0; r < kind[6]; ++r) {
        w->slack[r] = w->trial[r];
        const double middle = mu / w->slack[r];
        w->dual[r] = Step::smaller(Step::larger(w->dual[r] + dual * w->ddual[r], middle * 1e-10), middle * 1e10);
      }
    }
    for (int q = 0; q < looks; ++q) f->lack[q] = w->slack[kind[4] + q];
    f->status[0] = status;
    f->count[0] = count;
  }
};
