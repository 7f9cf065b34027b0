// Ground contact of one step, for lanes near the plane. `next` is the state after free motion (velocity, attitude, rate), `moved`
// the displacement, `specific` the force over mass without the ground's; lanes that touch nothing come out unchanged to the bit, whatever their neighbours do. Equations and order of
// events: airworthy.dynamics.contact. On a CPU out of line: most flights never get here.
#if LANES == 1
#define GROUND_INLINE INLINE
#else
#define GROUND_INLINE __attribute__((noinline))
#endif
static GROUND_INLINE M ground(CONTEXT, float dt, float held_share, F height, const F* specific, F* next, F* moved, F* support,
                              F* support_turn, F* approach) {
  const F zero = N::c(0.0f), one = N::c(1.0f);
  F up[3], u[3], u0[3], w[3], w0[3], middle[3], touch[CONTACT_POINTS], push[CONTACT_POINTS], count = zero, deepest = zero;
  T::ground_frame(next, next + 3, up, u);
  for (int i = 0; i < 3; ++i) {
    u0[i] = u[i];
    w[i] = w0[i] = next[7 + i];
    middle[i] = support[i] = support_turn[i] = zero;
  }
  *approach = zero;
  PRAGMA_NOUNROLL
  for (int k = 0; k < CONTACT_POINTS; ++k) {
    const F point[3] = {PAR(P_contact_point + 3 * k), PAR(P_contact_point + 3 * k + 1), PAR(P_contact_point + 3 * k + 2)};
    F depth, speed;
    T::contact_state(CTX, height, up, u, w, point, &depth, &speed);
    const M below = depth > zero;
    touch[k] = N::select(below, one, zero);
    count += touch[k];
    for (int i = 0; i < 3; ++i) middle[i] += N::select(below, point[i], zero);
    *approach = N::select(below & (speed > *approach), speed, *approach);
    deepest = N::select(depth > deepest, depth, deepest);
  }
  const M met = count > zero;
  if (!N::any(met)) return met;
  const F inverse = one / N::select(met, count, one), any = N::select(met, one, zero);
  for (int i = 0; i < 3; ++i) middle[i] *= inverse;
  F limit, risen, u1[3], w1[3];
  T::bounce_speed(CTX, N::c(dt), &limit);
  const M rests = met & (*approach < limit);
  F holds;
  {
    const F point[3] = {PAR(P_contact_point), PAR(P_contact_point + 1), PAR(P_contact_point + 2)};
    T::contact_holds(CTX, u, w, up, point, &holds);
  }
  const M stands = rests & (holds > zero);

  // The step ended below the surface: a body that hits it goes back up before it rebounds, as it had less speed up there.
  risen = N::select(rests | (deepest < GROUND_SLOP), zero, deepest - GROUND_SLOP);
  T::affordable_lift(CTX, risen, u, w, &risen);
  T::contact_rise(CTX, risen, u, w, up, u, w);
  for (int i = 0; i < 3; ++i) {
    u1[i] = u[i];
    w1[i] = w[i];
  }
  height = height + risen;
  deepest = zero;

  // Twice: friction turns a body, and so presses points into the ground that had come to rest.
  F share = zero;
  PRAGMA_NOUNROLL
  for (int round = 0; round < 2; ++round) {
    // All points at once first: exact where the body stands evenly, and a good start elsewhere.
    F together = zero;
    T::contact_push(CTX, any, zero, u, w, up, middle, u, w, &together);
    for (int k = 0; k < CONTACT_POINTS; ++k) push[k] = touch[k] * together * inverse;
    PRAGMA_NOUNROLL
    for (int visit = 0; visit < GROUND_SWEEPS * CONTACT_POINTS; ++visit) {
      const int k = visit % CONTACT_POINTS;
      if (!N::any(touch[k] > zero)) continue;
      const F point[3] = {PAR(P_contact_point + 3 * k), PAR(P_contact_point + 3 * k + 1), PAR(P_contact_point + 3 * k + 2)};
      T::contact_push(CTX, touch[k], push[k], u, w, up, point, u, w, &push[k]);
    }
    if (round == 0) T::contact_rebound(CTX, *approach, u, w, u1, w1, N::c(dt), u, w, &share);
    PRAGMA_NOUNROLL
    for (int k = 0; k < CONTACT_POINTS; ++k) {
      if (!N::any(touch[k] > zero)) continue;
      const F point[3] = {PAR(P_contact_point + 3 * k), PAR(P_contact_point + 3 * k + 1), PAR(P_contact_point + 3 * k + 2)};
      F leaving, depth, speed;
      T::contact_friction(CTX, touch[k], push[k] * (one + share), u, w, up, point, u, w, &leaving);
      T::contact_state(CTX, height, up, u, w, point, &depth, &speed);
      // A point that leaves by itself is not lifted: that would add energy.
      const M stays = (touch[k] > zero) & (leaving < 0.05f);
      deepest = N::select(stays & (depth > deepest), depth, deepest);
    }
    F total = zero;
    for (int k = 0; k < CONTACT_POINTS; ++k) total += push[k];
    const F below[3] = {PAR(P_contact_point), PAR(P_contact_point + 1), PAR(P_contact_point + 2)};
    T::contact_rolling(CTX, total * (one + share), u, w, up, below, u, w);
    share = zero;
  }
  for (int i = 0; i < 3; ++i) {
    u[i] = N::select(stands, zero, u[i]);
    w[i] = N::select(stands, zero, w[i]);
  }
  // At rest the support acts all through the step, as gravity does, so the way made under it is taken back too. What is deeper
  // than keeps the contact comes out little by little.
  F change[3], felt[3];
  F stopped = up[0] * (u[0] - u0[0]) + up[1] * (u[1] - u0[1]) + up[2] * (u[2] - u0[2]);
  stopped = N::select(rests, stopped * (held_share * dt), zero);
  F lift = (deepest - stopped - GROUND_SLOP) * GROUND_LIFT;
  lift = N::select(lift > zero, lift, zero);
  F paid;
  T::unpaid_lift(CTX, lift, specific, up, &paid);
  T::contact_lift(CTX, paid, u, w, u, w);
  T::ground_result(u, u0, next + 3, N::c(dt), change, felt);
  for (int i = 0; i < 3; ++i) {
    const F back = N::select(rests, change[i] * (held_share * dt), zero);
    moved[i] = N::select(met, moved[i] + (i == 2 ? back + lift + risen : back), moved[i]);
    next[i] = N::select(met, next[i] + change[i], next[i]);
    next[7 + i] = N::select(met, w[i], next[7 + i]);
    support[i] = N::select(met, felt[i], zero);
    support_turn[i] = N::select(met, (w[i] - w0[i]) / dt, zero);
  }
  return met;
}
