// What an estimate is asked for, checked: every division that a layout makes is exact, every default is filled in.
#pragma once

#include "base/status.h"
#include "ckpt/estimate.h"

namespace ckpt::estimate {

struct Model {
  bool gated = false, flash = false, dropout = false;
  uint64_t element = 2;
  uint64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_size = 0, ffn = 0, sequence = 0, micro_batch = 0, vocabulary = 0;
};

struct Layout {
  bool sequence_parallel = false;
  uint64_t tensor = 1, context = 1, pipeline = 1, chunks = 1, micro_batches = 1;  // chunks: per rank
};

struct Hardware {
  bool given = false;
  double flops_per_second = 3.12e14, bytes_per_second = 2e12;
};

struct Request {
  Model model;
  Layout layout;
  Hardware hardware;
  uint64_t chunk_layers() const { return model.layers / (layout.pipeline * layout.chunks); }
  // Chunks in flight on a rank of the pipeline.
  uint64_t in_flight(uint64_t rank) const;
};

// `function` begins the error text. The descs are of this library's size; hardware may be NULL.
Status check_request(const char *function, const ckpt_model_desc &model, const ckpt_layout_desc &layout, const ckpt_hardware_desc *hardware, Request *out);

}  // namespace ckpt::estimate
