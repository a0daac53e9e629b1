#define _POSIX_C_SOURCE 200809L
#include "timeline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "train.h"

/* ---- recording ---- */

static void append(struct timeline *t, size_t bytes, enum phase phase) {
  if (t->count == t->capacity) {
    const size_t capacity = 2 * t->capacity + 256;
    struct moment *larger = realloc(t->moments, capacity * sizeof *larger);
    if (larger == NULL) {
      t->out_of_memory = 1;
      return;
    }
    t->moments = larger;
    t->capacity = capacity;
  }
  const struct moment moment = {seconds_now() - t->start, bytes, phase};
  t->moments[t->count++] = moment;
}

/* A change that belongs to no callback (something freed) keeps the colour of what ran before it. */
static void on_change(void *user, uint32_t what, uint32_t index, size_t in_use_bytes, uint32_t is_recompute) {
  struct timeline *t = user;
  enum phase phase = t->count > 0 ? t->moments[t->count - 1].phase : PHASE_FORWARD;
  (void)index;
  if (what == CKPT_ACTION_FORWARD) phase = is_recompute ? PHASE_RECOMPUTE : PHASE_FORWARD;
  if (what == CKPT_ACTION_BACKWARD) phase = PHASE_BACKWARD;
  append(t, in_use_bytes, phase);
}

int timeline_start(struct timeline *timeline, ckpt_tape *tape) {
  timeline->count = 0;
  timeline->start = seconds_now();
  append(timeline, 0, PHASE_FORWARD);
  if (ckpt_tape_set_trace(tape, on_change, timeline) != CKPT_OK) return complain("%s", ckpt_last_error());
  return 0;
}

int timeline_stop(struct timeline *timeline, ckpt_tape *tape) {
  if (ckpt_tape_set_trace(tape, NULL, NULL) != CKPT_OK) return complain("%s", ckpt_last_error());
  if (timeline->out_of_memory) return complain("out of memory for the timeline of a step");
  return 0;
}

void timeline_free(struct timeline *timeline) {
  free(timeline->moments);
  memset(timeline, 0, sizeof *timeline);
}

/* ---- drawing ---- */

static const struct { const char *colour, *name; } kPhases[] = {
    {"#7ea6d8", "forward"}, {"#ef8a3c", "forward, run again"}, {"#5b6c8f", "backward"}};

enum { WIDTH = 1240, MARGIN = 28, HEADER = 84, COLUMNS = 3, GAP = 20, LEFT = 50, TOP = 46, BOTTOM = 40, PANEL_HEIGHT = 268 };

struct scale {
  double seconds, bytes; /* at the right and upper ends */
  double x_step, y_step;
  double unit, time_unit;
  const char *unit_name, *time_name;
};

/* 1, 2, 2.5 or 5 times a power of ten, about `range` / 4. */
static double round_step(double range) {
  const double power = pow(10, floor(log10(range / 4)));
  const double steps[] = {1, 2, 2.5, 5, 10};
  for (int k = 0; k < 5; ++k)
    if (steps[k] * power >= range / 5) return steps[k] * power;
  return 10 * power;
}

static struct scale scale_of(const struct panel *panels, size_t count) {
  struct scale s = {1e-6, 1, 0, 0, 0, 0, NULL, NULL};
  for (size_t k = 0; k < count; ++k) {
    const struct timeline *t = panels[k].timeline;
    if (t->count > 0) s.seconds = fmax(s.seconds, t->moments[t->count - 1].seconds);
    for (size_t i = 0; i < t->count; ++i) s.bytes = fmax(s.bytes, (double)t->moments[i].bytes);
  }
  s.unit = s.bytes >= 2e9 ? 1073741824.0 : s.bytes >= 2e6 ? 1048576.0 : 1024.0;
  s.unit_name = s.bytes >= 2e9 ? "GiB" : s.bytes >= 2e6 ? "MiB" : "KiB";
  s.time_unit = s.seconds >= 2 ? 1 : 1e-3;
  s.time_name = s.seconds >= 2 ? "s" : "ms";
  s.y_step = round_step(s.bytes / s.unit) * s.unit;
  s.x_step = round_step(s.seconds / s.time_unit) * s.time_unit;
  s.bytes *= 1.1;
  s.seconds *= 1.01;
  return s;
}

struct box {
  double x, y, width, height; /* of the axes */
};

static double x_at(const struct box *b, const struct scale *s, double seconds) { return b->x + b->width * seconds / s->seconds; }
static double y_at(const struct box *b, const struct scale *s, double bytes) { return b->y + b->height * (1 - bytes / s->bytes); }

static void draw_axes(FILE *f, const struct box *b, const struct scale *s, int labels_left, int labels_below) {
  for (int k = 0; k * s->y_step <= s->bytes; ++k) {
    const double y = y_at(b, s, k * s->y_step);
    fprintf(f, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", k == 0 ? "axis" : "grid", b->x, y, b->x + b->width, y);
    fprintf(f, "<text class=\"tick\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%g</text>\n", b->x - 6, y + 3.5, k * s->y_step / s->unit);
  }
  for (int k = 0; k * s->x_step <= s->seconds; ++k) {
    const double x = x_at(b, s, k * s->x_step), y = b->y + b->height;
    fprintf(f, "<line class=\"axis\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x, y, x, y + 4);
    fprintf(f, "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%g</text>\n", x, y + 15, k * s->x_step / s->time_unit);
  }
  if (labels_left)
    fprintf(f, "<text class=\"label\" text-anchor=\"middle\" transform=\"translate(%.1f %.1f) rotate(-90)\">live memory, %s</text>\n", b->x - 38,
            b->y + b->height / 2, s->unit_name);
  if (labels_below)
    fprintf(f, "<text class=\"label\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">time since the step began, %s</text>\n", b->x + b->width / 2,
            b->y + b->height + 31, s->time_name);
}

/* One shape for each stretch of the same colour. */
static void draw_area(FILE *f, const struct box *b, const struct scale *s, const struct timeline *t) {
  const double floor_y = y_at(b, s, 0);
  for (size_t first = 0; first + 1 < t->count;) {
    size_t last = first + 1;
    while (last + 1 < t->count && t->moments[last].phase == t->moments[first].phase) ++last;
    const char *colour = kPhases[t->moments[first].phase].colour;
    fprintf(f, "<path fill=\"%s\" stroke=\"%s\" d=\"M%.2f %.2f", colour, colour, x_at(b, s, t->moments[first].seconds), floor_y);
    for (size_t i = first; i < last; ++i)
      fprintf(f, "V%.2fH%.2f", y_at(b, s, (double)t->moments[i].bytes), x_at(b, s, t->moments[i + 1].seconds));
    fprintf(f, "V%.2fZ\"/>\n", floor_y);
    first = last;
  }
}

/* Text that may meet '&' or '<'. */
static void draw_text(FILE *f, const char *attributes, double x, double y, const char *text) {
  fprintf(f, "<text %s x=\"%.1f\" y=\"%.1f\">", attributes, x, y);
  for (; *text != 0; ++text) {
    if (*text == '&') fputs("&amp;", f);
    else if (*text == '<') fputs("&lt;", f);
    else fputc(*text, f);
  }
  fputs("</text>\n", f);
}

static void draw_panel(FILE *f, const struct panel *p, const struct scale *s, const struct box *b, int left, int below) {
  size_t peak = 0;
  double peak_at = 0;
  for (size_t i = 0; i < p->timeline->count; ++i)
    if (p->timeline->moments[i].bytes > peak) {
      peak = p->timeline->moments[i].bytes;
      peak_at = p->timeline->moments[i].seconds;
    }
  draw_text(f, "class=\"title\"", b->x, b->y - 24, p->title);
  draw_text(f, "class=\"note\"", b->x, b->y - 9, p->note);
  draw_axes(f, b, s, left, below);
  draw_area(f, b, s, p->timeline);
  char text[64];
  const double peak_y = y_at(b, s, (double)peak);
  if (p->budget > 0 && (double)p->budget <= s->bytes) {
    const double y = y_at(b, s, (double)p->budget);
    snprintf(text, sizeof text, "budget %.1f", (double)p->budget / s->unit);
    fprintf(f, "<line class=\"budget\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", b->x, y, b->x + b->width, y);
    draw_text(f, "class=\"budget-text\" text-anchor=\"end\"", b->x + b->width, y - 4, text);
  }
  snprintf(text, sizeof text, "peak %.1f", (double)peak / s->unit);
  const double peak_x = x_at(b, s, peak_at), text_x = fmin(fmax(peak_x, b->x + 26), b->x + b->width - 26);
  fprintf(f, "<circle class=\"peak\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.2\"/>\n", peak_x, peak_y);
  draw_text(f, "class=\"peak-text\" text-anchor=\"middle\"", text_x, fmax(peak_y - 5, b->y + 4), text);
}

static void draw_header(FILE *f, const char *title) {
  draw_text(f, "class=\"heading\"", MARGIN, 32, title);
  double x = MARGIN;
  for (int k = 0; k < 3; ++k) {
    fprintf(f, "<rect x=\"%.1f\" y=\"46\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x, kPhases[k].colour);
    draw_text(f, "class=\"note\"", x + 18, 56, kPhases[k].name);
    x += 40 + 6.4 * (double)strlen(kPhases[k].name);
  }
  fprintf(f, "<line class=\"budget\" x1=\"%.1f\" y1=\"52\" x2=\"%.1f\" y2=\"52\"/>\n", x, x + 22);
  draw_text(f, "class=\"note\"", x + 28, 56, "budget (of the arena's height, placement included)");
}

int timeline_draw(const char *directory, const char *title, const struct panel *panels, size_t count) {
  char path[4096];
  if (mkdir(directory, 0777) != 0 && errno != EEXIST) return complain("--svg: directory '%s': %s", directory, strerror(errno));
  if (snprintf(path, sizeof path, "%s/timeline.svg", directory) >= (int)sizeof path) return complain("--svg: '%s' is too long a name", directory);
  FILE *f = fopen(path, "w");
  if (f == NULL) return complain("--svg: file '%s': %s", path, strerror(errno));
  const size_t columns = count < COLUMNS ? count : COLUMNS, rows = (count + columns - 1) / columns;
  const double width = ((double)WIDTH - 2 * MARGIN - GAP * (COLUMNS - 1)) / COLUMNS, height = HEADER + (double)rows * PANEL_HEIGHT + 4;
  const double whole = count < COLUMNS ? fmax(640, 2 * MARGIN + (double)columns * (width + GAP)) : WIDTH;
  fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n", whole, height, whole, height);
  fputs("<style>text{font-family:Helvetica,Arial,sans-serif;fill:#333}.heading{font-size:18px;font-weight:600}.title{font-size:13px;font-weight:600}"
        ".note{font-size:11px;fill:#666}.tick{font-size:10px;fill:#777}.label{font-size:10.5px;fill:#666}.peak-text{font-size:10.5px;font-weight:600}"
        ".budget-text{font-size:10.5px;fill:#c0392b}path{stroke-width:.5}.peak-text,.budget-text{paint-order:stroke;stroke:#fff;stroke-width:3px}"
        ".grid{stroke:#e8e8e8}.axis{stroke:#999}.budget{stroke:#c0392b;stroke-dasharray:5 3;stroke-width:1.2}"
        ".peak{fill:#333}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", f);
  draw_header(f, title);
  const struct scale s = scale_of(panels, count);
  for (size_t k = 0; k < count; ++k) {
    const size_t row = k / columns, column = k % columns;
    const struct box b = {MARGIN + (double)column * (width + GAP) + LEFT - 10, HEADER + (double)row * PANEL_HEIGHT + TOP, width - LEFT + 10,
                          PANEL_HEIGHT - TOP - BOTTOM};
    draw_panel(f, &panels[k], &s, &b, column == 0, k + columns >= count);
  }
  fputs("</svg>\n", f);
  const int bad = ferror(f);
  if (fclose(f) != 0 || bad) return complain("--svg: file '%s': %s", path, strerror(errno));
  return 0;
}
