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
    int places[LANES];
    W::spill(places, pixel);
    M out = N::never();
    for (int k = 0; k < LANES; ++k) {
      const int at = places[k];
      W::set_m(out, k, at >= 0 && !((at % width | at / width) & 1));
    }
    return out;
  }
  // The rows of a packet; light is added to them when rays have come back.
  INLINE void keep(M valid, I pixel, const SharedMirror& shared, I instance, I material, M sharp) const {
    int here[LANES], places[LANES];
    float share[3][LANES], about[4][LANES];
    W::spill_m(here, valid);
    W::spill(places, pixel);
    const F none = N::c(0.0f), one = N::c(1.0f);
    V3::select(shared.later, shared.share, V3::all(none)).spill(share);
    W::spill(about[0], N::from_int(instance));
    W::spill(about[1], N::from_int(material));
    W::spill(about[2], N::select(shared.later, N::select(sharp, one, N::c(GLOSS_REACH)), none));
    W::spill(about[3], N::select(shared.later & shared.traced, one, none));
    for (int k = 0; k < LANES; ++k) {
      if (!here[k]) continue;
      float* row = rows + (long long)GLOSS_COLUMNS * places[k];
      for (int i = 0; i < 3; ++i) row[i] = 0.0f, row[3 + i] = share[i][k];
      for (int i = 0; i < 4; ++i) row[6 + i] = about[i][k];
    }
  }
  // Lanes for which it is known of the same surface, at their pixel or beside it; `light` is set there.
  INLINE M known(M wanted, I pixel, I instance, I material, V3& light) const {
    int here[LANES], places[LANES], instances[LANES], materials[LANES];
    W::spill_m(here, wanted);
    W::spill(places, pixel);
    W::spill(instances, instance);
    W::spill(materials, material);
    M out = N::never();
    for (int k = 0; k < LANES; ++k) {
      if (!here[k]) continue;
      const int at = places[k], x = at % width, y = at / width;
      const float which = (float)instances[k], made_of = (float)materials[k];
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
