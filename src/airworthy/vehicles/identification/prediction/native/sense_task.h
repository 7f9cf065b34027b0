// Eight windows by one set of parameters: what turns and pushes the vehicle, Euler's equation by Runge and Kutta's fourth order,
// and what the sensors read where they sit. The twin is `twin.predicted`.
const int rotors = (int)count, number = (int)windows, blocks = (number + LANE_COUNT - 1) / LANE_COUNT;
const int set = task / blocks, block = task % blocks;
const long long places = 2 * (long long)steps + 1;
const double* next = plants.data + (long long)set * (plants.shape[0] / kinds.shape[0]);
const double* curve = next;
const double* forces = curve + 3 * rotors;
const double* moments = forces + 3 * rotors;
const double* inertia = moments + 3 * rotors;
const double *inverse = inertia + 9, *damp = inverse + 9, *lever = damp + 3, *tilt = lever + 3, *offset = tilt + 3;
const double *drift = offset + 3, *bias = drift + 3, *rest = bias + 3;
const double since = rest[0], share = rest[1], arm = rest[2];
const double* state = states.data + ((long long)kinds.data[set] * blocks + block) * places * rotors * LANE_COUNT;
const V start = L::load(starts.data + LANE_COUNT * block);
const int lanes = number - LANE_COUNT * block < LANE_COUNT ? number - LANE_COUNT * block : LANE_COUNT;
const long long pushes = 3 * ((long long)steps + 1);
struct Three {
  V x[3];
};
const auto crossed = [](const auto& a, const auto& b, int i) __attribute__((always_inline)) {
  const int j = (i + 1) % 3, k = (i + 2) % 3;
  return a[j] * b[k] - a[k] * b[j];
};
const auto pushed_at = [&](long long step, int axis) __attribute__((always_inline)) {
  V found = (V)0.0;
  for (int i = 0; i < lanes; ++i) {
    const long long window = (long long)set * number + LANE_COUNT * block + i;
    found[i] = push.data[window * pushes + 3 * step + axis];
  }
  return found;
};
// Angular acceleration at a place, but for that of turning itself, and specific force of the rotors there.
const auto driven_at = [&](long long place, Three& driven, Three& force) __attribute__((always_inline)) {
  V moment[3] = {(V)0.0, (V)0.0, (V)0.0};
  for (int i = 0; i < 3; ++i) force.x[i] = (V)0.0;
  for (int r = 0; r < rotors; ++r) {
    const V s = L::load(state + (place * rotors + r) * LANE_COUNT), size = L::abs(s);
    // A rotor that stands gives no thrust, whatever a published polynomial says.
    const V still = L::select(size > (V)1e-6, (V)curve[3 * r], (V)0.0);
    const V thrust = (V)curve[3 * r + 1] * s + (V)curve[3 * r + 2] * (s * size) + still;
    for (int i = 0; i < 3; ++i) {
      moment[i] += thrust * (V)moments[i * rotors + r];
      force.x[i] += thrust * (V)forces[i * rotors + r];
    }
  }
  if (arm != 0.0) {
    // Specific force of the air across the axes of the rotors: what was felt, less what turning pushed off the centre of mass.
    const double* told = air.data + ((long long)block * places + place) * 9 * LANE_COUNT;
    V felt[3], pulled[2];
    for (int i = 0; i < 3; ++i) felt[i] = L::load(told + i * LANE_COUNT) - (V)bias[i];
    for (int i = 0; i < 2; ++i) {
      const double* by = told + (3 + 3 * i) * LANE_COUNT;
      const V turned = L::load(by) * (V)lever[0] + L::load(by + LANE_COUNT) * (V)lever[1] + L::load(by + 2 * LANE_COUNT) * (V)lever[2];
      const int j = i + 1, k = (i + 2) % 3;
      pulled[i] = (felt[i] + ((V)tilt[j] * felt[k] - (V)tilt[k] * felt[j]) - turned) * (V)(arm * weights.data[place]);
    }
    // Of a force (x, y) at a height: -y about x, +x about y.
    moment[0] -= pulled[1];
    moment[1] += pulled[0];
  }
  const V since_then = start + (V)(0.5 * span * (double)place - since);
  for (int i = 0; i < 3; ++i) {
    V turning = (V)inverse[3 * i] * moment[0] + (V)inverse[3 * i + 1] * moment[1] + (V)inverse[3 * i + 2] * moment[2];
    turning += (V)offset[i] + (V)drift[i] * since_then;
    if (pushing) turning += place % 2 ? (V)0.5 * (pushed_at(place / 2, i) + pushed_at(place / 2 + 1, i)) : pushed_at(place / 2, i);
    driven.x[i] = turning;
  }
};
const auto slope_of = [&](const Three& w, const Three& given) __attribute__((always_inline)) {
  Three momentum, against, found;
  for (int i = 0; i < 3; ++i)
    momentum.x[i] = (V)inertia[3 * i] * w.x[0] + (V)inertia[3 * i + 1] * w.x[1] + (V)inertia[3 * i + 2] * w.x[2];
  for (int i = 0; i < 3; ++i) against.x[i] = crossed(w.x, momentum.x, i) + (V)damp[i] * w.x[i];
  for (int i = 0; i < 3; ++i)
    found.x[i] = given.x[i] - ((V)inverse[3 * i] * against.x[0] + (V)inverse[3 * i + 1] * against.x[1] +
                               (V)inverse[3 * i + 2] * against.x[2]);
  return found;
};
const auto in_sensor = [&](const V* vector, int i) __attribute__((always_inline)) {
  const int j = (i + 1) % 3, k = (i + 2) % 3;
  return vector[i] - ((V)tilt[j] * vector[k] - (V)tilt[k] * vector[j]);
};
const long long rows = block_steps > 0 ? steps / block_steps : steps + 1;
const auto told = [&](long long row, const V* numbers, int first) __attribute__((always_inline)) {
  for (int lane = 0; lane < lanes; ++lane) {
    double* to = readings.data + (((long long)set * number + LANE_COUNT * block + lane) * rows + row) * 6 + first;
    for (int i = 0; i < 3; ++i) to[i] = numbers[i][lane];
  }
};
Three w, first, middle, last, force, force_next;
for (int i = 0; i < 3; ++i) {
  // From the axes of the sensor to those of the body.
  const double* given = begun.data + (long long)block * 3 * LANE_COUNT;
  const int j = (i + 1) % 3, k = (i + 2) % 3;
  w.x[i] = L::load(given + i * LANE_COUNT) +
           ((V)tilt[j] * L::load(given + k * LANE_COUNT) - (V)tilt[k] * L::load(given + j * LANE_COUNT));
}
driven_at(0, first, force);
V before[3], sums[6];
long long row = 0, summed = 0;
for (long long step = 0; step <= steps; ++step) {
  const Three k1 = slope_of(w, first);
  // Where the sensor lies off the centre of mass, turning pushes it, too: w' x p + w (w . p) - p |w|^2.
  const V along = w.x[0] * (V)lever[0] + w.x[1] * (V)lever[1] + w.x[2] * (V)lever[2];
  const V square = w.x[0] * w.x[0] + w.x[1] * w.x[1] + w.x[2] * w.x[2];
  V felt[3], rate[3], read[3], late[3];
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    const V pushed = k1.x[j] * (V)lever[k] - k1.x[k] * (V)lever[j] + w.x[i] * along;
    felt[i] = force.x[i] + pushed - (V)lever[i] * square;
  }
  for (int i = 0; i < 3; ++i) {
    rate[i] = in_sensor(w.x, i);
    read[i] = in_sensor(felt, i) + (V)bias[i];
    if (step > 0) late[i] = read[i] - (V)share * (read[i] - before[i]);
  }
  if (block_steps == 0) {
    told(step, rate, 0);
    if (step == 1) {
      // Before the first step readings were as they go on from it.
      V begin[3];
      for (int i = 0; i < 3; ++i) begin[i] = before[i] - (V)share * (read[i] - before[i]);
      told(0, begin, 3);
    }
    if (step > 0) told(step, late, 3);
  } else if (step > 0 && row < rows) {
    for (int i = 0; i < 3; ++i) {
      sums[i] = summed ? sums[i] + rate[i] : rate[i];
      sums[3 + i] = summed ? sums[3 + i] + late[i] : late[i];
    }
    if (++summed == block_steps) {
      for (int i = 0; i < 6; ++i) sums[i] /= (V)(double)block_steps;
      told(row, sums, 0);
      told(row, sums + 3, 3);
      ++row;
      summed = 0;
    }
  }
  for (int i = 0; i < 3; ++i) before[i] = read[i];
  if (step == steps) break;
  driven_at(2 * step + 1, middle, force_next);
  driven_at(2 * step + 2, last, force_next);
  Three v;
  for (int i = 0; i < 3; ++i) v.x[i] = w.x[i] + (V)(0.5 * span) * k1.x[i];
  const Three k2 = slope_of(v, middle);
  for (int i = 0; i < 3; ++i) v.x[i] = w.x[i] + (V)(0.5 * span) * k2.x[i];
  const Three k3 = slope_of(v, middle);
  for (int i = 0; i < 3; ++i) v.x[i] = w.x[i] + (V)span * k3.x[i];
  const Three k4 = slope_of(v, last);
  for (int i = 0; i < 3; ++i) w.x[i] += (V)(span / 6.0) * (k1.x[i] + (V)2.0 * (k2.x[i] + k3.x[i]) + k4.x[i]);
  first = last;
  force = force_next;
}
