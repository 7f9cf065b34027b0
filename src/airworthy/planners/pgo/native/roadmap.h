// A sparse roadmap between two points: guards, which see no other guard, and connectors, which join two of them. Nodes 0 and 1 are
// the ends. Paths through it, one per way around things. Twin: roadmap.py.
struct Road {
  double position[3];
  int guard, neighbours, first, last;  // edges as a chain
};
struct Edge {
  int to, next;
};
struct Roadmap {
  Sight sight;
  Road* nodes;
  Edge* edges;
  int node_count, edge_count, raw_count;
  int *raw, *raw_size;

  INLINE void add(const double* p, int guard) {
    Road& n = nodes[node_count++];
    for (int k = 0; k < 3; ++k) n.position[k] = p[k];
    n.guard = guard;
    n.neighbours = 0;
    n.first = n.last = -1;
  }
  INLINE void link(int a, int b) {
    edges[edge_count] = {b, -1};
    Road& n = nodes[a];
    if (n.last < 0) n.first = edge_count;
    else edges[n.last].next = edge_count;
    n.last = edge_count++;
    ++n.neighbours;
  }
  // Guards that see a point, up to three.
  INLINE int visible(const double* p, int* found) const {
    int count = 0;
    double met[3];
    for (int i = 0; i < node_count && count < 3; ++i)
      if (nodes[i].guard && sight.clear(p, nodes[i].position, sight.known.w->resolution, met)) found[count++] = i;
    return count;
  }
  // Whether the path over a point between two guards is a new one. A known one takes the point where that is shorter.
  INLINE bool is_new(int a, int b, const double* p) {
    double one[9], other[9];
    set3(one, nodes[a].position, p, nodes[b].position);
    for (int e = nodes[a].first; e >= 0; e = edges[e].next) {
      Road& middle = nodes[edges[e].to];
      const int f = middle.first;
      if (edges[f].to != b && edges[edges[f].next].to != b) continue;
      set3(other, nodes[a].position, middle.position, nodes[b].position);
      if (!sight.equivalent(one, 3, other, 3)) continue;
      if (Sight::length(one, 3) < Sight::length(other, 3))
        for (int k = 0; k < 3; ++k) middle.position[k] = p[k];
      return false;
    }
    return true;
  }
  static INLINE void set3(double* to, const double* a, const double* b, const double* c) {
    for (int k = 0; k < 3; ++k) {
      to[k] = a[k];
      to[3 + k] = b[k];
      to[6 + k] = c[k];
    }
  }
  INLINE void sample(const double* p) {
    int guards[3];
    const int count = visible(p, guards);
    if (count == 0) add(p, 1);
    if (count != 2 || !is_new(guards[0], guards[1], p)) return;
    const int at = node_count;
    add(p, 0);
    link(at, guards[0]);
    link(at, guards[1]);
    link(guards[0], at);
    link(guards[1], at);
  }
  // Take away what leads nowhere: nodes with one neighbour or none, until there are no more. `neighbours` counts what is left;
  // it is -1 of what is gone.
  INLINE void prune() {
    for (bool again = true; again;) {
      again = false;
      for (int i = 2; i < node_count; ++i) {
        if (nodes[i].neighbours < 0 || nodes[i].neighbours > 1) continue;
        nodes[i].neighbours = -1;
        for (int e = nodes[i].first; e >= 0; e = edges[e].next)
          if (nodes[edges[e].to].neighbours > 0) --nodes[edges[e].to].neighbours;
        again = true;
      }
    }
  }
  // Depth first, all ways from node 0 to node 1 without turning back, at most `most` and in `effort` steps.
  INLINE void enumerate(int most, int effort) {
    int stack[MOST_DEPTH], edge[MOST_DEPTH], depth = 1;
    raw_count = 0;
    stack[0] = 0;
    edge[0] = enter(stack, 1, most);
    while (depth > 0 && raw_count < most && effort-- > 0) {
      const int e = edge[depth - 1];
      if (e < 0) {
        --depth;
        continue;
      }
      edge[depth - 1] = edges[e].next;
      const int to = edges[e].to;
      bool skip = to == 1 || nodes[to].neighbours < 0 || depth + 1 >= MOST_DEPTH;
      for (int i = 0; i < depth && !skip; ++i) skip = stack[i] == to;
      if (skip) continue;
      stack[depth++] = to;
      edge[depth - 1] = enter(stack, depth, most);
    }
  }
  // Note the path where the node that was just reached is next to the end; its first edge.
  INLINE int enter(const int* stack, int depth, int most) {
    const Road& n = nodes[stack[depth - 1]];
    for (int e = n.first; e >= 0; e = edges[e].next) {
      if (edges[e].to != 1 || raw_count >= most) continue;
      for (int i = 0; i < depth; ++i) raw[raw_count * MOST_DEPTH + i] = stack[i];
      raw[raw_count * MOST_DEPTH + depth] = 1;
      raw_size[raw_count++] = depth + 1;
      break;
    }
    return n.first;
  }
};
