// A transformer's segments on one rank, piece by piece: what each stores, from what it is made, and what that costs.
#pragma once

#include <string>
#include <vector>

#include "estimate/request.h"

namespace ckpt::estimate {

enum class Part : uint8_t { other, attention, feed_forward };  // what the selective policies drop

struct Piece {
  const char *name;
  size_t bytes = 0;
  std::vector<uint32_t> reads;  // earlier pieces of the segment; the segment's input is always at hand
  uint32_t group = 0;           // one kernel makes all members
  Part part = Part::other;
  double flops = 0, moved = 0;  // products, and bytes that pass through memory
};

struct Segment {
  std::vector<Piece> slots;
  Piece output;
  double flops() const;
};

struct Pieces {
  size_t boundary_bytes = 0;  // between layers
  size_t token_bytes = 0;     // the embedding's input
  Segment embedding, layer, head;

  size_t layer_bytes(uint32_t policy) const;    // kept of a layer, its input included
  double replay_flops(uint32_t policy) const;   // of a layer, by whole pieces
  size_t embedding_bytes() const;               // kept
  size_t head_bytes() const;                    // kept, its input included
};

// Is it kept between forward and backward? (OPTIMAL: a plan knows.)
bool kept(uint32_t policy, const Piece &piece);

// OVERFLOW: a size of 2^60 bytes or more.
Status count_pieces(const char *function, const Request &request, Pieces *out);

// Multiply-adds of all ranks in one micro-batch's forward: layers and head.
double model_forward_flops(const Model &model);

double seconds(const Hardware &hardware, const Piece &piece);
double seconds(const Hardware &hardware, const Segment &segment);

}  // namespace ckpt::estimate
