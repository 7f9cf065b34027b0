// Light in mirrors, traced for one pixel of four and spread over the surfaces that it belongs to (airworthy.rendering.gloss).
// Of each pixel: light in the mirror of its middle, how much of it is seen, instance, material, over how many pixels it is spread,
// and whether it was traced.
struct SharedMirror {
  M known;          // what is in the mirror is known: `light`
  M later, traced;  // it is added when it has been spread; a ray is sent from here
  V3 light, share;  // in the mirror, and what of it is seen
  V3 from, next;    // of rays into panes
};
// Rays into mirrors of several packets, gathered until all lanes have one: of a packet only a quarter has.
struct MirrorRays {
  V3 from, next, part;  // part: of the light that comes, what its pixel's row gets
  F spread, travelled;
  I pixel, key[5];
  int count;
};
struct MirrorLight {
  float* rows;  // (pixel, GLOSS_COLUMNS), of one camera
  int width, height;
  // Lanes whose pixel is one of those that are traced: even in both directions.
  INLINE M fourth(I pixel) const {
    M out = N::never();
    for (int k = 0; k < LANES; ++k) {
      const int at = W::get(pixel, k);
      W::set_m(out, k, at >= 0 && !((at % width | at / width) & 1));
    }
    return out;
  }
  // The rows of a packet; light is added to them when rays have come back.
  INLINE void keep(M valid, I pixel, const SharedMirror& shared, I instance, I material, M sharp) const {
    for (int k = 0; k < LANES; ++k) {
      if (!W::at(valid, k)) continue;
      float* row = rows + (long long)GLOSS_COLUMNS * W::get(pixel, k);
      const bool wanted = W::at(shared.later, k);
      const float share[3] = {W::get(shared.share.x, k), W::get(shared.share.y, k), W::get(shared.share.z, k)};
      for (int i = 0; i < 3; ++i) {
        row[i] = 0.0f;
        row[3 + i] = wanted ? share[i] : 0.0f;
      }
      row[6] = (float)W::get(instance, k);
      row[7] = (float)W::get(material, k);
      row[8] = wanted ? (W::at(sharp, k) ? 1.0f : GLOSS_REACH) : 0.0f;
      row[9] = wanted && W::at(shared.traced, k) ? 1.0f : 0.0f;
    }
  }
  // Lanes for which it is known of the same surface, at their pixel or beside it; `light` is set there.
  INLINE M known(M wanted, I pixel, I instance, I material, V3& light) const {
    M out = N::never();
    for (int k = 0; k < LANES; ++k) {
      if (!W::at(wanted, k)) continue;
      const int at = W::get(pixel, k), x = at % width, y = at / width;
      const float which = (float)W::get(instance, k), made_of = (float)W::get(material, k);
      // The pixel itself first, then those beside it.
      for (int n = 0; n < 9; ++n) {
        const int step = (n + 4) % 9, u = x + step % 3 - 1, v = y + step / 3 - 1;
        if (u < 0 || v < 0 || u >= width || v >= height) continue;
        const float* row = rows + (long long)GLOSS_COLUMNS * (v * width + u);
        if (row[9] == 0.0f || row[6] != which || row[7] != made_of) continue;
        W::set(light.x, k, row[0]);
        W::set(light.y, k, row[1]);
        W::set(light.z, k, row[2]);
        W::set_m(out, k, true);
        break;
      }
    }
    return out;
  }
};
