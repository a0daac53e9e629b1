"""What a call of the library came to: a status (negative: libckpt's; positive: a callback's) and its text."""
struct CkptError <: Exception
    status::Int32
    text::String
end

status_name(status::Integer) = unsafe_string(ckpt_status_name(Int32(status)))

Base.showerror(io::IO, err::CkptError) = print(io, "Ckpt: ", err.text, " (", status_name(err.status), " ", err.status, ")")

argument_error(text...) = throw(ArgumentError(string(text...)))

check(status) = status == CKPT_OK ? nothing : throw(CkptError(status, unsafe_string(ckpt_last_error())))
check_ops(status) = status == CKPT_OK ? nothing : throw(CkptError(status, unsafe_string(ckpt_ops_last_error())))

"""A text that C can take."""
function c_text(what, text)
    text = String(text)
    occursin('\0', text) && argument_error(what, " is ", repr(text), ", expected a text without a zero byte")
    text
end

"""A text that the caller owns."""
function take_text(text::Ref{Ptr{UInt8}})
    copy = unsafe_string(text[])
    ckpt_text_free(text[])
    copy
end

"""Of the library that runs, "0.1.0"."""
version() = unsafe_string(ckpt_version_string())
version_number() = ckpt_version()

const UNITS = Dict("" => 1.0, "KiB" => 2.0^10, "MiB" => 2.0^20, "GiB" => 2.0^30, "TiB" => 2.0^40)

"""
    parse_bytes(text)

Bytes from a text: "800000", "640KiB", "96MiB", "1.5GiB"; rounded down, so that a budget is kept. Numbers are bytes.
"""
function parse_bytes(text::AbstractString)
    found = match(r"^([0-9]+(?:\.[0-9]*)?)(|KiB|MiB|GiB|TiB)$", text)
    bytes = found === nothing ? 0.0 : parse(Float64, found.captures[1]) * UNITS[found.captures[2]]
    if !(1 <= bytes <= 2.0^53) || (found.captures[2] == "" && bytes != floor(bytes))
        argument_error("size is '", text, "', expected a size of at least one byte: 800000, 640KiB, 96MiB, 1.5GiB")
    end
    floor(UInt, bytes)
end
function parse_bytes(bytes::Integer)
    bytes >= 0 || argument_error("size is ", bytes, ", expected at least 0 bytes")
    UInt(bytes)
end
