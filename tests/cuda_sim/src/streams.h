// What streams, events and captures share.
#pragma once

#include <set>

#include "state.h"

namespace cudasim {

struct Streams {
  std::mutex lock;
  std::vector<std::shared_ptr<CUstream_st>> running;  // those too that are destroyed and not done yet
  std::vector<CaptureP> captures;                     // that are not over
  std::set<cudaEvent_t> events;
  std::set<cudaGraph_t> graphs;
  std::set<cudaGraphExec_t> execs;
  unsigned long long captures_begun = 0;
  std::atomic<CUstream_st *> legacy{nullptr};  // the default stream, once it has been used
};
Streams &streams();

// Waits for all that was issued; edges: as the API's own waits, else unseen by ThreadSanitizer.
void drain(bool edges);

}  // namespace cudasim
