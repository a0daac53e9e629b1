# Handles own a pointer; finalizers may run in any order, on any thread: the library keeps parents alive. `close` gives one back now.

abstract type Handle end

is_open(handle::Handle) = handle.raw != C_NULL

"""The C handle; an error after `close`."""
function raw(handle::Handle)
    handle.raw == C_NULL && argument_error(nameof(typeof(handle)), " is closed")
    handle.raw
end

Base.show(io::IO, handle::Handle) = print(io, nameof(typeof(handle)), "(", handle.raw == C_NULL ? "closed" : handle.raw, ")")

macro handle(name, opaque, destroy)
    quote
        function Base.close(handle::$(esc(name)))
            pointer, handle.raw = handle.raw, C_NULL
            pointer == C_NULL || $(esc(destroy))(pointer)
            nothing
        end
    end
end

# ---- devices ----

"""
    Device(name = "cpu")

"cpu", "cuda", "cuda:1". Arenas keep it open.
"""
mutable struct Device <: Handle
    raw::Ptr{ckpt_device}
    host::Bool
    function Device(name::AbstractString = "cpu")
        out = Ref{Ptr{ckpt_device}}(C_NULL)
        check(ckpt_device_open(c_text("name", name), out))
        device = new(out[], false)
        finalizer(close, device)
        device.host = info(device).kind == CKPT_DEVICE_KIND_CPU
        device
    end
end
@handle Device ckpt_device ckpt_device_close

function info(device::Device)
    out = Ref(ckpt_device_info())
    GC.@preserve device check(ckpt_device_get_info(raw(device), out))
    out[]
end

"""Zero-terminated characters of a struct."""
text_of(chars::NTuple{N,UInt8}) where {N} = String(UInt8[c for c in Iterators.takewhile(!iszero, chars)])
name(device::Device) = text_of(info(device).name)

"""
    Stream(device)

The order of work on a device; NULL on the CPU. Given to an arena it must outlive it. `pointer(stream)` is what CUDA.jl wraps.
"""
mutable struct Stream
    device::Device
    raw::Ptr{Cvoid}
    open::Bool
    function Stream(device::Device)
        out = Ref{Ptr{Cvoid}}(C_NULL)
        GC.@preserve device check(ckpt_device_stream_create(raw(device), out))
        finalizer(close, new(device, out[], true))
    end
end
function Base.close(stream::Stream)
    # The device's finalizer may have run: then its streams are gone with the process, or with the arenas that keep it.
    stream.open && is_open(stream.device) && ckpt_device_stream_destroy(stream.device.raw, stream.raw)
    stream.open = false
    nothing
end
Base.pointer(stream::Stream) = stream.raw

"""Waits until all work that was enqueued so far is done."""
synchronize(stream::Stream) = check(ckpt_device_synchronize(raw(stream.device), stream.raw))

"""Copies bytes between pointers; kind: CKPT_COPY_*."""
copy_bytes(stream::Stream, to::Ptr, from::Ptr, bytes, kind) = check(ckpt_device_copy(raw(stream.device), stream.raw, to, from, bytes, kind))
fill_bytes(stream::Stream, to::Ptr, value, bytes) = check(ckpt_device_fill(raw(stream.device), stream.raw, to, value, bytes))

"""Host memory that the device copies from and to by itself, as an array that is freed with its device's call."""
function host_memory(device::Device, ::Type{T}, count::Integer) where {T}
    isbitstype(T) || argument_error("element type is ", T, ", expected plain bits")
    out = Ref{Ptr{Cvoid}}(C_NULL)
    bytes = Base.checked_mul(Int(count), sizeof(T))
    check(ckpt_device_host_alloc(raw(device), bytes, out))
    array = unsafe_wrap(Array, Ptr{T}(out[]), count)
    finalizer(_ -> is_open(device) && ckpt_device_host_free(device.raw, out[], bytes), array)
    fill!(array, zero(T))
end

"""Work that was captured once, to be launched many times (CUDA)."""
mutable struct Graph <: Handle
    raw::Ptr{ckpt_graph}
end
@handle Graph ckpt_graph ckpt_graph_destroy

begin_capture(stream::Stream) = check(ckpt_device_capture_begin(raw(stream.device), stream.raw))
function end_capture(stream::Stream)
    out = Ref{Ptr{ckpt_graph}}(C_NULL)
    check(ckpt_device_capture_end(raw(stream.device), stream.raw, out))
    finalizer(close, Graph(out[]))
end
launch(graph::Graph, stream::Stream) = check(ckpt_graph_launch(raw(graph), stream.raw))

# ---- arenas ----

"""What a released slab hangs on."""
mutable struct Slab
    memory::Vector{UInt8}
    done::Bool
end
const SLABS = Slab[]
const SLABS_LOCK = ReentrantLock()

"""
    Arena(device; capacity = 0, alignment = 0, guard = false, poison = false, plain = false, stream = nothing, slab = nothing)

One slab of device memory and a placer on offsets. One thread at a time uses an arena and all that lives on it. `slab`: a `Vector{UInt8}`
that is used as the memory, and kept until the arena is done with it.
"""
mutable struct Arena <: Handle
    raw::Ptr{ckpt_arena}
    host::Bool
    function Arena(device::Device; capacity = 0, alignment = 0, guard = false, poison = false, plain = false, stream = nothing, slab = nothing)
        flags = (guard ? CKPT_ARENA_GUARD : UInt32(0)) | (poison ? CKPT_ARENA_POISON : UInt32(0)) | (plain ? CKPT_ARENA_PLAIN : UInt32(0))
        out = Ref{Ptr{ckpt_arena}}(C_NULL)
        user, memory, release = C_NULL, C_NULL, C_NULL
        if slab !== nothing
            slab isa Vector{UInt8} || argument_error("slab is a ", typeof(slab), ", expected a Vector{UInt8}")
            box = Slab(slab, false)
            lock(SLABS_LOCK) do
                filter!(each -> !each.done, SLABS)
                push!(SLABS, box)
            end
            user, memory, release = pointer_from_objref(box), Ptr{Cvoid}(pointer(slab)), RELEASE[]
            capacity = capacity == 0 ? length(slab) : min(parse_bytes(capacity), length(slab))
        end
        desc = ckpt_arena_desc(flags = flags, capacity_bytes = parse_bytes(capacity), alignment_bytes = alignment,
                               stream = stream === nothing ? C_NULL : pointer(stream), slab = memory, user = user, release = release)
        status = GC.@preserve device ckpt_arena_create(raw(device), Ref(desc), out)
        refused = status in (CKPT_ERROR_INVALID_ARGUMENT, CKPT_ERROR_STRUCT_SIZE, CKPT_ERROR_OVERFLOW)
        refused && slab !== nothing && (box.done = true) # a desc that is refused as such is not taken
        check(status)
        finalizer(close, new(out[], device.host))
    end
end
@handle Arena ckpt_arena ckpt_arena_destroy

"""Address of `bytes` of device memory; `free` gives them back."""
function alloc(arena::Arena, bytes::Integer; high = false)
    data = GC.@preserve arena ckpt_arena_alloc(raw(arena), bytes, high ? CKPT_ARENA_HIGH : UInt32(0))
    data == C_NULL && throw(CkptError(ckpt_last_status(), unsafe_string(ckpt_last_error())))
    data
end
free(arena::Arena, data::Ptr) = GC.@preserve arena check(ckpt_arena_free(raw(arena), data))
check_guards(arena::Arena) = GC.@preserve arena check(ckpt_arena_check(raw(arena)))
reset_stats(arena::Arena) = GC.@preserve arena check(ckpt_arena_reset_stats(raw(arena)))
function stats(arena::Arena)
    out = Ref(ckpt_arena_stats())
    GC.@preserve arena check(ckpt_arena_get_stats(raw(arena), out))
    out[]
end
