// Balls along a path: the first that is not known to be free, and why (`KnownSpace::meets`; OUTSIDE: it leaves the box).
KnownSpace space;
space.begin((const unsigned long long*)address.data + 4 * (size_t)row.data[task], sizes.data + 3 * (size_t)row.data[task],
            numbers.data + 4 * (size_t)row.data[task]);
const double* const box = boxes.data + 6 * (size_t)row.data[task];
const int first = begin.data[task], last = begin.data[task + 1];
int at = first, why = 0;
for (; at < last && why == 0; ++at) {
  const double* const p = points.data + 3 * (size_t)at;
  for (int a = 0; a < 3; ++a)
    if (!(p[a] >= box[a] && p[a] <= box[3 + a])) why = OUTSIDE;
  if (why == 0) why = space.meets(p, wide.data[task], sure.data[task]);
}
result.data[2 * task] = why ? at - 1 - first : last - first;
result.data[2 * task + 1] = why;
