using Ckpt
using Test

const PACKAGE = dirname(@__DIR__)
const REPOSITORY = dirname(dirname(PACKAGE))

"""The error of a call, as text."""
function said(f)
    try
        f()
    catch err
        return sprint(showerror, err)
    end
    "nothing was wrong"
end
has(text, parts...) = all(part -> occursin(string(part), text), parts) || (println("missing one of ", parts, " in: ", text); false)
bits(values) = reinterpret(UInt32, copy(vec(values)))[:]

include("net.jl")
@testset "Ckpt on Julia $VERSION" begin
    chosen = get(ENV, "CKPT_TEST_FILES", "border vectors laws failures bad_input plans layers device rules examples")
    for name in split(chosen)
        @testset "$name" begin
            include("$name.jl")
        end
    end
end
