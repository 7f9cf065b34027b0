// First contact of a moving sphere or capsule with a solid or triangle. The distance of a moving body to a convex one is a convex
// function of the fraction moved, so its tangent lies below it: Newton's steps from the start approach the first contact from
// before it and never pass it, however thin the thing hit is. Where they only graze, the gap still falls fourfold per step. Where
// the distance no longer falls there is no contact. Needs batch.h, distance.h, clearance.h.
struct Moving {
  V start, displacement, axis;  // centre at fraction 0, motion to fraction 1, half of the core; in the frame of the shape
  double radius;
};
struct Touch {
  double fraction;  // NO_TOUCH: none
  Near near;        // at that fraction
};
struct Hit {
  double fraction, distance;  // 1 and FAR_AWAY before anything is hit; distance: of the core from the surface at that fraction
  V point, normal;            // world; from the surface to the body
  int instance, face;
};
struct Sweep {
  enum { NO_TOUCH = 2 };
  struct Visit {
    int node;
    double entry;
  };
  static INLINE Near at(int kind, const V& size, const V* corner, const V& p, const V& axis) {
    return kind == KIND_MESH ? Shapes::triangle_segment(p, axis, corner[0], corner[1], corner[2])
                             : Shapes::solid_segment(kind, size, p, axis);
  }
  static INLINE Touch none() { return {(double)NO_TOUCH, {0.0, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}}}; }
  // `limit`: contacts beyond this fraction do not matter. `slack`: gap that counts as contact.
  FUNCTION Touch first(int kind, const V& size, const V* corner, const Moving& m, double limit, double slack) {
    double t = 0.0;
    Near n = at(kind, size, corner, m.start, m.axis);
    // Grazing needs some twenty steps; where rounding keeps a hundred from ending, the body is as good as touching.
    for (int i = 0; i < 100; ++i) {
      const double gap = n.distance - m.radius, slope = n.normal.dot(m.displacement);
      if (gap <= slack) break;
      if (!(slope < 0.0)) return none();
      t -= gap / slope;
      if (!(t <= limit)) return none();
      n = at(kind, size, corner, m.start + m.displacement * t, m.axis);
    }
    // A core that lies on a triangle leaves it on the side from which it comes.
    if (kind == KIND_MESH && n.distance < 1e-12 && n.normal.dot(m.displacement) > 0.0) n.normal = n.normal * -1.0;
    return {t, n};
  }
  // Where along one axis the path enters and leaves [lower, upper] grown by `reach`; false: never.
  static INLINE bool slab(double start, double displacement, double lower, double upper, double reach, double& enter, double& leave) {
    const double a = lower - reach - start, b = upper + reach - start;
    if (displacement == 0.0) return a <= 0.0 && b >= 0.0;
    const double ta = a / displacement, tb = b / displacement;
    enter = ta < tb ? (ta > enter ? ta : enter) : (tb > enter ? tb : enter);
    leave = ta < tb ? (tb < leave ? tb : leave) : (ta < leave ? ta : leave);
    return enter <= leave;
  }
  // Fraction at which the body's box enters a node's box, else EMPTY.
  static INLINE double entry(const TreeNode& n, const Moving& m, const V& reach) {
    double enter = 0.0, leave = 1.0;
    const bool meets = n.lower[0] <= n.upper[0] && slab(m.start.x, m.displacement.x, n.lower[0], n.upper[0], reach.x, enter, leave) &&
                       slab(m.start.y, m.displacement.y, n.lower[1], n.upper[1], reach.y, enter, leave) &&
                       slab(m.start.z, m.displacement.z, n.lower[2], n.upper[2], reach.z, enter, leave);
    return meets ? enter : EMPTY;
  }
  // Half of the body's box, a little larger than the gap that counts as contact and the rounding of entries.
  static INLINE V reach_of(const Moving& m, double slack) {
    const double r = m.radius + 4.0 * slack + 1e-12 * (m.start.norm() + m.displacement.norm());
    return {::fabs(m.axis.x) + r, ::fabs(m.axis.y) + r, ::fabs(m.axis.z) + r};
  }
  static INLINE int push(const TreeNode* nodes, int first, const Moving& m, const V& reach, double limit, Visit* stack, int top) {
    const double a = entry(nodes[first], m, reach), b = entry(nodes[first + 1], m, reach);
    const int far = a <= b;
    const Visit visits[2] = {{first, a}, {first + 1, b}};
    if (visits[far].entry <= limit) stack[top++] = visits[far];
    if (visits[1 - far].entry <= limit) stack[top++] = visits[1 - far];
    return top;
  }
  // Earlier counts first; then, for bodies that start in contact, the deeper; then the lower instance and face.
  static INLINE void better(const Touch& t, const Frame& frame, const Moving& m, const Moving& query, int instance, int face, Hit& hit) {
    const double distance = t.near.distance * frame.scale;
    if (t.fraction > hit.fraction || t.fraction == (double)NO_TOUCH) return;
    if (t.fraction == hit.fraction) {
      if (distance > hit.distance) return;
      if (distance == hit.distance && (instance > hit.instance || (instance == hit.instance && face > hit.face))) return;
    }
    // The point relative to the moving centre: rounding in large coordinates then cancels.
    const V from = frame.turn_to_world(t.near.point - m.start - m.displacement * t.fraction) * frame.scale;
    hit = {t.fraction, distance, query.start + query.displacement * t.fraction + from, frame.turn_to_world(t.near.normal), instance, face};
  }
  FUNCTION void instance(const Batch& batch, const int* closed, const InstanceRow& row, int number, const Moving& query, Hit& hit) {
    const ShapeRow& shape = batch.shapes[row.shape];
    const Frame frame = Frame::of(row);
    const double shrink = 1.0 / frame.scale, slack = 1e-9 * shrink;
    const Moving m = {frame.to_local(query.start), frame.turn_to_local(query.displacement) * shrink, frame.turn_to_local(query.axis) * shrink,
                      query.radius * shrink};
    const V size = {shape.size[0], shape.size[1], shape.size[2]};
    if (shape.kind != KIND_MESH) {
      better(first(shape.kind, size, 0, m, hit.fraction, slack), frame, m, query, number, 0, hit);
      return;
    }
    if (Clearance::encloses(batch, closed, shape, row.shape, m.start)) {
      Near near;
      const int face = Clearance::mesh(batch, shape, m.start, FAR_AWAY, near);
      better({0.0, {-near.distance, near.point, near.normal * -1.0}}, frame, m, query, number, face, hit);
      return;
    }
    Visit stack[TREE_STACK];
    const V reach = reach_of(m, slack);
    int top = 0;
    stack[top++] = {shape.root, entry(batch.mesh_nodes[shape.root], m, reach)};
    while (top) {
      const Visit visit = stack[--top];
      if (visit.entry > hit.fraction) continue;
      const TreeNode& node = batch.mesh_nodes[visit.node];
      if (node.count <= 0) {
        top = push(batch.mesh_nodes, node.first, m, reach, hit.fraction, stack, top);
        continue;
      }
      for (int i = node.first; i < node.first + node.count; ++i) {
        const TriangleRow& t = batch.triangles[i];
        const V corners[3] = {Clearance::corner(t.a), Clearance::corner(t.b), Clearance::corner(t.c)};
        better(first(KIND_MESH, size, corners, m, hit.fraction, slack), frame, m, query, number, t.face, hit);
      }
    }
  }
  // Everything of an environment but instance `ignore`.
  FUNCTION void earliest(const Batch& batch, const int* closed, int env, int ignore, const Moving& query, Hit& hit) {
    Visit stack[TREE_STACK];
    const V reach = reach_of(query, 1e-9);
    for (int layer = 0; layer < (batch.dynamic_count > 0 ? 2 : 1); ++layer) {
      const TreeNode* nodes = batch.nodes(layer);
      const InstanceRow* rows = batch.instances(env, layer);
      const int root = batch.root(env, layer);
      int top = 0;
      stack[top++] = {root, entry(nodes[root], query, reach)};
      while (top) {
        const Visit visit = stack[--top];
        if (visit.entry > hit.fraction) continue;
        const TreeNode& node = nodes[visit.node];
        if (node.count <= 0) {
          top = push(nodes, node.first, query, reach, hit.fraction, stack, top);
        } else if (batch.first_number(layer) + node.first != ignore && (rows[node.first].flags & INSTANCE_COLLIDES)) {
          instance(batch, closed, rows[node.first], batch.first_number(layer) + node.first, query, hit);
        }
      }
    }
  }
};
