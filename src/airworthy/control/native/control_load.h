F memory[18];  // rate loop: filtered, slope, integral; Mellinger: position and attitude integral, rate error
if (level >= LEVEL_WITH_MEMORY)
  for (int i = 0; i < 18; ++i) memory[i] = N::load(STATE(S_rate_filtered + i));
