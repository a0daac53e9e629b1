/* Memory over one step, recorded through ckpt_tape_set_trace and drawn as SVG. */
#ifndef TRAIN_GPT_TIMELINE_H
#define TRAIN_GPT_TIMELINE_H

#include <ckpt/tape.h>

enum phase { PHASE_FORWARD, PHASE_RECOMPUTE, PHASE_BACKWARD };

struct timeline {
  struct moment {
    double seconds; /* since the start */
    size_t bytes;   /* live from here on */
    enum phase phase;
  } *moments;
  size_t count, capacity;
  double start;
  int out_of_memory;
};

struct panel {
  const struct timeline *timeline;
  char title[64], note[96];
  size_t budget; /* 0: none */
};

/* Records what `tape` does until timeline_stop. */
int timeline_start(struct timeline *timeline, ckpt_tape *tape);
int timeline_stop(struct timeline *timeline, ckpt_tape *tape);
void timeline_free(struct timeline *timeline);

/* Writes DIR/timeline.svg: one panel each, same scales. 0, or an exit status after a complaint. */
int timeline_draw(const char *directory, const char *title, const struct panel *panels, size_t count);

#endif
