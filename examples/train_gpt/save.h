/* One file with all that a bit-identical continuation needs: what shaped the training, parameters, AdamW's moments, the step.
 *
 * Layout, in the machine's byte order: struct save_header; three arrays of parameter_count floats (parameters, first and
 * second moments); a checksum of all that is before it (8 bytes). */
#ifndef TRAIN_GPT_SAVE_H
#define TRAIN_GPT_SAVE_H

#include "options.h"
#include "text.h"

enum { SAVE_VERSION = 2 };

/* State in the host's memory, float32 whatever the dtype: the parameters are the ones that AdamW updates. */
struct snapshot {
  float *parameters, *first_moment, *second_moment;
  uint64_t step;
};

struct save_header {
  char magic[8];       /* "ckptgpt" */
  uint32_t version;    /* SAVE_VERSION: also tells a file of the other byte order */
  uint32_t attention;
  uint32_t dtype, reserved; /* reserved: 0 */
  uint64_t step, parameter_count;
  uint64_t layers, heads, channels, sequence, batch, accumulation, seed;
  uint64_t text_bytes, text_hash;
  double dropout, learning_rate, weight_decay, max_norm;
};

/* Writes beside `file` under another name, forces it to the disk and renames it: at any moment `file` is the old one or the
 * new one, whole. 0, or an exit status after a complaint. */
int save_write(const char *file, const struct options *options, const struct text *text, const struct snapshot *state, size_t parameter_count);

/* Reads all of it and checks it before it changes `state`. */
int save_read(const char *file, const struct options *options, const struct text *text, struct snapshot *state, size_t parameter_count);

#endif
