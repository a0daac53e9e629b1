// The laws of the tape on random nets of real little layers, through the public C ABI: gradients, losses, masks and host
// state bitwise equal to the plain executor's; predicted peak and height equal to the measured ones; the budget kept, the
// smallest one accepted, one unit less refused before anything runs; nothing left in the arena.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "../support/ops_laws.h"

namespace {

std::vector<uint32_t> some_genes() { return *rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange<uint32_t>(0, 4096)); }

RC_GTEST_PROP(Laws, HoldOnRandomNets, ()) {
  const auto genes = some_genes();
  ops::RandomNet r = ops::random_net(genes);
  const ops::Strategy strategy = ops::pick_strategy(r, *rc::gen::inRange<uint32_t>(0, 4096));
  const uint32_t budget = *rc::gen::inRange<uint32_t>(0, 64);
  const std::string found = ops::failures_of([&] { ops::check_laws(r, strategy, budget); });
  if (!found.empty()) RC_FAIL(strategy.text() + "\n" + found);
}

}  // namespace
