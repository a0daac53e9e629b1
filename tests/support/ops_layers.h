// Little layers with exact, deterministic loops: each shows one thing that a segment may do.
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

// Groups: mean and rstd come from one kernel (mean is TRANSIENT), xhat reads both; y reads xhat.
class Norm : public Layer {
 public:
  enum { MEAN, RSTD, XHAT };
  Norm(const std::string &name, size_t rows, size_t columns, uint32_t salt = 1) : rows_(rows), columns_(columns) {
    spec.name = name;
    spec.slots = {{.name = "mean", .bytes = floats(rows), .reads_all = false, .group = 1, .flags = CKPT_SLOT_TRANSIENT},
                  {.name = "rstd", .bytes = floats(rows), .reads_all = false, .group = 1},
                  {.name = "xhat", .bytes = floats(rows * columns), .reads_all = false, .reads = {MEAN, RSTD}}};
    spec.outputs = {{.name = "y", .bytes = floats(rows * columns), .reads_all = false, .reads = {XHAT}}};
    spec.input_flags = {CKPT_INPUT_BACKWARD_IGNORES};
    set_weight(columns, salt);
  }
  void forward(View &f) override {
    const float *x = f.fin(0);
    float *mean = f.fslot(MEAN), *rstd = f.fslot(RSTD), *xhat = f.fslot(XHAT), *y = f.fout(0);
    const bool m = f.needs(MEAN), r = f.needs(RSTD);
    if (m != r) throw Violation("a group's members are not wanted together");
    if (m) {
      must(x, "x"), must(mean, "mean"), must(rstd, "rstd");
      for (size_t i = 0; i < rows_; ++i) {
        float sum = 0, squares = 0;
        for (size_t k = 0; k < columns_; ++k) sum += x[i * columns_ + k];
        mean[i] = sum / static_cast<float>(columns_);
        for (size_t k = 0; k < columns_; ++k) squares += (x[i * columns_ + k] - mean[i]) * (x[i * columns_ + k] - mean[i]);
        rstd[i] = 1.0f / std::sqrt(squares / static_cast<float>(columns_) + 1e-3f);
      }
    }
    if (f.needs(XHAT)) {
      must(x, "x"), must(mean, "mean"), must(rstd, "rstd"), must(xhat, "xhat");
      for (size_t i = 0; i < rows_ * columns_; ++i) xhat[i] = (x[i] - mean[i / columns_]) * rstd[i / columns_];
    }
    if (f.needs_output(0)) {
      must(xhat, "xhat"), must(y, "y");
      for (size_t i = 0; i < rows_ * columns_; ++i) y[i] = xhat[i] * weight[i % columns_];
    }
  }
  void backward(View &f) override {
    const float *rstd = must(f.fslot(RSTD), "rstd"), *xhat = must(f.fslot(XHAT), "xhat"), *g = f.fgrad(0);
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    const float inverse = 1.0f / static_cast<float>(columns_);
    for (size_t i = 0; i < rows_; ++i) {
      float a = 0, b = 0;
      for (size_t k = 0; k < columns_; ++k) {
        const float go = g != nullptr ? g[i * columns_ + k] : 1.0f;
        weight_grad[k] += go * xhat[i * columns_ + k];
        a += go * weight[k];
        b += go * weight[k] * xhat[i * columns_ + k];
      }
      if (dx == nullptr) continue;
      for (size_t k = 0; k < columns_; ++k) {
        const float go = g != nullptr ? g[i * columns_ + k] : 1.0f;
        put(dx, i * columns_ + k, rstd[i] * (go * weight[k] - inverse * a - xhat[i * columns_ + k] * inverse * b), add);
      }
    }
  }

 private:
  size_t rows_, columns_;
};

// A group of a slot and the output; the slot `twin` can also be made alone from `base`.
class Twin : public Layer {
 public:
  enum { BASE, TWIN };
  explicit Twin(const std::string &name, size_t count) : count_(count) {
    spec.name = name;
    spec.slots = {{.name = "base", .bytes = floats(count), .reads_all = false, .flags = 0},
                  {.name = "twin", .bytes = floats(count), .reads_all = false, .reads = {BASE}, .group = 1, .flags = CKPT_SLOT_ALONE | CKPT_SLOT_COST_GIVEN, .cost = 1e-7}};
    spec.outputs = {{.name = "y", .bytes = floats(count), .reads_all = false, .reads = {BASE}, .group = 1}};
    spec.input_flags = {CKPT_INPUT_BACKWARD_IGNORES};
  }
  void forward(View &f) override {
    const float *x = f.fin(0);
    float *base = f.fslot(BASE), *twin = f.fslot(TWIN), *y = f.fout(0);
    if (f.needs(BASE)) {
      must(x, "x"), must(base, "base");
      for (size_t k = 0; k < count_; ++k) base[k] = 0.5f * x[k] + 0.25f;
    }
    if (f.needs(TWIN)) {
      must(base, "base"), must(twin, "twin");
      for (size_t k = 0; k < count_; ++k) twin[k] = base[k] * base[k];
    }
    if (f.needs_output(0)) {
      must(base, "base"), must(y, "y");
      for (size_t k = 0; k < count_; ++k) y[k] = base[k] * base[k] * base[k];
    }
  }
  void backward(View &f) override {
    const float *base = must(f.fslot(BASE), "base"), *twin = must(f.fslot(TWIN), "twin"), *g = f.fgrad(0);
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    if (dx == nullptr) return;
    for (size_t k = 0; k < count_; ++k) put(dx, k, (g != nullptr ? g[k] : 1.0f) * 3.0f * twin[k] * 0.5f + 0.0f * base[k], add);
  }

 private:
  size_t count_;
};

// A choice that must be made once: it depends on how often it was made. KEEP makes that harmless.
class Router : public Layer {
 public:
  Router(const std::string &name, size_t count) : count_(count) {
    spec.name = name;
    spec.slots = {{.name = "choice", .bytes = sizeof(uint32_t), .reads_all = false, .flags = CKPT_SLOT_KEEP}};
    spec.outputs = {{.name = "y", .bytes = floats(count)}};
    spec.input_flags = {CKPT_INPUT_BACKWARD_IGNORES};
    statistics.assign(1, 0);
  }
  void forward(View &f) override {
    const float *x = f.fin(0);
    auto *choice = static_cast<uint32_t *>(f.slot(0));
    float *y = f.fout(0);
    if (f.needs(0)) {
      statistics[0] += 1;
      *must(choice, "choice") = static_cast<uint32_t>(statistics[0]) % 5 + (must(x, "x")[0] > 0 ? 1u : 0u);
    }
    if (!f.needs_output(0)) return;
    must(choice, "choice"), must(y, "y"), must(x, "x");
    for (size_t k = 0; k < count_; ++k) y[k] = x[k] * factor(*choice);
  }
  void backward(View &f) override {
    const auto *choice = static_cast<const uint32_t *>(must(f.slot(0), "choice"));
    const float *g = f.fgrad(0);
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    if (dx == nullptr) return;
    for (size_t k = 0; k < count_; ++k) put(dx, k, (g != nullptr ? g[k] : 1.0f) * factor(*choice), add);
  }

 private:
  static float factor(uint32_t choice) { return 0.5f + 0.125f * static_cast<float>(choice); }
  size_t count_;
};

// Statistics over the batch; running ones that a first run moves, by is_recompute or by save and restore of host state.
class BatchNorm : public Layer {
 public:
  enum { MEAN, RSTD };
  BatchNorm(const std::string &name, size_t rows, size_t columns, bool by_state, uint32_t salt = 1) : rows_(rows), columns_(columns), by_state_(by_state) {
    spec.name = name;
    spec.slots = {{.name = "mean", .bytes = floats(columns), .reads_all = false, .group = 1}, {.name = "rstd", .bytes = floats(columns), .reads_all = false, .group = 1}};
    spec.outputs = {{.name = "y", .bytes = floats(rows * columns)}};
    spec.input_flags = {0};
    set_weight(columns, salt);
    statistics.assign(2 * columns + 1, 0);  // means, variances, calls
    if (by_state) spec.state_bytes = statistics.size() * sizeof(double);
  }
  void save(void *state) override { std::memcpy(state, statistics.data(), spec.state_bytes); }
  void restore(const void *state) override { std::memcpy(statistics.data(), state, spec.state_bytes); }
  void forward(View &f) override {
    const float *x = f.fin(0);
    float *mean = f.fslot(MEAN), *rstd = f.fslot(RSTD), *y = f.fout(0);
    const bool a = f.needs(MEAN), b = f.needs(RSTD);
    if (a != b) throw Violation("a group's members are not wanted together");
    if (a) {
      must(x, "x"), must(mean, "mean"), must(rstd, "rstd");
      for (size_t c = 0; c < columns_; ++c) {
        float sum = 0, squares = 0;
        for (size_t r = 0; r < rows_; ++r) sum += x[r * columns_ + c];
        mean[c] = sum / static_cast<float>(rows_);
        for (size_t r = 0; r < rows_; ++r) squares += (x[r * columns_ + c] - mean[c]) * (x[r * columns_ + c] - mean[c]);
        const float variance = squares / static_cast<float>(rows_);
        rstd[c] = 1.0f / std::sqrt(variance + 1e-3f);
        if (f.is_recompute() && !by_state_) continue;
        statistics[c] = 0.9 * statistics[c] + 0.1 * static_cast<double>(mean[c]);
        statistics[columns_ + c] = 0.9 * statistics[columns_ + c] + 0.1 * static_cast<double>(variance);
      }
      if (!f.is_recompute() || by_state_) statistics[2 * columns_] += 1;
    }
    if (!f.needs_output(0)) return;
    must(x, "x"), must(mean, "mean"), must(rstd, "rstd"), must(y, "y");
    for (size_t k = 0; k < rows_ * columns_; ++k) y[k] = (x[k] - mean[k % columns_]) * rstd[k % columns_] * weight[k % columns_];
  }
  void backward(View &f) override {
    const float *x = must(f.fin(0), "x"), *mean = must(f.fslot(MEAN), "mean"), *rstd = must(f.fslot(RSTD), "rstd"), *g = f.fgrad(0);
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    const float inverse = 1.0f / static_cast<float>(rows_);
    for (size_t c = 0; c < columns_; ++c) {
      float a = 0, b = 0;
      for (size_t r = 0; r < rows_; ++r) {
        const float go = g != nullptr ? g[r * columns_ + c] : 1.0f, xhat = (x[r * columns_ + c] - mean[c]) * rstd[c];
        a += go;
        b += go * xhat;
      }
      weight_grad[c] += b;
      if (dx == nullptr) continue;
      for (size_t r = 0; r < rows_; ++r) {
        const float go = g != nullptr ? g[r * columns_ + c] : 1.0f, xhat = (x[r * columns_ + c] - mean[c]) * rstd[c];
        put(dx, r * columns_ + c, weight[c] * rstd[c] * (go - inverse * a - xhat * inverse * b), add);
      }
    }
  }

 private:
  size_t rows_, columns_;
  bool by_state_;
};

// Scratch of both kinds, written before it is read; a CONSUMED slot that backward overwrites.
class Scratchy : public Layer {
 public:
  Scratchy(const std::string &name, size_t count, size_t factor) : count_(count), factor_(factor) {
    spec.name = name;
    spec.slots = {{.name = "saved", .bytes = floats(count), .reads_all = false, .flags = CKPT_SLOT_CONSUMED}};
    spec.outputs = {{.name = "y", .bytes = floats(count)}};
    spec.input_flags = {CKPT_INPUT_BACKWARD_IGNORES};
    spec.forward_scratch = floats(count);
    spec.backward_scratch = floats(count * factor);
  }
  void forward(View &f) override {
    const float *x = f.fin(0);
    float *saved = f.fslot(0), *y = f.fout(0), *scratch = static_cast<float *>(f.scratch());
    if (f.needs(0)) {
      must(x, "x"), must(saved, "saved"), must(scratch, "scratch");
      for (size_t k = 0; k < count_; ++k) scratch[k] = x[k] * 0.5f;
      for (size_t k = 0; k < count_; ++k) saved[k] = scratch[k] + 0.125f;
    }
    if (!f.needs_output(0)) return;
    must(saved, "saved"), must(y, "y");
    for (size_t k = 0; k < count_; ++k) y[k] = saved[k] * saved[k];
  }
  void backward(View &f) override {
    float *saved = must(f.fslot(0), "saved"), *scratch = must(static_cast<float *>(f.scratch()), "scratch");
    const float *g = f.fgrad(0);
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    for (size_t j = 0; j < factor_; ++j)
      for (size_t k = 0; k < count_; ++k) scratch[j * count_ + k] = saved[k];
    for (size_t k = 0; k < count_; ++k) saved[k] = scratch[(factor_ - 1) * count_ + k] * (g != nullptr ? g[k] : 1.0f);
    if (dx == nullptr) return;
    for (size_t k = 0; k < count_; ++k) put(dx, k, saved[k], add);
  }

 private:
  size_t count_, factor_;
};

// Dropout by a generator of the host's that moves on with each draw: save and restore make the replay draw the same.
class HostDropout : public Layer {
 public:
  HostDropout(const std::string &name, size_t count) : count_(count) {
    spec.name = name;
    spec.slots = {{.name = "mask", .bytes = floats(count), .reads_all = false}};
    spec.outputs = {{.name = "y", .bytes = floats(count)}};
    spec.input_flags = {CKPT_INPUT_BACKWARD_IGNORES};
    spec.state_bytes = sizeof(uint64_t);
    statistics.assign(1, 0);
  }
  uint64_t state = 88172645463325252ull;
  void save(void *to) override { std::memcpy(to, &state, sizeof state); }
  void restore(const void *from) override {
    std::memcpy(&state, from, sizeof state);
    statistics[0] = static_cast<double>(state >> 12);
  }
  void forward(View &f) override {
    const float *x = f.fin(0);
    float *mask = f.fslot(0), *y = f.fout(0);
    if (f.needs(0)) {
      must(mask, "mask");
      for (size_t k = 0; k < count_; ++k) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        mask[k] = (state & 3) != 0 ? 1.25f : 0.0f;
      }
      statistics[0] = static_cast<double>(state >> 12);
    }
    if (!f.needs_output(0)) return;
    must(x, "x"), must(mask, "mask"), must(y, "y");
    for (size_t k = 0; k < count_; ++k) y[k] = x[k] * mask[k];
  }
  void backward(View &f) override {
    const float *mask = must(f.fslot(0), "mask"), *g = f.fgrad(0);
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    if (dx == nullptr) return;
    for (size_t k = 0; k < count_; ++k) put(dx, k, (g != nullptr ? g[k] : 1.0f) * mask[k], add);
  }

 private:
  size_t count_;
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
