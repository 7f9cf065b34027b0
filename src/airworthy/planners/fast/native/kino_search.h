// Kinodynamic A* of one flight: states of a double integrator, one node per cell of position, acceleration held for a while.
// The open set is a binary heap ordered by (estimate, node), so no two entries are equal and there is one answer. A node knows
// its place in the heap. Twin: search_twin.py.
struct Node {
  double state[6], input[3], duration, cost, estimate;
  int cell[3], parent, place, slot;
};
struct KinoSearch {
  Known known;
  Node* nodes;
  int *heap, *table;
  int capacity, slots, count, size, expansions;
  double speed, weight, greed;
  const double* goal;

  INLINE bool before(int a, int b) const {
    return nodes[a].estimate < nodes[b].estimate || (nodes[a].estimate == nodes[b].estimate && a < b);
  }
  INLINE void put(int at, int node) {
    heap[at] = node;
    nodes[node].place = at;
  }
  INLINE void settle(int at, int node) {
    while (at > 0 && before(node, heap[(at - 1) / 2])) {
      put(at, heap[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    while (2 * at + 1 < size) {
      int child = 2 * at + 1;
      if (child + 1 < size && before(heap[child + 1], heap[child])) ++child;
      if (!before(heap[child], node)) break;
      put(at, heap[child]);
      at = child;
    }
    put(at, node);
  }
  INLINE int pop() {
    const int best = heap[0], last = heap[--size];
    if (size > 0) settle(0, last);
    nodes[best].place = CLOSED;
    return best;
  }
  // The node of a cell, or -1 and the free slot where it would be.
  INLINE int find(const int* cell, int* slot) const {
    unsigned long long key = (unsigned long long)(unsigned)cell[0] * 0x9E3779B97F4A7C15ull;
    key = (key ^ (unsigned)cell[1]) * 0xC2B2AE3D27D4EB4Full;
    key = (key ^ (unsigned)cell[2]) * 0x165667B19E3779F9ull;
    int at = (int)((key >> 32) & (unsigned)(slots - 1));
    while (table[at] >= 0) {
      const Node& n = nodes[table[at]];
      if (n.cell[0] == cell[0] && n.cell[1] == cell[1] && n.cell[2] == cell[2]) return table[at];
      at = (at + 1) & (slots - 1);
    }
    *slot = at;
    return -1;
  }
  INLINE void clear() {
    for (int k = 0; k < count; ++k) table[nodes[k].slot] = -1;
    count = size = 0;
  }
  static INLINE void move(const double* from, const double* input, double t, double* to) {
    for (int k = 0; k < 3; ++k) {
      to[k] = from[k] + from[k + 3] * t + 0.5 * input[k] * t * t;
      to[k + 3] = from[k + 3] + input[k] * t;
    }
  }
  INLINE double ahead(const double* state) const {
    double when;
    return greed * Boundary::between(state, goal, weight, speed, &when);
  }
  INLINE void set(Node& n, const double* state, const double* input, double duration, int parent, double cost, double estimate) {
    for (int k = 0; k < 6; ++k) n.state[k] = state[k];
    for (int k = 0; k < 3; ++k) n.input[k] = input[k];
    n.duration = duration;
    n.parent = parent;
    n.cost = cost;
    n.estimate = estimate;
  }
  INLINE void add(const int* cell, int slot) {
    for (int k = 0; k < 3; ++k) nodes[count].cell[k] = cell[k];
    nodes[count].slot = slot;
    table[slot] = count;
    settle(size++, count);
    ++count;
  }
  // One successor; false when the nodes are used up.
  INLINE bool offer(int parent, int born, const double* input, double duration, int checks) {
    const Node& from = nodes[parent];
    double to[6], at[6];
    move(from.state, input, duration, to);
    int cell[3], slot;
    for (int k = 0; k < 3; ++k) cell[k] = known.index(to[k], k);
    const int there = find(cell, &slot);
    if (there >= 0 && nodes[there].place == CLOSED) return true;
    for (int k = 3; k < 6; ++k)
      if (::fabs(to[k]) > speed) return true;
    if (cell[0] == from.cell[0] && cell[1] == from.cell[1] && cell[2] == from.cell[2]) return true;
    for (int k = 1; k <= checks; ++k) {
      move(from.state, input, duration * k / checks, at);
      if (known.blocked(at)) return true;
    }
    const double effort = input[0] * input[0] + input[1] * input[1] + input[2] * input[2];
    const double cost = from.cost + (effort + weight) * duration, estimate = cost + ahead(to);
    if (there < 0) {
      set(nodes[count], to, input, duration, parent, cost, estimate);
      add(cell, slot);
      return count < capacity;
    }
    // Born of this very parent: the lower estimate counts; reached before: the lower cost.
    if (there >= born ? estimate < nodes[there].estimate : cost < nodes[there].cost) {
      set(nodes[there], to, input, duration, parent, cost, estimate);
      settle(nodes[there].place, there);
    }
    return true;
  }
  // A cubic from a state to the goal in its best time, and whether ten points of it are free.
  INLINE bool connect(const double* state, double* curve, double* duration) const {
    double t;
    Boundary::between(state, goal, weight, speed, &t);
    *duration = t;
    if (!(t > 0.0)) return false;
    for (int k = 0; k < 3; ++k) {
      const double left = goal[k] - state[k] - state[k + 3] * t, gain = goal[k + 3] - state[k + 3];
      curve[k * 4] = state[k];
      curve[k * 4 + 1] = state[k + 3];
      curve[k * 4 + 2] = 0.5 * (6.0 / (t * t) * left - 2.0 / t * gain);
      curve[k * 4 + 3] = (-12.0 / (t * t * t) * left + 6.0 / (t * t) * gain) / 6.0;
    }
    for (int s = 1; s <= 10; ++s) {
      const double u = t * s / 10;
      double at[3];
      for (int k = 0; k < 3; ++k) {
        const double* c = curve + 4 * k;
        at[k] = ((c[3] * u + c[2]) * u + c[1]) * u + c[0];
      }
      if (known.blocked(at)) return false;
    }
    return true;
  }
};
