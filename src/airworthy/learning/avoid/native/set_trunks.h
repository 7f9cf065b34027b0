// One place: candidates are tried in order, and one that leaves a gap to all trunks before it, across the edges, too, is set.
const float* tried = candidates.data + 3 * (long long)try_count * task;
float* found = trunks.data + 3 * (long long)room * task;
int count = 0;
for (int k = 0; k < try_count && count < room; ++k) {
  const float x = tried[3 * k], y = tried[3 * k + 1], r = tried[3 * k + 2];
  bool fits = true;
  for (int i = 0; i < count && fits; ++i) {
    float dx = __builtin_fabsf(found[3 * i] - x), dy = __builtin_fabsf(found[3 * i + 1] - y);
    dx = dx < side - dx ? dx : side - dx;
    dy = dy < side - dy ? dy : side - dy;
    const float least = gap + r + found[3 * i + 2];
    fits = dx * dx + dy * dy >= least * least;
  }
  if (!fits) continue;
  found[3 * count] = x, found[3 * count + 1] = y, found[3 * count++ + 2] = r;
}
set_count.data[task] = count;
