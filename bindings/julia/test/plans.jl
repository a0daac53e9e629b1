# Chains, plans, packing, estimates, devices.
wide(k) = ChainSegment("block$k"; forward_seconds = 1, backward_seconds = 2, slots = [Slot("wide", 16384; cost_seconds = 0.9, reads = []), Slot("cheap", 4096; cost_seconds = 0.05, reads = ["wide"])],
                       outputs = [Output("out", 4096; reads = ["cheap"])])
chain = Chain([wide(k) for k in 0:5]; inputs = [Ckpt.ckpt_chain_input(bytes = 4096)])
whole = Ckpt.summary(Plan(chain))
@test whole.recompute_seconds == 0
budget = Int(whole.arena_bytes) * 3 ÷ 5
plan = Plan(chain; budget = budget)
found = Ckpt.summary(plan)
@test found.arena_bytes <= budget && found.recompute_seconds > 0
program = Ckpt.actions(plan)
@test length(program) == found.action_count
@test Ckpt.verify(chain, program).peak_bytes == found.peak_bytes
@test Ckpt.fingerprint(Plan(chain, program)) == Ckpt.fingerprint(plan)
@test has(said(() -> Ckpt.verify(chain, program[2:end])), "INVALID_PLAN")
@test maximum(p.offset + p.bytes for p in Ckpt.placements(plan)) == found.arena_bytes
explained = Ckpt.explain(plan, chain)
@test length(explained) == 6 * 3 + 1 && any(e -> e.kept == 0 && e.because == Ckpt.CKPT_BECAUSE_BUDGET, explained)

again = Chain(Ckpt.json(chain); source = "chain.json")
@test (Ckpt.fingerprint(again), length(again)) == (Ckpt.fingerprint(chain), 6)
@test Ckpt.fingerprint(Plan(Ckpt.json(plan), chain)) == Ckpt.fingerprint(plan)
@test has(Ckpt.schedule_json(plan), "Reverse") && has(Ckpt.trace_json(plan), "traceEvents") && has(Ckpt.json(Schedule(10, 3)), "EndReverse")
@test has(said(() -> Chain("{\"input\": 3}"; source = "chain.json")), "chain.json")

least = Ckpt.minimum_budget(chain)
@test Plan(chain; budget = least) isa Plan
@test has(said(() -> Plan(chain; budget = least - 1)), "BUDGET", least)
points = Ckpt.curve(chain, 16)
@test length(points) > 2 && points[1].budget_bytes == least && issorted([p.seconds for p in points]; rev = true)
@test Ckpt.summary(Plan(chain; strategy = "selective", keep = ["wide"])).recompute_seconds > 0
@test has(said(() -> Plan(chain; strategy = "selective", keep = ["narrow"])), "NOT_FOUND")
@test has(said(() -> Plan(chain; strategy = "selective", keep = ["wide"], recompute = ["block*/wide"])), "CONFLICT")

buffers = [(0, 2, 100), (1, 3, 50), (2, 4, 100), (0, 4, 10)]
packed = Ckpt.pack(buffers)
@test (packed.result.height_bytes, packed.result.proved) == (160, 1)
@test has(said(() -> Ckpt.pack(buffers; capacity = 159)), "BUDGET", "160")
@test has(said(() -> Ckpt.pack([(2, 2, 1)])), "upper")

# Korthikanti et al.: s b h (34 + 5 a s / h) bytes for a layer of half precision with dropout.
model = Ckpt.ckpt_model_desc(flags = Ckpt.CKPT_MODEL_DROPOUT, layers = 4, hidden = 1024, heads = 16, sequence = 512, micro_batch = 2)
@test Ckpt.estimate_rank(model).layer_bytes == 512 * 2 * 1024 * 34 + 5 * 16 * 512 * 512 * 2
@test has(said(() -> Ckpt.estimate_rank(model; policy = Ckpt.CKPT_RECOMPUTE_OPTIMAL, budget = 1)), "BUDGET")
@test length(Ckpt.estimate_chain(model)) == 5
@test Ckpt.recompute_name(Ckpt.CKPT_RECOMPUTE_FULL) == "full"

rng = Ckpt.Rng(1, 2, 3)
Ckpt.advance!(rng, 5; round_up_to_4 = true)
@test Ckpt.snapshot(rng) == Philox(1, 2, 11)
Ckpt.restore!(rng, Philox(9, 9, 4))
@test Ckpt.snapshot(rng) == Philox(9, 9, 4)

device = Device("cpu")
stream, memory = Ckpt.Stream(device), Ckpt.host_memory(device, UInt32, 8)
memory .= 1:8
copied = zeros(UInt32, 8)
GC.@preserve memory copied begin
    Ckpt.copy_bytes(stream, pointer(copied), pointer(memory), 32, Ckpt.CKPT_COPY_HOST_TO_DEVICE)
    Ckpt.fill_bytes(stream, pointer(memory), 0, 32)
    Ckpt.synchronize(stream)
    @test copied == 1:8 && all(iszero, memory)
    Ckpt.words!(stream, Philox(1, 2, 3), pointer(copied), 8; first = 5)
    @test copied == Ckpt.words!(Philox(1, 2, 3), zeros(UInt32, 8); first = 5)
    values = zeros(Float32, 8)
    Ckpt.uniform!(stream, Philox(1, 2, 3), pointer(values), 8)
    @test values == Ckpt.uniform!(Philox(1, 2, 3), zeros(Float32, 8))
    Ckpt.normal!(stream, Philox(1, 2, 3), pointer(values), 8)
    @test values == Ckpt.normal!(Philox(1, 2, 3), zeros(Float32, 8))
    bytes = zeros(UInt8, 8)
    Ckpt.bernoulli!(stream, Philox(1, 2, 3), pointer(bytes), 8, 0.5)
    @test bytes == Ckpt.bernoulli!(Philox(1, 2, 3), zeros(UInt8, 8), 0.5)
end
@test has(said(() -> Ckpt.begin_capture(stream)), "UNSUPPORTED") && has(said(() -> Ckpt.end_capture(stream)), "UNSUPPORTED")

# Memory of one's own, given back once: a block that lives keeps it; a slab that is not aligned is not taken.
room = Vector{UInt8}(undef, 2^16 + 512)
first_aligned = pointer(room) + Int(mod(-UInt(pointer(room)), 256))
GC.@preserve room begin
    slab = unsafe_wrap(Array, first_aligned, 2^16)
    arena = Arena(device; slab = slab)
    block = Ckpt.alloc(arena, 64)
    @test pointer(slab) <= block < pointer(slab) + 2^16
    Ckpt.free(arena, block)
    close(arena)
    @test all(each -> each.done, Ckpt.SLABS)
    @test has(said(() -> Arena(device; slab = unsafe_wrap(Array, first_aligned + 64, 2^16))), "slab")
    @test all(each -> each.done, Ckpt.SLABS)
end
