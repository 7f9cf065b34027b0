// A flight in the memory of a batch: what contact with the scene makes of the physics step that it just flew. Needs
// scene_rebound.h, the batch's arrays under the names of simulation/scene_contact.py, and the enumerators R_* (places in `numbers`),
// MODE_*.
struct Flight {
  float* state;
  const int* numbers;
  int place;
  INLINE float* at(int row) const { return state + (long long)row * numbers[R_stride] + place; }
  INLINE double get(int row) const { return *at(row); }
  INLINE void get(int row, double* out, int count) const {
    for (int i = 0; i < count; ++i) out[i] = *at(row + i);
  }
  INLINE void put(int row, const double* values, int count) const {
    for (int i = 0; i < count; ++i) *at(row + i) = (float)values[i];
  }
  FUNCTION void load(const Flight& f, Pose& p) {
    for (int i = 0; i < 3; ++i)
      p.position[i] = f.get(f.numbers[R_position] + i) + f.get(f.numbers[R_position_residual] + i);
    f.get(f.numbers[R_velocity], p.velocity, 3);
    f.get(f.numbers[R_attitude], p.attitude, 4);
    f.get(f.numbers[R_rate], p.rate, 3);
  }
  // The next part of the launch counts from here.
  FUNCTION void store(const Flight& f, const Pose& p) {
    for (int i = 0; i < 3; ++i) {
      const float coarse = (float)p.position[i], rest = (float)(p.position[i] - coarse);
      *f.at(f.numbers[R_position] + i) = *f.at(f.numbers[R_launch_base] + i) = coarse;
      *f.at(f.numbers[R_position_residual] + i) = *f.at(f.numbers[R_launch_moved] + i) = rest;
    }
    f.put(f.numbers[R_velocity], p.velocity, 3);
    f.put(f.numbers[R_attitude], p.attitude, 4);
    f.put(f.numbers[R_rate], p.rate, 3);
  }
  FUNCTION void count(const Flight& f, double speed) {
    float *steps = f.at(f.numbers[R_contact]), *fastest = f.at(f.numbers[R_impact_speed]);
    *steps += 1.0f;
    if (speed > *fastest) *fastest = (float)speed;
  }
  // Count, time, point, normal, speed and instance, as `simulation.contacts.ContactRecord` packs them. The clock of a flight stands at
  // the end of the step.
  FUNCTION void note(double* record, const Contact& hit, double speed, unsigned int clock, double dt) {
    record[0] += 1.0;
    record[1] = ((double)clock - 1.0 + hit.fraction) * dt;
    record[2] = hit.point.x;
    record[3] = hit.point.y;
    record[4] = hit.point.z;
    record[5] = hit.normal.x;
    record[6] = hit.normal.y;
    record[7] = hit.normal.z;
    record[8] = speed;
    record[9] = hit.instance;
  }
  // Adds what contact did, changes over the step divided by its length, to the specific force and the accelerometer's sample.
  FUNCTION void feel(const Flight& f, const double* body, const Pose& free, const Pose& end, double dt, float* log) {
    double force[3], turn[3], felt[3], sample[3];
    for (int i = 0; i < 3; ++i) {
      force[i] = (end.velocity[i] - free.velocity[i]) / dt;
      turn[i] = (end.rate[i] - free.rate[i]) / dt;
    }
    Equations::rotate_inverse(free.attitude, force, felt);
    for (int i = 0; i < 3; ++i) *f.at(f.numbers[R_acceleration] + i) = (float)(f.get(f.numbers[R_acceleration] + i) + felt[i]);
    if (f.numbers[R_imu] < 0) return;
    Equations::accelerometer(felt, turn, body + B_imu_rotation, body + B_imu_position, sample);
    for (int i = 0; i < 3; ++i) {
      const double sum = f.get(f.numbers[R_imu] + i) + sample[i], limit = body[B_imu_limit];
      *f.at(f.numbers[R_imu] + i) = (float)(sum > limit ? limit : (sum < -limit ? -limit : sum));
    }
    if (f.numbers[R_log] < 0) return;
    for (int i = 0; i < 6; ++i) log[(long long)(6 * f.numbers[R_log] + i) * f.numbers[R_stride] + f.place] = *f.at(f.numbers[R_imu] + i);
  }
  // Mode "respond".
  FUNCTION bool rebound(const Flight& f, Scene& scene, Spheres& spheres, double* body, const Pose& start, const Pose& free, double dt,
                        double restitution, const double* velocity_of, unsigned int clock, double* record, float* log) {
    Outcome out;
    Rebounding::step(scene, spheres, body, start, free, dt, restitution, velocity_of, out);
    if (!out.met) return false;
    store(f, out.end);
    const double speed = out.speed > 0.0 ? out.speed : 0.0;
    count(f, speed);
    if (speed >= Impulse::bounce(body, dt)) note(record, out.first, speed, clock, dt);
    feel(f, body, free, out.end, dt, log);
    return true;
  }
  // The other modes: the first contact counts, and in mode "freeze" the flight ends there.
  FUNCTION bool stop(const Flight& f, Scene& scene, Spheres& spheres, double* body, const Pose& start, const Pose& free, double dt,
                     unsigned int clock, double* record) {
    Contact hit;
    if (!Rebounding::ahead(scene, spheres, body[B_reach], start, free, hit)) return false;
    const Pose at = Rebounding::between(start, free, hit.fraction);
    Touches touch;
    touch.count = 1;
    touch.radius[0] = spheres.convex ? spheres.core.margin : spheres.rows[4 * hit.sphere + 3];
    touch.normal[0][0] = hit.normal.x;
    touch.normal[0][1] = hit.normal.y;
    touch.normal[0][2] = hit.normal.z;
    for (int i = 0; i < 3; ++i) touch.center[0][i] = hit.arm[i];
    Impulse::Lever lever;
    Impulse::levers(body, at, touch, &lever);
    const double speed = Impulse::approach(at, touch, &lever);
    note(record, hit, speed, clock, dt);
    count(f, speed);
    if (f.numbers[R_mode] == MODE_FREEZE) {
      store(f, at);
      *f.at(f.numbers[R_status]) = STOPPED;
    }
    return true;
  }
};
// One task, one flight. Tasks in a row are spread over all flights: each thread then has as many of them to do.
const int* const nums = numbers.data;
const int flight = (task & 15) * (nums[R_room] >> 4) + (task >> 4);
if (!nums[R_begin]) met.data[flight] = 0;
if (flight >= nums[R_count]) return;
const Flight f = {state.data, nums, flight};
double* const prior = before.data + 14ll * flight;  // motion at the begin of the step, and whether it flew
if (nums[R_begin]) {
  for (int i = 0; i < 10; ++i) record.data[10ll * flight + i] = 0.0;
} else {
  Pose start, free;
  for (int i = 0; i < 3; ++i) {
    start.position[i] = prior[i];
    start.velocity[i] = prior[3 + i];
    start.rate[i] = prior[10 + i];
  }
  for (int i = 0; i < 4; ++i) start.attitude[i] = prior[6 + i];
  Flight::load(f, free);
  const double dt = settings.data[0];
  if (prior[13] != 0.0 && f.get(nums[R_status]) == 0.0 && Rebounding::finite(start) && Rebounding::finite(free)) {
    const Batch batch = BATCH_OF_ARGUMENTS;
    const int env = places.data[2 * flight];
    Scene scene;
    scene.batch = &batch;
    scene.closed = closed.data;
    scene.env = env;
    scene.radius = -1.0;
    Spheres spheres;
    spheres.count = nums[R_spheres];
    spheres.rows = sphere_table.data + 4ll * spheres.count * places.data[2 * flight + 1];
    const double* const core = core_table.data + 9ll * places.data[2 * flight + 1];
    spheres.convex = core[0] > 0.5;
    spheres.core = {core[0] > 1.5 ? KIND_CYLINDER : KIND_BOX, {core[1], core[2], core[3]}, {core[4], core[5], core[6]}, core[7], core[8]};
    double body[B_COUNT];
    for (int i = 0; i < B_COUNT; ++i) body[i] = bodies.data[(long long)B_COUNT * flight + i];
    body[B_friction] = settings.data[2];
    body[B_rolling] = settings.data[3];
    double* const own_record = record.data + 10ll * flight;
    const unsigned int clock = keys.data[4ll * nums[R_stride] + flight];
    const double* const velocity_of = nums[R_moving] ? dynamic_velocity.data + 3ll * batch.dynamic_count * env : 0;
    met.data[flight] = nums[R_mode] == MODE_RESPOND
                           ? Flight::rebound(f, scene, spheres, body, start, free, dt, settings.data[1], velocity_of, clock, own_record,
                                             imu_log.data)
                           : Flight::stop(f, scene, spheres, body, start, free, dt, clock, own_record);
  }
}
Pose now;
Flight::load(f, now);
for (int i = 0; i < 3; ++i) {
  prior[i] = now.position[i];
  prior[3 + i] = now.velocity[i];
  prior[10 + i] = now.rate[i];
}
for (int i = 0; i < 4; ++i) prior[6 + i] = now.attitude[i];
prior[13] = f.get(nums[R_status]) == 0.0 ? 1.0 : 0.0;
