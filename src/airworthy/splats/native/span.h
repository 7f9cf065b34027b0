// The tiles that a Gaussian may meet, from its tags.
struct Span {
  int top, bottom, left, right;
  bool thin;  // within one row or column of tiles, where its bounds are exact enough
  INLINE Span(int rows, int columns) : top(rows & 0xffff), bottom(rows >> 16), left(columns & 0xffff), right(columns >> 16) {
    thin = top == bottom || left == right;
  }
  INLINE bool small() const { return bottom - top < TEST_SIDE && right - left < TEST_SIDE; }
  // Which of the tiles (row + i, column + j) it meets, bit i * TEST_SIDE + j; on a GPU of the one tile.
  static INLINE unsigned int met(const Record& g, int row, int column) {
#if LANES == 1
    const float j = 0.0f, i = 0.0f;
#else
    const F j = L::counted(1, TEST_SIDE), i = L::counted(TEST_SIDE, TEST_SIDE);
#endif
    const F x = ((float)(column * TILE) + 0.5f - g.x) + j * (float)TILE;
    const F y = ((float)(row * TILE) + 0.5f - g.y) + i * (float)TILE;
    return L::bits(Touch::rectangle(g, x, y, (float)(TILE - 1), (float)(TILE - 1), LEAST_PEAK - TOUCH_MARGIN));
  }
#if LANES == 1
  INLINE int count(const Record& g) const {
    int n = 0;
    for (int row = top; row <= bottom; ++row)
      for (int column = left; column <= right; ++column) n += thin || met(g, row, column);
    return n;
  }
#else
  // Which of the tiles met(...) names lie within rows and columns.
  static INLINE unsigned int within(int rows, int columns) {
    const unsigned int across = (1u << (columns < TEST_SIDE ? columns : TEST_SIDE)) - 1u;
    unsigned int bits = 0;
    for (int i = 0; i < TEST_SIDE && i < rows; ++i) bits |= across << (i * TEST_SIDE);
    return bits;
  }
#endif
};
