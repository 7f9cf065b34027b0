// The task of raster_back_kernel.py. BACK_TILES: a tile, on a GPU half a warp. BACK_CAMERAS: sums over the tiles of a camera, where
// their lists lie band after band. BACK_RECORDS: sums of one record, where all lists are one. For that BACK_TILES has written whose
// each place in it is (`owners`), and by this the places have been sorted.
#if LANES == 1
const int here = task / Group::SIZE;
#else
const int here = task;
#endif
const int columns = (width + TILE - 1) / TILE, rows = (height + TILE - 1) / TILE;
if (stage == BACK_TILES) {
  const int tile = band_rows ? order.data[here] : here;
  const int camera_index = tile / (rows * columns), row = tile / columns % rows, column = tile % columns;
  const CameraRow& camera = ((const CameraRow*)cameras.data)[camera_index];
  const int begin = tiles.data[2 * (size_t)tile], end = tiles.data[2 * (size_t)tile + 1];
  size_t first = begin;
  if (band_rows) first += ((size_t)camera_index * ((rows + band_rows - 1) / band_rows) + row / band_rows) * capacity;
  BackTile b;
  b.records = (const Record*)records.data + (size_t)camera_index * chunk_stride * CHUNK;
  const bool faced = flags & (FLAG_PLANE | FLAG_NORMAL);
  b.faces = (const Plane*)planes.data + (faced ? (size_t)camera_index * chunk_stride * CHUNK : 0);
  b.list = lists.data + first;
  b.count = end - begin;
  b.left = column * TILE;
  b.top = row * TILE;
  b.out = partials.data + first * Group::STRIDE;
  b.shown = 0;
  for (int k = 0; k < BackTile::BLOCKS; ++k) {
    const int from_x = b.left + k % BackTile::ACROSS * BLOCK_X, from_y = b.top + k / BackTile::ACROSS * BLOCK_Y;
    F s[11];
    for (int i = 0; i < 11; ++i) s[i] = N::c(0.0f);
    EACH_LANE(lane) {
      const int x = from_x + lane % BLOCK_X, y = from_y + lane / BLOCK_X;
      if (x >= width || y >= height) continue;
      const size_t at = ((size_t)camera_index * height + y) * width + x;
      float base = 0.0f, behind = 0.0f;
      if (flags & FLAG_RGB) {
        for (int i = 0; i < 3; ++i) {
          const float slope = rgb.data[3 * at + i];
          Group::set(s[i], lane, slope);
          behind += slope * (rendered_rgb.data[3 * at + i] - camera.background[i]);
          base -= slope * camera.background[i];
        }
      }
      if (flags & FLAG_ALPHA) {
        base += alpha.data[at];
        behind += alpha.data[at] * rendered_alpha.data[at];
      }
      if (flags & FLAG_DEPTH && rendered_alpha.data[at] >= LEAST_ALPHA) {  // elsewhere it is infinite: its derivative counts for nothing
        Group::set(s[4], lane, depth.data[at] / rendered_alpha.data[at]);
        Group::set(s[5], lane, rendered_depth.data[at]);
      }
      if (flags & FLAG_NORMAL) {
        for (int i = 0; i < 3; ++i) {
          Group::set(s[8 + i], lane, normal.data[3 * at + i]);
          behind += normal.data[3 * at + i] * rendered_normal.data[3 * at + i];
        }
      }
      if (flags & FLAG_LIMIT) Group::set(s[6], lane, limits.data[at]);
      Group::set(s[3], lane, base);
      Group::set(s[7], lane, behind);
    }
    b.blocks[k] = {s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[8], s[9], s[10], N::c(1.0f), s[7]};
    if (from_x < width && from_y < height) b.shown |= 1u << k;
  }
  // One loop per mode, without the questions of the others; a limit alone runs that with a depth.
  // Planes and normals go together: where one is not asked for its derivatives are zero.
  int walked;
  if (faced) {
    const int all = FLAG_DEPTH | FLAG_PLANE | FLAG_NORMAL;
    walked = flags & FLAG_LIMIT ? b.walk(all | FLAG_LIMIT) : b.walk(all);
  } else {
    walked = flags & FLAG_LIMIT ? b.walk(FLAG_DEPTH | FLAG_LIMIT) : flags & FLAG_DEPTH ? b.walk(FLAG_DEPTH) : b.walk(0);
  }
  if (band_rows) {
    used.data[tile] = walked;
  } else {
    for (int e = walked; e < b.count; ++e) N::store(b.out + (size_t)e * Group::STRIDE + Group::own(), N::c(0.0f));
    for (int e = 0; e < b.count; e += Group::SIZE) {
      EACH_LANE(lane) {
        if (e + lane >= b.count) continue;
        owners.data[first + e + lane] = camera_index * chunk_stride * CHUNK + b.list[e + lane];
        places.data[first + e + lane] = (int)first + e + lane;
      }
    }
  }
} else if (stage == BACK_CAMERAS) {
#if LANES != 1
  // Tile after tile, so that every record's sum is made in one order.
  const CameraRow& camera = ((const CameraRow*)cameras.data)[here];
  float* const sums = record_slopes.data + (size_t)here * chunk_stride * CHUNK * Group::STRIDE;
  for (int chunk = 0; chunk < camera.slot_count; ++chunk) {
    const int count = counts.data[2 * ((size_t)here * chunk_stride + chunk)];
    for (int k = 0; k < count; ++k) N::store(sums + ((size_t)chunk * CHUNK + k) * Group::STRIDE, N::c(0.0f));
  }
  for (int tile = 0; tile < rows * columns; ++tile) {
    const size_t own = (size_t)here * rows * columns + tile;
    const size_t first = ((size_t)here * ((rows + band_rows - 1) / band_rows) + tile / columns / band_rows) * capacity;
    const int* const list = lists.data + first + tiles.data[2 * own];
    const float* const part = partials.data + (first + tiles.data[2 * own]) * Group::STRIDE;
    const int count = used.data[own];
    for (int e = 0; e < count; ++e) {
      if (e + AHEAD < count) __builtin_prefetch(sums + (size_t)list[e + AHEAD] * Group::STRIDE);
      float* const sum = sums + (size_t)list[e] * Group::STRIDE;
      N::store(sum, N::load(sum) + N::load(part + (size_t)e * Group::STRIDE));
    }
  }
#endif
} else {
  // The order of places is that of the tiles.
  const int begin = here ? counts.data[here - 1] : 0, end = counts.data[here];
  if (begin < end) {
    F sum = N::c(0.0f);
    for (int k = begin; k < end; ++k) sum = sum + N::load(partials.data + (size_t)places.data[k] * Group::STRIDE + Group::own());
    N::store(record_slopes.data + (size_t)here * Group::STRIDE + Group::own(), sum);
  }
}
