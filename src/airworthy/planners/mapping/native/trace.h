// Rays of one image, in the order of its pixels, into one number per cell near the camera: 4 * (hits - misses) + 2 where a ray ended
// + 1 where one was walked. A ray stops at a cell that was walked before; one that ends where another ended is not walked.
enum { WALKED = 1, ENDED = 2, ONE = 4 };
struct Trace {
  // Cells (x, y, z) around the camera that counts exist for; z begins at a whole lane.
  static INLINE Cells near(const Frame& f, const int* camera) {
    Cells out;
    for (int a = 0; a < 3; ++a) {
      out.lo[a] = camera[a] > f.reach ? camera[a] - f.reach : 0;
      if (a == 2) out.lo[a] -= out.lo[a] % CPU_LANES;
      out.hi[a] = camera[a] + f.reach + 1 < f.cells[a] ? camera[a] + f.reach + 1 : f.cells[a];
    }
    return out;
  }
  static INLINE int stride(const Cells& b) { return (b.hi[2] - b.lo[2] + CPU_LANES - 1) / CPU_LANES * CPU_LANES; }
  static INLINE void cell_of(const Frame& f, double h, const double* at, int* cell) {
    for (int a = 0; a < 3; ++a) {
      const double floored = ::floor((at[a] - f.origin[a]) / h);
      cell[a] = floored < 0.0 ? 0 : floored > f.cells[a] - 1 ? f.cells[a] - 1 : (int)floored;
    }
  }
  // Ends of rays [cells], their cells, and what they are: 0 not to be used, 1 a miss, 2 a hit.
  static INLINE void ends(
      const Frame& f, const double* number, D x, D y, D d, double* end, int* cell, int* kind) {
    const double h = number[0], longest = number[1];
    const auto open = (d == 0.0) | (d > number[4]);
    d = open ? (D)(longest + 0.1) : d;
    const auto usable = d >= number[3];
    d = usable ? d : (D)1.0;
    const double *m = f.pose, *c = f.pose + 9;
    D p[3], displacement[3];
    auto inside = d == d;
    for (int a = 0; a < 3; ++a) {
      p[a] = c[a] + d * (m[3 * a] * x + m[3 * a + 1] * y + m[3 * a + 2]);
      displacement[a] = p[a] - c[a];
      inside = inside & (p[a] > f.origin[a] + 1e-4) & (p[a] < f.upper[a] - 1e-4);
    }
    const D straight = V::sqrt(displacement[0] * displacement[0] + displacement[1] * displacement[1] + displacement[2] * displacement[2]);
    D part = (D)1e30;
    for (int a = 0; a < 3; ++a) {
      const D face = displacement[a] > 0.0 ? (D)(f.upper[a] - c[a]) : (D)(f.origin[a] - c[a]);
      const D t = displacement[a] == 0.0 ? (D)1e30 : face / displacement[a];
      part = t < part ? t : part;
    }
    part = part - 1e-3 / straight;
    part = part > 0.0 ? part : (D)0.0;
    part = inside ? (D)1.0 : part;
    for (int a = 0; a < 3; ++a) displacement[a] = displacement[a] * part;
    const D length = V::sqrt(displacement[0] * displacement[0] + displacement[1] * displacement[1] + displacement[2] * displacement[2]);
    const auto whole = length <= longest;
    const D cut = whole ? (D)1.0 : longest / length;
    for (int a = 0; a < 3; ++a) {
      const D at = (inside & whole) ? p[a] : c[a] + displacement[a] * cut;
      const D scaled = (at - f.origin[a]) / h;
      D floored = V::floor(scaled);
      floored = floored < 0.0 ? (D)0.0 : floored;
      floored = floored > (double)(f.cells[a] - 1) ? (D)(double)(f.cells[a] - 1) : floored;
      *(D*)(end + a * LANES) = scaled;
      *(DI*)(cell + a * LANES) = V::whole(floored);
    }
    const D sort = usable ? ((inside & whole) ? (D)2.0 : (D)1.0) : (D)0.0;
    *(DI*)kind = V::whole(sort);
  }
  // Walk back to the camera (Amanatides and Woo, "A fast voxel traversal algorithm", 1987).
  static INLINE void walk(int* cell_count, const int* jump, const double* end, const int* cell, const double* eye, const int* goal, double least) {
    double next[3], step[3], off[3], turn[3];
    int left[3], move[3], all = 0;
    for (int a = 0; a < 3; ++a) {
      const double displacement = eye[a] - end[a];
      const int cells = goal[a] - cell[a];
      left[a] = cells < 0 ? -cells : cells;
      move[a] = cells < 0 ? -jump[a] : jump[a];
      step[a] = 1.0 / (displacement < 0.0 ? -displacement : displacement);
      next[a] = left[a] ? ((displacement > 0.0 ? cell[a] + 1 : cell[a]) - end[a]) / displacement : 1e300;
      off[a] = goal[a] + 0.5 - eye[a];
      turn[a] = cells < 0 ? 1.0 : -1.0;
      all += left[a];
    }
    const int close = 3 * ((int)least + 2);
    const double square = least * least;
    for (;; --all) {
      if (all <= close) {
        double far = 0.0;
        for (int a = 0; a < 3; ++a) far += (off[a] + turn[a] * left[a]) * (off[a] + turn[a] * left[a]);
        if (far < square) return;
      }
      const int before = *cell_count;
      *cell_count = (before | WALKED) - ONE;
      if ((before & WALKED) || all == 0) return;
      const int a = next[0] <= next[1] ? (next[0] <= next[2] ? 0 : 2) : (next[1] <= next[2] ? 1 : 2);
      cell_count += move[a];
      next[a] = --left[a] ? next[a] + step[a] : 1e300;
    }
  }
  static INLINE void widen(int* bound, const int* cell) {
    for (int a = 0; a < 3; ++a) {
      bound[a] = cell[a] < bound[a] ? cell[a] : bound[a];
      bound[3 + a] = cell[a] + 1 > bound[3 + a] ? cell[a] + 1 : bound[3 + a];
    }
  }
  static INLINE void run(
      const Frame& f, const double* number, const double* rays, const int* pixel, int count, const float* depth) {
    int goal[3], any = 0;
    double eye[3];
    cell_of(f, number[0], f.pose + 9, goal);
    for (int a = 0; a < 3; ++a) eye[a] = (f.pose[9 + a] - f.origin[a]) / number[0];
    const Cells box = near(f, goal);
    const int jump[3] = {(box.hi[1] - box.lo[1]) * stride(box), stride(box), 1};
    int* const first = f.counts - box.lo[0] * jump[0] - box.lo[1] * jump[1] - box.lo[2];
    const double least = number[2] / number[0];
    for (int a = 0; a < 3; ++a) f.bound[a] = goal[a], f.bound[3 + a] = goal[a] + 1;
    for (int p = 0; p < count; p += LANES) {
      double end[3 * LANES], x[LANES], y[LANES], d[LANES];
      int cell[3 * LANES], kind[LANES];
      for (int l = 0; l < LANES; ++l) {
        const int at = p + l < count ? p + l : count - 1;
        x[l] = rays[2 * at];
        y[l] = rays[2 * at + 1];
        d[l] = p + l < count ? (double)depth[pixel[at]] : -1.0;
      }
      ends(f, number, *(const D*)x, *(const D*)y, *(const D*)d, end, cell, kind);
      for (int l = 0; l < LANES; ++l) {
        if (!kind[l]) continue;
        any = 1;
        const int at[3] = {cell[l], cell[LANES + l], cell[2 * LANES + l]};
        int* const cell_count = first + at[0] * jump[0] + at[1] * jump[1] + at[2];
        const int before = *cell_count;
        *cell_count = (before | ENDED) + (kind[l] == 2 ? ONE : -ONE);
        if (before & ENDED) continue;
        widen(f.bound, at);
        const double q[3] = {end[l], end[LANES + l], end[2 * LANES + l]};
        walk(cell_count, jump, q, at, eye, goal, least);
      }
    }
    if (!any) f.bound[3] = -1;
  }
};
