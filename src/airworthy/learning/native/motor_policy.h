/* A motor policy of the vehicle @VEHICLE@, written by airworthy @VERSION@. C99, float32; needs only the mathematics library.

   @NAME@_reset(&state) before a flight, then @RATE@ times per second: @NAME@_observe, @NAME@_act, @NAME@_command.

   observation:
@OBSERVATION@
   Frames: @FRAMES@.
   action: -1 to 1 per rotor; @ACTION@ [@UNIT@]. */
#ifndef @GUARD@
#define @GUARD@

#include <math.h>
#include <string.h>

static const float @NAME@_low[@ACTIONS@] = {@LOW@}; /* [@UNIT@] at action -1 */
static const float @NAME@_high[@ACTIONS@] = {@HIGH@}; /* [@UNIT@] at action 1 */
static const float @NAME@_hover[@ACTIONS@] = {@HOVER@}; /* actions of hover */
@TENSORS@

typedef struct {
    float past[@PAST@]; /* actions of all rotors, the newest first; @SIGHT@ */@REMEMBERED@
} @NAME@_state;

static inline void @NAME@_reset(@NAME@_state *state)
{
    for (int i = 0; i < @PAST@; i++) state->past[i] = @NAME@_hover[i % @ACTIONS@];@FORGET@
}

/* From differences to the target in the world (z up) [m, m/s], attitude x, y, z, w (body to world), body rate [rad/s] and the
   target's heading from world x [rad]. */
static inline void @NAME@_observe(const float position_error[3], const float velocity_error[3], const float attitude[4],
                                  const float rate[3], float heading, float observation[18])
{
    const float x = attitude[0], y = attitude[1], z = attitude[2], w = attitude[3], c = cosf(heading), s = sinf(heading);
    const float axes[9] = {1.0f - 2.0f * (y * y + z * z), 2.0f * (x * y + w * z), 2.0f * (x * z - w * y),
                           2.0f * (x * y - w * z), 1.0f - 2.0f * (x * x + z * z), 2.0f * (y * z + w * x),
                           2.0f * (x * z + w * y), 2.0f * (y * z - w * x), 1.0f - 2.0f * (x * x + y * y)};
    const float scale[6] = {@SCALES@};
    for (int k = 0; k < 5; k++) { /* these vectors are turned by minus the heading */
        const float *v = k == 0 ? position_error : k == 1 ? velocity_error : &axes[3 * (k - 2)];
        observation[3 * k] = scale[k] * (c * v[0] + s * v[1]);
        observation[3 * k + 1] = scale[k] * (c * v[1] - s * v[0]);
        observation[3 * k + 2] = scale[k] * v[2];
    }
    for (int i = 0; i < 3; i++) observation[15 + i] = scale[5] * rate[i];
}

static inline void @NAME@_layer(const float *w, const float *b, int rows, int columns, const float *in, float *out)
{
    for (int i = 0; i < rows; i++) {
        float sum = b[i];
        for (int j = 0; j < columns; j++) sum += w[i * columns + j] * in[j];
        out[i] = tanhf(sum);
    }
}
@GRU@
static inline void @NAME@_act(@NAME@_state *state, const float observation[18], float action[@ACTIONS@])
{
    float seen[18 + @PAST@], @BUFFERS@;
    memcpy(seen, observation, 18 * sizeof(float));
    memcpy(seen + 18, state->past, sizeof state->past);
@LAYERS@
    memmove(state->past + @ACTIONS@, state->past, sizeof state->past - @ACTIONS@ * sizeof(float));
    memcpy(state->past, action, @ACTIONS@ * sizeof(float));
}

static inline void @NAME@_command(const float action[@ACTIONS@], float rotor[@ACTIONS@])
{
    for (int i = 0; i < @ACTIONS@; i++) {
        const float low = @NAME@_low[i], high = @NAME@_high[i];
        rotor[i] = @COMMAND@;
    }
}

#endif
