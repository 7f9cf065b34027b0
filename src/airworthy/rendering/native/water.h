// Volumes that begin behind a surface: water, solid glass. Light is bent at the surface, and loses with every metre behind it.
// Needs light.h (Glass, Mist, Turn). Columns: airworthy.scenes.appearance. Twin: airworthy.rendering.water.
struct Water {
  M volume, front;   // lanes whose surface bounds one; and those that see it from outside
  V3 attenuation;    // [1/m]
  F ior, eta;        // eta: index of what lies beyond over that of where the ray runs
  static INLINE V3 three(const Appearance& appearance, I base, int column) {
    return {W::gather(appearance.materials, base + column), W::gather(appearance.materials, base + (column + 1)),
            W::gather(appearance.materials, base + (column + 2))};
  }
  static INLINE I base(M there, const Surface& s) { return W::pick(there, s.material, W::i(0)) * MATERIAL_COLUMNS; }
  static INLINE Water of(const Appearance& appearance, M there, const Surface& s) {
    const I at = base(there, s);
    Water o;
    o.attenuation = three(appearance, at, 17);
    o.ior = W::gather(appearance.materials, at + 16);
    o.volume = there & (W::gather(appearance.materials, at + 15) > 0.0f) & ((o.attenuation.x + o.attenuation.y + o.attenuation.z) > 0.0f);
    o.front = o.volume & (s.backface == 0.0f);
    o.eta = N::select(o.front, o.ior, N::c(1.0f) / o.ior);
    return o;
  }
  static INLINE V3 scattered(const Appearance& appearance, M there, const Surface& s) { return three(appearance, base(there, s), 20); }
  // Fresnel's equations, both polarisations, at one surface; all of it beyond the critical angle.
  static INLINE F mirrored(F cosine, F eta) {
    const F c = W::clamp(N::abs(cosine), 0.0f, 1.0f), square = N::c(1.0f) - (N::c(1.0f) - c * c) / (eta * eta);
    const F t = N::sqrt(W::maximum(square, N::c(0.0f)));
    const F s = (c - eta * t) / (c + eta * t), p = (eta * c - t) / (eta * c + t);
    return N::select(square > 0.0f, (s * s + p * p) * 0.5f, N::c(1.0f));
  }
  // Snell's law; `n` towards where the ray comes from. It never leads back over the shape's own side.
  static INLINE V3 bent(const V3& d, const V3& n, const V3& geometric, F eta) {
    const F c = -n.dot(d), t = N::sqrt(W::maximum(N::c(1.0f) - (N::c(1.0f) - c * c) / (eta * eta), N::c(0.0f)));
    const F inverse = N::c(1.0f) / eta;
    const V3 out = d * inverse + n * (c * inverse - t);
    return (out - geometric * W::maximum(out.dot(geometric) + 0.01f, N::c(0.0f))).unit();
  }
  static INLINE V3 reflected(const V3& d, const V3& n, const V3& geometric) {
    const V3 out = d - n * (n.dot(d) * 2.0f);
    return (out + geometric * W::maximum(N::c(0.01f) - out.dot(geometric), N::c(0.0f))).unit();
  }
  // What is left of light after a way (Beer and Lambert).
  static INLINE V3 kept(const V3& attenuation, F range) {
    return {Mist::falling(W::clamp(attenuation.x * range, 0.0f, 80.0f)), Mist::falling(W::clamp(attenuation.y * range, 0.0f, 80.0f)),
            Mist::falling(W::clamp(attenuation.z * range, 0.0f, 80.0f))};
  }
  // What a straight shadow ray keeps at such a surface. On level ground under level water the light is what bent rays bring: as much
  // enters, over the way that they take.
  INLINE V3 towards_light(const Surface& s, const V3& direction, F range) const {
    const F c = N::abs(s.geometric.dot(direction)), t = N::sqrt(N::c(1.0f) - (N::c(1.0f) - c * c) / (ior * ior));
    const V3 below = kept(attenuation, range * c / t);
    return V3::select(front, V3::c(1.0f, 1.0f, 1.0f), below) * (N::c(1.0f) - mirrored(c, ior));
  }
  // Share of light from all sides below that the surface sends down again (Egan and Hilgeman's fit, 1979).
  static INLINE F inner(F ior) { return -1.4399f / (ior * ior) + 0.7099f / ior + 0.6681f + 0.0636f * ior; }
  // And from above: what passes inwards per what passes outwards is the square of the index.
  static INLINE F outer(F ior) { return N::c(1.0f) - ior * ior * (N::c(1.0f) - inner(ior)); }
  // Over what is seen straight from above of the light that a volume sends back.
  static INLINE F shown(F ior) {
    const F r = (ior - 1.0f) / (ior + 1.0f);
    return N::c(1.0f) / (N::c(1.0f) - r * r);
  }
  // Turns normals of level surfaces as wind waves do, and makes their highlights as wide as the waves that a pixel cannot show.
  // `wide`: metres that a pixel covers.
  SHADING_FUNCTION void waves(const Appearance& appearance, M volume, float time, F wide, const V3& towards, Surface& s) {
    const F steep = W::gather(appearance.materials, base(volume, s) + 23);
    const F up = N::select(s.backface == 0.0f, s.geometric.z, -s.geometric.z);
    const M there = volume & (steep > 0.0f) & (up > 0.5f);
    F lost = N::c(0.0f);
    if (N::any(there)) {
      const float table[WAVE_COUNT][5] = WAVE_TABLE;
      F x = N::c(0.0f), y = N::c(0.0f);
      PRAGMA_NOUNROLL
      for (int k = 0; k < WAVE_COUNT; ++k) {
        const float* wave = table[k];
        const F turn = s.point.x * wave[0] + s.point.y * wave[1] + (wave[3] - wave[2] * time);
        F c, unused;
        Turn::of(turn - N::floor(turn), c, unused);
        // Seen from two metres per wave on, whole from four.
        const F part = W::clamp((N::c(wave[4]) / W::maximum(wide, N::c(1e-6f)) - 2.0f) * 0.5f, 0.0f, 1.0f);
        const float length = wave[4];
        x = x + c * part * (wave[0] * length);
        y = y + c * part * (wave[1] * length);
        lost = lost + (1.0f - part * part);
      }
      const F gain = steep * WAVE_SLOPE;
      const V3 leaning = V3{N::c(0.0f) - x * gain, N::c(0.0f) - y * gain, N::c(1.0f)}.unit();
      const F side = N::select(s.geometric.z < 0.0f, N::c(-1.0f), N::c(1.0f));
      const V3 turned = leaning * side;
      // As any bent normal: brought back to where a surface is just seen.
      const V3 lifted = (turned + towards * W::maximum(N::c(0.02f) - turned.dot(towards), N::c(0.0f))).unit();
      s.normal = V3::select(there, lifted, s.normal);
      lost = lost * steep * steep * (1.0f / (float)WAVE_COUNT);
    }
    // GGX as wide as slopes: the square of its width is their variance.
    const F width = N::sqrt(N::select(there, lost, N::c(0.0f)) + 1e-5f);
    s.roughness = N::select(volume, N::sqrt(width), s.roughness);
  }
};
