// Distances to shapes in their own frames, in double precision: signed to the convex solids (negative inside), plain to triangles.
// `Near` is the nearest surface point, the distance, and the distance's gradient, which points from the surface to the query
// (outwards inside a solid). What is asked for is a point, or a segment p - axis ... p + axis: the core of a capsule. All these
// distances are convex functions of p, on which the sweep relies. Readable twin: airworthy.geometry.twins.
#if defined(__CUDA_ARCH__) || defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define FUNCTION static __device__
#else
#define FUNCTION static
#endif
struct V {
  double x, y, z;
  INLINE V operator+(const V& o) const { return {x + o.x, y + o.y, z + o.z}; }
  INLINE V operator-(const V& o) const { return {x - o.x, y - o.y, z - o.z}; }
  INLINE V operator*(double s) const { return {x * s, y * s, z * s}; }
  INLINE double dot(const V& o) const { return x * o.x + y * o.y + z * o.z; }
  INLINE V cross(const V& o) const { return {y * o.z - z * o.y, z * o.x - x * o.z, x * o.y - y * o.x}; }
  INLINE double norm() const { return ::sqrt(dot(*this)); }
};
struct Near {
  double distance;
  V point, normal;
};
struct Shapes {
  static INLINE double clamp(double x, double a, double b) { return x < a ? a : (x > b ? b : x); }
  static INLINE double copy_sign(double size, double sign) { return sign < 0.0 ? -size : size; }
  // Distance between two points; `fallback` is the normal where they coincide.
  static INLINE Near between(const V& surface, const V& query, const V& fallback) {
    const V d = query - surface;
    const double length = d.norm();
    return {length, surface, length > 1e-13 ? d * (1.0 / length) : fallback};
  }
  // Distance to a ball around `centre`.
  static INLINE Near ball(const V& centre, const V& query, double radius, const V& fallback) {
    const Near n = between(centre, query, fallback);
    return {n.distance - radius, centre + n.normal * radius, n.normal};
  }
  FUNCTION Near box(const V& p, const V& h) {
    const double q[3] = {::fabs(p.x) - h.x, ::fabs(p.y) - h.y, ::fabs(p.z) - h.z};
    if (q[0] > 0.0 || q[1] > 0.0 || q[2] > 0.0) {
      const V s = {clamp(p.x, -h.x, h.x), clamp(p.y, -h.y, h.y), clamp(p.z, -h.z, h.z)};
      const int a = q[0] > 0.0 ? 0 : (q[1] > 0.0 ? 1 : 2);
      const V face = {a == 0 ? copy_sign(1.0, p.x) : 0.0, a == 1 ? copy_sign(1.0, p.y) : 0.0, a == 2 ? copy_sign(1.0, p.z) : 0.0};
      return between(s, p, face);
    }
    if (q[0] >= q[1] && q[0] >= q[2]) return {q[0], {copy_sign(h.x, p.x), p.y, p.z}, {copy_sign(1.0, p.x), 0.0, 0.0}};
    if (q[1] >= q[2]) return {q[1], {p.x, copy_sign(h.y, p.y), p.z}, {0.0, copy_sign(1.0, p.y), 0.0}};
    return {q[2], {p.x, p.y, copy_sign(h.z, p.z)}, {0.0, 0.0, copy_sign(1.0, p.z)}};
  }
  FUNCTION Near cylinder(const V& p, double radius, double half) {
    const double r = ::sqrt(p.x * p.x + p.y * p.y);
    const V out = r > 1e-13 ? V{p.x / r, p.y / r, 0.0} : V{1.0, 0.0, 0.0}, up = {0.0, 0.0, copy_sign(1.0, p.z)};
    const double side = r - radius, end = ::fabs(p.z) - half;
    if (side > 0.0 && end > 0.0) return between(out * radius + up * half, p, up);
    if (side >= end) return {side, out * radius + V{0.0, 0.0, p.z}, out};
    return {end, {p.x, p.y, copy_sign(half, p.z)}, up};
  }
  FUNCTION Near capsule(const V& p, double radius, double half) {
    return ball({0.0, 0.0, clamp(p.z, -half, half)}, p, radius, {1.0, 0.0, 0.0});
  }
  FUNCTION Near solid(int kind, const V& size, const V& p) {
    if (kind == KIND_BOX) return box(p, size);
    if (kind == KIND_SPHERE) return ball({0.0, 0.0, 0.0}, p, size.x, {0.0, 0.0, 1.0});
    if (kind == KIND_CYLINDER) return cylinder(p, size.x, size.y);
    return capsule(p, size.x, size.y);
  }
  // The nearest point of the segment is found by halving: along it the distance is convex and its slope is normal . axis.
  FUNCTION Near solid_segment(int kind, const V& size, const V& p, const V& axis) {
    if (axis.dot(axis) == 0.0) return solid(kind, size, p);
    const Near begin = solid(kind, size, p - axis), end = solid(kind, size, p + axis);
    if (begin.normal.dot(axis) >= 0.0) return begin;
    if (end.normal.dot(axis) <= 0.0) return end;
    double a = -1.0, b = 1.0;
    Near middle = begin;
    for (int i = 0; i < 48; ++i) {
      const double u = 0.5 * (a + b);
      middle = solid(kind, size, p + axis * u);
      const double slope = middle.normal.dot(axis);
      if (slope == 0.0) break;
      (slope < 0.0 ? a : b) = u;
    }
    return middle;
  }
  static INLINE V on_edge(const V& p, const V& a, const V& b) {
    const V e = b - a;
    const double length = e.dot(e);
    return length > 0.0 ? a + e * clamp((p - a).dot(e) / length, 0.0, 1.0) : a;
  }
  static INLINE V nearer(const V& p, const V& a, const V& b) { return (b - p).dot(b - p) < (a - p).dot(a - p) ? b : a; }
  static INLINE V unit_or_up(const V& n) {
    const double length = n.norm();
    return length > 0.0 ? n * (1.0 / length) : V{0.0, 0.0, 1.0};
  }
  // True where the projection of p lies in the triangle whose (unnormalised) normal is n.
  static INLINE bool over(const V& p, const V& a, const V& b, const V& c, const V& n) {
    return n.dot(n) > 0.0 && (b - a).cross(p - a).dot(n) >= 0.0 && (c - b).cross(p - b).dot(n) >= 0.0 &&
           (a - c).cross(p - c).dot(n) >= 0.0;
  }
  FUNCTION Near triangle(const V& p, const V& a, const V& b, const V& c) {
    const V n = (b - a).cross(c - a), unit = unit_or_up(n);
    if (over(p, a, b, c, n)) {
      const double height = unit.dot(p - a);
      return {::fabs(height), p - unit * height, height < 0.0 ? unit * -1.0 : unit};
    }
    const V s = nearer(p, nearer(p, on_edge(p, a, b), on_edge(p, b, c)), on_edge(p, c, a));
    return between(s, p, unit);
  }
  // Nearest points of two segments, the first p + axis * u, u in [-1, 1] (Ericson, Real-Time Collision Detection, 5.1.9).
  FUNCTION Near edge_segment(const V& a, const V& b, const V& p, const V& axis, const V& fallback) {
    const V d = axis * 2.0, e = b - a, r = p - axis - a;
    const double dd = d.dot(d), ee = e.dot(e), er = e.dot(r), de = d.dot(e), dr = d.dot(r);
    if (ee <= 0.0) return between(a, on_edge(a, p - axis, p + axis), fallback);
    const double flat = dd * ee - de * de;
    double s = flat > 1e-14 * dd * ee ? clamp((de * er - dr * ee) / flat, 0.0, 1.0) : 0.0;
    const double t = clamp((de * s + er) / ee, 0.0, 1.0);
    s = clamp((de * t - dr) / dd, 0.0, 1.0);
    return between(a + e * t, p - axis + d * s, fallback);
  }
  FUNCTION Near triangle_segment(const V& p, const V& axis, const V& a, const V& b, const V& c) {
    if (axis.dot(axis) == 0.0) return triangle(p, a, b, c);
    const V n = (b - a).cross(c - a), unit = unit_or_up(n), side = unit.dot(p - a) < 0.0 ? unit * -1.0 : unit;
    const V begin = p - axis, end = p + axis;
    const double first = unit.dot(begin - a), last = unit.dot(end - a);
    if ((first < 0.0) != (last < 0.0)) {
      const V through = begin + (end - begin) * (first / (first - last));
      if (over(through, a, b, c, n)) return {0.0, through, side};
    }
    Near best = triangle(begin, a, b, c);
    const Near others[4] = {triangle(end, a, b, c), edge_segment(a, b, p, axis, side), edge_segment(b, c, p, axis, side),
                            edge_segment(c, a, p, axis, side)};
    for (int i = 0; i < 4; ++i)
      if (others[i].distance < best.distance) best = others[i];
    return best;
  }
};
