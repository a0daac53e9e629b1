#!/usr/bin/env python3
"""Writes philox.txt: known answers for every binding. Shares no code with the library; float32 is exact rational
arithmetic rounded once. The file is frozen: a test compares it with the library, and this script with the file."""
import math
import struct
import sys
from fractions import Fraction

M = 0xFFFFFFFF


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & M, (p0 >> 32) ^ c[3] ^ k[1], p0 & M]
        k = [(k[0] + 0x9E3779B9) & M, (k[1] + 0xBB67AE85) & M]
    return c


def word(seed, subsequence, index):
    b = index // 4
    return philox((b & M, b >> 32, subsequence & M, subsequence >> 32), (seed & M, seed >> 32))[index % 4]


def f32(x):
    """Nearest float32 (ties to even) of a rational, as a rational; no overflow or subnormal occurs here."""
    x = Fraction(x)
    if x == 0:
        return x
    e = math.frexp(float(abs(x)))[1] - 24
    for _ in range(2):  # the double's exponent can be one too high after rounding up
        scaled = abs(x) / Fraction(2) ** e
        if scaled < 2 ** 23:
            e -= 1
    n = round(abs(x) / Fraction(2) ** e)  # Python rounds halves to even
    return Fraction(n) * Fraction(2) ** e * (1 if x > 0 else -1)


def bits32(x):
    return struct.unpack("<I", struct.pack("<f", float(x)))[0]


def from_bits(b):
    return struct.unpack("<f", struct.pack("<I", b))[0]


def bits64(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def uniform(x):
    return f32(f32(x) * Fraction(1, 2**32) + Fraction(1, 2**33))


C = lambda text: f32(Fraction(text))


def fma(a, b, c):
    return f32(a * b + c)


def log32(u):
    b = bits32(u)
    e = ((b - 0x3F3504F3) & M) >> 23
    e = e - 512 if e >= 256 else e
    f = f32(Fraction(from_bits((b - (e << 23)) & M)) - 1)
    square = f32(f * f)
    p = C("0.06746649")
    for c in ("-0.11675654", "0.11888159", "-0.12405588", "0.14219552", "-0.16667996", "0.20002119", "-0.25000009",
              "0.33333313"):
        p = fma(p, f, C(c))
    tail = fma(square, Fraction(-1, 2), f32(p * f32(f * square)))
    tail = fma(e, C("1.4286068e-6"), tail)
    return fma(e, Fraction(0xB172, 2**16), f32(f + tail))


def sincos32(v):
    k = int(fma(v, C("0.63661975"), Fraction(1, 2)))
    r = fma(k, C("1.71512451e-15"), fma(k, C("4.37113883e-08"), fma(k, C("-1.57079637"), v)))
    z = f32(r * r)
    s = fma(fma(C("-0.00019516656"), z, C("0.0083321733")), z, C("-0.16666655"))
    s = fma(f32(r * z), s, r)
    c = fma(fma(C("2.4432413e-5"), z, C("-0.0013887309")), z, C("0.041666646"))
    c = fma(f32(z * z), c, fma(z, Fraction(-1, 2), 1))
    return [(s, c), (c, -s), (-s, -c), (-c, s), (s, c)][k]


def box_muller(x, y):
    two_pi = C("6.2831855")
    v = fma(f32(y), two_pi / 2**32, two_pi / 2**33)
    square = -2 * log32(uniform(x))
    radius = f32(Fraction(math.sqrt(float(square))))  # double, then float: correctly rounded for float32 arguments
    s, c = sincos32(v)
    return f32(radius * s), f32(radius * c)


def normal(seed, subsequence, index, mean, stddev):
    j = index & ~1
    pair = box_muller(word(seed, subsequence, j), word(seed, subsequence, j + 1))
    return fma(stddev, pair[index & 1], mean)


def threshold(p):
    return math.floor(Fraction(p) * 2**32 + Fraction(1, 2))


HEADER = """\
# Philox 4x32-10: known answers. Written by make_philox.py; frozen. All numbers are hexadecimal; floats are their bits.
#
# block     counter[4] key[2] words[4]
# pack      seed step segment site subsequence offset
# refuse    seed step segment site part             (OVERFLOW; the text names the part)
# threshold probability(float64) threshold
# u32       seed subsequence offset first count words...
# uniform   seed subsequence offset first count values(float32)...
# normal    seed subsequence offset first mean stddev count values(float32)...
# bernoulli seed subsequence offset first probability(float64) count bytes...
"""

STREAMS = [
    (42, 7, 12, 0, 4),  # curand_init(42, 7, 12)
    (0, 0, 0, 0, 8),
    (0x0123456789ABCDEF, 0xFEDCBA9876543210, 5, 1, 23),  # odd start, all lanes
    (42, (3 << 36) + 1000000, (2 << 48), 0xFFFFFFFFC, 9),  # packed; the element crosses 2^36
    (42, 7, (1 << 34) - 3, 0, 7),  # the low counter word overflows into the high one
    (M << 32 | M, (1 << 64) - 1, (1 << 64) - 6, 1, 5),  # the last words there are
]


def lines():
    yield "block 0 0 0 0 0 0 6627e8d5 e169c58d bc57ac4c 9b00dbd8"
    yield f"block {M:x} {M:x} {M:x} {M:x} {M:x} {M:x} 408f276d 41c83b0e a20bc7c6 6d5451fd"
    yield "block 243f6a88 85a308d3 13198a2e 3707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1"
    for i in range(1, 5):
        c, k = [(0x9E3779B1 * (i + j)) & M for j in range(4)], [(0x85EBCA77 * (i + j)) & M for j in range(2)]
        yield "block " + " ".join(f"{x:x}" for x in c + k + philox(c, k))
    for seed, step, segment, site in [(0, 0, 0, 0), (42, 1, 0, 0), (42, 0, 1, 0), (42, 0, 0, 1), (42, 1000000, 123, 7),
                                      (1, 1 << 33, 5, 2), ((1 << 64) - 1, (1 << 36) - 1, (1 << 28) - 1, (1 << 16) - 1)]:
        yield f"pack {seed:x} {step:x} {segment:x} {site:x} {(segment << 36) + step:x} {site << 48:x}"
    yield f"refuse 2a {1 << 36:x} 0 0 step"
    yield f"refuse 2a {(1 << 64) - 1:x} 0 0 step"
    yield f"refuse 2a 0 {1 << 28:x} 0 segment"
    yield f"refuse 2a 0 {(1 << 64) - 1:x} 0 segment"
    yield f"refuse 2a 0 0 {1 << 16:x} site"
    yield f"refuse 2a 0 0 {M:x} site"
    for p in (0.0, 1.0, 0.5, 0.1, 0.9, 2.0**-32, 2.0**-33, 2.0**-34, 1 - 2.0**-33, 1 - 2.0**-34, 1 / 3, 5e-324):
        yield f"threshold {bits64(p):x} {threshold(p):x}"
    for seed, sub, offset, first, count in STREAMS:
        start = f"{seed:x} {sub:x} {offset:x} {first:x}"
        at = [offset + first + e for e in range(count)]
        words = [word(seed, sub, i) for i in at]
        yield f"u32 {start} {count:x} " + " ".join(f"{w:x}" for w in words)
        yield f"uniform {start} {count:x} " + " ".join(f"{bits32(uniform(w)):x}" for w in words)
        for mean, stddev in ((0.0, 1.0), (-1.5, 0.1)):
            m, s = Fraction(from_bits(bits32(mean))), Fraction(from_bits(bits32(stddev)))
            yield (f"normal {start} {bits32(mean):x} {bits32(stddev):x} {count:x} "
                   + " ".join(f"{bits32(normal(seed, sub, i, m, s)):x}" for i in at))
        for p in (0.5, 0.9):
            yield f"bernoulli {start} {bits64(p):x} {count:x} " + " ".join(f"{int(w < threshold(p)):x}" for w in words)


def main():
    text = HEADER + "\n".join(lines()) + "\n"
    if sys.argv[1:2] == ["--check"]:
        with open(sys.argv[2], encoding="ascii") as file:
            return 0 if file.read() == text else f"{sys.argv[2]} is not what this script writes"
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
