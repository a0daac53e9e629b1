// The layers' kernels: products in GFLOP/s, attention forward and backward, passes over memory in GB/s beside a copy of the same size.
// Shapes are those of a GPT of 256 channels, 8 heads, 2048 rows (batch 8 of 256, or 2 of 1024).
// The argument of each benchmark that has one is the number of threads.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "ckpt/ops.h"

namespace {

using Floats = std::vector<float>;

constexpr size_t kRows = 2048, kChannels = 256, kHidden = 1024, kHeads = 8;

struct Handle {
  ckpt_ops *ops = nullptr;
  explicit Handle(benchmark::State &state) {
    ckpt_ops_desc desc = CKPT_OPS_DESC_INIT;
    desc.thread_count = static_cast<uint32_t>(state.range(0));
    if (ckpt_ops_create(&desc, &ops) != CKPT_OK) state.SkipWithError(ckpt_ops_last_error());
    ckpt_ops_info info = {};
    info.struct_size = sizeof info;
    if (ckpt_ops_get_info(ops, &info) == CKPT_OK) state.SetLabel(std::string(info.isa) + ", " + info.blas);
  }
  ~Handle() { ckpt_ops_destroy(ops); }
};

Floats some(size_t count) {
  Floats out(count);
  for (size_t k = 0; k < count; ++k) out[k] = static_cast<float>(k * 2654435761u % 2048) / 1024.0f - 1.0f;
  return out;
}

void flops(benchmark::State &state, double per_iteration) {
  state.counters["GFLOP/s"] = benchmark::Counter(per_iteration * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}
void traffic(benchmark::State &state, double floats) {
  state.counters["GB/s"] = benchmark::Counter(floats * 4e-9, benchmark::Counter::kIsIterationInvariantRate);
}
void check(benchmark::State &state, ckpt_status status) {
  if (status != CKPT_OK) state.SkipWithError(ckpt_ops_last_error());
}

void linear_forward(benchmark::State &state, size_t inputs, size_t outputs) {
  const Handle h(state);
  const Floats in = some(kRows * inputs), weight = some(outputs * inputs), bias = some(outputs);
  Floats out(kRows * outputs);
  for (auto _ : state) check(state, ckpt_ops_linear_forward(h.ops, in.data(), weight.data(), bias.data(), kRows, inputs, outputs, out.data()));
  flops(state, 2.0 * static_cast<double>(kRows * inputs * outputs));
}

void linear_backward(benchmark::State &state, size_t inputs, size_t outputs) {
  const Handle h(state);
  const Floats in = some(kRows * inputs), weight = some(outputs * inputs), out_grad = some(kRows * outputs);
  Floats in_grad(kRows * inputs), weight_grad(outputs * inputs), bias_grad(outputs);
  for (auto _ : state)
    check(state, ckpt_ops_linear_backward(h.ops, in.data(), weight.data(), out_grad.data(), kRows, inputs, outputs, in_grad.data(), 0,
                                          weight_grad.data(), bias_grad.data()));
  flops(state, 4.0 * static_cast<double>(kRows * inputs * outputs));
}

// Operations of the causal half alone are counted: two products forward, four (plain) or five (tiled) backward.
double attention_flops(size_t batch, size_t sequence, double products) {
  return products * static_cast<double>(batch * sequence * sequence * kChannels);
}

void attention_plain(benchmark::State &state, size_t batch, size_t sequence, bool backward, float p) {
  const Handle h(state);
  const Floats qkv = some(kRows * 3 * kChannels), out_grad = some(kRows * kChannels);
  Floats weights(batch * kHeads * sequence * sequence), out(kRows * kChannels), qkv_grad(qkv.size());
  const ckpt_philox philox = {1, 2, 0, nullptr};
  check(state, ckpt_ops_attention_forward(h.ops, qkv.data(), batch, sequence, kHeads, kChannels, p, &philox, weights.data(), out.data()));
  for (auto _ : state)
    check(state, backward ? ckpt_ops_attention_backward(h.ops, qkv.data(), weights.data(), out_grad.data(), batch, sequence, kHeads, kChannels,
                                                        p, &philox, qkv_grad.data())
                          : ckpt_ops_attention_forward(h.ops, qkv.data(), batch, sequence, kHeads, kChannels, p, &philox, weights.data(), out.data()));
  flops(state, attention_flops(batch, sequence, backward ? 4.0 : 2.0));
}

void attention_tiled(benchmark::State &state, size_t batch, size_t sequence, bool backward, float p) {
  const Handle h(state);
  const Floats qkv = some(kRows * 3 * kChannels), out_grad = some(kRows * kChannels);
  Floats lse(batch * kHeads * sequence), out(kRows * kChannels), qkv_grad(qkv.size());
  const ckpt_philox philox = {1, 2, 0, nullptr};
  check(state, ckpt_ops_attention_tiled_forward(h.ops, qkv.data(), batch, sequence, kHeads, kChannels, p, &philox, lse.data(), out.data()));
  for (auto _ : state)
    check(state, backward ? ckpt_ops_attention_tiled_backward(h.ops, qkv.data(), out.data(), lse.data(), out_grad.data(), batch, sequence, kHeads,
                                                              kChannels, p, &philox, qkv_grad.data())
                          : ckpt_ops_attention_tiled_forward(h.ops, qkv.data(), batch, sequence, kHeads, kChannels, p, &philox, lse.data(), out.data()));
  flops(state, attention_flops(batch, sequence, backward ? 5.0 : 2.0));
}

void copy(benchmark::State &state) {
  const Floats in = some(kRows * kHidden);
  Floats out(in.size());
  for (auto _ : state) {
    std::memcpy(out.data(), in.data(), in.size() * sizeof(float));
    benchmark::ClobberMemory();
  }
  traffic(state, 2.0 * static_cast<double>(in.size()));
}

void gelu(benchmark::State &state, bool backward) {
  const Handle h(state);
  const Floats in = some(kRows * kHidden), bias = some(kHidden);
  Floats out(in.size()), bias_grad(kHidden);
  for (auto _ : state)
    check(state, backward ? ckpt_ops_gelu_backward(h.ops, in.data(), bias.data(), out.data(), kRows, kHidden, out.data(), 0, bias_grad.data())
                          : ckpt_ops_gelu_forward(h.ops, in.data(), bias.data(), kRows, kHidden, out.data()));
  traffic(state, (backward ? 3.0 : 2.0) * static_cast<double>(in.size()));
}

void layernorm(benchmark::State &state, bool backward) {
  const Handle h(state);
  const Floats in = some(kRows * kChannels), weight = some(kChannels), bias = some(kChannels), residual = some(in.size());
  Floats out(in.size()), mean(kRows), rstd(kRows), weight_grad(kChannels), bias_grad(kChannels);
  check(state, ckpt_ops_layernorm_forward(h.ops, in.data(), weight.data(), bias.data(), kRows, kChannels, 1e-5f, out.data(), mean.data(), rstd.data()));
  for (auto _ : state)
    check(state, backward ? ckpt_ops_layernorm_backward(h.ops, in.data(), mean.data(), rstd.data(), weight.data(), out.data(), residual.data(), kRows,
                                                        kChannels, out.data(), 0, weight_grad.data(), bias_grad.data())
                          : ckpt_ops_layernorm_forward(h.ops, in.data(), weight.data(), bias.data(), kRows, kChannels, 1e-5f, out.data(), mean.data(),
                                                       rstd.data()));
  traffic(state, (backward ? 4.0 : 2.0) * static_cast<double>(in.size()));
}

void dropout_residual(benchmark::State &state) {
  const Handle h(state);
  const Floats in = some(kRows * kChannels), residual = some(in.size());
  Floats out(in.size());
  const ckpt_philox philox = {1, 2, 0, nullptr};
  for (auto _ : state) check(state, ckpt_ops_dropout_forward(h.ops, in.data(), residual.data(), 0.1f, &philox, in.size(), out.data()));
  traffic(state, 3.0 * static_cast<double>(in.size()));
}

void cross_entropy(benchmark::State &state) {
  const Handle h(state);
  constexpr size_t kVocabulary = 256;
  Floats logits = some(kRows * kVocabulary), lse(kRows);
  const std::vector<int32_t> targets(kRows, 3);
  float loss = 0.0f;
  for (auto _ : state) {
    check(state, ckpt_ops_cross_entropy_forward(h.ops, logits.data(), targets.data(), kRows, kVocabulary, -1, lse.data(), &loss));
    check(state, ckpt_ops_cross_entropy_backward(h.ops, logits.data(), targets.data(), lse.data(), kRows, kVocabulary, -1, 1.0f, logits.data()));
  }
  traffic(state, 3.0 * static_cast<double>(logits.size()));
}

void adamw(benchmark::State &state) {
  const Handle h(state);
  constexpr size_t kCount = 9500000;
  const Floats grads = some(kCount);
  Floats parameters = some(kCount), m(kCount), v(kCount);
  ckpt_adamw_desc desc = CKPT_ADAMW_DESC_INIT;
  desc.learning_rate = 1e-3f;
  for (auto _ : state) {
    ++desc.step;
    check(state, ckpt_ops_adamw(h.ops, &desc, kCount, grads.data(), parameters.data(), m.data(), v.data()));
  }
  traffic(state, 7.0 * static_cast<double>(kCount));
}

#define CKPT_BENCH(name, ...) BENCHMARK_CAPTURE(__VA_ARGS__)->Name(name)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMicrosecond)

CKPT_BENCH("linear_forward/qkv", linear_forward, qkv, kChannels, 3 * kChannels);
CKPT_BENCH("linear_forward/proj", linear_forward, proj, kChannels, kChannels);
CKPT_BENCH("linear_forward/fc1", linear_forward, fc1, kChannels, kHidden);
CKPT_BENCH("linear_forward/fc2", linear_forward, fc2, kHidden, kChannels);
CKPT_BENCH("linear_backward/qkv", linear_backward, qkv, kChannels, 3 * kChannels);
CKPT_BENCH("linear_backward/proj", linear_backward, proj, kChannels, kChannels);
CKPT_BENCH("linear_backward/fc1", linear_backward, fc1, kChannels, kHidden);
CKPT_BENCH("linear_backward/fc2", linear_backward, fc2, kHidden, kChannels);
CKPT_BENCH("attention_plain/256/forward", attention_plain, f, 8, 256, false, 0.0f);
CKPT_BENCH("attention_plain/256/backward", attention_plain, b, 8, 256, true, 0.0f);
CKPT_BENCH("attention_plain/256/forward_dropout", attention_plain, fd, 8, 256, false, 0.1f);
CKPT_BENCH("attention_plain/256/backward_dropout", attention_plain, bd, 8, 256, true, 0.1f);
CKPT_BENCH("attention_plain/1024/forward", attention_plain, f2, 2, 1024, false, 0.0f);
CKPT_BENCH("attention_plain/1024/backward", attention_plain, b2, 2, 1024, true, 0.0f);
CKPT_BENCH("attention_tiled/256/forward", attention_tiled, f, 8, 256, false, 0.0f);
CKPT_BENCH("attention_tiled/256/backward", attention_tiled, b, 8, 256, true, 0.0f);
CKPT_BENCH("attention_tiled/1024/forward", attention_tiled, f2, 2, 1024, false, 0.0f);
CKPT_BENCH("attention_tiled/1024/backward", attention_tiled, b2, 2, 1024, true, 0.0f);
BENCHMARK(copy)->Unit(benchmark::kMicrosecond);
CKPT_BENCH("gelu/forward", gelu, f, false);
CKPT_BENCH("gelu/backward", gelu, b, true);
CKPT_BENCH("layernorm/forward", layernorm, f, false);
CKPT_BENCH("layernorm/backward", layernorm, b, true);
BENCHMARK(dropout_residual)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(cross_entropy)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(adamw)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
