// Derivatives of lenses. A lens' map has a place in the image and a matrix there; a loss that depends on both depends on the point
// through the matrix' own derivatives, which are the second ones of the lens.
struct LensBack {
  // The map's matrix at the point, and the loss' derivatives with respect to place and matrix (`d_xy`: of both its entries).
  F xx, xy, yy, xz, yz;
  F d_u, d_v, d_xx, d_xy, d_yy, d_xz, d_yz;
  F point[3];  // out: with respect to the point in the camera's frame; `d_depth`: of its depth, of a fisheye the distance

  // Second and third derivatives of what OpenCV's distortion is the gradient of: matrix [a, b; b, d] and its slopes.
  struct Bent {
    F a, b, d, xxx, xxy, xyy, yyy;
    INLINE void straight() {
      a = d = N::c(1.0f);
      b = xxx = xxy = xyy = yyy = N::c(0.0f);
    }
    INLINE void at(const float* k, F x, F y) {
      F gain, steep;
      const F r2 = LensMap::squared(x, y);
      LensMap::radial(k, r2, gain, steep);
      a = gain + 2.0f * steep * x * x + 2.0f * k[2] * y + 6.0f * k[3] * x;
      b = 2.0f * (steep * x * y + k[2] * x + k[3] * y);
      d = gain + 2.0f * steep * y * y + 6.0f * k[2] * y + 2.0f * k[3] * x;
      const F over = 1.0f / (1.0f + r2 * (k[5] + r2 * (k[6] + r2 * k[7])));
      const F under_1 = k[5] + r2 * (2.0f * k[6] + r2 * (3.0f * k[7])), under_2 = 2.0f * k[6] + r2 * (6.0f * k[7]);
      const F steeper = (2.0f * k[1] + r2 * (6.0f * k[4]) - gain * under_2 - 2.0f * steep * under_1) * over;
      xxx = 6.0f * steep * x + 4.0f * steeper * x * x * x + 6.0f * k[3];
      xxy = 2.0f * steep * y + 4.0f * steeper * x * x * y + 2.0f * k[2];
      xyy = 2.0f * steep * x + 4.0f * steeper * x * y * y + 2.0f * k[3];
      yyy = 6.0f * steep * y + 4.0f * steeper * y * y * y + 6.0f * k[2];
    }
  };

  Bent held, own;  // where the matrix is taken, and where the point is seen
  // A pinhole or OpenCV's: the matrix is taken at slopes held within the image.
  INLINE void straight_matrix(const Projection& p) {
    if (p.flags & FLAG_OPENCV) {
      held.at(p.camera.lens, p.at_x, p.at_y);
      own.at(p.camera.lens, p.slope_x, p.slope_y);
    } else {
      held.straight();
      own.straight();
    }
    xx = held.a * p.inverse;
    xy = held.b * p.inverse;
    yy = held.d * p.inverse;
    xz = -p.inverse * (held.a * p.at_x + held.b * p.at_y);
    yz = -p.inverse * (held.b * p.at_x + held.d * p.at_y);
  }
  INLINE void straight_point(const Projection& p, F d_depth) {
    const F over = p.inverse, zero = N::c(0.0f);
    const F d_a = over * (d_xx - p.at_x * d_xz), d_d = over * (d_yy - p.at_y * d_yz);
    const F d_b = over * (d_xy - p.at_y * d_xz - p.at_x * d_yz);
    const F held_x = d_a * held.xxx + d_b * held.xxy + d_d * held.xyy - over * (held.a * d_xz + held.b * d_yz);
    const F held_y = d_a * held.xxy + d_b * held.xyy + d_d * held.yyy - over * (held.b * d_xz + held.d * d_yz);
    const F slope_x = d_u * own.a + d_v * own.b + N::select(p.at_x == p.slope_x, held_x, zero);
    const F slope_y = d_u * own.b + d_v * own.d + N::select(p.at_y == p.slope_y, held_y, zero);
    // With respect to 1 / z, over z: all but the place is proportional to it.
    const F whole = d_xx * xx + d_xy * xy + d_yy * yy + d_xz * xz + d_yz * yz + slope_x * p.slope_x + slope_y * p.slope_y;
    point[0] = slope_x * over;
    point[1] = slope_y * over;
    point[2] = d_depth - whole * over;
  }

  // Of a fisheye u = gain x, du/dx = gain + bend x x, du/dz = -along x; of `along` and `bend` the slopes in x and y are those below
  // times x and y, as of `gain` they are `bend` times x and y. `steeper`: second derivative of the radius over x^2 + y^2's root.
  F x, y, gain, bend, along, along_slope, bend_slope, steeper;
  INLINE void fisheye_matrix(const Projection& p) {
    const float* const k = p.camera.lens;
    const float* const r = p.camera.rotation;
    x = Projection::turned(r, p.away);
    y = Projection::turned(r + 3, p.away);
    const F across2 = LensMap::squared(x, y), over2 = 1.0f / (p.depth * p.depth);
    const F unrolled = LensMap::angle_over_across(across2, p.z, p.depth);
    const F t2 = unrolled * unrolled * across2;
    gain = unrolled * (1.0f + t2 * (k[0] + t2 * (k[1] + t2 * (k[2] + t2 * k[3]))));
    along = (1.0f + t2 * (3.0f * k[0] + t2 * (5.0f * k[1] + t2 * (7.0f * k[2] + t2 * (9.0f * k[3]))))) * over2;
    steeper = unrolled * (6.0f * k[0] + t2 * (20.0f * k[1] + t2 * (42.0f * k[2] + t2 * (72.0f * k[3]))));
    along_slope = (steeper * p.z * over2 - 2.0f * along) * over2;
    // Near the axis these would be differences of nearly equal numbers over a small one: there, the series of
    // gain = (1 + c1 q + c2 q^2 + c3 q^3 + ...) / z, q = (x^2 + y^2) / z^2, whose slopes they are.
    const float c1 = k[0] - 1.0f / 3.0f, c2 = 0.2f - k[0] + k[1];
    const float c3 = -1.0f / 7.0f + 14.0f / 15.0f * k[0] - 5.0f / 3.0f * k[1] + k[2];
    const M close = (across2 < 0.01f * p.z * p.z) & (p.z > 0.0f);
    const F one = 1.0f / N::select(close, p.z, N::c(1.0f)), q = across2 * one * one, cube = one * one * one;
    const F apart = 1.0f / N::select(close, N::c(1.0f), across2);
    bend = N::select(close, cube * (2.0f * c1 + q * (4.0f * c2 + q * (6.0f * c3))), (along * p.z - gain) * apart);
    bend_slope = N::select(close, cube * one * one * (8.0f * c2 + q * (24.0f * c3)), (along_slope * p.z - 3.0f * bend) * apart);
    xx = gain + bend * x * x;
    xy = bend * x * y;
    yy = gain + bend * y * y;
    xz = -along * x;
    yz = -along * y;
  }
  INLINE void fisheye_point(const Projection& p, F d_depth) {
    const F d_gain = d_xx + d_yy, d_bend = d_xx * x * x + d_xy * x * y + d_yy * y * y, d_along = -(d_xz * x + d_yz * y);
    const F common = d_gain * bend + d_bend * bend_slope + d_along * along_slope;
    point[0] = d_u * xx + d_v * xy + bend * (2.0f * x * d_xx + y * d_xy) - along * d_xz + common * x;
    point[1] = d_u * xy + d_v * yy + bend * (2.0f * y * d_yy + x * d_xy) - along * d_yz + common * y;
    // The slope of `gain` in z is -along, so that of `bend` is -along_slope.
    const F over2 = 1.0f / (p.depth * p.depth), across2 = LensMap::squared(x, y);
    const F deeper = -(steeper * across2 * over2 + 2.0f * along * p.z) * over2;
    point[2] = d_u * xz + d_v * yz - d_gain * along - d_bend * along_slope + d_along * deeper;
    const F outward = d_depth / p.depth;
    point[0] = point[0] + outward * x;
    point[1] = point[1] + outward * y;
    point[2] = point[2] + outward * p.z;
  }
};
