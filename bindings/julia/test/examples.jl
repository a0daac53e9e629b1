# The examples give the bits of the C programs. CKPT_C_EXAMPLES: a folder with the C programs `minimal_bits` and `train_gpt`.
example(name, arguments...) = read(`$(Base.julia_cmd()) --project=$(PACKAGE) $(joinpath(PACKAGE, "examples", name)) $arguments`, String)
loss_bits(text) = match(r"loss bits (\w+)", text).captures[1]

text = example("minimal.jl")
@test has(text, "bitwise equal: yes")
licence = joinpath(REPOSITORY, "LICENSE")
gpt = loss_bits(example("gpt.jl", licence, "400KiB"))
if haskey(ENV, "CKPT_C_EXAMPLES")
    folder = ENV["CKPT_C_EXAMPLES"]
    @test loss_bits(text) == loss_bits(read(`$folder/minimal_bits`, String))
    shape = split("--layers 2 --heads 2 --channels 32 --sequence 32 --batch 4 --dropout 0.1 --steps 20 --threads 2 --json")
    json = read(pipeline(`$folder/train_gpt $shape --text $licence`; stderr = devnull), String)
    @test string(reinterpret(UInt32, Float32(parse(Float64, match(r"\"loss\": ([^,]*),", json).captures[1]))); base = 16, pad = 8) == gpt
else
    println("left out: comparison with the C programs, no CKPT_C_EXAMPLES")
end
