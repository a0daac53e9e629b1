# A small net whose layers can be told to fail.
const COUNT, KEY = 96, 7
const FAIL = Ref(:nowhere)
struct Told <: Exception end

function trip(place)
    FAIL[] === place || return
    FAIL[] = :nowhere
    throw(Told())
end

mutable struct NetLayer
    weight::Float32
    weight_grad::Float32
end

"""mix = w x^2 + noise; out = x / 2 + mix"""
function net_forward(f)
    trip(is_recompute(f) ? :recompute : :forward)
    x, square, noise, mix = input(f, Float32, 1), slot(f, Float32, :square), slot(f, Float32, :noise), slot(f, Float32, :mix)
    out, weight = output(f, Float32, 1), Ckpt.user(f).weight
    needs(f, :square) && (square .= x .* x)
    needs(f, :noise) && Ckpt.uniform!(random(f, 3), noise)
    needs(f, :mix) && (mix .= weight .* square .+ 0.01f0 .* noise)
    needs_output(f, 1) && (out .= 0.5f0 .* x .+ mix)
end

function net_backward(f)
    trip(:backward)
    layer = Ckpt.user(f)
    x, square, noise, grad = input(f, Float32, 1), slot(f, Float32, :square), slot(f, Float32, :noise), output_grad(f, Float32, 1)
    for k in eachindex(grad)
        layer.weight_grad += grad[k] * square[k] + 1.0f-3 * noise[k]
    end
    x_grad, accumulate = input_grad(f, Float32, 1)
    x_grad === nothing && return
    value = grad .* (0.5f0 .+ 2 .* layer.weight .* x)
    x_grad .= accumulate ? x_grad .+ value : value
end

net_segment() = Segment(net_forward, "layer"; slots = [Slot("square", 4COUNT; reads = []), Slot("noise", 4COUNT; reads = []),
                                                      Slot("mix", 4COUNT; reads = ["square", "noise"], transient = true)],
                        outputs = [Output("out", 4COUNT; reads = ["mix"])], backward = net_backward)

struct Net
    arena::Arena
    tape::Tape
    segment::Segment
    layers::Vector{NetLayer}
    x::Vector{Float32}
    x_grad::Vector{Float32}
end
function Net(count; keywords...)
    arena = Arena(Device("cpu"); guard = true, poison = true)
    Net(arena, Tape(arena; seed = 5, keywords...), net_segment(), [NetLayer(0.1f0 + 0.05f0 * k, 0) for k in 0:count-1], Float32[sin(0.37 * k) for k in 0:COUNT-1],
        zeros(Float32, COUNT))
end

function record(net::Net; dry = false)
    y = dry ? Ckpt.dry_input(net.tape, 4COUNT) : input(net.tape, net.x; grad = net.x_grad)
    for layer in net.layers
        y = run(net.tape, net.segment, y; user = layer)
    end
    y
end
function plan!(net::Net)
    Ckpt.start(net.tape, KEY; dry = true)
    backward(net.tape, record(net; dry = true) => ones(Float32, COUNT))
    net
end
function step!(net::Net)
    for layer in net.layers
        layer.weight_grad = 0
    end
    Ckpt.start(net.tape, KEY)
    y = record(net)
    out = Ckpt.data(net.tape, Float32, y)
    backward(net.tape, y => ones(Float32, COUNT))
    (bits(out), bits(net.x_grad), bits([layer.weight_grad for layer in net.layers]))
end
in_use(net::Net) = Ckpt.stats(net.arena).in_use_bytes
