// What surfaces do to vehicles with joints in a step: spheres on links, pushes through the tree. Equations and order of events:
// airworthy.dynamics.articulated.contact and .impacts. `X` is the state after free motion (velocity, attitude, rate, angles and rates of
// the joints); lanes that touch nothing come out unchanged. `surface` says for each sphere how deep it is, and normal and velocity of
// what it is in, world (SURFACE numbers each); without, all meet the ground plane. On a CPU out of line: most flights never get here.
enum { SURFACE = 7 };
static APART M meet(CONTEXT, float dt, float held_share, F height, const F* surface, F* X, F* moved, F* change, F* approach) {
  const bool carried[SPHERES][JOINTS] = {CARRIED};
  const F zero = N::c(0.0f), one = N::c(1.0f);
  F lower[LOWER], pivots[NU], at[3 * SPHERES], axes[3 * JOINTS], places[3 * JOINTS], flat[3], u[NU], u0[NU];
  F ups[3 * SPHERES], drifts[3 * SPHERES], own[SPHERES], worst[3] = {zero, zero, one};
  F touch[SPHERES], push[SPHERES], speed[SPHERES], stiff[SPHERES], rows[SPHERES][NU], found[SPHERES][NU], deepest = zero, count = zero;
  ground_frame(X + V, X + Q, flat, u);
  contact_tree(CTX, X + J, lower, pivots, at, axes, places);
  for (int i = 0; i < 3; ++i) u[3 + i] = X[W + i];
  for (int i = 0; i < JOINTS; ++i) u[6 + i] = X[JD + i];
  for (int i = 0; i < NU; ++i) u0[i] = u[i];
  *approach = zero;
  for (int k = 0; k < SPHERES; ++k) {
    const F radius = PAR(P_sphere + 4 * k + 3);
    F *const up = ups + 3 * k, *const drift = drifts + 3 * k, depth;
    own[k] = zero;
    if (surface) {
      depth = surface[SURFACE * k];
      into_root(X + Q, surface + SURFACE * k + 1, up);
      into_root(X + Q, surface + SURFACE * k + 4, drift);
      own[k] = up[0] * drift[0] + up[1] * drift[1] + up[2] * drift[2];
    } else {
      for (int i = 0; i < 3; ++i) {
        up[i] = flat[i];
        drift[i] = zero;
      }
      depth = PAR(P_ground_height) + radius - (height + (up[0] * at[3 * k] + up[1] * at[3 * k + 1] + up[2] * at[3 * k + 2]));
    }
    touch[k] = N::select(depth > zero, one, zero);
    push[k] = speed[k] = stiff[k] = zero;
    count += touch[k];
    if (surface)
      for (int i = 0; i < 3; ++i) worst[i] = N::select(depth > deepest, surface[SURFACE * k + 1 + i], worst[i]);
    deepest = N::select(depth > deepest, depth, deepest);
    if (!N::any(touch[k] > zero)) continue;
    F point[3], marks[JOINTS];
    for (int i = 0; i < 3; ++i) point[i] = at[3 * k + i] - up[i] * radius;
    for (int i = 0; i < JOINTS; ++i) marks[i] = carried[k][i] ? one : zero;
    response(point, up, marks, axes, places, lower, pivots, rows[k], found[k], &stiff[k]);
    speed[k] = rows[k][0] * u[0];
    for (int i = 1; i < NU; ++i) speed[k] += rows[k][i] * u[i];
    speed[k] = speed[k] - own[k];
    *approach = N::select((touch[k] > zero) & (zero - speed[k] > *approach), zero - speed[k], *approach);
  }
  const M met = count > zero;
  for (int i = 0; i < NU; ++i) change[i] = zero;
  if (!N::any(met)) return met;
  F share = one, lost = zero;
  // Against approach; then rebound and friction; and once more, since friction turns links and so may press others in.
  PRAGMA_NOUNROLL
  for (int round = 0; round < 2; ++round) {
    if (round == 1)
      for (int k = 0; k < SPHERES; ++k) push[k] = zero;
    PRAGMA_NOUNROLL
    for (int visit = 0; visit < (round == 0 ? CONTACT_SWEEPS : 1) * SPHERES; ++visit) {
      const int k = visit % SPHERES;
      if (!N::any(touch[k] > zero)) continue;
      F slower = rows[k][0] * u[0];
      for (int i = 1; i < NU; ++i) slower += rows[k][i] * u[i];
      F wanted = push[k] - (slower - own[k]) / N::select(touch[k] > zero, stiff[k], one);
      wanted = N::select(wanted > zero, wanted, zero) * touch[k];
      for (int i = 0; i < NU; ++i) u[i] += found[k][i] * (wanted - push[k]);
      push[k] = wanted;
    }
    if (round == 1) break;
    F gained = zero, spent = zero;
    for (int k = 0; k < SPHERES; ++k) {
      if (!N::any(touch[k] > zero)) continue;
      F now = rows[k][0] * u[0];
      for (int i = 1; i < NU; ++i) now += rows[k][i] * u[i];
      gained += push[k] * N::select(touch[k] > zero, speed[k], zero);
      spent += push[k] * N::select(touch[k] > zero, now - own[k] - speed[k], zero);
    }
    rebound(CTX, *approach, gained, spent, &share);
    for (int i = 0; i < NU; ++i) u[i] = u0[i] + (u[i] - u0[i]) * share;
    lost = zero - (share * gained + 0.5f * share * share * spent);
    PRAGMA_NOUNROLL
    for (int k = 0; k < SPHERES; ++k) {
      if (!N::any(touch[k] > zero)) continue;
      F point[3], marks[JOINTS], moving[3], sideways[3], slide, row[NU], y[NU], across, stop;
      for (int i = 0; i < 3; ++i) point[i] = at[3 * k + i] - ups[3 * k + i] * PAR(P_sphere + 4 * k + 3);
      for (int i = 0; i < JOINTS; ++i) marks[i] = carried[k][i] ? one : zero;
      point_velocity(point, marks, axes, places, u, moving);
      for (int i = 0; i < 3; ++i) moving[i] = moving[i] - drifts[3 * k + i];
      sliding(moving, ups + 3 * k, sideways, &slide);
      response(point, sideways, marks, axes, places, lower, pivots, row, y, &across);
      friction_push(CTX, touch[k] * push[k] * share, slide, across, &stop);
      for (int i = 0; i < NU; ++i) u[i] -= y[i] * stop;
      lost += stop * slide - 0.5f * stop * stop * across;
    }
  }
  F raised, world[3];
  contact_lift(CTX, deepest, lost, worst[2], &raised);
  // At rest the support acts all through the step, as gravity does, so the way made under it is taken back too.
  const M rests = met & (*approach < N::c(CONTACT_BOUNCE));
  const F back = N::select(rests, N::c(held_share * dt), zero);
  for (int i = 0; i < NU; ++i) change[i] = N::select(met, u[i] - u0[i], zero);
  from_root(X + Q, change, world);
  for (int i = 0; i < 3; ++i) {
    X[V + i] = N::select(met, X[V + i] + world[i], X[V + i]);
    X[W + i] = N::select(met, X[W + i] + change[3 + i], X[W + i]);
    moved[i] = N::select(met, moved[i] + world[i] * back + worst[i] * raised, moved[i]);
  }
  for (int i = 0; i < JOINTS; ++i) {
    X[J + i] = N::select(met, X[J + i] + change[6 + i] * back, X[J + i]);
    X[JD + i] = N::select(met, X[JD + i] + change[6 + i], X[JD + i]);
  }
  return met;
}
