#include "ops/layer.h"

#include <cstdio>

namespace ckpt::ops {
namespace {

// Work goes to the handle's stream, the memory that it works on is ordered by the arena's.
ckpt_status check_stream(const ckpt_layer &layer, ckpt_frame *frame) noexcept {
  if (ckpt_frame_stream(frame) == layer.ops->stream) return CKPT_OK;
  return frame_failed(frame, fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: the arena's stream is %p, expected that of the layer's handle, %p",
                                  layer.kind(), ckpt_frame_stream(frame), layer.ops->stream));
}

ckpt_status check_inputs(const ckpt_layer &layer, ckpt_frame *frame) noexcept {
  for (uint32_t k = 0; k < layer.input_count; ++k) {
    const size_t bytes = ckpt_frame_bytes(frame, CKPT_FRAME_INPUT, k), expected = layer.input_bytes(k);
    if (bytes < expected)
      return frame_failed(frame, fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: inputs[%u] has %zu bytes, expected %zu", layer.kind(), k, bytes, expected));
  }
  return CKPT_OK;
}

ckpt_status run_forward(void *user, ckpt_frame *frame) {
  const Use &use = *static_cast<const Use *>(user);
  if (const ckpt_status status = check_stream(*use.layer, frame)) return status;
  if (const ckpt_status status = check_inputs(*use.layer, frame)) return status;
  return use.layer->forward(frame, use.evaluate);
}

ckpt_status run_backward(void *user, ckpt_frame *frame) {
  const Use &use = *static_cast<const Use *>(user);
  if (const ckpt_status status = check_stream(*use.layer, frame)) return status;
  if (!use.layer->has_gradients()) {
    return frame_failed(frame, fail(CKPT_ERROR_STATE, "%s: a backward needs the array of gradients, which was NULL when parameters were bound",
                                    use.layer->kind()));
  }
  return use.layer->backward(frame, use.evaluate);
}

void release(void *user) { ckpt_layer_destroy(static_cast<Use *>(user)->layer); }

}  // namespace

void Slots::add(const char *name, size_t bytes, std::vector<uint32_t> reads, uint32_t group, uint32_t flags) {
  static constexpr uint32_t kInputsAlone = 0;
  ckpt_slot slot = {};
  slot.name = name;
  slot.bytes = bytes;
  slot.reads = &kInputsAlone;
  slot.group = group;
  slot.flags = flags;
  slots_.push_back(slot);
  reads_.push_back(std::move(reads));
}

std::vector<ckpt_slot> Slots::list() {
  for (size_t k = 0; k < slots_.size(); ++k) {
    slots_[k].read_count = static_cast<uint32_t>(reads_[k].size());
    if (!reads_[k].empty()) slots_[k].reads = reads_[k].data();
  }
  return slots_;
}

Status out_of_memory(const char *function) noexcept { return fail(CKPT_ERROR_OUT_OF_MEMORY, "%s: no memory on the host", function); }

Status fill_tensor_info(const char *function, const Tensor &tensor, const std::string &prefix, size_t base,
                        ckpt_tensor_info *out_info) noexcept {
  ckpt_tensor_info info = {};
  info.decays = tensor.decays;
  info.offset = base + tensor.offset;
  info.count = tensor.count();
  info.rows = tensor.rows;
  info.columns = tensor.columns;
  info.init_mean = tensor.init_mean;
  info.init_stddev = tensor.init_stddev;
  std::snprintf(info.name, sizeof info.name, "%s%s", prefix.c_str(), tensor.name.c_str());
  return write_struct(function, info, 96, out_info);
}

Status init_tensors(const ckpt_layer &layer, uint64_t seed, uint64_t first_tensor) noexcept {
  for (size_t k = 0; k < layer.tensors.size(); ++k) {
    const Tensor &tensor = layer.tensors[k];
    ckpt_philox philox = {};
    if (const Status status = ckpt_philox_pack(seed, 0, first_tensor + k, kInitSite, &philox)) return fail_as_core(status);
    CKPT_OPS_TRY(ckpt_ops_normal(layer.ops, &philox, tensor.init_mean, tensor.init_stddev, tensor.count(),
                                 layer.element(layer.parameters, tensor.offset)));
  }
  return CKPT_OK;
}

}  // namespace ckpt::ops

using namespace ckpt::ops;

ckpt_layer::~ckpt_layer() {
  ckpt_segment_destroy(segment);
  ckpt_ops_destroy(ops);
}

uint32_t ckpt_layer::watched(ckpt_watch out[2]) const noexcept {
  if (parameter_count == 0) return 0;
  out[0] = {"parameters", parameters, bytes_of(parameter_count)};
  return 1;
}

void ckpt_layer::add_tensor(Tensor tensor) {
  tensor.offset = parameter_count;
  parameter_count += tensor.count();
  tensors.push_back(std::move(tensor));
}

ckpt_status ckpt_layer::describe(ckpt_segment_desc &desc) noexcept {
  desc.struct_size = sizeof desc;
  desc.slot_size = sizeof(ckpt_slot);
  desc.output_size = sizeof(ckpt_output);
  desc.name = kind();
  desc.forward = run_forward;
  desc.backward = run_backward;
  input_count = desc.input_count;
  const ckpt_status status = ckpt_segment_create(&desc, &segment);
  return status == CKPT_OK ? CKPT_OK : fail_as_core(status);
}

extern "C" {

void ckpt_layer_destroy(ckpt_layer *layer) {
  if (layer != nullptr && layer->references.fetch_sub(1) == 1) delete layer;
}

size_t ckpt_layer_parameter_count(const ckpt_layer *layer) { return layer == nullptr ? 0 : layer->parameter_count; }

uint32_t ckpt_layer_tensor_count(const ckpt_layer *layer) {
  return layer == nullptr ? 0 : static_cast<uint32_t>(layer->tensors.size());
}

ckpt_status ckpt_layer_get_tensor(const ckpt_layer *layer, uint32_t index, ckpt_tensor_info *out_info) {
  CKPT_OPS_TRY(Check("ckpt_layer_get_tensor").pointers({{"layer", layer}}).status());
  if (index >= layer->tensors.size())
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_layer_get_tensor: index is %u, expected less than %zu", index,
                layer->tensors.size());
  return fill_tensor_info("ckpt_layer_get_tensor", layer->tensors[index], "", 0, out_info);
}

ckpt_status ckpt_layer_bind(ckpt_layer *layer, void *parameters, float *gradients) {
  CKPT_OPS_TRY(Check("ckpt_layer_bind").pointers({{"layer", layer}}).status());
  if (layer->parameter_count > 0)
    CKPT_OPS_TRY(Check("ckpt_layer_bind").pointers({{"parameters", parameters}}).status());
  layer->parameters = parameters;
  layer->gradients = gradients;
  return CKPT_OK;
}

ckpt_status ckpt_layer_init(ckpt_layer *layer, uint64_t seed, uint64_t first_tensor) {
  CKPT_OPS_TRY(Check("ckpt_layer_init").pointers({{"layer", layer}}).status());
  if (layer->parameter_count > 0 && layer->parameters == nullptr)
    return fail(CKPT_ERROR_STATE, "ckpt_layer_init: the %s has no parameters bound: call ckpt_layer_bind first", layer->kind());
  return init_tensors(*layer, seed, first_tensor);
}

const ckpt_segment *ckpt_layer_segment(const ckpt_layer *layer) { return layer == nullptr ? nullptr : layer->segment; }

void *ckpt_layer_user(ckpt_layer *layer, uint32_t flags) {
  return layer == nullptr ? nullptr : &layer->uses[(flags & CKPT_LAYER_EVALUATE) != 0];
}

ckpt_status ckpt_layer_run(ckpt_layer *layer, ckpt_tape *tape, const ckpt_buffer *inputs, uint32_t input_count, uint32_t flags,
                           ckpt_buffer *out_output) {
  constexpr const char *kName = "ckpt_layer_run";
  CKPT_OPS_TRY(Check(kName).pointers({{"layer", layer}, {"tape", tape}, {"inputs", inputs}, {"out_output", out_output}}).status());
  *out_output = 0;
  if (input_count != layer->input_count)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: input_count is %u, expected %u for a layer %s", kName, input_count,
                layer->input_count, layer->kind());
  if ((flags & ~uint32_t{CKPT_LAYER_EVALUATE}) != 0)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: flags is %u, expected CKPT_LAYER_EVALUATE or 0", kName, flags);
  if (!layer->bound())
    return fail(CKPT_ERROR_STATE, "%s: the %s has no parameters bound: call ckpt_layer_bind (a tied head: ckpt_layer_bind_tied) first",
                kName, layer->kind());
  ckpt_call call = CKPT_CALL_INIT;
  call.input_count = input_count;
  call.user = ckpt_layer_user(layer, flags);
  call.release = release;
  call.inputs = inputs;
  ckpt_watch watch[2] = {};
  call.watch = watch;
  call.watch_count = layer->watched(watch);
  layer->references.fetch_add(1);
  const ckpt_status status = ckpt_segment_run(tape, layer->segment, &call, out_output);
  return status == CKPT_OK ? CKPT_OK : fail_as_core(status);
}

}  // extern "C"
