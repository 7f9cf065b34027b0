// Boxes and cylinders in motion against what can be hit, in double precision. A body is a core, box or cylinder, that a ball of
// `margin` goes around: its faces are where they should be, its edges are rounded. Distances are those of Gilbert, Johnson and
// Keerthi (1988) between the core and a solid or triangle; first contacts by conservative advancement (Mirtich 1996), whose step is
// bounded by how fast any point of the body can approach the plane that separates the two, rotation included: nothing is passed
// through. Needs batch.h, distance.h, clearance.h. Readable twin: tests/geometry/test_convex.py, by constrained minimisation.
struct Core {
  int kind;  // KIND_BOX or KIND_CYLINDER (axis z)
  V half;    // of the core; cylinder: radius, radius, half height
  V centre;  // from the centre of mass, body frame
  double margin, reach;  // reach: farthest point of the body, margin included, from the centre of mass
};
struct Attitude {  // columns: axes of the body in the world
  V x, y, z;
  INLINE V turn(const V& v) const { return x * v.x + y * v.y + z * v.z; }
  INLINE V back(const V& v) const { return {x.dot(v), y.dot(v), z.dot(v)}; }
  FUNCTION Attitude of(const double* q) {
    const double a = q[0], b = q[1], c = q[2], w = q[3];
    return {{1.0 - 2.0 * (b * b + c * c), 2.0 * (a * b + c * w), 2.0 * (a * c - b * w)},
            {2.0 * (a * b - c * w), 1.0 - 2.0 * (a * a + c * c), 2.0 * (b * c + a * w)},
            {2.0 * (a * c + b * w), 2.0 * (b * c - a * w), 1.0 - 2.0 * (a * a + b * b)}};
  }
};
struct Motion {  // of a body's centre of mass, and its attitude, which turns about one axis
  V start, displacement;
  double from[4], to[4];
  V axis;        // of the rotation, world; 0: none
  double speed, slow;  // bounds of the angle turned per fraction [rad]
  FUNCTION Motion of(const double* p, const double* q, const double* p1, const double* q1) {
    Motion w = {{p[0], p[1], p[2]}, {p1[0] - p[0], p1[1] - p[1], p1[2] - p[2]}, {}, {}, {0.0, 0.0, 0.0}, 0.0, 0.0};
    double dot = 0.0;
    for (int i = 0; i < 4; ++i) {
      w.from[i] = q[i];
      w.to[i] = q1[i];
      dot += q[i] * q1[i];
    }
    // The vector part of q1 times the conjugate of q: the axis times the sine of half the angle.
    const V v = {q[3] * q1[0] - q1[3] * q[0] - (q1[1] * q[2] - q1[2] * q[1]), q[3] * q1[1] - q1[3] * q[1] - (q1[2] * q[0] - q1[0] * q[2]),
                 q[3] * q1[2] - q1[3] * q[2] - (q1[0] * q[1] - q1[1] * q[0])};
    const double sine = v.norm();
    if (sine > 1e-15) {
      w.axis = v * (1.0 / sine);
      // Linear interpolation between quaternions is fastest in its middle, 4 tan(angle / 4), and slowest at its ends, 2 sin(angle / 2).
      const double half = ::atan2(sine, dot);
      w.speed = 4.0 * ::tan(0.5 * half) * (1.0 + 1e-9) + 1e-12;
      w.slow = 2.0 * sine * (1.0 - 1e-9);
    }
    return w;
  }
  INLINE V position(double t) const { return start + displacement * t; }
  FUNCTION Attitude attitude(const Motion& w, double t) {
    double q[4], square = 0.0;
    for (int i = 0; i < 4; ++i) {
      q[i] = w.from[i] + t * (w.to[i] - w.from[i]);
      square += q[i] * q[i];
    }
    const double scale = 1.0 / ::sqrt(square);
    for (int i = 0; i < 4; ++i) q[i] *= scale;
    return Attitude::of(q);
  }
};
struct Obstacle {  // a solid or triangle, in the world, from an origin near the body
  int kind;
  V lower, upper;  // box: what of it can matter; cylinder, capsule: radius and half length in `upper`
  V corner[3];
  Frame frame;
  double round;  // sphere and capsule: radius about the core
  FUNCTION V support(const Obstacle& o, const V& d) {
    if (o.kind == KIND_MESH) {
      const double a = o.corner[0].dot(d), b = o.corner[1].dot(d), c = o.corner[2].dot(d);
      return a >= b && a >= c ? o.corner[0] : (b >= c ? o.corner[1] : o.corner[2]);
    }
    const V l = o.frame.turn_to_local(d);
    V p = {0.0, 0.0, 0.0};
    if (o.kind == KIND_BOX) {
      p = {l.x < 0.0 ? o.lower.x : o.upper.x, l.y < 0.0 ? o.lower.y : o.upper.y, l.z < 0.0 ? o.lower.z : o.upper.z};
    } else if (o.kind == KIND_CYLINDER) {
      const double r = ::sqrt(l.x * l.x + l.y * l.y);
      p = {r > 0.0 ? o.upper.x * l.x / r : 0.0, r > 0.0 ? o.upper.x * l.y / r : 0.0, l.z < 0.0 ? -o.upper.y : o.upper.y};
    } else if (o.kind == KIND_CAPSULE) {
      p.z = l.z < 0.0 ? -o.upper.y : o.upper.y;
    }
    return o.frame.turn_to_world(p) * o.frame.scale + o.frame.position;
  }
};
struct Apart {
  double distance;  // of the core from the obstacle's surface; negative: how deep the core is in, along the normal
  V normal;         // world, from the obstacle to the body
  V point;          // of the core, from the origin
};
#define SIDES 16
#define HALF_COS 0.9807852804032304  // of half the angle between the corners of a prism of 16 sides
#define HALF_SIN 0.19509032201612828
struct Convex {
  enum { NONE = 2 };
  static INLINE V core_support(const Core& c, const Attitude& a, const V& d) {  // from the core's centre, world
    const V l = a.back(d);
    if (c.kind == KIND_BOX)
      return a.turn({Shapes::copy_sign(c.half.x, l.x), Shapes::copy_sign(c.half.y, l.y), Shapes::copy_sign(c.half.z, l.z)});
    const double r = ::sqrt(l.x * l.x + l.y * l.y);
    return a.turn({r > 0.0 ? c.half.x * l.x / r : 0.0, r > 0.0 ? c.half.x * l.y / r : 0.0, Shapes::copy_sign(c.half.z, l.z)});
  }
  struct Simplex {
    int count;
    V w[4], a[4];  // differences and the core's points
    double u[4];   // weights of the nearest point
  };
  static INLINE void keep(const Simplex& s, const int* which, const double* weight, int n, Simplex& out) {
    out.count = 0;
    for (int k = 0; k < n; ++k) {
      if (!(weight[k] > 0.0)) continue;
      out.w[out.count] = s.w[which[k]];
      out.a[out.count] = s.a[which[k]];
      out.u[out.count++] = weight[k];
    }
  }
  FUNCTION double segment(const Simplex& s, int i, int j, Simplex& out) {
    const V e = s.w[j] - s.w[i];
    const double length = e.dot(e), t = length > 0.0 ? Shapes::clamp(-s.w[i].dot(e) / length, 0.0, 1.0) : 0.0;
    const int which[2] = {i, j};
    const double weight[2] = {1.0 - t, t};
    keep(s, which, weight, 2, out);
    const V p = s.w[i] * (1.0 - t) + s.w[j] * t;
    return p.dot(p);
  }
  // Nearest point of a triangle to the origin (Ericson, Real-Time Collision Detection, 5.1.5); returns its square.
  FUNCTION double face(const Simplex& s, int i, int j, int k, Simplex& out) {
    const V &a = s.w[i], &b = s.w[j], &c = s.w[k], n = (b - a).cross(c - a);
    const double square = n.dot(n);
    const double wa = b.cross(c).dot(n), wb = c.cross(a).dot(n), wc = a.cross(b).dot(n);
    if (square > 0.0 && wa >= 0.0 && wb >= 0.0 && wc >= 0.0) {
      const double sum = wa + wb + wc;
      const int which[3] = {i, j, k};
      const double weight[3] = {wa / sum, wb / sum, wc / sum};
      keep(s, which, weight, 3, out);
      const double height = a.dot(n);
      return height * height / square;
    }
    Simplex other;
    double best = segment(s, i, j, out), next = segment(s, j, k, other);
    if (next < best) {
      best = next;
      out = other;
    }
    next = segment(s, k, i, other);
    if (next < best) {
      best = next;
      out = other;
    }
    return best;
  }
  // Reduces to the smallest part that holds the nearest point; false: the origin is inside.
  FUNCTION bool reduce(Simplex& s) {
    Simplex best;
    if (s.count == 1) {
      s.u[0] = 1.0;
      return true;
    }
    if (s.count == 2) {
      segment(s, 0, 1, best);
    } else if (s.count == 3) {
      face(s, 0, 1, 2, best);
    } else {
      const int faces[4][4] = {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 3, 1}, {1, 2, 3, 0}};
      double least = 1e300;
      for (int f = 0; f < 4; ++f) {
        const V &a = s.w[faces[f][0]], n = (s.w[faces[f][1]] - a).cross(s.w[faces[f][2]] - a);
        const double side = n.dot(s.w[faces[f][3]] - a), mine = -n.dot(a);
        // The origin is on the inner side; a flat tetrahedron has none.
        if (side * mine > 0.0 && side * side > 1e-16 * n.dot(n)) continue;
        Simplex found;
        const double square = face(s, faces[f][0], faces[f][1], faces[f][2], found);
        if (square < least) {
          least = square;
          best = found;
        }
      }
      if (least == 1e300) return false;
    }
    s = best;
    return true;
  }
  // Distance between a core, `centre` being that of the core from the origin, and an obstacle.
  FUNCTION Apart apart(const Core& core, const Attitude& turn, const V& centre, const Obstacle& o) {
    Simplex s;
    s.count = 1;
    V v = centre - (o.kind == KIND_MESH ? (o.corner[0] + o.corner[1] + o.corner[2]) * (1.0 / 3.0) : o.frame.position);
    if (!(v.dot(v) > 0.0)) v = {0.0, 0.0, 1.0};
    s.a[0] = centre + core_support(core, turn, v * -1.0);
    s.w[0] = s.a[0] - Obstacle::support(o, v);
    s.u[0] = 1.0;
    v = s.w[0];
    double square = v.dot(v);
    bool inside = false;
    for (int i = 0; i < 64; ++i) {
      const V a = centre + core_support(core, turn, v * -1.0), w = a - Obstacle::support(o, v);
      // No point of the difference is nearer than this plane says.
      if (square - v.dot(w) <= 1e-12 * square + 1e-14 * ::sqrt(square) || square < 1e-20) break;
      Simplex next = s;
      next.w[s.count] = w;
      next.a[s.count] = a;
      next.count = s.count + 1;
      if (!reduce(next)) {
        inside = true;
        break;
      }
      V nearest = {0.0, 0.0, 0.0};
      for (int k = 0; k < next.count; ++k) nearest = nearest + next.w[k] * next.u[k];
      const double less = nearest.dot(nearest);
      if (!(less < square)) break;  // as near as rounding allows
      s = next;
      v = nearest;
      square = less;
    }
    const double length = ::sqrt(square);
    if (inside || length < 1e-9) return within(core, turn, centre, o);
    V point = {0.0, 0.0, 0.0};
    for (int k = 0; k < s.count; ++k) point = point + s.a[k] * s.u[k];
    return {length - o.round, v * (1.0 / length), point};
  }
  // The core is in the obstacle: out along the path that is shortest for its centre.
  FUNCTION Apart within(const Core& core, const Attitude& turn, const V& centre, const Obstacle& o) {
    V normal;
    double distance;
    if (o.kind == KIND_MESH) {
      const V n = Shapes::unit_or_up((o.corner[1] - o.corner[0]).cross(o.corner[2] - o.corner[0]));
      distance = n.dot(centre - o.corner[0]);
      normal = distance < 0.0 ? n * -1.0 : n;
      distance = ::fabs(distance);
    } else {
      const V size = o.kind == KIND_BOX ? o.upper : (o.kind == KIND_SPHERE ? V{o.round / o.frame.scale, 0.0, 0.0} : o.upper);
      const Near near = Shapes::solid(o.kind, size, o.frame.to_local(centre));
      normal = o.frame.turn_to_world(near.normal);
      distance = near.distance * o.frame.scale;
    }
    const V point = core_support(core, turn, normal * -1.0);
    const double deep = distance + normal.dot(point);
    return {deep < 0.0 ? deep : 0.0, normal, centre + point};
  }
  struct Meet {
    double fraction;  // NONE: nothing yet
    Apart apart;      // there
    V point;          // on the surface, world
    int instance, face;
  };
  struct Ask {  // a body in motion
    const Core* core;
    const Motion* motion;
    double gap, leaving, shallow;
  };
  // Fraction that a core can go on before any of it comes `room` nearer to a plane of normal `n`, from below; NONE: all of the motion.
  // What is tested are corners whose hull holds the core: those of a box, and of prisms around a cylinder's rims that have a side
  // where the cylinder is nearest to the plane. A corner r turns by the angle a about the axis k: it falls by at most
  // a b + a^2 c / 2 with b = -n.(k x r) and c = n.(r - k (k.r)), as sin a < a where b > 0, and sin a > a - a^3 / 6 where not.
  FUNCTION double ahead(const Core& core, const Attitude& turn, const V& n, const Motion& w, double room) {
    const V low = core_support(core, turn, n * -1.0), local = turn.back(n), centre = turn.turn(core.centre);
    const V across = w.axis.cross(n), out = n - w.axis * n.dot(w.axis);
    const double least = n.dot(low), falling = -n.dot(w.displacement), flat = ::sqrt(local.x * local.x + local.y * local.y);
    const bool box = core.kind == KIND_BOX;
    const int corners = box ? 8 : 2 * SIDES;
    double c = flat > 0.0 ? local.x / flat : 1.0, s = flat > 0.0 ? local.y / flat : 0.0, first = NONE;
    if (!box) {  // to the corner next to the nearest point
      const double turned = c * HALF_COS - s * HALF_SIN;
      s = s * HALF_COS + c * HALF_SIN;
      c = turned;
    }
    for (int i = 0; i < corners; ++i) {
      V p = {i & 1 ? core.half.x : -core.half.x, i & 2 ? core.half.y : -core.half.y, i & 4 ? core.half.z : -core.half.z};
      if (!box) {
        p = {c * core.half.x / HALF_COS, s * core.half.x / HALF_COS, i & 1 ? core.half.z : -core.half.z};
        if (i & 1) {
          const double turned = c * (HALF_COS * HALF_COS - HALF_SIN * HALF_SIN) - s * (2.0 * HALF_COS * HALF_SIN);
          s = s * (HALF_COS * HALF_COS - HALF_SIN * HALF_SIN) + c * (2.0 * HALF_COS * HALF_SIN);
          c = turned;
        }
      }
      const V corner = turn.turn(p), r = centre + corner;
      // -n.(k x r) = r.(k x n).
      double b = r.dot(across), bend = r.dot(out), over = n.dot(corner) - least;
      over = room + (over > 0.0 ? over : 0.0);
      bend = bend > 0.0 ? bend : 0.0;
      if (b < 0.0) {
        if (w.speed < 1.0) bend -= b / 3.0;
        else b = 0.0;
      }
      const double along = falling + (b > 0.0 ? w.speed : w.slow) * b, square = 0.5 * w.speed * w.speed * bend;
      const double root = along + ::sqrt(along * along + 4.0 * square * over);
      const double t = root > 0.0 ? 2.0 * over / root : (double)NONE;
      first = t < first ? t : first;
    }
    return first;
  }
  // First contact with one obstacle within `limit`; `o` is from the motion's start.
  FUNCTION bool first(const Ask& ask, const Obstacle& o, double limit, double& t, Apart& n) {
    const Core& core = *ask.core;
    const Motion& w = *ask.motion;
    Attitude turn = Motion::attitude(w, 0.0);
    double wanted = core.margin + ask.gap;
    t = 0.0;
    n = apart(core, turn, turn.turn(core.centre), o);
    if (n.distance <= wanted + 1e-9) {  // touches at its start: what does not go further in is led as if it did not touch
      const V arm = turn.back(n.point), end = Motion::attitude(w, 1.0).turn(arm) + w.displacement;
      const double inward = n.normal.dot(n.point - end), smaller = n.distance - 2.0 * ask.leaving;
      if (inward > ask.leaving || wanted - n.distance > ask.shallow || !(smaller > 0.0)) return true;
      wanted = smaller;
    } else if (w.displacement.norm() + w.speed * core.reach <= ask.leaving) {
      return false;
    }
    for (int i = 0; i < 200; ++i) {
      const double room = n.distance - wanted;
      if (room <= 1e-9) return true;
      t += ahead(core, turn, n.normal, w, room);
      if (!(t <= limit)) return false;
      turn = Motion::attitude(w, t);
      n = apart(core, turn, w.displacement * t + turn.turn(core.centre), o);
    }
    return true;  // it grazes, and is as good as touching
  }
  static INLINE void better(const Ask& ask, const Obstacle& o, int instance, int face, Meet& hit) {
    double t;
    Apart n;
    if (!first(ask, o, hit.fraction < 1.0 ? hit.fraction : 1.0, t, n)) return;
    if (t > hit.fraction || (t == hit.fraction && n.distance > hit.apart.distance)) return;
    if (t == hit.fraction && n.distance == hit.apart.distance && (instance > hit.instance || (instance == hit.instance && face > hit.face)))
      return;
    hit = {t, n, ask.motion->start + n.point - n.normal * n.distance, instance, face};
  }
  // One instance that collides. The body stays within `radius` of `middle` (world).
  FUNCTION void instance(const Batch& batch, const int* closed, const InstanceRow& row, int number, const Ask& ask, const V& middle,
                         double radius, Meet& hit) {
    const ShapeRow& shape = batch.shapes[row.shape];
    Obstacle o;
    o.kind = shape.kind;
    o.frame = Frame::of(row);
    const double shrink = 1.0 / o.frame.scale;
    const V m = o.frame.to_local(middle), start = o.frame.to_local(ask.motion->start);
    const double r = radius * shrink * (1.0 + 1e-9);
    o.frame.position = o.frame.position - ask.motion->start;
    o.round = 0.0;
    if (shape.kind != KIND_MESH) {
      o.lower = {0.0, 0.0, 0.0};
      o.upper = {shape.size[0], shape.size[1], shape.size[2]};
      if (shape.kind == KIND_BOX) {
        const V h = o.upper;
        if (::fabs(m.x) > h.x + r || ::fabs(m.y) > h.y + r || ::fabs(m.z) > h.z + r) return;
        o.lower = h * -1.0;
      } else if (shape.kind != KIND_CYLINDER) {
        o.round = shape.size[0] * o.frame.scale;
      }
      better(ask, o, number, 0, hit);
      return;
    }
    if (Clearance::encloses(batch, closed, shape, row.shape, start)) {
      Near near;
      const int inside = Clearance::mesh(batch, shape, start, FAR_AWAY, near);
      const Attitude turn = Motion::attitude(*ask.motion, 0.0);
      const V normal = o.frame.turn_to_world(near.normal) * -1.0;
      const V point = turn.turn(ask.core->centre) + core_support(*ask.core, turn, normal * -1.0);
      const double distance = -near.distance * o.frame.scale + normal.dot(point);
      if (hit.fraction > 0.0 || distance < hit.apart.distance)
        hit = {0.0, {distance, normal, point}, ask.motion->start + point - normal * distance, number, inside};
      return;
    }
    int stack[TREE_STACK], top = 0;
    stack[top++] = shape.root;
    while (top) {
      const TreeNode& node = batch.mesh_nodes[stack[--top]];
      if (Clearance::square_to(node, m) > r * r) continue;
      if (node.count <= 0) {
        stack[top++] = node.first;
        stack[top++] = node.first + 1;
        continue;
      }
      for (int i = node.first; i < node.first + node.count; ++i) {
        const TriangleRow& t = batch.triangles[i];
        const V corners[3] = {Clearance::corner(t.a), Clearance::corner(t.b), Clearance::corner(t.c)};
        if (Shapes::triangle(m, corners[0], corners[1], corners[2]).distance > r) continue;
        for (int k = 0; k < 3; ++k) o.corner[k] = o.frame.turn_to_world(corners[k]) * o.frame.scale + o.frame.position;
        better(ask, o, number, t.face, hit);
      }
    }
  }
  // Everything of an environment but instance `ignore`.
  FUNCTION void earliest(const Batch& batch, const int* closed, int env, int ignore, const Ask& ask, Meet& hit) {
    const V middle = ask.motion->position(0.5);
    const double radius = ask.core->reach + 0.5 * ask.motion->displacement.norm() + ask.gap + 1e-7;
    for (int layer = 0; layer < (batch.dynamic_count > 0 ? 2 : 1); ++layer) {
      const TreeNode* nodes = batch.nodes(layer);
      const InstanceRow* rows = batch.instances(env, layer);
      int stack[TREE_STACK], top = 0;
      stack[top++] = batch.root(env, layer);
      while (top) {
        const TreeNode& node = nodes[stack[--top]];
        if (Clearance::square_to(node, middle) > radius * radius) continue;
        const int number = batch.first_number(layer) + node.first;
        if (node.count <= 0) {
          stack[top++] = node.first;
          stack[top++] = node.first + 1;
        } else if (number != ignore && (rows[node.first].flags & INSTANCE_COLLIDES)) {
          instance(batch, closed, rows[node.first], number, ask, middle, radius, hit);
        }
      }
    }
  }
};
