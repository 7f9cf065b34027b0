// Textures: bilinear in two mip levels and linear between them; decoded values. Needs lanes.h, and the enumerators of
// airworthy.rendering.shading. Twin: airworthy.sensors.shading_twin.
struct Texel {
  V3 rgb;
  F alpha;
};
struct Textures {
  const int* rows;            // (texture, TEXTURE_COLUMNS)
  const unsigned int* texels;
  // Texel numbers -1 ... 2 size brought into 0 ... size - 1: repeated, held at the border, or mirrored.
  static INLINE I wrapped(I k, I size, I wrap) {
    I r = W::pick(k < 0, k + size, k);
    r = W::pick(r >= size, r - size, r);
    r = W::pick(r >= size, r - size, r);
    const I held = W::pick(k < 0, W::i(0), W::pick(k >= size, size - 1, k));
    I m = W::pick(k < 0, -1 - k, k);
    m = W::pick(m >= size * 2, m - size * 2, m);
    m = W::pick(m >= size, size * 2 - 1 - m, m);
    return W::pick(wrap == 0, r, W::pick(wrap == 1, held, m));
  }
  static INLINE Texel decode(U packed, M squared) {
    const F s = N::c(1.0f / 510.0f);
    V3 v = {N::from_int(N::signed_of(packed & N::u(511u))) * s, N::from_int(N::signed_of((packed >> 9u) & N::u(511u))) * s,
            N::from_int(N::signed_of((packed >> 18u) & N::u(511u))) * s};
    const F alpha = N::from_int(N::signed_of(packed >> 27u)) * N::c(1.0f / 31.0f);
    return {V3::select(squared, v * v, v), alpha};
  }
  static INLINE Texel mix(const Texel& a, const Texel& b, F t) { return {V3::mix(a.rgb, b.rgb, t), a.alpha + (b.alpha - a.alpha) * t}; }
  INLINE Texel bilinear(I row, I level, F u, F v, M squared, I wrap) const {
    const I base = row * TEXTURE_COLUMNS;
    const I width0 = W::gather(rows, base), height0 = W::gather(rows, base + 1), start = W::gather(rows, base + 8 + level);
    I width = width0 >> level, height = height0 >> level;
    width = W::pick(width < 1, W::i(1), width);
    height = W::pick(height < 1, W::i(1), height);
    // The fraction of the coordinate first, so that far repeats keep their texels (mirrored ones have a period of two).
    const F su = u - N::floor(u * 0.5f) * 2.0f, sv = v - N::floor(v * 0.5f) * 2.0f;
    const M clamped = wrap == 1;
    const F x = N::select(clamped, W::clamp(u, 0.0f, 1.0f), su) * N::from_int(width) - 0.5f;
    const F y = N::select(clamped, W::clamp(v, 0.0f, 1.0f), sv) * N::from_int(height) - 0.5f;
    const F fx = N::floor(x), fy = N::floor(y);
    const I x0 = W::to_int(fx), y0 = W::to_int(fy);
    const I xa = wrapped(x0, width, wrap), xb = wrapped(x0 + 1, width, wrap);
    const I ya = start + wrapped(y0, height, wrap) * width, yb = start + wrapped(y0 + 1, height, wrap) * width;
    const F tx = x - fx, ty = y - fy;
    const Texel top = mix(decode(W::gather(texels, ya + xa), squared), decode(W::gather(texels, ya + xb), squared), tx);
    const Texel bottom = mix(decode(W::gather(texels, yb + xa), squared), decode(W::gather(texels, yb + xb), squared), tx);
    return mix(top, bottom, ty);
  }
  // One texture at coordinates u, v; footprint: repeats of the texture that a pixel covers. Where row < 0: ones.
  SHADING_MEMBER Texel sample(I row, F u, F v, F footprint) const {
    const M there = row >= 0;
    Texel out = {V3::c(1.0f, 1.0f, 1.0f), N::c(1.0f)};
    if (!N::any(there)) return out;
    const I safe = W::pick(there, row, W::i(0));
    const I base = safe * TEXTURE_COLUMNS;
    const I width = W::gather(rows, base), height = W::gather(rows, base + 1), levels = W::gather(rows, base + 2);
    const I wrap = W::gather(rows, base + 3);
    const M squared = W::gather(rows, base + 4) != 0;
    const F covered = W::maximum(footprint * N::from_int(W::pick(width > height, width, height)), N::c(1e-3f));
    const F last = N::from_int(levels) - 1.0f;
    const F level = W::minimum(W::maximum(W::log2(covered), N::c(0.0f)), last);
    const F low = N::floor(level), t = level - low;
    const I first = W::to_int(low);
    Texel a = bilinear(safe, first, u, v, squared, wrap);
    if (N::any(there & (t > 0.0f))) {
      const I next = first + 1;
      a = mix(a, bilinear(safe, W::pick(next < levels, next, levels - 1), u, v, squared, wrap), t);
    }
    out.rgb = V3::select(there, a.rgb, out.rgb);
    out.alpha = N::select(there, a.alpha, out.alpha);
    return out;
  }
};
