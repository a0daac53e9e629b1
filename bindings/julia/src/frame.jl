"""What the tapes and recordings of one arena share on this side: what has to live, and what a callback threw."""
mutable struct Owner
    host::Bool
    live::Vector{Any}  # CallBox: uses of segments that the library has not released
    kept::Vector{Any}  # the caller's arrays, layers: until the recording ends
    caught::Base.RefValue{Any}  # what a callback threw, on its way over the C frames
    frames::Int  # so far
    open::Int    # the frame that may be used now; 0: none
end
Owner(host::Bool, caught = Base.RefValue{Any}(nothing)) = Owner(host, Any[], Any[], caught, 0, 0)

"""One use of a segment: the `user` of its call. `done` is set when the library is done with it; nothing else happens then, as that may be
in a finalizer. Its owner holds it until a sweep finds it done."""
mutable struct CallBox
    done::Bool
    segment::Any
    user::Any
    owner::Owner
    roots::Any
end

"""One execution of a segment: only there inside the segment's code. Arrays of it may not be used afterwards."""
struct Frame{S<:Segment,U}
    raw::Ptr{ckpt_frame}
    segment::S
    user::U
    owner::Owner
    serial::Int
end
opened(owner::Owner) = owner.open = owner.frames += 1
Frame(raw, segment, user, owner) = Frame(raw, segment, user, owner, opened(owner))

@noinline frame_over(f::Frame) = argument_error("a frame of segment '", f.segment.name, "' is over: it may be used inside its callback only")
"""The C frame; an error after its callback."""
@inline live(f::Frame) = f.serial == f.owner.open ? f.raw : frame_over(f)

# One dynamic call each: behind it all types are known.
call_forward(segment, user, frame::Ptr{ckpt_frame}, owner::Owner) = (segment.forward(Frame(frame, segment, user, owner)); nothing)
call_backward(segment, user, frame::Ptr{ckpt_frame}, owner::Owner) = (segment.backward(Frame(frame, segment, user, owner)); nothing)

"""Keeps what a callback threw; the status goes over the C frames in its place."""
function caught(owner::Owner, frame::Ptr{ckpt_frame}, err)
    status = err isa CkptError && err.status != 0 ? err.status : Int32(1)
    try
        owner.caught[] = Some(err)
        text = replace(first(sprint(showerror, err), 900), '\0' => ' ')
        frame == C_NULL || ckpt_frame_fail(frame, status, text)
    catch
    end
    status
end

function forward_entry(user::Ptr{Cvoid}, frame::Ptr{ckpt_frame})
    box = unsafe_pointer_to_objref(user)::CallBox
    try
        call_forward(box.segment, box.user, frame, box.owner)
        box.owner.open = 0
        return Int32(0)
    catch err
        box.owner.open = 0
        return caught(box.owner, frame, err)
    end
end

function backward_entry(user::Ptr{Cvoid}, frame::Ptr{ckpt_frame})
    box = unsafe_pointer_to_objref(user)::CallBox
    try
        call_backward(box.segment, box.user, frame, box.owner)
        box.owner.open = 0
        return Int32(0)
    catch err
        box.owner.open = 0
        return caught(box.owner, frame, err)
    end
end

function state_entry(choose, user, state)
    box = unsafe_pointer_to_objref(user)::CallBox
    try
        choose(box.segment)(unsafe_wrap(Array, Ptr{UInt8}(state), box.segment.state_bytes), box.user)
        return Int32(0)
    catch err
        return caught(box.owner, Ptr{ckpt_frame}(C_NULL), err)
    end
end
save_entry(user::Ptr{Cvoid}, state::Ptr{Cvoid}) = state_entry(segment -> segment.save_state, user, state)
restore_entry(user::Ptr{Cvoid}, state::Ptr{Cvoid}) = state_entry(segment -> segment.restore_state, user, state)

function release_entry(user::Ptr{Cvoid})
    (unsafe_pointer_to_objref(user)::Union{CallBox,Slab}).done = true
    nothing
end

# ---- what a frame is asked for ----

@inline number(names::Vector{Symbol}, k::Integer, what) = UInt32(k - 1)
function number(names::Vector{Symbol}, name::Symbol, what)
    for k in eachindex(names)
        @inbounds names[k] === name && return UInt32(k - 1)
    end
    argument_error(what, " '", name, "' is not one of ", join(names, ", "))
end
@inline slot_number(f::Frame, k) = number(f.segment.slots, k, "slot")
@inline output_number(f::Frame, k) = number(f.segment.outputs, k, "output")

"""Compute this slot now? By name or number (from 1)."""
needs(f::Frame, slot) = ckpt_frame_needs(live(f), slot_number(f, slot)) != 0
needs_output(f::Frame, output) = ckpt_frame_needs_output(live(f), output_number(f, output)) != 0

@noinline wrong_size(what, k, bytes, ::Type{T}) where {T} =
    argument_error(what, " ", k, " has ", bytes, " bytes, expected a multiple of ", sizeof(T), " (", T, ")")
@noinline not_host(what, k) = argument_error(what, " ", k, ": memory of another device than the CPU, expected ", what, "_pointer")

@noinline not_bits(::Type{T}) where {T} = argument_error("element type is ", T, ", expected plain bits")
fits(bytes, ::Type{T}) where {T} = sizeof(T) == 0 ? bytes == 0 : bytes % sizeof(T) == 0

"""The memory as an array: empty where there is none now."""
@inline function wrap(f::Frame, ::Type{T}, data::Ptr, code, what, k) where {T}
    isbitstype(T) || not_bits(T)
    data == C_NULL && return T[]
    f.owner.host || not_host(what, k + 1)
    bytes = ckpt_frame_bytes(live(f), code, k)
    fits(bytes, T) || wrong_size(what, k + 1, bytes, T)
    unsafe_wrap(Array, Ptr{T}(data), Int(bytes ÷ max(1, sizeof(T))))
end

shaped(array, what, dims) = isempty(array) && prod(dims) != 0 ? similar(array, map(_ -> 0, dims)) :
    length(array) == prod(dims) ? reshape(array, dims) : argument_error(what, " has ", length(array), " elements, expected ", dims)

"""
    slot(f, Float32, :act), output(f, Float32, 1), input(f, Float32, 1), scratch(f, Float32)

Arrays, as long as declared. One that is not there in this execution, as nobody who is asked for now reads it, is empty: work only
where `needs` says so. With a last argument `dims` in that shape.
"""
slot(f::Frame, ::Type{T}, k) where {T} = (n = slot_number(f, k); wrap(f, T, ckpt_frame_slot(live(f), n), CKPT_FRAME_SLOT, "slot", n))
output(f::Frame, ::Type{T}, k) where {T} = (n = output_number(f, k); wrap(f, T, ckpt_frame_output(live(f), n), CKPT_FRAME_OUTPUT, "output", n))
input(f::Frame, ::Type{T}, k::Integer) where {T} = wrap(f, T, ckpt_frame_input(live(f), k - 1), CKPT_FRAME_INPUT, "input", k - 1)
scratch(f::Frame, ::Type{T}) where {T} = wrap(f, T, ckpt_frame_scratch(live(f)), CKPT_FRAME_SCRATCH, "scratch", 0)
slot(f::Frame, T::Type, k, dims::Dims) = shaped(slot(f, T, k), "slot", dims)
output(f::Frame, T::Type, k, dims::Dims) = shaped(output(f, T, k), "output", dims)
input(f::Frame, T::Type, k::Integer, dims::Dims) = shaped(input(f, T, k), "input", dims)
scratch(f::Frame, T::Type, dims::Dims) = shaped(scratch(f, T), "scratch", dims)

"""Backward: the gradient of an output; nothing: zero (or a root that seeds itself)."""
function output_grad(f::Frame, ::Type{T}, k) where {T}
    n = output_number(f, k)
    data = ckpt_frame_output_grad(live(f), n)
    data == C_NULL ? nothing : wrap(f, T, data, CKPT_FRAME_OUTPUT_GRAD, "output_grad", n)
end

"""Backward: the gradient of an input and whether to add to it; nothing: not wanted. With CKPT_INPUT_GRAD_OVER_OUTPUT_0 it may be the memory
of the output's gradient."""
function input_grad(f::Frame, ::Type{T}, k::Integer) where {T}
    data, accumulate = input_grad_pointer(f, k)
    (data == C_NULL ? nothing : wrap(f, T, data, CKPT_FRAME_INPUT_GRAD, "input_grad", k - 1), accumulate)
end

# Device addresses, for CUDA.jl: NULL where there is nothing now.
slot_pointer(f::Frame, k) = ckpt_frame_slot(live(f), slot_number(f, k))
output_pointer(f::Frame, k) = ckpt_frame_output(live(f), output_number(f, k))
input_pointer(f::Frame, k::Integer) = ckpt_frame_input(live(f), k - 1)
output_grad_pointer(f::Frame, k) = ckpt_frame_output_grad(live(f), output_number(f, k))
scratch_pointer(f::Frame) = ckpt_frame_scratch(live(f))
function input_grad_pointer(f::Frame, k::Integer)
    accumulate = Ref{Cint}(0)
    data = ckpt_frame_input_grad(live(f), k - 1, accumulate)
    (data, accumulate[] != 0)
end
"""The arena's stream, for CUDA.jl."""
stream(f::Frame) = ckpt_frame_stream(live(f))

"""The snapshot for draws of this segment in this step: the same in first run, recompute and backward."""
function random(f::Frame, site)
    out = Ref(ckpt_philox())
    ckpt_frame_random(live(f), site, out)
    found = out[]
    if f.owner.host && found.step_word != C_NULL
        found = ckpt_philox(found.seed, found.subsequence + unsafe_load(found.step_word), found.offset, C_NULL)
    end
    Philox(found)
end

"""A replay: do not count, update or log twice."""
is_recompute(f::Frame) = ckpt_frame_is_recompute(live(f)) != 0
is_backward(f::Frame) = ckpt_frame_is_backward(live(f)) != 0
is_dry(f::Frame) = ckpt_frame_is_dry(live(f)) != 0
"""This segment's place in the recording, from 0: the loop index."""
index(f::Frame) = ckpt_frame_index(live(f))
step(f::Frame) = ckpt_frame_step(live(f))
"""What the call was given as `user`."""
user(f::Frame) = f.user
