// Layers with one special thing each: groups, members made alone, KEEP, host state, scratch, CONSUMED.
#pragma once

#include "ops_layers.h"

namespace ops {

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

}  // namespace ops
