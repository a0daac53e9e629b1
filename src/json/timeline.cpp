#include "json/timeline.h"

#include "json/writer.h"
#include "plan/simulate.h"

namespace ckpt::json {
namespace {

enum Track : uint32_t { kForward = 1, kRecompute = 2, kBackward = 3 };

class TraceWriter {
 public:
  explicit TraceWriter(const plan::Graph *names) : names_(names) {
    w_.object(true).key("displayTimeUnit").text("ms").key("traceEvents").list(true);
    meta("process_name", 0, "ckpt");
    meta("thread_name", kForward, "forward");
    meta("thread_name", kRecompute, "recompute");
    meta("thread_name", kBackward, "backward");
  }

  void duration(Track track, uint32_t segment, double start, double seconds) {
    constexpr const char *kKinds[] = {"", "forward", "recompute", "backward"};
    w_.object().key("name").text(name(segment)).key("cat").text(kKinds[track]).key("ph").text("X");
    w_.key("ts").real(start * 1e6).key("dur").real(seconds * 1e6).key("pid").number(1).key("tid").number(track);
    w_.key("args").object().key("segment").number(segment).key("recompute").flag(track == kRecompute).end().end();
  }

  void bytes(double at, size_t bytes) {
    w_.object().key("name").text("bytes live").key("ph").text("C").key("ts").real(at * 1e6).key("pid").number(1);
    w_.key("args").object().key("bytes").number(bytes).end().end();
  }

  void instant(const char *what, uint32_t index, double at) {
    w_.object().key("name").text(what + std::string(" ") + std::to_string(index)).key("cat").text("memory").key("ph").text("i").key("s").text("t");
    w_.key("ts").real(at * 1e6).key("pid").number(1).key("tid").number(kForward).end();
  }

  std::string finish(size_t lost) {
    w_.end();
    if (lost != 0) w_.key("otherData").object().key("events_lost").number(lost).end();
    w_.end();
    return w_.finish();
  }

 private:
  void meta(const char *kind, uint32_t track, const char *name) {
    w_.object().key("name").text(kind).key("ph").text("M").key("pid").number(1);
    if (track != 0) w_.key("tid").number(track);
    w_.key("args").object().key("name").text(name).end().end();
  }
  std::string name(uint32_t segment) const {
    if (names_ != nullptr && segment < names_->node_count() && valid_utf8(names_->nodes[segment].shape->name())) return names_->nodes[segment].shape->name();
    return "segment " + std::to_string(segment);
  }

  const plan::Graph *names_;
  Writer w_;
};

}  // namespace

// A forward or backward lasts until the next event: its memory is taken before its callback and given back after it.
std::string write_trace(const std::vector<TraceEvent> &events, size_t lost, const plan::Graph *names) {
  TraceWriter w(names);
  const auto at = [&](size_t k) { return static_cast<double>(events[k].nanoseconds - events[0].nanoseconds) * 1e-9; };
  bool ends_run = false;
  for (size_t k = 0; k < events.size(); ++k) {
    const TraceEvent &e = events[k];
    const bool run = e.what == CKPT_ACTION_FORWARD || e.what == CKPT_ACTION_BACKWARD;
    if (run) {
      const double end = k + 1 < events.size() ? at(k + 1) : at(k);
      w.duration(e.what == CKPT_ACTION_BACKWARD ? kBackward : e.is_recompute ? kRecompute : kForward, e.index, at(k), end - at(k));
    } else if (!ends_run) {
      w.instant(e.what == CKPT_ACTION_DROP ? "drop slots of segment" : "free boundary", e.index, at(k));
    }
    ends_run = run;
    w.bytes(at(k), e.bytes);
  }
  return w.finish(lost);
}

Status write_plan_trace(const ckpt_plan &plan, std::string *out) {
  const plan::Graph &graph = *plan.graph;
  const plan::GradientMap gradients = plan::derive_gradients(graph, plan.roots);
  plan::PaperMachine machine(&graph, plan::Paper{graph.rule, arena::Placer()});
  const arena::Placer &placer = machine.backend().placer;
  TraceWriter w(&graph);
  CKPT_TRY(machine.start(gradients));
  double now = 0;
  w.bytes(now, placer.in_use());
  for (const plan::Action &a : plan.planned.program.actions) {
    switch (a.kind) {
      case plan::ActionKind::forward: {
        plan::PaperMachine::Run run;
        CKPT_TRY(machine.begin_forward(a.index, a.want, a.in_place, &run));
        w.bytes(now, placer.in_use());
        const double seconds = graph.seconds(a.index, run.made);
        w.duration(run.first ? kForward : kRecompute, a.index, now, seconds);
        now += seconds;
        machine.end_forward(run);
        break;
      }
      case plan::ActionKind::backward: {
        plan::PaperMachine::BackwardRun run;
        CKPT_TRY(machine.begin_backward(a.index, a.want, gradients, &run));
        w.bytes(now, placer.in_use());
        const double seconds = run.runs ? graph.nodes[a.index].backward_seconds : 0;
        if (run.runs) w.duration(kBackward, a.index, now, seconds);
        now += seconds;
        machine.end_backward(run);
        break;
      }
      case plan::ActionKind::free:
        CKPT_TRY(machine.free_value(a.index));
        w.instant("free boundary", a.index, now);
        break;
      case plan::ActionKind::drop:
        CKPT_TRY(machine.drop(a.index, a.want));
        w.instant("drop slots of segment", a.index, now);
        break;
    }
    w.bytes(now, placer.in_use());
  }
  *out = w.finish(0);
  return CKPT_OK;
}

}  // namespace ckpt::json
