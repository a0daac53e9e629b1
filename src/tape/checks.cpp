// The three checks. On the CPU a hash is there when asked for; elsewhere the device's hash is waited for, since checks are
// for finding faults, not for speed.
#include <algorithm>
#include <cstring>

#include "tape/tape.h"

namespace ckpt::tape {

using plan::Closure;
using plan::kNone;
using plan::Shape;

namespace {

// NaN in every float format; and what memory that is to be written holds before, other than an arena's poison.
constexpr uint8_t kPoison = 0xFF, kUnwritten = 0xFE;

}  // namespace

Status Recording::hash_memory(const void *data, size_t bytes, uint64_t *out) const {
  const arena::Arena &arena = *tape_->arena;
  *out = 0;
  if (data == nullptr || bytes == 0) return CKPT_OK;
  CKPT_TRY(arena.device().hash(arena.stream(), data, bytes, out));
  return arena.device().synchronize(arena.stream());
}

Status Recording::hash_item(uint32_t node, uint32_t item, uint64_t *out) const {
  return hash_memory(item_data(node, item), graph_->bytes_of(node, item), out);
}

Status Recording::hash_first_run(const ckpt_frame &frame) {
  Status bad = CKPT_OK;
  frame.todo.each([&](uint32_t k) {
    uint64_t hash = 0;
    if (!bad) bad = hash_item(frame.node, k, &hash);
    if (!bad) first_hashes_[graph_->nodes[frame.node].first_item + k] = hash;
  });
  return bad;
}

Status Recording::compare_recomputed(const ckpt_frame &frame) {
  Status bad = CKPT_OK;
  frame.todo.each([&](uint32_t k) {
    uint64_t hash = 0;
    if (!bad) bad = hash_item(frame.node, k, &hash);
    if (bad) return;
    // What the first run put off is made now for the first time.
    const auto [first, fresh] = first_hashes_.emplace(graph_->nodes[frame.node].first_item + k, hash);
    if (fresh || first->second == hash) return;
    bad = fail(CKPT_ERROR_CHECK, "segment '%s' (number %u): '%s' was recomputed with other bytes than in the first run (not deterministic, or an input changed)",
               frame.shape->name().c_str(), frame.node, frame.shape->item(k).name.c_str());
  });
  return bad;
}

// The caller's inputs of this node, and its watched memory, are as they were recorded.
Status Recording::check_inputs(uint32_t node, const char *when) {
  const Shape &s = *graph_->nodes[node].shape;
  const auto inputs = node < next_node_ || !placed_ ? graph_->inputs_of(node) : std::span<const uint32_t>(call_inputs_);
  for (uint32_t k = 0; k < s.input_count(); ++k) {
    const plan::Value &v = graph_->values[inputs[k]];
    if (v.producer != kNone) continue;
    uint64_t hash = 0;
    CKPT_TRY(hash_memory(inputs_[v.item].data, v.bytes, &hash));
    if (hash == inputs_[v.item].hash) continue;
    return fail(CKPT_ERROR_CHECK, "segment '%s' (number %u), %s: the memory of its input %u (input %u of the recording) has changed since it was recorded",
                s.name().c_str(), node, when, k, v.item);
  }
  const Call &call = calls_[node];
  for (uint32_t k = 0; k < call.watch_count; ++k) {
    const Watch &w = watches_[call.first_watch + k];
    uint64_t hash = 0;
    CKPT_TRY(hash_memory(w.memory.data, w.memory.bytes, &hash));
    if (hash == w.hash) continue;
    return fail(CKPT_ERROR_CHECK, "segment '%s' (number %u), %s: watched memory '%s' has changed since it was recorded", s.name().c_str(), node, when,
                w.memory.name != nullptr ? w.memory.name : "?");
  }
  return CKPT_OK;
}

// Each producer (an item, or a group) is replayed with only its declared reads intact: everything else is poisoned. If all
// of them make the bytes of the first run, so does every partial recomputation. Runs while all items of the first run are
// there; leaves them as they were.
Status Recording::check_reads(const ckpt_frame &first) {
  const uint32_t node = first.node;
  const Shape &s = *first.shape;
  if (!s.replayable() || !run_.in_place.empty()) return CKPT_OK;
  const arena::Arena &arena = *tape_->arena;
  const device::Device &device = arena.device();
  void *stream = arena.stream();
  std::vector<std::vector<char>> saved(s.item_count());
  Status bad = CKPT_OK;
  const auto copy_all = [&](bool save) {
    first.todo.each([&](uint32_t k) {
      const size_t bytes = graph_->bytes_of(node, k);
      if (bad || bytes == 0) return;
      saved[k].resize(bytes);
      bad = save ? device.copy(stream, saved[k].data(), item_data(node, k), bytes, device::Copy::device_to_host)
                 : device.copy(stream, item_data(node, k), saved[k].data(), bytes, device::Copy::host_to_device);
      if (!bad) bad = device.synchronize(stream);
    });
  };
  copy_all(true);
  Bits done;
  for (uint32_t k = 0; k < s.item_count() && !bad; ++k) {
    // A pass without backward does not make what only backward reads.
    if (done.has(k) || s.keep().has(k) || !first.todo.has(k)) continue;
    const bool alone = k < s.slot_count() && (s.item(k).flags & CKPT_SLOT_ALONE);
    Bits reads = s.item(k).reads;
    Bits todo = Bits::one(k);
    if (!alone && s.item(k).group != 0) {
      todo = Bits{};
      reads = Bits{};
      for (uint32_t m = 0; m < s.item_count(); ++m)
        if (s.item(m).group == s.item(k).group) {
          todo.set(m);
          reads |= s.item(m).reads;
        }
      reads -= todo;
      done |= todo;
    }
    (first.todo - reads).each([&](uint32_t m) {
      if (!bad) bad = device.fill(stream, item_data(node, m), todo.has(m) ? kUnwritten : kPoison, graph_->bytes_of(node, m));
    });
    if (bad) break;
    ckpt_frame frame;
    open_forward(&frame, node, ckpt_frame::Mode::replay, todo, run_.scratch);
    frame.reachable = first.todo;  // what is not declared is there, but poisoned: reading it shows in the bytes
    bad = verdict(&frame, with_state(node, &frame), "forward (reads check)");
    if (!bad) bad = check_forward_filled(&frame);
    if (!bad) bad = device.synchronize(stream);
    todo.each([&](uint32_t m) {
      if (bad || graph_->bytes_of(node, m) == 0) return;
      std::vector<char> now(saved[m].size());
      bad = device.copy(stream, now.data(), item_data(node, m), now.size(), device::Copy::device_to_host);
      if (!bad) bad = device.synchronize(stream);
      if (bad || std::memcmp(now.data(), saved[m].data(), now.size()) == 0) return;
      if (std::all_of(now.begin(), now.end(), [](char c) { return static_cast<uint8_t>(c) == kUnwritten; }))
        bad = fail(CKPT_ERROR_CHECK, "segment '%s' (number %u): '%s' was asked for and never written", s.name().c_str(), node, s.item(m).name.c_str());
      else
        bad = fail(CKPT_ERROR_CHECK, "segment '%s' (number %u): '%s' made again from its declared reads alone has other bytes: it reads something that `reads` does not name",
                   s.name().c_str(), node, s.item(m).name.c_str());
    });
    if (!bad) copy_all(false);
  }
  return bad;
}

}  // namespace ckpt::tape
