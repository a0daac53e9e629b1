# Callbacks that throw: the exception comes back as itself, the process lives, the next step is right.
function recovers(place)
    net = plan!(Net(5; strategy = "every_segment"))
    expected = step!(net)
    Ckpt.set_step(net.tape, 0)
    FAIL[] = place
    @test_throws Told step!(net)
    @test in_use(net) == 0
    @test Ckpt.step(net.tape) == 0
    @test isempty(net.tape.owner.live) && isempty(net.tape.owner.kept)
    @test step!(net) == expected
end
foreach(recovers, (:forward, :recompute, :backward))

tape, x = Tape(Arena(Device())), Float32[1]
one(forward; keywords...) = Segment(forward, "one"; outputs = [Output("out", 4)], keywords...)
@test_throws BoundsError run(tape, one(f -> Float32[1][2]), input(tape, x))
@test_throws InterruptException run(tape, one(f -> throw(InterruptException())), input(tape, x))
@test_throws StackOverflowError run(tape, one(f -> (g(n) = 1 + g(n + 1); g(1))), input(tape, x))
@test_throws UndefVarError run(tape, one(f -> no_such_thing), input(tape, x))

# A callback that waits for other tasks.
waits = one(f -> (fetch(@async (yield(); 3)); sleep(0.001); output(f, Float32, 1)[1] = 3))
y = run(tape, waits, input(tape, x))
@test Ckpt.data(tape, Float32, y) == [3]
Ckpt.reset(tape)

# A failure inside a failure's own text.
struct Mute <: Exception end
Base.showerror(::IO, ::Mute) = error("cannot be shown")
@test_throws Mute run(tape, one(f -> throw(Mute())), input(tape, x))

# Busy inside a callback; another tape is fine, and its failure can be caught there.
inner = Tape(Arena(Device()))
seen = Ref("")
reenter = one(f -> begin
    seen[] = said(() -> Ckpt.reset(tape))
    try
        run(inner, one(f -> throw(Told())), input(inner, x))
    catch err
        err isa Told || rethrow()
    end
    output(f, Float32, 1)[1] = 2
end)
y = run(tape, reenter, input(tape, x))
@test has(seen[], "BUSY")
@test Ckpt.data(tape, Float32, y) == [2]
Ckpt.reset(tape)

# A tape that is closed, and everything collected, inside its own callback.
function closes_itself()
    tape, x = Tape(Arena(Device())), Float32[1]
    segment = one(f -> (close(tape); GC.gc(); output(f, Float32, 1)[1] = 1))
    said(() -> run(tape, segment, input(tape, x)))
end
closes_itself()
GC.gc()
@test true
