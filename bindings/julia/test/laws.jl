# The library's laws, through the binding.
stored = plan!(Net(8; strategy = "store_all"))
expected = [step!(stored) for _ in 1:3]
all_bytes = Int(Ckpt.stats(stored.tape).arena_measured_bytes)
@test expected[1] != expected[2]
for strategy in ("store_all", "every_segment", "sqrt", "uniform:3", "block:2", "full", "auto")
    net = plan!(Net(8; strategy = strategy))
    for k in 1:3
        @test step!(net) == expected[k]
        stats = Ckpt.stats(net.tape)
        @test stats.peak_predicted_bytes == stats.peak_measured_bytes
        @test stats.arena_predicted_bytes == stats.arena_measured_bytes
        @test stats.planned == 1
    end
    @test in_use(net) == 0
end

# Budgets: kept, or refused with the smallest.
refused = Net(8; budget = 1024)
text = said(() -> plan!(refused))
minimum_bytes = Int(Ckpt.stats(refused.tape).minimum_budget_bytes)
@test has(text, "BUDGET", minimum_bytes)
@test has(said(() -> plan!(Net(8; budget = minimum_bytes - 1))), "BUDGET")
for budget in (10 * all_bytes, all_bytes, all_bytes * 3 ÷ 4, minimum_bytes)
    net = plan!(Net(8; budget = budget))
    @test step!(net) == expected[1]
    stats = Ckpt.stats(net.tape)
    @test stats.arena_measured_bytes <= budget
    budget >= all_bytes && @test stats.recompute_count == 0
end
@test step!(Net(8)) == expected[1] # an unknown first step

# 2,000 steps without growth: forward-only steps, abandoned recordings and failures among them.
net = plan!(Net(6; strategy = "sqrt"))
first_step = step!(net)
height = Ckpt.stats(net.arena).height_bytes
resident() = (GC.gc(); parse(Int, split(read("/proc/self/statm", String))[2]) * 4096)
early = 0
for k in 1:2000
    if k % 7 == 3
        FAIL[] = (:forward, :recompute, :backward)[k÷7%3+1]
        @test_throws Told step!(net)
    elseif k % 7 == 5
        record(net)
        Ckpt.reset(net.tape)
    elseif k % 7 == 6
        Ckpt.start(net.tape, KEY; backward = false)
        record(net)
        Ckpt.reset(net.tape)
    else
        Ckpt.set_step(net.tape, 0)
        step!(net) == first_step || @test false
    end
    in_use(net) == 0 || @test false
    isempty(net.tape.owner.live) && isempty(net.tape.owner.kept) || @test false
    k == 400 && global early = resident()
end
@test Ckpt.stats(net.arena).height_bytes == height
@test resident() <= early + 8 * 2^20

# Retain, detach, pipelines.
net = plan!(Net(4; strategy = "sqrt"))
out, x_grad, _ = step!(net)
Ckpt.set_step(net.tape, 0)
y = record(net)
backward(net.tape, y => ones(Float32, COUNT); retain = true)
@test bits(net.x_grad) == x_grad
fill!(net.x_grad, 0)
backward(net.tape, y => ones(Float32, COUNT))
@test bits(net.x_grad) == x_grad
piped = plan!(Net(4; strategy = "sqrt", in_flight = 2))
first_y = record(piped); first_recording = Ckpt.detach(piped.tape)
second_y = record(piped); second_recording = Ckpt.detach(piped.tape)
GC.gc()
@test bits(Ckpt.data(first_recording, Float32, first_y)) == out
backward(second_recording, second_y => ones(Float32, COUNT))
fill!(piped.x_grad, 0)
backward(first_recording, first_y => ones(Float32, COUNT))
@test bits(piped.x_grad) == x_grad
close(first_recording); close(second_recording)
@test in_use(piped) == 0

# Plans of a tape.
a, b = plan!(Net(6; strategy = "sqrt")), plan!(Net(6; strategy = "store_all"))
step!(a)
@test length(Chain(a.tape, KEY)) == 6
plan = Plan(a.tape, KEY)
@test Ckpt.fingerprint(Plan(b.tape, KEY)) != Ckpt.fingerprint(plan)
Ckpt.adopt(b.tape, KEY, plan)
Ckpt.prepare(b.tape, KEY)
@test Ckpt.fingerprint(Plan(b.tape, KEY)) == Ckpt.fingerprint(plan)
Ckpt.set_step(b.tape, 1)
@test step!(b) == step!(a)
@test Ckpt.stats(b.tape).recompute_count > 0
@test has(said(() -> Ckpt.replay(b.tape)), "STATE")

# Finalizers in any order: parents go first, collected while children live.
function orphans()
    net = plan!(Net(3; strategy = "sqrt"))
    Ckpt.set_step(net.tape, 0)
    y = record(net)
    recording = Ckpt.detach(net.tape)
    close(net.arena); close(net.tape); close(net.segment)
    recording, y, net.x_grad
end
recording, y, grad = orphans()
GC.gc(); GC.gc()
backward(recording, y => ones(Float32, COUNT))
reference = plan!(Net(3; strategy = "sqrt"))
@test bits(grad) == step!(reference)[2]
for k in 1:200 # recordings that nobody ends
    record(plan!(Net(2)))
    k % 50 == 0 && GC.gc()
end
GC.gc()

# Inline segments, watches, host state, several outputs.
net = Net(1; strategy = "store_all")
open = Ckpt.begin_segment(net.tape, net.segment, input(net.tape, net.x; grad = net.x_grad); user = net.layers[1], watch = ("weights" => Float32[1, 2],))
@test !is_dry(open.frame) && !is_backward(open.frame) && Ckpt.index(open.frame) == 0 && Ckpt.step(open.frame) == 0 && Ckpt.stream(open.frame) == C_NULL
net_forward(open.frame)
y = Ckpt.end_segment(open)
@test has(said(() -> Ckpt.end_segment(open)), "ended already")
backward(net.tape, y => ones(Float32, COUNT))
inline = bits(net.x_grad)
Ckpt.set_step(net.tape, 0)
@test step!(net)[2] == inline
Ckpt.abandon(Ckpt.begin_segment(net.tape, net.segment, input(net.tape, net.x); user = net.layers[1]))
@test in_use(net) == 0 && isempty(net.tape.owner.kept)

counter = Ref(0)
stateful = Segment("stateful"; slots = [Slot("s", 8; recompute = true)], outputs = [Output("a", 8), Output("b", 8; no_grad = true)], state_bytes = 8,
                   save_state = (state, _) -> (reinterpret(Int, state)[1] = counter[]), restore_state = (state, _) -> (counter[] = reinterpret(Int, state)[1]),
                   backward = f -> @test(slot(f, Int, :s)[1] == 10)) do f
    counter[] += 1
    s = slot(f, Int, :s)
    needs(f, :s) && (s[1] = 10 * counter[])
    a, b = output(f, Int, :a), output(f, Int, 2)
    needs_output(f, :a) && (a[1] = counter[])
    needs_output(f, :b) && (b[1] = -counter[])
end
a, b = run(net.tape, stateful, input(net.tape, net.x))
@test (Ckpt.data(net.tape, Int, a), Ckpt.data(net.tape, Int, b)) == ([1], [-1])
counter[] = 5
backward(net.tape, a => [0])
@test counter[] == 5

# Traces.
net = plan!(Net(4; strategy = "sqrt"))
events = []
Ckpt.set_trace((what, index, bytes, again) -> push!(events, (what, index, bytes, again)), net.tape)
step!(net)
@test maximum(event[3] for event in events) == Ckpt.stats(net.tape).peak_measured_bytes
@test any(event[4] for event in events)
Ckpt.set_trace((_...) -> throw(Told()), net.tape)
@test_throws Told step!(net)
Ckpt.set_trace(nothing, net.tape)
Ckpt.reset(net.tape)
trace = Trace(1000)
Ckpt.attach(trace, net.tape)
step!(net)
@test has(Ckpt.json(trace, Chain(net.tape, KEY)), "traceEvents", "layer")
Ckpt.clear(trace)
close(trace) # while the tape still writes to it
step!(net)
close(net.tape)
@test trace.raw == C_NULL
