// Where rays o + t d (d of any length) enter and leave the solids, in their own frames. All are convex: one interval of t each.
// `side` of entry and exit is the number of the face (box: -x +x -y +y -z +z; cylinder: side, bottom, top). ORIGIN as in traverse.h.
struct Interval {
  F enter, leave;
  I enter_side, leave_side;
};
struct Solids {
  static INLINE Interval nothing() { return {N::c(1.0f), N::c(-1.0f), L::i(0), L::i(0)}; }
  static INLINE Interval box(const F* o, const F* d, const float* half) {
    Interval s = {N::c(-3e38f), N::c(3e38f), L::i(0), L::i(0)};
    for (int k = 0; k < 3; ++k) {
      const F inverse = L::inverse(d[k]);
      const F a = (-half[k] - o[k]) * inverse, b = (half[k] - o[k]) * inverse;
      const F near = L::min(a, b), far = L::max(a, b);
      const M later = near > s.enter, sooner = far < s.leave;
      const I up = L::select(d[k] < 0.0f, L::i(2 * k + 1), L::i(2 * k)), down = L::i(4 * k + 1) - up;
      s.enter = N::select(later, near, s.enter);
      s.enter_side = L::select(later, up, s.enter_side);
      s.leave = N::select(sooner, far, s.leave);
      s.leave_side = L::select(sooner, down, s.leave_side);
    }
    return s;
  }
  // About the point of the ray that is nearest to the centre, so that a small ball far away keeps its digits.
  static INLINE Interval ball(const F* o, const F* d, float radius) {
    const F dd = L::dot(d, d), middle = -L::dot(o, d) / dd;
    const F p[3] = {o[0] + middle * d[0], o[1] + middle * d[1], o[2] + middle * d[2]};
    const F room = radius * radius - L::dot(p, p);
    const M hit = room >= 0.0f;
    const F half = N::sqrt(N::select(hit, room, N::c(0.0f)) / dd);
    return {N::select(hit, middle - half, N::c(1.0f)), N::select(hit, middle + half, N::c(-1.0f)), L::i(0), L::i(0)};
  }
  // The endless cylinder along z.
  static INLINE Interval tube(const F* o, const F* d, float radius) {
    const F dd = d[0] * d[0] + d[1] * d[1];
    const M along = dd <= 1e-12f * (d[2] * d[2]);
    const F safe = N::select(along, N::c(1.0f), dd);
    const F middle = N::select(along, N::c(0.0f), -(o[0] * d[0] + o[1] * d[1]) / safe);
    const F x = o[0] + middle * d[0], y = o[1] + middle * d[1];
    const F room = radius * radius - (x * x + y * y);
    const M hit = room >= 0.0f;
    const F half = N::select(along, N::c(1e30f), N::sqrt(N::select(hit, room, N::c(0.0f)) / safe));
    return {N::select(hit, middle - half, N::c(1.0f)), N::select(hit, middle + half, N::c(-1.0f)), L::i(0), L::i(0)};
  }
  static INLINE Interval cylinder(const F* o, const F* d, float radius, float half) {
    Interval s = tube(o, d, radius);
    const F inverse = L::inverse(d[2]);
    const F a = (-half - o[2]) * inverse, b = (half - o[2]) * inverse;
    const F near = L::min(a, b), far = L::max(a, b);
    const M later = near > s.enter, sooner = far < s.leave;
    const I first = L::select(d[2] < 0.0f, L::i(2), L::i(1));
    s.enter = N::select(later, near, s.enter);
    s.enter_side = L::select(later, first, s.enter_side);
    s.leave = N::select(sooner, far, s.leave);
    s.leave_side = L::select(sooner, 3 - first, s.leave_side);
    return s;
  }
  // A ray can enter a capsule only where it enters the tube, or, if that is beyond an end, through the ball at that end.
  static INLINE Interval capsule(const F* o, const F* d, float radius, float half) {
    Interval s = tube(o, d, radius);
    const F low[3] = {o[0], o[1], o[2] + half}, high[3] = {o[0], o[1], o[2] - half};
    const Interval bottom = ball(low, d, radius), top = ball(high, d, radius);
    const F z0 = o[2] + s.enter * d[2], z1 = o[2] + s.leave * d[2];
    const M any = s.enter <= s.leave;
    const F enter = N::select(z0 > half, top.enter, N::select(z0 < -half, bottom.enter, s.enter));
    const F leave = N::select(z1 > half, top.leave, N::select(z1 < -half, bottom.leave, s.leave));
    s.enter = N::select(any, enter, N::c(1.0f));
    s.leave = N::select(any, leave, N::c(-1.0f));
    return s;
  }
  static INLINE Interval any(const ShapeRow& shape, const F* o, const F* d) {
    switch (shape.kind) {
      case KIND_BOX: return box(o, d, shape.size);
      case KIND_SPHERE: return ball(o, d, shape.size[0]);
      case KIND_CYLINDER: return cylinder(o, d, shape.size[0], shape.size[1]);
      default: return capsule(o, d, shape.size[0], shape.size[1]);
    }
  }
  // Outward unit normal at a point of the surface.
  static INLINE void normal(const ShapeRow& shape, const F* p, I side, F* n) {
    if (shape.kind == KIND_BOX) {
      for (int k = 0; k < 3; ++k)
        n[k] = N::select(side == 2 * k, N::c(-1.0f), N::select(side == 2 * k + 1, N::c(1.0f), N::c(0.0f)));
      return;
    }
    const float half = shape.kind == KIND_SPHERE ? 0.0f : shape.size[1];
    const F inside = L::max(L::min(p[2], N::c(half)), N::c(-half));
    n[0] = p[0];
    n[1] = p[1];
    n[2] = shape.kind == KIND_CYLINDER ? N::c(0.0f) : p[2] - inside;
    const F length = N::sqrt(L::max(L::dot(n, n), N::c(1e-30f)));
    for (int k = 0; k < 3; ++k) n[k] = n[k] / length;
    if (shape.kind != KIND_CYLINDER) return;
    const M end = side != 0;
    n[0] = N::select(end, N::c(0.0f), n[0]);
    n[1] = N::select(end, N::c(0.0f), n[1]);
    n[2] = N::select(side == 1, N::c(-1.0f), N::select(side == 2, N::c(1.0f), n[2]));
  }
};
