// One forward pass and its backward passes: the graph as it is recorded (or the known one that it follows), the machine
// over the arena, and the calls to replay. Owned by its tape, or by a ckpt_recording once detached.
//
// record.cpp   inputs, segments, reading boundaries
// follow.cpp   following a known recording's plan, and leaving it
// execute.cpp  running actions: forward, backward, free, drop; callbacks and what they must do
// thin.cpp     an unknown recording that runs short
// backward.cpp backward passes (learn.cpp: what is learnt from them)
// checks.cpp   determinism, recompute and input checks
#pragma once

#include <algorithm>
#include <cstdio>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "arena/arena.h"
#include "plan/machine.h"
#include "tape/frame.h"
#include "tape/known.h"
#include "tape/segment.h"
#include "tape/timing.h"

struct ckpt_tape;

namespace ckpt::tape {

// The machine's backend over a live arena. Measures what this recording sees: live load and height, others' blocks included.
// While the arena has the region that was opened for this recording, blocks go where the plan's offsets say.
struct ArenaBackend {
  arena::Arena *arena;
  std::span<const size_t> offsets = {};  // of the allocations to come; the plan's
  uint64_t region = 0;
  size_t peak = 0, low = 0, high = 0;
  size_t refused_bytes = 0;       // the latest request that failed
  Status guard_status = CKPT_OK;  // of the first block whose guards were overwritten

  plan::BlockId allocate(size_t bytes, plan::Side side);
  void free(plan::BlockId block);
  Status refusal() { return arena->refuse("ckpt", refused_bytes); }
  void measure();
  size_t height() const { return low + high; }
  bool placed() const { return region != 0 && arena->placer().region() == region; }
  void close() noexcept;  // nothing lives in the region, or it was settled
};
using LiveMachine = plan::Machine<ArenaBackend>;

struct Call {  // one use of a segment
  ckpt_segment *segment = nullptr;  // counted
  void *user = nullptr;
  ckpt_release_fn release = nullptr;
  uint32_t first_watch = 0, watch_count = 0;
  size_t state = 0;  // offset into Recording::states_
};

struct Watch {
  ckpt_watch memory;
  uint64_t hash;
};

struct InputData {
  const void *data = nullptr;
  void *grad = nullptr;
  bool accumulate = false;
  uint64_t hash = 0;
};

struct Counters {
  uint64_t forward = 0, recompute = 0, backward = 0, skipped = 0, thinned = 0;
  double forward_seconds = 0, recompute_seconds = 0, backward_seconds = 0;
  size_t held = 0;
};

class Recording {
 public:
  explicit Recording(ckpt_tape *tape);
  ~Recording() { clear(); }
  Recording(const Recording &) = delete;
  Recording &operator=(const Recording &) = delete;

  // capture: not 0: into that capture's graph, by the plan of `expected`; whatever else is refused.
  Status begin(uint64_t key, uint32_t flags, uint64_t step, uint32_t generation, KnownPtr expected, uint32_t capture = 0);
  void clear() noexcept;  // everything back; users released

  Status add_input(const ckpt_input_desc &desc, ckpt_buffer *out);
  // Validates a segment and its call: nothing has changed if it fails.
  Status prepare_segment(const ckpt_segment &segment, const ckpt_call &call);
  // After prepare_segment. On success *frame is open. `call` is released by the recording from here on, also on failure,
  // which ends the recording.
  Status begin_segment(ckpt_segment *segment, const ckpt_call &call, ckpt_frame *frame);
  Status end_segment(ckpt_frame *frame, Status status, ckpt_buffer *outputs);
  Status run_first(ckpt_frame *frame);  // the segment's forward, in an open frame
  Status release_value(ckpt_buffer buffer);
  Status read(ckpt_buffer buffer, const void **out);
  void finish_forward();
  Status backward(std::span<const ckpt_buffer> outputs, const void *const *grads, bool retain);

  bool dry() const { return (flags_ & CKPT_TAPE_DRY) != 0; }
  bool no_backward() const { return (flags_ & CKPT_TAPE_NO_BACKWARD) != 0; }
  bool empty() const { return next_node_ == 0 && next_value_ == 0; }
  uint64_t step() const { return step_; }
  uint64_t key() const { return key_; }
  uint32_t generation() const { return generation_; }
  uint64_t node_count() const { return next_node_; }
  bool spent() const { return spent_; }         // a retained recording that has been run once, at least
  bool lost() const { return lost_; }           // something failed half way: the recording must end
  uint32_t capture() const { return capture_; }  // the capture that it is in: Device::capturing's number; or 0
  bool captured() const { return capture_ != 0; }
  // Is there anything in it that its tape does not know yet? (Costs aside where they come later: see timing.h.)
  bool teaches() const;
  bool measuring() const { return measuring_; }
  Timeline &timeline() { return timeline_; }
  bool sampled() const { return sampled_ && followed() && own_graph_ == nullptr; }  // its costs are worth a look: see drift.h
  bool followed() const { return known_ != nullptr && !departed_; }
  const Counters &counters() const { return counters_; }
  const ArenaBackend &measured() const { return machine_.backend(); }
  const KnownPtr &known() const { return known_; }
  size_t predicted_peak() const { return predicted_peak_; }
  size_t predicted_height() const { return predicted_height_; }
  double predicted_recompute() const { return predicted_recompute_; }
  size_t minimum_budget() const { return minimum_budget_; }
  const plan::Graph &graph() const { return *graph_; }
  ckpt_tape &tape() const { return *tape_; }

  // For frames.
  uint32_t input_value(const ckpt_frame &frame, uint32_t input) const {
    return frame.mode == ckpt_frame::Mode::dry ? call_inputs_[input] : graph_->node_inputs[graph_->nodes[frame.node].first_input + input];
  }
  const void *value_data(uint32_t value) const;
  void *item_data(uint32_t node, uint32_t item) const;
  const void *output_grad(uint32_t node, uint32_t output) const;
  void *input_grad(ckpt_frame *frame, uint32_t input, int *out_accumulate);
  void stamp(ckpt_frame *frame, uint32_t item);
  void stamp_event(ckpt_frame *frame, uint32_t item);

 private:
  friend class Learner;

  // record.cpp
  bool names_value(ckpt_buffer buffer, uint32_t *out) const;
  Status check_value(ckpt_buffer buffer, const char *function, const char *what, uint32_t *out) const;
  ckpt_buffer buffer_of(uint32_t value) const;
  Status begin_node(const ckpt_call &call, ckpt_frame *frame);
  Status take_first(const Bits &want, const Bits &in_place);
  Status bring_inputs();
  Status make_value(uint32_t value);
  Bits unknown_want(uint32_t node) const;
  Status check_lower_bound(uint32_t node) const;
  Status short_of(const char *doing, uint32_t node) const;
  void open_first(ckpt_frame *frame);

  // follow.cpp
  Status place_input(const InputEvent &event);
  Status place_node(const NodeEvent &event);
  template <class Event>
  Status place(const Event &event, Match *out);
  template <class Event>
  Status choose(const Event &event);
  template <class Event>
  Result<KnownPtr> other_match(const Event &event) const;
  Status expect(KnownPtr known);
  Status predict();
  bool open_region(plan::Simulation *sim);
  void settle();
  Status predict_rest(const plan::Graph &graph);
  Status predict_beside(plan::Simulation *sim);
  Status leave(const char *why);
  void depart();
  plan::Graph &own();  // the graph of this recording alone: copied from the known one on first use
  Status follow_to_first();     // actions up to the first run of the next node
  Status follow_trailing();     // frees and drops right after it

  // execute.cpp
  Status execute(const plan::Action &action);
  Status replay(const plan::Action &action);
  Status run_backward(const plan::Action &action);
  Status free_value(uint32_t value);
  Status guards(uint32_t node) const;
  Status call_forward(ckpt_frame *frame);
  Status verdict(ckpt_frame *frame, Status status, const char *what);
  Status check_forward_filled(ckpt_frame *frame);
  Status check_grads_filled(ckpt_frame *frame);
  void open_forward(ckpt_frame *frame, uint32_t node, ckpt_frame::Mode mode, const Bits &todo, plan::BlockId scratch);
  Status seed_gradients(uint32_t node);
  Status zero_missing_gradients();
  void trace(uint32_t what, uint32_t index, bool recompute) const;
  double now() const;
  Status mark(uint32_t *point);
  Status run_backward_callback(uint32_t node, ckpt_frame *frame);
  Status save_state(uint32_t node);
  Status with_state(uint32_t node, ckpt_frame *frame);

  // thin.cpp
  bool thin();
  void note_droppable(uint32_t node);
  bool droppable_value(uint32_t value) const;

  // backward.cpp
  Status resolve_roots(std::span<const ckpt_buffer> outputs, const void *const *grads);
  Status dry_backward();
  Status plan_rest(bool retain);
  bool on_plan(bool retain) const;
  Status still_fits(bool *out);
  Status run_actions(std::span<const plan::Action> actions, const char *doing);

  // checks.cpp
  Status hash_memory(const void *data, size_t bytes, uint64_t *out) const;
  Status hash_item(uint32_t node, uint32_t item, uint64_t *out) const;
  Status hash_first_run(const ckpt_frame &frame);
  Status compare_recomputed(const ckpt_frame &frame);
  Status check_inputs(uint32_t node, const char *when);
  Status check_reads(const ckpt_frame &frame);

  ckpt_tape *tape_;
  uint64_t key_ = 0, step_ = 0;
  uint32_t flags_ = 0, generation_ = 0;
  bool departed_ = false;    // left the plan that it followed
  bool disturbed_ = false;   // follows, but something is live (or not) that the plan does not know of
  bool finished_ = false;    // no more segments
  bool spent_ = false;
  bool measuring_ = false;
  bool sampled_ = false;     // though its costs are settled
  bool placed_ = false;      // the segment that begins is in the graph
  bool run_open_ = false;    // run_ has begun and not ended
  bool lost_ = false;
  uint32_t capture_ = 0;
  bool timed_ = false;       // by events: see timing.h

  KnownPtr known_;
  std::unique_ptr<plan::Graph> own_graph_;
  const plan::Graph *graph_;
  LiveMachine machine_;
  size_t next_action_ = 0;
  uint32_t next_node_ = 0, next_value_ = 0;

  std::vector<Call> calls_;
  std::vector<InputData> inputs_;
  std::vector<uint32_t> call_inputs_;   // of the segment that begins: value numbers
  std::vector<uint8_t> value_flags_;    // kHeld, kRead, kReleased
  std::vector<Watch> watches_;
  std::vector<std::byte> states_;
  std::unordered_map<uint64_t, uint64_t> first_hashes_;  // of items that were made, under CKPT_CHECK_DETERMINISM
  LiveMachine::Run run_;                // of the open first run

  std::vector<double> item_seconds_;    // measured in this recording's first runs; < 0: not measured
  std::vector<double> node_backward_seconds_;
  Timeline timeline_;                   // instead of these two where work is not done when a call returns

  plan::GradientMap own_gradients_;
  const plan::GradientMap *gradients_ = nullptr;
  std::vector<const void *> root_grads_;  // parallel to gradients_->roots
  plan::Planned rest_;                    // the program of a backward that has no plan, or has left it
  std::vector<uint8_t> grad_asked_;       // per input of the node whose backward runs
  std::vector<uint8_t> grad_double_;      // that input's value stands twice among the inputs

  std::priority_queue<std::pair<size_t, uint32_t>> droppable_;  // (bytes, ~node): largest first, then earliest
  std::vector<uint32_t> thin_cursor_;     // per level: the next node whose outputs may go
  std::vector<uint32_t> protected_;       // values made for the segment that begins

  Counters counters_;
  size_t predicted_peak_ = 0, predicted_height_ = 0, minimum_budget_ = 0;
  double predicted_recompute_ = 0;
};

enum : uint8_t { kValueHeld = 1, kValueRead = 2, kValueReleased = 4 };

}  // namespace ckpt::tape
