# Host cost of a segment (forward and backward) through the package, beside the same calls of C's own callbacks, in one run.
#
#     julia --project=bindings/julia bindings/julia/test/cost.jl FOLDER      a folder with libckpt_nothing.so (tests/bindings/nothing.c)
using Ckpt

"""Of this process: other work on the machine counts less."""
cpu_seconds() = 1e-6 * ccall(:clock, Clong, ())

const SEGMENTS, STEPS, ROUNDS, KEY = 64, 400, 15, 1
const NOTHING = joinpath(ARGS[1], "libckpt_nothing.so")

segment = Segment("nothing"; slots = [Slot("slot", 4)], outputs = [Output("out", 4)], backward = f -> begin
    kept, out_grad = slot(f, Float32, :slot), output_grad(f, Float32, 1)
    grad, _ = input_grad(f, Float32, 1)
    grad === nothing || (grad[1] = out_grad[1] + kept[1])
end) do f
    x, kept, out = input(f, Float32, 1), slot(f, Float32, :slot), output(f, Float32, 1)
    needs(f, :slot) && (kept[1] = x[1])
    needs_output(f, 1) && (out[1] = x[1])
end

new_tape() = Tape(Arena(Device()); strategy = "store_all", replan = false)

"""Seconds of a segment."""
function through_the_package(tape, segment, x, grad)
    start = cpu_seconds()
    for _ in 1:STEPS
        Ckpt.start(tape, KEY)
        y = input(tape, x; grad = grad)
        for _ in 1:SEGMENTS
            y = run(tape, segment, y)
        end
        backward(tape, y => Float32[1])
    end
    (cpu_seconds() - start) / (STEPS * SEGMENTS)
end

function through_c(tape, x, grad)
    start = cpu_seconds()
    for _ in 1:STEPS
        status = ccall((:ckpt_nothing_step, NOTHING), Int32, (Ptr{Cvoid}, UInt64, UInt32, Ptr{Float32}, Ptr{Float32}), Ckpt.raw(tape), KEY, SEGMENTS, x, grad)
        status == 0 || error(unsafe_string(Ckpt.ckpt_last_error()))
    end
    (cpu_seconds() - start) / (STEPS * SEGMENTS)
end

function main()
    x, grad, ours, theirs = Float32[1], Float32[0], new_tape(), new_tape()
    through_the_package(ours, segment, x, grad), through_c(theirs, x, grad)
    times = [(through_the_package(ours, segment, x, grad), through_c(theirs, x, grad)) for _ in 1:ROUNDS]
    julia, c = sort(first.(times)), sort(last.(times))
    line(name, all) = println("  ", rpad(name, 8), lpad(round(Int, 1e9 * all[ROUNDS÷2+1]), 6), "  (", round(Int, 1e9 * all[2]), " to ", round(Int, 1e9 * all[end-1]), ")")
    println("a segment's forward and backward, median of $ROUNDS rounds (spread), nanoseconds of CPU")
    line("C", c)
    line("Julia", julia)
    over = julia[ROUNDS÷2+1] - c[ROUNDS÷2+1]
    println("  over C  ", lpad(round(Int, 1e9 * over), 6), "  ratio ", round(julia[ROUNDS÷2+1] / c[ROUNDS÷2+1]; digits = 2))
end

main()
