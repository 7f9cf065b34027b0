// Of one polynomial, cut into equal parts, whether the convex hulls of all parts keep a flight's limits, and the longest speed in
// them. Twin: motion.py, to the bit: sums and products in its order, the change of basis by fused multiply-adds, as BLAS does it.
enum { PARTS = 4, POWERS = 6, AXES = 3 };
const double* const c = coefficients.data + (size_t)POWERS * AXES * task;
const double* const shift = powers.data + (size_t)PARTS * POWERS * task;
const double* const scale = shift + POWERS;  // of the second part: the length of one
const double binomial[POWERS][POWERS] = {{1}, {1, 1}, {1, 2, 1}, {1, 3, 3, 1}, {1, 4, 6, 4, 1}, {1, 5, 10, 10, 5, 1}};
bool keeps = true;
double fastest = 0.0;
for (int part = 0; part < PARTS; ++part) {
  double x[POWERS][AXES];
  for (int low = 0; low < POWERS; ++low) {
    double sum[AXES] = {0.0, 0.0, 0.0};
    for (int power = low; power < POWERS; ++power) {
      const double share = binomial[power][low] * shift[POWERS * part + power - low];
      for (int a = 0; a < AXES; ++a) sum[a] += share * c[AXES * power + a];
    }
    for (int a = 0; a < AXES; ++a) x[low][a] = sum[a] * scale[low];
  }
  double longest[4] = {0.0, 0.0, 0.0, 0.0}, lift = 0.0, lowest = 0.0;
  int row = POWERS;  // behind the rows of the position
  for (int order = 1; order < (keeps ? 4 : 2); ++order) {
    for (int r = 0; r < POWERS - order; ++r, ++row) {
      double v[AXES];
      for (int a = 0; a < AXES; ++a) {
        double sum = 0.0;
        for (int power = order; power <= order + r; ++power) sum = __builtin_fma(matrix.data[POWERS * row + power], x[power][a], sum);
        v[a] = sum / scale[order];
      }
      const double flat = v[0] * v[0] + v[1] * v[1], square = flat + v[2] * v[2];
      if (square > longest[order] || square != square) longest[order] = square;
      if (order == 2) {
        const double up = v[2] + gravity, pull = flat + up * up;
        if (pull > lift || pull != pull) lift = pull;
        if (r == 0 || up < lowest || up != up) lowest = up;
      }
    }
  }
  const double speed = ::sqrt(longest[1]);
  if (speed > fastest || speed != speed) fastest = speed;
  keeps = keeps && speed <= limits.data[0] && ::sqrt(longest[2]) <= limits.data[1] && ::sqrt(lift) <= limits.data[2] &&
          lowest >= limits.data[3] && ::sqrt(longest[3]) <= limits.data[4];
}
kept.data[task] = keeps;
most.data[task] = fastest;
