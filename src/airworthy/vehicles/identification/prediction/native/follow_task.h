// One rotor of one response from its first command to its last: `held_command.followed`, step after step.
const int rotors = (int)count, response = task / rotors, rotor = task % rotors;
const long long steps = (long long)values.shape[0] / rotors;
const double* row = responses.data + 4 * response;
double* out = states.data + (long long)response * (steps + 1) * rotors + rotor;
double state = values.data[rotor];
out[0] = state;
// Commands stay for many periods of a dense lattice, and what follows from them with them.
double command = 0.0, gone[2] = {1.0, 1.0}, bend[2] = {0.0, 0.0};
bool known = false;
for (long long k = 0; k < steps; ++k) {
  const double next = values.data[k * rotors + rotor];
  if (!known || next != command) {
    command = next;
    known = true;
    for (int side = 0; side < 2; ++side) {
      const double a = row[2 * side], b = row[2 * side + 1], faster = a + 2.0 * b * ::fabs(command);
      const double rate = faster > slowest ? faster : slowest;
      gone[side] = ::exp(-rate * period);
      bend[side] = (command < 0.0 ? -b : b) * (1.0 - gone[side]) / rate;
    }
  }
  const double error = state - command;
  const int side = ::fabs(command) >= ::fabs(state) ? 0 : 1;
  const double below = 1.0 + bend[side] * error;
  state = command + error * gone[side] / (below > 1e-3 ? below : 1e-3);
  out[(k + 1) * rotors] = state;
}
