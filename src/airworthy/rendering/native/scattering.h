// How a surface scatters light, to be sampled: Lambert under a GGX gloss, glTF's metallic-roughness. Light that bounces several
// times between facets is made up for by scaling the gloss (Turquin, Practical multiple scattering compensation for microfacet
// models, 2019), and the diffuse part gets what the gloss leaves, so a white surface sends back all that arrives.
// Needs light.h, random.h. Twin: airworthy.rendering.scattering.
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
struct Scattering {
  V3 normal, geometric, side, other, towards;  // `side`, `other`: with the normal a basis
  V3 diffuse, f0, gain;                        // gain: of the gloss, for what bounces between facets
  F a, a2, nv, masked, glossy;                 // masked: nv + root of Smith's; glossy: share of samples that the gloss gets
  static INLINE F luminance(const V3& c) { return c.x * 0.2126f + c.y * 0.7152f + c.z * 0.0722f; }
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
  static INLINE Scattering of(const Surface& s, const V3& towards, const float* table, int flags) {
    Scattering o;
    o.normal = s.normal;
    o.geometric = s.geometric;
    o.towards = towards;
    Surfaces::basis(s.normal, o.side, o.other);
    const bool specular = flags & PATH_SPECULAR;
    const F a = s.roughness * s.roughness;
    o.a2 = W::maximum(a * a, N::c(1e-5f));
    o.a = N::sqrt(o.a2);
    o.nv = W::maximum(s.normal.dot(towards), N::c(1e-3f));
    o.masked = o.nv + N::sqrt(o.a2 + (N::c(1.0f) - o.a2) * o.nv * o.nv);
    o.diffuse = specular ? s.albedo * (N::c(1.0f) - s.metallic) : s.albedo;
    o.f0 = o.gain = V3::c(0.0f, 0.0f, 0.0f);
    o.glossy = N::c(0.0f);
    if (!specular) return o;
    const float coat = flags & PATH_COAT ? 0.04f : 0.0f;
    o.f0 = V3::mix(V3::c(coat, coat, coat), s.albedo, s.metallic);
    F scale, bias;
    albedo(table, o.nv, N::sqrt(o.a), scale, bias);
    const F lost = N::c(1.0f) / W::maximum(scale + bias, N::c(0.05f)) - 1.0f;
    o.gain = V3::c(1.0f, 1.0f, 1.0f) + o.f0 * lost;
    // Without a coat a dielectric has no gloss at all, not even at grazing angles.
    if (!(flags & PATH_COAT)) o.gain = o.gain * s.metallic;
    const V3 sent = (o.f0 * scale + V3::all(bias)) * o.gain;
    const V3 gloss = {W::clamp(sent.x, 0.0f, 1.0f), W::clamp(sent.y, 0.0f, 1.0f), W::clamp(sent.z, 0.0f, 1.0f)};
    o.diffuse = o.diffuse * (V3::c(1.0f, 1.0f, 1.0f) - gloss);
    const F from_gloss = luminance(gloss), from_diffuse = luminance(o.diffuse);
    const F share = W::clamp(from_gloss / W::maximum(from_gloss + from_diffuse, N::c(1e-6f)), 0.1f, 0.9f);
    o.glossy = N::select(from_gloss > 0.0f, N::select(from_diffuse > 0.0f, share, N::c(1.0f)), N::c(0.0f));
    return o;
  }
  // Light sent towards the eye per irradiance, times the cosine to the light; `density`: of `sample` in this direction [1/sr].
  INLINE V3 sent(const V3& l, F& density) const {
    const F nl = normal.dot(l);
    const M above = (nl > 0.0f) & (geometric.dot(l) > 0.0f);
    const V3 h = (towards + l).unit(), off = normal.cross(h);
    const F nh = normal.dot(h), vh = W::clamp(towards.dot(h), 0.0f, 1.0f);
    // The sine by a cross product: one minus a squared cosine has no digits left where mirrors need them.
    const F d = off.dot(off) + a2 * nh * nh;
    const F distribution = a2 * 0.318309886f / W::maximum(d * d, N::c(1e-18f));
    const F cosine = W::maximum(nl, N::c(1e-6f));
    // Smith, correlated in height (Heitz, Understanding the masking-shadowing function, 2014).
    const F other_root = N::sqrt(a2 + (N::c(1.0f) - a2) * cosine * cosine);
    const F smith = N::c(0.5f) / (cosine * (masked - nv) + nv * other_root);
    const F c = N::c(1.0f) - vh, c2 = c * c, c5 = c2 * c2 * c;
    const V3 fresnel = f0 + (V3::c(1.0f, 1.0f, 1.0f) - f0) * c5;
    const V3 all = diffuse * N::c(0.318309886f) + fresnel * gain * (distribution * smith);
    const F by_gloss = distribution * 0.5f / masked, by_diffuse = cosine * 0.318309886f;
    density = N::select(above, by_diffuse + (by_gloss - by_diffuse) * glossy, N::c(0.0f));
    return V3::select(above, all * cosine, V3::c(0.0f, 0.0f, 0.0f));
  }
  // A direction in which light may have come: visible facets (Dupuy and Benyoub, Sampling visible GGX normals with spherical
  // caps, 2023), or by the cosine.
  INLINE V3 sample(F choice, F u1, F u2) const {
    F c, s;
    Turn::of(u1, c, s);
    const F reach = N::sqrt(u2), up = N::sqrt(W::maximum(N::c(1.0f) - u2, N::c(0.0f)));
    const V3 by_cosine = side * (reach * c) + other * (reach * s) + normal * up;
    if (!N::any(glossy > 0.0f)) return by_cosine;
    const V3 stretched = V3{side.dot(towards) * a, other.dot(towards) * a, nv}.unit();
    const F z = (N::c(1.0f) - u2) * (N::c(1.0f) + stretched.z) - stretched.z;
    const F ring = N::sqrt(W::clamp(N::c(1.0f) - z * z, 0.0f, 1.0f));
    const V3 cap = {ring * c + stretched.x, ring * s + stretched.y, z + stretched.z};
    const V3 facet = V3{cap.x * a, cap.y * a, W::maximum(cap.z, N::c(1e-7f))}.unit();
    const V3 m = side * facet.x + other * facet.y + normal * facet.z;
    const V3 mirrored = m * (towards.dot(m) * 2.0f) - towards;
    return V3::select(choice < glossy, mirrored, by_cosine).unit();
  }
};
