// One worker: its share of the flights, one after the other.
for (int which = worker; which < count; which += workers) {
  const RoadmapAsked& ask = ((const RoadmapAsked*)asked.data)[which];
  RoadmapFound& got = ((RoadmapFound*)found.data)[which];
  char* own = (char*)(work.data + (long long)worker * work_size);
  Roadmap map;
  map.sight.begin((const Window*)windows.data + ask.window);
  map.nodes = (Road*)own;
  map.edges = (Edge*)(map.nodes + ask.samples + 2);
  map.raw = (int*)(map.edges + 4 * ask.samples);
  map.raw_size = map.raw + (long long)ask.most_raw * MOST_DEPTH;
  double* paths = (double*)(map.raw_size + (ask.most_raw + 1) / 2 * 2);
  double* spare = paths + (long long)ask.most_paths * 3 * MOST_CORNERS;
  int* sizes = (int*)(spare + 3 * MOST_CORNERS);
  map.node_count = map.edge_count = map.raw_count = 0;
  map.add(ask.start, 1);
  map.add(ask.end, 1);

  // Samples fill a box along the line between the ends.
  const double way = Sight::apart(ask.start, ask.end);
  double x[3], y[3], z[3], flat = 0.0;
  for (int k = 0; k < 3; ++k) x[k] = way > 0.0 ? (ask.end[k] - ask.start[k]) / way : (k == 0 ? 1.0 : 0.0);
  flat = ::sqrt(x[0] * x[0] + x[1] * x[1]);
  // x cross (0, 0, -1); straight up or down, any level direction.
  y[0] = flat > 1e-9 ? -x[1] / flat : 0.0;
  y[1] = flat > 1e-9 ? x[0] / flat : 1.0;
  y[2] = 0.0;
  z[0] = x[1] * y[2] - x[2] * y[1];
  z[1] = x[2] * y[0] - x[0] * y[2];
  z[2] = x[0] * y[1] - x[1] * y[0];
  const double half = 0.5 * way + ask.wider[0];
  double* corners = paths;
  int corner_count = 0;
  for (int i = 0; i < 8; ++i, ++corner_count)
    for (int k = 0; k < 3; ++k)
      corners[3 * i + k] = 0.5 * (ask.start[k] + ask.end[k]) + (i & 1 ? half : -half) * x[k] +
                           (i & 2 ? 1.0 : -1.0) * ask.wider[1] * y[k] + (i & 4 ? 1.0 : -1.0) * ask.wider[2] * z[k];
  for (int k = 0; k < 3 * ask.heads; ++k) corners[3 * corner_count + k] = ask.head[k];
  corner_count += ask.heads;
  for (int k = 0; k < 3 * ask.tails; ++k) corners[3 * corner_count + k] = ask.tail[k];
  map.sight.note(corners, corner_count + ask.tails, (unsigned char*)(sizes + (ask.most_paths + 1) / 2 * 2));
  for (int s = 0; s < ask.samples; ++s) {
    double p[3];
    const unsigned* key = (const unsigned*)ask.key;
    const unsigned counter[4] = {(unsigned)ask.attempt * (unsigned)ask.samples + (unsigned)s, (unsigned)ask.stream, 0u, 0u};
    unsigned drawn[4];
    Threefry::words(key, counter, drawn);
    const double a = (2.0 * Threefry::uniform(drawn[0]) - 1.0) * half;
    const double b = (2.0 * Threefry::uniform(drawn[1]) - 1.0) * ask.wider[1];
    const double c = (2.0 * Threefry::uniform(drawn[2]) - 1.0) * ask.wider[2];
    for (int k = 0; k < 3; ++k) p[k] = 0.5 * (ask.start[k] + ask.end[k]) + a * x[k] + b * y[k] + c * z[k];
    if (!map.sight.shut_at(p, ask.clearance)) map.sample(p);
  }
  map.prune();
  got.nodes = 0;
  for (int i = 0; i < map.node_count; ++i) got.nodes += i < 2 || map.nodes[i].neighbours > 0;
  map.enumerate(ask.most_raw, ask.effort);
  got.raw = map.raw_count;

  // Those of the fewest nodes, shortened; of equivalent ones the first.
  int kept = 0;
  for (int size = 2; size <= MOST_DEPTH && kept < ask.most_paths; ++size)
    for (int r = 0; r < map.raw_count && kept < ask.most_paths; ++r) {
      if (map.raw_size[r] != size) continue;
      double* path = paths + (long long)kept * 3 * MOST_CORNERS;
      for (int i = 0; i < size; ++i)
        for (int k = 0; k < 3; ++k) path[3 * i + k] = map.nodes[map.raw[r * MOST_DEPTH + i]].position[k];
      sizes[kept++] = map.sight.shortcut(path, size, 1, spare);
    }
  int distinct = 0;
  for (int i = 0; i < kept; ++i) {
    const double* path = paths + (long long)i * 3 * MOST_CORNERS;
    bool fresh = true;
    for (int j = 0; j < distinct && fresh; ++j)
      fresh = !map.sight.equivalent(path, sizes[i], paths + (long long)j * 3 * MOST_CORNERS, sizes[j]);
    if (!fresh) continue;
    double* to = paths + (long long)distinct * 3 * MOST_CORNERS;
    for (int k = 0; k < 3 * sizes[i]; ++k) to[k] = path[k];
    sizes[distinct++] = sizes[i];
  }
  got.distinct = distinct;

  // The shortest of them, with what is flown before and after, shortened again.
  got.paths = 0;
  double shortest = 0.0;
  for (int taken = 0; taken < ask.reserve && taken < distinct; ++taken) {
    int best = -1;
    double least = 1e300;
    for (int i = 0; i < distinct; ++i) {
      if (sizes[i] == 0) continue;
      const double l = Sight::length(paths + (long long)i * 3 * MOST_CORNERS, sizes[i]);
      if (l < least) {
        least = l;
        best = i;
      }
    }
    if (taken == 0) shortest = least;
    if (taken > 0 && !(least / shortest < ask.ratio)) break;
    const int middle = sizes[best], all = ask.heads + middle + ask.tails;
    sizes[best] = 0;
    if (all > MOST_CORNERS) continue;
    double* to = got.points + (long long)got.paths * 3 * MOST_CORNERS;
    for (int k = 0; k < 3 * ask.heads; ++k) to[k] = ask.head[k];
    for (int k = 0; k < 3 * middle; ++k) to[3 * ask.heads + k] = paths[(long long)best * 3 * MOST_CORNERS + k];
    for (int k = 0; k < 3 * ask.tails; ++k) to[3 * (ask.heads + middle) + k] = ask.tail[k];
    const int size = map.sight.shortcut(to, all, 5, spare);
    bool fresh = true;
    for (int j = 0; j < got.paths && fresh; ++j)
      fresh = !map.sight.equivalent(to, size, got.points + (long long)j * 3 * MOST_CORNERS, got.sizes[j]);
    if (fresh) got.sizes[got.paths++] = size;
  }
}
