// A cloud of points instead of an image: in the box that may change the inflated layer is cleared, and cubes around points are set.
struct Cloud {
  static INLINE void run(const Frame& f, const double* number, const double* points, int count) {
    for (int a = 0; a < 3; ++a) {
      const int lo = (int)::floor((f.pose[9 + a] - number[5 + a] - f.origin[a]) / number[0]);
      const int hi = (int)::floor((f.pose[9 + a] + number[5 + a] - f.origin[a]) / number[0]) + 1;
      f.bound[a] = lo > f.corner[a] ? lo : f.corner[a];
      f.bound[3 + a] = hi < f.last(a) ? hi : f.last(a);
    }
    for (int x = f.bound[0]; x < f.bound[3]; ++x)
      for (int y = f.bound[1]; y < f.bound[4]; ++y)
        for (int z = f.bound[2]; z < f.bound[5]; ++z) f.inflated[f.row(x, y) + f.slot(z)] = z == f.cells[2] - 1 || z < f.floor;
    for (int p = 0; p < count; ++p) set(f, number, points + 3 * p);
  }
  static INLINE void set(const Frame& f, const double* number, const double* point) {
    int cell[3];
    for (int a = 0; a < 3; ++a) {
      const double way = point[a] - f.pose[9 + a];
      if (!((way < 0.0 ? -way : way) < number[5 + a] && point[a] >= f.origin[a] && point[a] <= f.upper[a])) return;
    }
    Trace::cell_of(f, number[0], point, cell);
    for (int x = cell[0] - f.radius; x <= cell[0] + f.radius; ++x)
      for (int y = cell[1] - f.radius; y <= cell[1] + f.radius; ++y)
        for (int z = cell[2] - 1; z <= cell[2] + 1; ++z)
          if (x >= f.corner[0] && x < f.last(0) && y >= f.corner[1] && y < f.last(1) && z >= f.corner[2] && z < f.last(2))
            f.inflated[f.row(x, y) + f.slot(z)] = 1;
  }
};
