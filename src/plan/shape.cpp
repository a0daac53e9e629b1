#include "plan/shape.h"

#include <bit>
#include <set>

namespace ckpt::plan {

Result<Shape> Shape::create(std::string name, std::vector<Item> slots, std::vector<Item> outputs,
                            std::vector<uint32_t> input_flags, size_t forward_scratch, size_t backward_scratch,
                            bool replayable, bool whole, bool saved_holds_input) {
  using R = Result<Shape>;
  Shape s;
  s.name_ = std::move(name);
  if (slots.size() + outputs.size() > Bits::kCapacity)
    return R::failed(fail(CKPT_ERROR_INVALID_ARGUMENT, "segment '%s': %zu slots and %zu outputs, at most %u together",
                          s.name_.c_str(), slots.size(), outputs.size(), Bits::kCapacity));
  s.slot_count_ = static_cast<uint32_t>(slots.size());
  s.items_ = std::move(slots);
  for (Item &o : outputs) s.items_.push_back(std::move(o));
  s.input_flags_ = std::move(input_flags);
  s.forward_scratch_ = forward_scratch;
  s.backward_scratch_ = backward_scratch;
  s.replayable_ = replayable;
  s.whole_ = whole;
  s.saved_holds_input_ = saved_holds_input;
  if (const Status bad = s.validate(); bad) return R::failed(bad);
  s.derive();
  if (const Status bad = s.check_order(); bad) return R::failed(bad);
  if (const Status bad = s.check_read_by_someone(); bad) return R::failed(bad);
  return s;
}

Result<Shape> Shape::marked(const Bits &keep, const Bits &again) const {
  std::vector<Item> slots(items_.begin(), items_.begin() + slot_count_), outputs(items_.begin() + slot_count_, items_.end());
  const auto mark = [&](const Bits &which, uint32_t flag) {
    which.each([&](uint32_t k) {
      group_of_[k].each([&](uint32_t m) {
        if (m < slot_count_) slots[m].flags |= flag;
        else if (flag == CKPT_SLOT_KEEP) outputs[m - slot_count_].flags |= CKPT_OUTPUT_KEEP;
      });
    });
  };
  mark(keep & this->slots(), CKPT_SLOT_KEEP);
  mark(again & this->slots(), CKPT_SLOT_RECOMPUTE);
  return create(name_, std::move(slots), std::move(outputs), input_flags_, forward_scratch_, backward_scratch_, replayable_, whole_, saved_holds_input_);
}

Status Shape::validate() const {
  constexpr uint32_t kSlotFlags = 63, kOutputFlags = 15, kInputFlags = 7;
  const char *seg = name_.c_str();
  std::set<std::string> names;
  for (uint32_t k = 0; k < item_count(); ++k) {
    const Item &it = items_[k];
    const bool slot = k < slot_count_;
    const char *kind = slot ? "slot" : "output";
    const uint32_t number = slot ? k : k - slot_count_;
    if (it.name.empty()) return fail(CKPT_ERROR_INVALID_ARGUMENT, "segment '%s': %s %u has an empty name", seg, kind, number);
    if (!names.insert(it.name).second)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "segment '%s': two slots or outputs are named '%s'", seg, it.name.c_str());
    if (it.flags & ~(slot ? kSlotFlags : kOutputFlags))
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "segment '%s': %s '%s' has unknown flags 0x%x", seg, kind, it.name.c_str(), it.flags);
    if (!(it.cost_seconds >= 0) || it.cost_seconds > 1e18)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "segment '%s': %s '%s' has cost_seconds %g, expected 0 or more", seg, kind, it.name.c_str(), it.cost_seconds);
    Status bad = CKPT_OK;
    it.reads.each([&](uint32_t r) {
      const uint32_t limit = slot ? k : slot_count_;
      if (r >= limit && !bad)
        bad = fail(CKPT_ERROR_INVALID_ARGUMENT, "segment '%s': %s '%s' reads slot %u, expected an earlier slot (below %u)", seg, kind, it.name.c_str(), r, limit);
    });
    if (bad) return bad;
    if (slot && (it.flags & CKPT_SLOT_KEEP) && (it.flags & CKPT_SLOT_RECOMPUTE))
      return fail(CKPT_ERROR_CONFLICT, "segment '%s': slot '%s' is marked KEEP and RECOMPUTE", seg, it.name.c_str());
    if (slot && (it.flags & CKPT_SLOT_RECOMPUTE) && !replayable_)
      return fail(CKPT_ERROR_CONFLICT, "segment '%s': slot '%s' is marked RECOMPUTE, but the segment has no forward to run again", seg, it.name.c_str());
    if (slot && (it.flags & CKPT_SLOT_ALONE) && it.group == 0)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "segment '%s': slot '%s' is marked ALONE but has no group", seg, it.name.c_str());
    if (!slot && it.in_place_input > input_count())
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "segment '%s': output '%s' has in_place_input %u, expected 0 to %u (input number + 1)", seg, it.name.c_str(), it.in_place_input, input_count());
    if (!slot && it.caller_memory && it.in_place_input != 0)
      return fail(CKPT_ERROR_CONFLICT, "segment '%s': output '%s' has memory of the caller's and in_place_input", seg, it.name.c_str());
  }
  if (saved_holds_input_ && (slot_count_ == 0 || input_count() == 0))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "segment '%s': what it saves holds its input, but it has %u slots and %u inputs, expected at least 1 of each", seg, slot_count_, input_count());
  for (uint32_t k = 0; k < input_count(); ++k)
    if (input_flags_[k] & ~kInputFlags)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "segment '%s': input %u has unknown flags 0x%x", seg, k, input_flags_[k]);
  for (uint32_t a = 0; a < item_count(); ++a)
    for (uint32_t b = 0; b < a; ++b) {
      if (items_[a].group == 0 || items_[a].group != items_[b].group) continue;
      // CKPT_SLOT_KEEP and CKPT_OUTPUT_KEEP have the same value.
      if (replayable_ && (items_[a].flags & CKPT_SLOT_KEEP) != (items_[b].flags & CKPT_SLOT_KEEP))
        return fail(CKPT_ERROR_CONFLICT, "segment '%s': group %u has '%s' marked KEEP and '%s' not, but one kernel makes both", seg, items_[a].group,
                    items_[(items_[a].flags & CKPT_SLOT_KEEP) ? a : b].name.c_str(), items_[(items_[a].flags & CKPT_SLOT_KEEP) ? b : a].name.c_str());
    }
  return CKPT_OK;
}

void Shape::derive() {
  simple_ = true;
  group_of_.resize(item_count());
  for (uint32_t k = 0; k < item_count(); ++k) {
    const Item &it = items_[k];
    group_of_[k] = Bits::one(k);
    if (it.group != 0) {
      simple_ = false;
      for (uint32_t j = 0; j < item_count(); ++j)
        if (items_[j].group == it.group) group_of_[k].set(j);
    }
    const bool slot = k < slot_count_;
    if (slot && !(it.flags & CKPT_SLOT_TRANSIENT)) needed_.set(k);
    if (slot && (it.flags & CKPT_SLOT_RECOMPUTE)) again_.set(k);
    if (slot && (it.flags & CKPT_SLOT_CONSUMED)) consumed_.set(k);
    if (!slot && (it.flags & CKPT_OUTPUT_BACKWARD_READS)) backward_outputs_.set(k);
    if (!slot && it.caller_memory) caller_.set(k);
    if ((it.flags & CKPT_SLOT_KEEP) || (!replayable_ && !(slot && (it.flags & CKPT_SLOT_TRANSIENT)))) keep_.set(k);
  }
  if (simple_ && item_count() <= 64)
    for (const Item &it : items_) reads_.push_back(it.reads.word(0));
  Hasher h;
  h.add(name_).add(slot_count_).add(item_count()).add(input_count()).add(replayable_).add(whole_);
  for (const Item &it : items_) {
    h.add(it.name).add(it.group).add(it.flags).add(it.in_place_input).add(it.caller_memory);
    for (uint32_t w = 0; w < Bits::kWords; ++w) h.add(it.reads.word(w));
  }
  for (uint32_t f : input_flags_) h.add(f);
  if (saved_holds_input_) h.add("saved_holds_input");
  structure_hash_ = h.value();
  h.add(forward_scratch_).add(backward_scratch_);
  for (const Item &it : items_) h.add(it.bytes).add(it.grad_bytes);
  hash_ = h.value();
}

// One kernel makes a group, so what its members read must be there before all of them. Kernels are taken one after the other
// as soon as what they read is made; a group that never comes to it reads, in the end, itself.
Status Shape::check_order() const {
  if (simple_) return CKPT_OK;
  Bits made;
  for (bool more = true; more;) {
    more = false;
    (all() - made).each([&](uint32_t k) {
      if (made.has(k)) return;
      Bits reads;
      group_of_[k].each([&](uint32_t m) { reads |= items_[m].reads; });
      if (!(made | group_of_[k]).contains(reads)) return;
      made |= group_of_[k];
      more = true;
    });
  }
  Status bad = CKPT_OK;
  (all() - made).each([&](uint32_t k) {
    (items_[k].reads - made - group_of_[k]).each([&](uint32_t m) {
      if (bad || items_[k].group == 0 || !closure(Bits::one(m), Bits{}).todo.has(k)) return;  // others only wait for such a one
      bad = fail(CKPT_ERROR_INVALID_ARGUMENT, "segment '%s': group %u: '%s' reads '%s', which is computed from the group itself; one kernel cannot make it", name_.c_str(), items_[k].group,
                 items_[k].name.c_str(), items_[m].name.c_str());
    });
  });
  return bad;
}

Status Shape::check_read_by_someone() const {
  const Bits made = closure(needed_ | outputs(), Bits{}).todo;
  Status bad = CKPT_OK;
  (slots() - made).each([&](uint32_t k) {
    if (!bad) bad = fail(CKPT_ERROR_INVALID_ARGUMENT, "segment '%s': slot '%s' is TRANSIENT and neither an output nor a needed slot reads it", name_.c_str(), items_[k].name.c_str());
  });
  return bad;
}

// Without groups, in one word: reads name earlier slots, so each item is met once on the way down.
Bits Shape::simple_closure(uint64_t open, uint64_t live) const {
  uint64_t todo = 0;
  while (open != 0) {
    const auto k = 63 - static_cast<uint32_t>(std::countl_zero(open));
    todo |= uint64_t{1} << k;
    open = (open | (reads_[k] & ~live)) & ((uint64_t{1} << k) - 1);
  }
  Bits b;
  b.set_word(0, todo);
  return b;
}

Closure Shape::closure(const Bits &want, const Bits &live) const {
  Closure c;
  if (!reads_.empty()) {
    c.todo = simple_closure(want.word(0) & ~live.word(0), live.word(0));
    return c;
  }
  Bits open = want - live;
  // reads name earlier slots, so one descending pass would do but for groups, whose members may stand anywhere.
  while (!open.empty()) {
    Bits found;
    open.each_down([&](uint32_t k) {
      if (simple_ || items_[k].group == 0) {
        c.todo.set(k);
        found |= items_[k].reads;
        return;
      }
      const bool alone = k < slot_count_ && (items_[k].flags & CKPT_SLOT_ALONE) && live.contains(items_[k].reads);
      const bool group_runs = (c.todo & group_of_[k]) != (c.alone & group_of_[k]);
      if (alone && !group_runs) {
        c.todo.set(k);
        c.alone.set(k);
        return;
      }
      c.todo |= group_of_[k];
      c.alone -= group_of_[k];
      group_of_[k].each([&](uint32_t m) { found |= items_[m].reads - group_of_[k]; });
    });
    open = found - live - c.todo;
  }
  return c;
}

}  // namespace ckpt::plan
