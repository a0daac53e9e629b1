// AdamW (Loshchilov, Hutter 2019, arXiv 1711.05101) over flat arrays, and the norm that gradients are clipped to. Moments and master
// weights are float32; the factor of clipping stays on the device, so that an update never waits for the host.
#include "ops/cuda/element.h"
#include "ops/cuda/table.h"

#include <algorithm>
#include <cmath>

namespace ckpt::ops::cuda {
namespace {

struct Moments {
  float first, second;
};

// One element: moments move on, and the new parameter is returned.
CKPT_ON_DEVICE float updated(const DeviceAdamw &step, float grad_scale, float raw_grad, float parameter, Moments *moments) {
  const float grad = product(raw_grad, grad_scale);
  moments->first = fused(moments->first, step.beta1, product(grad, 1.0f - step.beta1));
  moments->second = fused(moments->second, step.beta2, product(product(grad, grad), 1.0f - step.beta2));
  const float divisor = fused(rng::OneLane::root(moments->second), step.second_moment_scale, step.epsilon);
  // Within two units in the last place of the quotient; the rounded one is a call, for which sm_80 spills registers.
  return fused(-step.step_size, __fdividef(moments->first, divisor), product(parameter, step.decay));
}

template <class T>
struct Arrays {
  const float *grads;
  T *parameters;
  float *weights;  // what is updated: the master weights, or NULL: parameters themselves
  float *first, *second;
  size_t count, vectors;
};

template <class T>
__global__ void __launch_bounds__(kElementBlock) adamw_step(DeviceAdamw step, const Words *words, Arrays<T> a) {
  constexpr unsigned kN = kLanes<T>;
  const float grad_scale = step.clip != 0 ? product(step.grad_scale, words->clip) : step.grad_scale;
  each<kN>(a.count, a.vectors, [&](uint64_t at) {
    const Floats<kN> grads = load_floats<kN>(a.grads + at);
    Floats<kN> first = load_floats<kN>(a.first + at), second = load_floats<kN>(a.second + at);
    Floats<kN> weights = a.weights != nullptr ? load_floats<kN>(a.weights + at) : load_vector(a.parameters + at);
#pragma unroll
    for (unsigned k = 0; k < kN; ++k) {
      Moments moments = {first.at[k], second.at[k]};
      weights.at[k] = updated(step, grad_scale, grads.at[k], weights.at[k], &moments);
      first.at[k] = moments.first;
      second.at[k] = moments.second;
    }
    if (a.weights != nullptr) store_floats<kN>(a.weights + at, weights);
    store_vector(a.parameters + at, weights);
    store_floats<kN>(a.first + at, first);
    store_floats<kN>(a.second + at, second);
  }, [&](uint64_t at) {
    Moments moments = {a.first[at], a.second[at]};
    const float before = a.weights != nullptr ? a.weights[at] : as_float(a.parameters[at]);
    const float weight = updated(step, grad_scale, a.grads[at], before, &moments);
    if (a.weights != nullptr) a.weights[at] = weight;
    a.parameters[at] = rounded<T>(weight);
    a.first[at] = moments.first;
    a.second[at] = moments.second;
  });
}

template <class T>
ckpt_status run_adamw(Context &context, const DeviceAdamw &step, size_t count, const float *grads, void *parameters, float *master,
                      float *first_moment, float *second_moment) {
  Arrays<T> a = {grads, static_cast<T *>(parameters), master, first_moment, second_moment, count, 0};
  const Cut cut = cut_of<kLanes<T>>(context, count, grads, a.parameters, master, first_moment, second_moment);
  a.vectors = cut.vectors;
  return launch(context, "adamw", adamw_step<T>, cut.blocks, kElementBlock, 0, step, context.words, a);
}

// ---- norm: squares in double precision; the number of blocks, and with it the order, is the count's matter ----

constexpr unsigned kBlock = 256;
constexpr size_t kMostBlocks = 1024;
constexpr size_t kOfBlock = kBlock * 4 * 4;  // elements that are worth a block: four vectors a thread

size_t norm_blocks(size_t count) { return std::min(kMostBlocks, (count + kOfBlock - 1) / kOfBlock); }

// A thread's elements are the vectors k, k + threads, ... of the array and, for the last ones, single elements.
__global__ void __launch_bounds__(kBlock) squares(const float *values, size_t count, bool aligned, double *partial) {
  __shared__ double shared[kBlock / kWarp];
  double total = 0.0;
  each<4>(count, count / 4, [&](uint64_t at) {
    Floats<4> x;
    if (aligned) {
      x = load_floats<4>(values + at);
    } else {
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) x.at[k] = values[at + k];
    }
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) total = fma(static_cast<double>(x.at[k]), static_cast<double>(x.at[k]), total);
  }, [&](uint64_t at) { total = fma(static_cast<double>(values[at]), static_cast<double>(values[at]), total); });
  total = block_sum<kBlock>(total, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

// scale: |grad_scale|. max_norm 0: no clipping; below 0: the factor stays as the latest clip left it.
__global__ void __launch_bounds__(kBlock) finish_norm(const double *partial, size_t blocks, double scale, double max_norm, Words *words) {
  __shared__ double shared[kBlock / kWarp];
  double total = 0.0;
  for (size_t k = threadIdx.x; k < blocks; k += kBlock) total += partial[k];
  total = block_sum<kBlock>(total, shared);
  if (threadIdx.x != 0) return;
  const double length = scale * sqrt(total);
  words->norm_squared = total;
  if (max_norm >= 0.0) words->clip = max_norm > 0.0 && length > max_norm ? static_cast<float>(max_norm / length) : 1.0f;
}

ckpt_status find_norm(Context &context, const float *values, size_t count, double scale, double max_norm) {
  const size_t blocks = norm_blocks(count);
  Parts parts;
  const size_t at = parts.add<double>(blocks);
  CKPT_CUDA(parts.take(context));
  CKPT_CUDA(launch(context, "norm", squares, static_cast<unsigned>(blocks), kBlock, 0, values, count, aligned16(values), parts.at<double>(at)));
  return launch(context, "norm", finish_norm, 1, kBlock, 0, parts.at<double>(at), blocks, scale, max_norm, context.words);
}

ckpt_status read_norm(Context &context, double *out) {
  double squared = 0.0;
  CKPT_CUDA_CALL(context, cudaMemcpyAsync(&squared, &context.words->norm_squared, sizeof squared, cudaMemcpyDeviceToHost, context.stream));
  CKPT_CUDA_CALL(context, cudaStreamSynchronize(context.stream));
  *out = std::sqrt(squared);
  return CKPT_OK;
}

}  // namespace

ckpt_status norm(Context &context, const float *values, size_t count, double *out_norm) {
  CKPT_CUDA(context.may_wait("ckpt_ops_norm"));
  CKPT_CUDA(find_norm(context, values, count, 1.0, -1.0));
  return read_norm(context, out_norm);
}

ckpt_status clip(Context &context, const float *grads, size_t count, float grad_scale, float max_norm, double *out_norm) {
  if (out_norm != nullptr) CKPT_CUDA(context.may_wait("clipping with the norm for the host"));
  const double scale = std::fabs(static_cast<double>(grad_scale));
  CKPT_CUDA(find_norm(context, grads, count, scale, static_cast<double>(max_norm)));
  if (out_norm == nullptr) return CKPT_OK;
  CKPT_CUDA(read_norm(context, out_norm));
  *out_norm *= scale;
  return CKPT_OK;
}

ckpt_status adamw(Context &context, const DeviceAdamw *step, size_t count, const float *grads, void *parameters, float *master,
                  float *first_moment, float *second_moment) {
  if (master == nullptr) return run_adamw<float>(context, *step, count, grads, parameters, nullptr, first_moment, second_moment);
  return with_type(context, [&](auto zero) -> ckpt_status {
    return run_adamw<decltype(zero)>(context, *step, count, grads, parameters, master, first_moment, second_moment);
  });
}

}  // namespace ckpt::ops::cuda
