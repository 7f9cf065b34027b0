// Which cells of a grid are occupied. Needs batch.h, distance.h, clearance.h.
struct Cube {
  V centre, axis[3];  // in the frame of the shape; half edges
};
struct Overlap {
  static INLINE double least(double a, double b) { return a < b ? a : b; }
  static INLINE double most(double a, double b) { return a > b ? a : b; }
  // Is there a plane across direction d with the triangle on one side and the cube on the other?
  static INLINE bool parted(const Cube& k, const V& a, const V& b, const V& c, const V& d) {
    const double reach = ::fabs(k.axis[0].dot(d)) + ::fabs(k.axis[1].dot(d)) + ::fabs(k.axis[2].dot(d));
    const double p = a.dot(d), q = b.dot(d), r = c.dot(d);
    return least(p, least(q, r)) > reach || most(p, most(q, r)) < -reach;
  }
  // Touching counts. Separating axes: three of the cube, the triangle's normal, nine products of edges (Akenine-Moeller, 2001).
  FUNCTION bool triangle(const Cube& k, const V* corner) {
    const V a = corner[0] - k.centre, b = corner[1] - k.centre, c = corner[2] - k.centre;
    const V edges[3] = {b - a, c - b, a - c};
    if (parted(k, a, b, c, edges[0].cross(edges[1]))) return false;
    for (int i = 0; i < 3; ++i) {
      if (parted(k, a, b, c, k.axis[i])) return false;
      for (int j = 0; j < 3; ++j)
        if (parted(k, a, b, c, k.axis[i].cross(edges[j]))) return false;
    }
    return true;
  }
  // Touching counts. Projecting onto the solid and back onto the cube in turn ends in a common point, or with a tangent plane of the solid that
  // has the whole cube before it. What fifty rounds leave open is a touch.
  FUNCTION bool solid(const Cube& k, int kind, const V& size) {
    V x = k.centre;
    for (int i = 0; i < 50; ++i) {
      const Near n = Shapes::solid(kind, size, x);
      if (n.distance <= 0.0) return true;
      double nearest = n.normal.dot(k.centre - n.point);
      for (int j = 0; j < 3; ++j) nearest -= ::fabs(n.normal.dot(k.axis[j]));
      if (nearest > 0.0) return false;
      V y = k.centre;
      for (int j = 0; j < 3; ++j)
        y = y + k.axis[j] * Shapes::clamp((n.point - k.centre).dot(k.axis[j]) / k.axis[j].dot(k.axis[j]), -1.0, 1.0);
      x = y;
    }
    return true;
  }
  static INLINE bool apart(const TreeNode& n, const V& p, const V& half) {
    return !(n.lower[0] <= n.upper[0]) || n.lower[0] > p.x + half.x || n.upper[0] < p.x - half.x || n.lower[1] > p.y + half.y ||
           n.upper[1] < p.y - half.y || n.lower[2] > p.z + half.z || n.upper[2] < p.z - half.z;
  }
  // What has an inside must reach a thousandth of a cell into it, so that a wall that ends where a cell begins leaves it free. An
  // open sheet has no inside and may lie just between two cells: it then belongs to the upper one.
  FUNCTION bool instance(const Batch& batch, const int* closed, const InstanceRow& row, const V& centre, double half) {
    const ShapeRow& shape = batch.shapes[row.shape];
    const Frame frame = Frame::of(row);
    const bool sheet = shape.kind == KIND_MESH && !closed[row.shape];
    const double margin = 2e-3 * half, edge = (sheet ? half : half - margin) / frame.scale;
    const V moved = sheet ? centre - V{margin, margin, margin} : centre;
    const Cube k = {frame.to_local(moved), {frame.x * edge, frame.y * edge, frame.z * edge}};
    if (shape.kind != KIND_MESH) return solid(k, shape.kind, {shape.size[0], shape.size[1], shape.size[2]});
    const V* a = k.axis;
    const V reach = {::fabs(a[0].x) + ::fabs(a[1].x) + ::fabs(a[2].x), ::fabs(a[0].y) + ::fabs(a[1].y) + ::fabs(a[2].y),
                     ::fabs(a[0].z) + ::fabs(a[1].z) + ::fabs(a[2].z)};
    int stack[TREE_STACK], top = 0;
    stack[top++] = shape.root;
    while (top) {
      const TreeNode& node = batch.mesh_nodes[stack[--top]];
      if (apart(node, k.centre, reach)) continue;
      if (node.count <= 0) {
        stack[top++] = node.first;
        stack[top++] = node.first + 1;
        continue;
      }
      for (int i = node.first; i < node.first + node.count; ++i) {
        const TriangleRow& t = batch.triangles[i];
        const V corners[3] = {Clearance::corner(t.a), Clearance::corner(t.b), Clearance::corner(t.c)};
        if (triangle(k, corners)) return true;
      }
    }
    return false;
  }
  // Whether any surface or solid of an environment but instance `ignore` reaches into a cell.
  FUNCTION bool cell(const Batch& batch, const int* closed, int env, int ignore, const V& centre, double half) {
    int stack[TREE_STACK];
    const V reach = {half * 1.01, half * 1.01, half * 1.01};
    for (int layer = 0; layer < (batch.dynamic_count > 0 ? 2 : 1); ++layer) {
      const TreeNode* nodes = batch.nodes(layer);
      const InstanceRow* rows = batch.instances(env, layer);
      int top = 0;
      stack[top++] = batch.root(env, layer);
      while (top) {
        const TreeNode& node = nodes[stack[--top]];
        if (apart(node, centre, reach)) continue;
        if (node.count <= 0) {
          stack[top++] = node.first;
          stack[top++] = node.first + 1;
        } else if (batch.first_number(layer) + node.first != ignore && (rows[node.first].flags & INSTANCE_COLLIDES) &&
                   instance(batch, closed, rows[node.first], centre, half)) {
          return true;
        }
      }
    }
    return false;
  }
};
