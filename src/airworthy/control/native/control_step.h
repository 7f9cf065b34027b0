// Where a vehicle does not hover level, its law reads the frame that does; for all others both frames have the same bits.
const F *steered_q = q, *steered_w = w;
F turned[4], turning[3];
if (HAS(E_LEANING)) {
  T::trimmed(CTX, q, w, turned, turning);
  steered_q = turned;
  steered_w = turning;
}
F asked[COMMAND_ROWS];
if (level == LEVEL_TRACKING || level == LEVEL_MELLINGER) {
  T::extrapolated(wanted, N::c((float)(begun + step) * dt), asked);
} else {
  for (int i = 0; i < command_rows; ++i) asked[i] = wanted[i];
}
if (level == LEVEL_CRAZYFLIE) {
  F remembered[9];
  T::control_crazyflie(CTX, p, v, steered_q, steered_w, asked, memory + 9, N::select(clock == N::u(0u), N::c(0.0f), N::c(1.0f)), N::c(dt), raw,
                       remembered);
  for (int i = 0; i < 9; ++i) memory[9 + i] = remembered[i];
} else {
  F thrusts[ROTORS];
  if (level == LEVEL_ROTOR_THRUST) {
    for (int i = 0; i < ROTORS; ++i) thrusts[i] = i < command_rows ? asked[i] : N::c(0.0f);
  } else {
    F wrench[6];
    for (int i = 0; i < 6; ++i) wrench[i] = N::c(0.0f);
    switch (level) {
      case LEVEL_WRENCH:
        for (int i = 0; i < 6; ++i) wrench[i] = asked[i];
        break;
CONTROL_CASES
      case LEVEL_RATE_LOOP: {
        F measured[3], remembered[9];
        for (int i = 0; i < 3; ++i) measured[i] = HAS(E_GYRO_FEEDBACK) ? imu[3 + i] : w[i];
        T::control_rate_loop(CTX, measured, asked, memory, N::c(dt), wrench, remembered);
        for (int i = 0; i < 9; ++i) memory[i] = remembered[i];
        break;
      }
      case LEVEL_MELLINGER: {
        F remembered[9];
        T::control_mellinger(CTX, p, v, steered_q, steered_w, asked, memory + 9,
                             N::select(clock == N::u(0u), N::c(0.0f), N::c(1.0f)), N::c(dt), wrench, remembered);
        for (int i = 0; i < 9; ++i) memory[9 + i] = remembered[i];
        break;
      }
    }
    // The bounded scheme equals the pseudo-inverse wherever that is within limits: it runs only where a lane needs it.
    F excess;
    T::allocate_pseudo_inverse(CTX, wrench, thrusts, &excess);
    if (!HAS(E_PSEUDO_INVERSE) && N::any(N::invert(excess <= N::c(0.0f)))) {
      if (HAS(E_YAW_BEFORE_FORCE))
        T::allocate_yaw_before_force(CTX, wrench, thrusts);
      else if (HAS(E_FORCE_FIRST))
        T::allocate_force_first(CTX, wrench, thrusts);
      else
        T::allocate_bounded(CTX, wrench, thrusts);
    }
  }
  T::rotor_states(CTX, thrusts, raw);
}
