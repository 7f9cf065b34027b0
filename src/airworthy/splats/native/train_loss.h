// The task of training/loss_kernel.py: a row of an image, its colours interleaved, 16 numbers at a time. Means are those of a window
// of 11 x 11, made along columns and then along the row; beyond the image all is 0.
#if LANES != 1
enum { HALF = 5, EDGE = 3 * HALF };
const int here = order.data[task];
const int camera = here / height, y = here % height, length = 3 * width;
const int stride = (length + 2 * EDGE + 2 * LANES) / LANES * LANES;
float* const rows = work.data + (size_t)here * 5 * stride;
const size_t first = ((size_t)camera * height + y) * length, size = (size_t)task_count * length;
const float* const weights = settings.data + 1;
struct Part {
  static INLINE F load(const float* p, int count) {
    if (count >= LANES) return N::load(p);
    F x = N::c(0.0f);
    for (int k = 0; k < count; ++k) x[k] = p[k];
    return x;
  }
  static INLINE void store(float* p, F x, int count) {
    if (count >= LANES) return N::store(p, x);
    for (int k = 0; k < count; ++k) p[k] = x[k];
  }
  static INLINE F across(const float* row, int at, const float* weights) {
    F sum = N::c(0.0f);
    for (int k = 0; k <= 2 * HALF; ++k) sum = L::fma(N::load(row + at + 3 * k), N::c(weights[k]), sum);
    return sum;
  }
};
const int planes = stage == 0 ? 5 : 3;
for (int plane = 0; plane < planes; ++plane)
  for (int k = 0; k < stride; ++k) rows[plane * stride + k] = 0.0f;
for (int at = 0; at < length; at += LANES) {
  F sums[5] = {N::c(0.0f), N::c(0.0f), N::c(0.0f), N::c(0.0f), N::c(0.0f)};
  for (int k = 0; k <= 2 * HALF; ++k) {
    const int other = y + k - HALF;
    if (other < 0 || other >= height) continue;
    const size_t from = first + (size_t)((k - HALF) * (long long)length) + at;
    const F weight = N::c(weights[k]);
    if (stage == 0) {
      const F a = Part::load(image.data + from, length - at), b = Part::load(truth.data + from, length - at);
      const F wa = weight * a, wb = weight * b;
      sums[0] = sums[0] + wa;
      sums[1] = sums[1] + wb;
      sums[2] = L::fma(wa, a, sums[2]);
      sums[3] = L::fma(wb, b, sums[3]);
      sums[4] = L::fma(wa, b, sums[4]);
    } else {
      for (int plane = 0; plane < 3; ++plane)
        sums[plane] = L::fma(weight, Part::load(maps.data + plane * size + from, length - at), sums[plane]);
    }
  }
  for (int plane = 0; plane < planes; ++plane) Part::store(rows + plane * stride + EDGE + at, sums[plane], length - at);
}
const float share = settings.data[0], each = settings.data[12];
float likeness = 0.0f, difference = 0.0f;
for (int at = 0; at < length; at += LANES) {
  const int count = length - at;
  F mean[5];
  for (int plane = 0; plane < planes; ++plane) mean[plane] = Part::across(rows + plane * stride, at, weights);
  const F a = Part::load(image.data + first + at, count), b = Part::load(truth.data + first + at, count);
  if (stage == 0) {
    const F mu_a = mean[0], mu_b = mean[1];
    const F top = 2.0f * mu_a * mu_b + SSIM_1, top_2 = 2.0f * (mean[4] - mu_a * mu_b) + SSIM_2;
    const F low = mu_a * mu_a + mu_b * mu_b + SSIM_1;
    const F low_2 = L::max(mean[2] - mu_a * mu_a + mean[3] - mu_b * mu_b, N::c(0.0f)) + SSIM_2;
    const F over = 1.0f / (low * low_2), value = top * top_2 * over;
    const F by_square = -value / low_2, by_product = 2.0f * top * over;
    const F by_mean = 2.0f * mu_b * top_2 * over - 2.0f * mu_a * (value / low) - 2.0f * mu_a * by_square - mu_b * by_product;
    Part::store(maps.data + first + at, by_mean, count);
    Part::store(maps.data + size + first + at, by_square, count);
    Part::store(maps.data + 2 * size + first + at, by_product, count);
    const F off = N::abs(a - b);
    for (int k = 0; k < LANES && k < count; ++k) likeness += value[k], difference += off[k];
  } else {
    const F slope = mean[0] + 2.0f * a * mean[1] + b * mean[2];
    const F sign = N::select(a > b, N::c(1.0f), N::select(a < b, N::c(-1.0f), N::c(0.0f)));
    Part::store(out.data + first + at, each * ((1.0f - share) * sign - share * slope), count);
  }
}
if (stage == 0) {
  sums.data[2 * here] = difference;
  sums.data[2 * here + 1] = likeness;
}
#endif
