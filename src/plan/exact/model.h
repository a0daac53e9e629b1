// What the recurrences read of a chain: per segment, the choices of what to keep, and what each takes in bytes and ticks.
// Built from a Graph (tables.h) or from the stage model of planning papers (stage_model below).
//
// Segment i reads boundary i and makes boundary i + 1, of x[i + 1] bytes. An *option* is what it has stored when its turn
// to go backward comes: slots, and the output where that stays until then (`k`). A *start* is what is live of a segment
// when some stretch of the chain begins at it: its sticky slots (start 0), or more of them, so that its output can be made
// again at less cost. Costs are overhead: time beyond `base`, the least that a start needs to come to its backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ckpt::plan::exact {

using Bytes = int64_t;
using Ticks = int64_t;
inline constexpr Ticks kNever = INT64_MAX / 8;
inline constexpr Bytes kNoRoom = INT64_MAX / 8;

struct Point {
  Bytes m;
  Ticks c;
};

// One forward: bytes beyond what was live (the output included), and cost; kNever: cannot be.
struct Run {
  Bytes bytes = kNoRoom;
  Ticks cost = kNever;
};

struct Option {
  Bytes bytes = 0;  // stored: sticky slots included, and the output with k
  bool k = false;     // the output stays until backward
  bool bare = false;  // no slots but the sticky ones
  bool gone = false;  // backward needs no other forward and does not read the input: that may go right after the first run
  bool stays = false; // what is stored holds the input: it stays too, so nothing jumps to here
  bool at_once = false;  // only where its backward follows on its first run (slots marked RECOMPUTE that are made anyway)
  // Ways to go backward from here: least bytes with boundary i outside them, ascending, and cost.
  std::vector<Point> leaf;
  // The same with boundary i inside: gone once nobody reads it.
  std::vector<Point> leaf_inside;
  uint32_t choice = 0;  // for the emitter
};

struct Start {
  Bytes extra = 0;           // stored beyond the sticky slots
  std::vector<Run> run;      // per option: a forward that keeps it, with output
  std::vector<Run> jump;     // per start: a forward that keeps that start's slots and hands the output on
  uint32_t choice = 0;
};

// A run that keeps less, and a forward later that makes it up to an option while boundary i is still live.
struct Fill {
  uint32_t option = 0, keeps = 0;  // keeps: the option with those slots; the output stays if `option` says so
  Run first, again;                // cost: of both, and of the backward's forward
  Bytes held = 0, peak = 0;        // between them; and while it fills
};

struct Segment {
  bool reads_input = true;   // its backward does
  bool wall = false;         // its output is made once and stays (KEEP, the caller's memory): nothing runs across it again
  Bytes sticky = 0;          // slots that live from the first run to the backward
  std::vector<Option> options;
  std::vector<Start> starts; // at least one
  Start first;               // the first run: from nothing
  std::vector<Fill> fills;   // late release alone
  uint64_t kind = 0;         // equal for segments whose tables are equal, the boundaries' included
};

struct Model {
  std::vector<Bytes> x;       // n + 1
  std::vector<Bytes> g;       // n + 1: gradient of boundary i while segment i - 1 has not gone backward
  std::vector<Segment> segments;
  double tick = 1;            // seconds
  bool slots_at_jumps = true; // sigma: what a segment stored may stay while its input goes; false: rotor

  uint32_t size() const { return static_cast<uint32_t>(segments.size()); }
};

// The stage model: a_0 .. a_n boundaries; per segment A (saved + output), forward and backward scratch, forward ticks;
// d_0 .. d_n gradients. All backward passes read their input. `slots_at_jumps`: class sigma, else rotor.
struct Stage {
  std::vector<Bytes> a, A, scratch_forward, scratch_backward, d;
  std::vector<Ticks> u;
};
Model stage_model(const Stage &stage, bool slots_at_jumps);

// Sets Segment::kind.
void name_kinds(Model *model);

// Repeated blocks: for each s the first segment from which the chain reads like from s for the longest, and for how long.
// A stretch of at most that length has been looked at there already.
struct Twins {
  std::vector<uint32_t> at, length;
};
Twins find_twins(const Model &model);

}  // namespace ckpt::plan::exact
