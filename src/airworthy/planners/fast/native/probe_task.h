// Distances at the cells of points.
for (int which = worker; which < count; which += workers) {
  Probe& p = ((Probe*)asked.data)[which];
  const Known known = {(const Window*)windows.data + p.window};
  for (int i = 0; i < p.count; ++i) {
    const double* at = p.points + 3 * i;
    const int a = known.index(at[0], 0), b = known.index(at[1], 1), c = known.index(at[2], 2);
    p.distance[i] = known.inside(a, b, c) ? known.metres(a, b, c) : (double)FAR;
  }
}
