// One execution of a segment, as its callback sees it. Lives on the stack of whoever runs the callback, or in the tape
// between ckpt_segment_begin and ckpt_segment_end.
#pragma once

#include <vector>

#include "base/bits.h"
#include "ckpt/tape.h"
#include "plan/graph.h"

namespace ckpt::tape {
class Recording;
struct Call;
}

struct ckpt_frame {
  enum class Mode : uint8_t { closed, first, replay, backward, dry };

  ckpt::tape::Recording *recording = nullptr;
  const ckpt::plan::Shape *shape = nullptr;
  const ckpt::tape::Call *call = nullptr;
  uint32_t node = 0;
  Mode mode = Mode::closed;
  bool measuring = false;
  ckpt::Bits todo;       // `needs`
  ckpt::Bits reachable;  // items that have a pointer
  ckpt::Bits wanted;     // items whose pointer must be asked for
  ckpt::Bits asked;
  void *scratch = nullptr;
  ckpt_status failed = CKPT_OK;  // by the frame's own functions, or by ckpt_frame_fail; its text is set
  uint32_t timed_item = UINT32_MAX;
  double started = 0, stamp = 0;
  uint32_t started_point = 0, stamp_point = 0;  // the same as events of the recording's timeline

  bool forward() const { return mode != Mode::backward; }
};
