// What maps answer; the twin is `maps.py`, in the same order of operations.
struct Lookup {
  const double *origin, *upper;
  const int *cells, *side, *corner;
  size_t base;
  double h;
  INLINE bool inside(const double* p) const {
    for (int a = 0; a < 3; ++a)
      if (!(p[a] >= origin[a] && p[a] <= upper[a])) return false;
    return true;
  }
  // Whether a cell of the box is kept, and where.
  INLINE bool slot(const int* cell, size_t& at) const {
    for (int a = 0; a < 3; ++a)
      if (cell[a] < corner[a] || cell[a] >= corner[a] + side[a]) return false;
    at = base + ((size_t)(cell[0] % side[0]) * side[1] + cell[1] % side[1]) * side[2] + cell[2] % side[2];
    return true;
  }
  INLINE int held(double x, int axis) const { return x < 0.0 ? 0 : x > cells[axis] - 1 ? cells[axis] - 1 : (int)x; }
  INLINE bool occupied(const unsigned char* inflated, const double* p) const {
    if (!inside(p)) return true;
    int cell[3];
    size_t at;
    for (int a = 0; a < 3; ++a) cell[a] = held(::floor((p[a] - origin[a]) / h), a);
    return slot(cell, at) ? inflated[at] != 0 : cell[2] == cells[2] - 1;
  }
  INLINE double metres(const short* squared, const int* cell) const {
    size_t at;
    const int s = slot(cell, at) ? squared[at] : FAR;
    return s >= 0 ? h * ::sqrt((double)s) : h - h * ::sqrt((double)-s);
  }
  // Value and gradient (4).
  INLINE void distance(const short* squared, const double* p, double* out) const {
    for (int a = 0; a < 4; ++a) out[a] = 0.0;
    if (!inside(p)) return;
    double t[3], v[2][2][2], x1[2][2], sx[2][2], y1[2], sy[2];
    int at[2][3];
    for (int a = 0; a < 3; ++a) {
      const double scaled = (p[a] - origin[a]) / h - 0.5, base = ::floor(scaled);
      t[a] = scaled - base;
      at[0][a] = held(base, a);
      at[1][a] = held(base + 1.0, a);
    }
    for (int i = 0; i < 8; ++i) {
      const int cell[3] = {at[i >> 2][0], at[i >> 1 & 1][1], at[i & 1][2]};
      v[i >> 2][i >> 1 & 1][i & 1] = metres(squared, cell);
    }
    for (int j = 0; j < 2; ++j)
      for (int k = 0; k < 2; ++k) {
        x1[j][k] = (1.0 - t[0]) * v[0][j][k] + t[0] * v[1][j][k];
        sx[j][k] = v[1][j][k] - v[0][j][k];
      }
    for (int k = 0; k < 2; ++k) {
      y1[k] = (1.0 - t[1]) * x1[0][k] + t[1] * x1[1][k];
      sy[k] = (1.0 - t[1]) * sx[0][k] + t[1] * sx[1][k];
    }
    out[0] = (1.0 - t[2]) * y1[0] + t[2] * y1[1];
    out[1] = ((1.0 - t[2]) * sy[0] + t[2] * sy[1]) / h;
    out[2] = ((1.0 - t[2]) * (x1[1][0] - x1[0][0]) + t[2] * (x1[1][1] - x1[0][1])) / h;
    out[3] = (y1[1] - y1[0]) / h;
  }
};
