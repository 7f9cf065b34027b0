// What vehicles with a dead time from command to rotor put into rigid_step.cpp, behind control: a section per hook.
//@ DELAY_LOAD
DELAY_LINE
DelayLine line;
F issued[ROTORS];
line.set(PAR(P_command_delay));
for (int k = 0; k < DELAY_SLOTS * ROTORS; ++k) line.kept[k] = N::load(STATE(S_rotor_queue + k));
for (int i = 0; i < ROTORS; ++i) issued[i] = command[i];
//@ DELAY_STEP
  {
    F acting[ROTORS];
    line.pass(issued, acting);
    for (int i = 0; i < ROTORS; ++i) command[i] = N::select(alive, acting[i], command[i]);
  }
//@ DELAY_STORE
for (int k = 0; k < DELAY_SLOTS * ROTORS; ++k) STORE(S_rotor_queue + k, line.stored(k));
