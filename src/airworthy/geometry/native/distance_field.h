// Squared Euclidean distance transform [cells^2] in whole numbers, one axis after the other: x by two sweeps, y and z as the
// lower envelope of the parabolas value(j) + (i - j)^2. An envelope near its minimum is found faster by looking outwards from i
// in lanes until no farther cell can be nearer; a line on which that takes more than REACH steps gets Meijster's linear
// construction ("A general algorithm for computing distance transforms in linear time", 2000). Both are exact, so which one ran
// cannot show. Arrays are (grid, nx, ny, stride) with stride a multiple of LANES; NOWHERE marks cells without any distance.
struct Line {
  static INLINE I load(const int* p) { return N::signed_of(N::load_u((const unsigned int*)p)); }
  static INLINE void store(int* p, I x) { N::store_u((unsigned int*)p, (U)x); }
  static INLINE I lower(I a, I b) { return a < b ? a : b; }
  static INLINE I load_flags(const unsigned char* p) {
#if LANES == 1
    return *p;
#else
    typedef unsigned char B __attribute__((ext_vector_type(16), aligned(1)));
    return __builtin_convertvector(*(const B*)p, I);
#endif
  }
  // Envelope of one line of n values `step` apart, written over them. `at` and `from` hold n numbers each.
  static INLINE void envelope(int* value, int step, int n, int* at, int* from, int* kept) {
    int top = 0;
    at[0] = from[0] = 0;
    for (int u = 0; u < n; ++u) kept[u] = value[u * step];
    for (int u = 1; u < n; ++u) {
      while (top >= 0) {
        const int a = from[top] - at[top], b = from[top] - u;
        if (a * a + kept[at[top]] <= b * b + kept[u]) break;
        --top;
      }
      if (top < 0) {
        top = 0;
        at[0] = u;
        from[0] = 0;
        continue;
      }
      const int i = at[top], first = 1 + (u * u - i * i + kept[u] - kept[i]) / (2 * (u - i));
      if (first < n) {
        ++top;
        at[top] = u;
        from[top] = first;
      }
    }
    for (int u = n - 1; u >= 0; --u) {
      const int d = u - at[top];
      value[u * step] = d * d + kept[at[top]];
      if (u == from[top]) --top;
    }
  }
};
const int slab = ny * stride;
if (along_x) {
  // A task is one (grid, y): distances to the nearest occupied cell of the same x line.
  const size_t base = (size_t)(task / ny) * nx * slab + (task % ny) * stride;
  for (int z = 0; z < stride; z += LANES) {
    I d = (I)FAR;
    for (int x = 0; x < nx; ++x) {
      const I taken = Line::load_flags(occupied.data + base + (size_t)x * slab + z);
      d = Line::lower(taken != 0 ? (I)0 : d + 1, (I)FAR);
      Line::store(squared.data + base + (size_t)x * slab + z, d);
    }
    for (int x = nx - 1; x >= 0; --x) {
      int* here = squared.data + base + (size_t)x * slab + z;
      d = Line::lower(Line::load(here), d + 1);
      Line::store(here, d * d);
    }
  }
  return;
}
// A task is one (grid, x): y, then z, then the root.
int* plane = squared.data + (size_t)task * slab;
int* work = scratch.data + (size_t)task * scratch_size;
for (int z = 0; z < stride; z += LANES) {
  I least = (I)(4 * NOWHERE);
  for (int y = 0; y < ny; ++y) {
    const I v = Line::load(plane + y * stride + z);
    Line::store(work + y * LANES, v);
    least = Line::lower(least, v);
  }
  bool done = true;
  for (int y = 0; y < ny && done; ++y) {
    I best = Line::load(work + y * LANES);
    const int last = y > ny - 1 - y ? y : ny - 1 - y;
    for (int r = 1; r <= last && N::any(best > least + r * r); ++r) {
      if (y - r >= 0) best = Line::lower(best, Line::load(work + (y - r) * LANES) + r * r);
      if (y + r < ny) best = Line::lower(best, Line::load(work + (y + r) * LANES) + r * r);
      done = r < REACH;
      if (!done) break;
    }
    Line::store(plane + y * stride + z, best);
  }
  if (done) continue;
  for (int y = 0; y < ny; ++y) Line::store(plane + y * stride + z, Line::load(work + y * LANES));
  int* const lists = work + ny * LANES;
  for (int lane = 0; lane < LANES; ++lane)
    Line::envelope(plane + z + lane, stride, ny, lists, lists + ny, lists + 2 * ny);
}
const int pad = stride < REACH ? stride : REACH;
for (int k = 0; k < pad; ++k) work[k] = work[pad + stride + k] = 4 * NOWHERE;
for (int y = 0; y < ny; ++y) {
  int* const row = plane + y * stride;
  int* const line = work + pad;
  int least = 4 * NOWHERE;
  for (int z = 0; z < stride; ++z) {
    line[z] = z < nz ? row[z] : 4 * NOWHERE;
    least = line[z] < least ? line[z] : least;
  }
  bool done = true;
  for (int z = 0; z < nz && done; z += LANES) {
    I best = Line::load(line + z);
    for (int r = 1; r < nz && N::any(best > (I)(least + r * r)); ++r) {
      done = r <= pad;
      if (!done) break;
      best = Line::lower(best, Line::lower(Line::load(line + z - r), Line::load(line + z + r)) + r * r);
    }
    Line::store(row + z, best);
  }
  if (!done) {
    for (int z = 0; z < nz; ++z) row[z] = line[z];
    int* const lists = work + 2 * pad + stride;
    Line::envelope(row, 1, nz, lists, lists + nz, lists + 2 * nz);
  }
  for (int z = 0; z < nz; z += LANES) {
    const I v = Line::load(row + z);
    const F d = N::sqrt(N::from_int(v)) * resolution;
    N::store(distance.data + ((size_t)task * ny + y) * stride + z, N::select(v >= (I)NOWHERE, N::c(far_value), d));
  }
}
