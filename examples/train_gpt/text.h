/* The text, and batches drawn from it. */
#ifndef TRAIN_GPT_TEXT_H
#define TRAIN_GPT_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text {
  unsigned char *data;
  size_t bytes;
  size_t file_count;
  uint64_t hash;
  const char *name; /* of the file, or of the folder of sources */
};

/* Reads `file`, or, where that is NULL, every source file of the repository in sorted order. `least`: the bytes that a
 * sequence needs. 0, or an exit status after a complaint that names the file. */
int text_load(const char *file, size_t least, struct text *out);
void text_free(struct text *text);

/* Tokens and targets [batch, sequence]: row r starts at a place that depends on (seed, micro_step, r) alone. */
int text_batch(const struct text *text, uint64_t seed, uint64_t micro_step, size_t batch, size_t sequence, int32_t *tokens, int32_t *targets);

/* A checksum in which each byte and its place count: xor, multiply, shift, word by word. Starts from `hash`. */
uint64_t checksum(uint64_t hash, const void *data, size_t bytes);

#endif
