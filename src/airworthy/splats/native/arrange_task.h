// The task of arrange_kernel.py.
#if LANES == 1
const int per_camera = chunk_stride * CHUNK;
if (stage == STAGE_EMIT) {
  // Keys (camera and tile, depth) of one Gaussian, from where its predecessors' end.
  const int camera_index = task / per_camera;
  const int* const notes = tags.data + (size_t)(task / CHUNK) * (4 * CHUNK) + task % CHUNK;
  const int end = counts.data[task];
  int at = task ? counts.data[task - 1] : 0;
  if (at < end) {
    const Record& g = ((const Record*)records.data)[task];
    const Span s(notes[0], notes[CHUNK]);
    for (int row = s.top; row <= s.bottom; ++row) {
      for (int column = s.left; column <= s.right; ++column) {
        if (!s.thin && !Span::met(g, row, column)) continue;
        const long long tile = (long long)(camera_index * rows + row) * columns + column;
        keys.data[at] = tile << 32 | (long long)notes[2 * CHUNK];
        lists.data[at++] = task % per_camera;
      }
    }
  }
} else {
  // Where a tile's list begins and ends in the sorted keys: at the place where the tile changes.
  const long long tile = keys.data[task] >> 32;
  if (task == 0 || keys.data[task - 1] >> 32 != tile) tiles.data[2 * tile] = task;
  if (task == capacity - 1 || keys.data[task + 1] >> 32 != tile) tiles.data[2 * tile + 1] = task + 1;
}
#else
const int bands = (rows + band_rows - 1) / band_rows;
const int here = order.data[task];
const int camera_index = here / bands, band_index = here % bands;
const CameraRow& camera = ((const CameraRow*)cameras.data)[camera_index];
Band band;
band.top = band_index * band_rows;
band.end = band.top + band_rows < rows ? band.top + band_rows : rows;
band.columns = columns;
band.records = (const Record*)records.data + (size_t)camera_index * chunk_stride * CHUNK;
band.tags = tags.data + (size_t)camera_index * chunk_stride * (4 * CHUNK);
Entry* const buffer = (Entry*)scratch.data + (size_t)here * 2 * entry_capacity;
int* const spans = tiles.data + 2 * ((size_t)camera_index * rows + band.top) * columns;
int* const places = lists.data + (size_t)here * capacity;
int* const next = heads.data + ((size_t)camera_index * rows + band.top) * columns;
const int tile_count = (band.end - band.top) * columns;
const int n = band.collect(counts.data + 2 * (size_t)camera_index * chunk_stride, camera.slot_count, buffer);
if (stage >= STAGE_SORT) {
  Entry* const sorted = Band::sort(buffer, buffer + entry_capacity, n);
  if (stage >= STAGE_LISTS) {
    for (int t = 0; t < tile_count; ++t) next[t] = 0;
    band.deal(sorted, n, next, places, false);
    int sum = 0;
    for (int t = 0; t < tile_count; ++t) {
      const int count = next[t];
      spans[2 * t] = next[t] = sum;
      spans[2 * t + 1] = sum += count;
    }
    needed.data[here] = sum;
    if (sum <= capacity) band.deal(sorted, n, next, places, true);
  }
}
#endif
