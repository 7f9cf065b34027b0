// One environment of `avoid`: what its camera sees and how near things are, in a place that repeats itself.
//
// Obstacles are upright trunks without end, balls and boxes along the axes, on ground at z = 0. The place is a square that is
// repeated in x and y: of every obstacle the image nearest to the vehicle counts, so that a flight never leaves it.
struct Avoid {
  // The least of the differences to all images of a coordinate.
  static INLINE float wrapped(float d, float side) { return d - side * __builtin_floorf(d / side + 0.5f); }
  static INLINE float root(float x) { return __builtin_sqrtf(x); }

  // Depth along the optical axis of rays f + l left + u up, a packet at a time. A ray stands for a pixel: what lies within half
  // a pixel of it, `spread` per metre of depth, is seen as by a camera that keeps the nearest return of each pixel.
  static INLINE void trunk(F& t, const F* d, float x, float y, float r, float spread) {
    const F a = d[0] * d[0] + d[1] * d[1] + 1e-12f;
    const F middle = (d[0] * x + d[1] * y) / a;
    const F aside = d[0] * y - d[1] * x;
    const F miss = N::abs(aside) / N::sqrt(a) - spread * middle;
    const F beside = N::select(miss > 0.0f, miss, N::c(0.0f));
    const F left = r * r - beside * beside;
    const F near = middle - N::sqrt(N::select(left > 0.0f, left, N::c(0.0f)) / a);
    const F hit = N::select(near > 0.0f, near, N::c(0.0f));
    const M meets = (left > 0.0f) & (middle > 0.0f) & (hit < t);
    t = N::select(meets, hit, t);
  }
  static INLINE void ball(F& t, const F* d, const float* o, float r, float spread) {
    const F a = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
    const F middle = (d[0] * o[0] + d[1] * o[1] + d[2] * o[2]) / a;
    const F square = o[0] * o[0] + o[1] * o[1] + o[2] * o[2] - middle * middle * a;
    const F miss = N::sqrt(N::select(square > 0.0f, square, N::c(0.0f))) - spread * middle;
    const F beside = N::select(miss > 0.0f, miss, N::c(0.0f));
    const F left = r * r - beside * beside;
    const F near = middle - N::sqrt(N::select(left > 0.0f, left, N::c(0.0f)) / a);
    const F hit = N::select(near > 0.0f, near, N::c(0.0f));
    const M meets = (left > 0.0f) & (middle > 0.0f) & (hit < t);
    t = N::select(meets, hit, t);
  }
  // Slabs; a box is grown by half a pixel at its own depth.
  static INLINE void box(F& t, const F* d, const float* o, const float* h, float grown) {
    F in = N::c(-1e9f), out = N::c(1e9f);
    for (int k = 0; k < 3; ++k) {
      const F inverse = 1.0f / N::select(N::abs(d[k]) < 1e-9f, N::c(1e-9f), d[k]);
      const F one = (o[k] - h[k] - grown) * inverse, two = (o[k] + h[k] + grown) * inverse;
      const F low = N::select(one < two, one, two), high = N::select(one < two, two, one);
      in = N::select(low > in, low, in);
      out = N::select(high < out, high, out);
    }
    const F hit = N::select(in > 0.0f, in, N::c(0.0f));
    t = N::select((in < out) & (out > 0.0f) & (hit < t), hit, t);
  }

  // Nearest surface so far of a point: signed distance and the unit vector along which it grows.
  struct Nearest {
    float distance, x, y, z;
  };
  static INLINE void take(Nearest& n, float distance, float x, float y, float z) {
    if (distance < n.distance) n = {distance, x, y, z};
  }
  static INLINE void near_trunk(Nearest& n, float x, float y, float r) {
    const float length = root(x * x + y * y) + 1e-9f;
    take(n, length - r, -x / length, -y / length, 0.0f);
  }
  static INLINE void near_ball(Nearest& n, const float* o, float r) {
    const float length = root(o[0] * o[0] + o[1] * o[1] + o[2] * o[2]) + 1e-9f;
    take(n, length - r, -o[0] / length, -o[1] / length, -o[2] / length);
  }
  static INLINE void near_box(Nearest& n, const float* o, const float* h) {
    float q[3], most = -1e9f, square = 0.0f;
    int axis = 0;
    for (int k = 0; k < 3; ++k) {
      q[k] = __builtin_fabsf(o[k]) - h[k];
      if (q[k] > most) most = q[k], axis = k;
      if (q[k] > 0.0f) square += q[k] * q[k];
    }
    float g[3] = {0.0f, 0.0f, 0.0f};
    if (most <= 0.0f) {
      g[axis] = o[axis] > 0.0f ? -1.0f : 1.0f;
      take(n, most, g[0], g[1], g[2]);
      return;
    }
    const float length = root(square);
    for (int k = 0; k < 3; ++k) g[k] = q[k] > 0.0f ? (o[k] > 0.0f ? -q[k] : q[k]) / length : 0.0f;
    take(n, length, g[0], g[1], g[2]);
  }
};

const float* where = position.data + 3 * task;
const float* axes = camera.data + 9 * task;
const float px = where[0], py = where[1], pz = where[2];
const float* tree = trunks.data + 3 * (long long)trunk_room * layout.data[task];
const float* orb = balls.data + 4 * (long long)ball_room * layout.data[task];
const float* crate = boxes.data + 6 * (long long)box_room * layout.data[task];
const float* moved = offset.data + 2 * task;
const int trees = counts.data[3 * task], orbs = counts.data[3 * task + 1], crates = counts.data[3 * task + 2];

// What can be seen at all, nearest images relative to the vehicle; and what can matter to the clearance.
enum { ROOM = 1024, REACHED = 64 };
float seen[3 * ROOM], close[3 * REACHED];
int seen_count = 0, close_count = 0;
// Seen from above, no ray lies farther off the axis than that of a corner; where a corner looks back, nothing is left out.
const float fx = axes[0], fy = axes[1], flat = Avoid::root(fx * fx + fy * fy) + 1e-9f;
float widest = 1.0f;
for (int k = 0; k < 4; ++k) {
  // Rays are in rows: the first and last of the table, and these two mirrored.
  const float l = (k & 1 ? -1.0f : 1.0f) * (rays.data[0] + spread), u = (k & 2 ? -1.0f : 1.0f) * (rays.data[ray_count] + spread);
  const float x = axes[0] + l * axes[3] + u * axes[6], y = axes[1] + l * axes[4] + u * axes[7];
  const float cosine = (x * fx + y * fy) / (flat * (Avoid::root(x * x + y * y) + 1e-9f));
  widest = cosine < widest ? cosine : widest;
}
if (widest < 0.05f) widest = -2.0f;
for (int k = 0; k < trees; ++k) {
  const float x = Avoid::wrapped(tree[3 * k] + moved[0] - px, side), y = Avoid::wrapped(tree[3 * k + 1] + moved[1] - py, side);
  const float r = tree[3 * k + 2], square = x * x + y * y;
  if (square < (near_range + r) * (near_range + r) && close_count < REACHED) {
    close[3 * close_count] = x, close[3 * close_count + 1] = y, close[3 * close_count++ + 2] = r;
  }
  // Depth is shorter than distance, at a corner by a quarter and more where the camera is tilted.
  const float far = 2.0f * range + r;
  if (square > far * far || seen_count == ROOM) continue;
  if ((x * fx + y * fy) / flat + 2.0f * r < widest * Avoid::root(square)) continue;
  seen[3 * seen_count] = x, seen[3 * seen_count + 1] = y, seen[3 * seen_count++ + 2] = r;
}

for (int first_ray = 0; first_ray < ray_count; first_ray += LANES) {
  const F l = N::load(rays.data + first_ray), u = N::load(rays.data + ray_count + first_ray);
  F d[3];
  for (int k = 0; k < 3; ++k) d[k] = axes[k] + l * axes[3 + k] + u * axes[6 + k];
  F t = N::c(range);
  const F down = d[2] - spread;
  const F ground = pz / N::select(down < -1e-6f, -down, N::c(1e-6f));
  t = N::select((down < -1e-6f) & (ground < t), N::select(ground > 0.0f, ground, N::c(0.0f)), t);
  for (int k = 0; k < seen_count; ++k) Avoid::trunk(t, d, seen[3 * k], seen[3 * k + 1], seen[3 * k + 2], spread);
  for (int k = 0; k < orbs; ++k) {
    const float o[3] = {Avoid::wrapped(orb[4 * k] + moved[0] - px, side), Avoid::wrapped(orb[4 * k + 1] + moved[1] - py, side), orb[4 * k + 2] - pz};
    Avoid::ball(t, d, o, orb[4 * k + 3], spread);
  }
  for (int k = 0; k < crates; ++k) {
    const float o[3] = {Avoid::wrapped(crate[6 * k] + moved[0] - px, side), Avoid::wrapped(crate[6 * k + 1] + moved[1] - py, side), crate[6 * k + 2] - pz};
    const float away = Avoid::root(o[0] * o[0] + o[1] * o[1] + o[2] * o[2]);
    Avoid::box(t, d, o, crate + 6 * k + 3, spread * away);
  }
  N::store(depth.data + (long long)ray_count * task + first_ray, t);
}

for (int k = 0; k < point_count; ++k) {
  const float* p = points.data + 3 * ((long long)point_count * task + k);
  const float dx = p[0] - px, dy = p[1] - py;
  Avoid::Nearest n = {p[2], 0.0f, 0.0f, 1.0f};
  for (int i = 0; i < close_count; ++i) Avoid::near_trunk(n, close[3 * i] - dx, close[3 * i + 1] - dy, close[3 * i + 2]);
  for (int i = 0; i < orbs; ++i) {
    const float o[3] = {Avoid::wrapped(orb[4 * i] + moved[0] - p[0], side), Avoid::wrapped(orb[4 * i + 1] + moved[1] - p[1], side), orb[4 * i + 2] - p[2]};
    Avoid::near_ball(n, o, orb[4 * i + 3]);
  }
  for (int i = 0; i < crates; ++i) {
    const float o[3] = {Avoid::wrapped(crate[6 * i] + moved[0] - p[0], side), Avoid::wrapped(crate[6 * i + 1] + moved[1] - p[1], side), crate[6 * i + 2] - p[2]};
    Avoid::near_box(n, o, crate + 6 * i + 3);
  }
  float* out = nearest.data + 4 * ((long long)point_count * task + k);
  out[0] = n.distance, out[1] = n.x, out[2] = n.y, out[3] = n.z;
}
