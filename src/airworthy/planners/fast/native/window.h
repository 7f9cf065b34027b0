// What is known around one vehicle: a window of cells that moves with it and lies in memory as a ring along each axis, and the box
// in which to fly. Unknown, and outside the window, is free; outside the box is not. Twin: windows.py.
struct Known {
  const Window* w;
  INLINE int index(double x, int axis) const { return (int)::floor((x - w->corner[axis]) / w->resolution); }
  INLINE long long slot(int i, int j, int k) const {
    i += w->offset[0];
    j += w->offset[1];
    k += w->offset[2];
    if (i >= w->side[0]) i -= w->side[0];
    if (j >= w->side[1]) j -= w->side[1];
    if (k >= w->side[2]) k -= w->side[2];
    return ((long long)i * w->side[1] + j) * w->side[2] + k;
  }
  INLINE bool inside(int i, int j, int k) const {
    return i >= 0 && i < w->count[0] && j >= 0 && j < w->count[1] && k >= 0 && k < w->count[2];
  }
  INLINE bool taken(const double* at) const {
    const int i = index(at[0], 0), j = index(at[1], 1), k = index(at[2], 2);
    return inside(i, j, k) && ((const unsigned char*)w->cells)[slot(i, j, k)] != 0;
  }
  INLINE bool blocked(const double* at) const {
    for (int k = 0; k < 3; ++k)
      if (!(at[k] >= w->lower[k] && at[k] <= w->upper[k])) return true;
    return taken(at);
  }
  // Signed distance at the middle of a cell: metres, or signed squares of cells, which are half the memory.
  INLINE double metres(int i, int j, int k) const {
    const long long at = slot(i, j, k);
    if (w->squares == 0) return (double)((const float*)w->field)[at];
    const double s = (double)((const short*)w->field)[at];
    return s >= 0.0 ? w->resolution * ::sqrt(s) : w->resolution - w->resolution * ::sqrt(-s);
  }
  // Whether the middle of an occupied cell is not farther than `least` from that of the cell of a point.
  INLINE bool near(const double* at, double least) const {
    const int c[3] = {index(at[0], 0), index(at[1], 1), index(at[2], 2)}, r = (int)::ceil(least / w->resolution);
    for (int i = -r; i <= r; ++i)
      for (int j = -r; j <= r; ++j)
        for (int k = -r; k <= r; ++k) {
          if (w->resolution * ::sqrt((double)(i * i + j * j + k * k)) > least || !inside(c[0] + i, c[1] + j, c[2] + k)) continue;
          if (((const unsigned char*)w->cells)[slot(c[0] + i, c[1] + j, c[2] + k)] != 0) return true;
        }
    return false;
  }
  // Trilinear between the middles of cells; far, with no slope, where one of the eight is not known.
  INLINE double distance(const double* p, double* slope) const {
    double u[3];
    int c[3];
    for (int k = 0; k < 3; ++k) {
      const double s = (p[k] - w->corner[k]) / w->resolution - 0.5, low = ::floor(s);
      if (!(low >= 0.0 && low < w->count[k] - 1)) {
        slope[0] = slope[1] = slope[2] = 0.0;
        return FAR;
      }
      c[k] = (int)low;
      u[k] = s - low;
    }
    double d[2][2][2], edge[2][2], face[2], across[2];
    for (int a = 0; a < 2; ++a)
      for (int b = 0; b < 2; ++b)
        for (int e = 0; e < 2; ++e) d[a][b][e] = metres(c[0] + a, c[1] + b, c[2] + e);
    for (int b = 0; b < 2; ++b)
      for (int e = 0; e < 2; ++e) edge[b][e] = (1.0 - u[0]) * d[0][b][e] + u[0] * d[1][b][e];
    for (int e = 0; e < 2; ++e) face[e] = (1.0 - u[1]) * edge[0][e] + u[1] * edge[1][e];
    for (int e = 0; e < 2; ++e) across[e] = (1.0 - u[1]) * (d[1][0][e] - d[0][0][e]) + u[1] * (d[1][1][e] - d[0][1][e]);
    slope[0] = ((1.0 - u[2]) * across[0] + u[2] * across[1]) / w->resolution;
    slope[1] = ((1.0 - u[2]) * (edge[1][0] - edge[0][0]) + u[2] * (edge[1][1] - edge[0][1])) / w->resolution;
    slope[2] = (face[1] - face[0]) / w->resolution;
    return (1.0 - u[2]) * face[0] + u[2] * face[1];
  }
};
