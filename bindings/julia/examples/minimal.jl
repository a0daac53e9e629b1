# The smallest whole program: a multilayer perceptron that trains in half the memory that its activations take. The C program of the same
# name (examples/minimal.c) line by line, with the same bits.
#
#     julia --project=bindings/julia bindings/julia/examples/minimal.jl
#
# A layer is one segment with two slots: pre = W1 x and act = silu(pre); its output is x + W2 act. The same training runs twice, first
# with everything stored, then within a budget: loss and gradients of every step must be the same, bit by bit.
using Ckpt

const LAYERS, ROWS, WIDTH, HIDDEN, STEPS, KEY = 8, 64, 32, 64, 20, 1
const LEARNING_RATE = 2.0f0

# Julia's own exp and sin differ from C's in last bits.
c_exp(x::Float32) = ccall((:expf, "libm.so.6"), Float32, (Float32,), x)
c_sin(x::Float32) = ccall((:sinf, "libm.so.6"), Float32, (Float32,), x)

# ---- kernels; columns are the rows of C ----

function linear!(out, in, weight)
    for r in 1:size(out, 2), o in 1:size(out, 1)
        sum = 0.0f0
        for i in 1:size(in, 1)
            sum += in[i, r] * weight[i, o]
        end
        out[o, r] = sum
    end
end

"""Adds to weight_grad; in_grad nothing: not wanted."""
function linear_backward!(in_grad, weight_grad, in, weight, out_grad)
    in_grad === nothing || fill!(in_grad, 0)
    for r in 1:size(in, 2), o in 1:size(out_grad, 1), i in 1:size(in, 1)
        in_grad === nothing || (in_grad[i, r] += out_grad[o, r] * weight[i, o])
        weight_grad[i, o] += out_grad[o, r] * in[i, r]
    end
end

sigmoid(x) = 1 / (1 + c_exp(-x))
silu(x) = x * sigmoid(x)
silu_slope(x) = sigmoid(x) * (1 + x * (1 - sigmoid(x)))

# ---- a layer as a segment ----

struct Weights
    w1::Matrix{Float32} # (WIDTH, HIDDEN)
    w2::Matrix{Float32} # (HIDDEN, WIDTH)
end
struct Layer
    value::Weights
    grad::Weights
end

"""Input and both slots are there, whatever was dropped before; the scratch holds the gradient of pre."""
function layer_backward(f)
    layer = Ckpt.user(f)
    x, pre, act = input(f, Float32, 1, (WIDTH, ROWS)), slot(f, Float32, :pre, (HIDDEN, ROWS)), slot(f, Float32, :act, (HIDDEN, ROWS))
    out_grad = reshape(output_grad(f, Float32, 1), (WIDTH, ROWS))
    pre_grad = scratch(f, Float32, (HIDDEN, ROWS))
    found, _ = input_grad(f, Float32, 1) # nothing in the first layer: nobody wants it
    x_grad = found === nothing ? nothing : reshape(found, (WIDTH, ROWS))
    linear_backward!(pre_grad, layer.grad.w2, act, layer.value.w2, out_grad)
    for k in eachindex(pre_grad)
        pre_grad[k] *= silu_slope(pre[k])
    end
    linear_backward!(x_grad, layer.grad.w1, x, layer.value.w1, pre_grad)
    x_grad === nothing || (x_grad .+= out_grad)
end

const HIDDEN_BYTES = 4 * ROWS * HIDDEN

# The do-block serves the first run, a full and a partial recomputation: it asks what is needed now. With pre kept, act costs one pass of silu
# and no product.
layer_segment() = Segment("layer"; slots = [Slot("pre", HIDDEN_BYTES), Slot("act", HIDDEN_BYTES; reads = ["pre"])],
                          outputs = [Output("out", 4 * ROWS * WIDTH; reads = ["act"])], scratch = (0, HIDDEN_BYTES), backward = layer_backward) do f
    weights = Ckpt.user(f).value
    x, pre, act = input(f, Float32, 1, (WIDTH, ROWS)), slot(f, Float32, :pre, (HIDDEN, ROWS)), slot(f, Float32, :act, (HIDDEN, ROWS))
    out = output(f, Float32, 1, (WIDTH, ROWS))
    needs(f, :pre) && linear!(pre, x, weights.w1)
    needs(f, :act) && (act .= silu.(pre))
    if needs_output(f, 1)
        linear!(out, act, weights.w2)
        out .+= x
    end
end

# ---- training ----

"""The forward pass, layer by layer. In a dry recording no callback runs, and there is no x."""
function record(tape, segment, layers, x)
    y = x === nothing ? Ckpt.dry_input(tape, 4 * ROWS * WIDTH; grad = false) : input(tape, x)
    for layer in layers
        y = run(tape, segment, y; user = layer)
    end
    y
end

function uniform(state)
    state[] = state[] * 0x0019660d + 0x3c6ef35f
    Float32(state[] >> 8) / 8388608.0f0 - 1.0f0
end

function squared_error!(y_grad, y, target)
    loss, n = 0.0f0, Float32(ROWS * WIDTH)
    for k in eachindex(y)
        difference = y[k] - target[k]
        loss += difference * difference / n
        y_grad[k] = 2.0f0 * difference / n
    end
    loss
end

"""Trains from the same start within `budget` bytes (0: as many as it takes). Loss and gradients of each step."""
function train(device, budget)
    random = Ref(UInt32(1))
    x, target = zeros(Float32, WIDTH, ROWS), zeros(Float32, WIDTH, ROWS)
    for k in eachindex(x)
        x[k] = uniform(random)
        target[k] = c_sin(3.0f0 * x[k])
    end
    weights() = Weights(zeros(Float32, WIDTH, HIDDEN), zeros(Float32, HIDDEN, WIDTH))
    layers = [Layer(weights(), weights()) for _ in 1:LAYERS]
    for layer in layers, i in 1:WIDTH*HIDDEN
        layer.value.w1[i] = uniform(random) * 0.2f0
        layer.value.w2[i] = uniform(random) * 0.05f0
    end
    tape, segment, y_grad = Tape(Arena(device); budget = budget), layer_segment(), zeros(Float32, WIDTH, ROWS)

    # A dry recording: the plan, or its refusal with the smallest budget that works, before anything runs.
    Ckpt.start(tape, KEY; dry = true)
    backward(tape, record(tape, segment, layers, nothing) => y_grad)

    trail = Vector{Float32}[]
    for step in 0:STEPS-1
        Ckpt.start(tape, KEY)
        y = record(tape, segment, layers, x)
        loss = squared_error!(y_grad, Ckpt.data(tape, Float32, y), target)
        for layer in layers
            fill!(layer.grad.w1, 0)
            fill!(layer.grad.w2, 0)
        end
        backward(tape, y => y_grad)
        stats = Ckpt.stats(tape)
        if step % 5 == 0 || step == STEPS - 1
            println("  step ", step, "  loss ", loss, "  arena predicted ", Int(stats.arena_predicted_bytes), ", measured ", Int(stats.arena_measured_bytes), " bytes; ",
                    Int(stats.recompute_count), " of ", Int(stats.forward_count), " forwards run again")
        end
        stats.arena_predicted_bytes == stats.arena_measured_bytes && stats.peak_predicted_bytes == stats.peak_measured_bytes || error("step $step: the prediction was wrong")
        push!(trail, [loss])
        for layer in layers
            push!(trail, vec(copy(layer.grad.w1)), vec(copy(layer.grad.w2)))
            layer.value.w1 .-= LEARNING_RATE .* layer.grad.w1
            layer.value.w2 .-= LEARNING_RATE .* layer.grad.w2
        end
    end
    reduce(vcat, trail), Ckpt.stats(tape)
end

function main()
    device = Device("cpu")
    println("no budget: everything is stored")
    stored, stats = train(device, 0)
    budget = Int(stats.arena_measured_bytes) ÷ 2
    println("budget ", budget, " bytes, half of that (the smallest that works is ", Int(stats.minimum_budget_bytes), ")")
    budgeted, _ = train(device, budget)
    equal = reinterpret(UInt32, stored) == reinterpret(UInt32, budgeted)
    println("loss and gradients of all steps bitwise equal: ", equal ? "yes" : "no")
    each = 1 + LAYERS * 2 * WIDTH * HIDDEN
    println("loss bits ", string(reinterpret(UInt32, budgeted[(STEPS-1)*each+1]); base = 16, pad = 8))
    equal || exit(1)
end

main()
