// The task of project_back_kernel.py: a chunk of a scene over the cameras that see it, one after the other; on a GPU sixteen
// neighbours of a chunk. Records lie packed at their chunk's beginning, in the order of the Gaussians (`packed`), or each in its
// Gaussian's place, where `counts` tells which were seen. Gaussians side by side are worked on side by side, seen or not.
#if LANES == 1
const int chunk_number = task / CHUNK, first_block = task % CHUNK / Group::SIZE, past = first_block + 1;
#else
const int chunk_number = packed ? order.data[task] : task, first_block = 0, past = CHUNK / LANES;
#endif
const ChunkRow& chunk = ((const ChunkRow*)chunks.data)[chunk_number];
const int shades = 3 * chunk.coefficients;
const float* const rows = geometry.data + (size_t)chunk_number * (CHUNK * GEOMETRY_ROWS);
const float* const colours = harmonics.data + (size_t)chunk.harmonics * LANE_STRIDE;
float* const out = slopes.data + (size_t)chunk_number * (CHUNK * SLOPE_ROWS);
float* const out_colours = colour_slopes.data + (size_t)chunk.harmonics * LANE_STRIDE;
const CameraRow* const all = (const CameraRow*)cameras.data;
int image = 0, more = 0;  // rows are taken image by image, its scene and then its dynamic instances
while (image < image_count) {
  const int camera_index = image;
  const CameraRow& camera = more ? all[all[image].more_first + more - 1] : all[image];
  if (++more > all[image].more_count) {
    more = 0;
    ++image;
  }
  const int chunk_index = chunk_number - camera.first_chunk;
  if (chunk_index < 0 || chunk_index >= camera.chunk_count) continue;
  const size_t place = (size_t)camera_index * chunk_stride + camera.slot + chunk_index;
  const int count = packed ? counts.data[2 * place] : CHUNK;
  if (!count) continue;
  const int* const sources = tags.data + place * (4 * CHUNK) + 3 * CHUNK;
  const float* const found = record_slopes.data + place * (CHUNK * Group::STRIDE);
  F pose[12];
  for (int k = 0; k < 12; ++k) pose[k] = N::c(0.0f);
  bool met = false;
  const int sum_count = flags & (FLAG_PLANE | FLAG_NORMAL) ? BACK_SIZE : 10;
  int next = 0;
  for (int block = first_block; block < past && next < count; ++block) {
    F s[BACK_SIZE + 1];  // and whether it was seen
    for (int i = 0; i <= BACK_SIZE; ++i) s[i] = N::c(0.0f);
    if (packed) {
#if LANES != 1
      float rank[(BACK_SIZE + 1) * LANES];
      if (sources[next] % CHUNK / LANES != block) continue;
      for (int i = 0; i <= BACK_SIZE; ++i) N::store(rank + i * LANES, N::c(0.0f));
      for (; next < count && sources[next] % CHUNK / LANES == block; ++next) {
        const int lane = sources[next] % LANES;
        for (int i = 0; i < sum_count; ++i) rank[i * LANES + lane] = found[next * Group::STRIDE + Group::place(i)];
        rank[BACK_SIZE * LANES + lane] = 1.0f;
      }
      for (int i = 0; i <= BACK_SIZE; ++i) s[i] = N::load(rank + i * LANES);
#endif
    } else {
      EACH_LANE(lane) {
        const int own = block * Group::SIZE + lane;
        const size_t record = place * CHUNK + own;
        if (counts.data[record] <= (record ? counts.data[record - 1] : 0)) continue;
        for (int i = 0; i < sum_count; ++i) Group::set(s[i], lane, found[(size_t)own * Group::STRIDE + Group::place(i)]);
        Group::set(s[BACK_SIZE], lane, 1.0f);
      }
    }
    const M rendered = s[BACK_SIZE] > 0.5f;
    if (!Group::any(rendered)) continue;
    Projection p = {camera, rows + block * (LANE_STRIDE * GEOMETRY_ROWS) + Group::own(),
                    colours + block * (LANE_STRIDE * shades) + Group::own(), chunk.coefficients, width, height, flags, near, dilation};
    p.in_front();
    p.shape(rendered);
    if (flags & (FLAG_PLANE | FLAG_NORMAL)) p.face();
    p.evaluate_colour();
    ProjectionBack back = {p, rendered};
    back.go(s);
    back.differentiate_colour(s, out_colours + block * (LANE_STRIDE * shades) + Group::own());
    back.add_to(out + block * (LANE_STRIDE * SLOPE_ROWS) + Group::own());
    Group::add(out + block * (LANE_STRIDE * SLOPE_ROWS) + 14 * LANE_STRIDE + Group::own(), s[BACK_SIZE]);
    for (int k = 0; k < 3; ++k) pose[k] = pose[k] - N::select(rendered, back.position[k], N::c(0.0f));
    for (int k = 0; k < 9; ++k) pose[3 + k] = pose[3 + k] + N::select(rendered, back.turn[k], N::c(0.0f));
    met = true;
  }
  if (met) {
#if LANES == 1
    N::store(pose_slopes.data + (place * (CHUNK / Group::SIZE) + first_block) * Group::STRIDE + Group::own(), Group::sums(pose, 12));
#else
    N::store(pose_slopes.data + place * Group::STRIDE, Group::sums(pose, 12));
#endif
    touched.data[chunk_number] = true;
  }
}
