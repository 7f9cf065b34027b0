// Fills instance rows from poses, bounds them, and builds the top level over them: one task per layer. Needs `batch.h`, `build.h`.
struct Placer {
  static INLINE float size(float x) { return x < 0.0f ? -x : x; }
  // Pose: position (two floats per axis), quaternion, scale: 11 floats.
  HOST_OR_DEVICE void pose(InstanceRow& row, const float* pose) {
    for (int k = 0; k < 3; ++k) row.position[k] = pose[k], row.position_rest[k] = pose[3 + k];
    const float x = pose[6], y = pose[7], z = pose[8], w = pose[9];
    const float r[9] = {1.0f - 2.0f * (y * y + z * z), 2.0f * (x * y - z * w),        2.0f * (x * z + y * w),
                        2.0f * (x * y + z * w),        1.0f - 2.0f * (x * x + z * z), 2.0f * (y * z - x * w),
                        2.0f * (x * z - y * w),        2.0f * (y * z + x * w),        1.0f - 2.0f * (x * x + y * y)};
    for (int k = 0; k < 9; ++k) row.rotation[k] = r[k];
    row.scale = pose[10];
    row.inverse_scale = 1.0f / pose[10];
  }
  // World bounds of an instance, wide enough for every rounding on the way here.
  HOST_OR_DEVICE void bound(const InstanceRow& row, const ShapeRow& shape, Builder::Bounds& out) {
    for (int i = 0; i < 3; ++i) {
      float centre = 0.0f, half = 0.0f, reach = 0.0f;
      for (int k = 0; k < 3; ++k) {
        const float r = row.rotation[3 * i + k];
        centre += r * (0.5f * shape.lower[k] + 0.5f * shape.upper[k]);
        half += size(r) * (0.5f * shape.upper[k] - 0.5f * shape.lower[k]);
        reach += size(shape.lower[k]) + size(shape.upper[k]);
      }
      const float p = row.position[i] + row.scale * centre;
      const float wide = row.scale * half + 1e-6f * (row.scale * reach + size(row.position[i]));
      out.lower[i] = p - wide;
      out.upper[i] = p + wide;
    }
  }
  static INLINE bool present(const InstanceRow& row, const ShapeRow& shape) {
    return row.flags != 0 && (shape.kind != KIND_MESH || shape.face_count > 0);
  }
  HOST_OR_DEVICE void layer(const ShapeRow* shapes, InstanceRow* rows, const float* poses, int count, TreeNode* nodes, int base,
                            Builder::Bounds* boxes, int* order, bool quick) {
    int present_count = 0;
    for (int i = 0; i < count; ++i) {
      pose(rows[i], poses + 11 * i);
      const ShapeRow& shape = shapes[rows[i].shape];
      if (!present(rows[i], shape)) continue;
      bound(rows[i], shape, boxes[i]);
      order[present_count++] = i;
    }
    const int seen_only = quick ? 0 : last(rows, order, present_count, INSTANCE_NO_SHADOW | INSTANCE_SHADOW_ONLY);
    if (!seen_only) {
      Builder::build(boxes, order, present_count, nodes, base, 1, -1, quick);
      return;
    }
    // Three trees under two nodes: what is seen and shades, what is seen alone, and shadows alone (`batch.h`).
    const int shades = present_count - seen_only, shadows = last(rows, order + shades, seen_only, INSTANCE_SHADOW_ONLY);
    int used = Builder::build(boxes, order, shades, nodes, base, 1, -1, false, 1, 5);
    used = Builder::build(boxes, order + shades, seen_only - shadows, nodes, base, 1, -1, false, 3, used);
    Builder::build(boxes, order + shades + seen_only - shadows, shadows, nodes, base, 1, -1, false, 4, used);
    join(nodes, 2, 3, base);
    join(nodes, 0, 1, base);
  }
  // Items without some flags first, in their order's place; returns how many have them.
  HOST_OR_DEVICE int last(const InstanceRow* rows, int* order, int count, int flags) {
    int kept = 0;
    for (int i = 0; i < count; ++i) {
      if (rows[order[i]].flags & flags) continue;
      const int other = order[kept];
      order[kept++] = order[i];
      order[i] = other;
    }
    return count - kept;
  }
  HOST_OR_DEVICE void join(TreeNode* nodes, int node, int first, int base) {
    for (int k = 0; k < 3; ++k) {
      const TreeNode &a = nodes[first], &b = nodes[first + 1];
      nodes[node].lower[k] = a.lower[k] < b.lower[k] ? a.lower[k] : b.lower[k];
      nodes[node].upper[k] = a.upper[k] > b.upper[k] ? a.upper[k] : b.upper[k];
    }
    nodes[node].first = base + first;
    nodes[node].count = -TREE_KINDS;
  }
};
