// Little layers with exact, deterministic loops. Those that show one special thing each are in ops_special_layers.h.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>

#include "ops_view.h"

namespace ops {

inline size_t floats(size_t count) { return count * sizeof(float); }
inline void put(float *to, size_t k, float value, bool accumulate) { to[k] = accumulate ? to[k] + value : value; }

// y = x W^T + b. Backward reads x; no slots.
class Linear : public Layer {
 public:
  Linear(const std::string &name, size_t rows, size_t in, size_t out, uint32_t salt = 1) : rows_(rows), in_(in), out_(out) {
    spec.name = name;
    spec.outputs = {{.name = "y", .bytes = floats(rows * out)}};
    spec.input_flags = {0};
    set_weight(in * out + out, salt);
  }
  void forward(View &f) override {
    const float *x = f.fin(0);
    float *y = f.fout(0);
    if (!f.needs_output(0)) return;
    must(x, "x");
    must(y, "y");
    for (size_t r = 0; r < rows_; ++r)
      for (size_t o = 0; o < out_; ++o) {
        float sum = weight[in_ * out_ + o];
        for (size_t i = 0; i < in_; ++i) sum += x[r * in_ + i] * weight[o * in_ + i];
        y[r * out_ + o] = sum;
      }
  }
  void backward(View &f) override {
    const float *x = must(f.fin(0), "x"), *g = f.fgrad(0);
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    for (size_t r = 0; r < rows_; ++r) {
      for (size_t o = 0; o < out_; ++o) {
        const float go = g != nullptr ? g[r * out_ + o] : 1.0f;
        for (size_t i = 0; i < in_; ++i) weight_grad[o * in_ + i] += go * x[r * in_ + i];
        weight_grad[in_ * out_ + o] += go;
      }
      if (dx == nullptr) continue;
      for (size_t i = 0; i < in_; ++i) {
        float sum = 0;
        for (size_t o = 0; o < out_; ++o) sum += (g != nullptr ? g[r * out_ + o] : 1.0f) * weight[o * in_ + i];
        put(dx, r * in_ + i, sum, add);
      }
    }
  }

 private:
  size_t rows_, in_, out_;
};

// Two slots: pre = a x + b, act = tanh(pre); y = act * c. Backward reads both and x.
class Mlp : public Layer {
 public:
  enum { PRE, ACT };
  Mlp(const std::string &name, size_t count, uint32_t salt = 1, uint32_t pre_flags = 0, uint32_t act_flags = 0) : count_(count) {
    spec.name = name;
    spec.slots = {{.name = "pre", .bytes = floats(count), .reads_all = false, .flags = pre_flags},
                  {.name = "act", .bytes = floats(count), .reads_all = false, .reads = {PRE}, .flags = act_flags}};
    spec.outputs = {{.name = "y", .bytes = floats(count), .reads_all = false, .reads = {ACT}}};
    spec.input_flags = {0};
    set_weight(3, salt);
  }
  void forward(View &f) override {
    const float *x = f.fin(0);
    float *pre = f.fslot(PRE), *act = f.fslot(ACT), *y = f.fout(0);
    if (f.needs(PRE)) {
      must(x, "x"), must(pre, "pre");
      for (size_t k = 0; k < count_; ++k) pre[k] = weight[0] * x[k] + weight[1];
    }
    if (f.needs(ACT)) {
      must(pre, "pre"), must(act, "act");
      for (size_t k = 0; k < count_; ++k) act[k] = std::tanh(pre[k]);
    }
    if (f.needs_output(0)) {
      must(act, "act"), must(y, "y");
      for (size_t k = 0; k < count_; ++k) y[k] = act[k] * weight[2];
    }
  }
  void backward(View &f) override {
    const float *x = must(f.fin(0), "x"), *g = f.fgrad(0);
    const float *pre = must(f.fslot(PRE), "pre"), *act = must(f.fslot(ACT), "act");
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    for (size_t k = 0; k < count_; ++k) {
      const float gy = g != nullptr ? g[k] : 1.0f;
      const float dpre = gy * weight[2] * (1.0f - act[k] * act[k]) + 0.0f * pre[k];
      weight_grad[0] += dpre * x[k];
      weight_grad[1] += dpre;
      weight_grad[2] += gy * act[k];
      if (dx != nullptr) put(dx, k, dpre * weight[0], add);
    }
  }

 private:
  size_t count_;
};

// y = max(x, 0), in place where it can be; backward reads y only.
class Relu : public Layer {
 public:
  Relu(const std::string &name, size_t count, bool in_place = true, bool over = false) : count_(count) {
    spec.name = name;
    spec.outputs = {{.name = "y", .bytes = floats(count), .flags = CKPT_OUTPUT_BACKWARD_READS, .in_place_input = in_place ? 1u : 0u}};
    spec.input_flags = {uint32_t{CKPT_INPUT_BACKWARD_IGNORES} | (over ? uint32_t{CKPT_INPUT_GRAD_OVER_OUTPUT_0} : 0u)};
  }
  void forward(View &f) override {
    const float *x = f.fin(0);
    float *y = f.fout(0);
    if (!f.needs_output(0)) return;
    must(x, "x"), must(y, "y");
    for (size_t k = 0; k < count_; ++k) y[k] = x[k] > 0 ? x[k] : 0.0f;
  }
  void backward(View &f) override {
    const float *y = must(f.fout(0), "y"), *g = f.fgrad(0);
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    if (dx == nullptr) return;
    for (size_t k = 0; k < count_; ++k) put(dx, k, y[k] > 0 ? (g != nullptr ? g[k] : 1.0f) : 0.0f, add);
  }

 private:
  size_t count_;
};

// The mask in a slot of bytes, or drawn again in backward. `draws`: what each first run and backward drew, for comparisons.
class Dropout : public Layer {
 public:
  Dropout(const std::string &name, size_t count, bool mask_slot, double p = 0.25) : count_(count), mask_slot_(mask_slot), p_(p) {
    spec.name = name;
    if (mask_slot) spec.slots = {{.name = "mask", .bytes = count, .reads_all = false}};
    spec.outputs = {{.name = "y", .bytes = floats(count)}};
    spec.input_flags = {CKPT_INPUT_BACKWARD_IGNORES};
  }
  std::vector<uint8_t> last_mask;  // of the latest first run

  void forward(View &f) override {
    const float *x = f.fin(0);
    float *y = f.fout(0);
    std::vector<uint8_t> mask(count_);
    if (mask_slot_) {
      auto *slot = static_cast<uint8_t *>(f.slot(0));
      if (f.needs(0)) draw(f, must(slot, "mask"));
      if (!f.needs_output(0)) return;
      std::memcpy(mask.data(), must(slot, "mask"), count_);
    } else {
      if (!f.needs_output(0)) return;
      draw(f, mask.data());
    }
    must(x, "x"), must(y, "y");
    for (size_t k = 0; k < count_; ++k) y[k] = mask[k] ? x[k] * scale() : 0.0f;
    if (!f.is_recompute()) last_mask = mask;
  }
  void backward(View &f) override {
    const float *g = f.fgrad(0);
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    std::vector<uint8_t> mask(count_);
    if (mask_slot_) std::memcpy(mask.data(), must(f.slot(0), "mask"), count_);
    else draw(f, mask.data());
    if (dx == nullptr) return;
    for (size_t k = 0; k < count_; ++k) put(dx, k, mask[k] ? (g != nullptr ? g[k] : 1.0f) * scale() : 0.0f, add);
  }

 private:
  float scale() const { return static_cast<float>(1.0 / (1.0 - p_)); }
  void draw(View &f, uint8_t *mask) const {
    const ckpt_philox philox = f.random(3);
    if (ckpt_philox_bernoulli(&philox, 0, count_, 1.0 - p_, mask)) throw Violation(ckpt_last_error());
  }
  size_t count_;
  bool mask_slot_;
  double p_;
};

// y = w x + index * bias: a captured weight, and a body that depends on its place in the recording.
class Scale : public Layer {
 public:
  Scale(const std::string &name, size_t count, uint32_t salt = 1, float index_weight = 0) : count_(count), index_weight_(index_weight) {
    spec.name = name;
    spec.outputs = {{.name = "y", .bytes = floats(count)}};
    spec.input_flags = {0};
    set_weight(1, salt);
  }
  void forward(View &f) override {
    const float *x = f.fin(0);
    float *y = f.fout(0);
    if (!f.needs_output(0)) return;
    must(x, "x"), must(y, "y");
    for (size_t k = 0; k < count_; ++k) y[k] = weight[0] * x[k] + index_weight_ * static_cast<float>(f.index());
  }
  void backward(View &f) override {
    const float *x = must(f.fin(0), "x"), *g = f.fgrad(0);
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    for (size_t k = 0; k < count_; ++k) {
      const float gy = g != nullptr ? g[k] : 1.0f;
      weight_grad[0] += gy * x[k];
      if (dx != nullptr) put(dx, k, gy * weight[0], add);
    }
  }

 private:
  size_t count_;
  float index_weight_;
};

// Two inputs, neither read by backward; the first gradient may lie over the output's (residual stream).
class Add : public Layer {
 public:
  Add(const std::string &name, size_t count, bool over = true) : count_(count) {
    spec.name = name;
    spec.outputs = {{.name = "y", .bytes = floats(count)}};
    spec.input_flags = {uint32_t{CKPT_INPUT_BACKWARD_IGNORES} | (over ? uint32_t{CKPT_INPUT_GRAD_OVER_OUTPUT_0} : 0u), CKPT_INPUT_BACKWARD_IGNORES};
  }
  void forward(View &f) override {
    const float *a = f.fin(0), *b = f.fin(1);
    float *y = f.fout(0);
    if (!f.needs_output(0)) return;
    must(a, "a"), must(b, "b"), must(y, "y");
    for (size_t k = 0; k < count_; ++k) y[k] = a[k] + b[k];
  }
  void backward(View &f) override {
    const float *g = f.fgrad(0);
    bool add[2] = {false, false};
    float *d[2] = {static_cast<float *>(f.input_grad(0, &add[0])), static_cast<float *>(f.input_grad(1, &add[1]))};
    // Input 0 last: its gradient may lie over g.
    for (int j : {1, 0})
      if (d[j] != nullptr)
        for (size_t k = 0; k < count_; ++k) put(d[j], k, g != nullptr ? g[k] : 1.0f, add[j]);
  }

 private:
  size_t count_;
};

// y = a b, elementwise: backward reads both inputs.
class Mul : public Layer {
 public:
  Mul(const std::string &name, size_t count) : count_(count) {
    spec.name = name;
    spec.outputs = {{.name = "y", .bytes = floats(count)}};
    spec.input_flags = {0, 0};
  }
  void forward(View &f) override {
    const float *a = f.fin(0), *b = f.fin(1);
    float *y = f.fout(0);
    if (!f.needs_output(0)) return;
    must(a, "a"), must(b, "b"), must(y, "y");
    for (size_t k = 0; k < count_; ++k) y[k] = a[k] * b[k];
  }
  void backward(View &f) override {
    const float *a = must(f.fin(0), "a"), *b = must(f.fin(1), "b"), *g = f.fgrad(0);
    bool add = false;
    if (float *da = static_cast<float *>(f.input_grad(0, &add)); da != nullptr)
      for (size_t k = 0; k < count_; ++k) put(da, k, (g != nullptr ? g[k] : 1.0f) * b[k], add);
    if (float *db = static_cast<float *>(f.input_grad(1, &add)); db != nullptr)
      for (size_t k = 0; k < count_; ++k) put(db, k, (g != nullptr ? g[k] : 1.0f) * a[k], add);
  }

 private:
  size_t count_;
};

// Two outputs of different sizes: y = w x, z = the first half of x squared.
class Split : public Layer {
 public:
  Split(const std::string &name, size_t count, uint32_t salt = 1, uint32_t second_flags = 0) : count_(count), half_((count + 1) / 2) {
    spec.name = name;
    spec.outputs = {{.name = "y", .bytes = floats(count)}, {.name = "z", .bytes = floats(half_), .flags = second_flags}};
    spec.input_flags = {0};
    set_weight(1, salt);
  }
  size_t half() const { return half_; }
  void forward(View &f) override {
    const float *x = f.fin(0);
    float *y = f.fout(0), *z = f.fout(1);
    if (f.needs_output(0)) {
      must(x, "x"), must(y, "y");
      for (size_t k = 0; k < count_; ++k) y[k] = weight[0] * x[k];
    }
    if (f.needs_output(1)) {
      must(x, "x"), must(z, "z");
      for (size_t k = 0; k < half_; ++k) z[k] = x[k] * x[k];
    }
  }
  void backward(View &f) override {
    const float *x = must(f.fin(0), "x"), *gy = f.fgrad(0), *gz = f.fgrad(1);
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    for (size_t k = 0; k < count_; ++k) {
      float d = gy != nullptr ? gy[k] * weight[0] : 0.0f;
      if (gy != nullptr) weight_grad[0] += gy[k] * x[k];
      if (gz != nullptr && k < half_) d += gz[k] * 2.0f * x[k];
      if (dx != nullptr) put(dx, k, d, add);
    }
  }

 private:
  size_t count_, half_;
};

// loss = sum of w_k x_k, in the caller's memory or in the arena; a root without gradient seeds itself with 1.
class Loss : public Layer {
 public:
  Loss(const std::string &name, size_t count, bool caller_memory) : count_(count) {
    spec.name = name;
    spec.outputs = {{.name = "loss", .bytes = sizeof(float), .memory = caller_memory ? &value : nullptr}};
    spec.input_flags = {0};
    set_weight(count, 7);
  }
  float value = 0;  // where the memory is the caller's
  void forward(View &f) override {
    const float *x = f.fin(0);
    float *loss = f.fout(0);
    if (!f.needs_output(0)) return;
    must(x, "x"), must(loss, "loss");
    float sum = 0;
    for (size_t k = 0; k < count_; ++k) sum += weight[k] * x[k] + 0.5f * x[k] * x[k];
    *loss = sum;
    if (!f.is_recompute()) value = sum;
  }
  void backward(View &f) override {
    const float *x = must(f.fin(0), "x"), *g = f.fgrad(0);
    const float seed = g != nullptr ? *g : 1.0f;
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    for (size_t k = 0; k < count_; ++k) {
      weight_grad[k] += seed * x[k];
      if (dx != nullptr) put(dx, k, seed * (weight[k] + x[k]), add);
    }
  }

 private:
  size_t count_;
};

// What a test needs once: two functions.
class Custom : public Layer {
 public:
  explicit Custom(const std::string &name) { spec.name = name; }
  std::function<void(View &)> run_forward, run_backward;
  void forward(View &f) override { if (run_forward) run_forward(f); }
  void backward(View &f) override { if (run_backward) run_backward(f); }
};

}  // namespace ops
