/* A program outside the tree: C99, the installed headers alone. Exit status 0 if the library does what its headers say. */
#include <ckpt/ckpt.h>
#include <stdio.h>
#include <string.h>

#define EXPECT(condition)                                                          \
  do {                                                                             \
    if (!(condition)) {                                                            \
      printf("%s:%d: expected " #condition ": %s\n", __FILE__, __LINE__, ckpt_last_error()); \
      return 1;                                                                    \
    }                                                                              \
  } while (0)

static int check_version(void) {
  char text[64];
  snprintf(text, sizeof text, "%d.%d.%d", CKPT_VERSION_MAJOR, CKPT_VERSION_MINOR, CKPT_VERSION_PATCH);
  EXPECT(strcmp(ckpt_version_string(), text) == 0);
  EXPECT(ckpt_version() == CKPT_VERSION_MAJOR * 1000000 + CKPT_VERSION_MINOR * 1000 + CKPT_VERSION_PATCH);
  return 0;
}

/* Known answers of philox4x32-10, from the Random123 distribution. */
static int check_philox(void) {
  const uint32_t zero[4] = {0, 0, 0, 0}, ones[4] = {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu};
  const uint32_t of_zero[4] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
  const uint32_t of_ones[4] = {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu};
  uint32_t out[4];
  ckpt_philox_block(zero, zero, out);
  EXPECT(memcmp(out, of_zero, sizeof out) == 0);
  ckpt_philox_block(ones, ones, out);
  EXPECT(memcmp(out, of_ones, sizeof out) == 0);
  return 0;
}

static int check_arena(void) {
  ckpt_device *device = NULL;
  ckpt_arena *arena = NULL;
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  ckpt_arena_stats stats;
  void *block;
  desc.capacity_bytes = 1 << 20;
  EXPECT(ckpt_device_open("cpu", &device) == CKPT_OK);
  EXPECT(ckpt_arena_create(device, &desc, &arena) == CKPT_OK);
  ckpt_device_close(device);
  block = ckpt_arena_alloc(arena, 1000, 0);
  EXPECT(block != NULL);
  memset(block, 1, 1000);
  stats.struct_size = sizeof stats;
  EXPECT(ckpt_arena_get_stats(arena, &stats) == CKPT_OK);
  EXPECT(stats.in_use_bytes == 1024 && stats.block_count == 1);
  EXPECT(ckpt_arena_alloc(arena, 2 << 20, 0) == NULL && ckpt_last_status() == CKPT_ERROR_BUDGET);
  EXPECT(ckpt_arena_free(arena, block) == CKPT_OK);
  ckpt_arena_destroy(arena);
  return 0;
}

static int check_schedule(void) {
  uint64_t extra = 0;
  EXPECT(ckpt_revolve_extra_forwards(10, 3, &extra) == CKPT_OK && extra == 15);
  EXPECT(ckpt_device_open("no such device", NULL) < 0);
  return 0;
}

/* With an argument: what opening that device says. */
static int open_device(const char *name) {
  ckpt_device *device = NULL;
  const ckpt_status status = ckpt_device_open(name, &device);
  printf("%s: %s\n", ckpt_status_name(status), status == CKPT_OK ? name : ckpt_last_error());
  ckpt_device_close(device);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1) return open_device(argv[1]);
  if (check_version() || check_philox() || check_arena() || check_schedule()) return 1;
  printf("ckpt %s works\n", ckpt_version_string());
  return 0;
}
