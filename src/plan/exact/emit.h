// Steps of the planner written as a program of the machine.
#pragma once

#include "plan/exact/tables.h"
#include "plan/exact/top.h"
#include "plan/program.h"

namespace ckpt::plan::exact {

// Within `load`: where several forwards of a segment follow each other, as many as fit are made one.
Program write_program(const Chain &chain, const Tables &tables, std::span<const Step> steps, Bytes load);

// What is live at most, as the simulator says.
Bytes load_of(const Chain &chain, const Program &program);

// Forward seconds of a program of a chain: what the simulator sums up, without placing anything.
double forward_seconds(const Graph &graph, const Program &program);

}  // namespace ckpt::plan::exact
