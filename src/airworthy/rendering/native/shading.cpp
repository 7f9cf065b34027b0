// Colours of 16 rays: what they hit, and the light that it sends back. One task is a few packets of one camera; on a GPU one ray.
// Arrays: airworthy.rendering.shading, airworthy.scenes.appearance, airworthy.rendering.baking.
struct Under {
  M sunk;
  V3 dimmed, echoed;
};
struct Shader {
  const Batch& batch;
  const Appearance& appearance;
  const Baked& baked;
  const float *lights, *sky, *volume, *settings;
  int light_first, light_count, env, flags;
  I ignore;
  // Of the environment [s]; only where clouds or waves ask for it.
  INLINE float time() const { return sky[11] > 0.0f || (flags & USE_WATER) ? settings[SET_TIMES + env] : 0.0f; }
  // Nearest hits from here on, holes of cut-out materials looked through.
  SHADING_MEMBER void trace(const V3& origin, const V3& rest, const V3& direction, F spread, M active, F limit, Found& hit) const {
    hit.instance = W::i(-1);
    hit.face = W::i(-1);
    hit.b1 = hit.b2 = N::c(0.0f);
    F begun = N::c(0.0f);
    M left = active;
    PRAGMA_NOUNROLL
    for (int layer = 0; layer < HOLES_MAX && N::any(left); ++layer) {
      const V3 o = origin + direction * begun;
      RayCast::Rays r = {{o.x, o.y, o.z}, {rest.x, rest.y, rest.z}, {direction.x, direction.y, direction.z}};
      Hits h = {limit - begun, W::i(-1), W::i(-1), N::c(0.0f), N::c(0.0f)};
      RayCast::cast(batch, env, r, left, ignore, false, h);
      Found next = hit;
      next.instance = W::pick(left, h.instance, hit.instance);
      next.face = W::pick(left, h.face, hit.face);
      next.b1 = N::select(left, h.u, hit.b1);
      next.b2 = N::select(left, h.v, hit.b2);
      next.range = N::select(left, h.t + begun, hit.range);
      hit = next;
      place(origin + rest + direction * hit.range, hit);
      if (!(flags & USE_HOLES)) return;
      left = left & hole(direction, spread, hit);
      begun = hit.range + hit.range * 2e-6f + 1e-4f;
    }
  }
  // Points of hits in their instances' frames.
  INLINE void place(const V3& point, Found& hit) const { Surfaces::place(batch, env, point, hit); }
  // Which hits are in holes of their materials.
  INLINE M hole(const V3& direction, F spread, const Found& hit) const {
    Fetched fetched;
    const Surface s = Surfaces::at(batch, appearance, env, direction * N::c(-1.0f), spread, hit, fetched, false);
    return (hit.instance >= 0) & (s.alpha < s.cutoff);
  }
  // Which of the segments from surfaces to a light are blocked; through the holes of cut-outs, where that is asked for.
  // `left`: what sheets of glass let pass.
  SHADING_MEMBER M dark(const V3& from, const V3& path, M wanted, V3& left) const {
    left = V3::c(1.0f, 1.0f, 1.0f);
    RayCast::Rays r = {{from.x, from.y, from.z}, {N::c(0.0f), N::c(0.0f), N::c(0.0f)}, {path.x, path.y, path.z}};
    Hits h = {N::c(1.0f), W::i(-1), W::i(-1), N::c(0.0f), N::c(0.0f)};
    RayCast::cast(batch, env, r, wanted, ignore, W::i(0), true, (flags & USE_OWN_SHADOWS) ? INSTANCE_SHADOW_ONLY : INSTANCE_NO_SHADOW, h);
    const M met = wanted & (h.instance >= 0);
    if (!(flags & (USE_LEAF_SHADOWS | USE_GLASS)) || !N::any(met)) return met;
    // Whatever was met first is opaque for most rays, and they are done.
    const M cut = open_to_light(met, h.instance, h.face);
    if (!N::any(cut)) return met;
    const F length = N::sqrt(W::maximum(path.dot(path), N::c(1e-12f)));
    const V3 along = path * (N::c(1.0f) / length);
    M shut = met & N::invert(cut), going = cut;
    F begun = N::c(0.0f);
    PRAGMA_NOUNROLL
    for (int layer = 0; layer < HOLES_MAX && N::any(going); ++layer) {
      Found hit;
      hit.range = N::c(0.0f);
      hit.local = V3::c(0.0f, 0.0f, 0.0f);
      trace(from + along * begun, V3::c(0.0f, 0.0f, 0.0f), along, N::c(0.0f), going, length - begun, hit);
      const M struck = going & (hit.instance >= 0);
      going = N::never();
      if (!N::any(struck)) break;
      if (flags & USE_GLASS) {
        Fetched fetched;
        const Surface s = Surfaces::at(batch, appearance, env, along * N::c(-1.0f), N::c(0.0f), hit, fetched, true);
        F ior;
        const F passing = Glass::passing(appearance, struck, fetched, ior);
        going = struck & (passing > 0.0f);
        V3 through = V3::all(N::c(1.0f) - Glass::mirrored(s.normal.dot(along), ior));
        if (flags & USE_WATER) {
          const Water water = Water::of(appearance, struck, s);
          if (N::any(water.volume)) through = V3::select(water.volume, water.towards_light(s, along, hit.range), through);
        }
        left = V3::select(going, left * s.albedo * through * passing, left);
        begun = N::select(going, begun + hit.range * 1.000002f + 2e-4f, begun);
      }
      shut = shut | (struck & N::invert(going));
    }
    return shut | going;
  }
  // Which faces are of a material with holes, where their shadows are asked for, or of glass.
  INLINE M open_to_light(M met, I instance, I face) const {
    const I base = Surfaces::materials(batch, appearance, env, met, instance, face) * MATERIAL_COLUMNS;
    M open = N::never();
    if (flags & USE_LEAF_SHADOWS) open = open | (W::gather(appearance.materials, base + 14) > 0.0f);
    if (flags & USE_GLASS) open = open | (W::gather(appearance.materials, base + 15) > 0.0f);
    return met & open;
  }
  // Snow on what faces the sky and is not sheltered.
  SHADING_MEMBER void snow(const float* row, M there, const Fetched& fetched, F travelled, Surface& s) const {
    F share = Snow::share(row, appearance, there, fetched, s);
    const M asked = share > 0.0f;
    if (!N::any(asked)) return;
    V3 unused;
    const V3 from = s.point + s.geometric * (travelled * 2e-5f + 1e-3f);
    share = N::select(dark(from, Snow::lean(row, s.point), asked, unused), N::c(0.0f), share);
    s.thin = s.thin * (N::c(1.0f) - share);
    Snow::lay(row, share, s);
  }
  // Light that comes back along a ray. `mirror` becomes the direction in which the surface mirrors, `share` how much of that light
  // is to be added when it is traced (0: nothing).
  // `scattered`: the ray comes from a rough mirror, whose lamps and suns have been taken already.
  // `under`: what is under water, and how that dims and echoes its light.
  SHADING_MEMBER V3 radiance(const V3& direction, F spread, const Found& hit, F travelled, Surface& s, V3& mirror, V3& share,
                             bool reflect, const U* key, bool scattered, const Under* under) const {
    const V3 towards = direction * N::c(-1.0f);
    const M there = hit.instance >= 0;
    const bool specular = flags & USE_SPECULAR;
    V3 out = V3::c(0.0f, 0.0f, 0.0f);
    // Looking up a table takes time, and a packet that meets something everywhere needs none.
    if (sky[9] == 0.0f || !W::all(there)) out = Sky::radiance(sky, direction, time());
    if ((flags & USE_SUN_DISC) && !scattered) out = out + discs(direction);
    share = V3::c(0.0f, 0.0f, 0.0f);
    mirror = direction;
    if (!N::any(there)) return out;
    Fetched fetched;
    s = Surfaces::at(batch, appearance, env, towards, spread, hit, fetched, true);
    s.thin = N::c(0.0f);
    if (sky[11] > 0.0f) {
      const float* row = sky + (int)sky[11] * SKY_COLUMNS;
      Wet::on(row, appearance, there, fetched, s);
      if (flags & USE_LEAVES) Leaves::on(appearance, there, s);
      if (row[26] > 0.0f) snow(row, there, fetched, travelled, s);
    } else if (flags & USE_LEAVES) {
      Leaves::on(appearance, there, s);
    }
    // Of light that enters a leaf, what it sends back, and what it lets through.
    const M leaf = s.thin > 0.0f;
    const bool leaves = (flags & USE_LEAVES) && N::any(leaf);
    M bounds = N::never();
    V3 deep = V3::c(0.0f, 0.0f, 0.0f);
    if (flags & USE_GLASS) {
      s.passing = Glass::passing(appearance, there, fetched, s.ior);
      s.body = deep;
      if (flags & USE_WATER) {
        const Water water = Water::of(appearance, there, s);
        bounds = water.volume;
        if (N::any(bounds)) {
          const F cosine = W::maximum(N::abs(s.geometric.dot(towards)), N::c(0.06f));
          Water::waves(appearance, bounds, time(), hit.range * spread / N::sqrt(cosine), towards, s);
          deep = V3::select(water.front, Water::scattered(appearance, bounds, s), deep);
        }
      }
      // A pane has no light of its own: whoever looks through it follows the ray.
      if (W::all(N::invert(there) | (s.passing > 0.0f)) && !N::any(bounds)) return V3::select(there, s.emission, out);
    }
    Reflectance r = Lighting::reflectance(s, towards, specular);
    if (scattered && (flags & SPREAD_GLOSS)) {
      // A highlight in a rough mirror is as wide as what the mirror spreads: one ray in many would bring it as a speck.
      const F wide = W::minimum(spread * MIRRORED_WIDTH, N::c(1.0f));
      r.a2 = W::maximum(r.a2, wide * wide);
    }
    V3 through = V3::c(0.0f, 0.0f, 0.0f);
    if (leaves) {
      through = V3::select(leaf, s.passed * (specular ? s.thin * (N::c(1.0f) - s.metallic) : s.thin), through);
      r.diffuse = r.diffuse * (N::c(1.0f) - s.thin);
    }
    if (N::any(bounds)) {
      const F normal = (s.ior - 1.0f) / (s.ior + 1.0f);
      r.f0 = V3::select(bounds, V3::all(normal * normal), r.f0);
      r.diffuse = V3::select(bounds, V3::c(0.0f, 0.0f, 0.0f), r.diffuse);
    }
    V3 light = s.emission, glint = V3::c(0.0f, 0.0f, 0.0f);
    F sun = N::c(1.0f);
    // Light from all sides.
    V3 around = Sky::irradiance(sky, s.normal);
    const bool has_volume = (flags & USE_BAKED) && volume[10] > 0.0f;
    if (has_volume) {
      const V3 lifted = s.point + s.geometric * N::c(volume[11]);
      around = baked.volume(volume, lifted, s.normal, sun);
      baked.map(batch, env, hit, fetched, around, sun);
    } else if (under) {
      around = V3::select(under->sunk, around * under->dimmed, around);
      // What a pale floor sends up, the surface sends down again, and so on.
      const V3 one = V3::c(1.0f, 1.0f, 1.0f), rest = one - r.diffuse * under->echoed;
      const V3 louder = {r.diffuse.x / rest.x, r.diffuse.y / rest.y, r.diffuse.z / rest.z};
      r.diffuse = V3::select(under->sunk, louder, r.diffuse);
    }
    if (N::any(bounds)) s.body = deep * around * N::c(0.318309886f);
    const V3 arriving = around * (s.occlusion * 0.318309886f);
    V3 let_through = V3::c(0.0f, 0.0f, 0.0f);
    if (leaves) {
      const V3 other = s.normal * N::c(-1.0f);
      V3 behind = Sky::irradiance(sky, other);
      F unseen = N::c(0.0f);
      if (has_volume) behind = baked.volume(volume, s.point - s.geometric * N::c(volume[11]), other, unseen);
      let_through = through * behind * (s.occlusion * 0.318309886f);
    }
    mirror = direction + s.normal * (s.normal.dot(towards) * 2.0f);
    mirror = (mirror + s.geometric * W::maximum(N::c(0.01f) - mirror.dot(s.geometric), N::c(0.0f))).unit();
    if (specular) {
      const V3 gloss = Lighting::mirrored(r, s.roughness);
      V3 above = has_volume ? arriving : Sky::radiance(sky, mirror);
      // Rough mirrors show no cloud.
      const M clear = s.roughness < 0.4f;
      if (!has_volume && sky[11] > 0.0f && N::any(there & clear)) {
        F passed;
        above = V3::select(clear, Clouds::over(sky + (int)sky[11] * SKY_COLUMNS, mirror, above, time(), passed), above);
      }
      V3 reflected = has_volume ? arriving : V3::mix(above, Sky::irradiance(sky, mirror) * N::c(0.318309886f), s.roughness) * s.occlusion;
      if (has_volume && N::any(s.roughness < 0.5f)) {
        F ignored = N::c(0.0f);
        const V3 at_mirror = baked.volume(volume, s.point + s.geometric * N::c(volume[11]), mirror, ignored);
        reflected = V3::mix(at_mirror * (s.occlusion * 0.318309886f), reflected, s.roughness);
      }
      F traced = N::c(0.0f);
      if (reflect) {
        const float limit = settings[SET_MIRROR];
        traced = W::clamp((N::c(limit) - s.roughness) * (2.0f / limit), 0.0f, 1.0f);
        if (flags & USE_GLOSS) traced = W::clamp((N::c(GLOSS_ROUGHNESS) - s.roughness) * 16.0f, 0.0f, 1.0f);
        traced = N::select(there, traced, N::c(0.0f));
        share = gloss * traced;
      }
      light = light + (V3::c(1.0f, 1.0f, 1.0f) - gloss) * r.diffuse * arriving + gloss * reflected * (N::c(1.0f) - traced);
      if (leaves) let_through = (V3::c(1.0f, 1.0f, 1.0f) - gloss) * let_through;
    } else {
      light = light + r.diffuse * arriving;
    }
    if (leaves) light = light + let_through;
    const M near = travelled < settings[SET_SHADOW];
    const F size = W::maximum(W::maximum(N::abs(s.point.x), N::abs(s.point.y)), N::abs(s.point.z));
    const V3 start = s.point + s.geometric * (size * 4e-6f + travelled * 2e-5f + 2e-4f);
    PRAGMA_NOUNROLL
    for (int k = 0; k < light_count; ++k) {
      const float* lamp = lights + LIGHT_COLUMNS * (light_first + k);
      const bool is_sun = (int)lamp[0] == LIGHT_SUN;
      const float wide = (flags & USE_SOFT) ? (is_sun ? settings[SET_SUN_TANGENT] : lamp[13]) : 0.0f;
      const int tries = wide > 0.0f && !scattered ? (int)settings[SET_LIGHT_RAYS] : 1;
      PRAGMA_NOUNROLL
      for (int one = 0; one < tries; ++one) {
        V3 l, path;
        const V3 given = Lighting::arriving(lamp, s.point, l, path);
        // Of many lamps in a hall few reach a place.
        if (!N::any(there & (given.x + given.y + given.z > 0.0f))) break;
        if (wide > 0.0f) {
          F u, v;
          even(key, 1 + k + (scattered ? 512 : 0), (int)settings[SET_SAMPLE] * tries + one, u, v);
          Lighting::aside(is_sun, wide, u, v, l, path);
        }
        const F nl = s.normal.dot(l);
        const F strength = given.x + given.y + given.z;
        const M front = (nl > 0.0f) & (s.geometric.dot(l) > 0.0f);
        M lit = there & front & (strength > 0.0f);
        if (leaves) lit = there & (front | leaf) & (strength > 0.0f);
        if (!N::any(lit)) continue;
        V3 from = start;
        if (leaves) from = V3::select(leaf & (s.geometric.dot(l) < 0.0f), s.point + s.point - start, start);
        F clear = N::c(1.0f);
        V3 left = V3::c(1.0f, 1.0f, 1.0f);
        if (flags & USE_SHADOWS) {
          const M asked = lit & near;
          if (N::any(asked)) lit = lit & N::invert(dark(from, path - (from - s.point), asked, left));
          // Beyond the shadows' distance, what was baked of the sun.
          if (has_volume && is_sun) clear = N::select(near, clear, sun);
        }
        V3 sent = r.sent(s, towards, l, W::maximum(nl, N::c(0.0f)), specular);
        if (leaves) {
          // From behind, or between the two normals, where there is no gloss.
          const V3 side = V3::select(s.geometric.dot(l) > 0.0f, r.diffuse, through);
          const V3 entered = specular ? V3::c(1.0f, 1.0f, 1.0f) - r.f0 : V3::c(1.0f, 1.0f, 1.0f);
          sent = V3::select(leaf & N::invert(front), side * entered * (N::abs(nl) * 0.318309886f), sent);
        }
        V3 added = given * sent * clear;
        if (flags & USE_GLASS) added = added * left;
        if (tries > 1) added = added * N::c(1.0f / (float)tries);
        added = V3::select(lit, added, V3::c(0.0f, 0.0f, 0.0f));
        light = light + added;
        if (N::any(bounds)) {
          glint = glint + added;
          const V3 spread_out = given * deep * left * (W::maximum(nl, N::c(0.0f)) * clear * (0.318309886f / (float)tries));
          s.body = s.body + V3::select(lit & bounds, spread_out, V3::c(0.0f, 0.0f, 0.0f));
        }
      }
    }
    if (flags & USE_GLASS) {
      light = V3::select(s.passing > 0.0f, V3::select(bounds, s.emission + glint, s.emission), light);
      share = V3::select(s.passing > 0.0f, V3::c(0.0f, 0.0f, 0.0f), share);
    }
    return V3::select(there, light, out);
  }
  // Haze before what is `there` at a distance, else before the sky: in shade that was baked, as dark as that is.
  SHADING_MEMBER V3 misty(const V3& from, const V3& direction, M there, F range, const V3& light, F& passed) const {
    V3 around = V3::c(1.0f, 1.0f, 1.0f);
    F sun = N::c(1.0f);
    if ((flags & USE_BAKED) && volume[10] > 0.0f) {
      // The mean over six sides, of probes and of the open sky: that of a diagonal and of its other end.
      const V3 one = V3::c(0.577350269f, 0.577350269f, 0.577350269f), other = V3::c(-0.577350269f, -0.577350269f, -0.577350269f);
      const V3 open = Sky::irradiance(sky, one) + Sky::irradiance(sky, other);
      const F length = N::select(there, W::minimum(range, N::c(SHADE_FAR)), N::c(SHADE_FAR));
      V3 sum = V3::c(0.0f, 0.0f, 0.0f);
      sun = N::c(0.0f);
      PRAGMA_NOUNROLL
      for (int k = 0; k < SHADE_STEPS; ++k) {
        const V3 at = from + direction * (length * (((float)k + 0.5f) * (1.0f / SHADE_STEPS)));
        F seen;
        sum = sum + baked.volume(volume, at, one, seen) + baked.volume(volume, at, other, seen);
        sun = sun + seen * (1.0f / SHADE_STEPS);
      }
      const V3 mean = sum * N::c(1.0f / SHADE_STEPS);
      around = {W::minimum(mean.x / W::maximum(open.x, N::c(1e-9f)), N::c(1.0f)), W::minimum(mean.y / W::maximum(open.y, N::c(1e-9f)), N::c(1.0f)),
                W::minimum(mean.z / W::maximum(open.z, N::c(1e-9f)), N::c(1.0f))};
    }
    return Mist::seen(sky + (int)sky[10] * SKY_COLUMNS, from.z, direction, there, range, light, passed, around, sun);
  }
  // What comes along rays from a place: the next surface, and haze before it; `s` and `hit` become that surface.
  // `water`: whose surface lanes `sunk` go through.
  SHADING_MEMBER V3 along(const V3& from, const V3& direction, F spread, F travelled, M wanted, Found& hit, Surface& s, const U* key,
                          const Water* water, M sunk, const V3& up) const {
    trace(from, V3::c(0.0f, 0.0f, 0.0f), direction, spread, wanted, N::c(settings[SET_FAR]), hit);
    V3 mirror, share;
    const F way = travelled + N::select(hit.instance >= 0, hit.range, N::c(0.0f));
    Under under;
    under.sunk = sunk;
    if (water) {
      // Light from all sides comes down at 33 degrees from upright on average.
      const V3 down = Water::kept(water->attenuation, hit.range * N::abs(direction.dot(up)) * WATER_SLANT);
      under.dimmed = down * (N::c(1.0f) - Water::outer(water->ior));
      under.echoed = down * down * Water::inner(water->ior);
    }
    const V3 light = radiance(direction, spread, hit, way, s, mirror, share, false, key, true, water ? &under : nullptr);
    if (sky[10] == 0.0f) return light;
    F passed = N::c(1.0f);
    return misty(from, direction, hit.instance >= 0, hit.range, light, passed);
  }
  // What comes along a ray into a mirror, haze before it included.
  SHADING_MEMBER V3 mirrored(const V3& from, const V3& direction, F spread, F travelled, M wanted, const U* key) const {
    Found hit;
    hit.instance = hit.face = W::i(-1);
    hit.range = hit.b1 = hit.b2 = N::c(0.0f);
    hit.local = V3::c(0.0f, 0.0f, 0.0f);
    Surface s;
    return along(from, direction, spread, travelled, wanted, hit, s, key, nullptr, N::never(), direction);
  }
  // Add rays of some lanes, and trace what is gathered as often as it is full.
  SHADING_MEMBER void gather(const MirrorLight& light, MirrorRays& rays, M some, const V3& from, const V3& next, const V3& part, F spread,
                             F travelled, I pixel, const U* key) const {
    for (int k = 0; k < LANES; ++k) {
      if (!W::at(some, k)) continue;
      const int n = rays.count++;
      W::set(rays.from.x, n, W::get(from.x, k));
      W::set(rays.from.y, n, W::get(from.y, k));
      W::set(rays.from.z, n, W::get(from.z, k));
      W::set(rays.next.x, n, W::get(next.x, k));
      W::set(rays.next.y, n, W::get(next.y, k));
      W::set(rays.next.z, n, W::get(next.z, k));
      W::set(rays.part.x, n, W::get(part.x, k));
      W::set(rays.part.y, n, W::get(part.y, k));
      W::set(rays.part.z, n, W::get(part.z, k));
      W::set(rays.spread, n, W::get(spread, k));
      W::set(rays.travelled, n, W::get(travelled, k));
      W::set(rays.pixel, n, W::get(pixel, k));
      for (int i = 0; i < 5; ++i) W::set(rays.key[i], n, W::get(N::signed_of(key[i]), k));
      if (rays.count == LANES) send(light, rays);
    }
  }
  // Trace what is gathered.
  SHADING_MEMBER void send(const MirrorLight& light, MirrorRays& rays) const {
    M some = N::never();
    for (int k = 0; k < rays.count; ++k) W::set_m(some, k, true);
    if (!N::any(some)) return;
    U key[5];
    for (int i = 0; i < 5; ++i) key[i] = W::unsigned_of(rays.key[i]);
    const V3 seen = mirrored(rays.from, rays.next, rays.spread, rays.travelled, some, key) * rays.part;
    for (int k = 0; k < rays.count; ++k) {
      float* row = light.rows + (long long)GLOSS_COLUMNS * W::get(rays.pixel, k);
      row[0] += W::get(seen.x, k);
      row[1] += W::get(seen.y, k);
      row[2] += W::get(seen.z, k);
    }
    rays.count = 0;
  }
  // Light of panes and of water that rays have met: what they mirror (traced with gloss, else of the sky or what was baked), and
  // what is behind; of water, also what it sends back itself, the more of it the deeper.
  // `shared`: of the first sheet, lanes whose mirror is known or looked into later; where to, and how much of it is seen, is set.
  SHADING_MEMBER V3 panes(const V3& along_eye, F spread, F travelled, M glass, Surface s, Found hit, const U* key, SharedMirror& shared) const {
    const V3 nothing = V3::c(0.0f, 0.0f, 0.0f);
    V3 color = nothing, left = V3::c(1.0f, 1.0f, 1.0f), direction = along_eye;
    PRAGMA_NOUNROLL
    for (int sheet = 0; sheet < 4 && N::any(glass); ++sheet) {
      const F facing = s.normal.dot(direction);
      F mirrored = Glass::mirrored(facing, s.ior), passing = s.passing * (N::c(1.0f) - mirrored);
      const V3 away = s.geometric * (travelled * 2e-5f + 1e-3f), up = s.geometric;
      V3 bent = direction - s.normal * (facing * 2.0f), onward = direction;
      Water water;
      water.volume = water.front = N::never();
      if (flags & USE_WATER) {
        water = Water::of(appearance, glass, s);
        mirrored = N::select(water.volume, Water::mirrored(facing, water.eta), mirrored);
        bent = V3::select(water.volume, Water::reflected(direction, s.normal, s.geometric), bent);
        onward = V3::select(water.volume, Water::bent(direction, s.normal, s.geometric, water.eta), onward);
        // Light that enters what is denser is gathered into a narrower cone.
        passing = s.passing * (N::c(1.0f) - mirrored) * N::select(water.volume, N::c(1.0f) / (water.eta * water.eta), N::c(1.0f));
      }
      const bool wet = N::any(water.volume);
      V3 seen;
      M now = glass;
      if (sheet == 0) {
        now = glass & N::invert(shared.known | shared.later);
        shared.from = s.point + away;
        shared.next = bent;
        shared.share = V3::select(glass, left * mirrored, shared.share);
      }
      if (flags & USE_GLOSS) {
        seen = nothing;
        Found other = hit;
        Surface unused = s;
        if (N::any(now)) seen = along(s.point + away, bent, spread * 2.0f, travelled, now, other, unused, key, nullptr, N::never(), up);
        if (sheet == 0) seen = V3::select(now, seen, V3::select(shared.known, shared.light, nothing));
        if (wet) {
          const F way = N::select(other.instance >= 0, other.range, N::c(settings[SET_FAR]));
          seen = V3::select(water.volume & N::invert(water.front), seen * Water::kept(water.attenuation, way), seen);
        }
      } else if ((flags & USE_BAKED) && volume[10] > 0.0f) {
        F ignored;
        seen = baked.volume(volume, s.point + s.geometric * N::c(volume[11]), bent, ignored) * N::c(0.318309886f);
      } else {
        seen = Sky::radiance(sky, bent, time());
      }
      color = color + V3::select(glass, left * seen * mirrored, nothing);
      const V3 body = left * s.body * ((N::c(1.0f) - mirrored) * Water::shown(s.ior));
      left = left * s.albedo * passing;
      seen = along(s.point - away, onward, spread, travelled, glass, hit, s, key, wet ? &water : nullptr, water.front, up);
      if (wet) {
        const V3 one = V3::c(1.0f, 1.0f, 1.0f);
        const V3 kept = Water::kept(water.attenuation, N::select(hit.instance >= 0, hit.range, N::c(settings[SET_FAR])));
        color = color + V3::select(water.front, body * (one - kept * kept), nothing);
        left = V3::select(water.front, left * kept, left);
      }
      // Where that is another pane, it gives nothing, and is looked through next.
      color = color + V3::select(glass, left * seen, nothing);
      glass = glass & (hit.instance >= 0) & (s.passing > 0.0f);
      direction = onward;
      travelled = travelled + N::select(hit.instance >= 0, hit.range, N::c(0.0f));
    }
    return color;
  }
  // Which mirrors show an image by one ray of their mean facet: smooth ones, where light is spread and no other ray is to come.
  static INLINE M sharp(int flags, int rays, F roughness) {
    return (flags & SPREAD_GLOSS) && rays == 1 ? roughness < GLOSS_SHARP : N::never();
  }
  // Two numbers in [0, 1) that are even over the square from one `number` to the next (the plastic number's sequence), shifted by
  // random numbers of the pixel: the same in every image.
  static INLINE void even(const U* key, int which, int number, F& u, F& v) {
    U x[4] = {N::u((unsigned int)which), N::u(SHADE_STREAM), N::u(0u), N::u(0u)};
    Threefry::block(key, x);
    const float a = (float)(((unsigned int)number * 3242174889u) >> 8) * 5.9604644775390625e-8f;
    const float b = (float)(((unsigned int)number * 2447445414u) >> 8) * 5.9604644775390625e-8f;
    u = Threefry::uniform(x[0]) + a;
    v = Threefry::uniform(x[1]) + b;
    u = u - N::floor(u);
    v = v - N::floor(v);
  }
  // The sun as a disc, not brighter than SUN_RADIANCE.
  INLINE V3 discs(const V3& direction) const {
    V3 out = V3::c(0.0f, 0.0f, 0.0f);
    // Under a moon its light is the only sun, and the sky has its disc.
    const bool moon = sky[11] > 0.0f && sky[(int)sky[11] * SKY_COLUMNS + 25] > 0.0f && sky[(int)sky[11] * SKY_COLUMNS + 10] < 0.0f;
    for (int k = 0; k < light_count; ++k) {
      const float* lamp = lights + LIGHT_COLUMNS * (light_first + k);
      if ((int)lamp[0] != LIGHT_SUN || moon) continue;
      const V3 travel = V3::c(lamp[4], lamp[5], lamp[6]);
      const M inside = -direction.dot(travel) > SUN_COSINE;
      const float peak = lamp[7] > lamp[8] ? (lamp[7] > lamp[9] ? lamp[7] : lamp[9]) : (lamp[8] > lamp[9] ? lamp[8] : lamp[9]);
      const float gain = peak > 0.0f ? SUN_RADIANCE / peak : 0.0f;
      V3 disc = V3::c(lamp[7] * gain, lamp[8] * gain, lamp[9] * gain);
      if (sky[11] > 0.0f && N::any(inside)) {
        F passed;
        Clouds::over(sky + (int)sky[11] * SKY_COLUMNS, direction, disc, time(), passed);
        disc = disc * passed;
      }
      out = out + V3::select(inside, disc, V3::c(0.0f, 0.0f, 0.0f));
    }
    return out;
  }
};
Batch batch = BATCH_OF_ARGUMENTS;
const Appearance appearance = {materials.data, material_maps.data, shape_appearance.data, appearance_vertices.data, appearance_faces.data,
                     {textures.data, texels.data}};
const Baked baked = {volumes.data, probes.data, map_slots.data, light_maps.data, map_nodes.data,
                     (int)map_slots.shape[0]};
// Rays are all of a table, or, of many cameras, chosen ones: numbers that count camera by camera through all places of packets; of one
// task they are one camera's. Numbers below 0 fill up.
const bool by_choice = flags & USE_CHOSEN;
#if LANES == 1
const int foremost = by_choice ? chosen.data[task] : task;
const int camera = foremost < 0 ? 0 : foremost / (packets * 16), first_packet = by_choice ? task : task % (packets * 16);
const int last_packet = foremost < 0 ? first_packet : first_packet + 1;
#else
const int chunks = (packets + PACKETS_PER_TASK - 1) / PACKETS_PER_TASK, number = task_order.data[task];
const int foremost = by_choice ? chosen.data[number * PACKETS_PER_TASK * 16] : 0;
const int camera = by_choice ? (foremost < 0 ? 0 : foremost / (packets * 16)) : number / chunks;
const int first_packet = by_choice ? number * PACKETS_PER_TASK : number % chunks * PACKETS_PER_TASK;
const int most = by_choice ? (foremost < 0 ? first_packet : first_packet + PACKETS_PER_TASK) : packets;
const int last_packet = first_packet + PACKETS_PER_TASK < most ? first_packet + PACKETS_PER_TASK : most;
#endif
const float* camera_row = cameras.data + (long long)camera * ((flags & USE_COLUMNS) ? width : 1) * CAMERA_STRIDE;
const int env = (int)W::as_int(camera_row[10]), ignored = (int)W::as_int(camera_row[11]), scene = env_scene.data[env];
// A rolling image has one eye for levels of detail: that of its first column.
for (int k = 0; k < 3; ++k) batch.eye[k] = camera_row[k];
batch.pixel = settings.data[SET_PIXEL];
const long long base = (long long)camera * pixel_count;
const Shader shader = {batch, appearance, baked, lights.data, skies.data + SKY_COLUMNS * scene, volumes.data + VOLUME_COLUMNS * scene,
                       settings.data, env_lights.data[2 * env], env_lights.data[2 * env + 1], env, flags, W::i(ignored)};
const MirrorLight mirror_light = {glossed.data + base * GLOSS_COLUMNS, width, pixel_count / width};
MirrorRays mirror_rays;
mirror_rays.from = mirror_rays.next = mirror_rays.part = V3::c(0.0f, 0.0f, 1.0f);
mirror_rays.spread = mirror_rays.travelled = N::c(0.0f);
mirror_rays.pixel = mirror_rays.key[0] = mirror_rays.key[1] = mirror_rays.key[2] = mirror_rays.key[3] = mirror_rays.key[4] = W::i(0);
mirror_rays.count = 0;
PRAGMA_NOUNROLL
for (int packet = first_packet; packet < last_packet; ++packet) {
  const int place = LANES == 1 ? packet / 16 : packet, lane0 = LANES == 1 ? packet % 16 : 0;
  const float* ray = rays.data + (by_choice ? 0 : (long long)place * RAY_ROWS * 16 + lane0);
  I pixel = W::i(-1), slot = W::i(0), beside = W::i(0);
  F spread;
  V3 direction, rest = V3::c(camera_row[3], camera_row[4], camera_row[5]), beginning = V3::c(0.0f, 0.0f, 0.0f);
  M present = W::always();
  if (by_choice) {
    slot = L::load_i(chosen.data + (long long)packet * LANES) - camera * packets * 16;
    present = slot >= 0;
    slot = W::pick(present, slot, W::i(0));
    beside = (slot >> 4) * (RAY_ROWS * 16) + (slot & 15);
    spread = W::gather(spreads.data, slot);
    direction = {W::gather(rays.data, beside), W::gather(rays.data, beside + 16), W::gather(rays.data, beside + 32)};
    if (flags & USE_OWN_ORIGINS)
      beginning = {W::gather(rays.data, beside + 64), W::gather(rays.data, beside + 80), W::gather(rays.data, beside + 96)};
  } else {
    spread = N::load(spreads.data + (long long)place * 16 + lane0);
    direction = {N::load(ray), N::load(ray + 16), N::load(ray + 32)};
    if (flags & USE_OWN_ORIGINS) beginning = {N::load(ray + 64), N::load(ray + 80), N::load(ray + 96)};
  }
  V3 origin = V3::c(camera_row[0], camera_row[1], camera_row[2]);
  F q[4];
  for (int i = 0; i < 4; ++i) q[i] = N::c(camera_row[6 + i]);
  pixel = by_choice ? W::pick(present, W::gather(pixels.data, slot), W::i(-1)) : L::load_i(pixels.data + (long long)place * 16 + lane0);
  for (int k = 0; k < LANES && (flags & USE_COLUMNS); ++k) {
    const int p = W::get(pixel, k);
    const float* pose = camera_row + (p < 0 ? 0 : p % width) * CAMERA_STRIDE;
    W::set(origin.x, k, pose[0]);
    W::set(origin.y, k, pose[1]);
    W::set(origin.z, k, pose[2]);
    W::set(rest.x, k, pose[3]);
    W::set(rest.y, k, pose[4]);
    W::set(rest.z, k, pose[5]);
    for (int i = 0; i < 4; ++i) W::set(q[i], k, pose[6 + i]);
  }
  const M valid = pixel >= 0;
  if (!N::any(valid)) continue;
  // As airworthy.geometry casts, operation by operation: rays traced here and there are the same to the bit.
  const F qx = q[0], qy = q[1], qz = q[2], qw = q[3];
  const F rotation[9] = {1.0f - 2.0f * (qy * qy + qz * qz), 2.0f * (qx * qy - qz * qw), 2.0f * (qx * qz + qy * qw),
                         2.0f * (qx * qy + qz * qw), 1.0f - 2.0f * (qx * qx + qz * qz), 2.0f * (qy * qz - qx * qw),
                         2.0f * (qx * qz - qy * qw), 2.0f * (qy * qz + qx * qw), 1.0f - 2.0f * (qx * qx + qy * qy)};
  direction = Surfaces::turned(rotation, direction);
  if (flags & USE_OWN_ORIGINS) rest = rest + Surfaces::turned(rotation, beginning);
  Found hit;
  hit.instance = hit.face = W::i(-1);
  hit.range = hit.b1 = hit.b2 = N::c(0.0f);
  hit.local = V3::c(0.0f, 0.0f, 0.0f);
  if (flags & USE_HITS) {
    for (int k = 0; k < LANES; ++k) {
      if (!W::at(valid, k)) continue;
      const long long at = base + W::get(pixel, k);
      W::set(hit.range, k, hit_range.data[at]);
      W::set(hit.instance, k, hit_instance.data[at]);
      W::set(hit.face, k, hit_face.data[at]);
      W::set(hit.b1, k, hit_barycentric.data[2 * at]);
      W::set(hit.b2, k, hit_barycentric.data[2 * at + 1]);
    }
    hit.range = N::select(hit.instance >= 0, hit.range, N::c(0.0f));
    shader.place(origin + rest + direction * hit.range, hit);
  } else {
    shader.trace(origin, rest, direction, spread, valid, N::c(settings.data[SET_FAR]), hit);
  }
  // What is random depends on the pixel alone: an image is the same in any batch, and does not flicker from one to the next.
  U key[5] = {N::u(0u), N::u(0u), W::unsigned_of(pixel), N::u(0u), N::u(0u)};
  if (flags & (USE_SOFT | USE_GLOSS)) Threefry::expand(key);
  V3 color = V3::c(0.0f, 0.0f, 0.0f), gain = V3::c(1.0f, 1.0f, 1.0f), mirror = direction, share = color;
  Surface first;
  first.albedo = first.normal = first.geometric = first.point = color;
  first.backface = first.cutoff = first.passing = first.thin = N::c(0.0f);
  first.passed = color;
  first.material = W::i(0);
  first.body = color;
  first.ior = N::c(1.5f);
  first.roughness = N::c(1.0f);
  const Found first_hit = hit;
  F travelled = hit.range, spread_now = spread, height = origin.z + rest.z;
  V3 air = origin + rest;
  SharedMirror shared;
  shared.known = shared.traced = shared.later = N::never();
  shared.light = shared.share = shared.from = shared.next = color;
  M active = valid, gloss = N::never(), panes = gloss;
  const int bounces = (flags & (USE_REFLECTIONS | USE_GLOSS)) && (flags & USE_SPECULAR) ? 2 : 1;
  if (flags & (OUT_RGB | OUT_ALBEDO | OUT_NORMAL)) {
    PRAGMA_NOUNROLL
    for (int bounce = 0; bounce < bounces; ++bounce) {
      Surface s = first;
      V3 light = shader.radiance(direction, spread_now, hit, travelled, s, mirror, share, bounce + 1 < bounces, key, false, nullptr);
      if (flags & USE_GLASS) {
        const M glass = active & (hit.instance >= 0) & (s.passing > 0.0f);
        if (N::any(glass)) {
          if ((flags & SPREAD_GLOSS) && bounce == 0) {
            const Water water = Water::of(appearance, glass, s);
            // Waves turn what they mirror from one pixel to the next.
            const M even = glass & N::invert(water.volume);
            if (by_choice) {
              shared.known = mirror_light.known(even, pixel, hit.instance, s.material, shared.light);
            } else {
              shared.later = panes = even;
              shared.traced = even & mirror_light.fourth(pixel);
            }
          }
          light = light + V3::select(glass, shader.panes(direction, spread_now, travelled, glass, s, hit, key, shared), V3::c(0.0f, 0.0f, 0.0f));
        }
        if ((flags & USE_WATER) && N::any(glass)) {
          // An eye under water, or a place that is lit there: who meets the surface from below has come through water.
          const Water water = Water::of(appearance, glass, s);
          light = V3::select(water.volume & N::invert(water.front), light * Water::kept(water.attenuation, hit.range), light);
        }
      }
      F passed = N::c(1.0f);
      if (shader.sky[10] > 0.0f) {
        light = shader.misty(V3{air.x, air.y, height}, direction, hit.instance >= 0, hit.range, light, passed);
        share = share * passed;
        shared.share = shared.share * passed;
      }
      color = color + V3::select(active, light * gain, V3::c(0.0f, 0.0f, 0.0f));
      if (bounce == 0) first = s;
      if (bounce + 1 == bounces) break;
      active = active & ((share.x + share.y + share.z) > 0.003f);
      const V3 from = s.point + s.geometric * (travelled * 2e-5f + 1e-3f);
      if (flags & USE_GLOSS) {
        V3 mirrored = V3::c(0.0f, 0.0f, 0.0f);
        M asked = active;
        if ((flags & SPREAD_GLOSS) && !by_choice) {
          gloss = active & mirror_light.fourth(pixel);
          shared.traced = shared.traced | gloss;
          shared.later = shared.later | active;
          shared.share = V3::select(active, share, shared.share);
          break;
        }
        if (flags & SPREAD_GLOSS) {
          V3 seen = mirrored;
          const M known = mirror_light.known(active, pixel, hit.instance, s.material, seen);
          mirrored = V3::select(known, share * seen, mirrored);
          asked = active & N::invert(known);
        }
        if (N::any(asked)) {
          const V3 towards = direction * N::c(-1.0f);
          const Reflectance r = Lighting::reflectance(s, towards, true);
          const F traced = W::clamp((N::c(GLOSS_ROUGHNESS) - s.roughness) * 16.0f, 0.0f, 1.0f) * passed;
          const int rays = (int)settings.data[SET_GLOSS_RAYS];
          PRAGMA_NOUNROLL
          for (int one = 0; one < rays; ++one) {
            F u, v;
            Shader::even(key, 0, (int)settings.data[SET_SAMPLE] * rays + one, u, v);
            V3 part;
            const V3 next = Lighting::glossy(albedos.data, s, towards, r, u, v, Shader::sharp(flags, rays, s.roughness), part);
            const M goes = asked & (part.x > 0.0f);
            if (!N::any(goes)) continue;
            // What a rough mirror shows is blurred anyway: textures as wide as its facets spread.
            const V3 seen = shader.mirrored(from, next, spread * 2.0f + r.k * 0.5f, travelled, goes, key);
            mirrored = mirrored + V3::select(goes, seen * part * (traced * (1.0f / (float)rays)), V3::c(0.0f, 0.0f, 0.0f));
          }
        }
        color = color + mirrored;
        break;
      }
      if (!N::any(active)) break;
      gain = share;
      direction = mirror;
      height = from.z;
      air = from;
      shader.trace(from, V3::c(0.0f, 0.0f, 0.0f), direction, spread, active, N::c(settings.data[SET_FAR]), hit);
      travelled = travelled + N::select(hit.instance >= 0, hit.range, N::c(0.0f));
      spread_now = spread * 2.0f;
    }
  }
  if ((flags & SPREAD_GLOSS) && !by_choice) {
    mirror_light.keep(valid, pixel, shared, first_hit.instance, first.material, (first.roughness < GLOSS_SHARP) | panes);
    const M glass = shared.traced & N::invert(gloss);
    if (N::any(glass))
      shader.gather(mirror_light, mirror_rays, glass, shared.from, shared.next, V3::c(1.0f, 1.0f, 1.0f), spread * 2.0f, first_hit.range, pixel, key);
    if (N::any(gloss)) {
      const V3 from = first.point + first.geometric * (first_hit.range * 2e-5f + 1e-3f), towards = direction * N::c(-1.0f);
      const Reflectance r = Lighting::reflectance(first, towards, true);
      const V3 whole = Lighting::mirrored(r, first.roughness);
      const int rays = (int)settings.data[SET_GLOSS_RAYS];
      PRAGMA_NOUNROLL
      for (int one = 0; one < rays; ++one) {
        F u, v;
        Shader::even(key, 0, (int)settings.data[SET_SAMPLE] * rays + one, u, v);
        V3 part;
        const V3 next = Lighting::glossy(albedos.data, first, towards, r, u, v, Shader::sharp(flags, rays, first.roughness), part);
        // Of light from all sides the surface mirrors `whole`; a row has the light alone.
        part = V3{part.x / W::maximum(whole.x, N::c(1e-6f)), part.y / W::maximum(whole.y, N::c(1e-6f)), part.z / W::maximum(whole.z, N::c(1e-6f))} * N::c(1.0f / (float)rays);
        shader.gather(mirror_light, mirror_rays, gloss & (part.x > 0.0f), from, next, part, spread * 2.0f + r.k * 0.5f, first_hit.range, pixel, key);
      }
    }
    if (packet + 1 == last_packet) shader.send(mirror_light, mirror_rays);
  }
  // Who looks out of water is inside of nothing.
  if (flags & USE_WATER)
    first.backface = N::select(Water::of(appearance, first_hit.instance >= 0, first).volume, N::c(0.0f), first.backface);
  const M met = first_hit.instance >= 0;
  const V3 nothing = V3::c(0.0f, 0.0f, 0.0f);
  int here[LANES], places[LANES];
  float colors[3][LANES];
  W::spill_m(here, valid);
  W::spill(places, pixel);
  if (by_choice || (flags & OUT_RGB)) color.spill(colors);
  for (int k = 0; k < LANES && (by_choice || (flags & OUT_RGB)); ++k) {
    if (!here[k]) continue;
    float* out = out_rgb.data + 3 * (base + places[k]);
    for (int i = 0; i < 3; ++i) {
      // By choice it is one more sample of a mean.
      const float value = colors[i][k];
      out[i] = by_choice ? out[i] + (value - out[i]) * settings.data[SET_SHARE] : value;
    }
  }
  if (flags & (OUT_ALBEDO | OUT_NORMAL)) {
    float albedo[3][LANES], normal[3][LANES];
    V3::select(met, first.albedo, nothing).spill(albedo);
    V3::select(met, first.normal, nothing).spill(normal);
    for (int k = 0; k < LANES; ++k) {
      if (!here[k]) continue;
      const long long at = 3 * (base + places[k]);
      for (int i = 0; i < 3 && (flags & OUT_ALBEDO); ++i) out_albedo.data[at + i] = albedo[i][k];
      for (int i = 0; i < 3 && (flags & OUT_NORMAL); ++i) out_normal.data[at + i] = normal[i][k];
    }
  }
  if (flags & OUT_HITS) {
    int instance[LANES], face[LANES];
    float range[LANES], weights[2][LANES], back[LANES];
    W::spill(instance, first_hit.instance);
    W::spill(face, first_hit.face);
    W::spill(range, N::select(met, first_hit.range, N::c(-1.0f)));
    W::spill(weights[0], first_hit.b1);
    W::spill(weights[1], first_hit.b2);
    // Sheets of leaves are no outside of anything.
    W::spill(back, N::select(met & (first.cutoff <= 0.0f) & (first.thin <= 0.0f), first.backface, N::c(0.0f)));
    for (int k = 0; k < LANES; ++k) {
      if (!here[k]) continue;
      const long long at = base + places[k];
      out_range.data[at] = range[k];
      out_instance.data[at] = instance[k];
      out_face.data[at] = face[k];
      for (int i = 0; i < 2; ++i) out_barycentric.data[2 * at + i] = weights[i][k];
      out_back.data[at] = back[k];
    }
  }
}
