// The machine beyond legal programs on a boundless arena: allocations that fail, runs that are given up, recordings that grow,
// backward passes that are repeated. On a backend that knows each block and refuses to free one twice.
#include "plan/machine.h"

#include <gtest/gtest.h>

#include "support/plan_walk.h"

namespace plan_test {
namespace {

struct Book {
  std::map<BlockId, size_t> live;
  size_t in_use = 0, peak = 0, requests = 0;
  size_t fail_at = 0;  // this request finds no memory; 0: none
  BlockId next = 0;
};

struct Strict {
  std::shared_ptr<Book> book = std::make_shared<Book>();

  BlockId allocate(size_t bytes, Side) {
    if (++book->requests == book->fail_at) return kNoBlock;
    book->live[book->next] = bytes;
    book->in_use += bytes;
    book->peak = std::max(book->peak, book->in_use);
    return book->next++;
  }
  void free(BlockId b) {
    const auto at = book->live.find(b);
    if (at == book->live.end()) {
      ADD_FAILURE() << "block " << b << " is given back but not live";
      return;
    }
    book->in_use -= at->second;
    book->live.erase(at);
  }
};
using StrictMachine = Machine<Strict>;

Status act(StrictMachine *m, const GradientMap &gradients, const Action &a) {
  switch (a.kind) {
    case ActionKind::forward: {
      StrictMachine::Run run;
      CKPT_TRY(m->begin_forward(a.index, a.want, a.in_place, &run));
      m->end_forward(run);
      return CKPT_OK;
    }
    case ActionKind::backward: {
      StrictMachine::BackwardRun run;
      CKPT_TRY(m->begin_backward(a.index, a.want, gradients, &run));
      m->end_backward(run);
      return CKPT_OK;
    }
    case ActionKind::free: return m->free_value(a.index);
    case ActionKind::drop: return m->drop(a.index, a.want);
  }
  return CKPT_ERROR_INTERNAL;
}

bool same(const LiveState &a, const LiveState &b) { return a.live == b.live && a.input_live == b.input_live && a.nodes_run == b.nodes_run && a.done == b.done; }

struct Story {
  RandomGraph r;
  GradientMap gradients;
  std::vector<Action> actions;

  explicit Story(uint64_t seed) {
    Genes genes = Genes::endless(seed ^ 0x77000000000ull);
    r = random_graph(&genes);
    gradients = derive_gradients(r.graph, r.roots);
    actions = Walk(r, &genes).program(genes.below(20));
  }
};

// ---- random programs ----

// After any number of actions everything can be given back, each block once.
TEST(Machine, ReleasesAllFromAnyState) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Story story(seed);
    for (size_t stop = 0; stop <= story.actions.size(); ++stop) {
      Strict backend;
      StrictMachine m(&story.r.graph, backend);
      ASSERT_EQ(m.start(story.gradients), CKPT_OK);
      for (size_t k = 0; k < stop; ++k) ASSERT_EQ(act(&m, story.gradients, story.actions[k]), CKPT_OK) << last_error();
      m.release_all();
      ASSERT_TRUE(backend.book->live.empty()) << "seed " << seed << " after " << stop << " actions\n" << text(story.r) << text(story.actions);
      m.release_all();  // there is nothing left
    }
  }
}

// The k-th request fails, for every k: a forward then leaves nothing behind and can be tried again; a backward leaves only
// gradients, which go with the rest.
TEST(Machine, EveryRequestMayFail) {
  size_t failed_forwards = 0, failed_backwards = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Story story(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text(story.r) + text(story.actions));
    for (size_t fail_at = 1;; ++fail_at) {
      Strict backend;
      Book &book = *backend.book;
      StrictMachine m(&story.r.graph, backend);
      book.fail_at = fail_at;
      Status status = m.start(story.gradients);
      size_t k = 0;
      for (; status == CKPT_OK && k < story.actions.size(); ++k) {
        const LiveState before = m.state();
        const std::map<BlockId, size_t> blocks = book.live;
        const Action &a = story.actions[k];
        status = act(&m, story.gradients, a);
        if (status == CKPT_OK) continue;
        ASSERT_EQ(status, CKPT_ERROR_BUDGET);
        EXPECT_EQ(m.shortage().node, a.index);
        ASSERT_TRUE(same(before, m.state()));
        if (a.kind == ActionKind::forward) {
          ASSERT_EQ(blocks, book.live);
          ASSERT_EQ(act(&m, story.gradients, a), CKPT_OK) << last_error();
          ++failed_forwards;
        } else {
          ASSERT_EQ(a.kind, ActionKind::backward);
          ++failed_backwards;
        }
        break;
      }
      m.release_all();
      ASSERT_TRUE(book.live.empty());
      if (status == CKPT_OK) break;
    }
  }
  EXPECT_GT(failed_forwards, 1000u);
  EXPECT_GT(failed_backwards, 300u);
}

// A callback fails: what its run took is gone, and the machine is where it was.
TEST(Machine, RunsAreGivenUp) {
  size_t over_inputs = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Story story(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text(story.r) + text(story.actions));
    Strict backend;
    StrictMachine m(&story.r.graph, backend);
    ASSERT_EQ(m.start(story.gradients), CKPT_OK);
    for (const Action &a : story.actions) {
      const LiveState before = m.state();
      const std::map<BlockId, size_t> blocks = backend.book->live;
      if (a.kind == ActionKind::forward) {
        StrictMachine::Run run;
        ASSERT_EQ(m.begin_forward(a.index, a.want, a.in_place, &run), CKPT_OK) << last_error();
        over_inputs += run.in_place.count();
        m.abandon_forward(run);
        ASSERT_TRUE(same(before, m.state()));
        ASSERT_EQ(blocks, backend.book->live);
        run.made.todo.each([&](uint32_t k) {
          const bool was_live = before.live[a.index].has(k);
          EXPECT_TRUE(was_live || m.item_block(a.index, k) == kNoBlock);
        });
      }
      ASSERT_EQ(act(&m, story.gradients, a), CKPT_OK) << last_error();
    }
  }
  EXPECT_GT(over_inputs, 50u);
}

// From any state on, a copy over another backend does what the original does.
TEST(Machine, LooksAheadOnACopy) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Story story(seed);
    const size_t half = story.actions.size() / 2;
    PaperMachine m(&story.r.graph, Paper{story.r.graph.rule, arena::Placer()});
    ASSERT_EQ(m.start(story.gradients), CKPT_OK);
    for (size_t k = 0; k < half; ++k) ASSERT_EQ(machine_act(&m, story.gradients, story.actions[k]), CKPT_OK) << last_error();
    const LiveState before = m.state();
    PaperMachine copy = m.with_backend(m.backend());
    for (size_t k = half; k < story.actions.size(); ++k) ASSERT_EQ(machine_act(&copy, story.gradients, story.actions[k]), CKPT_OK) << last_error();
    ASSERT_TRUE(same(before, m.state()));
    for (size_t k = half; k < story.actions.size(); ++k) ASSERT_EQ(machine_act(&m, story.gradients, story.actions[k]), CKPT_OK) << last_error();
    ASSERT_TRUE(same(copy.state(), m.state()));
    ASSERT_EQ(copy.backend().placer.height(), m.backend().placer.height());
    ASSERT_EQ(copy.backend().placer.peak_in_use(), m.backend().placer.peak_in_use());
  }
}

// The same nodes one by one: a recording that nobody knew.
TEST(Machine, GrowsWithItsGraph) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Story story(seed);
    const Graph &whole = story.r.graph;
    if (whole.root_grads_in_arena) continue;  // those are there from the start, so the graph is known
    Strict all, grown;
    StrictMachine known(&whole, all);
    ASSERT_EQ(known.start(story.gradients), CKPT_OK);
    Graph graph;
    graph.rule = whole.rule;
    for (uint32_t v : whole.inputs) graph.add_input(whole.values[v].bytes, whole.values[v].grad_bytes, whole.values[v].caller, whole.values[v].grad);
    StrictMachine m(&graph, grown);
    ASSERT_EQ(m.start(story.gradients), CKPT_OK);
    for (const Action &a : story.actions) {
      if (a.kind == ActionKind::forward && a.index == graph.node_count()) {
        const Node &n = whole.nodes[a.index];
        const size_t *bytes = whole.item_bytes.data() + n.first_item;
        graph.add_node(n.shape, whole.inputs_of(a.index), bytes, bytes + n.shape->slot_count());
        for (uint32_t k = 0; k < n.shape->output_count(); ++k) graph.values[n.first_value + k].grad_bytes = whole.values[n.first_value + k].grad_bytes;
        m.grow();
      }
      if ((a.kind == ActionKind::drop && a.index >= graph.node_count()) || (a.kind == ActionKind::free && a.index >= graph.value_count())) continue;
      ASSERT_EQ(act(&known, story.gradients, a), CKPT_OK) << last_error();
      ASSERT_EQ(act(&m, story.gradients, a), CKPT_OK) << last_error();
      ASSERT_EQ(all.book->in_use, grown.book->in_use);
    }
    EXPECT_EQ(all.book->peak, grown.book->peak);
    EXPECT_EQ(all.book->requests, grown.book->requests);
  }
}

// ---- by hand ----

Item item(const char *name, size_t bytes, std::vector<uint32_t> reads = {}, uint32_t flags = 0) {
  Item it;
  it.name = name;
  it.bytes = bytes;
  it.flags = flags;
  for (uint32_t r : reads) it.reads.set(r);
  return it;
}

// Two nodes of: t (10 bytes, transient), a (20, from t), output (30, from a); scratch 5 and 7.
struct Chain {
  Graph graph;
  GradientMap gradients;

  explicit Chain(uint32_t flags = 0, uint32_t output_flags = 0) {
    graph.rule.alignment_bytes = 1;
    graph.add_input(3, 0, true, CKPT_GRAD_ARENA);
    for (uint32_t i = 0; i < 2; ++i) {
      auto s = Shape::create("block" + std::to_string(i), {item("t", 10, {}, CKPT_SLOT_TRANSIENT), item("a", 20, {0}, flags)}, {item("o", 30, {1}, output_flags)}, {0}, 5, 7, true, false);
      EXPECT_TRUE(s.ok()) << last_error();
      graph.shapes.push_back(std::make_shared<const Shape>(std::move(*s)));
      graph.add_node(graph.shapes.back().get(), std::vector<uint32_t>{i}, nullptr, nullptr);
    }
    gradients = derive_gradients(graph, default_roots(graph));
  }
};
const Bits kT = Bits::one(0), kA = Bits::one(1), kO = Bits::one(2);

void refused(Status status, const char *part) {
  EXPECT_EQ(status, CKPT_ERROR_INVALID_PLAN);
  EXPECT_NE(std::string(last_error()).find(part), std::string::npos) << last_error();
}

// What outlives the action lies below what does not, so that the frontier comes down again.
TEST(Machine, PlacesWhatStaysFirst) {
  const Chain c;
  PaperMachine m(&c.graph, Paper{c.graph.rule, arena::Placer()});
  ASSERT_EQ(m.start(c.gradients), CKPT_OK);
  PaperMachine::Run run;
  const arena::Placer &placer = m.backend().placer;
  ASSERT_EQ(m.begin_forward(0, kA | kO, {}, &run), CKPT_OK);
  EXPECT_EQ(run.made.todo, kT | kA | kO);
  EXPECT_TRUE(run.first);
  EXPECT_EQ(placer.offset(m.item_block(0, 1)), 0u);
  EXPECT_EQ(placer.offset(m.item_block(0, 2)), 20u);
  EXPECT_EQ(placer.offset(m.item_block(0, 0)), 50u);
  EXPECT_EQ(placer.offset(run.scratch), 60u);
  EXPECT_EQ(placer.in_use(), 65u);
  m.end_forward(run);
  EXPECT_EQ(placer.in_use(), 50u);
  EXPECT_EQ(placer.low_frontier(), 50u);
  EXPECT_EQ(m.item_block(0, 0), kNoBlock);
  EXPECT_EQ(m.value_block(1), m.item_block(0, 2));
  EXPECT_TRUE(m.value_live(1));
  EXPECT_FALSE(m.value_live(2));
}

TEST(Machine, GradientsFollowTheBackwards) {
  const Chain c;
  Strict backend;
  StrictMachine m(&c.graph, backend);
  ASSERT_EQ(m.start(c.gradients), CKPT_OK);
  for (uint32_t i = 0; i < 2; ++i) ASSERT_EQ(act(&m, c.gradients, {ActionKind::forward, i, kA | kO, {}}), CKPT_OK);
  EXPECT_EQ(backend.book->in_use, 100u);
  StrictMachine::BackwardRun run;
  ASSERT_EQ(m.begin_backward(1, {}, c.gradients, &run), CKPT_OK);
  EXPECT_EQ(backend.book->in_use, 137u);  // the last output's gradient is the caller's
  m.abandon_backward(run);
  EXPECT_EQ(backend.book->in_use, 130u);  // the gradient stays
  ASSERT_EQ(act(&m, c.gradients, {ActionKind::backward, 1, {}, {}}), CKPT_OK);
  EXPECT_EQ(backend.book->in_use, 80u);
  EXPECT_NE(m.grad_block(1), kNoBlock);
  ASSERT_EQ(act(&m, c.gradients, {ActionKind::backward, 0, {}, {}}), CKPT_OK);
  EXPECT_EQ(backend.book->in_use, 3u);  // the input's gradient is the user's to read
  EXPECT_EQ(m.done(), 0u);
  refused(act(&m, c.gradients, {ActionKind::backward, 0, {}, {}}), "backward 0 out of order");
}

TEST(Machine, ARetainedRecordingGoesBackAgain) {
  const Chain c;
  Strict backend;
  StrictMachine m(&c.graph, backend);
  ASSERT_EQ(m.start(c.gradients), CKPT_OK);
  for (uint32_t i = 0; i < 2; ++i) ASSERT_EQ(act(&m, c.gradients, {ActionKind::forward, i, kA | kO, {}}), CKPT_OK);
  for (int pass = 0; pass < 3; ++pass) {
    backend.book->peak = 0;
    ASSERT_EQ(act(&m, c.gradients, {ActionKind::backward, 1, kA | kO, {}}), CKPT_OK) << last_error();
    ASSERT_EQ(act(&m, c.gradients, {ActionKind::backward, 0, kA | kO, {}}), CKPT_OK) << last_error();
    EXPECT_EQ(backend.book->in_use, 103u);
    EXPECT_EQ(backend.book->peak, 140u);  // 100, two gradients of 30 and 3, scratch
    m.rewind_backward();
    EXPECT_EQ(backend.book->in_use, 100u);
  }
}

TEST(Machine, SaysWhatIsShort) {
  const Chain c;
  arena::Placer placer;
  placer.set_limit(64);
  PaperMachine m(&c.graph, Paper{c.graph.rule, placer});
  ASSERT_EQ(m.start(c.gradients), CKPT_OK);
  PaperMachine::Run run;
  EXPECT_EQ(m.begin_forward(0, kA | kO, {}, &run), CKPT_ERROR_BUDGET);
  EXPECT_EQ(m.shortage().bytes, 5u);  // scratch
  EXPECT_EQ(m.shortage().node, 0u);
  EXPECT_EQ(m.shortage().item, kNone);
  EXPECT_EQ(m.backend().placer.in_use(), 0u);
  m.backend().placer.set_limit(55);
  EXPECT_EQ(m.begin_forward(0, kA | kO, {}, &run), CKPT_ERROR_BUDGET);
  EXPECT_EQ(m.shortage().bytes, 10u);
  EXPECT_EQ(m.shortage().item, 0u);
  m.backend().placer.set_limit(65);
  EXPECT_EQ(m.begin_forward(0, kA | kO, {}, &run), CKPT_OK);
}

TEST(Machine, TextsOfRefusals) {
  const Chain c;
  Strict backend;
  StrictMachine m(&c.graph, backend);
  const auto forward = [&](uint32_t i, const Bits &want) { return act(&m, c.gradients, {ActionKind::forward, i, want, {}}); };
  const auto backward = [&](uint32_t i) { return act(&m, c.gradients, {ActionKind::backward, i, {}, {}}); };
  ASSERT_EQ(m.start(c.gradients), CKPT_OK);
  refused(forward(2, kO), "forward 2: there are 2 segments");
  refused(forward(1, kO), "forward 1 before the first run of segment 0");
  refused(forward(0, Bits::one(3)), "'block0' does not have");
  refused(forward(0, kA), "without all its outputs");
  refused(backward(1), "backward 1 before the first run of segment 0");
  ASSERT_EQ(forward(0, kO), CKPT_OK);
  refused(m.free_value(0), "the caller's memory");
  refused(m.free_value(2), "free 2: not live");
  refused(m.free_value(3), "there are 3 boundaries");
  refused(m.drop(0, kA), "not live");
  refused(m.drop(0, kO), "drop 0: a slot");
  refused(m.drop(2, kA), "there are 2 segments");
  ASSERT_EQ(m.free_value(1), CKPT_OK);
  refused(forward(1, kO), "forward 1: boundary 1 is not live");
  ASSERT_EQ(forward(0, kO), CKPT_OK);
  ASSERT_EQ(forward(1, kO), CKPT_OK);
  refused(backward(0), "backward 0 out of order: expected backward 1");
  refused(backward(1), "'a' of segment 'block1' is not live");
  ASSERT_EQ(forward(1, kA), CKPT_OK);
  ASSERT_EQ(m.free_value(1), CKPT_OK);
  refused(backward(1), "backward 1: boundary 1 is not live");
  ASSERT_EQ(forward(0, kO), CKPT_OK);
  ASSERT_EQ(backward(1), CKPT_OK) << last_error();
  refused(forward(1, kO), "forward 1 after its backward");
}

TEST(Machine, MarkedItemsAreMadeOnce) {
  const Chain c(CKPT_SLOT_KEEP, CKPT_OUTPUT_KEEP);
  Strict backend;
  StrictMachine m(&c.graph, backend);
  ASSERT_EQ(m.start(c.gradients), CKPT_OK);
  ASSERT_EQ(act(&m, c.gradients, {ActionKind::forward, 0, kA | kO, {}}), CKPT_OK);
  refused(m.drop(0, kA), "marked KEEP");
  refused(m.free_value(1), "marked KEEP");
  EXPECT_EQ(m.free_value(1, true), CKPT_OK);  // a pass without backward
  refused(act(&m, c.gradients, {ActionKind::forward, 0, kO, {}}), "would make again");
  EXPECT_EQ(act(&m, c.gradients, {ActionKind::forward, 0, kT, {}}), CKPT_OK) << last_error();  // not marked
}

TEST(Machine, MarkedSlotsDoNotLiveOn) {
  const Chain c(CKPT_SLOT_RECOMPUTE);
  Strict backend;
  StrictMachine m(&c.graph, backend);
  ASSERT_EQ(m.start(c.gradients), CKPT_OK);
  ASSERT_EQ(act(&m, c.gradients, {ActionKind::forward, 0, kA | kO, {}}), CKPT_OK);
  refused(act(&m, c.gradients, {ActionKind::forward, 1, kO, {}}), "an action on segment 1 while slots of segment 0");
  EXPECT_EQ(act(&m, c.gradients, {ActionKind::forward, 0, kT, {}}), CKPT_OK) << last_error();  // its own
  ASSERT_EQ(m.drop(0, kA), CKPT_OK);
  ASSERT_EQ(act(&m, c.gradients, {ActionKind::forward, 1, kO, {}}), CKPT_OK) << last_error();
  ASSERT_EQ(act(&m, c.gradients, {ActionKind::forward, 1, kA, {}}), CKPT_OK);
  EXPECT_EQ(act(&m, c.gradients, {ActionKind::backward, 1, {}, {}}), CKPT_OK) << last_error();
}

// An output over its input: one block, whose old name is gone.
TEST(Machine, AnOutputTakesItsInputsPlace) {
  Graph g;
  g.rule.alignment_bytes = 64;
  g.add_input(64, 0, false, CKPT_GRAD_NONE);
  Item out = item("o", 60);
  out.in_place_input = 1;
  auto s = Shape::create("relu", {}, {out}, {CKPT_INPUT_BACKWARD_IGNORES}, 0, 0, true, false);
  ASSERT_TRUE(s.ok()) << last_error();
  g.shapes.push_back(std::make_shared<const Shape>(std::move(*s)));
  g.add_node(g.shapes[0].get(), std::vector<uint32_t>{0}, nullptr, nullptr);
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  Strict backend;
  StrictMachine m(&g, backend);
  ASSERT_EQ(m.start(gradients), CKPT_OK);
  const BlockId input = m.value_block(0);
  ASSERT_EQ(act(&m, gradients, {ActionKind::forward, 0, Bits::one(0), Bits::one(0)}), CKPT_OK) << last_error();
  EXPECT_EQ(m.value_block(1), input);
  EXPECT_FALSE(m.value_live(0));
  EXPECT_EQ(backend.book->live.size(), 1u);
  refused(m.free_value(0), "not live");
  ASSERT_EQ(m.free_value(1), CKPT_OK);
  EXPECT_TRUE(backend.book->live.empty());
}

// Over what it may not take: nothing is placed, and nothing happens.
TEST(Machine, AnOutputTakesNoOtherPlace) {
  struct Wrong {
    bool caller_input, keep, twice;
    size_t bytes;
    std::vector<uint32_t> in_place;
  };
  const Wrong fine{false, false, false, 16, {0}};
  std::vector<Wrong> wrong(6, fine);
  wrong[0].caller_input = true;
  wrong[1].keep = true;
  wrong[2].twice = true;
  wrong[3].bytes = 17;
  wrong[4].in_place = {0, 1};  // two outputs over one input
  wrong[5].in_place = {2};     // names no input
  wrong.push_back(fine);
  for (size_t k = 0; k < wrong.size(); ++k) {
    SCOPED_TRACE(k);
    const Wrong &w = wrong[k];
    Graph g;
    g.rule.alignment_bytes = 1;
    g.add_input(16, 0, w.caller_input, CKPT_GRAD_NONE);
    std::vector<Item> outputs = {item("o", w.bytes), item("p", 16), item("q", 16)};
    outputs[0].in_place_input = outputs[1].in_place_input = 1;
    auto make = Shape::create("make", {}, {item("x", 16, {}, w.keep ? uint32_t{CKPT_OUTPUT_KEEP} : 0)}, {0}, 0, 0, true, false);
    auto use = Shape::create("use", {}, outputs, w.twice ? std::vector<uint32_t>{0, 0} : std::vector<uint32_t>{0}, 0, 0, true, false);
    ASSERT_TRUE(make.ok() && use.ok()) << last_error();
    g.shapes = {std::make_shared<const Shape>(std::move(*make)), std::make_shared<const Shape>(std::move(*use))};
    g.add_node(g.shapes[0].get(), std::vector<uint32_t>{0}, nullptr, nullptr);
    const uint32_t value = w.caller_input ? 0 : 1;
    g.add_node(g.shapes[1].get(), std::vector<uint32_t>(w.twice ? 2 : 1, value), nullptr, nullptr);
    const GradientMap gradients = derive_gradients(g, default_roots(g));
    Strict backend;
    StrictMachine m(&g, backend);
    ASSERT_EQ(m.start(gradients), CKPT_OK);
    ASSERT_EQ(act(&m, gradients, {ActionKind::forward, 0, Bits::one(0), {}}), CKPT_OK);
    const LiveState before = m.state();
    const std::map<BlockId, size_t> blocks = backend.book->live;
    Action a{ActionKind::forward, 1, Bits::first(3), {}};
    for (uint32_t o : w.in_place) a.in_place.set(o);
    if (k + 1 == wrong.size()) {
      EXPECT_EQ(act(&m, gradients, a), CKPT_OK) << last_error();
      continue;
    }
    refused(act(&m, gradients, a), "cannot be placed over an input");
    EXPECT_TRUE(same(before, m.state()));
    EXPECT_EQ(blocks, backend.book->live);
    a.in_place = {};
    EXPECT_EQ(act(&m, gradients, a), CKPT_OK) << last_error();
  }
}

}  // namespace
}  // namespace plan_test
