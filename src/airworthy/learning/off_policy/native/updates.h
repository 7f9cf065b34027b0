// What updates of critics and actor share: places in the kernel's arrays, and draws of actions. Needs learner.h.
#define R(name) (rows + (ROW_OF_##name) * Learner::STRIDE)
#define AT(name, k) (R(name) + (k) * Learner::STRIDE + at)
float* const rows = scratch.data;
float* const slopes_of_weights = rows + ROW_OF_ROWS * Learner::STRIDE;
float* const turned_actor = slopes_of_weights + NETWORK_SIZE;
float* const turned_critics = turned_actor + (Learner::TURNED_ACTOR + LANES) / LANES * LANES;
enum { TURNED = (Learner::TURNED_CRITIC + LANES) / LANES * LANES };
float* const actor = networks.data;
float* const critics = networks.data + CRITIC;
float* const first_moments = moments.data;
float* const second_moments = moments.data + NETWORK_SIZE;
double* const told_of = told.data;
// Behind the end of a network nothing is ever written: its gradient stays 0 there.
for (int k = 0; k < NETWORK_SIZE; ++k) slopes_of_weights[k] = 0.0f;
Learner::turn_actor(actor, turned_actor);
for (int c = 0; c < 2; ++c) Learner::turn_critic(critics + c * CRITIC_SIZE, turned_critics + c * TURNED);
F noise[(ACTIONS + 3) / 4 * 4], raw[RAWS], out[ACTIONS + 1];
U batch_key[5];
for (int k = 0; k < 4; ++k) batch_key[k] = N::load_u(batch_keys.data + k * LANES);
Threefry::expand(batch_key);
// Noise of a block of samples, and the sums of the actor's last layer there.
#define DRAW_ACTION(step, draws) \
  for (int k = 0; k < (ACTIONS + 3) / 4; ++k) \
    Threefry::normals( \
      batch_key, N::u((unsigned int)(step)), STREAM, (unsigned int)((draws) + NOISE_DRAWS + at / LANES * ((ACTIONS + 3) / 4) + k), noise + 4 * k \
    ); \
  for (int k = 0; k < RAWS; ++k) raw[k] = N::load(AT(RAW, k));
