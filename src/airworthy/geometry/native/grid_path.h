// A* over the cells of one grid, 26-connected. A diagonal step is allowed only where every cell of the box that it crosses is
// free, so the segment between two cell centres stays inside free cells. The open set is a binary heap ordered by (estimate,
// cell number): no two entries are equal, hence one answer. A heap entry knows its place (`place`), so costs are decreased in
// the heap and no cell is in it twice. Readable twin: Dijkstra in tests/geometry/test_grid_path.py.
struct Search {
  const unsigned char* taken;
  double *cost, *estimate;
  int *heap, *heap_index;
  int size;
  INLINE bool before(int a, int b) const { return estimate[a] < estimate[b] || (estimate[a] == estimate[b] && a < b); }
  INLINE void put(int at, int cell) {
    heap[at] = cell;
    heap_index[cell] = at;
  }
  INLINE void rise(int at, int cell) {
    while (at > 0 && before(cell, heap[(at - 1) / 2])) {
      put(at, heap[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    put(at, cell);
  }
  INLINE int pop() {
    const int best = heap[0], last = heap[--size];
    int at = 0;
    while (2 * at + 1 < size) {
      int child = 2 * at + 1;
      if (child + 1 < size && before(heap[child + 1], heap[child])) ++child;
      if (!before(heap[child], last)) break;
      put(at, heap[child]);
      at = child;
    }
    if (size > 0) put(at, last);
    heap_index[best] = CLOSED;
    return best;
  }
};
const double kind[4] = {0.0, 1.0, 1.4142135623730951, 1.7320508075688772};
Search s = {occupied.data, cost.data, estimate.data, heap.data, heap_index.data, 0};
const int gx = goal / (ny * nz), gy = goal / nz % ny, gz = goal % nz;
s.cost[start] = s.estimate[start] = 0.0;
s.rise(s.size++, start);
int expansions = 0, found = 0;
while (s.size > 0 && expansions < most) {
  const int cell = s.pop();
  ++expansions;
  if (cell == goal) {
    found = 1;
    break;
  }
  const int x = cell / (ny * nz), y = cell / nz % ny, z = cell % nz;
  bool open[27];
  for (int d = 0; d < 27; ++d) {
    const int i = x + d / 9 - 1, j = y + d / 3 % 3 - 1, k = z + d % 3 - 1;
    open[d] = i >= 0 && i < nx && j >= 0 && j < ny && k >= 0 && k < nz && !s.taken[(i * ny + j) * nz + k];
  }
  for (int d = 0; d < 27; ++d) {
    const int a = d / 9 - 1, b = d / 3 % 3 - 1, c = d % 3 - 1;
    if (d == 13 || !open[d]) continue;
    bool clear = true;
    for (int part = 1; part < 7; ++part)
      clear = clear && open[13 + 9 * a * (part & 1) + 3 * b * (part >> 1 & 1) + c * (part >> 2 & 1)];
    const int next = cell + (a * ny + b) * nz + c;
    if (!clear || s.heap_index[next] == CLOSED) continue;
    const double through = s.cost[cell] + kind[(a != 0) + (b != 0) + (c != 0)];
    if (through >= s.cost[next]) continue;
    s.cost[next] = through;
    came.data[next] = (unsigned char)d;
    int u = abs(x + a - gx), v = abs(y + b - gy), w = abs(z + c - gz), t;
    if (u < v) { t = u; u = v; v = t; }
    if (v < w) { t = v; v = w; w = t; }
    if (u < v) { t = u; u = v; v = t; }
    s.estimate[next] = through + kind[3] * w + kind[2] * (v - w) + (u - v);
    s.rise(s.heap_index[next] == UNSEEN ? s.size++ : s.heap_index[next], next);
  }
}
result.data[0] = found;
result.data[1] = expansions;
result.data[2] = s.size;
