// What one body made of spheres meets in scene geometry: its first contact on a straight path, and what touches at an instant.
// A body is one sphere, or a box or cylinder that points carry on a surface. Readable twin: simulation/obstacles.py. Needs batch.h,
// distance.h, clearance.h, sweep.h, convex.h, scene_impact.h, and the lengths GAP, BAND, LEAVING, SHALLOW, SAME, and TILT. Bounds decide only what is looked at: they are wider than every rounding on the way to them.
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
  Core core;      // of a box or cylinder
  bool convex;    // else a sphere
  double clear;   // distance that all of it is known to be able to go without touching anything [m]
  double free[SPHERES];  // distance that each is known to be able to go without touching anything [m]; negative: how deep it may be
};
struct Contact {
  double fraction;
  int sphere, instance;
  V normal, point;
  double arm[3], depth;  // box, cylinder: nearest point of the core, body frame; how far it is from where it should be kept
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
    for (int layer = 0; layer < (s.batch->dynamic_count > 0 ? 2 : 1); ++layer) {
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
  static INLINE void ensure_gathered(Scene& s, const V& centre, double radius) {
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
  FUNCTION Hit sweep_sphere(const Scene& s, const V& begin, const V& displacement, double radius, double limit) {
    const Hit none = {limit, FAR_AWAY, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}, -1, -1};
    Hit hit = none;
    sweep(s, {begin, displacement, {0.0, 0.0, 0.0}, radius}, hit);
    if (hit.instance < 0 || -displacement.dot(hit.normal) > LEAVING) return hit;
    if (hit.fraction > 0.0) return displacement.norm() > LEAVING ? hit : none;
    const double distance = nearest(s, begin, radius + SHALLOW).distance, smaller = distance - 2.0 * LEAVING;
    if (radius - distance > SHALLOW || !(smaller > 0.0)) return hit;
    hit = none;
    sweep(s, {begin, displacement, {0.0, 0.0, 0.0}, smaller < radius ? smaller : radius}, hit);
    return hit;
  }
  // Looks at what is around a step's path for the first time; false: nothing that its spheres could reach.
  FUNCTION bool sight(Scene& s, Spheres& spheres, double reach, const Pose& now, const Pose& goal) {
    gather_around_step(s, reach, now, goal);
    if (s.count == 0) return false;
    for (int m = 0; m < spheres.count; ++m) spheres.free[m] = -FAR_AWAY;
    spheres.clear = -FAR_AWAY;
    if (spheres.count < 3) return true;
    const double limit = reach + 2.0 * SHALLOW, found = nearest(s, vector(now.position), limit).distance;
    for (int m = 0; m < spheres.count; ++m) {
      const double* row = spheres.rows + 4 * m;
      spheres.free[m] = (found < limit ? found : limit) - vector(row).norm() - row[3] - GAP - WHISKER;
    }
    spheres.clear = (found < limit ? found : limit) - reach - GAP - WHISKER;
    return true;
  }
  // Spheres go straight, so they stay within reach of the body's straight path.
  static INLINE void gather_around_step(Scene& s, double reach, const Pose& now, const Pose& goal) {
    const V start = vector(now.position), end = vector(goal.position);
    ensure_gathered(s, (start + end) * 0.5, reach + 0.5 * (end - start).norm() + 2.0 * SHALLOW + BAND + GAP + WHISKER);
  }
  // Of a box or cylinder; `gap`: see `Convex::Ask`.
  FUNCTION void meet(const Scene& s, const Core& core, const Motion& motion, double gap, double shallow, Convex::Meet& found) {
    found = {(double)Convex::NONE, {FAR_AWAY, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}}, {0.0, 0.0, 0.0}, -1, -1};
    const Convex::Ask ask = {&core, &motion, gap, LEAVING, shallow};
    if (s.count > NEARBY) return Convex::earliest(*s.batch, s.closed, s.env, -1, ask, found);
    const V middle = motion.position(0.5);
    const double radius = core.reach + 0.5 * motion.displacement.norm() + gap + WHISKER;
    for (int k = 0; k < s.count; ++k)
      Convex::instance(*s.batch, s.closed, *s.batch->instance(s.env, s.number[k]), s.number[k], ask, middle, radius, found);
  }
  FUNCTION bool first_convex(const Scene& s, const Spheres& spheres, const Pose& now, const Pose& goal, Contact& out) {
    const Motion motion = Motion::of(now.position, now.attitude, goal.position, goal.attitude);
    if (motion.displacement.norm() + motion.speed * spheres.core.reach < spheres.clear) return false;
    Convex::Meet found;
    meet(s, spheres.core, motion, GAP, SHALLOW, found);
    if (found.instance < 0 || !(found.fraction <= 1.0)) return false;
    out = {found.fraction, -1, found.instance, found.apart.normal, found.point, {}, 0.0};
    const V arm = Motion::attitude(motion, found.fraction).back(found.apart.point - motion.displacement * found.fraction);
    out.arm[0] = arm.x;
    out.arm[1] = arm.y;
    out.arm[2] = arm.z;
    out.depth = spheres.core.margin + GAP - found.apart.distance;
    return true;
  }
  static INLINE void add(Touches& touch, int m, const double* arm, double radius, double depth, const V& normal) {
    const int k = touch.count++;
    touch.sphere[k] = m;
    touch.radius[k] = radius;
    touch.depth[k] = depth;
    for (int i = 0; i < 3; ++i) touch.center[k][i] = arm[i];
    touch.normal[k][0] = normal.x;
    touch.normal[k][1] = normal.y;
    touch.normal[k][2] = normal.z;
  }
  static INLINE bool known(const Touches& touch, const double* arm, double within) {
    for (int k = 0; k < touch.count; ++k)
      if ((vector(touch.center[k]) - vector(arm)).norm() < within) return true;
    return false;
  }
  // Whether points of the body that touch carry it where it hit: a whole face, an edge, or a corner.
  FUNCTION bool carried(const Spheres& spheres, const Contact& hit, const Touches& touch) {
    int alike = 0, ends[2] = {0, 0};
    for (int k = 0; k < touch.count; ++k) {
      if (!(vector(touch.normal[k]).dot(hit.normal) > 1.0 - 1e-9)) continue;
      if (alike < 2) ends[alike] = k;
      ++alike;
    }
    if (alike == 0) return false;
    if (alike >= (spheres.core.kind == KIND_BOX ? 4 : RIM)) return true;
    const V a = vector(touch.center[ends[0]]), b = vector(touch.center[ends[alike > 1 ? 1 : 0]]);
    return alike < 3 && (Shapes::on_edge(vector(hit.arm), a, b) - vector(hit.arm)).norm() < SAME;
  }
  // Where a box or cylinder lies on something that is smaller than its face: the nearest point, and, since that may be anywhere in
  // the common patch, those that become the nearest when the body is tilted a little four ways: the ends of the patch.
  FUNCTION void patch(const Scene& s, const Spheres& spheres, const Pose& at, const Contact& hit, Touches& touch) {
    if (carried(spheres, hit, touch)) return;
    if (!known(touch, hit.arm, 1e-9)) add(touch, -1, hit.arm, spheres.core.margin, hit.depth, hit.normal);
    const V n = hit.normal, other = ::fabs(n.x) < 0.6 ? V{1.0, 0.0, 0.0} : V{0.0, 1.0, 0.0};
    V side = n.cross(other);
    side = side * (1.0 / side.norm());
    const V along = n.cross(side), axes[4] = {side * 0.8 + along * 0.6, along * 0.8 - side * 0.6, side * -0.8 - along * 0.6,
                                              side * 0.6 - along * 0.8};
    for (int k = 0; k < 4 && touch.count < SPHERES; ++k) {
      const V v = axes[k] * (0.5 * TILT);
      const double* q = at.attitude;
      const double turned[4] = {q[0] + v.x * q[3] + v.y * q[2] - v.z * q[1], q[1] + v.y * q[3] + v.z * q[0] - v.x * q[2],
                                q[2] + v.z * q[3] + v.x * q[1] - v.y * q[0], q[3] - v.x * q[0] - v.y * q[1] - v.z * q[2]};
      double unit[4];
      Equations::normalize(turned, unit);
      Convex::Meet found;
      meet(s, spheres.core, Motion::of(at.position, unit, at.position, unit), SHALLOW + 2.0 * TILT * spheres.core.reach, -1.0, found);
      if (found.instance < 0) continue;
      const V local = Attitude::of(unit).back(found.apart.point);
      const double arm[3] = {local.x, local.y, local.z};
      if (known(touch, arm, 10.0 * SAME)) continue;
      const Found near = nearest(s, centre(at, arm), spheres.core.margin + 2.0 * SHALLOW + BAND);
      const double depth = spheres.core.margin + GAP - near.distance;
      if (depth > -BAND) add(touch, -1, arm, spheres.core.margin, depth, near.normal);
    }
  }
  // First contact on the path from `now` to `goal`; false: none.
  FUNCTION bool first(Scene& s, const Spheres& spheres, double reach, const Pose& now, const Pose& goal, Contact& out) {
    out.fraction = 2.0;
    gather_around_step(s, reach, now, goal);
    if (s.count == 0) return false;
    if (spheres.convex) return first_convex(s, spheres, now, goal, out);
    for (int m = 0; m < spheres.count; ++m) {
      const double* row = spheres.rows + 4 * m;
      if (row[3] < 0.0) continue;
      const V begin = centre(now, row), displacement = centre(goal, row) - begin;
      const double length = displacement.norm();
      if (length < spheres.free[m] || (length <= LEAVING && spheres.free[m] > WHISKER - SHALLOW)) continue;
      const Hit hit = sweep_sphere(s, begin, displacement, row[3] + GAP, out.fraction < 1.0 ? out.fraction : 1.0);
      if (hit.instance < 0 || !(hit.fraction < out.fraction)) continue;
      out = {hit.fraction, m, hit.instance, hit.normal, hit.point, {row[0], row[1], row[2]}, 0.0};
      if (out.fraction <= 0.0) break;  // of equally early ones the first counts
    }
    return out.fraction <= 1.0;
  }
  // What touches at an impact: the sphere that hit, and those that nearly do. What is known of the others is kept.
  FUNCTION void touching(const Scene& s, Spheres& spheres, const Pose& at, const Contact& hit, Touches& touch) {
    touch.count = 0;
    spheres.clear = -FAR_AWAY;
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
      add(touch, m, row, row[3], depth, normal);
    }
    if (spheres.convex) patch(s, spheres, at, hit, touch);
  }
};
