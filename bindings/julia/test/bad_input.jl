# What is wrong gets an exception that says so; never a crash.
for text in ("", "0", "-1", "1.5", "12 MiB", "12MB", "MiB", "1e3", "nan", "0x10", ".5GiB", "1..5KiB", "99999999TiB")
    @test has(said(() -> Ckpt.parse_bytes(text)), "size is '$text'", "expected")
end
@test (Ckpt.parse_bytes("12"), Ckpt.parse_bytes("1.5GiB"), Ckpt.parse_bytes("640KiB")) == (12, 3 << 29, 640 << 10)
arena = Arena(Device())
@test has(said(() -> Tape(arena; budget = "lots")), "lots")
@test has(said(() -> Tape(arena; budget = -1)), "-1")
@test has(said(() -> Tape(arena; strategy = "square")), "square", "NOT_FOUND")
@test has(said(() -> Tape(arena; strategy = "uniform")), "INVALID_ARGUMENT")
@test has(said(() -> Device("tpu")), "tpu", "INVALID_ARGUMENT")
@test has(said(() -> Device("cpu\0")), "zero byte")
@test has(said(() -> Ckpt.parse_class("tau")), "tau")
@test Ckpt.class_name(Ckpt.parse_class("sigma")) == "sigma" && Ckpt.strategy_name(Ckpt.CKPT_STRATEGY_SQRT) == "sqrt"
@test has(said(() -> Arena(Device(); alignment = 48)), "48")
@test has(said(() -> Segment("s"; outputs = [Output("o", 4)], slots = [Slot("a", 4), Slot("a", 4)])), "a", "INVALID_ARGUMENT")
@test has(said(() -> Segment("s"; outputs = [Output("o", 4)], slots = [Slot("a", 4; reads = ["b"])])), "reads 'b'")
@test has(said(() -> Output("o", 8; memory = zeros(Float32, 1))), "4 bytes, expected 8")

# Arrays: not dense, not plain bits, of another size, grown, freed; use after close.
net = Net(2; strategy = "store_all")
@test has(said(() -> input(net.tape, view(zeros(Float32, 4, 4), 1:2, :))), "SubArray", "expected an Array")
@test has(said(() -> input(net.tape, ["a"])), "String")
@test has(said(() -> input(net.tape, 3.0)), "Float64")
@test has(said(() -> input(net.tape, net.x; grad = zeros(Float32, 3))), "12 bytes, expected 384")
@test has(said(() -> input(net.tape, net.x; grad = net.x)), "array of data")
y = record(net)
@test has(said(() -> backward(net.tape, y => ones(Float32, 3))), "12 bytes, expected 384")
@test has(said(() -> backward(net.tape, y => ones(Float64, 48, 2)[1:1, :])), "expected 384")
@test has(said(() -> Ckpt.data(net.tape, NTuple{5,UInt8}, y)), "384 bytes", "multiple of 5")
@test has(said(() -> run(net.tape, net.segment, y; slot_bytes = [1])), "slot_bytes has 1 sizes, expected 3")
backward(net.tape, y => ones(Float32, COUNT))
@test has(said(() -> backward(net.tape, y => ones(Float32, COUNT))), "STATE")
@test has(said(() -> run(net.tape, net.segment, y; user = net.layers[1])), "STALE")
Ckpt.reset(net.tape)
@test has(said(() -> run(net.tape, net.segment, record(Net(1)); user = net.layers[1])), "STALE")
Ckpt.reset(net.tape)
@test has(said(() -> Ckpt.set_step(net.tape, 2^40)), "OVERFLOW")
grows = ones(Float32, COUNT)
b = input(net.tape, grows)
append!(grows, ones(Float32, 10^6))
@test has(said(() -> run(net.tape, net.segment, b; user = net.layers[1])), "resized")
Ckpt.reset(net.tape)
b = input(net.tape, net.x)
close(net.segment)
@test has(said(() -> run(net.tape, net.segment, b; user = net.layers[1])), "Segment is closed")
close(net.tape)
close(net.tape)
@test has(said(() -> step!(net)), "Tape is closed")
@test has(said(() -> Tape((close(net.arena); net.arena))), "Arena is closed")

# Inside a frame.
tape, x = Tape(arena), ones(Float32, 5)
seen = String[]
wrong = Segment("wrong"; slots = [Slot("s", 20)], outputs = [Output("out", 20)], backward = f -> nothing) do f
    push!(seen, said(() -> input(f, Float64, 1)), said(() -> slot(f, Float32, :t)), said(() -> slot(f, Float32, :s, (2, 2))))
    slot(f, Float32, :s), output(f, Float32, 1)
end
run(tape, wrong, input(tape, x))
@test has(seen[1], "input 1 has 20 bytes", "multiple of 8") && has(seen[2], "'t' is not one of s") && has(seen[3], "5 elements, expected (2, 2)")
Ckpt.reset(tape)

# Types that are no plain bits; a frame after its callback, also while a later one is open.
mutable struct Boxed
    a::Int32
end
kept = Any[]
late = Segment("late"; outputs = [Output("out", 20)], backward = f -> nothing) do f
    isempty(kept) || push!(seen, said(() -> input(kept[1], Float32, 1)))
    push!(seen, said(() -> input(f, Boxed, 1)), said(() -> input(f, Any, 1)), said(() -> input(f, Nothing, 1)))
    push!(kept, f)
    output(f, Float32, 1)[1] = 3
end
empty!(seen)
y = run(tape, late, run(tape, late, input(tape, x)))
@test all(text -> has(text, "expected plain bits"), seen[[1, 2, 5, 6]]) && has(seen[3], "expected a multiple of 0")
@test has(seen[4], "a frame of segment 'late' is over")
for use in (f -> needs_output(f, 1), f -> output(f, Float32, 1), f -> Ckpt.index(f), f -> Ckpt.random(f, 1), f -> scratch(f, Float32), f -> input_grad(f, Float32, 1))
    @test has(said(() -> use(kept[2])), "a frame of segment 'late' is over")
end
@test has(said(() -> Ckpt.data(tape, Boxed, y)), "expected plain bits")
Ckpt.reset(tape)
opened = Ckpt.begin_segment(tape, Segment("inline"; outputs = [Output("out", 20)]), input(tape, x))
output(opened.frame, Float32, 1)[1] = 1
Ckpt.end_segment(opened)
@test has(said(() -> output(opened.frame, Float32, 1)), "is over")
Ckpt.reset(tape)
lazy = Segment(f -> nothing, "lazy"; outputs = [Output("out", 4)])
@test has(said(() -> run(tape, lazy, input(tape, x))), "lazy", "out", "NOT_FILLED")
@test has(said(() -> run(tape, Segment(f -> output(f, Float32, 7), "far"; outputs = [Output("out", 4)]), input(tape, x))), "output", "6")

@test has(said(() -> Philox(1; step = 2^36, segment = 0, site = 0)), "step", "OVERFLOW")
@test has(said(() -> Ckpt.normal!(Philox(0, 0, 0), zeros(Float32, 8); stddev = -1)), "stddev", "-1")
@test has(said(() -> Ckpt.bernoulli!(Philox(0, 0, 0), zeros(UInt8, 8), 1.5)), "probability", "1.5")

# Guards, and memory of one's own.
slab = zeros(UInt8, 2^16 + 256)
at = Int(256 - UInt(pointer(slab)) % 256) % 256
small = Arena(Device(); capacity = 4096, guard = true)
@test has(said(() -> Ckpt.alloc(small, 2^20)), "BUDGET")
block = Ckpt.alloc(small, 64; high = true)
unsafe_store!(Ptr{UInt8}(block), 0x77, 65)
@test has(said(() -> Ckpt.check_guards(small)), "CHECK")
@test has(said(() -> Ckpt.free(small, block)), "CHECK")
Ckpt.reset_stats(small)
@test has(said(() -> Arena(Device(); slab = "memory")), "Vector{UInt8}")
