# Layers (libckpt_ops): kernels on arrays, segments made of them, and a GPT. The library's arrays are row-major: [rows, channels] there is
# (channels, rows) here.

"""
    Ops(; threads = 0, isa = CKPT_ISA_BEST, device = nothing, stream = nothing, dtype = CKPT_DTYPE_FLOAT32)

The kernels of one device, on the CPU with threads of their own.
"""
mutable struct Ops <: Handle
    raw::Ptr{ckpt_ops}
    host::Bool
    element_bytes::Int
    function Ops(; threads = 0, isa = CKPT_ISA_BEST, device = nothing, stream = nothing, dtype = CKPT_DTYPE_FLOAT32)
        desc = ckpt_ops_desc(thread_count = threads, isa = isa, dtype = dtype, device = device === nothing ? C_NULL : raw(device),
                             stream = stream === nothing ? C_NULL : pointer(stream))
        out = Ref{Ptr{ckpt_ops}}(C_NULL)
        GC.@preserve device check_ops(ckpt_ops_create(Ref(desc), out))
        finalizer(close, new(out[], device === nothing || device.host, dtype == CKPT_DTYPE_FLOAT32 ? 4 : 2))
    end
end
@handle Ops ckpt_ops ckpt_ops_destroy

function info(ops::Ops)
    out = Ref(ckpt_ops_info())
    GC.@preserve ops check_ops(ckpt_ops_get_info(raw(ops), out))
    out[]
end
"""Waits for the stream, then tells what only the device could see."""
wait_and_check(ops::Ops) = GC.@preserve ops check_ops(ckpt_ops_check(raw(ops)))

const Floats = Array{Float32}
const MaybeFloats = Union{Nothing,Floats}

# ---- level 1: kernels ----

function wants(name, array, dims...)
    array isa Union{Nothing,Ptr} && return
    length(array) == prod(dims) || argument_error(name, " has ", length(array), " elements, expected ", join(dims, " x "))
end
function host_raw(ops::Ops)
    ops.host || argument_error("ops: arrays with a handle of another device than the CPU, expected Ckpt's raw functions")
    raw(ops)
end
optional_pointer(array) = array === nothing ? Ptr{Float32}(C_NULL) : pointer(array)
snapshot_of(::Nothing) = C_NULL
snapshot_of(philox::Philox) = Ref(philox.raw)

"""tokens (sequence, batch), tables (channels, n), out (channels, sequence, batch)"""
function embedding_forward!(ops::Ops, out::Floats, tokens::Array{Int32}, token_table::Matrix{Float32}, position_table::MaybeFloats = nothing)
    channels, vocabulary = size(token_table)
    sequence, batch = size(tokens, 1), size(tokens, 2)
    wants("out", out, channels, sequence, batch)
    wants("position_table", position_table, channels, sequence)
    GC.@preserve ops out tokens token_table position_table check_ops(ckpt_ops_embedding_forward(host_raw(ops), tokens, token_table,
        optional_pointer(position_table), batch, sequence, channels, vocabulary, out))
    out
end
function embedding_backward!(ops::Ops, token_grad::Matrix{Float32}, position_grad::MaybeFloats, tokens::Array{Int32}, out_grad::Floats)
    channels, vocabulary = size(token_grad)
    sequence, batch = size(tokens, 1), size(tokens, 2)
    wants("out_grad", out_grad, channels, sequence, batch)
    wants("position_grad", position_grad, channels, sequence)
    GC.@preserve ops position_grad check_ops(ckpt_ops_embedding_backward(host_raw(ops), tokens, out_grad, batch, sequence, channels, vocabulary,
        token_grad, optional_pointer(position_grad)))
end

"""in (inputs, rows), weight (inputs, outputs), bias (outputs), out (outputs, rows)"""
function linear_forward!(ops::Ops, out::Matrix{Float32}, in::Matrix{Float32}, weight::Matrix{Float32}, bias::MaybeFloats = nothing;
                         residual::MaybeFloats = nothing, dropout = 0, philox = nothing)
    inputs, rows, outputs = size(in, 1), size(in, 2), size(weight, 2)
    wants("weight", weight, inputs, outputs)
    wants("bias", bias, outputs)
    wants("out", out, outputs, rows)
    wants("residual", residual, outputs, rows)
    GC.@preserve ops bias residual begin
        if residual === nothing
            check_ops(ckpt_ops_linear_forward(host_raw(ops), in, weight, optional_pointer(bias), rows, inputs, outputs, out))
        else
            check_ops(ckpt_ops_linear_residual_forward(host_raw(ops), in, weight, optional_pointer(bias), pointer(residual), dropout,
                                                       snapshot_of(philox), rows, inputs, outputs, out))
        end
    end
    out
end
"""nothing: not wanted."""
function linear_backward!(ops::Ops, in_grad::MaybeFloats, weight_grad::MaybeFloats, bias_grad::MaybeFloats, in::Matrix{Float32}, weight::Matrix{Float32},
                          out_grad::Matrix{Float32}; accumulate = false)
    inputs, rows, outputs = size(in, 1), size(in, 2), size(weight, 2)
    wants("weight", weight, inputs, outputs)
    wants("out_grad", out_grad, outputs, rows)
    wants("in_grad", in_grad, inputs, rows)
    wants("weight_grad", weight_grad, inputs, outputs)
    wants("bias_grad", bias_grad, outputs)
    GC.@preserve ops in_grad weight_grad bias_grad check_ops(ckpt_ops_linear_backward(host_raw(ops), in, weight, out_grad, rows, inputs, outputs,
        optional_pointer(in_grad), accumulate, optional_pointer(weight_grad), optional_pointer(bias_grad)))
end

"""in, out (channels, rows), mean and rstd (rows)"""
function layernorm_forward!(ops::Ops, out::Matrix{Float32}, mean::Floats, rstd::Floats, in::Matrix{Float32}, weight::Floats, bias::Floats; epsilon = 1e-5)
    channels, rows = size(in)
    wants("out", out, channels, rows); wants("weight", weight, channels); wants("bias", bias, channels); wants("mean", mean, rows); wants("rstd", rstd, rows)
    GC.@preserve ops check_ops(ckpt_ops_layernorm_forward(host_raw(ops), in, weight, bias, rows, channels, epsilon, out, mean, rstd))
    out
end
function layernorm_backward!(ops::Ops, in_grad::Matrix{Float32}, weight_grad::MaybeFloats, bias_grad::MaybeFloats, in::Matrix{Float32}, mean::Floats, rstd::Floats,
                             weight::Floats, out_grad::Matrix{Float32}; residual_grad::MaybeFloats = nothing, accumulate = false)
    channels, rows = size(in)
    for (name, array) in (("in_grad", in_grad), ("out_grad", out_grad), ("residual_grad", residual_grad))
        wants(name, array, channels, rows)
    end
    for (name, array) in (("weight", weight), ("weight_grad", weight_grad), ("bias_grad", bias_grad))
        wants(name, array, channels)
    end
    wants("mean", mean, rows); wants("rstd", rstd, rows)
    GC.@preserve ops residual_grad weight_grad bias_grad check_ops(ckpt_ops_layernorm_backward(host_raw(ops), in, mean, rstd, weight, out_grad,
        optional_pointer(residual_grad), rows, channels, in_grad, accumulate, optional_pointer(weight_grad), optional_pointer(bias_grad)))
    in_grad
end

"""in, out (columns, rows), bias (columns)"""
function gelu_forward!(ops::Ops, out::Matrix{Float32}, in::Matrix{Float32}, bias::MaybeFloats = nothing)
    columns, rows = size(in)
    wants("out", out, columns, rows); wants("bias", bias, columns)
    GC.@preserve ops bias check_ops(ckpt_ops_gelu_forward(host_raw(ops), in, optional_pointer(bias), rows, columns, out))
    out
end
function gelu_backward!(ops::Ops, in_grad::Matrix{Float32}, bias_grad::MaybeFloats, in::Matrix{Float32}, bias::MaybeFloats, out_grad::Matrix{Float32}; accumulate = false)
    columns, rows = size(in)
    wants("in_grad", in_grad, columns, rows); wants("out_grad", out_grad, columns, rows); wants("bias", bias, columns); wants("bias_grad", bias_grad, columns)
    GC.@preserve ops bias bias_grad check_ops(ckpt_ops_gelu_backward(host_raw(ops), in, optional_pointer(bias), out_grad, rows, columns, in_grad, accumulate,
        optional_pointer(bias_grad)))
    in_grad
end

function attention_sizes(qkv, out, heads)
    channels, sequence, batch = size(out)
    wants("qkv", qkv, 3 * channels, sequence, batch)
    (batch, sequence, heads, channels)
end
"""qkv (3 channels, sequence, batch), out (channels, sequence, batch); `kept`: the weights (sequence, sequence, heads, batch), or with `tiled`
the log-sum-exp of each row (sequence, heads, batch)."""
function attention_forward!(ops::Ops, out::Array{Float32,3}, kept::Floats, qkv::Floats, heads::Integer; tiled = false, dropout = 0, philox = nothing)
    batch, sequence, heads, channels = attention_sizes(qkv, out, heads)
    tiled ? wants("kept", kept, sequence, heads, batch) : wants("kept", kept, sequence, sequence, heads, batch)
    forward = tiled ? ckpt_ops_attention_tiled_forward : ckpt_ops_attention_forward
    GC.@preserve ops check_ops(forward(host_raw(ops), qkv, batch, sequence, heads, channels, dropout, snapshot_of(philox), kept, out))
    out
end
"""`out` is read with `tiled` alone."""
function attention_backward!(ops::Ops, qkv_grad::Floats, qkv::Floats, out::Array{Float32,3}, kept::Floats, out_grad::Array{Float32,3}, heads::Integer; tiled = false,
                             dropout = 0, philox = nothing)
    batch, sequence, heads, channels = attention_sizes(qkv, out, heads)
    wants("out_grad", out_grad, length(out)); wants("qkv_grad", qkv_grad, length(qkv))
    tiled ? wants("kept", kept, sequence, heads, batch) : wants("kept", kept, sequence, sequence, heads, batch)
    GC.@preserve ops begin
        status = tiled ?
            ckpt_ops_attention_tiled_backward(host_raw(ops), qkv, out, kept, out_grad, batch, sequence, heads, channels, dropout, snapshot_of(philox), qkv_grad) :
            ckpt_ops_attention_backward(host_raw(ops), qkv, kept, out_grad, batch, sequence, heads, channels, dropout, snapshot_of(philox), qkv_grad)
        check_ops(status)
    end
    qkv_grad
end

"""out = residual + in * mask / (1 - probability)"""
function dropout_forward!(ops::Ops, out::Floats, in::Floats, probability; residual::MaybeFloats = nothing, philox = nothing)
    wants("out", out, length(in)); wants("residual", residual, length(in))
    GC.@preserve ops residual check_ops(ckpt_ops_dropout_forward(host_raw(ops), in, optional_pointer(residual), probability, snapshot_of(philox), length(in), out))
    out
end
function dropout_backward!(ops::Ops, in_grad::Floats, out_grad::Floats, probability; philox = nothing, accumulate = false)
    wants("in_grad", in_grad, length(out_grad))
    GC.@preserve ops check_ops(ckpt_ops_dropout_backward(host_raw(ops), out_grad, probability, snapshot_of(philox), length(out_grad), in_grad, accumulate))
    in_grad
end
function add!(ops::Ops, out::Floats, a::Floats, b::Floats)
    wants("b", b, length(a)); wants("out", out, length(a))
    GC.@preserve ops check_ops(ckpt_ops_add(host_raw(ops), a, b, length(a), out))
    out
end

"""The loss; logits (vocabulary, rows), targets from 0, lse (rows)."""
function cross_entropy_forward!(ops::Ops, lse::Floats, logits::Matrix{Float32}, targets::Vector{Int32}; ignore_index = -1)
    vocabulary, rows = size(logits)
    wants("targets", targets, rows); wants("lse", lse, rows)
    loss = Ref{Float32}(0)
    GC.@preserve ops check_ops(ckpt_ops_cross_entropy_forward(host_raw(ops), logits, targets, rows, vocabulary, ignore_index, lse, loss))
    loss[]
end
function cross_entropy_backward!(ops::Ops, logits_grad::Matrix{Float32}, logits::Matrix{Float32}, targets::Vector{Int32}, lse::Floats; ignore_index = -1, loss_grad = 1)
    vocabulary, rows = size(logits)
    wants("targets", targets, rows); wants("lse", lse, rows); wants("logits_grad", logits_grad, vocabulary, rows)
    GC.@preserve ops check_ops(ckpt_ops_cross_entropy_backward(host_raw(ops), logits, targets, lse, rows, vocabulary, ignore_index, loss_grad, logits_grad))
    logits_grad
end

function norm(ops::Ops, values::Floats)
    out = Ref(0.0)
    GC.@preserve ops check_ops(ckpt_ops_norm(host_raw(ops), values, length(values), out))
    out[]
end

adamw_desc(; learning_rate, step, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0, max_norm = 0, grad_scale = 0) =
    ckpt_adamw_desc(learning_rate = learning_rate, beta1 = beta1, beta2 = beta2, epsilon = epsilon, weight_decay = weight_decay, max_norm = max_norm,
                    grad_scale = grad_scale, step = step)

"""One update: keywords learning_rate, step (from 1), beta1, beta2, epsilon, weight_decay, grad_scale."""
function adamw!(ops::Ops, parameters::Floats, first_moment::Floats, second_moment::Floats, grads::Floats; keywords...)
    wants("grads", grads, length(parameters)); wants("first_moment", first_moment, length(parameters)); wants("second_moment", second_moment, length(parameters))
    GC.@preserve ops check_ops(ckpt_ops_adamw(host_raw(ops), Ref(adamw_desc(; keywords...)), length(grads), grads, parameters, first_moment, second_moment))
    parameters
end

"""The bits of `normal!(philox, out)`, on all threads."""
normal!(ops::Ops, philox::Philox, out::Floats; mean = 0, stddev = 1) =
    (GC.@preserve ops check_ops(ckpt_ops_normal(host_raw(ops), Ref(philox.raw), mean, stddev, length(out), out)); out)
"""To and from the bytes of the handle's dtype."""
function from_float!(ops::Ops, out::Vector{UInt8}, in::Floats)
    wants("out", out, length(in), ops.element_bytes)
    GC.@preserve ops check_ops(ckpt_ops_from_float(host_raw(ops), in, length(in), out))
    out
end
function to_float!(ops::Ops, out::Floats, in::Vector{UInt8})
    wants("in", in, length(out), ops.element_bytes)
    GC.@preserve ops check_ops(ckpt_ops_to_float(host_raw(ops), in, length(out), out))
    out
end

# ---- level 2: layers ----

"""A ready segment with named slots: `embedding_layer`, `block_layer`, `head_layer`, `linear_layer`, `layernorm_layer`, `gelu_layer`, `dropout_layer`."""
mutable struct Layer <: Handle
    raw::Ptr{ckpt_layer}
    host::Bool
    input_bytes::Vector{Int}
    output_bytes::Int
    tied_count::Int
    bound::Any
    tied::Any
end
@handle Layer ckpt_layer ckpt_layer_destroy

function make_layer(create, ops::Ops, input_bytes, output_bytes; tied_count = 0)
    out = Ref{Ptr{ckpt_layer}}(C_NULL)
    GC.@preserve ops check_ops(create(raw(ops), out))
    finalizer(close, Layer(out[], ops.host, input_bytes, output_bytes, tied_count, nothing, nothing))
end
function embedding_layer(ops::Ops; batch, sequence, channels, vocabulary, dropout = 0)
    desc = Ref(ckpt_layer_embedding_desc(dropout_probability = dropout, batch = batch, sequence = sequence, channels = channels, vocabulary = vocabulary))
    make_layer((raw, out) -> ckpt_layer_embedding_create(raw, desc, out), ops, [4 * batch * sequence], ops.element_bytes * batch * sequence * channels)
end
"""A transformer block, norms first."""
function block_layer(ops::Ops; batch, sequence, channels, heads, hidden = 0, attention = CKPT_ATTENTION_PLAIN, dropout = 0, attention_dropout = 0, epsilon = 0, residual_stddev = 0)
    desc = Ref(ckpt_layer_block_desc(attention = attention, batch = batch, sequence = sequence, channels = channels, heads = heads, hidden = hidden,
                                     dropout_probability = dropout, attention_dropout_probability = attention_dropout, epsilon = epsilon, residual_stddev = residual_stddev))
    bytes = ops.element_bytes * batch * sequence * channels
    make_layer((raw, out) -> ckpt_layer_block_create(raw, desc, out), ops, [bytes], bytes)
end
function head_layer(ops::Ops; rows, channels, vocabulary, chunk_rows = 0, tied = false, ignore_index = -1, epsilon = 0)
    desc = Ref(ckpt_layer_head_desc(tied = tied, rows = rows, channels = channels, vocabulary = vocabulary, chunk_rows = chunk_rows, ignore_index = ignore_index, epsilon = epsilon))
    make_layer((raw, out) -> ckpt_layer_head_create(raw, desc, out), ops, [ops.element_bytes * rows * channels, 4 * rows], 4; tied_count = vocabulary * channels)
end
linear_layer(ops::Ops, rows, inputs, outputs; bias = true) = make_layer((raw, out) -> ckpt_layer_linear_create(raw, rows, inputs, outputs, bias, out), ops,
    [ops.element_bytes * rows * inputs], ops.element_bytes * rows * outputs)
layernorm_layer(ops::Ops, rows, channels; epsilon = 0) = make_layer((raw, out) -> ckpt_layer_layernorm_create(raw, rows, channels, epsilon, out), ops,
    [ops.element_bytes * rows * channels], ops.element_bytes * rows * channels)
gelu_layer(ops::Ops, count) = make_layer((raw, out) -> ckpt_layer_gelu_create(raw, count, out), ops, [ops.element_bytes * count], ops.element_bytes * count)
dropout_layer(ops::Ops, count, probability) = make_layer((raw, out) -> ckpt_layer_dropout_create(raw, count, probability, out), ops,
    [ops.element_bytes * count], ops.element_bytes * count)

parameter_count(layer::Layer) = Int(GC.@preserve layer ckpt_layer_parameter_count(raw(layer)))
function tensors_of(get, count, handle)
    map(0:Int(count)-1) do k
        out = Ref(ckpt_tensor_info())
        GC.@preserve handle check_ops(get(raw(handle), k, out))
        found = out[]
        (name = text_of(found.name), offset = Int(found.offset), rows = Int(found.rows), columns = Int(found.columns), decays = found.decays != 0,
         init_mean = found.init_mean, init_stddev = found.init_stddev)
    end
end
tensors(layer::Layer) = tensors_of(ckpt_layer_get_tensor, ckpt_layer_tensor_count(raw(layer)), layer)

function bound_pointer(name, array, offset, count, host)
    array === nothing && return Ptr{Float32}(C_NULL)
    array isa Ptr && return Ptr{Float32}(array) + 4 * offset
    host || argument_error(name, ": host memory for a layer of another device, expected a pointer")
    array isa Floats || argument_error(name, " is a ", typeof(array), ", expected an Array of Float32")
    0 <= offset && offset + count <= length(array) || argument_error(name, ": elements ", offset + 1, " to ", offset + count, " of an array of ", length(array))
    pointer(array, offset + 1)
end

"""
    bind(layer, parameters, gradients = nothing; offset = nothing)

The layer keeps both arrays (pointers, on another device than the CPU), or with `offset` its part of them from there on (in elements of
4 bytes). Do not resize them. Without gradients: forward only.
"""
function Base.bind(layer::Layer, parameters, gradients = nothing; offset = nothing)
    count = parameter_count(layer)
    if offset === nothing
        wants("parameters", parameters, count)
        wants("gradients", gradients, count)
        offset = 0
    end
    values, grads = bound_pointer("parameters", parameters, offset, count, layer.host), bound_pointer("gradients", gradients, offset, count, layer.host)
    GC.@preserve layer check_ops(ckpt_layer_bind(raw(layer), values, grads))
    layer.bound = (parameters, gradients)
    layer
end
"""A tied head's weight and its gradient, another layer's."""
function bind_tied(layer::Layer, weight, weight_grad = nothing; offset = 0)
    value, grad = bound_pointer("weight", weight, offset, layer.tied_count, layer.host), bound_pointer("weight_grad", weight_grad, offset, layer.tied_count, layer.host)
    GC.@preserve layer check_ops(ckpt_layer_bind_tied(raw(layer), value, grad))
    layer.tied = (weight, weight_grad)
    layer
end
"""Writes the bound parameters."""
init!(layer::Layer, seed; first_tensor = 0) = (GC.@preserve layer check_ops(ckpt_layer_init(raw(layer), seed, first_tensor)); layer)
"""A head's latest loss (on the CPU); nothing of other layers."""
function loss(layer::Layer)
    found = GC.@preserve layer ckpt_layer_loss(raw(layer))
    found == C_NULL || !layer.host ? nothing : unsafe_load(found)
end
"""Pointers of the layer's segment and user, for calls of one's own."""
segment_pointers(layer::Layer; evaluate = false) = GC.@preserve layer (ckpt_layer_segment(raw(layer)), ckpt_layer_user(raw(layer), flag(evaluate, CKPT_LAYER_EVALUATE)))

"""What a recording uses stays until it ends."""
keep(owner::Owner, object) = any(each -> each === object, owner.kept) || push!(owner.kept, object)

function Base.run(tape::Tape, layer::Layer, inputs::Buffer...; evaluate = false)
    layer.host == tape.owner.host || argument_error("tape: it is on another device than the layer")
    length(inputs) == length(layer.input_bytes) || argument_error("inputs: ", length(inputs), " buffers, expected ", length(layer.input_bytes))
    for (k, (buffer, expected)) in enumerate(zip(inputs, layer.input_bytes))
        buffer.bytes == expected == buffer.grad_bytes || argument_error("input ", k, " has ", Int(buffer.bytes), " bytes, expected ", expected)
    end
    numbers, out = UInt64[buffer.raw for buffer in inputs], Ref{UInt64}(0)
    unmoved(tape.owner)
    keep(tape.owner, layer)
    status = GC.@preserve tape layer ckpt_layer_run(raw(layer), raw(tape), numbers, length(numbers), flag(evaluate, CKPT_LAYER_EVALUATE), out)
    settle(tape, status, ckpt_ops_last_error)
    Buffer(out[], layer.output_bytes, layer.output_bytes)
end

# ---- level 3: a GPT ----

"""
    Gpt(ops; layers, heads, channels, sequence, batch, vocabulary, attention, dropout = 0, head_chunk_rows = 0, untied = false)

A language model on a tape: `bind`, `init!`, `record`, `update!`.
"""
mutable struct Gpt <: Handle
    raw::Ptr{ckpt_gpt}
    host::Bool
    tokens::Int
    bound::Any
end
@handle Gpt ckpt_gpt ckpt_gpt_destroy
function Gpt(ops::Ops; layers, heads, channels, sequence, batch, vocabulary, attention = CKPT_ATTENTION_TILED, dropout = 0, head_chunk_rows = 0, untied = false)
    desc = Ref(ckpt_gpt_desc(attention = attention, layers = layers, heads = heads, channels = channels, sequence = sequence, batch = batch, vocabulary = vocabulary,
                             head_chunk_rows = head_chunk_rows, dropout_probability = dropout, untied = untied))
    out = Ref{Ptr{ckpt_gpt}}(C_NULL)
    GC.@preserve ops check_ops(ckpt_gpt_create(raw(ops), desc, out))
    finalizer(close, Gpt(out[], ops.host, batch * sequence, nothing))
end
parameter_count(gpt::Gpt) = Int(GC.@preserve gpt ckpt_gpt_parameter_count(raw(gpt)))
tensors(gpt::Gpt) = tensors_of(ckpt_gpt_get_tensor, ckpt_gpt_tensor_count(raw(gpt)), gpt)

"""The caller zeroes the gradients before the first micro-batch of each update."""
function Base.bind(gpt::Gpt, parameters, gradients = nothing)
    wants("parameters", parameters, parameter_count(gpt))
    wants("gradients", gradients, parameter_count(gpt))
    count = parameter_count(gpt)
    values, grads = bound_pointer("parameters", parameters, 0, count, gpt.host), bound_pointer("gradients", gradients, 0, count, gpt.host)
    GC.@preserve gpt check_ops(ckpt_gpt_bind(raw(gpt), values, grads))
    gpt.bound = (parameters, gradients)
    gpt
end
init!(gpt::Gpt, seed) = (GC.@preserve gpt check_ops(ckpt_gpt_init(raw(gpt), seed)); gpt)

"""
    record(gpt, tape, tokens, targets; evaluate = false)

One forward pass; the loss as a boundary. tokens and targets: Int32 from 0, (sequence, batch), unchanged until the recording ends. Without them:
in a dry recording.
"""
function record(gpt::Gpt, tape::Tape, tokens = nothing, targets = nothing; evaluate = false)
    gpt.host == tape.owner.host || argument_error("tape: it is on another device than the model")
    pointers = map((("tokens", tokens), ("targets", targets))) do (name, array)
        array === nothing && return Ptr{Int32}(C_NULL)
        array isa Ptr{Int32} && return array
        array isa Array{Int32} || argument_error(name, " is a ", typeof(array), ", expected an Array of Int32")
        gpt.host || argument_error(name, ": host memory for a model of another device, expected a pointer")
        wants(name, array, gpt.tokens)
        pointer(array)
    end
    out = Ref{UInt64}(0)
    keep(tape.owner, gpt)
    # Held first: a recording that fails halfway, and stays, reads them too.
    for (name, array) in (("tokens", tokens), ("targets", targets))
        array isa Array && push!(tape.owner.kept, Kept(name, array))
    end
    status = GC.@preserve gpt tape tokens targets ckpt_gpt_record(raw(gpt), raw(tape), pointers[1], pointers[2], flag(evaluate, CKPT_LAYER_EVALUATE), out)
    settle(tape, status, ckpt_ops_last_error)
    Buffer(out[], 4, 4)
end
"""The latest loss (on the CPU)."""
function loss(gpt::Gpt)
    found = GC.@preserve gpt ckpt_gpt_loss(raw(gpt))
    found == C_NULL || !gpt.host ? nothing : unsafe_load(found)
end
"""AdamW over the bound parameters and gradients: the gradients' norm before scaling to max_norm. Keywords as `adamw!`, and max_norm."""
function update!(gpt::Gpt, first_moment::Floats, second_moment::Floats; keywords...)
    wants("first_moment", first_moment, parameter_count(gpt)); wants("second_moment", second_moment, parameter_count(gpt))
    gpt.host || argument_error("first_moment: host memory for a model of another device, expected Ckpt.ckpt_gpt_update")
    out = Ref(0.0)
    GC.@preserve gpt check_ops(ckpt_gpt_update(raw(gpt), Ref(adamw_desc(; keywords...)), first_moment, second_moment, out))
    out[]
end
