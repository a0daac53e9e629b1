# Where the libraries are, and the table of addresses that raw.jl calls through.

"""What stands for a library in LocalPreferences.toml (Julia 1.6 and later), or nothing."""
function preference(name)
    isdefined(Base, :get_preferences) || return nothing
    uuid = Base.PkgId(@__MODULE__).uuid
    uuid === nothing ? nothing : get(Base.get_preferences(uuid), name, nothing)
end

"""Candidates for a library, the first that is given alone if one is."""
function candidates(variable, name, base)
    given = get(ENV, variable, preference(name))
    given === nothing ? ["$base.$(Libdl.dlext).$(CKPT_VERSION_MAJOR).$(CKPT_VERSION_MINOR)", base] : [String(given)]
end

function open_library(paths)
    reasons = String[]
    for path in paths
        try
            return dlopen(path, RTLD_LAZY | RTLD_GLOBAL), reasons
        catch err
            push!(reasons, sprint(showerror, err))
        end
    end
    nothing, reasons
end

# Why a function is not there: the reasons of each library.
const MISSING = Dict{Symbol,String}()

function load_libraries()
    core, reasons = open_library(candidates("CKPT_LIBRARY", "library", "libckpt"))
    core === nothing && error("Ckpt: libckpt was not found: set CKPT_LIBRARY to its path. ", join(reasons, "; "))
    ops, ops_reasons = open_library(candidates("CKPT_OPS_LIBRARY", "ops_library", "libckpt_ops"))
    for (k, name) in enumerate(FUNCTIONS)
        library = k <= CORE_COUNT ? core : ops
        found = library === nothing ? nothing : dlsym(library, name; throw_error = false)
        ADDRESSES[k] = found === nothing ? C_NULL : found
        if found === nothing
            MISSING[name] = library === nothing ? "libckpt_ops was not found: set CKPT_OPS_LIBRARY to its path. " * join(ops_reasons, "; ") :
                            "the library that was found does not have it: it is another version"
        end
    end
end

@noinline missing_function(k) = error("Ckpt: $(FUNCTIONS[k]): $(get(MISSING, FUNCTIONS[k], "the libraries are not loaded"))")

@inline function address(k)
    found = @inbounds ADDRESSES[k]
    found == C_NULL && missing_function(k)
    found
end
