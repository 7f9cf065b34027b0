// The task of raster_back_kernel.py: a tile, or, in the second stage, all of a camera.
#if LANES != 1
const int columns = (width + TILE - 1) / TILE, rows = (height + TILE - 1) / TILE;
const int bands = (rows + band_rows - 1) / band_rows;
if (stage == BACK_TILES) {
  const int tile = order.data[task];
  const int camera_index = tile / (rows * columns), row = tile / columns % rows, column = tile % columns;
  const CameraRow& camera = ((const CameraRow*)cameras.data)[camera_index];
  const Record* const seen = (const Record*)records.data + (size_t)camera_index * chunk_stride * CHUNK;
  const int begin = tiles.data[2 * (size_t)tile], count = tiles.data[2 * (size_t)tile + 1] - begin;
  const size_t first = ((size_t)camera_index * bands + row / band_rows) * capacity + begin;
  const int* const places = lists.data + first;
  float* const out = partials.data + first * BACK_WORDS;
  const int left = column * TILE, top = row * TILE;
  enum { BLOCKS = TILE * TILE / LANES };
  Slopes slopes[BLOCKS];
  F light[BLOCKS], behind[BLOCKS];
  unsigned int shown = 0;
  for (int k = 0; k < BLOCKS; ++k) {
    F s[5] = {N::c(0.0f), N::c(0.0f), N::c(0.0f), N::c(0.0f), N::c(0.0f)};
    const int from_x = left + k % (TILE / BLOCK_X) * BLOCK_X, from_y = top + k / (TILE / BLOCK_X) * BLOCK_Y;
    for (int lane = 0; lane < LANES; ++lane) {
      const int x = from_x + lane % BLOCK_X, y = from_y + lane / BLOCK_X;
      if (x >= width || y >= height) continue;
      const size_t at = ((size_t)camera_index * height + y) * width + x;
      if (flags & FLAG_RGB)
        for (int i = 0; i < 3; ++i) s[i][lane] = rgb.data[3 * at + i];
      if (flags & FLAG_DEPTH) s[3][lane] = depth.data[at];
      if (flags & FLAG_ALPHA) s[4][lane] = alpha.data[at];
    }
    // What is covered is no longer background.
    const F covered = s[0] * camera.background[0] + s[1] * camera.background[1] + s[2] * camera.background[2];
    slopes[k] = {s[0], s[1], s[2], s[3], s[4] - covered};
    light[k] = N::c(1.0f);
    behind[k] = N::c(0.0f);
    if (from_x < width && from_y < height) shown |= 1u << k;
  }
  const F pixel_x = L::counted(1, BLOCK_X), pixel_y = L::counted(BLOCK_X, BLOCK_Y);
  const F block_x = L::counted(1, TILE / BLOCK_X) * (float)BLOCK_X, block_y = L::counted(TILE / BLOCK_X, TILE) * (float)BLOCK_Y;
  for (int pass = 0; pass < 2; ++pass) {
    unsigned int alive = shown;
    for (int k = 0; k < BLOCKS && pass; ++k) light[k] = N::c(1.0f);
    for (int e = 0; e < count; ++e) {
      if (!alive && !pass) break;
      if (e + AHEAD < count) __builtin_prefetch(seen + places[e + AHEAD]);
      const Record& g = seen[places[e]];
      const float from_x = (float)left + 0.5f - g.x, from_y = (float)top + 0.5f - g.y;
      unsigned int met = alive;
      if (met) met &= L::bits(Tile::touched(g, block_x + from_x, block_y + from_y));
      if (pass && !met) {
        for (int k = 0; k < BACK_WORDS; ++k) out[(size_t)e * BACK_WORDS + k] = 0.0f;
        continue;
      }
      Back sums;
      sums.clear();
      for (; met; met &= met - 1) {
        const int k = __builtin_ctz(met);
        const F dx = pixel_x + (from_x + (float)(k % (TILE / BLOCK_X) * BLOCK_X));
        const F dy = pixel_y + (from_y + (float)(k / (TILE / BLOCK_X) * BLOCK_Y));
        const bool goes_on = pass ? sums.blend(g, dx, dy, slopes[k], light[k], behind[k])
                                  : Back::total(g, dx, dy, slopes[k], light[k], behind[k]);
        if (!goes_on) alive &= ~(1u << k);
      }
      if (pass) sums.finish(g, out + (size_t)e * BACK_WORDS);
    }
  }
} else {
  // Tile after tile, so that every record's sum is made in one order.
  const CameraRow& camera = ((const CameraRow*)cameras.data)[task];
  float* const sums = record_slopes.data + (size_t)task * chunk_stride * CHUNK * BACK_WORDS;
  for (int chunk = 0; chunk < camera.chunk_count; ++chunk) {
    const int count = counts.data[2 * ((size_t)task * chunk_stride + chunk)];
    for (int k = 0; k < count * BACK_WORDS; ++k) sums[(size_t)chunk * CHUNK * BACK_WORDS + k] = 0.0f;
  }
  for (int tile = 0; tile < rows * columns; ++tile) {
    const size_t span = 2 * ((size_t)task * rows * columns + tile);
    const size_t first = ((size_t)task * bands + tile / columns / band_rows) * capacity;
    for (int e = tiles.data[span]; e < tiles.data[span + 1]; ++e) {
      const float* const part = partials.data + (first + e) * BACK_WORDS;
      float* const sum = sums + (size_t)lists.data[first + e] * BACK_WORDS;
      for (int k = 0; k < BACK_WORDS; ++k) sum[k] += part[k];
    }
  }
}
#endif
