// Balls along a path: the first that is not known to be free, and why (`KnownSpace::meets`; OUTSIDE: it leaves the box).
KnownSpace space;
space.begin((const unsigned long long*)address.data, sizes.data, numbers.data);
const int first = begin.data[task], last = begin.data[task + 1];
int at = first, why = 0;
for (; at < last && why == 0; ++at) {
  const double* const p = points.data + 3 * (size_t)at;
  for (int a = 0; a < 3; ++a)
    if (!(p[a] >= box.data[a] && p[a] <= box.data[3 + a])) why = OUTSIDE;
  if (why == 0) why = space.meets(p, wide.data[task], sure.data[task]);
}
result.data[2 * task] = why ? at - 1 - first : last - first;
result.data[2 * task + 1] = why;
