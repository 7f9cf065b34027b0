// The inflated cells around one vehicle, and the box in which it may fly. Twin: airworthy.planners.common.search.Cells.
struct Cells {
  const unsigned char* data;
  double lower[3], per_metre, resolution;
  double box_lower[3], box_upper[3];
  int size[3], stride[3];
  // One row of airworthy.planners.common.search.CellTable.
  INLINE Cells(const unsigned long long* address, const double* rows, const int* sizes, int row) {
    data = (const unsigned char*)address[row];
    const double* r = rows + 10 * row;
    for (int k = 0; k < 3; ++k) {
      lower[k] = r[k];
      box_lower[k] = r[3 + k];
      box_upper[k] = r[6 + k];
      size[k] = sizes[6 * row + k];
      stride[k] = sizes[6 * row + 3 + k];
    }
    resolution = r[9];
    per_metre = 1.0 / r[9];
  }
  // Outside the box: occupied. Outside the cells: unknown, hence free.
  INLINE bool taken(const double* p) const {
    for (int k = 0; k < 3; ++k)
      if (!(p[k] >= box_lower[k] && p[k] < box_upper[k])) return true;
    long long at = 0;
    for (int k = 0; k < 3; ++k) {
      const double scaled = ::floor((p[k] - lower[k]) * per_metre);
      if (!(scaled >= 0.0 && scaled < (double)size[k])) return false;
      at += (long long)scaled * stride[k];
    }
    return data[at] != 0;
  }
};
