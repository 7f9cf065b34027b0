// Eight rotors, each of one response, from their first command to the last, one step after the other.
const int rotors = (int)count, pairs = (int)(responses.shape[0] / 4) * rotors;
const long long steps = (long long)values.shape[0] / rotors;
Response response;
response.slowest = slowest;
int rotor[LANE_COUNT];
double* out[LANE_COUNT];
for (int i = 0; i < LANE_COUNT; ++i) {
  // Behind the last pair it stands once more.
  const int pair = LANE_COUNT * task + i < pairs ? LANE_COUNT * task + i : pairs - 1;
  rotor[i] = pair % rotors;
  const double* row = responses.data + 4 * (pair / rotors);
  for (int side = 0; side < 2; ++side) response.a[side][i] = row[2 * side], response.b[side][i] = row[2 * side + 1];
  out[i] = states.data + (long long)(pair / rotors) * (steps + 1) * rotors + rotor[i];
}
response.look();
V state;
for (int i = 0; i < LANE_COUNT; ++i) state[i] = values.data[rotor[i]], *out[i] = state[i];
// Of a lag that is the same at any speed no command says how much is left.
if (response.linear) response.hold((V)0.0, (V)period);
for (long long k = 0; k < steps; ++k) {
  V command;
  for (int i = 0; i < LANE_COUNT; ++i) command[i] = values.data[k * rotors + rotor[i]];
  if (!response.linear) response.hold(command, (V)period);
  state = response.after(state, command);
  for (int i = 0; i < LANE_COUNT; ++i) out[i][(k + 1) * rotors] = state[i];
}
