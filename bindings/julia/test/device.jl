# A device whose memory the host may not read: arrays are refused, addresses and streams go through, a step is captured and launched. Runs
# where CKPT_PLUGIN_PATH names a folder with a plugin (the tests have a double of CUDA that needs no GPU).
const BYTES = 1024

function on_a_device()
    device = Device("cuda")
    stream = Ckpt.Stream(device)
    arena = Arena(device; capacity = "64MiB", stream = stream)
    tape = Tape(arena; seed = 9)
    x = Ckpt.alloc(arena, 3BYTES)
    x_grad, draws = x + BYTES, x + 2BYTES
    Ckpt.fill_bytes(stream, x, 3, BYTES)
    @test has(said(() -> input(tape, zeros(UInt8, BYTES))), "another device")

    on_device = Ckpt.CKPT_COPY_DEVICE_TO_DEVICE
    seen = Ref("")
    copies = Segment("copy"; slots = [Slot("draws", BYTES)], outputs = [Output("out", BYTES)], backward = f -> begin
        grad, accumulate = Ckpt.input_grad_pointer(f, 1)
        accumulate && error("nothing to add to")
        Ckpt.copy_bytes(stream, draws, Ckpt.slot_pointer(f, :draws), BYTES, on_device)
        Ckpt.copy_bytes(stream, grad, Ckpt.output_grad_pointer(f, 1), BYTES, on_device)
    end) do f
        seen[] = said(() -> input(f, UInt8, 1))
        Ckpt.stream(f) == pointer(stream) || error("another stream")
        needs(f, :draws) && Ckpt.words!(stream, random(f, 0), Ptr{UInt32}(Ckpt.slot_pointer(f, :draws)), BYTES ÷ 4)
        needs_output(f, 1) && Ckpt.copy_bytes(stream, Ckpt.output_pointer(f, 1), Ckpt.input_pointer(f, 1), BYTES, on_device)
    end
    function to_host(data)
        bytes = zeros(UInt8, BYTES)
        GC.@preserve bytes Ckpt.copy_bytes(stream, Ptr{Cvoid}(pointer(bytes)), data, BYTES, Ckpt.CKPT_COPY_DEVICE_TO_HOST)
        Ckpt.synchronize(stream)
        bytes
    end
    function device_step(checked)
        Ckpt.start(tape, KEY)
        y = run(tape, copies, input(tape, x, BYTES; grad = x_grad))
        if checked
            @test has(said(() -> Ckpt.data(tape, UInt8, y)), "data_pointer")
            @test all(==(3), to_host(Ckpt.data_pointer(tape, y)))
            @test has(said(() -> backward(tape, y => ones(UInt8, BYTES))), "another device")
        end
        backward(tape, y => x)
    end
    expected(step) = reinterpret(UInt8, Ckpt.words!(Philox(9; step = step, segment = 0, site = 0), zeros(UInt32, BYTES ÷ 4)))
    device_step(true)
    @test has(seen[], "input_pointer")
    @test all(==(3), to_host(x_grad))
    @test to_host(draws) == expected(0)
    device_step(false)
    device_step(false)

    # A whole step as a graph: the first replay is the step that was captured, with its draws.
    Ckpt.prepare(tape, KEY)
    Ckpt.begin_capture(stream)
    device_step(false)
    graph = Ckpt.end_capture(stream)
    for step in 3:5
        Ckpt.replay(tape)
        Ckpt.launch(graph, stream)
        @test to_host(draws) == expected(step)
    end
    @test Ckpt.step(tape) == 6
    device_step(false)
    @test to_host(draws) == expected(6)

    ops = Ckpt.Ops(device = device, stream = stream, dtype = Ckpt.CKPT_DTYPE_BFLOAT16)
    @test Ckpt.info(ops).dtype == Ckpt.CKPT_DTYPE_BFLOAT16
    @test has(said(() -> Ckpt.linear_forward!(ops, ones(Float32, 1, 1), ones(Float32, 1, 1), ones(Float32, 1, 1))), "another device")
    gpt = Ckpt.Gpt(ops; layers = 1, heads = 1, channels = 16, sequence = 8, batch = 1, vocabulary = 16)
    @test has(said(() -> bind(gpt, zeros(Float32, Ckpt.parameter_count(gpt)))), "another device")
    @test has(said(() -> Ckpt.record(gpt, Tape(Arena(Device("cpu"))))), "another device")
    foreach(close, (gpt, ops, graph, tape, arena, stream))
end

haskey(ENV, "CKPT_PLUGIN_PATH") ? on_a_device() : println("left out: a device beside the CPU, no CKPT_PLUGIN_PATH")
