// The task of raster_kernel.py.
#if LANES == 1
const int pixel = task % (TILE * TILE), tile = task / (TILE * TILE);
#else
const int tile = order.data[task];
#endif
const int columns = (width + TILE - 1) / TILE, rows = (height + TILE - 1) / TILE;
const int camera_index = tile / (rows * columns), row = tile / columns % rows, column = tile % columns;
const CameraRow& camera = ((const CameraRow*)cameras.data)[camera_index];
const Record* const camera_records = (const Record*)records.data + (size_t)camera_index * chunk_stride * CHUNK;
const size_t record = (size_t)camera_index * chunk_stride * CHUNK;
const Plane* const camera_faces = (const Plane*)planes.data + (flags & (FLAG_PLANE | FLAG_NORMAL) ? record : 0);
const int begin = tiles.data[2 * (size_t)tile], count = tiles.data[2 * (size_t)tile + 1] - begin;
const int left = column * TILE, top = row * TILE;
#if LANES == 1
const int* const places = lists.data + begin;
// Block after block, so that pixels that run together lie together.
const int block = pixel / LANE_STRIDE, within = pixel % LANE_STRIDE;
const int x = left + block % (TILE / BLOCK_X) * BLOCK_X + within % BLOCK_X;
const int y = top + block / (TILE / BLOCK_X) * BLOCK_Y + within / BLOCK_X;
if (x < width && y < height) {
  Pixels p;
  p.clear(flags);
  const size_t at = ((size_t)camera_index * height + y) * width + x;
  const float limit = flags & FLAG_LIMIT ? limits.data[at] : 0.0f;
  const float first_x = (float)left + 0.5f, first_y = (float)top + 0.5f;
  Tile::composite(camera_records, camera_faces, places, count, first_x, first_y, block, within, flags, limit, p);
  if (flags & FLAG_RGB) {
    rgb.data[3 * at] = L::fma(p.left, camera.background[0], p.red);
    rgb.data[3 * at + 1] = L::fma(p.left, camera.background[1], p.green);
    rgb.data[3 * at + 2] = L::fma(p.left, camera.background[2], p.blue);
  }
  if (flags & FLAG_DEPTH) depth.data[at] = p.distance(flags);
  if (flags & FLAG_ALPHA) alpha.data[at] = 1.0f - p.left;
  if (flags & FLAG_NORMAL) {
    normal.data[3 * at] = p.normal_x;
    normal.data[3 * at + 1] = p.normal_y;
    normal.data[3 * at + 2] = p.normal_z;
  }
}
#else
const int bands = (rows + band_rows - 1) / band_rows;
const int* const places = lists.data + ((size_t)camera_index * bands + row / band_rows) * capacity + begin;
Pixels blocks[TILE * TILE / LANES];
unsigned int alive = 0;
for (int k = 0; k < TILE * TILE / LANES; ++k) {
  blocks[k].clear(flags);
  const int x = left + k % (TILE / BLOCK_X) * BLOCK_X, y = top + k / (TILE / BLOCK_X) * BLOCK_Y;
  if (x < width && y < height) alive |= 1u << k;
}
const unsigned int shown = alive;
F farthest[TILE * TILE / LANES];
if (flags & FLAG_LIMIT)
  for (int k = 0; k < TILE * TILE / LANES; ++k)
    for (int lane = 0; lane < LANES; ++lane) {
      const int x = left + k % (TILE / BLOCK_X) * BLOCK_X + lane % BLOCK_X;
      const int y = top + k / (TILE / BLOCK_X) * BLOCK_Y + lane / BLOCK_X;
      farthest[k][lane] = x < width && y < height ? limits.data[((size_t)camera_index * height + y) * width + x] : 0.0f;
    }
const float first_x = (float)left + 0.5f, first_y = (float)top + 0.5f;
// One loop per mode that is asked for often, without the questions of the others.
#define AIRWORTHY_COMPOSITE(mode) \
  case (mode): \
    Tile::composite(camera_records, camera_faces, places, count, first_x, first_y, (mode), farthest, blocks, alive); \
    break;
const int mode = flags & (FLAG_EXPECTED | FLAG_MEDIAN | FLAG_LIMIT | FLAG_PLANE | FLAG_NORMAL);
switch (mode) {
  AIRWORTHY_COMPOSITE(0)
  AIRWORTHY_COMPOSITE(FLAG_EXPECTED)
  AIRWORTHY_COMPOSITE(FLAG_MEDIAN)
  AIRWORTHY_COMPOSITE(FLAG_MEDIAN | FLAG_LIMIT)
  AIRWORTHY_COMPOSITE(FLAG_EXPECTED | FLAG_PLANE)
  AIRWORTHY_COMPOSITE(FLAG_MEDIAN | FLAG_PLANE)
  AIRWORTHY_COMPOSITE(FLAG_EXPECTED | FLAG_PLANE | FLAG_NORMAL)
  AIRWORTHY_COMPOSITE(FLAG_LIMIT)
  AIRWORTHY_COMPOSITE(FLAG_EXPECTED | FLAG_LIMIT)
  default: Tile::composite(camera_records, camera_faces, places, count, first_x, first_y, mode, farthest, blocks, alive);
}
#undef AIRWORTHY_COMPOSITE
for (int k = 0; k < TILE * TILE / LANES; ++k) {
  if (!(shown >> k & 1u)) continue;
  const Pixels& p = blocks[k];
  const F out[8] = {L::fma(p.left, N::c(camera.background[0]), p.red), L::fma(p.left, N::c(camera.background[1]), p.green),
                    L::fma(p.left, N::c(camera.background[2]), p.blue), p.distance(flags), 1.0f - p.left,
                    p.normal_x, p.normal_y, p.normal_z};
  for (int lane = 0; lane < LANES; ++lane) {
    const int x = left + k % (TILE / BLOCK_X) * BLOCK_X + lane % BLOCK_X;
    const int y = top + k / (TILE / BLOCK_X) * BLOCK_Y + lane / BLOCK_X;
    if (x >= width || y >= height) continue;
    const size_t at = ((size_t)camera_index * height + y) * width + x;
    if (flags & FLAG_RGB)
      for (int i = 0; i < 3; ++i) rgb.data[3 * at + i] = out[i][lane];
    if (flags & FLAG_DEPTH) depth.data[at] = out[3][lane];
    if (flags & FLAG_ALPHA) alpha.data[at] = out[4][lane];
    if (flags & FLAG_NORMAL)
      for (int i = 0; i < 3; ++i) normal.data[3 * at + i] = out[5 + i][lane];
  }
}
#endif
