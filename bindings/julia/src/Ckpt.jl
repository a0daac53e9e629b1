"""
libckpt for Julia: spend compute instead of memory, within a budget in bytes, with gradients that are bit-identical to those of a run
that stores everything.

A [`Segment`](@ref) is a piece of the forward pass that can be replayed. A [`Tape`](@ref) records segments and runs them in reverse within
its budget. A segment's code gets a frame and asks it for everything.

    tape = Tape(Arena(Device("cpu")); budget = "64MiB")
    square = Segment("square"; outputs = [Output("out", 8)], backward = f -> begin
        x, dy = input(f, Float64, 1), output_grad(f, Float64, 1)
        dx, accumulate = input_grad(f, Float64, 1)
        dx === nothing || (dx[1] = (accumulate ? dx[1] : 0.0) + 2 * x[1] * dy[1])
    end) do f
        x, y = input(f, Float64, 1), output(f, Float64, 1)
        needs_output(f, 1) && (y[1] = x[1]^2)
    end
    x, dx = [3.0], [0.0]
    y = run(tape, square, input(tape, x; grad = dx))
    backward(tape, run(tape, square, y) => [1.0])

The library is looked for in the environment (`CKPT_LIBRARY`, and `CKPT_OPS_LIBRARY` for the layers), then in the preferences `library` and
`ops_library` of this package (LocalPreferences.toml), then by name.
"""
module Ckpt

using Libdl
using Random

include("raw.jl")
include("library.jl")
include("errors.jl")
include("handles.jl")
include("philox.jl")
include("segment.jl")
include("plan.jl")
include("frame.jl")
include("tape.jl")
include("tools.jl")
include("ops.jl")
include("checkpointed.jl")

export Device, Arena, Tape, Segment, Slot, Output, Philox, Chain, ChainSegment, Plan, Schedule, Trace, CkptError
export needs, needs_output, slot, output, input, output_grad, input_grad, scratch, random, is_recompute, is_backward, is_dry, backward

function __init__()
    load_libraries()
    FORWARD[] = @cfunction(forward_entry, Int32, (Ptr{Cvoid}, Ptr{ckpt_frame}))
    BACKWARD[] = @cfunction(backward_entry, Int32, (Ptr{Cvoid}, Ptr{ckpt_frame}))
    SAVE_STATE[] = @cfunction(save_entry, Int32, (Ptr{Cvoid}, Ptr{Cvoid}))
    RESTORE_STATE[] = @cfunction(restore_entry, Int32, (Ptr{Cvoid}, Ptr{Cvoid}))
    RELEASE[] = @cfunction(release_entry, Cvoid, (Ptr{Cvoid},))
    TRACE[] = @cfunction(trace_entry, Cvoid, (Ptr{Cvoid}, UInt32, UInt32, Csize_t, UInt32))
    watch_for_chain_rules()
end

end
