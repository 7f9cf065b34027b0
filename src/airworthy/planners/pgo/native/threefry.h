// Threefry4x32 with 13 rounds, one call at a time. Twin: airworthy.core.random.
struct Threefry {
  static INLINE unsigned turned(unsigned x, int bits) { return (x << bits) | (x >> (32 - bits)); }
  static INLINE void words(const unsigned* key, const unsigned* counter, unsigned* x) {
    const int turns[8][2] = {{10, 26}, {11, 21}, {13, 27}, {23, 5}, {6, 20}, {17, 11}, {25, 10}, {18, 20}};
    const unsigned k[5] = {key[0], key[1], key[2], key[3], 0x1BD11BDAu ^ key[0] ^ key[1] ^ key[2] ^ key[3]};
    for (int i = 0; i < 4; ++i) x[i] = counter[i] + k[i];
    for (int r = 0; r < 13; ++r) {
      const int a = r % 2 == 0 ? 1 : 3, b = r % 2 == 0 ? 3 : 1;
      x[0] += x[a];
      x[a] = turned(x[a], turns[r % 8][0]) ^ x[0];
      x[2] += x[b];
      x[b] = turned(x[b], turns[r % 8][1]) ^ x[2];
      if (r % 4 != 3) continue;
      const unsigned count = (unsigned)(r / 4 + 1);
      for (int i = 0; i < 4; ++i) x[i] += k[(count + i) % 5];
      x[3] += count;
    }
  }
  static INLINE double uniform(unsigned word) { return ((double)(word >> 9) + 0.5) * (1.0 / 8388608.0); }
};
