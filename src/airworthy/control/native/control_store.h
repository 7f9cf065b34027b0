if (level >= LEVEL_WITH_MEMORY)
  for (int i = 0; i < 18; ++i) N::store(STATE(S_rate_filtered + i), memory[i]);
