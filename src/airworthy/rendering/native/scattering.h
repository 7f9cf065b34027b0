// How a surface scatters light, to be sampled: Lambert under a GGX gloss, glTF's metallic-roughness. Light that bounces several
// times between facets is made up for by scaling the gloss (Turquin, Practical multiple scattering compensation for microfacet
// models, 2019), and the diffuse part gets what the gloss leaves, so a white surface sends back all that arrives.
// A leaf sends a share of the diffuse part to its other side.
// Needs light.h, random.h. Twin: airworthy.rendering.scattering.
struct Scattering {
  V3 normal, geometric, side, other, towards;  // `side`, `other`: with the normal a basis
  V3 diffuse, f0, gain;                        // gain: of the gloss, for what bounces between facets
  V3 passed, beneath;                          // of leaves: albedo of what passes; where rays to the other side begin
  F through;                                   // of leaves: share of diffuse samples that pass
  M leaf;
  F a, a2, nv, masked, glossy;                 // masked: nv + root of Smith's; glossy: share of samples that the gloss gets
  static INLINE F luminance(const V3& c) { return c.x * 0.2126f + c.y * 0.7152f + c.z * 0.0722f; }
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
    o.leaf = N::never();
    if (flags & PATH_LEAVES) o.leaf = s.thin > 0.0f;
    o.passed = o.beneath = V3::c(0.0f, 0.0f, 0.0f);
    o.through = N::c(0.0f);
    if (N::any(o.leaf)) {
      o.passed = V3::select(o.leaf, s.passed * (specular ? s.thin * (N::c(1.0f) - s.metallic) : s.thin), o.passed);
      o.diffuse = o.diffuse * (N::c(1.0f) - s.thin);
      const F sent_back = luminance(o.diffuse), let_through = luminance(o.passed);
      o.through = let_through / W::maximum(sent_back + let_through, N::c(1e-6f));
    }
    if (!specular) return o;
    const float coat = flags & PATH_COAT ? 0.04f : 0.0f;
    o.f0 = V3::mix(V3::c(coat, coat, coat), s.albedo, s.metallic);
    F scale, bias;
    Facets::albedo(table, o.nv, N::sqrt(o.a), scale, bias);
    const F lost = N::c(1.0f) / W::maximum(scale + bias, N::c(0.05f)) - 1.0f;
    o.gain = V3::c(1.0f, 1.0f, 1.0f) + o.f0 * lost;
    // Without a coat a dielectric has no gloss at all, not even at grazing angles.
    if (!(flags & PATH_COAT)) o.gain = o.gain * s.metallic;
    const V3 sent = (o.f0 * scale + V3::all(bias)) * o.gain;
    const V3 gloss = {W::clamp(sent.x, 0.0f, 1.0f), W::clamp(sent.y, 0.0f, 1.0f), W::clamp(sent.z, 0.0f, 1.0f)};
    o.diffuse = o.diffuse * (V3::c(1.0f, 1.0f, 1.0f) - gloss);
    o.passed = o.passed * (V3::c(1.0f, 1.0f, 1.0f) - gloss);
    const F from_gloss = luminance(gloss), from_diffuse = luminance(o.diffuse) + luminance(o.passed);
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
    V3 out = V3::select(above, all * cosine, V3::c(0.0f, 0.0f, 0.0f));
    if (N::any(leaf)) {
      // From behind, or between the two normals, where there is no gloss; facets may be sampled there all the same.
      const M front = geometric.dot(l) > 0.0f;
      const F even = N::abs(nl) * 0.318309886f, part = N::select(front, N::c(1.0f) - through, through);
      const F by_facets = N::select(nv + nl > 0.0f, by_gloss, N::c(0.0f));
      density = N::select(leaf, even * part + (by_facets - even * part) * glossy, density);
      out = V3::select(leaf & N::invert(above), V3::select(front, diffuse, passed) * even, out);
    }
    return out;
  }
  // Where a ray in a direction begins.
  INLINE V3 origin(const V3& l, const V3& start) const {
    if (!N::any(leaf)) return start;
    return V3::select(leaf & (geometric.dot(l) < 0.0f), beneath, start);
  }
  // A direction in which light may have come: visible facets, or by the cosine.
  INLINE V3 sample(F choice, F u1, F u2) const {
    F c, s;
    Turn::of(u1, c, s);
    const F reach = N::sqrt(u2), up = N::sqrt(W::maximum(N::c(1.0f) - u2, N::c(0.0f)));
    V3 by_cosine = side * (reach * c) + other * (reach * s) + normal * up;
    if (N::any(leaf)) {
      const F rest = (choice - glossy) / (N::c(1.0f) - glossy);
      const M turned = leaf & ((rest < through) != (geometric.dot(by_cosine) < 0.0f));
      by_cosine = V3::select(turned, by_cosine * N::c(-1.0f), by_cosine);
    }
    if (!N::any(glossy > 0.0f)) return by_cosine;
    const V3 facet = Facets::visible(side.dot(towards), other.dot(towards), nv, a, c, s, u2);
    const V3 m = side * facet.x + other * facet.y + normal * facet.z;
    const V3 mirrored = m * (towards.dot(m) * 2.0f) - towards;
    return V3::select(choice < glossy, mirrored, by_cosine).unit();
  }
};
