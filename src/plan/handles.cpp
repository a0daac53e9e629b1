#include "plan/handles.h"

namespace ckpt::plan {
namespace {

constexpr size_t kMaxBytes = arena::SizeRule::kMaxBytes;

// reads NULL: every slot below `limit`. `what`: "slot 'act'".
Status read_reads(const char *function, const char *segment, const char *what, const char *name, const uint32_t *reads, uint32_t count, uint32_t limit, Bits *to) {
  if (reads == nullptr && count != 0)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': %s '%s': reads is NULL and read_count is %u, expected an array", function, segment, what, name, count);
  if (reads == nullptr) *to = Bits::first(limit);
  for (uint32_t k = 0; k < count; ++k) {
    if (reads[k] >= limit)
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': %s '%s': reads[%u] is %u, expected an earlier slot (below %u)", function, segment, what, name, k, reads[k], limit);
    to->set(reads[k]);
  }
  return CKPT_OK;
}

Status read_name(const char *function, const char *segment, const char *what, uint32_t index, const char *name, std::string *to) {
  if (name == nullptr || name[0] == '\0')
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': name of %s %u is %s, expected a name", function, segment, what, index, name == nullptr ? "NULL" : "empty");
  *to = name;
  return CKPT_OK;
}

Status check_bytes(const char *function, const char *segment, const char *what, const char *name, const char *field, size_t bytes) {
  if (bytes <= kMaxBytes) return CKPT_OK;
  return fail(CKPT_ERROR_OVERFLOW, "%s: segment '%s': %s '%s': %s is %zu, expected at most %zu", function, segment, what, name, field, bytes, kMaxBytes);
}

}  // namespace

Status read_slot(const char *function, const char *segment, const ckpt_slot &from, uint32_t index, Item *to) {
  if (index >= Bits::kCapacity) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': slot %u, expected at most %u slots", function, segment, index, Bits::kCapacity);
  CKPT_TRY(read_name(function, segment, "slot", index, from.name, &to->name));
  CKPT_TRY(check_bytes(function, segment, "slot", from.name, "bytes", from.bytes));
  CKPT_TRY(read_reads(function, segment, "slot", from.name, from.reads, from.read_count, index, &to->reads));
  if (from.reserved != 0)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: segment '%s': slot '%s': reserved is %u, expected 0", function, segment, from.name, from.reserved);
  to->bytes = from.bytes;
  to->cost_seconds = from.cost_seconds;
  to->group = from.group;
  to->flags = from.flags;
  return CKPT_OK;
}

Status read_output(const char *function, const char *segment, const ckpt_output &from, uint32_t index, uint32_t slot_count, Item *to) {
  CKPT_TRY(read_name(function, segment, "output", index, from.name, &to->name));
  CKPT_TRY(check_bytes(function, segment, "output", from.name, "bytes", from.bytes));
  CKPT_TRY(check_bytes(function, segment, "output", from.name, "grad_bytes", from.grad_bytes));
  CKPT_TRY(read_reads(function, segment, "output", from.name, from.reads, from.read_count, slot_count, &to->reads));
  to->bytes = from.bytes;
  to->grad_bytes = from.grad_bytes;
  to->cost_seconds = from.cost_seconds;
  to->group = from.group;
  to->flags = from.flags;
  to->in_place_input = from.in_place_input;
  to->caller_memory = from.memory != nullptr;
  return CKPT_OK;
}

}  // namespace ckpt::plan
