// Stars and the moon (airworthy.scenes.sky.stars, and its twin), from the row of the clouds.
struct Night {
  // Light of dots over that of the faintest.
  static INLINE F stars(const V3& d) {
    const V3 size = {N::abs(d.x), N::abs(d.y), N::abs(d.z)};
    const M of_x = (size.x >= size.y) & (size.x >= size.z), of_y = N::invert(of_x) & (size.y >= size.z), of_z = N::invert(of_x | of_y);
    const F main = N::select(of_x, d.x, N::select(of_y, d.y, d.z)), wide = N::c(1.0f) / N::abs(main);
    const F x = (N::select(of_x, d.y, d.x) * wide * 0.5f + 0.5f) * (float)STAR_CELLS, y = (N::select(of_z, d.y, d.z) * wide * 0.5f + 0.5f) * (float)STAR_CELLS;
    const F i = W::clamp(N::floor(x), 0.0f, (float)(STAR_CELLS - 1)), j = W::clamp(N::floor(y), 0.0f, (float)(STAR_CELLS - 1));
    const I side = W::pick(of_x, W::i(0), W::pick(of_y, W::i(2), W::i(4))) + W::pick(main < 0.0f, W::i(1), W::i(0));
    U key[5] = {N::u(0u), N::u(0u), N::u(0u), N::u(0u), N::u(0u)};
    Threefry::expand(key);
    U word[4] = {W::unsigned_of(W::to_int(i) + W::to_int(j) * STAR_CELLS), N::u(STAR_STREAM), W::unsigned_of(side), N::u(0u)};
    Threefry::block(key, word);
    const F a = (x - i - 0.1f - Threefry::uniform(word[0]) * 0.8f) * (2.0f / STAR_CELLS), b = (y - j - 0.1f - Threefry::uniform(word[1]) * 0.8f) * (2.0f / STAR_CELLS);
    const F near = 1.0f - (a * a + b * b) / (wide * wide * (STAR_RADIUS * STAR_RADIUS)), root = N::sqrt(N::sqrt(Threefry::uniform(word[2])));
    return W::maximum(near, N::c(0.0f)) * 2.0f / W::maximum(root * root * root, N::c(0.01f));
  }
  SHADING_FUNCTION F radiance(const float* row, const V3& d) {
    const F thick = N::c(0.23f) / W::maximum(d.z + 0.025f, N::c(0.025f));
    const F air = N::select(d.z > 0.0f, W::exp2(W::clamp(thick, 0.0f, 80.0f) * -1.44269504f), N::c(0.0f));
    F out = N::c(0.0f);
    if (row[21] > 0.0f) out = stars(d) * row[21];
    if (row[25] > 0.0f) {
      const V3 moon = V3::c(row[22], row[23], row[24]);
      const F towards = d.dot(moon);
      const V3 aside = (d - moon * towards) * N::c(1.0f / MOON_RADIUS);
      const F square = aside.dot(aside);
      const V3 normal = aside - moon * N::sqrt(W::maximum(1.0f - square, N::c(0.0f)));
      const F lit = W::clamp(normal.dot(V3::c(row[8], row[9], row[10])) * 8.0f + 0.2f, 0.0f, 1.0f);
      out = N::select((towards > 0.0f) & (square < 1.0f), lit * row[25], out);
    }
    return out * air;
  }
};
// Clouds before a sky by daylight (airworthy.scenes.sky.clouds, and its twin): heaps on one layer, wisps on a higher one, both of
// one seamless tile of noise. Needs shading_lanes.h. A row's columns are told there.
struct Clouds {
  static INLINE F falling(F x) { return W::exp2(W::clamp(x, 0.0f, 80.0f) * -1.44269504f); }
  SHADING_FUNCTION F noise(const float* tile, F x, F y) {
    F u = (x - N::floor(x)) * (float)CLOUD_SIDE, v = (y - N::floor(y)) * (float)CLOUD_SIDE;
    const F i = W::clamp(N::floor(u), 0.0f, (float)(CLOUD_SIDE - 1)), j = W::clamp(N::floor(v), 0.0f, (float)(CLOUD_SIDE - 1));
    u = u - i, v = v - j;
    const F a = u * u * (3.0f - u * 2.0f), b = v * v * (3.0f - v * 2.0f);
    const I left = W::to_int(i), low = W::to_int(j) * CLOUD_SIDE, right = (left + 1) & (CLOUD_SIDE - 1);
    const I high = (low + CLOUD_SIDE) & (CLOUD_SIDE * CLOUD_SIDE - 1);
    return W::mix(W::mix(W::gather(tile, low + left), W::gather(tile, low + right), a),
                  W::mix(W::gather(tile, high + left), W::gather(tile, high + right), a), b);
  }
  // The way to a layer.
  static INLINE F way(F rise, float height) {
    const float over = 2.0f * height + height * (height / CLOUD_RADIUS);
    return N::c(over) / (rise + N::sqrt(rise * rise + N::c(over / CLOUD_RADIUS)));
  }
  static INLINE F forward(F cosine) {
    const F q = W::maximum(cosine * -1.5f + 1.5625f, N::c(1e-4f));
    return N::c(0.4375f) / (q * N::sqrt(q));
  }
  static INLINE V3 load(const float* p) { return V3::c(p[0], p[1], p[2]); }
  // `left`: the share of the light from behind that passes.
  static INLINE V3 wisps(const float* row, const float* tile, const V3& d, F rise, F cosine, float east, float north, F& left) {
    const F far = way(rise, row[3] + CLOUD_WISPS);
    const float scale = 0.25f / CLOUD_TILE;
    const F x = (d.x * far + east) * scale, y = (d.y * far + north) * scale;
    const F bent = noise(tile, x * 0.5f + 0.37f, y * 0.5f + 0.11f) * 0.35f;
    const F along = (x + y) * 0.45f, across = (y - x) * 1.6f + bent;
    const F level = noise(tile, along + 0.21f, across) * 0.65f + noise(tile, along * 4.0f, across * 5.0f + 0.4f) * 0.35f;
    const F thick = W::clamp((level - (0.95f - 0.85f * row[2])) * 1.6f, 0.0f, 1.0f);
    left = 1.0f - thick * thick * (3.0f - thick * 2.0f) * 0.75f * falling((far * 0.5f - 4000.0f) * row[17]);
    return load(row + 14) * N::c(0.9f) + load(row + 11) * (W::minimum(forward(cosine), N::c(6.0f)) * 0.05f + 0.16f);
  }
  static INLINE V3 heaps(const float* row, const float* tile, const V3& d, F rise, F cosine, float east, float north, F& left) {
    const float scale = 1.0f / CLOUD_TILE, edge = 1.0f - row[1] + 0.02f;
    const F far = way(rise, row[3]);
    const F east0 = (d.x * far + east) * scale, north0 = (d.y * far + north) * scale;
    const F step = N::c(CLOUD_DEPTH * scale / (float)CLOUD_STEPS) / W::maximum(rise, N::c(0.22f));
    const float reach = 0.35f * CLOUD_DEPTH * scale / (row[10] > 0.25f ? row[10] : 0.25f);
    const F near = W::clamp(1.2f - far * 1e-4f, 0.0f, 1.0f), middle = W::clamp(1.2f - far * 4e-5f, 0.2f, 1.0f) * 0.26f;
    const F fine = near * 0.14f * (noise(tile, east0 * 21.0f, north0 * 21.0f) - 0.5f);
    F through = N::c(1.0f), light = N::c(0.0f), weight = N::c(0.0f);
    PRAGMA_NOUNROLL
    for (int k = 0; k < CLOUD_STEPS; ++k) {
      const float number = (float)k + 0.5f, height = number / (float)CLOUD_STEPS;
      const F x = east0 + d.x * step * number, y = north0 + d.y * step * number;
      const F level = noise(tile, x, y) + middle * (noise(tile, x * 5.0f + 0.3f, y * 5.0f + 0.7f) - 0.5f) + fine;
      const F inside = level - (edge + CLOUD_STEEP * height * height), dense = W::clamp(inside * 8.0f, 0.0f, 1.0f);
      if (!N::any(dense > 0.0f)) continue;
      const float above = height + 0.3f;
      const F towards = noise(tile, x + row[8] * reach, y + row[9] * reach) - (edge + CLOUD_STEEP * above * above);
      const F shade = falling(W::maximum(towards, N::c(0.0f)) * 5.0f + W::maximum(inside, N::c(0.0f)) * 3.0f);
      const F taken = through * (1.0f - falling(dense * 2.2f));
      light = light + taken * shade;
      weight = weight + taken * (shade * 0.35f + (0.45f + 0.3f * height));
      through = through - taken;
    }
    const F share = N::c(1.0f) / W::maximum(1.0f - through, N::c(1e-6f));
    left = 1.0f - (1.0f - through) * falling((far - 4000.0f) * row[17]);
    const F lining = through * W::minimum(forward(cosine), N::c(8.0f)) * 0.06f;
    return load(row + 14) * (weight * share) + load(row + 11) * (light * share * 0.3f + 0.04f + lining);
  }
  // What is seen where a sky sends `light`; `passed`: the share of that which passes the clouds.
  SHADING_FUNCTION V3 over(const float* row, const V3& d, const V3& light, float time, F& passed) {
    passed = N::c(1.0f);
    const M up = d.z > 0.0f;
    if (!N::any(up)) return light;
    const float* tile = row + (int)row[0] * SKY_COLUMNS;
    const float east = row[6] + row[4] * time, north = row[7] + row[5] * time;
    const F rise = W::maximum(d.z, N::c(0.0f)), cosine = d.x * row[8] + d.y * row[9] + d.z * row[10];
    V3 out = light;
    if (row[21] > 0.0f || row[25] > 0.0f) out = out + V3::all(Night::radiance(row, d));
    F left;
    if (row[2] > 0.0f) {
      const V3 own = wisps(row, tile, d, rise, cosine, east, north, left);
      passed = N::select(up, left, passed);
      out = V3::select(up, V3::mix(own, out, left), out);
    }
    if (row[1] > 0.0f) {
      const V3 own = heaps(row, tile, d, rise, cosine, east, north, left);
      passed = N::select(up, passed * left, passed);
      out = V3::select(up, V3::mix(own, out, left), out);
    }
    return out;
  }
};
// Snow that lies (airworthy.scenes.sky.snow, and its twin), of the same row and tile.
struct Snow {
  static INLINE F noise(const float* row, const V3& p, float side, float dx, float dy) {
    const float* tile = row + (int)row[0] * SKY_COLUMNS;
    return Clouds::noise(tile, (p.x + dx) * (1.0f / side), (p.y + dy) * (1.0f / side));
  }
  // How much of a surface it hides where nothing shelters it.
  SHADING_FUNCTION F share(const float* row, const Appearance& appearance, M there, const Fetched& fetched, const Surface& s) {
    // Of glass the albedo is a tint.
    there = there & (W::gather(appearance.materials, W::pick(there, fetched.material, W::i(0)) * MATERIAL_COLUMNS + 15) == 0.0f);
    const F up = W::clamp((s.geometric.z - SNOW_STEEP) * (1.0f / (SNOW_LEVEL - SNOW_STEEP)), 0.0f, 1.0f);
    const F none = N::c(0.0f);
    if (!N::any(there & (up > 0.0f))) return none;
    const F uneven = noise(row, s.point, SNOW_BROAD, 0.0f, 0.0f) * 0.6f + noise(row, s.point, SNOW_SMALL, 0.0f, 0.0f) * 0.4f;
    const F slope = up * up * (3.0f - up * 2.0f);
    return N::select(there, W::clamp((slope * (1.6f * row[26]) - uneven * 0.6f) * 6.0f, 0.0f, 1.0f), none);
  }
  // The way to the sky by which it is asked whether something shelters a place.
  SHADING_FUNCTION V3 lean(const float* row, const V3& p) {
    const F x = noise(row, p, SNOW_SMALL, 0.0f, 0.0f) * 2.0f - 1.0f, y = noise(row, p, SNOW_BROAD, 0.0f, 0.0f) * 2.0f - 1.0f;
    return {x * (SNOW_SHELTER * SNOW_LEAN), y * (SNOW_SHELTER * SNOW_LEAN), N::c(SNOW_SHELTER)};
  }
  SHADING_FUNCTION void lay(const float* row, F share, Surface& s) {
    const F here = noise(row, s.point, SNOW_SMALL, 0.0f, 0.0f);
    const F east = (noise(row, s.point, SNOW_SMALL, SNOW_STEP, 0.0f) - here) * (SNOW_DRIFT / SNOW_STEP);
    const F north = (noise(row, s.point, SNOW_SMALL, 0.0f, SNOW_STEP) - here) * (SNOW_DRIFT / SNOW_STEP);
    const V3 drift = {s.geometric.x - east, s.geometric.y - north, s.geometric.z};
    s.normal = V3::mix(s.normal, drift.unit(), share).unit();
    s.albedo = V3::mix(s.albedo, V3::c(SNOW_RED, SNOW_GREEN, SNOW_BLUE), share);
    s.roughness = W::mix(s.roughness, N::c(SNOW_ROUGHNESS), share);
    s.metallic = s.metallic * (1.0f - share);
  }
};
// Wet surfaces and puddles (airworthy.scenes.sky.wetness, and its twin), of the same row and tile as the clouds.
struct Wet {
  SHADING_FUNCTION void on(const float* row, const Appearance& appearance, M there, const Fetched& fetched, Surface& s) {
    const float wet = row[18], puddles = row[19], rain = row[20];
    if (wet == 0.0f && puddles == 0.0f) return;
    // Of glass the albedo is a tint.
    there = there & (W::gather(appearance.materials, W::pick(there, fetched.material, W::i(0)) * MATERIAL_COLUMNS + 15) == 0.0f);
    const M leaf = s.cutoff > 0.0f;
    const F up = W::clamp((s.geometric.z + 0.2f) * (1.0f / 1.2f), 0.0f, 1.0f);
    F share = up * up * (3.0f - up * 2.0f);
    share = N::select(leaf, W::maximum(share, N::c(0.5f)), share) * wet;
    share = N::select(there, share, N::c(0.0f));
    const F dark = share * (1.0f - s.metallic);
    const V3 soaked = {soaking(s.albedo.x), soaking(s.albedo.y), soaking(s.albedo.z)};
    V3 albedo = V3::mix(s.albedo, soaked, dark);
    F roughness = W::mix(s.roughness, W::minimum(s.roughness, N::c(WET_ROUGHNESS)), share);
    V3 normal = s.normal;
    if (puddles > 0.0f) {
      const F level = N::select(there & N::invert(leaf), W::clamp((s.geometric.z - 0.97f) * 50.0f, 0.0f, 1.0f), N::c(0.0f));
      if (N::any(level > 0.0f)) {
        const float* tile = row + (int)row[0] * SKY_COLUMNS;
        const F broad = Clouds::noise(tile, s.point.x * (1.0f / PUDDLE_BROAD), s.point.y * (1.0f / PUDDLE_BROAD));
        const F small = Clouds::noise(tile, s.point.x * (1.0f / PUDDLE_SMALL), s.point.y * (1.0f / PUDDLE_SMALL));
        const F water = W::clamp((broad * 0.65f + small * 0.35f - (0.85f - 0.7f * puddles)) * 10.0f, 0.0f, 1.0f) * level;
        albedo = V3::mix(albedo, soaked * N::c(0.6f), water);
        roughness = W::mix(roughness, N::c(rain > 0.0f ? 0.12f : 0.04f), water);
        normal = V3::mix(normal, s.geometric, water).unit();
      }
    }
    s.albedo = albedo;
    s.roughness = roughness;
    s.normal = normal;
  }
  static INLINE F soaking(F a) { return a / (WET_INDEX2 - a * (WET_INDEX2 - 1.0f)); }
};
