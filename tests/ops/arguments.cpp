// Bad arguments get a status and a sentence that names function, argument, value and expectation; nothing is written.
#include <functional>

#include "tapes.h"

using namespace test;

namespace {

void expect_error(ckpt_status got, ckpt_status expected, std::initializer_list<const char *> words) {
  EXPECT_EQ(got, expected) << ckpt_ops_last_error();
  const std::string text = ckpt_ops_last_error();
  for (const char *word : words) EXPECT_NE(text.find(word), std::string::npos) << "\"" << word << "\" is not in: " << text;
}

TEST(Handle, BadArguments) {
  ckpt_ops *ops = nullptr;
  expect_error(ckpt_ops_create(nullptr, nullptr), CKPT_ERROR_INVALID_ARGUMENT, {"ckpt_ops_create", "out_ops", "NULL"});
  ckpt_ops_desc desc = CKPT_OPS_DESC_INIT;
  desc.struct_size = 4;
  expect_error(ckpt_ops_create(&desc, &ops), CKPT_ERROR_STRUCT_SIZE, {"struct_size", "4", "at least 16"});
  desc.struct_size = sizeof desc;
  desc.thread_count = 1025;
  expect_error(ckpt_ops_create(&desc, &ops), CKPT_ERROR_INVALID_ARGUMENT, {"thread_count", "1025", "1024"});
  desc.thread_count = 1;
  desc.isa = 4;
  expect_error(ckpt_ops_create(&desc, &ops), CKPT_ERROR_INVALID_ARGUMENT, {"desc.isa is 4"});
  EXPECT_EQ(ops, nullptr);
  const Ops good(1);
  ckpt_ops_info info = {};
  expect_error(ckpt_ops_get_info(good, &info), CKPT_ERROR_STRUCT_SIZE, {"out_info.struct_size"});
  expect_error(ckpt_ops_get_info(nullptr, &info), CKPT_ERROR_INVALID_ARGUMENT, {"ops is NULL"});
  ckpt_ops_destroy(nullptr);
}

// A desc of a later version: accepted while what we do not know is zero.
TEST(Handle, DescMayBeLonger) {
  struct {
    ckpt_ops_desc desc;
    uint64_t later;
  } longer = {{sizeof longer, 1, 0, 0, nullptr, nullptr}, 0};
  ckpt_ops *ops = nullptr;
  OK(ckpt_ops_create(&longer.desc, &ops));
  ckpt_ops_destroy(ops);
  longer.later = 1;
  expect_error(ckpt_ops_create(&longer.desc, &ops), CKPT_ERROR_STRUCT_SIZE, {"byte 32 is not 0"});
}

TEST(Kernels, PointersAndSizes) {
  const Ops ops(1);
  float x[8] = {};
  int32_t t[2] = {0, 1};
  expect_error(ckpt_ops_linear_forward(nullptr, x, x, x, 1, 1, 1, x), CKPT_ERROR_INVALID_ARGUMENT, {"ckpt_ops_linear_forward", "ops is NULL"});
  expect_error(ckpt_ops_linear_forward(ops, nullptr, x, x, 1, 1, 1, x), CKPT_ERROR_INVALID_ARGUMENT, {"in is NULL"});
  expect_error(ckpt_ops_linear_forward(ops, x, x, x, 0, 1, 1, x), CKPT_ERROR_INVALID_ARGUMENT, {"rows is 0", "at least 1"});
  expect_error(ckpt_ops_linear_forward(ops, x, x, x, 1, size_t{1} << 31, 1, x), CKPT_ERROR_OVERFLOW, {"inputs is 2147483648", "2^31"});
  expect_error(ckpt_ops_linear_forward(ops, x, x, x, size_t{1} << 30, 1, size_t{1} << 30, x), CKPT_ERROR_OVERFLOW, {"outputs", "2^48"});
  expect_error(ckpt_ops_linear_backward(ops, nullptr, x, x, 1, 1, 1, x, 0, x, x), CKPT_ERROR_INVALID_ARGUMENT, {"in is NULL"});
  expect_error(ckpt_ops_linear_backward(ops, x, nullptr, x, 1, 1, 1, x, 0, x, x), CKPT_ERROR_INVALID_ARGUMENT, {"weight is NULL"});
  expect_error(ckpt_ops_linear_residual_forward(ops, x, x, x, x, 0.5f, nullptr, 1, 1, 1, x), CKPT_ERROR_INVALID_ARGUMENT, {"philox is NULL", "0.5"});
  expect_error(ckpt_ops_layernorm_forward(ops, x, x, x, 1, 1, 0.0f, x, x, x), CKPT_ERROR_INVALID_ARGUMENT, {"epsilon is 0"});
  expect_error(ckpt_ops_layernorm_backward(ops, x, x, nullptr, x, x, x, 1, 1, x, 0, x, x), CKPT_ERROR_INVALID_ARGUMENT, {"rstd is NULL"});
  expect_error(ckpt_ops_gelu_forward(ops, x, nullptr, 1, 0, x), CKPT_ERROR_INVALID_ARGUMENT, {"columns is 0"});
  expect_error(ckpt_ops_gelu_backward(ops, x, x, nullptr, 1, 1, x, 0, x), CKPT_ERROR_INVALID_ARGUMENT, {"out_grad is NULL"});
  expect_error(ckpt_ops_attention_forward(ops, x, 1, 1, 3, 8, 0.0f, nullptr, x, x), CKPT_ERROR_INVALID_ARGUMENT, {"heads is 3", "channels 8"});
  expect_error(ckpt_ops_attention_tiled_forward(ops, x, 1, 1, 0, 8, 0.0f, nullptr, x, x), CKPT_ERROR_INVALID_ARGUMENT, {"heads is 0"});
  expect_error(ckpt_ops_attention_backward(ops, x, x, x, 1, 1, 1, 1, 1.0f, nullptr, x), CKPT_ERROR_INVALID_ARGUMENT, {"dropout_probability is 1", "< 1"});
  expect_error(ckpt_ops_attention_tiled_backward(ops, x, x, nullptr, x, 1, 1, 1, 1, 0.0f, nullptr, x), CKPT_ERROR_INVALID_ARGUMENT, {"lse is NULL"});
  expect_error(ckpt_ops_dropout_forward(ops, x, nullptr, -0.1f, nullptr, 8, x), CKPT_ERROR_INVALID_ARGUMENT, {"probability is -0.1"});
  expect_error(ckpt_ops_dropout_backward(ops, x, NAN, nullptr, 8, x, 0), CKPT_ERROR_INVALID_ARGUMENT, {"probability", "nan"});
  expect_error(ckpt_ops_add(ops, x, x, 0, x), CKPT_ERROR_INVALID_ARGUMENT, {"count is 0"});
  expect_error(ckpt_ops_norm(ops, x, 8, nullptr), CKPT_ERROR_INVALID_ARGUMENT, {"out_norm is NULL"});
  expect_error(ckpt_ops_cross_entropy_forward(ops, x, t, 2, 0, -1, x, x), CKPT_ERROR_INVALID_ARGUMENT, {"vocabulary is 0"});
}

TEST(Kernels, TheSnapshotMustReach) {
  const Ops ops(1);
  Floats x(100);
  const ckpt_philox end = {1, 2, UINT64_MAX - 50, nullptr};
  EXPECT_NE(ckpt_ops_dropout_forward(ops, x.data(), nullptr, 0.5f, &end, 100, x.data()), CKPT_OK);
  EXPECT_NE(std::string(ckpt_ops_last_error()), "");
  OK(ckpt_ops_dropout_forward(ops, x.data(), nullptr, 0.5f, &end, 50, x.data()));
}

TEST(Kernels, IndicesAreNamedWithTheirPlace) {
  const Ops ops(1);
  Floats table(12, 1.0f), out(12, 7.0f), lse(3);
  float loss = 7.0f;
  for (const int32_t bad : {-1, 4, INT32_MAX, INT32_MIN}) {
    const int32_t tokens[3] = {0, 3, bad};
    const std::string value = std::to_string(bad);
    expect_error(ckpt_ops_embedding_forward(ops, tokens, table.data(), nullptr, 1, 3, 3, 4, out.data()), CKPT_ERROR_INVALID_ARGUMENT,
                 {"tokens[2]", value.c_str(), "< 4"});
    expect_error(ckpt_ops_embedding_backward(ops, tokens, out.data(), 1, 3, 3, 4, table.data(), nullptr), CKPT_ERROR_INVALID_ARGUMENT, {"tokens[2]"});
    expect_error(ckpt_ops_cross_entropy_forward(ops, table.data(), tokens, 3, 4, 9, lse.data(), &loss), CKPT_ERROR_INVALID_ARGUMENT,
                 {"targets[2]", value.c_str(), "< 4"});
    expect_error(ckpt_ops_cross_entropy_backward(ops, table.data(), tokens, lse.data(), 3, 4, 9, 1.0f, out.data()), CKPT_ERROR_INVALID_ARGUMENT,
                 {"targets[2]"});
  }
  EXPECT_EQ(loss, 7.0f);
  EXPECT_EQ(table, Floats(12, 1.0f));
  EXPECT_EQ(out, Floats(12, 7.0f));
}

TEST(Kernels, Adamw) {
  const Ops ops(1);
  float x[4] = {1.0f, 1.0f, 1.0f, 1.0f};
  const auto with = [&](const std::function<void(ckpt_adamw_desc *)> &change) {
    ckpt_adamw_desc desc = CKPT_ADAMW_DESC_INIT;
    desc.learning_rate = 0.1f;
    desc.step = 1;
    change(&desc);
    return ckpt_ops_adamw(ops, &desc, 1, &x[0], &x[1], &x[2], &x[3]);
  };
  expect_error(with([](auto *d) { d->step = 0; }), CKPT_ERROR_INVALID_ARGUMENT, {"desc.step is 0"});
  expect_error(with([](auto *d) { d->beta1 = 1.0f; }), CKPT_ERROR_INVALID_ARGUMENT, {"desc.beta1 is 1"});
  expect_error(with([](auto *d) { d->beta2 = -0.5f; }), CKPT_ERROR_INVALID_ARGUMENT, {"desc.beta2 is -0.5"});
  expect_error(with([](auto *d) { d->learning_rate = NAN; }), CKPT_ERROR_INVALID_ARGUMENT, {"desc.learning_rate is nan"});
  expect_error(with([](auto *d) { d->max_norm = 1.0f; }), CKPT_ERROR_INVALID_ARGUMENT, {"desc.max_norm is 1", "ckpt_gpt_update"});
  expect_error(with([](auto *d) { d->struct_size = 36; }), CKPT_ERROR_STRUCT_SIZE, {"struct_size is 36"});
  EXPECT_EQ(x[1], 1.0f);
  OK(with([](auto *) {}));
  EXPECT_NE(x[1], 1.0f);
}

TEST(Layers, BadDescs) {
  const Ops ops(1);
  ckpt_layer *layer = reinterpret_cast<ckpt_layer *>(8);
  ckpt_layer_block_desc block = CKPT_LAYER_BLOCK_DESC_INIT;
  block.batch = block.sequence = 4;
  block.channels = 6;
  block.heads = 4;
  expect_error(ckpt_layer_block_create(ops, &block, &layer), CKPT_ERROR_INVALID_ARGUMENT, {"desc.heads is 4", "desc.channels 6"});
  EXPECT_EQ(layer, nullptr);
  block.heads = 3;
  block.attention = 2;
  expect_error(ckpt_layer_block_create(ops, &block, &layer), CKPT_ERROR_INVALID_ARGUMENT, {"desc.attention is 2"});
  block.attention = CKPT_ATTENTION_TILED;
  block.dropout_probability = 1.0f;
  expect_error(ckpt_layer_block_create(ops, &block, &layer), CKPT_ERROR_INVALID_ARGUMENT, {"desc.dropout_probability is 1"});
  block.dropout_probability = 0.0f;
  block.epsilon = -1.0f;
  expect_error(ckpt_layer_block_create(ops, &block, &layer), CKPT_ERROR_INVALID_ARGUMENT, {"desc.epsilon is -1"});
  expect_error(ckpt_layer_block_create(ops, nullptr, &layer), CKPT_ERROR_INVALID_ARGUMENT, {"desc is NULL"});
  expect_error(ckpt_layer_block_create(ops, &block, nullptr), CKPT_ERROR_INVALID_ARGUMENT, {"out_layer is NULL"});
  ckpt_layer_embedding_desc embedding = CKPT_LAYER_EMBEDDING_DESC_INIT;
  expect_error(ckpt_layer_embedding_create(ops, &embedding, &layer), CKPT_ERROR_INVALID_ARGUMENT, {"desc.batch is 0"});
  ckpt_layer_head_desc head = CKPT_LAYER_HEAD_DESC_INIT;
  head.rows = head.channels = head.vocabulary = 4;
  head.tied = 2;
  expect_error(ckpt_layer_head_create(ops, &head, &layer), CKPT_ERROR_INVALID_ARGUMENT, {"desc.tied is 2"});
  expect_error(ckpt_layer_linear_create(ops, 1, 0, 1, 0, &layer), CKPT_ERROR_INVALID_ARGUMENT, {"inputs is 0"});
  expect_error(ckpt_layer_layernorm_create(ops, 1, 1, -1.0f, &layer), CKPT_ERROR_INVALID_ARGUMENT, {"epsilon is -1"});
  expect_error(ckpt_layer_gelu_create(ops, 0, &layer), CKPT_ERROR_INVALID_ARGUMENT, {"count is 0"});
  expect_error(ckpt_layer_dropout_create(ops, 8, 1.5f, &layer), CKPT_ERROR_INVALID_ARGUMENT, {"probability is 1.5"});
  ckpt_layer_destroy(nullptr);
  EXPECT_EQ(ckpt_layer_parameter_count(nullptr), 0u);
  EXPECT_EQ(ckpt_layer_segment(nullptr), nullptr);
  EXPECT_EQ(ckpt_layer_loss(nullptr), nullptr);
}

TEST(Layers, UseOutOfOrder) {
  const Ops ops(1);
  const Tape tape;
  Layer linear, head;
  ckpt_layer_head_desc desc = CKPT_LAYER_HEAD_DESC_INIT;
  desc.rows = desc.channels = desc.vocabulary = 4;
  desc.tied = 1;
  OK(ckpt_layer_linear_create(ops, 2, 3, 4, 1, linear.out()));
  OK(ckpt_layer_head_create(ops, &desc, head.out()));
  const Floats in(6, 1.0f);
  Floats parameters(20);
  ckpt_buffer x = input(tape, in), y = 0;
  expect_error(ckpt_layer_run(linear, tape, &x, 1, 0, &y), CKPT_ERROR_STATE, {"linear", "no parameters bound"});
  expect_error(ckpt_layer_init(linear, 1, 0), CKPT_ERROR_STATE, {"no parameters bound"});
  expect_error(ckpt_layer_bind(linear, nullptr, nullptr), CKPT_ERROR_INVALID_ARGUMENT, {"parameters is NULL"});
  expect_error(ckpt_layer_bind_tied(linear, parameters.data(), nullptr), CKPT_ERROR_STATE, {"linear", "tied = 1"});
  OK(ckpt_layer_bind(linear, parameters.data(), nullptr));
  OK(ckpt_layer_bind(head, parameters.data(), nullptr));
  const ckpt_buffer two[] = {x, x};
  expect_error(ckpt_layer_run(head, tape, two, 2, 0, &y), CKPT_ERROR_STATE, {"head", "ckpt_layer_bind_tied"});
  expect_error(ckpt_layer_run(linear, tape, two, 2, 0, &y), CKPT_ERROR_INVALID_ARGUMENT, {"input_count is 2", "expected 1", "linear"});
  expect_error(ckpt_layer_run(linear, tape, &x, 1, 2, &y), CKPT_ERROR_INVALID_ARGUMENT, {"flags is 2"});
  ckpt_tensor_info info = {};
  info.struct_size = sizeof info;
  expect_error(ckpt_layer_get_tensor(linear, 2, &info), CKPT_ERROR_INVALID_ARGUMENT, {"index is 2", "less than 2"});
}

// What goes wrong inside a frame is in the core's text too, since a callback's status passes through it.
TEST(Layers, FailuresInsideFrames) {
  const Ops ops(1);
  const Tape tape;
  Layer linear, embedding;
  OK(ckpt_layer_linear_create(ops, 2, 3, 4, 1, linear.out()));
  Floats parameters(100, 0.5f), gradients(100);
  OK(ckpt_layer_bind(linear, parameters.data(), nullptr));
  const Floats in(6, 1.0f), out_grad(8, 1.0f);
  ckpt_buffer x = input(tape, in), y = 0;
  OK(ckpt_layer_run(linear, tape, &x, 1, 0, &y));
  const void *grad = out_grad.data();
  EXPECT_EQ(ckpt_backward(tape, &y, &grad, 1, 0), CKPT_ERROR_STATE);
  EXPECT_NE(std::string(ckpt_last_error()).find("array of gradients"), std::string::npos) << ckpt_last_error();

  OK(ckpt_layer_bind(linear, parameters.data(), gradients.data()));
  x = input(tape, in);
  OK(ckpt_layer_run(linear, tape, &x, 1, 0, &y));
  EXPECT_EQ(ckpt_backward(tape, &y, nullptr, 1, 0), CKPT_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(ckpt_last_error()).find("only a head seeds itself"), std::string::npos) << ckpt_last_error();

  ckpt_layer_embedding_desc desc = CKPT_LAYER_EMBEDDING_DESC_INIT;
  desc.batch = 1;
  desc.sequence = desc.channels = desc.vocabulary = 3;
  OK(ckpt_layer_embedding_create(ops, &desc, embedding.out()));
  OK(ckpt_layer_bind(embedding, parameters.data(), gradients.data()));
  const std::vector<int32_t> tokens = {0, 3, 1};
  x = input(tape, tokens);
  expect_error(ckpt_layer_run(embedding, tape, &x, 1, 0, &y), CKPT_ERROR_INVALID_ARGUMENT, {"tokens[1] is 3"});
  EXPECT_NE(std::string(ckpt_last_error()).find("tokens[1] is 3"), std::string::npos) << ckpt_last_error();
}

TEST(Layers, InputsThatAreTooSmall) {
  const Ops ops(1);
  Floats parameters(100, 0.5f), gradients(100);
  const std::vector<int32_t> targets(4);
  ckpt_layer_block_desc block = CKPT_LAYER_BLOCK_DESC_INIT;
  block.batch = block.heads = 1;
  block.sequence = block.channels = block.hidden = 2;
  ckpt_layer_embedding_desc embedding = CKPT_LAYER_EMBEDDING_DESC_INIT;
  embedding.batch = 1;
  embedding.sequence = embedding.channels = embedding.vocabulary = 3;
  ckpt_layer_head_desc head = CKPT_LAYER_HEAD_DESC_INIT;
  head.rows = 3;
  head.channels = head.vocabulary = 4;
  struct Case {
    const char *text;
    std::function<ckpt_status(ckpt_layer **)> create;
    std::vector<size_t> bytes, too_small;
  };
  const Case cases[] = {
      {"linear: inputs[0] has 20 bytes, expected 24", [&](ckpt_layer **l) { return ckpt_layer_linear_create(ops, 2, 3, 4, 1, l); }, {24}, {20}},
      {"layernorm: inputs[0] has 23 bytes, expected 24", [&](ckpt_layer **l) { return ckpt_layer_layernorm_create(ops, 2, 3, 0, l); }, {24}, {23}},
      {"gelu: inputs[0] has 4 bytes, expected 20", [&](ckpt_layer **l) { return ckpt_layer_gelu_create(ops, 5, l); }, {20}, {4}},
      {"dropout: inputs[0] has 19 bytes, expected 20", [&](ckpt_layer **l) { return ckpt_layer_dropout_create(ops, 5, 0.5f, l); }, {20}, {19}},
      {"embedding: inputs[0] has 8 bytes, expected 12", [&](ckpt_layer **l) { return ckpt_layer_embedding_create(ops, &embedding, l); }, {12}, {8}},
      {"block: inputs[0] has 12 bytes, expected 16", [&](ckpt_layer **l) { return ckpt_layer_block_create(ops, &block, l); }, {16}, {12}},
      {"head: inputs[0] has 44 bytes, expected 48", [&](ckpt_layer **l) { return ckpt_layer_head_create(ops, &head, l); }, {48, 12}, {44, 12}},
      {"head: inputs[1] has 8 bytes, expected 12", [&](ckpt_layer **l) { return ckpt_layer_head_create(ops, &head, l); }, {48, 12}, {48, 8}},
  };
  for (const Case &c : cases) {
    const Tape tape;
    Layer layer;
    OK(c.create(layer.out()));
    OK(ckpt_layer_bind(layer, parameters.data(), gradients.data()));
    const auto run = [&](const std::vector<size_t> &bytes) {
      ckpt_buffer inputs[2] = {}, out = 0;
      for (size_t k = 0; k < bytes.size(); ++k) {
        ckpt_input_desc desc = CKPT_INPUT_DESC_INIT;
        desc.data = k == 1 || std::string(c.text).starts_with("embedding") ? static_cast<const void *>(targets.data()) : parameters.data();
        desc.bytes = bytes[k];
        EXPECT_EQ(ckpt_tape_input(tape, &desc, &inputs[k]), CKPT_OK) << ckpt_last_error();
      }
      return ckpt_layer_run(layer, tape, inputs, static_cast<uint32_t>(bytes.size()), 0, &out);
    };
    expect_error(run(c.too_small), CKPT_ERROR_INVALID_ARGUMENT, {c.text});
    OK(ckpt_tape_reset(tape));
    OK(ckpt_tape_begin(tape, 1, 0));
    OK(run(c.bytes));
  }
}

TEST(Gpt, BadArguments) {
  const Ops ops(1);
  ckpt_gpt *gpt = nullptr;
  ckpt_gpt_desc desc = CKPT_GPT_DESC_INIT;
  desc.layers = desc.heads = desc.sequence = desc.batch = 2;
  desc.channels = 4;
  expect_error(ckpt_gpt_create(ops, &desc, &gpt), CKPT_ERROR_INVALID_ARGUMENT, {"desc.vocabulary is 0"});
  desc.vocabulary = 5;
  desc.heads = 3;
  expect_error(ckpt_gpt_create(ops, &desc, &gpt), CKPT_ERROR_INVALID_ARGUMENT, {"desc.heads is 3", "4"});
  desc.heads = 2;
  desc.dropout_probability = 1.0f;
  expect_error(ckpt_gpt_create(ops, &desc, &gpt), CKPT_ERROR_INVALID_ARGUMENT, {"desc.dropout_probability is 1"});
  desc.dropout_probability = 0.0f;
  desc.channels = SIZE_MAX / 2;
  EXPECT_NE(ckpt_gpt_create(ops, &desc, &gpt), CKPT_OK);
  desc.channels = 4;
  OK(ckpt_gpt_create(ops, &desc, &gpt));
  const Tape tape;
  ckpt_buffer loss = 0;
  const int32_t tokens[4] = {};
  expect_error(ckpt_gpt_record(gpt, tape, tokens, tokens, 0, &loss), CKPT_ERROR_STATE, {"ckpt_gpt_bind"});
  Floats parameters(ckpt_gpt_parameter_count(gpt)), m(parameters.size()), v(parameters.size());
  OK(ckpt_gpt_bind(gpt, parameters.data(), nullptr));
  ckpt_adamw_desc update = CKPT_ADAMW_DESC_INIT;
  update.step = 1;
  expect_error(ckpt_gpt_update(gpt, &update, m.data(), v.data(), nullptr), CKPT_ERROR_STATE, {"gradients"});
  ckpt_tensor_info info = {};
  info.struct_size = sizeof info;
  expect_error(ckpt_gpt_get_tensor(gpt, 999, &info), CKPT_ERROR_INVALID_ARGUMENT, {"index is 999"});
  ckpt_gpt_destroy(gpt);
  ckpt_gpt_destroy(nullptr);
}

}  // namespace
