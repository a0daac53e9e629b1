// The device's hash, and the offloader: scenario 14 (3 host slots, 40 segments, 10 steps, slowed copies), each edge's copy delayed once,
// each edge left out once and found out.
#include "abi/handle.h"
#include "device/cpu/cpu.h"
#include "device/offload.h"
#include "target.h"

namespace {

using ckpt::device::Copy;
using ckpt::device::Device;
using ckpt::device::Offloader;
using conformance::Memory;
using conformance::target;

ckpt::Ref<Device> device() { return ckpt::Ref<Device>::share(ckpt::abi::object(target().device)); }

TEST(Hash, EqualsTheCpusAtAnySizeAndAddress) {
  Memory memory(8 << 20);
  std::vector<uint8_t> data(3 << 20);
  for (size_t k = 0; k < data.size(); ++k) data[k] = static_cast<uint8_t>(k * 31 + (k >> 9));
  uint8_t *there = memory.put(data);
  for (const size_t offset : {size_t{0}, size_t{1}, size_t{4}, size_t{13}, size_t{64}})
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{63}, size_t{64}, size_t{65}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{100001}, size_t{2 << 20}}) {
      uint64_t hash = 1;
      OK(device()->hash(target().stream, there + offset, bytes, &hash));
      OK(device()->synchronize(target().stream));
      ASSERT_EQ(hash, ckpt::device::cpu::hash(data.data() + offset, bytes)) << offset << " " << bytes;
    }
  // One bit anywhere shows.
  uint64_t before = 0, after = 0;
  OK(device()->hash(target().stream, there, data.size(), &before));
  for (const size_t at : {size_t{0}, size_t{4095}, size_t{4096}, data.size() - 1}) {
    const uint8_t changed = data[at] ^ 0x80;
    OK(device()->copy(target().stream, there + at, &changed, 1, Copy::host_to_device));
    OK(device()->hash(target().stream, there, data.size(), &after));
    OK(device()->synchronize(target().stream));
    EXPECT_NE(before, after) << at;
    OK(device()->copy(target().stream, there + at, &data[at], 1, Copy::host_to_device));
    OK(device()->synchronize(target().stream));
  }
}

TEST(Events, AreReachedInOrderAndMeasure) {
  Memory memory(1 << 20);
  auto *data = memory.take<uint8_t>(1 << 16);
  void *from = nullptr, *to = nullptr, *other = nullptr;
  OK(device()->event_create(&from));
  OK(device()->event_create(&to));
  OK(device()->stream_create(&other));
  OK(device()->event_record(from, target().stream));
  OK(device()->fill(target().stream, data, 3, 1 << 16));
  OK(device()->event_record(to, target().stream));
  OK(device()->event_wait(other, to));
  OK(device()->synchronize(other));
  uint32_t done = 0;
  OK(device()->event_done(to, &done));
  EXPECT_EQ(done, 1u);
  double seconds = -1;
  OK(device()->event_elapsed(from, to, &seconds));
  EXPECT_GE(seconds, 0);
  if (target().simulated) {  // not reached yet: said so at once
    target().sim.delay(CUDASIM_COPY, 1, 300);
    OK(device()->copy(target().stream, data, data + 100, 100, Copy::device_to_device));
    OK(device()->event_record(to, target().stream));
    OK(device()->event_done(to, &done));
    EXPECT_EQ(done, 0u);
    OK(device()->synchronize(target().stream));
    OK(device()->event_elapsed(from, to, &seconds));
    EXPECT_GE(seconds, 0.25);
    target().sim.delay(CUDASIM_COPY, 0, 0);
  }
  if (other != nullptr) device()->stream_destroy(other);
  device()->event_destroy(from);
  device()->event_destroy(to);
}

// ---- scenario 14 ----
//
// A block is made by a kernel and goes out to a slot; it is fetched at once into another block, which is read three segments later, when the
// slot has been put to again; its own memory is taken by the next owner. 40 segments over 3 slots: every place is used again and again,
// and no edge follows from the others.
constexpr uint32_t kSlots = 3, kSegments = 40;
constexpr size_t kWords = 512, kBytes = kWords * 4;

struct Step {
  Memory memory{1 << 22};
  uint32_t *made[2] = {memory.take<uint32_t>(kWords), memory.take<uint32_t>(kWords)};
  uint32_t *back[4] = {memory.take<uint32_t>(kWords), memory.take<uint32_t>(kWords), memory.take<uint32_t>(kWords), memory.take<uint32_t>(kWords)};
  uint32_t *result = memory.take<uint32_t>(kSegments * kWords);

  static ckpt_philox values(uint64_t step, uint32_t segment) { return {42, (uint64_t{segment} << 36) + step, 0, nullptr}; }

  ckpt_status read_back(Offloader &o, uint32_t segment) {
    CKPT_TRY(o.acquire(segment % kSlots));
    return device()->copy(target().stream, result + segment * kWords, back[segment % 4], kBytes, Copy::device_to_device);
  }
  ckpt_status run(Offloader &o, uint64_t step) {
    for (uint32_t s = 0; s < kSegments; ++s) {
      const ckpt_philox philox = values(step, s);
      CKPT_TRY(device()->philox(target().stream, ckpt::device::Fill::u32, &philox, 0, kWords, 0, 0, made[s % 2]));
      CKPT_TRY(o.put(s % kSlots, made[s % 2], kBytes));
      if (s >= kSlots) CKPT_TRY(read_back(o, s - kSlots));
      CKPT_TRY(o.get(s % kSlots, back[s % 4]));
      CKPT_TRY(o.release(s % kSlots));
      CKPT_TRY(device()->fill(target().stream, made[s % 2], 0xEE, kBytes));  // whoever takes the memory next
    }
    for (uint32_t s = kSegments - kSlots; s < kSegments; ++s) CKPT_TRY(read_back(o, s));
    return CKPT_OK;
  }
  bool right(uint64_t step) const {
    const std::vector<uint32_t> seen = Memory::read(result, kSegments * kWords);
    std::vector<uint32_t> wanted(kWords);
    for (uint32_t s = 0; s < kSegments; ++s) {
      const ckpt_philox philox = values(step, s);
      EXPECT_OK(ckpt_philox_u32(&philox, 0, kWords, wanted.data()));
      if (std::memcmp(wanted.data(), seen.data() + s * kWords, kBytes) != 0) return false;
    }
    return true;
  }
};

TEST(Offload, TenStepsOverThreeSlotsAreBitwiseRight) {
  Step step;
  auto o = Offloader::create(device(), target().stream, kSlots, kBytes);
  ASSERT_TRUE(o.ok()) << ckpt_last_error();
  for (uint64_t n = 0; n < 10; ++n) {
    OK(step.run(*o, n));
    ASSERT_TRUE(step.right(n)) << n;
  }
  uint32_t idle = 0;
  OK(o->idle(0, &idle));
  EXPECT_EQ(idle, 1u);
}

TEST(Offload, SlowedCopiesChangeNothing) {
  if (!target().simulated) GTEST_SKIP() << "only the double can be slowed";
  Step step;
  auto o = Offloader::create(device(), target().stream, kSlots, kBytes);
  ASSERT_TRUE(o.ok()) << ckpt_last_error();
  // In the order of issue: copy out, the reader's copy, copy in; and the producing kernels.
  for (const int what : {CUDASIM_COPY, CUDASIM_KERNEL})
    for (uint64_t k = 1; k <= (what == CUDASIM_COPY ? 24u : 8u); ++k) {
      target().sim.delay(what, k, 20);
      OK(step.run(*o, k));
      ASSERT_TRUE(step.right(k)) << what << " " << k;
    }
  target().sim.delay(CUDASIM_COPY, 0, 0);
}

// Without one of the edges some delay makes a wrong result; the tests above would find it.
TEST(Offload, EveryEdgeIsNeeded) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a left-out edge is a race, and ThreadSanitizer ends the program for it";
#endif
  if (!target().simulated) GTEST_SKIP() << "only the double can be slowed";
  for (uint32_t edge = 1; edge <= 5; ++edge) {
    Step step;
    auto o = Offloader::create(device(), target().stream, kSlots, kBytes, {1u << (edge - 1)});
    ASSERT_TRUE(o.ok()) << ckpt_last_error();
    bool found = false;
    // Copies of a segment in the steady state: out, read, in.
    for (unsigned delay = 20; delay <= 320 && !found; delay *= 4)
      for (uint64_t k = 1; k <= 16 && !found; ++k) {
        target().sim.delay(edge == 1 ? CUDASIM_KERNEL : CUDASIM_COPY, k, delay);
        OK(step.run(*o, k));
        found = !step.right(k);
      }
    EXPECT_TRUE(found) << "edge " << edge << " can be left out";
    target().sim.reset();
  }
}

// The block that comes back may still be in use.
TEST(Offload, ACopyInWaitsForTheBlocksUsers) {
  if (!target().simulated) GTEST_SKIP() << "only the double can be slowed";
  for (const bool dropped : {false, true}) {
#ifdef __SANITIZE_THREAD__
    if (dropped) continue;
#endif
    auto o = Offloader::create(device(), target().stream, 1, kBytes, {dropped ? 1u << 5 : 0u});
    ASSERT_TRUE(o.ok()) << ckpt_last_error();
    bool overwritten = false;
    for (unsigned delay = 20; delay <= 320 && !overwritten; delay *= 4) {
      Memory memory(1 << 20);
      uint32_t *out = memory.put(std::vector<uint32_t>(kWords, 1)), *used = memory.put(std::vector<uint32_t>(kWords, 2)), *seen = memory.take<uint32_t>(kWords);
      OK(o->put(0, out, kBytes));
      OK(o->release(0));
      OK(device()->synchronize(target().stream));
      target().sim.delay(CUDASIM_COPY, 1, delay);
      OK(device()->copy(target().stream, seen, used, kBytes, Copy::device_to_device));
      OK(o->get(0, used));
      OK(o->acquire(0));
      overwritten = Memory::read(seen, kWords) != std::vector<uint32_t>(kWords, 2);
      EXPECT_EQ(Memory::read(used, kWords), std::vector<uint32_t>(kWords, 1));
    }
    EXPECT_EQ(overwritten, dropped);
    target().sim.reset();
  }
}

TEST(Offload, EveryCallMayFail) {
  if (!target().simulated) GTEST_SKIP() << "only the double fails when it is asked to";
  Step step;
  const std::string before = target().sim.things();
  for (uint64_t k = 1;; ++k) {
    ASSERT_LT(k, 2000u);
    target().sim.fail_call(k, 1, nullptr);
    ckpt_status status = CKPT_OK;
    bool right = false;
    {
      auto o = Offloader::create(device(), target().stream, kSlots, kBytes);
      status = o.status();
      if (!status) status = step.run(*o, k);
      const std::string call = target().sim.failed_call();
      target().sim.fail_call(0, 0, nullptr);
      OK(device()->synchronize(target().stream));
      if (o.ok()) {  // it goes on after a failure
        OK(o->drain());
        OK(step.run(*o, k + 1));
        right = step.right(k + 1);
        ASSERT_TRUE(right) << call;
      }
      if (status) {
        EXPECT_FALSE(call.empty());
        EXPECT_EQ(status, CKPT_ERROR_DEVICE) << call;
      } else if (call.empty()) {
        break;
      }
    }
    ASSERT_EQ(target().sim.things(), before);
    if (k > 60) k += 12;  // segments are alike
  }
}

TEST(Offload, WrongUseIsRefused) {
  REFUSED(Offloader::create(device(), target().stream, 0, 64).status(), CKPT_ERROR_INVALID_ARGUMENT, "slot_count is 0");
  REFUSED(Offloader::create(device(), target().stream, 2, 0).status(), CKPT_ERROR_INVALID_ARGUMENT, "slot_bytes is 0");
  REFUSED(Offloader::create(device(), target().stream, 1u << 31, SIZE_MAX / 2).status(), CKPT_ERROR_OVERFLOW, "slots");
  auto o = Offloader::create(device(), target().stream, 2, 64);
  ASSERT_TRUE(o.ok());
  Memory memory(4096);
  auto *block = memory.take<uint8_t>(128);
  uint32_t idle = 0;
  REFUSED(o->put(2, block, 64), CKPT_ERROR_INVALID_ARGUMENT, "slot is 2", "below 2");
  REFUSED(o->put(0, block, 65), CKPT_ERROR_INVALID_ARGUMENT, "bytes is 65", "64");
  REFUSED(o->get(0, block), CKPT_ERROR_STATE, "nothing is in slot 0");
  REFUSED(o->release(1), CKPT_ERROR_STATE, "nothing is in slot 1");
  REFUSED(o->acquire(1), CKPT_ERROR_STATE, "nothing was got from slot 1");
  REFUSED(o->idle(9, &idle), CKPT_ERROR_INVALID_ARGUMENT, "slot is 9");
}

}  // namespace
