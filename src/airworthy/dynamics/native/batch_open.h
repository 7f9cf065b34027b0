// Opens the loop over a task's blocks and spreads parameters into lanes; shared by the families. Closed by `}` at the end of each.
const bool shared = (flags & E_SHARED_PARAMETERS) != 0;
#if LANES == 1
const int block_end = task + 1;
#else
F par_lanes[P_COUNT];
const int block_end = task * GROUP + GROUP < block_count ? task * GROUP + GROUP : block_count;
#endif
for (int block = LANES == 1 ? task : task * GROUP; block < block_end; ++block) {
const int lane0 = block * LANES;
float* const state_row = state.data + lane0;
const float* const input_row = inputs.data + lane0;
#define STATE(r) (state_row + (r) * stride)
#define INPUT(r) (input_row + (r) * stride)
#define HAS(flag) ((flags & (flag)) != 0)

// Parameters: a local copy in lanes on a CPU; on a GPU each use reads through the cache, which spares registers.
#if LANES == 1
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
if (!shared || block == task * GROUP) {
  for (int r = 0; r < (PARAMETERS_USED); ++r) {
    const float* p = params.data + param_table.data[2 * r];
    par_lanes[r] = param_table.data[2 * r + 1] ? N::load(p + lane0) : N::c(*p);
  }
}
#endif
#define CON(r) PAR(P_CONTROL_START + (r))
struct T {
TRACED_BLOCKS
};
