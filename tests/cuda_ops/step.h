// One of each operation of this folder but products and attention, on small arrays: what capture and failures are tried on.
#pragma once

#include "plugin.h"

namespace test {

class Step {
 public:
  static constexpr size_t kBatch = 2, kSequence = 9, kRows = kBatch * kSequence, kChannels = 40, kVocabulary = 11, kCount = kRows * kChannels;

  explicit Step(uint32_t type)
      : tokens_(indices(kRows, 1, kVocabulary)), table_(type, values(kVocabulary * kChannels, 2)), positions_(type, values(kSequence * kChannels, 3)),
        weight_(type, values(kChannels, 4)), bias_(type, values(kChannels, 5)), embedded_(type, Floats(kCount)), normed_(type, Floats(kCount)),
        activated_(type, Floats(kCount)), grad_(type, Floats(kCount)), mean_(ops::kFloat32, Floats(kRows)), rstd_(ops::kFloat32, Floats(kRows)),
        lse_(ops::kFloat32, Floats(kRows)), loss_(ops::kFloat32, Floats(1)), table_grad_(ops::kFloat32, Floats(kVocabulary * kChannels)),
        position_grad_(ops::kFloat32, Floats(kSequence * kChannels)), weight_grad_(ops::kFloat32, Floats(kChannels)),
        bias_grad_(ops::kFloat32, Floats(kChannels)), master_(ops::kFloat32, values(kChannels, 4)), first_(ops::kFloat32, Floats(kChannels)),
        second_(ops::kFloat32, Floats(kChannels)), word_(8) {
    const uint64_t zero = 0;
    word_.write(&zero);
  }

  uint64_t *word() const { return static_cast<uint64_t *>(word_.data()); }

  // Enqueues all of it; the first failure ends it.
  ckpt_status run(const Ops &ops) const {
    const ckpt_philox philox = {42, 7, 0, word()};
    ops::DeviceAdamw adamw = {0.9f, 0.99f, 1e-8f, 1.0f, 1.0f, 0.01f, 1.0f, 1};
    const int32_t *const targets = tokens_.data();
    ckpt_status s = CKPT_OK;
    const auto call = [&](auto operation, auto... arguments) {
      if (s == CKPT_OK) s = operation(static_cast<void *>(ops), arguments...);
    };
    call(ops->embedding_forward, tokens_.data(), table_.data(), positions_.data(), kBatch, kSequence, kChannels, kVocabulary, embedded_.data());
    call(ops->dropout_forward, embedded_.data(), nullptr, 0.25f, &philox, kCount, embedded_.data());
    call(ops->layernorm_forward, embedded_.data(), weight_.data(), bias_.data(), kRows, kChannels, 1e-5f, normed_.data(), mean_.floats(), rstd_.floats());
    call(ops->gelu_forward, normed_.data(), bias_.data(), kRows, kChannels, activated_.data());
    call(ops->add, activated_.data(), embedded_.data(), kCount, activated_.data());
    call(ops->loss_begin, targets, kRows, kChannels, int32_t{-1});
    call(ops->loss_add, activated_.data(), targets, kRows, kChannels, int32_t{-1}, lse_.floats());
    call(ops->loss_end, loss_.floats());
    call(ops->loss_scale, targets, kRows, kChannels, int32_t{-1}, nullptr, 1.0f);
    call(ops->loss_gradient, activated_.data(), targets, lse_.floats(), kRows, kChannels, int32_t{-1}, grad_.data());
    call(ops->gelu_backward, normed_.data(), bias_.data(), grad_.data(), kRows, kChannels, grad_.data(), 0u, bias_grad_.floats());
    call(ops->layernorm_backward, embedded_.data(), mean_.floats(), rstd_.floats(), weight_.data(), grad_.data(), nullptr, kRows, kChannels,
         grad_.data(), 0u, weight_grad_.floats(), bias_grad_.floats());
    call(ops->dropout_backward, grad_.data(), 0.25f, &philox, kCount, grad_.data(), 0u);
    call(ops->embedding_backward, tokens_.data(), grad_.data(), kBatch, kSequence, kChannels, kVocabulary, table_grad_.floats(), position_grad_.floats());
    call(ops->clip, weight_grad_.floats(), kChannels, 1.0f, 0.5f, nullptr);
    call(ops->adamw, &adamw, kChannels, weight_grad_.floats(), weight_.data(), master_.floats(), first_.floats(), second_.floats());
    return s;
  }

  float loss() const { return loss_.read()[0]; }
  // Everything that a run leaves.
  std::vector<unsigned char> bytes() const {
    std::vector<unsigned char> out;
    for (const Array *array : {&embedded_, &normed_, &activated_, &grad_, &mean_, &rstd_, &lse_, &loss_, &table_grad_, &position_grad_, &weight_grad_,
                               &bias_grad_, &weight_, &master_, &first_, &second_})
      append(&out, array->bytes());
    return out;
  }

 private:
  Indices tokens_;
  Array table_, positions_, weight_, bias_, embedded_, normed_, activated_, grad_, mean_, rstd_, lse_, loss_, table_grad_, position_grad_, weight_grad_,
      bias_grad_, master_, first_, second_;
  Memory word_;
};

}  // namespace test
