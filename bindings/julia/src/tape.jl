"""A boundary: a tensor that passes between segments. Stale ones are errors, never wrong tensors."""
struct Buffer
    raw::UInt64
    bytes::UInt
    grad_bytes::UInt
end

"""
    Tape(arena; budget = 0, seed = 0, strategy = "auto", keep = [], recompute = [], in_flight = 1, checks = 0, replan = true)

Records segments and runs them in reverse (`backward`) within `budget`, in bytes or as "512MiB" (0: the arena's capacity). One thread at a
time.
"""
mutable struct Tape <: Handle
    raw::Ptr{ckpt_tape}
    owner::Owner
    trace::Any
    function Tape(arena::Arena; budget = 0, seed = 0, strategy = "auto", keep = String[], recompute = String[], in_flight = 0, checks = 0, replan = true)
        kind, k = parse_strategy(strategy)
        out = Ref{Ptr{ckpt_tape}}(C_NULL)
        with_patterns(keep, recompute) do keep_patterns, recompute_patterns
            desc = ckpt_tape_desc(checks = checks, arena = raw(arena), budget_bytes = parse_bytes(budget), seed = seed, strategy = kind, strategy_k = k,
                                  keep_patterns = pointer(keep_patterns), recompute_patterns = pointer(recompute_patterns),
                                  keep_pattern_count = length(keep_patterns), recompute_pattern_count = length(recompute_patterns),
                                  in_flight_count = in_flight, replan = replan ? CKPT_REPLAN_AUTO : CKPT_REPLAN_NEVER)
            GC.@preserve arena check(ckpt_tape_create(Ref(desc), out))
        end
        finalizer(close, new(out[], Owner(arena.host), nothing))
    end
end
function Base.close(tape::Tape)
    pointer, tape.raw = tape.raw, C_NULL
    pointer == C_NULL && return
    ckpt_tape_set_trace(pointer, C_NULL, C_NULL)
    ckpt_tape_destroy(pointer)
    let_go(tape.trace)
    tape.trace = nothing
    nothing
end
let_go(::Any) = nothing

"""A finished forward pass, off its tape."""
mutable struct Recording <: Handle
    raw::Ptr{ckpt_recording}
    owner::Owner
end
@handle Recording ckpt_recording ckpt_recording_destroy

"""Throws what a callback threw, or the library's error."""
function settle(owner::Owner, status, last = ckpt_last_error)
    found = owner.caught[]
    if found !== nothing
        owner.caught[] = nothing
        throw(something(found))
    end
    status == CKPT_OK || throw(CkptError(status, unsafe_string(status > 0 ? ckpt_last_error() : last())))
    nothing
end

"""Is nothing recorded? The step can be set only then."""
function is_idle(tape::Tape)
    step = Ref{UInt64}(0)
    ckpt_tape_get_step(tape.raw, step) == CKPT_OK && ckpt_tape_set_step(tape.raw, step[]) == CKPT_OK
end

"""Lets go of what the library is done with."""
function sweep(owner::Owner, ended::Bool)
    filter!(box -> !(box::CallBox).done, owner.live)
    ended && empty!(owner.kept)
    nothing
end

function settle(tape::Tape, status, last = ckpt_last_error)
    if status != CKPT_OK
        text = unsafe_string(status > 0 ? ckpt_last_error() : last())
        sweep(tape.owner, is_idle(tape))
        tape.owner.caught[] === nothing && throw(CkptError(status, text))
    end
    settle(tape.owner, CKPT_OK)
end

"""Random draws of the recording to come use this step."""
set_step(tape::Tape, step) = GC.@preserve tape check(ckpt_tape_set_step(raw(tape), step))
function step(tape::Tape)
    out = Ref{UInt64}(0)
    GC.@preserve tape check(ckpt_tape_get_step(raw(tape), out))
    out[]
end

"""
    start(tape, key = 0; dry = false, backward = true)

Starts a recording; `key` says which plan to expect (0: unknown). dry: nothing runs; `backward` makes the plan, or refuses it with the smallest
budget. `backward = false`: only a forward pass.
"""
function start(tape::Tape, key = 0; dry = false, backward = true)
    flags = flag(dry, CKPT_TAPE_DRY) | flag(!backward, CKPT_TAPE_NO_BACKWARD)
    GC.@preserve tape check(ckpt_tape_begin(raw(tape), key, flags))
    sweep(tape.owner, true)
end

"""Arrays that the library may keep: dense, of plain bits, on the CPU."""
function dense(what, array)
    array isa Array || argument_error(what, " is a ", typeof(array), ", expected an Array (dense, in host memory)")
    isbitstype(eltype(array)) || argument_error(what, " has elements of ", eltype(array), ", expected plain bits")
    array
end

"""The caller's array, and where it was when it was named: growing it would move it."""
struct Kept
    what::String
    array::Array
    data::Ptr{Cvoid}
end
Kept(what, array) = Kept(what, array, Ptr{Cvoid}(pointer(array)))
# Whatever the array's type, without a dynamic call where the runtime has one.
@static if isdefined(Core, :Memory)
    data_of(array::Array) = Ptr{Cvoid}(pointer(array))
else
    data_of(array::Array) = ccall(:jl_array_ptr, Ptr{Cvoid}, (Any,), array)
end
@noinline was_moved(kept) = argument_error(kept.what, " was resized after it was named as an input, expected it unchanged until the recording ends")
function unmoved(owner::Owner)
    for kept in owner.kept
        kept isa Kept && data_of(kept.array) != kept.data && was_moved(kept)
    end
end

"""
    input(tape, array; grad = nothing, accumulate = false)

Names an array as an input of the recording, unchanged until that ends, and where its gradient goes.
"""
function input(tape::Tape, data; grad = nothing, accumulate = false)
    tape.owner.host || argument_error("data: host memory on a tape of another device, expected input(tape, pointer, bytes)")
    dense("data", data)
    if grad !== nothing
        dense("grad", grad)
        sizeof(grad) == sizeof(data) || argument_error("grad has ", sizeof(grad), " bytes, expected ", sizeof(data))
        grad === data && argument_error("grad is the array of data, expected one of its own")
    end
    buffer = input(tape, Ptr{Cvoid}(pointer(data)), sizeof(data); grad = grad === nothing ? C_NULL : Ptr{Cvoid}(pointer(grad)), accumulate = accumulate)
    push!(tape.owner.kept, Kept("data", data))
    grad === nothing || push!(tape.owner.kept, Kept("grad", grad))
    buffer
end

"""Memory of the tape's device, kept alive by the caller until the recording ends. NULL in a dry recording."""
function input(tape::Tape, data::Ptr, bytes::Integer; grad::Ptr = C_NULL, grad_bytes = 0, accumulate = false)
    desc = ckpt_input_desc(flags = flag(accumulate, CKPT_TAPE_INPUT_ACCUMULATE), data = data, bytes = bytes, grad = grad, grad_bytes = grad_bytes)
    out = Ref{UInt64}(0)
    GC.@preserve tape check(ckpt_tape_input(raw(tape), Ref(desc), out))
    Buffer(out[], bytes, grad_bytes == 0 ? bytes : grad_bytes)
end

"""What an input will be, in a dry recording."""
dry_input(tape::Tape, bytes; grad = true) = input(tape, C_NULL, max(bytes, 1); grad = grad ? Ptr{Cvoid}(64) : C_NULL)

sizes(what, given, count) = given === nothing ? UInt[] :
    length(given) == count ? UInt[each for each in given] : argument_error(what, " has ", length(given), " sizes, expected ", count)

"""
The C call, whose user is a box that the owner holds. `watch`: pairs of names and arrays.
"""
function with_call(f, tape::Tape, segment::Segment, inputs, user, slot_bytes, output_bytes, watch)
    slots, outputs = sizes("slot_bytes", slot_bytes, length(segment.slots)), sizes("output_bytes", output_bytes, length(segment.outputs))
    names = String[c_text("watch name", name) for (name, _) in watch]
    arrays = [dense("watch", array) for (_, array) in watch]
    watches = ckpt_watch[ckpt_watch(pointer(name), pointer(array), sizeof(array)) for (name, array) in zip(names, arrays)]
    numbers = UInt64[buffer.raw for buffer in inputs]
    box = held_box(tape, segment, user, (names, arrays))
    GC.@preserve tape segment numbers slots outputs watches begin
        call = ckpt_call(input_count = length(numbers), user = pointer_from_objref(box), release = RELEASE[], inputs = pointer(numbers),
                         slot_bytes = slot_bytes === nothing ? C_NULL : pointer(slots), output_bytes = output_bytes === nothing ? C_NULL : pointer(outputs),
                         watch = pointer(watches), watch_count = length(watches))
        return f(Ref(call))
    end
end

function held_box(tape::Tape, segment::Segment, user, roots)
    raw(tape), raw(segment) # closed ones are errors, before anything is held
    unmoved(tape.owner)
    box = CallBox(false, segment, user, tape.owner, roots)
    push!(tape.owner.live, box)
    box
end

"""Calls that run callbacks stay on their thread, whatever a callback waits for: the library's frames are on the task's stack."""
macro pinned(call)
    quote
        local task = current_task()
        local before = task.sticky
        task.sticky = true
        local status = $(esc(call)) # does not throw: what callbacks throw is caught
        task.sticky = before
        status
    end
end

"""The usual call, with what is declared: as `with_call`, with fewer objects."""
function run_plain(tape::Tape, segment::Segment, inputs::NTuple{N,Buffer}, user, out) where {N}
    numbers = Ref(map(buffer -> buffer.raw, inputs))
    box = held_box(tape, segment, user, nothing)
    GC.@preserve tape segment numbers begin
        call = Ref(ckpt_call(input_count = N, user = pointer_from_objref(box), release = RELEASE[],
                             inputs = N == 0 ? Ptr{UInt64}(C_NULL) : Ptr{UInt64}(Base.unsafe_convert(Ptr{NTuple{N,UInt64}}, numbers))))
        pointers = (raw(tape), raw(segment))
        @pinned ckpt_segment_run(pointers[1], pointers[2], call, out)
    end
end

function buffers(segment::Segment, output_bytes, raw_outputs)
    function buffer(k)
        bytes, grad_bytes = segment.sizes[k]
        given = output_bytes === nothing ? bytes : UInt(output_bytes[k])
        Buffer(raw_outputs[k], given, grad_bytes == bytes ? given : grad_bytes)
    end
    length(raw_outputs) == 1 ? buffer(1) : Buffer[buffer(k) for k in eachindex(raw_outputs)]
end

"""
    run(tape, segment, inputs...; user = nothing, slot_bytes, output_bytes, watch = ("weights" => array,))

Runs a segment: its output, or a vector of them. `user(frame)` gives `user` back; it lives until the recording is done with it. Watched
arrays are hashed under CKPT_CHECK_INPUTS.
"""
function Base.run(tape::Tape, segment::Segment, inputs::Buffer...; user = nothing, slot_bytes = nothing, output_bytes = nothing, watch = ())
    plain = slot_bytes === nothing && output_bytes === nothing && isempty(watch)
    if plain && length(segment.outputs) == 1
        out = Ref{UInt64}(0)
        settle(tape, run_plain(tape, segment, inputs, user, out))
        bytes, grad_bytes = @inbounds segment.sizes[1]
        return Buffer(out[], bytes, grad_bytes)
    end
    run_general(tape, segment, inputs, user, slot_bytes, output_bytes, watch)
end
function run_general(tape, segment, inputs, user, slot_bytes, output_bytes, watch)
    out = zeros(UInt64, length(segment.outputs))
    status = with_call(tape, segment, inputs, user, slot_bytes, output_bytes, watch) do call
        pointers = (raw(tape), raw(segment))
        @pinned ckpt_segment_run(pointers[1], pointers[2], call, out)
    end
    settle(tape, status)
    buffers(segment, output_bytes, out)
end

"""Begins a segment whose code is written inline: the frame, until `end_segment(frame)` gives its outputs, or `abandon(frame)` ends it."""
function begin_segment(tape::Tape, segment::Segment, inputs::Buffer...; user = nothing, slot_bytes = nothing, output_bytes = nothing, watch = ())
    out = Ref{Ptr{ckpt_frame}}(C_NULL)
    status = with_call(tape, segment, inputs, user, slot_bytes, output_bytes, watch) do call
        ckpt_segment_begin(raw(tape), raw(segment), call, out)
    end
    settle(tape, status)
    OpenSegment(tape, Frame(out[], segment, user, tape.owner), output_bytes, true)
end

mutable struct OpenSegment{F<:Frame}
    tape::Tape
    frame::F
    output_bytes::Any
    open::Bool
end
function take(open::OpenSegment)
    open.open || argument_error("segment is ended already")
    open.open = false
    open.frame.owner.open = 0
    open.frame
end
function end_segment(open::OpenSegment)
    frame = take(open)
    out = zeros(UInt64, length(frame.segment.outputs))
    settle(open.tape, ckpt_segment_end(frame.raw, CKPT_OK, out))
    buffers(frame.segment, open.output_bytes, out)
end
"""Ends the segment and the recording with it."""
function abandon(open::OpenSegment)
    ckpt_segment_end(take(open).raw, Int32(1), C_NULL)
    sweep(open.tape.owner, is_idle(open.tape))
end

"""No later segment names this boundary, and nobody will read it."""
release(tape::Tape, buffer::Buffer) = GC.@preserve tape check(ckpt_tape_release(raw(tape), buffer.raw))

function data_pointer(tape::Tape, buffer::Buffer)
    out = Ref{Ptr{Cvoid}}(C_NULL)
    pointer = raw(tape)
    settle(tape, GC.@preserve tape @pinned ckpt_tape_read(pointer, buffer.raw, out))
    out[]
end
function data_pointer(recording::Recording, buffer::Buffer)
    out = Ref{Ptr{Cvoid}}(C_NULL)
    pointer = raw(recording)
    settle(recording.owner, GC.@preserve recording @pinned ckpt_recording_read(pointer, buffer.raw, out))
    out[]
end

"""
    data(tape, Float32, buffer)

A copy of a boundary's data, brought back if need be. `data_pointer` gives its device address, held until `release` or backward.
"""
function data(of::Union{Tape,Recording}, ::Type{T}, buffer::Buffer) where {T}
    of.owner.host || argument_error("buffer: memory of another device than the CPU, expected data_pointer")
    isbitstype(T) || not_bits(T)
    fits(buffer.bytes, T) || wrong_size("buffer", buffer.raw, buffer.bytes, T)
    found = data_pointer(of, buffer)
    found == C_NULL && throw(CkptError(CKPT_ERROR_STATE, "buffer: no data in a dry recording"))
    copy(unsafe_wrap(Array, Ptr{T}(found), Int(buffer.bytes ÷ max(1, sizeof(T)))))
end

"""Drops what is recorded."""
function reset(tape::Tape)
    GC.@preserve tape check(ckpt_tape_reset(raw(tape)))
    sweep(tape.owner, true)
end

root(owner, buffer::Buffer) = (buffer, C_NULL)
root(owner, pair::Pair{Buffer,Nothing}) = (pair.first, C_NULL)
root(owner, pair::Pair{Buffer,<:Ptr}) = (pair.first, Ptr{Cvoid}(pair.second))
function root(owner, pair::Pair{Buffer})
    buffer, grad = pair
    owner.host || argument_error("gradient: host memory on a tape of another device, expected a pointer")
    dense("gradient", grad)
    sizeof(grad) == buffer.grad_bytes || argument_error("gradient has ", sizeof(grad), " bytes, expected ", Int(buffer.grad_bytes))
    (buffer, Ptr{Cvoid}(pointer(grad)))
end

"""
    backward(tape, y => dy, ...; retain = false)

Runs the recording in reverse from these outputs. A buffer by itself: its segment seeds itself. Also of a recording that was detached.
"""
function backward(of::Union{Tape,Recording}, roots...; retain = false)
    owner = of.owner
    unmoved(owner)
    found = [root(owner, each) for each in roots]
    outputs, grads = UInt64[buffer.raw for (buffer, _) in found], Ptr{Cvoid}[grad for (_, grad) in found]
    flags = flag(retain, CKPT_BACKWARD_RETAIN)
    status = GC.@preserve of roots run_backward(of, outputs, grads, flags)
    if of isa Tape
        settle(of, status)
        sweep(owner, !retain)
    else
        sweep(owner, !retain && status == CKPT_OK)
        settle(owner, status)
    end
end
run_backward(tape::Tape, outputs, grads, flags) = (pointer = raw(tape); @pinned ckpt_backward(pointer, outputs, grads, length(outputs), flags))
run_backward(recording::Recording, outputs, grads, flags) =
    (pointer = raw(recording); @pinned ckpt_recording_backward(pointer, outputs, grads, length(outputs), flags))

"""Takes the finished forward pass off the tape."""
function detach(tape::Tape)
    out = Ref{Ptr{ckpt_recording}}(C_NULL)
    GC.@preserve tape check(ckpt_tape_detach(raw(tape), out))
    owner = tape.owner
    tape.owner = Owner(owner.host, owner.caught)
    finalizer(close, Recording(out[], owner))
end

# ---- plans of a tape ----

"""The cost model of a known recording, with the costs measured so far."""
function Chain(tape::Tape, key)
    out = Ref{Ptr{ckpt_chain}}(C_NULL)
    GC.@preserve tape check(ckpt_tape_chain(raw(tape), key, out))
    Chain(out[])
end
"""The plan in use for a known recording."""
function Plan(tape::Tape, key)
    out = Ref{Ptr{ckpt_plan}}(C_NULL)
    GC.@preserve tape check(ckpt_tape_plan(raw(tape), key, out))
    Plan(out[])
end
"""Uses this plan for `key` from the next recording on."""
adopt(tape::Tape, key, plan::Plan) = GC.@preserve tape plan check(ckpt_tape_adopt(raw(tape), key, raw(plan)))
"""Does beforehand all that a step with this key would have to do but for the work itself."""
prepare(tape::Tape, key) = GC.@preserve tape check(ckpt_tape_prepare(raw(tape), key))
"""Says that a captured step of this tape is launched next (CUDA)."""
replay(tape::Tape) = GC.@preserve tape check(ckpt_tape_replay(raw(tape)))
function stats(tape::Tape)
    out = Ref(ckpt_tape_stats())
    GC.@preserve tape check(ckpt_tape_get_stats(raw(tape), out))
    out[]
end

mutable struct Tracer
    call::Any
    owner::Owner
end
function trace_entry(user::Ptr{Cvoid}, what::UInt32, index::UInt32, in_use_bytes::Csize_t, is_recompute::UInt32)
    tracer = unsafe_pointer_to_objref(user)::Tracer
    try
        tracer.call(what, index, in_use_bytes, is_recompute != 0)
    catch err
        caught(tracer.owner, Ptr{ckpt_frame}(C_NULL), err)
    end
    nothing
end

"""
    set_trace(tape) do what, index, in_use_bytes, is_recompute ... end

Calls this at each change of memory; `set_trace(nothing, tape)` ends it.
"""
function set_trace(call, tape::Tape)
    tracer = call === nothing ? nothing : Tracer(call, tape.owner)
    GC.@preserve tape check(ckpt_tape_set_trace(raw(tape), call === nothing ? C_NULL : TRACE[], tracer === nothing ? C_NULL : pointer_from_objref(tracer)))
    let_go(tape.trace)
    tape.trace = tracer
    nothing
end

"""
    Trace(event_limit)

Records what a tape does, with times: `attach(trace, tape)`, `json(trace, chain)`.
"""
mutable struct Trace <: Handle
    raw::Ptr{ckpt_trace}
    users::Int     # tapes that write to it: it goes after the last of them, in whatever order finalizers run
    dropped::Bool
    function Trace(event_limit)
        out = Ref{Ptr{ckpt_trace}}(C_NULL)
        check(ckpt_trace_create(event_limit, out))
        finalizer(close, new(out[], 0, false))
    end
end
function Base.close(trace::Trace)
    trace.dropped = true
    pointer = trace.raw
    (trace.users > 0 || pointer == C_NULL) && return
    trace.raw = C_NULL
    ckpt_trace_destroy(pointer)
end
function let_go(trace::Trace)
    trace.users -= 1
    trace.dropped && close(trace)
    nothing
end
function attach(trace::Trace, tape::Tape)
    GC.@preserve trace tape check(ckpt_trace_attach(raw(trace), raw(tape)))
    let_go(tape.trace)
    trace.users += 1
    tape.trace = trace
    nothing
end
clear(trace::Trace) = GC.@preserve trace check(ckpt_trace_clear(raw(trace)))
function json(trace::Trace, chain::Union{Nothing,Chain} = nothing)
    out = Ref{Ptr{UInt8}}(C_NULL)
    GC.@preserve trace chain check(ckpt_trace_to_json(raw(trace), chain === nothing ? C_NULL : raw(chain), out))
    take_text(out)
end
