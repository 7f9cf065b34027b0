// One task of a launch: packets of one camera (or of segments); on a GPU one ray. Needs `traverse.h` as CameraCast and RayCast.
enum { PACKETS_PER_TASK = 16, RAY_ROWS = 7 };
enum {
  OUT_RANGE = 1, OUT_DEPTH = 2, OUT_POINT_WORLD = 4, OUT_POINT_SENSOR = 8, OUT_INSTANCE = 16, OUT_INSTANCE_ID = 32,
  OUT_SEMANTIC_ID = 64, OUT_FACE = 128, OUT_BARYCENTRIC = 256, OUT_NORMAL_WORLD = 512, OUT_NORMAL_SENSOR = 1024,
  OUT_LOCAL_POINT = 2048, CAST_OWN_ORIGINS = 4096, CAST_COLUMNS = 8192, CAST_SEGMENTS = 16384
};
struct CameraRow {  // 48 bytes; of a segment: start, end - start in `attitude`
  float position[3], rest[3], attitude[4];
  int env, ignore;
};
// The rays of one packet, in world and sensor frame.
struct Packet {
  F origin[3], rest[3], direction[3], sensor[3], start[3], along, rotation[9];
  I pixel;
};
// What is looked up once a ray's hit is known.
struct Found {
  I id, semantic;
  F local[3], normal[3];  // instance's frame; world, towards the ray's origin
};
struct Painter {
  static INLINE void rotation(const F* q, F* r) {
    const F x = q[0], y = q[1], z = q[2], w = q[3];
    r[0] = 1.0f - 2.0f * (y * y + z * z), r[1] = 2.0f * (x * y - z * w), r[2] = 2.0f * (x * z + y * w);
    r[3] = 2.0f * (x * y + z * w), r[4] = 1.0f - 2.0f * (x * x + z * z), r[5] = 2.0f * (y * z - x * w);
    r[6] = 2.0f * (x * z - y * w), r[7] = 2.0f * (y * z + x * w), r[8] = 1.0f - 2.0f * (x * x + y * y);
  }
  static INLINE void load(Packet& p, const float* rays, const int* pixels, const CameraRow* rows, int width, int flags) {
    for (int k = 0; k < 3; ++k) p.sensor[k] = N::load(rays + 16 * k), p.start[k] = N::load(rays + 16 * (4 + k));
    p.along = N::load(rays + 16 * 3);
    p.pixel = L::load_i(pixels);
    F q[4];
    for (int k = 0; k < 3; ++k) p.origin[k] = N::c(rows->position[k]), p.rest[k] = N::c(rows->rest[k]);
    for (int k = 0; k < 4; ++k) q[k] = N::c(rows->attitude[k]);
    if (flags & CAST_COLUMNS) {
      for (int lane = 0; lane < LANES; ++lane) {
        const int pixel = L::at(p.pixel, lane);
        const CameraRow& row = rows[pixel < 0 ? 0 : pixel % width];
        for (int k = 0; k < 3; ++k) L::put(p.origin[k], lane, row.position[k]), L::put(p.rest[k], lane, row.rest[k]);
        for (int k = 0; k < 4; ++k) L::put(q[k], lane, row.attitude[k]);
      }
    }
    rotation(q, p.rotation);
    for (int k = 0; k < 3; ++k) {
      p.direction[k] = L::dot(p.rotation + 3 * k, p.sensor);
      if (flags & CAST_OWN_ORIGINS) p.rest[k] = p.rest[k] + L::dot(p.rotation + 3 * k, p.start);
    }
  }
  static INLINE void trace(const Batch& batch, const Packet& p, const CameraRow& row, int flags, Hits& h) {
    const M real = p.pixel >= 0;
    if (LANES == 1 || (flags & (CAST_OWN_ORIGINS | CAST_COLUMNS))) {
      RayCast::Rays r;
      for (int k = 0; k < 3; ++k) r.origin[k] = p.origin[k], r.rest[k] = p.rest[k], r.direction[k] = p.direction[k];
      RayCast::cast(batch, row.env, r, real, L::i(row.ignore), false, h);
    } else {
      CameraCast::Rays r;
      for (int k = 0; k < 3; ++k) r.origin[k] = row.position[k], r.rest[k] = row.rest[k], r.direction[k] = p.direction[k];
      CameraCast::cast(batch, row.env, r, real, L::i(row.ignore), false, h);
    }
  }
  static INLINE void triangle_normal(const Batch& batch, const ShapeRow& shape, M m, I face, F* n) {
    F a[3], b[3], c[3];
    for (int k = 0; k < 3; ++k) a[k] = b[k] = c[k] = N::c(0.0f);
    for (int lane = 0; lane < LANES; ++lane) {
      if (!((L::bits(m) >> lane) & 1)) continue;
      const int number = L::at(face, lane);
      const float *pa = batch.corner(shape, number, 0), *pb = batch.corner(shape, number, 1), *pc = batch.corner(shape, number, 2);
      for (int k = 0; k < 3; ++k) L::put(a[k], lane, pa[k]), L::put(b[k], lane, pb[k] - pa[k]), L::put(c[k], lane, pc[k] - pa[k]);
    }
    n[0] = b[1] * c[2] - b[2] * c[1];
    n[1] = b[2] * c[0] - b[0] * c[2];
    n[2] = b[0] * c[1] - b[1] * c[0];
    // Scaled first, or the squares of a small triangle's normal would underflow.
    const F size = L::max(L::max(L::max(N::abs(n[0]), N::abs(n[1])), N::abs(n[2])), N::c(1e-37f));
    for (int k = 0; k < 3; ++k) n[k] = n[k] / size;
    const F length = N::sqrt(L::max(L::dot(n, n), N::c(1e-30f)));
    for (int k = 0; k < 3; ++k) n[k] = n[k] / length;
  }
  static INLINE void surface(const Batch& batch, const InstanceRow& row, const Packet& p, const Hits& h, M m, int flags, Found& f) {
    RayCast::Rays r;
    for (int k = 0; k < 3; ++k) r.origin[k] = p.origin[k], r.rest[k] = p.rest[k], r.direction[k] = p.direction[k];
    F o[3], d[3], local[3], n[3], world[3];
    RayCast::to_local(row, r, o, d);
    for (int k = 0; k < 3; ++k) local[k] = o[k] + h.t * d[k];
    for (int k = 0; k < 3; ++k) f.local[k] = N::select(m, local[k], f.local[k]);
    if (!(flags & (OUT_NORMAL_WORLD | OUT_NORMAL_SENSOR))) return;
    const ShapeRow& shape = batch.shapes[row.shape];
    if (shape.kind == KIND_MESH) triangle_normal(batch, shape, m, h.face, n);
    else Solids::normal(shape, local, h.face, n);
    for (int k = 0; k < 3; ++k) world[k] = row.rotation[3 * k] * n[0] + row.rotation[3 * k + 1] * n[1] + row.rotation[3 * k + 2] * n[2];
    const M away = L::dot(world, p.direction) > 0.0f;
    for (int k = 0; k < 3; ++k) f.normal[k] = N::select(m, N::select(away, -world[k], world[k]), f.normal[k]);
  }
  // Lanes that met the same instance are served together.
  static INLINE void find(const Batch& batch, int env, const Packet& p, const Hits& h, int flags, Found& f) {
    M left = h.instance >= 0;
    while (L::any(left)) {
      const int number = L::at(h.instance, L::first(left));
      const M m = left & (h.instance == number);
      left = left & N::invert(h.instance == number);
      const InstanceRow& row = *batch.instance(env, number);
      f.id = L::select(m, L::i(row.instance_id), f.id);
      f.semantic = L::select(m, L::i(row.semantic_id), f.semantic);
      if (flags & (OUT_NORMAL_WORLD | OUT_NORMAL_SENSOR | OUT_LOCAL_POINT)) surface(batch, row, p, h, m, flags, f);
    }
  }
  static INLINE void put(float* out, const Packet& p, F x, int width, int k) {
    for (int lane = 0; lane < LANES; ++lane)
      if (L::at(p.pixel, lane) >= 0) out[(long long)L::at(p.pixel, lane) * width + k] = L::at(x, lane);
  }
  static INLINE void put_i(int* out, const Packet& p, I x) {
    for (int lane = 0; lane < LANES; ++lane)
      if (L::at(p.pixel, lane) >= 0) out[L::at(p.pixel, lane)] = L::at(x, lane);
  }
};
#define HAS_OUT(name) (flags & OUT_##name)
const Batch batch = BATCH_OF_ARGUMENTS;
if (flags & CAST_SEGMENTS) {
  // Rays of a packet may be in different environments: those in one go together. `pixels` holds the group each passes through.
  const CameraRow* rows = (const CameraRow*)cameras.data + (long long)task * LANES;
  const int here = packets - task * LANES < LANES ? packets - task * LANES : LANES;
  RayCast::Rays r;
  Hits h = {N::c(0.0f), L::i(-1), L::i(-1), N::c(0.0f), N::c(0.0f)};
  I env = L::i(-1), ignore = L::i(-1), through = L::i(0);
  for (int k = 0; k < 3; ++k) r.origin[k] = r.rest[k] = r.direction[k] = N::c(0.0f);
  for (int lane = 0; lane < here; ++lane) {
    const CameraRow& row = rows[lane];
    const float skip = row.attitude[3];
    for (int k = 0; k < 3; ++k) {
      L::put(r.origin[k], lane, row.position[k]);
      L::put(r.rest[k], lane, row.rest[k] + skip * row.attitude[k]);
      L::put(r.direction[k], lane, row.attitude[k]);
    }
    L::put(h.t, lane, 1.0f - 2.0f * skip);
    L::put(env, lane, row.env);
    L::put(ignore, lane, row.ignore);
    L::put(through, lane, pixels.data[(long long)task * LANES + lane]);
  }
  M left = env >= 0;
  while (L::any(left)) {
    const int number = L::at(env, L::first(left));
    const M group = left & (env == number);
    left = left & N::invert(env == number);
    RayCast::cast(batch, number, r, group, ignore, through, true, INSTANCE_SHADOW_ONLY, h);
  }
  for (int lane = 0; lane < here; ++lane) out_instance.data[(long long)task * LANES + lane] = L::at(h.instance, lane) >= 0 ? 1 : 0;
} else {
#if LANES == 1
  const int camera = task / (packets * 16), first = task % (packets * 16), last = first + 1;
#else
  const int chunks = (packets + PACKETS_PER_TASK - 1) / PACKETS_PER_TASK, number = task_order.data[task];
  const int camera = number / chunks, first = number % chunks * PACKETS_PER_TASK;
  const int last = first + PACKETS_PER_TASK < packets ? first + PACKETS_PER_TASK : packets;
#endif
  const CameraRow* rows = (const CameraRow*)cameras.data + (long long)camera * ((flags & CAST_COLUMNS) ? width : 1);
  const long long base = (long long)camera * pixel_count;
  PRAGMA_NOUNROLL
  for (int n = first; n < last; ++n) {
    const int place = LANES == 1 ? n / 16 : n, lane = LANES == 1 ? n % 16 : 0;
    Packet p;
    Painter::load(p, rays.data + (long long)place * RAY_ROWS * 16 + lane, pixels.data + (long long)place * 16 + lane, rows, width, flags);
    if (!L::any(p.pixel >= 0)) continue;
    Hits h = {N::c(max_range), L::i(-1), L::i(-1), N::c(0.0f), N::c(0.0f)};
    Painter::trace(batch, p, *rows, flags, h);
    const M hit = h.instance >= 0;
    const F infinity = N::from_bits(N::u(0x7f800000u)), nan = N::from_bits(N::u(0x7fc00000u));
    if (HAS_OUT(RANGE)) Painter::put(out_range.data + base, p, N::select(hit, h.t, infinity), 1, 0);
    if (HAS_OUT(DEPTH)) Painter::put(out_depth.data + base, p, N::select(hit, h.t * p.along, infinity), 1, 0);
    if (HAS_OUT(INSTANCE)) Painter::put_i(out_instance.data + base, p, h.instance);
    if (HAS_OUT(FACE)) Painter::put_i(out_face.data + base, p, h.face);
    if (HAS_OUT(BARYCENTRIC)) {
      Painter::put(out_barycentric.data + 2 * base, p, h.u, 2, 0);
      Painter::put(out_barycentric.data + 2 * base, p, h.v, 2, 1);
    }
    for (int k = 0; k < 3; ++k) {
      if (HAS_OUT(POINT_WORLD))
        Painter::put(out_point_world.data + 3 * base, p,
                     N::select(hit, p.origin[k] + (p.rest[k] + h.t * p.direction[k]), nan), 3, k);
      if (HAS_OUT(POINT_SENSOR))
        Painter::put(out_point_sensor.data + 3 * base, p, N::select(hit, p.start[k] + h.t * p.sensor[k], nan), 3, k);
    }
    if (!(flags & (OUT_INSTANCE_ID | OUT_SEMANTIC_ID | OUT_NORMAL_WORLD | OUT_NORMAL_SENSOR | OUT_LOCAL_POINT))) continue;
    Found f = {L::i(-2), L::i(-2), {nan, nan, nan}, {nan, nan, nan}};
    Painter::find(batch, rows->env, p, h, flags, f);
    if (HAS_OUT(INSTANCE_ID)) Painter::put_i(out_instance_id.data + base, p, f.id);
    if (HAS_OUT(SEMANTIC_ID)) Painter::put_i(out_semantic_id.data + base, p, f.semantic);
    for (int k = 0; k < 3; ++k) {
      if (HAS_OUT(NORMAL_WORLD)) Painter::put(out_normal_world.data + 3 * base, p, f.normal[k], 3, k);
      if (HAS_OUT(LOCAL_POINT)) Painter::put(out_local_point.data + 3 * base, p, f.local[k], 3, k);
      if (HAS_OUT(NORMAL_SENSOR)) {
        const F* r = p.rotation;
        const F x = r[k] * f.normal[0] + r[3 + k] * f.normal[1] + r[6 + k] * f.normal[2];
        Painter::put(out_normal_sensor.data + 3 * base, p, x, 3, k);
      }
    }
  }
}
