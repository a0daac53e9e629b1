// Known answers, computed by another implementation of the machine in another language (a simulator on sets of names, and a
// search over all its states).
//
//   chain ALIGNMENT INPUT_BYTES INPUT_MEMORY INPUT_GRADIENT OUTPUT_MEMORY OUTPUT_GRADIENT
//   segment parts|whole FORWARD_SECONDS BACKWARD_SECONDS OUTPUT_BYTES OUTPUT_READS FORWARD_SCRATCH BACKWARD_SCRATCH
//           and whether backward reads (i)nput and (o)utput; output's cost: what the slots leave of the seconds
//   slot BYTES SECONDS READS FLAG
//   program fN:SLOTS forward of segment N, + with its output; bN backward; xN boundary N is freed; dN:SLOTS dropped
//   gives PEAK SECONDS OVERHEAD_SECONDS, which are what exceeds all forward and backward seconds
//   least BUDGET:SECONDS ... the least seconds within a budget, from the first budget at which that is so; below the last
//         budget there is no program
// Sets of slots are numbers: bit k is slot k.
#pragma once

inline constexpr const char *kMachineVectors = R"(
chain 1 3 caller caller arena arena
segment parts 4 0 40 0 3 0 io
program f0:0+ x1 f0:0 f0:0+ f0:0+ f0:0 x1 f0:0 f0:0+ b0
gives 83 12 8
chain 64 16 arena arena caller arena
segment parts 4 0 100 3 0 0 i
slot 7 4 0 none
slot 3 0 0 transient
segment parts 10 6 16 1 0 0 -
slot 40 3 0 none
slot 7 3 0 none
program f0:1+ f1:1+ x1 f0:0+ f1:2 b1 b0
gives 576 20 0
chain 64 100 arena caller arena arena
segment parts 2 5 40 0 0 7 i
segment whole 4 3 7 1 100 1 i
slot 7 0 0 none
segment parts 1 2 3 1 0 0 io
slot 0 0 0 none
segment parts 1 1 3 1 0 7 i
slot 16 0 0 keep
segment whole 1 1 16 1 0 16 io
slot 40 0 0 none
segment parts 2 2 40 0 0 0 o
slot 16 0 0 none
program f0:0+ f1:0+ x2 x1 f0:0 f0:0+ x1 f0:0+ f1:0+ f2:0+ f3:1+ f1:0+ f4:0+ f0:0+ x2 x4 f5:1+ b5 f3:0+ f4:1 b4 b3 f1:0+ f2:1 b2 f1:1 b1 b0
gives 704 43 18
chain 1 40 arena arena caller arena
segment parts 10 3 16 3 0 3 io
slot 0 2 0 transient
slot 100 4 1 none
segment parts 3 4 16 3 0 0 -
slot 1 1 0 keep
slot 1 0 0 transient
segment parts 1 3 7 2 0 0 io
slot 1 0 0 recompute
slot 7 0 0 recompute
segment whole 1 3 130 1 0 7 io
slot 3 0 0 none
segment parts 12 5 40 6 0 100 o
slot 3 3 0 none
slot 1 3 0 keep
slot 130 3 1 recompute
segment parts 8 3 16 1 0 7 -
slot 0 4 0 none
program f0:1+ f1:1+ f2:0+ f1:2 f2:0+ f3:1+ f4:3+ f5:1+ b5 f4:4 b4 b3 f2:3 b2 b1 f0:2 b0
gives 658 63 7
chain 1 40 arena arena arena caller
segment whole 1 3 0 1 1 0 io
slot 7 0 0 none
segment parts 15 0 100 7 0 0 io
slot 7 4 0 none
slot 100 0 0 recompute
slot 16 3 2 none
slot 1 4 7 none
segment parts 8 0 7 7 130 0 o
slot 16 1 0 transient
slot 1 4 0 none
slot 130 2 3 transient
program f0:0+ f1:4+ f2:4+ f2:2 b2 f1:11 b1 f0:1 b0
gives 440 36 9
chain 64 40 caller none arena caller
segment parts 12 3 3 4 7 0 i
slot 100 0 0 none
slot 100 3 1 keep
slot 1 3 0 keep
slot 130 3 7 keep
segment parts 16 4 100 7 1 0 i
slot 7 4 0 recompute
slot 1 4 0 recompute
slot 3 4 2 none
program f0:15+ f1:0+ f0:13+ x1 f0:6+ f1:2 x2 f1:5 b1 b0
gives 960 50 15
chain 64 0 arena caller arena caller
segment parts 10 2 3 8 3 0 io
slot 40 4 0 none
slot 100 1 0 none
slot 3 1 2 keep
slot 1 3 3 recompute
segment parts 1 5 100 0 0 0 -
segment whole 6 5 0 1 0 0 i
slot 100 0 0 none
segment whole 2 6 1 1 0 0 -
slot 1 0 0 none
program f0:5+ f1:0+ f0:9+ f0:9 d0:8 f2:1+ f3:0+ x1 x3 x2 x4 f0:0+ f1:0+ f2:0+ f3:1 b3 b2 b1 f0:10 b0
gives 576 59 22
chain 1 0 caller caller arena caller
segment parts 4 3 130 1 0 0 -
slot 130 2 0 none
segment parts 3 0 100 0 3 0 o
slot 3 2 0 keep
slot 130 1 0 none
segment parts 7 4 0 1 0 0 io
slot 130 3 0 transient
segment parts 4 2 3 14 0 0 i
slot 1 1 0 none
slot 3 0 1 transient
slot 3 1 0 keep
slot 16 1 6 none
segment parts 14 5 3 15 0 0 o
slot 40 2 0 none
slot 130 3 1 transient
slot 7 4 2 keep
slot 1 1 6 keep
segment whole 1 2 100 1 130 3 o
slot 100 0 0 none
program f0:1+ x1 f0:0+ f1:1+ f1:3 x1 f2:1+ f3:4+ f4:15+ f0:0+ f5:0+ f5:1 b5 b4 f3:9 b3 b2 b1 b0
gives 1140 56 7
chain 256 100 caller arena arena caller
segment parts 3 3 7 0 3 130 io
segment parts 9 2 3 7 1 0 o
slot 0 4 0 none
slot 7 1 1 none
slot 130 4 0 transient
slot 0 0 0 keep
segment parts 3 5 16 0 0 0 i
segment parts 3 0 16 0 0 0 i
program f0:0+ f1:11+ f2:0+ f3:0+ f1:2 x3 x4 f0:0+ f2:0 x2 f1:0+ f2:0+ b3 b2 b1 b0
gives 1536 35 7
chain 64 100 arena caller arena caller
segment parts 13 5 40 2 0 0 o
slot 7 4 0 recompute
slot 3 3 1 recompute
slot 0 4 3 none
segment parts 15 5 100 6 0 0 io
slot 1 3 0 keep
slot 40 4 0 recompute
slot 3 4 0 none
segment parts 8 3 130 3 100 0 i
slot 40 3 0 transient
slot 16 1 0 none
segment whole 1 6 3 1 0 0 io
slot 100 0 0 none
program f0:7+ d0:7 x1 f0:0+ f1:5+ f2:0+ f3:1+ b3 f2:2 b2 f1:2 b1 f0:7 b0
gives 1024 81 25
chain 64 16 caller none caller arena
segment whole 6 5 3 1 7 0 i
slot 7 0 0 none
segment whole 4 2 0 1 0 0 i
slot 16 0 0 none
segment parts 14 5 100 15 0 0 o
slot 100 2 0 recompute
slot 1 2 0 transient
slot 130 4 0 transient
slot 3 2 4 keep
program f0:0+ f0:1 f0:1 f0:1 f1:0+ f2:12+ f2:1 b2 f1:1 b1 b0
gives 704 48 12
chain 1 1 caller none arena arena
segment parts 5 2 16 7 16 1 o
slot 1 2 0 keep
slot 40 2 1 transient
slot 3 1 1 recompute
program f0:1+ x1 f0:4 f0:0+ b0
gives 92 10 3
chain 256 3 caller caller arena arena
segment parts 8 3 16 3 0 0 o
slot 7 0 0 none
slot 3 4 1 transient
segment parts 9 2 0 1 3 0 o
slot 16 2 0 none
slot 40 3 1 none
segment parts 2 2 0 1 0 0 -
slot 16 2 0 transient
program f0:0+ f1:2+ f2:1+ d2:1 f0:2 x2 x3 f0:2 x1 b2 f0:0+ f1:1 f1:0+ b1 f0:1 b0
gives 1280 40 14
chain 1 3 caller caller caller caller
segment parts 6 5 130 0 0 0 o
slot 16 1 0 keep
slot 40 4 1 none
segment parts 10 1 7 7 7 40 io
slot 16 2 0 none
slot 7 3 1 keep
slot 16 2 0 recompute
program f0:1+ x1 f0:0+ f0:3+ f1:2+ f1:5 b1 b0
gives 395 27 5
chain 1 100 caller arena arena arena
segment parts 2 4 7 0 0 16 i
program f0:0+ f0:0 f0:0+ x1 f0:0 f0:0 f0:0 f0:0+ x1 b0
gives 123 8 2
chain 256 1 arena caller arena arena
segment parts 5 5 100 2 0 0 io
slot 0 0 0 none
slot 100 0 1 recompute
slot 0 3 1 none
slot 130 0 0 recompute
segment parts 6 0 3 3 0 0 i
slot 130 1 0 keep
slot 130 1 1 none
program f0:5+ x1 f0:5 f0:0+ f1:3+ x2 x1 f0:0+ b1 f0:10 b0
gives 1536 20 4
chain 1 7 arena caller arena arena
segment parts 10 1 3 3 0 1 i
slot 130 3 0 none
slot 0 4 0 none
segment parts 4 5 16 3 0 16 i
slot 40 0 0 none
slot 40 0 0 transient
segment parts 4 6 3 0 0 16 -
segment parts 8 3 3 0 0 0 io
slot 16 4 0 keep
program f0:1+ f0:1+ f1:0+ f1:0+ f2:0+ f3:1+ b3 b2 f1:1 b1 f0:2 b0
gives 239 45 4
chain 1 130 caller arena arena arena
segment parts 4 1 16 0 0 0 -
segment parts 2 6 1 3 7 0 io
slot 1 0 0 recompute
slot 100 2 0 transient
slot 1 0 3 keep
segment parts 6 4 3 3 1 0 io
slot 130 3 0 recompute
slot 16 1 1 keep
slot 130 0 3 keep
segment parts 6 0 3 1 0 7 i
slot 3 2 0 none
program f0:0+ f1:5+ d1:1 f2:6+ x2 f3:0+ x1 x4 f3:1 b3 f0:0+ f1:0+ f2:1 b2 f1:1 b1 b0
gives 301 40 11
chain 64 3 caller arena caller caller
segment parts 9 2 7 1 0 16 -
slot 7 1 0 none
slot 1 4 1 none
slot 130 2 0 none
segment parts 4 1 40 0 7 0 o
segment parts 5 0 3 1 130 0 io
slot 130 1 0 none
segment whole 3 4 100 1 0 0 -
slot 3 0 0 none
program f0:6+ f1:0+ f2:1+ f3:1+ x3 b3 f2:0+ b2 b1 f0:1 b0
gives 896 33 5
chain 1 7 caller none arena caller
segment parts 8 4 3 6 0 0 i
slot 3 4 0 none
slot 100 1 1 none
slot 3 1 3 transient
program f0:0+ x1 f0:4+ f0:0+ x1 d0:4 f0:3 b0
gives 109 25 13
chain 1 40 caller arena caller caller
segment whole 1 2 16 1 1 0 o
slot 0 0 0 none
segment parts 16 6 130 9 0 0 -
slot 7 3 0 keep
slot 100 3 0 none
slot 7 4 0 recompute
slot 100 3 2 none
segment parts 10 3 1 5 0 0 -
slot 3 3 0 keep
slot 130 2 0 keep
slot 7 2 0 transient
slot 3 3 5 keep
segment parts 2 6 16 1 0 0 io
slot 130 2 0 none
segment whole 1 5 7 1 0 0 i
slot 3 0 0 none
segment parts 6 5 100 3 0 7 io
slot 0 4 0 none
slot 16 2 1 recompute
program f0:1+ d0:1 f0:0+ f1:5+ d1:4 f1:1+ f2:15+ f3:1+ f4:1+ f5:0+ f5:3 b5 b4 b3 b2 f1:14 b1 f0:1 b0
gives 506 80 17
chain 64 3 arena arena caller caller
segment parts 3 4 0 0 0 0 o
segment parts 10 0 7 1 0 3 io
slot 1 3 0 recompute
slot 16 3 1 recompute
segment parts 3 0 130 0 0 0 -
slot 40 0 0 none
segment parts 7 5 16 3 3 0 -
slot 40 0 0 recompute
slot 130 3 1 none
segment parts 12 2 3 1 0 0 i
slot 100 4 0 transient
slot 100 2 1 keep
slot 40 2 0 keep
segment parts 11 2 0 2 0 40 i
slot 0 3 0 keep
slot 130 4 0 none
program f0:0+ x1 f0:0+ f1:0+ f2:1+ f3:1+ d3:1 f4:7+ f5:1+ d2:1 f4:6+ x3 f5:2 b5 b4 f2:0+ f3:3 b3 f2:1 b2 f1:3 b1 b0
gives 1024 75 16
chain 1 0 arena none arena caller
segment parts 6 5 7 3 0 3 io
slot 130 3 0 recompute
slot 16 3 1 none
segment parts 10 5 100 3 0 0 i
slot 1 2 0 none
slot 7 4 1 transient
segment parts 1 5 16 3 0 3 i
slot 1 0 0 recompute
slot 40 0 1 none
segment parts 4 6 7 2 0 0 io
slot 1 0 0 keep
slot 40 0 1 keep
segment parts 4 5 130 0 40 0 io
segment parts 11 5 16 14 0 100 o
slot 100 0 0 keep
slot 40 1 0 transient
slot 16 4 3 transient
slot 100 2 5 keep
program f0:1+ d0:1 f1:2+ x2 f0:0 f1:0+ f2:3+ f2:3+ f2:2+ d2:1 f3:3+ f4:0+ f5:15+ b5 b4 b3 f2:1 b2 f1:1 b1 f0:3 b0
gives 850 81 14
chain 64 40 caller arena caller arena
segment parts 7 4 0 3 0 0 i
slot 1 4 0 transient
slot 1 2 0 none
segment parts 3 6 1 0 0 16 io
segment parts 8 1 16 0 0 0 i
slot 3 4 0 recompute
segment parts 10 3 7 0 7 1 i
slot 1 4 0 keep
slot 3 3 1 none
segment parts 4 6 1 1 0 0 i
slot 3 2 0 none
segment parts 6 4 1 1 0 0 -
slot 130 0 0 recompute
slot 40 3 1 none
program f0:0+ f1:0+ f2:1+ d2:1 f3:1+ f4:1+ f5:1+ f5:2 b5 b4 f3:2 b3 f2:1 b2 b1 f0:2 b0
gives 768 68 6
chain 1 3 arena none arena arena
segment whole 6 4 100 1 0 0 o
slot 1 0 0 none
segment parts 6 3 0 2 0 0 i
slot 3 2 0 none
slot 16 0 1 transient
segment parts 6 4 130 3 16 0 o
slot 100 2 0 none
slot 3 4 0 transient
least 483:29 480:31 385:35 382:37
chain 1 16 caller arena arena caller
segment parts 2 4 40 0 7 0 io
segment parts 3 0 130 3 130 0 -
slot 0 1 0 transient
slot 0 2 0 transient
segment whole 2 1 100 1 0 7 o
slot 100 0 0 none
least 377:12 337:14
chain 1 3 arena arena arena caller
segment parts 0 0 7 1 0 0 i
slot 7 0 0 none
segment whole 1 1 3 1 1 0 -
slot 100 0 0 none
segment parts 9 3 0 1 16 0 i
slot 16 3 0 none
slot 130 3 1 none
least 268:14 168:15
chain 1 3 caller arena caller arena
segment parts 4 0 7 0 0 7 -
segment parts 2 6 16 1 3 0 i
slot 16 0 0 none
segment parts 3 6 1 1 1 0 o
slot 100 0 0 none
least 125:21 118:25
chain 1 7 caller caller arena caller
segment whole 1 4 7 1 0 0 i
slot 7 0 0 none
segment parts 2 6 40 3 16 0 o
slot 1 0 0 none
slot 16 1 0 transient
segment parts 2 6 0 3 0 1 i
slot 0 0 0 transient
slot 0 2 0 transient
least 95:21 88:22
chain 1 130 caller arena caller arena
segment parts 4 5 130 1 0 0 i
slot 40 2 0 none
segment parts 2 0 16 0 0 0 io
segment parts 8 2 40 0 0 0 io
slot 130 4 0 none
least 372:21 332:23 300:25
chain 1 40 caller none arena caller
segment parts 9 3 100 3 40 0 io
slot 40 3 0 transient
slot 3 3 0 none
segment whole 1 3 40 1 0 1 i
slot 40 0 0 none
least 244:16 243:19
chain 1 7 caller arena caller caller
segment parts 6 0 1 2 0 0 o
slot 0 4 0 none
slot 16 2 0 transient
segment parts 7 3 1 1 1 1 -
slot 130 4 0 none
least 133:16 132:18
chain 1 40 arena caller caller caller
segment parts 2 2 3 1 0 0 i
slot 130 2 0 none
segment parts 1 3 7 0 0 0 i
segment parts 2 5 40 0 0 0 io
least 184:15 173:17
chain 1 7 caller arena arena caller
segment parts 3 4 0 1 0 0 -
slot 100 3 0 none
segment whole 6 3 3 1 0 7 io
slot 7 0 0 none
segment parts 3 0 40 1 0 3 i
slot 100 1 0 transient
least 250:19 150:22 143:28
chain 1 100 caller caller arena caller
segment parts 2 5 100 0 0 0 -
segment parts 6 0 7 3 0 0 io
slot 0 4 0 none
slot 16 2 0 none
segment parts 2 1 100 3 0 0 io
slot 16 0 0 transient
slot 130 0 1 transient
least 369:16 269:18 253:20
chain 1 1 arena arena arena caller
segment whole 2 1 16 1 0 1 i
slot 100 0 0 none
segment parts 3 6 3 0 0 0 i
segment parts 3 4 130 1 0 0 i
slot 3 3 0 transient
least 253:19 137:21
chain 1 100 arena none arena arena
segment parts 5 6 130 3 0 0 i
slot 7 2 0 transient
slot 100 2 1 none
segment parts 0 3 100 0 0 3 io
segment parts 2 1 1 0 0 7 io
least 663:17 570:19 563:21
chain 1 16 arena arena arena arena
segment whole 3 5 1 1 0 0 o
slot 40 0 0 none
segment whole 1 4 1 1 0 0 io
slot 0 0 0 none
segment parts 0 1 16 0 0 0 i
least 74:14 73:17
chain 1 1 arena arena arena arena
segment parts 1 5 3 1 7 0 i
slot 3 1 0 none
segment parts 3 0 40 1 0 16 -
slot 100 0 0 none
slot 1 1 1 none
segment parts 4 0 7 0 16 1 i
least 164:13 161:14
chain 1 100 arena none caller arena
segment parts 6 1 7 2 0 0 io
slot 100 1 0 none
slot 16 2 1 none
segment parts 2 2 130 1 0 0 io
slot 130 0 0 transient
segment parts 7 4 16 3 0 0 o
slot 40 2 0 transient
slot 0 4 1 none
least 499:22 399:23 383:25
)";
