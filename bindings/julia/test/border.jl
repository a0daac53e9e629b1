# Against C: layouts of structs, and that each function of the headers is there and is used.

"""What bindings/layouts/layouts.c prints, as this language sees it."""
function layouts_here()
    hex(value) = join(string(byte; base = 16, pad = 2) for byte in reinterpret(UInt8, [value]))
    lines = ["{\"structs\": {"]
    for (k, (type, has_init)) in enumerate(Ckpt.STRUCTS)
        # A field whose name is a keyword here has a _ behind it.
        fields = join(("\"$(rstrip(string(fieldname(type, n)), '_'))\": [$(Int(fieldoffset(type, n))), $(sizeof(fieldtype(type, n)))]" for n in 1:fieldcount(type)), ", ")
        init = has_init ? ", \"init\": \"$(hex(type()))\"" : ""
        push!(lines, "\"$(nameof(type))\": {\"size\": $(sizeof(type)), \"fields\": {$fields}$init}" * (k == length(Ckpt.STRUCTS) ? "" : ","))
    end
    push!(lines, "},", "\"constants\": {")
    for (k, (name, value)) in enumerate(Ckpt.CONSTANTS)
        push!(lines, "\"$name\": $value" * (k == length(Ckpt.CONSTANTS) ? "" : ","))
    end
    push!(lines, "}}")
    lines
end

"""The program that bindings/generate.py writes: built here where nobody has (CKPT_LAYOUTS names it)."""
function layouts_of_c()
    haskey(ENV, "CKPT_LAYOUTS") && return readlines(`$(ENV["CKPT_LAYOUTS"])`)
    Sys.which("cc") === nothing && return nothing
    program = joinpath(mktempdir(), "layouts")
    run(`cc -std=c99 -I $REPOSITORY/include $REPOSITORY/bindings/layouts/layouts.c -o $program`)
    readlines(`$program`)
end

c = layouts_of_c()
if c === nothing
    println("left out: layouts, neither a C compiler nor CKPT_LAYOUTS")
else
    here = layouts_here()
    @test length(here) == length(c)
    for (a, b) in zip(here, c)
        a == b || println("here ", a, "\nin C ", b)
        @test a == b
    end
end

declared = Set{Symbol}()
for file in readdir(joinpath(REPOSITORY, "include", "ckpt"); join = true)
    for found in eachmatch(r"^CKPT_API [^(;]*?(\w+)\("m, read(file, String))
        push!(declared, Symbol(found.captures[1]))
    end
end
@test length(declared) > 150
@test declared == Set(Ckpt.FUNCTIONS)
@test isempty(Ckpt.MISSING)

# Functions that the package has no use for: between a plugin and its companion library; the frame's own user.
const RAW_ALONE = Set([:ckpt_device_interface, :ckpt_frame_user])
words = Set{SubString{String}}()
for file in readdir(joinpath(PACKAGE, "src"); join = true)
    basename(file) == "raw.jl" && continue
    union!(words, split(read(file, String), r"\W+"))
end
@test Set(name for name in declared if !(string(name) in words)) == RAW_ALONE

@test Ckpt.version_number() == Ckpt.CKPT_VERSION_MAJOR * 1000000 + Ckpt.CKPT_VERSION_MINOR * 1000 + Ckpt.CKPT_VERSION_PATCH
@test Ckpt.version() == "0.1.0"
