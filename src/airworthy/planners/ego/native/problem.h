// Costs of EGO-Planner over one flight's control points, and the discovery of obstacles while they are minimised. Needs cells.h
// and search.h. Readable twins: airworthy.planners.ego.costs, airworthy.planners.ego.twin; the same operations in the same order.
struct EgoSettings {
  double spacing, horizon, tolerance, smooth, collision, feasibility, fitness, clearance, close, gradient;
  int expansions, evaluations, iterations;
};
struct EgoProblem {
  enum { MOST = EGO_MOST, PAIRS = EGO_PAIRS, PATHS = EGO_PATHS };
  enum { GO, REBOUND, ERROR };
  const Cells* cells;
  SearchSpace* space;
  EgoSettings set;
  int count;
  double interval, speed, acceleration, collision_weight;
  double *q, *parts;         // control points (MOST, 3), three gradients of them
  double* pairs;             // base, direction (MOST, PAIRS, 6)
  int* pair_count;           // (MOST)
  int *paths, *path_ends;    // cells of the paths of all segments; where each ends (MOST + 1)
  double* path_centres;      // (MOST, 3)
  int *first, *second;       // segments: the free control points around each obstacle (MOST)
  int* paired;               // (MOST)
  const double* reference;   // of the refinement (count - 2, 3)
  bool refining, halt;
  int stop, evaluated;
  long long expansions;

  INLINE static double dot(const double* a, const double* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
  INLINE static double length(const double* a) { return ::sqrt(dot(a, a)); }
  INLINE static void minus(const double* a, const double* b, double* out) {
    for (int k = 0; k < 3; ++k) out[k] = a[k] - b[k];
  }

  double value(const double* x, double* gradient) {
    double *a = parts, *b = parts + 3 * MOST, *c = parts + 6 * MOST;
    for (int i = 9; i < 3 * (count - 3); ++i) q[i] = x[i - 9];
    for (int i = 0; i < 3 * count; ++i) a[i] = b[i] = c[i] = 0.0;
    const double rough = smooth_cost(a);
    stop = GO;
    if (!refining && evaluated > 3 && rough / (double)(count - 6) < 0.1) discover();
    ++evaluated;
    halt = stop != GO;
    const double second_cost = refining ? fitness_cost(b) : collision_cost(b), fast = feasibility_cost(c);
    const double weight = refining ? set.fitness : collision_weight;
    for (int i = 9; i < 3 * (count - 3); ++i)
      gradient[i - 9] = set.smooth * a[i] + weight * b[i] + set.feasibility * c[i];
    return set.smooth * rough + weight * second_cost + set.feasibility * fast;
  }
  double smooth_cost(double* g) const {
    double cost = 0.0;
    for (int i = 0; i + 3 < count; ++i) {
      const double* p = q + 3 * i;
      double jerk[3];
      for (int k = 0; k < 3; ++k) {
        jerk[k] = p[9 + k] - 3.0 * p[6 + k] + 3.0 * p[3 + k] - p[k];
        const double t = 2.0 * jerk[k];
        g[3 * i + k] += -t;
        g[3 * i + 3 + k] += 3.0 * t;
        g[3 * i + 6 + k] += -3.0 * t;
        g[3 * i + 9 + k] += t;
      }
      cost += dot(jerk, jerk);
    }
    return cost;
  }
  double collision_cost(double* g) const {
    const double d0 = set.clearance;
    double cost = 0.0, away[3];
    for (int i = 3; i < count - 3; ++i)
      for (int j = 0; j < pair_count[i]; ++j) {
        const double* pair = pairs + 6 * (i * PAIRS + j);
        minus(q + 3 * i, pair, away);
        const double e = d0 - dot(away, pair + 3);
        if (e < 0.0) continue;
        double slope;
        if (e < d0) {
          cost += e * e * e;
          slope = -3.0 * (e * e);
        } else {
          cost += 3.0 * d0 * (e * e) - 3.0 * (d0 * d0) * e + d0 * d0 * d0;
          slope = -(6.0 * d0 * e - 3.0 * (d0 * d0));
        }
        for (int k = 0; k < 3; ++k) g[3 * i + k] += slope * pair[3 + k];
      }
    return cost;
  }
  double feasibility_cost(double* g) const {
    const double fast = 1.0 / (interval * interval);
    double cost = 0.0;
    for (int i = 0; i + 1 < count; ++i)
      for (int k = 0; k < 3; ++k) {
        const double v = (q[3 * i + 3 + k] - q[3 * i + k]) / interval, over = fabs(v) - speed;
        if (!(over > 0.0)) continue;
        cost += over * over * fast;
        const double slope = 2.0 * (v > 0.0 ? over : -over) * fast / interval;
        g[3 * i + k] += -slope;
        g[3 * i + 3 + k] += slope;
      }
    for (int i = 0; i + 2 < count; ++i)
      for (int k = 0; k < 3; ++k) {
        const double a = (q[3 * i + 6 + k] - 2.0 * q[3 * i + 3 + k] + q[3 * i + k]) * fast, over = fabs(a) - acceleration;
        if (!(over > 0.0)) continue;
        cost += over * over;
        const double slope = 2.0 * (a > 0.0 ? over : -over) * fast;
        g[3 * i + k] += slope;
        g[3 * i + 3 + k] += -2.0 * slope;
        g[3 * i + 6 + k] += slope;
      }
    return cost;
  }
  double fitness_cost(double* g) const {
    double cost = 0.0;
    for (int i = 2; i < count - 2; ++i) {
      const double* p = q + 3 * (i - 1);
      double x[3], v[3];
      for (int k = 0; k < 3; ++k) x[k] = (p[k] + 4.0 * p[3 + k] + p[6 + k]) / 6.0 - reference[3 * (i - 1) + k];
      minus(reference + 3 * i, reference + 3 * (i - 2), v);
      const double along = length(v);
      for (int k = 0; k < 3; ++k) v[k] = along > 0.0 ? v[k] / along : 0.0;
      const double s = dot(x, v);
      const double c[3] = {x[1] * v[2] - x[2] * v[1], x[2] * v[0] - x[0] * v[2], x[0] * v[1] - x[1] * v[0]};
      const double w[3] = {v[1] * c[2] - v[2] * c[1], v[2] * c[0] - v[0] * c[2], v[0] * c[1] - v[1] * c[0]};
      cost += s * s / 25.0 + dot(c, c);
      for (int k = 0; k < 3; ++k) {
        const double slope = 2.0 * s / 25.0 * v[k] + 2.0 * w[k];
        g[3 * (i - 1) + k] += slope / 6.0;
        g[3 * i + k] += 4.0 * slope / 6.0;
        g[3 * (i + 1) + k] += slope / 6.0;
      }
    }
    return cost;
  }

  // Where the nearest two thirds of the control polygon enter and leave obstacles: segments first..second, their number.
  int scan() {
    double gap[3];
    minus(q, q + 3 * (count - 1), gap);
    const double step = cells->resolution / (length(gap) / (double)(count - 1)) / 2.0;
    const int last = count - 3 - (count - 6) / 3;
    int found = 0, in = 0, out = 0, same = 3;
    bool before = false, started = false, ended = false, maybe = false;
    if (!(step > 1e-4)) return 0;
    for (int i = 3; i <= last; ++i)
      for (double a = 1.0; a >= 0.0; a -= step) {
        double p[3];
        for (int k = 0; k < 3; ++k) p[k] = a * q[3 * (i - 1) + k] + (1.0 - a) * q[3 * i + k];
        const bool occupied = cells->taken(p);
        if (occupied && !before) {
          if (same > 2 || i == 3) {
            in = i - 1;
            started = true;
          }
          same = 0;
          maybe = false;
        } else if (!occupied && before) {
          out = i;
          maybe = true;
          same = 0;
        } else {
          ++same;
        }
        if (maybe && (same > 2 || i == count - 3)) {
          maybe = false;
          ended = true;
        }
        before = occupied;
        if (started && ended) {
          started = ended = false;
          first[found] = in;
          second[found++] = out;
        }
      }
    return found;
  }
  // Control points that have moved into obstacles of which they do not know; pairs for them, and what to do about it in `stop`.
  void discover() {
    const int last = count - 3 - (count - 6) / 3;
    int found = 0;
    for (int i = 2; i <= last; ++i) {
      bool fresh = cells->taken(q + 3 * i);
      for (int j = 0; fresh && j < pair_count[i]; ++j) {
        double away[3];
        const double* pair = pairs + 6 * (i * PAIRS + j);
        minus(q + 3 * i, pair, away);
        if (dot(away, pair + 3) < cells->resolution) fresh = false;
      }
      if (!fresh) continue;
      int a = i - 1, b = i + 1;
      while (a > 0 && cells->taken(q + 3 * a)) --a;
      while (b < count && cells->taken(q + 3 * b)) ++b;
      if (b >= count) {
        stop = ERROR;
        return;
      }
      first[found] = a;
      second[found++] = b;
      i = b;
    }
    if (found == 0) return;
    stop = REBOUND;
    pair_up(found);
  }
  // Ways around all segments, then pairs of the control points between.
  void pair_up(int segments) {
    int kept = 0;
    path_ends[0] = 0;
    for (int s = 0; s < segments; ++s) {
      const int begin = path_ends[kept];
      const double *from = q + 3 * first[s], *to = q + 3 * second[s];
      const int size = space->search(*cells, from, to, set.expansions, paths + begin, PATHS - begin);
      expansions += space->expansions;
      if (size == 0) continue;
      for (int k = 0; k < 3; ++k) path_centres[3 * kept + k] = space->centre[k];
      path_ends[kept + 1] = begin + size;
      first[kept] = first[s];
      second[kept++] = second[s];
    }
    for (int s = 0; s < kept; ++s) pair_segment(s, first[s], second[s]);
  }
  void pair_segment(int s, int low, int high) {
    int got = -1;
    for (int j = low; j <= high; ++j) paired[j] = 0;
    for (int j = first[s] + 1; j < second[s]; ++j) {
      double law[3], x[3], base[3];
      minus(q + 3 * (j + 1), q + 3 * (j - 1), law);
      if (!crossing(s, q + 3 * j, law, x) || !surface(x, q + 3 * j, base)) continue;
      add(j, base, x, q + 3 * j);
      paired[j] = 1;
      got = j;
    }
    if (second[s] - first[s] == 1) {
      double law[3], middle[3], x[3], away[3];
      const double *a = q + 3 * first[s], *b = q + 3 * second[s];
      minus(b, a, law);
      for (int k = 0; k < 3; ++k) middle[k] = (b[k] + a[k]) / 2.0;
      if (crossing(s, middle, law, x)) {
        minus(x, middle, away);
        if (length(away) > 0.01) {
          add(first[s], a, x, middle);
          paired[first[s]] = 1;
          got = first[s];
        }
      }
    }
    if (got < 0) return;
    for (int j = got + 1; j <= high; ++j)
      if (!paired[j]) inherit(j, j - 1);
    for (int j = got - 1; j >= low; --j)
      if (!paired[j]) inherit(j, j + 1);
  }
  // Where the plane through `at` with normal `law` meets the path of a segment, walked from its middle.
  bool crossing(int s, const double* at, const double* law, double* x) const {
    const int *path = paths + path_ends[s], size = path_ends[s + 1] - path_ends[s];
    int here = size / 2;
    double p[3], before[3], gap[3];
    path_point(s, path[here], p);
    minus(p, at, gap);
    double side = dot(gap, law);
    const double began = side;
    while (true) {
      for (int k = 0; k < 3; ++k) before[k] = p[k];
      here += side >= 0.0 ? -1 : 1;
      if (here < 0 || here >= size) return false;
      path_point(s, path[here], p);
      minus(p, at, gap);
      side = dot(gap, law);
      if (!(side * began <= 0.0 && (fabs(side) > 0.0 || fabs(began) > 0.0))) continue;
      double edge[3], back[3];
      minus(p, before, edge);
      minus(at, p, back);
      const double across = dot(law, edge);
      if (across == 0.0) return false;
      const double share = dot(law, back) / across;
      for (int k = 0; k < 3; ++k) x[k] = p[k] + edge[k] * share;
      return true;
    }
  }
  INLINE void path_point(int s, int cell, double* p) const {
    const int side = SearchSpace::SIDE, index[3] = {cell / (side * side), cell / side % side, cell % side};
    for (int k = 0; k < 3; ++k)
      p[k] = path_centres[3 * s + k] + (double)(index[k] - SearchSpace::MIDDLE) * cells->resolution;
  }
  // From x towards `at`: the last free point before an obstacle, or `at`; false where both are one.
  bool surface(const double* x, const double* at, double* base) const {
    double away[3];
    minus(x, at, away);
    const double whole = length(away);
    if (!(whole > 1e-5)) return false;
    for (double a = whole; a >= 0.0; a -= cells->resolution) {
      for (int k = 0; k < 3; ++k) base[k] = a / whole * x[k] + (1.0 - a / whole) * at[k];
      const bool occupied = cells->taken(base);
      if (!occupied && !(a < cells->resolution)) continue;
      if (occupied) a += cells->resolution;
      for (int k = 0; k < 3; ++k) base[k] = a / whole * x[k] + (1.0 - a / whole) * at[k];
      return true;
    }
    return false;
  }
  void add(int j, const double* base, const double* x, const double* from) {
    if (pair_count[j] >= PAIRS) return;
    double away[3], *pair = pairs + 6 * (j * PAIRS + pair_count[j]++);
    minus(x, from, away);
    const double whole = length(away);
    for (int k = 0; k < 3; ++k) {
      pair[k] = base[k];
      pair[3 + k] = away[k] / whole;
    }
  }
  void inherit(int j, int from) {
    if (pair_count[j] >= PAIRS || pair_count[from] == 0) return;
    const double* pair = pairs + 6 * (from * PAIRS + pair_count[from] - 1);
    double* copy = pairs + 6 * (j * PAIRS + pair_count[j]++);
    for (int k = 0; k < 6; ++k) copy[k] = pair[k];
  }
};
