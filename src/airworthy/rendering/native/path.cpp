// Path tracing of 16 pixels at once, on a GPU of one: camera rays are followed from surface to surface; at each, light is taken from
// every lamp, from the sun's disc and from one glowing place, and from whatever the scattered ray meets next; the two ways in which
// glow and sun can be found share it (Veach and Guibas, Optimally combining sampling techniques, 1995). A lane whose path has ended
// begins its next sample, so lanes stay busy; a pixel's samples are summed in their order, whatever its neighbours do.
// Arrays: airworthy.rendering.still, airworthy.rendering.emitters. Twin: airworthy.rendering.path_twin.
struct Tracer {
  const Batch& batch;
  const Appearance& appearance;
  const float *lights, *sky, *settings, *albedos, *emitter_sums, *emitter_densities;
  const int *emitter_places, *emitter_slots;
  int light_first, light_count, emitter_first, emitter_count, slot_first, env, flags;
  I ignore;
  // What unit directions meet before `limit`, holes of cut-out materials looked through.
  SHADING_MEMBER void trace(const V3& origin, const V3& rest, const V3& direction, M active, F limit, Found& hit) const {
    hit.instance = W::i(-1);
    hit.face = W::i(-1);
    hit.b1 = hit.b2 = hit.range = N::c(0.0f);
    hit.local = V3::c(0.0f, 0.0f, 0.0f);
    F begun = N::c(0.0f);
    M left = active;
    PRAGMA_NOUNROLL
    for (int layer = 0; layer < HOLES_MAX && N::any(left); ++layer) {
      const V3 o = origin + direction * begun;
      RayCast::Rays r = {{o.x, o.y, o.z}, {rest.x, rest.y, rest.z}, {direction.x, direction.y, direction.z}};
      Hits h = {limit - begun, W::i(-1), W::i(-1), N::c(0.0f), N::c(0.0f)};
      RayCast::cast(batch, env, r, left, ignore, false, h);
      hit.instance = W::pick(left, h.instance, hit.instance);
      hit.face = W::pick(left, h.face, hit.face);
      hit.b1 = N::select(left, h.u, hit.b1);
      hit.b2 = N::select(left, h.v, hit.b2);
      hit.range = N::select(left, h.t + begun, hit.range);
      place(origin + rest + direction * hit.range, hit);
      if (!(flags & PATH_HOLES)) return;
      Fetched fetched;
      const Surface s = Surfaces::at(batch, appearance, env, direction * N::c(-1.0f), N::c(0.0f), hit, fetched, false);
      left = left & (hit.instance >= 0) & (s.alpha < s.cutoff);
      begun = hit.range + hit.range * 2e-6f + 1e-4f;
    }
  }
  // Points of hits in their instances' frames.
  INLINE void place(const V3& point, Found& hit) const { Surfaces::place(batch, env, point, hit); }
  // Which lanes see as far as `limit`.
  SHADING_MEMBER M open(const V3& from, const V3& direction, F limit, M wanted) const {
    if (flags & PATH_HOLES) {
      Found hit;
      trace(from, V3::c(0.0f, 0.0f, 0.0f), direction, wanted, limit, hit);
      return wanted & (hit.instance < 0);
    }
    const V3 whole = direction * limit;
    return wanted & N::invert(Lighting::blocked(batch, env, from, whole, wanted, ignore));
  }
  // As `open`, through glass as well: `left` becomes what passes it. Through what bounds a volume, too, where it `may_bend`, and as if
  // it did not: `through` become the lanes that did; elsewhere such a surface shuts lamps out.
  SHADING_MEMBER M clear(const V3& from, const V3& direction, F limit, M wanted, bool may_bend, V3& left, M& through) const {
    left = V3::c(1.0f, 1.0f, 1.0f);
    through = N::never();
    if (!(flags & PATH_GLASS)) return open(from, direction, limit, wanted);
    M lit = wanted, going = wanted;
    F begun = N::c(0.0f);
    PRAGMA_NOUNROLL
    for (int layer = 0; layer < GLASS_MAX && N::any(going); ++layer) {
      Found hit;
      trace(from + direction * begun, V3::c(0.0f, 0.0f, 0.0f), direction, going, limit - begun, hit);
      const M met = going & (hit.instance >= 0);
      going = N::never();
      if (!N::any(met)) break;
      Fetched fetched;
      const Surface s = Surfaces::at(batch, appearance, env, direction * N::c(-1.0f), N::c(0.0f), hit, fetched, true);
      F ior;
      const F passing = Glass::passing(appearance, met, fetched, ior);
      going = met & (passing > 0.0f);
      V3 part = V3::all(N::c(1.0f) - Glass::mirrored(s.normal.dot(direction), ior));
      if (flags & PATH_WATER) {
        const Water water = Water::of(appearance, met, s);
        if (may_bend) {
          part = V3::select(water.volume, water.towards_light(s, direction, hit.range), part);
          through = through | water.volume;
        } else {
          going = going & N::invert(water.volume);
        }
      }
      lit = lit & N::invert(met & N::invert(going));
      left = V3::select(going, left * s.albedo * part * passing, left);
      begun = N::select(going, begun + hit.range * 1.000002f + 2e-4f, begun);
    }
    return lit & N::invert(going);
  }
  // Four uniform numbers: sample, surface along the path, which four.
  static INLINE void draw(const U* key, I sample, I depth, int index, F* u) {
    U x[4] = {W::unsigned_of(sample), N::u(PATH_STREAM), W::unsigned_of(depth * DRAWS_PER_DEPTH + index), N::u(0u)};
    Threefry::block(key, x);
    for (int k = 0; k < 4; ++k) u[k] = Threefry::uniform(x[k]);
  }
  // Shares of what two ways of sampling find (power heuristic); a density of none counts alone.
  static INLINE F share(F mine, F other) {
    const F a = mine * mine, b = other * other;
    return a / W::maximum(a + b, N::c(1e-30f));
  }
  // What the open sky and the sun's disc send along a ray; `density` of the ray among those that its surface scatters, < 0: it is seen.
  INLINE V3 beyond(const V3& direction, F density) const {
    V3 out = Sky::radiance(sky, direction, sky[11] > 0.0f ? settings[SET_TIMES + env] : 0.0f);
    const float tangent = settings[SET_SUN_TANGENT], sine = settings[SET_SUN_SINE];
    if (!(tangent > 0.0f)) return out;
    for (int k = 0; k < light_count; ++k) {
      const float* lamp = lights + LIGHT_COLUMNS * (light_first + k);
      if ((int)lamp[0] != LIGHT_SUN) continue;
      // The distance of unit vectors, not their cosine, whose digits a small disc would leave unused.
      const V3 off = direction + V3::c(lamp[4], lamp[5], lamp[6]);
      const M inside = off.dot(off) < settings[SET_SUN_CHORD];
      if (!N::any(inside)) continue;
      const F cosine = N::c(1.0f) - off.dot(off) * 0.5f;
      const F of_light = N::c(0.318309886f / (tangent * tangent)) / (cosine * cosine * cosine);
      F part = N::select(density < 0.0f, N::c(flags & PATH_SUN_DISC ? 1.0f : 0.0f), share(density, of_light));
      // Lamps and suns have been found by straight rays where the path's was bent.
      part = N::select(density == BENT_DENSITY, N::c(0.0f), part);
      const float* night = sky + (int)sky[11] * SKY_COLUMNS;
      // Under a moon its light is the only sun, and the sky has its disc.
      if (sky[11] > 0.0f && night[25] > 0.0f && night[10] < 0.0f) part = N::select(density < 0.0f, N::c(0.0f), part);
      part = N::select(inside, part * (0.318309886f / (sine * sine)), N::c(0.0f));
      out = out + V3::c(lamp[7], lamp[8], lamp[9]) * part;
    }
    return out;
  }
  // Light of lamps and suns on a surface, sent on towards the eye.
  SHADING_MEMBER V3 lamps(const Scattering& surface, const V3& point, const V3& start, const U* key, I sample, I depth, M active) const {
    V3 light = V3::c(0.0f, 0.0f, 0.0f);
    PRAGMA_NOUNROLL
    for (int k = 0; k < light_count; ++k) {
      const float* lamp = lights + LIGHT_COLUMNS * (light_first + k);
      V3 l, path;
      V3 given = Lighting::arriving(lamp, point, l, path);
      const bool sun = (int)lamp[0] == LIGHT_SUN, disc = sun && settings[SET_SUN_TANGENT] > 0.0f;
      F of_light = N::c(0.0f);
      if (disc) {
        F u[4], c, s;
        draw(key, sample, depth, 2 + k, u);
        Turn::of(u[0], c, s);
        V3 a, b;
        Surfaces::basis(l, a, b);
        const float tangent = settings[SET_SUN_TANGENT], sine = settings[SET_SUN_SINE];
        const F reach = N::sqrt(u[1]) * tangent, cosine = N::c(1.0f) / N::sqrt(N::c(1.0f) + reach * reach), cubed = cosine * cosine * cosine;
        l = (l + a * (reach * c) + b * (reach * s)) * cosine;
        of_light = N::c(0.318309886f / (tangent * tangent)) / cubed;
        given = given * (cubed * (tangent * tangent / (sine * sine)));
      }
      if (!sun && lamp[13] > 0.0f) {
        F u[4];
        draw(key, sample, depth, 2 + k, u);
        Lighting::aside(false, lamp[13], u[0], u[1], l, path);
      }
      F density;
      const V3 sent = surface.sent(l, density) * given;
      M lit = active & ((sent.x + sent.y + sent.z) > 0.0f);
      if (!N::any(lit)) continue;
      const V3 from = surface.origin(l, start), way = path - (from - point);
      const F far = sun ? N::c(SUN_FAR) : N::sqrt(way.dot(way));
      const V3 along = sun ? l : way * (N::c(1.0f) / W::maximum(far, N::c(1e-6f)));
      V3 left;
      M through;
      lit = clear(from, along, far, lit, true, left, through);
      const F part = disc ? N::select(through, N::c(1.0f), share(of_light, density)) : N::c(1.0f);
      light = light + V3::select(lit, sent * left * part, V3::c(0.0f, 0.0f, 0.0f));
    }
    return light;
  }
  // A point of an emitter, in its instance's frame.
  INLINE void emitter_point(int row, float u1, float u2, int lane, Found& at) const {
    const int number = emitter_places[2 * row], face = emitter_places[2 * row + 1];
    const ShapeRow& shape = batch.shapes[batch.instance(env, number)->shape];
    float p[3] = {0.0f, 0.0f, 0.0f}, b1 = 0.0f, b2 = 0.0f;
    if (shape.kind == KIND_MESH) {
      const float root = ::sqrtf(u1);
      b1 = root * (1.0f - u2), b2 = root * u2;
      const float *a = batch.corner(shape, face, 0), *b = batch.corner(shape, face, 1), *c = batch.corner(shape, face, 2);
      for (int k = 0; k < 3; ++k) p[k] = a[k] + (b[k] - a[k]) * b1 + (c[k] - a[k]) * b2;
    } else if (shape.kind == KIND_BOX) {
      const int axis = face >> 1, b = axis == 0 ? 1 : 0, c = axis == 2 ? 1 : 2;
      p[axis] = (face & 1) ? shape.size[axis] : -shape.size[axis];
      p[b] = shape.size[b] * (u1 * 2.0f - 1.0f);
      p[c] = shape.size[c] * (u2 * 2.0f - 1.0f);
    }
    W::set(at.instance, lane, number);
    W::set(at.face, lane, face);
    W::set(at.b1, lane, b1);
    W::set(at.b2, lane, b2);
    W::set(at.local.x, lane, p[0]);
    W::set(at.local.y, lane, p[1]);
    W::set(at.local.z, lane, p[2]);
  }
  // Row of the emitter that a number in (0, 1) falls to, by the sums of their shares.
  INLINE int emitter_row(float u) const {
    int low = emitter_first, high = emitter_first + emitter_count - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (emitter_sums[middle] > u) high = middle;
      else low = middle + 1;
    }
    return low;
  }
  // Light of one glowing place on a surface, sent on towards the eye.
  SHADING_MEMBER V3 glow(const Scattering& surface, const V3& start, const F* u, M active) const {
    Found at;
    at.instance = at.face = W::i(-1);
    at.b1 = at.b2 = at.range = N::c(0.0f);
    at.local = V3::c(0.0f, 0.0f, 0.0f);
    F by_area = N::c(1.0f), c, s;
    Turn::of(u[1], c, s);
    const F z = N::c(1.0f) - u[2] * 2.0f, ring = N::sqrt(W::maximum(N::c(1.0f) - z * z, N::c(0.0f)));
    for (int k = 0; k < LANES; ++k) {
      if (!W::at(active, k)) continue;
      const int row = emitter_row(W::get(u[0], k));
      emitter_point(row, W::get(u[1], k), W::get(u[2], k), k, at);
      W::set(by_area, k, emitter_densities[row]);
      const InstanceRow& stands = *batch.instance(env, emitter_places[2 * row]);
      const ShapeRow& shape = batch.shapes[stands.shape];
      // What was switched off gives no light; rays that look for it find none.
      if (!(stands.flags & INSTANCE_VISIBLE)) W::set(by_area, k, 0.0f);
      if (shape.kind != KIND_SPHERE) continue;
      W::set(at.local.x, k, shape.size[0] * W::get(ring, k) * W::get(c, k));
      W::set(at.local.y, k, shape.size[0] * W::get(ring, k) * W::get(s, k));
      W::set(at.local.z, k, shape.size[0] * W::get(z, k));
    }
    Fetched fetched;
    const Surface place = Surfaces::at(batch, appearance, env, surface.towards, N::c(0.0f), at, fetched, true);
    V3 from = start, way = place.point - start;
    if (N::any(surface.leaf)) {
      from = surface.origin(way, start);
      way = place.point - from;
    }
    const F square = W::maximum(way.dot(way), N::c(1e-10f)), far = N::sqrt(square);
    const V3 l = way * (N::c(1.0f) / far);
    const F cosine = N::abs(place.geometric.dot(l));
    F density;
    const V3 sent = surface.sent(l, density) * place.emission;
    const F of_light = by_area * square / W::maximum(cosine, N::c(1e-6f));
    M lit = active & (cosine > 1e-6f) & ((sent.x + sent.y + sent.z) > 0.0f) & (of_light > 0.0f);
    if (flags & PATH_HOLES) lit = lit & N::invert(place.alpha < place.cutoff);
    if (!N::any(lit)) return V3::c(0.0f, 0.0f, 0.0f);
    V3 left;
    M unused;
    lit = clear(from, l, far * (1.0f - 2e-5f) - 2e-4f, lit, false, left, unused);
    return V3::select(lit, sent * left * (share(of_light, density) / W::maximum(of_light, N::c(1e-20f))), V3::c(0.0f, 0.0f, 0.0f));
  }
  // How densely `glow` would have sampled what a ray has met [1/sr]; 0 where it never does.
  // `range`: from where the ray was scattered, glass between aside.
  INLINE F glow_density(const Found& hit, F range, const Surface& s, const V3& direction) const {
    F by_area = N::c(0.0f);
    for (int k = 0; k < LANES; ++k) {
      const int number = W::get(hit.instance, k);
      if (number < 0) continue;
      const int slot = emitter_slots[slot_first + number];
      if (slot < 0) continue;
      const ShapeRow& shape = batch.shapes[batch.instance(env, number)->shape];
      W::set(by_area, k, emitter_densities[slot + (shape.kind == KIND_SPHERE ? 0 : W::get(hit.face, k))]);
    }
    return by_area * range * range / W::maximum(N::abs(s.geometric.dot(direction)), N::c(1e-6f));
  }
};
const Batch batch = BATCH_OF_ARGUMENTS;
const Appearance appearance = {materials.data, material_maps.data, shape_appearance.data, appearance_vertices.data, appearance_faces.data,
                     {textures.data, texels.data}};
#if LANES == 1
const int camera = task / (packets * 16), packet = task % (packets * 16) / 16, lane0 = task % 16;
#else
const int number = task_order.data[task], camera = number / packets, packet = number % packets, lane0 = 0;
#endif
const float* camera_row = cameras.data + (long long)camera * ((flags & PATH_COLUMNS) ? width : 1) * CAMERA_STRIDE;
const int env = (int)W::as_int(camera_row[10]), ignored = (int)W::as_int(camera_row[11]), scene = env_scene.data[env];
const Tracer tracer = {batch, appearance, lights.data, skies.data + SKY_COLUMNS * scene, settings.data, albedos.data,
                       emitter_sums.data, emitter_densities.data, emitter_places.data, emitter_slots.data,
                       env_lights.data[2 * env], env_lights.data[2 * env + 1],
                       env_emitters.data[3 * env], env_emitters.data[3 * env + 1], env_emitters.data[3 * env + 2], env, flags, W::i(ignored)};
const float* ray = rays.data + (long long)packet * RAY_ROWS * 16 + lane0;
const float* step = steps.data + (long long)packet * 6 * 16 + lane0;
V3 ahead = {N::load(ray), N::load(ray + 16), N::load(ray + 32)}, eye_rest = V3::c(camera_row[3], camera_row[4], camera_row[5]);
V3 eye = V3::c(camera_row[0], camera_row[1], camera_row[2]);
const V3 across = {N::load(step), N::load(step + 16), N::load(step + 32)}, down = {N::load(step + 48), N::load(step + 64), N::load(step + 80)};
I pixel = W::i(-1);
F q[4];
for (int i = 0; i < 4; ++i) q[i] = N::c(camera_row[6 + i]);
for (int k = 0; k < LANES; ++k) {
  const int p = pixels.data[(long long)packet * 16 + lane0 + k];
  W::set(pixel, k, p);
  if (!(flags & PATH_COLUMNS)) continue;
  const float* pose = camera_row + (p < 0 ? 0 : p % width) * CAMERA_STRIDE;
  W::set(eye.x, k, pose[0]);
  W::set(eye.y, k, pose[1]);
  W::set(eye.z, k, pose[2]);
  W::set(eye_rest.x, k, pose[3]);
  W::set(eye_rest.y, k, pose[4]);
  W::set(eye_rest.z, k, pose[5]);
  for (int i = 0; i < 4; ++i) W::set(q[i], k, pose[6 + i]);
}
const M valid = pixel >= 0;
const F qx = q[0], qy = q[1], qz = q[2], qw = q[3];
const F rotation[9] = {1.0f - 2.0f * (qy * qy + qz * qz), 2.0f * (qx * qy - qz * qw), 2.0f * (qx * qz + qy * qw),
                       2.0f * (qx * qy + qz * qw), 1.0f - 2.0f * (qx * qx + qz * qz), 2.0f * (qy * qz - qx * qw),
                       2.0f * (qx * qz - qy * qw), 2.0f * (qy * qz + qx * qw), 1.0f - 2.0f * (qx * qx + qy * qy)};
if (flags & PATH_OWN_ORIGINS) eye_rest = eye_rest + Surfaces::turned(rotation, V3{N::load(ray + 64), N::load(ray + 80), N::load(ray + 96)});
U key[5] = {N::u((unsigned int)seed_low), N::u((unsigned int)seed_high), W::unsigned_of(pixel), N::u(0u), N::u(0u)};
Threefry::expand(key);
const V3 nothing = V3::c(0.0f, 0.0f, 0.0f);
V3 sum = nothing, light = nothing, through = nothing, origin = eye, rest = eye_rest, direction = ahead;
V3 within = nothing;  // attenuation of the volume that the path is in [1/m]
F density = N::c(-1.0f), behind = N::c(0.0f);  // behind: way from where it was scattered to the last sheet of glass
I depth = W::i(0), sample = W::i(first_sample), broken = W::i(0);
M alive = N::never();
PRAGMA_NOUNROLL
for (;;) {
  // Lanes whose path has ended look through their pixel again.
  const M fresh = valid & N::invert(alive) & (sample < last_sample);
  if (N::any(fresh)) {
    F u[4];
    Tracer::draw(key, sample, W::i(0), DRAWS_PER_DEPTH - 1, u);
    const V3 seen = Surfaces::turned(rotation, (ahead + across * (u[0] - 0.5f) + down * (u[1] - 0.5f)).unit());
    origin = V3::select(fresh, eye, origin);
    rest = V3::select(fresh, eye_rest, rest);
    direction = V3::select(fresh, seen, direction);
    through = V3::select(fresh, V3::c(1.0f, 1.0f, 1.0f), through);
    light = V3::select(fresh, nothing, light);
    behind = N::select(fresh, N::c(0.0f), behind);
    within = V3::select(fresh, nothing, within);
    density = N::select(fresh, N::c(-1.0f), density);
    depth = W::pick(fresh, W::i(0), depth);
    alive = alive | fresh;
  }
  if (!N::any(alive)) break;
  Found hit;
  tracer.trace(origin, rest, direction, alive, N::c(settings.data[SET_FAR]), hit);
  const M there = alive & (hit.instance >= 0), gone = alive & (hit.instance < 0);
  if (tracer.sky[10] > 0.0f) {
    // Haze before whatever is met, as the standard renderer has it: what it adds, and what it lets pass.
    F passed = N::c(1.0f);
    const V3 added = Mist::seen(tracer.sky + (int)tracer.sky[10] * SKY_COLUMNS, origin.z + rest.z, direction, there, hit.range, nothing, passed, V3::c(1.0f, 1.0f, 1.0f), N::c(1.0f));
    light = light + V3::select(alive, through * added, nothing);
    through = V3::select(alive, through * passed, through);
  }
  if (flags & PATH_WATER) {
    const V3 kept = Water::kept(within, N::select(there, hit.range, N::c(settings.data[SET_FAR])));
    through = V3::select(alive, through * kept, through);
  }
  if (N::any(gone)) light = light + V3::select(gone, through * tracer.beyond(direction, density), nothing);
  M goes_on = there;
  if (N::any(there)) {
    const V3 towards = direction * N::c(-1.0f);
    Fetched fetched;
    Surface s = Surfaces::at(batch, appearance, env, towards, N::c(0.0f), hit, fetched, true);
    s.thin = N::c(0.0f);
    if ((flags & PATH_LEAVES) && tracer.sky[11] == 0.0f) Leaves::on(appearance, there, s);
    if (tracer.sky[11] > 0.0f) {
      const float* row = tracer.sky + (int)tracer.sky[11] * SKY_COLUMNS;
      Wet::on(row, appearance, there, fetched, s);
      if (flags & PATH_LEAVES) Leaves::on(appearance, there, s);
      if (row[26] > 0.0f) {
        F share = Snow::share(row, appearance, there, fetched, s);
        const M asked = share > 0.0f;
        if (N::any(asked)) {
          const V3 from = s.point + s.geometric * (hit.range * 2e-5f + 1e-3f);
          share = N::select(tracer.open(from, Snow::lean(row, s.point), N::c(1.0f), asked), share, N::c(0.0f));
          s.thin = s.thin * (N::c(1.0f) - share);
          Snow::lay(row, share, s);
        }
      }
    }
    Water water;
    water.volume = water.front = N::never();
    if (flags & PATH_WATER) {
      water = Water::of(appearance, there, s);
      // An eye under water: who meets the surface from below has come through water.
      const M begun = water.volume & N::invert(water.front) & ((within.x + within.y + within.z) == 0.0f);
      if (N::any(begun)) through = V3::select(begun, through * Water::kept(water.attenuation, hit.range), through);
      if (N::any(water.volume)) Water::waves(appearance, water.volume, settings.data[SET_TIMES + env], N::c(0.0f), towards, s);
    }
    if (N::any(there & ((s.emission.x + s.emission.y + s.emission.z) > 0.0f))) {
      F part = N::c(1.0f);
      if (tracer.emitter_count > 0) {
        const F of_light = tracer.glow_density(hit, hit.range + behind, s, direction);
        part = N::select((density < 0.0f) | (of_light == 0.0f), part, Tracer::share(density, of_light));
      }
      light = light + V3::select(there, through * s.emission * part, nothing);
    }
    goes_on = there & (depth < bounces);
    if (N::any(goes_on)) {
      F ior = N::c(1.5f), passing = N::c(0.0f);
      if (flags & PATH_GLASS) passing = Glass::passing(appearance, there, fetched, ior);
      const M glass = goes_on & (passing > 0.0f), solid = goes_on & N::invert(glass);
      Scattering surface = Scattering::of(s, towards, albedos.data, flags);
      const F size = W::maximum(W::maximum(N::abs(s.point.x), N::abs(s.point.y)), N::abs(s.point.z));
      V3 start = s.point + s.geometric * (size * 4e-6f + hit.range * 2e-5f + 2e-4f);
      F u[4];
      const V3 below = s.point + s.point - start;
      surface.beneath = below;
      V3 bent = direction, reflected = s.normal * (s.normal.dot(towards) * 2.0f) - towards;
      F mirrored = Glass::mirrored(s.normal.dot(towards), ior), murk = N::c(0.0f);
      M murky = N::never();
      if (N::any(water.volume)) {
        mirrored = N::select(water.volume, Water::mirrored(s.normal.dot(towards), water.eta), mirrored);
        reflected = V3::select(water.volume, Water::reflected(direction, s.normal, s.geometric), reflected);
        bent = V3::select(water.volume, Water::bent(direction, s.normal, s.geometric, water.eta), direction);
        const V3 deep = Water::scattered(appearance, water.volume, s);
        murky = goes_on & water.front & ((deep.x + deep.y + deep.z) > 0.0f);
        if (N::any(murky)) {
          // What the volume sends back by itself is a surface of Lambert's, the paler the deeper: how deep, a ray asks.
          Found floor;
          tracer.trace(below, nothing, bent, murky, N::c(settings.data[SET_FAR]), floor);
          const V3 kept = Water::kept(water.attenuation, N::select(floor.instance >= 0, floor.range, N::c(settings.data[SET_FAR])));
          const V3 pale = deep * (V3::c(1.0f, 1.0f, 1.0f) - kept * kept) * ((N::c(1.0f) - mirrored) * Water::shown(water.ior));
          surface.diffuse = V3::select(murky, pale, surface.diffuse);
          surface.f0 = V3::select(murky, nothing, surface.f0);
          surface.gain = V3::select(murky, nothing, surface.gain);
          surface.glossy = N::select(murky, N::c(0.0f), surface.glossy);
          murk = N::select(murky, W::clamp(Scattering::luminance(pale), 0.1f, 0.5f), murk);
        }
      }
      const M lit = solid | murky;
      if (tracer.light_count > 0)
        light = light + V3::select(lit, through * tracer.lamps(surface, s.point, start, key, sample, depth, lit), nothing);
      if (tracer.emitter_count > 0) {
        Tracer::draw(key, sample, depth, 1, u);
        light = light + V3::select(lit, through * tracer.glow(surface, start, u, lit), nothing);
      }
      Tracer::draw(key, sample, depth, 0, u);
      V3 next = surface.sample(u[0], u[1], u[2]);
      F of_next;
      const V3 sent = surface.sent(next, of_next);
      V3 weight = through * sent * (N::c(1.0f) / W::maximum(of_next, N::c(1e-20f)));
      start = surface.origin(next, start);
      if (N::any(glass)) {
        // A sheet mirrors, or lets pass: then nothing has been scattered, and light is shared as if it were not there. What bounds a
        // volume mirrors, or bends, or sends back of its own.
        const F chance = (N::c(1.0f) - mirrored) * murk;
        const M mirrors = glass & (u[0] < mirrored), stays = murky & N::invert(mirrors) & (u[0] < mirrored + chance);
        const M passes = glass & N::invert(mirrors | stays), bends = passes & water.volume;
        next = V3::select(mirrors, reflected, V3::select(passes, bent, next));
        // Radiance behind a denser surface is gathered into a narrower cone: the square of the index.
        const F narrow = N::select(bends, N::c(1.0f) / (water.eta * water.eta), N::c(1.0f));
        const V3 passed = through * s.albedo * (passing * narrow / (N::c(1.0f) - murk));
        weight = V3::select(stays, weight * (N::c(1.0f) / W::maximum(chance, N::c(1e-20f))), weight);
        weight = V3::select(mirrors, through, V3::select(passes, passed, weight));
        const F after = N::select(bends & (density >= 0.0f) & (density < MIRROR_DENSITY), N::c(BENT_DENSITY), density);
        of_next = N::select(mirrors, N::c(MIRROR_DENSITY), N::select(passes, after, of_next));
        start = V3::select(passes, below, start);
        behind = N::select(passes & N::invert(water.volume), behind + hit.range, N::c(0.0f));
        const M sinks = (bends & water.front) | (mirrors & water.volume & N::invert(water.front));
        within = V3::select(sinks, water.attenuation, V3::select(bends, nothing, within));
      } else {
        behind = N::c(0.0f);
      }
      goes_on = goes_on & (glass | (of_next > 0.0f));
      through = V3::select(goes_on, weight, through);
      // Faint paths end by chance, and those that survive count for them.
      const F most = W::maximum(W::maximum(through.x, through.y), through.z);
      const M gambles = goes_on & (depth >= ROULETTE_DEPTH);
      const F odds = W::clamp(most, 0.02f, 0.95f);
      goes_on = goes_on & (most > 0.0f) & N::invert(gambles & (u[3] >= odds));
      through = V3::select(gambles & goes_on, through * (N::c(1.0f) / odds), through);
      origin = V3::select(goes_on, start, origin);
      rest = V3::select(goes_on, nothing, rest);
      direction = V3::select(goes_on, next, direction);
      density = N::select(goes_on, of_next, density);
      depth = W::pick(goes_on, depth + 1, depth);
    }
  }
  const M ended = alive & N::invert(goes_on), sound = N::finite(light.x) & N::finite(light.y) & N::finite(light.z);
  sum = sum + V3::select(ended & sound, light, nothing);
  broken = W::pick(ended & N::invert(sound), broken + 1, broken);
  sample = W::pick(ended, sample + 1, sample);
  alive = goes_on;
}
for (int k = 0; k < LANES; ++k) {
  if (!W::at(valid, k)) continue;
  const long long at = (long long)camera * pixel_count + W::get(pixel, k);
  out_sum.data[3 * at] = W::get(sum.x, k);
  out_sum.data[3 * at + 1] = W::get(sum.y, k);
  out_sum.data[3 * at + 2] = W::get(sum.z, k);
  out_broken.data[at] = W::get(broken, k);
}
