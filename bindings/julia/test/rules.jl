# checkpointed under ChainRules. ChainRulesCore itself where it is installed, else a stand-in with the few names that the rule uses.
using Random
if Base.find_package("ChainRulesCore") === nothing
    println("ChainRulesCore: a stand-in, the package is not installed")
    push!(LOAD_PATH, joinpath(@__DIR__, "standin"))
end
import ChainRulesCore # which makes the rule be defined

runs = Ref(0)
noisy(a, x) = (runs[] += 1; a * x^2 + rand())
struct ByHand <: ChainRulesCore.RuleConfig{ChainRulesCore.HasReverseMode} end
function ChainRulesCore.rrule_via_ad(::ByHand, f::typeof(noisy), a, x)
    y = f(a, x)
    y, grad -> (ChainRulesCore.NoTangent(), grad * x^2, grad * 2 * a * x, y)
end

@test Ckpt.checkpointed(noisy, 2.0, 3.0) > 18
Random.seed!(1)
runs[] = 0
y, pullback = ChainRulesCore.rrule(ByHand(), Ckpt.checkpointed, noisy, 2.0, 3.0)
@test runs[] == 1
rand()
expected = (copy(Random.default_rng()); rand(copy(Random.default_rng())))
grads = pullback(1.0)
@test runs[] == 2
@test length(grads) == 5 && grads[3:4] == (9.0, 12.0)
@test grads[5] == y # what was drawn is drawn again
@test rand() == expected # and the generator is where it was
