  // The quadratic programme of the next step, and how far this iterate is off. Gradients aim at mu, pulls are of multipliers as
  // they are.
  METHOD void assemble() {
    const int m = columns;
    off = 0.0;
    Step::zero(w->node_curve, (steps + 1) * NX * NX);
    Step::zero(w->node_slope, (steps + 1) * NX * MM);
    Step::zero(w->input_slope, steps * NU * MM);
    Step::zero(w->border, MM * MM);
    Step::zero(w->pull_x, (steps + 1) * NX);
    Step::zero(w->pull_u, steps * NU);
    Step::zero(w->pull_t, LEGS);
    for (int l = 0; l < legs; ++l) w->pull_b[l] = g->price[0];
    see(f->x, w->worth);
    rows(f->x, f->u, f->t, f->b, w->slack + kind[4], w->worth, w->value);
    for (int r = 0; r < kind[6]; ++r) {
      const double s = w->slack[r], y = w->dual[r];
      off = Step::larger(off, fabs(w->value[r] - s));
      w->weight[r] = y / s;
      w->push[r] = y / s * (w->value[r] - s) - mu / s;
    }
    for (int k = 0; k < steps; ++k) step(k);
    for (int k = 0; k < steps; ++k) node(k + 1);
    for (int l = 0; l < legs; ++l) {
      const int low = kind[2] + l, high = low + legs, wide = kind[3] + l, t = 1 + l, b = 1 + legs + l;
      w->border[t * MM + t] += w->weight[low] + w->weight[high];
      w->border[t] += 1.0 + w->push[low] - w->push[high];
      w->pull_t[l] += 1.0 - w->dual[low] + w->dual[high];
      w->border[b * MM + b] += w->weight[wide];
      w->border[b] += g->price[0] + w->push[wide];
      w->pull_b[l] -= w->dual[wide];
      const int j = (l + 1) * nodes;
      const double *n = g->plane + 4 * l, gone = plane(l, f->x);
      off = Step::larger(off, fabs(gone));
      for (int i = 0; i < 3; ++i) {
        for (int o = 0; o < 3; ++o) w->node_curve[(j * NX + i) * NX + o] += n[i] * n[o] / SOFT_EQUALITY;
        w->node_slope[(j * NX + i) * MM] += n[i] * (w->held[l] + gone / SOFT_EQUALITY);
        w->pull_x[j * NX + i] += n[i] * w->held[l];
      }
    }
    for (int q = 0; q < looks; ++q) look(q);
    for (int i = 1; i < m; ++i) w->border[i * MM] = w->border[i];
    stationary = 0.0;
    for (int i = NX; i < (steps + 1) * NX; ++i) stationary = Step::larger(stationary, fabs(w->pull_x[i]));
    for (int i = 0; i < steps * NU; ++i) stationary = Step::larger(stationary, fabs(w->pull_u[i]));
    for (int l = 0; l < legs; ++l) stationary = Step::larger(stationary, Step::larger(fabs(w->pull_t[l]), fabs(w->pull_b[l])));
    for (int q = 0; q < looks; ++q)
      stationary = Step::larger(stationary, fabs(g->price[1] - w->dual[kind[5] + q] - w->dual[kind[4] + q]));
    gap = 0.0;
    for (int r = 0; r < kind[6]; ++r) gap = Step::larger(gap, w->slack[r] * w->dual[r]);
  }
  // Step k: its dynamics, its inputs' rows, and the cost on it.
  INLINE void step(int k) {
    const int l = k / nodes, t = 1 + l;
    const double h = part(f->t, k), each = 1.0 / nodes, *u = f->u + k * NU, *costate = w->costate + (k + 1) * NX;
    double *slopes = w->slopes + k * NX * ZP, *curves = w->curves + k * NZ * ZP, *defect = w->defect + k * NX, after[NX];
    Step::terms(f->x + k * NX, u, h, costate, g->vehicle, after, slopes, curves);
    double turned[ZP], squared = 0.0;
    Step::zero(turned, ZP);
    for (int i = 0; i < NX; ++i) {
      defect[i] = after[i] - f->x[(k + 1) * NX + i];
      off = Step::larger(off, fabs(defect[i]));
      Step::add(turned, costate[i], slopes + i * ZP);
    }
    for (int i = 0; i < NX; ++i) {
      w->node_slope[(k * NX + i) * MM + t] += curves[i * ZP + NZ - 1] * each;
      w->pull_x[k * NX + i] += turned[i];
      w->pull_x[(k + 1) * NX + i] -= costate[i];
    }
    w->pull_t[l] += turned[NZ - 1] * each;
    w->border[t * MM + t] += curves[(NZ - 1) * ZP + NZ - 1] * each * each;
    for (int i = 0; i < NU; ++i) {
      double* slope = w->input_slope + (k * NU + i) * MM;
      const double turn = i ? g->turning[0] : 0.0;
      squared += turn * u[i] * u[i];
      slope[0] += turn * h * u[i];
      slope[t] += curves[(NX + i) * ZP + NZ - 1] * each + turn * u[i] * each;
      curves[(NX + i) * ZP + NX + i] += turn * h;
      w->pull_u[k * NU + i] += turn * h * u[i] + turned[NX + i];
    }
    for (int r = 0; r < ROWS_U; ++r) {
      const double *row = g->input_rows + r * NU, weight = w->weight[kind[1] + k * ROWS_U + r],
                   push = w->push[kind[1] + k * ROWS_U + r], dual = w->dual[kind[1] + k * ROWS_U + r];
      for (int i = 0; i < NU; ++i) {
        for (int o = 0; o < NU; ++o) curves[(NX + i) * ZP + NX + o] += weight * row[i] * row[o];
        w->input_slope[(k * NU + i) * MM] += push * row[i];
        w->pull_u[k * NU + i] -= dual * row[i];
      }
    }
    const int j = k + 1;
    const double yaw = f->x[j * NX + 12];
    w->node_curve[(j * NX + 12) * NX + 12] += g->yaw[0] * h;
    w->node_slope[(j * NX + 12) * MM] += g->yaw[0] * h * yaw;
    w->node_slope[(j * NX + 12) * MM + t] += g->yaw[0] * yaw * each;
    w->pull_x[j * NX + 12] += g->yaw[0] * h * yaw;
    const double rate = 0.5 * (squared + g->yaw[0] * yaw * yaw) * each;
    w->border[t] += rate;
    w->pull_t[l] += rate;
  }
  // Rows of node j.
  INLINE void node(int j) {
    const int first = (j - 1) * ROWS_X, beside = (int)g->beside[j];
    double *curve = w->node_curve + j * NX * NX, *slope = w->node_slope + j * NX * MM, *pull = w->pull_x + j * NX;
    for (int r = 0; r < 7; ++r) {
      const int i = r < 6 ? 10 + r / 2 : 2;
      const double sign = r < 6 && r % 2 ? -1.0 : 1.0;
      curve[i * NX + i] += w->weight[first + r];
      slope[i * MM] += sign * w->push[first + r];
      pull[i] -= sign * w->dual[first + r];
    }
    if (g->capped[j] != 0.0)
      for (int r = 11; r < 17; ++r) {
        const int i = 3 + (r - 11) / 2;
        const double sign = r % 2 ? 1.0 : -1.0;
        curve[i * NX + i] += w->weight[first + r];
        slope[i * MM] += sign * w->push[first + r];
        pull[i] -= sign * w->dual[first + r];
      }
    if (beside < 0) return;
    const int b = 1 + legs + beside;
    for (int r = 0; r < 4; ++r) {
      const double *row = g->window_rows + (j * 4 + r) * 3, weight = w->weight[first + 7 + r], push = w->push[first + 7 + r],
                   dual = w->dual[first + 7 + r];
      for (int i = 0; i < 3; ++i) {
        for (int o = 0; o < 3; ++o) curve[i * NX + o] += weight * row[i] * row[o];
        slope[i * MM] += push * row[i];
        slope[i * MM + b] += weight * row[i];
        pull[i] -= dual * row[i];
      }
      w->border[b * MM + b] += weight;
      w->border[b] += push;
      w->pull_b[beside] -= dual;
    }
  }
  METHOD void look(int q) {
    const int seat = 1 + 2 * legs + q;
    const double psi = w->dual[kind[5] + q], each = 1.0 / nodes;
    double by_leg[LEGS];
    Step::zero(by_leg, LEGS);
    for (int k = 0; k < steps; ++k) {
      const double count = g->counts[q * STEPS + k];
      if (count == 0.0) continue;
      const int j = k + 1, l = k / nodes;
      const double share = part(f->t, k) * count, *state = f->x + j * NX;
      double place[SIGHT], slopes[SIGHT], curves[SIGHT * SIGHT];
      for (int i = 0; i < SIGHT; ++i) place[i] = state[i < 3 ? i : 3 + i];
      Equations::sight_curves(place, g->target + 3 * q, g->soft[0], slopes, curves);
      by_leg[l] += count * w->worth[q * STEPS + k] * each;
      for (int i = 0; i < SIGHT; ++i) {
        const int row = j * NX + (i < 3 ? i : 3 + i);
        for (int o = 0; o < SIGHT; ++o) w->node_curve[row * NX + (o < 3 ? o : 3 + o)] -= psi * share * curves[i * SIGHT + o];
        w->node_slope[row * MM] -= psi * share * slopes[i];
        w->node_slope[row * MM + seat] -= share * slopes[i];
        w->node_slope[row * MM + 1 + l] -= psi * count * each * slopes[i];
        w->pull_x[row] -= psi * share * slopes[i];
      }
    }
    for (int l = 0; l < legs; ++l) {
      w->border[seat * MM + 1 + l] -= by_leg[l];
      w->border[(1 + l) * MM + seat] -= by_leg[l];
      w->border[1 + l] -= psi * by_leg[l];
      w->pull_t[l] -= psi * by_leg[l];
    }
    const double lack = w->slack[kind[4] + q], slack = w->slack[kind[5] + q], dual = w->dual[kind[4] + q];
    w->border[seat * MM + seat] -= lack / dual + slack / psi;
    w->border[seat] += slack - w->value[kind[5] + q] - (mu - lack * (g->price[1] - psi)) / dual + mu / psi - slack;
  }
