# Trains a byte-level GPT on the CPU within a memory budget, as the C program examples/train_gpt.c does, with the same bits.
#
#     julia --project=bindings/julia bindings/julia/examples/gpt.jl FILE [BUDGET] [STEPS]
using Ckpt

const KEY, SEED, BATCH, SEQUENCE = 1, 1, 4, 32
const TEXT_SEGMENT = 2^28 - 1 # the last there is: no segment of the model draws from it

"""A batch is a function of (seed, step) alone."""
function text_batch!(tokens, targets, text, step)
    philox = Philox(SEED; step = step, segment = TEXT_SEGMENT, site = 0)
    for row in 1:BATCH
        words = Ckpt.words!(philox, zeros(UInt32, 2); first = 2 * (row - 1))
        start = ((UInt64(words[1]) << 32) | words[2]) % (length(text) - SEQUENCE)
        for k in 1:SEQUENCE
            tokens[k, row] = text[start+k]
            targets[k, row] = text[start+k+1]
        end
    end
end

function main(file, budget = "0", steps = "20")
    text, steps = read(file), parse(Int, steps)
    gpt = Ckpt.Gpt(Ckpt.Ops(threads = 2); layers = 2, heads = 2, channels = 32, sequence = SEQUENCE, batch = BATCH, vocabulary = 256, dropout = 0.1)
    zeros_() = zeros(Float32, Ckpt.parameter_count(gpt))
    parameters, gradients, first_moment, second_moment = zeros_(), zeros_(), zeros_(), zeros_()
    bind(gpt, parameters, gradients)
    Ckpt.init!(gpt, SEED)
    tape = Tape(Arena(Device("cpu")); budget = budget == "0" ? 0 : budget, seed = SEED)
    Ckpt.start(tape, KEY; dry = true)
    backward(tape, Ckpt.record(gpt, tape) => Float32[1]) # the plan, or its refusal with the smallest budget

    tokens, targets = zeros(Int32, SEQUENCE, BATCH), zeros(Int32, SEQUENCE, BATCH)
    for step in 0:steps-1
        text_batch!(tokens, targets, text, step)
        fill!(gradients, 0)
        Ckpt.set_step(tape, step) # dropout's masks depend on it
        Ckpt.start(tape, KEY)
        loss = Ckpt.record(gpt, tape, tokens, targets)
        value = Ckpt.loss(gpt)
        backward(tape, loss => Float32[1])
        Ckpt.update!(gpt, first_moment, second_moment; learning_rate = 0.001, weight_decay = 0.1, max_norm = 1, step = step + 1)
        stats = Ckpt.stats(tape)
        stats.arena_predicted_bytes == stats.arena_measured_bytes || error("step $step: the prediction was wrong")
        println("step ", step + 1, "  loss ", value, "  peak ", Int(stats.peak_measured_bytes), " bytes, ", Int(stats.recompute_count), " forwards run again")
        step + 1 == steps && println("loss bits ", string(reinterpret(UInt32, value); base = 16, pad = 8))
    end
end

main(ARGS...)
