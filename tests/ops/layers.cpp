// Layers as segments on a tape, against the double-precision reference.
#include <functional>

#include "model.h"
#include "tapes.h"

using namespace test;
using reference::Values;

namespace {

// One forward and backward of a layer with one float input: output, and gradients of input and parameters (which start from what
// they hold).
struct Once {
  Floats out, in_grad;
};
Once once(ckpt_layer *layer, const Floats &in, const Floats &out_grad, uint32_t strategy = CKPT_STRATEGY_STORE_ALL, uint32_t flags = 0) {
  const Tape tape(strategy);
  Once result{Floats(out_grad.size()), Floats(in.size(), NAN)};
  ckpt_buffer x = input(tape, in, &result.in_grad), y = 0;
  EXPECT_EQ(ckpt_layer_run(layer, tape, &x, 1, flags, &y), CKPT_OK) << ckpt_ops_last_error();
  const void *data = nullptr;
  EXPECT_EQ(ckpt_tape_read(tape, y, &data), CKPT_OK) << ckpt_last_error();
  if (data != nullptr) std::memcpy(result.out.data(), data, result.out.size() * sizeof(float));
  const void *grad = out_grad.data();
  EXPECT_EQ(ckpt_backward(tape, &y, &grad, 1, 0), CKPT_OK) << ckpt_last_error();
  return result;
}

Floats bound(ckpt_layer *layer, Floats *gradients) {
  const size_t count = ckpt_layer_parameter_count(layer);
  *gradients = values(count, 90);
  return values(count, 91);
}

TEST(LayerLinear, EqualsReference) {
  const Ops ops;
  for (const uint32_t bias : {0u, 1u}) {
    Layer layer;
    OK(ckpt_layer_linear_create(ops, 7, 5, 3, bias, layer.out()));
    ASSERT_EQ(ckpt_layer_parameter_count(layer), 15u + 3 * bias);
    Floats gradients, parameters = bound(layer, &gradients);
    const Floats before = gradients, in = values(35, 1), out_grad = values(21, 2);
    OK(ckpt_layer_bind(layer, parameters.data(), gradients.data()));
    const Once got = once(layer, in, out_grad);
    const Values x = reference::of(in), p = reference::of(parameters), g = reference::of(out_grad);
    const auto f = [&](const Values &a, const Values &q) {
      return reference::linear(a, Values(q.begin(), q.begin() + 15), Values(q.begin() + 15, q.end()), 7, 5, 3);
    };
    expect_near(got.out, f(x, p), 1e-6, "out");
    expect_near(got.in_grad, reference::differences([&](const Values &v) { return f(v, p); }, x, g), 1e-6, "in_grad");
    expect_near(gradients, plus(reference::differences([&](const Values &v) { return f(x, v); }, p, g), before), 1e-6, "gradients");
  }
}

TEST(LayerLayernorm, EqualsReference) {
  const Ops ops;
  Layer layer;
  OK(ckpt_layer_layernorm_create(ops, 5, 9, 0.0f, layer.out()));
  Floats gradients, parameters = bound(layer, &gradients);
  const Floats before = gradients, in = values(45, 1), out_grad = values(45, 2);
  OK(ckpt_layer_bind(layer, parameters.data(), gradients.data()));
  const Values x = reference::of(in), p = reference::of(parameters), g = reference::of(out_grad);
  const auto f = [&](const Values &a, const Values &q) {
    return reference::layernorm(a, Values(q.begin(), q.begin() + 9), Values(q.begin() + 9, q.end()), 5, 9, 1e-5);
  };
  for (const uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT}) {
    gradients = before;
    const Once got = once(layer, in, out_grad, strategy);
    expect_near(got.out, f(x, p), 2e-6, "out");
    expect_near(got.in_grad, reference::differences([&](const Values &v) { return f(v, p); }, x, g), 3e-6, "in_grad");
    expect_near(gradients, plus(reference::differences([&](const Values &v) { return f(x, v); }, p, g), before), 3e-6, "gradients");
  }
}

TEST(LayerGelu, EqualsReference) {
  const Ops ops;
  Layer layer;
  OK(ckpt_layer_gelu_create(ops, 100, layer.out()));
  EXPECT_EQ(ckpt_layer_parameter_count(layer), 0u);
  const Floats in = values(100, 1, 4.0f), out_grad = values(100, 2);
  const Once got = once(layer, in, out_grad);
  Values out(100), in_grad(100);
  for (size_t k = 0; k < 100; ++k) {
    out[k] = reference::gelu(static_cast<double>(in[k]));
    in_grad[k] = reference::gelu_slope(static_cast<double>(in[k])) * static_cast<double>(out_grad[k]);
  }
  expect_near(got.out, out, 1e-6, "out");
  expect_near(got.in_grad, in_grad, 1e-6, "in_grad");
}

TEST(LayerDropout, DrawsAtItsSiteAndNotWhenEvaluating) {
  const Ops ops;
  Layer layer;
  OK(ckpt_layer_dropout_create(ops, 333, 0.3f, layer.out()));
  const Floats in = values(333, 1), out_grad = values(333, 2);
  const Values factors = drawn_mask(0, 0, 333, 0.3f);
  Values out(333), in_grad(333);
  for (size_t k = 0; k < 333; ++k) {
    out[k] = factors[k] * static_cast<double>(in[k]);
    in_grad[k] = factors[k] * static_cast<double>(out_grad[k]);
  }
  const Once got = once(layer, in, out_grad);
  expect_near(got.out, out, 1e-6, "out");
  expect_near(got.in_grad, in_grad, 1e-6, "in_grad");
  const Once evaluated = once(layer, in, out_grad, CKPT_STRATEGY_STORE_ALL, CKPT_LAYER_EVALUATE);
  EXPECT_TRUE(same_bits(evaluated.out, in));
  EXPECT_TRUE(same_bits(evaluated.in_grad, out_grad));
}

struct BlockCase {
  uint32_t attention;
  size_t hidden;
  float dropout, attention_dropout;
};
// A hidden size below 3 * channels leaves backward no room in its slots: the other way through it.
constexpr BlockCase kBlockCases[] = {{CKPT_ATTENTION_PLAIN, 0, 0.0f, 0.0f}, {CKPT_ATTENTION_TILED, 0, 0.0f, 0.0f},
                                     {CKPT_ATTENTION_PLAIN, 0, 0.3f, 0.2f}, {CKPT_ATTENTION_TILED, 0, 0.3f, 0.2f},
                                     {CKPT_ATTENTION_PLAIN, 7, 0.0f, 0.0f}, {CKPT_ATTENTION_TILED, 7, 0.3f, 0.0f}};

class LayerBlock : public testing::TestWithParam<BlockCase> {
 protected:
  static constexpr size_t kBatch = 2, kSequence = 5, kChannels = 8, kHeads = 2, kElements = kBatch * kSequence * kChannels;
  const Ops ops;
  Layer layer;
  reference::Block model{kBatch, kSequence, kChannels, kHeads, GetParam().hidden == 0 ? 4 * kChannels : GetParam().hidden, {}, {}, {}};
  Floats in = values(kElements, 1), out_grad = values(kElements, 2), parameters, gradients, before;

  void SetUp() override {
    ckpt_layer_block_desc desc = CKPT_LAYER_BLOCK_DESC_INIT;
    desc.attention = GetParam().attention;
    desc.batch = kBatch;
    desc.sequence = kSequence;
    desc.channels = kChannels;
    desc.heads = kHeads;
    desc.hidden = GetParam().hidden;
    desc.dropout_probability = GetParam().dropout;
    desc.attention_dropout_probability = GetParam().attention_dropout;
    OK(ckpt_layer_block_create(ops, &desc, layer.out()));
    ASSERT_EQ(ckpt_layer_parameter_count(layer), model.parameter_count());
    parameters = bound(layer, &gradients);
    before = gradients;
    OK(ckpt_layer_bind(layer, parameters.data(), gradients.data()));
    model.attention_mask = drawn_mask(0, 0, kBatch * kHeads * kSequence * kSequence, GetParam().attention_dropout);
    model.proj_mask = drawn_mask(0, 1, kElements, GetParam().dropout);
    model.fc2_mask = drawn_mask(0, 2, kElements, GetParam().dropout);
  }
};

TEST_P(LayerBlock, EqualsDifferences) {
  const Once got = once(layer, in, out_grad);
  const Values x = reference::of(in), p = reference::of(parameters), g = reference::of(out_grad);
  expect_near(got.out, model.forward(x, p.data()), 3e-6, "out");
  expect_near(got.in_grad, reference::differences([&](const Values &v) { return model.forward(v, p.data()); }, x, g), 1e-5, "in_grad");
  expect_near(gradients, plus(reference::differences([&](const Values &v) { return model.forward(x, v.data()); }, p, g), before), 1e-5, "gradients");
}

TEST_P(LayerBlock, EveryStrategyHasTheSameBits) {
  const Once expected = once(layer, in, out_grad);
  const Floats expected_gradients = gradients;
  for (const uint32_t strategy : {CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_FULL}) {
    gradients = before;
    const Once got = once(layer, in, out_grad, strategy);
    EXPECT_TRUE(same_bits(got.out, expected.out));
    EXPECT_TRUE(same_bits(got.in_grad, expected.in_grad));
    EXPECT_TRUE(same_bits(gradients, expected_gradients));
  }
}

// An input of which nobody wants the gradient, and one whose gradient is added to: the parameters' gradients do not notice.
TEST_P(LayerBlock, InputGradientIsOptionalAndAdds) {
  const Once expected = once(layer, in, out_grad);
  const Floats expected_gradients = gradients;
  for (const bool wanted : {false, true}) {
    gradients = before;
    const Tape tape;
    Floats in_grad(kElements, 0.5f);
    ckpt_buffer x = input(tape, in, wanted ? &in_grad : nullptr, wanted ? CKPT_TAPE_INPUT_ACCUMULATE : 0), y = 0;
    OK(ckpt_layer_run(layer, tape, &x, 1, 0, &y));
    const void *grad = out_grad.data();
    ASSERT_EQ(ckpt_backward(tape, &y, &grad, 1, 0), CKPT_OK) << ckpt_last_error();
    EXPECT_TRUE(same_bits(gradients, expected_gradients));
    if (wanted) {
      expect_near(in_grad, plus(reference::of(expected.in_grad), Floats(kElements, 0.5f)), 1e-6, "in_grad");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LayerBlock, testing::ValuesIn(kBlockCases));

// Two blocks read the same input: its gradient is a sum, and the residual's gradient cannot lie over anybody's.
TEST(LayerBlockShared, InputGradientsOfTwoReadersAddUp) {
  const Ops ops;
  constexpr size_t kBatch = 1, kSequence = 4, kChannels = 6, kElements = 24;
  const reference::Block model{kBatch, kSequence, kChannels, 2, 24, {}, {}, {}};
  ckpt_layer_block_desc desc = CKPT_LAYER_BLOCK_DESC_INIT;
  desc.batch = kBatch;
  desc.sequence = kSequence;
  desc.channels = kChannels;
  desc.heads = 2;
  Layer layer;
  OK(ckpt_layer_block_create(ops, &desc, layer.out()));
  Floats gradients, parameters = bound(layer, &gradients);
  const Floats before = gradients, in = values(kElements, 1), first_grad = values(kElements, 2), second_grad = values(kElements, 3);
  OK(ckpt_layer_bind(layer, parameters.data(), gradients.data()));
  const Tape tape;
  Floats in_grad(kElements, NAN);
  ckpt_buffer x = input(tape, in, &in_grad), middle = 0, outs[2] = {};
  OK(ckpt_layer_run(layer, tape, &x, 1, 0, &middle));
  OK(ckpt_layer_run(layer, tape, &middle, 1, 0, &outs[0]));
  OK(ckpt_layer_run(layer, tape, &middle, 1, 0, &outs[1]));
  const void *grads[] = {first_grad.data(), second_grad.data()};
  ASSERT_EQ(ckpt_backward(tape, outs, grads, 2, 0), CKPT_OK) << ckpt_last_error();
  Floats sum_grad(kElements);
  for (size_t k = 0; k < kElements; ++k) sum_grad[k] = first_grad[k] + second_grad[k];
  const Values p = reference::of(parameters), g = reference::of(sum_grad);
  const auto f = [&](const Values &v, const Values &q) { return model.forward(model.forward(v, q.data()), q.data()); };
  expect_near(in_grad, reference::differences([&](const Values &v) { return f(v, p); }, reference::of(in), g), 3e-5, "in_grad");
  expect_near(gradients, plus(reference::differences([&](const Values &v) { return f(reference::of(in), v); }, p, g), before), 3e-5, "gradients");
}

class LayerHead : public testing::TestWithParam<size_t> {};  // chunk_rows

TEST_P(LayerHead, LossAndGradientsEqualDifferences) {
  const Ops ops;
  constexpr size_t kRows = 7, kChannels = 6, kVocabulary = 11;
  for (const uint32_t tied : {0u, 1u}) {
    SCOPED_TRACE(tied);
    ckpt_layer_head_desc desc = CKPT_LAYER_HEAD_DESC_INIT;
    float loss = NAN;
    desc.tied = tied;
    desc.rows = kRows;
    desc.channels = kChannels;
    desc.vocabulary = kVocabulary;
    desc.chunk_rows = GetParam();
    desc.loss = &loss;
    Layer layer;
    OK(ckpt_layer_head_create(ops, &desc, layer.out()));
    EXPECT_EQ(ckpt_layer_loss(layer), &loss);
    ASSERT_EQ(ckpt_layer_parameter_count(layer), 2 * kChannels + (tied ? 0 : kVocabulary * kChannels));
    Floats gradients(2 * kChannels + kVocabulary * kChannels, 0.25f);
    const Floats parameters_and_weight = values(gradients.size(), 91), in = values(kRows * kChannels, 1);
    Floats parameters = parameters_and_weight;
    OK(ckpt_layer_bind(layer, parameters.data(), gradients.data()));
    if (tied) {
      OK(ckpt_layer_bind_tied(layer, parameters.data() + 2 * kChannels, gradients.data() + 2 * kChannels));
    }
    std::vector<int32_t> targets = indices(kRows, 3, kVocabulary);
    targets[4] = -1;
    const Tape tape;
    Floats in_grad(in.size(), NAN);
    ckpt_buffer inputs[] = {input(tape, in, &in_grad), input(tape, targets)}, out = 0;
    OK(ckpt_layer_run(layer, tape, inputs, 2, 0, &out));
    const Values x = reference::of(in), p = reference::of(parameters);
    const auto f = [&](const Values &v, const Values &q) {
      return Values{reference::head(v, q.data(), q.data() + 2 * kChannels, targets, kChannels, kVocabulary)};
    };
    EXPECT_NEAR(static_cast<double>(loss), f(x, p)[0], 1e-6);
    const float half = 0.5f;
    const void *grad = &half;
    ASSERT_EQ(ckpt_backward(tape, &out, &grad, 1, 0), CKPT_OK) << ckpt_last_error();
    expect_near(in_grad, reference::differences([&](const Values &v) { return f(v, p); }, x, {0.5}), 1e-6, "in_grad");
    expect_near(gradients, plus(reference::differences([&](const Values &v) { return f(x, v); }, p, {0.5}), Floats(gradients.size(), 0.25f)),
                1e-6, "gradients");
  }
}

INSTANTIATE_TEST_SUITE_P(Chunks, LayerHead, testing::Values(0, 1, 3, 7, 100));

// The loss does not depend on the chunks by a bit, and neither does the input's gradient.
TEST(LayerHeadChunks, LossHasTheSameBits) {
  const Ops ops;
  constexpr size_t kRows = 300, kChannels = 32, kVocabulary = 70;
  const Floats in = values(kRows * kChannels, 1);
  const std::vector<int32_t> targets = indices(kRows, 2, kVocabulary);
  std::vector<float> losses;
  for (const size_t chunk : {size_t{0}, size_t{128}, size_t{299}}) {
    ckpt_layer_head_desc desc = CKPT_LAYER_HEAD_DESC_INIT;
    desc.rows = kRows;
    desc.channels = kChannels;
    desc.vocabulary = kVocabulary;
    desc.chunk_rows = chunk;
    Layer layer;
    OK(ckpt_layer_head_create(ops, &desc, layer.out()));
    Floats gradients, parameters = bound(layer, &gradients);
    OK(ckpt_layer_bind(layer, parameters.data(), gradients.data()));
    const Tape tape;
    ckpt_buffer inputs[] = {input(tape, in), input(tape, targets)}, out = 0;
    OK(ckpt_layer_run(layer, tape, inputs, 2, 0, &out));
    losses.push_back(*ckpt_layer_loss(layer));
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[0], losses[2]);
}

TEST(LayerEmbedding, EqualsReference) {
  const Ops ops;
  constexpr size_t kBatch = 2, kSequence = 6, kChannels = 5, kVocabulary = 9, kElements = kBatch * kSequence * kChannels;
  for (const float p : {0.0f, 0.4f}) {
    ckpt_layer_embedding_desc desc = CKPT_LAYER_EMBEDDING_DESC_INIT;
    desc.batch = kBatch;
    desc.sequence = kSequence;
    desc.channels = kChannels;
    desc.vocabulary = kVocabulary;
    desc.dropout_probability = p;
    Layer layer;
    OK(ckpt_layer_embedding_create(ops, &desc, layer.out()));
    Floats gradients, parameters = bound(layer, &gradients);
    const Floats out_grad = values(kElements, 2);
    Values expected = reference::of(gradients);
    OK(ckpt_layer_bind(layer, parameters.data(), gradients.data()));
    const std::vector<int32_t> tokens = indices(kBatch * kSequence, 3, kVocabulary);
    const Values factors = p == 0.0f ? Values(kElements, 1.0) : drawn_mask(0, 0, kElements, p);
    const Tape tape;
    ckpt_buffer x = input(tape, tokens), y = 0;
    OK(ckpt_layer_run(layer, tape, &x, 1, 0, &y));
    const void *data = nullptr, *grad = out_grad.data();
    ASSERT_EQ(ckpt_tape_read(tape, y, &data), CKPT_OK) << ckpt_last_error();
    Values out(kElements);
    for (size_t k = 0; k < kElements; ++k) {
      const size_t row = k / kChannels, c = k % kChannels, token = static_cast<size_t>(tokens[row]) * kChannels + c;
      const size_t position = kVocabulary * kChannels + row % kSequence * kChannels + c;
      out[k] = factors[k] * (static_cast<double>(parameters[token]) + static_cast<double>(parameters[position]));
      expected[token] += factors[k] * static_cast<double>(out_grad[k]);
      expected[position] += factors[k] * static_cast<double>(out_grad[k]);
    }
    expect_near(Floats(static_cast<const float *>(data), static_cast<const float *>(data) + kElements), out, 1e-6, "out");
    ASSERT_EQ(ckpt_backward(tape, &y, &grad, 1, 0), CKPT_OK) << ckpt_last_error();
    expect_near(gradients, expected, 1e-6, "gradients");
  }
}

// Weights that change between forward and backward are found, by name, where the check is on.
TEST(LayerWatch, ChangedParametersAreFound) {
  const Ops ops;
  Layer layer;
  OK(ckpt_layer_linear_create(ops, 7, 5, 3, 1, layer.out()));
  const Floats in = values(35, 1), out_grad = values(21, 2);
  for (const bool change : {false, true}) {
    Floats gradients, parameters = bound(layer, &gradients);
    OK(ckpt_layer_bind(layer, parameters.data(), gradients.data()));
    const Tape tape(CKPT_STRATEGY_STORE_ALL, 0, CKPT_CHECK_INPUTS);
    ckpt_buffer x = input(tape, in), y = 0;
    OK(ckpt_layer_run(layer, tape, &x, 1, 0, &y));
    if (change) parameters[4] += 1.0f;
    const void *grad = out_grad.data();
    EXPECT_EQ(ckpt_backward(tape, &y, &grad, 1, 0), change ? CKPT_ERROR_CHECK : CKPT_OK);
    if (change) {
      EXPECT_NE(std::string(ckpt_last_error()).find("parameters"), std::string::npos) << ckpt_last_error();
      EXPECT_NE(std::string(ckpt_last_error()).find("linear"), std::string::npos) << ckpt_last_error();
    }
  }
}

TEST(LayerInit, TensorsHaveTheirDistribution) {
  const Ops ops;
  ckpt_layer_block_desc desc = CKPT_LAYER_BLOCK_DESC_INIT;
  desc.batch = 1;
  desc.sequence = 4;
  desc.channels = 96;
  desc.heads = 2;
  desc.residual_stddev = 0.005f;
  Layer layer;
  OK(ckpt_layer_block_create(ops, &desc, layer.out()));
  Floats parameters(ckpt_layer_parameter_count(layer), NAN), again = parameters, other = parameters;
  OK(ckpt_layer_bind(layer, parameters.data(), nullptr));
  OK(ckpt_layer_init(layer, 5, 10));
  OK(ckpt_layer_bind(layer, again.data(), nullptr));
  OK(ckpt_layer_init(layer, 5, 10));
  OK(ckpt_layer_bind(layer, other.data(), nullptr));
  OK(ckpt_layer_init(layer, 6, 10));
  EXPECT_TRUE(same_bits(parameters, again));
  size_t covered = 0;
  for (uint32_t k = 0; k < ckpt_layer_tensor_count(layer); ++k) {
    ckpt_tensor_info info = {};
    info.struct_size = sizeof info;
    OK(ckpt_layer_get_tensor(layer, k, &info));
    ASSERT_EQ(info.offset, covered) << info.name;
    ASSERT_EQ(info.count, info.rows * info.columns);
    covered += info.count;
    double sum = 0.0, squares = 0.0;
    size_t equal = 0;
    for (size_t i = info.offset; i < covered; ++i) {
      sum += static_cast<double>(parameters[i]);
      squares += static_cast<double>(parameters[i]) * static_cast<double>(parameters[i]);
      equal += parameters[i] == other[i];
    }
    const double count = static_cast<double>(info.count), mean = sum / count;
    if (info.decays == 0) {
      EXPECT_EQ(equal, info.count) << info.name;
      EXPECT_EQ(mean, std::string(info.name).find("ln") == 0 && std::string(info.name).find("weight") != std::string::npos ? 1.0 : 0.0) << info.name;
    } else {
      const bool residual = std::string(info.name) == "proj.weight" || std::string(info.name) == "fc2.weight";
      EXPECT_NEAR(std::sqrt(squares / count), residual ? 0.005 : 0.02, residual ? 0.0003 : 0.001) << info.name;
      EXPECT_LT(equal, info.count / 100) << info.name;
    }
  }
  EXPECT_EQ(covered, parameters.size());
}

}  // namespace
