// Random nets from a list of numbers ("genes"), so that a property test can shrink them: four genes a node.
#pragma once

#include "ops_net.h"

namespace ops {

struct RandomNet {
  Net net;
  bool has_again = false;      // a slot marked RECOMPUTE
  bool has_keep = false;       // something marked KEEP
  bool has_by_hand = false;    // a segment without forward
  std::vector<std::string> slot_names;  // of slots without flags that a pattern may not contradict
};

class RandomNetMaker {
 public:
  explicit RandomNetMaker(const std::vector<uint32_t> &genes) : genes_(genes) {}

  RandomNet make() {
    rows_ = 1 + next() % 3;
    const uint32_t inputs = 1 + next() % 3;
    for (uint32_t k = 0; k < inputs; ++k) {
      const size_t columns = k == 0 || next() % 2 == 0 ? kWidths[0] : kWidths[next() % 3];
      const uint32_t how = next();
      add_value(r_.net.input(rows_ * columns, how % 3 != 0, 3 + k, how % 4 == 1), columns, how % 3 != 0);
    }
    while (at_ + 4 <= genes_.size()) node();
    finish();
    return std::move(r_);
  }

 private:
  struct V {
    uint32_t value;
    size_t columns;
    bool root_able;
    bool read = false;
  };
  static constexpr size_t kWidths[3] = {24, 7, 40};

  uint32_t next() { return at_ < genes_.size() ? genes_[at_++] : 0; }
  void add_value(uint32_t value, size_t columns, bool root_able) { values_.push_back({value, columns, root_able}); }

  // Mostly one of the latest values, sometimes any: chains with skips.
  size_t pick(uint32_t gene) {
    const size_t n = values_.size();
    const size_t k = gene % 4 != 0 ? n - 1 : n - 1 - (gene / 4) % n;
    values_[k].read = true;
    return k;
  }

  void node() {
    const uint32_t kind = next(), a = next(), b = next(), c = next();
    const std::string name = "n" + std::to_string(r_.net.nodes.size());
    // A layer that was used before, with the same width: shared weights.
    const size_t x = pick(a);
    const size_t columns = values_[x].columns, count = rows_ * columns;
    const uint32_t v = values_[x].value;
    Net &net = r_.net;
    switch (kind % 16) {
      case 0: {
        const size_t out = kWidths[b % 3];
        add_value(net.then<Linear>(v, name, rows_, columns, out, c), out, true);
        break;
      }
      case 1: case 2: case 3: {
        uint32_t pre = 0, act = 0;
        if (c % 7 == 1) act = CKPT_SLOT_RECOMPUTE, r_.has_again = true;
        if (c % 7 == 2) pre = CKPT_SLOT_KEEP, r_.has_keep = true;
        if (c % 7 == 3) pre = CKPT_SLOT_RECOMPUTE, act = CKPT_SLOT_KEEP, r_.has_again = r_.has_keep = true;
        auto *layer = net.make<Mlp>(name, count, b, pre, act);
        if (c % 11 == 5) layer->replayable = false, r_.has_by_hand = true, layer->spec.slots[0].flags = layer->spec.slots[1].flags = 0;
        else if (pre == 0 && act == 0) r_.slot_names.push_back(name + "/act");
        add_value(net.add(layer, {v}), columns, true);
        break;
      }
      case 4: add_value(net.then<Relu>(v, name, count, b % 2 == 0, c % 2 == 0), columns, true); break;
      case 5: case 6: add_value(net.then<Dropout>(v, name, count, b % 2 == 0), columns, true); break;
      case 7: add_value(net.then<Scale>(v, name, count, b, 0.25f), columns, true); break;
      case 8: case 9: {
        size_t y = x;
        for (size_t k = 0; k < values_.size(); ++k)
          if (values_[(b + k) % values_.size()].columns == columns) {
            y = (b + k) % values_.size();
            break;
          }
        values_[y].read = true;
        Layer *layer = kind % 16 == 8 ? static_cast<Layer *>(net.make<Add>(name, count, c % 2 == 0)) : net.make<Mul>(name, count);
        add_value(net.add(layer, {v, values_[y].value}), columns, true);
        break;
      }
      case 10: {
        auto *split = net.make<Split>(name, rows_ * columns, b, c % 3 == 0 ? uint32_t{CKPT_OUTPUT_NO_GRAD} : c % 3 == 1 ? uint32_t{CKPT_OUTPUT_KEEP} : 0u);
        r_.has_keep |= c % 3 == 1;
        const uint32_t first = net.add(split, {v});
        if (rows_ == 1) add_value(first + 1, split->half(), c % 3 != 0);
        add_value(first, columns, true);
        break;
      }
      case 11: add_value(net.then<Norm>(v, name, rows_, columns, b), columns, true); r_.slot_names.push_back(name + "/xhat"); break;
      case 12: add_value(net.then<Twin>(v, name, count), columns, true); break;
      case 13: add_value(net.then<Scratchy>(v, name, count, 1 + b % 8), columns, true); break;
      case 14:
        if (b % 2 == 0) {
          add_value(net.then<Router>(v, name, count), columns, true);
          r_.has_keep = true;
        } else {
          add_value(net.then<BatchNorm>(v, name, rows_, columns, c % 2 == 0, c), columns, true);
        }
        break;
      case 15: {
        // The layer of an earlier node with this width, once more: its weight gradient is a sum.
        for (const NetNode &n : net.nodes) {
          const Spec &s = n.layer->spec;
          if (n.inputs.size() != 1 || s.outputs.size() != 1 || s.outputs[0].bytes != floats(count) || dynamic_cast<Linear *>(n.layer) != nullptr ||
              dynamic_cast<Dropout *>(n.layer) != nullptr || !s.slots.empty())
            continue;
          add_value(net.add(n.layer, {v}), columns, true);
          return;
        }
        add_value(net.then<HostDropout>(v, name, count), columns, true);
        break;
      }
    }
  }

  void finish() {
    Net &net = r_.net;
    if (net.nodes.empty()) {
      const V &v = values_[0];
      add_value(net.then<Scale>(v.value, "only", rows_ * v.columns, 1u), v.columns, true);
    }
    const size_t first_node_value = net.inputs.size();
    const V last = values_.back();
    if (last.value >= first_node_value && last.root_able) {
      const uint32_t loss = net.then<Loss>(last.value, "loss", rows_count(last), next() % 2 == 0);
      net.root(loss, next() % 3 == 0 ? std::vector<float>{0.75f} : std::vector<float>{});
    }
    // Another root, with a gradient; it may be read by others too.
    for (const V &v : values_)
      if (v.value >= first_node_value && v.root_able && next() % 5 == 1) {
        std::vector<float> grad(rows_count(v));
        for (size_t k = 0; k < grad.size(); ++k) grad[k] = 0.01f * static_cast<float>(k % 13) - 0.05f;
        net.root(v.value, std::move(grad));
        break;
      }
    if (net.roots.empty())
      for (size_t k = values_.size(); k-- > 0 && net.roots.empty();)
        if (values_[k].value >= first_node_value && values_[k].root_able) net.root(values_[k].value, std::vector<float>(rows_count(values_[k]), 0.5f));
  }
  size_t rows_count(const V &v) const { return rows_ * v.columns; }

  const std::vector<uint32_t> &genes_;
  size_t at_ = 0;
  size_t rows_ = 1;
  RandomNet r_;
  std::vector<V> values_;
};

inline RandomNet random_net(const std::vector<uint32_t> &genes) { return RandomNetMaker(genes).make(); }

}  // namespace ops
