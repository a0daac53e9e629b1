// Costs on a device whose work goes on after a call has returned. What the clock is on the CPU, events are there: points of the arena's
// stream around the work. Nobody waits for them. When a step has ended its points are kept, and the begin of a later recording looks
// whether the device has got past the last one; until it has, no other step is timed.
#pragma once

#include <memory>
#include <vector>

#include "base/bits.h"
#include "device/device.h"
#include "tape/known.h"

namespace ckpt::tape {

// Events that are used again and again.
class EventPool {
 public:
  explicit EventPool(const device::Device &device) noexcept : device_(&device) {}
  ~EventPool();
  EventPool(const EventPool &) = delete;
  EventPool &operator=(const EventPool &) = delete;
  Status take(void **out);
  void give_back(void *event) noexcept { free_.push_back(event); }  // there is room for all that were made

 private:
  const device::Device *device_;
  std::vector<void *> free_;
  size_t made_ = 0;
};

// Of one recording.
struct Timeline {
  enum class What : uint8_t { item, backward, recompute };
  struct Span {
    uint32_t from, to;  // points
    uint32_t index;     // item: in the graph; backward: node
    What what;
  };
  struct FirstRun {
    uint32_t from, to, node;
    Bits todo;
  };

  std::vector<void *> points;  // events, in the stream's order
  std::vector<Span> spans;
  std::vector<FirstRun> first_runs;

  bool empty() const noexcept { return points.empty(); }
  void clear(EventPool *pool) noexcept;
};

struct Seconds {
  std::vector<double> items, backward;  // per item and node of a graph; < 0: not measured
  double forward = 0, recompute = 0, all_backward = 0;
};

// Adds `total`, the time of a whole first run, to what its `needs` have announced: what none of them did belongs to the first output,
// or to the last slot where there is no output; what nobody announced costs nothing by itself.
void share_first_run(const plan::Node &node, const Bits &todo, double total, std::vector<double> *item_seconds);

// A step that has ended, and what its costs are for.
struct Timed {
  enum class Use : uint8_t { statistics, costs, sample };
  Timeline timeline;
  KnownPtr known;  // its graph numbers the items
  Use use = Use::statistics;
  uint64_t number = 0;  // of the step among the tape's: whose statistics these are
};

// All points of `timeline` have been reached.
Status read_timeline(const device::Device &device, const Timeline &timeline, const plan::Graph &graph, Seconds *out);

}  // namespace ckpt::tape
