// The laws of a whole model, on every device and in every element type: loss and gradients against the reference, the same bits under
// every strategy, predicted peaks, checks, graphs.
#include "model.h"
#include "places.h"
#include "tapes.h"

using namespace test;
using reference::Values;

namespace {

constexpr size_t kLayers = 2, kHeads = 2, kChannels = 8, kSequence = 6, kBatch = 2, kVocabulary = 13, kRows = kBatch * kSequence;

struct Shape {
  uint32_t attention = CKPT_ATTENTION_TILED;
  float dropout = 0.0f;
  uint32_t untied = 0;
  size_t chunk_rows = 0;

  ckpt_gpt_desc desc() const {
    ckpt_gpt_desc out = CKPT_GPT_DESC_INIT;
    out.attention = attention;
    out.layers = kLayers;
    out.heads = kHeads;
    out.channels = kChannels;
    out.sequence = kSequence;
    out.batch = kBatch;
    out.vocabulary = kVocabulary;
    out.dropout_probability = dropout;
    out.untied = untied;
    out.head_chunk_rows = chunk_rows;
    return out;
  }
};

struct Strategy {
  uint32_t id, k;
};

class Laws : public OnPlace {
 protected:
  void SetUp() override {
    OnPlace::SetUp();
    if (testing::Test::IsSkipped() || HasFatalFailure()) return;
    tokens = take<int32_t>(kRows);
    targets = take<int32_t>(kRows);
    half = put(Floats{0.5f});
  }
  void TearDown() override {
    close();
    OnPlace::TearDown();
  }

  void open(const Shape &shape) {
    close();
    const ckpt_gpt_desc desc = shape.desc();
    OK(ckpt_gpt_create(ops, &desc, &gpt));
    count = ckpt_gpt_parameter_count(gpt);
    parameters = take<float>(count);  // room for every type
    gradients = take<float>(count);
    first_moment = take<float>(count);
    second_moment = take<float>(count);
    master = dtype() == CKPT_DTYPE_FLOAT32 ? nullptr : take<float>(count);
    OK(ckpt_gpt_bind(gpt, parameters, gradients));
    start();
  }
  void start() {
    OK(ckpt_gpt_init(gpt, 3));
    if (master != nullptr) {
      OK(ckpt_ops_to_float(ops, parameters, count, master));
    }
    for (float *moment : {first_moment, second_moment}) zero(moment);
  }
  void zero(float *values) const { ASSERT_EQ(ckpt_device_fill(device, stream, values, 0, count * sizeof(float)), CKPT_OK); }
  void close() {
    ckpt_gpt_destroy(gpt);
    gpt = nullptr;
  }

  ckpt_tape *make_tape(ckpt_arena *tape_arena, Strategy strategy = {CKPT_STRATEGY_STORE_ALL, 0}, uint32_t checks = 0, size_t budget = 0) const {
    ckpt_tape_desc desc = CKPT_TAPE_DESC_INIT;
    desc.arena = tape_arena;
    desc.seed = kSeed;
    desc.strategy = strategy.id;
    desc.strategy_k = strategy.k;
    desc.checks = checks;
    desc.budget_bytes = budget;
    ckpt_tape *out = nullptr;
    EXPECT_EQ(ckpt_tape_create(&desc, &out), CKPT_OK) << ckpt_last_error();
    return out;
  }
  void batch(uint64_t seed) const {
    put(tokens, indices(kRows, seed, kVocabulary));
    put(targets, indices(kRows, seed + 1000, kVocabulary));
  }
  void record_and_backward(ckpt_tape *tape, const float *loss_grad) const {
    ckpt_buffer loss = 0;
    const void *grads[] = {loss_grad};
    ASSERT_EQ(ckpt_tape_begin(tape, 5, 0), CKPT_OK) << ckpt_last_error();
    OK(ckpt_gpt_record(gpt, tape, tokens, targets, 0, &loss));
    ASSERT_EQ(ckpt_backward(tape, &loss, loss_grad == nullptr ? nullptr : grads, 1, 0), CKPT_OK) << ckpt_last_error();
  }
  void update(uint64_t step) const {
    ckpt_adamw_desc desc = CKPT_ADAMW_DESC_INIT;
    desc.learning_rate = 0.01f;
    desc.weight_decay = 0.1f;
    desc.max_norm = 0.5f;
    desc.step = step;
    desc.master_weights = master;
    OK(ckpt_gpt_update(gpt, &desc, first_moment, second_moment, nullptr));
  }
  Floats loss() const { return get(ckpt_gpt_loss(gpt), 1); }

  // Losses of some steps with updates, then the parameters.
  Floats train(Strategy strategy, int steps = 4, uint32_t checks = 0, size_t budget = 0, size_t *peak = nullptr) {
    Floats out;
    start();
    ckpt_arena *const of_tape = make_arena(size_t{1} << 20);
    ckpt_tape *const tape = make_tape(of_tape, strategy, checks, budget);
    for (uint64_t step = 1; step <= static_cast<uint64_t>(steps); ++step) {
      batch(step);
      zero(gradients);
      record_and_backward(tape, half);
      out.push_back(loss()[0]);
      update(step);
      ckpt_tape_stats stats = {};
      stats.struct_size = sizeof stats;
      EXPECT_EQ(ckpt_tape_get_stats(tape, &stats), CKPT_OK);
      if (step > 1) {
        EXPECT_EQ(stats.planned, 1u);
      }
      if (stats.planned != 0) {
        EXPECT_EQ(stats.peak_predicted_bytes, stats.peak_measured_bytes);
        EXPECT_EQ(stats.arena_predicted_bytes, stats.arena_measured_bytes);
      }
      if (budget != 0) {
        EXPECT_LE(stats.arena_measured_bytes, budget);
      }
      if (peak != nullptr) *peak = stats.arena_measured_bytes;
    }
    EXPECT_EQ(ckpt_ops_check(ops), CKPT_OK) << ckpt_ops_last_error();
    const Floats last = get_elements(parameters, count);
    out.insert(out.end(), last.begin(), last.end());
    ckpt_tape_destroy(tape);
    ckpt_arena_destroy(of_tape);
    return out;
  }

  ckpt_gpt *gpt = nullptr;
  size_t count = 0;
  int32_t *tokens = nullptr, *targets = nullptr;
  float *half = nullptr, *parameters = nullptr, *gradients = nullptr, *first_moment = nullptr, *second_moment = nullptr, *master = nullptr;
};

constexpr Shape kShapes[] = {{}, {CKPT_ATTENTION_PLAIN, 0.2f, 1, 5}, {CKPT_ATTENTION_TILED, 0.2f, 0, 5}};

TEST_P(Laws, LossAndGradientsEqualReference) {
  for (const Shape &shape : {kShapes[1], kShapes[2]}) {  // with everything; gpt.cpp has the others on the CPU
    SCOPED_TRACE(testing::Message() << "attention " << shape.attention << ", dropout " << shape.dropout);
    open(shape);
    put_elements(parameters, values(count, 5, 0.4f));
    const Values p = reference::of(get_elements(parameters, count));  // as rounded
    const size_t elements = kRows * kChannels;
    reference::Gpt model{kLayers, kHeads, kChannels, kSequence, kBatch, kVocabulary, shape.untied == 0, drawn_mask(0, 0, elements, shape.dropout), {}};
    for (uint64_t k = 1; k <= kLayers; ++k)
      model.blocks.push_back({kBatch, kSequence, kChannels, kHeads, 4 * kChannels,
                              drawn_mask(k, 0, kBatch * kHeads * kSequence * kSequence, shape.dropout), drawn_mask(k, 1, elements, shape.dropout),
                              drawn_mask(k, 2, elements, shape.dropout)});
    batch(1);
    zero(gradients);
    ckpt_arena *const of_tape = make_arena(size_t{1} << 20);
    ckpt_tape *const tape = make_tape(of_tape);
    record_and_backward(tape, nullptr);
    const std::vector<int32_t> in = indices(kRows, 1, kVocabulary), wanted = indices(kRows, 1001, kVocabulary);
    const auto f = [&](const Values &q) { return Values{model.loss(q, in, wanted)}; };
    // Errors of some twenty roundings that point anywhere, at their worst.
    const double tolerance = dtype() == CKPT_DTYPE_FLOAT32 ? 5e-6 : 8 * rounding(dtype());
    EXPECT_NEAR(static_cast<double>(loss()[0]), f(p)[0], tolerance);
    expect_near(get(gradients, count), reference::differences(f, p, {1.0}), tolerance, "gradients");
    OK(ckpt_ops_check(ops));
    ckpt_tape_destroy(tape);
    ckpt_arena_destroy(of_tape);
  }
}

TEST_P(Laws, EveryStrategyTrainsTheSame) {
  for (const Shape &shape : {kShapes[0], kShapes[1]}) {
    open(shape);
    size_t peak = 0;
    const Floats expected = train({CKPT_STRATEGY_STORE_ALL, 0}, 4, 0, 0, &peak);
    for (const float x : expected) ASSERT_TRUE(std::isfinite(x));
    for (const Strategy s : {Strategy{CKPT_STRATEGY_EVERY_SEGMENT, 0}, {CKPT_STRATEGY_SQRT, 0}, {CKPT_STRATEGY_UNIFORM, 2}, {CKPT_STRATEGY_BLOCK, 2},
                             {CKPT_STRATEGY_FULL, 0}, {CKPT_STRATEGY_AUTO, 0}})
      EXPECT_TRUE(same_bits(train(s), expected)) << ckpt_strategy_name(s.id);
    EXPECT_TRUE(same_bits(train({CKPT_STRATEGY_AUTO, 0}, 4, 0, peak * 7 / 10), expected)) << "auto with " << peak * 7 / 10 << " of " << peak << " bytes";
  }
}

TEST_P(Laws, PassTheTapesChecks) {
  for (const Shape &shape : {kShapes[1], kShapes[2]}) {
    open(shape);
    const Floats expected = train({CKPT_STRATEGY_STORE_ALL, 0}, 3);
    for (const Strategy s : {Strategy{CKPT_STRATEGY_STORE_ALL, 0}, {CKPT_STRATEGY_EVERY_SEGMENT, 0}, {CKPT_STRATEGY_SQRT, 0}})
      EXPECT_TRUE(same_bits(train(s, 3, CKPT_CHECK_DETERMINISM | CKPT_CHECK_RECOMPUTE | CKPT_CHECK_INPUTS), expected)) << ckpt_strategy_name(s.id);
  }
}

// The CPU finds it at once, a device when it is asked. The place is the array's, also where a head takes it in chunks.
TEST_P(Laws, IndicesOutOfRangeAreFound) {
  ckpt_arena *const of_tape = make_arena(size_t{1} << 20);
  ckpt_tape *const tape = make_tape(of_tape);
  for (const auto &[which, chunk_rows] : {std::pair{tokens, size_t{0}}, {targets, size_t{0}}, {targets, size_t{5}}}) {
    SCOPED_TRACE(testing::Message() << "chunk_rows " << chunk_rows);
    open({CKPT_ATTENTION_TILED, 0.0f, 0, chunk_rows});
    batch(1);
    std::vector<int32_t> bad = indices(kRows, 1, kVocabulary);
    bad[7] = 13;
    put(which, bad);
    ckpt_buffer loss_buffer = 0;
    ckpt_status status = ckpt_gpt_record(gpt, tape, tokens, targets, 0, &loss_buffer);
    if (!on_cpu()) {
      EXPECT_EQ(status, CKPT_OK) << ckpt_ops_last_error();
      EXPECT_EQ(ckpt_tape_reset(tape), CKPT_OK);
      status = ckpt_ops_check(ops);
    }
    EXPECT_EQ(status, CKPT_ERROR_INVALID_ARGUMENT);
    const std::string text = ckpt_ops_last_error(), name = which == tokens ? "tokens" : "targets";
    EXPECT_NE(text.find(name + "[7] is 13, expected 0 <= " + name + " < " + std::to_string(kVocabulary)), std::string::npos) << text;
    OK(ckpt_ops_check(ops));
  }
  ckpt_tape_destroy(tape);
  ckpt_arena_destroy(of_tape);
}

TEST_P(Laws, AnotherStreamIsRefused) {
  if (on_cpu()) return;
  open({});
  void *other = nullptr;
  ASSERT_EQ(ckpt_device_stream_create(device, &other), CKPT_OK);
  ckpt_arena_desc desc = CKPT_ARENA_DESC_INIT;
  desc.capacity_bytes = size_t{1} << 20;
  desc.stream = other;
  ckpt_arena *of_tape = nullptr;
  ASSERT_EQ(ckpt_arena_create(device, &desc, &of_tape), CKPT_OK) << ckpt_last_error();
  ckpt_tape *const tape = make_tape(of_tape);
  batch(1);
  ckpt_buffer loss_buffer = 0;
  EXPECT_EQ(ckpt_gpt_record(gpt, tape, tokens, targets, 0, &loss_buffer), CKPT_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(ckpt_ops_last_error()).find("stream"), std::string::npos) << ckpt_ops_last_error();
  ckpt_tape_destroy(tape);
  ckpt_arena_destroy(of_tape);
  ckpt_device_stream_destroy(device, other);
}

// A clipped update against the CPU's on the same numbers.
TEST_P(Laws, UpdateIsTheCpus) {
  open({});
  const Floats start_values = values(count, 8, 0.3f), grads = values(count, 9);
  put_elements(parameters, start_values);
  Floats p = get_elements(parameters, count), m(count), v(count);
  if (master != nullptr) put(master, p);
  ckpt_adamw_desc desc = CKPT_ADAMW_DESC_INIT;
  desc.learning_rate = 0.01f;
  desc.weight_decay = 0.1f;
  desc.max_norm = 0.25f;
  desc.grad_scale = 0.5f;
  const Ops cpu(1);
  const ckpt_gpt_desc same = Shape().desc();
  ckpt_gpt *other = nullptr;
  OK(ckpt_gpt_create(cpu, &same, &other));
  Floats host_grads = grads;
  OK(ckpt_gpt_bind(other, p.data(), host_grads.data()));
  put(gradients, grads);
  for (uint64_t step = 1; step <= 3; ++step) {
    double norm = 0.0, cpu_norm = 0.0;
    desc.step = step;
    desc.master_weights = nullptr;
    OK(ckpt_gpt_update(other, &desc, m.data(), v.data(), &cpu_norm));
    desc.master_weights = master;
    OK(ckpt_gpt_update(gpt, &desc, first_moment, second_moment, step == 2 ? nullptr : &norm));
    if (step != 2) {
      EXPECT_NEAR(norm, cpu_norm, 1e-6 * cpu_norm);
    }
  }
  expect_near(get(first_moment, count), reference::of(m), 1e-6, "first moment");
  expect_near(get(second_moment, count), reference::of(v), 1e-6, "second moment");
  expect_near(master != nullptr ? get(master, count) : get_elements(parameters, count), reference::of(p), 1e-6, "updated parameters");
  expect_near(get_elements(parameters, count), reference::of(p), dtype() == CKPT_DTYPE_FLOAT32 ? 1e-6 : rounding(dtype()), "parameters");
  ckpt_gpt_destroy(other);
}

// Steps that are launched as a graph go on where those before it were, and give what they would have given.
TEST_P(Laws, GraphHasTheBitsOfItsSteps) {
  if (on_cpu()) return;
  constexpr int kSteps = 6;
  const Strategy s{CKPT_STRATEGY_SQRT, 0};
  open({CKPT_ATTENTION_TILED, 0.2f, 0, 5});
  const Floats expected = train(s, kSteps);
  start();
  ckpt_arena *const of_tape = make_arena(size_t{1} << 20);
  ckpt_tape *const tape = make_tape(of_tape, s);
  ckpt_graph *graph = nullptr;
  Floats got;
  for (uint64_t step = 1; step <= kSteps; ++step) {
    if (step == 4) {
      ASSERT_EQ(ckpt_tape_prepare(tape, 5), CKPT_OK) << ckpt_last_error();
      ASSERT_EQ(ckpt_device_capture_begin(device, stream), CKPT_OK) << ckpt_last_error();
      record_and_backward(tape, half);
      ASSERT_EQ(ckpt_device_capture_end(device, stream, &graph), CKPT_OK) << ckpt_last_error();
    }
    batch(step);
    zero(gradients);
    if (graph == nullptr) {
      record_and_backward(tape, half);
    } else {
      ASSERT_EQ(ckpt_tape_replay(tape), CKPT_OK) << ckpt_last_error();
      ASSERT_EQ(ckpt_graph_launch(graph, stream), CKPT_OK) << ckpt_last_error();
    }
    got.push_back(loss()[0]);
    update(step);
  }
  const Floats last = get_elements(parameters, count);
  got.insert(got.end(), last.begin(), last.end());
  EXPECT_TRUE(same_bits(got, expected)) << ckpt_strategy_name(s.id);
  ckpt_graph_destroy(graph);
  ckpt_tape_destroy(tape);
  ckpt_arena_destroy(of_tape);
}

INSTANTIATE_TEST_SUITE_P(Everywhere, Laws, testing::ValuesIn(kPlaces), testing::PrintToStringParamName());

}  // namespace
