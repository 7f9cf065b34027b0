// What one body made of spheres meets in scene geometry: its first contact on a straight way, and what touches at an instant.
// Readable twin: simulation/obstacles.py. Needs batch.h, distance.h, clearance.h, sweep.h, scene_impact.h, and the lengths GAP, BAND,
// LEAVING, SHALLOW. Bounds decide only what is looked at: they are wider than every rounding on the way to them.
#define NEARBY 24
#define WHISKER 1e-7
struct Scene {  // geometry around one body
  const Batch* batch;
  const int* closed;
  int env;
  V centre;       // everything within `radius` of it is in `number`
  double radius;  // negative: nothing is known
  int count;      // more than NEARBY: too many, each query goes through the hierarchy
  int number[NEARBY];
};
struct Spheres {
  const double* rows;  // centre in the body frame, radius; negative: none
  int count;
  double free[SPHERES];  // way that each is known to be able to go without touching anything [m]; negative: how deep it may be
};
struct Contact {
  double fraction;
  int sphere, instance;
  V normal, point;
};
struct Meeting {
  static INLINE V vector(const double* p) { return {p[0], p[1], p[2]}; }
  static INLINE V centre(const Pose& at, const double* row) {
    double out[3];
    Equations::rotate(at.attitude, row, out);
    return {at.position[0] + out[0], at.position[1] + out[1], at.position[2] + out[2]};
  }
  FUNCTION void gather(Scene& s, const V& centre, double radius) {
    s.centre = centre;
    s.radius = radius;
    s.count = 0;
    int stack[TREE_STACK];
    for (int layer = 0; layer < (s.batch->mover_count > 0 ? 2 : 1); ++layer) {
      const TreeNode* nodes = s.batch->nodes(layer);
      const InstanceRow* rows = s.batch->instances(s.env, layer);
      int top = 0;
      stack[top++] = s.batch->root(s.env, layer);
      while (top) {
        const TreeNode& node = nodes[stack[--top]];
        if (Clearance::square_to(node, centre) > radius * radius) continue;
        if (node.count <= 0) {
          stack[top++] = node.first;
          stack[top++] = node.first + 1;
        } else if (rows[node.first].flags & INSTANCE_COLLIDES) {
          if (s.count < NEARBY) s.number[s.count] = s.batch->first_number(layer) + node.first;
          ++s.count;
        }
      }
    }
  }
  // Makes sure that everything within `radius` of a point is gathered.
  static INLINE void look(Scene& s, const V& centre, double radius) {
    if (s.radius < 0.0 || (centre - s.centre).norm() + radius > s.radius) gather(s, centre, radius * 1.25 + WHISKER);
  }
  FUNCTION void sweep(const Scene& s, const Moving& query, Hit& hit) {
    if (s.count > NEARBY) return Sweep::earliest(*s.batch, s.closed, s.env, -1, query, hit);
    for (int k = 0; k < s.count; ++k)
      Sweep::instance(*s.batch, s.closed, *s.batch->instance(s.env, s.number[k]), s.number[k], query, hit);
  }
  // The nearest surface; where there is none within `limit`, a distance of FAR_AWAY.
  FUNCTION Found nearest(const Scene& s, const V& p, double limit) {
    Found found = {limit, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}, -1, -1};
    if (s.count > NEARBY) {
      Clearance::nearest(*s.batch, s.closed, s.env, -1, p, found);
    } else {
      for (int k = 0; k < s.count; ++k)
        Clearance::instance(*s.batch, s.closed, *s.batch->instance(s.env, s.number[k]), s.number[k], p, found);
    }
    if (found.instance < 0) found.distance = FAR_AWAY;
    return found;
  }
  // One sphere; if it touches at its start without going further in, it is swept as if it did not touch.
  FUNCTION Hit sweep_sphere(const Scene& s, const V& begin, const V& way, double radius, double limit) {
    const Hit none = {limit, FAR_AWAY, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}, -1, -1};
    Hit hit = none;
    sweep(s, {begin, way, {0.0, 0.0, 0.0}, radius}, hit);
    if (hit.instance < 0 || -way.dot(hit.normal) > LEAVING) return hit;
    if (hit.fraction > 0.0) return way.norm() > LEAVING ? hit : none;
    const double distance = nearest(s, begin, radius + SHALLOW).distance, smaller = distance - 2.0 * LEAVING;
    if (radius - distance > SHALLOW || !(smaller > 0.0)) return hit;
    hit = none;
    sweep(s, {begin, way, {0.0, 0.0, 0.0}, smaller < radius ? smaller : radius}, hit);
    return hit;
  }
  // Looks at what is around a step's way for the first time; false: nothing that its spheres could reach.
  FUNCTION bool sight(Scene& s, Spheres& spheres, double reach, const Pose& now, const Pose& goal) {
    around_way(s, reach, now, goal);
    if (s.count == 0) return false;
    for (int m = 0; m < spheres.count; ++m) spheres.free[m] = -FAR_AWAY;
    if (spheres.count < 3) return true;
    const double limit = reach + 2.0 * SHALLOW, found = nearest(s, vector(now.position), limit).distance;
    for (int m = 0; m < spheres.count; ++m) {
      const double* row = spheres.rows + 4 * m;
      spheres.free[m] = (found < limit ? found : limit) - vector(row).norm() - row[3] - GAP - WHISKER;
    }
    return true;
  }
  // Spheres go straight, so they stay within reach of the body's straight way.
  static INLINE void around_way(Scene& s, double reach, const Pose& now, const Pose& goal) {
    const V start = vector(now.position), end = vector(goal.position);
    look(s, (start + end) * 0.5, reach + 0.5 * (end - start).norm() + 2.0 * SHALLOW + BAND + GAP + WHISKER);
  }
  // First contact on the way from `now` to `goal`; false: none.
  FUNCTION bool first(Scene& s, const Spheres& spheres, double reach, const Pose& now, const Pose& goal, Contact& out) {
    out.fraction = 2.0;
    around_way(s, reach, now, goal);
    if (s.count == 0) return false;
    for (int m = 0; m < spheres.count; ++m) {
      const double* row = spheres.rows + 4 * m;
      if (row[3] < 0.0) continue;
      const V begin = centre(now, row), way = centre(goal, row) - begin;
      const double length = way.norm();
      if (length < spheres.free[m] || (length <= LEAVING && spheres.free[m] > WHISKER - SHALLOW)) continue;
      const Hit hit = sweep_sphere(s, begin, way, row[3] + GAP, out.fraction < 1.0 ? out.fraction : 1.0);
      if (hit.instance < 0 || !(hit.fraction < out.fraction)) continue;
      out = {hit.fraction, m, hit.instance, hit.normal, hit.point};
      if (out.fraction <= 0.0) break;  // of equally early ones the first counts
    }
    return out.fraction <= 1.0;
  }
  // What touches at an impact: the sphere that hit, and those that nearly do. What is known of the others is kept.
  FUNCTION void touching(const Scene& s, Spheres& spheres, const Pose& at, const Contact& hit, Touches& touch) {
    touch.count = 0;
    for (int m = 0; m < spheres.count; ++m) {
      const double* row = spheres.rows + 4 * m;
      if (row[3] < 0.0) continue;
      const double limit = row[3] + 2.0 * SHALLOW + BAND;
      const Found near = nearest(s, centre(at, row), limit);
      const double depth = row[3] + GAP - near.distance;
      spheres.free[m] = (near.instance < 0 ? limit : near.distance) - row[3] - GAP - WHISKER;
      if (!(depth > -BAND) && m != hit.sphere) continue;
      // A sphere in a corner is near two surfaces: the one that it hit counts.
      const V normal = m == hit.sphere ? hit.normal : near.normal;
      const int k = touch.count++;
      touch.sphere[k] = m;
      touch.radius[k] = row[3];
      touch.depth[k] = depth;
      for (int i = 0; i < 3; ++i) touch.center[k][i] = row[i];
      touch.normal[k][0] = normal.x;
      touch.normal[k][1] = normal.y;
      touch.normal[k][2] = normal.z;
    }
  }
};
