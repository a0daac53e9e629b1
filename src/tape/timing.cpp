#include "tape/timing.h"

#include <algorithm>

namespace ckpt::tape {

EventPool::~EventPool() {
  for (void *event : free_) device_->event_destroy(event);
}

Status EventPool::take(void **out) {
  *out = nullptr;
  if (free_.empty()) {
    if (free_.capacity() <= made_) free_.reserve(std::max(2 * made_, size_t{64}));
    void *event = nullptr;
    CKPT_TRY(device_->event_create(&event));
    ++made_;
    free_.push_back(event);
  }
  *out = free_.back();
  free_.pop_back();
  return CKPT_OK;
}

void Timeline::clear(EventPool *pool) noexcept {
  for (void *event : points) pool->give_back(event);
  points.clear();
  spans.clear();
  first_runs.clear();
}

void share_first_run(const plan::Node &node, const Bits &todo, double total, std::vector<double> *item_seconds) {
  const plan::Shape &shape = *node.shape;
  double named = 0;
  for (uint32_t k = 0; k < shape.item_count(); ++k) {
    double &seconds = (*item_seconds)[node.first_item + k];
    if (todo.has(k)) seconds = std::max(0.0, seconds);
    named += std::max(0.0, seconds);
  }
  const uint32_t rest = shape.output_count() > 0 ? shape.slot_count() : shape.item_count() - 1;
  if (shape.item_count() == 0 || total <= named) return;
  double &seconds = (*item_seconds)[node.first_item + rest];
  seconds = std::max(0.0, seconds) + (total - named);
}

Status read_timeline(const device::Device &device, const Timeline &timeline, const plan::Graph &graph, Seconds *out) {
  *out = {};
  out->items.assign(graph.item_bytes.size(), -1);
  out->backward.assign(graph.node_count(), -1);
  for (const Timeline::Span &span : timeline.spans) {
    double seconds = 0;
    CKPT_TRY(device.event_elapsed(timeline.points[span.from], timeline.points[span.to], &seconds));
    switch (span.what) {
      case Timeline::What::recompute: out->recompute += seconds; break;
      case Timeline::What::item: out->items[span.index] = std::max(0.0, out->items[span.index]) + seconds; break;
      case Timeline::What::backward:
        out->backward[span.index] = seconds;
        out->all_backward += seconds;
        break;
    }
  }
  for (const Timeline::FirstRun &run : timeline.first_runs) {
    double seconds = 0;
    CKPT_TRY(device.event_elapsed(timeline.points[run.from], timeline.points[run.to], &seconds));
    out->forward += seconds;
    share_first_run(graph.nodes[run.node], run.todo, seconds, &out->items);
  }
  return CKPT_OK;
}

}  // namespace ckpt::tape
