// What the sensor of one flight sees of its room: the distance along each ray to the nearest wall or box, in units of the ray's own
// length. Rays come in packets of 16 that lie close together; a box is cast only by packets whose cone meets its sphere. The twin is
// airworthy.learning.navigation.sight.
struct Sight {
  static INLINE float dot3(const float* a, const float* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
  static INLINE float clear(float x) { return __builtin_fabsf(x) < 1e-9f ? (x < 0.0f ? -1e-9f : 1e-9f) : x; }
  // Rows of the rotation of a quaternion x, y, z, w.
  static INLINE void turned(const float* q, float* r) {
    const float x = q[0], y = q[1], z = q[2], w = q[3];
    r[0] = 1.0f - 2.0f * (y * y + z * z), r[1] = 2.0f * (x * y - w * z), r[2] = 2.0f * (x * z + w * y);
    r[3] = 2.0f * (x * y + w * z), r[4] = 1.0f - 2.0f * (x * x + z * z), r[5] = 2.0f * (y * z - w * x);
    r[6] = 2.0f * (x * z - w * y), r[7] = 2.0f * (y * z + w * x), r[8] = 1.0f - 2.0f * (x * x + y * y);
  }
  // Rows of the rotation of Z-Y-X Euler angles.
  static INLINE void mounted(const float* angle, float* r) {
    const float sr = __builtin_sinf(angle[0]), cr = __builtin_cosf(angle[0]), sp = __builtin_sinf(angle[1]);
    const float cp = __builtin_cosf(angle[1]), sy = __builtin_sinf(angle[2]), cy = __builtin_cosf(angle[2]);
    r[0] = cy * cp, r[1] = cy * sp * sr - sy * cr, r[2] = cy * sp * cr + sy * sr;
    r[3] = sy * cp, r[4] = sy * sp * sr + cy * cr, r[5] = sy * sp * cr - cy * sr;
    r[6] = -sp, r[7] = cp * sr, r[8] = cp * cr;
  }
};
enum { POSE = 22, BOX = 15, MOST = 128 };
const float* pose = poses.data + POSE * (long long)task;
const float* place = pose + 13;
float body[9], mount[9], axes[9], eye[3];
Sight::turned(pose + 3, body);
Sight::mounted(pose + 10, mount);
for (int i = 0; i < 3; ++i) {
  eye[i] = pose[i] + Sight::dot3(body + 3 * i, pose + 7);
  for (int j = 0; j < 3; ++j) axes[3 * i + j] = body[3 * i] * mount[j] + body[3 * i + 1] * mount[3 + j] + body[3 * i + 2] * mount[6 + j];
}

// Boxes in their own frames as the sensor sees them: where the eye is, how rays turn, and the sphere around each.
float start[MOST][3], turn[MOST][9], half[MOST][3], at[MOST][3], apart[MOST], sine[MOST], cosine[MOST];
int count = 0;
const int panel_count = (int)place[1], object_count = (int)place[2];
const float* room = pool.data + (long long)BOX * boxes * (int)place[0];
for (int k = 0; k < boxes && count < MOST; ++k) {
  if (k < panels ? k >= panel_count : k - panels >= object_count) continue;
  const float* box = room + BOX * k;
  float away[3];
  for (int i = 0; i < 3; ++i) away[i] = place[3 + i] + box[i] * (place[6 + i] - place[3 + i]) - eye[i];
  float square = 0.0f;
  for (int i = 0; i < 3; ++i) {
    half[count][i] = box[12 + i] + inflate;
    square += half[count][i] * half[count][i];
    start[count][i] = -(away[0] * box[3 + i] + away[1] * box[6 + i] + away[2] * box[9 + i]);
    at[count][i] = away[0] * axes[i] + away[1] * axes[3 + i] + away[2] * axes[6 + i];
    for (int j = 0; j < 3; ++j) turn[count][3 * i + j] = box[3 + i] * axes[j] + box[6 + i] * axes[3 + j] + box[9 + i] * axes[6 + j];
  }
  const float far = __builtin_sqrtf(Sight::dot3(away, away)), radius = __builtin_sqrtf(square);
  if (far > range * longest + radius) continue;
  apart[count] = far;
  // From within the sphere every ray may meet the box.
  sine[count] = far > radius ? radius / far : 1.0f;
  cosine[count] = far > radius ? __builtin_sqrtf(1.0f - sine[count] * sine[count]) : -1.0f;
  ++count;
}

for (int packet = 0; 16 * packet < ray_count; ++packet) {
  const float* cone = cones.data + 5 * packet;
  for (int first = 16 * packet; first < 16 * packet + 16; first += LANES) {
    F d[3], w[3], t = N::c(range);
    for (int i = 0; i < 3; ++i) d[i] = N::load(rays.data + (long long)i * ray_count + first);
    for (int i = 0; i < 3; ++i) {
      w[i] = axes[3 * i] * d[0] + axes[3 * i + 1] * d[1] + axes[3 * i + 2] * d[2];
      // Out of the room along each axis; who is beyond a wall is at it.
      const float low = place[3 + i] + wall + inflate - eye[i], high = place[6 + i] - wall - inflate - eye[i];
      const F speed = N::select(N::abs(w[i]) < 1e-9f, N::c(1e-9f), w[i]);
      const F leave = N::select(speed > 0.0f, N::c(high > 0.0f ? high : 0.0f), N::c(low < 0.0f ? low : 0.0f)) / speed;
      t = N::select(leave < t, leave, t);
    }
    for (int k = 0; k < count; ++k) {
      // Angle between the cone's axis and the box's middle, against both half angles together.
      if (Sight::dot3(at[k], cone) < apart[k] * (cone[3] * cosine[k] - cone[4] * sine[k])) continue;
      F in = N::c(-1e9f), out = N::c(1e9f);
      for (int i = 0; i < 3; ++i) {
        const F along = turn[k][3 * i] * d[0] + turn[k][3 * i + 1] * d[1] + turn[k][3 * i + 2] * d[2];
        const F inverse = 1.0f / N::select(N::abs(along) < 1e-9f, N::c(1e-9f), along);
        const F one = (-half[k][i] - start[k][i]) * inverse, two = (half[k][i] - start[k][i]) * inverse;
        const F low = N::select(one < two, one, two), high = N::select(one < two, two, one);
        in = N::select(low > in, low, in);
        out = N::select(high < out, high, out);
      }
      const F hit = N::select(in > 0.0f, in, N::c(0.0f));
      t = N::select((in < out) & (out > 0.0f) & (hit < t), hit, t);
    }
    float* image = distance.data + (long long)ray_count * task;
#if LANES == 1
    image[place_of.data[first]] = t;
#else
    for (int lane = 0; lane < LANES; ++lane) image[place_of.data[first + lane]] = t[lane];
#endif
  }
}
