// A tape: budget, strategy, what is known of recordings, and the recording in progress. Counted: by its handle, by detached
// recordings, by an open frame and by each call that is running, so that it may be destroyed at any moment.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/ref.h"
#include "plan/handles.h"
#include "tape/recording.h"

struct ckpt_tape final : ckpt::Counted<ckpt_tape>, ckpt::arena::Orphan {
  struct Learnt {  // of the latest step, for stats
    ckpt::tape::Counters counters;
    uint64_t segments = 0;
    size_t peak_measured = 0, height_measured = 0, peak_predicted = 0, height_predicted = 0;
    double predicted_recompute = 0;
    bool planned = false;
  };

  static ckpt::Result<ckpt::Ref<ckpt_tape>> create(const ckpt_tape_desc &desc, ckpt::Ref<ckpt::arena::Arena> arena);
  explicit ckpt_tape(ckpt::Ref<ckpt::arena::Arena> a);
  ~ckpt_tape();

  // The handle is given up: memory goes back now, or as soon as the arena is free and no frame is open.
  void close() noexcept;
  void finish_close() noexcept;
  void bury() noexcept override;

  ckpt::Ref<ckpt::arena::Arena> arena;
  size_t budget = 0;             // rounded down to the alignment; never above the arena's capacity
  uint64_t seed = 0;
  uint32_t checks = 0;
  bool replan = true;
  double (*clock)(void *user);   // seconds; what costs are measured by. A test may give its own
  void *clock_user = nullptr;
  ckpt::plan::PlanRequest request;
  uint32_t id = 0;
  uint32_t generation = 0;
  uint64_t step = 0;
  std::atomic<bool> closed{false};  // its handle is gone
  std::atomic<bool> frame_is_open{false};  // for close() on another thread
  std::atomic<bool> given_up{false};
  ckpt_frame frame;              // open between segment_begin and segment_end
  std::unique_ptr<ckpt::tape::Recording> current;
  bool begun = false;            // `current` was begun by ckpt_tape_begin
  uint32_t flying = 0;           // detached recordings that have not ended
  ckpt::tape::EventPool events;
  std::unique_ptr<ckpt::tape::Timed> timed;  // a step that has ended; the device may not have got past it yet
  uint64_t step_count = 0;                   // whose statistics are in `latest`
  uint64_t *step_word = nullptr;             // device memory: the step of a captured graph's draws
  std::vector<ckpt::tape::KnownPtr> prepared;  // by ckpt_tape_prepare: what may be captured
  bool replayable = false;                   // a whole step was captured
  uint32_t captured_in = 0;                  // the latest capture that has one: Device::capturing's number
  std::vector<std::unique_ptr<ckpt::tape::Recording>> pool;  // spent ones: their vectors keep their storage
  ckpt::tape::KnownCache cache;
  uint64_t plan_count = 0, plan_hit_count = 0;
  size_t minimum_budget = 0;
  uint32_t plan_strategy = 0, plan_k = 0;
  Learnt latest;
  ckpt_trace_fn trace = nullptr;
  void *trace_user = nullptr;

  bool frame_open() const { return frame.mode != ckpt_frame::Mode::closed; }

  // The recording in progress, begun if there is none.
  ckpt::Status recording(ckpt::tape::Recording **out);
  ckpt::Status begin(uint64_t key, uint32_t flags);
  void end_recording();           // into the pool
  std::unique_ptr<ckpt::tape::Recording> take_recording();
  void recycle(std::unique_ptr<ckpt::tape::Recording> recording) noexcept;
  static Learnt summary(const ckpt::tape::Recording &recording);
  void note(const ckpt::tape::Recording &recording);  // into `latest`

  // What lives in the arena now, without bounds: where a simulation starts. With a region only if asked for.
  ckpt::arena::Placer paper(bool region = false) const;
  // Into the cache, merged with what was known.
  ckpt::tape::KnownPtr learn(const ckpt::tape::Recording &recording);
  // What a step that has succeeded teaches.
  void teach(ckpt::tape::Recording *recording);
  // What a step costs whose plan has settled: the plan may have to be made again.
  void watch(const ckpt::tape::Recording &recording);
  void watch(const ckpt::tape::KnownPtr &known, const std::vector<double> &items, const std::vector<double> &backward);
  // A plan for `known`, made if it has none or if its costs have drifted: replaces it in the cache. The result may carry a refusal.
  ckpt::Result<ckpt::tape::KnownPtr> planned(ckpt::tape::KnownPtr known);
  // By key, with its plan; NOT_FOUND, or the refusal.
  ckpt::Result<ckpt::tape::KnownPtr> known_plan(const char *function, uint64_t key);
  ckpt::Status make_again(ckpt::tape::Known *known);
  ckpt::Status adopt(uint64_t key, const ckpt_plan &plan);
  ckpt::Status prepare(const char *function, uint64_t key);

  // capture.cpp: devices whose work goes on after a call has returned
  bool asynchronous() const { return arena->device().asynchronous(); }
  bool may_time() const { return asynchronous() && timed == nullptr; }
  ckpt::Status look_at_times();    // of the step in `timed`, if the device has got past it
  ckpt::Status stream_captured(uint32_t *out) const;  // 0, or the capture's number
  ckpt::Status begin_captured(uint64_t key, uint32_t flags, uint32_t capture);
  ckpt::Status prepare_capture(ckpt::tape::KnownPtr known);
  ckpt::Status replay(const char *function);
  ckpt_tape_stats stats() const;
};

struct ckpt_recording final : ckpt::arena::Orphan {
  ckpt::Ref<ckpt_tape> tape;
  std::unique_ptr<ckpt::tape::Recording> recording;

  void close() noexcept;
  void bury() noexcept override;
};
