/* estimate.h through the shared library, from C99. Golden values: Korthikanti et al. 2022 (arXiv 2205.05198), and the same count
 * by hand for blocks with gated feed-forward, grouped-query and flash attention. */
#include "ckpt/estimate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define OK(call) assert_int_equal((call), CKPT_OK)
#define GIB 1073741824.0

static void refused(ckpt_status got, ckpt_status want, const char *part) {
  assert_int_equal(got, want);
  if (strstr(ckpt_last_error(), part) == NULL) fail_msg("\"%s\" does not say \"%s\"", ckpt_last_error(), part);
}

static ckpt_model_desc gpt(uint64_t heads, uint64_t hidden, uint64_t layers, uint64_t micro_batch) {
  ckpt_model_desc m = CKPT_MODEL_DESC_INIT;
  m.flags = CKPT_MODEL_DROPOUT;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = heads;
  m.sequence = 2048;
  m.micro_batch = micro_batch;
  m.vocabulary = 51200;
  return m;
}

static ckpt_model_desc llama(uint64_t layers, uint64_t hidden, uint64_t heads, uint64_t kv_heads, uint64_t ffn, uint64_t sequence) {
  ckpt_model_desc m = CKPT_MODEL_DESC_INIT;
  m.activation = CKPT_MODEL_SWIGLU;
  m.attention = CKPT_MODEL_FLASH_ATTENTION;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = heads;
  m.kv_heads = kv_heads;
  m.ffn = ffn;
  m.sequence = sequence;
  m.micro_batch = 1;
  return m;
}

static ckpt_layout_desc layout_of(uint64_t tensor, int sequence_parallel) {
  ckpt_layout_desc l = CKPT_LAYOUT_DESC_INIT;
  l.tensor_parallel = tensor;
  l.flags = sequence_parallel ? CKPT_LAYOUT_SEQUENCE_PARALLEL : 0;
  return l;
}

static ckpt_estimate blank(void) {
  ckpt_estimate e;
  memset(&e, 0, sizeof e);
  e.struct_size = sizeof e;
  return e;
}

static ckpt_estimate estimate(const ckpt_model_desc *m, const ckpt_layout_desc *l, uint32_t policy, uint64_t rank) {
  ckpt_estimate e = blank();
  OK(ckpt_estimate_rank(m, l, NULL, policy, rank, 0, &e));
  return e;
}

static double layers_gib(const ckpt_model_desc *m, const ckpt_layout_desc *l, uint32_t policy) {
  const ckpt_estimate e = estimate(m, l, policy, 0);
  assert_true(e.activation_bytes == e.layer_bytes * e.layers_in_flight + e.outside_bytes);
  return (double)e.layer_bytes * (double)e.layers_in_flight / GIB;
}

static void near_to(double got, double want) {
  if (!(fabs(got - want) <= 0.001 * want)) fail_msg("got %.6g, expected %.6g within 0.1 %%", got, want);
}

/* A printed value with few digits: half a unit of the last digit, too. */
static void printed(double got, double want, double unit) {
  if (!(fabs(got - want) <= 0.5001 * unit + 0.001 * want)) fail_msg("got %.6g, expected %.6g", got, want);
}

static void published_models(void **state) {
  static const struct { uint64_t heads, hidden, layers, micro_batch; double none, tp, tp_sp, tp_selective, tp_sp_selective, full; } k[] = {
      {64, 6144, 48, 4, 316.5, 59.25, 39.5625, 29.25, 9.5625, 4.5},
      {96, 12288, 96, 1, 256.5, 51.75, 32.0625, 29.25, 9.5625, 4.5},
      {128, 20480, 105, 1, 401.95, 86.13, 50.24, 53.32, 17.43, 8.20},
      {160, 25600, 128, 1, 612.5, 131.25, 76.56, 81.25, 26.56, 12.5}};
  const ckpt_layout_desc alone = layout_of(1, 0), tp = layout_of(8, 0), sp = layout_of(8, 1);
  (void)state;
  for (size_t i = 0; i < sizeof k / sizeof *k; ++i) {
    const ckpt_model_desc m = gpt(k[i].heads, k[i].hidden, k[i].layers, k[i].micro_batch);
    near_to(layers_gib(&m, &alone, CKPT_RECOMPUTE_NONE), k[i].none);
    near_to(layers_gib(&m, &tp, CKPT_RECOMPUTE_NONE), k[i].tp);
    near_to(layers_gib(&m, &sp, CKPT_RECOMPUTE_NONE), k[i].tp_sp);
    near_to(layers_gib(&m, &tp, CKPT_RECOMPUTE_ATTENTION), k[i].tp_selective);
    near_to(layers_gib(&m, &sp, CKPT_RECOMPUTE_ATTENTION), k[i].tp_sp_selective);
    near_to(layers_gib(&m, &tp, CKPT_RECOMPUTE_FULL), k[i].full);
    near_to(layers_gib(&m, &sp, CKPT_RECOMPUTE_FULL), k[i].full / 8);
  }
}

static void modern_models(void **state) {
  static const struct { uint64_t layers, hidden, heads, kv_heads, ffn, sequence; double all, inputs; } k[] = {
      {32, 4096, 32, 32, 11008, 4096, 16.1, 1.0},  {32, 4096, 32, 8, 14336, 8192, 34.0, 2.0},     {80, 8192, 64, 8, 28672, 4096, 83.8, 5.0},
      {80, 8192, 64, 8, 28672, 8192, 167.7, 10.0}, {126, 16384, 128, 8, 53248, 8192, 500.6, 31.5}};
  const ckpt_layout_desc alone = layout_of(1, 0);
  (void)state;
  for (size_t i = 0; i < sizeof k / sizeof *k; ++i) {
    const ckpt_model_desc m = llama(k[i].layers, k[i].hidden, k[i].heads, k[i].kv_heads, k[i].ffn, k[i].sequence);
    const uint64_t h = k[i].hidden, tokens = k[i].sequence;
    printed(layers_gib(&m, &alone, CKPT_RECOMPUTE_NONE), k[i].all, 0.1);
    near_to(layers_gib(&m, &alone, CKPT_RECOMPUTE_FULL), k[i].inputs);
    /* h (12 + 4 g) + 6 f + 4 a for each token. */
    assert_true(estimate(&m, &alone, CKPT_RECOMPUTE_NONE, 0).layer_bytes == tokens * (12 * h + 4 * (h / k[i].heads * k[i].kv_heads) + 6 * k[i].ffn + 4 * k[i].heads));
    assert_true(estimate(&m, &alone, CKPT_RECOMPUTE_FEED_FORWARD, 0).layer_bytes == tokens * (12 * h + 4 * (h / k[i].heads * k[i].kv_heads) + 4 * k[i].heads));
  }
}

static void pipelines(void **state) {
  const ckpt_model_desc m = gpt(96, 12288, 96, 1);
  ckpt_layout_desc l = layout_of(8, 1);
  const uint64_t sbh = 2048ull * 12288;
  (void)state;
  l.pipeline = 8;
  l.micro_batches = 64;
  for (uint64_t rank = 0; rank < 8; ++rank) {
    const ckpt_estimate e = estimate(&m, &l, CKPT_RECOMPUTE_NONE, rank);
    assert_true(e.chunk_layers == 12 && e.in_flight == 8 - rank && e.layers_in_flight == 12 * (8 - rank));
    /* Embedding: sbhp/t. Head: the final norm and the product read 2sbh/t each, float32 logits 4sbv/t. */
    const uint64_t head = 4 * sbh / 8 + 4 * 2048ull * 51200 / 8;
    assert_true(e.outside_bytes == (rank == 0 ? sbh * 8 / 8 : rank == 7 ? head : 0));
  }
  l.virtual_pipeline = 3;
  near_to(layers_gib(&m, &l, CKPT_RECOMPUTE_NONE) / 32.0625, 1.2917);
  assert_true(estimate(&m, &l, CKPT_RECOMPUTE_NONE, 0).in_flight == 31);
  assert_true(estimate(&m, &l, CKPT_RECOMPUTE_NONE, 7).in_flight == 17);
  l.micro_batches = 8; /* fewer than fill it */
  assert_true(estimate(&m, &l, CKPT_RECOMPUTE_NONE, 0).in_flight == 24);
  l.virtual_pipeline = 1;
  l.micro_batches = 2;
  assert_true(estimate(&m, &l, CKPT_RECOMPUTE_NONE, 0).in_flight == 2);
  l.pipeline = 1; /* gradient accumulation holds one */
  l.micro_batches = 64;
  assert_true(estimate(&m, &l, CKPT_RECOMPUTE_NONE, 0).in_flight == 1);
  assert_true(estimate(&m, &l, CKPT_RECOMPUTE_NONE, 0).outside_bytes == sbh / 8 + 4 * sbh / 8 + 4 * 2048ull * 51200 / 8);
}

static void flops_and_time(void **state) {
  const ckpt_model_desc m = gpt(64, 6144, 48, 4);
  ckpt_layout_desc l = layout_of(8, 1);
  ckpt_hardware_desc hw = CKPT_HARDWARE_DESC_INIT;
  ckpt_estimate e = blank();
  const double b = 4, s = 2048, h = 6144, v = 51200, layers = 48, t = 8, steps = 3;
  const double matrix = 24 * b * s * h * h, attention = 4 * b * s * s * h, layer = matrix + attention;
  (void)state;
  l.micro_batches = 3;
  hw.flops_per_second = 1e14;
  hw.bytes_per_second = 1e12;
  OK(ckpt_estimate_rank(&m, &l, &hw, CKPT_RECOMPUTE_FULL, 0, 0, &e));
  near_to(e.model_flops, 72 * steps * b * layers * s * h * h * (1 + s / (6 * h) + v / (12 * h * layers)));
  near_to(e.forward_flops, e.model_flops / 3 / t);
  near_to(e.backward_flops, 2 * e.forward_flops);
  near_to(e.replay_flops, steps * layers * layer / t);
  /* The last product is not run again: its output is not read in a replay. */
  near_to(e.recompute_flops, steps * layers * (matrix * 16 / 24 + attention) / t);
  near_to(e.offload_bytes_per_second, 2 * 1e14 / (96 * h * (1 + s / (6 * h))));
  assert_true(e.forward_seconds > e.forward_flops / 1e14 && e.forward_seconds < 2 * e.forward_flops / 1e14);
  assert_true(e.recompute_seconds > 0.5 * e.forward_seconds && e.recompute_seconds < e.forward_seconds);
  OK(ckpt_estimate_rank(&m, &l, &hw, CKPT_RECOMPUTE_ATTENTION, 0, 0, &e));
  near_to(e.replay_flops, steps * layers * attention / t);
  near_to(e.recompute_flops, steps * layers * attention / 2 / t); /* weights alone: Q with K */
  assert_true(e.recompute_seconds > 2 * e.recompute_flops / 1e14); /* bytes bound it */
  OK(ckpt_estimate_rank(&m, &l, &hw, CKPT_RECOMPUTE_FEED_FORWARD, 0, 0, &e));
  near_to(e.replay_flops, steps * layers * matrix * 16 / 24 / t);
  near_to(e.recompute_flops, steps * layers * matrix * 8 / 24 / t);
  assert_true(e.layer_bytes == 2048 * 4 * 6144 / 8 * (34 - 16 + 5ull * 64 * 2048 / 6144) + 2048ull * 4 * 6144 / 8 * 2 / 3);
  OK(ckpt_estimate_rank(&m, &l, &hw, CKPT_RECOMPUTE_NONE, 0, 0, &e));
  assert_true(e.recompute_flops == 0 && e.replay_flops == 0 && e.recompute_seconds == 0);
  OK(ckpt_estimate_rank(&m, &l, NULL, CKPT_RECOMPUTE_FULL, 0, 0, &e));
  assert_true(e.forward_seconds == 0 && e.recompute_seconds == 0 && e.offload_bytes_per_second == 0 && e.recompute_flops > 0);
}

/* Llama-like, everything kept goes to the host: the plain formula. */
static void offload_of_everything(void **state) {
  ckpt_model_desc m = gpt(64, 6144, 48, 4);
  const ckpt_layout_desc l = layout_of(1, 0);
  ckpt_hardware_desc hw = CKPT_HARDWARE_DESC_INIT;
  ckpt_estimate e = blank();
  (void)state;
  m.attention = CKPT_MODEL_FLASH_ATTENTION;
  hw.flops_per_second = 1e14;
  hw.bytes_per_second = 1e12;
  OK(ckpt_estimate_rank(&m, &l, &hw, CKPT_RECOMPUTE_ATTENTION, 0, 0, &e));
  assert_true(e.layer_bytes == 34ull * 2048 * 4 * 6144);
  /* The attention runs again in that time: 4 of 72 (h + s/6) parts more. */
  near_to(e.offload_bytes_per_second, 34 * 1e14 / (72 * 6144.0 * (1 + 2048 / (6 * 6144.0)) + 4 * 2048.0));
}

static void optimal(void **state) {
  const ckpt_model_desc m = llama(8, 1024, 16, 4, 2816, 2048);
  ckpt_layout_desc l = layout_of(2, 1);
  ckpt_estimate none, full, e = blank(), low = blank();
  (void)state;
  none = estimate(&m, &l, CKPT_RECOMPUTE_NONE, 0);
  full = estimate(&m, &l, CKPT_RECOMPUTE_FULL, 0);
  OK(ckpt_estimate_rank(&m, &l, NULL, CKPT_RECOMPUTE_OPTIMAL, 0, none.arena_bytes, &e));
  assert_true(e.recompute_flops == 0 && e.arena_bytes <= none.arena_bytes && e.minimum_budget_bytes < full.arena_bytes);
  OK(ckpt_estimate_rank(&m, &l, NULL, CKPT_RECOMPUTE_OPTIMAL, 0, full.arena_bytes, &e));
  assert_true(e.arena_bytes <= full.arena_bytes && e.recompute_flops <= full.recompute_flops);
  OK(ckpt_estimate_rank(&m, &l, NULL, CKPT_RECOMPUTE_OPTIMAL, 0, e.minimum_budget_bytes, &low));
  assert_true(low.arena_bytes <= e.minimum_budget_bytes && low.recompute_flops >= e.recompute_flops);
  refused(ckpt_estimate_rank(&m, &l, NULL, CKPT_RECOMPUTE_OPTIMAL, 0, e.minimum_budget_bytes - 1, &low), CKPT_ERROR_BUDGET, "smallest that works");
  assert_true(low.minimum_budget_bytes == e.minimum_budget_bytes && low.policy == CKPT_RECOMPUTE_OPTIMAL);
  /* In a pipeline the budget is for all that is in flight. */
  l.pipeline = 2;
  l.virtual_pipeline = 2;
  none = estimate(&m, &l, CKPT_RECOMPUTE_NONE, 0);
  assert_true(none.in_flight == 5 && none.peak_bytes >= none.activation_bytes && none.arena_bytes >= none.peak_bytes);
  OK(ckpt_estimate_rank(&m, &l, NULL, CKPT_RECOMPUTE_OPTIMAL, 0, none.arena_bytes * 3 / 4, &e));
  assert_true(e.arena_bytes <= none.arena_bytes * 3 / 4 && e.recompute_flops < e.forward_flops / 3);
}

/* Planned whole, with nothing made again, a chain holds what the formula counts. */
static void chains(void **state) {
  ckpt_model_desc m = gpt(16, 1024, 12, 2);
  ckpt_layout_desc l = layout_of(4, 1);
  ckpt_plan_desc d = CKPT_PLAN_DESC_INIT;
  (void)state;
  d.strategy = CKPT_STRATEGY_STORE_ALL;
  l.pipeline = 3;
  for (int variant = 0; variant < 8; ++variant) {
    m.attention = variant & 1;
    m.activation = (uint32_t)variant >> 1 & 1;
    m.flags = variant & 4 ? CKPT_MODEL_DROPOUT : 0;
    for (uint64_t rank = 0; rank < 3; ++rank) {
      const ckpt_estimate e = estimate(&m, &l, CKPT_RECOMPUTE_NONE, rank);
      ckpt_plan_summary s;
      ckpt_chain *chain = NULL;
      ckpt_plan *plan = NULL;
      memset(&s, 0, sizeof s);
      s.struct_size = sizeof s;
      OK(ckpt_estimate_chain(&m, &l, NULL, rank, 0, 1, &chain));
      assert_int_equal(ckpt_chain_segment_count(chain), 4 + (rank == 0) + (rank == 2));
      OK(ckpt_plan_create(chain, &d, &plan));
      OK(ckpt_plan_get_summary(plan, &s));
      assert_true(s.held_bytes * e.in_flight == e.activation_bytes);
      ckpt_plan_destroy(plan);
      ckpt_chain_destroy(chain);
    }
  }
}

static void refusals(void **state) {
  const ckpt_model_desc good = gpt(16, 1024, 12, 2);
  const ckpt_layout_desc fine = layout_of(4, 1);
  ckpt_estimate e = blank();
  ckpt_hardware_desc hw = CKPT_HARDWARE_DESC_INIT;
  ckpt_chain *chain = (ckpt_chain *)&e;
  (void)state;
#define MODEL(field, value, code, text)                                                                   \
  do {                                                                                                    \
    ckpt_model_desc bad = good;                                                                           \
    bad.field = (value);                                                                                  \
    refused(ckpt_estimate_rank(&bad, &fine, NULL, 0, 0, 0, &e), code, text);                              \
    chain = (ckpt_chain *)&e;                                                                             \
    refused(ckpt_estimate_chain(&bad, &fine, NULL, 0, 0, 0, &chain), code, text);                         \
    assert_null(chain);                                                                                   \
  } while (0)
#define LAYOUT(field, value, text)                                                                        \
  do {                                                                                                    \
    ckpt_layout_desc bad = fine;                                                                          \
    bad.field = (value);                                                                                  \
    refused(ckpt_estimate_rank(&good, &bad, NULL, 0, 0, 0, &e), CKPT_ERROR_INVALID_ARGUMENT, text);       \
  } while (0)
  MODEL(struct_size, 8, CKPT_ERROR_STRUCT_SIZE, "model");
  MODEL(activation, 2, CKPT_ERROR_INVALID_ARGUMENT, "model.activation is 2, expected 0 to 1");
  MODEL(attention, 9, CKPT_ERROR_INVALID_ARGUMENT, "model.attention is 9");
  MODEL(flags, 6, CKPT_ERROR_INVALID_ARGUMENT, "model.flags is 0x6");
  MODEL(element_bytes, 3, CKPT_ERROR_INVALID_ARGUMENT, "model.element_bytes is 3");
  MODEL(reserved, 1, CKPT_ERROR_INVALID_ARGUMENT, "model.reserved is 1");
  MODEL(layers, 0, CKPT_ERROR_INVALID_ARGUMENT, "model.layers is 0, expected 1 to 8192");
  MODEL(layers, 8193, CKPT_ERROR_INVALID_ARGUMENT, "model.layers is 8193");
  MODEL(hidden, 0, CKPT_ERROR_INVALID_ARGUMENT, "model.hidden is 0");
  MODEL(hidden, 1000, CKPT_ERROR_INVALID_ARGUMENT, "model.heads is 16, expected a divisor of model.hidden, which is 1000");
  MODEL(heads, 0, CKPT_ERROR_INVALID_ARGUMENT, "model.heads is 0");
  MODEL(kv_heads, 17, CKPT_ERROR_INVALID_ARGUMENT, "model.kv_heads is 17, expected 0 to 16");
  MODEL(kv_heads, 3, CKPT_ERROR_INVALID_ARGUMENT, "model.kv_heads is 3, expected a divisor of model.heads");
  MODEL(ffn, 4098, CKPT_ERROR_INVALID_ARGUMENT, "layout.tensor_parallel is 4, expected a divisor of model.ffn, which is 4098");
  MODEL(sequence, 0, CKPT_ERROR_INVALID_ARGUMENT, "model.sequence is 0");
  MODEL(sequence, 2046, CKPT_ERROR_INVALID_ARGUMENT, "sequence parallel");
  MODEL(micro_batch, 0, CKPT_ERROR_INVALID_ARGUMENT, "model.micro_batch is 0");
  MODEL(micro_batch, UINT64_MAX, CKPT_ERROR_INVALID_ARGUMENT, "model.micro_batch is 18446744073709551615");
  MODEL(sequence, 1ull << 31, CKPT_ERROR_OVERFLOW, "2^60");
  MODEL(vocabulary, 51202, CKPT_ERROR_INVALID_ARGUMENT, "expected a divisor of model.vocabulary");
  LAYOUT(flags, 2, "layout.flags is 0x2");
  LAYOUT(tensor_parallel, 3, "layout.tensor_parallel is 3, expected a divisor of model.heads, which is 16");
  LAYOUT(context_parallel, 3, "layout.context_parallel is 3, expected a divisor of model.sequence, which is 2048");
  LAYOUT(pipeline, 5, "layout.pipeline is 5, expected a divisor of model.layers, which is 12");
  LAYOUT(virtual_pipeline, 5, "layout.virtual_pipeline is 5");
  LAYOUT(virtual_pipeline, 3, "expected 2 to");
  {
    ckpt_layout_desc bad = fine;
    bad.pipeline = 2;
    bad.virtual_pipeline = 3;
    bad.micro_batches = 5;
    refused(ckpt_estimate_rank(&good, &bad, NULL, 0, 0, 0, &e), CKPT_ERROR_INVALID_ARGUMENT, "expected a divisor of layout.micro_batches (interleaved), which is 5");
    bad.micro_batches = 4;
    OK(ckpt_estimate_rank(&good, &bad, NULL, 0, 1, 0, &e));
    refused(ckpt_estimate_rank(&good, &bad, NULL, 0, 2, 0, &e), CKPT_ERROR_INVALID_ARGUMENT, "rank is 2");
    refused(ckpt_estimate_chain(&good, &bad, NULL, 2, 0, 0, &chain), CKPT_ERROR_INVALID_ARGUMENT, "rank is 2");
    refused(ckpt_estimate_chain(&good, &bad, NULL, 1, 3, 0, &chain), CKPT_ERROR_INVALID_ARGUMENT, "chunk is 3");
    refused(ckpt_estimate_chain(&good, &bad, NULL, 1, 0, 3, &chain), CKPT_ERROR_INVALID_ARGUMENT, "alignment_bytes is 3");
  }
  refused(ckpt_estimate_rank(&good, &fine, NULL, 5, 0, 0, &e), CKPT_ERROR_INVALID_ARGUMENT, "policy is 5");
  refused(ckpt_estimate_rank(&good, &fine, NULL, CKPT_RECOMPUTE_FULL, 0, 7, &e), CKPT_ERROR_INVALID_ARGUMENT, "budget_bytes is 7");
  refused(ckpt_estimate_rank(&good, &fine, &hw, 0, 0, 0, &e), CKPT_ERROR_INVALID_ARGUMENT, "hardware.flops_per_second is 0");
  hw.flops_per_second = 1;
  hw.bytes_per_second = INFINITY;
  refused(ckpt_estimate_rank(&good, &fine, &hw, 0, 0, 0, &e), CKPT_ERROR_INVALID_ARGUMENT, "hardware.bytes_per_second is inf");
  refused(ckpt_estimate_rank(NULL, &fine, NULL, 0, 0, 0, &e), CKPT_ERROR_INVALID_ARGUMENT, "model is NULL");
  refused(ckpt_estimate_rank(&good, NULL, NULL, 0, 0, 0, &e), CKPT_ERROR_INVALID_ARGUMENT, "layout is NULL");
  refused(ckpt_estimate_rank(&good, &fine, NULL, 0, 0, 0, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_estimate");
  refused(ckpt_estimate_chain(&good, &fine, NULL, 0, 0, 0, NULL), CKPT_ERROR_INVALID_ARGUMENT, "out_chain is NULL");
  assert_string_equal(ckpt_recompute_name(CKPT_RECOMPUTE_NONE), "none");
  assert_string_equal(ckpt_recompute_name(CKPT_RECOMPUTE_OPTIMAL), "optimal");
  assert_string_equal(ckpt_recompute_name(5), "unknown");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(published_models),      cmocka_unit_test(modern_models), cmocka_unit_test(pipelines), cmocka_unit_test(flops_and_time),
                                     cmocka_unit_test(offload_of_everything), cmocka_unit_test(optimal),       cmocka_unit_test(chains),    cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
