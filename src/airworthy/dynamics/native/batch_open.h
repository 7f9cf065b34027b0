// Opens the loop over a task's blocks and spreads parameters into lanes; shared by the families. Closed by `}` at the end of each.
const bool shared = (flags & E_SHARED_PARAMETERS) != 0;
#if LANES == 1
const int block_end = task + 1;
#else
const int block_end = task * GROUP + GROUP < block_count ? task * GROUP + GROUP : block_count;
#endif
#if LANES > 1 || defined(PARAMETERS_CHANGE)
F par_lanes[P_COUNT];
#endif
for (int block = LANES == 1 ? task : task * GROUP; block < block_end; ++block) {
const int lane0 = block * LANES;
float* const state_row = state.data + lane0;
const float* const input_row = inputs.data + lane0;
#define STATE(r) (state_row + (r) * stride)
#define INPUT(r) (input_row + (r) * stride)
#define HAS(flag) ((flags & (flag)) != 0)

// Parameters: a local copy in lanes on a CPU; on a GPU each use reads through the cache, which spares registers, but for families
// that write parameters of control anew at each step.
#if LANES == 1 && !defined(PARAMETERS_CHANGE)
#define CONTEXT const float* par_data, const int* par_table, const int par_lane
#define CTX par_data, par_table, par_lane
#define PAR(r) (par_data[par_table[2 * (r)] + par_table[2 * (r) + 1] * par_lane])
const float* const par_data = params.data;
const int* const par_table = param_table.data;
const int par_lane = lane0;
#else
#define CONTEXT const F* par_lanes
#define CTX par_lanes
#define PAR(r) par_lanes[r]
if (LANES == 1 || !shared || block == task * GROUP) {
  for (int r = 0; r < (PARAMETERS_USED); ++r) {
    const float* p = params.data + param_table.data[2 * r];
    par_lanes[r] = param_table.data[2 * r + 1] ? N::load(p + lane0) : N::c(*p);
  }
}
#endif
#define CON(r) PAR(P_CONTROL_START + (r))

// A launch may come in parts, cut where sensors sample: `begun` steps of it lie behind. Its parts give the bits of the whole, so
// the displacement goes on counting from where the launch began, unless someone moved the vehicle in between. Zeros keep their
// sign in between, too.
const int begun = elapsed.data[0];
const bool unfinished = HAS(E_UNFINISHED);
const float nought = begun > 0 ? -0.0f : 0.0f;
#define LOAD_POSITION(base, moved) \
  for (int i = 0; i < 3; ++i) { \
    base[i] = N::load(STATE(S_position + i)); \
    moved[i] = N::load(STATE(S_position_residual + i)); \
  } \
  if (begun > 0) { \
    F from[3], displacement[3]; \
    M same = base[0] == base[0]; \
    for (int i = 0; i < 3; ++i) { \
      from[i] = N::load(STATE(S_launch_base + i)); \
      displacement[i] = N::load(STATE(S_launch_moved + i)); \
      same = same & (from[i] + displacement[i] == base[i]); \
    } \
    for (int i = 0; i < 3; ++i) { \
      base[i] = N::select(same, from[i], base[i]); \
      moved[i] = N::select(same, displacement[i], moved[i]); \
    } \
  }
// Near geometry a flight may go on only as far as its safe ball reaches: a lane that left it is held, that is, keeps its state of
// before this part, and the host flies it again with exact contact. So what is stored says nothing of the ball.
const M flies = N::load(STATE(S_status)) == N::c(0.0f);
M held = N::never();
#define CHECK_SAFE_BALL(base, moved) \
  if (HAS(E_CLEARANCE)) { \
    F far = N::c(0.0f); \
    for (int i = 0; i < 3; ++i) { \
      const F e = (base[i] + moved[i]) - N::load(INPUT(IN_safe_center + i)); \
      far += e * e; \
    } \
    held = held | (flies & N::invert(far <= N::load(INPUT(IN_safe_square)))); \
  }
#define HOLD \
  const bool holding = HAS(E_CLEARANCE) && N::any(held); \
  if (HAS(E_CLEARANCE)) N::store(STATE(S_held), N::select(held, N::c(1.0f), N::c(0.0f)));
#define STORE(row, x) N::store(STATE(row), holding ? N::select(held, N::load(STATE(row)), x) : (x))
#define STORE_CLOCK(now) \
  { \
    unsigned int* const at = keys.data + 4 * stride + lane0; \
    const F before = N::from_bits(N::load_u(at)), after = N::from_bits(now); \
    N::store_u(at, holding ? N::to_bits(N::select(held, before, after)) : now); \
  }
#define STORE_POSITION(base, moved) \
  for (int i = 0; i < 3; ++i) { \
    F sum = base[i] + moved[i]; \
    STORE(S_position + i, sum); \
    STORE(S_position_residual + i, moved[i] - (sum - base[i])); \
    if (unfinished || begun > 0) { \
      STORE(S_launch_base + i, unfinished ? base[i] : N::c(0.0f)); \
      STORE(S_launch_moved + i, unfinished ? moved[i] : N::c(0.0f)); \
    } \
  }
// Steps with a saturated command, kept as a share of the steps so far.
#define LOAD_SATURATED (begun > 0 ? N::floor(N::load(STATE(S_saturated)) * (float)begun + 0.5f) : N::c(0.0f))
#define SATURATED_SHARE(count) (count * (1.0f / (float)(begun + substeps > 0 ? begun + substeps : 1)))
struct T {
TRACED_BLOCKS
};
