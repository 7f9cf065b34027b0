// The update of the maps of some flights. On a CPU a task takes every `tasks`-th of them through all stages; on a GPU there is a launch
// per stage, and `parts` threads share a flight.
const int frames = settings.data[0], tasks = settings.data[1], parts = settings.data[2], stages = settings.data[3];
const int pixels = settings.data[4], image = settings.data[5], counts_size = settings.data[6];
const int* const rule = settings.data + 7;
const long long work_size = sizes.data[0];
const double* const number = numbers.data;
const int chunk = task / parts, part = task % parts;
for (int at = chunk; at < frames; at += tasks) {
  const double* const row = frame_numbers.data + (size_t)at * 18;
  const int* const whole = frame_cells.data + (size_t)at * 12;
  const size_t base = frame_base.data[at];
  const Frame f = {
      row, row + 12, row + 15, whole, whole + 3, whole + 6, whole + 9,
      odds.data + base, inflated.data + base, rule[10] ? squared.data + base : squared.data,
      bounds.data + (size_t)at * 6, counts.data + (size_t)chunk * counts_size, work.data + (size_t)chunk * work_size,
      rule[0], rule[1], rule[2], rule[3], rule[4], rule[5], rule[6], rule[7], rule[8], rule[9], rule[10], rule[11]};
  if (stages & 1) Slide::run(f, part, parts);
  if ((stages & 2) && part == 0) Trace::run(f, number, rays.data, pixel.data, pixels, depth.data + (size_t)at * image);
  if (stages & 4) Apply::run(f, number, part, parts);
  if (stages & 8) Inflate::along_z_and_y(f, part, parts);
  if (stages & 16) Inflate::along_x(f, part, parts);
  if ((stages & 32) && part == 0) Cloud::run(f, number, cloud.data + (size_t)at * image, pixels);
  if (f.with_field && (stages & 64)) Field::along_x(f, part, parts);
  if (f.with_field && (stages & 128)) Field::along_y_and_z(f, part, parts);
}
