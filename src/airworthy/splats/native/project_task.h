// The task of project_kernel.py.
#if LANES == 1
const int per_camera = chunk_stride * CHUNK;
const int camera_index = task / per_camera, chunk_index = task % per_camera / CHUNK;
#else
const int here = order.data[task];
const int camera_index = here / chunk_stride, chunk_index = here % chunk_stride;
#endif
const CameraRow* const all = (const CameraRow*)cameras.data;
const CameraRow& camera = all[Slots::row(all, camera_index, chunk_index)];
const size_t place = (size_t)camera_index * chunk_stride + chunk_index;
Record* const found = (Record*)records.data + place * CHUNK;
int* const notes = tags.data + place * (4 * CHUNK);
const bool faced = flags & (FLAG_PLANE | FLAG_NORMAL);
Plane* const faces = (Plane*)planes.data + (faced ? place * CHUNK : 0);
const int own = chunk_index - camera.slot;
const bool mine = own < camera.chunk_count;
const int chunk_number = camera.first_chunk + (mine ? own : 0);
const ChunkRow& chunk = ((const ChunkRow*)chunks.data)[chunk_number];
const bool hidden = !mine || Projection::hidden(camera, chunk, width, height, flags, near, dilation);
const float* const rows = geometry.data + (size_t)chunk_number * (CHUNK * GEOMETRY_ROWS);
const float* const colours = harmonics.data + (size_t)chunk.harmonics * LANE_STRIDE;
#if LANES == 1
const int k = task % CHUNK, block = k / LANE_STRIDE, lane = k % LANE_STRIDE;
int tiles = 0;
if (!hidden) {
  Projection p = {camera, rows + block * (LANE_STRIDE * GEOMETRY_ROWS) + lane,
                  colours + block * (LANE_STRIDE * 3 * chunk.coefficients) + lane,
                  chunk.coefficients, width, height, flags, near, dilation};
  if (p.in_front() && p.shape(true)) {
    p.evaluate_colour();
    Writer::fields(p, (float*)&found[k]);
    if (faced) {
      p.face();
      Writer::plane(p, (float*)&faces[k]);
    }
    Writer::tag(notes, k, found[k], p.half_x, p.half_y, near, chunk_number * CHUNK + k, width, height);
    tiles = Span(notes[k], notes[CHUNK + k]).count(found[k]);
  }
}
counts.data[place * CHUNK + k] = tiles;
#else
int count = 0, top = 0xffff, bottom = 0;
for (int block = 0; block < CHUNK / LANES && !hidden; ++block) {
  Projection p = {camera, rows + block * (LANES * GEOMETRY_ROWS), colours + block * (LANES * 3 * chunk.coefficients),
                  chunk.coefficients, width, height, flags, near, dilation};
  const M ahead = p.in_front();
  if (!N::any(ahead)) continue;
  unsigned int visible = L::bits(p.shape(ahead));
  if (!visible) continue;
  p.evaluate_colour();
  F fields[RECORD_SIZE];
  Writer::fields(p, fields);
  F plane[PLANE_SIZE];
  if (faced) {
    p.face();
    Writer::plane(p, plane);
  }
  for (; visible; visible &= visible - 1, ++count) {
    const int lane = __builtin_ctz(visible);
    for (int i = 0; i < RECORD_SIZE; ++i) ((float*)&found[count])[i] = fields[i][lane];
    for (int i = 0; faced && i < PLANE_SIZE; ++i) ((float*)&faces[count])[i] = plane[i][lane];
    Writer::tag(notes, count, found[count], p.half_x[lane], p.half_y[lane], near, chunk_number * CHUNK + block * LANES + lane,
                width, height);
    const int from = notes[count] & 0xffff, to = notes[count] >> 16;
    top = from < top ? from : top;
    bottom = to > bottom ? to : bottom;
  }
}
counts.data[2 * place] = count;
counts.data[2 * place + 1] = top | bottom << 16;
#endif
