// Lists of Gaussians per tile, front to back. On a CPU a task is a band of tile rows of one camera: it collects what meets the
// band, sorts that by depth (stable, so that equal depths stay in the order of the Gaussians), and deals it out to the tiles. Twice
// the same walk: the first counts, the second writes. On a GPU tasks write (tile, depth) keys that Warp's radix sort orders.
#if LANES != 1
struct Entry {
  unsigned int key;  // of the depth; once sorted, the tiles that it meets
  int place;         // of the record, within the camera
};
struct Band {
  int top, end;  // rows of tiles: first, one past the last
  int columns;
  const Record* records;
  const int* tags;

  INLINE Span span(int place) const {
    const int* const notes = tags + (size_t)(place / CHUNK) * (4 * CHUNK) + place % CHUNK;
    Span s(notes[0], notes[CHUNK]);
    if (s.top < top) s.top = top;
    if (s.bottom >= end) s.bottom = end - 1;
    return s;
  }

  INLINE int collect(const int* counts, int chunks, Entry* out) const {
    int n = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int count = counts[2 * chunk], rows = counts[2 * chunk + 1];
      if (!count || (rows & 0xffff) >= end || rows >> 16 < top) continue;
      const int* const notes = tags + (size_t)chunk * (4 * CHUNK);
      for (int k = 0; k < count; ++k) {
        out[n].key = (unsigned int)notes[2 * CHUNK + k];
        out[n].place = chunk * CHUNK + k;
        n += ((notes[k] & 0xffff) < end) & (notes[k] >> 16 >= top);
      }
    }
    return n;
  }

  // Least significant digit first; every pass keeps the order of equal digits. Where all have the same digit nothing moves.
  static INLINE Entry* sort(Entry* from, Entry* to, int n) {
    int digits[DIGITS][1 << DIGIT_BITS];
    for (int d = 0; d < DIGITS; ++d)
      for (int k = 0; k < 1 << DIGIT_BITS; ++k) digits[d][k] = 0;
    for (int e = 0; e < n; ++e)
      for (int d = 0; d < DIGITS; ++d) ++digits[d][from[e].key >> (d * DIGIT_BITS) & ((1 << DIGIT_BITS) - 1)];
    for (int d = 0; d < DIGITS; ++d) {
      int* const start = digits[d];
      if (n && start[from[0].key >> (d * DIGIT_BITS) & ((1 << DIGIT_BITS) - 1)] == n) continue;
      int sum = 0;
      for (int k = 0; k < 1 << DIGIT_BITS; ++k) {
        const int count = start[k];
        start[k] = sum;
        sum += count;
      }
      for (int e = 0; e < n; ++e) to[start[from[e].key >> (d * DIGIT_BITS) & ((1 << DIGIT_BITS) - 1)]++] = from[e];
      Entry* const swap = from;
      from = to;
      to = swap;
    }
    return from;
  }

  // Every tile of the band that each Gaussian meets. First counts them, row by row; then, `tiles` being where each tile's list
  // goes on, appends the Gaussian to the list.
  INLINE void deal(Entry* entries, int n, int* tiles, int* list, const bool writing) const {
    for (int e = 0; e < n; ++e) {
      if (e + AHEAD < n) fetch_ahead(entries[e + AHEAD].place, writing);
      const int place = entries[e].place;
      const Span s = span(place);
      int* const first = tiles + (s.top - top) * columns;
      if (s.thin) {
        for (int row = s.top; row <= s.bottom; ++row)
          for (int column = s.left; column <= s.right; ++column)
            put(first + (row - s.top) * columns + column, place, list, writing);
        continue;
      }
      for (int row = s.top; row <= s.bottom; row += TEST_SIDE) {
        for (int column = s.left; column <= s.right; column += TEST_SIDE) {
          unsigned int met = entries[e].key;
          if (!(writing && s.small()))
            met = Span::met(records[place], row, column) & Span::within(s.bottom - row + 1, s.right - column + 1);
          entries[e].key = met;
          int* const corner = first + (row - s.top) * columns + column;
          for (; met; met &= met - 1) {
            const int bit = __builtin_ctz(met);
            put(corner + bit / TEST_SIDE * columns + bit % TEST_SIDE, place, list, writing);
          }
        }
      }
    }
  }
  static INLINE void put(int* tile, int place, int* list, const bool writing) {
    if (writing) list[*tile] = place;
    ++*tile;
  }

  INLINE void fetch_ahead(int place, const bool writing) const {
    const int* const notes = tags + (size_t)(place / CHUNK) * (4 * CHUNK) + place % CHUNK;
    __builtin_prefetch(notes);
    __builtin_prefetch(notes + CHUNK);
    if (!writing) __builtin_prefetch(records + place);
  }
};
#endif
