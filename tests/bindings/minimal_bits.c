/* The loss of examples/minimal.c after its last step, as bits: what the same program in other languages must give. */
#include <inttypes.h>
#define main minimal_main
#include "../../examples/minimal.c"
#undef main

int main(void) {
  const size_t each = 1 + LAYERS * 2 * WEIGHTS;
  struct layer *layers = malloc(LAYERS * sizeof *layers);
  float *trail = malloc(sizeof(float) * STEPS * each);
  ckpt_tape_stats stats = {.struct_size = sizeof stats};
  ckpt_device *device = NULL;
  uint32_t bits = 0;
  if (layers == NULL || trail == NULL) return 1;
  TRY(ckpt_device_open("cpu", &device));
  if (train(device, 0, layers, trail, &stats) != 0) return 1;
  memcpy(&bits, &trail[(STEPS - 1) * each], sizeof bits);
  printf("loss bits %08" PRIx32 "\n", bits);
  ckpt_device_close(device);
  free(trail);
  free(layers);
  return 0;
}
