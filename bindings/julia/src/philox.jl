"""
    Philox(seed, subsequence, offset)
    Philox(seed; step, segment, site)

A snapshot of the generator: draws are a function of it and the element's number alone.
"""
struct Philox
    raw::ckpt_philox
end
Philox(seed::Integer, subsequence::Integer, offset::Integer) = Philox(ckpt_philox(seed, subsequence, offset, C_NULL))
function Philox(seed::Integer; step::Integer, segment::Integer, site::Integer)
    out = Ref(ckpt_philox())
    check(ckpt_philox_pack(seed, step, segment, site, out))
    Philox(out[])
end
Base.:(==)(a::Philox, b::Philox) = a.raw == b.raw

"""One block of philox 4x32-10."""
function philox_block(counter::NTuple{4,UInt32}, key::NTuple{2,UInt32})
    out = zeros(UInt32, 4)
    ckpt_philox_block(UInt32[counter...], UInt32[key...], out)
    (out[1], out[2], out[3], out[4])
end

function on_host(philox::Philox)
    philox.raw.step_word == C_NULL || argument_error("philox: its step word is memory of a device, expected a snapshot without one")
    Ref(philox.raw)
end

"""Fill an array with the draws first, first + 1, ...: words, uniform in (0, 1], normal, bytes 0 or 1."""
words!(philox::Philox, out::Array{UInt32}; first = 0) = (check(ckpt_philox_u32(on_host(philox), first, length(out), out)); out)
uniform!(philox::Philox, out::Array{Float32}; first = 0) = (check(ckpt_philox_uniform(on_host(philox), first, length(out), out)); out)
normal!(philox::Philox, out::Array{Float32}; first = 0, mean = 0, stddev = 1) =
    (check(ckpt_philox_normal(on_host(philox), first, length(out), mean, stddev, out)); out)
bernoulli!(philox::Philox, out::Array{UInt8}, probability; first = 0) =
    (check(ckpt_philox_bernoulli(on_host(philox), first, length(out), probability, out)); out)
threshold(probability) = ckpt_philox_threshold(probability)

"""The same fills in device memory, in a stream's order."""
words!(stream::Stream, philox::Philox, out::Ptr{UInt32}, count; first = 0) =
    check(ckpt_device_philox_u32(raw(stream.device), stream.raw, Ref(philox.raw), first, count, out))
uniform!(stream::Stream, philox::Philox, out::Ptr{Float32}, count; first = 0) =
    check(ckpt_device_philox_uniform(raw(stream.device), stream.raw, Ref(philox.raw), first, count, out))
normal!(stream::Stream, philox::Philox, out::Ptr{Float32}, count; first = 0, mean = 0, stddev = 1) =
    check(ckpt_device_philox_normal(raw(stream.device), stream.raw, Ref(philox.raw), first, count, mean, stddev, out))
bernoulli!(stream::Stream, philox::Philox, out::Ptr{UInt8}, count, probability; first = 0) =
    check(ckpt_device_philox_bernoulli(raw(stream.device), stream.raw, Ref(philox.raw), first, count, probability, out))

"""A generator with a state, for interplay with cuRAND's and PyTorch's."""
mutable struct Rng <: Handle
    raw::Ptr{ckpt_rng}
    function Rng(seed, subsequence, offset)
        out = Ref{Ptr{ckpt_rng}}(C_NULL)
        check(ckpt_rng_create(seed, subsequence, offset, out))
        finalizer(close, new(out[]))
    end
end
@handle Rng ckpt_rng ckpt_rng_destroy
function snapshot(rng::Rng)
    out = Ref(ckpt_philox())
    GC.@preserve rng check(ckpt_rng_snapshot(raw(rng), out))
    Philox(out[])
end
restore!(rng::Rng, philox::Philox) = GC.@preserve rng check(ckpt_rng_restore(raw(rng), Ref(philox.raw)))
advance!(rng::Rng, words; round_up_to_4 = false) = GC.@preserve rng check(ckpt_rng_advance(raw(rng), words, round_up_to_4))
