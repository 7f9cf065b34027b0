// The cheapest way from a start to a goal through what is free or unknown: A* on nodes of 2 x 2 x 1 cells, 26 neighbours. Into the
// unknown it neither climbs nor sinks steeper than a node is wide, for steeper than that no camera that looks ahead sees. The open
// set is ordered by (estimate, node): there is one answer. Twin: route_twin.py.
struct RouteNode {
  double cost;  // of the cheapest way so far; infinite while none is known
  int round;    // of the search that filled the rest in
  unsigned char came, closed;
  signed char rate;  // which of the search's rates: found once per node, asked for by up to 26 neighbours
  unsigned char dim;
};
struct RouteItem {
  double estimate;
  int node, next;  // `next`: in a list, where it waits
  INLINE bool before(const RouteItem& other) const {
    return estimate < other.estimate || (estimate == other.estimate && node < other.node);
  }
};
// The open set: a heap of what may come next, and unordered lists of what comes later, one for each step of the estimate. In one
// heap of all, a third of a search went into finding the least of tens of thousands. Steps change no order: the heap holds all that
// lies in its last step or before, and the last list all that is beyond.
struct OpenSet {
  enum { PER_UNIT = 64 };  // steps of a cell's edge
  RouteItem *heap, *waiting;
  int* lists;              // first of each step in `waiting`; -1: none
  int count, step;         // of the heap, and its last step
  int fresh, unused;       // of `waiting`: how many were ever taken, and the first of those that were given back
  int live, capacity;      // entries in all, and at most
  double least;            // estimate of the search's start: few are below it

  INLINE void begin(RouteItem* memory, int* steps, int most, double from) {
    heap = memory;
    waiting = memory + most;
    lists = steps;
    capacity = most;
    least = from;
    count = fresh = live = step = 0;
    unused = -1;
    for (int k = 0; k < OPEN_STEPS; ++k) lists[k] = -1;
  }
  INLINE int step_of(double estimate) const {
    const double at = (estimate - least) * PER_UNIT;
    return at < 0.0 ? 0 : at < OPEN_STEPS - 1 ? (int)at : OPEN_STEPS - 1;
  }
  INLINE void add(const RouteItem& item) {
    int at = count++;
    while (at > 0 && item.before(heap[(at - 1) / 4])) {
      heap[at] = heap[(at - 1) / 4];
      at = (at - 1) / 4;
    }
    heap[at] = item;
  }
  INLINE bool push(double estimate, int node) {
    if (live >= capacity) return false;
    ++live;
    const int later = step_of(estimate);
    if (later <= step) {
      add({estimate, node, -1});
      return true;
    }
    int at = unused;
    if (at >= 0) unused = waiting[at].next;
    else at = fresh++;
    waiting[at] = {estimate, node, lists[later]};
    lists[later] = at;
    return true;
  }
  // The least; there is one.
  INLINE int pop() {
    while (count == 0) {
      int at = lists[++step];
      lists[step] = -1;
      while (at >= 0) {
        const RouteItem item = waiting[at];
        waiting[at].next = unused;
        unused = at;
        add(item);
        at = item.next;
      }
    }
    --live;
    const int best = heap[0].node;
    const RouteItem last = heap[--count];
    int at = 0;
    while (4 * at + 1 < count) {
      int least = 4 * at + 1;
      const int end = least + 4 < count ? least + 4 : count;
      for (int child = least + 1; child < end; ++child) least = heap[child].before(heap[least]) ? child : least;
      if (!heap[least].before(last)) break;
      heap[at] = heap[least];
      at = least;
    }
    heap[at] = last;
    return best;
  }
};
struct RouteSearch {
  const KnownSpace& space;
  RouteNode* nodes;
  OpenSet open;
  int round;
  const double* price;  // near, wide, partly blocked, unknown, unknown above or below something, escaping, weight of the estimate, blind
  const int* limit;     // lowest and last node along each axis
  int first[3];
  double escape, blind;

  static INLINE bool unknown(unsigned short v) { return KnownSpace::free(v) < 2 && KnownSpace::occupied(v) == 0; }
  // Whether a body in a node would reach into the unknown.
  INLINE bool dim(int i, int j, int k, size_t at) const {
    if (unknown(space.node[at])) return true;
    const long long step[3] = {(long long)space.m[1] * space.m[2], space.m[2], 1};
    const int here[3] = {i, j, k}, far[3] = {2, 2, 4};
    for (int a = 0; a < 3; ++a) {
      if (here[a] >= far[a] && unknown(space.node[(long long)at - far[a] * step[a]])) return true;
      if (here[a] + far[a] < space.m[a] && unknown(space.node[(long long)at + far[a] * step[a]])) return true;
    }
    return false;
  }
  // What a metre costs, by number: OPEN to ESCAPING as it is, then in the unknown, then there above or below something, these two
  // doubled for near and far of the start.
  enum { OPEN, NEAR, WIDE, PARTLY, ESCAPING, KINDS };
  double rates[5 * KINDS];
  INLINE void fill_rates() {
    const double plain[KINDS] = {1.0, price[0], price[1], price[2], price[5]};
    for (int kind = 0; kind < KINDS; ++kind) {
      rates[kind] = plain[kind];
      rates[KINDS + kind] = plain[kind] * price[3];
      rates[2 * KINDS + kind] = plain[kind] * price[4];
      rates[3 * KINDS + kind] = rates[KINDS + kind] + price[7];
      rates[4 * KINDS + kind] = rates[2 * KINDS + kind] + price[7];
    }
  }
  // The number of a node's rate; below 0: nobody flies there.
  INLINE int rate_of(int i, int j, int k, size_t at, bool into) const {
    const unsigned short v = space.node[at];
    if (v & KnownSpace::NODE_REFUSED) return -1;
    int kind = OPEN;
    const double dx = 2.0 * (i - first[0]), dy = 2.0 * (j - first[1]), dz = k - first[2];
    const double away = dx * dx + dy * dy + dz * dz;
    if (KnownSpace::blocked(v) >= 4) {
      if (KnownSpace::occupied(v) || away > escape) return -1;
      kind = ESCAPING;
    } else if (KnownSpace::blocked(v)) {
      kind = PARTLY;
    } else {
      const unsigned int crowd = space.crowd[at];
      if (crowd % KnownSpace::WIDE) kind = NEAR;
      else if (crowd) kind = WIDE;
    }
    if (!into) return kind;
    const int under = unknown(v) && space.column[(size_t)i * space.m[1] + j] ? 2 : 1;
    return kind + KINDS * (away > blind ? under : under + 2);
  }
  // A node as this search sees it, found when it is first asked for.
  INLINE RouteNode& seen(int i, int j, int k, size_t at) {
    RouteNode& node = nodes[at];
    if (node.round != round) {
      node.round = round;
      node.closed = 0;
      node.cost = HUGE_VAL;
      node.dim = dim(i, j, k, at);
      node.rate = (signed char)rate_of(i, j, k, at, node.dim);
    }
    return node;
  }
  INLINE double ahead(int i, int j, int k, const int* goal) const {
    const double dx = 2.0 * (i - goal[0]), dy = 2.0 * (j - goal[1]), dz = k - goal[2];
    return price[6] * ::sqrt(dx * dx + dy * dy + dz * dz);
  }
};
KnownSpace space;
space.begin((const unsigned long long*)address.data + 4 * (size_t)task, sizes.data + 3 * (size_t)task, numbers.data + 4 * (size_t)task);
RouteSearch search = {space, (RouteNode*)nodes.data, OpenSet(), round + task, prices.data, limits.data + 6 * (size_t)task};
const int* const from = ends.data + 6 * (size_t)task;
const int* const goal = from + 3;
search.open.begin((RouteItem*)heap.data, steps.data, waiting, search.ahead(from[0], from[1], from[2], goal));
for (int a = 0; a < 3; ++a) search.first[a] = from[a];
search.escape = prices.data[8];
search.blind = prices.data[9];
const double near_goal = prices.data[10];
search.fill_rates();
// Neighbours in the order of their directions, which decides between equals.
struct Neighbour {
  double length;
  int a, b, c, away;
};
Neighbour around[27];
for (int d = 0; d < 27; ++d) {
  const int a = d / 9 - 1, b = d / 3 % 3 - 1, c = d % 3 - 1;
  around[d] = {::sqrt(4.0 * (a * a + b * b) + (double)(c * c)), a, b, c, (a * space.m[1] + b) * space.m[2] + c};
}
const size_t start = space.node_at(from[0], from[1], from[2]);
int expansions = 0, length = 0;
long long reached = -1;
RouteNode& begin = search.seen(from[0], from[1], from[2], start);
begin.cost = 0.0;
begin.came = 13;
search.open.push(0.0, (int)start);
while (search.open.live > 0 && expansions < budget) {
  const long long here = search.open.pop();
  RouteNode& node = search.nodes[here];
  if (node.closed) continue;
  node.closed = 1;
  ++expansions;
  const unsigned int number = (unsigned int)here, row = number / (unsigned int)space.m[2];
  const int k = (int)(number % (unsigned int)space.m[2]), j = (int)(row % (unsigned int)space.m[1]), i = (int)(row / (unsigned int)space.m[1]);
  const double gx = 2.0 * (i - goal[0]), gy = 2.0 * (j - goal[1]), gz = k - goal[2];
  if (gx * gx + gy * gy + gz * gz <= near_goal) {
    reached = here;
    break;
  }
  const int* const l = search.limit;
  const bool inner = i > l[0] && j > l[1] && k > l[2] && i < l[3] && j < l[4] && k < l[5];
  for (int d = 0; d < 27; ++d) {
    const Neighbour& step = around[d];
    const int u = i + step.a, v = j + step.b, w = k + step.c;
    if (d == 13 || (!inner && (u < l[0] || v < l[1] || w < l[2] || u > l[3] || v > l[4] || w > l[5]))) continue;
    const size_t at = (size_t)(here + step.away);
    RouteNode& next = search.seen(u, v, w, at);
    if (next.closed || next.rate < 0 || (next.dim && step.a == 0 && step.b == 0)) continue;
    const double through = node.cost + search.rates[next.rate] * step.length;
    if (through >= next.cost) continue;
    next.cost = through;
    next.came = (unsigned char)d;
    if (!search.open.push(through + search.ahead(u, v, w, goal), (int)at)) {
      search.open.live = 0;
      break;
    }
  }
}
if (reached >= 0) {
  long long at = reached;
  for (length = 1; at != (long long)start; ++length) {
    const int d = search.nodes[at].came;
    at -= ((long long)(d / 9 - 1) * space.m[1] + (d / 3 % 3 - 1)) * space.m[2] + (d % 3 - 1);
  }
  at = reached;
  if (length > longest) length = 0;
  for (int step = length - 1; step >= 0; --step) {
    path.data[(size_t)task * longest + step] = (int)at;
    const int d = search.nodes[at].came;
    at -= ((long long)(d / 9 - 1) * space.m[1] + (d / 3 % 3 - 1)) * space.m[2] + (d % 3 - 1);
  }
}
costs.data[task] = reached >= 0 ? search.nodes[reached].cost * space.h : 0.0;
result.data[2 * task] = length;
result.data[2 * task + 1] = expansions;
