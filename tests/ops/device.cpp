// A handle on a device: which function of its table is called, with what; layers and model in memory that the host cannot touch, in
// every element type; what is refused.
#include "everything.h"
#include "fake_device.h"
#include "tapes.h"

using namespace test;

namespace {

void expect_error(ckpt_status got, ckpt_status expected, std::initializer_list<const char *> words) {
  EXPECT_EQ(got, expected) << ckpt_ops_last_error();
  const std::string text = ckpt_ops_last_error();
  for (const char *word : words) EXPECT_NE(text.find(word), std::string::npos) << "\"" << word << "\" is not in: " << text;
}

class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(ckpt_device_open("cpu", &fake::device), CKPT_OK);
    fake::Memory::of_device().forget();
    fake::calls.clear();
    fake::has_layers = true;
    fake::refuse = CKPT_OK;
    fake::table.version = ckpt::ops::kDeviceOpsVersion;
    fake::table.largest_head = 0;
  }
  void TearDown() override {
    ckpt_device_close(fake::device);
    fake::device = nullptr;
  }
  static ckpt_ops_desc desc_of(uint32_t dtype = CKPT_DTYPE_FLOAT32) {
    ckpt_ops_desc desc = CKPT_OPS_DESC_INIT;
    desc.dtype = dtype;
    desc.device = fake::device;
    desc.stream = fake::stream;
    return desc;
  }
};

class Handle {
 public:
  explicit Handle(const ckpt_ops_desc &desc) { EXPECT_EQ(ckpt_ops_create(&desc, &ops_), CKPT_OK) << ckpt_ops_last_error(); }
  ~Handle() { ckpt_ops_destroy(ops_); }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  operator ckpt_ops *() const { return ops_; }

 private:
  ckpt_ops *ops_ = nullptr;
};

// An array in the device's memory.
template <class T>
class Array {
 public:
  Array(const std::vector<T> &from) : size_(from.size()), data_(static_cast<T *>(fake::Memory::of_device().take(size_ * sizeof(T)))) { put(from); }
  T *data() const { return data_; }
  void put(const std::vector<T> &from) {
    fake::Memory::of_device().open();
    std::copy(from.begin(), from.end(), data_);
    fake::Memory::of_device().close();
  }
  std::vector<T> get() const {
    fake::Memory::of_device().open();
    std::vector<T> out(data_, data_ + size_);
    fake::Memory::of_device().close();
    return out;
  }

 private:
  size_t size_;
  T *data_;
};
Floats get(const float *from, size_t count = 1) {
  fake::Memory::of_device().open();
  Floats out(from, from + count);
  fake::Memory::of_device().close();
  return out;
}

using DeviceHandle = OnDevice;

TEST_F(DeviceHandle, SaysWhatItIs) {
  const Handle ops(desc_of(CKPT_DTYPE_BFLOAT16));
  ckpt_ops_info info = {};
  info.struct_size = sizeof info;
  OK(ckpt_ops_get_info(ops, &info));
  EXPECT_EQ(info.thread_count, 0u);
  EXPECT_STREQ(info.isa, "fake");
  EXPECT_EQ(info.dtype, uint32_t{CKPT_DTYPE_BFLOAT16});
  EXPECT_EQ(info.device_kind, uint32_t{CKPT_DEVICE_KIND_CUDA});
  OK(ckpt_ops_check(ops));
  EXPECT_EQ(fake::calls["check"], 1);
}

TEST_F(DeviceHandle, EndsWithItsLastUser) {
  ckpt_layer *layer = nullptr;
  {
    const Handle ops(desc_of());
    OK(ckpt_layer_gelu_create(ops, 8, &layer));
  }
  EXPECT_EQ(fake::calls["destroy"], 0);
  ckpt_layer_destroy(layer);
  EXPECT_EQ(fake::calls["destroy"], 1);
}

TEST_F(DeviceHandle, BadArguments) {
  ckpt_ops *ops = nullptr;
  const auto with = [&](auto change) {
    ckpt_ops_desc desc = desc_of();
    change(&desc);
    return ckpt_ops_create(&desc, &ops);
  };
  expect_error(with([](auto *d) { d->dtype = 3; }), CKPT_ERROR_INVALID_ARGUMENT, {"desc.dtype is 3", "FLOAT16"});
  expect_error(with([](auto *d) { d->thread_count = 2; }), CKPT_ERROR_INVALID_ARGUMENT, {"desc.thread_count is 2", "Fake GPU"});
  expect_error(with([](auto *d) { d->isa = CKPT_ISA_GENERIC; }), CKPT_ERROR_INVALID_ARGUMENT, {"isa 1", "Fake GPU"});
  expect_error(with([](auto *d) { d->stream = nullptr; }), CKPT_ERROR_INVALID_ARGUMENT, {"desc.stream is NULL", "ckpt_device_stream_create"});
  fake::refuse = CKPT_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(with([](auto *) {}), CKPT_ERROR_OUT_OF_MEMORY);
  fake::refuse = CKPT_OK;
  fake::table.version = 77;
  expect_error(with([](auto *) {}), CKPT_ERROR_DEVICE, {"version 77", "expected 1"});
  fake::has_layers = false;
  expect_error(with([](auto *) {}), CKPT_ERROR_UNSUPPORTED, {"Fake GPU", "\"ops\""});
  EXPECT_EQ(ops, nullptr);
}

TEST_F(DeviceHandle, CpuIsFloat32AndHasNoStream) {
  ckpt_device_close(fake::device);
  fake::device = nullptr;
  ckpt_ops *ops = nullptr;
  ckpt_ops_desc desc = CKPT_OPS_DESC_INIT;
  ASSERT_EQ(ckpt_device_open("cpu", &desc.device), CKPT_OK);
  desc.dtype = CKPT_DTYPE_FLOAT16;
  expect_error(ckpt_ops_create(&desc, &ops), CKPT_ERROR_UNSUPPORTED, {"desc.dtype is float16", "CPU", "float32"});
  desc.dtype = CKPT_DTYPE_FLOAT32;
  desc.stream = &desc;
  expect_error(ckpt_ops_create(&desc, &ops), CKPT_ERROR_INVALID_ARGUMENT, {"desc.stream", "expected NULL on the CPU"});
  desc.stream = nullptr;
  OK(ckpt_ops_create(&desc, &ops));
  ckpt_device_close(desc.device);
  OK(ckpt_ops_check(ops));
  Floats in = values(100, 1), there(100), back(100);
  OK(ckpt_ops_from_float(ops, in.data(), 100, there.data()));
  OK(ckpt_ops_to_float(ops, there.data(), 100, back.data()));
  EXPECT_EQ(in, back);
  ckpt_ops_destroy(ops);
}

using DeviceFunctions = OnDevice;

// The fake hands its arguments on to the CPU: each is in its place if all results are the CPU's, bit by bit. Its AdamW is its own.
TEST_F(DeviceFunctions, ArgumentsArriveInTheirPlaces) {
  const Ops cpu(1);
  const std::vector<Floats> expected = everything(cpu, 0);
  const Handle ops(desc_of());
  const std::vector<Floats> got = everything(ops, 0);
  ASSERT_EQ(got.size(), expected.size());
  const size_t adamw = got.size() - 6;  // y, dx, m, v, drawn, the norm
  for (size_t k = 0; k < got.size(); ++k) {
    if (k == adamw || k == adamw + 2 || k == adamw + 3) expect_near(got[k], reference::of(expected[k]), 1e-6, "AdamW, result " + std::to_string(k));
    else EXPECT_TRUE(same_bits(got[k], expected[k])) << "result " << k;
  }
  // linear_residual comes once, each of the others as often as `everything` calls it.
  for (const char *name : {"linear_forward", "linear_residual_forward", "linear_backward", "layernorm_forward", "layernorm_backward",
                           "gelu_forward", "gelu_backward", "embedding_forward", "embedding_backward", "loss_begin", "loss_add", "loss_end",
                           "loss_scale", "loss_gradient", "dropout_forward", "dropout_backward", "norm", "normal", "adamw"})
    EXPECT_EQ(fake::calls[name], 1) << name;
  for (const char *name : {"attention_forward", "attention_backward", "attention_tiled_forward", "attention_tiled_backward"})
    EXPECT_EQ(fake::calls[name], 2) << name;
  EXPECT_EQ(fake::calls["clip"], 0);
  Floats sum(3);
  OK(ckpt_ops_add(ops, got[0].data(), got[1].data(), 3, sum.data()));
  for (size_t k = 0; k < 3; ++k) EXPECT_EQ(sum[k], got[0][k] + got[1][k]);
}

TEST_F(DeviceFunctions, ElementsAreTheHandlesType) {
  for (const uint32_t dtype : {CKPT_DTYPE_FLOAT32, CKPT_DTYPE_BFLOAT16, CKPT_DTYPE_FLOAT16}) {
    SCOPED_TRACE(dtype);
    const Handle ops(desc_of(dtype));
    const Floats in = values(1000, 7, 3.0f);
    const Array<float> from(in), back(Floats(1000, NAN));
    const Array<char> there(std::vector<char>(1000 * fake::element_bytes(dtype)));
    OK(ckpt_ops_from_float(ops, from.data(), 1000, there.data()));
    OK(ckpt_ops_to_float(ops, there.data(), 1000, back.data()));
    const Floats got = back.get();
    for (size_t k = 0; k < 1000; ++k) ASSERT_EQ(got[k], fake::round_to(dtype, in[k]));
  }
}

TEST_F(DeviceFunctions, FailuresComeBack) {
  const Handle ops(desc_of());
  float x[4] = {};
  ckpt_device *none = nullptr;
  EXPECT_EQ(ckpt_device_open("nothing", &none), CKPT_ERROR_INVALID_ARGUMENT);  // leaves libckpt's text
  fake::refuse = CKPT_ERROR_DEVICE;
  EXPECT_EQ(ckpt_ops_add(ops, x, x, 4, x), CKPT_ERROR_DEVICE);
  EXPECT_STREQ(ckpt_ops_last_error(), ckpt_last_error());  // a plugin's text is libckpt's
  EXPECT_EQ(ckpt_ops_check(ops), CKPT_ERROR_DEVICE);
  expect_error(ckpt_ops_add(ops, x, x, 0, x), CKPT_ERROR_INVALID_ARGUMENT, {"ckpt_ops_add", "count is 0"});
}

TEST_F(DeviceFunctions, MasterWeightsAreForShortTypes) {
  float x[4] = {};
  ckpt_adamw_desc desc = CKPT_ADAMW_DESC_INIT;
  desc.step = 1;
  const Handle narrow(desc_of(CKPT_DTYPE_BFLOAT16)), wide(desc_of());
  expect_error(ckpt_ops_adamw(narrow, &desc, 1, x, x, x, x), CKPT_ERROR_INVALID_ARGUMENT, {"master_weights is NULL", "bfloat16"});
  desc.master_weights = x;
  expect_error(ckpt_ops_adamw(wide, &desc, 1, x, x, x, x), CKPT_ERROR_INVALID_ARGUMENT, {"master_weights", "expected NULL", "float32"});
}

// ---- layers and model ----

struct Model {
  uint32_t attention = CKPT_ATTENTION_TILED;
  float dropout = 0.0f;
  uint32_t untied = 0;
  size_t chunk_rows = 0;
};

ckpt_gpt *make_gpt(ckpt_ops *ops, const Model &model) {
  ckpt_gpt_desc desc = CKPT_GPT_DESC_INIT;
  desc.attention = model.attention;
  desc.layers = desc.heads = desc.batch = 2;
  desc.channels = 8;
  desc.sequence = 6;
  desc.vocabulary = 13;
  desc.dropout_probability = model.dropout;
  desc.untied = model.untied;
  desc.head_chunk_rows = model.chunk_rows;
  ckpt_gpt *gpt = nullptr;
  EXPECT_EQ(ckpt_gpt_create(ops, &desc, &gpt), CKPT_OK) << ckpt_ops_last_error();
  return gpt;
}

struct Trained {
  Floats losses, first_gradients, parameters, norms;
  size_t peak = 0;
};
constexpr size_t kRows = 12, kVocabulary = 13;

// Steps with updates on the CPU; `dtype`: parameters start rounded to it.
Trained train_on_cpu(const Model &model, uint32_t dtype, int steps) {
  const Ops ops(1);
  ckpt_gpt *gpt = make_gpt(ops, model);
  const size_t count = ckpt_gpt_parameter_count(gpt);
  Floats parameters(count), gradients(count), m(count), v(count);
  EXPECT_EQ(ckpt_gpt_bind(gpt, parameters.data(), gradients.data()), CKPT_OK);
  EXPECT_EQ(ckpt_gpt_init(gpt, 3), CKPT_OK);
  for (float &p : parameters) p = fake::round_to(dtype, p);
  ckpt_device *const before = fake::device;
  fake::device = nullptr;
  Trained out;
  {
    const Tape tape(CKPT_STRATEGY_STORE_ALL);
    ckpt_adamw_desc update = CKPT_ADAMW_DESC_INIT;
    update.learning_rate = 0.01f;
    update.weight_decay = 0.1f;
    update.max_norm = 0.5f;
    for (int step = 1; step <= steps; ++step) {
      const std::vector<int32_t> tokens = indices(kRows, static_cast<uint64_t>(step), kVocabulary), targets = indices(kRows, 1000, kVocabulary);
      const float half = 0.5f;
      const void *grads[] = {&half};
      ckpt_buffer loss = 0;
      double norm = 0.0;
      std::fill(gradients.begin(), gradients.end(), 0.0f);
      EXPECT_EQ(ckpt_gpt_record(gpt, tape, tokens.data(), targets.data(), 0, &loss), CKPT_OK) << ckpt_ops_last_error();
      out.losses.push_back(*ckpt_gpt_loss(gpt));
      EXPECT_EQ(ckpt_backward(tape, &loss, grads, 1, 0), CKPT_OK) << ckpt_last_error();
      if (step == 1) out.first_gradients = gradients;
      update.step = static_cast<uint64_t>(step);
      EXPECT_EQ(ckpt_gpt_update(gpt, &update, m.data(), v.data(), &norm), CKPT_OK) << ckpt_ops_last_error();
      out.norms.push_back(static_cast<float>(norm));
    }
  }
  out.parameters = parameters;
  ckpt_gpt_destroy(gpt);
  fake::device = before;
  return out;
}

// The same on the device, all of it in memory that the host cannot touch.
Trained train_on_device(const Model &model, const ckpt_ops_desc &desc, int steps, uint32_t strategy = CKPT_STRATEGY_STORE_ALL) {
  fake::Memory::of_device().forget();
  const Handle ops(desc);
  ckpt_gpt *gpt = make_gpt(ops, model);
  const size_t count = ckpt_gpt_parameter_count(gpt);
  const Array<char> parameters(std::vector<char>(count * fake::element_bytes(desc.dtype)));
  const Array<float> gradients(Floats(count, 0.0f)), m(Floats(count, 0.0f)), v(Floats(count, 0.0f)), master(Floats(count, 0.0f)), half({0.5f});
  EXPECT_EQ(ckpt_gpt_bind(gpt, parameters.data(), gradients.data()), CKPT_OK);
  EXPECT_EQ(ckpt_gpt_init(gpt, 3), CKPT_OK) << ckpt_ops_last_error();
  EXPECT_EQ(ckpt_ops_to_float(ops, parameters.data(), count, master.data()), CKPT_OK);
  ckpt_arena_desc arena_desc = CKPT_ARENA_DESC_INIT;
  arena_desc.capacity_bytes = size_t{1} << 18;
  arena_desc.stream = fake::stream;
  ckpt_arena *arena = nullptr;
  EXPECT_EQ(ckpt_arena_create(fake::device, &arena_desc, &arena), CKPT_OK) << ckpt_last_error();
  ckpt_tape_desc tape_desc = CKPT_TAPE_DESC_INIT;
  tape_desc.arena = arena;
  tape_desc.seed = kSeed;
  tape_desc.strategy = strategy;
  ckpt_tape *tape = nullptr;
  EXPECT_EQ(ckpt_tape_create(&tape_desc, &tape), CKPT_OK) << ckpt_last_error();
  Trained out;
  ckpt_adamw_desc update = CKPT_ADAMW_DESC_INIT;
  update.learning_rate = 0.01f;
  update.weight_decay = 0.1f;
  update.max_norm = 0.5f;
  update.master_weights = desc.dtype == CKPT_DTYPE_FLOAT32 ? nullptr : master.data();
  for (int step = 1; step <= steps; ++step) {
    Array<float> zeroed = gradients;
    zeroed.put(Floats(count, 0.0f));
    const Array<int32_t> tokens(indices(kRows, static_cast<uint64_t>(step), kVocabulary)), targets(indices(kRows, 1000, kVocabulary));
    const void *grads[] = {half.data()};
    ckpt_buffer loss = 0;
    double norm = 0.0;
    EXPECT_EQ(ckpt_gpt_record(gpt, tape, tokens.data(), targets.data(), 0, &loss), CKPT_OK) << ckpt_ops_last_error();
    out.losses.push_back(get(ckpt_gpt_loss(gpt))[0]);
    EXPECT_EQ(ckpt_backward(tape, &loss, grads, 1, 0), CKPT_OK) << ckpt_last_error();
    if (step == 1) out.first_gradients = gradients.get();
    update.step = static_cast<uint64_t>(step);
    EXPECT_EQ(ckpt_gpt_update(gpt, &update, m.data(), v.data(), &norm), CKPT_OK) << ckpt_ops_last_error();
    out.norms.push_back(static_cast<float>(norm));
    ckpt_tape_stats stats = {};
    stats.struct_size = sizeof stats;
    EXPECT_EQ(ckpt_tape_get_stats(tape, &stats), CKPT_OK);
    if (stats.planned != 0) {
      EXPECT_EQ(stats.peak_predicted_bytes, stats.peak_measured_bytes);
      EXPECT_EQ(stats.arena_predicted_bytes, stats.arena_measured_bytes);
    }
    out.peak = stats.peak_measured_bytes;
  }
  EXPECT_EQ(ckpt_ops_to_float(ops, parameters.data(), count, master.data()), CKPT_OK);
  out.parameters = master.get();
  ckpt_tape_destroy(tape);
  ckpt_arena_destroy(arena);
  ckpt_gpt_destroy(gpt);
  return out;
}

class DeviceGpt : public OnDevice, public testing::WithParamInterface<Model> {};

TEST_P(DeviceGpt, Float32HasTheCpusBits) {
  const Trained expected = train_on_cpu(GetParam(), CKPT_DTYPE_FLOAT32, 3), got = train_on_device(GetParam(), desc_of(), 3);
  EXPECT_EQ(got.losses[0], expected.losses[0]);
  EXPECT_TRUE(same_bits(got.first_gradients, expected.first_gradients));
  EXPECT_EQ(got.norms[0], expected.norms[0]);
  EXPECT_EQ(fake::calls["clip"], 3);
  expect_near(got.losses, reference::of(expected.losses), 1e-5, "losses");
  expect_near(got.parameters, reference::of(expected.parameters), 1e-5, "parameters");
}

// With 8 bits of mantissa (float16: 11) in activations and weights, the loss of such a model moves in the third digit (fourth).
TEST_P(DeviceGpt, ShortTypesStayNearFloat32) {
  for (const uint32_t dtype : {CKPT_DTYPE_BFLOAT16, CKPT_DTYPE_FLOAT16}) {
    SCOPED_TRACE(dtype);
    const double tolerance = dtype == CKPT_DTYPE_BFLOAT16 ? 8e-3 : 1e-3;
    const Trained expected = train_on_cpu(GetParam(), dtype, 5), got = train_on_device(GetParam(), desc_of(dtype), 5);
    expect_near(got.losses, reference::of(expected.losses), tolerance, "losses");
    double error = 0.0, length = 0.0;
    for (size_t k = 0; k < got.first_gradients.size(); ++k) {
      const double want = static_cast<double>(expected.first_gradients[k]), difference = static_cast<double>(got.first_gradients[k]) - want;
      error += difference * difference;
      length += want * want;
    }
    EXPECT_LT(std::sqrt(error / length), 4 * tolerance);
    EXPECT_NE(got.losses, expected.losses);
  }
}

TEST_P(DeviceGpt, EveryStrategyTrainsTheSame) {
  for (const uint32_t dtype : {CKPT_DTYPE_FLOAT32, CKPT_DTYPE_BFLOAT16}) {
    const Trained all = train_on_device(GetParam(), desc_of(dtype), 4);
    for (const uint32_t strategy : {CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_AUTO}) {
      const Trained got = train_on_device(GetParam(), desc_of(dtype), 4, strategy);
      EXPECT_TRUE(same_bits(got.losses, all.losses) && same_bits(got.parameters, all.parameters)) << ckpt_strategy_name(strategy) << ", dtype " << dtype;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceGpt,
                         testing::Values(Model{}, Model{CKPT_ATTENTION_PLAIN, 0.2f, 1, 5}, Model{CKPT_ATTENTION_TILED, 0.2f, 0, 5},
                                         Model{CKPT_ATTENTION_PLAIN, 0.0f, 0, 0}));

using DeviceLayers = OnDevice;

// Statistics stay float32, all else is half as large.
TEST_F(DeviceLayers, SlotsHaveTheSizeOfTheirElements) {
  const Model model;
  const size_t wide = train_on_device(model, desc_of(), 2).peak, narrow = train_on_device(model, desc_of(CKPT_DTYPE_FLOAT16), 2).peak;
  EXPECT_LT(narrow, wide * 7 / 10);
  EXPECT_GE(narrow, wide / 2);
}

TEST_F(DeviceLayers, HeadsThatTheDeviceHasNoKernelForAreRefusedAtOnce) {
  const Handle ops(desc_of());
  ckpt_gpt_desc model = CKPT_GPT_DESC_INIT;
  model.layers = model.batch = 1, model.sequence = 4, model.vocabulary = 7, model.heads = 2, model.channels = 10;
  ckpt_layer_block_desc block = CKPT_LAYER_BLOCK_DESC_INIT;
  block.batch = 1, block.sequence = 4, block.heads = 2, block.channels = 10;
  ckpt_gpt *gpt = nullptr;
  ckpt_layer *layer = nullptr;
  for (uint32_t most : {0, 5}) {
    fake::table.largest_head = most;
    OK(ckpt_gpt_create(ops, &model, &gpt));
    ckpt_gpt_destroy(gpt);
    OK(ckpt_layer_block_create(ops, &block, &layer));
    ckpt_layer_destroy(layer);
  }
  fake::table.largest_head = 4;
  expect_error(ckpt_gpt_create(ops, &model, &gpt), CKPT_ERROR_UNSUPPORTED, {"ckpt_gpt_create", "desc.channels is 10 for 2 heads", "at most 4"});
  expect_error(ckpt_layer_block_create(ops, &block, &layer), CKPT_ERROR_UNSUPPORTED, {"ckpt_layer_block_create", "at most 4"});
  EXPECT_EQ(gpt, nullptr);
  EXPECT_EQ(layer, nullptr);
}

TEST_F(DeviceLayers, NormIsOnlyThereIfAskedFor) {
  const Handle ops(desc_of());
  ckpt_gpt *gpt = make_gpt(ops, {});
  const size_t count = ckpt_gpt_parameter_count(gpt);
  const Array<float> p(Floats(count, 0.5f)), g(Floats(count, 0.5f)), m(Floats(count, 0.0f)), v(Floats(count, 0.0f));
  OK(ckpt_gpt_bind(gpt, p.data(), g.data()));
  ckpt_adamw_desc update = CKPT_ADAMW_DESC_INIT;
  update.step = 1;
  OK(ckpt_gpt_update(gpt, &update, m.data(), v.data(), nullptr));
  EXPECT_EQ(fake::calls["clip"], 0);
  double norm = 0.0;
  OK(ckpt_gpt_update(gpt, &update, m.data(), v.data(), &norm));
  EXPECT_EQ(fake::calls["clip"], 1);
  EXPECT_NEAR(norm, 0.5 * std::sqrt(static_cast<double>(count)), 1e-4);
  update.max_norm = 1.0f;
  OK(ckpt_gpt_update(gpt, &update, m.data(), v.data(), nullptr));
  EXPECT_EQ(fake::calls["clip"], 2);
  EXPECT_EQ(fake::calls["norm"], 0);  // the one that always waits
  update.max_norm = -1.0f;
  expect_error(ckpt_gpt_update(gpt, &update, m.data(), v.data(), nullptr), CKPT_ERROR_INVALID_ARGUMENT, {"max_norm is -1"});
  ckpt_gpt_destroy(gpt);
}

TEST_F(DeviceLayers, AnotherStreamIsRefused) {
  const Ops cpu(1);
  Layer layer;
  OK(ckpt_layer_gelu_create(cpu, 8, layer.out()));
  const Tape tape;
  const Floats in(8, 1.0f);
  ckpt_buffer x = input(tape, in), y = 0;
  // Frames say that they have the device's stream; the layer is of the CPU.
  expect_error(ckpt_layer_run(layer, tape, &x, 1, 0, &y), CKPT_ERROR_INVALID_ARGUMENT, {"gelu", "stream"});
}

TEST_F(DeviceLayers, LossesAreGivenBack) {
  const Handle ops(desc_of());
  ckpt_layer_head_desc desc = CKPT_LAYER_HEAD_DESC_INIT;
  desc.rows = desc.channels = desc.vocabulary = 4;
  std::vector<ckpt_layer *> heads(256);
  for (int round = 0; round < 2; ++round) {
    for (ckpt_layer *&head : heads) {
      OK(ckpt_layer_head_create(ops, &desc, &head));
      ASSERT_NE(ckpt_layer_loss(head), nullptr);
    }
    EXPECT_NE(ckpt_layer_loss(heads[0]), ckpt_layer_loss(heads[255]));
    ckpt_layer *one_more = nullptr;
    EXPECT_EQ(ckpt_layer_head_create(ops, &desc, &one_more), CKPT_ERROR_BUDGET);
    EXPECT_EQ(one_more, nullptr);
    for (ckpt_layer *head : heads) ckpt_layer_destroy(head);
  }
}

}  // namespace
