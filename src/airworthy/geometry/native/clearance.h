// The nearest surface of an environment to a point. Needs batch.h, distance.h. `closed` has a flag per shape: a mesh that encloses
// a volume. Equal distances: the lower instance number counts, then the lower face; nothing depends on the shape of a tree.
#define FAR_AWAY 1e30
#define EMPTY 1e300
struct Frame {
  V x, y, z, position;  // rows of the rotation, local to world
  double scale;
  FUNCTION Frame of(const InstanceRow& row) {
    const float* r = row.rotation;
    const V origin = {(double)row.position[0] + row.position_rest[0], (double)row.position[1] + row.position_rest[1],
                      (double)row.position[2] + row.position_rest[2]};
    return {{r[0], r[1], r[2]}, {r[3], r[4], r[5]}, {r[6], r[7], r[8]}, origin, row.scale};
  }
  INLINE V turn_to_local(const V& v) const { return x * v.x + y * v.y + z * v.z; }
  INLINE V turn_to_world(const V& v) const { return {x.dot(v), y.dot(v), z.dot(v)}; }
  INLINE V to_local(const V& p) const { return turn_to_local(p - position) * (1.0 / scale); }
};
struct Found {
  double distance;  // FAR_AWAY before anything is found
  V point, normal;  // world
  int instance, face;
};
struct Clearance {
  struct Visit {
    int node;
    double square;
  };
  static INLINE V corner(const float* p) { return {p[0], p[1], p[2]}; }
  // Squared distance of a point to a node's box; of a box that contains nothing EMPTY.
  static INLINE double square_to(const TreeNode& n, const V& p) {
    if (!(n.lower[0] <= n.upper[0])) return EMPTY;
    const double x = beyond(p.x, n.lower[0], n.upper[0]), y = beyond(p.y, n.lower[1], n.upper[1]),
                 z = beyond(p.z, n.lower[2], n.upper[2]);
    return x * x + y * y + z * z;
  }
  static INLINE double beyond(double p, double lower, double upper) {
    return p < lower ? lower - p : (p > upper ? p - upper : 0.0);
  }
  static INLINE bool holds(const ShapeRow& s, const V& p) {
    return p.x >= s.lower[0] && p.y >= s.lower[1] && p.z >= s.lower[2] && p.x <= s.upper[0] && p.y <= s.upper[1] && p.z <= s.upper[2];
  }
  // Pushes the children of a node, the nearer one to be taken first, except those farther than `limit` (squared).
  static INLINE int push(const TreeNode* nodes, int first, const V& p, double limit, Visit* stack, int top) {
    const double a = square_to(nodes[first], p), b = square_to(nodes[first + 1], p);
    const int far = a <= b;
    const Visit visits[2] = {{first, a}, {first + 1, b}};
    if (visits[far].square <= limit) stack[top++] = visits[far];
    if (visits[1 - far].square <= limit) stack[top++] = visits[1 - far];
    return top;
  }
  // Nearest triangle of a mesh within `limit` (shape frame); `best.distance` above the limit: none. Returns its face, else -1.
  FUNCTION int mesh(const Batch& batch, const ShapeRow& shape, const V& p, double limit, Near& best) {
    Visit stack[TREE_STACK];
    const TreeNode* nodes = batch.mesh_nodes;
    int face = -1, top = 0;
    best.distance = limit;
    const double begin = square_to(nodes[shape.root], p);
    if (begin <= limit * limit) stack[top++] = {shape.root, begin};
    while (top) {
      const Visit visit = stack[--top];
      if (visit.square > best.distance * best.distance) continue;
      const TreeNode& node = nodes[visit.node];
      if (node.count <= 0) {
        top = push(nodes, node.first, p, best.distance * best.distance, stack, top);
        continue;
      }
      for (int i = node.first; i < node.first + node.count; ++i) {
        const TriangleRow& t = batch.triangles[i];
        const Near n = Shapes::triangle(p, corner(t.a), corner(t.b), corner(t.c));
        if (n.distance > best.distance || (n.distance == best.distance && face >= 0 && t.face > face)) continue;
        best = n;
        face = t.face;
      }
    }
    return face;
  }
  // Whether the edge a-b, seen along z, passes p on its right, and upwards (1) or downwards (-1); 0: not at all. The order of
  // its ends does not change the arithmetic, so triangles with a common edge agree about it, whatever the rounding.
  static INLINE int passes(const V& p, const float* a, const float* b) {
    const bool up = (double)b[1] > p.y, from_below = !((double)a[1] > p.y);
    if (up != from_below) return 0;
    const float *low = up ? a : b, *high = up ? b : a;
    const double side = ((double)low[0] - p.x) * ((double)high[1] - p.y) - ((double)high[0] - p.x) * ((double)low[1] - p.y);
    return side > 0.0 ? (up ? 1 : -1) : 0;
  }
  // How often a closed mesh encloses a point: passages through its surface upwards from it, outwards less inwards.
  FUNCTION int winding(const Batch& batch, const ShapeRow& shape, const V& p) {
    int stack[TREE_STACK], top = 0, sum = 0;
    stack[top++] = shape.root;
    while (top) {
      const TreeNode& node = batch.mesh_nodes[stack[--top]];
      if (p.x < node.lower[0] || p.x > node.upper[0] || p.y < node.lower[1] || p.y > node.upper[1] || !(p.z <= node.upper[2])) continue;
      if (node.count <= 0) {
        stack[top++] = node.first;
        stack[top++] = node.first + 1;
        continue;
      }
      for (int i = node.first; i < node.first + node.count; ++i) {
        const TriangleRow& t = batch.triangles[i];
        const int turns = passes(p, t.a, t.b) + passes(p, t.b, t.c) + passes(p, t.c, t.a);
        if (turns == 0) continue;
        const V n = (corner(t.b) - corner(t.a)).cross(corner(t.c) - corner(t.a));
        // Above the point where the plane's height over it is positive.
        if (n.dot(corner(t.a) - p) * n.z > 0.0) sum += turns;
      }
    }
    return sum;
  }
  static INLINE bool encloses(const Batch& batch, const int* closed, const ShapeRow& shape, int number, const V& p) {
    return shape.kind == KIND_MESH && closed[number] && holds(shape, p) && winding(batch, shape, p) > 0;
  }
  // One instance: `found` is bettered where it is nearer.
  FUNCTION void instance(const Batch& batch, const int* closed, const InstanceRow& row, int number, const V& query, Found& found) {
    const ShapeRow& shape = batch.shapes[row.shape];
    const Frame frame = Frame::of(row);
    const V p = frame.to_local(query);
    Near near;
    int face = 0;
    if (shape.kind == KIND_MESH) {
      const bool inside = encloses(batch, closed, shape, row.shape, p);
      if (!inside && found.distance < 0.0) return;
      // A whisker more than the limit, lest rounding in the change of frames hide an equal distance.
      face = mesh(batch, shape, p, inside ? FAR_AWAY : found.distance / frame.scale * (1.0 + 1e-12), near);
      if (face < 0) return;
      if (inside) near = {-near.distance, near.point, near.normal * -1.0};
    } else {
      near = Shapes::solid(shape.kind, {shape.size[0], shape.size[1], shape.size[2]}, p);
    }
    const double distance = near.distance * frame.scale;
    if (distance > found.distance || (distance == found.distance && found.instance >= 0 && number > found.instance)) return;
    const V normal = frame.turn_to_world(near.normal);
    found = {distance, query - normal * distance, normal, number, face};
  }
  // Everything of an environment but instance `ignore`, within the distance that `found` begins with.
  FUNCTION void nearest(const Batch& batch, const int* closed, int env, int ignore, const V& p, Found& found) {
    Visit stack[TREE_STACK];
    for (int layer = 0; layer < (batch.dynamic_count > 0 ? 2 : 1); ++layer) {
      const TreeNode* nodes = batch.nodes(layer);
      const InstanceRow* rows = batch.instances(env, layer);
      int top = 0;
      const int root = batch.root(env, layer);
      stack[top++] = {root, square_to(nodes[root], p)};
      while (top) {
        const Visit visit = stack[--top];
        const double limit = found.distance > 0.0 ? found.distance * found.distance : 0.0;
        if (visit.square > limit || visit.square >= EMPTY) continue;
        const TreeNode& node = nodes[visit.node];
        if (node.count <= 0) {
          top = push(nodes, node.first, p, limit, stack, top);
        } else if (batch.first_number(layer) + node.first != ignore && (rows[node.first].flags & INSTANCE_COLLIDES)) {
          instance(batch, closed, rows[node.first], batch.first_number(layer) + node.first, p, found);
        }
      }
    }
  }
};
