// Control-limited differential dynamic programming, one problem per lane; the texts of one stage come from stage.py. Tasks are
// blocks of LANES problems. Work memory is laid out by problem: row after row of a block on a CPU, where it then lies in the
// cache, and row after row of all problems on a GPU, where neighbours read neighbouring numbers.
const size_t column = (size_t)block * LANES;
#define AT(array, row) ((array).data + (size_t)(row) * stride + column)
#if LANES == 1
#define WORK(row) (work.data + (size_t)(row) * stride + column)
#else
#define WORK(row) (work.data + ((size_t)block * work_rows + (row)) * LANES)
#endif
const int X_OLD = 0, X_NEW = X_OLD + (horizon + 1) * NX, U_NEW = X_NEW + (horizon + 1) * NX, GAIN = U_NEW + horizon * NU,
          CHANGE = GAIN + horizon * NU * NX;
Solve s;
s.full = N::load(AT(params, 0));
s.gravity = N::load(AT(params, 1));
s.dt = N::c(dt);
for (int i = 0; i < NX; ++i) {
  s.q[i] = N::c(weights.data[i]);
  s.end[i] = N::c(weights.data[NX + NU + i]);
}
for (int i = 0; i < NU; ++i) {
  s.r[i] = N::c(weights.data[NX + i]);
  s.low[i] = N::c(weights.data[2 * NX + NU + i]);
  s.high[i] = N::c(weights.data[2 * NX + 2 * NU + i]);
}
// Where each lane's reference begins, where it ends, and the sign of its quaternions.
int from[LANES], last[LANES];
for (int lane = 0; lane < LANES; ++lane) {
  from[lane] = window.data[column + lane];
  last[lane] = window.data[stride + column + lane];
}
F sign = N::c(1.0f);
// Row k of the reference in every lane: state (10), acceleration by thrust, body rates (3).
const auto wanted = [&](int k, F* x, F* u) {
  union { F v[NX + NU]; float n[NX + NU][LANES]; } row;
  for (int lane = 0; lane < LANES; ++lane) {
    const int at = from[lane] + k < last[lane] ? from[lane] + k : last[lane];
    for (int i = 0; i < NX + NU; ++i) row.n[i][lane] = reference.data[(size_t)at * (NX + NU) + i];
  }
  for (int i = 0; i < NX; ++i) x[i] = i < 6 ? row.v[i] : row.v[i] * sign;
  u[0] = row.v[NX] / s.full;
  for (int i = 1; i < NU; ++i) u[i] = row.v[NX + i];
};
F x[NX], u[NU], wx[NX], wu[NU];
for (int i = 0; i < NX; ++i) x[i] = N::load(AT(start, i));
wanted(0, wx, wu);
F along = N::c(0.0f);
for (int i = 6; i < NX; ++i) along = along + wx[i] * x[i];
sign = N::select(along < N::c(0.0f), N::c(-1.0f), N::c(1.0f));
// What the inputs given lead to.
F best = N::c(0.0f);
for (int k = 0; k < horizon; ++k) {
  wanted(k, wx, wu);
  for (int i = 0; i < NU; ++i) {
    u[i] = N::load(AT(inputs, k * NU + i));
    u[i] = Solve::bound(N::select(N::finite(u[i]), u[i], wu[i]), s.low[i], s.high[i]);
    N::store(AT(inputs, k * NU + i), u[i]);
  }
  for (int i = 0; i < NX; ++i) N::store(WORK(X_OLD + k * NX + i), x[i]);
  best = best + s.paid(x, u, wx, wu);
  Solve::step(x, u, s.full, s.gravity, s.dt, x);
}
wanted(horizon, wx, wu);
for (int i = 0; i < NX; ++i) N::store(WORK(X_OLD + horizon * NX + i), x[i]);
best = best + s.paid_at_end(x, wx);
F count = N::c(0.0f);
M active = N::finite(best);
for (int iteration = 0; iteration < iterations && N::any(active); ++iteration) {
  F value[TRIANGLE], slope[NX];
  wanted(horizon, wx, wu);
  for (int i = 0, n = 0; i < NX; ++i)
    for (int j = i; j < NX; ++j, ++n) value[n] = i == j ? s.end[i] + s.end[i] : N::c(0.0f);
  for (int i = 0; i < NX; ++i) slope[i] = (s.end[i] + s.end[i]) * (N::load(WORK(X_OLD + horizon * NX + i)) - wx[i]);
  for (int k = horizon - 1; k >= 0; --k) {
    F x_slope[NX], u_slope[NU], x_bend[NX], u_bend[NU], gain[NU * NX], change[NU];
    wanted(k, wx, wu);
    for (int i = 0; i < NX; ++i) {
      x[i] = N::load(WORK(X_OLD + k * NX + i));
      x_bend[i] = s.q[i] + s.q[i];
      x_slope[i] = x_bend[i] * (x[i] - wx[i]);
    }
    for (int i = 0; i < NU; ++i) {
      u[i] = N::load(AT(inputs, k * NU + i));
      u_bend[i] = s.r[i] + s.r[i];
      u_slope[i] = u_bend[i] * (u[i] - wu[i]);
    }
    s.stage(x, u, value, slope, x_slope, u_slope, x_bend, u_bend, gain, change);
    for (int i = 0; i < NU * NX; ++i) N::store(WORK(GAIN + k * NU * NX + i), gain[i]);
    for (int i = 0; i < NU; ++i) N::store(WORK(CHANGE + k * NU + i), change[i]);
  }
  // Along the new direction: all of it, or less where that costs more.
  const float shares[5] = {1.0f, 0.5f, 0.25f, 0.1f, 0.03f};
  const F before = best;
  M waiting = active, improved = N::never(), shortened = N::never();
  for (int trial = 0; trial < 5 && N::any(waiting); ++trial) {
    const F share = N::c(shares[trial]);
    F cost = N::c(0.0f);
    for (int i = 0; i < NX; ++i) x[i] = N::load(WORK(X_OLD + i));
    for (int k = 0; k < horizon; ++k) {
      F off[NX];
      wanted(k, wx, wu);
      for (int i = 0; i < NX; ++i) {
        off[i] = x[i] - N::load(WORK(X_OLD + k * NX + i));
        N::store(WORK(X_NEW + k * NX + i), x[i]);
      }
      for (int i = 0; i < NU; ++i) {
        F w = N::load(AT(inputs, k * NU + i)) + share * N::load(WORK(CHANGE + k * NU + i));
        for (int j = 0; j < NX; ++j) w = w + N::load(WORK(GAIN + (k * NU + i) * NX + j)) * off[j];
        u[i] = Solve::bound(w, s.low[i], s.high[i]);
        N::store(WORK(U_NEW + k * NU + i), u[i]);
      }
      cost = cost + s.paid(x, u, wx, wu);
      Solve::step(x, u, s.full, s.gravity, s.dt, x);
    }
    wanted(horizon, wx, wu);
    for (int i = 0; i < NX; ++i) N::store(WORK(X_NEW + horizon * NX + i), x[i]);
    cost = cost + s.paid_at_end(x, wx);
    const M better = waiting & (cost < best);
    if (N::any(better)) {
      for (int r = 0; r < (horizon + 1) * NX; ++r)
        N::store(WORK(X_OLD + r), N::select(better, N::load(WORK(X_NEW + r)), N::load(WORK(X_OLD + r))));
      for (int r = 0; r < horizon * NU; ++r)
        N::store(AT(inputs, r), N::select(better, N::load(WORK(U_NEW + r)), N::load(AT(inputs, r))));
    }
    best = N::select(better, cost, best);
    improved = improved | better;
    if (trial) shortened = shortened | better;
    waiting = waiting & N::invert(better);
  }
  count = N::select(active, count + N::c(1.0f), count);
  // Little gained by part of a step says nothing: the way was curved.
  active = active & improved & (shortened | ((before - best) > N::c(tolerance) * best));
}
for (int r = 0; r < (horizon + 1) * NX; ++r) N::store(AT(states, r), N::load(WORK(X_OLD + r)));
N::store(AT(result, 0), best);
N::store(AT(result, 1), count);
// What was still getting better when the iterations were used up has not settled.
N::store(AT(result, 2), N::select(active, N::c(1.0f), N::c(0.0f)));
#undef AT
#undef WORK
