// A model's whole life on the CUDA double: each call of CUDA fails once, and threads of blocks run in every order. Skipped where the
// plugin is another.
#include <dlfcn.h>

#include <functional>

#include "../cuda_sim/include/cudasim_control.h"
#include "places.h"
#include "tapes.h"

using namespace test;

namespace {

class Double {
 public:
  // False: "cuda" is not the double.
  bool find() {
    const char *folder = std::getenv("CKPT_PLUGIN_PATH");
    if (folder == nullptr) return false;
    void *const library = dlopen((std::string(folder) + "/libckpt_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    const auto look = [&](const char *name, auto *out) {
      *out = library == nullptr ? nullptr : reinterpret_cast<std::remove_pointer_t<decltype(out)>>(dlsym(library, name));
      return *out != nullptr;
    };
    return look("cudasim_reset", &reset) && look("cudasim_fail_call", &fail_call) && look("cudasim_failed_call", &failed_call) &&
           look("cudasim_get_live", &get_live) && look("cudasim_set_order", &set_order) && look("cudasim_set_workers", &set_workers);
  }
  decltype(&cudasim_reset) reset = nullptr;
  decltype(&cudasim_fail_call) fail_call = nullptr;
  decltype(&cudasim_failed_call) failed_call = nullptr;
  decltype(&cudasim_get_live) get_live = nullptr;
  decltype(&cudasim_set_order) set_order = nullptr;
  decltype(&cudasim_set_workers) set_workers = nullptr;
};

class DeviceFaults : public testing::Test {
 protected:
  void SetUp() override {
    const ckpt_status status = ckpt_device_open("cuda", &device);
    if (status == CKPT_ERROR_NOT_FOUND && std::getenv("CKPT_PLUGIN_PATH") == nullptr) GTEST_SKIP() << ckpt_last_error();
    ASSERT_EQ(status, CKPT_OK) << ckpt_last_error();
    if (!sim.find()) GTEST_SKIP() << "the plugin for \"cuda\" is not the double";
  }
  void TearDown() override {
    if (sim.reset != nullptr) sim.reset();
    ckpt_device_close(device);
  }
  ckpt_device *device = nullptr;
  Double sim;
};

// All that a run has; what is half open closes too.
struct Life {
  ckpt_device *device = nullptr;
  void *stream = nullptr;
  ckpt_ops *ops = nullptr;
  ckpt_arena *memory = nullptr, *arena = nullptr;
  ckpt_gpt *gpt = nullptr;
  ckpt_tape *tape = nullptr;
  ckpt_graph *graph = nullptr;
  std::vector<void *> blocks;  // of `memory`
  Floats losses;
  bool core = true;  // whose text the latest failure has

  ~Life() {
    ckpt_graph_destroy(graph);
    ckpt_tape_destroy(tape);
    ckpt_gpt_destroy(gpt);
    ckpt_arena_destroy(arena);
    for (void *block : blocks) (void)ckpt_arena_free(memory, block);
    ckpt_arena_destroy(memory);
    ckpt_ops_destroy(ops);
    ckpt_device_stream_destroy(device, stream);
  }
  ckpt_status of_ops(ckpt_status status) {
    core = false;
    return status;
  }
  ckpt_status of_core(ckpt_status status) {
    core = true;
    return status;
  }
#define TRY_CORE(call) \
  if (const ckpt_status s = of_core(call); s != CKPT_OK) return s
#define TRY_OPS(call) \
  if (const ckpt_status s = of_ops(call); s != CKPT_OK) return s

  ckpt_status open(uint32_t dtype) {
    TRY_CORE(ckpt_device_stream_create(device, &stream));
    ckpt_ops_desc desc = CKPT_OPS_DESC_INIT;
    desc.dtype = dtype;
    desc.device = device;
    desc.stream = stream;
    TRY_OPS(ckpt_ops_create(&desc, &ops));
    ckpt_arena_desc arena_desc = CKPT_ARENA_DESC_INIT;
    arena_desc.stream = stream;
    arena_desc.capacity_bytes = size_t{1} << 20;
    TRY_CORE(ckpt_arena_create(device, &arena_desc, &memory));
    TRY_CORE(ckpt_arena_create(device, &arena_desc, &arena));
    ckpt_tape_desc tape_desc = CKPT_TAPE_DESC_INIT;
    tape_desc.arena = arena;
    tape_desc.strategy = CKPT_STRATEGY_EVERY_SEGMENT;
    TRY_CORE(ckpt_tape_create(&tape_desc, &tape));
    ckpt_gpt_desc gpt_desc = CKPT_GPT_DESC_INIT;
    gpt_desc.attention = CKPT_ATTENTION_TILED;
    gpt_desc.layers = gpt_desc.heads = gpt_desc.batch = 1;
    gpt_desc.channels = gpt_desc.sequence = 8;
    gpt_desc.vocabulary = 11;
    gpt_desc.head_chunk_rows = 5;
    gpt_desc.dropout_probability = 0.1f;
    TRY_OPS(ckpt_gpt_create(ops, &gpt_desc, &gpt));
    return CKPT_OK;
  }

  void *take(size_t bytes) {
    blocks.push_back(ckpt_arena_alloc(memory, bytes, 0));
    return blocks.back();
  }

  ckpt_status step(const int32_t *tokens) {
    ckpt_buffer loss = 0;
    float value = NAN;
    TRY_CORE(ckpt_tape_begin(tape, 1, 0));
    TRY_OPS(ckpt_gpt_record(gpt, tape, tokens, tokens, 0, &loss));
    TRY_CORE(ckpt_backward(tape, &loss, nullptr, 1, 0));
    TRY_CORE(ckpt_device_copy(device, stream, &value, ckpt_gpt_loss(gpt), sizeof value, CKPT_COPY_DEVICE_TO_HOST));
    TRY_CORE(ckpt_device_synchronize(device, stream));
    losses.push_back(value);
    return CKPT_OK;
  }

  ckpt_status train(uint32_t dtype) {
    const size_t count = ckpt_gpt_parameter_count(gpt), bytes = count * sizeof(float);
    float *arrays[5] = {};
    for (float *&array : arrays) {
      array = static_cast<float *>(take(bytes));
      if (array == nullptr) return of_core(ckpt_last_status());
      TRY_CORE(ckpt_device_fill(device, stream, array, 0, bytes));
    }
    const std::vector<int32_t> tokens = indices(8, 4, 11);
    auto *const on_device = static_cast<int32_t *>(take(8 * sizeof(int32_t)));
    TRY_CORE(ckpt_device_copy(device, stream, on_device, tokens.data(), 8 * sizeof(int32_t), CKPT_COPY_HOST_TO_DEVICE));
    TRY_OPS(ckpt_gpt_bind(gpt, arrays[0], arrays[1]));
    TRY_OPS(ckpt_gpt_init(gpt, 7));
    TRY_OPS(ckpt_ops_to_float(ops, arrays[0], count, arrays[4]));
    ckpt_adamw_desc update = CKPT_ADAMW_DESC_INIT;
    update.learning_rate = 0.1f;
    update.max_norm = 1.0f;
    update.step = 1;
    update.master_weights = dtype == CKPT_DTYPE_FLOAT32 ? nullptr : arrays[4];
    double norm = 0.0;
    TRY_CORE(step(on_device));
    TRY_OPS(ckpt_gpt_update(gpt, &update, arrays[2], arrays[3], &norm));
    losses.push_back(static_cast<float>(norm));
    TRY_CORE(step(on_device));
    TRY_CORE(ckpt_tape_prepare(tape, 1));
    TRY_CORE(ckpt_device_capture_begin(device, stream));
    ckpt_buffer loss = 0;
    ckpt_status captured = of_core(ckpt_tape_begin(tape, 1, 0));
    if (captured == CKPT_OK) captured = of_ops(ckpt_gpt_record(gpt, tape, on_device, on_device, 0, &loss));
    if (captured == CKPT_OK) captured = of_core(ckpt_backward(tape, &loss, nullptr, 1, 0));
    const std::string text = core ? ckpt_last_error() : ckpt_ops_last_error();
    const ckpt_status ended = ckpt_device_capture_end(device, stream, &graph);
    if (captured != CKPT_OK) {
      EXPECT_NE(text, "");
      return captured;
    }
    TRY_CORE(ended);
    TRY_CORE(ckpt_tape_replay(tape));
    TRY_CORE(ckpt_graph_launch(graph, stream));
    TRY_OPS(ckpt_ops_check(ops));
    return CKPT_OK;
  }
#undef TRY_CORE
#undef TRY_OPS
};

ckpt_status live(ckpt_device *device, uint32_t dtype, Floats *losses, std::string *text) {
  Life life;
  life.device = device;
  ckpt_status status = life.open(dtype);
  if (status == CKPT_OK) status = life.train(dtype);
  if (status != CKPT_OK) *text = life.core ? ckpt_last_error() : ckpt_ops_last_error();
  *losses = life.losses;
  return status;
}

std::string text_of(const cudasim_live &l) {
  return (testing::Message() << l.allocations << " allocations, " << l.pinned << " pinned, " << l.reservations << " reservations, " << l.handles
                             << " handles, " << l.mappings << " mappings, " << l.streams << " streams, " << l.events << " events, " << l.graphs
                             << " graphs, " << l.graph_execs << " executable graphs, " << l.blas_objects << " cuBLASLt objects")
      .GetString();
}

// Every call of opening, then one in seven: a step's calls are the same few, over and over.
TEST_F(DeviceFaults, CallsFailOnce) {
  constexpr uint32_t dtype = CKPT_DTYPE_BFLOAT16;
  Floats expected, got;
  std::string text;
  ASSERT_EQ(live(device, dtype, &expected, &text), CKPT_OK) << text;
  cudasim_live before = {}, after = {};
  sim.get_live(&before);
  uint64_t k = 1;
  for (;; k += k < 60 ? 1 : 7) {
    sim.fail_call(k, 1, nullptr);
    text.clear();
    const ckpt_status status = live(device, dtype, &got, &text);
    const std::string failed = sim.failed_call();
    sim.fail_call(0, 0, nullptr);
    if (failed.empty()) {
      EXPECT_EQ(status, CKPT_OK) << text;
      break;
    }
    // What was only tidied up, or asked for in advance, may fail in silence.
    if (status != CKPT_OK) {
      EXPECT_NE(text, "") << "call " << k << ", " << failed;
    }
    for (size_t step = 0; step < got.size(); ++step) ASSERT_EQ(got[step], expected[step]) << "call " << k << ", " << failed << " failed: " << text;
    sim.get_live(&after);
    ASSERT_EQ(text_of(after), text_of(before)) << "call " << k << ", " << failed << " failed: " << text;
  }
  EXPECT_GT(k, 100u);
  ASSERT_EQ(live(device, dtype, &got, &text), CKPT_OK) << text;
  EXPECT_TRUE(same_bits(got, expected));
}

TEST_F(DeviceFaults, OrderOfThreadsDoesNotMatter) {
  for (const uint32_t dtype : {CKPT_DTYPE_FLOAT32, CKPT_DTYPE_FLOAT16}) {
    Floats expected, got;
    std::string text;
    ASSERT_EQ(live(device, dtype, &expected, &text), CKPT_OK) << text;
    sim.set_workers(2);
    for (const int order : {CUDASIM_REVERSE, CUDASIM_RANDOM}) {
      sim.set_order(order, 5);
      ASSERT_EQ(live(device, dtype, &got, &text), CKPT_OK) << text;
      EXPECT_TRUE(same_bits(got, expected)) << "order " << order;
    }
    sim.reset();
  }
}

}  // namespace
