// Builds a tree over boxes: parts them by the surface-area heuristic over binned centroids, in place, without recursion. Plain
// scalar code, the same on a CPU and a GPU; one call builds one tree. Needs `batch.h`.
#if defined(__CUDA_ARCH__) || defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define HOST_OR_DEVICE static __device__
#else
#define HOST_OR_DEVICE static
#endif
struct Builder {
  enum { BINS = 12, DEEP = 36 };
  // 24 bytes, and what it adds up to.
  struct Bounds {
    float lower[3], upper[3];
    INLINE void clear() {
      for (int k = 0; k < 3; ++k) lower[k] = 3e38f, upper[k] = -3e38f;
    }
    INLINE void add(const Bounds& o) {
      for (int k = 0; k < 3; ++k) {
        lower[k] = o.lower[k] < lower[k] ? o.lower[k] : lower[k];
        upper[k] = o.upper[k] > upper[k] ? o.upper[k] : upper[k];
      }
    }
    INLINE float middle(int k) const { return 0.5f * lower[k] + 0.5f * upper[k]; }
    INLINE float area() const {
      const float x = upper[0] - lower[0], y = upper[1] - lower[1], z = upper[2] - lower[2];
      return x * y + y * z + z * x;
    }
  };
  struct Task {
    int node, first, count, depth;
  };
  // Best plane: bin edge `cut` along `axis` (items with bin < cut go left), or cut 0 where no plane parts the centroids.
  struct Plane {
    int axis, cut;
    float cost, origin, factor;
  };
  static INLINE int bin_of(const Bounds& b, const Plane& p) {
    const int bin = (int)((b.middle(p.axis) - p.origin) * p.factor);
    return bin < 0 ? 0 : (bin >= BINS ? BINS - 1 : bin);
  }
  HOST_OR_DEVICE Plane best_plane(const Bounds* boxes, const int* order, const Task& task, const Bounds& centres) {
    Plane best = {0, 0, 3e38f, 0.0f, 0.0f};
    for (int axis = 0; axis < 3; ++axis) {
      const float width = centres.upper[axis] - centres.lower[axis];
      if (!(width > 0.0f)) continue;
      Plane p = {axis, 0, 0.0f, centres.lower[axis], (float)BINS * 0.9999f / width};
      if (!(p.factor < 1e30f)) continue;
      Bounds bins[BINS];
      int counts[BINS];
      for (int k = 0; k < BINS; ++k) bins[k].clear(), counts[k] = 0;
      for (int i = task.first; i < task.first + task.count; ++i) {
        const int k = bin_of(boxes[order[i]], p);
        bins[k].add(boxes[order[i]]);
        ++counts[k];
      }
      float right_cost[BINS];
      Bounds sum;
      sum.clear();
      int count = 0;
      for (int k = BINS - 1; k > 0; --k) {
        sum.add(bins[k]);
        count += counts[k];
        right_cost[k] = count ? sum.area() * (float)count : 0.0f;
      }
      sum.clear();
      count = 0;
      for (int k = 1; k < BINS; ++k) {
        sum.add(bins[k - 1]);
        count += counts[k - 1];
        if (count == 0 || count == task.count) continue;
        const float cost = sum.area() * (float)count + right_cost[k];
        if (cost < best.cost) best = p, best.cut = k, best.cost = cost;
      }
    }
    return best;
  }
  // The middle of the widest axis of the centroids: much cheaper to find, and nearly as good for a few dozen items.
  static INLINE Plane middle_plane(const Bounds& centres) {
    const float* a = centres.lower;
    const float* b = centres.upper;
    int axis = b[1] - a[1] > b[0] - a[0] ? 1 : 0;
    axis = b[2] - a[2] > b[axis] - a[axis] ? 2 : axis;
    const float width = b[axis] - a[axis], factor = (float)BINS * 0.9999f / width;
    return {axis, width > 0.0f && factor < 1e30f ? BINS / 2 : 0, 0.0f, a[axis], factor};
  }
  // Items before the plane first; returns how many.
  HOST_OR_DEVICE int part(const Bounds* boxes, int* order, const Task& task, const Plane& plane) {
    int i = task.first, j = task.first + task.count - 1;
    while (i <= j) {
      if (bin_of(boxes[order[i]], plane) < plane.cut) {
        ++i;
      } else {
        const int other = order[j];
        order[j--] = order[i];
        order[i] = other;
      }
    }
    return i - task.first;
  }
  static INLINE void leaf(TreeNode& node, const Bounds& bounds, int first, int count) {
    for (int k = 0; k < 3; ++k) node.lower[k] = bounds.lower[k], node.upper[k] = bounds.upper[k];
    node.first = first;
    node.count = count;
  }
  // Builds over boxes[order[0 ... count - 1]]. `nodes` has room for 2 count - 1, at least 1; numbers written into them are `base`
  // plus the place. Leaves hold at most `leaf_size` items, from `item_base` plus the place in `order`, or, where `item_base` is
  // negative, the one item order[place]. `quick`: by the middle plane. Returns the number of nodes.
  HOST_OR_DEVICE int build(const Bounds* boxes, int* order, int count, TreeNode* nodes, int base, int leaf_size, int item_base,
                           bool quick) {
    return build(boxes, order, count, nodes, base, leaf_size, item_base, quick, 0, 1);
  }
  // The same with the root at nodes[root] and all others from nodes[used] on; returns the number of the next free one.
  HOST_OR_DEVICE int build(const Bounds* boxes, int* order, int count, TreeNode* nodes, int base, int leaf_size, int item_base,
                           bool quick, int root, int used) {
    if (count == 0) {
      for (int k = 0; k < 3; ++k) nodes[root].lower[k] = 1e30f, nodes[root].upper[k] = -1e30f;
      nodes[root].first = base + root;
      nodes[root].count = 0;
      return used;
    }
    Task stack[TREE_STACK];
    int top = 0;
    stack[top++] = {root, 0, count, 0};
    while (top) {
      const Task task = stack[--top];
      if (task.count == 1) {
        leaf(nodes[task.node], boxes[order[task.first]], item_base < 0 ? order[task.first] : item_base + task.first, 1);
        continue;
      }
      Bounds all, centres;
      all.clear();
      centres.clear();
      for (int i = task.first; i < task.first + task.count; ++i) {
        const Bounds& b = boxes[order[i]];
        all.add(b);
        for (int k = 0; k < 3; ++k) {
          const float c = b.middle(k);
          centres.lower[k] = c < centres.lower[k] ? c : centres.lower[k];
          centres.upper[k] = c > centres.upper[k] ? c : centres.upper[k];
        }
      }
      TreeNode& node = nodes[task.node];
      const Plane plane = quick ? middle_plane(centres) : best_plane(boxes, order, task, centres);
      // A node visit costs about as much as one triangle.
      if (task.count <= leaf_size && all.area() * (float)task.count <= plane.cost + all.area()) {
        leaf(node, all, item_base + task.first, task.count);
        continue;
      }
      for (int k = 0; k < 3; ++k) node.lower[k] = all.lower[k], node.upper[k] = all.upper[k];
      int left = plane.cut && task.depth < DEEP ? part(boxes, order, task, plane) : 0;
      if (left <= 0 || left >= task.count) left = task.count / 2;
      node.first = base + used;
      node.count = -plane.axis;
      stack[top++] = {used + 1, task.first + left, task.count - left, task.depth + 1};
      stack[top++] = {used, task.first, left, task.depth + 1};
      used += 2;
    }
    return used;
  }
};
