#include "arena/pack_local.h"

#include <numeric>

namespace ckpt::arena {
namespace {

// Rounds without a lower height, after which the search goes on from the best order with some blame at random.
constexpr uint32_t kPatience = 12;

}  // namespace

void pack_local(const PackProblem &problem, PackEngine &engine, size_t goal, uint64_t work, std::vector<uint32_t> order, PackAnswer *best) {
  const auto n = static_cast<uint32_t>(problem.items.size());
  const uint64_t begin = engine.work();
  std::vector<double> place(n), best_place(n);
  for (uint32_t p = 0; p < n; ++p) best_place[order[p]] = p;
  place = best_place;
  std::vector<size_t> offsets;
  uint64_t random = 1;
  const auto draw = [&] {  // a linear congruence of full period: high bits only
    random = random * 6364136223846793005 + 1442695040888963407;
    return static_cast<double>(random >> 40) * 0x1p-24;
  };
  for (uint32_t stuck = 0; best->height > goal && engine.work() - begin < work;) {
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return place[a] != place[b] ? place[a] < place[b] : a < b; });
    const size_t height = engine.fit(order, Fit::best, kMaxPackBytes, &offsets);
    if (height == SIZE_MAX) return;
    if (height < best->height) {
      best->height = height;
      best->offsets = offsets;
      best_place = place;
      stuck = 0;
    }
    if (++stuck > kPatience) {
      place = best_place;
      stuck = 0;
      for (uint32_t k = 0; k < n; ++k)
        if (draw() < 0.02) place[k] *= draw();
    }
    for (uint32_t k = 0; k < n; ++k)
      if (offsets[k] + problem.items[k].size > goal) place[k] *= 0.25 + 0.5 * draw();
    engine.count(n * 8);
  }
}

}  // namespace ckpt::arena
