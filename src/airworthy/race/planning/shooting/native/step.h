// One Runge-Kutta step with its slopes and second derivatives: as step.py, one step after the other. The traced equations of
// curvature.py stand where they are named. Rows are padded to ZP numbers, so that loops over columns fill vectors.
#if defined(__CUDA_ARCH__) || defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define INLINE __device__ __forceinline__
#define METHOD __device__ __noinline__
#else
#define INLINE inline __attribute__((always_inline))
#define METHOD __attribute__((noinline))
#endif
struct Equations {
  // The traced text is that of the lanes; here it stands for single numbers of double precision.
  typedef double F;
  typedef bool M;
  struct N {
    static INLINE double c(double x) { return x; }
    static INLINE unsigned int u(unsigned int x) { return x; }
    static INLINE double sqrt(double x) { return ::sqrt(x); }
    static INLINE double abs(double x) { return ::fabs(x); }
    static INLINE double floor(double x) { return ::floor(x); }
    static INLINE double select(bool m, double a, double b) { return m ? a : b; }
    static INLINE bool invert(bool m) { return !m; }
    // Powers of two are made of the bits of a float32, which holds all that `exp` asks for.
    static INLINE double from_bits(unsigned int u) {
      union { unsigned int i; float f; } x;
      x.i = u;
      return x.f;
    }
    static INLINE unsigned int whole(double x) { return (unsigned int)x; }
  };
TRACED_BLOCKS
};
struct Step {
  static INLINE double larger(double a, double b) { return b > a ? b : a; }
  static INLINE double smaller(double a, double b) { return b < a ? b : a; }
  static INLINE void zero(double* to, int count) {
    for (int i = 0; i < count; ++i) to[i] = 0.0;
  }
  // to += by * row, over the columns of z.
  static INLINE void add(double* to, double by, const double* row) {
    for (int j = 0; j < ZP; ++j) to[j] += by * row[j];
  }
  static METHOD void terms(const double* x, const double* u, double h, const double* weight, const double* vehicle,
                           double* after, double* slopes, double* curves) {
    const double ahead[4] = {0.5, 0.5, 1.0, 0.0}, share[4] = {1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0};
    double active[4][ACTIVE], seen[4][ACTIVE][ZP], turn[4][NX][ZP], speed[4][NX], jacobian[4][FLOW * ACTIVE];
    double at[NX], total[NX];
    zero(&seen[0][0][0], 4 * ACTIVE * ZP);
    zero(&turn[0][0][0], 4 * NX * ZP);
    zero(total, NX);
    zero(slopes, NX * ZP);
    for (int i = 0; i < NX; ++i) at[i] = x[i];
    for (int i = 3; i < NX; ++i) seen[0][i - 3][i] = 1.0;
    for (int stage = 0; stage < 4; ++stage) {
      double(*by)[ZP] = seen[stage], (*to)[ZP] = turn[stage];
      by[ACTIVE - 1][NX] = 1.0;
      for (int i = 0; i < ACTIVE - 1; ++i) active[stage][i] = at[3 + i];
      active[stage][ACTIVE - 1] = u[0];
      double values[FLOW];
      Equations::flow_slopes(active[stage], vehicle, values, jacobian[stage]);
      for (int i = 0; i < 3; ++i) {
        speed[stage][i] = at[3 + i];
        speed[stage][10 + i] = u[1 + i];
        for (int j = 0; j < ZP; ++j) to[i][j] = by[i][j];
        to[10 + i][NX + 1 + i] = 1.0;
      }
      for (int i = 0; i < FLOW; ++i) {
        // Summed in registers: what is in memory could be another name of what is added.
        double row[ZP];
        zero(row, ZP);
        for (int k = 0; k < ACTIVE; ++k) add(row, jacobian[stage][i * ACTIVE + k], by[k]);
        for (int j = 0; j < ZP; ++j) to[3 + i][j] = row[j];
        speed[stage][3 + i] = values[i];
      }
      for (int i = 0; i < NX; ++i) {
        total[i] += share[stage] * speed[stage][i];
        add(slopes + i * ZP, share[stage] * h, to[i]);
      }
      if (stage == 3) break;
      const double a = ahead[stage] * h;
      for (int i = 0; i < NX; ++i) at[i] = x[i] + a * speed[stage][i];
      for (int i = 0; i < ACTIVE - 1; ++i) {
        double* next = seen[stage + 1][i];
        for (int j = 0; j < ZP; ++j) next[j] = a * to[3 + i][j];
        next[3 + i] += 1.0;
        next[NZ - 1] += ahead[stage] * speed[stage][3 + i];
      }
    }
    for (int i = 0; i < NX; ++i) {
      after[i] = x[i] + h * total[i];
      slopes[i * ZP + i] += 1.0;
      slopes[i * ZP + NZ - 1] += total[i];
    }
    zero(curves, NZ * ZP);
    double back[NX];
    zero(back, NX);
    for (int stage = 3; stage >= 0; --stage) {
      double push[NX], by_h[ZP], second[ACTIVE * ACTIVE], bent[ACTIVE][ZP];
      zero(by_h, ZP);
      for (int i = 0; i < NX; ++i) {
        const double bare = share[stage] * weight[i] + ahead[stage] * back[i];
        add(by_h, bare, turn[stage][i]);
        push[i] = h * bare;
      }
      for (int j = 0; j < NZ; ++j) {
        curves[j * ZP + NZ - 1] += by_h[j];
        curves[(NZ - 1) * ZP + j] += by_h[j];
      }
      Equations::flow_curves(active[stage], push + 3, vehicle, second);
      for (int i = 0; i < ACTIVE; ++i) {
        double row[ZP];
        zero(row, ZP);
        for (int k = 0; k < ACTIVE; ++k) add(row, second[i * ACTIVE + k], seen[stage][k]);
        for (int j = 0; j < ZP; ++j) bent[i][j] = row[j];
      }
      // Positions bend nothing: the first three rows are those of the duration alone.
      for (int j = 3; j < NZ; ++j) {
        double row[ZP];
        for (int o = 0; o < ZP; ++o) row[o] = curves[j * ZP + o];
        for (int i = 0; i < ACTIVE; ++i) add(row, seen[stage][i][j], bent[i]);
        for (int o = 0; o < ZP; ++o) curves[j * ZP + o] = row[o];
      }
      zero(back, NX);
      for (int i = 0; i < 3; ++i) back[3 + i] = push[i];
      for (int i = 0; i < FLOW; ++i)
        for (int k = 0; k < ACTIVE - 1; ++k) back[3 + k] += push[3 + i] * jacobian[stage][i * ACTIVE + k];
    }
  }
};
