#include <algorithm>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "json/chain_file.h"
#include "json/cursor.h"
#include "plan/chain.h"

namespace ckpt::json {
namespace {

using plan::ChainSegment;

constexpr uint64_t kMaxCount = uint64_t{1} << 31;
constexpr uint32_t kMaxItems = Bits::kCapacity;

// What a ChainSegment points at.
struct Texts {
  std::string name;
  std::deque<std::string> names;               // of slots, then of outputs
  std::deque<std::vector<uint32_t>> reads;
  std::vector<uint32_t> inputs, input_flags;
  std::vector<double> output_seconds;          // per output
  std::vector<uint8_t> read_at_end;            // per output
};

// An array of no elements still has an address: that is how C tells "none" from "not given".
constexpr uint32_t kNothing[1] = {0};
char g_caller_memory;  // its address stands for memory of the caller's

class ChainReader {
 public:
  ChainReader(const Cursor &root, size_t alignment) : root_(root), alignment_(alignment) {}

  Status read(ReadChain *out);

 private:
  Status read_rule();
  Status read_inputs();
  Status read_input(const Cursor &at, bool listed);
  Status read_output();
  Status read_segment(const Cursor &at, uint32_t number);
  Status read_slots(const Cursor &at, Texts *texts, ChainSegment *to);
  Status read_saved(const Cursor &at, Texts *texts, ChainSegment *to);
  Status read_slot(const Cursor &at, Texts *texts, ckpt_slot *to);
  Status read_reads(const Cursor &at, uint32_t limit, Texts *texts, const uint32_t **reads, uint32_t *count);
  Status read_single_output(const Cursor &at, bool last, Texts *texts, ChainSegment *to);
  Status read_outputs(const Cursor &at, Texts *texts, ChainSegment *to);
  Status read_listed_output(const Cursor &at, uint32_t input_count, Texts *texts, ckpt_output *to);
  Status read_segment_inputs(const Cursor &at, Texts *texts, ChainSegment *to);
  Status read_boundary(const Cursor &at, uint32_t *out);
  Status read_backward_reads(const Cursor &at, Texts *texts, ChainSegment *to);
  Status check_seconds(const Cursor &at, const ChainSegment &s, Texts *texts);
  Status new_name(const Cursor &at, const std::string &name, uint32_t value);
  void name_values(const Texts &texts, const ChainSegment &s);
  Status read_roots(const Cursor &at, const plan::Graph &graph, std::vector<plan::Root> *out);
  void patch(plan::Graph *graph) const;

  const Cursor &root_;
  size_t alignment_, guard_ = 0;
  bool names_repeat_ = false;
  std::vector<ckpt_chain_input> inputs_;
  std::vector<uint32_t> before_segment_;
  uint32_t output_memory_ = CKPT_MEMORY_ARENA, output_grad_ = CKPT_GRAD_CALLER;
  size_t output_grad_bytes_ = 0;
  std::vector<ChainSegment> segments_;
  std::deque<Texts> texts_;
  std::unordered_map<std::string, uint32_t> boundaries_;  // names; kNone: two of them
  std::unordered_set<std::string> segment_names_;
  uint32_t value_count_ = 0;
  size_t input_at_ = 0;  // inputs counted in value_count_
};

Status ChainReader::read_rule() {
  CKPT_TRY(root_.object({"input", "inputs", "output", "segments", "alignment_bytes", "guard_bytes", "names_repeat", "roots"}));
  if (const Cursor at = root_.at("alignment_bytes"); at.there()) {
    size_t bytes = 0;
    if (at.bytes(&bytes) || !is_power_of_two(bytes)) return at.wrong("a power of two, 1 to 2^60");
    if (alignment_ == 0) alignment_ = bytes;
  }
  if (alignment_ == 0) alignment_ = 256;
  if (const Cursor at = root_.at("guard_bytes"); at.there())
    if (at.bytes(&guard_) || guard_ > (size_t{1} << 30) || guard_ % alignment_ != 0) return at.wrong("0 or a multiple of the alignment, which is " + std::to_string(alignment_) + ", up to 2^30");
  if (const Cursor at = root_.at("names_repeat"); at.there()) CKPT_TRY(at.flag(&names_repeat_));
  return CKPT_OK;
}

Status ChainReader::read_input(const Cursor &at, bool listed) {
  if (listed) CKPT_TRY(at.object({"name", "bytes", "grad_bytes", "memory", "grad", "before_segment"}));
  else CKPT_TRY(at.object({"bytes", "grad_bytes", "memory", "grad"}));
  ckpt_chain_input in{};
  CKPT_TRY(at.at("bytes").bytes(&in.bytes));
  if (const Cursor c = at.at("grad_bytes"); c.there()) CKPT_TRY(c.bytes(&in.grad_bytes));
  if (const Cursor c = at.at("memory"); c.there()) CKPT_TRY(c.choice({"arena", "caller"}, &in.memory));
  if (const Cursor c = at.at("grad"); c.there()) CKPT_TRY(c.choice({"none", "arena", "caller"}, &in.grad));
  uint64_t before = 0;
  if (listed) {
    if (const Cursor c = at.at("before_segment"); c.there()) {
      const uint32_t least = before_segment_.empty() ? 0 : before_segment_.back();
      CKPT_TRY(c.number(least, root_.at("segments").size(), &before));
    } else if (!before_segment_.empty() && before_segment_.back() != 0) {
      return c.wrong("at least " + std::to_string(before_segment_.back()) + ", as the input before it has");
    }
    if (const Cursor c = at.at("name"); c.there()) {
      std::string name;
      CKPT_TRY(c.text("a name", &name));
      if (before != 0) return c.wrong("no name for an input that comes after a segment");
      CKPT_TRY(new_name(c, name, static_cast<uint32_t>(inputs_.size())));
    }
  } else {
    boundaries_.emplace("input", 0);
  }
  inputs_.push_back(in);
  before_segment_.push_back(static_cast<uint32_t>(before));
  return CKPT_OK;
}

Status ChainReader::read_inputs() {
  const Cursor one = root_.at("input"), many = root_.at("inputs");
  if (one.there() && many.there()) return many.wrong("either input or inputs, not both");
  if (!many.there()) return one.there() ? read_input(one, false) : one.wrong("an object with bytes (or a list `inputs` of several)");
  CKPT_TRY(many.list(1, "a list of at least one input"));
  if (many.size() > kMaxCount) return many.wrong("at most 2^31 inputs");
  for (size_t k = 0; k < many.size(); ++k) CKPT_TRY(read_input(many.at(k), true));
  return CKPT_OK;
}

Status ChainReader::read_output() {
  const Cursor at = root_.at("output");
  if (!at.there()) return CKPT_OK;
  CKPT_TRY(at.object({"memory", "grad", "grad_bytes"}));
  if (const Cursor c = at.at("memory"); c.there()) CKPT_TRY(c.choice({"arena", "caller"}, &output_memory_));
  if (const Cursor c = at.at("grad"); c.there()) {
    uint32_t grad = 0;
    CKPT_TRY(c.choice({"arena", "caller"}, &grad));
    output_grad_ = grad == 0 ? CKPT_GRAD_ARENA : CKPT_GRAD_CALLER;
  }
  if (const Cursor c = at.at("grad_bytes"); c.there()) CKPT_TRY(c.bytes(&output_grad_bytes_));
  return CKPT_OK;
}

Status ChainReader::read_reads(const Cursor &at, uint32_t limit, Texts *texts, const uint32_t **reads, uint32_t *count) {
  *reads = nullptr;
  *count = 0;
  if (!at.there()) return CKPT_OK;
  CKPT_TRY(at.list(0, "a list of names of earlier slots of the same segment"));
  texts->reads.emplace_back();
  std::vector<uint32_t> &to = texts->reads.back();
  for (size_t k = 0; k < at.size(); ++k) {
    const Cursor name = at.at(k);
    uint32_t found = plan::kNone;
    for (uint32_t s = 0; s < limit && found == plan::kNone && name.is(Value::Kind::string); ++s)
      if (texts->names[s] == name.value().text) found = s;
    if (found == plan::kNone) return name.wrong("the name of an earlier slot of the same segment");
    if (std::find(to.begin(), to.end(), found) != to.end()) return name.wrong("each slot once");
    to.push_back(found);
  }
  *reads = to.empty() ? kNothing : to.data();
  *count = static_cast<uint32_t>(to.size());
  return CKPT_OK;
}

Status ChainReader::read_slot(const Cursor &at, Texts *texts, ckpt_slot *to) {
  CKPT_TRY(at.object({"name", "bytes", "cost_seconds", "reads", "flags", "group", "alone"}));
  std::string name;
  const Cursor named = at.at("name");
  CKPT_TRY(named.text("a name", &name));
  for (const std::string &other : texts->names)
    if (other == name) return named.wrong("a name that no other slot of the segment has");
  CKPT_TRY(at.at("bytes").bytes(&to->bytes));
  CKPT_TRY(at.at("cost_seconds").seconds(&to->cost_seconds));
  const auto number = static_cast<uint32_t>(texts->names.size());
  CKPT_TRY(read_reads(at.at("reads"), number, texts, &to->reads, &to->read_count));
  if (const Cursor c = at.at("flags"); c.there()) {
    CKPT_TRY(c.flags({"transient", "keep", "recompute", "cost_given", "consumed"}, &to->flags));
    if ((to->flags & CKPT_SLOT_KEEP) && (to->flags & CKPT_SLOT_RECOMPUTE)) return refuse(CKPT_ERROR_INVALID_ARGUMENT, std::string(c.source()) + ": " + c.path() + " has keep and recompute, expected at most one of them");
  }
  if (const Cursor c = at.at("group"); c.there()) {
    uint64_t group = 0;
    CKPT_TRY(c.number(0, UINT32_MAX, &group));
    to->group = static_cast<uint32_t>(group);
  }
  if (const Cursor c = at.at("alone"); c.there()) {
    bool alone = false;
    CKPT_TRY(c.flag(&alone));
    if (alone && to->group == 0) return c.wrong("false for a slot without a group");
    if (alone) to->flags |= CKPT_SLOT_ALONE;
  }
  texts->names.push_back(std::move(name));
  to->name = texts->names.back().c_str();
  return CKPT_OK;
}

// A segment that is told by what it saves: one slot, and it runs as a whole.
Status ChainReader::read_saved(const Cursor &at, Texts *texts, ChainSegment *to) {
  ckpt_slot slot{};
  CKPT_TRY(at.bytes(&slot.bytes));
  texts->names.emplace_back("saved");
  slot.name = texts->names.back().c_str();
  slot.reads = kNothing;
  to->slots.push_back(slot);
  to->desc.flags |= CKPT_CHAIN_SEGMENT_WHOLE;
  return CKPT_OK;
}

Status ChainReader::read_slots(const Cursor &at, Texts *texts, ChainSegment *to) {
  const Cursor slots = at.at("slots"), saved = at.at("saved_bytes"), whole = at.at("whole");
  if (saved.there()) {
    if (slots.there()) return saved.wrong("either slots or saved_bytes, not both");
    if (whole.there()) return whole.wrong("no such field beside saved_bytes, which implies it");
    return read_saved(saved, texts, to);
  }
  if (!slots.there()) return slots.wrong("a list of slots (or saved_bytes)");
  CKPT_TRY(slots.list(0, "a list of slots"));
  if (slots.size() > kMaxItems) return refuse(CKPT_ERROR_INVALID_ARGUMENT, std::string(at.source()) + ": " + slots.path() + " has " + std::to_string(slots.size()) + " slots, expected at most 256");
  for (size_t k = 0; k < slots.size(); ++k) {
    ckpt_slot slot{};
    CKPT_TRY(read_slot(slots.at(k), texts, &slot));
    to->slots.push_back(slot);
  }
  bool runs_whole = false;
  if (whole.there()) CKPT_TRY(whole.flag(&runs_whole));
  if (runs_whole) to->desc.flags |= CKPT_CHAIN_SEGMENT_WHOLE;
  return CKPT_OK;
}

Status ChainReader::read_single_output(const Cursor &at, bool last, Texts *texts, ChainSegment *to) {
  ckpt_output output{};
  CKPT_TRY(at.at("output_bytes").bytes(&output.bytes));
  const Cursor grad_bytes = at.at("grad_bytes");
  if (grad_bytes.there()) CKPT_TRY(grad_bytes.bytes(&output.grad_bytes));
  CKPT_TRY(read_reads(at.at("output_reads"), static_cast<uint32_t>(to->slots.size()), texts, &output.reads, &output.read_count));
  if (last) {
    if (output_memory_ == CKPT_MEMORY_CALLER) output.memory = &g_caller_memory;
    if (output_grad_bytes_ != 0 && grad_bytes.there()) return grad_bytes.wrong("no such field in the last segment beside output.grad_bytes");
    if (output_grad_bytes_ != 0) output.grad_bytes = output_grad_bytes_;
  }
  texts->names.push_back(default_output_name(texts->names));
  output.name = texts->names.back().c_str();
  texts->output_seconds.push_back(-1);
  texts->read_at_end.push_back(0);
  to->outputs.push_back(output);
  return CKPT_OK;
}

Status ChainReader::read_listed_output(const Cursor &at, uint32_t input_count, Texts *texts, ckpt_output *to) {
  CKPT_TRY(at.object({"name", "bytes", "grad_bytes", "cost_seconds", "reads", "flags", "group", "memory", "in_place_input"}));
  std::string name;
  const Cursor named = at.at("name");
  CKPT_TRY(named.text("a name", &name));
  for (const std::string &other : texts->names)
    if (other == name) return named.wrong("a name that no other slot or output of the segment has");
  CKPT_TRY(at.at("bytes").bytes(&to->bytes));
  if (const Cursor c = at.at("grad_bytes"); c.there()) CKPT_TRY(c.bytes(&to->grad_bytes));
  uint32_t flags = 0;
  enum { kMeasured = 8, kReadAtEnd = 16 };
  if (const Cursor c = at.at("flags"); c.there()) CKPT_TRY(c.flags({"no_grad", "keep", "backward_reads", "measured", "read_at_end"}, &flags));
  double seconds = -1;
  if (const Cursor c = at.at("cost_seconds"); c.there()) CKPT_TRY(c.seconds(&seconds));
  to->flags = flags & 7u;
  if (seconds >= 0 && !(flags & kMeasured)) to->flags |= CKPT_OUTPUT_COST_GIVEN, to->cost_seconds = seconds;
  if (const Cursor c = at.at("group"); c.there()) {
    uint64_t group = 0;
    CKPT_TRY(c.number(0, UINT32_MAX, &group));
    to->group = static_cast<uint32_t>(group);
  }
  uint32_t memory = CKPT_MEMORY_ARENA;
  if (const Cursor c = at.at("memory"); c.there()) CKPT_TRY(c.choice({"arena", "caller"}, &memory));
  if (memory == CKPT_MEMORY_CALLER) to->memory = &g_caller_memory;
  if (const Cursor c = at.at("in_place_input"); c.there()) {
    uint64_t input = 0;
    if (input_count == 0 || memory == CKPT_MEMORY_CALLER) return c.wrong("no such field where there is no input, or in the caller's memory");
    CKPT_TRY(c.number(0, input_count - 1, &input));
    to->in_place_input = static_cast<uint32_t>(input) + 1;
  }
  texts->names.push_back(std::move(name));
  to->name = texts->names.back().c_str();
  texts->output_seconds.push_back(flags & kMeasured ? seconds : -1);
  texts->read_at_end.push_back((flags & kReadAtEnd) != 0);
  return CKPT_OK;
}

Status ChainReader::read_outputs(const Cursor &at, Texts *texts, ChainSegment *to) {
  const Cursor many = at.at("outputs");
  for (const char *field : {"output_bytes", "output_reads", "grad_bytes"})
    if (const Cursor c = at.at(field); c.there()) return c.wrong("no such field beside outputs");
  CKPT_TRY(many.list(1, "a list of at least one output"));
  if (many.size() + to->slots.size() > kMaxItems) return many.wrong("at most 256 slots and outputs together");
  const auto slot_count = static_cast<uint32_t>(to->slots.size());
  for (size_t k = 0; k < many.size(); ++k) {
    ckpt_output output{};
    const Cursor one = many.at(k);
    CKPT_TRY(read_listed_output(one, static_cast<uint32_t>(texts->inputs.size()), texts, &output));
    CKPT_TRY(read_reads(one.at("reads"), slot_count, texts, &output.reads, &output.read_count));
    to->outputs.push_back(output);
  }
  return CKPT_OK;
}

Status ChainReader::read_boundary(const Cursor &at, uint32_t *out) {
  const std::string expected = "a boundary that is made before (a number below " + std::to_string(value_count_) + ", or its name)";
  if (at.is(Value::Kind::string)) {
    const auto found = boundaries_.find(at.value().text);
    if (found == boundaries_.end()) return at.wrong(expected);
    if (found->second == plan::kNone) return at.wrong("a name that one boundary has alone");
    *out = found->second;
    return CKPT_OK;
  }
  if (!at.is(Value::Kind::integer) || at.value().integer >= value_count_) return at.wrong(expected);
  *out = static_cast<uint32_t>(at.value().integer);
  return CKPT_OK;
}

Status ChainReader::read_segment_inputs(const Cursor &at, Texts *texts, ChainSegment *to) {
  const Cursor inputs = at.at("inputs");
  if (!inputs.there()) {
    // The previous segment's first output; of the first segment: the first input, which it may not come after.
    if (texts_.size() == 1 && before_segment_[0] != 0) return inputs.wrong("a list of boundaries, where the first input comes after this segment");
    uint32_t v = 0;
    if (texts_.size() > 1) {
      const Texts &previous = texts_[texts_.size() - 2];
      v = value_count_ - static_cast<uint32_t>(previous.output_seconds.size());
      for (size_t k = 0; k < input_at_; ++k)  // inputs in between
        if (before_segment_[k] == texts_.size() - 1) --v;
    }
    texts->inputs.push_back(v);
    texts->input_flags.push_back(0);
  } else {
    CKPT_TRY(inputs.list(0, "a list of boundaries"));
    if (inputs.size() > 65536) return inputs.wrong("at most 65536 boundaries");
    for (size_t k = 0; k < inputs.size(); ++k) {
      const Cursor one = inputs.at(k);
      uint32_t boundary = 0, flags = 0;
      if (one.is(Value::Kind::object)) {
        CKPT_TRY(one.object({"boundary", "flags"}));
        CKPT_TRY(read_boundary(one.at("boundary"), &boundary));
        if (const Cursor c = one.at("flags"); c.there()) CKPT_TRY(c.flags({"backward_ignores", "no_grad", "grad_over_output_0"}, &flags));
      } else {
        CKPT_TRY(read_boundary(one, &boundary));
      }
      texts->inputs.push_back(boundary);
      texts->input_flags.push_back(flags);
    }
  }
  to->desc.inputs = texts->inputs.empty() ? kNothing : texts->inputs.data();
  to->desc.input_count = static_cast<uint32_t>(texts->inputs.size());
  return CKPT_OK;
}

Status ChainReader::read_backward_reads(const Cursor &at, Texts *texts, ChainSegment *to) {
  enum { kInput = 1, kOutput = 2 };
  uint32_t reads = kInput;
  if (const Cursor c = at.at("backward_reads"); c.there()) {
    CKPT_TRY(c.flags({"input", "output"}, &reads));
    if ((reads & kOutput) && at.at("outputs").there()) return c.wrong("only input beside outputs, whose flag backward_reads says the rest");
  }
  if (!(reads & kInput))
    for (uint32_t &f : texts->input_flags) f |= CKPT_INPUT_BACKWARD_IGNORES;
  if (reads & kOutput) to->outputs[0].flags |= CKPT_OUTPUT_BACKWARD_READS;
  to->desc.input_flags = texts->inputs.empty() ? nullptr : texts->input_flags.data();
  return CKPT_OK;
}

// Costs within forward_seconds; what is left belongs to the first output whose cost is not said.
Status ChainReader::check_seconds(const Cursor &at, const ChainSegment &s, Texts *texts) {
  constexpr double kTolerance = 1e-9;
  double given = 0;
  bool measured = false;
  for (const ckpt_slot &slot : s.slots)
    if (!(slot.flags & CKPT_SLOT_ALONE)) given += slot.cost_seconds;
  for (size_t k = 0; k < s.outputs.size(); ++k) {
    if (texts->output_seconds[k] >= 0) measured = true, given += texts->output_seconds[k];
    else given += s.outputs[k].cost_seconds;
  }
  const double all = s.desc.forward_seconds;
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, "at least the %.17g that cost_seconds of its slots and outputs are together", given);
  if (given > all * (1 + kTolerance)) return at.at("forward_seconds").wrong(numbers);
  double left = all > given ? all - given : 0;
  bool open = false;
  for (size_t k = 0; k < s.outputs.size(); ++k) open |= texts->output_seconds[k] < 0 && !(s.outputs[k].flags & CKPT_OUTPUT_COST_GIVEN);
  std::snprintf(numbers, sizeof numbers, "the %.17g that cost_seconds of its slots and outputs are together", given);
  if (!open && left > all * kTolerance) return at.at("forward_seconds").wrong(numbers);
  if (!measured) {
    texts->output_seconds.assign(s.outputs.size(), -1);
    return CKPT_OK;
  }
  for (size_t k = 0; k < s.outputs.size(); ++k) {
    if (texts->output_seconds[k] >= 0) continue;
    const bool known = s.outputs[k].flags & CKPT_OUTPUT_COST_GIVEN;
    texts->output_seconds[k] = known ? s.outputs[k].cost_seconds : left;
    if (!known) left = 0;
  }
  return CKPT_OK;
}

Status ChainReader::new_name(const Cursor &at, const std::string &name, uint32_t value) {
  const auto [found, fresh] = boundaries_.emplace(name, value);
  if (fresh) return CKPT_OK;
  if (!names_repeat_) return at.wrong("a name that no other boundary has");
  found->second = plan::kNone;
  return CKPT_OK;
}

// "block3" is the first output of segment block3, "block3/mask" the one of that name.
void ChainReader::name_values(const Texts &texts, const ChainSegment &s) {
  const auto add = [&](const std::string &name, uint32_t value) {
    if (const auto [found, fresh] = boundaries_.emplace(name, value); !fresh) found->second = plan::kNone;
  };
  add(texts.name, value_count_);
  for (uint32_t k = 0; k < s.outputs.size(); ++k) add(texts.name + "/" + s.outputs[k].name, value_count_ + k);
  value_count_ += static_cast<uint32_t>(s.outputs.size());
}

Status ChainReader::read_segment(const Cursor &at, uint32_t number) {
  CKPT_TRY(at.object({"name", "forward_seconds", "backward_seconds", "output_bytes", "grad_bytes", "slots", "saved_bytes", "output_reads", "outputs", "inputs", "forward_scratch_bytes",
                      "backward_scratch_bytes", "backward_reads", "saved_holds_input", "whole", "replayable"}));
  for (; input_at_ < inputs_.size() && before_segment_[input_at_] <= number; ++input_at_) ++value_count_;
  texts_.emplace_back();
  Texts &texts = texts_.back();
  segments_.emplace_back();
  ChainSegment &s = segments_.back();
  s.input_count = static_cast<uint32_t>(input_at_);
  const Cursor name = at.at("name");
  CKPT_TRY(name.text("a name", &texts.name));
  if (!segment_names_.insert(texts.name).second && !names_repeat_) return name.wrong("a name that no other segment has (or names_repeat: true)");
  s.desc.name = texts.name.c_str();
  CKPT_TRY(at.at("forward_seconds").seconds(&s.desc.forward_seconds));
  CKPT_TRY(at.at("backward_seconds").seconds(&s.desc.backward_seconds));
  if (const Cursor c = at.at("forward_scratch_bytes"); c.there()) CKPT_TRY(c.bytes(&s.desc.forward_scratch_bytes));
  if (const Cursor c = at.at("backward_scratch_bytes"); c.there()) CKPT_TRY(c.bytes(&s.desc.backward_scratch_bytes));
  CKPT_TRY(read_slots(at, &texts, &s));
  CKPT_TRY(read_segment_inputs(at, &texts, &s));
  const bool last = number + 1 == root_.at("segments").size();
  if (at.at("outputs").there()) {
    CKPT_TRY(read_outputs(at, &texts, &s));
    if (last && output_memory_ == CKPT_MEMORY_CALLER) return root_.at("output").at("memory").wrong("memory beside each of the last segment's outputs instead");
    if (last && output_grad_bytes_ != 0) return root_.at("output").at("grad_bytes").wrong("grad_bytes beside each of the last segment's outputs instead");
  } else {
    CKPT_TRY(read_single_output(at, last, &texts, &s));
  }
  CKPT_TRY(read_backward_reads(at, &texts, &s));
  if (const Cursor c = at.at("saved_holds_input"); c.there()) {
    bool holds = false;
    CKPT_TRY(c.flag(&holds));
    if (holds && (s.slots.empty() || texts.inputs.empty())) return c.wrong("false for a segment without slots or without inputs");
    if (holds) s.desc.flags |= CKPT_CHAIN_SEGMENT_SAVED_HOLDS_INPUT;
  }
  if (const Cursor c = at.at("replayable"); c.there()) CKPT_TRY(c.flag(&s.replayable));
  CKPT_TRY(check_seconds(at, s, &texts));
  s.desc.slot_count = static_cast<uint32_t>(s.slots.size());
  s.desc.output_count = static_cast<uint32_t>(s.outputs.size());
  name_values(texts, s);
  return CKPT_OK;
}

void ChainReader::patch(plan::Graph *graph) const {
  graph->rule.guard_bytes = guard_;
  for (uint32_t i = 0; i < graph->node_count(); ++i) {
    const plan::Node &n = graph->nodes[i];
    for (uint32_t k = 0; k < n.shape->output_count(); ++k) {
      if (texts_[i].output_seconds[k] >= 0) graph->item_seconds[n.first_item + n.shape->slot_count() + k] = texts_[i].output_seconds[k];
      if (texts_[i].read_at_end[k]) graph->values[n.first_value + k].read_at_end = true;
    }
  }
}

Status ChainReader::read_roots(const Cursor &at, const plan::Graph &graph, std::vector<plan::Root> *out) {
  if (!at.there()) {
    *out = plan::default_roots(graph);
    return CKPT_OK;
  }
  CKPT_TRY(at.list(0, "a list of roots"));
  std::unordered_set<uint32_t> seen;
  for (size_t k = 0; k < at.size(); ++k) {
    const Cursor one = at.at(k), boundary = one.at("boundary");
    CKPT_TRY(one.object({"boundary", "grad"}));
    plan::Root root{0, true};
    CKPT_TRY(read_boundary(boundary, &root.value));
    if (graph.values[root.value].producer == plan::kNone) return boundary.wrong("a boundary that a segment makes");
    if (!seen.insert(root.value).second) return boundary.wrong("each root once");
    if (const Cursor c = one.at("grad"); c.there()) CKPT_TRY(c.flag(&root.has_grad));
    out->push_back(root);
  }
  return CKPT_OK;
}

Status ChainReader::read(ReadChain *out) {
  CKPT_TRY(read_rule());
  const Cursor segments = root_.at("segments");
  CKPT_TRY(segments.list(1, "a list of at least one segment"));
  if (segments.size() > kMaxCount) return segments.wrong("at most 2^31 segments");
  CKPT_TRY(read_inputs());
  CKPT_TRY(read_output());
  segments_.reserve(segments.size());
  for (size_t k = 0; k < segments.size(); ++k) CKPT_TRY(read_segment(segments.at(k), static_cast<uint32_t>(k)));
  for (; input_at_ < inputs_.size(); ++input_at_) ++value_count_;
  ckpt_chain_desc desc{};
  desc.inputs = inputs_.data();
  desc.input_count = static_cast<uint32_t>(inputs_.size());
  desc.segment_count = static_cast<uint32_t>(segments_.size());
  desc.output_grad = output_grad_;
  desc.alignment_bytes = alignment_;
  Result<plan::Graph> graph = plan::make_chain(root_.source(), desc, segments_);
  if (!graph.ok()) {
    // What is left to refuse concerns a segment as a whole; its text names segment, slot, value and expectation.
    const std::string text = last_error(), source = std::string(root_.source()) + ": ";
    return refuse(graph.status(), text.compare(0, source.size(), source) == 0 ? text : source + text);
  }
  out->graph = std::move(*graph);
  patch(&out->graph);
  return read_roots(root_.at("roots"), out->graph, &out->roots);
}

}  // namespace

Status read_chain(std::string_view text, const char *source, size_t alignment, ReadChain *out) {
  *out = ReadChain{};
  Value root;
  CKPT_TRY(parse(text, source, &root));
  const Cursor at(source, root);
  return ChainReader(at, alignment).read(out);
}

}  // namespace ckpt::json
