// Each layer as a segment on every device and in every element type: output and gradients against the double-precision reference on the
// rounded numbers, the same bits when its forward is run again, an input's gradient that is added to.
#include <functional>

#include "model.h"
#include "places.h"
#include "tapes.h"

using namespace test;
using reference::Values;

namespace {

using Function = std::function<Values(const Values &in, const Values &parameters)>;

class Layers : public OnPlace {
 protected:
  struct Once {
    Floats out, in_grad, gradients;
    bool operator==(const Once &other) const {
      return same_bits(out, other.out) && same_bits(in_grad, other.in_grad) && same_bits(gradients, other.gradients);
    }
  };
  void *take_elements(size_t count) const { return take<float>(count); }  // room for every type
  void *put_elements_anew(const Floats &from) const {
    void *const out = take_elements(from.size());
    put_elements(out, from);
    return out;
  }

  // `parameters` and what the layer's gradients start from are bound by the caller.
  Once once(ckpt_layer *layer, const void *in, size_t in_count, const Floats &out_grad, const float *gradients, uint32_t strategy, uint32_t flags = 0,
            const Floats *add_to = nullptr) const {
    Once result;
    const size_t out_count = out_grad.size(), bytes = dtype() == CKPT_DTYPE_FLOAT32 ? 4 : 2;
    ckpt_arena *const of_tape = make_arena(size_t{1} << 20);
    ckpt_tape_desc tape_desc = CKPT_TAPE_DESC_INIT;
    tape_desc.arena = of_tape;
    tape_desc.seed = kSeed;
    tape_desc.strategy = strategy;
    ckpt_tape *tape = nullptr;
    EXPECT_EQ(ckpt_tape_create(&tape_desc, &tape), CKPT_OK) << ckpt_last_error();
    void *const in_grad = add_to != nullptr ? put_elements_anew(*add_to) : take_elements(in_count), *const grad = put_elements_anew(out_grad);
    ckpt_input_desc desc = CKPT_INPUT_DESC_INIT;
    desc.data = in;
    desc.bytes = in_count * bytes;
    desc.grad = in_grad;
    desc.flags = add_to != nullptr ? CKPT_TAPE_INPUT_ACCUMULATE : 0;
    ckpt_buffer x = 0, y = 0;
    EXPECT_EQ(ckpt_tape_input(tape, &desc, &x), CKPT_OK) << ckpt_last_error();
    EXPECT_EQ(ckpt_layer_run(layer, tape, &x, 1, flags, &y), CKPT_OK) << ckpt_ops_last_error();
    const void *data = nullptr;
    EXPECT_EQ(ckpt_tape_read(tape, y, &data), CKPT_OK) << ckpt_last_error();
    result.out = get_elements(data, out_count);
    const void *grads[] = {grad};
    EXPECT_EQ(ckpt_backward(tape, &y, grads, 1, 0), CKPT_OK) << ckpt_last_error();
    result.in_grad = get_elements(in_grad, in_count);
    if (gradients != nullptr) result.gradients = get(gradients, ckpt_layer_parameter_count(layer));
    ckpt_tape_destroy(tape);
    ckpt_arena_destroy(of_tape);
    return result;
  }

  // `roundings`: how many of the element type may add up, at their worst, beside what float32 does.
  void check(ckpt_layer *layer, const Floats &in, size_t out_count, const Function &f, double roundings, uint32_t flags = 0) const {
    const size_t count = ckpt_layer_parameter_count(layer);
    const double tolerance = dtype() == CKPT_DTYPE_FLOAT32 ? 1e-5 : roundings * rounding(dtype());
    void *const at = put_elements_anew(in), *const parameters = count == 0 ? nullptr : put_elements_anew(values(count, 91));
    const Floats before = values(count, 90), rounded_in = get_elements(at, in.size());
    float *const gradients = count == 0 ? nullptr : put(before);
    OK(ckpt_layer_bind(layer, parameters, gradients));
    void *const grad_at = put_elements_anew(values(out_count, 92));
    const Floats out_grad = get_elements(grad_at, out_count);
    const Once got = once(layer, at, in.size(), out_grad, gradients, CKPT_STRATEGY_STORE_ALL, flags);
    const Values x = reference::of(rounded_in), p = count == 0 ? Values() : reference::of(get_elements(parameters, count)), g = reference::of(out_grad);
    expect_near(got.out, f(x, p), tolerance, "out");
    expect_near(got.in_grad, reference::differences([&](const Values &v) { return f(v, p); }, x, g), tolerance, "in_grad");
    if (count != 0)
      expect_near(got.gradients, plus(reference::differences([&](const Values &v) { return f(x, v); }, p, g), before), tolerance, "gradients");
    if (count != 0) put(gradients, before);
    EXPECT_TRUE(once(layer, at, in.size(), out_grad, gradients, CKPT_STRATEGY_EVERY_SEGMENT, flags) == got) << "a forward that is run again";
    if (count != 0) put(gradients, before);
    const Floats start(in.size(), 0.5f);
    const Once added = once(layer, at, in.size(), out_grad, gradients, CKPT_STRATEGY_STORE_ALL, flags, &start);
    expect_near(added.in_grad, plus(reference::of(got.in_grad), start), tolerance, "in_grad, added to");
    EXPECT_TRUE(same_bits(added.gradients, got.gradients));
  }
};

TEST_P(Layers, Linear) {
  for (const uint32_t bias : {0u, 1u}) {
    Layer layer;
    OK(ckpt_layer_linear_create(ops, 7, 5, 3, bias, layer.out()));
    check(layer, values(35, 1), 21,
          [](const Values &x, const Values &p) { return reference::linear(x, Values(p.begin(), p.begin() + 15), Values(p.begin() + 15, p.end()), 7, 5, 3); }, 2);
  }
}

TEST_P(Layers, Layernorm) {
  Layer layer;
  OK(ckpt_layer_layernorm_create(ops, 5, 9, 0.0f, layer.out()));
  check(layer, values(45, 1), 45,
        [](const Values &x, const Values &p) { return reference::layernorm(x, Values(p.begin(), p.begin() + 9), Values(p.begin() + 9, p.end()), 5, 9, 1e-5); }, 2);
}

TEST_P(Layers, Gelu) {
  Layer layer;
  OK(ckpt_layer_gelu_create(ops, 100, layer.out()));
  check(layer, values(100, 1, 4.0f), 100, [](const Values &x, const Values &) {
    Values out(x);
    for (double &v : out) v = reference::gelu(v);
    return out;
  }, 2);
}

TEST_P(Layers, Dropout) {
  Layer layer;
  OK(ckpt_layer_dropout_create(ops, 333, 0.3f, layer.out()));
  const Values mask = drawn_mask(0, 0, 333, 0.3f);
  for (const bool evaluate : {false, true})
    check(layer, values(333, 1), 333, [&](const Values &x, const Values &) {
      Values out(x);
      for (size_t k = 0; k < x.size() && !evaluate; ++k) out[k] *= mask[k];
      return out;
    }, 2, evaluate ? CKPT_LAYER_EVALUATE : 0);
}

TEST_P(Layers, Block) {
  constexpr size_t kBatch = 2, kSequence = 5, kChannels = 8, kHeads = 2, kElements = kBatch * kSequence * kChannels;
  const struct {
    uint32_t attention;
    size_t hidden;  // below 3 * channels backward has no room in its slots: the other way through it
    float dropout, attention_dropout;
  } cases[] = {{CKPT_ATTENTION_PLAIN, 0, 0.0f, 0.0f}, {CKPT_ATTENTION_TILED, 0, 0.3f, 0.2f}, {CKPT_ATTENTION_PLAIN, 7, 0.3f, 0.0f},
               {CKPT_ATTENTION_TILED, 7, 0.0f, 0.2f}};
  for (const auto &c : cases) {
    SCOPED_TRACE(testing::Message() << "attention " << c.attention << ", hidden " << c.hidden << ", dropout " << c.dropout);
    ckpt_layer_block_desc desc = CKPT_LAYER_BLOCK_DESC_INIT;
    desc.attention = c.attention;
    desc.batch = kBatch;
    desc.sequence = kSequence;
    desc.channels = kChannels;
    desc.heads = kHeads;
    desc.hidden = c.hidden;
    desc.dropout_probability = c.dropout;
    desc.attention_dropout_probability = c.attention_dropout;
    Layer layer;
    OK(ckpt_layer_block_create(ops, &desc, layer.out()));
    const reference::Block model{kBatch, kSequence, kChannels, kHeads, c.hidden == 0 ? 4 * kChannels : c.hidden,
                                 drawn_mask(0, 0, kBatch * kHeads * kSequence * kSequence, c.attention_dropout),
                                 drawn_mask(0, 1, kElements, c.dropout), drawn_mask(0, 2, kElements, c.dropout)};
    check(layer, values(kElements, 1), kElements, [&](const Values &x, const Values &p) { return model.forward(x, p.data()); }, 8);
  }
}

TEST_P(Layers, Embedding) {
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
    const size_t count = ckpt_layer_parameter_count(layer);
    const Floats before = values(count, 90);
    void *const parameters = put_elements_anew(values(count, 91)), *const grad_at = put_elements_anew(values(kElements, 2));
    float *const gradients = put(before);
    OK(ckpt_layer_bind(layer, parameters, gradients));
    const std::vector<int32_t> tokens = indices(kBatch * kSequence, 3, kVocabulary);
    ckpt_arena *const of_tape = make_arena(size_t{1} << 20);
    ckpt_tape_desc tape_desc = CKPT_TAPE_DESC_INIT;
    tape_desc.arena = of_tape;
    tape_desc.seed = kSeed;
    ckpt_tape *tape = nullptr;
    ASSERT_EQ(ckpt_tape_create(&tape_desc, &tape), CKPT_OK);
    ckpt_buffer x = input(tape, put(tokens), tokens.size() * sizeof(int32_t)), y = 0;
    OK(ckpt_layer_run(layer, tape, &x, 1, 0, &y));
    const void *data = nullptr, *grads[] = {grad_at};
    ASSERT_EQ(ckpt_tape_read(tape, y, &data), CKPT_OK) << ckpt_last_error();
    const Floats got = get_elements(data, kElements);
    ASSERT_EQ(ckpt_backward(tape, &y, grads, 1, 0), CKPT_OK) << ckpt_last_error();
    OK(ckpt_ops_check(ops));
    const Values table = reference::of(get_elements(parameters, count)), grad = reference::of(get_elements(grad_at, kElements));
    const Values factors = p == 0.0f ? Values(kElements, 1.0) : drawn_mask(0, 0, kElements, p);
    Values out(kElements), expected = reference::of(before);
    for (size_t k = 0; k < kElements; ++k) {
      const size_t row = k / kChannels, c = k % kChannels, token = static_cast<size_t>(tokens[row]) * kChannels + c;
      const size_t position = kVocabulary * kChannels + row % kSequence * kChannels + c;
      out[k] = factors[k] * (table[token] + table[position]);
      expected[token] += factors[k] * grad[k];
      expected[position] += factors[k] * grad[k];
    }
    const double tolerance = dtype() == CKPT_DTYPE_FLOAT32 ? 1e-6 : 2 * rounding(dtype());
    expect_near(got, out, tolerance, "out");
    expect_near(get(gradients, count), expected, tolerance, "gradients");
    ckpt_tape_destroy(tape);
    ckpt_arena_destroy(of_tape);
  }
}

// The caller's own memory for the loss, a tied weight, a target that is ignored, chunks; the loss's gradient is the device's.
TEST_P(Layers, Head) {
  constexpr size_t kRows = 7, kChannels = 6, kVocabulary = 11;
  std::vector<int32_t> targets = indices(kRows, 3, kVocabulary);
  targets[4] = -1;
  for (const size_t chunk : {0, 1, 3, 7, 100}) {
    SCOPED_TRACE(testing::Message() << "chunk_rows " << chunk);
    ckpt_layer_head_desc desc = CKPT_LAYER_HEAD_DESC_INIT;
    desc.tied = chunk % 2;
    desc.rows = kRows;
    desc.channels = kChannels;
    desc.vocabulary = kVocabulary;
    desc.chunk_rows = chunk;
    desc.loss = put(Floats{NAN});
    Layer layer;
    OK(ckpt_layer_head_create(ops, &desc, layer.out()));
    EXPECT_EQ(ckpt_layer_loss(layer), desc.loss);
    const size_t count = 2 * kChannels + kVocabulary * kChannels;
    void *const parameters = put_elements_anew(values(count, 91)), *const x_at = put_elements_anew(values(kRows * kChannels, 1));
    float *const gradients = put(Floats(count, 0.25f)), *const half = put(Floats{0.5f});
    OK(ckpt_layer_bind(layer, parameters, gradients));
    if (desc.tied != 0) {
      const size_t bytes = dtype() == CKPT_DTYPE_FLOAT32 ? 4 : 2;
      OK(ckpt_layer_bind_tied(layer, static_cast<const char *>(parameters) + 2 * kChannels * bytes, gradients + 2 * kChannels));
    }
    ckpt_arena *const of_tape = make_arena(size_t{1} << 20);
    ckpt_tape_desc tape_desc = CKPT_TAPE_DESC_INIT;
    tape_desc.arena = of_tape;
    ckpt_tape *tape = nullptr;
    ASSERT_EQ(ckpt_tape_create(&tape_desc, &tape), CKPT_OK);
    void *const in_grad = take_elements(kRows * kChannels);
    ckpt_buffer inputs[] = {input(tape, x_at, kRows * kChannels * (dtype() == CKPT_DTYPE_FLOAT32 ? 4 : 2), static_cast<float *>(in_grad)),
                            input(tape, put(targets), kRows * sizeof(int32_t))};
    ckpt_buffer out = 0;
    OK(ckpt_layer_run(layer, tape, inputs, 2, 0, &out));
    const void *grads[] = {half};
    ASSERT_EQ(ckpt_backward(tape, &out, grads, 1, 0), CKPT_OK) << ckpt_last_error();
    OK(ckpt_ops_check(ops));
    const Values x = reference::of(get_elements(x_at, kRows * kChannels)), p = reference::of(get_elements(parameters, count));
    const auto f = [&](const Values &v, const Values &q) {
      return Values{reference::head(v, q.data(), q.data() + 2 * kChannels, targets, kChannels, kVocabulary)};
    };
    const double tolerance = dtype() == CKPT_DTYPE_FLOAT32 ? 1e-6 : 4 * rounding(dtype());
    EXPECT_NEAR(static_cast<double>(get(ckpt_layer_loss(layer), 1)[0]), f(x, p)[0], tolerance);
    expect_near(get_elements(in_grad, kRows * kChannels), reference::differences([&](const Values &v) { return f(v, p); }, x, {0.5}), tolerance, "in_grad");
    expect_near(get(gradients, count), plus(reference::differences([&](const Values &v) { return f(x, v); }, p, {0.5}), Floats(count, 0.25f)), tolerance,
                "gradients");
    ckpt_tape_destroy(tape);
    ckpt_arena_destroy(of_tape);
  }
}

INSTANTIATE_TEST_SUITE_P(Everywhere, Layers, testing::ValuesIn(kPlaces), testing::PrintToStringParamName());

}  // namespace
