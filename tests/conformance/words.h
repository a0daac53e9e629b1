// The smallest chain whose gradients show which step drew them: each segment draws 64 words and hands them on; the gradient of a segment's
// input is its words. So the input's gradient is what segment 0 drew. Needs nothing but the device's own fills and copies.
#pragma once

#include "target.h"

namespace conformance {

constexpr size_t kWordCount = 64, kWordBytes = 4 * kWordCount;

struct Words {
  ckpt_device *device = nullptr;
  void *stream = nullptr;
  ckpt_segment *segment = nullptr;
  uint8_t *block = nullptr;  // kBlockBytes of the device's: input, its gradient, the root's gradient
  static constexpr size_t kBlockBytes = 3 * kWordBytes;

  uint8_t *input_grad() const { return block + kWordBytes; }

  ckpt_status make_segment() {
    static constexpr uint32_t reads[] = {0};
    const ckpt_slot slot = {"words", kWordBytes, nullptr, 0, 0, 0, 0, 0};
    ckpt_output output{};
    output.name = "copy";
    output.bytes = kWordBytes;
    output.reads = reads;
    output.read_count = 1;
    ckpt_segment_desc desc = CKPT_SEGMENT_DESC_INIT;
    desc.name = "words";
    desc.forward = forward;
    desc.backward = backward;
    desc.slots = &slot;
    desc.slot_count = 1;
    desc.outputs = &output;
    desc.output_count = 1;
    desc.input_count = 1;
    return ckpt_segment_create(&desc, &segment);
  }

  ckpt_status step(ckpt_tape *tape, uint64_t key, int segments = 3) {
    if (const ckpt_status s = ckpt_tape_begin(tape, key, 0)) return s;
    ckpt_input_desc in = CKPT_INPUT_DESC_INIT;
    in.data = block;
    in.bytes = kWordBytes;
    in.grad = input_grad();
    ckpt_buffer buffer = 0;
    ckpt_status s = ckpt_tape_input(tape, &in, &buffer);
    for (int k = 0; k < segments && s == CKPT_OK; ++k) {
      ckpt_call call = CKPT_CALL_INIT;
      call.user = this;
      const ckpt_buffer from = buffer;
      call.inputs = &from;
      call.input_count = 1;
      s = ckpt_segment_run(tape, segment, &call, &buffer);
    }
    const void *grad = block + 2 * kWordBytes;
    if (s == CKPT_OK) s = ckpt_backward(tape, &buffer, &grad, 1, 0);
    if (s != CKPT_OK) (void)ckpt_tape_reset(tape);
    return s;
  }

  // What the latest step left; waits for it.
  std::vector<uint32_t> read() const {
    std::vector<uint32_t> words(kWordCount);
    EXPECT_OK(ckpt_device_copy(device, stream, words.data(), input_grad(), kWordBytes, CKPT_COPY_DEVICE_TO_HOST));
    EXPECT_OK(ckpt_device_synchronize(device, stream));
    return words;
  }
  // What the host draws for segment 0 of that step.
  static std::vector<uint32_t> drawn(uint64_t seed, uint64_t step) {
    std::vector<uint32_t> words(kWordCount);
    ckpt_philox p;
    EXPECT_OK(ckpt_philox_pack(seed, step, 0, 0, &p));
    EXPECT_OK(ckpt_philox_u32(&p, 0, kWordCount, words.data()));
    return words;
  }

 private:
  static ckpt_status told(ckpt_frame *f, ckpt_status s) { return s == CKPT_OK ? s : ckpt_frame_fail(f, s, std::string(ckpt_last_error()).c_str()); }
  static ckpt_status forward(void *user, ckpt_frame *f) {
    const Words &w = *static_cast<Words *>(user);
    ckpt_philox p;
    ckpt_frame_random(f, 0, &p);
    if (ckpt_frame_needs(f, 0))
      if (const ckpt_status s = ckpt_device_philox_u32(w.device, w.stream, &p, 0, kWordCount, static_cast<uint32_t *>(ckpt_frame_slot(f, 0)))) return told(f, s);
    if (!ckpt_frame_needs_output(f, 0)) return CKPT_OK;
    return told(f, ckpt_device_copy(w.device, w.stream, ckpt_frame_output(f, 0), ckpt_frame_slot(f, 0), kWordBytes, CKPT_COPY_DEVICE_TO_DEVICE));
  }
  static ckpt_status backward(void *user, ckpt_frame *f) {
    const Words &w = *static_cast<Words *>(user);
    int accumulate = 0;
    void *dx = ckpt_frame_input_grad(f, 0, &accumulate);
    return told(f, ckpt_device_copy(w.device, w.stream, dx, ckpt_frame_slot(f, 0), kWordBytes, CKPT_COPY_DEVICE_TO_DEVICE));
  }
};

}  // namespace conformance
