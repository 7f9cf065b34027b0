// One physics step of one body that meets scene geometry and rebounds. Readable twin: simulation/rebound.py; there is told what the
// passes mean. Needs scene_impact.h, scene_sweep.h, PASSES and STEP_OUT.
struct Outcome {
  Pose end;
  Contact first;  // the fastest; its fraction is that of the step
  double speed;   // approach there [m/s]
  bool met;
};
struct Rebounding {
  static INLINE bool finite(const Pose& p) {
    double sum = 0.0;
    for (int i = 0; i < 3; ++i) sum += p.position[i] + p.velocity[i] + p.rate[i];
    for (int i = 0; i < 4; ++i) sum += p.attitude[i];
    return sum - sum == 0.0;
  }
  // On the straight path to another motion, the attitude brought to unit length.
  FUNCTION Pose between(const Pose& a, const Pose& b, double share) {
    Pose out;
    double q[4];
    for (int i = 0; i < 3; ++i) {
      out.position[i] = a.position[i] + share * (b.position[i] - a.position[i]);
      out.velocity[i] = a.velocity[i] + share * (b.velocity[i] - a.velocity[i]);
      out.rate[i] = a.rate[i] + share * (b.rate[i] - a.rate[i]);
    }
    for (int i = 0; i < 4; ++i) q[i] = a.attitude[i] + share * (b.attitude[i] - a.attitude[i]);
    Equations::normalize(q, out.attitude);
    return out;
  }
  // Pays for a lift (only the way up counts) with motion.
  static INLINE void lifted(const double* body, Pose& at, double up) {
    Equations::contact_lift(body, up > 0.0 ? up : 0.0, at.velocity, at.rate, at.velocity, at.rate);
  }
  // Back to the gap from what the body is deepest in, a deep overlap bit by bit; whether it is deep.
  FUNCTION bool step_out(const double* body, Pose& at, const Touches& touch, Spheres& spheres) {
    int worst = 0;
    for (int k = 1; k < touch.count; ++k)
      if (touch.depth[k] > touch.depth[worst]) worst = k;
    const double depth = touch.depth[worst], step = depth < 0.0 ? 0.0 : (depth > STEP_OUT ? STEP_OUT : depth);
    for (int i = 0; i < 3; ++i) at.position[i] += step * touch.normal[worst][i];
    for (int m = 0; m < spheres.count; ++m) spheres.free[m] -= step;
    lifted(body, at, step * touch.normal[worst][2]);
    return depth > SHALLOW;
  }
  // Ends the step where the body is: the way down that gravity would have taken is not made, and the motion pays for that.
  FUNCTION void wait(const double* body, Outcome& out, const Pose& now, double left) {
    out.end = now;
    lifted(body, out.end, -now.velocity[2] * left);
  }
  // Ends a step with contact, in the frame of what was hit: what acted on the body worked along the path that it took, and contact
  // did not. A body that rests at one point and hits with another in the same step would otherwise gain what the rest gave back.
  FUNCTION void bound(const double* body, const Pose& start, const double* acceleration, double work, const double* frame, double dt,
                      Outcome& out) {
    double before[3], after[3], kinetic;
    for (int i = 0; i < 3; ++i) {
      before[i] = start.velocity[i] - frame[i];
      after[i] = out.end.velocity[i] - frame[i];
      work += body[B_mass] * acceleration[i] * (out.end.position[i] - start.position[i] - frame[i] * dt);
    }
    Equations::kinetic_energy(body, before, start.rate, &kinetic);
    Equations::bounded_motion(body, kinetic + work, after, out.end.rate, after, out.end.rate);
    for (int i = 0; i < 3; ++i) out.end.velocity[i] = after[i] + frame[i];
  }
  // Work of a torque over a part of a step [J].
  static INLINE double turned(const double* torque, const double* rate, const double* next, double time) {
    return 0.5 * time * (Impulse::dot(torque, rate) + Impulse::dot(torque, next));
  }
  // First contact of a step.
  static INLINE bool ahead(Scene& scene, Spheres& spheres, double reach, const Pose& start, const Pose& free, Contact& hit) {
    return Meeting::sight(scene, spheres, reach, start, free) && Meeting::first(scene, spheres, reach, start, free, hit);
  }
  // `start` and `free`: the motion over the step had nothing been there. `velocity_of`: world velocity of each dynamic
  // instance, or null.
  FUNCTION void step(Scene& scene, Spheres& spheres, double* body, const Pose& start, const Pose& free, double dt, double restitution,
                     const double* velocity_of, Outcome& out) {
    Pose now = start, goal = free;
    double acceleration[3], torque[3], held[3], twist[3], frame[3], work = 0.0, left = dt, still[3] = {0.0, 0.0, 0.0};
    bool alike = true;  // everything that was hit moves alike
    out.met = false;
    out.speed = -1.0;
    out.end = free;
    for (int i = 0; i < 3; ++i) acceleration[i] = (free.velocity[i] - start.velocity[i]) / dt;
    Equations::held_torque(body, start.rate, free.rate, dt, torque);
    for (int i = 0; i < 3; ++i) {
      held[i] = acceleration[i];
      twist[i] = torque[i];
    }
    for (int pass = 0; pass < PASSES; ++pass) {
      Contact hit;
      if (pass ? !Meeting::first(scene, spheres, body[B_reach], now, goal, hit)
               : !ahead(scene, spheres, body[B_reach], now, goal, hit)) {
        out.end = goal;
        work += turned(twist, now.rate, goal.rate, left);
        if (out.met && alike) bound(body, start, held, work, frame, dt, out);
        return;
      }
      Touches touch;
      Pose at = between(now, goal, hit.fraction);
      work += turned(twist, now.rate, at.rate, left * hit.fraction);
      left *= 1.0 - hit.fraction;
      Meeting::touching(scene, spheres, at, hit, touch);
      const int dynamic_instance = hit.instance - scene.batch->dynamic_start;
      const double* moving = velocity_of && dynamic_instance >= 0 ? velocity_of + 3 * dynamic_instance : still;
      for (int i = 0; i < 3; ++i) {
        alike = alike && (!out.met || moving[i] == frame[i]);
        frame[i] = moving[i];
        at.velocity[i] -= moving[i];
      }
      out.met = true;
      Impulse::Lever levers[SPHERES];
      Impulse::levers(body, at, touch, levers);
      const double fastest = Impulse::approach(at, touch, levers);
      const bool rests = fastest < Impulse::bounce(body, dt);
      if (rests)
        for (int i = 0; i < 3; ++i) {
          at.velocity[i] = goal.velocity[i] - moving[i];
          at.rate[i] = goal.rate[i];
          acceleration[i] = torque[i] = 0.0;
        }
      body[B_restitution] = rests ? 0.0 : restitution;
      Impulse::collide(body, at, touch, levers, fastest, dt);
      const bool deep = step_out(body, at, touch, spheres);
      for (int i = 0; i < 3; ++i) at.velocity[i] += moving[i];
      if (fastest > out.speed) {
        out.first = hit;
        out.first.fraction = 1.0 - left / dt;
        out.speed = fastest;
      }
      now = at;
      if (deep) break;
      Equations::drift(body, now.position, now.velocity, now.attitude, now.rate, acceleration, torque, left, goal.position,
                       goal.velocity, goal.attitude, goal.rate);
    }
    wait(body, out, now, left);
    if (alike) bound(body, start, held, work, frame, dt, out);
  }
};
