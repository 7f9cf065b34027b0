// States of all rotors in eight windows, by one response and dead time: `HeldCommand.at`, at the ends and the middle of each step.
const int rotors = (int)count, blocks = (int)(starts.shape[0] / LANE_COUNT), pair = task / blocks, block = task % blocks;
const long long held = (long long)values.shape[0] / rotors;
const double* known = edges.data + (long long)of.data[pair] * (held + 1) * rotors;
double* out = states.data + (long long)task * places * rotors * LANE_COUNT;
const double* row = pairs.data + 5 * pair;
Response response;
response.slowest = slowest;
for (int side = 0; side < 2; ++side) response.a[side] = (V)row[2 * side], response.b[side] = (V)row[2 * side + 1];
response.look();
const V start = L::load(starts.data + LANE_COUNT * block);
const V most = (V)((double)held - 1e-9);
for (int place = 0; place < places; ++place) {
  const V time = start + (V)(half * place) - (V)row[4];
  V step = (time - (V)begin) / (V)period;
  step = L::select(step < (V)0.0, (V)0.0, L::select(step > most, most, step));
  // A dead time that is no number has no place.
  const K index = __builtin_convertvector(L::select(step >= (V)0.0, step, (V)0.0), K);
  const V elapsed = (step - __builtin_convertvector(index, V)) * (V)period;
  if (response.linear) response.hold((V)0.0, elapsed);
  for (int rotor = 0; rotor < rotors; ++rotor) {
    V state, command;
    for (int i = 0; i < LANE_COUNT; ++i) {
      state[i] = known[index[i] * rotors + rotor];
      command[i] = values.data[index[i] * rotors + rotor];
    }
    if (!response.linear) response.hold(command, elapsed);
    L::store(out + ((long long)place * rotors + rotor) * LANE_COUNT, response.after(state, command));
  }
}
