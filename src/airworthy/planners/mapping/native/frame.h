// One image (or cloud) of one flight: where its map lies, and the layers of its window. Cells are counted from the box's lower
// corner; cell i of an axis lies in slot i modulo side. Boxes of cells are lo <= cell < hi.
struct Cells {
  int lo[3], hi[3];
};
struct Frame {
  const double *pose, *origin, *upper;  // rotation (9) and place (3) of the camera; corners of the box
  const int *cells, *side, *from, *corner;
  short* odds;
  unsigned char* inflated;
  short* squared;
  int* bound;  // lo, hi; hi[0] < 0: nothing was seen
  int* counts;
  short* work;
  // What settings say: cells near the camera, of a cube, and around the local bound; log-odds [1 / 4096].
  int reach, radius, margin, field_margin, hit, miss, least, most, unknown, occupied, with_field, floor;
  INLINE size_t row(int x, int y) const { return ((size_t)(x % side[0]) * side[1] + y % side[1]) * side[2]; }
  INLINE int slot(int z) const { return z % side[2]; }
  INLINE int last(int axis) const {
    const int end = corner[axis] + side[axis];
    return end < cells[axis] ? end : cells[axis];
  }
  // The local bound, grown by some cells along each axis and cut at the window.
  INLINE Cells grown(int by) const {
    Cells out;
    for (int a = 0; a < 3; ++a) {
      out.lo[a] = bound[a] - by > corner[a] ? bound[a] - by : corner[a];
      out.hi[a] = bound[3 + a] + by < last(a) ? bound[3 + a] + by : last(a);
    }
    return out;
  }
  // What is inflated whatever was seen: the lowest layers, where the floor is known, and the uppermost, which is the ceiling.
  INLINE B always(int z) const { return V::between(cells[2] - 1 - z, cells[2] - z) | V::between(-z, floor - z); }
  INLINE bool seen() const { return bound[3] >= 0; }
};
