// A task is one block of points on a CPU, one point on a GPU.
const int count = settings.data[0], each = settings.data[1], kind = settings.data[2];
const int block = LANES == 1 ? 1 : 256;
for (int p = task * block; p < (task + 1) * block && p < count; ++p) {
  const int place = flight.data[p / each];
  const double* const corners = box_numbers.data + 6 * (size_t)place;
  const int* const whole = box_cells.data + 9 * (size_t)place;
  const Lookup map = {corners, corners + 3, whole, whole + 3, whole + 6, (size_t)box_base.data[place], resolution};
  const double* const at = points.data + 3 * (size_t)p;
  if (kind == 0) taken.data[p] = map.occupied(inflated.data, at);
  else map.distance(squared.data, at, answers.data + 4 * (size_t)p);
}
