// Tapes on devices whose work goes on after a call has returned: costs that come later, and steps that are captured into a graph.
#include <algorithm>

#include "tape/learn.h"
#include "tape/tape.h"

using ckpt::fail;
using ckpt::Status;
using ckpt::tape::KnownPtr;
using ckpt::tape::Learner;
using ckpt::tape::Recording;
using ckpt::tape::Timed;

Status ckpt_tape::look_at_times() {
  if (timed == nullptr) return CKPT_OK;
  const ckpt::device::Device &device = arena->device();
  uint32_t done = 0;
  Status status = device.event_done(timed->timeline.points.back(), &done);
  if (!status && done == 0) return CKPT_OK;
  const std::unique_ptr<Timed> ended = std::move(timed);
  ckpt::tape::Seconds seconds;
  if (!status) status = ckpt::tape::read_timeline(device, ended->timeline, *ended->known->graph, &seconds);
  ended->timeline.clear(&events);
  CKPT_TRY(status);
  if (ended->number == step_count) {
    latest.counters.forward_seconds = seconds.forward;
    latest.counters.backward_seconds = seconds.all_backward;
    latest.counters.recompute_seconds = seconds.recompute;
  }
  if (ended->use == Timed::Use::statistics) return CKPT_OK;
  // What is known may have changed since; costs of other sizes say nothing about it.
  const KnownPtr known = cache.find_same(ended->known->key, *ended->known->graph);
  if (known == nullptr || known->graph->item_bytes != ended->known->graph->item_bytes) return CKPT_OK;
  if (ended->use == Timed::Use::sample) {
    Learner::complete(*known->graph, &seconds.items, &seconds.backward);
    watch(known, seconds.items, seconds.backward);
    return CKPT_OK;
  }
  cache.put(Learner::learn_costs(*known, std::move(seconds.items), std::move(seconds.backward), replan, request.strategy == CKPT_STRATEGY_AUTO), known.get());
  return CKPT_OK;
}

Status ckpt_tape::stream_captured(uint32_t *out) const { return arena->device().capturing(arena->stream(), out); }

// Refuses all that would have to be done but cannot be part of a graph.
Status ckpt_tape::begin_captured(uint64_t key, uint32_t flags, uint32_t capture) {
  const char *fn = "ckpt_tape_begin";
  if (flags != 0) return fail(CKPT_ERROR_CAPTURE, "%s: flags are 0x%x while the stream is captured, expected 0: what is captured is a whole step", fn, flags);
  if (checks != 0) return fail(CKPT_ERROR_CAPTURE, "%s: the tape has checks (0x%x), which wait for the device, and the stream is being captured", fn, checks);
  if (arena->guarded()) return fail(CKPT_ERROR_CAPTURE, "%s: the arena has guards (CKPT_ARENA_GUARD), whose check waits for the device, and the stream is being captured", fn);
  if (request.in_flight > 1) return fail(CKPT_ERROR_CAPTURE, "%s: a tape with %u recordings in flight is not captured", fn, request.in_flight);
  const auto found = std::find_if(prepared.begin(), prepared.end(), [&](const KnownPtr &p) { return p->key == key; });
  if (found == prepared.end())
    return fail(CKPT_ERROR_CAPTURE, "%s: the plan for key %llu is not prepared, and the stream is being captured: call ckpt_tape_prepare before the capture", fn,
                static_cast<unsigned long long>(key));
  // Both would draw by the same word, and a replay would move on by one of them.
  if (capture == captured_in)
    return fail(CKPT_ERROR_CAPTURE, "%s: this graph has a whole step of the tape already, expected one: a graph for each step, a tape for each, or one recording for both", fn);
  std::unique_ptr<Recording> r = take_recording();
  if (const Status status = r->begin(key, flags, step, ++generation, *found, capture); status) {
    recycle(std::move(r));
    return status;
  }
  current = std::move(r);
  begun = true;
  return CKPT_OK;
}

Status ckpt_tape::prepare_capture(KnownPtr known) {
  if (step_word == nullptr) {
    void *word = nullptr;
    CKPT_TRY(arena->device().reserve(sizeof *step_word, 256, ckpt::device::kReservePlain, &word));
    step_word = static_cast<uint64_t *>(word);
  }
  // Never undefined; and the kernel that writes it is loaded before a capture could meet it.
  CKPT_TRY(arena->device().write_word(arena->stream(), step_word, step));
  std::erase_if(prepared, [&](const KnownPtr &p) { return p->key == known->key; });
  if (prepared.size() >= ckpt::tape::KnownCache::kCapacity) prepared.erase(prepared.begin());
  prepared.push_back(std::move(known));
  return CKPT_OK;
}

Status ckpt_tape::replay(const char *function) {
  if (current != nullptr) return fail(CKPT_ERROR_STATE, "%s: a recording is in progress; run its backward or reset it first", function);
  if (!replayable) return fail(CKPT_ERROR_STATE, "%s: no whole step of this tape was captured", function);
  if (step + 1 >= uint64_t{1} << 36) return fail(CKPT_ERROR_OVERFLOW, "%s: step is %llu, expected below 2^36 - 1", function, static_cast<unsigned long long>(step));
  uint32_t captured = 0;
  CKPT_TRY(stream_captured(&captured));
  if (captured != 0) return fail(CKPT_ERROR_CAPTURE, "%s: the stream is being captured: the step's word is written before each launch", function);
  CKPT_TRY(arena->device().write_word(arena->stream(), step_word, step));
  ++step;
  return CKPT_OK;
}
