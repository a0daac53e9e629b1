# The known answers that all languages check: bindings/vectors/vectors.txt.
chains, counts = Dict{String,Chain}(), Dict{String,Int}()
hex(text) = parse(UInt64, text; base = 16)
hex32(texts) = UInt32[parse(UInt32, text; base = 16) for text in texts]
float64(text) = reinterpret(Float64, hex(text))
for line in eachline(joinpath(REPOSITORY, "bindings", "vectors", "vectors.txt"))
    (isempty(strip(line)) || startswith(line, '#')) && continue
    w = split(line, ' ')
    kind = w[1]
    counts[kind] = get(counts, kind, 0) + 1
    if kind == "revolve"
        steps, snapshots, expected = parse.(Int, w[2:4])
        @test Ckpt.revolve_extra_forwards(steps, snapshots) == expected
        @test reduce(+, [Int(a.last - a.first) for a in Schedule(steps, snapshots) if a.kind === :advance]; init = 0) == expected
    elseif kind == "chain"
        chains[w[2]] = Chain(w[3]; source = w[2])
    elseif kind == "plan"
        plan = Plan(chains[w[2]]; strategy = w[3], budget = parse(Int, w[4]))
        found = Ckpt.summary(plan)
        @test (found.arena_bytes, found.peak_bytes, Ckpt.fingerprint(plan)) == (parse(Int, w[5]), parse(Int, w[6]), hex(w[7]))
    elseif kind == "toosmall"
        @test has(said(() -> Plan(chains[w[2]]; strategy = w[3], budget = parse(Int, w[4]))), "BUDGET", w[5])
        @test Ckpt.minimum_budget(chains[w[2]]; strategy = w[3]) == parse(Int, w[5])
    elseif kind == "block"
        n = hex32(w[2:end])
        @test Ckpt.philox_block((n[1], n[2], n[3], n[4]), (n[5], n[6])) == (n[7], n[8], n[9], n[10])
    elseif kind == "pack"
        @test Philox(hex(w[2]); step = hex(w[3]), segment = hex(w[4]), site = hex(w[5])) == Philox(hex(w[2]), hex(w[6]), hex(w[7]))
    elseif kind == "refuse"
        @test has(said(() -> Philox(hex(w[2]); step = hex(w[3]), segment = hex(w[4]), site = hex(w[5]))), "OVERFLOW", w[6])
    elseif kind == "threshold"
        @test Ckpt.threshold(float64(w[2])) == hex(w[3])
    else
        philox, first = Philox(hex(w[2]), hex(w[3]), hex(w[4])), hex(w[5])
        if kind == "u32"
            @test Ckpt.words!(philox, zeros(UInt32, hex(w[6])); first = first) == hex32(w[7:end])
        elseif kind == "uniform"
            @test bits(Ckpt.uniform!(philox, zeros(Float32, hex(w[6])); first = first)) == hex32(w[7:end])
        elseif kind == "normal"
            mean, stddev = reinterpret(Float32, hex32(w[6:7]))
            @test bits(Ckpt.normal!(philox, zeros(Float32, hex(w[8])); first = first, mean = mean, stddev = stddev)) == hex32(w[9:end])
        elseif kind == "bernoulli"
            @test UInt32.(Ckpt.bernoulli!(philox, zeros(UInt8, hex(w[7])), float64(w[6]); first = first)) == hex32(w[8:end])
        else
            error("unknown vector $kind")
        end
    end
end
@test issubset(("revolve", "plan", "toosmall", "block", "pack", "refuse", "threshold", "u32", "uniform", "normal", "bernoulli"), keys(counts))
