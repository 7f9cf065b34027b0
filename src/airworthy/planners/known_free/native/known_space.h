// What one flight knows of its area: UNKNOWN, FREE or OCCUPIED cells, and what a search needs of them, kept up to date with every
// cell that changes. Twin: known_space.py. A cell has its state in two bits and above them how many occupied cells are nearer to
// its middle than the body is wide; between them, whether a ray ever passed it, and whether something came into it (`entered`). A node is 2 x 2 x 1 cells: how many of them are blocked, free and occupied.
struct KnownSpace {
  enum { UNKNOWN = 0, FREE = 1, OCCUPIED = 2, STATE = 3, WAS_FREE = 4, ENTERED = 8, COUNT = 16 };
  enum { NODE_BLOCKED = 1, NODE_FREE = 1 << 3, NODE_OCCUPIED = 1 << 6, NODE_REFUSED = 1 << 9 };
  enum { NEAR = 1, WIDE = 1 << 16 };
  unsigned short* cell;
  unsigned short* node;
  unsigned int* crowd;     // occupied nodes near each node, and in a wider circle
  unsigned short* column;  // occupied nodes above and below each other, without the floor
  int n[3], m[3];          // cells and nodes along x, y, z
  double origin[3], h;

  INLINE void begin(const unsigned long long* address, const int* size, const double* number) {
    cell = (unsigned short*)address[0];
    node = (unsigned short*)address[1];
    crowd = (unsigned int*)address[2];
    column = (unsigned short*)address[3];
    for (int a = 0; a < 3; ++a) {
      n[a] = size[a];
      m[a] = a < 2 ? (size[a] + 1) / 2 : size[a];
      origin[a] = number[a];
    }
    h = number[3];
  }
  INLINE size_t at(int x, int y, int z) const { return ((size_t)x * n[1] + y) * n[2] + z; }
  INLINE size_t node_at(int i, int j, int k) const { return ((size_t)i * m[1] + j) * m[2] + k; }
  static INLINE int blocked(unsigned short v) { return v & 7; }
  static INLINE int free(unsigned short v) { return v >> 3 & 7; }
  static INLINE int occupied(unsigned short v) { return v >> 6 & 7; }

  // An occupied cell comes (+1) or goes (-1).
  void block(int x, int y, int z, int sign, const int* ball, int ball_count, const int* ring, int ring_count) {
    for (int b = 0; b < ball_count; ++b) {
      const int i = x + ball[3 * b], j = y + ball[3 * b + 1], k = z + ball[3 * b + 2];
      if (i < 0 || j < 0 || k < 0 || i >= n[0] || j >= n[1] || k >= n[2]) continue;
      unsigned short& held = cell[at(i, j, k)];
      const int before = held / COUNT;
      held = (unsigned short)(held + sign * COUNT);
      if (sign > 0 ? before == 0 : before == 1) node[node_at(i / 2, j / 2, k)] += (unsigned short)(sign * NODE_BLOCKED);
    }
    const int i = x / 2, j = y / 2;
    unsigned short& held = node[node_at(i, j, z)];
    const int before = occupied(held);
    held = (unsigned short)(held + sign * NODE_OCCUPIED);
    if (sign > 0 ? before != 0 : before != 1) return;
    if (z >= FLOOR) column[(size_t)i * m[1] + j] = (unsigned short)(column[(size_t)i * m[1] + j] + sign);
    for (int r = 0; r < ring_count; ++r) {
      const int u = i + ring[4 * r], v = j + ring[4 * r + 1], w = z + ring[4 * r + 2];
      if (u < 0 || v < 0 || w < 0 || u >= m[0] || v >= m[1] || w >= m[2]) continue;
      crowd[node_at(u, v, w)] += (unsigned int)(sign * (WIDE + ring[4 * r + 3] * NEAR));
    }
  }
  // 1 where that changed anything.
  int set(int x, int y, int z, int state, const int* ball, int ball_count, const int* ring, int ring_count) {
    unsigned short& held = cell[at(x, y, z)];
    const int before = held & STATE;
    if (before == state) return 0;
    held = (unsigned short)((held & ~STATE) | state);
    unsigned short& above = node[node_at(x / 2, y / 2, z)];
    if (state == FREE) above += NODE_FREE;
    if (before == FREE) above -= NODE_FREE;
    if (free(above) == 4) above = (unsigned short)(above & ~NODE_REFUSED);
    if (state == OCCUPIED) block(x, y, z, 1, ball, ball_count, ring, ring_count);
    if (before == OCCUPIED) block(x, y, z, -1, ball, ball_count, ring, ring_count);
    return 1;
  }
  // Whether a ray has passed this cell and all around it at some time: what stands there now has come there.
  INLINE bool was_open(int x, int y, int z) const {
    if (x < 1 || y < 1 || z < 1 || x >= n[0] - 1 || y >= n[1] - 1 || z >= n[2] - 1) return false;
    for (int i = x - 1; i <= x + 1; ++i)
      for (int j = y - 1; j <= y + 1; ++j)
        for (int k = z - 1; k <= z + 1; ++k)
          if (!(cell[at(i, j, k)] & WAS_FREE)) return false;
    return true;
  }
  // Whether an unknown cell has so many free ones around it, and none that is occupied.
  INLINE bool is_hole(int x, int y, int z, int least) const {
    const unsigned short* const here = cell + at(x, y, z);
    if (*here & STATE) return false;
    if (x < 1 || y < 1 || z < 1 || x >= n[0] - 1 || y >= n[1] - 1 || z >= n[2] - 1) return false;
    // Most cells are far from anything free: three looks tell.
    if ((here[1] & STATE) != FREE && (here[-1] & STATE) != FREE && (here[n[2]] & STATE) != FREE) return false;
    int count = 0;
    for (int i = -1; i <= 1; ++i)
      for (int j = -1; j <= 1; ++j) {
        const unsigned short* const row = here + ((long long)i * n[1] + j) * n[2];
        for (int k = -1; k <= 1; ++k) {
          const int state = row[k] & STATE;
          if (state == OCCUPIED) return false;
          count += state == FREE;
        }
      }
    return count >= least;
  }
  // Whether a ball is free: 0, or UNSEEN or MET for what is in it. Unknown counts within `sure`, occupied within `wide`.
  int meets(const double* p, double wide, double sure) const {
    double q[3];
    int lo[3], hi[3];
    for (int a = 0; a < 3; ++a) {
      q[a] = (p[a] - origin[a]) / h;
      const double most = (wide > sure ? wide : sure) / h;
      const double low = ::floor(q[a] - most), high = ::floor(q[a] + most);
      lo[a] = low < 0.0 ? 0 : low > n[a] - 1 ? n[a] : (int)low;
      hi[a] = high < 0.0 ? -1 : high > n[a] - 1 ? n[a] - 1 : (int)high;
    }
    const double far = wide * wide / (h * h), near = sure * sure / (h * h);
    int met = 0;
    for (int x = lo[0]; x <= hi[0]; ++x) {
      const double dx = q[0] < x ? x - q[0] : q[0] > x + 1 ? q[0] - (x + 1) : 0.0;
      for (int y = lo[1]; y <= hi[1]; ++y) {
        const double dy = q[1] < y ? y - q[1] : q[1] > y + 1 ? q[1] - (y + 1) : 0.0;
        const double flat = dx * dx + dy * dy;
        if (flat >= far && flat >= near) continue;
        const unsigned short* const row = cell + at(x, y, 0);
        for (int z = lo[2]; z <= hi[2]; ++z) {
          const int state = row[z] & STATE;
          if (state == FREE) continue;
          const double dz = q[2] < z ? z - q[2] : q[2] > z + 1 ? q[2] - (z + 1) : 0.0;
          const double square = flat + dz * dz;
          if (state == OCCUPIED && square < far) return MET;
          if (state == UNKNOWN && square < near) met = UNSEEN;
        }
      }
    }
    return met;
  }
};
