// One worker: its share of the flights, one after the other, in its own work memory.
const Settings& set = *(const Settings*)settings.data;
KinoSearch s;
s.nodes = (Node*)(work.data + (long long)worker * work_size);
s.heap = (int*)(s.nodes + set.capacity);
s.table = tables.data + (long long)worker * slots;
s.capacity = set.capacity;
s.slots = slots;
s.count = s.size = 0;
s.weight = set.weight;
s.greed = set.greed;
for (int flight = worker; flight < count; flight += workers) {
  const Problem& p = ((const Problem*)asked.data)[flight];
  Found& f = ((Found*)found.data)[flight];
  s.known = {(const Window*)windows.data + flight};
  s.speed = p.speed;
  s.goal = p.goal;
  f.status = NO_PATH;
  f.expansions = f.nodes = f.steps = 0;
  f.attempts = 0;
  // First with the present acceleration held on, for a smooth start; where that leads nowhere, without.
  for (int attempt = p.held ? 0 : 1; attempt < 2 && f.status == NO_PATH; ++attempt) {
    ++f.attempts;
    s.clear();
    s.expansions = 0;
    const double none[3] = {0.0, 0.0, 0.0};
    int slot, last = -1, cell[3];
    for (int k = 0; k < 3; ++k) cell[k] = s.known.index(p.start[k], k);
    s.find(cell, &slot);
    s.set(s.nodes[0], p.start, none, 0.0, -1, 0.0, s.ahead(p.start));
    s.add(cell, slot);
    bool room = true;
    while (s.size > 0 && room) {
      const int best = s.heap[0];
      const Node& n = s.nodes[best];
      double square = 0.0;
      bool near = true;
      for (int k = 0; k < 3; ++k) {
        square += (n.state[k] - p.start[k]) * (n.state[k] - p.start[k]);
        near = near && abs(n.cell[k] - s.known.index(p.goal[k], k)) <= (int)::ceil(1.0 / s.known.w->resolution);
      }
      const bool far = ::sqrt(square) >= set.horizon;
      if (far || near) {
        const bool joined = near && s.connect(n.state, f.curve, &f.curve_time);
        f.status = joined ? REACH_END : (far ? REACH_HORIZON : (n.parent >= 0 ? NEAR_END : NO_PATH));
        if (f.status != NO_PATH) last = best;
        break;
      }
      s.pop();
      ++s.expansions;
      const int born = s.count;
      if (best == 0 && attempt == 0) {
        for (int k = 1; k <= 20 && room; ++k) room = s.offer(0, born, p.acceleration, set.first_time * k / 20, set.checks);
        continue;
      }
      for (int k = 0; k < 125 && room; ++k) {
        const double input[3] = {p.most * (k / 25 - 2) / 2, p.most * (k / 5 % 5 - 2) / 2, p.most * (k % 5 - 2) / 2};
        room = s.offer(best, born, input, set.step_time, set.checks);
      }
    }
    f.expansions += s.expansions;
    f.nodes += s.count;
    // From the last node to the first; the caller turns it round.
    for (int at = last; at >= 0 && s.nodes[at].parent >= 0; at = s.nodes[at].parent) {
      if (f.steps == MOST_STEPS) {
        f.status = NO_PATH;
        f.steps = 0;
        break;
      }
      const Node &n = s.nodes[at], &from = s.nodes[n.parent];
      double* row = f.path + 10 * f.steps++;
      for (int k = 0; k < 6; ++k) row[k] = from.state[k];
      for (int k = 0; k < 3; ++k) row[6 + k] = n.input[k];
      row[9] = n.duration;
    }
  }
}
s.clear();
