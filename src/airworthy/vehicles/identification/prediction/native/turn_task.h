// Rates of one window by one set of parameters: Euler's equation by Runge and Kutta's fourth order. Needs no other file.
const int window = task % (int)windows, set = task / (int)windows;
const long long places = 2 * (long long)steps + 1;
const double *inertia = inertias.data + 9 * set, *inverse = inverses.data + 9 * set, *damp = damping.data + 3 * set;
const double* push = driven.data + ((long long)set * (int)windows + window) * places * 3;
double* rate_out = rates.data + ((long long)set * (int)windows + window) * (steps + 1) * 3;
double* slope_out = slopes.data + ((long long)set * (int)windows + window) * (steps + 1) * 3;
double w[3], k[4][3];
for (int i = 0; i < 3; ++i) w[i] = begun.data[((long long)set * (int)windows + window) * 3 + i];
for (long long step = 0; step <= steps; ++step) {
  for (int part = 0; part < 4; ++part) {
    const double share = part == 0 ? 0.0 : (part == 3 ? span : 0.5 * span);
    const double* given = push + 3 * (2 * step + (part == 0 ? 0 : (part == 3 ? 2 : 1)));
    double v[3], momentum[3], against[3];
    for (int i = 0; i < 3; ++i) v[i] = part == 0 ? w[i] : w[i] + share * k[part - 1][i];
    for (int i = 0; i < 3; ++i) momentum[i] = inertia[3 * i] * v[0] + inertia[3 * i + 1] * v[1] + inertia[3 * i + 2] * v[2];
    for (int i = 0; i < 3; ++i) {
      const int j = (i + 1) % 3, l = (i + 2) % 3;
      against[i] = v[j] * momentum[l] - v[l] * momentum[j] + damp[i] * v[i];
    }
    for (int i = 0; i < 3; ++i)
      k[part][i] = given[i] - (inverse[3 * i] * against[0] + inverse[3 * i + 1] * against[1] + inverse[3 * i + 2] * against[2]);
    if (part == 0)
      for (int i = 0; i < 3; ++i) rate_out[3 * step + i] = w[i], slope_out[3 * step + i] = k[0][i];
    if (step == steps) break;
  }
  if (step == steps) break;
  for (int i = 0; i < 3; ++i) w[i] += span / 6.0 * (k[0][i] + 2.0 * (k[1][i] + k[2][i]) + k[3][i]);
}
