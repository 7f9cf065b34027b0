// Impulses of a rigid body against surfaces of any direction, one body in double precision. Equations: dynamics/contact.py and
// dynamics/scene_native.py, traced below; readable twin: dynamics/scene_contact.py. Needs distance.h (V), B_* (rows of a body's
// numbers), SPHERES, PUSH_SWEEPS and SETTLED.
#define BODY(r) body[r]
struct Equations {
  // The traced text is that of the lanes; here it stands for single numbers of double precision.
  typedef double F;
  typedef bool M;
  struct N {
    static INLINE double c(double x) { return x; }
    static INLINE double sqrt(double x) { return ::sqrt(x); }
    static INLINE double abs(double x) { return ::fabs(x); }
    static INLINE double floor(double x) { return ::floor(x); }
    static INLINE double select(bool m, double a, double b) { return m ? a : b; }
    static INLINE bool invert(bool m) { return !m; }
  };
TRACED_BLOCKS
};
struct Pose {  // of a body in motion
  double position[3], velocity[3], attitude[4], rate[3];
};
struct Touches {  // contact points of an impact
  int count;
  int sphere[SPHERES];
  double center[SPHERES][3];  // body frame, from the centre of mass
  double radius[SPHERES], depth[SPHERES];
  double normal[SPHERES][3];  // world
};
struct Impulse {
  struct Lever {
    double up[3], arm[3], turn[3], give;
  };
  static INLINE double dot(const double* a, const double* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
  static INLINE double leaving(const Lever& l, const double* u, const double* w) { return dot(l.up, u) + dot(l.arm, w); }
  static INLINE double bounce(const double* body, double dt) {
    double limit;
    Equations::bounce_speed(body, dt, &limit);
    return limit;
  }
  FUNCTION void levers(double* body, const Pose& at, const Touches& touch, Lever* out) {
    for (int k = 0; k < touch.count; ++k) {
      Lever& l = out[k];
      body[B_contact_radius] = touch.radius[k];
      Equations::lever(body, at.attitude, touch.normal[k], touch.center[k], l.up, l.arm, l.turn, &l.give);
    }
  }
  // Fastest approach of the touching points [m/s], at least 0.
  FUNCTION double approach(const Pose& at, const Touches& touch, const Lever* levers) {
    double fastest = 0.0, u[3];
    Equations::rotate_inverse(at.attitude, at.velocity, u);
    for (int k = 0; k < touch.count; ++k) {
      const double speed = -leaving(levers[k], u, at.rate);
      fastest = speed > fastest ? speed : fastest;
    }
    return fastest;
  }
  // Whether several spheres of one size touch one plane; then their mean centre.
  FUNCTION bool even(const Touches& touch, double* middle, double* radius) {
    const int n = touch.count;
    const double weight = 1.0 / (n > 0 ? n : 1);
    middle[0] = middle[1] = middle[2] = *radius = 0.0;
    bool same = n > 1;
    for (int k = 0; k < n; ++k) {
      for (int i = 0; i < 3; ++i) {
        middle[i] += weight * touch.center[k][i];
        same = same && ::fabs(touch.normal[k][i] - touch.normal[0][i]) < 1e-9;
      }
      *radius += weight * touch.radius[k];
    }
    for (int k = 0; k < n; ++k) same = same && ::fabs(touch.radius[k] - *radius) < 1e-12;
    return same;
  }
  // Stops what approaches: all points of a plane at once, then projected Gauss-Seidel, until nothing changes any more.
  FUNCTION void push(double* body, const Pose& at, const Touches& touch, const Lever* levers, bool flat, const double* middle,
                     double radius, double* u, double* w, double* pushes) {
    double each = 0.0;
    if (flat) {
      double up[3], together;
      body[B_contact_radius] = radius;
      Equations::rotate_inverse(at.attitude, touch.normal[0], up);
      Equations::contact_push(body, 1.0, 0.0, u, w, up, middle, u, w, &together);
      each = together / touch.count;
    }
    for (int k = 0; k < touch.count; ++k) pushes[k] = each;
    const double light = body[B_mass_inverse];
    for (int sweep = 0; sweep < PUSH_SWEEPS; ++sweep) {
      double change = 0.0;
      // What one pass would change at most, were the points on their own: these do not wait for each other.
      for (int k = 0; k < touch.count; ++k) {
        const double wanted = pushes[k] - leaving(levers[k], u, w) / levers[k].give, next = wanted > 0.0 ? wanted : 0.0;
        const double size = ::fabs(next - pushes[k]);
        change = size > change ? size : change;
      }
      if (!(change > SETTLED * body[B_mass])) break;
      change = 0.0;
      for (int k = 0; k < touch.count; ++k) {
        const Lever& l = levers[k];
        const double wanted = pushes[k] - leaving(l, u, w) / l.give, next = wanted > 0.0 ? wanted : 0.0, more = next - pushes[k];
        pushes[k] = next;
        for (int i = 0; i < 3; ++i) {
          u[i] += l.up[i] * light * more;
          w[i] += l.turn[i] * more;
        }
        const double size = ::fabs(more) * light;
        change = size > change ? size : change;
      }
      if (!(change > SETTLED)) break;
    }
  }
  // Velocity and rate of `at` after an impact on what is at rest; body[B_restitution] and body[B_friction] are those of the impact.
  FUNCTION void collide(double* body, Pose& at, const Touches& touch, const Lever* levers, double fastest, double dt) {
    double u[3], w[3], u0[3], w0[3], pushes[SPHERES], middle[3], radius, share = 0.0, slip, unused;
    Equations::rotate_inverse(at.attitude, at.velocity, u);
    for (int i = 0; i < 3; ++i) {
      u0[i] = u[i];
      w0[i] = w[i] = at.rate[i];
    }
    if (touch.count == 1 && fastest < bounce(body, dt)) {
      double holds;
      body[B_contact_radius] = touch.radius[0];
      Equations::contact_holds(body, u, w, levers[0].up, touch.center[0], &holds);
      if (holds > 0.0) {
        for (int i = 0; i < 3; ++i) at.velocity[i] = at.rate[i] = 0.0;
        return;
      }
    }
    const bool flat = even(touch, middle, &radius);
    for (int turn = 0; turn < 2; ++turn) {  // friction turns a body, and so presses points into the surface that had come to rest
      push(body, at, touch, levers, flat, middle, radius, u, w, pushes);
      if (turn == 0) Equations::contact_rebound(body, fastest, u, w, u0, w0, dt, u, w, &share);
      for (int k = 0; k < touch.count; ++k) {
        if (pushes[k] == 0.0) continue;
        body[B_contact_radius] = touch.radius[k];
        Equations::slip_square(body, u, w, levers[k].up, touch.center[k], &slip);
        if (!(slip > SETTLED * SETTLED)) continue;
        Equations::contact_friction(body, 1.0, pushes[k] * (1.0 + share), u, w, levers[k].up, touch.center[k], u, w, &unused);
      }
      for (int k = 0; k < touch.count; ++k) {
        body[B_contact_radius] = touch.radius[k];
        Equations::contact_rolling(body, pushes[k] * (1.0 + share), u, w, levers[k].up, touch.center[k], u, w);
      }
      share = 0.0;
    }
    push(body, at, touch, levers, flat, middle, radius, u, w, pushes);  // what the last friction pressed in would hit at once again
    Equations::rotate(at.attitude, u, at.velocity);
    for (int i = 0; i < 3; ++i) {
      at.velocity[i] += 0.0;
      at.rate[i] = w[i] + 0.0;
    }
  }
};
