# Chains, strategies and plans.

"""Strategy and k from "auto", "uniform:4", ..."""
function parse_strategy(text)
    strategy, k = Ref{UInt32}(0), Ref{UInt32}(0)
    check(ckpt_strategy_parse(c_text("strategy", text), strategy, k))
    (strategy[], k[])
end
strategy_name(strategy) = unsafe_string(ckpt_strategy_name(strategy))

"""A class of programs, "sigma+s+w"."""
function parse_class(text)
    out = Ref{UInt32}(0)
    check(ckpt_class_parse(c_text("class", text), out))
    out[]
end
class_name(class) = unsafe_string(ckpt_class_name(class))

function with_patterns(f, keep, recompute)
    texts = String[c_text("pattern", text) for text in Iterators.flatten((keep, recompute))]
    pointers = Ptr{UInt8}[pointer(text) for text in texts]
    GC.@preserve texts begin
        a, b = pointers[1:length(keep)], pointers[length(keep)+1:end]
        GC.@preserve a b f(a, b)
    end
end

"""
    ChainSegment(name; forward_seconds, backward_seconds, slots = [], outputs, inputs = nothing, input_flags = nothing, whole, saved_holds_input, scratch = (0, 0))

One segment of a chain that is put together by hand. `inputs`: boundary numbers as in C, from 0; nothing: the previous segment's first output.
"""
struct ChainSegment
    name::String
    forward_seconds::Float64
    backward_seconds::Float64
    slots::Vector{Slot}
    outputs::Vector{Output}
    inputs::Union{Nothing,Vector{UInt32}}
    input_flags::Union{Nothing,Vector{UInt32}}
    flags::UInt32
    scratch::Tuple{UInt,UInt}
end
function ChainSegment(name; forward_seconds, backward_seconds, slots = Slot[], outputs, inputs = nothing, input_flags = nothing, whole = false,
                      saved_holds_input = false, scratch = (0, 0))
    if input_flags !== nothing && (inputs === nothing || length(inputs) != length(input_flags))
        argument_error("segment ", name, ": ", length(input_flags), " input_flags, expected one for each of inputs")
    end
    flags = flag(whole, CKPT_CHAIN_SEGMENT_WHOLE) | flag(saved_holds_input, CKPT_CHAIN_SEGMENT_SAVED_HOLDS_INPUT)
    ChainSegment(String(name), forward_seconds, backward_seconds, slots, outputs, inputs, input_flags, flags, (UInt(scratch[1]), UInt(scratch[2])))
end

"""The cost model of one recording: by hand, from JSON (`Chain(text)`), or from a tape (`Chain(tape, key)`)."""
mutable struct Chain <: Handle
    raw::Ptr{ckpt_chain}
    Chain(raw::Ptr{ckpt_chain}) = finalizer(close, new(raw))
end
@handle Chain ckpt_chain ckpt_chain_destroy

function Chain(segments::Vector{ChainSegment}; inputs = ckpt_chain_input[], output_grad = CKPT_GRAD_NONE, alignment = 0)
    roots = Any[]
    c_segments = ckpt_chain_segment[]
    for segment in segments
        slots, outputs = c_parts(segment.slots, segment.outputs, roots)
        name = c_text("segment name", segment.name)
        push!(roots, name, segment.inputs, segment.input_flags)
        push!(c_segments, ckpt_chain_segment(name = pointer(name), forward_seconds = segment.forward_seconds, backward_seconds = segment.backward_seconds,
                                             slots = pointer(slots), outputs = pointer(outputs),
                                             inputs = segment.inputs === nothing ? C_NULL : pointer(segment.inputs),
                                             input_flags = segment.input_flags === nothing ? C_NULL : pointer(segment.input_flags),
                                             slot_count = length(slots), output_count = length(outputs),
                                             input_count = segment.inputs === nothing ? 0 : length(segment.inputs), flags = segment.flags,
                                             forward_scratch_bytes = segment.scratch[1], backward_scratch_bytes = segment.scratch[2]))
    end
    c_inputs = ckpt_chain_input[each for each in inputs]
    out = Ref{Ptr{ckpt_chain}}(C_NULL)
    GC.@preserve roots segments c_segments c_inputs begin
        desc = ckpt_chain_desc(segment_size = sizeof(ckpt_chain_segment), slot_size = sizeof(ckpt_slot), output_size = sizeof(ckpt_output),
                               inputs = isempty(c_inputs) ? C_NULL : pointer(c_inputs), segments = pointer(c_segments), input_count = length(c_inputs),
                               segment_count = length(c_segments), output_grad = output_grad, alignment_bytes = alignment)
        check(ckpt_chain_create(Ref(desc), out))
    end
    Chain(out[])
end

function Chain(text::AbstractString; alignment = 0, source = "chain")
    out = Ref{Ptr{ckpt_chain}}(C_NULL)
    text = String(text)
    check(ckpt_chain_from_json(text, sizeof(text), alignment, c_text("source", source), out))
    Chain(out[])
end

"""Structure and sizes, not seconds."""
Base.hash(chain::Chain, h::UInt) = xor(fingerprint(chain), h) % UInt
fingerprint(chain::Chain) = GC.@preserve chain ckpt_chain_hash(raw(chain))
Base.length(chain::Chain) = Int(GC.@preserve chain ckpt_chain_segment_count(raw(chain)))

function json(chain::Chain)
    out = Ref{Ptr{UInt8}}(C_NULL)
    GC.@preserve chain check(ckpt_chain_to_json(raw(chain), out))
    take_text(out)
end

"""
    Plan(chain; strategy = "auto", budget = 0, in_flight = 0, keep = [], recompute = [], work_limit = 0, class = nothing)

A program with its predicted peak, arena height and time: `summary`, `actions`, `placements`, `explain`, `json`.
"""
mutable struct Plan <: Handle
    raw::Ptr{ckpt_plan}
    Plan(raw::Ptr{ckpt_plan}) = finalizer(close, new(raw))
end
@handle Plan ckpt_plan ckpt_plan_destroy

function with_plan_desc(f; strategy = "auto", budget = 0, in_flight = 0, keep = String[], recompute = String[], work_limit = 0, class = nothing)
    kind, k = parse_strategy(strategy)
    with_patterns(keep, recompute) do keep_patterns, recompute_patterns
        f(Ref(ckpt_plan_desc(strategy = kind, k = k, in_flight_count = in_flight, keep_patterns = pointer(keep_patterns),
                             recompute_patterns = pointer(recompute_patterns), keep_pattern_count = length(keep_patterns),
                             recompute_pattern_count = length(recompute_patterns), budget_bytes = parse_bytes(budget), work_limit = work_limit,
                             plan_class = class === nothing ? CKPT_CLASS_DEFAULT : parse_class(class))))
    end
end

function Plan(chain::Chain; keywords...)
    out = Ref{Ptr{ckpt_plan}}(C_NULL)
    with_plan_desc(; keywords...) do desc
        GC.@preserve chain check(ckpt_plan_create(raw(chain), desc, out))
    end
    Plan(out[])
end

"""The smallest budget that `Plan` accepts for these options."""
function minimum_budget(chain::Chain; keywords...)
    out = Ref{Csize_t}(0)
    with_plan_desc(; keywords...) do desc
        GC.@preserve chain check(ckpt_plan_minimum_budget(raw(chain), desc, out))
    end
    Int(out[])
end

"""Time over budget: at most `capacity` points."""
function curve(chain::Chain, capacity::Integer; keywords...)
    points, count = [ckpt_curve_point() for _ in 1:capacity], Ref{UInt32}(0)
    with_plan_desc(; keywords...) do desc
        GC.@preserve chain check(ckpt_plan_curve(raw(chain), desc, capacity, sizeof(ckpt_curve_point), points, count))
    end
    resize!(points, count[])
end

"""A plan from a program of any origin: verified, predicted and placed like any other."""
function Plan(chain::Chain, actions::Vector{ckpt_action}; in_flight = 1, budget = 0)
    out = Ref{Ptr{ckpt_plan}}(C_NULL)
    GC.@preserve chain check(ckpt_plan_from_actions(raw(chain), actions, length(actions), sizeof(ckpt_action), in_flight, parse_bytes(budget), out))
    Plan(out[])
end
function Plan(text::AbstractString, chain::Chain; source = "plan")
    out = Ref{Ptr{ckpt_plan}}(C_NULL)
    text = String(text)
    GC.@preserve chain check(ckpt_plan_from_json(text, sizeof(text), c_text("source", source), raw(chain), out))
    Plan(out[])
end

function plan_text(write, plan)
    out = Ref{Ptr{UInt8}}(C_NULL)
    GC.@preserve plan check(write(raw(plan), out))
    take_text(out)
end
json(plan::Plan) = plan_text(ckpt_plan_to_json, plan)
"""The actions in the vocabulary of checkpoint_schedules."""
schedule_json(plan::Plan) = plan_text(ckpt_plan_to_schedule_json, plan)
"""The step with its predicted times as Chrome's trace events."""
trace_json(plan::Plan) = plan_text(ckpt_plan_to_trace_json, plan)

function summary(plan::Plan)
    out = Ref(ckpt_plan_summary())
    GC.@preserve plan check(ckpt_plan_get_summary(raw(plan), out))
    out[]
end
"""Equal plans on two machines have equal fingerprints."""
fingerprint(plan::Plan) = GC.@preserve plan ckpt_plan_hash(raw(plan))
function actions(plan::Plan)
    all = [ckpt_action() for _ in 1:summary(plan).action_count]
    GC.@preserve plan check(ckpt_plan_get_actions(raw(plan), 0, length(all), sizeof(ckpt_action), all))
    all
end
function placements(plan::Plan)
    all = [ckpt_placement() for _ in 1:summary(plan).placement_count]
    GC.@preserve plan check(ckpt_plan_get_placements(raw(plan), 0, length(all), sizeof(ckpt_placement), all))
    all
end
"""Each slot and boundary under this plan, and what the opposite choice would do."""
function explain(plan::Plan, chain::Chain)
    count = Ref{UInt32}(0)
    GC.@preserve plan chain begin
        check(ckpt_plan_explain(raw(chain), raw(plan), 0, 0, sizeof(ckpt_explanation), C_NULL, count))
        all = [ckpt_explanation() for _ in 1:count[]]
        check(ckpt_plan_explain(raw(chain), raw(plan), 0, count[], sizeof(ckpt_explanation), all, C_NULL))
    end
    all
end
"""Checks a program against every rule of the machine."""
function verify(chain::Chain, actions::Vector{ckpt_action})
    peak, seconds, recompute = Ref{Csize_t}(0), Ref(0.0), Ref(0.0)
    GC.@preserve chain check(ckpt_program_verify(raw(chain), actions, length(actions), sizeof(ckpt_action), peak, seconds, recompute))
    (peak_bytes = Int(peak[]), seconds = seconds[], recompute_seconds = recompute[])
end
