# Schedules for loops, packing, estimates.

"""The fewest extra forward steps for this many steps and snapshots, the input's included."""
function revolve_extra_forwards(steps, snapshots)
    out = Ref{UInt64}(0)
    check(ckpt_revolve_extra_forwards(steps, snapshots, out))
    out[]
end

"""
    Schedule(steps, snapshots)

Iterates over the actions of Revolve: named tuples of kind (:store, :restore, :advance, :backward), snapshot (from 0), first, last.
"""
mutable struct Schedule <: Handle
    raw::Ptr{ckpt_schedule}
    function Schedule(steps, snapshots)
        out = Ref{Ptr{ckpt_schedule}}(C_NULL)
        check(ckpt_schedule_revolve(steps, snapshots, out))
        finalizer(close, new(out[]))
    end
end
@handle Schedule ckpt_schedule ckpt_schedule_destroy

const SCHEDULE_KINDS = (:store, :restore, :advance, :backward)
function Base.iterate(schedule::Schedule, _ = nothing)
    out = Ref(ckpt_schedule_action())
    GC.@preserve schedule check(ckpt_schedule_next(raw(schedule), out))
    found = out[]
    found.kind == CKPT_SCHEDULE_DONE && return nothing
    ((kind = SCHEDULE_KINDS[found.kind], snapshot = Int(found.snapshot), first = found.first, last = found.last), nothing)
end
Base.IteratorSize(::Type{Schedule}) = Base.SizeUnknown()

"""All actions in the vocabulary of checkpoint_schedules; the schedule is at its end afterwards."""
function json(schedule::Schedule)
    out = Ref{Ptr{UInt8}}(C_NULL)
    GC.@preserve schedule check(ckpt_schedule_to_json(raw(schedule), out))
    take_text(out)
end

"""
    pack(buffers; alignment = 0, capacity = 0, work_limit = 0)

Offsets for buffers `(lower, upper, bytes)` that live in [lower, upper), and what is known of the height.
"""
function pack(buffers; alignment = 0, capacity = 0, work_limit = 0)
    list = ckpt_pack_buffer[ckpt_pack_buffer(each...) for each in buffers]
    offsets, result = zeros(Csize_t, length(list)), Ref(ckpt_pack_result())
    GC.@preserve list begin
        desc = ckpt_pack_desc(buffer_size = sizeof(ckpt_pack_buffer), buffers = pointer(list), buffer_count = length(list), alignment_bytes = alignment,
                              capacity_bytes = parse_bytes(capacity), work_limit = work_limit)
        check(ckpt_pack(Ref(desc), offsets, result))
    end
    (offsets = Int.(offsets), result = result[])
end

recompute_name(policy) = unsafe_string(ckpt_recompute_name(policy))

optional(::Nothing) = C_NULL
optional(desc) = Ref(desc)

"""Of one rank of the pipeline; descs are `Ckpt.ckpt_model_desc(layers = 12, ...)` and so on."""
function estimate_rank(model::ckpt_model_desc, layout::ckpt_layout_desc = ckpt_layout_desc(); hardware = nothing, policy = CKPT_RECOMPUTE_NONE, rank = 0, budget = 0)
    out = Ref(ckpt_estimate())
    check(ckpt_estimate_rank(Ref(model), Ref(layout), optional(hardware), policy, rank, parse_bytes(budget), out))
    out[]
end
"""The chain of one chunk of layers of one rank."""
function estimate_chain(model::ckpt_model_desc, layout::ckpt_layout_desc = ckpt_layout_desc(); hardware = nothing, rank = 0, chunk = 0, alignment = 0)
    out = Ref{Ptr{ckpt_chain}}(C_NULL)
    check(ckpt_estimate_chain(Ref(model), Ref(layout), optional(hardware), rank, chunk, alignment, out))
    Chain(out[])
end
