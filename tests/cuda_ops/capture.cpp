// Operations in a captured graph: the bits of running them, a step word that is read at each replay, and what cannot be captured.
#include "step.h"

using namespace test;

namespace {

class Graph {
 public:
  explicit Graph(const std::function<void()> &work) {
    const Device &d = Device::get();
    EXPECT_EQ(d.table().capture_begin(d.self(), d.stream()), CKPT_OK) << last_text();
    work();
    EXPECT_EQ(d.table().capture_end(d.self(), d.stream(), &graph_), CKPT_OK) << last_text();
  }
  ~Graph() { Device::get().table().graph_destroy(Device::get().self(), graph_); }
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  void launch() const {
    const Device &d = Device::get();
    EXPECT_EQ(d.table().graph_launch(d.self(), graph_, d.stream()), CKPT_OK) << last_text();
  }

 private:
  void *graph_ = nullptr;
};

TEST(Capture, ReplaysHaveTheBitsOfRunningEachStep) {
  const Device &d = Device::get();
  for (const uint32_t type : kTypes) {
    const Ops ops(type), other(type);
    const Step run(type), replayed(type);
    const Step warm(type);
    OK(warm.run(ops));  // work space is there
    const Graph graph([&] { OK(replayed.run(ops)); });
    std::vector<unsigned char> before;
    for (const uint64_t step : {uint64_t{0}, uint64_t{1}, uint64_t{12345}}) {
      OK(d.table().write_word(d.self(), d.stream(), run.word(), step));
      OK(d.table().write_word(d.self(), d.stream(), replayed.word(), step));
      OK(run.run(other));
      graph.launch();
      const auto expected = run.bytes(), got = replayed.bytes();
      EXPECT_EQ(got, expected) << type_name(type) << ", step " << step;
      EXPECT_NE(got, before);
      EXPECT_TRUE(std::isfinite(replayed.loss()) && replayed.loss() > 0.0f) << replayed.loss();
      before = got;
      OK(ops->check(ops));
    }
  }
}

// A graph names the work space that was there when it was captured: it stays when the context's grows.
TEST(Capture, GraphsOutliveAGrowthOfTheWorkSpace) {
  const Ops ops(ops::kFloat32);
  const Step warm(ops::kFloat32), replayed(ops::kFloat32), expected(ops::kFloat32);
  OK(warm.run(ops));
  const Graph graph([&] { OK(replayed.run(ops)); });
  constexpr size_t kRows = 40000, kColumns = 64;  // partial sums of several MiB
  const Array in(ops::kFloat32, Floats(kRows * kColumns)), sums(ops::kFloat32, Floats(kColumns));
  const Indices tokens(std::vector<int32_t>(kRows, 3));
  OK(ops->embedding_backward(ops, tokens.data(), in.data(), 1, kRows, kColumns, kColumns, Array(ops::kFloat32, Floats(kColumns * kColumns)).floats(), nullptr));
  OK(expected.run(ops));
  graph.launch();
  EXPECT_EQ(replayed.bytes(), expected.bytes());
}

TEST(Capture, RefusesWhatWaitsOrGrowsAndGoesOn) {
  const Ops ops(ops::kFloat32);
  const Step step(ops::kFloat32), expected(ops::kFloat32);
  const Array values(ops::kFloat32, Floats(1000, 1.0f)), out(ops::kFloat32, Floats(1000));
  double norm = 0.0;
  const Graph graph([&] {
    OK(ops->add(ops, values.data(), values.data(), 1000, out.data()));
    EXPECT_EQ(ops->check(ops), CKPT_ERROR_CAPTURE);
    EXPECT_EQ(ops->norm(ops, values.floats(), 1000, &norm), CKPT_ERROR_CAPTURE);
    EXPECT_EQ(ops->clip(ops, values.floats(), 1000, 1.0f, 1.0f, &norm), CKPT_ERROR_CAPTURE);
    EXPECT_EQ(ops->clip(ops, values.floats(), 1000, 1.0f, 1.0f, nullptr), CKPT_ERROR_CAPTURE) << "there is no work space yet";
    EXPECT_NE(last_text().find("work space"), std::string::npos) << last_text();
    void *another = nullptr;
    const Device &d = Device::get();
    EXPECT_EQ(d.ops().create(d.self(), d.stream(), ops::kFloat32, &another), CKPT_ERROR_CAPTURE);
    EXPECT_EQ(another, nullptr);
    OK(ops->add(ops, out.data(), values.data(), 1000, out.data()));
  });
  graph.launch();
  EXPECT_EQ(out.read(), Floats(1000, 3.0f));
}

}  // namespace
