// A* between two points over the inflated cells, on a cube of its own around their middle. Needs prelude.h and cells.h. Readable
// twin: airworthy.planners.common.search.shortest_grid_path. The open set is ordered by (estimate, cell number), so there is one
// answer. It is a heap of four branches that holds its keys itself, and a cell once for each time that its cost fell: of those
// the first that comes out counts. Cells of earlier searches are told by their round: nothing is cleared.
struct SearchNode {
  double cost;
  int round;
  unsigned char came, taken, closed, spare;
};
struct SearchItem {
  double estimate;
  int cell, spare;
  INLINE bool before(const SearchItem& other) const {
    return estimate < other.estimate || (estimate == other.estimate && cell < other.cell);
  }
};
struct SearchSpace {
  enum { SIDE = 100, MIDDLE = 50, WAITING = SEARCH_WAITING };
  SearchNode* nodes;  // SIDE^3
  SearchItem* heap;   // WAITING
  int* round;         // one number
  int open;
  double centre[3];
  long long expansions;

  INLINE void push(double estimate, int cell) {
    const SearchItem item = {estimate, cell, 0};
    int at = open++;
    while (at > 0 && item.before(heap[(at - 1) / 4])) {
      heap[at] = heap[(at - 1) / 4];
      at = (at - 1) / 4;
    }
    heap[at] = item;
  }
  INLINE int pop() {
    const int best = heap[0].cell;
    const SearchItem last = heap[--open];
    int at = 0;
    while (4 * at + 1 < open) {
      int least = 4 * at + 1;
      const int end = least + 4 < open ? least + 4 : open;
      for (int child = least + 1; child < end; ++child)
        if (heap[child].before(heap[least])) least = child;
      if (!heap[least].before(last)) break;
      heap[at] = heap[least];
      at = least;
    }
    heap[at] = last;
    return best;
  }
  INLINE void point(const Cells& cells, int cell, double* p) const {
    const int index[3] = {cell / (SIDE * SIDE), cell / SIDE % SIDE, cell % SIDE};
    for (int k = 0; k < 3; ++k) p[k] = centre[k] + (double)(index[k] - MIDDLE) * cells.resolution;
  }
  INLINE int cell_at(const Cells& cells, const double* p) const {
    int cell = 0;
    for (int k = 0; k < 3; ++k) {
      const double index = ::floor((p[k] - centre[k]) / cells.resolution + 0.5) + (double)MIDDLE;
      if (!(index >= 0.0 && index < (double)SIDE)) return -1;
      cell = cell * SIDE + (int)index;
    }
    return cell;
  }
  // Move p away from q, a cell at a time, until its cell is free; that cell, or -1 where it leads out of the cube.
  int push_out(const Cells& cells, double* p, const double* q) const {
    while (true) {
      const int cell = cell_at(cells, p);
      double middle[3];
      if (cell < 0) return -1;
      point(cells, cell, middle);
      if (!cells.taken(middle)) return cell;
      const double d[3] = {p[0] - q[0], p[1] - q[1], p[2] - q[2]};
      const double length = ::sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
      if (!(length > 0.0)) return -1;
      for (int k = 0; k < 3; ++k) p[k] = p[k] + d[k] / length * cells.resolution;
    }
  }
  INLINE void meet(const Cells& cells, int cell) {
    SearchNode& node = nodes[cell];
    if (node.round == *round) return;
    double p[3];
    point(cells, cell, p);
    node.round = *round;
    node.closed = 0;
    node.taken = cells.taken(p);
    node.cost = 1e300;
  }
  // Cells from start to goal are written into `path`; their number, or 0 where there is no way within the budget.
  int search(const Cells& cells, const double* from, const double* to, int budget, int* path, int capacity) {
    const double kind[4] = {0.0, 1.0, 1.4142135623730951, 1.7320508075688772};
    double start[3], goal[3];
    expansions = 0;
    for (int k = 0; k < 3; ++k) {
      start[k] = from[k];
      goal[k] = to[k];
      centre[k] = (from[k] + to[k]) / 2.0;
    }
    const int first = push_out(cells, start, goal), last = first < 0 ? -1 : push_out(cells, goal, start);
    if (last < 0) return 0;
    const int gx = last / (SIDE * SIDE), gy = last / SIDE % SIDE, gz = last % SIDE;
    ++*round;
    open = 0;
    meet(cells, first);
    nodes[first].cost = 0.0;
    nodes[first].came = 13;
    push(0.0, first);
    while (open > 0 && expansions < budget) {
      const int cell = pop();
      if (nodes[cell].closed) continue;
      nodes[cell].closed = 1;
      ++expansions;
      if (cell == last) return trace(first, last, path, capacity);
      const int x = cell / (SIDE * SIDE), y = cell / SIDE % SIDE, z = cell % SIDE;
      const double here = nodes[cell].cost;
      for (int d = 0; d < 27; ++d) {
        const int a = d / 9 - 1, b = d / 3 % 3 - 1, c = d % 3 - 1, i = x + a, j = y + b, k = z + c;
        if (d == 13 || i < 0 || j < 0 || k < 0 || i >= SIDE || j >= SIDE || k >= SIDE) continue;
        const int next = (i * SIDE + j) * SIDE + k;
        meet(cells, next);
        SearchNode& node = nodes[next];
        if (node.taken || node.closed) continue;
        const double through = here + kind[(a != 0) + (b != 0) + (c != 0)];
        if (through >= node.cost) continue;
        if (open >= WAITING) return 0;
        int u = abs(i - gx), v = abs(j - gy), w = abs(k - gz), t;
        if (u < v) { t = u; u = v; v = t; }
        if (v < w) { t = v; v = w; w = t; }
        if (u < v) { t = u; u = v; v = t; }
        node.cost = through;
        node.came = (unsigned char)d;
        push(through + 1.0001 * (kind[3] * w + kind[2] * (v - w) + (u - v)), next);
      }
    }
    return 0;
  }
  int trace(int first, int last, int* path, int capacity) const {
    int length = 1;
    for (int cell = last; cell != first; cell = back(cell)) ++length;
    if (length > capacity) return 0;
    int cell = last;
    for (int k = length - 1; k >= 0; --k, cell = k >= 0 ? back(cell) : cell) path[k] = cell;
    return length;
  }
  INLINE int back(int cell) const {
    const int d = nodes[cell].came;
    return cell - ((d / 9 - 1) * SIDE + (d / 3 % 3 - 1)) * SIDE - (d % 3 - 1);
  }
};
