// One flight's image: of the cells that it touched, what the local map says of them goes into the memory. A cell becomes occupied
// above `most`, free at or below `least` once it was seen; between the two it stays what it was. Rays of the local map end at cells
// that others walked before, which leaves holes near the camera: an unknown cell is free where `hole` of its 26 neighbours are and
// none is occupied.
// What is occupied in the middle of cells that rays have passed before has come there: it is marked, and told; where a flight
// follows what moves (the last of its sizes) it is told once, and the cell stays free.
const int* const size = sizes.data + 16 * (size_t)task;
KnownSpace space;
space.begin((const unsigned long long*)address.data + 5 * (size_t)task, size, numbers.data + 4 * (size_t)task);
const short* const odds = (const short*)address.data[5 * (size_t)task + 4];
const int* const side = size + 3;
const int* const shift = size + 6;
const int* const lo = size + 9;
const int* const hi = size + 12;
int* const came = entered.data + (size_t)(1 + 3 * room) * task;
int changed = 0;
for (int x = lo[0]; x < hi[0]; ++x)
  for (int y = lo[1]; y < hi[1]; ++y) {
    const short* const row = odds + ((size_t)((x + shift[0]) % side[0]) * side[1] + (y + shift[1]) % side[1]) * side[2];
    const size_t first = space.at(x, y, 0);
    int slot = (lo[2] + shift[2]) % side[2];
    for (int z = lo[2]; z < hi[2]; ++z) {
      const int seen = row[slot];
      if (++slot == side[2]) slot = 0;
      if (seen < known) continue;
      const int state = seen > most ? KnownSpace::OCCUPIED : seen <= least ? KnownSpace::FREE : -1;
      if (state < 0) continue;
      unsigned short& held = space.cell[first + z];
      if (state == KnownSpace::FREE && seen_through) held = (unsigned short)((held | KnownSpace::WAS_FREE) & ~KnownSpace::ENTERED);
      const int before = held & KnownSpace::STATE;
      if (before == state) continue;
      const bool comes = before == KnownSpace::FREE && state == KnownSpace::OCCUPIED && space.was_open(x, y, z);
      const bool followed = comes && size[15] && (came[0] < room || (held & KnownSpace::ENTERED));
      if (!followed) changed += space.set(x, y, z, state, ball.data, ball_count, ring.data, ring_count);
      if (!comes || (followed && (held & KnownSpace::ENTERED))) continue;
      held |= KnownSpace::ENTERED;
      if (came[0] >= room) continue;
      const int at[3] = {x, y, z};
      for (int a = 0; a < 3; ++a) came[1 + 3 * came[0] + a] = at[a];
      ++came[0];
    }
  }
for (int x = lo[0]; x < hi[0]; ++x)
  for (int y = lo[1]; y < hi[1]; ++y)
    for (int z = lo[2]; z < hi[2]; ++z)
      if (space.is_hole(x, y, z, hole)) changed += space.set(x, y, z, KnownSpace::FREE, ball.data, ball_count, ring.data, ring_count);
result.data[task] = changed;
