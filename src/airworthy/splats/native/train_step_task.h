// The task of training/step_kernel.py: on a CPU a chunk; on a GPU a Gaussian, and in the second stage the bounds of a chunk.
#if LANES == 1
const int chunk_number = stage == 0 ? task / CHUNK : task;
#else
const int chunk_number = order.data[task];
#endif
ChunkRow& chunk = ((ChunkRow*)chunks.data)[chunk_number];
const int width = 3 * chunk.coefficients;
float* const geometry_rows = geometry.data + (size_t)chunk_number * (CHUNK * GEOMETRY_ROWS);
float* const raw_rows = raw.data + (size_t)chunk_number * (CHUNK * RAW_ROWS);
float* const moment_rows = moments.data + (size_t)chunk_number * (CHUNK * 2 * MOVED);
float* const slope_rows = slopes.data + (size_t)chunk_number * (CHUNK * SLOPE_ROWS);
const size_t shade = (size_t)chunk.harmonics * LANE_STRIDE;
bool any = stage == 1;
#if LANES == 1
const int first_block = task % CHUNK / LANE_STRIDE, last_block = stage == 0 ? first_block + 1 : first_block, lane = task % LANE_STRIDE;
#else
const int first_block = 0, last_block = CHUNK / LANES, lane = 0;
#endif
for (int block = first_block; block < last_block; ++block) {
  float* const found = slope_rows + block * (SLOPE_ROWS * LANE_STRIDE) + lane;
  const M rendered = Step::row(found, SLOPE_ROWS - 1) > 0.0f;
  if (!L::bits(rendered)) continue;
  any = true;
  Step step = {settings.data, geometry_rows + block * (GEOMETRY_ROWS * LANE_STRIDE) + lane,
               raw_rows + block * (RAW_ROWS * LANE_STRIDE) + lane, moment_rows + block * (2 * MOVED * LANE_STRIDE) + lane, found};
  step.rendered = rendered;
  const unsigned int number = (unsigned int)(chunk_number * CHUNK + block * LANE_STRIDE + lane);
#if LANES == 1
  step.go(number, (const unsigned int*)draw.data);
#else
  U numbers;
  for (int k = 0; k < LANES; ++k) numbers[k] = number + (unsigned int)k;
  step.go(numbers, (const unsigned int*)draw.data);
#endif
  const size_t here = shade + (size_t)block * (width * LANE_STRIDE) + lane;
  step.shades(harmonics.data + here, shade_moments.data + 2 * (here - lane) + lane, colour_slopes.data + here, chunk.coefficients);
}
#if LANES == 1
if (stage == 1) Bounds::of(geometry_rows, raw_rows, chunk);
#else
if (any) Bounds::of(geometry_rows, raw_rows, chunk);
#endif
