if (level >= LEVEL_WITH_MEMORY)
  for (int i = 0; i < 18; ++i) STORE(S_rate_filtered + i, memory[i]);
