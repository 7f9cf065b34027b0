// Contact of vehicles, boxes themselves, with the walls and boxes of their rooms. The twin is airworthy.learning.environments.rooms.
// BODY_MIDDLE and BODY_HALF are the vehicle's, BOXES and PANELS the most of a room; `pool` holds BOX numbers per box.
struct Rooms {
#if LANES == 1
  static INLINE float of(const F& x, int) { return x; }
  static INLINE void mark(M& m, int) { m = true; }
#else
  static INLINE float of(const F& x, int lane) { return x[lane]; }
  static INLINE void mark(M& m, int lane) { m[lane] = -1; }
#endif
  enum { BOX = 15 };
  static INLINE float size(float x) { return __builtin_fabsf(x); }
  static INLINE float dot3(const float* a, const float* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

  // Boxes that one flight can touch before it has moved farther than `travel` from where it was.
  struct Near {
    float from[3], travel;
    int count, which[BOXES];
  };
  // Middle of a box of a room, world.
  static INLINE void middle_of(const float* box, const float* place, float* at) {
    for (int k = 0; k < 3; ++k) at[k] = place[3 + k] + box[k] * (place[6 + k] - place[3 + k]);
  }
  static INLINE void gather(Near& near, const float* room, const float* place, const float* position, float travel) {
    const float reach = __builtin_sqrtf(BODY_REACH_SQUARE);
    near.count = 0, near.travel = travel;
    for (int k = 0; k < 3; ++k) near.from[k] = position[k];
    const int panels = (int)place[1], objects = (int)place[2];
    for (int k = 0; k < BOXES; ++k) {
      if (k < PANELS ? k >= panels : k - PANELS >= objects) continue;
      const float* box = room + BOX * k;
      float at[3];
      middle_of(box, place, at);
      for (int i = 0; i < 3; ++i) at[i] -= position[i];
      const float far = reach + travel + __builtin_sqrtf(dot3(box + 12, box + 12));
      if (dot3(at, at) < far * far) near.which[near.count++] = k;
    }
  }

  // Whether an axis may not part the two: `away` along it is at most what both reach.
  static INLINE bool meets(const float* axes, const float* middle, const float* box, const float* place) {
    float at[3], cosine[3][3], grown[3][3], along[3];
    middle_of(box, place, at);
    for (int k = 0; k < 3; ++k) at[k] -= middle[k];
    const float *half = BODY_HALF, *turned = box + 3, *edge = box + 12;
    // Columns of both matrices are directions of edges; a float's rounding is covered by what cosines are grown by.
    for (int i = 0; i < 3; ++i) {
      along[i] = axes[i] * at[0] + axes[3 + i] * at[1] + axes[6 + i] * at[2];
      for (int j = 0; j < 3; ++j) {
        cosine[i][j] = axes[i] * turned[j] + axes[3 + i] * turned[3 + j] + axes[6 + i] * turned[6 + j];
        grown[i][j] = size(cosine[i][j]) + 1e-6f;
      }
    }
    for (int i = 0; i < 3; ++i)
      if (size(along[i]) > half[i] + dot3(grown[i], edge)) return false;
    for (int j = 0; j < 3; ++j) {
      const float far = turned[j] * at[0] + turned[3 + j] * at[1] + turned[6 + j] * at[2];
      if (size(far) > edge[j] + half[0] * grown[0][j] + half[1] * grown[1][j] + half[2] * grown[2][j]) return false;
    }
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        const int a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, d = (j + 2) % 3;
        const float far = along[b] * cosine[a][j] - along[a] * cosine[b][j];
        if (size(far) > half[a] * grown[b][j] + half[b] * grown[a][j] + edge[c] * grown[i][d] + edge[d] * grown[i][c]) return false;
      }
    return true;
  }

  // Of one lane: whether it touches a wall or a box now. `s` is the state, `place` the flight's.
  static INLINE bool touches(Near& near, const float* pool, const F* s, const float* place, int lane) {
    float position[3], axes[9], middle[3];
    for (int k = 0; k < 3; ++k) position[k] = of(s[k], lane);
    const float x = of(s[6], lane), y = of(s[7], lane), z = of(s[8], lane), w = of(s[9], lane);
    axes[0] = 1.0f - 2.0f * (y * y + z * z), axes[1] = 2.0f * (x * y - w * z), axes[2] = 2.0f * (x * z + w * y);
    axes[3] = 2.0f * (x * y + w * z), axes[4] = 1.0f - 2.0f * (x * x + z * z), axes[5] = 2.0f * (y * z - w * x);
    axes[6] = 2.0f * (x * z - w * y), axes[7] = 2.0f * (y * z + w * x), axes[8] = 1.0f - 2.0f * (x * x + y * y);
    for (int k = 0; k < 3; ++k) {
      middle[k] = position[k] + dot3(axes + 3 * k, BODY_MIDDLE);
      const float reach = size(axes[3 * k]) * BODY_HALF[0] + size(axes[3 * k + 1]) * BODY_HALF[1] + size(axes[3 * k + 2]) * BODY_HALF[2];
      if (middle[k] - reach < place[3 + k] + WALL || middle[k] + reach > place[6 + k] - WALL) return true;
    }
    const float* room = pool + (long long)BOX * BOXES * (int)place[0];
    float moved = 0.0f;
    for (int k = 0; k < 3; ++k) moved += (position[k] - near.from[k]) * (position[k] - near.from[k]);
    // A tenth of a metre more than it went in the last step of the policy: few lists are made twice.
    if (!(moved <= near.travel * near.travel)) gather(near, room, place, position, near.travel + 0.1f);
    for (int k = 0; k < near.count; ++k)
      if (meets(axes, middle, room + BOX * near.which[k], place)) return true;
    return false;
  }
};
