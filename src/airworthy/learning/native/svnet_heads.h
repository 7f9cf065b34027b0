/* What an SV-Net policy does beside its backbone, written by airworthy @VERSION@: history, heads, bounds. C99, float32; needs
   only <string.h>. Variant @VARIANT@, @RATE@ decisions per second; contract.json says the rules in words.

   @NAME@_reset(&state, idle) before a flight; then at each tick @NAME@_sense and, where an image has arrived or none is needed,
   @NAME@_decide.

   Sensed frames: world z up, body x forward, y left, z up; quaternions x, y, z, w, body to world. Inside, and in objectives:
   world z down, body x forward, y right, z down. */
#ifndef @GUARD@
#define @GUARD@

#include <string.h>

@TENSORS@

typedef struct {
    float history[75];  /* number i of the row of j ticks ago at 5 i + j */
    float seen[@SEEN@]; /* of this tick, as the network reads it */
    float attitude[4];  /* of this tick, w >= 0, z down */
    float sensed[4];    /* the same as it was sensed, its sign kept from tick to tick */
    float velocity[3];  /* of this tick, z down */
    float given[4];     /* the command in force: clipped, z down */
    float raw[4];       /* what the network last said: not clipped, z down */
    float estimate[2];  /* mass [kg], force of one rotor at full command [N], as it last believed them */
    int ticks;
} @NAME@_state;

/* idle: weight over full thrust, with which a flight begins. */
static inline void @NAME@_reset(@NAME@_state *state, float idle)
{
    memset(state, 0, sizeof *state);
    state->given[0] = -idle;
}

static inline void @NAME@_push(@NAME@_state *state, float dt, const float velocity[3], const float now[4])
{
    const float *p = state->attitude;
    const float x = -now[0], y = -now[1], z = -now[2], w = now[3];
    float row[15] = {dt, @MOVED@ velocity[0], @MOVED@ velocity[1], @MOVED@ velocity[2]};
    for (int i = 0; i < 3; i++) row[4 + i] = velocity[i] - state->velocity[i];
    row[7] = w * p[0] + x * p[3] + y * p[2] - z * p[1]; /* inverse of now, times before */
    row[8] = w * p[1] - x * p[2] + y * p[3] + z * p[0];
    row[9] = w * p[2] + x * p[1] - y * p[0] + z * p[3];
    row[10] = w * p[3] - x * p[0] - y * p[1] - z * p[2];
    if (row[10] < 0.0f)
        for (int i = 7; i < 11; i++) row[i] = -row[i];
    memcpy(row + 11, state->given, 4 * sizeof(float));
    for (int i = 0; i < 15; i++) {
        memmove(state->history + 5 * i + 1, state->history + 5 * i, 4 * sizeof(float));
        state->history[5 * i] = row[i];
    }
}

/* A tick. dt: since the tick before [s], of no meaning at the first; @PLACESAID@; velocity, world [m/s]; attitude. */
static inline void @NAME@_sense(@NAME@_state *state, float dt, @PLACE@, const float velocity[3], const float attitude[4])
{
    const float turned[3] = {velocity[0], -velocity[1], -velocity[2]};
    float now[4], same = 0.0f;
    for (int i = 0; i < 4; i++) same += attitude[i] * state->sensed[i];
    for (int i = 0; i < 4; i++) state->sensed[i] = same < 0.0f ? -attitude[i] : attitude[i];
    const float sign = state->sensed[3] < 0.0f ? -1.0f : 1.0f;
    for (int i = 0; i < 4; i++) now[i] = (i == 1 || i == 2 ? -sign : sign) * state->sensed[i];
    if (state->ticks++ > 0) @NAME@_push(state, dt, turned, now);
    memcpy(state->velocity, turned, sizeof turned);
    memcpy(state->attitude, now, sizeof now);
@SENSE@
}

static inline void @NAME@_layer(const float *w, const float *b, int rows, int columns, const float *in, float *out, int rectified)
{
    for (int i = 0; i < rows; i++) {
        float sum = b[i];
        for (int j = 0; j < columns; j++) sum += w[i * columns + j] * in[j];
        out[i] = rectified && sum < 0.0f ? 0.0f : sum;
    }
}

/* objective: 18 numbers of the course, as contract.json says; @SCORESSAID@full_thrust: of all rotors at full command along the
   body's z axis [N]; command: thrust [N] along the body's z axis, body rates x, y, z [rad/s] in sensed frames. */
static inline void @NAME@_decide(@NAME@_state *state, const float objective[18]@SCORES@, float full_thrust, float command[4])
{
    static const float low[4] = {@LOW@}, high[4] = {@HIGH@};
    float a[@WIDE@], b[@WIDE@], read[@READ@];
    memcpy(read, state->seen, @SEEN@ * sizeof(float));
    memcpy(read + @SEEN@, objective, 18 * sizeof(float));
@LAYERS@
    for (int i = 0; i < 4; i++) {
        const float x = state->raw[i];
        state->given[i] = x < low[i] ? low[i] : x > high[i] ? high[i] : x;
    }
    command[0] = -state->given[0] * full_thrust;
    command[1] = state->given[1];
    command[2] = -state->given[2];
    command[3] = -state->given[3];
}

#endif
