// A layer: a segment, and the object that its callbacks get. Kinds of layers derive from ckpt_layer and say what forward and
// backward do with a frame; the rest is common.
#pragma once

#include <atomic>
#include <exception>
#include <string>
#include <vector>

#include "ops/handle.h"

namespace ckpt::ops {

struct Tensor {
  std::string name;
  size_t rows, columns;
  bool decays;
  float init_mean, init_stddev;
  size_t offset = 0;
  size_t count() const noexcept { return rows * columns; }
};

// What a callback's `user` points to.
struct Use {
  ckpt_layer *layer;
  bool evaluate;
};

constexpr float kInitStddev = 0.02f;
constexpr float kEpsilon = 1e-5f;
// A piece of scratch memory, so that what comes after it is aligned as the arena's blocks are.
inline size_t piece_bytes(size_t bytes) noexcept { return (bytes + 255) / 256 * 256; }

constexpr uint32_t kInitSite = 65535;  // of the draws for parameters: no layer draws there

inline Tensor matrix(const char *name, size_t rows, size_t columns, float stddev = kInitStddev) {
  return {name, rows, columns, true, 0.0f, stddev};
}
inline Tensor vector(const char *name, size_t columns, float value) { return {name, 1, columns, false, value, 0.0f}; }

// Slots of a segment while it is described.
class Slots {
 public:
  // `reads`: numbers of earlier slots, "from the inputs alone" where empty.
  void add(const char *name, size_t bytes, std::vector<uint32_t> reads, uint32_t group = 0, uint32_t flags = 0);
  std::vector<ckpt_slot> list();  // valid while this lives and nothing is added

 private:
  std::vector<ckpt_slot> slots_;
  std::vector<std::vector<uint32_t>> reads_;
};

}  // namespace ckpt::ops

struct ckpt_layer {
  explicit ckpt_layer(ckpt_ops *handle) noexcept : ops(handle) { ops->references.fetch_add(1); }
  virtual ~ckpt_layer();
  ckpt_layer(const ckpt_layer &) = delete;
  ckpt_layer &operator=(const ckpt_layer &) = delete;

  virtual const char *kind() const noexcept = 0;
  virtual size_t input_bytes(uint32_t input) const noexcept = 0;  // what forward and backward read and write of it
  virtual ckpt_status forward(ckpt_frame *frame, bool evaluate) noexcept = 0;
  virtual ckpt_status backward(ckpt_frame *frame, bool evaluate) noexcept = 0;
  virtual bool bound() const noexcept { return tensors.empty() || parameters != nullptr; }
  virtual bool has_gradients() const noexcept { return tensors.empty() || gradients != nullptr; }

  // What a use of the layer reads beside its inputs; returns how many were written.
  virtual uint32_t watched(ckpt_watch out[2]) const noexcept;

  void add_tensor(ckpt::ops::Tensor tensor);
  // Fills name and callbacks in, creates the segment.
  ckpt_status describe(ckpt_segment_desc &desc) noexcept;
  // Of activations and parameters; statistics and gradients of parameters are float32.
  size_t bytes_of(size_t elements) const noexcept { return elements * ops->element_bytes(); }
  void *element(void *from, size_t offset) const noexcept { return from == nullptr ? nullptr : static_cast<char *>(from) + bytes_of(offset); }
  const void *parameter(size_t tensor) const noexcept { return element(parameters, tensors[tensor].offset); }
  float *gradient(size_t tensor) const noexcept { return gradients + tensors[tensor].offset; }

  std::atomic<uint32_t> references{1};
  ckpt_ops *const ops;
  ckpt_segment *segment = nullptr;
  std::vector<ckpt::ops::Tensor> tensors;
  size_t parameter_count = 0;
  uint32_t input_count = 1;
  void *parameters = nullptr;
  float *gradients = nullptr;
  ckpt::ops::Use uses[2] = {{this, false}, {this, true}};
};

namespace ckpt::ops {

// After a kernel failed: its text becomes the frame's.
inline Status frame_failed(ckpt_frame *frame, Status status) noexcept { return ckpt_frame_fail(frame, status, last_error()); }

// Makes a layer of type L and hands it out; `build` (returning Status) completes it.
template <class L, class Build>
Status make_layer(const char *function, ckpt_ops *ops, ckpt_layer **out_layer, const Build &build) noexcept;

Status out_of_memory(const char *function) noexcept;
Status fill_tensor_info(const char *function, const Tensor &tensor, const std::string &prefix, size_t base,
                        ckpt_tensor_info *out_info) noexcept;
Status init_tensors(const ckpt_layer &layer, uint64_t seed, uint64_t first_tensor) noexcept;

template <class L, class Build>
Status make_layer(const char *function, ckpt_ops *ops, ckpt_layer **out_layer, const Build &build) noexcept {
  L *layer = nullptr;
  try {
    layer = new L(ops);
    const Status status = build(*layer);
    if (status == CKPT_OK)
      *out_layer = layer;
    else
      delete layer;
    return status;
  } catch (const std::exception &) {
    delete layer;
    return out_of_memory(function);
  }
}

}  // namespace ckpt::ops

#define CKPT_FRAME_TRY(frame, expression)                                     \
  do {                                                                        \
    if (const ::ckpt::ops::Status frame_status_ = (expression); frame_status_) \
      return ::ckpt::ops::frame_failed(frame, frame_status_);                 \
  } while (0)
