"""
    Slot(name, bytes; reads = nothing, group = 0, cost_seconds = nothing, transient, keep, recompute, consumed, alone)

An intermediate of a segment. By itself the safe case: read by backward, computed from everything before it. `reads`: names of earlier
slots; empty: the inputs alone.
"""
struct Slot
    name::String
    bytes::UInt
    reads::Union{Nothing,Vector{String}}
    group::UInt32
    cost_seconds::Float64
    flags::UInt32
end
strings(list) = list === nothing ? nothing : String[String(each) for each in list]
flag(set, value) = set ? UInt32(value) : UInt32(0)
function Slot(name, bytes; reads = nothing, group = 0, cost_seconds = nothing, transient = false, keep = false, recompute = false,
              consumed = false, alone = false)
    flags = flag(transient, CKPT_SLOT_TRANSIENT) | flag(keep, CKPT_SLOT_KEEP) | flag(recompute, CKPT_SLOT_RECOMPUTE) |
            flag(consumed, CKPT_SLOT_CONSUMED) | flag(alone, CKPT_SLOT_ALONE) | flag(cost_seconds !== nothing, CKPT_SLOT_COST_GIVEN)
    Slot(String(name), bytes, strings(reads), group, something(cost_seconds, 0.0), flags)
end

"""
    Output(name, bytes; grad_bytes = 0, reads = nothing, group = 0, memory = nothing, cost_seconds = nothing, no_grad, keep,
           backward_reads, in_place_input = 0)

What a segment gives to others. `memory`: an array (or pointer) of the caller's: never counted, always there. `in_place_input`: the
input (from 1) that it may be placed over.
"""
struct Output
    name::String
    bytes::UInt
    grad_bytes::UInt
    reads::Union{Nothing,Vector{String}}
    group::UInt32
    memory::Any
    cost_seconds::Float64
    flags::UInt32
    in_place_input::UInt32
end
function Output(name, bytes; grad_bytes = 0, reads = nothing, group = 0, memory = nothing, cost_seconds = nothing, no_grad = false,
                keep = false, backward_reads = false, in_place_input = 0)
    if memory isa Array && sizeof(memory) != bytes
        argument_error("memory of output ", name, " has ", sizeof(memory), " bytes, expected ", bytes)
    end
    flags = flag(no_grad, CKPT_OUTPUT_NO_GRAD) | flag(keep, CKPT_OUTPUT_KEEP) | flag(backward_reads, CKPT_OUTPUT_BACKWARD_READS) |
            flag(cost_seconds !== nothing, CKPT_OUTPUT_COST_GIVEN)
    Output(String(name), bytes, grad_bytes, strings(reads), group, memory, something(cost_seconds, 0.0), flags, in_place_input)
end

"""Slots and outputs as C has them, with what their pointers point to in `roots`."""
function c_parts(slots, outputs, roots)
    names = [slot.name for slot in slots]
    function reads_of(item)
        item.reads === nothing && return Ptr{UInt32}(C_NULL), 0
        numbers = UInt32[]
        for name in item.reads
            k = findfirst(==(name), names)
            k === nothing && argument_error(item.name, " reads '", name, "', expected one of the slots ", join(names, ", "))
            push!(numbers, k - 1)
        end
        isempty(numbers) && sizehint!(numbers, 1)
        push!(roots, numbers)
        pointer(numbers), length(numbers)
    end
    function name_of(item)
        push!(roots, c_text("name", item.name))
        pointer(roots[end])
    end
    c_slots = ckpt_slot[]
    for slot in slots
        reads, count = reads_of(slot)
        push!(c_slots, ckpt_slot(name = name_of(slot), bytes = slot.bytes, reads = reads, read_count = count, group = slot.group,
                                 cost_seconds = slot.cost_seconds, flags = slot.flags))
    end
    c_outputs = ckpt_output[]
    for output in outputs
        reads, count = reads_of(output)
        memory = output.memory === nothing ? C_NULL : Ptr{Cvoid}(pointer_of(output.memory))
        push!(c_outputs, ckpt_output(name = name_of(output), bytes = output.bytes, grad_bytes = output.grad_bytes, reads = reads,
                                     read_count = count, group = output.group, memory = memory, cost_seconds = output.cost_seconds,
                                     flags = output.flags, in_place_input = output.in_place_input))
    end
    push!(roots, c_slots, c_outputs)
    c_slots, c_outputs
end
pointer_of(memory::Ptr) = memory
pointer_of(memory::Array) = pointer(memory)

"""
    Segment(name; slots = [], outputs, inputs = 1, backward, scratch = (0, 0), save_state, restore_state, state_bytes) do frame ... end

A piece of the forward pass that can be replayed. The do-block is its forward: first run, full and partial recomputation alike, it asks
the frame what is needed. `inputs`: their number, or a vector of their flags (CKPT_INPUT_*). Without a do-block (`Segment(nothing, name; ...)`)
its code is written inline between `begin_segment` and `end_segment`, and cannot be replayed. `scratch`: bytes of a forward and a backward.
"""
mutable struct Segment{F,B,S,R} <: Handle
    raw::Ptr{ckpt_segment}
    name::String
    forward::F
    backward::B
    save_state::S
    restore_state::R
    state_bytes::Int
    slots::Vector{Symbol}
    outputs::Vector{Symbol}
    slot_flags::Vector{UInt32}
    sizes::Vector{Tuple{UInt,UInt}}  # of outputs: bytes, grad_bytes
    memory::Vector{Any}
end
Base.close(segment::Segment) = (pointer = segment.raw; segment.raw = C_NULL; pointer == C_NULL || ckpt_segment_destroy(pointer); nothing)

const FORWARD, BACKWARD = Ref{Ptr{Cvoid}}(C_NULL), Ref{Ptr{Cvoid}}(C_NULL)
const SAVE_STATE, RESTORE_STATE = Ref{Ptr{Cvoid}}(C_NULL), Ref{Ptr{Cvoid}}(C_NULL)
const RELEASE, TRACE = Ref{Ptr{Cvoid}}(C_NULL), Ref{Ptr{Cvoid}}(C_NULL)

function Segment(forward, name::AbstractString; slots = Slot[], outputs, inputs = 1, backward = nothing, scratch = (0, 0),
                 save_state = nothing, restore_state = nothing, state_bytes = 0)
    roots = Any[]
    c_slots, c_outputs = c_parts(slots, outputs, roots)
    flags = inputs isa Integer ? zeros(UInt32, inputs) : UInt32[each for each in inputs]
    name = c_text("name", name)
    out = Ref{Ptr{ckpt_segment}}(C_NULL)
    GC.@preserve roots flags name begin
        desc = ckpt_segment_desc(name = pointer(name), forward = forward === nothing ? C_NULL : FORWARD[],
                                 backward = backward === nothing ? C_NULL : BACKWARD[], slots = pointer(c_slots), outputs = pointer(c_outputs),
                                 input_flags = pointer(flags), slot_count = length(c_slots), output_count = length(c_outputs),
                                 input_count = length(flags), forward_scratch_bytes = scratch[1], backward_scratch_bytes = scratch[2],
                                 save_state = save_state === nothing ? C_NULL : SAVE_STATE[],
                                 restore_state = restore_state === nothing ? C_NULL : RESTORE_STATE[], state_bytes = state_bytes)
        check(ckpt_segment_create(Ref(desc), out))
    end
    segment = Segment(out[], name, forward, backward, save_state, restore_state, Int(state_bytes), [Symbol(slot.name) for slot in slots],
                      [Symbol(output.name) for output in outputs], [slot.flags for slot in slots],
                      [(output.bytes, output.grad_bytes == 0 ? output.bytes : output.grad_bytes) for output in outputs],
                      Any[output.memory for output in outputs])
    finalizer(close, segment)
end
Segment(name::AbstractString; keywords...) = Segment(nothing, name; keywords...)
