if (level > LEVEL_WRENCH && level != LEVEL_RATE_LOOP && level != LEVEL_CRAZYFLIE) {
      F hurried[ROTORS];
      T::rotor_lead(CTX, m, raw, hurried);
      for (int i = 0; i < ROTORS; ++i) raw[i] = hurried[i];
    }
