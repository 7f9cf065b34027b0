// One block of 16 pixels of one image: what a range sensor makes of true values (see airworthy.sensors.noise, the twin).
// values: (camera, pixels) in place; keys: (camera, 5), four key words and the sample's number; model: the enumerators below.
const int blocks_per_image = (pixels + LANES - 1) / LANES;
if (block >= block_count) return;
const int camera = block / blocks_per_image;
const int first_pixel = (block - camera * blocks_per_image) * LANES;
const int count = pixels - first_pixel < LANES ? pixels - first_pixel : LANES;
float* where = values.data + (long long)camera * pixels + first_pixel;

float buffer[LANES];
if (count < LANES) {
  for (int i = 0; i < LANES; ++i) buffer[i] = i < count ? where[i] : 1.0f;
}
F r = count < LANES ? N::load(buffer) : N::load(where);
const float* m = model.data;

// A miss is +inf; -inf is a value that the sensor knows to be wrong.
r = N::select(r > N::c(3.4028234e38f), N::c(m[MISS]), r);
if (m[NOISY] != 0.0f) {
  U key[5];
  for (int i = 0; i < 4; ++i) key[i] = N::u(keys.data[camera * 5 + i]);
  Threefry::expand(key);
#if LANES == 1
  U lane = 0u;
#else
  U lane = {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 10u, 11u, 12u, 13u, 14u, 15u};
#endif
  U x[4];
  x[0] = N::u(keys.data[camera * 5 + 4]);
  x[1] = N::u(STREAM_SENSOR);
  x[2] = lane + N::u((unsigned int)first_pixel);
  x[3] = N::u((unsigned int)sensor);
  Threefry::block(key, x);
  F n[2];
  Threefry::normal_pair(x[0], x[1], n);
  F sigma = N::abs((r * m[A] + m[B]) * r + (m[C] + m[MULTIPLIER] * r));
  F noisy = r - m[OFFSET] + sigma * n[0];
  r = N::select(N::finite(r), noisy, r);
  r = N::select(Threefry::uniform(x[2]) < N::c(m[DROPOUT]), N::c(m[NEAR]), r);
}
M far = r > N::c(m[MAXIMUM]), near = r < N::c(m[MINIMUM]);
r = N::select(far, N::c(m[FAR]), N::select(near, N::c(m[NEAR]), r));
// A division, so that a limit divided by itself is exactly one.
r = r / m[DIVISOR];
if (count < LANES) {
  N::store(buffer, r);
  for (int i = 0; i < count; ++i) where[i] = buffer[i];
} else {
  N::store(where, r);
}
