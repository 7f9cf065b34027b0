// Commands on their way to the rotors of a vehicle with a dead time: a ring of DELAY_SLOTS of them, one per physics step. A dead time
// is a number of steps; between whole ones a step follows the mean of what is held over it, which is exact for the command's integral.
struct DelayLine {
  F kept[DELAY_SLOTS * ROTORS];  // oldest first when a launch begins
  F share[DELAY_SLOTS];          // of the command that is so many steps old
  int late[DELAY_SLOTS], count, next;
  // Tells what is read: few ages, since vehicles of a batch have much the same dead time.
  INLINE void set(F steps) {
    count = next = 0;
    for (int k = 0; k < DELAY_SLOTS; ++k) {
      const F off = N::abs(steps - N::c((float)k));
      share[k] = N::select(off < N::c(1.0f), 1.0f - off, N::c(0.0f));
      if (N::any(share[k] > N::c(0.0f))) late[count++] = k;
    }
  }
  // Takes the command of a step, and returns what reaches the rotors in it.
  INLINE void pass(const F* issued, F* acting) {
    for (int i = 0; i < ROTORS; ++i) {
      kept[next * ROTORS + i] = issued[i];
      acting[i] = N::c(0.0f);
    }
    for (int k = 0; k < count; ++k) {
      const F* const old = kept + ((next - late[k]) & (DELAY_SLOTS - 1)) * ROTORS;
      for (int i = 0; i < ROTORS; ++i) acting[i] += share[late[k]] * old[i];
    }
    next = (next + 1) & (DELAY_SLOTS - 1);
  }
  // What is to be stored as number k, oldest first.
  INLINE F stored(int k) { return kept[((next + k / ROTORS) & (DELAY_SLOTS - 1)) * ROTORS + k % ROTORS]; }
};
