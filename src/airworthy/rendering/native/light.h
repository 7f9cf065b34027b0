// Light on a surface: the sky, baked light, lamps and the sun with shadow rays, and how the surface sends it on.
// Needs surface.h and traverse.h (RayCast). Columns: airworthy.scenes.lights and airworthy.rendering.baking. Twin: shading_twin.
// The sky by daylight: a table (airworthy.scenes.sky.tables, and its twin): a head, then grids by elevation and by azimuth from the sun.
struct Daylight {
  // s / (s + c) of half the angle that has this cosine.
  static INLINE F half(F cosine) {
    const F s = N::sqrt(W::clamp(0.5f - cosine * 0.5f, 0.0f, 1.0f)), c = N::sqrt(W::clamp(0.5f + cosine * 0.5f, 0.0f, 1.0f));
    return s / (s + c);
  }
  static INLINE F from_sun(const float* t, const V3& d) {
    return half((d.x * t[0] + d.y * t[1]) / N::sqrt(W::maximum(d.x * d.x + d.y * d.y, N::c(1e-12f))));
  }
  // k numbers at fractions of the rows and columns of a grid; clamped, so that no lane looks beside it, whatever its direction.
  static INLINE void mixed(const float* grid, int rows, int columns, int k, F across, F along, F* out) {
    const F x = W::clamp(across, 0.0f, 1.0f) * (float)(rows - 1), y = W::clamp(along, 0.0f, 1.0f) * (float)(columns - 1);
    const F i = W::minimum(N::floor(x), N::c((float)(rows - 2))), j = W::minimum(N::floor(y), N::c((float)(columns - 2)));
    const I at = (W::to_int(i) * columns + W::to_int(j)) * k;
    const F a = x - i, b = y - j;
    for (int n = 0; n < k; ++n)
      out[n] = W::mix(W::mix(W::gather(grid, at + n), W::gather(grid, at + (k + n)), b),
                      W::mix(W::gather(grid, at + (columns * k + n)), W::gather(grid, at + (columns * k + k + n)), b), a);
  }
  SHADING_FUNCTION V3 radiance(const float* t, const V3& d) {
    const F z = W::clamp(d.z, 0.0f, 1.0f);
    F v[6];
    mixed(t + 16, (int)t[10], (int)t[11], 6, N::sqrt(z / (N::sqrt(1.0f - z) + 1.0f)), from_sun(t, d), v);
    const F c = d.x * t[2] + d.y * t[3] + d.z * t[4], q = W::maximum(c * (-2.0f * t[8]) + (1.0f + t[8] * t[8]), N::c(1e-4f));
    const F phase = (c * c + 1.0f) / (q * N::sqrt(q));
    const V3 up = V3{v[0], v[1], v[2]} + V3{v[3], v[4], v[5]} * phase;
    return V3::mix(up, V3::c(t[5], t[6], t[7]), W::clamp(d.z * -t[9], 0.0f, 1.0f));
  }
  SHADING_FUNCTION V3 irradiance(const float* t, const V3& n) {
    F v[3];
    mixed(t + 16 + 6 * (int)t[10] * (int)t[11], (int)t[12], (int)t[13], 3, half(n.z), from_sun(t, n), v);
    return {v[0], v[1], v[2]};
  }
};
// Haze along rays (airworthy.scenes.sky.haze, and its twin).
struct Mist {
  static INLINE F falling(F x) {  // exp(-x), -80 <= x <= 80, to 3e-6
    const F y = x * -1.44269504f, whole = N::floor(y + 0.5f), r = (y - whole) * 0.693147181f;
    const F m = 1.0f + r * (1.0f + r * (0.5f + r * (0.166666667f + r * (0.0416666667f + r * 0.00833333333f))));
    return m * N::from_bits(W::unsigned_of((W::to_int(whole) + 127) << 23));
  }
  // Light that comes along rays which begin at a height, from what is `there` at a distance, else from the sky; `passed` becomes
  // the share of it that is left. `around`, `sun`: shares of the light from all sides and of the sun that reach the haze on its way.
  SHADING_FUNCTION V3 seen(const float* row, F height, const V3& d, M there, F range, const V3& light, F& passed, const V3& around, F sun) {
    const F length = N::select(there, W::minimum(range, N::c(row[13])), N::c(row[13])), climb = d.z * length;
    const F low = (W::minimum(height, height + climb) - row[2]) * row[1], fall = N::abs(climb) * row[1];
    const F little = 1.0f - fall * (0.5f - fall * (0.166666667f - fall * 0.0416666667f));
    const F mean = N::select(fall > 0.1f, (1.0f - falling(W::clamp(fall, 0.0f, 80.0f))) / W::maximum(fall, N::c(0.1f)), little);
    passed = falling(W::clamp(falling(W::clamp(low, -80.0f, 80.0f)) * length * mean * row[0], 0.0f, 80.0f));
    const float g = row[12];
    const F c = d.x * row[6] + d.y * row[7] + d.z * row[8], q = W::maximum(c * (-2.0f * g) + (1.0f + g * g), N::c(1e-4f));
    const F phase = N::c((1.0f - g * g) * 0.0795774715f) / (q * N::sqrt(q));
    const V3 added = V3::c(row[3], row[4], row[5]) * around + V3::c(row[9], row[10], row[11]) * sun * phase;
    return V3::mix(added, light, passed);
  }
};
// A row of skies: a gradient, or how many rows on its table of daylight begins [9]; its haze [10]; and its clouds [11].
struct Sky {
  static INLINE const float* table(const float* sky) { return sky + (int)sky[9] * SKY_COLUMNS; }
  static INLINE V3 load(const float* p) { return V3::c(p[0], p[1], p[2]); }
  // With its clouds, as they stand at a time.
  static INLINE V3 radiance(const float* sky, const V3& d, float time) {
    const V3 clear = radiance(sky, d);
    if (sky[11] == 0.0f) return clear;
    F passed;
    return Clouds::over(sky + (int)sky[11] * SKY_COLUMNS, d, clear, time, passed);
  }
  static INLINE V3 radiance(const float* sky, const V3& d) {
    if (sky[9] > 0.0f) return Daylight::radiance(table(sky), d);
    const V3 zenith = load(sky), horizon = load(sky + 3), ground = load(sky + 6);
    const V3 up = V3::mix(horizon, zenith, N::sqrt(W::maximum(d.z, N::c(0.0f))));
    const V3 down = V3::mix(horizon, ground, W::clamp(d.z * (-1.0f / HAZE), 0.0f, 1.0f));
    return V3::select(d.z >= 0.0f, up, down);
  }
  static INLINE V3 irradiance(const float* sky, const V3& n) {
    // Of daylight the first three are stray light, from all sides alike.
    if (sky[9] > 0.0f) return Daylight::irradiance(table(sky), n) + load(sky);
    const F x = W::clamp(n.z * 0.5f + 0.5f, 0.0f, 1.0f) * (float)(SKY_STEPS - 1);
    const F low = W::minimum(N::floor(x), N::c((float)(SKY_STEPS - 2)));
    const I at = W::to_int(low) * 3 + 12;
    V3 out;
    const F t = x - low;
    out.x = W::mix(W::gather(sky, at), W::gather(sky, at + 3), t);
    out.y = W::mix(W::gather(sky, at + 1), W::gather(sky, at + 4), t);
    out.z = W::mix(W::gather(sky, at + 2), W::gather(sky, at + 5), t);
    return out;
  }
};
struct Baked {
  const float* volumes;         // (scene, VOLUME_COLUMNS)
  const unsigned int* probes;   // (probe, PROBE_SIZE)
  const int* slots;             // (static slot,): row of `maps`, or -1
  const int* maps;              // (map, 4): first node, nodes along x, y, z
  const unsigned int* nodes;    // (node, 2): light, visibility of the sun
  int slot_count;
  static INLINE V3 light(U packed) {
    const F scale = N::from_bits(((packed >> 27u) + N::u(95u)) << 23u);  // 2^(exponent - 32)
    return V3{N::from_int(N::signed_of(packed & N::u(511u))), N::from_int(N::signed_of((packed >> 9u) & N::u(511u))),
              N::from_int(N::signed_of((packed >> 18u) & N::u(511u)))} * scale;
  }
  // Irradiance of a surface at a point by its normal, from the scene's volume; `sun` becomes the share of the sun that is seen.
  INLINE V3 volume(const float* v, const V3& point, const V3& n, F& sun) const {
    F t[3];
    I low[3];
    const F p[3] = {point.x, point.y, point.z};
    int count[3];
    for (int k = 0; k < 3; ++k) {
      count[k] = (int)v[6 + k];
      const F x = W::clamp((p[k] - v[k]) * v[3 + k], 0.0f, (float)(count[k] - 1));
      const F whole = W::minimum(N::floor(x), N::c((float)(count[k] - 2)));
      t[k] = x - whole;
      low[k] = W::to_int(whole);
    }
    const int first = (int)v[9];
    const I sx = W::pick(n.x < 0.0f, W::i(0), W::i(1)), sy = W::pick(n.y < 0.0f, W::i(2), W::i(3));
    const I sz = W::pick(n.z < 0.0f, W::i(4), W::i(5));
    const F wx = n.x * n.x, wy = n.y * n.y, wz = n.z * n.z;
    V3 sum = V3::c(0.0f, 0.0f, 0.0f);
    F total = N::c(1e-6f), sun_share = N::c(0.0f);
    PRAGMA_NOUNROLL
    for (int corner = 0; corner < 8; ++corner) {
      const int dx = corner & 1, dy = (corner >> 1) & 1, dz = corner >> 2;
      const I at = (((low[0] + dx) * count[1] + low[1] + dy) * count[2] + low[2] + dz + first) * PROBE_SIZE;
      const U about = W::gather(probes, at + 6);
      const F valid = N::from_int(N::signed_of(about & N::u(255u))) * (1.0f / 255.0f);
      F w = (dx ? t[0] : 1.0f - t[0]) * (dy ? t[1] : 1.0f - t[1]) * (dz ? t[2] : 1.0f - t[2]);
      w = w * (valid + 1e-4f);
      const V3 cube = light(W::gather(probes, at + sx)) * wx + light(W::gather(probes, at + sy)) * wy +
                      light(W::gather(probes, at + sz)) * wz;
      sum = sum + cube * w;
      sun_share = sun_share + N::from_int(N::signed_of((about >> 8u) & N::u(255u))) * (1.0f / 255.0f) * w;
      total = total + w;
    }
    const F inverse = N::c(1.0f) / total;
    sun = sun_share * inverse;
    return sum * inverse;
  }
  // Light maps of boxes: nodes on a grid over each face, bilinear. Lanes without one keep `out` and `sun`.
  INLINE void map(const Batch& batch, int env, const Found& hit, const Fetched& o, V3& out, F& sun) const {
    I row = W::i(-1);
    for (int k = 0; k < LANES; ++k) {
      const int slot = W::get(o.static_slot, k);
      const bool known = W::get(hit.instance, k) >= 0 && slot >= 0 && slot < slot_count;
      if (known && W::get(o.kind, k) == KIND_BOX) W::set(row, k, slots[slot]);
    }
    const M there = row >= 0;
    if (!N::any(there)) return;
    F visible[4], tu = N::c(0.0f), tv = N::c(0.0f);
    I first = W::i(0), stride = W::i(1);
    for (int k = 0; k < LANES; ++k) {
      if (W::get(row, k) < 0) continue;
      const int* m = maps + 4 * W::get(row, k);
      const float* half = batch.shapes[batch.instance(env, W::get(hit.instance, k))->shape].size;
      const int face = W::get(hit.face, k), axis = face >> 1, b = axis == 0 ? 1 : 0, c = axis == 2 ? 1 : 2;
      const float p[3] = {W::get(hit.local.x, k), W::get(hit.local.y, k), W::get(hit.local.z, k)};
      const int nb = m[1 + b], nc = m[1 + c];
      int start = m[0];
      if (axis > 0) start += 2 * m[2] * m[3];
      if (axis > 1) start += 2 * m[1] * m[3];
      start += (face & 1) * nb * nc;
      float x = (p[b] / half[b] * 0.5f + 0.5f) * (float)(nb - 1), y = (p[c] / half[c] * 0.5f + 0.5f) * (float)(nc - 1);
      x = x < 0.0f ? 0.0f : (x > (float)(nb - 1) ? (float)(nb - 1) : x);
      y = y < 0.0f ? 0.0f : (y > (float)(nc - 1) ? (float)(nc - 1) : y);
      int i = (int)x, j = (int)y;
      i = i > nb - 2 ? nb - 2 : i;
      j = j > nc - 2 ? nc - 2 : j;
      W::set(first, k, start + i * nc + j);
      W::set(stride, k, nc);
      W::set(tu, k, x - (float)i);
      W::set(tv, k, y - (float)j);
    }
    const I at[4] = {first, first + 1, first + stride, first + stride + 1};
    V3 value[4];
    for (int k = 0; k < 4; ++k) {
      const I safe = W::pick(there, at[k], W::i(0)) * 2;
      value[k] = light(W::gather(nodes, safe));
      visible[k] = N::from_int(N::signed_of(W::gather(nodes, safe + 1))) * (1.0f / 255.0f);
    }
    const V3 mean = V3::mix(V3::mix(value[0], value[1], tv), V3::mix(value[2], value[3], tv), tu);
    out = V3::select(there, mean, out);
    sun = N::select(there, W::mix(W::mix(visible[0], visible[1], tv), W::mix(visible[2], visible[3], tv), tu), sun);
  }
};
struct Turn {
  // Cosine and sine of 2 pi u - pi / 4, to 1e-7.
  static INLINE void of(F u, F& c, F& s) {
    const F x = u * 4.0f, quarter = N::floor(x), r = (x - quarter - 0.5f) * 1.57079633f, z = r * r;
    const F sine = r + r * z * (-0.166666667f + z * (8.33333333e-3f + z * -1.98412698e-4f));
    const F cosine = N::c(1.0f) + z * (-0.5f + z * (4.16666667e-2f + z * (-1.38888889e-3f + z * 2.48015873e-5f)));
    const M odd = (quarter == 1.0f) | (quarter == 3.0f);
    c = N::select(odd, sine, cosine);
    s = N::select(odd, cosine, sine);
    c = N::select((quarter == 1.0f) | (quarter == 2.0f), -c, c);
    s = N::select(quarter >= 2.0f, -s, s);
  }
};
// Facets of GGX that are seen, evenly (Dupuy and Benyoub, Sampling visible GGX normals with spherical caps, 2023), in the frame of the
// normal; x, y, z: to the eye; a: width; c, s: of an angle around.
struct Facets {
  // Directional albedo of the gloss where its Fresnel term is 1, as two parts: times f0, and alone.
  static INLINE void albedo(const float* table, F nv, F roughness, F& scale, F& bias) {
    const F x = W::clamp(N::sqrt(nv), 0.0f, 1.0f) * (float)(ALBEDO_STEPS - 1), y = W::clamp(roughness, 0.0f, 1.0f) * (float)(ALBEDO_STEPS - 1);
    const F lx = W::minimum(N::floor(x), N::c((float)(ALBEDO_STEPS - 2))), ly = W::minimum(N::floor(y), N::c((float)(ALBEDO_STEPS - 2)));
    const I at = (W::to_int(ly) * ALBEDO_STEPS + W::to_int(lx)) * 2;
    const F tx = x - lx, ty = y - ly;
    const F a = W::mix(W::gather(table, at), W::gather(table, at + 2), tx), b = W::mix(W::gather(table, at + 2 * ALBEDO_STEPS), W::gather(table, at + 2 * ALBEDO_STEPS + 2), tx);
    const F c = W::mix(W::gather(table, at + 1), W::gather(table, at + 3), tx), d = W::mix(W::gather(table, at + 2 * ALBEDO_STEPS + 1), W::gather(table, at + 2 * ALBEDO_STEPS + 3), tx);
    scale = W::mix(a, b, ty);
    bias = W::mix(c, d, ty);
  }
  static INLINE V3 visible(F x, F y, F z, F a, F c, F s, F u) {
    const V3 stretched = V3{x * a, y * a, z}.unit();
    const F up = (N::c(1.0f) - u) * (N::c(1.0f) + stretched.z) - stretched.z;
    const F ring = N::sqrt(W::clamp(N::c(1.0f) - up * up, 0.0f, 1.0f));
    const V3 cap = {ring * c + stretched.x, ring * s + stretched.y, up + stretched.z};
    return V3{cap.x * a, cap.y * a, W::maximum(cap.z, N::c(1e-7f))}.unit();
  }
};
// Thin sheets of glass: Fresnel's equations, both polarisations, and what goes to and fro between the two sides.
struct Glass {
  static INLINE F mirrored(F cosine, F ior) {
    const F c = W::clamp(N::abs(cosine), 0.0f, 1.0f), t = N::sqrt(N::c(1.0f) - (N::c(1.0f) - c * c) / (ior * ior));
    const F s = (c - ior * t) / (c + ior * t), p = (ior * c - t) / (ior * c + t), r = (s * s + p * p) * 0.5f;
    return r * 2.0f / (N::c(1.0f) + r);
  }
  // Of hits: share of what is not mirrored that passes (0: no glass), and the index of refraction.
  static INLINE F passing(const Appearance& appearance, M there, const Fetched& fetched, F& ior) {
    const I base = W::pick(there, fetched.material, W::i(0)) * MATERIAL_COLUMNS;
    ior = W::gather(appearance.materials, base + 16);
    return N::select(there, W::gather(appearance.materials, base + 15), N::c(0.0f));
  }
};
// Sheets that scatter light to both sides, as leaves do: Lambert's on each. Which side light comes from the shape's normal says; how
// slantwise, the cosine to the shading normal without its sign: over each half of the sphere its integral is pi whatever the angle
// between the two normals, so that no light is lost or made.
struct Leaves {
  static INLINE void on(const Appearance& appearance, M there, Surface& s) {
    const I base = W::pick(there, s.material, W::i(0)) * MATERIAL_COLUMNS;
    s.thin = N::select(there, W::gather(appearance.materials, base + 24), N::c(0.0f));
    const V3 tint = {W::gather(appearance.materials, base + 25), W::gather(appearance.materials, base + 26), W::gather(appearance.materials, base + 27)};
    const V3 all = s.albedo * tint;
    s.passed = {W::minimum(all.x, N::c(1.0f)), W::minimum(all.y, N::c(1.0f)), W::minimum(all.z, N::c(1.0f))};
  }
};
struct Reflectance {
  V3 diffuse, f0;   // albedo of what enters the surface; mirror reflectance at normal incidence
  F a2, k, nv;      // GGX width squared, Smith's constant, cosine to the eye
  // Light per irradiance that is sent to the eye, times the cosine to the light.
  INLINE V3 sent(const Surface& s, const V3& towards, const V3& l, F nl, bool specular) const {
    if (!specular) return diffuse * (nl * 0.318309886f);
    const V3 h = (towards + l).unit();
    const F nh = W::clamp(s.normal.dot(h), 0.0f, 1.0f), vh = W::clamp(towards.dot(h), 0.0f, 1.0f);
    const F d = nh * nh * (a2 - 1.0f) + 1.0f;
    const F distribution = a2 * 0.318309886f / W::maximum(d * d, N::c(1e-9f));
    // Smith, correlated in height (Heitz 2014), with Hammon's approximation of the roots (GDC 2017).
    const F smith = N::c(0.5f) / W::maximum(W::mix(nl * nv * 2.0f, nl + nv, N::sqrt(a2)), N::c(1e-4f));
    const F c = N::c(1.0f) - vh, c2 = c * c, c5 = c2 * c2 * c;
    const V3 fresnel = f0 + (V3::c(1.0f, 1.0f, 1.0f) - f0) * c5;
    const V3 gloss = fresnel * W::minimum(distribution * smith, N::c(64.0f));
    return ((V3::c(1.0f, 1.0f, 1.0f) - fresnel) * diffuse * N::c(0.318309886f) + gloss) * nl;
  }
};
struct Lighting {
  static INLINE Reflectance reflectance(const Surface& s, const V3& towards, bool specular) {
    Reflectance r;
    r.diffuse = specular ? s.albedo * (N::c(1.0f) - s.metallic) : s.albedo;
    r.f0 = V3::mix(V3::c(0.04f, 0.04f, 0.04f), s.albedo, s.metallic);
    const F a = s.roughness * s.roughness;
    r.a2 = W::maximum(a * a, N::c(1e-5f));
    r.nv = W::maximum(s.normal.dot(towards), N::c(1e-3f));
    r.k = a * 0.5f;
    return r;
  }
  // How much of uniform light the surface mirrors (Karis, Physically based shading on mobile, 2014), made up for the light that
  // bounces several times between facets, so that a white metal reflects everything.
  static INLINE V3 mirrored(const Reflectance& r, F roughness) {
    const F x = N::c(1.0f) - roughness, y = roughness * -0.0275f + 0.0425f;
    const F z = roughness * -0.572f + 1.04f, w = roughness * 0.022f - 0.04f;
    const F a004 = W::minimum(x * x, W::exp2(r.nv * -9.28f)) * x + y;
    const F scale = a004 * -1.04f + z, bias = a004 * 1.04f + w;
    const V3 single = r.f0 * scale + V3::all(bias);
    const F lost = N::c(1.0f) / W::maximum(scale + bias, N::c(0.05f)) - 1.0f;
    const V3 full = single * (V3::c(1.0f, 1.0f, 1.0f) + r.f0 * lost);
    return {W::clamp(full.x, 0.0f, 1.0f), W::clamp(full.y, 0.0f, 1.0f), W::clamp(full.z, 0.0f, 1.0f)};
  }
  // A direction that a rough mirror sends to the eye, and `share`, what of its light; both parts of Smith's, correlated in height
  // (Heitz 2014), and what bounces between facets as still images have it (Turquin 2019); 0: below the surface.
  // `sharp`: lanes whose surface is smooth enough for an image, which one ray shows by its mean facet, and no ray by chance.
  static INLINE V3 glossy(const float* table, const Surface& s, const V3& towards, const Reflectance& r, F u, F v, M sharp, V3& share) {
    F c, sine, scale, bias;
    Turn::of(u, c, sine);
    V3 side, other;
    Surfaces::basis(s.normal, side, other);
    const V3 any = Facets::visible(side.dot(towards), other.dot(towards), r.nv, N::sqrt(r.a2), c, sine, v);
    const V3 facet = V3::select(sharp, V3::c(0.0f, 0.0f, 1.0f), any);
    const V3 m = side * facet.x + other * facet.y + s.normal * facet.z;
    const F vh = W::clamp(towards.dot(m), 0.0f, 1.0f);
    const V3 l = (m * (vh * 2.0f) - towards).unit();
    const F nl = W::maximum(s.normal.dot(l), N::c(1e-6f)), own = N::sqrt(r.a2 + (N::c(1.0f) - r.a2) * r.nv * r.nv);
    const F far = N::sqrt(r.a2 + (N::c(1.0f) - r.a2) * nl * nl);
    const F seen = nl * (r.nv + own) / W::maximum(nl * own + r.nv * far, N::c(1e-9f));
    const F d = N::c(1.0f) - vh, d2 = d * d, d5 = d2 * d2 * d;
    Facets::albedo(table, r.nv, N::sqrt(N::sqrt(r.a2)), scale, bias);
    const V3 one = V3::c(1.0f, 1.0f, 1.0f);
    share = (r.f0 + (one - r.f0) * d5) * (one + r.f0 * (N::c(1.0f) / W::maximum(scale + bias, N::c(0.05f)) - 1.0f)) * seen;
    share = V3::select((s.normal.dot(l) > 0.0f) & (s.geometric.dot(l) > 0.0f), share, V3::c(0.0f, 0.0f, 0.0f));
    return l;
  }
  // Which of the segments from the surface to the light are blocked.
  SHADING_FUNCTION M blocked(const Batch& batch, int env, const V3& from, const V3& direction, M wanted, I ignore) {
    RayCast::Rays r = {{from.x, from.y, from.z}, {N::c(0.0f), N::c(0.0f), N::c(0.0f)}, {direction.x, direction.y, direction.z}};
    Hits h = {N::c(1.0f), W::i(-1), W::i(-1), N::c(0.0f), N::c(0.0f)};
    RayCast::cast(batch, env, r, wanted, ignore, true, h);
    return h.instance >= 0;
  }
  // Moves a light to a place of the sun's disc (`wide`: tangent of its half angle), or of the lamp's, which faces the surface.
  static INLINE void aside(bool is_sun, float wide, F u, F v, V3& l, V3& path) {
    F c, s;
    Turn::of(u, c, s);
    V3 a, b;
    Surfaces::basis(l, a, b);
    const F reach = N::sqrt(v) * wide;
    const V3 off = a * (reach * c) + b * (reach * s);
    if (is_sun) {
      l = (l + off).unit();
      path = l * N::c(SUN_FAR);
    } else {
      path = path + off;
      l = path.unit();
    }
  }
  // Light of one lamp. Arriving: irradiance on a surface that faces it; l: direction to it; offset: from the surface to it.
  static INLINE V3 arriving(const float* lamp, const V3& point, V3& l, V3& offset) {
    const int kind = (int)lamp[0];
    const V3 color = V3::c(lamp[7], lamp[8], lamp[9]), travel = V3::c(lamp[4], lamp[5], lamp[6]);
    if (kind == LIGHT_SUN) {
      l = travel * N::c(-1.0f);
      offset = l * N::c(SUN_FAR);
      return color;
    }
    offset = V3::c(lamp[1], lamp[2], lamp[3]) - point;
    const F square = W::maximum(offset.dot(offset), N::c(1e-4f)), distance = N::sqrt(square);
    l = offset * (N::c(1.0f) / distance);
    F strength = N::c(1.0f) / square;
    if (lamp[10] > 0.0f) {
      const F x = square * (1.0f / (lamp[10] * lamp[10])), window = W::clamp(N::c(1.0f) - x * x, 0.0f, 1.0f);
      strength = strength * window * window;
    }
    if (kind == LIGHT_SPOT) {
      const F x = W::clamp((-l.dot(travel) - lamp[12]) * (1.0f / (lamp[11] - lamp[12])), 0.0f, 1.0f);
      strength = strength * x * x * (N::c(3.0f) - x * 2.0f);
    }
    return color * strength;
  }
};
