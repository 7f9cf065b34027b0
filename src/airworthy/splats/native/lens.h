// Lenses that bend rays. A map takes a point of the camera's frame (x right, y down, z forward) to the image of unit focal length,
// with the derivatives there; `good` says where a ray of the image leads back to the point.
struct LensMap {
  F u, v;                  // place in the image of unit focal length
  F xx, xy, yy, xz, yz;    // derivatives: du/dx, du/dy = dv/dx, dv/dy, du/dz, dv/dz
  M good;

  // Rational radial and tangential distortion of ray slopes x/z, y/z, with k1, k2, p1, p2, k3, k4, k5, k6 in this order:
  //   u = g x + 2 p1 x y + p2 (r^2 + 2 x^2),   g = (1 + k1 r^2 + k2 r^4 + k3 r^6) / (1 + k4 r^2 + k5 r^4 + k6 r^6).
  // The derivatives are those at the slopes `at_x`, `at_y` (those of the point, or held within the image).
  INLINE void opencv(const float* k, float limit, F slope_x, F slope_y, F at_x, F at_y, F inverse) {
    F gain, steep;
    radial(k, squared(slope_x, slope_y), gain, steep);
    const F r2 = squared(slope_x, slope_y), twice = 2.0f * slope_x * slope_y;
    u = gain * slope_x + k[2] * twice + k[3] * (r2 + 2.0f * slope_x * slope_x);
    v = gain * slope_y + k[2] * (r2 + 2.0f * slope_y * slope_y) + k[3] * twice;
    good = r2 <= limit * limit;
    radial(k, squared(at_x, at_y), gain, steep);
    const F mixed = 2.0f * (steep * at_x * at_y + k[2] * at_x + k[3] * at_y);
    const F across = gain + 2.0f * steep * at_x * at_x + 2.0f * k[2] * at_y + 6.0f * k[3] * at_x;
    const F down = gain + 2.0f * steep * at_y * at_y + 6.0f * k[2] * at_y + 2.0f * k[3] * at_x;
    xx = across * inverse;
    xy = mixed * inverse;
    yy = down * inverse;
    xz = -inverse * (across * at_x + mixed * at_y);
    yz = -inverse * (mixed * at_x + down * at_y);
  }
  static INLINE F squared(F x, F y) { return x * x + y * y; }
  // The radial gain and its derivative with respect to the squared radius.
  static INLINE void radial(const float* k, F r2, F& gain, F& steep) {
    const F over = 1.0f / (1.0f + r2 * (k[5] + r2 * (k[6] + r2 * k[7])));
    gain = (1.0f + r2 * (k[0] + r2 * (k[1] + r2 * k[4]))) * over;
    const F top = k[0] + r2 * (2.0f * k[1] + r2 * (3.0f * k[4]));
    steep = (top - gain * (k[5] + r2 * (2.0f * k[6] + r2 * (3.0f * k[7])))) * over;
  }

  // The radius is a polynomial of the angle t off the axis: r = t (1 + k1 t^2 + k2 t^4 + k3 t^6 + k4 t^8). `range`: of the point.
  INLINE void fisheye(const float* k, float limit, F x, F y, F z, F range) {
    const F across2 = squared(x, y);
    const F unrolled = angle_over_across(across2, z, range);
    const F angle = unrolled * N::sqrt(across2), t2 = angle * angle;
    const F gain = unrolled * (1.0f + t2 * (k[0] + t2 * (k[1] + t2 * (k[2] + t2 * k[3]))));
    const F slope = 1.0f + t2 * (3.0f * k[0] + t2 * (5.0f * k[1] + t2 * (7.0f * k[2] + t2 * (9.0f * k[3]))));
    const F along = slope / (range * range);
    const F bend = (along * z - gain) / L::max(across2, N::c(1e-30f));
    u = gain * x;
    v = gain * y;
    xx = gain + bend * x * x;
    xy = bend * x * y;
    yy = gain + bend * y * y;
    xz = -along * x;
    yz = -along * y;
    good = angle <= limit;
  }
  // The angle off the axis over the distance from it. Three times the half angle's tangent is taken, tan(t / 2) = sin t / (1 + cos t),
  // so nothing is divided by the distance and a short series is enough: with q = tan(t / 8) <= 0.4, t = 8 atan q.
  static INLINE F angle_over_across(F across2, F z, F range) {
    // Behind the camera range + z would lose its digits.
    const F ahead = N::select(z < 0.0f, across2 / L::max(range - z, N::c(1e-30f)), range + z);
    const F base = 1.0f / L::max(ahead, N::c(1e-30f));
    const F t2 = across2 * base * base;
    const F half = 1.0f / (1.0f + N::sqrt(1.0f + t2)), h2 = t2 * half * half;
    const F quarter = 1.0f / (1.0f + N::sqrt(1.0f + h2)), q2 = h2 * quarter * quarter;
    F p = L::fma(N::c(ATAN_4), q2, N::c(ATAN_3));
    p = L::fma(p, q2, N::c(ATAN_2));
    p = L::fma(p, q2, N::c(ATAN_1));
    p = L::fma(p, q2, N::c(ATAN_0));
    return 8.0f * base * half * quarter * p;
  }
};
