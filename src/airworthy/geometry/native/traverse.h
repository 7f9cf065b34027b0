// Rays through a batch, a packet at a time: LANES rays, one on a GPU. Needs `batch.h`, `lanes.h`, `solids.h`. Included once per type
// of origin: CAST_NAME names the struct and ORIGIN is `float` where all rays of a packet leave from one point, else `F`.
//
// Why the answer for a ray depends on nothing but the ray and the leaves (not on its packet, on the order of visits, or on how a
// top level is built): (1) bounds are nested and rounding is monotone, so where a leaf's slab test lets a ray in, so do all nodes
// above it; (2) a hit never lies before the entry into its leaf's bounds (t is raised to it), so no leaf that could still win
// is skipped for being too far; (3) of equal t the smallest (instance, face) wins. Lanes are grouped by the signs of their
// direction, and within a mesh also by its largest axis, so that planes and axes are uniform within a traversal.
//
// Triangles: edge functions of the vertices sheared along the ray (after Woop, Benthin and Wald, "Watertight ray/triangle
// intersection", JCGT 2013). Two triangles that share an edge compute its function with exactly opposite signs, so no ray
// slips between them. Bounds are widened by the rounding of the origin, so that none slips past a box either.
struct CAST_NAME {
  typedef ORIGIN O;
  struct Rays {
    O origin[3], rest[3];  // their sum, world
    F direction[3];        // world; t counts in its lengths
  };
  struct Slabs {
    O near[3], far[3];
    F inverse[3];
    int lower[3], upper[3];  // places of the planes in a TreeNode's words
    int signs;
  };
  static INLINE I signs(const F* d) { return L::pick(d[0] < 0.0f, 1) + L::pick(d[1] < 0.0f, 2) + L::pick(d[2] < 0.0f, 4); }
  static INLINE void prepare(Slabs& s, const O* o, const F* d, int signs, float extent) {
    const O pad = 5e-7f * (L::max(L::max(L::abs(o[0]), L::abs(o[1])), L::abs(o[2])) + extent);
    s.signs = signs;
    for (int k = 0; k < 3; ++k) {
      const bool down = (signs >> k) & 1;
      s.inverse[k] = L::inverse(d[k]);
      s.near[k] = down ? o[k] - pad : o[k] + pad;
      s.far[k] = down ? o[k] + pad : o[k] - pad;
      s.lower[k] = down ? 4 + k : k;
      s.upper[k] = down ? k : 4 + k;
    }
  }
  static INLINE M enters(const TreeNode* node, const Slabs& s, F limit, F& entry) {
    const float* planes = node->lower;
    const F x0 = (planes[s.lower[0]] - s.near[0]) * s.inverse[0], x1 = (planes[s.upper[0]] - s.far[0]) * s.inverse[0];
    const F y0 = (planes[s.lower[1]] - s.near[1]) * s.inverse[1], y1 = (planes[s.upper[1]] - s.far[1]) * s.inverse[1];
    const F z0 = (planes[s.lower[2]] - s.near[2]) * s.inverse[2], z1 = (planes[s.upper[2]] - s.far[2]) * s.inverse[2];
    entry = L::max(L::max(x0, y0), L::max(z0, N::c(0.0f)));
    return entry <= L::min(L::min(x1, y1), L::min(z1, limit));
  }
  static INLINE void take(Hits& h, M m, F t, int instance, I face, F u, F v, bool any) {
    h.instance = L::select(m, L::i(instance), h.instance);
    h.face = L::select(m, face, h.face);
    h.u = N::select(m, u, h.u);
    h.v = N::select(m, v, h.v);
    h.t = N::select(m, any ? N::c(-1.0f) : t, h.t);
  }
  static INLINE M wins(const Hits& h, F t, int instance, I face) {
    return (t < h.t) | ((t == h.t) & ((h.instance > instance) | ((h.instance == instance) & (h.face > face))));
  }
  static INLINE void solid(const ShapeRow& shape, const O* o, const F* d, M active, F entry, int instance, bool any, Hits& h) {
    const F origin[3] = {N::c(0.0f) + o[0], N::c(0.0f) + o[1], N::c(0.0f) + o[2]};
    const Interval s = Solids::any(shape, origin, d);
    const M outside = s.enter > 0.0f;
    const F met = N::select(outside, s.enter, s.leave);
    const M hit = active & (s.enter <= s.leave) & (met > 0.0f);
    const F t = L::max(met, entry);
    const I side = L::select(outside, s.enter_side, s.leave_side);
    const M m = hit & wins(h, t, instance, side);
    if (L::any(m)) take(h, m, t, instance, side, N::c(0.0f), N::c(0.0f), any);
  }
  static INLINE void triangle(const TriangleRow& row, const O* o, const int* axes, const F* shear, M active, F entry, int instance,
                              bool any, Hits& h) {
    const int i = axes[0], j = axes[1], k = axes[2];
    const O az = row.a[k] - o[k], bz = row.b[k] - o[k], cz = row.c[k] - o[k];
    const F ax = (row.a[i] - o[i]) - shear[0] * az, ay = (row.a[j] - o[j]) - shear[1] * az;
    const F bx = (row.b[i] - o[i]) - shear[0] * bz, by = (row.b[j] - o[j]) - shear[1] * bz;
    const F cx = (row.c[i] - o[i]) - shear[0] * cz, cy = (row.c[j] - o[j]) - shear[1] * cz;
    const F u = cx * by - cy * bx, v = ax * cy - ay * cx, w = bx * ay - by * ax;
    const M inside = (L::min(L::min(u, v), w) >= 0.0f) | (L::max(L::max(u, v), w) <= 0.0f);
    if (!L::any(inside & active)) return;
    const F det = u + v + w;
    const F inverse = 1.0f / N::select(det == 0.0f, N::c(1.0f), det);
    const F met = (u * az + v * bz + w * cz) * shear[2] * inverse;
    const F t = L::max(met, entry);
    const M m = inside & active & (det != 0.0f) & (met > 0.0f) & wins(h, t, instance, L::i(row.face));
    if (L::any(m)) take(h, m, t, instance, L::i(row.face), v * inverse, w * inverse, any);
  }
  static INLINE void leaf(const Batch& batch, const TreeNode& node, const O* o, const int* axes, const F* shear, M in, F near, int instance,
                          bool any, Hits& h) {
    const TriangleRow* row = batch.triangles + node.first;
    for (int i = 0; i < node.count; ++i) triangle(row[i], o, axes, shear, in, near, instance, any, h);
  }
  static INLINE void mesh_group(const Batch& batch, const ShapeRow& shape, const O* o, const F* d, int key, M active, F entry,
                                int instance, bool any, Hits& h) {
    Slabs slabs;
    prepare(slabs, o, d, key & 7, shape.extent);
    const int k = key >> 3, axes[3] = {k == 2 ? 0 : k + 1, k == 0 ? 2 : k - 1, k};
    const F along = 1.0f / d[k];
    const F shear[3] = {d[axes[0]] * along, d[axes[1]] * along, along};
    F near;
    const TreeNode* node = batch.mesh_nodes + shape.root;
    const M in = enters(node, slabs, h.t, near) & active;
    if (!L::any(in)) return;
    if (node->count > 0) return leaf(batch, *node, o, axes, shear, in, L::max(near, entry), instance, any, h);
    // Both children of a node are looked at together: half as many turns of the loop, each with fewer ways that nobody can foretell.
    const TreeNode* stack[TREE_STACK];
    int top = 0;
    for (;;) {
      const TreeNode* pair = batch.mesh_nodes + node->first;
      const int far = (slabs.signs >> -node->count) & 1 ? 0 : 1;
      const TreeNode *first = pair + (1 - far), *second = pair + far;
      F first_near, second_near;
      const M in_first = enters(first, slabs, h.t, first_near) & active, in_second = enters(second, slabs, h.t, second_near) & active;
      bool go_first = L::any(in_first), go_second = L::any(in_second);
      if (go_first && first->count > 0) {
        leaf(batch, *first, o, axes, shear, in_first, L::max(first_near, entry), instance, any, h);
        go_first = false;
      }
      if (go_second && second->count > 0) {
        leaf(batch, *second, o, axes, shear, in_second, L::max(second_near, entry), instance, any, h);
        go_second = false;
      }
      if (go_first) {
        if (go_second) stack[top++] = second;
        node = first;
      } else if (go_second) {
        node = second;
      } else {
        if (top == 0) return;
        node = stack[--top];
      }
    }
  }
  static INLINE void mesh(const Batch& batch, const ShapeRow& shape, const O* o, const F* d, M active, F entry, int instance, bool any,
                          Hits& h) {
    const F x = N::abs(d[0]), y = N::abs(d[1]), z = N::abs(d[2]);
    const I axis = L::select((x >= y) & (x >= z), L::i(0), L::select(y >= z, L::i(1), L::i(2)));
    const I keys = signs(d) + axis * 8;
    M left = active;
    do {
      const int key = L::at(keys, L::first(left));
      const M group = left & (keys == key);
      left = left & N::invert(keys == key);
      mesh_group(batch, shape, o, d, key, group, entry, instance, any, h);
    } while (L::any(left));
  }
  // World rays in the frame of an instance, its scale taken out; t stays.
  static INLINE void to_local(const InstanceRow& row, const Rays& r, O* o, F* d) {
    O p[3];
    for (int k = 0; k < 3; ++k) p[k] = (r.origin[k] - row.position[k]) + (r.rest[k] - row.position_rest[k]);
    for (int k = 0; k < 3; ++k) {
      const float a = row.rotation[k] * row.inverse_scale, b = row.rotation[3 + k] * row.inverse_scale;
      const float c = row.rotation[6 + k] * row.inverse_scale;
      o[k] = a * p[0] + b * p[1] + c * p[2];
      d[k] = a * r.direction[0] + b * r.direction[1] + c * r.direction[2];
    }
  }
  static INLINE void layer(const Batch& batch, int env, int which, const Rays& r, const Slabs& slabs, M active, I ignore, I through,
                           bool any, int hidden, Hits& h) {
    const TreeNode* nodes = batch.nodes(which);
    const InstanceRow* rows = batch.instances(env, which);
    int stack[TREE_STACK], top = 0, next = batch.root(env, which);
    if (nodes[next].count == -TREE_KINDS) {
      const int first = nodes[next].first, others = nodes[first + 1].first;
      if (!(hidden & INSTANCE_NO_SHADOW)) stack[top++] = others;
      if (!(hidden & INSTANCE_SHADOW_ONLY)) stack[top++] = others + 1;
      next = first;
    }
    for (;;) {
      const TreeNode* node = nodes + next;
      F near;
      M in = enters(node, slabs, h.t, near) & active;
      if (L::any(in)) {
        if (node->count <= 0) {
          const int far = (slabs.signs >> -node->count) & 1 ? 0 : 1;
          stack[top++] = node->first + far;
          next = node->first + 1 - far;
          const TreeNode* other = nodes + node->first + far;
          L::prefetch(other->count > 0 ? (const void*)(rows + other->first) : (const void*)(nodes + other->first));
          continue;
        }
        const InstanceRow& row = rows[node->first];
        const int number = batch.first_number(which) + node->first;
        in = in & (ignore != number);
        if (row.group) in = in & (through != row.group);
        if ((row.flags & (INSTANCE_VISIBLE | hidden)) == INSTANCE_VISIBLE && L::any(in) && (row.footprint == 0u || batch.shown(row))) {
          const ShapeRow& shape = batch.shapes[row.shape];
          O o[3];
          F d[3];
          to_local(row, r, o, d);
          if (shape.kind == KIND_MESH) mesh(batch, shape, o, d, in, near, number, any, h);
          else solid(shape, o, d, in, near, number, any, h);
        }
      }
      if (top == 0) return;
      next = stack[--top];
    }
  }
  // Nearest hits of the active rays, or, with `any`, some hit: then t is -1 where there is one. `ignore`: instance number not seen;
  // `through`: group not seen, 0: none; `hidden`: flags of instances that are not met, by default those that are shadows alone.
  static INLINE void cast(const Batch& batch, int env, const Rays& r, M active, I ignore, bool any, Hits& h) {
    cast(batch, env, r, active, ignore, L::i(0), any, INSTANCE_SHADOW_ONLY, h);
  }
  static INLINE void cast(const Batch& batch, int env, const Rays& r, M active, I ignore, I through, bool any, int hidden, Hits& h) {
    const I keys = signs(r.direction);
    O o[3];
    for (int k = 0; k < 3; ++k) o[k] = r.origin[k] + r.rest[k];
    M left = active;
    while (L::any(left)) {
      const int key = L::at(keys, L::first(left));
      const M group = left & (keys == key);
      left = left & N::invert(keys == key);
      Slabs slabs;
      prepare(slabs, o, r.direction, key, 0.0f);
      PRAGMA_NOUNROLL
      for (int which = 0; which < (batch.dynamic_count ? 2 : 1); ++which)
        layer(batch, env, which, r, slabs, group, ignore, through, any, hidden, h);
    }
  }
};
