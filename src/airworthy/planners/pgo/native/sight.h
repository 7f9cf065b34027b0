// Lines of sight and paths in a distance field. Twin: sight.py.
struct Sight {
  Known known;
  double per_metre;
  int lowest[3], highest[3];  // cells whose middle is in the box in which to fly
  // The region of a question once more, a byte per cell: 2 where the distance is not above 0, 1 where it is not above a cell.
  unsigned char* level;
  int origin[3], side[3];
  INLINE void begin(const Window* window) {
    known.w = window;
    level = 0;
    per_metre = 1.0 / window->resolution;
    for (int k = 0; k < 3; ++k) {
      lowest[k] = (int)::ceil((window->lower[k] - window->corner[k]) / window->resolution - 0.5 - 1e-9);
      highest[k] = (int)::floor((window->upper[k] - window->corner[k]) / window->resolution - 0.5 + 1e-9);
    }
  }
  // Note the levels of all cells around points (count, 3), widened by half a metre, if there is room for them.
  INLINE void note(const double* points, int count, unsigned char* room) {
    level = 0;
    const int wide = (int)::ceil(0.5 * per_metre);
    for (int k = 0; k < 3; ++k) {
      int lo = known.index(points[k], k), hi = lo;
      for (int i = 1; i < count; ++i) {
        const int c = known.index(points[3 * i + k], k);
        lo = c < lo ? c : lo;
        hi = c > hi ? c : hi;
      }
      origin[k] = lo - wide;
      side[k] = hi - lo + 1 + 2 * wide;
    }
    if ((double)side[0] * side[1] * side[2] > (double)MOST_REGION) return;
    const double h = known.w->resolution;
    const int most = squares(h);
    unsigned char* to = room;
    for (int i = 0; i < side[0]; ++i)
      for (int j = 0; j < side[1]; ++j)
        for (int k = 0; k < side[2]; ++k) {
          const int c[3] = {origin[0] + i, origin[1] + j, origin[2] + k};
          *to++ = shut(c, h, most) ? (shut(c, 0.0, 0) ? 2 : 1) : 0;
        }
    level = room;
  }
  // The most of whole squares [cells^2] that are not farther than a distance.
  INLINE int squares(double least) const {
    const double h = known.w->resolution;
    int most = (int)((least / h) * (least / h)) + 2;
    while (most > 0 && h * ::sqrt((double)most) > least) --most;
    return most;
  }
  // Whether a cell is not farther than `least` from something. Outside the box nothing is free, what is not known is.
  INLINE bool shut(const int* c, double least, int most) const {
    for (int k = 0; k < 3; ++k)
      if (c[k] < lowest[k] || c[k] > highest[k]) return true;
    if (!known.inside(c[0], c[1], c[2])) return false;
    const long long at = known.slot(c[0], c[1], c[2]);
    if (known.w->squares) return (int)((const short*)known.w->field)[at] <= most;
    return (double)((const float*)known.w->field)[at] <= least;
  }
  INLINE bool shut_at(const double* p, double least) const {
    const int c[3] = {known.index(p[0], 0), known.index(p[1], 1), known.index(p[2], 2)};
    return shut(c, least, squares(least));
  }
  // Whether every cell between two points is farther than `least` from everything; if not, the middle of the first that is not.
  INLINE bool clear(const double* from, const double* to, double least, double* met) const {
    int c[3], step[3], reach[3], left = 0;
    double next[3], across[3];
    for (int k = 0; k < 3; ++k) {
      const double u = (from[k] - known.w->corner[k]) * per_metre, v = (to[k] - known.w->corner[k]) * per_metre;
      const int last = (int)::floor(v);
      c[k] = (int)::floor(u);
      step[k] = last > c[k] ? 1 : (last < c[k] ? -1 : 0);
      reach[k] = step[k] * (last - c[k]);
      left += reach[k];
      across[k] = step[k] == 0 ? 1e300 : 1.0 / ::fabs(v - u);
      next[k] = step[k] == 0 ? 1e300 : (step[k] > 0 ? c[k] + 1.0 - u : u - c[k]) * across[k];
    }
    bool noted = level != 0 && (least == 0.0 || least == known.w->resolution);
    for (int k = 0; k < 3; ++k) {
      const int last = c[k] - origin[k] + step[k] * reach[k];
      noted = noted && c[k] >= origin[k] && c[k] < origin[k] + side[k] && last >= 0 && last < side[k];
    }
    if (noted) return march(c, step, left, next, across, least == 0.0 ? 2 : 1, met);
    const int most = squares(least);
    for (;; --left) {
      if (shut(c, least, most)) {
        for (int k = 0; k < 3; ++k) met[k] = known.w->corner[k] + known.w->resolution * (c[k] + 0.5);
        return false;
      }
      if (left == 0) return true;
      const int axis = next[0] <= next[1] ? (next[0] <= next[2] ? 0 : 2) : (next[1] <= next[2] ? 1 : 2);
      c[axis] += step[axis];
      next[axis] += across[axis];
    }
  }
  // The same walk over the noted region, without branches that cannot be foreseen.
  INLINE bool march(const int* c, const int* step, int left, const double* next, const double* across, int bar,
                    double* met) const {
    const int sx = step[0] * side[1] * side[2], sy = step[1] * side[2], sz = step[2];
    int at = ((c[0] - origin[0]) * side[1] + c[1] - origin[1]) * side[2] + c[2] - origin[2];
    double x = next[0], y = next[1], z = next[2];
    const double dx = across[0], dy = across[1], dz = across[2];
    for (; level[at] < bar; --left) {
      if (left == 0) return true;
      const bool a = (x <= y) & (x <= z), b = !a & (y <= z);
      at += a ? sx : (b ? sy : sz);
      const double fx = x + dx, fy = y + dy, fz = z + dz;
      x = a ? fx : x;
      y = b ? fy : y;
      z = (a | b) ? z : fz;
    }
    const int found[3] = {at / (side[1] * side[2]), at / side[2] % side[1], at % side[2]};
    for (int k = 0; k < 3; ++k) met[k] = known.w->corner[k] + known.w->resolution * (found[k] + origin[k] + 0.5);
    return false;
  }
  static INLINE double apart(const double* a, const double* b) {
    double sum = 0.0;
    for (int k = 0; k < 3; ++k) sum += (b[k] - a[k]) * (b[k] - a[k]);
    return ::sqrt(sum);
  }
  static INLINE double length(const double* path, int count) {
    double sum = 0.0;
    for (int i = 1; i < count; ++i) sum += apart(path + 3 * i - 3, path + 3 * i);
    return sum;
  }
  // Walks a path at rising lengths.
  struct Walk {
    const double* path;
    int count, at;
    double before, edge;
    INLINE void begin(const double* p, int n) {
      path = p;
      count = n;
      at = 0;
      before = 0.0;
      edge = n > 1 ? apart(p, p + 3) : 0.0;
    }
    INLINE void to(double way, double* point) {
      while (at + 2 < count && way > before + edge) {
        before += edge;
        ++at;
        edge = apart(path + 3 * at, path + 3 * at + 3);
      }
      double share = edge > 0.0 ? (way - before) / edge : 0.0;
      share = share < 0.0 ? 0.0 : (share > 1.0 ? 1.0 : share);
      for (int k = 0; k < 3; ++k)
        point[k] = count > 1 ? (1.0 - share) * path[3 * at + k] + share * path[3 * at + 3 + k] : path[k];
    }
  };
  static INLINE bool smaller(const double* a, const double* b) {
    for (int k = 0; k < 3; ++k)
      if (a[k] != b[k]) return a[k] < b[k];
    return false;
  }
  // Uniform visibility deformation: points at the same share of both lengths see each other. The same for (a, b) and (b, a).
  INLINE bool equivalent(const double* a, int na, const double* b, int nb) const {
    const double la = length(a, na), lb = length(b, nb);
    int count = (int)::ceil((la > lb ? la : lb) / known.w->resolution);
    if (count < 2) count = 2;
    Walk wa, wb;
    wa.begin(a, na);
    wb.begin(b, nb);
    for (int i = 0; i < count; ++i) {
      double p[3], q[3], met[3];
      wa.to(la * i / (count - 1), p);
      wb.to(lb * i / (count - 1), q);
      const bool first = smaller(p, q);
      if (!clear(first ? p : q, first ? q : p, 0.0, met)) return false;
    }
    return true;
  }
  // Shorter by lines of sight, at most `rounds` times; where sight is lost the path is pushed off what is in the way. Returns the
  // number of points in `path`, unchanged where nothing is gained; `spare` is as large.
  INLINE int shortcut(double* path, int count, int rounds, double* spare) const {
    for (int r = 0; r < rounds; ++r) {
      const int made = shortened(path, count, spare);
      if (made == 0 || length(spare, made) > length(path, count)) return count;
      for (int i = 0; i < 3 * made; ++i) path[i] = spare[i];
      count = made;
    }
    return count;
  }
  INLINE int shortened(const double* path, int count, double* out) const {
    int made = 1;
    for (int k = 0; k < 3; ++k) out[k] = path[k];
    bool first = true;
    for (int i = 0; i + 1 < count; ++i) {
      const double *a = path + 3 * i, *b = a + 3;
      const int pieces = (int)::ceil(apart(a, b) / known.w->resolution);
      for (int s = 0; s < pieces + (i + 2 == count ? 1 : 0); ++s) {
        double at[3];
        for (int k = 0; k < 3; ++k) at[k] = pieces > 0 ? a[k] + (b[k] - a[k]) * s / pieces : b[k];
        if (first) {
          first = false;
          continue;
        }
        double met[3];
        if (clear(out + 3 * made - 3, at, known.w->resolution, met)) continue;
        push(out + 3 * made - 3, at, met);
        if (made + 2 > MOST_CORNERS) return 0;
        for (int k = 0; k < 3; ++k) out[3 * made + k] = met[k];
        ++made;
      }
    }
    for (int k = 0; k < 3; ++k) out[3 * made + k] = path[3 * count - 3 + k];
    return made + 1;
  }
  // Move a point by a cell along the part of the field's slope that is across a line.
  INLINE void push(const double* from, const double* to, double* point) const {
    double slope[3], along = 0.0, size = 0.0, way = apart(from, to);
    known.distance(point, slope);
    const double steep = ::sqrt(slope[0] * slope[0] + slope[1] * slope[1] + slope[2] * slope[2]);
    if (!(steep > 1e-3) || !(way > 0.0)) return;
    for (int k = 0; k < 3; ++k) along += slope[k] / steep * ((to[k] - from[k]) / way);
    double across[3];
    for (int k = 0; k < 3; ++k) {
      across[k] = slope[k] / steep - along * ((to[k] - from[k]) / way);
      size += across[k] * across[k];
    }
    size = ::sqrt(size);
    if (!(size > 1e-9)) return;
    for (int k = 0; k < 3; ++k) point[k] = point[k] + known.w->resolution * (across[k] / size);
  }
};
