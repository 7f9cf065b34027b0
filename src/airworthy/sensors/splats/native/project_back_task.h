// The task of project_back_kernel.py: a chunk of a scene, over the cameras that see it, one after the other.
#if LANES != 1
const int chunk_number = order.data[task];
const ChunkRow& chunk = ((const ChunkRow*)chunks.data)[chunk_number];
const int coefficients = chunk.coefficients;
const float* const rows = geometry.data + (size_t)chunk_number * (CHUNK * GEOMETRY_ROWS);
const float* const colours = harmonics.data + (size_t)chunk.harmonics * LANES;
float* const out = slopes.data + (size_t)chunk_number * (CHUNK * SLOPE_ROWS);
float* const out_colours = colour_slopes.data + (size_t)chunk.harmonics * LANES;
for (int camera_index = 0; camera_index < camera_count; ++camera_index) {
  const CameraRow& camera = ((const CameraRow*)cameras.data)[camera_index];
  const int chunk_index = chunk_number - camera.first_chunk;
  if (chunk_index < 0 || chunk_index >= camera.chunk_count) continue;
  const size_t place = (size_t)camera_index * chunk_stride + chunk_index;
  const int count = counts.data[2 * place];
  const int* const sources = tags.data + place * (4 * CHUNK) + 3 * CHUNK;
  const float* const found = record_slopes.data + place * (CHUNK * BACK_WORDS);
  F moved[3], turned[9];
  for (int k = 0; k < 3; ++k) moved[k] = N::c(0.0f);
  for (int k = 0; k < 9; ++k) turned[k] = N::c(0.0f);
  for (int first = 0; first < count; first += LANES) {
    // Sixteen that were seen, side by side; the last repeated where they end, with derivatives of zero.
    float gathered[GEOMETRY_ROWS * LANES], seen_colours[48 * LANES];
    F s[BACK_WORDS], shades[48];
    int from[LANES];
    for (int lane = 0; lane < LANES; ++lane) {
      const int k = first + lane < count ? first + lane : count - 1;
      from[lane] = sources[k] % CHUNK;
      const int block = from[lane] / LANES, own = from[lane] % LANES;
      for (int i = 0; i < GEOMETRY_ROWS; ++i)
        gathered[i * LANES + lane] = rows[block * (GEOMETRY_ROWS * LANES) + i * LANES + own];
      for (int i = 0; i < 3 * coefficients; ++i)
        seen_colours[i * LANES + lane] = colours[block * (3 * coefficients * LANES) + i * LANES + own];
      for (int i = 0; i < BACK_WORDS; ++i) s[i][lane] = first + lane < count ? found[k * BACK_WORDS + i] : 0.0f;
    }
    Projection p = {camera, gathered, seen_colours, coefficients, width, height, flags, near, dilation};
    p.shape(p.in_front());
    p.look();
    ProjectionBack back;
    back.go(p, s);
    back.look(p, s, shades);
    for (int k = 0; k < 3; ++k) moved[k] = moved[k] - back.position[k];
    for (int k = 0; k < 9; ++k) turned[k] = turned[k] + back.turn[k];
    const F shift = N::sqrt(s[0] * s[0] + s[1] * s[1]);
    for (int lane = 0; lane < LANES && first + lane < count; ++lane) {
      const int block = from[lane] / LANES, own = from[lane] % LANES;
      float* const row = out + block * (SLOPE_ROWS * LANES) + own;
      for (int k = 0; k < 3; ++k) row[k * LANES] += back.position[k][lane];
      for (int k = 0; k < 9; ++k) row[(3 + k) * LANES] += back.axes[k][lane];
      row[12 * LANES] += back.opacity[lane];
      row[13 * LANES] += shift[lane];
      row[14 * LANES] += 1.0f;
      float* const shade = out_colours + block * (3 * coefficients * LANES) + own;
      for (int k = 0; k < 3 * coefficients; ++k) shade[k * LANES] += shades[k][lane];
    }
  }
  float* const pose = pose_slopes.data + place * 12;
  for (int k = 0; k < 3; ++k) pose[k] = L::sum(moved[k]);
  for (int k = 0; k < 9; ++k) pose[3 + k] = L::sum(turned[k]);
}
#endif
