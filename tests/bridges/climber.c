/* Goes to (0, 0, 2) as tests/bridges/test_external_pilots.py's Climber does: velocity commands from a position, in the same order. */
#include "airworthy_pilot.h"

static int command(const aw_message *seen, double *out, void *mine) {
    const aw_array *position = aw_find(seen, "position");
    (void)mine;
    if (!position || strcmp(position->type, "<f8") != 0) return 1;
    const double *at = (const double *)position->data;
    for (size_t k = 0; k < position->shape[0]; k++) {
        out[4 * k] = 0.5 * (0.0 - at[3 * k]);
        out[4 * k + 1] = 0.5 * (0.0 - at[3 * k + 1]);
        out[4 * k + 2] = 0.5 * (2.0 - at[3 * k + 2]);
    }
    return 0;
}

int main(int count, char **words) {
    aw_pilot pilot = {"climber", "velocity", 4, "[\"position\"]", 0.0, NULL, command, NULL};
    return count == 2 ? aw_serve(&pilot, atoi(words[1])) : 2;
}
