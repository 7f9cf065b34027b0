// One stage of the backward pass, and what is paid. The equations of stage.py stand where they are named.
struct Solve {
  TRACED_BLOCKS
  F full, gravity, dt, q[NX], r[NU], end[NX], low[NU], high[NU];
  static INLINE F bound(F x, F low, F high) {
    const F above = N::select(x < low, low, x);
    return N::select(above > high, high, above);
  }
  INLINE F paid(const F* x, const F* u, const F* wx, const F* wu) const {
    F sum = N::c(0.0f);
    for (int i = 0; i < NX; ++i) sum = sum + q[i] * (x[i] - wx[i]) * (x[i] - wx[i]);
    for (int i = 0; i < NU; ++i) sum = sum + r[i] * (u[i] - wu[i]) * (u[i] - wu[i]);
    return sum;
  }
  INLINE F paid_at_end(const F* x, const F* wx) const {
    F sum = N::c(0.0f);
    for (int i = 0; i < NX; ++i) sum = sum + end[i] * (x[i] - wx[i]) * (x[i] - wx[i]);
    return sum;
  }
  static INLINE F entry(const F* triangle, int i, int j) {
    return i <= j ? triangle[i * NU - i * (i - 1) / 2 + j - i] : triangle[j * NU - j * (j - 1) / 2 + i - j];
  }
  // L D L' of the free inputs' part of a matrix, the others' rows being those of the identity; `inverse` holds 1 / D.
  static INLINE void factor(const F* q_uu, const M* free, F* lower, F* inverse) {
    F d[NU];
    for (int j = 0; j < NU; ++j) {
      d[j] = N::select(free[j], entry(q_uu, j, j), N::c(1.0f));
      for (int k = 0; k < j; ++k) d[j] = d[j] - lower[j * NU + k] * lower[j * NU + k] * d[k];
      inverse[j] = N::c(1.0f) / d[j];
      for (int i = j + 1; i < NU; ++i) {
        F l = N::select(free[i] & free[j], entry(q_uu, i, j), N::c(0.0f));
        for (int k = 0; k < j; ++k) l = l - lower[i * NU + k] * lower[j * NU + k] * d[k];
        lower[i * NU + j] = l * inverse[j];
      }
    }
  }
  static INLINE void divide(const F* lower, const F* inverse, F* b) {
    for (int i = 1; i < NU; ++i)
      for (int k = 0; k < i; ++k) b[i] = b[i] - lower[i * NU + k] * b[k];
    for (int i = 0; i < NU; ++i) b[i] = b[i] * inverse[i];
    for (int i = NU - 2; i >= 0; --i)
      for (int k = i + 1; k < NU; ++k) b[i] = b[i] - lower[k * NU + i] * b[k];
  }
  // Change and feedback of the input, within its bounds (projected Newton steps on the set of free inputs); the value function
  // of this stage takes the place of the next one's.
  INLINE void stage(const F* x, const F* u, F* value, F* slope, const F* x_slope, const F* u_slope, const F* x_bend,
                    const F* u_bend, F* gain, F* change) const {
    F q_x[NX], q_u[NU], q_xx[TRIANGLE], q_uu[NU * (NU + 1) / 2], q_ux[NU * NX], lower[NU * NU], inverse[NU];
    M free[NU];
    back(x, u, full, gravity, dt, value, slope, x_slope, u_slope, x_bend, u_bend, q_x, q_u, q_xx, q_uu, q_ux);
    for (int i = 0; i < NU; ++i) change[i] = N::c(0.0f);
    // A problem that has settled stays as it is, however long its neighbours take.
    M moving = N::finite(N::c(0.0f));
    for (int round = 0; round < ROUNDS; ++round) {
      F g[NU];
      M other = N::never();
      for (int i = 0; i < NU; ++i) {
        g[i] = q_u[i];
        for (int j = 0; j < NU; ++j) g[i] = g[i] + entry(q_uu, i, j) * change[j];
      }
      for (int i = 0; i < NU; ++i) {
        // As `bound` left them, so that rounding cannot hide that a bound is touched.
        const M down = (change[i] <= low[i] - u[i]) & (g[i] > N::c(0.0f));
        const M up = (change[i] >= high[i] - u[i]) & (g[i] < N::c(0.0f));
        const M now = N::invert(down | up);
        if (round) other = other | (now ^ free[i]);
        free[i] = now;
      }
      if (round) moving = moving & other;
      if (!N::any(moving)) break;
      factor(q_uu, free, lower, inverse);
      for (int i = 0; i < NU; ++i) g[i] = N::select(free[i], -g[i], N::c(0.0f));
      divide(lower, inverse, g);
      for (int i = 0; i < NU; ++i) change[i] = N::select(moving, bound(change[i] + g[i], low[i] - u[i], high[i] - u[i]), change[i]);
    }
    for (int j = 0; j < NX; ++j) {
      F b[NU];
      for (int i = 0; i < NU; ++i) b[i] = N::select(free[i], -q_ux[i * NX + j], N::c(0.0f));
      divide(lower, inverse, b);
      for (int i = 0; i < NU; ++i) gain[i * NX + j] = b[i];
    }
    improve(q_xx, q_x, q_ux, gain, change, value, slope);
  }
};
