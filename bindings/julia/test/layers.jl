# The layers library: kernels against plain formulas, layers and models on a tape.
ops = Ckpt.Ops(threads = 1)
normal(seed, dims...) = Ckpt.normal!(Philox(seed, 0, 0), zeros(Float32, dims...))
close_to(a, b) = isapprox(a, b; rtol = 1e-4, atol = 1e-4)

xs, weight, bias, out_grad = normal(1, 7, 5), normal(2, 7, 3), normal(3, 3), normal(4, 3, 5)
plain = weight' * xs .+ bias
@test close_to(Ckpt.linear_forward!(ops, zeros(Float32, 3, 5), xs, weight, bias), plain)
residual = normal(5, 3, 5)
@test close_to(Ckpt.linear_forward!(ops, zeros(Float32, 3, 5), xs, weight, bias; residual = residual), plain + residual)
@test close_to(Ckpt.add!(ops, zeros(Float32, 3, 5), plain, residual), plain + residual)
in_grad, weight_grad, bias_grad = zeros(Float32, 7, 5), ones(Float32, 7, 3), zeros(Float32, 3)
Ckpt.linear_backward!(ops, in_grad, weight_grad, bias_grad, xs, weight, out_grad)
@test close_to(in_grad, weight * out_grad) && close_to(weight_grad, 1 .+ xs * out_grad') && close_to(bias_grad, vec(sum(out_grad; dims = 2)))
mean, rstd = zeros(Float32, 5), zeros(Float32, 5)
normed = Ckpt.layernorm_forward!(ops, zeros(Float32, 7, 5), mean, rstd, xs, ones(Float32, 7), zeros(Float32, 7))
@test close_to(vec(sum(normed; dims = 1)), zeros(5)) && close_to(mean, vec(sum(xs; dims = 1)) ./ 7)
Ckpt.layernorm_backward!(ops, in_grad, nothing, nothing, xs, mean, rstd, ones(Float32, 7), normal(6, 7, 5))
@test isapprox(vec(sum(in_grad; dims = 1)), zeros(5); atol = 1e-3)
gelu(x) = 0.5f0 * x * (1 + tanh(0.7978846f0 * (x + 0.044715f0 * x^3)))
@test close_to(Ckpt.gelu_forward!(ops, zeros(Float32, 7, 5), xs), gelu.(xs))
Ckpt.gelu_backward!(ops, in_grad, nothing, xs, nothing, ones(Float32, 7, 5))
@test isapprox(in_grad, (gelu.(xs .+ 1f-2) .- gelu.(xs .- 1f-2)) ./ 2f-2; atol = 1e-3)
philox = Philox(1, 2, 0)
mask = reshape(Ckpt.bernoulli!(philox, zeros(UInt8, 35), 0.75), 7, 5)
dropped = Ckpt.dropout_forward!(ops, zeros(Float32, 7, 5), xs, 0.25; philox = philox)
@test close_to(dropped, xs .* mask ./ 0.75f0)
@test Ckpt.dropout_backward!(ops, zeros(Float32, 7, 5), xs, 0.25; philox = philox) == dropped
targets, lse = Int32[1, 0, -1, 2, 2], zeros(Float32, 5)
row(r) = log(sum(exp.(plain[:, r]))) - plain[targets[r]+1, r]
@test close_to(Ckpt.cross_entropy_forward!(ops, lse, plain, targets), (row(1) + row(2) + row(4) + row(5)) / 4)
logits_grad = Ckpt.cross_entropy_backward!(ops, zeros(Float32, 3, 5), plain, targets, lse)
@test close_to(vec(sum(logits_grad; dims = 1)), zeros(5)) && all(iszero, logits_grad[:, 3])
@test close_to(Ckpt.norm(ops, Float32[3, 4]), 5)
@test close_to(Ckpt.adamw!(ops, Float32[1], Float32[0], Float32[0], Float32[2]; learning_rate = 0.1, step = 1), [0.9])
@test bits(Ckpt.normal!(ops, Philox(1, 0, 0), zeros(Float32, 7, 5))) == bits(xs)
@test Ckpt.to_float!(ops, zeros(Float32, 35), Ckpt.from_float!(ops, zeros(UInt8, 140), xs)) == vec(xs)
Ckpt.wait_and_check(ops)
@test !isempty(Ckpt.text_of(Ckpt.info(ops).isa))

qkv, grad = normal(1, 24, 5, 2), normal(2, 8, 5, 2)
weights, lse = zeros(Float32, 5, 5, 2, 2), zeros(Float32, 5, 2, 2)
a = Ckpt.attention_forward!(ops, zeros(Float32, 8, 5, 2), weights, qkv, 2)
b = Ckpt.attention_forward!(ops, zeros(Float32, 8, 5, 2), lse, qkv, 2; tiled = true)
@test close_to(a, b) && close_to(a[:, 1, 1], qkv[17:24, 1, 1]) # the first position sees itself alone
@test close_to(Ckpt.attention_backward!(ops, zeros(Float32, 24, 5, 2), qkv, a, weights, grad, 2), Ckpt.attention_backward!(ops, zeros(Float32, 24, 5, 2), qkv, b, lse, grad, 2; tiled = true))
table, position, tokens = normal(3, 2, 4), normal(4, 2, 3), Int32[3, 0, 3]
@test close_to(Ckpt.embedding_forward!(ops, zeros(Float32, 2, 3), tokens, table, position), table[:, tokens.+1] + position)
token_grad = zeros(Float32, 2, 4)
Ckpt.embedding_backward!(ops, token_grad, nothing, tokens, Float32[1 3 5; 2 4 6])
@test token_grad == Float32[3 0 0 6; 4 0 0 8]

@test has(said(() -> Ckpt.linear_forward!(ops, zeros(Float32, 3, 5), zeros(Float32, 6, 5), weight)), "weight has 21 elements, expected 6 x 3")
@test has(said(() -> Ckpt.embedding_forward!(ops, zeros(Float32, 2, 1), Int32[4], table)), "4", "INVALID_ARGUMENT")
@test has(said(() -> Ckpt.Ops(threads = 5000)), "5000", "INVALID_ARGUMENT")
tape, x = Tape(Arena(Device())), ones(Float32, 7, 5)
layer = Ckpt.linear_layer(ops, 5, 7, 3)
@test has(said(() -> run(tape, layer, input(tape, x))), "STATE") # not bound
@test has(said(() -> bind(layer, zeros(Float32, 23))), "parameters has 23 elements, expected 24")
@test has(said(() -> bind(layer, zeros(Float64, 24))), "Array of Float32")
bind(layer, zeros(Float32, 24))
Ckpt.reset(tape)
@test has(said(() -> run(tape, layer, input(tape, ones(Float32, 34)))), "136 bytes, expected 140")
Ckpt.reset(tape)
@test has(said(() -> Ckpt.Gpt(ops; layers = 1, heads = 3, channels = 32, sequence = 4, batch = 1, vocabulary = 16)), "heads")

# A model of layers by hand: the model that the library makes, bit by bit.
gpt = Ckpt.Gpt(ops; layers = 2, heads = 2, channels = 16, sequence = 8, batch = 2, vocabulary = 32)
count = Ckpt.parameter_count(gpt)
parameters, gradients, by_hand = zeros(Float32, count), zeros(Float32, count), zeros(Float32, count)
bind(gpt, parameters, gradients)
Ckpt.init!(gpt, 3)
@test Ckpt.tensors(gpt)[1].offset == 0 && length(Ckpt.tensors(gpt)) > 10
tokens, targets = Int32.(0:15), Int32.(1:16)
loss = Ckpt.record(gpt, tape, tokens, targets)
value = Ckpt.loss(gpt)
backward(tape, loss => Float32[1])
transformer_block() = Ckpt.block_layer(ops; attention = Ckpt.CKPT_ATTENTION_TILED, batch = 2, sequence = 8, channels = 16, heads = 2)
layers = [Ckpt.embedding_layer(ops; batch = 2, sequence = 8, channels = 16, vocabulary = 32), transformer_block(), transformer_block(), Ckpt.head_layer(ops; rows = 16, channels = 16, vocabulary = 32, tied = true)]
let at = 0
    for layer in layers
        bind(layer, parameters, by_hand; offset = at) === layer || @test false
        at += Ckpt.parameter_count(layer)
    end
    @test at == count
end
Ckpt.bind_tied(layers[4], parameters, by_hand)
@test length(Ckpt.tensors(layers[2])) == 12
function through(layers)
    x = input(tape, tokens)
    for layer in layers[1:3]
        x = run(tape, layer, x)
    end
    run(tape, layers[4], x, input(tape, targets))
end
loss = through(layers)
@test Ckpt.loss(layers[4]) === value
empty!(layers) # the recording keeps them
GC.gc()
backward(tape, loss => Float32[1])
@test bits(by_hand) == bits(gradients)
small = Ckpt.layernorm_layer(ops, 4, 6)
bind(small, zeros(Float32, 12), zeros(Float32, 12))
Ckpt.init!(small, 1)
x, x_grad = normal(1, 6, 4), zeros(Float32, 6, 4)
y = run(tape, Ckpt.dropout_layer(ops, 24, 0.5), run(tape, Ckpt.gelu_layer(ops, 24), run(tape, small, input(tape, x; grad = x_grad))))
@test any(iszero, Ckpt.data(tape, Float32, y)) && Ckpt.loss(small) === nothing && Ckpt.segment_pointers(small)[1] != C_NULL
backward(tape, y => ones(Float32, 24))
@test any(!iszero, x_grad)
