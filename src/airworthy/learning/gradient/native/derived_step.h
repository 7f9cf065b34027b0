// One policy step of many flights and its adjoint, a block of LANES environments per task. Forwards: action -> command -> SUBSTEPS of
// controller and physics -> next rows, observation, cost. Backwards (`back`): the same flown once more, its states kept in the launch,
// then the adjoint of each part in turn. Its twin is `airworthy.learning.gradient.derived_step.StepTwin`. STATE, ACTIONS, MEMORY, ROWS,
// OBSERVED, PARAMETERS, WANTED, SUBSTEPS and SLOPED (PARAMETERS, or 0 where no slope by them is asked for) are enumerators.
#if defined(__CUDA_ARCH__) || defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define SEPARATE __device__ __noinline__
#else
#define SEPARATE __attribute__((noinline))
#endif
struct T {
TRACED_BLOCKS
};
const int lane0 = task * LANES;
#define ROW(array, r) (array.data + (long long)(r) * env_count + lane0)
enum { F_COST, F_TERMINATED, F_SUCCESS, F_SOUND };
const F zero = N::c(0.0f), one = N::c(1.0f);
F p[PARAMETERS], a[ACTIONS], within[ACTIONS], b[ACTIONS], m[MEMORY + 1], path[(SUBSTEPS + 1) * STATE], wanted[WANTED];
for (int k = 0; k < PARAMETERS; ++k) p[k] = N::load(ROW(parameters, k));
for (int k = 0; k < STATE; ++k) path[k] = N::load(ROW(state, k));
for (int k = 0; k < ACTIONS; ++k) b[k] = N::load(ROW(state, STATE + k));
for (int k = 0; k < MEMORY; ++k) m[k] = N::load(ROW(state, STATE + ACTIONS + k));
const F h = N::load(ROW(state, ROWS - 1));
M sound = N::finite(h);
for (int k = 0; k < ACTIONS; ++k) {
  const F asked = N::load(ROW(actions, k));
  sound = sound & N::finite(asked);
  const M inside = (asked <= one) & (asked >= -one);
  within[k] = N::select(inside, one, zero);
  a[k] = N::select(asked > one, one, N::select(asked < -one, -one, asked));
}
T::command(a, p, b, m, h, wanted);
PRAGMA_NOUNROLL
for (int step = 0; step < SUBSTEPS; ++step)
  T::physics(path + step * STATE, wanted, p, b, m, h, path + (step + 1) * STATE);
F* const x = path + SUBSTEPS * STATE;
if (!back) {
  F out[ROWS - 1 + OBSERVED + 3];
  T::finish(path, x, a, p, b, m, h, out);
  F size = zero;
  for (int k = 0; k < ROWS + OBSERVED; ++k) size += out[k] * zero;
  sound = sound & N::finite(size);
  const F* const told = out + ROWS - 1 + OBSERVED;
  // No number is not 0/0 of some compilers: what left the numbers is the same bits everywhere.
  const F none = N::from_bits(N::u(0x7fc00000u));
  for (int k = 0; k < ROWS - 1; ++k) N::store(ROW(after, k), N::select(sound, out[k], none));
  N::store(ROW(after, ROWS - 1), N::select(sound, h + one, none));
  for (int k = 0; k < OBSERVED; ++k) N::store(ROW(after, ROWS + k), N::select(sound, out[ROWS - 1 + k], zero));
  N::store(ROW(flags, F_COST), N::select(sound, told[0], zero));
  N::store(ROW(flags, F_TERMINATED), N::select(sound, told[1], one));
  N::store(ROW(flags, F_SUCCESS), N::select(sound, told[2], zero));
  N::store(ROW(flags, F_SOUND), N::select(sound, one, zero));
} else {
  // Of `finish`, its seeds lie as its results do: next rows but the age, observation, cost.
  F seed[ROWS + OBSERVED], g[2 * STATE + ACTIONS + SLOPED + ACTIONS + MEMORY], bar[STATE], by_wanted[WANTED];
  for (int k = 0; k < ROWS - 1; ++k) seed[k] = N::load(ROW(seeds, k));
  for (int k = ROWS - 1; k < ROWS + OBSERVED; ++k) seed[k] = N::load(ROW(seeds, k + 1));
  T::finish_adjoint(path, x, a, p, b, m, h, seed, g);
  // Rows of a part's slopes: its own inputs, then parameters where they are asked for, the action before, and memory.
  enum { SHARED = SLOPED + ACTIONS + MEMORY, G_X = STATE, G_A = 2 * STATE, G_SHARED = 2 * STATE + ACTIONS };
  for (int k = 0; k < STATE; ++k) bar[k] = g[G_X + k];
  for (int k = 0; k < WANTED; ++k) by_wanted[k] = zero;
  PRAGMA_NOUNROLL
  for (int step = SUBSTEPS - 1; step >= 0; --step) {
    F more[STATE + WANTED + SHARED];
    T::physics_adjoint(path + step * STATE, wanted, p, b, m, h, bar, more);
    for (int k = 0; k < STATE; ++k) bar[k] = more[k];
    for (int k = 0; k < WANTED; ++k) by_wanted[k] += more[STATE + k];
    for (int k = 0; k < SHARED; ++k) g[G_SHARED + k] += more[STATE + WANTED + k];
  }
  F more[ACTIONS + SHARED];
  T::command_adjoint(a, p, b, m, h, by_wanted, more);
  for (int k = 0; k < ACTIONS; ++k) g[G_A + k] = (g[G_A + k] + more[k]) * within[k];
  for (int k = 0; k < SHARED; ++k) g[G_SHARED + k] += more[ACTIONS + k];
  for (int k = 0; k < STATE; ++k) g[k] += bar[k];
  F size = zero;
  for (int k = 0; k < STATE; ++k) size += g[k] * zero;
  for (int k = G_A; k < G_SHARED + SHARED; ++k) size += g[k] * zero;
  // What left the numbers, or whose slope did, teaches nothing and spoils no other.
  const M fine = (N::load(ROW(flags, F_SOUND)) > N::c(0.5f)) & N::finite(size);
  for (int k = 0; k < STATE; ++k) N::store(ROW(slopes, k), N::select(fine, g[k] * keep, zero));
  for (int k = 0; k < ACTIONS + MEMORY; ++k)
    N::store(ROW(slopes, STATE + k), N::select(fine, g[G_SHARED + SLOPED + k] * keep, zero));
  N::store(ROW(slopes, ROWS - 1), zero);
  for (int k = 0; k < ACTIONS; ++k) N::store(ROW(slopes, ROWS + k), N::select(fine, g[G_A + k], zero));
  for (int k = 0; k < SLOPED; ++k) N::store(ROW(slopes, ROWS + ACTIONS + k), N::select(fine, g[G_SHARED + k], zero));
}
